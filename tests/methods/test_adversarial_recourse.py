"""Recourse by gradient descent against perturbations: against finite differences, grids and the exact certificate."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier
from support.smooth import MODELS, SPACE, problem, refused

from harness.certificate import Ball, Checker
from harness.core.explanation import Status
from harness.core.method import Deadline
from harness.core.target import Probability
from methods.adversarial_recourse import AdversarialRecourse
from methods.descent import Met, Score


@pytest.mark.parametrize("wanted", ["yes", "no"])
@pytest.mark.parametrize("name", MODELS)
def test_score_and_gradient(name: str, wanted: str) -> None:
    """The score is the model's own, signed; its gradient is that of central differences."""
    question = problem(name, wanted)
    score = Score(question)
    for frame in (question.train.iloc[[place]] for place in range(5)):
        point = SPACE.encode(frame)[0]
        value, slope = score(point)
        sign = 1.0 if wanted == "yes" else -1.0
        raw = float(question.classifier.raw(frame).ravel()[0])
        assert value == pytest.approx(sign * (raw - question.classifier.raw_threshold), abs=1e-9)
        step = 1e-6 * np.eye(len(point))
        by_hand = [(score(point + part)[0] - score(point - part)[0]) / 2e-6 for part in step]
        np.testing.assert_allclose(slope, by_hand, atol=1e-5)


def test_the_worst_perturbation_of_a_linear_model() -> None:
    """It goes against the weights of the numbers, to the end of the ball."""
    question = problem("lr")
    explainer = AdversarialRecourse(rho=0.2).fit(question)
    weights = np.ravel(question.classifier.estimator.coef_)[:2]
    worst = explainer.worst(SPACE.encode(question.train.iloc[[0]])[0])
    np.testing.assert_allclose(worst, [*(-0.2 * weights / np.linalg.norm(weights)), 0, 0, 0], atol=1e-9)


def test_what_does_not_matter_is_not_perturbed() -> None:
    """A model of the category alone has no worst direction, and its gradient there is 0."""
    question = problem("lr")
    flat = LogisticRegression().fit(question.classifier.matrix(question.train), question.labels == "yes")
    flat.coef_ = np.array([[0.0, 0.0, 2.0, -1.0, -1.0]])
    explainer = AdversarialRecourse(rho=0.2).fit(
        replace(question, classifier=replace(question.classifier, estimator=flat))
    )
    np.testing.assert_array_equal(explainer.worst(SPACE.encode(question.train.iloc[[0]])[0]), np.zeros(5))


