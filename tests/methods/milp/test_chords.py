"""Chords of ReLUs between the corners of a budget, against every point of a small space."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import MLPClassifier
from support.enumeration import reachable

from harness.core.classifier import Classifier
from harness.core.inputs import space_inputs
from harness.core.space import Feature, Space
from harness.solvers.program import Program
from methods.milp.cost import Cost
from methods.milp.embed.registry import embed
from methods.milp.forms import scaled
from methods.milp.knapsack import Knapsack
from methods.milp.variables import Variables

SPACE = Space(
    (
        Feature("age", "integer", scale=(20, 26), bounds=(20, 24), actionability="increase"),
        Feature("debt", "integer", scale=(0, 5), bounds=(1, 4), special=(-3.0,)),
        Feature("share", "continuous", scale=(0.0, 2.0), bounds=(0.0, 1.5)),
        Feature("grade", "ordinal", ("low", "mid", "high")),
        Feature("member", "binary", (False, True)),
        Feature("region", "categorical", ("n", "s", "w"), actionability="conditional"),
    )
)
VALUES = (
    range(20, 25),
    (-3, *range(1, 5)),
    (0.0, 0.3, 0.7, 1.5),
    ("low", "mid", "high"),
    (False, True),
    ("n", "s", "w"),
)
GRID = SPACE.frame(dict(zip(SPACE.names, row, strict=True)) for row in itertools.product(*VALUES))
FACTUALS = {
    "inside": (21, 2, 0.7, "mid", False, "n"),
    "special": (20, -3, 0.0, "low", True, "s"),
    "on top": (24, 4, 1.5, "high", True, "w"),
}
SIZES = {"one layer": (8,), "two": (6, 5), "three": (5, 4, 4)}


def network(hidden: tuple[int, ...], seed: int) -> Classifier:
    rng = np.random.default_rng(seed)
    inputs = space_inputs(SPACE)
    matrix = Classifier(None, inputs).matrix(GRID)
    estimator = MLPClassifier(hidden, max_iter=3, random_state=seed)
    with pytest.warns(ConvergenceWarning):
        estimator.fit(matrix, rng.integers(0, 2, len(GRID)))
    for weights in estimator.coefs_:
        weights[:] = rng.normal(size=weights.shape)
    return Classifier(estimator, inputs, (0, 1))


class Posed:
    """A network over the variables of the space, posed for a factual within a budget."""

    def __init__(self, classifier: Classifier, factual: pd.DataFrame, costs: list[Cost]) -> None:
        program = Program()
        self.variables = Variables(program, SPACE, cells=False)
        inputs = [self.variables.source(source) for source in classifier.inputs]
        embedded = embed(classifier.estimator, program, inputs)
        self.variables.close()
        self.compiled = program.compile()
        self.variables.attach(self.compiled)
        embedded.attach(self.compiled)
        self.output = self.compiled.linear(embedded.outputs[0])
        self.variables.pose(factual, costs)
        knapsack = Knapsack(self.variables, classifier.inputs)
        knapsack.limit(costs, np.ones(len(costs)), math.inf, costs[0].budget)
        assert embedded.tighten is not None
        embedded.tighten(knapsack, knapsack.corners)
        width = len(classifier.inputs)
        self.corners = knapsack.corners(np.eye(width), np.zeros(width))

    def ends(self, row: pd.DataFrame, budget: float, whole: bool = True) -> tuple[float, float]:
        """The least and greatest output at a point for a budget; ``whole`` False: of units that work in part."""
        compiled, mark = self.compiled, self.compiled.mark()
        for form, value in zip(self.variables.encoded(), SPACE.encode(row)[0], strict=True):
            compiled.add_row(form, low=value, high=value)
        compiled.add_row(self.variables.cost(), high=budget)
        kinds = compiled.integer.copy()
        compiled.integer[:] = kinds if whole else 0
        sides = self.output, scaled(self.output, -1.0)
        least, most = (compiled.solve(side, seconds=20) for side in sides)
        compiled.integer[:] = kinds
        compiled.rewind(mark)
        assert least.proven, row
        assert most.proven, row
        return least.objective, -most.objective


def spent(factual: pd.DataFrame, rows: pd.DataFrame, costs: list[Cost]) -> np.ndarray:
    """What rows cost, by the definition of costs."""
    total = np.zeros(len(rows))
    for feature, cost, columns in zip(SPACE.features, costs, SPACE.slices, strict=True):
        gaps = np.abs(SPACE.encode(rows)[:, columns] - SPACE.encode(factual)[:, columns]).max(axis=1)
        total += cost(gaps, (rows[feature.name] != factual[feature.name].iloc[0]).to_numpy())
    return total


def costs_of(seed: int, budget: float) -> list[Cost]:
    rng = np.random.default_rng(seed)
    fixed, linear = rng.choice([0.0, 0.1], len(SPACE.features)), rng.choice([0.5, 1.0], len(SPACE.features))
    return [Cost(f, slope, 0.0, budget) for f, slope in zip(fixed.tolist(), linear.tolist(), strict=True)]


def same_at_points(posed: Posed, classifier: Classifier, factual: pd.DataFrame, costs: list[Cost], seed: int) -> None:
    """At points within the budget, those that nearly spend it among them, the output is the network's, up and down."""
    price = spent(factual, GRID, costs)
    within = np.flatnonzero((price <= costs[0].budget) & reachable(SPACE, factual, GRID))
    assert len(within) >= 4
    nearest = within[np.argsort(-price[within], kind="stable")][:6]
    for place in {*nearest, *np.random.default_rng(seed).choice(within, min(6, len(within)), replace=False)}:
        row = GRID.iloc[[place]]
        found = posed.ends(row, costs[0].budget)
        np.testing.assert_allclose(found, classifier.raw(row).item(), rtol=0, atol=1e-6)


