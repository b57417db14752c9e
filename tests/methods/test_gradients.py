"""Linear models and networks as layers over scaled columns, whatever columns they were fitted on."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from support.carla import SPACE, sample

from harness.core.classifier import Classifier
from harness.core.inputs import Affine, Chain, Indicator, Input, Lookup, Step
from harness.core.problem import Problem
from harness.core.target import Label
from methods.estimators.gradients import layers_of

OWN: tuple[Input, ...] = (  # other units, steps of a scaler, codes in place of categories, ranks from 1
    Affine("age", 2.0, -3.0),
    Chain.of_steps("wage", (("-", 3.0), ("/", 7.0))),
    Lookup("grade", ("low", "middle", "high"), (1.0, 2.0, 3.0)),
    Lookup("city", ("Bonn", "Ulm", "Trier"), (5.0, -1.0, 0.5)),
    Indicator("city", ("Ulm", "Trier")),
    Indicator("member", (False,)),
)


def fitted(estimator: Any, inputs: tuple[Input, ...]) -> Problem:
    rows = sample()
    classifier = Classifier(estimator, inputs, ("no", "yes"), 0.4)
    codes = (rows["wage"] - rows["age"] + 5 * rows["member"] > 6).to_numpy(int)
    with warnings.catch_warnings(action="ignore"):
        estimator.fit(classifier.matrix(rows), codes)
    return Problem(SPACE, classifier, rows, classifier.named(codes), Label("yes"))


@pytest.mark.parametrize("estimator", [LogisticRegression(), MLPClassifier((4, 3), max_iter=20, random_state=0)])
def test_models_of_other_units_are_read(estimator: Any) -> None:
    """The last layer is above 0 where the model says the second class, and differs from its score by a constant."""
    problem = fitted(estimator, OWN)
    layers = layers_of(problem)
    assert layers is not None
    found = SPACE.encode(problem.train)
    for depth, (weights, shifts) in enumerate(layers):
        found = (np.maximum(found, 0.0) if depth else found) @ weights + shifts
    scores = problem.classifier.raw(problem.train)
    np.testing.assert_allclose(found[:, 0], scores - problem.classifier.raw_threshold, atol=1e-9)


@pytest.mark.parametrize(
    "odd", [Lookup("grade", ("low", "middle", "high"), (1.0, 2.0, 4.0)), Step("age", (2.0, 5.0), (0.0, 1.0, 2.0))]
)
def test_models_of_inputs_that_bend_are_not(odd: Input) -> None:
    """Ranks of other gaps, and numbers in steps."""
    problem = fitted(LogisticRegression(), OWN)
    inputs = tuple(odd if source.feature == odd.feature else source for source in OWN)
    assert layers_of(replace(problem, classifier=replace(problem.classifier, inputs=inputs))) is None
