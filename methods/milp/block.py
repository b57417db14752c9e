"""What the variables of one feature have in common."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from harness.core.space import Feature
from harness.core.tolerances import FEASIBILITY, MARGIN
from harness.solvers.highs import Linear
from harness.solvers.program import Compiled, Expression, Program
from methods.estimators.thresholds import last_left
from methods.milp.cost import Cost

INTEGRAL = 10 * FEASIBILITY  # a column this near to 0 counts as 0


class Free:
    """An arbitrary linear expression as an input: a shifted copy, a structural equation. It shares no binaries.

    A split keeps ``margin`` away from its threshold on either side, more than the solver's tolerance.
    """

    margin = MARGIN

    def __init__(self, program: Program, expression: Expression, low: float, high: float) -> None:
        self.program, self.expression, self.low, self.high = program, expression, low, high
        self._sides: dict[float, Any] = {}

    @property
    def size(self) -> float:
        """How far it moves."""
        return self.high - self.low

    def right_of(self, threshold: float, single: bool = True) -> Expression:
        left = last_left(threshold, single)
        if self.high <= left:
            return 0
        if self.low > left:
            return 1
        if left not in self._sides:
            side = self.program.binary()
            at_most, at_least = self.sides(left)
            self.program.add(self.expression <= at_most + (self.high - at_most) * side)
            self.program.add(self.expression >= self.low + (at_least - self.low) * side)
            self._sides[left] = side
        return self._sides[left]

    def sides(self, left: float) -> tuple[float, float]:
        """The greatest input on the left of a split, and the least on its right; ``left`` is the last left float."""
        return left - self.margin, left + self.margin


def keep_to(compiled: Compiled, at: np.ndarray, open_: np.ndarray) -> None:
    """Keep columns of steps to open levels, bool of shape (steps + 1,), by bounds and a row a gap; one is open."""
    left = np.flatnonzero(open_)
    steps = np.arange(1, len(open_))
    compiled.low[at], compiled.high[at] = steps <= left[0], steps <= left[-1]
    for shut in set(range(left[0], left[-1])) - set(left.tolist()):
        compiled.add_row(Linear.of([(at[shut - 1], 1.0), (at[shut], -1.0)]), high=0.0)


class Block(Protocol):
    """The variables of one feature. Created in a ``Program``; after ``attach``, posed for one factual after another."""

    feature: Feature

    def close(self) -> None:
        """Called when all inputs are embedded, before compilation."""
        ...

    def attach(self, compiled: Compiled) -> None:
        """Called once, after compilation."""
        ...

    def pose(self, value: Any, cost: Cost, within: Any = None) -> None:
        """Set bounds for a factual's value; values that cost more than the budget are ruled out.

        ``within`` narrows the choice further: a category's code, or the least and greatest scaled number or rank.
        """
        ...

    def cost(self) -> Linear:
        """The cost of the posed feature's change."""
        ...

    def gap(self) -> Linear:
        """What the posed feature's move costs, in scaled units."""
        ...

    def encoded(self) -> list[Linear]:
        """The feature's scaled columns."""
        ...

    def forbid(self, value: Any) -> None:
        """Rule out a state: a category, or for numbers any move to ``value``'s side of the factual."""
        ...

    def changed(self) -> Linear:
        """1 where the posed feature changes, else 0."""
        ...

    def distance_form(self, value: Any, separation: float) -> Linear:
        """A form that is >= 1 only where the feature is another category than ``value``, or ``separation`` away."""
        ...

    def values_listed(self) -> Sequence[Any]:
        """The other values that this feature can take; empty where they are too many to list."""
        ...

    def read(self, x: np.ndarray) -> Any:
        """The decoded value in a solution."""
        ...
