"""Values that moves lead to: the nearest of a bin that a counterfactual may take, on either side of special codes."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from harness.core.classifier import Classifier
from harness.core.problem import Problem
from harness.core.space import Feature, Space
from harness.core.target import Label
from harness.models.card import Bin, Card, Variable
from harness.models.scorecard import ScorecardClassifier
from methods.scorecard.moves import MoveFinder, Moves


def finder(feature: Feature, codes: tuple[float, ...], *cuts: float) -> MoveFinder:
    """Of a card of one feature, cut into intervals, with a bin for codes that the space takes for numbers."""
    ends = [-math.inf, *cuts, math.inf]
    intervals = [Bin("interval", low, high) for low, high in pairwise(ends)]
    bins = (*intervals, Bin("special", members=codes), Bin("missing"))
    values = np.arange(float(len(bins)))
    estimator: Any = ScorecardClassifier()
    estimator.card_ = Card((Variable(feature.name, bins, values, 1.0, values),), 0.0, True)
    estimator.classes_ = np.array([0, 1])
    space = Space((feature,))
    rows = space.frame([{feature.name: 0}, {feature.name: 1}])
    classifier = Classifier(estimator, estimator.card_.inputs(space), ("no", "yes"))
    return MoveFinder(estimator.card_, Problem(space, classifier, rows, np.zeros(2), Label("yes")))


def targets(moves: Moves) -> dict[int, Any]:
    return dict(zip(moves.place.tolist(), moves.targets, strict=True))


def test_a_code_at_the_upper_bound_is_stepped_off_downwards() -> None:
    """The factual is the card's code 99, beyond the bounds: 98 is the nearest number of the bin from 50 on."""
    found = finder(Feature("n", "integer", scale=(0, 98), bounds=(0, 98)), (99,), 50.0)
    assert targets(found.moves({"n": 99})) == {0: 49, 1: 98}


def test_floats_step_off_a_code_to_the_next_one() -> None:
    found = finder(Feature("n", "continuous", scale=(0, 98), bounds=(0, 98)), (50.0, 20.0), 50.0)
    assert targets(found.moves({"n": 10.0})) == {1: math.nextafter(50.0, math.inf)}
    lower = Feature("n", "continuous", scale=(0, 98), bounds=(0, 98), actionability="decrease")
    assert targets(finder(lower, (60.0,), 50.0).moves({"n": 60.0})) == {
        0: math.nextafter(50.0, -math.inf),
        1: math.nextafter(60.0, -math.inf),
    }


@pytest.mark.parametrize("actionability", ["free", "increase", "decrease"])
@pytest.mark.parametrize("codes", [(4,), (3, 4, 5), (0, 12), (7, 8), (4, 11, 12)])
def test_the_nearest_of_all_integers(actionability: str, codes: tuple[int, ...]) -> None:
    """By trying each: within bounds and actionability, in the bin, and no code."""
    feature = Feature("n", "integer", scale=(0, 12), bounds=(0, 12), actionability=actionability)
    found = finder(feature, codes, 4.0, 8.0)
    variable = found.card.variables[0]
    for value in range(13):
        low, high = feature.interval(value)
        expected: dict[int, int] = {}
        for number in range(13):
            place = variable.bin_of(number)
            if low <= number <= high and variable.bins[place].ordinary and place != variable.bin_of(value):
                expected[place] = min(expected.get(place, 99), abs(number - value))
        assert {place: abs(target - value) for place, target in targets(found.moves({"n": value})).items()} == expected
        assert all(variable.bin_of(target) == place for place, target in targets(found.moves({"n": value})).items())
