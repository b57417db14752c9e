"""The nearest stable row, against the measure worked out by hand, and against draws one by one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier
from support.smooth import SPACE, problem, refused

from harness.core.classifier import Classifier
from harness.core.explanation import Status
from harness.core.inputs import space_inputs
from harness.core.method import Deadline
from harness.core.problem import Problem
from harness.core.target import Classes, Interval, Label
from methods.nearest import Nearest, Stable


def step(threshold: float | None = None) -> Problem:
    """A tree that grants with probability 0.9 above an a of 5, and with 0.2 below."""
    question = problem("lr")
    rows = question.train.assign(a=np.repeat([2.5, 7.5], 150))
    granted = np.concatenate([np.arange(150) % 5 == 0, np.arange(150) % 10 != 0])
    tree = DecisionTreeClassifier(max_depth=1).fit(SPACE.encode(rows), granted)
    return replace(question, classifier=Classifier(tree, space_inputs(SPACE), ("no", "yes"), threshold=threshold))


def test_the_measure_of_a_step_is_worked_out_by_hand() -> None:
    """Of the copies of a row at 5 + one sigma a share s of about 16 % are below the step: 0.9 - 0.7 s less 0.7 s."""
    method = Stable(copies=20_000, sigma=0.1)
    rows = SPACE.frame([{"a": a, "b": 0.0, "c": "red"} for a in (6.0, 9.9)])
    below = 0.158655
    expected = [0.9 - 1.4 * below, 0.9]
    assert method.stability(step(), rows) == pytest.approx(expected, abs=0.01)


def test_the_measure_is_that_of_draws_one_by_one() -> None:
    """Of a linear model, whose probability is asked of each copy by itself; immutable numbers have no noise."""
    question = problem("lr")
    space = SPACE.replace({"b": {"actionability": "immutable"}})
    method, rows = Stable(copies=7, sigma=0.2), question.train.iloc[:70]
    found = method.stability(replace(question, space=space), rows)
    noise = np.random.default_rng(0).normal(0.0, 0.2, (7, 1))[:, 0]
    model = question.classifier.estimator
    weights, points = model.coef_[0], SPACE.encode(rows)
    for row, value in zip(points, found, strict=True):
        near = [expit((row + np.array([shift, 0, 0, 0, 0])) @ weights + model.intercept_[0]) for shift in noise]
        own = expit(row @ weights + model.intercept_[0])
        by_hand = sum(one - abs(own - one) for one in near) / 7
        assert value == pytest.approx(by_hand, abs=1e-9)


@pytest.mark.parametrize("tau", [0.0, 0.6, 0.8, 1.0])
def test_the_answer_is_the_nearest_row_that_is_stable_enough(tau: float) -> None:
    question, method = problem("relu"), Stable("l1", tau=tau, copies=20)
    kept = question.train.loc[question.valid(question.train) & (method.stability(question, question.train) >= tau)]
    for place in range(3):
        factual = refused(question).iloc[[place]]
        (answer,) = method.fit(question).explain(factual, 1, np.random.default_rng(0), Deadline.after(9)).answers
        best = method.objective(question).evaluate(SPACE, factual, kept).min(initial=np.inf)
        assert (np.inf if answer.row is None else answer.objective) == best
        assert answer.status is (Status.GAVE_UP if np.isinf(best) else Status.FOUND)


def test_a_threshold_moves_the_probabilities() -> None:
    """With 0.1 for the threshold, 0.2 is a ninth of the way from there to 1, and counts 0.5 + 0.5 / 9."""
    method, rows = Stable(copies=50, sigma=0.01), SPACE.frame([{"a": a, "b": 0.0, "c": "red"} for a in (2.5, 7.5)])
    assert method.stability(step(0.1), rows) == pytest.approx([0.5 + 0.5 / 9, 0.5 + 4 / 9])
    assert method.stability(step(), rows) == pytest.approx([0.2, 0.9])


def test_several_wanted_classes_are_one() -> None:
    """More rows are stable where either of two classes will do than where one is wanted."""
    question = problem("lr")
    model = LogisticRegression().fit(SPACE.encode(question.train), pd.cut(question.train["a"], 3, labels=False))
    three = replace(question, classifier=Classifier(model, space_inputs(SPACE), ("low", "mid", "top")))
    wanted = replace(three, target=Classes(("mid", "top")))
    method = Stable(copies=20)
    assert method.refuses(wanted) is None
    assert len(method.candidates(wanted)) > len(method.candidates(replace(three, target=Label("mid"))))


def test_what_is_refused() -> None:
    question = replace(problem("lr"), target=Interval(0.0, 1.0))
    assert "T-Rex is run for a wanted class only" in str(Stable().refuses(question))
    wrong: list[dict[str, Any]] = [{"tau": 1.5}, {"tau": np.nan}, {"copies": 0}, {"sigma": 0.0}, {"sigma": np.inf}]
    for numbers in wrong:
        ((name, value),) = numbers.items()
        with pytest.raises(ValueError, match=f"{name} is {value}; "):
            Stable(**numbers)
    with pytest.raises(ValueError, match="distance is 'l2'"):
        Stable("l2")
    assert isinstance(Stable(), Nearest)
