"""Optima, bounds and proofs of robust regions are about the model's own rule, score > 0, however small its weights."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.spatial import ConvexHull
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier
from support.networks import random_network

from harness.certificate import Ball, Checker
from harness.core.classifier import Classifier
from harness.core.explanation import Answer, Status
from harness.core.inputs import space_inputs
from harness.core.method import Deadline
from harness.core.problem import Problem
from harness.core.space import Feature, Kind, Space
from harness.core.target import Label
from methods.robust import Robust
from methods.robust.network import _Search

MODELS: dict[str, Any] = {
    "lr": LogisticRegression(),
    "svm": LinearSVC(),
    "cart": DecisionTreeClassifier(max_depth=4, random_state=0),
    "rf": RandomForestClassifier(4, max_depth=3, random_state=0),
    "gbm": GradientBoostingClassifier(n_estimators=5, max_depth=2, random_state=0),
}
RHO = 0.05
SCALES = (((0.0, 1.0), (0.0, 1.0)), ((-2.0, 2.0), (-2.0, 2.0)))  # of each feature, and its bounds


def problem_of(seed: int, features: int, units: int, last: float) -> Problem:
    """A network of random weights in scaled units, its last layer multiplied by a factor, half of the rows accepted."""
    rng = np.random.default_rng(seed)
    space = Space(
        tuple(
            Feature(name, Kind.CONTINUOUS, scale=s, bounds=b)
            for name, (s, b) in zip("ab", SCALES[:features], strict=False)
        )
    )
    points = rng.random((60, features))
    rows = space.decode(points)
    estimator = random_network(MLPClassifier((units,), max_iter=1, random_state=0), points, np.arange(60) % 2, rng)
    estimator.intercepts_[0][:] = -(estimator.coefs_[0] * rng.random((features, units))).sum(axis=0)
    score = np.maximum(points @ estimator.coefs_[0] + estimator.intercepts_[0], 0) @ estimator.coefs_[1]
    estimator.intercepts_[1][:] = -np.quantile(score, 0.5) - 0.01 * score.std()  # not where many rows score the same
    estimator.coefs_[1] *= last
    estimator.intercepts_[1] *= last
    judge = Classifier(estimator, space_inputs(space), ("no", "yes"))
    return Problem(space, judge, rows, np.empty(60, dtype=object), Label("yes"))


def clipped(polygon: np.ndarray, slope: np.ndarray, most: float) -> np.ndarray:
    """The part of a convex polygon, vertices in order, with ``slope @ x <= most``."""
    made = []
    for here, there in zip(polygon, np.roll(polygon, -1, axis=0), strict=True):
        a, b = slope @ here - most, slope @ there - most
        if a <= 0:
            made.append(here)
        if a * b < 0:
            made.append(here + (there - here) * a / (a - b))
    return np.array(made).reshape(-1, 2)


def refused_parts(problem: Problem) -> list[np.ndarray]:
    """The polygons on which the score is at most 0, one a pattern of active units; of one feature times [0, 1]."""
    estimator = problem.classifier.estimator
    first, shift = estimator.coefs_[0].T, estimator.intercepts_[0]
    last = estimator.coefs_[1][:, 0] / np.abs(estimator.coefs_[1]).max()
    end = estimator.intercepts_[1][0] / np.abs(estimator.coefs_[1]).max()
    if first.shape[1] == 1:
        first = np.column_stack([first, np.zeros(len(first))])
    parts = []
    for pattern in itertools.product((0.0, 1.0), repeat=len(shift)):
        on = np.array(pattern)
        part = np.array([[-2.0, -2.0], [3.0, -2.0], [3.0, 3.0], [-2.0, 3.0]])
        for side, slope, known in zip(1 - 2 * on, first, shift, strict=True):
            part = clipped(part, side * slope, -side * known) if len(part) else part
        slope, height = (last * on) @ first, (last * on) @ shift + end
        part = clipped(part, slope, -height) if len(part) else part
        wide = len(part) > 2 and np.linalg.svd(part - part.mean(axis=0), compute_uv=False)[1] > 1e-9
        if wide and (part @ slope + height).min() < -1e-12:
            parts.append(part)
    return parts


def other_problem(seed: int, model: Any) -> Problem:
    """A model of another family, fitted to a curved boundary with noise."""
    rng = np.random.default_rng(seed)
    space = Space(tuple(Feature(n, Kind.CONTINUOUS, scale=s, bounds=b) for n, (s, b) in zip("ab", SCALES, strict=True)))
    points = rng.random((60, 2))
    labels = points[:, 1] > 0.5 + 0.25 * np.sin(6 * points[:, 0]) + 0.1 * rng.normal(size=60)
    judge = Classifier(model.fit(points, labels.astype(int)), space_inputs(space), ("no", "yes"))
    return Problem(space, judge, space.decode(points), np.empty(60, dtype=object), Label("yes"))


def refused_boxes(trees: Any) -> list[np.ndarray]:
    """The boxes between neighbouring thresholds on which trees say no."""
    each = [part.tree_ for part in (np.ravel(trees.estimators_) if hasattr(trees, "estimators_") else [trees])]
    ends = [
        np.concatenate([[-2.0], np.unique(np.concatenate([t.threshold[t.feature == j] for t in each])), [3.0]])
        for j in (0, 1)
    ]
    boxes = [
        np.array([[a, c], [b, c], [b, d], [a, d]])
        for a, b in itertools.pairwise(ends[0])
        for c, d in itertools.pairwise(ends[1])
    ]
    return [box for box, code in zip(boxes, trees.predict(np.mean(boxes, axis=1)), strict=True) if code == 0]


def infimum(refused: list[np.ndarray], origin: np.ndarray) -> float:
    """The least l1 distance to a point whose box meets no point of score < 0: at a crossing of two of all lines.

    What is refused within the box of a point is the sum of the refused polygon and the box, a polygon again. Outside of
    all of them, in each quadrant around the factual, l1 is linear.
    """
    features = len(origin)
    here, bounds = np.resize(origin, 2), [(0.0, 1.0)] * 2
    reach = RHO * np.array(list(itertools.product((-1, 1), repeat=2)))
    hulls = [ConvexHull((part[:, None] + reach).reshape(-1, 2)).equations for part in refused]
    axes = np.eye(2)
    lines = [*hulls, *(np.append(axes[j], -end)[None] for j in (0, 1) for end in (*bounds[j], here[j]))]
    flat = np.concatenate(lines)
    a, b = (flat[list(side)] for side in zip(*itertools.combinations(range(len(flat)), 2), strict=True))
    across = a[:, 0] * b[:, 1] - a[:, 1] * b[:, 0]
    a, b, across = (part[np.abs(across) > 1e-9] for part in (a, b, across))
    points = np.column_stack([a[:, 1] * b[:, 2] - a[:, 2] * b[:, 1], a[:, 2] * b[:, 0] - a[:, 0] * b[:, 2]])
    points /= across[:, None]
    kept = ((points >= -1e-9) & (points <= 1 + 1e-9)).all(axis=1)
    for hull in hulls:
        kept &= (points @ hull[:, :2].T + hull[:, 2]).max(axis=1) >= -1e-9
    gaps = np.abs(points[kept] - here)[:, :features].sum(axis=1)
    return float(gaps.min(initial=math.inf))


def asked(problem: Problem, factual: pd.DataFrame, algorithm: str, seconds: float = 60.0) -> Answer:
    explainer = Robust(rho=RHO, algorithm=algorithm).fit(problem)
    return explainer.explain(factual, 1, np.random.default_rng(0), Deadline.after(seconds)).answers[0]


@pytest.mark.parametrize("algorithm", ["network", "adversarial"])
@pytest.mark.parametrize("last", [1.0, 1e-6, 1e3])
@pytest.mark.parametrize(("features", "units"), [(1, 2), (1, 4), (2, 2), (2, 3), (2, 4)])
def test_a_small_network_has_no_margin(features: int, units: int, last: float, algorithm: str) -> None:
    """Bounds lie at or below the infimum over the model's own rule, proofs of none are right, optima are reached."""
    for seed in range(8 if algorithm == "network" else 3):
        problem = problem_of(seed, features, units, last)
        refused = problem.train[~problem.valid(problem.train)]
        if refused.empty:
            continue
        factual = refused.iloc[[seed % len(refused)]]
        expected = infimum(refused_parts(problem), problem.space.encode(factual)[0])
        answer = asked(problem, factual, algorithm=algorithm)
        if math.isinf(expected):
            assert answer.status is Status.INFEASIBLE
            continue
        assert answer.row is not None
        checker = Checker(problem.space, problem.classifier, problem.target)
        assert checker.certify(answer.row, Ball.scaled(problem.space, "linf"), RHO).radius >= RHO - 1e-9
        assert answer.status is Status.OPTIMAL
        assert answer.bound <= expected + 1e-8
        assert answer.objective == pytest.approx(expected, abs=2e-6)


