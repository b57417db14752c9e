"""Squared distances in the search within hulls, against cells of forests, enumeration and least-distance programs."""

from __future__ import annotations

import math
from dataclasses import replace
from time import monotonic
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import nnls
from scipy.spatial import ConvexHull
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from support.enumeration import assert_optimal, factuals, problem_of
from support.noisy_rule import MODELS, make
from support.noisy_rule import factuals as rejected

from harness.core.classifier import Classifier
from harness.core.explanation import Answer, Status
from harness.core.hull import distance
from harness.core.inputs import space_inputs
from harness.core.method import Deadline
from harness.core.problem import Problem
from harness.core.space import Feature, Kind, Space
from harness.core.target import Label
from harness.solvers.highs import Solution
from methods.ce_ocl import CeOcl
from methods.ce_ocl.one_answer import AnswerSearch
from methods.hull_search import kernels
from methods.hull_search.working_set import WorkingSet

SQUARED = CeOcl("l2sq", hull="hard")


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the mixed-integer program, but where the hull is lifted in search of a reason."""
    stage = AnswerSearch._stage

    def refuse(search: AnswerSearch, *bounds: Any, **options: bool) -> Solution:
        assert search.manifold is None, "the program was asked"
        return stage(search, *bounds, **options)

    monkeypatch.setattr(AnswerSearch, "_stage", refuse)


def least(
    points: np.ndarray,
    origin: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
    weights: np.ndarray,
    row: tuple[float, ...] = (),
) -> float:
    """The least weighted squared distance from ``origin`` to the points of a hull within a box; inf: there are none.

    ``row``: slopes of a linear score, and its constant: it is 0 or more, too.

    The hull by its facets, the distance as Lawson and Hanson's least-distance program: non-negative least squares.
    """
    facets = ConvexHull(points).equations
    if row:
        facets = np.vstack([facets, -np.array(row) / np.linalg.norm(row[:-1])])
    root = np.sqrt(weights)
    one = np.eye(len(origin))
    normals = np.vstack([-facets[:, :-1], one, -one]) / root
    ends = np.concatenate([facets[:, -1], low, -high]) - np.vstack([-facets[:, :-1], one, -one]) @ origin
    system, side = np.vstack([normals.T, ends]), np.append(np.zeros(len(origin)), 1.0)
    shares, missed = nnls(system, side, maxiter=1000)
    if missed <= 1e-9:
        return math.inf
    rest = system @ shares - side
    return float(np.sum((rest[:-1] / rest[-1]) ** 2))


@pytest.mark.parametrize("size", [2, 3, 4])
def test_the_program_of_a_box_is_solved_to_the_gap_asked_for(size: int) -> None:
    """Its bound is a least distance less the gap at most, its point that near in box and hull; or there is none."""
    rng = np.random.default_rng(size)
    empty = 0
    for _ in range(60):
        points = WorkingSet.of(rng.uniform(size=(int(rng.choice([8, 40, 400])), size)))
        origin, weights = rng.uniform(-0.5, 1.5, size), rng.uniform(0.3, 3.0, size)
        ends = np.sort(rng.uniform(-0.2, 1.2, (2, size)), axis=0)
        expected = least(points.points.T, origin, *ends, weights)
        rise, fall = ends[1] - origin, origin - ends[0]
        low, high = np.maximum([-fall, -rise], 0.0).ravel(), np.maximum([rise, fall], 0.0).ravel()
        touches, close = kernels.TOUCHES, 1e-8
        basis = np.append(np.arange(size), 2 * size * len(touches))
        nothing = np.zeros(2 * size)
        columns, lines = (nothing, np.tile(weights, 2), nothing, low, high), (origin, np.zeros((0, 2 * size)))
        status, bound, moves, *_ = kernels.minimum(
            tuple(points.arrays), points.used, basis, columns, lines, touches, math.inf, close
        )
        if expected == math.inf:
            assert (status, bound) == (kernels.INFEASIBLE, math.inf)
            empty += 1
            continue
        assert status == kernels.OPTIMAL
        assert expected - 1.01 * close - 1e-9 <= bound <= expected + 1e-9
        assert weights @ moves**2 == pytest.approx(expected, abs=1.01 * close + 1e-9)
        assert (ends[0] - 1e-8 <= origin + moves).all()
        assert (origin + moves <= ends[1] + 1e-8).all()
        assert distance(points.points.T, origin + moves) <= 1e-7
    assert 0 < empty < 60


def test_a_price_beside_a_square_has_its_convex_envelope() -> None:
    """Over a box that holds the factual's value, either way: the least chord from there to a point further on."""
    rng = np.random.default_rng(0)
    for _ in range(30):
        ends, fixed, linear, square = rng.uniform(0.05, 1.0, 2), *rng.uniform(0.01, 0.5, 2), rng.uniform(0.1, 5.0)
        cost, start, low, high = np.zeros((4, 2))
        one = np.ones(1)
        kernels.prepare(
            -ends[1:], ends[:1], one < 0, (0 * one, one, one < 0), (fixed * one, linear * one, square * one, one),
            (cost, np.zeros(2), start, low, high), (one, np.zeros((0, 2))), False,
        )  # fmt: skip
        for way, end in enumerate(ends):
            for point in np.linspace(0.0, end, 11)[1:]:
                beyond = np.linspace(point, end, 1000)
                chords = point / beyond * (fixed + linear * beyond + square * beyond**2)
                ours = cost[way] * point + square * max(point - start[way], 0.0) ** 2
                assert ours == pytest.approx(chords.min(), abs=1e-5)
                assert ours <= chords.min() + 1e-12


