"""Several counterfactuals: each way in which they can differ, against all points of a small space."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.tree import DecisionTreeClassifier
from support import enumeration
from support.enumeration import (
    WITHIN,
    allowed,
    ask,
    assert_holds,
    assert_optimal,
    costs,
    factuals,
    hulls,
    listing,
    optimum,
    outside,
    problem_of,
)

from harness.core.classifier import Classifier
from harness.core.explanation import Answer, Status
from harness.core.inputs import space_inputs
from harness.core.problem import Problem
from harness.core.space import Feature, Space
from harness.core.target import Label
from methods.ce_ocl import CeOcl

CLASSIFIERS = ("lr", "rf", "mlp")
DIGITS = 4  # of scaled columns, in which the counterfactuals of a pool differ


def crossed(names: Iterable[str], kinds: Sequence[str]) -> list[Any]:
    """Each model and name with one kind of actionability here, with all of them if slow."""
    cases = []
    for (m, model), (p, name), (k, kept) in itertools.product(
        enumerate(CLASSIFIERS), enumerate(names), enumerate(kinds)
    ):
        marks = () if k == (m + p) % len(kinds) else pytest.mark.slow
        cases.append(pytest.param(model, name, kept, id=f"{model}-{name}-{kept}", marks=marks))
    return cases


def found(answers: list[Answer]) -> list[Answer]:
    """Those with a point, which come before the others."""
    rows = [answer.row is not None for answer in answers]
    assert rows == sorted(rows, reverse=True)
    return [answer for answer in answers if answer.row is not None]


def objectives(answers: list[Answer]) -> list[float]:
    values = [answer.objective for answer in answers if answer.objective is not None]
    assert len(values) == len(answers)
    return values


def assert_ordered(values: list[float]) -> None:
    """The best first."""
    assert all(b >= a - 1e-9 * max(1.0, abs(a)) for a, b in itertools.pairwise(values)), values


def distinct(problem: Problem, answers: list[Answer]) -> bool:
    """Whether no two rows are the same once their scaled columns are rounded."""
    rows = np.round(problem.space.encode(problem.space.frame([a.row for a in answers if a.row])), DIGITS)
    return len(np.unique(rows, axis=0)) == len(rows)


def sizes(method: CeOcl, problem: Problem, points: list[Answer]) -> list[int]:
    """The first enlargement of the hull that holds each answer, which do not fall: it is asked for before the next."""
    if len(method.epsilons) == 1:
        return [0] * len(points)
    encoded = problem.space.encode(problem.space.frame([a.row for a in points if a.row]))
    off = [outside(hulls(method, problem), x, float(method.hull_norm)) for x in encoded]
    first = [sum(far > size + WITHIN for size in method.epsilons) for far in off]
    assert first == sorted(first)
    return first


POOLS = {
    "l1": CeOcl("l1", diversity="pool"),
    "l2sq-alpha": CeOcl("l2sq", 0.2, diversity="pool"),
    "gower-fewest": CeOcl("gower", 1e4, diversity="pool"),
    "l0-K1": CeOcl("l0", 0, 1, diversity="pool", separation=0.4),
    "linf": CeOcl("linf", 0.1, diversity="pool"),
    "hard": CeOcl("l1", 0.1, hull="hard", diversity="pool"),
    "list": CeOcl("l1", hull="hard", epsilon=[0.0, 0.2], hull_norm="inf", diversity="pool"),
    "penalised": CeOcl("l1", hull="penalised", penalty=0.7, diversity="pool"),
    "fallback": CeOcl("l1", 0.1, hull="fallback", penalty=0.7, diversity="pool"),
}


@pytest.mark.parametrize(("model", "name", "kept"), crossed(POOLS, ("coded", "free", "increase")))
def test_a_pool_starts_with_the_optimum_and_is_filled(model: str, name: str, kept: str) -> None:
    """The best first and proven; all distinct; as many as asked unless no point is apart from all of them."""
    problem, method = problem_of(model, kept), POOLS[name]
    for factual in factuals(problem, 2):
        answers = list(ask(method, problem, factual, 4).answers)
        assert len(answers) == 4
        best = optimum(method, problem, factual)
        points = found(answers)
        if not points:
            assert (answers[0].status, best) == (Status.INFEASIBLE, np.inf)
            continue
        values = objectives(points)
        for _, same in itertools.groupby(
            zip(sizes(method, problem, points), values, strict=True), lambda pair: pair[0]
        ):
            assert_ordered([value for _, value in same])
        assert points[0].status is Status.OPTIMAL
        assert abs(values[0] - best) <= WITHIN * max(1.0, abs(best) / 1e4)
        assert distinct(problem, points)
        for answer in points:
            assert_holds(method, problem, factual, answer)
        if len(points) < 4:
            assert answers[-1].status is Status.INFEASIBLE
            assert optimum(method, problem, factual, [a.row for a in points if a.row]) == np.inf


ASSIGNED = {
    "l1": CeOcl("l1", 0.1, diversity="assignments"),
    "l2sq-fewest": CeOcl("l2sq", 1e4, diversity="assignments"),
    "no-price": CeOcl("gower", diversity="assignments"),
    "K2": CeOcl("l1", max_changes=2, diversity="assignments"),
    "hard": CeOcl("l1", 0.1, hull="hard", diversity="assignments"),
    "fewest-hard": CeOcl("l2sq", 1e4, hull="hard", diversity="assignments"),
    "penalised": CeOcl("l1", 0.1, hull="penalised", penalty=0.7, diversity="assignments"),
}


def inner_of(problem: Problem, frame: pd.DataFrame) -> np.ndarray:
    """Of each row a code of its categories, and by scikit-learn the leaves or by hand the phases, shape (rows,)."""
    estimator, matrix = problem.classifier.estimator, problem.classifier.matrix(frame)
    inner = np.zeros((len(frame), 0))
    if hasattr(estimator, "apply"):
        inner = np.asarray(estimator.apply(matrix)).reshape(len(frame), -1)
    elif hasattr(estimator, "coefs_"):
        inner = (matrix @ estimator.coefs_[0] + estimator.intercepts_[0] > 0).astype(float)
    kept = problem.space.encode(frame)[:, 2:]
    return np.unique(np.hstack([kept, inner]), axis=0, return_inverse=True)[1].ravel()


def nearest_of_each(
    method: CeOcl, problem: Problem, factual: pd.DataFrame, frame: pd.DataFrame, values: np.ndarray
) -> list[float]:
    """Objectives, in order, of the points that are the best of some assignment: ``values`` are those of the rows.

    That is the nearest of those with the same categories, leaves and phases that change nothing beyond what it changes.
    """
    inner = inner_of(problem, frame)
    changed = (frame[["age", "debt"]].to_numpy() != factual[["age", "debt"]].to_numpy()) & method.counted
    distances = values - method.alpha * changed.sum(axis=1)
    best = []
    for code in np.unique(inner):
        group = inner == code
        for may in itertools.product((False, True), repeat=2) if method.counted else [(True, True)]:
            within = group & (changed <= may).all(axis=1)
            if within.any():
                best.append(int(np.flatnonzero(within)[distances[within].argmin()]))
    return sorted(values[list(set(best))])


@pytest.mark.parametrize(
    "model", ["lr", "cart", "rf", *(pytest.param(m, marks=pytest.mark.slow) for m in ("gbm", "mlp"))]
)
@pytest.mark.parametrize("name", ASSIGNED)
def test_assignments_are_the_best_points_of_each(model: str, name: str) -> None:
    """The least objectives over all points, one an assignment of changes, categories, leaves and phases; all proven."""
    problem, method = problem_of(model, "coded" if name == "l1" else "free"), ASSIGNED[name]
    for factual in factuals(problem, 2):
        answers = list(ask(method, problem, factual, 4).answers)
        frame = listing(problem, factual)
        frame = frame[allowed(method, problem, factual, frame)]
        values = costs(method, problem, factual, frame)
        if method.hull != "none":
            encoded, parts = problem.space.encode(frame), hulls(method, problem)
            order = np.argsort(values, kind="stable")[:400]
            off = np.array([outside(parts, encoded[place], 1) for place in order])
            hard = method.hull == "hard"
            frame = frame.iloc[order[off <= 2e-7]] if hard else frame.iloc[order]
            values = values[order[off <= 2e-7]] if hard else values[order] + method.penalty * off
        expected = nearest_of_each(method, problem, factual, frame, values)[:4]
        points = found(answers)
        assert len(points) == len(expected)
        for answer, value in zip(points, expected, strict=True):
            assert answer.status is Status.OPTIMAL
            assert answer.objective is not None
            assert abs(answer.objective - value) <= WITHIN * max(1.0, value / 1e4)
            assert_holds(method, problem, factual, answer)
        assert distinct(problem, points) if points else not expected
        if len(points) < 4:
            assert answers[-1].status is Status.INFEASIBLE


@pytest.mark.parametrize("model", ["lr", "mlp"])
@pytest.mark.parametrize("name", ["l1", "l2sq-fewest", "K2", "penalised"])
def test_what_is_wanted_already_is_no_assignments_best_but_its_own(model: str, name: str) -> None:
    """Of a factual that needs no counterfactual, the first answer is itself, the others are the best points beside it.

    Of several equally near ones it is not said which. The hull, which is dearer to enter than to leave, has it outside.
    """
    problem, method = problem_of(model), ASSIGNED[name]
    rows, parts = problem.train[problem.valid(problem.train)], hulls(method, problem)
    hulled = method.hull != "none"
    if hulled:
        rows = rows[[outside(parts, x, 1) > 0.1 for x in problem.space.encode(rows)]]
    for place in range(3):
        factual = rows.iloc[[place]]
        answers = list(ask(method, problem, factual, 4).answers)
        frame = listing(problem, factual)
        frame = frame[allowed(method, problem, factual, frame)]
        values = costs(method, problem, factual, frame)
        own = 0.0
        if hulled:
            encoded = problem.space.encode(frame)
            order = np.argsort(values, kind="stable")[:400]
            frame = frame.iloc[order]
            values = values[order] + method.penalty * np.array([outside(parts, encoded[i], 1) for i in order])
            own = method.penalty * outside(parts, problem.space.encode(factual)[0], 1)
        expected = np.unique(np.round([own, *nearest_of_each(method, problem, factual, frame, values)], 6))
        assert [answer.status for answer in answers] == [Status.OPTIMAL] * 4
        reached = np.unique(np.round([answer.objective for answer in answers if answer.objective is not None], 6))
        assert reached == pytest.approx(expected[: len(reached)], abs=WITHIN)
        assert distinct(problem, answers)


FEATURES = {
    "l1": CeOcl("l1", 0.1, diversity="features"),
    "l2sq-K2": CeOcl("l2sq", max_changes=2, diversity="features"),
    "hard": CeOcl("l1", hull="hard", diversity="features"),
    "fewest": CeOcl("l1", 1e4, hull="hard", epsilon=0.137, diversity="features"),
    "penalised": CeOcl("l1", hull="penalised", penalty=0.7, diversity="features"),
}


@pytest.mark.parametrize(("model", "name", "kept"), crossed(FEATURES, tuple(enumeration.KEPT)))
def test_no_earlier_change_is_made_again(model: str, name: str, kept: str) -> None:
    """The second is the best without the first's changes, the third without those of both, or there is none."""
    problem = problem_of(model, kept)
    for factual in factuals(problem, 2):
        assert_optimal(FEATURES[name], problem, factual, 3)


