"""Regions whose centre lies in a convex hull, on trees: against crossings of curves, cells and subdivided space."""

from __future__ import annotations

import heapq
import itertools
import math
from functools import cache
from time import monotonic, sleep
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import linprog
from scipy.spatial import ConvexHull
from sklearn.ensemble import RandomForestClassifier
from support.noisy_rule import factuals as refused

from harness.core.classifier import Classifier
from harness.core.explanation import Answer, Status
from harness.core.hull import distance
from harness.core.inputs import space_inputs
from harness.core.method import Deadline
from harness.core.problem import Problem
from harness.core.space import Feature, Kind, Space
from harness.core.target import Label
from methods.cells.masks import MORE_LOOKS
from methods.robust import Robust, walls

RHO = 0.06
NEAR = 1e-6  # relative, as for every proof
SINGLE = 1e-7  # trees compare single precision


@cache
def forest(seed: int, size: int, trees: int = 4, depth: int = 3, kinds: str = "continuous") -> Problem:
    """A forest on numbers, whose hull is that of the rows labelled yes; the labels have noise."""
    rng = np.random.default_rng(seed)
    values = rng.uniform(size=(150, size)).round(3)
    labels = np.sin(5 * values).sum(axis=1) + rng.normal(0, 0.3, 150) > 0.3 * size
    space = Space(tuple(Feature(f"x{j}", Kind.CONTINUOUS, scale=(0, 1), bounds=(0, 1)) for j in range(size)))
    if kinds == "mixed":
        values[:, 1] = (values[:, 1] * 8).round()
        whole = Feature("n", Kind.INTEGER, scale=(0, 8), bounds=(0, 8))
        space = Space((space.features[0], whole, *space.features[2:], Feature("c", "categorical", ("a", "b", "c"))))
    frame = pd.DataFrame(values, columns=[f.name for f in space.features if f.numeric])
    if kinds == "mixed":
        frame = frame.astype({"n": int}).assign(c=rng.choice(["a", "b", "c"], 150))
        labels ^= (frame["c"] == "b").to_numpy() & (values[:, 0] > 0.5)
    model = RandomForestClassifier(trees, max_depth=depth, random_state=seed).fit(space.encode(frame), labels)
    said = np.where(labels, "yes", "no").astype(object)
    return Problem(space, Classifier(model, space_inputs(space), ("no", "yes")), frame, said, Label("yes"))


def answer(problem: Problem, factual: pd.DataFrame, seconds: float = 20.0, **settings: Any) -> Answer:
    method = Robust(rho=RHO, hull="hard", **settings)
    found = method.fit(problem).explain(factual, 1, np.random.default_rng(0), Deadline.after(seconds))
    return found.answers[0]


def wrong_cells(problem: Problem, fixed: dict[str, Any] | None = None) -> tuple[np.ndarray, np.ndarray]:
    """All cells of the forest's grid over the numbers on which it is wrong, to infinity; lows and highs, scaled."""
    space = problem.space
    numbers = [j for j, f in enumerate(space.features) if f.numeric]
    cuts = []
    for j in numbers:
        column = space.slices[j].start
        trees = [tree.tree_ for tree in problem.classifier.estimator.estimators_]
        cuts.append(np.unique(np.concatenate([t.threshold[t.feature == column] for t in trees])))
    edges = [np.concatenate([[-math.inf], part, [math.inf]]) for part in cuts]
    middles = [np.concatenate([[p[0] - 1], (p[1:] + p[:-1]) / 2, [p[-1] + 1]]) if len(p) else [0.5] for p in cuts]
    points = np.array(list(itertools.product(*middles)))
    lows = np.array(list(itertools.product(*[e[:-1] for e in edges])))
    highs = np.array(list(itertools.product(*[e[1:] for e in edges])))
    encoded = np.zeros((len(points), len(space.columns)))
    encoded[:, [space.slices[j].start for j in numbers]] = points
    for name, value in (fixed or {}).items():
        place = space.names.index(name)
        encoded[:, space.slices[place].start + space.features[place].categories.index(value)] = 1.0
    wrong = problem.classifier.estimator.predict(encoded) == 0
    return lows[wrong], highs[wrong]


