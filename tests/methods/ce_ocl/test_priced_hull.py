"""The search around a hull that may be left at a price, against enumeration and the mixed-integer program."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from support.engines import question_of
from support.enumeration import KEPT, assert_optimal, factuals, optimum, problem_of
from support.noisy_rule import MODELS, make
from support.noisy_rule import factuals as wrong

from harness.core.conflict import lifted
from harness.core.explanation import Answer, Status
from harness.core.method import Deadline
from harness.core.problem import Problem
from harness.core.space import Feature, Kind, Space
from methods.ce_ocl import CeOcl
from methods.ce_ocl.one_answer import AnswerSearch
from methods.ce_ocl.program_engine import ProgramEngine
from methods.hull_search import outside
from methods.hull_search.outside import Combinations, PricedHull
from methods.milp.hull import Outside, Shares


def answer_of(method: CeOcl, problem: Problem, factual: object, seconds: float = 30.0) -> Answer:
    explainer = method.fit(problem)
    return explainer.explain(factual, 1, np.random.default_rng(0), Deadline.after(seconds)).answers[0]  # type: ignore[arg-type]


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the mixed-integer program."""

    def refuse(search: AnswerSearch) -> float:
        raise AssertionError("the program was asked")

    monkeypatch.setattr(AnswerSearch, "_together", refuse)


@pytest.mark.usefixtures("alone")
@pytest.mark.parametrize("penalty", [0.05, 0.7, 30.0])
@pytest.mark.parametrize("kept", [name for name in KEPT if name != "conditional"])  # its ranks are no interval
@pytest.mark.parametrize("model", ["lr", "linear", "cart", "rf", "gbm", "cart_regressor"])
def test_the_optimum_is_that_of_enumeration(model: str, kept: str, penalty: float) -> None:
    """Nothing costs less, distance from the hull included, and the search proves it by itself."""
    problem = problem_of(model, kept)
    for factual in factuals(problem, 3):
        assert_optimal(CeOcl("l1", hull="penalised", penalty=penalty), problem, factual)


@pytest.mark.usefixtures("alone")
@pytest.mark.parametrize(
    "method",
    [
        CeOcl("l1", 0.3, hull="penalised", penalty=0.7),
        CeOcl("gower", 0.05, hull="penalised", penalty=0.2, clusters=3),
        CeOcl("l1", max_changes=2, hull="penalised", penalty=0.7),
        CeOcl("l1", 0.1, max_changes=3, count="columns", hull="penalised", penalty=0.7, hull_points="predicted"),
        CeOcl("l1", hull="fallback", penalty=0.7, max_changes=1),
    ],
    ids=["changes cost", "clusters", "two changes", "columns", "fallback"],
)
@pytest.mark.parametrize("model", ["lr", "gbm"])
def test_prices_and_bounds_of_changes_are_kept(model: str, method: CeOcl) -> None:
    """As enumerated, with changes that cost or are bounded, and with several hulls."""
    problem = problem_of(model, "coded")
    for factual in factuals(problem, 3):
        assert_optimal(method, problem, factual)


@pytest.mark.parametrize("hull", ["penalised", "fallback"])
def test_fewest_changes_come_first_beside_a_hull_that_may_be_left(hull: str) -> None:
    """As enumerated, and proven to the last digits of the distance, which a sum with the price of changes loses."""
    method = CeOcl("l2sq", 1e4, max_changes=2, count="columns", hull=hull, penalty=0.7)
    problem = problem_of("cart_regressor", "increase", related=("linked",), priced="shares", span=10)
    for factual in factuals(problem, 3, 144):
        assert_optimal(method, problem, factual, 2)


@pytest.mark.parametrize("penalty", [0.2, 5.0])
@pytest.mark.parametrize("model", MODELS)
def test_the_optimum_with_a_continuous_number_is_that_of_the_program(model: str, penalty: float) -> None:
    """Search and mixed-integer program agree, with many points that enter as they are needed, too."""
    for seed, rows in ((3, 60), (4, 3000)):
        problem = make(MODELS[model], seed, whole=False, rows=rows)
        method = CeOcl("l1", hull="penalised", penalty=penalty)
        for factual in wrong(problem, 3):
            found, expected = (
                answer_of(replace(method, engine=engine), problem, factual) for engine in ("auto", "milp")
            )
            assert found.status is expected.status is Status.OPTIMAL
            assert found.objective == pytest.approx(expected.objective, abs=2e-6)


def test_too_many_categories_are_left_to_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    """The optimum is the same where other categories than the factual's are not gone through."""
    monkeypatch.setattr(outside, "MOST", 2)
    problem = problem_of("lr")
    asked = []
    together = AnswerSearch._together
    monkeypatch.setattr(AnswerSearch, "_together", lambda search: asked.append(search) or together(search))
    for factual in factuals(problem, 4):
        assert_optimal(CeOcl("l1", hull="penalised", penalty=0.05), problem, factual)
    assert asked


def test_out_of_time_the_bound_is_honest() -> None:
    """It is at most the optimum, and an answer's value at least."""
    problem = problem_of("lr")
    method = CeOcl("l1", hull="penalised", penalty=0.3)
    for factual in factuals(problem, 3):
        best = optimum(method, problem, factual)
        for seconds in (0.0, 0.01, 0.03):
            answer = answer_of(method, problem, factual, seconds)
            assert answer.status in {Status.OPTIMAL, Status.FOUND, Status.GAVE_UP}
            assert (-math.inf if answer.bound is None else answer.bound) <= best + 1e-9
            assert (math.inf if answer.objective is None else answer.objective) >= best - 1e-6