CLUSTERED = {
    "two": CeOcl("l1", 0.1, hull="hard", clusters=2, diversity="clusters"),
    "three": CeOcl("l2sq", hull="hard", clusters=3, diversity="clusters"),
    "enlarged": CeOcl("l1", hull="hard", clusters=2, epsilon=0.137, hull_norm="inf", diversity="clusters"),
    "fewest": CeOcl("l1", 1e4, hull="hard", clusters=3, diversity="clusters"),
}


def assert_best_first(method: CeOcl, problem: Problem, factual: pd.DataFrame, points: list[Answer]) -> None:
    """Each answer is the best of all clusters that are left, apart from those before it, and in the hull of one such.

    Where an answer lies in several hulls, which of them it stands for is not said.
    """

    def agrees(answers: Sequence[Answer], left: list[np.ndarray], earlier: list[dict[str, Any]]) -> bool:
        expected = [optimum(method, problem, factual, earlier, [part]) for part in left]
        if not answers:
            return min(expected, default=np.inf) == np.inf
        row, value = answers[0].row, answers[0].objective
        assert row is not None
        assert value is not None
        near = WITHIN * max(1.0, value / 1e4)
        if abs(value - min(expected)) > near:
            return False
        x = problem.space.encode(problem.space.frame([row]))[0]
        inside = [outside([part], x, float(method.hull_norm)) <= max(method.epsilons) + WITHIN for part in left]
        return any(
            inside[k] and abs(least - value) <= near and agrees(answers[1:], left[:k] + left[k + 1 :], [*earlier, row])
            for k, least in enumerate(expected)
        )

    assert agrees(points, hulls(method, problem), [])


