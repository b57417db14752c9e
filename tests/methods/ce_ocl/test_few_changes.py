"""The search over one or two changes of a network, against every point of a grid and the mixed-integer program."""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.neural_network import MLPClassifier, MLPRegressor
from support.networks import random_network

from harness.core.classifier import Classifier
from harness.core.explanation import Status
from harness.core.inputs import Affine, Indicator, Input, Lookup
from harness.core.method import Deadline
from harness.core.problem import Problem
from harness.core.space import Feature, Space
from harness.core.target import Interval, Label, Target
from harness.evaluation.checker import permitted
from methods.ce_ocl import CeOcl
from methods.ce_ocl.explainer import start
from methods.ce_ocl.few_changes import FewChanges
from methods.estimators import network_margins
from methods.estimators.network_margins import Margins

SPACE = Space(
    (
        Feature("age", "integer", scale=(20, 26), bounds=(20, 24), actionability="increase"),
        Feature("debt", "integer", scale=(0, 5), bounds=(1, 4), special=(-3.0,)),
        Feature("rate", "integer", scale=(0, 12), bounds=(0, 12)),
        Feature("grade", "ordinal", ("low", "mid", "high")),
        Feature("member", "binary", (False, True)),
        Feature("region", "categorical", ("n", "s", "w"), actionability="conditional"),
    )
)
INPUTS: tuple[Input, ...] = (
    Affine("age", 20.0, 6.0),
    Affine("debt", 1.0, -2.0),
    Affine("debt", 0.0, 5.0),
    Affine("rate", 0.0, 12.0),
    Lookup("grade", ("low", "mid", "high"), (-1.0, 4.0, 0.5)),
    Indicator("member", (True,)),
    Indicator("region", ("n", "w")),
    Indicator("region", ("s",)),
)
VALUES = (range(20, 25), (-3, *range(0, 6)), range(13), ("low", "mid", "high"), (False, True), ("n", "s", "w"))
GRID = SPACE.frame(dict(zip(SPACE.names, row, strict=True)) for row in itertools.product(*VALUES))
FACTUALS = ((21, 2, 6, "mid", False, "n"), (20, -3, 0, "low", True, "s"), (24, 5, 12, "high", True, "w"))
SEPARATION = 0.3
MARGIN = 1e-6
PAIRS = {"n": {"s": 0.3, "w": 2.0}, "s": {"w": 0.5}, "w": {"n": 0.6}}  # of regions, all others 1
COSTS: dict[str, dict[str, Any]] = {
    "rate": {"weight_up": 2.0, "weight_down": 0.4}, "grade": {"weight_up": 1.5, "weight_down": 0.7},
    "region": {"costs": PAIRS},
}  # fmt: skip
KINDS: dict[str, tuple[tuple[int, ...], tuple[Any, ...], Target]] = {
    "one layer": ((12,), ("no", "yes"), Label("yes")),
    "two layers": ((7, 5), ("no", "yes"), Label("no")),
    "three classes": ((10,), ("a", "b", "c"), Label("b")),
    "regression": ((6, 6), (), Interval(-0.2, 0.3)),
}


def make(kind: str, seed: int) -> Problem:
    """A network of random weights, large enough for many units to change sign."""
    hidden, classes, target = KINDS[kind]
    rng = np.random.default_rng(seed)
    labels = np.arange(len(GRID)) % len(classes) if classes else rng.normal(size=len(GRID))
    estimator: Any = (MLPClassifier if classes else MLPRegressor)(hidden_layer_sizes=hidden, max_iter=1, random_state=0)
    random_network(estimator, Classifier(None, INPUTS).matrix(GRID), labels, rng)
    sample = GRID.iloc[rng.choice(len(GRID), 500, replace=False)]
    # The output's threshold lies where few points beyond it are near to a factual.
    raw = Classifier(estimator, INPUTS, classes).raw(sample)
    if raw.ndim == 1 and classes:
        estimator.intercepts_[-1] -= np.quantile(raw, 0.85 if target == Label("yes") else 0.15)
    elif not classes:
        estimator.intercepts_[-1] -= np.quantile(raw, 0.9)
    return Problem(SPACE, Classifier(estimator, INPUTS, classes), GRID, labels, target)


def gaps(row: dict[str, Any]) -> np.ndarray:
    """Scaled moves of the grid's points, by their definition, shape (points, features)."""
    ranks = {"low": 0.0, "mid": 0.5, "high": 1.0}
    numbers = [abs(GRID[name] - row[name]) / span for name, span in (("age", 6), ("debt", 5), ("rate", 12))]
    rest = [(GRID[name] != row[name]).astype(float) for name in ("member", "region")]
    return np.column_stack([*numbers, abs(GRID["grade"].map(ranks) - ranks[row["grade"]]), *rest])