def test_the_least_of_a_square_that_begins_later_is_found() -> None:
    """No point of a fine grid costs less."""
    rng = np.random.default_rng(1)
    for _ in range(200):
        slope, square, start = rng.uniform(-3, 3), rng.choice([0.0, 0.5, 2.0]), rng.uniform(0, 1)
        low, high = np.sort(rng.uniform(0, 2, 2))
        points = np.append(np.linspace(low, high, 400), kernels.lowest.py_func(slope, square, start, low, high))
        values = slope * points + square * np.maximum(points - start, 0.0) ** 2
        assert low <= points[-1] <= high
        assert values[-1] <= values.min() + 1e-12


def forest(seed: int, size: int, trees: int, depth: int, rows: int = 120) -> Problem:
    """A forest on continuous numbers, whose hull is that of the rows labelled yes; the labels have noise."""
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(rows, size)).round(3)
    labels = np.sin(2 * values).sum(axis=1) + values[:, 0] * values[:, -1] + rng.normal(0, 0.4, rows) > 0.6
    ends = list(zip(values.min(axis=0).tolist(), values.max(axis=0).tolist(), strict=True))
    space = Space(tuple(Feature(f"x{j}", Kind.CONTINUOUS, scale=end, bounds=end) for j, end in enumerate(ends)))
    frame = pd.DataFrame(values, columns=space.names)
    model = RandomForestClassifier(trees, max_depth=depth, random_state=seed).fit(space.encode(frame), labels)
    said = np.where(labels, "yes", "no").astype(object)
    return Problem(space, Classifier(model, space_inputs(space), ("no", "yes")), frame, said, Label("yes"))


def by_cells(problem: Problem, factual: pd.DataFrame) -> float:
    """The least squared distance over all cells of a forest's grid that it accepts in their middle."""
    space = problem.space
    points, origin = space.encode(problem.train[problem.labels == "yes"]), space.encode(factual)[0]
    grid: list[set[float]] = [{0.0, 1.0} for _ in space.names]
    for tree in problem.classifier.estimator.estimators_:
        for feature, threshold in zip(tree.tree_.feature, tree.tree_.threshold, strict=True):
            if feature >= 0:
                grid[feature].add(float(threshold))
    edges = [np.array(sorted(ends)) for ends in grid]
    low = np.stack(np.meshgrid(*[e[:-1] for e in edges], indexing="ij"), axis=-1).reshape(-1, len(edges))
    high = np.stack(np.meshgrid(*[e[1:] for e in edges], indexing="ij"), axis=-1).reshape(-1, len(edges))
    kept = problem.valid(space.decode((low + high) / 2, like=factual))
    kept &= (low <= points.max(axis=0)).all(axis=1) & (high >= points.min(axis=0)).all(axis=1)
    low, high = low[kept], high[kept]
    near = (np.maximum(np.maximum(low - origin, origin - high), 0.0) ** 2).sum(axis=1)
    best = math.inf
    for cell in np.argsort(near, kind="stable"):
        if near[cell] >= best:
            break
        best = min(best, least(points, origin, low[cell], high[cell], np.ones(len(origin))))
    return best