def depth(x: np.ndarray, cells: tuple[np.ndarray, np.ndarray], norm: str) -> float:
    """The distance of a point from the nearest wrong cell."""
    gaps = np.maximum(np.maximum(cells[0] - x, x - cells[1]), 0.0)
    return float((gaps.max(axis=1) if norm == "linf" else np.sqrt((gaps**2).sum(axis=1))).min())


def points_of(problem: Problem) -> np.ndarray:
    return problem.space.encode(problem.train[problem.labels == "yes"])


def crossings(problem: Problem, origin: np.ndarray, squared: bool) -> float:
    """The least cost in the plane: of the points in which two of all lines and circles meet, or that are foot points.

    Outside a disc no other point of its circle has a least linear cost.
    """
    cells, hull = wrong_cells(problem), ConvexHull(points_of(problem)).equations
    lines = [(equation[:2], -equation[2]) for equation in hull]
    for axis in (0, 1):
        ends = np.concatenate([cells[0][:, axis] - RHO, cells[1][:, axis] + RHO, [origin[axis], 0.0, 1.0]])
        lines += [(np.eye(2)[axis], end) for end in np.unique(ends[np.isfinite(ends)])]
    sides = itertools.product((0, 1), repeat=2)
    corners = {(x[i, 0], x[j, 1]) for i, j in sides for x in np.stack(cells, axis=1)}
    circles = [np.array(corner) for corner in corners if np.isfinite(corner).all()]
    normals, ends = np.array([line[0] for line in lines]), np.array([line[1] for line in lines])
    i, j = np.triu_indices(len(lines), 1)
    cross = normals[i, 0] * normals[j, 1] - normals[i, 1] * normals[j, 0]
    i, j, cross = i[abs(cross) > 1e-12], j[abs(cross) > 1e-12], cross[abs(cross) > 1e-12]
    x, y = (ends[i] * normals[j, axis] - ends[j] * normals[i, axis] for axis in (1, 0))
    found = [np.stack([x, -y], axis=1) / cross[:, None]]
    along = np.stack([-normals[:, 1], normals[:, 0]], axis=1)
    for centre in circles:
        off = ends - normals @ centre
        half = np.sqrt(np.maximum(RHO**2 - off**2, 0.0))
        near = abs(off) <= RHO
        found += [(centre + off[:, None] * normals + side * half[:, None] * along)[near] for side in (1, -1)]
    for first, second in itertools.combinations(circles, 2):
        gap = second - first
        length = float(np.linalg.norm(gap))
        if 0 < length < 2 * RHO:
            up = math.sqrt(RHO**2 - length**2 / 4) * np.array([-gap[1], gap[0]]) / length
            found += [(first + gap / 2 + up)[None], (first + gap / 2 - up)[None]]
    if squared:
        found.append(origin + (ends - normals @ origin)[:, None] * normals)
        found += [(c + RHO * (origin - c) / np.linalg.norm(origin - c))[None] for c in circles]
    points = np.concatenate([*found, origin[None]])
    points = points[(points @ hull[:, :2].T + hull[:, 2] <= 1e-9).all(axis=1)]
    points = points[((points >= -1e-9) & (points <= 1 + 1e-9)).all(axis=1)]
    gaps = np.abs(points - origin)
    costs = (gaps**2).sum(axis=1) if squared else gaps.sum(axis=1)
    for place in np.argsort(costs, kind="stable"):
        if depth(points[place], cells, "l2") >= RHO - 1e-9:
            return float(costs[place])
    return math.inf


@pytest.mark.parametrize("squared", [False, True])
@pytest.mark.parametrize(
    "seed", [*(pytest.param(seed, marks=pytest.mark.slow) for seed in (0, 1)), *range(2, 8)]
)  # 25 s
@pytest.mark.every(6)
def test_a_ball_in_the_plane_has_the_cost_of_the_best_crossing(seed: int, squared: bool) -> None:
    """Proven, and neither cheaper nor dearer than what all lines and circles of the plane allow."""
    problem = forest(seed, 2)
    for factual in refused(problem, 4):
        expected = crossings(problem, problem.space.encode(factual)[0], squared)
        found = answer(problem, factual, norm="l2", distance="l2sq" if squared else "l1")
        if expected == math.inf:
            assert found.status is Status.INFEASIBLE
            continue
        assert found.status is Status.OPTIMAL
        assert found.objective == pytest.approx(expected, abs=NEAR)
        assert found.bound is not None
        assert found.bound <= expected + 1e-9