@pytest.mark.parametrize("budget", [0.4, 1.1])
@pytest.mark.parametrize("hidden", SIZES)
@pytest.mark.parametrize("name", FACTUALS)
def test_no_point_within_the_budget_is_cut_off(name: str, hidden: str, budget: float) -> None:
    """Chords are there, and no point within the budget lies beyond them."""
    seed = len(name)
    classifier, costs = network(SIZES[hidden], seed), costs_of(seed, budget)
    factual = SPACE.frame([dict(zip(SPACE.names, FACTUALS[name], strict=True))])
    posed = Posed(classifier, factual, costs)
    assert posed.corners is not None
    same_at_points(posed, classifier, factual, costs, seed)


@pytest.mark.parametrize("free", [False, True])
def test_squares_and_free_moves_have_no_corners(free: bool) -> None:
    """Points within a budget of squares lie outside the simplex, and a move that costs nothing has no farthest end."""
    classifier, factual = network((6, 5), 3), SPACE.frame([dict(zip(SPACE.names, FACTUALS["inside"], strict=True))])
    costs = [replace(cost, fixed=0.0, linear=0.0, quadratic=1.0) for cost in costs_of(3, 0.5)]
    if free:
        costs = [*costs_of(3, 0.5)[:-1], Cost(0.0, 0.0, 0.0, 0.5)]
    posed = Posed(classifier, factual, costs)
    assert posed.corners is None
    if free:
        same_at_points(posed, classifier, factual, costs, 3)


@pytest.mark.parametrize("hidden", SIZES)
@pytest.mark.parametrize("name", FACTUALS)
def test_at_the_factual_nothing_is_left_open(name: str, hidden: str) -> None:
    """Where nothing is spent, units that may be at work in part say no more than the network."""
    classifier, costs = network(SIZES[hidden], 7), costs_of(7, 1.1)
    factual = SPACE.frame([dict(zip(SPACE.names, FACTUALS[name], strict=True))])
    posed = Posed(classifier, factual, costs)
    here = classifier.raw(factual).item()
    np.testing.assert_allclose(posed.ends(factual, 0.0, whole=False), here, rtol=0, atol=1e-6)
