"""The checker's verdict on regions: exact, by other algorithms than the certificate of methods."""

from __future__ import annotations

import ast
import os
import warnings
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.ensemble import (
    AdaBoostClassifier,
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier

from harness import certificate
from harness.certificate import Ball, Certificate, Checker
from harness.core.classifier import Classifier
from harness.core.explanation import Answer, Status
from harness.core.inputs import space_inputs
from harness.core.space import Feature, Space
from harness.core.target import Interval, Label, Probability, Target
from harness.core.tolerances import DECODING
from harness.core.wording import BROKEN, HOLDS, UNCHECKED
from harness.evaluation import checker, region_box, region_network, region_trees, regions, weights
from harness.evaluation.regions import verdict
from harness.store.rows import answer_row

SPACE = Space(
    (
        *(Feature(name, "continuous", scale=(-2.0, 3.0), bounds=(-2.0, 3.0)) for name in "abcd"),
        Feature("n", "integer", scale=(0, 9), bounds=(0, 9)),
        Feature("city", "categorical", ("Bonn", "Rom", "Ulm")),
    )
)
NUMBERS = "abcdn"
MODELS: dict[str, Any] = {
    "lr": LogisticRegression(C=10),
    "svm": LinearSVC(),
    "cart": DecisionTreeClassifier(max_depth=6, random_state=0),
    "rf": RandomForestClassifier(20, max_depth=5, random_state=0),
    "extra": ExtraTreesClassifier(12, max_depth=5, random_state=0),
    "gbm": GradientBoostingClassifier(n_estimators=25, max_depth=3, random_state=0),
    "hgb": HistGradientBoostingClassifier(max_iter=15, max_leaf_nodes=8),
    "mlp": MLPClassifier((12,), max_iter=600, random_state=0),
    "mlp_deep": MLPClassifier((8, 6), max_iter=600, random_state=1),
}
NUMERIC: dict[str, Any] = {
    "ridge": Ridge(),
    "rf": RandomForestRegressor(10, max_depth=4, random_state=0),
    "mlp": MLPRegressor(hidden_layer_sizes=(8,), max_iter=600, random_state=0),
}


@cache
def rows() -> tuple[Any, np.ndarray]:
    """300 rows and a merit of each."""
    rng = np.random.default_rng(0)
    frame = SPACE.frame(
        {**dict(zip("abcd", rng.uniform(-2, 3, 4), strict=True)), "n": int(rng.integers(10)), "city": city}
        for city in rng.choice(["Bonn", "Rom", "Ulm"], 300)
    )
    merit = frame["a"] * frame["b"] + frame["c"] - 0.3 * frame["n"] + (frame["city"] == "Rom") + np.sin(2 * frame["d"])
    return frame, merit.to_numpy()


@cache
def classified(name: str, classes: int = 2) -> Classifier:
    frame, merit = rows()
    codes = np.digitize(merit, np.quantile(merit, np.arange(1, classes) / classes))
    fitted = type(MODELS[name])(**MODELS[name].get_params()).fit(SPACE.encode(frame), codes)
    return Classifier(fitted, space_inputs(SPACE), classes=("low", "middle", "high")[:classes])


def boxed(row: dict[str, Any], size: float) -> dict[str, tuple[float, float]]:
    """A box of this radius in scaled units around a row; categories have none."""
    return {name: (row[name] - size * SPACE[name].range, row[name] + size * SPACE[name].range) for name in NUMBERS}


def questions(classifier: Classifier, count: int) -> list[tuple[dict[str, Any], Target]]:
    """Rows, each with the class that it is in as target."""
    frame = rows()[0]
    return [
        (frame.iloc[[place]].to_dict("records")[0], Label(classifier.predict(frame.iloc[[place]])[0]))
        for place in range(0, 7 * count, 7)
    ]


@pytest.fixture
def _no_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave the search to the algorithms: chance finds nothing."""
    monkeypatch.setattr(regions, "DRAWS", 0)


@pytest.mark.usefixtures("_no_draws")
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.every(3)
def test_a_region_holds_up_to_the_largest_radius(name: str, classes: int) -> None:
    """Which another search, the certificate of the methods, knows; a little beyond it the region is broken."""
    classifier, ball = classified(name, classes), Ball.scaled(SPACE, "linf")
    found = 0
    for row, target in questions(classifier, 6):
        radius = Checker(SPACE, classifier, target).certify(row, ball, within=0.6).radius
        assert verdict(SPACE, classifier, target, row, boxed(row, 0.999 * radius)) == HOLDS
        if radius < 0.6:
            assert verdict(SPACE, classifier, target, row, boxed(row, 1.001 * radius + 1e-6)) == BROKEN
            found += 1
    assert found >= 3


@pytest.mark.usefixtures("_no_draws")
@pytest.mark.parametrize("name", NUMERIC)
def test_an_interval_of_a_prediction_has_two_ends(name: str) -> None:
    frame, merit = rows()
    fitted = NUMERIC[name].fit(SPACE.encode(frame), merit)
    classifier, ball = Classifier(fitted, space_inputs(SPACE)), Ball.scaled(SPACE, "linf")
    for place in (0, 5, 9):
        row = frame.iloc[[place]].to_dict("records")[0]
        value = float(classifier.predict(frame.iloc[[place]])[0])
        for target in (Interval(value - 0.2, value + 0.7), Interval(value - 0.7, value + 0.2)):
            radius = Checker(SPACE, classifier, target).certify(row, ball, within=0.6).radius
            assert verdict(SPACE, classifier, target, row, boxed(row, 0.999 * radius)) == HOLDS
            assert verdict(SPACE, classifier, target, row, boxed(row, 1.001 * radius + 1e-6)) == BROKEN


@pytest.mark.usefixtures("_no_draws")
@pytest.mark.parametrize("label", ["low", "high"])
def test_a_probability_of_either_class_has_two_ends(label: str) -> None:
    """A line of one coefficient: where the probability passes the ends is known, on both sides."""
    space = Space((Feature("x", "continuous", scale=(-9.0, 9.0)),))
    fitted = LogisticRegression().fit([[-1.0], [1.0]], [0, 1])
    fitted.coef_, fitted.intercept_ = np.array([[18.0]]), np.array([-9.0])  # of x scaled to 0 and 1: the score is x
    classifier = Classifier(fitted, space_inputs(space), classes=("low", "high"))
    target = Probability(label, 0.25, 0.6)
    ends = sorted((1.0 if label == "high" else -1.0) * np.log(share / (1 - share)) for share in (0.25, 0.6))
    for low, high, word in ((0.0, 0.0, HOLDS), (-0.01, 0.0, BROKEN), (0.0, 0.01, BROKEN)):
        for inside in (1e-6, -0.5 * DECODING * 18.0):  # ends may be off by as much as decoding moves them
            region = {"x": (ends[0] + inside + low, ends[1] - inside + high)}
            assert verdict(space, classifier, target, {"x": float(np.mean(ends))}, region) == word


@pytest.mark.usefixtures("_no_draws")
@pytest.mark.parametrize("threshold", [0.7, 0.3])
def test_a_threshold_between_two_inputs_of_single_precision(threshold: float) -> None:
    """The last input on its left is the largest number of single precision up to it, whichever way it rounds."""
    space = Space((Feature("x", "continuous", scale=(0.0, 1.0)),))
    fitted = DecisionTreeClassifier(max_depth=1).fit([[0.0], [1.0]], [1, 0])
    fitted.tree_.threshold[0] = threshold
    classifier = Classifier(fitted, space_inputs(space), classes=("low", "high"))
    near = np.float32(threshold)
    last = near if float(near) <= threshold else np.nextafter(near, np.float32(0))
    first = np.nextafter(last, np.float32(1))
    here, there = {"x": float(last)}, {"x": float(first)}
    assert classifier.predict(space.frame([here, there])).tolist() == ["high", "low"]
    assert verdict(space, classifier, Label("high"), here, {"x": (float(last), float(last))}) == HOLDS
    assert verdict(space, classifier, Label("low"), there, {"x": (float(first), float(first))}) == HOLDS
    assert verdict(space, classifier, Label("high"), here, {"x": (float(last), float(first))}) == BROKEN


@pytest.mark.usefixtures("_no_draws")
def test_the_last_input_of_a_leaf_is_in_it() -> None:
    """A box that begins there meets the leaf: above y = 0.5 it is the one that is not wanted."""
    space = Space(tuple(Feature(name, "continuous", scale=(0.0, 1.0)) for name in "xy"))
    corners = [[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]
    fitted = DecisionTreeClassifier(random_state=0).fit(corners, [1, 0, 1, 1])
    fitted.tree_.threshold[fitted.tree_.feature == 0] = 0.7  # between two numbers of single precision
    classifier = Classifier(fitted, space_inputs(space), classes=("low", "high"))
    last = float(np.float32(0.7))
    row, beside = {"x": last, "y": 0.2}, {"x": last, "y": 0.8}
    assert classifier.predict(space.frame([row, beside])).tolist() == ["high", "low"]
    for first, word in ((last, BROKEN), (float(np.nextafter(np.float32(last), np.float32(1))), HOLDS)):
        region = {"x": (first, 0.9), "y": (0.0, 1.0)}
        assert verdict(space, classifier, Label("high"), {**row, "x": first}, region) == word


def examined(classifier: Classifier, row: dict[str, Any], target: Target, size: float) -> dict[str, Any]:
    """What the checker says of an answer that is its factual's neighbour, with a region of this radius."""
    answer = Answer(Status.OPTIMAL, row, region=boxed(row, size))
    factual = SPACE.frame([{**row, "a": row["a"] + 1e-3}])
    return checker.examine(answer_row(0, 1, answer), factual, SPACE, classifier, target, None)


@pytest.mark.parametrize("name", MODELS)
def test_a_certificate_that_wrongly_says_yes_is_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever a method's certificate believes to be proven, the checker finds the invalid point."""
    classifier = classified(name)
    radii = []
    for row, target in questions(classifier, 4):
        radius = Checker(SPACE, classifier, target).certify(row, Ball.scaled(SPACE, "linf"), within=0.5).radius
        radii.append((row, target, radius))
    monkeypatch.setattr(Checker, "certify", lambda *_, within=1.0, **__: Certificate(within, np.inf))
    monkeypatch.setattr(certificate, "checker", Checker)
    for row, target, radius in radii:
        sound, broken = (examined(classifier, row, target, size) for size in (0.99 * radius, 1.05 * radius + 1e-3))
        assert (sound["region"], sound["limits"]) == (HOLDS, [])
        assert (broken["region"], broken["limits"], broken["verdict"]) == (BROKEN, ["region"], "beyond its limits")


def test_no_code_is_shared_with_the_certificate() -> None:
    for module in (regions, region_box, region_network, region_trees, weights, checker):
        tree = ast.parse(Path(str(module.__file__)).read_text("utf-8"))
        named = {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
        named |= {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
        assert not any(name.startswith(("harness.certificate", "methods")) for name in named)


@pytest.mark.parametrize(
    "estimator",
    [
        SVC(),
        AdaBoostClassifier(n_estimators=5, random_state=0),
        MLPClassifier((4,), activation="tanh", random_state=0),
    ],
)
def test_what_nothing_settles_is_not_checked(estimator: Any) -> None:
    """A model of no known family: never called proven, but an invalid point that chance meets counts."""
    frame, merit = rows()
    classifier = Classifier(estimator.fit(SPACE.encode(frame), merit > 0), space_inputs(SPACE), classes=("low", "high"))
    row, target = questions(classifier, 1)[0]
    small, large = (examined(classifier, row, target, size) for size in (1e-6, 0.9))
    assert (small["region"], small["verdict"]) == (UNCHECKED, "accepted")
    assert (large["region"], large["verdict"]) == (BROKEN, "beyond its limits")


@pytest.mark.parametrize(("name", "module"), [("rf", region_trees), ("mlp_deep", region_network)])
def test_a_limit_that_is_too_small_is_said(name: str, module: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    classifier = classified(name)
    monkeypatch.setattr(module, "NODES", 0)
    said = {examined(classifier, row, target, 0.04)["region"] for row, target in questions(classifier, 8)}
    assert UNCHECKED in said


def test_the_solver_prints_nothing(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    """What compiled code writes past Python's streams, as HiGHS was seen to."""
    solve, solved = region_network.milp, 0

    def loud(*args: Any, **more: Any) -> Any:
        nonlocal solved
        solved += 1
        os.write(1, b"of the solver's own")
        return solve(*args, **more)

    monkeypatch.setattr(region_network, "milp", loud)
    classifier = classified("mlp_deep")
    for row, target in questions(classifier, 8):
        examined(classifier, row, target, 0.04)
    assert solved
    assert capfd.readouterr().out == ""


def test_a_region_beside_its_row_is_broken() -> None:
    classifier = classified("lr")
    row, target = questions(classifier, 1)[0]
    beside = {name: (high + 1.0, high + 2.0) for name, (_, high) in boxed(row, 0.1).items()}
    assert verdict(SPACE, classifier, target, row, beside) == BROKEN


def test_a_region_beside_its_row_in_one_number_is_broken() -> None:
    """Above x = 0.5 all is valid: a region around the row holds, one from 0.8 does not, as the row's x is 0.7."""
    space = Space(tuple(Feature(name, "continuous", scale=(0.0, 1.0)) for name in "xy"))
    fitted = DecisionTreeClassifier(max_depth=1).fit([[0.0, 0.0], [1.0, 0.0]], [0, 1])
    classifier, row = Classifier(fitted, space_inputs(space), classes=("low", "high")), {"x": 0.7, "y": 0.5}
    for least, word in ((0.6, HOLDS), (0.8, BROKEN)):
        region = {"x": (least, 0.9), "y": (0.4, 0.6)}
        assert verdict(space, classifier, Label("high"), row, region) == word


@pytest.mark.parametrize("label", ["low", "high"])
def test_a_probability_with_one_end_is_of_its_own_class(label: str) -> None:
    """At least 0.6 for a class: the region ends there, and not where the other class has so much."""
    space = Space((Feature("x", "continuous", scale=(-9.0, 9.0)),))
    fitted = LogisticRegression().fit([[-1.0], [1.0]], [0, 1])
    fitted.coef_, fitted.intercept_ = np.array([[18.0]]), np.array([-9.0])  # of x scaled to 0 and 1: the score is x
    classifier = Classifier(fitted, space_inputs(space), classes=("low", "high"))
    way = 1.0 if label == "high" else -1.0
    end, far = way * np.log(0.6 / 0.4), way * 3.0
    for beyond, word in ((0.001, HOLDS), (-0.001, BROKEN)):
        region = {"x": tuple(sorted((end + way * beyond, far)))}
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(regions, "DRAWS", 0)
            assert verdict(space, classifier, Probability(label, 0.6, 1.0), {"x": 0.5 * (end + far)}, region) == word


def squashed(weights: list[float], intercept: float) -> tuple[Space, Classifier]:
    """``high`` where ``tanh(weights @ x + intercept) < 0``, of a family that no algorithm settles."""
    space = Space(tuple(Feature(f"x{k}", "continuous", scale=(0.0, 1.0)) for k in range(len(weights))))
    fitted = MLPClassifier((1,), activation="tanh", max_iter=1, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted.fit(np.eye(2, len(weights)), [0, 1])
    fitted.coefs_ = [np.array(weights)[:, None], np.array([[-1.0]])]
    fitted.intercepts_ = [np.array([intercept]), np.array([0.0])]
    return space, Classifier(fitted, space_inputs(space), classes=("low", "high"))


def test_corners_are_asked_about_whatever_the_model() -> None:
    """Of a box of five numbers, only what is next to one corner is refused, and no algorithm knows the model."""
    space, classifier = squashed([1.0] * 5, -4.9)
    row, region = dict.fromkeys(space.names, 0.5), dict.fromkeys(space.names, (0.0, 1.0))
    assert verdict(space, classifier, Label("high"), row, region) == BROKEN
    assert verdict(space, classifier, Label("high"), row, dict.fromkeys(space.names, (0.0, 0.98))) == UNCHECKED


def linear(weights: np.ndarray, label: str) -> tuple[Space, Classifier]:
    """A score of ``weights @ (x - 0.5)`` for a class."""
    space = Space(tuple(Feature(f"x{k}", "continuous", scale=(0.0, 1.0)) for k in range(len(weights))))
    fitted, way = LogisticRegression().fit(np.eye(2, len(weights)), [0, 1]), 1.0 if label == "high" else -1.0
    fitted.coef_, fitted.intercept_ = way * weights[None], np.array([-0.5 * way * weights.sum()])
    return space, Classifier(fitted, space_inputs(space), classes=("low", "high"))


@pytest.mark.parametrize("label", ["low", "high"])
def test_a_ball_is_asked_about_along_the_slope_on_either_side(label: str) -> None:
    """Of twenty numbers, where neither an axis nor chance leads as far down as the slope does."""
    weights = 0.5 ** np.arange(20.0)
    space, classifier = linear(weights, label)
    row = dict.fromkeys(space.names, 0.5) | {"x0": 0.6}  # 0.1 above the threshold
    for share, word in ((0.98, HOLDS), (1.02, BROKEN)):
        rho = share * 0.1 / np.linalg.norm(weights)
        region = {name: (value - rho / np.sqrt(20), value + rho / np.sqrt(20)) for name, value in row.items()}
        assert verdict(space, classifier, Label(label), row, region, {"rho": rho, "norm": "l2"}) == word


def test_the_box_in_a_ball_is_as_wide_as_its_root_says() -> None:
    """Of four numbers half the radius, and no less."""
    space, classifier = linear(np.ones(4), "high")
    row = dict.fromkeys(space.names, 0.9)
    for share, word in ((0.5, HOLDS), (0.49, BROKEN)):
        region = dict.fromkeys(space.names, (0.9 - share * 0.1, 0.9 + share * 0.1))
        assert verdict(space, classifier, Label("high"), row, region, {"rho": 0.1, "norm": "l2"}) == word


def test_a_margin_that_is_not_settled_is_not_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of three classes there are two margins: the second one holds, of the first one nothing is known."""
    classifier = classified("mlp_deep", 3)
    row, target = questions(classifier, 1)[0]
    for answers, word in (([None, True], UNCHECKED), ([True, None], UNCHECKED), ([True, True], HOLDS)):
        told = iter(answers)
        monkeypatch.setattr(region_network, "_worst", lambda *_, told=told: next(told))
        assert verdict(SPACE, classifier, target, row, boxed(row, 1e-6)) == word


@pytest.mark.parametrize("name", ["cart", "gbm", "hgb"])
def test_a_sum_that_says_invalid_is_no_proof_where_the_model_accepts(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where no number lies between two thresholds: then nothing is settled."""
    classifier = classified(name)
    monkeypatch.setattr(region_box.Box, "invalid", lambda *_: False)
    said = [verdict(SPACE, classifier, target, row, boxed(row, 0.9)) for row, target in questions(classifier, 3)]
    assert said == [UNCHECKED] * 3


def test_a_bound_below_zero_proves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """By more than the solver's tolerances, where the point that it found is valid."""
    classifier, solve = classified("mlp_deep"), region_network.milp
    row, target = questions(classifier, 1)[0]
    margin = abs(float(classifier.raw(SPACE.frame([row]))[0]) - classifier.raw_threshold)

    def ended(cost: np.ndarray, *, below: float, **more: Any) -> Any:
        found = solve(cost, **more)
        found.fun = found.mip_dual_bound = found.fun - margin - below
        return found

    for below, word in ((0.0, HOLDS), (3e-4, UNCHECKED)):
        monkeypatch.setattr(region_network, "milp", partial(ended, below=below))
        assert verdict(SPACE, classifier, target, row, boxed(row, 1e-8)) == word