@pytest.mark.parametrize(("model", "name", "kept"), crossed(CLUSTERED, ("free", "increase", "immutable")))
def test_each_cluster_gives_one(model: str, name: str, kept: str) -> None:
    """The best of its own hull; a cluster without a point is infeasible, and beyond the clusters there is a reason."""
    problem, method = problem_of(model, kept, span=60), CLUSTERED[name]
    count = len(hulls(method, problem))
    for factual in factuals(problem, 2):
        answers = list(ask(method, problem, factual, count + 1).answers)
        assert len(answers) == count + 1
        points = found(answers)
        assert_ordered(objectives(points))
        assert distinct(problem, points) or not points
        for answer in points:
            assert answer.status is Status.OPTIMAL
            assert_holds(method, problem, factual, answer)
        assert_best_first(method, problem, factual, points)
        assert [answer.status for answer in answers[len(points) : count]] == [Status.INFEASIBLE] * (count - len(points))
        assert answers[-1].status in ({Status.GAVE_UP} if points else {Status.GAVE_UP, Status.INFEASIBLE})
        assert "cluster" in answers[-1].detail
        # Asked for fewer, the best of all clusters are given.
        (first,) = ask(method, problem, factual, 1).answers
        assert first.objective == pytest.approx(answers[0].objective)


