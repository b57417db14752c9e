"""Which points are wanted: as the fitted model says, however near to its threshold; a probability has its own end."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from support.discrete import asked, fewest, grid, keeps_its_promises, negatives, posed, served, weighed

from harness.core.explanation import Answer, Explanation, Status
from harness.core.method import Deadline
from harness.core.objective import Term
from harness.core.problem import Problem
from harness.core.space import Feature, Space
from harness.core.target import Label, Probability
from methods.column_generation import ColumnGeneration
from methods.column_generation.method import CHOICE

PAIR = Space((Feature("a", "binary", (0, 1)), Feature("b", "binary", (0, 1))))
OFF = (5e-5, 2e-10, 0.0, -2e-10, -5e-5)  # scores of (1, 1), far within a margin of 1e-4; 0 is a tie


def beside_ties(off: float, wanted: str) -> Problem:
    """The logit is a + 2b - 3 + off, or for the other class less that: (1, 1) alone may be wanted."""
    side = 1.0 if wanted == "good" else -1.0
    problem, _ = weighed(PAIR, [side, 2.0 * side], side * (off - 3.0), [{"a": 0, "b": 0}])
    return replace(problem, target=Label(wanted))


def explained(method: ColumnGeneration, problem: Problem, factual: pd.DataFrame, n: int = 1) -> Explanation:
    assert method.refuses(problem) is None
    return method.fit(problem).explain(factual, n, np.random.default_rng(0), Deadline.after(60))


def is_the_fewest_changes(answer: Answer, problem: Problem, factual: pd.DataFrame, t_max: int) -> None:
    """By trying every point: the least number of changes, or a proof that nothing is wanted within ``t_max``."""
    points = grid(problem.space)
    changes = problem.space.changed(factual, points.loc[problem.valid(points)]).sum(axis=1)
    least = min(changes[changes > 0], default=t_max + 1)
    if least > t_max:
        assert answer.status is Status.INFEASIBLE
    else:
        assert (answer.status, answer.objective, answer.bound) == (Status.OPTIMAL, least, least)
        assert answer.row is not None
        assert problem.valid(problem.space.frame([answer.row]))[0]


@pytest.mark.parametrize("wanted", ["good", "bad"])
@pytest.mark.parametrize("off", OFF)
def test_a_score_beside_the_threshold_is_as_the_model_says(off: float, wanted: str) -> None:
    """One change from (0, 1), two from (0, 0); on the tie the model says "bad"."""
    problem = beside_ties(off, wanted)
    assert problem.valid(grid(PAIR)).tolist() == [False] * 3 + [off > 0 or (off == 0 and wanted == "bad")]
    for factual in ({"a": 0, "b": 1}, {"a": 0, "b": 0}):
        for t_max in (1, 2):
            row = PAIR.frame([factual])
            (answer,) = explained(ColumnGeneration(t_max), problem, row).answers
            is_the_fewest_changes(answer, problem, row, t_max)


@pytest.mark.parametrize("wanted", ["good", "bad"])
@pytest.mark.parametrize("off", OFF)
def test_a_group_beside_the_threshold_is_served_as_the_model_says(off: float, wanted: str) -> None:
    """Who is served by nothing but a tie that the model refuses is uncoverable, and not undecided."""
    problem = beside_ties(off, wanted)
    factuals = PAIR.frame([{"a": 0, "b": 1}, {"a": 1, "b": 0}]).set_axis(list("ab"))
    for t_max in (1, 2):
        method = ColumnGeneration(t_max)
        found = asked(method, problem, factuals)
        keeps_its_promises(found, problem, factuals, method)
        count, left = fewest(served(problem, factuals, t_max, 0.5), 2)
        assert len(found.points) == found.bound == count
        assert set(found.uncoverable) == set(factuals.index[sorted(left)])
        assert found.status is (Status.OPTIMAL if count else Status.INFEASIBLE)


@pytest.mark.parametrize("solver", ["cells", "column_generation", "milp"])
def test_one_point_close_to_the_threshold_serves_both(solver: str) -> None:
    """The log odds of y = r are 5e-5: wanted, as the model has it."""
    space = Space((Feature("x", "binary", (0, 1)), Feature("y", "categorical", ("p", "q", "r"))))
    people = [{"x": 0, "y": "p"}, {"x": 0, "y": "q"}]
    problem, factuals = weighed(space, [1.0, 0.0, 0.0, 0.5 + 5e-5], -0.5, people)
    found = asked(ColumnGeneration(1, solver=solver), problem, factuals)
    assert (found.status, len(found.points), found.bound) == (Status.OPTIMAL, 1, 1)


def test_a_tie_that_the_model_refuses_serves_nobody() -> None:
    """It would serve both: two points are given, not called the fewest as a search cannot tell the tie from a point."""
    space = Space((Feature("x", "binary", (0, 1)), Feature("y", "categorical", ("p", "q", "r"))))
    people = [{"x": 0, "y": "p"}, {"x": 0, "y": "q"}]
    problem, factuals = weighed(space, [1.0, 0.0, 0.0, 0.5], -0.5, people)
    assert not problem.valid(space.frame([{"x": 0, "y": "r"}]))[0]
    method = ColumnGeneration(1)
    found = asked(method, problem, factuals)
    keeps_its_promises(found, problem, factuals, method)
    assert (len(found.points), found.bound, found.status) == (2, 1, Status.FOUND)
    assert not found.undecided


def test_many_ties_do_not_hide_a_point() -> None:
    """More points lie on the threshold, one change away, than a listing holds; the only wanted one comes after them."""
    levels = tuple(range(40))
    space = Space((Feature("x", "binary", (0, 1)), *(Feature(name, "categorical", levels) for name in "yz")))
    problem, factuals = weighed(space, [1.0] + [0.0] * 80, 0.0, [{"x": 0, "y": 0, "z": 0}])
    assert 2 * (len(levels) - 1) > CHOICE
    (answer,) = explained(ColumnGeneration(1), problem, factuals).answers
    assert (answer.status, answer.objective, answer.row) == (Status.OPTIMAL, 1.0, {"x": 1, "y": 0, "z": 0})


def test_a_probability_below_a_half_is_enough() -> None:
    """0.1 becomes 0.4 by one change and 0.55 by two: wanted is 0.3."""
    logits = [np.log(p / (1 - p)) for p in (0.1, 0.4, 0.55)]
    problem, factuals = weighed(PAIR, [logits[1] - logits[0], logits[2] - logits[1]], logits[0], [{"a": 0, "b": 0}])
    wanted = replace(problem, target=Probability("good", 0.3, 1.0))
    for threshold in (0.5, 0.9):  # the method's own is one of classes
        (answer,) = explained(ColumnGeneration(2, threshold=threshold), wanted, factuals).answers
        assert (answer.status, answer.objective, answer.row) == (Status.OPTIMAL, 1.0, {"a": 1, "b": 0})


@pytest.mark.parametrize("model", ["linear", "network", "tree", "forest", "boosting"])
@pytest.mark.parametrize("label", ["good", "bad"])
def test_a_probability_has_its_own_end(model: str, label: str) -> None:
    """Ends just below what the model gives some point, from low to high: by trying all points, and all groups."""
    problem = posed(model)
    given = problem.classifier.probability(grid(problem.space), label)
    levels = np.unique(given[given > 0])
    for share in (0.3, 0.5, 0.8):
        low = float(levels[max(int(share * (len(levels) - 1)), 1)]) * (1.0 - 1e-12)
        target = replace(problem, target=Probability(label, low, 1.0))
        factuals = negatives(target, 5, 3)
        for place in range(3):
            row = factuals.iloc[[place]]
            (answer,) = explained(ColumnGeneration(2), target, row).answers
            is_the_fewest_changes(answer, target, row, 2)
        method = ColumnGeneration(2)
        found = asked(method, target, factuals)
        keeps_its_promises(found, target, factuals, method)
        count, left = fewest(served(target, factuals, 2, 0.5), len(factuals))
        assert len(found.points) == found.bound == count
        assert set(found.uncoverable) == set(factuals.index[sorted(left)])


def test_a_claim_says_what_else_limits_the_points() -> None:
    """A threshold beside the model's own, and rounded weights, which trees have not; a probability has no other."""
    linear, tree = posed("linear"), posed("tree")
    likely = replace(linear, target=Probability("good", 0.7, 1.0))
    cases: list[tuple[ColumnGeneration, Problem, dict[str, Any]]] = [
        (ColumnGeneration(), linear, {}),
        (ColumnGeneration(threshold=0.9), linear, {"threshold": 0.9}),
        (ColumnGeneration(threshold=0.9), likely, {}),
        (ColumnGeneration(round_weights=4), linear, {"round_weights": 4, "margin": 1e-4}),
        (ColumnGeneration(round_weights=4), tree, {}),
    ]
    for method, problem, domain in cases:
        claim = method.objective(problem)
        assert claim.domain == domain
        assert claim.terms == (() if domain else (Term("l0"),))


