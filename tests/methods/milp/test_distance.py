"""Distances that are no sums over features, in the mixed-integer program, against all points of a small space."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.tree import DecisionTreeClassifier
from support import enumeration
from support.enumeration import ask, assert_optimal, factuals, problem_of

from harness.core.classifier import Classifier
from harness.core.explanation import Status
from harness.core.inputs import space_inputs
from harness.core.problem import Problem
from harness.core.space import Feature, Space
from harness.core.target import Label
from methods.ce_ocl import CeOcl
from methods.milp.distance import Mahalanobis, Separable

DISTANCES = ("linf", "mahalanobis")
CLASSIFIERS = ("lr", "cart", "rf", "gbm", "mlp")
HULLS: dict[str, dict[str, Any]] = {
    "none": {},
    "hard": {"hull": "hard"},
    "enlarged": {"hull": "hard", "epsilon": 0.137, "hull_norm": "inf"},
    "penalised": {"hull": "penalised", "penalty": 0.7},
}


def written_out(distance: str, problem: Problem, factual: pd.DataFrame, row: dict[str, Any]) -> float:
    """A distance from its definition, by numpy alone."""
    columns = problem.space.encode(problem.train)
    move = problem.space.encode(problem.space.frame([row]))[0] - problem.space.encode(factual)[0]
    if distance == "linf":
        return float(abs(move).max())
    spread = np.cov(columns.T)
    regular = spread + 1e-6 * np.trace(spread) / len(spread) * np.eye(len(spread))
    lower = np.linalg.cholesky(np.linalg.inv(regular))
    return float(abs(lower.T @ move).sum())


@pytest.mark.parametrize("distance", DISTANCES)
@pytest.mark.parametrize("model", CLASSIFIERS)
def test_the_distance_alone_is_least(model: str, distance: str) -> None:
    """No point of the space is nearer, and what is claimed is the distance by its definition."""
    problem, method = problem_of(model), CeOcl(distance)
    for factual in factuals(problem, 3):
        (answer,) = assert_optimal(method, problem, factual)
        assert answer.row is not None
        assert answer.objective == pytest.approx(written_out(distance, problem, factual, answer.row), abs=1e-6)


def cases() -> list[Any]:
    """Each weight, bound and hull together; every other one with a model here, all with every model if slow."""
    found = []
    choices = itertools.product((0.0, 0.3, 1e4), (None, 2), HULLS, DISTANCES)
    for place, (alpha, changes, name, distance) in enumerate(choices):
        for m, model in enumerate(CLASSIFIERS):
            quick = (place + place // 2) % 2 == 0 and m == (place // 2 + place // 8) % len(CLASSIFIERS)
            marks = () if quick else pytest.mark.slow
            tag = f"{distance}-{alpha:g}-{changes}-{name}-{model}"
            method = CeOcl(distance, alpha, changes, **HULLS[name])
            found.append(pytest.param(model, method, id=tag, marks=marks))
    return found


@pytest.mark.parametrize(("model", "method"), cases())
def test_weights_bounds_and_hulls_leave_the_optimum(model: str, method: CeOcl) -> None:
    """Sparsity and the data manifold together."""
    problem = problem_of(model, "increase")
    for factual in factuals(problem, 2):
        assert_optimal(method, problem, factual)


@pytest.mark.parametrize("distance", DISTANCES)
@pytest.mark.parametrize("model", CLASSIFIERS)
def test_a_special_code_is_kept_or_left(model: str, distance: str) -> None:
    """Out of the bounds by a code: only the code itself or a value within them is answered, whichever is nearer."""
    problem, method = problem_of(model, "coded"), CeOcl(distance, 0.1)
    listed = enumeration.points()
    coded = listed[listed["debt"].isin((-2, 9)) & ~problem.valid(listed)].sample(4, random_state=1)
    for place in range(len(coded)):
        (answer,) = assert_optimal(method, problem, coded.iloc[[place]])
        if answer.row is not None:
            assert answer.row["debt"] in {coded["debt"].iloc[place], 1, 2, 3, 4}


@pytest.mark.parametrize("distance", DISTANCES)
@pytest.mark.parametrize("model", ["lr", "rf", "mlp"])
def test_several_answers_are_each_the_best_left(model: str, distance: str) -> None:
    """Apart in a category or number, or without any change made before."""
    problem = problem_of(model, "conditional")
    for diversity, factual in itertools.product(("distance", "features"), factuals(problem, 2)):
        assert_optimal(CeOcl(distance, 0.1, diversity=diversity, separation=0.3), problem, factual, 3)


MIXED = Space(
    (
        Feature("a", "continuous", scale=(0.0, 4.0), bounds=(0.0, 4.0)),
        Feature("b", "continuous", scale=(-1.0, 1.0), bounds=(-1.0, 0.9), actionability="increase"),
        Feature("n", "integer", scale=(0, 9), bounds=(0, 9)),
        Feature("c", "categorical", ("x", "y", "z")),
    )
)


def mixed_problem(model: Any, count: int = 250) -> Problem:
    """Two continuous features that go together, a whole number and a category."""
    rng = np.random.default_rng(4)
    hidden = rng.uniform(size=count)
    frame = pd.DataFrame(
        {
            "a": 4 * np.clip(hidden + rng.normal(0, 0.1, count), 0, 1),
            "b": 2 * np.clip(hidden + rng.normal(0, 0.2, count), 0, 1) - 1,
            "n": rng.integers(0, 10, count), "c": rng.choice(["x", "y", "z"], count).astype(object),
        }
    )  # fmt: skip
    merit = frame["a"] / 4 - frame["b"] / 2 + frame["n"] / 9 + 0.2 * (frame["c"] == "y")
    fitted = Classifier(model.fit(MIXED.encode(frame), merit > merit.median()), space_inputs(MIXED), ("no", "yes"))
    return Problem(MIXED, fitted, frame, np.empty(count, dtype=object), Label("yes"))


@pytest.mark.parametrize("distance", DISTANCES)
@pytest.mark.parametrize(
    "model",
    [
        LogisticRegression(),
        DecisionTreeClassifier(max_depth=4, random_state=0),
        MLPClassifier((5,), max_iter=200, learning_rate_init=0.02, random_state=0),
    ],
    ids=lambda model: type(model).__name__,
)
def test_no_point_of_a_fine_grid_is_nearer(model: Any, distance: str) -> None:
    """Where numbers are continuous; and the grid's best point is worse by its step at most."""
    problem = mixed_problem(model)
    for method in (CeOcl(distance), CeOcl(distance, 0.2, 2)):
        for factual in (problem.train[~problem.valid(problem.train)].iloc[[row]] for row in range(2)):
            (answer,) = ask(method, problem, factual).answers
            assert answer.status is Status.OPTIMAL
            assert answer.row is not None
            assert problem.valid(MIXED.frame([answer.row])).all()
            steps = [np.linspace(0, 4, 31), np.linspace(-1, 0.9, 20), range(10), ("x", "y", "z")]
            axes = [[*step, factual[name].iloc[0]] for step, name in zip(steps, MIXED.names, strict=True)]
            grid = MIXED.frame(pd.DataFrame(itertools.product(*axes), columns=list(MIXED.names)).to_dict("records"))
            keep = problem.valid(grid) & (grid["b"] >= factual["b"].iloc[0]).to_numpy()
            if method.max_changes is not None:
                keep &= MIXED.changed(factual, grid).sum(axis=1) <= method.max_changes
            best = float(method.objective(problem).evaluate(MIXED, factual, grid[keep]).min())
            assert answer.objective is not None
            step = 1 / 20 if distance == "linf" else 0.3
            assert -1e-6 <= best - answer.objective <= step