def far_answer(units: list[tuple[float, float, float]]) -> Answer:
    """Of a network of one number without bounds, by the weight, the shift and the outgoing weight of each unit."""
    space = Space((Feature("a", Kind.CONTINUOUS, scale=(0.0, 1.0), bounds=(-math.inf, math.inf)),))
    rows = pd.DataFrame({"a": [0.5, 0.2, -31.0, -35.0]})
    estimator = MLPClassifier((len(units),), max_iter=1, random_state=0)
    random_network(estimator, rows.to_numpy(), [0, 0, 1, 1], np.random.default_rng(0))
    estimator.coefs_[0][0], estimator.intercepts_[0][:], estimator.coefs_[1][:, 0] = np.array(units).T
    estimator.intercepts_[1][:] = -1e-3
    judge = Classifier(estimator, space_inputs(space), ("no", "yes"))
    return asked(Problem(space, judge, rows, np.empty(4, dtype=object), Label("yes")), rows.iloc[[0]], "network")


@pytest.mark.parametrize("near", [4.0, 9.5, 12.0, 25.0])
def test_a_boundless_number_is_followed_beyond_ten_ranges(near: float) -> None:
    """A robust point is found before any node is looked at, so that none keeps to ten ranges."""
    answer = far_answer([(1.0, -near, 1.0), (-1.0, -30.0, 1.0)])
    expected = near + 1e-3 + RHO - 0.5
    assert answer.status is Status.OPTIMAL
    assert answer.bound <= expected + 1e-6
    assert answer.objective == pytest.approx(expected, abs=2e-5)