def test_steps_are_those_of_adam(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the loss log(1 + exp(-h)) + weight * distance of a linear model, with both means corrected for their start."""
    question = problem("lr")
    wide = replace(question, space=SPACE.replace({"a": {"bounds": (-1e4, 1e4)}, "b": {"bounds": (-1e4, 1e4)}}))
    explainer = AdversarialRecourse(rho=0.0, weight=0.3, rate=0.05, rounds=1, steps=4).fit(wide)
    met: list[np.ndarray] = []
    monkeypatch.setattr(Met, "look", lambda self, point: met.append(point.copy()))
    factual = refused(question).iloc[[0]]
    explainer.explain(factual, 1, np.random.default_rng(0), Deadline.after(30))
    model = question.classifier.estimator
    origin, slope = SPACE.encode(factual)[0], model.coef_[0]
    point, mean, square = origin.copy(), np.zeros(5), np.zeros(5)
    for k in range(1, 5):
        score = point @ slope + model.intercept_[0]
        gradient = 0.3 * np.sign(point - origin) - slope / (1 + np.exp(score))
        mean, square = 0.9 * mean + 0.1 * gradient, 0.999 * square + 0.001 * gradient**2
        point = point - 0.05 * (mean / (1 - 0.9**k)) / (np.sqrt(square / (1 - 0.999**k)) + 1e-8)
        point[2:] = np.clip(point[2:], 0, 1)  # the columns of the category
        np.testing.assert_allclose(met[k - 1], point, atol=1e-9)
    assert len(met) == 4


@pytest.mark.parametrize("name", ["lr", "relu"])
def test_answers_stand_the_ball_where_it_is_said(name: str) -> None:
    """Every answer is valid; without a remark most are certified, and none is invalid far within the ball."""
    question = problem(name)
    explainer = AdversarialRecourse(rho=0.05).fit(question)
    judge, ball, certified = Checker(SPACE, question.classifier, question.target), Ball.scaled(SPACE, "l2"), []
    for place in range(3):
        factual = refused(question).iloc[[place]]
        (answer,) = explainer.explain(factual, 1, np.random.default_rng(0), Deadline.after(30)).answers
        assert answer.status is Status.FOUND
        assert answer.row is not None
        assert question.valid(SPACE.frame([answer.row]))[0]
        assert not SPACE.violations(factual, SPACE.frame([answer.row]))[0]
        if not answer.detail:
            certified.append(judge.certify(answer.row, ball, 0.05, 10).radius >= 0.05 * (1 - 1e-6))
    assert len(certified) == 3
    assert sum(certified) >= 2


def test_a_ball_too_large_for_the_space() -> None:
    """The answer keeps to the bounds and says that it is not robust; with room it is."""
    question = problem("lr")
    factual = refused(question).iloc[[0]]
    wide = SPACE.replace({"a": {"bounds": (-1e4, 1e4)}, "b": {"bounds": (-1e4, 1e4)}})
    for space in (SPACE, wide):
        explainer = AdversarialRecourse(rho=2.0, rounds=8).fit(replace(question, space=space))
        (answer,) = explainer.explain(factual, 1, np.random.default_rng(0), Deadline.after(60)).answers
        assert answer.row is not None
        inside = 0 <= answer.row["a"] <= 10 and -1 <= answer.row["b"] <= 1
        assert inside == bool(answer.detail) == (space is SPACE)


def test_what_it_refuses() -> None:
    """Models without gradients, targets other than a class, and parameters out of range."""
    question = problem("lr")
    assert AdversarialRecourse().refuses(question) is None
    tree = DecisionTreeClassifier(max_depth=2).fit(question.classifier.matrix(question.train), question.labels == "yes")
    wooden = replace(question, classifier=replace(question.classifier, estimator=tree))
    assert "follows gradients" in str(AdversarialRecourse().refuses(wooden))
    between = replace(question, target=Probability("yes", 0.6, 0.9))
    assert "wanted class only" in str(AdversarialRecourse().refuses(between))
    for wrong in ({"decay": 1.0}, {"decay": 0.0}, {"rho": -1.0}, {"rho": np.inf}, {"rate": 0.0}, {"weight": 0.0},
                  {"steps": 0}, {"rounds": 0}, {"ascents": 0}):  # fmt: skip
        (name, value), *_ = wrong.items()
        with pytest.raises(ValueError, match=f"{name} is {value}"):
            AdversarialRecourse(**wrong)
    AdversarialRecourse(rho=0.0, steps=1, rounds=1, ascents=1)


@pytest.mark.parametrize("name", ["lr", "relu"])
def test_the_last_point_is_handed_back_whatever_it_is(name: str) -> None:
    """After one small step it is refused, and no answer of the other kind; a weight that keeps the factual gives none;
    with hardly any weight the descent ends in a point that stands its worst case."""
    question = problem(name)
    factual = refused(question).iloc[[0]]

    def ask(**settings: Any) -> Any:
        explainer = AdversarialRecourse(rho=0.05, rounds=1, **settings).fit(question)
        return explainer.explain(factual, 1, np.random.default_rng(0), Deadline.after(60)).answers[0]

    step = ask(steps=1, rate=1e-3, weight=1e-6, last=True)
    assert step.status is Status.FOUND
    assert not question.valid(pd.DataFrame([step.row]))[0]
    assert step.detail == "a perturbation within rho was found that makes it invalid"
    assert ask(steps=1, rate=1e-3, weight=1e-6).status is Status.GAVE_UP
    assert ask(steps=1, rate=1e-300, weight=1e-6, last=True).status is Status.GAVE_UP
    far = ask(steps=400, weight=1e-6, last=True)
    assert question.valid(pd.DataFrame([far.row]))[0]
    assert far.detail == ""
    path = [ask(steps=steps, weight=1e-6, last=True) for steps in range(1, 60)]
    near = [answer for answer in path if question.valid(pd.DataFrame([answer.row]))[0] and answer.detail]
    assert near  # valid, and not yet in its worst case
