"""The parts of a data manifold in the order of what they cost at least, which their cores tell."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import count

import numpy as np
import pandas as pd

from harness.core.method import Deadline
from harness.core.space import Kind, Space
from harness.core.tolerances import COORDINATE_TIE
from methods.milp.cores import Cores, HullCores
from methods.milp.hull import Hull, Outside, Piece, Shares

SLICE = 0.2  # seconds that a part's cores are looked for before its bound is compared with others' again


@dataclass
class Reached:
    """A part, its cores where that can be asked, and a lower bound on what its points cost."""

    piece: Piece
    cores: Cores | None
    least: float

    @property
    def changes(self) -> float:
        """A lower bound on the weighted number of changes."""
        return self.piece.changes if self.cores is None else max(self.piece.changes, self.cores.least)


def in_order(
    pieces: Iterable[Piece],
    cores_of: Callable[[Piece], Cores | None],
    alpha: float,
    enough: Callable[[], float],
    deadline: Deadline,
) -> Iterator[Reached]:
    """Parts by their lower bounds, the least first; those of one that comes have been raised as far as cores go.

    Parameters
    ----------
    pieces
        By ascending ``least``.
    cores_of
        The cores of a part, none found yet; None where that cannot be asked.
    alpha
        What a count costs.
    enough
        Tells from which bound on a part is of no interest, however much more it costs.
    """
    order, waiting = count(), list[tuple[float, int, Reached]]()
    source = iter(pieces)
    upcoming = next(source, None)
    while upcoming is not None or waiting:
        while upcoming is not None and (not waiting or upcoming.least <= waiting[0][0]):
            heappush(waiting, (upcoming.least, next(order), Reached(upcoming, cores_of(upcoming), upcoming.least)))
            upcoming = next(source, None)
        least, _, reached = heappop(waiting)
        if reached.cores is None or reached.cores.closed or least >= enough() or deadline.passed:
            yield reached
            continue
        reached.cores.grow(Deadline.after(min(SLICE, deadline.left)))
        reached.least = max(least, reached.piece.least + alpha * (reached.changes - reached.piece.changes))
        heappush(waiting, (reached.least, next(order), reached))


def hull_cores(space: Space, factual: pd.DataFrame, weights: np.ndarray) -> Callable[[Piece], HullCores | None]:
    """The cores of a part without slack: of its numbers' hull, beside the changes of categories and lone numbers.

    ``weights``: what each changed feature counts, shape (features,).
    """
    origin, (low, high) = space.encode(factual)[0], space.reach(factual)
    still = np.array([(high[part] - low[part] <= COORDINATE_TIE).all() for part in space.slices])
    owner = np.repeat(np.arange(len(space.slices)), [part.stop - part.start for part in space.slices])
    return lambda piece: _cores(piece, space, origin, owner, weights, still)


def _cores(
    piece: Piece, space: Space, origin: np.ndarray, owner: np.ndarray, weights: np.ndarray, still: np.ndarray
) -> HullCores | None:
    """As ``hull_cores``; ``owner`` is the feature of each column, ``still`` says which features may not change."""
    if not isinstance(piece, Shares | Outside) or piece.most or piece.price is not None:
        return None
    hull = piece.hull if isinstance(piece, Outside) else Hull(piece.points, 1)
    if hull.norm != 1:
        return None
    columns: dict[int, list[int]] = {}
    for k, place in enumerate(owner[piece.at].tolist()):
        columns.setdefault(place, []).append(k)
    base = 0.0
    for place, (feature, part) in enumerate(zip(space.features, space.slices, strict=True)):
        ends = None if piece.box is None else piece.box[place]
        if place in columns or ends is None:
            continue
        if isinstance(ends, tuple):
            moved = not ends[0] - COORDINATE_TIE <= origin[part.start] <= ends[1] + COORDINATE_TIE
        else:
            own = origin[part].argmax() if feature.kind is Kind.CATEGORICAL else round(float(origin[part.start]))
            moved = own != ends
        base += float(weights[place]) * moved
    return HullCores(hull, origin[piece.at], columns, np.where(still, np.inf, weights), base)
