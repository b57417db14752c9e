r"""Points that may leave a hull at a price: one search for each combination of categories.

With the categories k of x fixed, the hull's 0/1 columns are at a distance that is linear in the shares:

.. math::
    \Big\| \textstyle\sum_i \lambda_i e_{k_i} - e_k \Big\|_1 = 2 \textstyle\sum_{i: k_i \ne k} \lambda_i,

and half of it where one column stands for a binary feature. All 0/1 columns then count as one: how far each point's
categories are from those of x, which is 0 at x itself. What remains are numbers, without an integer but their own; with
the categories left open, in a mixed-integer program, fractions of them cost next to nothing, and bounds are weak.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from harness.core.space import Kind, Space
from methods.hull_search.working_set import WorkingSet, near_each_other
from methods.milp.hull import Outside, Shares

MOST = 500  # combinations of categories that are searched one by one


@dataclass(frozen=True)
class PricedHull:
    """A hull by the numbers of its points and one column more: how far a point's categories are from those sought.

    Parameters
    ----------
    at
        The scaled columns of numbers and ranks.
    places
        The features with categories out of order, shape (features,).
    codes
        Their categories at each point, shape (features, points).
    apart
        What two categories of each are apart, over their 0/1 columns.
    points
        Numbers and distances of categories.
    price
        Of a unit outside the hull.
    """

    at: np.ndarray
    places: np.ndarray
    codes: np.ndarray
    apart: np.ndarray
    points: WorkingSet
    price: float

    @classmethod
    def of(cls, space: Space, points: np.ndarray, price: float) -> PricedHull:
        """The hull of points in scaled columns, shape (points, columns)."""
        listed = [(j, f, c) for j, (f, c) in enumerate(zip(space.features, space.slices, strict=True))]
        free = [(j, f, c) for j, f, c in listed if f.kind in {Kind.CATEGORICAL, Kind.BINARY}]
        at = np.array([c.start for _, f, c in listed if f.kind not in {Kind.CATEGORICAL, Kind.BINARY}], dtype=int)
        own = [
            points[:, c].argmax(axis=1) if f.kind is Kind.CATEGORICAL else np.rint(points[:, c.start])
            for _, f, c in free
        ]
        codes = np.array(own, dtype=int).reshape(len(free), len(points))
        order = near_each_other(np.column_stack([points[:, at], codes.T]))
        kept = WorkingSet.ordered(np.column_stack([points[order][:, at], np.zeros(len(points))]))
        apart = np.array([2.0 if f.kind is Kind.CATEGORICAL else 1.0 for _, f, _ in free])
        return cls(at, np.array([j for j, _, _ in free], dtype=int), codes[:, order], apart, kept, price)

    def distances(self, combination: np.ndarray) -> np.ndarray:
        """How far the categories of each point are from a combination of them, shape (points,)."""
        return self.apart @ (self.codes != combination[:, None])

    def piece(self, space: Space, combination: np.ndarray) -> Shares:
        """The points of a combination of categories, for which the hull is set up from now on."""
        self.points.replace_last(self.distances(combination))
        box: list[Any] = [(-np.inf, np.inf)] * len(space.features)
        for place, code in zip(self.places, combination, strict=True):
            box[int(place)] = int(code)
        return Shares(self.points.points.T, self.at, box, price=self.price)

    def combinations(self, space: Space, factual: pd.DataFrame, cost: np.ndarray) -> Combinations:
        """What a factual's categories may become; ``cost`` is that of a change, by feature of the space."""
        codes, own = [], []
        for j in self.places:
            feature = space.features[j]
            value = factual[feature.name].iloc[0]
            allowed = {value, *feature.reachable(value)}
            own.append(feature.categories.index(value))
            codes.append([k for k, category in enumerate(feature.categories) if category in allowed])
        return Combinations(np.array(own, dtype=int), codes, cost[self.places])


@dataclass(frozen=True)
class Combinations:
    """Combinations of categories that a factual can reach.

    Parameters
    ----------
    own
        The factual's own.
    allowed
        The categories of each feature.
    cost
        What a change of each costs.
    """

    own: np.ndarray
    allowed: list[list[int]]
    cost: np.ndarray

    def below(self, ceiling: float) -> list[tuple[float, np.ndarray]] | None:
        """Those but the factual's own whose changes cost less, with that cost, the cheapest first.

        None where there are more than ``MOST``.
        """
        found: list[tuple[float, np.ndarray]] = []
        for cost, codes in self._from(0, 0.0, ceiling):
            if len(found) > MOST:
                return None
            found.append((cost, np.array(codes, dtype=int)))
        found.sort(key=lambda entry: entry[0])
        return [entry for entry in found if (entry[1] != self.own).any()]

    def _from(self, j: int, cost: float, ceiling: float) -> Iterator[tuple[float, tuple[int, ...]]]:
        """The choices from feature j on that keep the cost below a ceiling."""
        if cost >= ceiling:
            return
        if j == len(self.own):
            yield cost, ()
            return
        for code in self.allowed[j]:
            spent = cost + (self.cost[j] if code != self.own[j] else 0.0)
            for total, codes in self._from(j + 1, spent, ceiling):
                yield total, (code, *codes)


def points_of(piece: Shares | Outside) -> np.ndarray:
    """All points of a piece of a manifold."""
    return piece.points if isinstance(piece, Shares) else piece.hull.points
