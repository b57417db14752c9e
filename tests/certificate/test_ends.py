"""What is certified and checked at the very ends: of regions, limits, probabilities, and where rounding decides."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.linear_model import LinearRegression
from sklearn.neural_network import MLPClassifier
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from harness.certificate import Ball, Certificate, Checker
from harness.core.classifier import Classifier
from harness.core.errors import UnsupportedError
from harness.core.explanation import Status
from harness.core.inputs import Affine, space_inputs
from harness.core.method import Deadline
from harness.core.problem import Problem
from harness.core.space import Feature, Space
from harness.core.target import Interval, Label
from harness.core.wording import BROKEN, HOLDS
from harness.evaluation.regions import verdict
from harness.models.votes import VotingForestClassifier
from methods.robust import Robust

UNIT = Space(tuple(Feature(name, "continuous", scale=(0, 1), bounds=(0, 1)) for name in "ab"))


def network(inner: np.ndarray, shifts: tuple[float, float], outer: tuple[float, float], constant: float) -> Classifier:
    """A network of two ReLUs with these weights."""
    rows = np.random.default_rng(0).random((50, 2))
    model: Any = MLPClassifier((2,), max_iter=500, random_state=0).fit(rows, rows[:, 0] > 0.5)
    model.coefs_ = [inner, np.array(outer)[:, None]]
    model.intercepts_ = [np.array(shifts), np.array([constant])]
    return Classifier(model, space_inputs(UNIT), classes=("no", "yes"))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("norm", ["linf", "l2"])
def test_limits_take_points_off_a_ball(norm: str) -> None:
    """a + .1 + .001 b + .005 is above 0 wherever a and b are within their limits, and 0 at a = -.1055 without."""
    model = network(np.eye(2), (5.0, 5.0), (1.0, 0.001), -4.9)
    row, units, limits = {"a": 0.05, "b": 0.5}, {"a": 1.0, "b": 1.0}, {"a": (0.0, 1.0), "b": (0.0, 1.0)}
    checker = Checker(UNIT, model, Label("yes"))
    free, limited = (checker.certify(row, Ball(norm, units, ends), 2.0) for ends in ({}, limits))
    assert free.violated == pytest.approx(0.1555, abs=5e-4)
    assert (limited.radius, limited.violated) == (2.0, math.inf)


@pytest.mark.parametrize("steep", [1e8, 3e8])
def test_a_feature_at_its_end_leaves_the_others_their_slope(steep: float) -> None:
    """a falls to 0, and b from 1 to .5: sqrt(1.25) away, though b is a hundred-millionth as steep."""
    model = LinearRegression().fit(np.eye(2), [0.0, 1.0])
    model.coef_, model.intercept_ = np.array([steep, 1.0]), 0.0
    ball = Ball("l2", {"a": 1.0, "b": 1.0}, {"a": (0.0, 1.0), "b": (0.0, 1.0)})
    found = Checker(UNIT, Classifier(model, space_inputs(UNIT)), Interval(0.5)).certify({"a": 1.0, "b": 1.0}, ball)
    assert 0.999 * math.sqrt(1.25) < found.radius <= math.sqrt(1.25)  # the score's own rounding is a part of 1e8


def test_a_radius_is_the_largest_relative_to_where_all_is_not_valid() -> None:
    assert Certificate(3.0 * (1 - 1e-6), 3.0).exact
    assert not Certificate(3.0 * (1 - 2e-6), 3.0).exact


def test_ties_that_the_model_accepts_do_not_end_a_search() -> None:
    """Ten trees vote five to five at a hundred points, which the first class wins: what lies behind is looked at."""
    space = Space(tuple(Feature(f"f{k}", "continuous", scale=(0, 1), bounds=(0, 1)) for k in range(6)))
    rng = np.random.default_rng(0)
    rows, noise = rng.random((400, 6)), rng.normal(size=400)
    forest = VotingForestClassifier(10, max_depth=6, random_state=0)
    forest.fit(rows, (rows[:, 0] + rows[:, 1] * rows[:, 2] + 0.4 * noise > 0.7).astype(int))
    checker = Checker(space, Classifier(forest, space_inputs(space), classes=(0, 1)), Label(0))
    first = rows[forest.predict(rows) == 0][:40]
    for row in (dict(zip(space.names, values, strict=True)) for values in first.tolist()):
        assert checker.certify(row, Ball.scaled(space, "linf"), 1.0, nodes=200_000).exact


@pytest.mark.filterwarnings("ignore")
def test_a_ball_is_asked_about_where_a_probability_is_1() -> None:
    """Whose log odds are infinite: 200 relu(a) - 100, from a = .9."""
    model, rho = network(np.eye(2), (0.0, 0.0), (200.0, 0.0), -100.0), 0.05
    for a, expected in ((0.9, HOLDS), (0.52, BROKEN)):
        row, away = {"a": a, "b": 0.5}, rho / math.sqrt(2)
        region = {name: (value - away, value + away) for name, value in row.items()}
        assert verdict(UNIT, model, Label("yes"), row, region, {"rho": rho, "norm": "l2"}) == expected


def test_a_region_that_begins_at_a_threshold_has_its_low_side_too() -> None:
    """Invalid is a <= 30 and 49 < b <= 53, in a region of a from 30 on."""
    grid = np.array([(a, b) for a in (25, 27, 29, 31, 33, 35) for b in range(0, 101, 2)], dtype=float)
    inside = (grid[:, 0] < 30) & (grid[:, 1] > 49) & (grid[:, 1] < 53)
    settings: dict[str, Any] = {"max_iter": 60, "learning_rate": 0.5, "min_samples_leaf": 1, "max_leaf_nodes": 8}
    model = HistGradientBoostingRegressor(**settings, early_stopping=False).fit(grid, np.where(inside, 0.0, 10.0))
    assert model.predict([[30.0, 51.0]])[0] < 5 < model.predict([[30.0001, 51.0]])[0]
    features = (("a", (0, 60), (30, 60)), ("b", (0, 100), (0, 100)))
    space = Space(tuple(Feature(name, "continuous", scale=scale, bounds=ends) for name, scale, ends in features))
    known = Classifier(model, (Affine("a"), Affine("b")))
    row, region = {"a": 30.0, "b": 20.0}, {"a": (30.0, 36.0), "b": (10.0, 90.0)}
    assert verdict(space, known, Interval(low=5.0), row, region) == BROKEN
    assert verdict(space, known, Interval(low=5.0), row, region | {"b": (10.0, 48.0)}) == HOLDS


@pytest.mark.parametrize("model", [DecisionTreeClassifier(max_depth=6), HistGradientBoostingClassifier(max_iter=8)])
def test_trees_that_tell_gaps_apart_are_refused(model: Any) -> None:
    """As programs refuse them: no number lies on the other side of such a split."""
    rows = np.random.default_rng(0).uniform(0, 10, (200, 2))
    labels = (rows[:, 1] > 8).astype(int)
    rows[:60, 0], labels[:60] = np.nan, 1
    space = Space(tuple(Feature(name, "continuous", scale=(0, 10), bounds=(0, 10)) for name in "ab"))
    known = Classifier(model.fit(rows, labels), (Affine("a"), Affine("b")), classes=("no", "yes"))
    with pytest.raises(UnsupportedError, match="splits on missing values"):
        Checker(space, known, Label("no")).certify({"a": 2.0, "b": 2.0}, Ball.scaled(space, "linf"))


@pytest.mark.parametrize("steps", [10, 60])
def test_a_row_whose_leaves_are_ties_is_not_ruled_out(steps: int) -> None:
    """Each leaf is asked about, as its 5.0 is the least that is wanted; the hull's only wanted row is robust."""
    features = Feature("b", "continuous", scale=(0, 200), bounds=(0, 200)), Feature("c", "categorical", ("x", "y"))
    space, numbers = Space(features), np.arange(201.0)
    rows = space.frame([{"b": float(b), "c": c} for c in "xy" for b in numbers])
    values = np.where(rows["c"] == "x", 0.0, 5.0 + rows["b"] % 2)
    known = Classifier(DecisionTreeRegressor().fit(space.encode(rows), values), space_inputs(space))
    train = space.frame([{"b": 100.0, "c": "y"}, {"b": 20.0, "c": "x"}, {"b": 180.0, "c": "x"}])
    problem = Problem(space, known, train, np.array([5.0, 0.0, 0.0]), Interval(low=5.0))
    method = Robust(rho=steps / 200, hull="hard", norm="linf", algorithm="cells")
    factual = space.frame([{"b": 90.0, "c": "x"}])
    (answer,) = method.fit(problem).explain(factual, 1, np.random.default_rng(0), Deadline.after(20)).answers
    assert (answer.status, answer.row) == (Status.OPTIMAL, {"b": 100.0, "c": "y"})
