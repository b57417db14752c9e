"""Which decoded values of a feature lie on which side of an estimator's thresholds."""

from __future__ import annotations

import math

import numpy as np

from harness.core.inputs import Affine
from harness.core.space import Feature, Kind
from harness.core.tolerances import COORDINATE_TIE, SMALLEST_NUMBER


def as_compared(inputs: np.ndarray, single: bool) -> np.ndarray:
    """Estimator inputs as a tree compares them with its thresholds: rounded to float32 where ``single``."""
    return inputs.astype(np.float32).astype(float) if single else inputs


def last_left(threshold: float, single: bool = True) -> float:
    """The largest float64 that a split sends left: it, or where ``single`` its ``float32``, is at most the threshold.

    >>> last_left(0.5) > 0.5
    True
    >>> bool(np.float32(last_left(0.5)) <= 0.5), bool(np.float32(np.nextafter(last_left(0.5), 1)) <= 0.5)
    (True, False)
    >>> last_left(0.5, single=False)
    0.5
    """
    if not single:
        return threshold
    below = np.float32(threshold)
    if float(below) > threshold:
        below = np.nextafter(below, np.float32(-np.inf))
    middle = (float(below) + float(np.nextafter(below, np.float32(np.inf)))) / 2  # exact in float64; ties go to even
    return middle if np.float32(middle) == below else float(np.nextafter(middle, -math.inf))


def last_decoded(feature: Feature, affine: Affine, threshold: float, single: bool = True) -> float:
    """The last decoded value, in the number's order, before a split changes sides.

    For a rising input that is the largest value whose input, where ``single`` rounded to float32, is at most the
    threshold; for a falling one the largest with the input still to the right. Integers: the largest integer.
    """

    def before(value: float) -> bool:
        number = affine.of(value)
        left = (float(np.float32(number)) if single else number) <= threshold
        return left if affine.unit > 0 else not left

    guess = affine.shift + last_left(threshold, single) * affine.unit
    if feature.kind is Kind.INTEGER:
        value = math.floor(guess) + 1.0
        while not before(value):
            value -= 1
        return value
    value = guess
    # The guess is off by the rounding of two float64 operations: some ulps of the larger operand.
    step = 4 * np.spacing(max(abs(guess), abs(affine.shift), SMALLEST_NUMBER))
    while not before(value):
        value, step = value - step, 2 * step
    above = value + step
    while before(above):
        above, step = above + step, 2 * step
    while np.nextafter(value, math.inf) < above:
        middle = value + (above - value) / 2
        value, above = (middle, above) if before(middle) else (value, middle)
    return float(value)


def separated_values(feature: Feature, value: float, separation: float) -> tuple[float, float]:
    """The nearest decoded values above and below that are ``separation``, in scaled units, away from ``value``."""
    up, down = value + separation * feature.range, value - separation * feature.range
    if feature.kind is Kind.INTEGER:
        up, down = math.ceil(up - COORDINATE_TIE * feature.range), math.floor(down + COORDINATE_TIE * feature.range)
        return max(up, value + 1), min(down, value - 1)
    return up, down
