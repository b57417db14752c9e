"""Intervals whose ends are scores that the model gives, and one of several classes: against every point there is."""

from __future__ import annotations

import itertools
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.ensemble import (
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from support.forests import THREE, problem_with
from support.forests import factuals as rejected

from harness.core.classifier import Classifier
from harness.core.explanation import Answer, Status
from harness.core.inputs import space_inputs
from harness.core.method import Deadline
from harness.core.problem import Problem
from harness.core.space import Feature, Space
from harness.core.target import Interval, Label, Probability, Target
from methods.ce_ocl import CeOcl
from methods.ce_ocl.cell_engine import CellEngine
from methods.ce_ocl.explainer import start

SPACE = Space(
    (
        Feature("a", "integer", scale=(0, 6), bounds=(0, 6)),
        Feature("b", "integer", scale=(0, 6), bounds=(0, 6)),
        Feature("c", "integer", scale=(0, 4), bounds=(0, 4)),
        Feature("region", "categorical", ("n", "e", "s")),
        Feature("member", "binary", (False, True)),
    )
)
POINTS = pd.DataFrame(
    list(itertools.product(range(7), range(7), range(5), ("n", "e", "s"), (False, True))), columns=list(SPACE.names)
)
REGRESSORS: dict[str, Any] = {
    "cart": DecisionTreeRegressor(max_depth=5),
    "rf": RandomForestRegressor(5, max_depth=3),
    "extra": ExtraTreesRegressor(4, max_depth=4),
    "gbm": GradientBoostingRegressor(n_estimators=6, max_depth=2, learning_rate=0.3),
    "hist": HistGradientBoostingRegressor(max_iter=4, max_leaf_nodes=5, min_samples_leaf=3),
}
CLASSIFIERS: dict[str, Any] = {
    "cart": DecisionTreeClassifier(max_depth=4),
    "pure": RandomForestClassifier(4),  # votes of whole trees tie often
    "rf": RandomForestClassifier(5, max_depth=3),
    "gbm": GradientBoostingClassifier(n_estimators=4, max_depth=2),
    "hist": HistGradientBoostingClassifier(max_iter=3, max_leaf_nodes=5, min_samples_leaf=3),
}
METHODS = [CeOcl("l1"), CeOcl("gower", 0.1), CeOcl("l2sq", max_changes=2)]


@cache
def fitted(kind: str, model: str, seed: int) -> Classifier:
    rng = np.random.default_rng(seed)
    rows = POINTS.iloc[rng.choice(len(POINTS), 120)]
    inputs = SPACE.encode(rows)
    merit = inputs @ rng.normal(size=inputs.shape[1]) + 0.5 * rng.normal(size=len(rows))
    if kind == "numbers":
        estimator = clone(REGRESSORS[model]).set_params(random_state=seed).fit(inputs, np.round(merit, 1))
        return Classifier(estimator, space_inputs(SPACE))
    count = 3 + seed % 2
    labels = np.digitize(merit, np.quantile(merit, np.arange(1, count) / count))
    estimator = clone(CLASSIFIERS[model]).set_params(random_state=seed).fit(inputs, labels)
    return Classifier(estimator, space_inputs(SPACE), tuple("wxyz"[:count]))


def asked(method: CeOcl, problem: Problem, factual: pd.DataFrame) -> Answer:
    return start(method, problem).answers(factual, 1, Deadline.after(60.0))[0]


def assert_as_enumerated(method: CeOcl, judge: Classifier, target: Target, factual: pd.DataFrame) -> bool:
    """The status and value of the best of all points that the estimator accepts; whether there is one."""
    problem = Problem(SPACE, judge, POINTS, np.empty(len(POINTS), dtype=object), target)
    few = SPACE.changed(factual, POINTS).sum(axis=1) <= (method.max_changes or 9)
    right = POINTS.loc[problem.valid(POINTS) & few]
    answer = asked(method, problem, factual)
    if right.empty:
        assert answer.status is Status.INFEASIBLE
        return False
    assert answer.status is Status.OPTIMAL
    assert problem.valid(SPACE.frame([answer.row]))[0]
    best = method.objective(problem).evaluate(SPACE, factual, right).min()
    assert answer.objective == pytest.approx(best, abs=1e-6)
    assert answer.bound is not None
    assert answer.bound <= best + 1e-9
    return True


def ends(judge: Classifier, rng: np.random.Generator) -> list[Interval]:
    """Closed, half-open and open intervals between two outputs of the model, and around a single one."""
    outputs = np.unique(judge.predict(POINTS))
    first = int(rng.integers(len(outputs) - 1))
    low, high = float(outputs[first]), float(outputs[min(first + int(rng.integers(1, 3)), len(outputs) - 1)])
    above, below = float(np.nextafter(low, np.inf)), float(np.nextafter(high, -np.inf))
    pairs = [(low, high), (above, below), (low, below), (above, high), (low, low)]
    return [Interval(*pair) for pair in pairs if pair[0] <= pair[1]]


@pytest.mark.parametrize("engine", ["search", "milp"])
@pytest.mark.parametrize("model", REGRESSORS)
def test_an_interval_between_scores_that_the_model_gives(model: str, engine: str) -> None:
    found = []
    for seed in range(2):
        judge, rng = fitted("numbers", model, seed), np.random.default_rng(seed)
        for k, target in enumerate(ends(judge, rng)):
            method = replace(METHODS[k % 3], engine=engine)
            start = POINTS.iloc[[int(rng.choice(np.flatnonzero(~target.holds(judge, POINTS))))]]
            found.append(assert_as_enumerated(method, judge, target, start))
    assert any(found)


@pytest.mark.parametrize("model", ["rf", "gbm"])
@pytest.mark.parametrize("engine", ["search", "milp"])
def test_a_probability_between_two_that_the_model_gives(model: str, engine: str) -> None:
    rows = POINTS.iloc[np.random.default_rng(0).choice(len(POINTS), 100)]
    labels = (rows["a"] + rows["b"] > 6 + 2 * rows["member"]).to_numpy()
    estimator = clone(CLASSIFIERS[model]).set_params(random_state=0).fit(SPACE.encode(rows), labels)
    judge = Classifier(estimator, space_inputs(SPACE), ("no", "yes"))
    chances = np.unique(judge.probability(POINTS, "yes"))
    for low, high in ((0, 1), (1, -2), (len(chances) // 2, len(chances) // 2)):
        target = Probability("yes", float(chances[low]), float(chances[high]))
        start = POINTS.iloc[[int(np.flatnonzero(~target.holds(judge, POINTS))[-1])]]
        assert assert_as_enumerated(CeOcl("l1", engine=engine), judge, target, start)


@pytest.mark.parametrize("engine", ["search", "milp"])
@pytest.mark.parametrize("model", CLASSIFIERS)
def test_a_class_of_several(model: str, engine: str) -> None:
    """The first of equal classes is predicted, and votes tie: each class from points of another one."""
    rng = np.random.default_rng(0)
    for seed in range(2):
        judge = fitted("classes", model, seed)
        predicted = judge.predict(POINTS)
        for k, wanted in enumerate(judge.classes):
            method = replace(METHODS[k % 3], engine=engine)
            other = np.flatnonzero(predicted != wanted)
            assert_as_enumerated(method, judge, Label(wanted), POINTS.iloc[[int(rng.choice(other))]])


def test_trees_need_no_program() -> None:
    for kind, models, target in (("numbers", REGRESSORS, Interval(0.0, 1.0)), ("classes", CLASSIFIERS, Label("x"))):
        for model in models:
            problem = Problem(SPACE, fitted(kind, model, 0), POINTS, np.empty(len(POINTS), dtype=object), target)
            assert isinstance(start(CeOcl(), problem), CellEngine)


@pytest.mark.slow
@pytest.mark.parametrize("method", [CeOcl("l1"), CeOcl("l2sq", 0.1, max_changes=3)], ids=["l1", "l2sq"])
@pytest.mark.parametrize("wanted", ["no", "yes", "more"])
@pytest.mark.parametrize("model", THREE)
def test_a_class_of_several_costs_what_the_program_says(model: str, wanted: str, method: CeOcl) -> None:
    problem = problem_with(model, wanted)
    for factual in rejected(problem, 2):
        found = asked(method, problem, factual)
        other = asked(replace(method, engine="milp"), problem, factual)
        assert found.status is other.status is Status.OPTIMAL
        assert found.objective == pytest.approx(other.objective, abs=5e-6)