def ask(method: CeOcl, problem: Problem, factual: pd.DataFrame, seconds: float = 30.0) -> Answer:
    explanation = method.fit(problem).explain(factual, 1, np.random.default_rng(0), Deadline.after(seconds))
    return explanation.answers[0]


def assert_as_by_cells(problem: Problem, factual: pd.DataFrame) -> None:
    answer, expected = ask(SQUARED, problem, factual), by_cells(problem, factual)
    assert answer.status is Status.OPTIMAL
    assert answer.row is not None
    assert answer.objective is not None
    assert answer.bound is not None
    # Thresholds are compared in single precision, so that cells end 1e-7 beside them.
    assert answer.objective == pytest.approx(expected, abs=3e-7)
    assert answer.objective * (1 - 1e-6) - 1e-12 <= answer.bound <= answer.objective
    frame = problem.space.frame([answer.row])
    assert problem.valid(frame)[0]
    points = problem.space.encode(problem.train[problem.labels == "yes"])
    assert distance(points, problem.space.encode(frame)[0]) <= 1e-7


@pytest.mark.usefixtures("alone")
@pytest.mark.parametrize(("size", "trees", "depth"), [(2, 4, 3), (2, 10, 4), (3, 5, 3)])
def test_the_optimum_is_that_of_all_cells(size: int, trees: int, depth: int) -> None:
    """Twelve random forests each: no cell holds a point of the hull that is closer, and the search proves it alone."""
    for seed in range(12):
        problem = forest(seed, size, trees, depth)
        for factual in rejected(problem, 1):
            assert_as_by_cells(problem, factual)


@pytest.mark.usefixtures("alone")
@pytest.mark.parametrize("size", [2, 3, 4])
def test_the_optimum_of_a_linear_model_is_the_least_distance(size: int) -> None:
    """On continuous numbers: to the part of the hull that the model accepts, and the search proves it."""
    for seed in range(12):
        rng = np.random.default_rng(seed)
        values = rng.normal(size=(60, size)).round(3)
        labels = values.sum(axis=1) + rng.normal(0, 1.0, 60) > 0.6
        ends = list(zip(values.min(axis=0).tolist(), values.max(axis=0).tolist(), strict=True))
        space = Space(tuple(Feature(f"x{j}", Kind.CONTINUOUS, scale=end, bounds=end) for j, end in enumerate(ends)))
        frame = pd.DataFrame(values, columns=space.names)
        model = LogisticRegression(C=100.0).fit(space.encode(frame), labels)
        said = np.where(labels, "yes", "no").astype(object)
        problem = Problem(space, Classifier(model, space_inputs(space), ("no", "yes")), frame, said, Label("yes"))
        points, row = space.encode(frame[labels]), (*model.coef_[0], float(model.intercept_[0]))
        for factual in rejected(problem, 3):
            answer = ask(SQUARED, problem, factual)
            expected = least(points, space.encode(factual)[0], np.zeros(size), np.ones(size), np.ones(size), row)
            assert answer.status is Status.OPTIMAL
            assert answer.objective == pytest.approx(expected, rel=1e-5, abs=1e-6)


@pytest.mark.slow
@pytest.mark.usefixtures("alone")
@pytest.mark.parametrize(("size", "trees", "depth"), [(2, 20, 5), (3, 10, 3), (4, 4, 3)])
def test_the_optimum_is_that_of_all_cells_of_larger_forests(size: int, trees: int, depth: int) -> None:
    """As above, five people of each forest."""
    for seed in range(8):
        problem = forest(seed, size, trees, depth, rows=60 + 60 * seed)
        for factual in rejected(problem, 5):
            assert_as_by_cells(problem, factual)


