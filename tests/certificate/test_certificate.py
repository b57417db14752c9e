"""Certified radii against grids, sampling and closed forms: the checker of regions."""

from __future__ import annotations

import ast
import itertools
import math
from collections.abc import Iterator
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog
from sklearn.ensemble import (
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier
from support.plane import SPACE, rows

from harness.certificate import Ball, Checker, perturbed
from harness.certificate.balls import Budget
from harness.certificate.network import Attacker
from harness.certificate.radius import deviation, probability, radius
from harness.core.classifier import Classifier
from harness.core.errors import UnsupportedError
from harness.core.inputs import space_inputs
from harness.core.space import Actionability, Feature, Kind, Space
from harness.core.target import Interval, Label, Probability
from harness.solvers.simplex import INFEASIBLE, OPTIMAL, minimum

MODELS: dict[str, Any] = {
    "lr": LogisticRegression(C=100),
    "svm": LinearSVC(C=10),
    "cart": DecisionTreeClassifier(max_depth=5, random_state=0),
    "rf": RandomForestClassifier(8, max_depth=4, random_state=0),
    "extra": ExtraTreesClassifier(8, max_depth=4, random_state=0),
    "gbm": GradientBoostingClassifier(n_estimators=15, max_depth=2, random_state=0),
    "hgb": HistGradientBoostingClassifier(max_iter=10, max_leaf_nodes=6),
    "mlp": MLPClassifier((10,), max_iter=2000, random_state=0),
    "mlp_deep": MLPClassifier((6, 6), max_iter=2000, random_state=1),
}


@cache
def fitted(name: str) -> Classifier:
    frame, labels = rows()
    return Classifier(MODELS[name].fit(SPACE.encode(frame), labels), space_inputs(SPACE), classes=("no", "yes"))


def inside(norm: str) -> np.ndarray:
    """Moves of the unit ball, a grid, and of its border, dense."""
    grid = np.stack(np.meshgrid(*[np.linspace(-1, 1, 81)] * 2), axis=-1).reshape(-1, 2)
    angle = np.linspace(0, 2 * np.pi, 8001)
    border = np.column_stack([np.cos(angle), np.sin(angle)])
    if norm == "linf":
        return np.concatenate([grid, border / np.abs(border).max(axis=1, keepdims=True)])
    return np.concatenate([grid[np.linalg.norm(grid, axis=1) <= 1], border])


@pytest.mark.parametrize("norm", ["linf", "l2"])
@pytest.mark.parametrize("name", MODELS)
def test_the_radius_is_the_largest(name: str, norm: str) -> None:
    """Within the certified radius every sampled point is valid; 1 % beyond it some point is not."""
    classifier, ball, moves = fitted(name), Ball.scaled(SPACE, norm), inside(norm)
    frame, _ = rows()
    for place in range(0, 40, 5):
        row = frame.iloc[[place]]
        target = Label(classifier.predict(row)[0])
        found = Checker(SPACE, classifier, target).certify(row.iloc[0].to_dict(), ball)
        assert found.exact
        here = SPACE.encode(row)[0]
        assert target.holds(classifier, SPACE.decode(here + moves * found.radius * (1 - 2e-6))).all()
        assert not target.holds(classifier, SPACE.decode(here + moves * found.radius * 1.01)).all()


@pytest.mark.parametrize("name", MODELS)
def test_violated_or_proven(name: str) -> None:
    """Asked for less than the radius, the certificate says that much; asked for more, it finds an invalid point."""
    classifier, ball = fitted(name), Ball.scaled(SPACE, "linf")
    row = rows()[0].iloc[0].to_dict()
    judge = Checker(SPACE, classifier, Label(classifier.predict(rows()[0].iloc[[0]])[0]))
    whole = judge.certify(row, ball).radius
    below, above = judge.certify(row, ball, within=0.9 * whole), judge.certify(row, ball, within=1.1 * whole)
    assert below.radius == 0.9 * whole
    assert math.isinf(below.violated)
    assert above.violated == pytest.approx(whole, rel=1e-5)


@pytest.mark.parametrize("name", ["lr", "rf", "mlp"])
def test_an_invalid_row_has_radius_zero(name: str) -> None:
    """In any ball, also in one in which nothing may move."""
    classifier = fitted(name)
    row = rows()[0].iloc[[3]]
    wrong = Label("no" if classifier.predict(row)[0] == "yes" else "yes")
    judge = Checker(SPACE, classifier, wrong)
    for ball in (Ball.scaled(SPACE, "linf"), Ball.scaled(SPACE, "linf", SPACE.names)):
        found = judge.certify(row.iloc[0].to_dict(), ball)
        assert found.radius == found.violated == 0.0


def test_features_that_stay_put() -> None:
    """Immutable features, categories and those named are not perturbed; where none is left, the radius is infinite."""
    space = SPACE.replace({"a": {"actionability": Actionability.IMMUTABLE}})
    assert perturbed(space) == ("b",)
    assert perturbed(space, ["b"]) == ()
    classifier, row = fitted("cart"), rows()[0].iloc[[0]]
    judge = Checker(space, classifier, Label(classifier.predict(row)[0]))
    assert math.isinf(judge.certify(row.iloc[0].to_dict(), Ball.scaled(space, "linf", ["b"])).radius)


def test_limits_cut_the_ball() -> None:
    """What may not be moved to is not looked at."""
    for name in ("lr", "cart", "mlp"):
        classifier, row = fitted(name), rows()[0].iloc[[0]]
        judge = Checker(SPACE, classifier, Label(classifier.predict(row)[0]))
        here = row.iloc[0].to_dict()
        ball = Ball.scaled(SPACE, "linf")
        reach = judge.certify(here, ball).radius
        near = {
            f.name: (here[f.name] - reach / 2 * f.range, here[f.name] + reach / 2 * f.range) for f in SPACE.features
        }
        assert judge.certify(here, Ball("linf", ball.units, near), within=1.0).radius == 1.0


@pytest.mark.parametrize("signs", list(itertools.product((-1, 1), repeat=2)))
def test_limits_to_one_side_leave_the_other(signs: tuple[int, int]) -> None:
    """A quarter of the ball holds as far as a dense grid of it."""
    for name in ("lr", "cart", "mlp"):
        classifier, row = fitted(name), rows()[0].iloc[[0]]
        here, label = row.iloc[0].to_dict(), classifier.predict(row)[0]
        ends = [
            (here[n], math.inf) if sign > 0 else (-math.inf, here[n])
            for n, sign in zip(SPACE.names, signs, strict=True)
        ]
        quarter = Ball("linf", Ball.scaled(SPACE, "linf").units, dict(zip(SPACE.names, ends, strict=True)))
        reached = Checker(SPACE, classifier, Label(label)).certify(here, quarter, within=1.0).radius
        moves = np.abs(inside("linf")) * signs
        right = [
            classifier.predict(SPACE.decode(SPACE.encode(row) + size * reached * moves)) == label
            for size in (0.99, 1.01)
        ]
        assert right[0].all()
        assert reached == 1.0 or not right[1].all()


def test_thresholds_to_the_last_bit() -> None:
    """A point on a threshold, and its float64 neighbours beyond, are separated as the library separates them."""
    tree = DecisionTreeClassifier(max_depth=1).fit([[0.1], [0.2]], [0, 1])
    space = Space((Feature("a", Kind.CONTINUOUS, scale=(0, 1)),))
    classifier = Classifier(tree, space_inputs(space), classes=("no", "yes"))
    start = float(np.float32(tree.tree_.threshold[0]))
    step = float(np.spacing(np.float32(start)))
    for value in start + np.linspace(-2, 2, 41) * step:
        predicted = classifier.predict(space.frame([{"a": value}]))[0]
        found = Checker(space, classifier, Label(predicted)).certify({"a": value}, Ball.scaled(space, "linf"))
        side = 1 if predicted == "no" else -1
        flipped = classifier.predict(space.frame([{"a": value + side * (found.radius + 1e-15)}]))[0]
        kept = classifier.predict(space.frame([{"a": value + side * (found.radius - 1e-15)}]))[0]
        assert (kept, flipped != predicted) == (predicted, True)


@pytest.mark.parametrize("kind", [GradientBoostingClassifier, HistGradientBoostingClassifier])
def test_boosting_on_numbers_below_zero(kind: Any) -> None:
    """The part of the score that is no tree's is found wherever 0 lies: here above all rows. Against a fine grid."""
    space = Space((Feature("a", Kind.CONTINUOUS, scale=(5, 6)),))
    values = np.linspace(0, 4, 400)
    stripes = ((values > 1) ^ (values > 2) ^ (values > 3.3)).astype(int)
    model = kind(max_depth=3, random_state=0).fit(values[:, None] - 5, stripes)
    classifier = Classifier(model, space_inputs(space), classes=("no", "yes"))
    grid = np.linspace(-1, 5, 60_001)
    predicted = classifier.predict(space.frame({"a": float(value)} for value in grid))
    for value in (0.2, 1.4, 2.9, 3.9):
        own = classifier.predict(space.frame([{"a": value}]))[0]
        found = Checker(space, classifier, Label(own)).certify({"a": value}, Ball.scaled(space, "linf"))
        assert found.radius == pytest.approx(np.abs(grid[predicted != own] - value).min(), abs=2e-4)


def test_ties_are_the_models_own() -> None:
    """A forest whose fractions tie at exactly one half predicts the first class: the tie is valid for it alone."""
    points = np.array([[0.0], [1.0], [2.0], [3.0]])
    members = [DecisionTreeClassifier(max_depth=1).fit(points, labels) for labels in ([0, 0, 1, 1], [0, 1, 1, 1])]
    forest = RandomForestClassifier(2, max_depth=1).fit(points, [0, 0, 1, 1])
    forest.estimators_ = members
    space = Space((Feature("a", Kind.CONTINUOUS, scale=(0, 1)),))
    classifier = Classifier(forest, space_inputs(space), classes=("no", "yes"))
    assert classifier.predict(space.frame([{"a": 1.0}]))[0] == "no"  # between both splits: a tie
    low = Checker(space, classifier, Label("no")).certify({"a": 1.0}, Ball.scaled(space, "linf"))
    high = Checker(space, classifier, Label("yes")).certify({"a": 2.0}, Ball.scaled(space, "linf"))
    assert low.radius == pytest.approx(0.5)
    assert high.radius == pytest.approx(0.5)


def test_several_classes_and_regression() -> None:
    """A point leaves its class, or an interval, at the certified radius."""
    frame, _ = rows()
    encoded = SPACE.encode(frame)
    thirds = np.digitize(encoded.sum(axis=1), [0.7, 1.3])
    three = Classifier(
        RandomForestClassifier(6, max_depth=4, random_state=0).fit(encoded, thirds),
        space_inputs(SPACE),
        ("x", "y", "z"),
    )
    number = Classifier(
        RandomForestRegressor(6, max_depth=4, random_state=0).fit(encoded, encoded.sum(axis=1)), space_inputs(SPACE)
    )
    for classifier, target in (
        (three, Label(three.predict(frame.iloc[[1]])[0])),
        (number, Interval(number.predict(frame.iloc[[1]])[0] - 0.1, number.predict(frame.iloc[[1]])[0] + 0.1)),
    ):
        found = Checker(SPACE, classifier, target).certify(frame.iloc[1].to_dict(), Ball.scaled(SPACE, "linf"))
        moves = inside("linf")
        assert target.holds(classifier, SPACE.decode(encoded[1] + moves * found.radius * (1 - 1e-6))).all()
        assert not target.holds(classifier, SPACE.decode(encoded[1] + moves * found.radius * 1.01)).all()


@pytest.mark.parametrize("label", ["no", "yes"])
@pytest.mark.parametrize(("low", "high"), [(0.0, 0.4), (0.3, 0.9), (0.6, 1.0)])
def test_a_probability_leaves_its_interval_at_the_radius(label: str, low: float, high: float) -> None:
    """Of either class, with one end or two."""
    classifier, target, moves = fitted("lr"), Probability(label, low, high), inside("l2")
    frame, _ = rows()
    held = frame.loc[target.holds(classifier, frame)].iloc[:3]
    assert len(held) == 3
    for place in range(3):
        found = Checker(SPACE, classifier, target).certify(held.iloc[place].to_dict(), Ball.scaled(SPACE, "l2"))
        here = SPACE.encode(held.iloc[[place]])[0]
        assert target.holds(classifier, SPACE.decode(here + moves * found.radius * (1 - 1e-6))).all()
        assert not target.holds(classifier, SPACE.decode(here + moves * found.radius * 1.01)).all()


@pytest.mark.parametrize("layers", [(3,), (4, 3)])
def test_the_euclidean_radius_of_small_networks(layers: tuple[int, ...]) -> None:
    """Within it every sampled point is valid, and 1 % beyond it some point is not."""
    frame, labels = rows()
    network = MLPClassifier(layers, max_iter=2000, random_state=0, learning_rate_init=0.02)
    classifier = Classifier(network.fit(SPACE.encode(frame), labels), space_inputs(SPACE), ("no", "yes"))
    moves, ball = inside("l2"), Ball.scaled(SPACE, "l2")
    assert len(set(classifier.predict(frame))) == 2
    for place in range(0, 40, 10):
        row = frame.iloc[[place]]
        target, here = Label(classifier.predict(row)[0]), SPACE.encode(row)[0]
        found = Checker(SPACE, classifier, target).certify(row.iloc[0].to_dict(), ball)
        assert found.exact
        assert target.holds(classifier, SPACE.decode(here + moves * found.radius * (1 - 2e-6))).all()
        assert not target.holds(classifier, SPACE.decode(here + moves * found.radius * 1.01)).all()


DEEP, YES = "mlp_deep", Label("yes")


@cache
def of_the_plain_network(norm: str) -> list[tuple[dict[str, Any], Any]]:
    """Ten rows with what the certificate says of each."""
    classifier, ball = fitted(DEEP), Ball.scaled(SPACE, norm)
    right = rows()[0].loc[YES.holds(classifier, rows()[0])].head(10).to_dict("records")
    return [(row, Checker(SPACE, classifier, YES).certify(row, ball)) for row in right]


@pytest.mark.parametrize(
    ("first", "last"), [pair for pair in itertools.product([1.0, 1e-6, 1e9], [1e-9, 1.0, 1e6]) if pair != (1.0, 1.0)]
)
def test_a_radius_is_that_of_weights_in_any_unit(first: float, last: float) -> None:
    """Hidden layers, and outputs, multiplied by a factor: the rule is the same."""
    classifier = fitted(DEEP)
    twin = deepcopy(classifier.estimator)
    for layer, factor in enumerate((first, 1.0, last)):
        twin.coefs_[layer] *= factor
        twin.intercepts_[layer] *= factor * (first if layer else 1.0)
    scaled = Classifier(twin, classifier.inputs, classifier.classes)
    for norm in ("linf", "l2"):
        for row, expected in of_the_plain_network(norm):
            found = Checker(SPACE, scaled, YES).certify(row, Ball.scaled(SPACE, norm))
            assert found.radius == pytest.approx(expected.radius, rel=3e-6)
            assert found.violated == pytest.approx(expected.violated, rel=3e-6)


def test_looks_at_the_clock_change_no_radius(monkeypatch: pytest.MonkeyPatch) -> None:
    """After every box instead of every twentieth; of a radius within which several boxes have to be split."""
    classifier, ball = fitted("mlp"), Ball.scaled(SPACE, "linf")
    frame, _ = rows()
    for place in range(0, 40, 5):
        row = frame.iloc[place].to_dict()
        target = Label(classifier.predict(frame.iloc[[place]])[0])
        monkeypatch.setattr("harness.certificate.network.NODES", 20)
        whole = Checker(SPACE, classifier, target).certify(row, ball)
        monkeypatch.setattr("harness.certificate.network.NODES", 1)
        assert Checker(SPACE, classifier, target).certify(row, ball) == whole


@pytest.mark.parametrize("norm", ["linf", "l2"])
def test_whether_all_is_valid_is_asked_once(norm: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the largest radius is not wanted, a network's adversary is called once, and says the same."""
    classifier, ball = fitted("mlp"), Ball.scaled(SPACE, norm)
    asked: list[float] = []
    ask = Attacker.ask
    monkeypatch.setattr(Attacker, "ask", lambda self, radius, budget: asked.append(radius) or ask(self, radius, budget))
    broken = 0
    for place in range(0, 40, 5):
        row = rows()[0].iloc[[place]]
        judge = Checker(SPACE, classifier, Label(classifier.predict(row)[0]))
        whole = judge.certify(row.iloc[0].to_dict(), ball, 0.15)
        asked.clear()
        found = judge.certify(row.iloc[0].to_dict(), ball, 0.15, exact=False)
        assert asked == [0.15]
        assert (found.radius == 0.15) == (whole.radius == 0.15)
        assert found.radius <= whole.radius
        assert found.violated >= whole.violated
        broken += int(whole.radius < 0.15)
    assert broken >= 3


@pytest.mark.parametrize("name", ["rf", "mlp_deep"])
def test_a_count_of_nodes_is_the_same_on_every_machine(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """However slow its clock says it is; fewer nodes prove no more, and far too few less."""
    classifier, ball = fitted(name), Ball.scaled(SPACE, "linf")
    monkeypatch.setattr("harness.certificate.trees.NODES", 3)
    monkeypatch.setattr("harness.certificate.network.NODES", 1)
    unit = Budget.PROGRAM if name == "mlp_deep" else 1
    less = 0
    for place in range(0, 40, 5):
        row = rows()[0].iloc[[place]]
        judge = Checker(SPACE, classifier, Label(classifier.predict(row)[0]))
        asked = row.iloc[0].to_dict(), ball, 1.0
        whole = judge.certify(*asked)
        radii = [judge.certify(*asked, nodes=nodes * unit).radius for nodes in (1, 30, 10**6)]
        monkeypatch.setattr("harness.certificate.balls.time.monotonic", itertools.count(0, 10**6).__next__)
        again = [judge.certify(*asked, nodes=nodes * unit).radius for nodes in (1, 30, 10**6)]
        monkeypatch.undo()
        monkeypatch.setattr("harness.certificate.trees.NODES", 3)
        monkeypatch.setattr("harness.certificate.network.NODES", 1)
        assert radii == again == sorted(radii)
        assert radii[-1] == whole.radius
        less += int(radii[0] < whole.radius)
    assert less


ROOT = Path(__file__).parents[2]


def imported(path: Path) -> set[str]:
    """Every module that a file imports from, at whatever depth of its code."""
    nodes = list(ast.walk(ast.parse(path.read_text())))
    plain = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    return plain | {node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)}


def reached_from(folder: Path) -> Iterator[str]:
    """The modules of this repository that the files of a folder import, and those that these import, and so on."""
    known, open_ = set[str](), [name for path in folder.rglob("*.py") for name in imported(path)]
    while open_:
        name = open_.pop()
        place = ROOT.joinpath(*name.split("."))
        path = place / "__init__.py" if place.is_dir() else place.with_suffix(".py")
        if name not in known and path.exists():
            known.add(name)
            yield name
            open_ += imported(path)


def test_the_checker_and_the_methods_do_not_share_a_search() -> None:
    """The checker reaches no method; methods come through its front door only, and their searches do without it."""
    reached = set(reached_from(ROOT / "harness" / "certificate"))
    assert "harness.certificate.network_kernels" in reached
    assert not {name for name in reached if name.partition(".")[0] == "methods"}
    for path in (ROOT / "methods").rglob("*.py"):
        inner = {name for name in imported(path) if name.startswith("harness.certificate.")}
        # A formula for a radius, and a target as forms of outputs: they search nothing, and the checker has its own.
        inner -= {"harness.certificate.radius", "harness.certificate.margins"}
        assert not inner, f"{path} looks behind the checker's front door: {inner}"
    searches = [
        *(ROOT / "methods" / "cells").glob("*.py"),
        *(
            ROOT / "methods" / "robust" / f"{name}.py"
            for name in ("cells", "ball_kernels", "network", "network_kernels")
        ),
    ]
    assert len(searches) > 4
    for path in searches:
        assert "harness.certificate" not in imported(path), path


def test_an_opaque_model_is_refused() -> None:
    frame, labels = rows()
    classifier = Classifier(KNeighborsClassifier().fit(SPACE.encode(frame), labels), space_inputs(SPACE), ("no", "yes"))
    with pytest.raises(UnsupportedError, match="KNeighborsClassifier"):
        Checker(SPACE, classifier, Label("yes"))


def test_robust_to_the_input_is_not_robust_to_the_model() -> None:
    """A linear model's point that every perturbation leaves valid is invalid after the model is turned a little."""
    rho = 0.05
    model = LogisticRegression().fit([[0.0, 0.0], [0.0, 1.0]], [0, 1])
    model.coef_, model.intercept_ = np.array([[0.0, 1.0]]), np.array([0.0])
    space = Space(tuple(Feature(name, Kind.CONTINUOUS, scale=(0, 1)) for name in ("a", "b")))
    classifier = Classifier(model, space_inputs(space), classes=("no", "yes"))
    point = {"a": -10.0, "b": rho + 1e-6}
    found = Checker(space, classifier, Label("yes")).certify(point, Ball.scaled(space, "linf"))
    assert found.radius >= rho
    model.coef_ = np.array([[0.01, 1.0]])  # no weight moves by more than rho
    assert classifier.predict(space.frame([point]))[0] == "no"


@pytest.mark.parametrize("norm", ["linf", "l2"])
@pytest.mark.parametrize("columns", [1, 4, 34])
def test_radius_and_probability(norm: str, columns: int) -> None:
    """(68)-(73): against sampling, and each the inverse of the others."""
    sigma, p = 0.02, 0.9
    rho = radius(p, sigma, columns, norm)
    noise = np.random.default_rng(0).normal(0.0, sigma, (40_000, columns))
    sizes = np.abs(noise).max(axis=1) if norm == "linf" else np.linalg.norm(noise, axis=1)
    assert np.mean(sizes <= rho) == pytest.approx(p, abs=0.006)
    assert probability(rho, sigma, columns, norm) == pytest.approx(p)
    assert deviation(rho, p, columns, norm) == pytest.approx(sigma)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: radius(1.0, 0.1, 3), "probability is 1.0"),
        (lambda: radius(0.5, 0.0, 3), "sigma is 0.0"),
        (lambda: probability(0.1, 0.1, 0), "0 perturbed columns"),
        (lambda: deviation(-1.0, 0.5, 3), "rho is -1.0"),
        (lambda: radius(0.5, 0.1, 3, "l1"), "norm is 'l1'"),
    ],
)
def test_radius_refuses(call: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()


def test_simplex_against_scipy() -> None:
    """Optimum, proof and infeasibility of small dense linear programs."""
    rng = np.random.default_rng(0)
    met = set()
    for _ in range(120):
        n, m = rng.integers(1, 25, 2)
        matrix = rng.normal(size=(m, n)) * (rng.random((m, n)) < rng.choice([0.3, 1.0]))
        sides, cost = rng.normal(size=m) + rng.choice([0.0, 1.0, -1.0]), rng.normal(size=n)
        low, high = -rng.random(n), rng.random(n)
        status, bound, point, multipliers = minimum(cost, matrix, sides, low, high)
        peer = linprog(cost, matrix, sides, bounds=list(zip(low, high, strict=True)))
        met.add(status)
        assert (multipliers >= 0).all()
        if peer.status == 2:
            assert status == INFEASIBLE
            assert math.isinf(bound)
            continue
        assert status == OPTIMAL
        assert bound == pytest.approx(peer.fun, abs=1e-7)
        assert (matrix @ point <= sides + 1e-7).all()
        assert cost @ point == pytest.approx(bound, abs=1e-6)
    assert met == {OPTIMAL, INFEASIBLE}