def halves(ends: dict[str, tuple[float, float]], mirrored: bool) -> Problem:
    """Rows labelled yes up to x = 0.49 and from 0.505, each side with y at two values; yes is what has y above 0.5.

    k-means tells the sides apart: x is spread evenly over both, and y far less.
    """
    sides = {"left": np.linspace(0.0, 0.49, 50), "right": np.linspace(0.505, 1.0, 50)}
    places = [(x, y) for side, xs in sides.items() for x in xs for y in ends[side]]
    rows = np.array([(1.0 - x, y) if mirrored else (x, y) for x, y in places])
    space = Space(tuple(Feature(name, "continuous", scale=(0, 1), bounds=(0, 1)) for name in "xy"))
    stump = DecisionTreeClassifier().fit([[0.5, 0.25], [0.5, 0.75]], [0, 1])
    train, labels = space.decode(rows), np.full(len(rows), "yes", dtype=object)
    problem = Problem(space, Classifier(stump, space_inputs(space), ("no", "yes")), train, labels, Label("yes"))
    (first, second) = hulls(CeOcl(hull="hard", clusters=2), problem)
    assert (len(first), len(second)) == (100, 100)
    assert min(first[:, 0].max(), second[:, 0].max()) < 0.5 < max(first[:, 0].min(), second[:, 0].min())
    return problem


EVEN, HIGH, LOW = (0.4, 0.6), (0.36, 0.52), (0.4, 0.48)  # values of y, the last two with the same mean


@pytest.mark.parametrize("mirrored", [False, True])
@pytest.mark.parametrize(
    ("ends", "epsilon", "expected"),
    [
        # From (0.5, 0) to y = 0.5: the right begins 0.005 away, and 0.05 from there the left goes on at 0.455.
        ({"left": EVEN, "right": EVEN}, 0.0, [0.505, 0.545]),
        # No y reaches 0.5 but by the second enlargement: without a move of x, then 0.05 from there.
        ({"left": LOW, "right": LOW}, [0.0, 0.05], [0.5, 0.55]),
        # One side without an enlargement; then the other, 0.05 from there.
        ({"left": HIGH, "right": LOW}, [0.0, 0.05], [0.51, 0.54]),
        ({"left": LOW, "right": HIGH}, [0.0, 0.05], [0.505, 0.545]),
    ],
    ids=["near each other", "none without enlargement", "left without", "right without"],
)
def test_the_best_of_all_clusters_comes_first(
    ends: dict[str, tuple[float, float]], epsilon: Any, expected: list[float], mirrored: bool
) -> None:
    """Whichever cluster is listed first, asked for one or all: no answer keeps away from one that ranks below it."""
    problem = halves(ends, mirrored)
    method = CeOcl("l1", hull="hard", clusters=2, epsilon=epsilon, diversity="clusters")
    factual = problem.space.frame([{"x": 0.5, "y": 0.0}]).set_axis(["new"])
    for n in (1, 2, 3):
        answers = list(ask(method, problem, factual, n).answers)
        assert [answer.status for answer in answers] == [*2 * [Status.OPTIMAL], Status.GAVE_UP][:n]
        assert objectives(found(answers)) == pytest.approx(expected[:n], abs=WITHIN)
    assert "2 clusters" in answers[-1].detail