def test_what_is_looked_at_without_a_robust_point_is_near(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nodes that keep to ten ranges prove nothing about points beyond, even once one of those is known.

    A tip at -5, too narrow to be robust, leads to what is accepted below -25; what is above 12 is nearer.
    """
    monkeypatch.setattr(_Search, "start", lambda *_: None)
    tip = [(-1.0, -4.98, 1.0), (-1.0, -5.0, -2.0), (-1.0, -5.02, 1.0)]
    answer = far_answer([(1.0, -12.0, 1.0), (-1.0, -25.0, 1.0), *tip])
    assert answer.row is not None
    assert answer.bound <= 11.551 + 1e-6
    assert answer.status is Status.FOUND or answer.objective == pytest.approx(11.551, abs=2e-5)


@pytest.mark.parametrize("algorithm", ["auto", "adversarial"])
@pytest.mark.parametrize("name", MODELS)
def test_other_models_have_no_margin_either(name: str, algorithm: str) -> None:
    """Trees round inputs to single precision, which moves a threshold by less than a ten-millionth."""
    for seed in range(5):
        problem = other_problem(seed, MODELS[name])
        estimator = problem.classifier.estimator
        if hasattr(estimator, "coef_"):
            square = np.array([[-2.0, -2.0], [3.0, -2.0], [3.0, 3.0], [-2.0, 3.0]])
            parts = [clipped(square, estimator.coef_[0], -estimator.intercept_[0])]
        else:
            parts = refused_boxes(estimator)
        factual = problem.train[~problem.valid(problem.train)].iloc[[seed]]
        expected = infimum(parts, problem.space.encode(factual)[0])
        answer = asked(problem, factual, algorithm=algorithm, seconds=4.0)
        if math.isinf(expected):
            assert answer.status is Status.INFEASIBLE
            continue
        assert answer.status is Status.OPTIMAL or (algorithm, name) == ("adversarial", "rf")  # which may take long
        assert answer.bound <= expected + 1e-7
        assert answer.objective >= expected - 1e-7
        if answer.status is Status.OPTIMAL:
            assert answer.objective == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize(
    ("seed", "features", "units", "place"),
    [(8, 12, (30,), 3), (94, 12, (30,), 5), (233, 12, (30,), 0), (261, 12, (30,), 2), (46, 16, (8, 8), 6)],
)
def test_a_solution_that_a_later_perturbation_breaks_is_not_left_open(
    seed: int, features: int, units: tuple[int, ...], place: int
) -> None:
    """Of these networks a node's solution met a perturbation that broke it after it was solved, or bounds that rule
    it out; the search once left such a node as it was, and ended with an open gap and time to spare."""
    rng = np.random.default_rng(seed)
    space = Space(
        tuple(Feature(f"x{i}", Kind.CONTINUOUS, scale=(0.0, 1.0), bounds=(0.0, 1.0)) for i in range(features))
    )
    points = rng.random((80, features))
    estimator = random_network(MLPClassifier(units, max_iter=1, random_state=0), points, np.arange(80) % 2, rng)
    values = points
    for weights, shifts in zip(estimator.coefs_[:-1], estimator.intercepts_[:-1], strict=True):
        values = np.maximum(values @ weights + shifts, 0.0)
    estimator.intercepts_[-1][:] = -np.median(values @ estimator.coefs_[-1])
    judge, rows = Classifier(estimator, space_inputs(space), ("no", "yes")), space.decode(points)
    question = Problem(space, judge, rows, np.empty(80, dtype=object), Label("yes"))
    (answer,) = (
        Robust(rho=RHO, norm="linf").fit(question)
        .explain(rows.loc[[place]], 1, np.random.default_rng(0), Deadline.after(60.0)).answers
    )  # fmt: skip
    assert answer.status is Status.OPTIMAL
    assert question.valid(space.frame([answer.row]))[0]