def costs(problem: Problem, row: dict[str, Any], price: np.ndarray) -> np.ndarray:
    """What the grid's points cost, by hand, shape (points,): features' own costs count in place of scaled moves."""
    moved = gaps(row)
    changed, ranks = moved > 0, GRID["grade"].map({"low": 0, "mid": 1, "high": 2})
    if problem.space.priced:
        moved[:, 2] *= np.where(GRID["rate"] > row["rate"], 2.0, 0.4)
        moved[:, 3] *= np.where(ranks > ("low", "mid", "high").index(row["grade"]), 1.5, 0.7)
        moved[:, 5] *= [PAIRS.get(row["region"], {}).get(region, 1.0) for region in GRID["region"]]
    found: np.ndarray = (changed * price[:, 0] + moved * price[:, 1] + moved**2 * price[:, 2]).sum(axis=1)
    return found


def cheapest(
    problem: Problem, row: dict[str, Any], price: np.ndarray, weights: np.ndarray, most: float, earlier: list[Any]
) -> float:
    """The least cost over all valid points of the grid; inf where there is none."""
    changed = gaps(row) > 0
    keep = problem.valid(GRID) & changed.any(axis=1) & (changed.sum(axis=1) <= 2) & (changed @ weights <= most)
    for feature in SPACE.features:
        keep &= [permitted(feature, row[feature.name], value) for value in GRID[feature.name]]
    for other in earlier:
        apart = gaps(other)
        numeric = [feature.numeric for feature in SPACE.features]
        keep &= (apart >= np.where(numeric, SEPARATION - 1e-9, 1e-9)).any(axis=1)
    return float(costs(problem, row, price)[keep].min(initial=math.inf))


@cache
def network(kind: str) -> list[Problem]:
    return [make(kind, seed) for seed in range(4)]


@pytest.mark.parametrize("case", [*range(6), *(pytest.param(k, marks=pytest.mark.slow) for k in range(6, 12))])
@pytest.mark.parametrize("kind", KINDS)
def test_nothing_cheaper_exists(kind: str, case: int) -> None:
    """What is found costs as little as the best of all valid points, and none is found only where there is none."""
    rng = np.random.default_rng(case)
    problem, factual = network(kind)[case % 4], FACTUALS[case % 3]
    if case % 2:
        problem = replace(problem, space=SPACE.replace(COSTS))
    row = SPACE.frame([dict(zip(SPACE.names, factual, strict=True))]).to_dict("records")[0]
    price = rng.choice([0.0, 0.2, 0.7, 1.0], (6, 3)) + np.array([0.0, 0.1, 0.0])
    weights = rng.choice([1.0, 2.0], 6)
    few = FewChanges(problem, MARGIN, weights)
    earlier: list[dict[str, Any]] = []
    for most in (1.0, 2.0, 4.0, 4.0, 4.0):
        expected = cheapest(problem, row, price, weights, most, earlier)
        found = few.closest(row, price, most, math.inf, earlier, SEPARATION, Deadline(time.monotonic() + 60))
        assert found.proven
        assert (found.row is None) == math.isinf(expected)
        if found.row is None:
            continue
        frame = SPACE.frame([found.row])
        assert problem.valid(frame)[0]
        assert not SPACE.violations(SPACE.frame([row]), frame)[0]
        place = (GRID[list(SPACE.names)] == frame[list(SPACE.names)].iloc[0]).all(axis=1).to_numpy()
        cost = costs(problem, row, price)[place].item()
        assert cost == pytest.approx(expected, abs=1e-6)
        again = few.closest(row, price, most, cost - 1e-9, earlier, SEPARATION, Deadline(time.monotonic() + 60))
        assert again.proven
        assert again.row is None
        earlier.append(found.row)


