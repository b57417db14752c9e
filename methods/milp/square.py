"""The square of a number's gap in a linear program."""

from __future__ import annotations

import math

import numpy as np

from harness.core.tolerances import COORDINATE_TIE, SQUARE_MISSED
from harness.solvers.highs import Linear
from harness.solvers.program import Compiled

TANGENTS, APART = 25, 1.2  # to begin with, from the widest gap down


class Square:
    """A temporary column above the tangents of a squared gap; ``refine`` adds the tangents that a solution lacks.

    Parameters
    ----------
    ways
        The columns whose sum is the gap, in scaled units.
    step
        What the gap is whole multiples of; 0 where it takes any value.
    widest
        The widest gap within the budget, or 0. Its square is the column's unit, so that the solver's tolerances are
        small beside it.
    """

    def __init__(self, compiled: Compiled, step: float, ways: tuple[int, ...], widest: float) -> None:
        self.compiled, self.step, self.ways = compiled, step, ways
        self.unit = widest or 1.0
        self.column = compiled.add_column(0.0, math.inf, integer=False)
        gaps = self.unit / APART ** np.arange(TANGENTS)
        if step:
            gaps = np.unique([0.0, *np.floor(gaps / step + COORDINATE_TIE)]) * step
        for gap in gaps:
            self._touch(float(gap))

    def _touch(self, gap: float) -> None:
        """Bound the square from below by its tangent at a gap; for whole numbers by the chord to the next one."""
        slope, offset = 2 * gap, gap**2
        if unit := self.step:
            step = max(math.floor(gap / unit + COORDINATE_TIE), 0)
            slope, offset = (2 * step + 1) * unit, step * (step + 1) * unit**2
        slope, offset = slope / self.unit**2, offset / self.unit**2
        form = Linear.of([(self.column, 1.0), *((way, -slope) for way in self.ways)])
        self.compiled.add_row(form, low=-offset)

    def refine(self, x: np.ndarray) -> bool:
        """Add the tangents that a solution lacks; whether there were any."""
        gap = float(sum(x[way] for way in self.ways))
        if (gap / self.unit) ** 2 - x[self.column] <= SQUARE_MISSED:
            return False
        self._touch(gap)
        if self.step:
            self._touch(gap - self.step)
        return True

    def cost(self, weight: float) -> tuple[int, float]:
        """The term of an objective in which the square has a weight."""
        return self.column, weight * self.unit**2
