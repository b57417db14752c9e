"""Knapsack bounds against every point of a small space."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pandas as pd
import pytest
from support.enumeration import reachable

from harness.core.classifier import Classifier
from harness.core.inputs import Affine, Indicator, Input, Lookup
from harness.core.space import Feature, Space
from harness.solvers.program import Program
from methods.milp.cost import Cost
from methods.milp.knapsack import Knapsack
from methods.milp.variables import Variables

SPACE = Space(
    (
        Feature("age", "integer", scale=(20, 26), bounds=(20, 24), actionability="increase"),
        Feature("debt", "integer", scale=(0, 5), bounds=(1, 4), special=(-3.0,)),
        Feature("grade", "ordinal", ("low", "mid", "high")),
        Feature("member", "binary", (False, True)),
        Feature("region", "categorical", ("n", "s", "w"), actionability="conditional"),
    )
)
INPUTS: tuple[Input, ...] = (
    Affine("age", 20.0, 6.0),
    Affine("debt", 1.0, -2.0),
    Affine("debt", 0.0, 5.0),
    Lookup("grade", ("low", "mid", "high"), (-1.0, 4.0, 0.5)),
    Indicator("member", (True,)),
    Indicator("region", ("n", "w")),
    Indicator("region", ("s",)),
)
VALUES = (range(20, 25), (-3, *range(0, 6)), ("low", "mid", "high"), (False, True), ("n", "s", "w"))
GRID = SPACE.frame(dict(zip(SPACE.names, row, strict=True)) for row in itertools.product(*VALUES))
MATRIX = Classifier(None, INPUTS).matrix(GRID)
FACTUALS = {
    "inside": (21, 2, "mid", False, "n"),
    "special": (20, -3, "low", True, "s"),
    "beyond": (24, 5, "high", 1, "w"),
}


def gaps(factual: pd.DataFrame) -> np.ndarray:
    """Scaled moves of the grid's rows, by their definition."""
    columns = [abs(GRID[name] - factual[name].iloc[0]) / span for name, span in (("age", 6), ("debt", 5))]
    ranks = {"low": 0.0, "mid": 0.5, "high": 1.0}
    columns.append(abs(GRID["grade"].map(ranks) - ranks[factual["grade"].iloc[0]]))
    columns += [(GRID[name] != factual[name].iloc[0]).astype(float) for name in ("member", "region")]
    return np.column_stack(columns)


def bounded(
    factual: pd.DataFrame, forms: np.ndarray, shift: np.ndarray, costs: list[Cost], count: float, weights: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    program = Program()
    variables = Variables(program, SPACE, cells=False)
    variables.attach(program.compile())
    variables.pose(factual, costs)
    knapsack = Knapsack(variables, INPUTS)
    knapsack.limit(costs, weights, count, costs[0].budget)
    return knapsack(forms, shift)


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("name", FACTUALS)
def test_bounds_hold_for_every_change_worth_looking_at(name: str, seed: int) -> None:
    """No form leaves its bounds at any permitted point within the count and the budget."""
    rng = np.random.default_rng(seed)
    factual = SPACE.frame([dict(zip(SPACE.names, FACTUALS[name], strict=True))])
    forms, shift = rng.normal(size=(30, len(INPUTS))), rng.normal(size=30)
    count = float(rng.choice([1, 2, 3, math.inf]))
    budget = float(rng.choice([0.0, 0.3, 0.8, 1.7, math.inf]))
    fixed, linear = rng.choice([0.0, 0.2], 5), rng.choice([0.0, 0.4, 1.0], 5)
    weights = rng.choice([1.0, 2.0], 5)
    costs = [Cost(f, slope, 0.0, budget) for f, slope in zip(fixed.tolist(), linear.tolist(), strict=True)]
    low, high = bounded(factual, forms, shift, costs, count, weights)
    moved = gaps(factual)
    spent, changes = moved @ linear + (moved > 0) @ fixed, (moved > 0) @ weights
    keep = reachable(SPACE, factual, GRID) & (spent <= budget) & (changes <= count)
    assert keep.any()
    values = MATRIX[keep] @ forms.T + shift
    assert (values >= low).all()
    assert (values <= high).all()


@pytest.mark.parametrize("name", FACTUALS)
def test_one_change_without_a_budget_is_bounded_exactly(name: str) -> None:
    """The bounds are the least and greatest value over all points that differ in one feature at most."""
    rng = np.random.default_rng(0)
    factual = SPACE.frame([dict(zip(SPACE.names, FACTUALS[name], strict=True))])
    forms, shift = rng.normal(size=(30, len(INPUTS))), rng.normal(size=30)
    low, high = bounded(factual, forms, shift, [Cost(0.0, 1.0, 0.0)] * 5, 1.0, np.ones(5))
    keep = reachable(SPACE, factual, GRID) & ((gaps(factual) > 0).sum(axis=1) <= 1)
    values = MATRIX[keep] @ forms.T + shift
    np.testing.assert_allclose(low, values.min(axis=0), atol=1e-6)
    np.testing.assert_allclose(high, values.max(axis=0), atol=1e-6)