@pytest.mark.parametrize("phased", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_forms_near_a_point_exceed_the_margin_by_the_chords_alone(kind: str, phased: bool) -> None:
    """With the units at work that are so at a point, a form lies above the margin, and at the point by what chords are
    loose; where phases are known, they count."""
    margins = Margins(network(kind)[0], MARGIN)
    rng = np.random.default_rng(1)
    for _ in range(40):
        units = len(margins.layers[0][1])
        centre, radius = rng.normal(scale=2.0, size=(1, units)), rng.uniform(0.0, 2.0, (1, units))
        near = centre + rng.uniform(-1.0, 1.0, (1, units)) * radius
        sums = margins.sums(near)
        phases = [np.where(rng.random(s.shape[1]) < 0.3, np.sign(s[0]), 0.0) for s in sums] if phased else []
        lows, highs = margins.bounds(centre - radius, centre + radius, phases)
        at = [value > 0 for value in sums]
        gaps = margins.loose(lows, highs, sums)
        weights, shift = margins.above(lows, highs, at)[0]
        over = (weights * near).sum() + shift[0] - margins.margins(near)[0, 0]
        assert over == pytest.approx(sum(gap.sum() for gap in gaps), abs=1e-9)
        assert all((gap >= 0).all() for gap in gaps)
        for point in centre + rng.uniform(-1.0, 1.0, (200, units)) * radius:
            values = margins.sums(point[None])
            if all((phase * value[0] >= 0).all() for phase, value in zip(phases, values, strict=False)):
                assert (weights * point).sum() + shift[0] >= margins.margins(point[None])[0, 0] - 1e-9


@pytest.mark.parametrize("kind", KINDS)
def test_forms_lie_above_the_network(kind: str) -> None:
    """Over a box of first sums no margin exceeds its linear form, and no unit leaves its bounds."""
    network_ = Margins(network(kind)[0], MARGIN)
    rng = np.random.default_rng(0)
    units = len(network_.layers[0][1])
    centre, radius = rng.normal(scale=2.0, size=(20, units)), rng.uniform(0.0, 2.0, (20, units))
    lows, highs = network_.bounds(centre - radius, centre + radius)
    forms = network_.above(lows, highs)
    for _ in range(200):
        points = centre + rng.uniform(-1.0, 1.0, (20, units)) * radius
        margins = network_.margins(points)
        for number, (weights, shift) in enumerate(forms):
            assert ((weights * points).sum(axis=1) + shift >= margins[:, number] - 1e-9).all()
        sums = points
        for depth, (low, high) in enumerate(zip(lows, highs, strict=True)):
            if depth:
                matrix, bias = network_.layers[depth]
                sums = np.maximum(sums, 0.0) @ matrix.T + bias
            assert ((sums >= low - 1e-9) & (sums <= high + 1e-9)).all()


@pytest.mark.parametrize("distance", ["l0", "l1", "mad_l1", "gower", "l2sq"])
@pytest.mark.parametrize("most", [1, 2])
def test_the_program_finds_nothing_better(problem_of: Callable[[str], Problem], distance: str, most: int) -> None:
    """With continuous features as well, the mixed-integer program of the same question has the same optimum."""
    problem = problem_of("mlp")
    method = CeOcl(distance=distance, max_changes=most, engine="milp")
    program: Any = start(method, problem)
    program.few = None  # on its own
    parts = method.objective(problem).separable(problem.space)
    assert parts is not None
    few = FewChanges(problem, method.margin, method.weights(problem))
    factuals = problem.train.loc[~problem.valid(problem.train)].iloc[:4]
    for place in range(len(factuals)):
        factual = factuals.iloc[[place]]
        answer = program.answers(factual, 1, Deadline(time.monotonic() + 60))[0]
        found = few.closest(
            factual.to_dict("records")[0], np.column_stack(parts), most, math.inf, [], 0.05,
            Deadline(time.monotonic() + 60),
        )  # fmt: skip
        assert found.proven
        assert (answer.status is Status.INFEASIBLE) == (found.row is None)
        if found.row is not None:
            value = method.objective(problem).evaluate(problem.space, factual, pd.DataFrame([found.row]))[0]
            assert value == pytest.approx(answer.objective, abs=2e-6)


def test_the_deadline_ends_the_search(problem_of: Callable[[str], Problem]) -> None:
    """Without time nothing is proven."""
    problem = problem_of("mlp")
    few = FewChanges(problem, MARGIN, np.ones(len(problem.space.features)))
    price = np.tile([0.0, 1.0, 0.0], (len(problem.space.features), 1))
    row = problem.train.loc[~problem.valid(problem.train)].iloc[[0]].to_dict("records")[0]
    found = few.closest(row, price, 2.0, math.inf, [], 0.05, Deadline(time.monotonic()))
    assert not found.proven
    assert found.row is None


@pytest.mark.parametrize("model", ["lr", "rf", "mlp", "mlp_regressor"])
def test_networks_are_taken(problem_of: Callable[[str], Problem], model: str) -> None:
    """Only networks are."""
    assert network_margins.takes(problem_of(model)) == model.startswith("mlp")
