"""Several counterfactuals: each way in which they can differ, against all points of a small space."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd
import pytest
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

from harness.core.explanation import Answer, Status
from harness.core.problem import Problem
from methods.ce_ocl import CeOcl

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

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


def assert_one_each(method: CeOcl, problem: Problem, factual: pd.DataFrame, points: list[Answer]) -> None:
    """For some assignment each answer is the best of its cluster apart from those of the clusters before it."""
    parts = hulls(method, problem)
    slots: list[Answer | None] = [*points, *[None] * (len(parts) - len(points))]

    def agrees(order: tuple[Answer | None, ...]) -> bool:
        earlier: list[dict[str, Any]] = []
        for answer, part in zip(order, parts, strict=True):
            expected = optimum(method, problem, factual, earlier, [part])
            if answer is None:
                if expected < np.inf:
                    return False
                continue
            assert answer.row is not None
            x = problem.space.encode(problem.space.frame([answer.row]))[0]
            if outside([part], x, float(method.hull_norm)) > max(method.epsilons) + WITHIN:
                return False
            if not abs((answer.objective or 0.0) - expected) <= WITHIN * max(1.0, abs(expected) / 1e4):
                return False
            earlier.append(answer.row)
        return True

    assert any(agrees(order) for order in itertools.permutations(slots))


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
        assert_one_each(method, problem, factual, points)
        assert [answer.status for answer in answers[len(points) : count]] == [Status.INFEASIBLE] * (count - len(points))
        assert answers[-1].status in ({Status.GAVE_UP} if points else {Status.GAVE_UP, Status.INFEASIBLE})
        assert "cluster" in answers[-1].detail
        # Asked for fewer, the best of all clusters are given.
        (first,) = ask(method, problem, factual, 1).answers
        assert first.objective == pytest.approx(answers[0].objective)


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
        if answers[0].row is not None and answers[0].status is Status.OPTIMAL and diversity != "clusters":
            assert answers[0].objective == pytest.approx(optimum(method, problem, factual), abs=WITHIN)
        for answer in answers:
            if answer.status is Status.INFEASIBLE and answer is answers[0]:
                listed = listing(problem, factual)
                assert (
                    not allowed(method, problem, factual, listed).any() or optimum(method, problem, factual) == np.inf
                )
            assert answer.row is not None or answer.detail