def by_boxes(problem: Problem, origin: np.ndarray) -> float:
    """The least l1 cost of a centre of a right box in the hull: linear programs over all boxes in which that is equal.

    Their ends are the values at which a box of perturbations begins or ceases to meet a wrong cell.
    """
    cells, points = wrong_cells(problem), points_of(problem)
    ends = []
    for axis in range(len(origin)):
        listed = np.concatenate([cells[0][:, axis] - RHO, cells[1][:, axis] + RHO, [0.0, 1.0]])
        ends.append(np.unique(listed[(listed >= 0) & (listed <= 1)]))
    lows = np.array(list(itertools.product(*[e[:-1] for e in ends])))
    highs = np.array(list(itertools.product(*[e[1:] for e in ends])))
    gaps = np.maximum(np.maximum(lows - origin, origin - highs), 0.0).sum(axis=1)
    best = math.inf
    for place in np.argsort(gaps, kind="stable"):
        if gaps[place] >= best:
            return best
        if depth((lows[place] + highs[place]) / 2, cells, "linf") >= RHO - 1e-12:
            best = min(best, in_hull(points, origin, lows[place], highs[place]))
    return best


def in_hull(points: np.ndarray, origin: np.ndarray, low: np.ndarray, high: np.ndarray) -> float:
    """The least l1 distance from ``origin`` to the hull of points within a box, by HiGHS."""
    count, size = points.shape
    eye = np.eye(size)
    rows = np.vstack([np.hstack([points.T, -eye, eye]), np.append(np.ones(count), np.zeros(2 * size))])
    inner = np.hstack([np.zeros((size, count)), eye, -eye])
    found = linprog(
        np.append(np.zeros(count), np.ones(2 * size)), np.vstack([inner, -inner]),
        np.concatenate([high - origin, origin - low]), rows, np.append(origin, 1.0),
    )  # fmt: skip
    return float(found.fun) if found.status == 0 else math.inf


@pytest.mark.parametrize("size", [2, 3])
@pytest.mark.parametrize("seed", range(3))
def test_a_box_costs_what_linear_programs_over_all_boxes_say(seed: int, size: int) -> None:
    problem = forest(seed, size)
    for factual in refused(problem, 2):
        expected = by_boxes(problem, problem.space.encode(factual)[0])
        found = answer(problem, factual, norm="linf")
        assert found.status is (Status.INFEASIBLE if expected == math.inf else Status.OPTIMAL)
        if found.objective is not None:
            assert found.objective == pytest.approx(expected, abs=NEAR)


def by_division(problem: Problem, origin: np.ndarray, upper: float, gap: float) -> float:
    """A lower bound on the l1 cost of a centre of a right ball in the hull, within ``gap`` of the least, or of upper.

    Space is halved, best first; a box that one wrong cell holds within rho of all its corners is left out.
    """
    cells, points = wrong_cells(problem), points_of(problem)
    size = len(origin)
    heap = [(0.0, 0, np.zeros(size), np.ones(size))]
    number = 0
    while heap:
        bound, _, low, high = heapq.heappop(heap)
        if bound >= upper - gap:
            return bound
        far = np.maximum(np.maximum(cells[0] - low, high - cells[1]), 0.0)
        if ((far**2).sum(axis=1) < RHO**2).any():
            continue
        least = max(bound, in_hull(points, origin, low, high))
        if least >= upper - gap:
            continue
        assert (high - low).max() > 1e-4, "a point of the hull that is cheaper seems robust"
        axis = int(np.argmax(high - low))
        middle = (low[axis] + high[axis]) / 2
        for side in (0, 1):
            ends = low.copy(), high.copy()
            ends[1 - side][axis] = middle
            number += 1
            heapq.heappush(heap, (least, number, *ends))
    return upper


