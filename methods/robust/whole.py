"""Whole numbers that a perturbation moves, as inputs of a program, and how far rounding may take a number."""

from __future__ import annotations

import math

from harness.core.inputs import Affine
from harness.core.space import Feature
from harness.core.tolerances import INSET_OF_RANGE, INSET_OF_SIZE
from harness.solvers.program import Expression, Program
from methods.milp.block import Free


class Whole(Free):
    """A moved whole number, whose splits lie between the two whole numbers around each threshold.

    No tolerance of a solver decides between these two, as it would where one of them lies just short of the threshold.
    A number that lies on the threshold up to rounding is on both sides, so that the program stays a relaxation.
    """

    def __init__(
        self, program: Program, expression: Expression, low: float, high: float, feature: Feature, source: Affine,
        far: float,
    ) -> None:  # fmt: skip
        super().__init__(program, expression, low, high)
        self.feature, self.source, self.far = feature, source, far

    def sides(self, left: float) -> tuple[float, float]:
        source = self.source
        value = source.shift + (left - self.far) * source.unit
        inset = inset_of(self.feature, value)
        # A quarter from both, where large inputs are rounded by more than a solver's tolerance: nothing lies between.
        below, above = math.floor(value + inset) + 0.25, math.ceil(value - inset) - 0.25
        if source.unit < 0:  # a falling input: what lies above the threshold's value is on its left
            below, above = above, below
        return source.of(below) + self.far, source.of(above) + self.far


def inset_of(feature: Feature, value: float) -> float:
    """What rounding may make of a number that a program sums, in original units."""
    return INSET_OF_RANGE * feature.range + INSET_OF_SIZE * abs(value)
