"""The fewest changes of a part's valid points, by implicit hitting sets."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from harness.core.method import Deadline
from methods.hull_search.bounds import Costs
from methods.hull_search.part import HullPart
from methods.hull_search.run import Run
from methods.milp.core_kernels import MOST, word
from methods.milp.cores import Cores
from methods.milp.distance import Separable

EASY = 5  # hitting sets without a valid point before one is looked for elsewhere
FIRST = 400  # boxes in search of any valid point
NODES = 40  # boxes after which it is left open whether a core can do without a number

Start = Callable[[HullPart, Costs, float, Deadline], Run]


class Fewest(Cores):
    r"""The fewest changes of a part's valid points.

    Cores are of moving numbers that no valid point of the part keeps all at once: the relaxation of a box tells most, a
    branch and bound over it the rest; each is made smaller as long as that is told soon. Where a valid point keeps what
    a lightest hitting set leaves, it has the fewest changes.

    Attributes
    ----------
    row
        The valid point of the fewest changes found, or None.
    """

    def __init__(self, part: HullPart, distance: Separable, start: Start) -> None:
        self.part, self.start = part, start
        none, numbers = 0.0 * distance.linear, part.numbers
        self.costs = Costs.of(part, Separable(none, distance.linear + distance.quadratic, none), math.inf)
        stays = (numbers.low <= numbers.value) & (numbers.value <= numbers.high)
        weights = part.weights[numbers.place]
        base = float(part.still.changed @ part.weights) + float(weights[~stays].sum())
        super().__init__(np.flatnonzero(stays).tolist(), weights, base if part.possible else math.inf)
        self.relaxed = start(part, self.costs, math.inf, Deadline.after(math.inf))
        self.closed = not part.possible
        self.row: dict[str, Any] | None = None

    def core(self, kept: frozenset[int], deadline: Deadline) -> frozenset[int] | None:
        return self._smaller(kept, self._hopeless, deadline) if self._hopeless(kept) else None

    def settle(self, enough: float, deadline: Deadline) -> None:
        """Find the fewest changes, unless they are at least ``enough``, or time is up."""
        barren, descend = 0, EASY
        while not self.settled(enough) and not deadline.passed:
            while not self.closed and self.least < enough and not deadline.passed:
                self.grow(deadline)
            if not self.closed or self.settled(enough):
                return
            if barren == descend:
                descend *= 4
                self._descend(enough, deadline)
            kept = self.may - self.changed
            run = self._run(kept, deadline)
            row, _ = run.search(first=True)
            if row is not None:
                self.row = row
                return
            if run.bound < math.inf:
                return
            self.add([self._smaller(kept, lambda some: self._barren(some, deadline), deadline)])
            barren += 1

    def settled(self, enough: float) -> bool:
        """Whether the fewest changes are known, or known to be at least ``enough``."""
        return self.least >= (enough if self.row is None else min(enough, self.part.changes(self.row)))

    def _descend(self, enough: float, deadline: Deadline) -> None:
        """Look for a valid point of fewer changes than ``enough``: from any valid one, numbers go back one by one."""
        row, _ = self._run(frozenset(), deadline).search(first=True, nodes=FIRST)
        for number in sorted(self.may, key=lambda k: (k in self.changed, -self.weights[k], k)):
            if row is None or deadline.passed:
                break
            kept = self.may - self.part.moved(row)
            if number not in kept:
                found, _ = self._run(kept | {number}, deadline).search(first=True, nodes=NODES)
                row = found or row
        most = enough if self.row is None else min(enough, self.part.changes(self.row))
        if row is not None and self.part.changes(row) < most:
            self.row = row

    def words(self) -> np.ndarray:
        """The cores as words; none where there are too many numbers."""
        if len(self.weights) > MOST:
            return np.zeros(0, dtype=np.uint64)
        return np.array([word(core) for core in dict.fromkeys(self.sets)], dtype=np.uint64)

    def _smaller(
        self, core: frozenset[int], barren: Callable[[frozenset[int]], bool], deadline: Deadline
    ) -> frozenset[int]:
        """A core without the numbers that it can do without."""
        for number in sorted(core, key=lambda k: (self.weights[k], k)):
            if deadline.passed:
                break
            if barren(core - {number}):
                core = core - {number}
        return core

    def _hopeless(self, kept: frozenset[int]) -> bool:
        """Whether the relaxation tells that no valid point keeps some numbers."""
        return self.relaxed.hopeless(*self._box(kept))

    def _barren(self, kept: frozenset[int], deadline: Deadline) -> bool:
        """Whether few boxes tell that no valid point keeps some numbers."""
        run = self._run(kept, deadline)
        row, _ = run.search(first=True, nodes=NODES)
        return row is None and run.bound == math.inf

    def _run(self, kept: frozenset[int], deadline: Deadline) -> Run:
        run = self.start(self.part, self.costs, math.inf, deadline)
        run.box = self._box(kept)
        return run

    def _box(self, kept: frozenset[int]) -> tuple[np.ndarray, np.ndarray]:
        """The decoded values of a part in which some numbers stay as they are."""
        numbers, places = self.part.numbers, list(kept)
        low, high = numbers.low.copy(), numbers.high.copy()
        low[places] = high[places] = numbers.value[places]
        return low, high
