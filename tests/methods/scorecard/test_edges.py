"""Scorecards at the edges: features without a weight, rows that do not vary, probabilities close to 1."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from support.scorecards import ask, toy, undesired

from harness.core.classifier import Classifier
from harness.core.explanation import Reason, Status
from harness.core.method import Deadline
from harness.core.problem import Problem
from harness.core.space import Feature, Space
from harness.core.target import Label, Probability
from harness.models.card import Bin, Card, Variable
from harness.models.scorecard import ScorecardClassifier
from methods.scorecard import Scorecard
from methods.scorecard import method as scorecard
from methods.scorecard.moves import closeness_factor
from methods.scorecard.search import Sets

ENGINES = ("search", "milp")


def posed(values: dict[str, tuple[float, float]], target: Label | Probability, **weights: float) -> Problem:
    """Features of 0 and 1, each with the weights of evidence of both, and with a coefficient of 1 or another."""
    space = Space(tuple(Feature(name, "integer", scale=(0, 1), bounds=(0, 1)) for name in values))
    bins = (Bin("interval", high=1.0), Bin("interval", low=1.0), Bin("missing"))
    variables = [
        Variable(n, bins, np.array([*pair, 0.0]), weights.get(n, 1.0), np.zeros(3)) for n, pair in values.items()
    ]
    model = ScorecardClassifier()
    model.card_, model.classes_ = Card(tuple(variables), 0.0, True), np.array([0, 1])
    rows = space.frame([dict.fromkeys(values, value) for value in (0, 1)])
    classifier = Classifier(model, model.card_.inputs(space), ("no", "yes"))
    return Problem(space, classifier, rows, np.array(["no", "yes"], object), target)


@pytest.mark.parametrize("engine", ENGINES)
def test_features_without_a_weight_lead_nowhere(engine: str) -> None:
    """Only such a one may change: there is no counterfactual, and no program without a column."""
    problem = posed({"a": (-1.0, 2.0), "b": (-1.0, 1.0)}, Label("yes"), b=0.0)
    space = problem.space.replace({"a": {"actionability": "immutable"}})
    (answer,) = ask(Scorecard(engine=engine), replace(problem, space=space), problem.train.iloc[[0]], 1).answers
    assert answer.status is Status.INFEASIBLE


@pytest.mark.parametrize("engine", ENGINES)
def test_a_probability_that_is_wished_for_is_that_of_the_wanted_class(engine: str) -> None:
    """Of the first class, from a score of 3: c alone leads to -4, which is 0.982 of it; a and b to -1, and to 0.731."""
    expected = ((0.98, {"a": 0, "b": 0, "c": 1}), (0.73, {"a": 1, "b": 1, "c": 0}))
    for target in (Label("no"), Probability("no", 0.6)):
        problem = posed({"a": (1.0, -1.0), "b": (1.0, -1.0), "c": (1.0, -6.0)}, target)
        for wish, row in expected:
            method = Scorecard({"outcome": 1.0}, wish=wish, max_changes=None, engine=engine)
            (answer,) = ask(method, problem, problem.train.iloc[[0]], 1).answers
            assert answer.row == row


@pytest.mark.parametrize("rows", [1, 5])
def test_rows_that_do_not_vary_have_a_closeness(rows: int) -> None:
    """A single one, and equal ones: both engines prove the same."""
    problem = toy(0, Label("yes"))
    (factual,) = undesired(problem, 1)
    alike = replace(problem, train=problem.train.iloc[[0] * rows].reset_index(drop=True), labels=problem.labels[:1])
    answers = [ask(Scorecard(engine=name), alike, factual, 1).answers[0] for name in ENGINES]
    assert {answer.status for answer in answers} == {Status.OPTIMAL}
    assert answers[0].objective == pytest.approx(answers[1].objective)


def test_a_variance_of_rounding_is_none() -> None:
    """Five times .49 have one of 1e-33, whose inverse would be all that counts."""
    values = np.tile([0.49, -0.61], (5, 1))
    assert 0 < np.cov(values, rowvar=False)[0, 0] < 1e-30
    assert np.allclose(closeness_factor(values), closeness_factor(values[:1]))
    mixed = np.column_stack([np.arange(5.0), values])
    assert np.isfinite(factor := closeness_factor(mixed)).all()
    assert factor.max() < 1e4


def test_a_move_of_rounding_is_no_proof() -> None:
    """From a number on a cut the last one before it is no change by distances, and one by the search: a cheaper answer
    may be there, and so may one where the search has none."""
    space = Space(tuple(Feature(name, "continuous", scale=(0, 2), bounds=(0, 2)) for name in "ab"))
    bins = (Bin("interval", high=1.0), Bin("interval", low=1.0), Bin("missing"))
    model = ScorecardClassifier()
    variables = tuple(Variable(name, bins, np.array([1.0, 0.0, 0.0]), 1.0, np.zeros(3)) for name in "ab")
    model.classes_ = np.array([0, 1])
    for intercept, status in ((-0.5, Status.FOUND), (-1.5, Status.GAVE_UP)):
        model.card_ = Card(variables, intercept, True)
        factual = space.frame([{"a": 1.0, "b": 2.0}])
        classifier = Classifier(model, model.card_.inputs(space), ("no", "yes"))
        problem = Problem(space, classifier, factual, np.array(["no"], object), Label("yes"))
        method = Scorecard({"changes": 1}, max_changes=1)
        (answer,) = ask(method, problem, factual, 1).answers
        assert (answer.status, answer.bound) == (status, None)
        near = space.frame([{"a": float(np.nextafter(1, 0)), "b": 0.5}])
        assert problem.valid(near)[0]
        assert method.objective(problem).exceeded(space, factual, near) == [[]]


@pytest.mark.parametrize("far", [1e-9, 1e-10, 1e-11, 1e-12])
@pytest.mark.every(1)
def test_what_the_model_gives_is_not_called_impossible(far: float) -> None:
    """A probability of at least 1 - ``far``, by scores about its end: what the model itself gives is found."""
    low, given = 1.0 - far, 0
    end = float(np.log(low) - np.log1p(-low))
    for beside in np.linspace(-6e-16, 6e-16, 41) / far:
        problem = posed({"x": (0.0, end + beside)}, Probability("yes", low, 1.0))
        (answer,) = ask(Scorecard({"proximity": 1}), problem, problem.train.iloc[[0]], 1).answers
        if problem.valid(problem.train)[1]:
            given += 1
            assert answer.row == {"x": 1}
        else:
            assert answer.row is None
    assert 10 < given < 31


def test_a_search_that_its_clock_ended_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two that were asked for one is found in time; of the other nothing is known."""
    best = scorecard._Explainer._best

    def slow(own: Any, setup: Any, origin: Any, moves: Any, n: int, deadline: Deadline) -> Any:
        while n == 2 and not deadline.passed:
            time.sleep(0.01)
        if n == 2:
            return Sets((), np.empty((0, 4)), np.inf, -np.inf, False)
        return best(own, setup, origin, moves, n, deadline)

    problem = posed({"a": (-1.0, 2.0), "b": (-1.0, 2.0)}, Label("yes"))
    explainer = Scorecard(max_changes=None).fit(problem)
    monkeypatch.setattr(scorecard._Explainer, "_best", slow)  # not before the fit, which tries a set of two itself
    answers = explainer.explain(problem.train.iloc[[0]], 2, np.random.default_rng(0), Deadline.after(1.0)).answers
    assert answers[0].row is not None
    assert (answers[1].status, answers[1].reason) == (Status.GAVE_UP, Reason.TIME_LIMIT)
    assert answers[1].detail == "no further one was found within the time limit"