def test_a_cluster_without_a_point_at_any_enlargement_is_infeasible() -> None:
    """The right is 0.02 short of what is wanted: the left alone has a point."""
    method = CeOcl("l1", hull="hard", clusters=2, epsilon=[0.0, 0.01], diversity="clusters")
    problem = halves({"left": HIGH, "right": LOW}, mirrored=False)
    answers = ask(method, problem, problem.space.frame([{"x": 0.5, "y": 0.0}]).set_axis(["new"]), 2).answers
    assert [answer.status for answer in answers] == [Status.OPTIMAL, Status.INFEASIBLE]
    assert answers[0].objective == pytest.approx(0.51, abs=WITHIN)


ENLARGED: dict[str, tuple[str, Any]] = {
    "linf-inf": ("linf", "inf"),
    "l1-1": ("l1", 1),
    "l1-inf": ("l1", "inf"),
    "l0-1": ("l0", 1),
}
SIZES = (0.0, 0.031, 0.113, 0.237, 0.631, 2.0, 3.0)


@pytest.mark.parametrize(("model", "name", "kept"), crossed(ENLARGED, ("immutable", "free", "coded")))
def test_each_enlargement_gives_one_as_long_as_it_pays(model: str, name: str, kept: str) -> None:
    """Each is the best of the first enlargements with a point; the last is as good as the next enlargement's."""
    problem, (distance, norm) = problem_of(model, kept), ENLARGED[name]
    method = CeOcl(distance, hull="hard", epsilon=SIZES, hull_norm=norm, diversity="epsilon")
    for factual in factuals(problem, 2):
        answers = list(ask(method, problem, factual, len(SIZES) + 1).answers)
        each = [CeOcl(distance, hull="hard", epsilon=size, hull_norm=norm) for size in SIZES]
        best = [optimum(one, problem, factual) for one in each]
        points = found(answers)
        for answer in points:
            assert answer.status is Status.OPTIMAL
            assert_holds(method, problem, factual, answer)
        values = objectives(points)
        skipped = sum(value == np.inf for value in best)
        assert values == pytest.approx(best[skipped : skipped + len(values)], abs=WITHIN)
        assert all(after < before - WITHIN for before, after in itertools.pairwise(values)), values
        rest = answers[len(points)]
        if not points:
            assert rest.status is Status.INFEASIBLE
            assert skipped == len(SIZES)
            continue
        assert rest.status is Status.GAVE_UP
        following = best[skipped + len(points) :]
        if following:
            assert "enlarging it gives" in rest.detail
            assert following[0] == pytest.approx(values[-1], abs=WITHIN)
        else:
            assert "epsilon" in rest.detail


@pytest.mark.parametrize("seconds", [0.0, 0.05])
@pytest.mark.parametrize("diversity", ["pool", "features", "clusters", "epsilon"])
@pytest.mark.parametrize("model", CLASSIFIERS)
def test_with_little_time_several_answers_are_honest(model: str, diversity: str, seconds: float) -> None:
    """As many as asked, the best first, none a lie; what is called optimal is so."""
    problem = problem_of(model, "increase")
    extra: dict[str, Any] = {"clusters": 2} if diversity == "clusters" else {}
    extra |= {"epsilon": [0.0, 0.2]} if diversity == "epsilon" else {}
    method = CeOcl("l1", 0.1, hull="hard", diversity=diversity, **extra)
    for factual in factuals(problem, 2):
        answers = list(ask(method, problem, factual, 3, seconds).answers)
        assert len(answers) == 3
        for answer in found(answers):
            assert_holds(method, problem, factual, answer)
        if answers[0].row is not None and answers[0].status is Status.OPTIMAL:
            assert answers[0].objective == pytest.approx(optimum(method, problem, factual), abs=WITHIN)
        for answer in answers:
            if answer.status is Status.INFEASIBLE and answer is answers[0]:
                listed = listing(problem, factual)
                assert (
                    not allowed(method, problem, factual, listed).any() or optimum(method, problem, factual) == np.inf
                )
            assert answer.row is not None or answer.detail