def test_one_class_of_three_and_changes_by_column() -> None:
    """Where other families of constraints change: still the least over all points."""
    listed = enumeration.rows(False)
    codes = np.searchsorted(np.quantile(enumeration.merit(listed), (0.4, 0.7)), enumeration.merit(listed))
    for estimator in (LogisticRegression(), DecisionTreeClassifier(max_depth=4, random_state=0)):
        fitted = estimator.fit(enumeration.FREE.encode(listed), codes)
        three = Classifier(fitted, space_inputs(enumeration.FREE), ("no", "yes", "very"))
        problem = replace(problem_of("lr"), classifier=three, target=Label("very"))
        points = enumeration.points()
        unwanted = points[~problem.valid(points)]
        for distance, factual in itertools.product(DISTANCES, (unwanted.iloc[[place]] for place in (3, 90))):
            method = CeOcl(distance, 0.3, 3, count="columns")
            (answer,) = ask(method, problem, factual).answers
            changes = problem.space.changed(factual, points) @ method.weights(problem)
            bounded = points["debt"].between(0, 5) | (points["debt"] == factual["debt"].iloc[0])
            allowed = problem.valid(points) & (changes <= 3) & (changes > 0) & bounded
            best = method.objective(problem).evaluate(problem.space, factual, points[allowed]).min()
            assert answer.status is Status.OPTIMAL
            assert answer.objective == pytest.approx(best, abs=1e-6)


@pytest.mark.filterwarnings("error")
def test_a_weight_of_nothing_on_a_number_without_bounds_is_nothing() -> None:
    """However far the number may go; and a weight on it is as much as there is."""
    gaps, zero = np.array([np.inf, 1.0]), np.zeros(2)
    assert Separable(np.ones(2), np.array([0.0, 1.0]), zero).most(gaps) == 3.0
    assert Separable(np.ones(2), np.array([1.0, 1.0]), zero).most(gaps) == np.inf
    assert Separable(zero, zero, np.array([1.0, 1.0])).most(gaps) == np.inf
    problem = problem_of("lr")
    weights = np.ones(problem.encoded.shape[1])
    weights[problem.space.slices[0]] = 0.0
    far = np.where(np.arange(len(problem.space.names)) == 0, np.inf, 1.0)
    assert Mahalanobis(problem, np.diag(weights)).most(far) == weights.sum()
