"""A density's bins hold what they are said to hold: numbers between two ends, those beyond each, and gaps."""

from __future__ import annotations

import math

import numpy as np
import pytest

from harness.core.density import BINS, Density
from harness.core.space import Feature, Space


def density(feature: Feature, values: list[float]) -> Density:
    """Of one component; values in original units."""
    space = Space((feature,))
    rows = space.encode(space.frame([{feature.name: value} for value in values]))
    return Density.of(space, rows, np.zeros(len(rows)))


def at(found: Density, feature: Feature, *values: float) -> list[float]:
    return found.likelihood((np.array(values)[:, None] - feature.scale[0]) / feature.range).tolist()


def test_gaps_are_a_bin_of_their_own() -> None:
    """80 gaps and 12 numbers in each of ten bins from 0 to 60: what lies beyond 60 is as likely as what nobody has."""
    feature = Feature("debt", "continuous", scale=(0, 100), bounds=(0, 100), missing=True)
    found = density(feature, [math.nan] * 80 + np.linspace(0, 60, 120).tolist())
    total, width = 200 + BINS + 3, 0.06  # a row more in each bin
    inside, above, below, gap = at(found, feature, 33.0, 61.0, -1.0, math.nan)
    assert inside == pytest.approx(math.log(13 / total / width))
    assert above == below == pytest.approx(math.log(1 / total / width))
    assert gap == pytest.approx(math.log(81 / total / width))


@pytest.mark.parametrize("kind", ["continuous", "integer"])
def test_one_value_has_two_sides(kind: str) -> None:
    feature = Feature("x", kind, scale=(0, 10), bounds=(0, 10))
    found = density(feature, [4] * 30)
    own, *others = at(found, feature, 4, 3, 5, 0, 10)
    assert own - others[0] == pytest.approx(math.log(31))
    assert others == [others[0]] * 4


def test_a_narrow_number_has_an_upper_end() -> None:
    """Within 2e-5 of its range, where ten bins are too narrow to be told apart."""
    feature = Feature("x", "continuous", scale=(0, 50_000), bounds=(0, 50_000))
    found = density(feature, np.linspace(0, 1, 200).tolist())
    inside = at(found, feature, 0.0, 0.5, 1.0)
    beyond = at(found, feature, 10.0, 50_000.0, -10.0)
    assert beyond == [beyond[0]] * 3
    assert min(inside) > beyond[0] + 3
