"""Scores on an end of the target, or beside it by rounding: what the model accepts is found, and nothing else."""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pytest
from support.scorecards import ask

from harness.core.classifier import Classifier
from harness.core.explanation import Status
from harness.core.problem import Problem
from harness.core.space import Feature, Space
from harness.core.target import Interval, Label, Probability, Target
from harness.models.card import Bin, Card, Variable
from harness.models.scorecard import ScorecardClassifier, ScorecardRegressor
from methods.scorecard import Scorecard

END = 1.5
TARGETS: dict[str, Target] = {
    "at least": Interval(END, math.inf),
    "at most": Interval(-math.inf, END),
    "exactly": Interval(END, END),
    "yes": Label("yes"),  # a score above END
    "no": Label("no"),
    "as likely as not": Probability("yes", 0.5, 1.0),
}
BINS = (Bin("interval", high=1.0), Bin("interval", 1.0, 2.0), Bin("interval", 2.0), Bin("missing"))


def stepped(values: list[list[float]], target: Target, end: float = 0.0) -> Problem:
    """Features of three bins each, 0, 1 and 2 in them; the score is the sum of the bins' values, less an end."""
    names = [f"x{k}" for k in range(len(values))]
    space = Space(tuple(Feature(name, "integer", scale=(0, 2), bounds=(0, 2)) for name in names))
    variables = tuple(
        Variable(name, BINS, np.array([*own, 0.0]), 1.0, np.zeros(4)) for name, own in zip(names, values, strict=True)
    )
    binary = not isinstance(target, Interval)
    card = Card(variables, -end, binary)
    estimator: Any = ScorecardClassifier() if binary else ScorecardRegressor()
    estimator.card_, estimator.classes_ = card, np.array([0, 1])
    rows = space.frame([dict(zip(names, row, strict=True)) for row in product(range(3), repeat=len(names))])
    classifier = Classifier(estimator, card.inputs(space), ("no", "yes") if binary else ())
    return Problem(space, classifier, rows, np.zeros(len(rows)), target)


def drawn(seed: int, target: Target, step: float) -> Problem:
    """Three features, whose bins' values are multiples of a step below ten of it."""
    rng = np.random.default_rng(seed)
    values = [(rng.choice(10, 3, replace=False) * step).tolist() for _ in range(3)]
    return stepped(values, target, 0.0 if isinstance(target, Interval) else END)


def costs(problem: Problem, factual: pd.DataFrame) -> list[float]:
    """Proximities of all other points that the model accepts, each asked by itself, ascending."""
    card, train = problem.classifier.estimator.card_, problem.train
    values, current = card.values(card.bins(train)), card.values(card.bins(factual))
    accepted = [bool(problem.valid(train.iloc[[place]])[0]) for place in range(len(train))]
    return sorted((np.abs(values - current) / np.ptp(values, axis=0)).sum(axis=1)[np.array(accepted)].tolist())


@pytest.mark.parametrize("engine", ["search", "milp"])
@pytest.mark.parametrize("name", TARGETS)
def test_a_sum_on_an_end_counts_as_the_model_has_it(name: str, engine: str) -> None:
    """Tenths, whose sums miss 1.5 by rounding or not: by trying every point."""
    ties, found, method = 0, 0, Scorecard({"proximity": 1}, max_changes=None, engine=engine)
    for seed in range(8):
        problem = drawn(seed, TARGETS[name], 0.1)
        classes = bool(problem.classifier.classes)
        ties += int((np.abs(problem.classifier.raw(problem.train) - (0.0 if classes else END)) < 1e-9).sum())
        refused = [row for row in range(27) if not problem.valid(problem.train.iloc[[row]])[0]]
        for row in refused[:3]:
            factual = problem.train.iloc[[row]]
            expected, (answer,) = costs(problem, factual), ask(method, problem, factual).answers
            if not expected:
                assert answer.status is Status.INFEASIBLE
                continue
            found += 1
            assert answer.status is Status.OPTIMAL
            assert answer.objective == pytest.approx(expected[0], abs=1e-6)
            assert problem.valid(problem.space.frame([answer.row]))[0]
    assert ties > 5
    assert found > 5


@pytest.mark.parametrize("engine", ["search", "milp"])
@pytest.mark.parametrize("name", ["at least", "yes", "no"])
def test_two_at_once_leave_out_what_the_model_refuses(name: str, engine: str) -> None:
    """Quarters, which add up exactly: the two cheapest points, ties among them where the target includes them."""
    method = Scorecard({"proximity": 1}, max_changes=None, diversity=(), engine=engine)
    met = 0
    for seed in range(40):
        problem = drawn(seed, TARGETS[name], 0.25)
        factual = problem.train.loc[~problem.valid(problem.train)].iloc[:1]
        if factual.empty or len(expected := costs(problem, factual)) < 2:
            continue
        met += 1
        answers = ask(method, problem, factual, 2).answers
        assert [answer.status for answer in answers] == [Status.OPTIMAL] * 2
        assert sum(answer.objective or 0.0 for answer in answers) == pytest.approx(sum(expected[:2]), abs=1e-6)
    assert met > 4


HAND: dict[str, tuple[list[float], Target, float]] = {
    "a number on its end": ([100.0, 150.0, 200.0], Interval(150.0, math.inf), 0.5),
    "class 0 at a score of 0": ([1.0, 0.0, -1.0], Label("no"), 0.5),
    "class 1 just above 0": ([-1.0, 5e-7, 1.0], Label("yes"), 0.5),
    "class 1 not at 0": ([-1.0, 0.0, 1.0], Label("yes"), 1.0),
    "a probability of a half": ([-1.0, 0.0, 1.0], Probability("yes", 0.5, 1.0), 0.5),
}


@pytest.mark.parametrize("engine", ["search", "milp"])
@pytest.mark.parametrize("case", HAND)
def test_the_middle_bin_is_enough_or_not(case: str, engine: str) -> None:
    """From the first of three bins to the second is half of the range, to the third all of it."""
    values, target, expected = HAND[case]
    problem = stepped([values], target)
    method = Scorecard({"proximity": 1}, engine=engine)
    (answer,) = ask(method, problem, problem.train.iloc[[0]]).answers
    assert answer.status is Status.OPTIMAL
    assert answer.objective == pytest.approx(expected, abs=1e-6)
    assert method.objective(problem).domain == {}


@pytest.mark.parametrize("engine", ["search", "milp"])
def test_a_margin_that_counts_is_part_of_the_claim(engine: str) -> None:
    """Of class 1, whose end is left out; class 0 includes its own. One claim serves the questions of both."""
    method = Scorecard({"proximity": 1}, margin=0.1, engine=engine)
    for value, expected in ((0.05, 1.0), (0.2, 0.6)):
        problem = stepped([[-1.0, value, 1.0]], Label("yes"))
        (answer,) = ask(method, problem, problem.train.iloc[[0]]).answers
        assert (answer.status, answer.objective) == (Status.OPTIMAL, pytest.approx(expected, abs=1e-6))
        assert method.objective(problem).domain == {"margin": 0.1}
    problem = stepped([[1.0, -0.05, -1.0]], Label("no"))
    assert method.objective(problem).domain == {"margin": 0.1}
    (answer,) = ask(method, problem, problem.train.iloc[[0]]).answers
    assert (answer.status, answer.objective) == (Status.OPTIMAL, pytest.approx(1.05 / 2, abs=1e-6))