@pytest.mark.usefixtures("alone")
@pytest.mark.parametrize(
    "method",
    [
        SQUARED,
        replace(SQUARED, alpha=0.05),
        replace(SQUARED, alpha=10000.0),
        replace(SQUARED, max_changes=2),
        replace(SQUARED, clusters=3, count="columns", alpha=0.02),
        replace(SQUARED, hull="penalised", penalty=0.3),
        replace(SQUARED, hull="fallback", max_changes=1),
    ],
    ids=["plain", "alpha", "fewest", "two changes", "clusters", "penalised", "fallback"],
)
@pytest.mark.parametrize("model", ["lr", "rf", "gbm"])
def test_the_optimum_is_that_of_enumeration(model: str, method: CeOcl) -> None:
    """On whole numbers and categories nothing allowed is closer, and what cannot be reached is proven so."""
    for kept in ("free", "coded"):
        problem = problem_of(model, kept)
        for factual in factuals(problem, 2):
            assert_optimal(method, problem, factual)


@pytest.mark.parametrize("model", MODELS)
def test_the_optimum_with_many_points_is_that_of_the_program(model: str) -> None:
    """With a continuous number, and points that enter as they are needed."""
    problem = make(MODELS[model], 4, whole=False, rows=3000)
    for factual in rejected(problem, 2):
        found, expected = (ask(replace(SQUARED, engine=engine), problem, factual) for engine in ("auto", "milp"))
        assert found.status is Status.OPTIMAL
        assert found.objective is not None
        assert expected.objective is not None
        assert found.objective <= expected.objective * (1 + 2e-6)
        assert expected.status is not Status.OPTIMAL or found.objective == pytest.approx(expected.objective, rel=3e-6)


@pytest.mark.parametrize(("model", "kept"), [("rf", "immutable"), ("rf", "increase"), ("lr", "coded")])
def test_why_nothing_can_be_reached_does_not_depend_on_the_distance(model: str, kept: str) -> None:
    """Squared or not, the same questions have no answer, and the same constraints are named for it."""
    problem = problem_of(model, kept, span=12)
    conflicts = 0
    for factual in factuals(problem, 3):
        told = []
        for method in (replace(SQUARED, max_changes=1), replace(SQUARED, max_changes=1, distance="l1")):
            explanation = method.fit(problem).explain(factual, 1, np.random.default_rng(0), Deadline.after(30))
            told.append((explanation.answers[0].status, explanation.answers[0].detail, explanation.conflict))
        assert told[0] == told[1]
        conflicts += bool(told[0][2])
    assert conflicts


def test_out_of_time_the_bound_is_honest() -> None:
    """It is at most the optimum, an answer's value at least, and the time is kept."""
    problem = forest(0, 5, 20, 5, rows=400)
    explainer = SQUARED.fit(problem)
    for factual in rejected(problem, 2):
        best = explainer.explain(factual, 1, np.random.default_rng(0), Deadline.after(30)).answers[0]
        assert best.status is Status.OPTIMAL
        assert best.objective is not None
        for seconds in (0.0, 0.005, 0.02):
            begun = monotonic()
            (answer,) = explainer.explain(factual, 1, np.random.default_rng(0), Deadline.after(seconds)).answers
            assert monotonic() - begun < seconds + 0.5
            assert (-math.inf if answer.bound is None else answer.bound) <= best.objective
            assert (math.inf if answer.objective is None else answer.objective) >= best.objective * (1 - 1e-6)


@pytest.mark.slow
@pytest.mark.usefixtures("alone")
@pytest.mark.parametrize(("size", "trees", "depth"), [(2, 4, 3), (4, 12, 4), (6, 20, 5), (6, 60, 6)])
def test_forests_are_proven_in_seconds(size: int, trees: int, depth: int) -> None:
    """Ten people each of two forests, on which a mixed-integer program ends unproven after 20 s."""
    for seed in range(2):
        problem = forest(seed, size, trees, depth, rows=200)
        explainer = SQUARED.fit(problem)
        for factual in rejected(problem, 10):
            (answer,) = explainer.explain(factual, 1, np.random.default_rng(0), Deadline.after(20)).answers
            assert answer.status is Status.OPTIMAL
