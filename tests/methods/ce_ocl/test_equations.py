"""Structural equations by networks, against every point that keeps them."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from sklearn.neural_network import MLPClassifier, MLPRegressor
from support.networks import random_network

from harness.core.classifier import Classifier
from harness.core.equation import Equation, follow
from harness.core.explanation import Status
from harness.core.inputs import space_inputs
from harness.core.method import Deadline
from harness.core.problem import Problem
from harness.core.space import Feature, Space
from harness.core.target import Label
from methods.ce_ocl import CeOcl

SPACE = Space(
    (
        Feature("dose", "integer", scale=(0, 12), bounds=(0, 12)),
        Feature("rest", "integer", scale=(0, 6), bounds=(0, 6)),
        Feature("smokes", "binary", (False, True)),
        Feature("effect", "continuous", scale=(0.0, 4.0), bounds=(-30.0, 30.0)),
    )
)
GRID = SPACE.frame(
    {"dose": dose, "rest": rest, "smokes": smokes, "effect": 2.0}
    for dose, rest, smokes in itertools.product(range(13), range(7), (False, True))
)


def test_without_equations_causality_is_refused(problem: Problem) -> None:
    """It would be CE-OCL as it is, and be taken for more."""
    words = "the data have none; give the data's 'causality', such as {debt: {parents: [income]"
    assert words in (CeOcl(causality=True).refuses(problem) or "")
    assert CeOcl().refuses(problem) is None


@pytest.mark.parametrize("alpha", [0.0, 0.1, 1e4])
@pytest.mark.parametrize("hidden", [(6,), pytest.param((5, 4), marks=pytest.mark.slow)])
def test_the_closest_point_that_keeps_an_equation(hidden: tuple[int, ...], alpha: float) -> None:
    """The model of the effect is a network as the classifier is; both are bounded within what the first guess costs."""
    asked = 0
    for seed in range(25):
        rng = np.random.default_rng(seed)
        causes = [source for source in space_inputs(SPACE) if source.feature != "effect"]
        matrix = Classifier(None, causes).matrix(GRID)
        targets = rng.normal(size=len(matrix))
        effect = random_network(MLPRegressor(hidden_layer_sizes=hidden, max_iter=1), matrix, targets, rng)
        equation = Equation("effect", Classifier(effect, causes), 0.0, 1.0)
        factual = GRID.iloc[[int(rng.integers(len(GRID)))]].reset_index(drop=True)
        points = follow((equation,), factual, GRID)
        inputs = space_inputs(SPACE)
        judge = random_network(
            MLPClassifier(hidden, max_iter=1), Classifier(None, inputs).matrix(points), np.arange(len(points)) % 2, rng
        )
        classifier = Classifier(judge, inputs, ("no", "yes"))
        scores = np.sort(classifier.raw(points))
        judge.intercepts_[-1][:] -= scores[-20:-18].mean()
        labels = np.full(len(points), "yes", dtype=object)
        problem = Problem(SPACE, classifier, points, labels, Label("yes"), equations=(equation,))
        valid = problem.valid(points)
        if problem.valid(factual)[0] or np.ptp(scores[-20:-18]) < 1e-3:
            continue
        method = CeOcl("l1", alpha, engine="milp", causality=True)
        least = method.objective(problem).evaluate(SPACE, factual, points)[valid].min()
        (answer,) = method.fit(problem).explain(factual, 1, np.random.default_rng(0), Deadline.after(60)).answers
        assert answer.status is Status.OPTIMAL
        assert answer.objective == pytest.approx(least, rel=1e-6, abs=1e-5)
        asked += 1
    assert asked >= 10
