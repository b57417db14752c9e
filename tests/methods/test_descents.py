"""Descents against changes of the model and against noise: against weight corners, draws of noise, and differences."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.tree import DecisionTreeClassifier
from support.datasets import dataset_of, problem_on
from support.smooth import SPACE, problem, refused

from harness.certificate import proven
from harness.core.explanation import Reason, Status
from harness.core.method import Deadline
from harness.core.target import Label, Probability
from methods.descent import Descent, Met
from methods.probe import Probe
from methods.roar import Roar

METHODS: list[Any] = [Roar, Probe]
DRAWS = 100_000


def ask(method: Descent, name: str, place: int, wanted: str = "yes", seconds: float = 60) -> Any:
    question = problem(name, wanted)
    explainer: Any = method.fit(question)
    factual = refused(question).iloc[[place]]
    return explainer.explain(factual, 1, np.random.default_rng(0), Deadline.after(seconds)).answers[0]


def loss(explainer: Any, point: np.ndarray, score: float) -> float:
    """Logistic loss of a score, and of PROBE what is above the limit."""
    found = float(np.logaddexp(0.0, -score))
    if isinstance(explainer.method, Probe):
        found += max(0.0, explainer.invalidation(point)[0] - explainer.method.rate_limit)
    return found


@pytest.mark.parametrize("wanted", ["yes", "no"])
@pytest.mark.parametrize("name", ["lr", "relu"])
def test_the_worst_model_is_the_worst_of_all_corners(name: str, wanted: str) -> None:
    """Of the plane that touches the score, each of five weights and the intercept at either end of the box."""
    question = problem(name, wanted)
    explainer = Roar(delta=0.2).fit(question)
    corners = 0.2 * np.array(list(product((-1.0, 1.0), repeat=6)))
    for point in (SPACE.encode(question.train.iloc[[k]])[0] * (1, -1, 1, 1, 1) for k in range(5)):
        score, weights = explainer.score(point)
        said = score + corners[:, :5] @ point + corners[:, 5]
        value, slope = explainer.worst(point)
        assert value == pytest.approx(said.min(), abs=1e-9)
        moved = weights + corners[np.isclose(said, said.min()), :5]
        assert any(np.allclose(slope * (point != 0), one * (point != 0)) for one in moved)


@pytest.mark.parametrize("name", ["lr", "relu"])
@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.__name__)
def test_the_descent_follows_the_gradient_of_its_loss(method: Any, name: str) -> None:
    """By central differences, at points of both sides of the boundary that lie on no kink."""
    question = problem(name)
    explainer, compared = method().fit(question), 0
    for k in range(12):
        point = np.clip(SPACE.encode(question.train.iloc[[k]])[0], 0.05, 0.95)
        steps = 1e-6 * np.eye(5)

        def value(at: np.ndarray) -> float:
            return loss(explainer, at, explainer.worst(at)[0] if method is Roar else explainer.score(at)[0])

        around = [explainer.score(point + side * step)[1] for step in steps for side in (-1, 1)]
        if any(not np.array_equal(weights, explainer.score(point)[1]) for weights in around):
            continue
        by_hand = [(value(point + step) - value(point - step)) / 2e-6 for step in steps]
        np.testing.assert_allclose(explainer.slope(point), by_hand, atol=1e-5)
        compared += 1
    assert compared > 6


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.__name__)
def test_shares_of_many_categories_are_no_counterfactual(method: Any) -> None:
    """Of German credit's 13 categories a network accepts a mixture whose nearest categories are the factual's own.

    Whoever the model refuses has an answer that keeps what is asked for all the same.
    """
    network = MLPClassifier((50,), max_iter=500, random_state=0)
    question = problem_on(dataset_of("german_credit"), network)
    assert question.classifier.code("good") == 1
    explainer = method().fit(replace(question, target=Label("good")))
    for place in range(8):
        factual = refused(explainer.problem).iloc[[place]]
        (answer,) = explainer.explain(factual, 1, np.random.default_rng(0), Deadline.after(60)).answers
        assert (answer.status, answer.detail) == (Status.FOUND, "")


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.__name__)
def test_only_points_with_whole_categories_are_looked_at(method: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[np.ndarray] = []
    monkeypatch.setattr(Met, "look", lambda points, point: looked.append(point))
    monkeypatch.setattr(Met, "best", (True, None))  # as if the first round had found one
    ask(method(), "lr", 1)  # whose descent comes between two categories
    (columns,) = (c for f, c in zip(SPACE.features, SPACE.slices, strict=True) if not f.numeric)
    assert {tuple(sorted(point[columns])) for point in looked} == {(0.0,) * (columns.stop - columns.start - 1) + (1.0,)}
    assert len({tuple(point) for point in looked}) > 10


def test_a_point_is_rounded_as_its_row_is() -> None:
    """To the last bit: integers whole, and a number that has not moved the factual's own."""
    question = problem_on(dataset_of("german_credit"), LogisticRegression(max_iter=1000))
    question = replace(question, target=Label("good"))
    factual, rng = refused(question).iloc[[0]], np.random.default_rng(0)
    explainer = Roar().fit(question)
    points = Met(explainer, factual)
    for _ in range(50):
        kept = rng.random(points.origin.shape) < 0.5
        point = explainer.rounded(np.where(kept, points.origin, rng.random(points.origin.shape)))
        (expected,) = question.space.encode(question.space.decode(point, like=factual))
        np.testing.assert_array_equal(points.rounded(point), expected)


