"""Scorecards of many features: within the time limit, with a true bound, and proven where moves only add up."""

from __future__ import annotations

import math
import time
from typing import Any

import numpy as np
import pytest
from scipy.optimize import Bounds, LinearConstraint, milp
from support.looks import Looks
from support.scorecards import Enumeration, ask, refused, toy, undesired, wide

from harness.core.explanation import Status
from harness.core.method import Deadline
from harness.core.space import values_of
from harness.core.target import Label
from methods.scorecard import Scorecard, branch, search
from methods.scorecard.branch import Branching
from methods.scorecard.method import _Setup
from methods.scorecard.records import Kept


@pytest.mark.parametrize("most", [None, 4, 1])
@pytest.mark.parametrize("size", [60, 130])
@pytest.mark.parametrize("wanted", ["yes", "no"])
def test_what_adds_up_is_proven(size: int, most: int | None, wanted: str) -> None:
    """Optima are those of scipy's solver, also beyond one machine word of features; none where it has none."""
    problem = wide(size, wanted)
    method = Scorecard({"proximity": 1.0, "changes": 0.01}, max_changes=most)
    setup = _Setup(method, problem)
    for factual in refused(problem, 4):
        moves = setup.finder.moves(values_of(factual))
        gain, cost = setup.coefficients[moves.owner] * moves.delta, np.abs(moves.delta) / setup.unit[moves.owner] + 0.01
        one = (moves.owner == np.arange(size)[:, None]).astype(float)
        expected = milp(
            cost,
            constraints=[
                LinearConstraint(one, -np.inf, 1),
                LinearConstraint(gain, setup.rules.low - moves.score, setup.rules.high - moves.score),
                LinearConstraint(np.ones(len(cost)), 0, most or size),
            ],
            integrality=np.ones(len(cost)),
            bounds=Bounds(0, 1),
            options={"mip_rel_gap": 0.0},
        )
        (answer,) = ask(method, problem, factual, 1).answers
        if expected.x is None:
            assert answer.status is Status.INFEASIBLE
            continue
        assert answer.status is Status.OPTIMAL
        assert answer.objective == pytest.approx(expected.fun, abs=2e-6)
        assert problem.valid(problem.space.frame([answer.row]))[0]