@pytest.mark.parametrize("seed", [0, 1])
def test_no_part_of_space_holds_a_cheaper_ball(seed: int) -> None:
    """Three numbers: by dividing space, without lines above distances."""
    problem = forest(seed, 3)
    for factual in refused(problem, 2):
        found = answer(problem, factual, norm="l2")
        origin = problem.space.encode(factual)[0]
        assert found.status is Status.OPTIMAL
        assert found.objective is not None
        assert by_division(problem, origin, found.objective, 0.01) >= found.objective - 0.01


@pytest.mark.parametrize("norm", ["l2", "linf"])
@pytest.mark.parametrize("kinds", ["continuous", "mixed"])
@pytest.mark.parametrize("size", [3, 5, 8])
def test_answers_are_in_the_hull_and_right_all_around(size: int, kinds: str, norm: str) -> None:
    """By brute force over all wrong cells near the answer, and by a linear program; proven within a few seconds."""
    problem = forest(1, size, kinds=kinds)
    space = problem.space
    for factual in refused(problem, 2):
        found = answer(problem, factual, norm=norm)
        assert found.status in {Status.OPTIMAL, Status.INFEASIBLE}
        if found.row is None:
            continue
        frame = space.frame([found.row])
        x = space.encode(frame)[0]
        assert distance(points_of(problem), x) <= 1e-6
        fixed = {f.name: found.row[f.name] for f in space.features if not f.numeric}
        numbers = [columns.start for f, columns in zip(space.features, space.slices, strict=True) if f.numeric]
        assert depth(x[numbers], wrong_cells(problem, fixed), norm) >= RHO - SINGLE
        assert not space.violations(factual, frame)[0]


@pytest.mark.parametrize("norm", ["l2", "linf"])
def test_algorithm_1_comes_to_the_same_cost(norm: str) -> None:
    """Where it ends with a proof; and it finds nothing better."""
    problem, proofs = forest(4, 2, kinds="mixed"), 0
    for factual in refused(problem, 4):
        found = answer(problem, factual, norm=norm)
        other = answer(problem, factual, 2.0, norm=norm, algorithm="adversarial")
        if other.status is Status.OPTIMAL:
            proofs += 1
            assert found.objective == pytest.approx(other.objective, abs=2 * NEAR)
        elif other.objective is not None and found.objective is not None:
            assert found.objective <= other.objective + NEAR
    assert proofs


def test_a_mixed_space_has_the_best_of_all_its_categories_and_integers() -> None:
    """Two numbers, one an integer, and categories: the best over a grid of the other number is no better."""
    problem = forest(3, 2, kinds="mixed")
    space, points = problem.space, points_of(problem)
    steps = np.linspace(0, 1, 101)
    for factual in refused(problem, 3):
        found, origin = answer(problem, factual, norm="l2"), space.encode(factual)[0]
        best = math.inf
        for category in ("a", "b", "c"):
            cells = wrong_cells(problem, {"c": category})
            own = 0.0 if factual["c"].iloc[0] == category else 1.0
            for n, x in itertools.product(range(9), steps):
                at = np.array([x, n / 8, *(float(category == c) for c in "abc")])
                cost = abs(at[:2] - origin[:2]).sum() + own
                if cost < best and depth(at[:2], cells, "l2") >= RHO and distance(points, at) <= 1e-9:
                    best = cost
        assert found.status is Status.OPTIMAL
        assert found.objective is not None
        assert best - 1 / 100 - NEAR <= found.objective <= best + NEAR