def test_what_is_ruled_out_is_said_in_the_words_of_the_claim() -> None:
    """After all points there are: that no other has the probability, or of rounded weights that none was found."""
    problem = posed("linear")
    factual = negatives(problem, 1, 2)
    last = {
        name: explained(method, problem, factual, 120).answers[-1]
        for name, method in {
            "plain": ColumnGeneration(5),
            "likely": ColumnGeneration(5, threshold=0.6),
            "rounded": ColumnGeneration(5, round_weights=1),
        }.items()
    }
    assert [answer.status for answer in last.values()] == [Status.INFEASIBLE, Status.INFEASIBLE, Status.GAVE_UP]
    assert "is classified as wanted" in last["plain"].detail
    assert "has the wanted probability" in last["likely"].detail


def test_a_bound_is_no_more_than_the_points_that_are_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the model rejects them all, nobody is served, by no points; the checker holds a bound against these."""
    problem = posed("linear")
    factuals = negatives(problem, 6, 4)
    explainer: Any = ColumnGeneration(2).fit(problem)
    monkeypatch.setattr(explainer, "accepted", lambda rows: np.zeros(len(rows), dtype=bool))
    for seconds in (60.0, 0.0):
        found = explainer.explain_group(factuals, np.random.default_rng(0), Deadline.after(seconds))
        assert (found.points, found.bound, found.status) == ((), 0, Status.GAVE_UP)
        assert set(found.undecided) | set(found.uncoverable) == set(factuals.index)


def test_an_end_on_either_side_is_taken_and_two_are_not() -> None:
    problem = posed("linear")
    method = ColumnGeneration(2)
    unlikely = replace(problem, target=Probability("good", 0.0, 0.4))
    row = negatives(unlikely, 1, 5)
    (answer,) = explained(method, unlikely, row).answers
    is_the_fewest_changes(answer, unlikely, row, 2)
    assert "one end" in str(method.refuses(replace(problem, target=Probability("good", 0.3, 0.4))))
    assert "probabilities" in str(method.refuses(replace(posed("svm"), target=Probability("good", 0.3, 1.0))))


def test_a_probability_of_just_the_threshold_is_enough() -> None:
    """Of (1, 1), at one more than the tie; a little more than it has is not."""
    problem, point = beside_ties(1.0, "good"), {"a": 1, "b": 1}
    has = float(problem.classifier.probability(PAIR.frame([point]), "good")[0])
    for threshold, enough in ((has, True), (float(np.nextafter(has, 1.0)), False)):
        fitted = ColumnGeneration(2, threshold=threshold).fit(problem)
        assert fitted.accepted([point]).tolist() == [enough]