class Asked(Deadline):
    """A deadline that has passed once it was asked so many times."""

    @property
    def passed(self) -> bool:
        object.__setattr__(self, "at", self.at - 1.0)
        return self.at < 0


def test_wherever_the_search_stops_its_bound_is_honest() -> None:
    """At most the optimum, as enumerated, after any number of boxes; and the optimum in the end.

    Where the grade has to stay, the first factual's nearest point is of another region.
    """
    problem = problem_of("lr")
    problem = replace(problem, space=problem.space.replace({"grade": {"actionability": "immutable"}}))
    method = CeOcl("l1", hull="penalised", penalty=0.3)
    engine = ProgramEngine(method, problem)
    (piece,) = engine.manifolds[0].pieces(factuals(problem, 1)[0], engine.program.aim.least)
    assert engine.boxes is not None
    assert isinstance(piece, Shares | Outside)
    for factual in factuals(problem, 4):
        best = optimum(method, problem, factual)
        bounds = [
            engine.boxes.closest(factual, piece, math.inf, Asked(float(count)))[2] for count in (*range(40), 10**6)
        ]
        assert max(bounds) <= best + 1e-9
        assert bounds[-1] == pytest.approx(best, abs=1e-7)


def test_combinations_of_categories_are_listed_by_what_their_changes_cost() -> None:
    """By hand: two features, the second of them dear; the factual's own are not among them."""
    combinations = Combinations(np.array([0, 1]), [[0, 1, 2], [0, 1]], np.array([1.0, 1.5]))
    listed = combinations.below(2.5)
    assert listed is not None
    assert [(cost, codes.tolist()) for cost, codes in listed] == [(1.0, [1, 1]), (1.0, [2, 1]), (1.5, [0, 0])]
    everything = combinations.below(math.inf)
    assert everything is not None
    assert len(everything) == 5


def test_a_hull_knows_how_far_categories_are() -> None:
    """Two columns a category, one a binary feature; blocks of points keep the ends of what they hold."""
    space = Space(
        (
            Feature("a", Kind.CONTINUOUS, scale=(0.0, 1.0), bounds=(0.0, 1.0)),
            Feature("k", Kind.CATEGORICAL, ("x", "y", "z")),
            Feature("b", Kind.BINARY, (False, True)),
        )
    )
    rng = np.random.default_rng(0)
    frame = space.frame(
        {"a": float(a), "k": k, "b": bool(b)}
        for a, k, b in zip(
            rng.uniform(size=500), rng.choice(["x", "y", "z"], 500), rng.integers(0, 2, 500), strict=True
        )
    )
    points = space.encode(frame)
    hull = PricedHull.of(space, points, 1.0)
    at_y = space.encode(space.frame([{"a": 0.5, "k": "y", "b": True}]))[0]
    piece = hull.piece(space, np.array([1, 1]))
    expected = np.abs(points[:, 1:] - at_y[1:]).sum(axis=1)
    assert sorted(zip(points[:, 0], expected, strict=True)) == sorted(map(tuple, piece.points.tolist()))
    kept, used = hull.points.arrays, hull.points.used
    for block in range(kept.corners.shape[2]):
        own = kept.points[:, block * 64 : (block + 1) * 64]
        np.testing.assert_array_equal(kept.corners[:, :, block], [own.min(axis=1), own.max(axis=1)])
    np.testing.assert_array_equal(kept.work[:, :used], kept.points[:, kept.members[:used]])


@pytest.mark.parametrize("distance", ["l1", "l2sq"])
@pytest.mark.parametrize("seed", [0, 1, 4])
def test_the_reason_of_a_hull_out_of_reach_holds(seed: int, distance: str) -> None:
    """Constraints that are lifted in search of the reason are lifted in the hull search, too.

    By new engines: without any one of the named groups there is an answer, and with them alone there is none.
    """
    problem = make(MODELS["logistic"], seed)
    fixed = {name: {"actionability": "immutable"} for name in ("a", "b", "c", "k")}
    problem = replace(problem, space=problem.space.replace(fixed))
    groups = [f"immutable {name}" for name in ("a", "b", "c", "k")]
    method = CeOcl(distance, hull="hard")
    told = 0
    for factual in wrong(problem, 3):
        explanation = method.fit(problem).explain(factual, 1, np.random.default_rng(0), Deadline.after(30))
        if explanation.answers[0].status is not Status.INFEASIBLE:
            continue
        told += 1
        spared = frozenset(groups) - set(explanation.conflict)
        assert "data manifold" in explanation.conflict
        assert answer_of(method, lifted(problem, spared), factual).status is Status.INFEASIBLE
        for name in set(explanation.conflict) - {"data manifold"}:
            assert answer_of(method, lifted(problem, spared | {name}), factual).status is Status.OPTIMAL
    assert told


@pytest.mark.slow
@pytest.mark.parametrize("penalty", [1.0, 100.0])
def test_penalised_hulls_of_heloc_are_proven_in_time(penalty: float) -> None:
    """Of ten people's nearest counterfactuals nine are proven within 5 s, all by a logistic regression's own rule."""
    question = question_of("heloc", "lr", count=10)
    (problem,) = question.problems.values()
    explainer = CeOcl("l1", hull="penalised", penalty=penalty).fit(problem)
    proven = 0
    for index in question.factuals.index:
        factual = question.factuals.loc[[index]]
        (answer,) = explainer.explain(factual, 1, np.random.default_rng(0), Deadline.after(5)).answers
        assert answer.row is not None
        assert answer.bound is not None
        proven += answer.status is Status.OPTIMAL
    assert proven >= 9