def test_a_number_that_has_not_moved_is_the_factuals_own() -> None:
    """Not what scaling makes of it, there and back, which is often another in the last bit."""
    explainer, others = Roar().fit(problem("lr")), 0
    for place in range(100):
        factual = explainer.problem.train.iloc[[place]]
        points = Met(explainer, factual)
        points.own = points.own + 0.01  # as if it had been rounded so far
        moved = points.rounded(points.origin)
        others += int((moved != points.origin).any())
        np.testing.assert_allclose(moved[:2] * (10, 2) - points.origin[:2] * (10, 2), 0.01)
    assert others == 100


def test_the_share_of_a_linear_model_is_that_of_draws() -> None:
    """Of noise of the two numbers; the category has none."""
    question = problem("lr")
    explainer = Probe(sigma=0.3).fit(question)
    noise = np.zeros((DRAWS, 5))
    noise[:, :2] = np.random.default_rng(0).normal(0, 0.3, (DRAWS, 2))
    weights, shifts = explainer.score.layers[0]
    for k in range(5):
        point = SPACE.encode(question.train.iloc[[k]])[0]
        drawn = ((point + noise) @ weights[:, 0] + shifts[0] <= 0).mean()
        assert explainer.invalidation(point)[0] == pytest.approx(drawn, abs=0.01)


def test_without_noise_that_matters_the_share_is_none_or_all() -> None:
    question = problem("lr")
    fixed = replace(question, space=SPACE.replace({name: {"actionability": "immutable"} for name in "ab"}))
    explainer = Probe().fit(fixed)
    for frame in (question.train.iloc[[k]] for k in range(8)):
        share, slope = explainer.invalidation(SPACE.encode(frame)[0])
        assert share == (0.0 if question.valid(frame)[0] else 1.0)
        assert not slope.any()


@pytest.mark.parametrize("wanted", ["yes", "no"])
@pytest.mark.parametrize("delta", [0.0, 0.3])
def test_roar_keeps_what_it_says_of_linear_models(delta: float, wanted: str) -> None:
    """Every answer without a remark is proven for all weights; no nearer point of a grid of them beats it by much."""
    question = problem("lr", wanted)
    grid = SPACE.frame(
        {"a": a, "b": b, "c": c}
        for a, b, c in product(np.linspace(0, 10, 41), np.linspace(-1, 1, 41), ("red", "green", "blue"))
    )
    kept = grid.loc[proven(question.classifier, question.target, grid, delta) if delta else question.valid(grid)]
    for place in range(3):
        answer = ask(Roar(delta=delta, weight=0.05, rounds=12), "lr", place, wanted)
        assert answer.status is Status.FOUND
        assert answer.detail == ""
        row = SPACE.frame([answer.row])
        assert proven(question.classifier, question.target, row, delta)[0]
        origin = SPACE.encode(refused(question).iloc[[place]])
        best = np.abs(SPACE.encode(kept) - origin).sum(axis=1).min()
        assert np.abs(SPACE.encode(row) - origin).sum() <= best + 0.6


@pytest.mark.parametrize("name", ["lr", "relu", "tanh"])
def test_probe_keeps_to_the_share(name: str) -> None:
    """A lower share takes a longer way, and every answer without a remark keeps to it."""
    far = {}
    for limit in (0.05, 0.45):
        method = Probe(rate_limit=limit, sigma=0.05)
        explainer, question = method.fit(problem(name)), problem(name)
        answers = [ask(method, name, place) for place in range(3)]
        points = [SPACE.encode(SPACE.frame([answer.row]))[0] for answer in answers]
        for answer, point in zip(answers, points, strict=True):
            assert question.valid(SPACE.frame([answer.row]))[0]
            assert answer.detail == ("" if explainer.invalidation(point)[0] <= limit else method.doubt)
        assert any(answer.detail == "" for answer in answers)
        origins = SPACE.encode(refused(question).iloc[:3])
        far[limit] = sum(np.abs(point - origin).sum() for point, origin in zip(points, origins, strict=True))
    assert far[0.05] > far[0.45]


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.__name__)
def test_what_may_not_change_stays(method: Any) -> None:
    question = problem("relu")
    fixed = SPACE.replace({"a": {"actionability": "increase"}, "c": {"actionability": "immutable"}})
    explainer = method().fit(replace(question, space=fixed))
    for place in range(3):
        factual = refused(question).iloc[[place]]
        (answer,) = explainer.explain(factual, 1, np.random.default_rng(0), Deadline.after(60)).answers
        assert answer.row is not None
        assert not fixed.violations(factual, fixed.frame([answer.row]))[0]


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.__name__)
def test_out_of_time_is_said(method: Any) -> None:
    answer = ask(method(), "lr", 0, seconds=-1.0)
    assert (answer.row, answer.status, answer.reason) == (None, Status.GAVE_UP, Reason.TIME_LIMIT)


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.__name__)
def test_what_is_refused(method: Any) -> None:
    question = problem("lr")
    assert method().refuses(question) is None
    tree = DecisionTreeClassifier(max_depth=2).fit(question.classifier.matrix(question.train), question.labels == "yes")
    wooden = replace(question, classifier=replace(question.classifier, estimator=tree))
    assert f"{method.title} follows gradients, which DecisionTreeClassifier has not" in str(method().refuses(wooden))
    assert "wanted class only" in str(method().refuses(replace(question, target=Probability("yes", 0.6, 0.9))))


def test_wrong_numbers_are_named() -> None:
    for method, name, values in (
        (Roar, "delta", (-0.1, 1.5, np.nan)),
        (Probe, "rate_limit", (0.0, 1.0, np.nan)),
        (Probe, "sigma", (0.0, -1.0, np.inf)),
        (Roar, "weight", (0.0,)),
    ):
        for value in values:
            with pytest.raises(ValueError, match=f"{name} is {value}; "):
                method(**{name: value})