@pytest.mark.parametrize("settings", [{"alpha": 0.2}, {"max_changes": 2}, {"alpha": 0.1, "distance": "l2sq"}])
def test_changes_are_counted(settings: dict[str, Any]) -> None:
    """The objective that is claimed is that of the row; no more change than allowed, and no row is better."""
    problem = forest(2, 4)
    method = Robust(rho=RHO, hull="hard", norm="l2", **settings)
    claim, space = method.claim(problem), problem.space
    for factual in refused(problem, 2):
        found = answer(problem, factual, norm="l2", **settings)
        assert found.status in {Status.OPTIMAL, Status.INFEASIBLE}
        rows = space.decode(points_of(problem), like=factual)
        cells = wrong_cells(problem)
        robust = [depth(x, cells, "l2") >= RHO + 1e-9 for x in space.encode(rows)]
        allowed = [not faults for faults in claim.exceeded(space, factual, rows)]
        costs = claim.evaluate(space, factual, rows)[np.array(robust) & np.array(allowed)]
        if found.row is None:
            assert not len(costs)
            continue
        frame = space.frame([found.row])
        assert found.objective == pytest.approx(float(claim.evaluate(space, factual, frame)[0]))
        assert not claim.exceeded(space, factual, frame)[0]
        assert found.objective <= costs.min(initial=math.inf) + NEAR


def test_a_limit_is_kept_with_a_true_bound() -> None:
    """A forest that takes longer: an answer or none, a bound below it, and no more than the limit."""
    problem = forest(0, 6, trees=30, depth=5)
    method = Robust(rho=0.03, hull="hard", norm="l2").fit(problem)
    for factual in refused(problem, 2):
        start = monotonic()
        found = method.explain(factual, 1, np.random.default_rng(0), Deadline.after(0.5)).answers[0]
        assert monotonic() - start < 1.0
        assert found.objective is None or found.bound is None or found.bound <= found.objective


@pytest.mark.parametrize("norm", ["l2", "linf"])
def test_levels_may_be_more_than_a_word_has_bits(norm: str) -> None:
    """A scale of 101 levels, in a hull: its radius is right all around, and no part of the hull has a cheaper one.

    Of the levels of each point the farthest within the radius are tried; a hull of points has no cheaper one of them.
    """
    rng = np.random.default_rng(0)
    numbers = (Feature(name, Kind.CONTINUOUS, scale=(0, 1), bounds=(0, 1)) for name in "ab")
    space = Space((*numbers, Feature("level", "ordinal", tuple(range(101)))))
    frame = pd.DataFrame({"a": rng.random(300), "b": rng.random(300), "level": rng.integers(0, 101, 300)})
    labels = space.encode(frame).sum(axis=1) > 1.6
    model = RandomForestClassifier(4, max_depth=3, random_state=0).fit(space.encode(frame), labels)
    said = np.where(labels, "yes", "no").astype(object)
    problem = Problem(space, Classifier(model, space_inputs(space), ("no", "yes")), frame, said, Label("yes"))
    factual = frame[~problem.valid(frame)].iloc[[0]]
    found, free = answer(problem, factual, norm=norm), Robust(rho=RHO, norm=norm).fit(problem)
    assert found.status is Status.OPTIMAL
    assert found.row is not None
    ball = np.zeros((4000, 3))
    ball[:, :2] = rng.uniform(-1, 1, (4000, 2))
    if norm == "l2":
        ball = ball / np.maximum(np.linalg.norm(ball, axis=1, keepdims=True), 1.0)
    around = space.encode(space.frame([found.row])) + RHO * ball
    assert problem.valid(space.decode(np.clip(around, 0, 1))).all()
    anywhere = free.explain(factual, 1, np.random.default_rng(0), Deadline.after(20)).answers[0]
    assert anywhere.bound is not None
    assert found.objective is not None
    assert found.objective >= anywhere.bound - NEAR


def test_an_adversary_that_needs_ever_more_looks_is_stopped_by_the_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Twice as many each time take twice as long: 8 s in all, of which there is 0.2."""
    problem = forest(0, 2)
    explainer: Any = Robust(rho=RHO, hull="hard").fit(problem)
    taken = iter([0.001 * 2**turn for turn in range(13)])

    def look(*_: Any) -> int:
        sleep(next(taken))
        return MORE_LOOKS

    monkeypatch.setattr(walls, "look", look)
    began = monotonic()
    factual = problem.train.loc[~problem.valid(problem.train)].iloc[[0]]
    found = explainer.explain(factual, 1, np.random.default_rng(0), Deadline.after(0.2)).answers[0]
    assert found.status is Status.GAVE_UP
    assert monotonic() - began < 1.0