@pytest.mark.parametrize("few", [0, 4])
def test_a_search_cut_short_has_a_true_bound(few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """At whichever step: never above the optimum, and at last there."""
    monkeypatch.setattr(search, "BUDGET", 3)
    monkeypatch.setattr(branch, "BUDGET", 3)
    monkeypatch.setattr(search, "FEW", few)
    method, met = Scorecard(), set()
    for seed in range(4):
        problem = toy(seed, Label("yes"))
        for factual in undesired(problem, 2):
            best = Enumeration(problem, factual, method.weights).best(method, 1)
            if best is None:
                continue
            setup = _Setup(method, problem)
            moves = setup.finder.moves(values_of(factual))
            for looks in (*range(1, 40), 10_000):
                engine = setup.engine(values_of(factual), moves, setup.rules)
                found = engine.best(1, method.forms(1), np.full(1, math.inf), Looks(looks))
                assert -1.0 <= found.bound <= best[0] + 1e-9
                met.add(found.proven)
            assert found.proven
            assert found.bound == pytest.approx(best[0], abs=1e-9)
    assert met == {False, True}


@pytest.mark.parametrize("budget", [3, 30])
def test_what_was_found_stays_where_another_search_takes_over(budget: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """And has no time left: nothing dearer is handed back than without it."""
    monkeypatch.setattr(branch, "BUDGET", 3)
    monkeypatch.setattr(search, "BUDGET", budget)
    method, met = Scorecard(max_changes=3), 0
    for seed in range(8):
        problem = toy(seed, Label("yes"))
        setup = _Setup(method, problem)
        for factual in undesired(problem, 2):
            moves = setup.finder.moves(values_of(factual))
            found = []
            for takes_over in (False, True):
                engine = setup.engine(values_of(factual), moves, setup.rules)
                engine.branching.linear &= takes_over
                found.append(engine.best(1, method.forms(1), np.full(1, math.inf), Looks(1)))
            alone, handed = found
            assert handed.cost <= alone.cost + 1e-9
            assert handed.bound <= handed.cost
            met += bool(alone.choices) and not alone.proven
    assert met


@pytest.mark.parametrize(
    ("ended", "least", "expected"),
    [
        (False, 0.25, (False, 0.25, [0.5, 1.0])),
        (False, math.inf, (False, 2.0, [0.5, 1.0])),  # nothing is dearer than what there was no room for
        (True, 0.5, (False, 0.5, [0.5, 1.0])),  # the bound of what is left out is that of an unfinished search
    ],
)
def test_of_two_searches_the_cheapest_are_kept_once(
    ended: bool, least: float, expected: tuple[bool, float, list[float]]
) -> None:
    """A choice that both find counts once, its options in whatever order."""
    both, new, none = [0, 1], [4, 5], [-1, -1]

    def kept(*choices: tuple[float, list[int]]) -> Kept:
        costs = np.array([cost for cost, _ in choices])
        return Kept(costs, np.array([picks for _, picks in choices]), np.outer(costs, [1.0, 0.0, 0.0, 0.0]))

    class Second:
        def cheapest(self, weights: np.ndarray, cap: float, found: Kept, deadline: Any) -> tuple[bool, float, int]:
            parts = kept((0.5, new), (1.0, both[::-1])) if not ended else kept((0.5, new), (9.0, none))
            for part, values in zip(found, parts, strict=True):
                part[:] = values
            return ended, least, 1 if ended else 2

    engine = object.__new__(search.Search)
    vars(engine)["branching"] = Second()
    found = kept((1.0, both), (2.0, [2, 3]))
    finished, bound, many = engine._again(np.array([1.0, 0.0, 0.0, 0.0]), math.inf, found, 2, Deadline.after(1))
    costs = (found.parts[:many] @ np.array([1.0, 0.0, 0.0, 0.0])).tolist()
    assert (finished, bound, costs) == expected
    assert sorted(found.picks[0].tolist()) == new
    assert sorted(found.picks[1].tolist()) == both


def test_what_a_level_before_has_found_stays() -> None:
    """Where there is no time for the next one: without a bound, as it is of another objective."""
    method = Scorecard({"proximity": 1.0, "closeness": 1.0}, {"proximity": 2, "closeness": 1})
    met = 0
    for seed in range(4):
        problem = toy(seed, Label("yes"))
        explainer = method.fit(problem)
        for factual in undesired(problem, 2):
            moves = explainer.setup.finder.moves(values_of(factual))
            found = [explainer._best(explainer.setup, values_of(factual), moves, 1, Looks(k)) for k in (1, 1000)]
            assert len(found[0].choices) == len(found[1].choices)
            if found[0].choices:
                assert (found[0].proven, found[0].bound) == (False, -math.inf)
                assert found[1].proven
                met += 1
    assert met


@pytest.mark.parametrize("n", [1, 3])
def test_many_features_without_a_limit_on_changes(n: int) -> None:
    """All that is asked for is found in time, with a bound that is more than nothing."""
    problem = wide(60)
    explainer = Scorecard(max_changes=None).fit(problem)
    for factual in refused(problem, 2)[1:]:
        began = time.monotonic()
        found = explainer.explain(factual, n, np.random.default_rng(0), Deadline.after(4.0))
        assert time.monotonic() - began < 4.8
        assert [answer.status for answer in found.answers] == [Status.FOUND] * n
        assert len({tuple(sorted(answer.row.items())) for answer in found.answers if answer.row}) == n
        if n == 1:
            (answer,) = found.answers
            assert answer.bound is not None
            assert 0.0 < answer.bound <= answer.objective


def test_a_list_that_took_all_of_the_time_still_gives_a_set(monkeypatch: pytest.MonkeyPatch) -> None:
    """The choices met are put together at least once, however late it is."""
    monkeypatch.setattr(search, "LISTING", 2.0)
    problem = wide(60)
    (factual,) = refused(problem, 2)[1:]
    explainer = Scorecard(max_changes=None).fit(problem)
    found = explainer.explain(factual, 3, np.random.default_rng(0), Deadline.after(0.5))
    assert [answer.status for answer in found.answers] == [Status.FOUND] * 3


def test_each_choice_in_turn_has_its_share_of_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """None of three that share no value is the first that its search meets because those before it took the time."""
    given, cheapest = list[float](), Branching.cheapest

    def noted(self: Branching, weights: np.ndarray, cap: float, kept: Kept, deadline: Deadline) -> Any:
        given.append(deadline.left)
        return cheapest(self, weights, cap, kept, deadline)

    monkeypatch.setattr(Branching, "cheapest", noted)
    problem = wide(60)
    (factual,) = refused(problem, 2)[1:]
    explainer = Scorecard(max_changes=None, diversity=["values"]).fit(problem)
    found = explainer.explain(factual, 3, np.random.default_rng(0), Deadline.after(2.0))
    assert [answer.status for answer in found.answers] == [Status.FOUND] * 3
    _compiled, _first, second, third, *_ = given
    assert third > 0.5 * second


def test_sets_of_features_beyond_a_word_are_told_apart() -> None:
    """Choices of one move each, each in a feature of its own: the cheapest three."""
    problem = wide(130)
    method = Scorecard({"proximity": 1.0}, max_changes=1)
    setup = _Setup(method, problem)
    met = 0
    for factual in refused(problem, 40)[:6]:
        moves = setup.finder.moves(values_of(factual))
        gain, cost = setup.coefficients[moves.owner] * moves.delta, np.abs(moves.delta) / setup.unit[moves.owner]
        enough = moves.score + gain >= setup.rules.low
        cheapest = sorted(float(cost[enough & (moves.owner == f)].min()) for f in set(moves.owner[enough].tolist()))
        found = ask(method, problem, factual, 3).answers
        objectives = [answer.objective for answer in found if answer.row is not None]
        assert objectives == pytest.approx(cheapest[:3], abs=1e-9)
        met += bool((moves.owner[enough] >= 64).any() and len(cheapest) >= 3)
    assert met
