"""How far weights may change: against every corner of the box of weights, and against models drawn from it."""

from __future__ import annotations

from itertools import pairwise, product

import numpy as np
import pytest
from scipy.special import expit
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.tree import DecisionTreeClassifier

from harness.certificate.weights import WeightBox
from harness.core.classifier import Classifier
from harness.core.errors import UnsupportedError
from harness.core.inputs import Affine
from harness.core.target import Interval, Label, Probability, Target
from metrics._example import answers, factual, linear
from metrics.robustness import certified_delta, delta_validity

INPUTS = (Affine("a"), Affine("b"))
POINTS = np.array([[0.7, -1.2], [0.0, 0.4], [-0.3, 0.0], [1.5, 2.0]])
FUNCTIONS = {"relu": lambda s: np.maximum(s, 0), "tanh": np.tanh, "logistic": expit, "identity": lambda s: s}


def network(sizes: tuple[int, ...], seed: int, activation: str = "relu") -> MLPClassifier:
    """A fitted network with weights of our own; the last size is 1 for two classes."""
    rng = np.random.default_rng(seed)
    classes = max(2, sizes[-1])
    model = MLPClassifier(sizes[1:-1], activation=activation, max_iter=1, random_state=seed)
    with pytest.warns(UserWarning, match="Maximum iterations"):
        model.fit(rng.normal(size=(4 * classes, sizes[0])), np.repeat(np.arange(classes), 4))
    model.coefs_ = [rng.normal(size=pair) for pair in pairwise(sizes)]
    model.intercepts_ = [rng.normal(size=size) for size in sizes[1:]]
    return model


def outputs(model: MLPClassifier, changes: np.ndarray, point: np.ndarray) -> np.ndarray:
    """What the network with changed weights computes, one row of changes after another, shape (changes, outputs)."""
    values = np.broadcast_to(point, (len(changes), len(point)))
    for depth, (weights, shifts) in enumerate(zip(model.coefs_, model.intercepts_, strict=True)):
        taken, changes = np.split(changes, [weights.size], axis=1)
        moved, changes = np.split(changes, [shifts.size], axis=1)
        values = FUNCTIONS[model.activation](values) if depth else values
        values = np.einsum("ri,rio->ro", values, weights + taken.reshape(-1, *weights.shape)) + shifts + moved
    return values


def parameters(model: MLPClassifier) -> int:
    return sum(part.size for part in (*model.coefs_, *model.intercepts_))


def margins(model: MLPClassifier, wanted: int, raw: np.ndarray) -> np.ndarray:
    if raw.shape[1] == 1:
        return raw[:, 0] if wanted else -raw[:, 0]
    return raw[:, wanted] - np.delete(raw, wanted, axis=1).max(axis=1)


@pytest.mark.parametrize("activation", FUNCTIONS)
@pytest.mark.parametrize(("sizes", "wanted"), [((2, 2, 1), 1), ((2, 2, 1), 0), ((2, 1, 3), 1)])
def test_one_hidden_layer_is_exact(sizes: tuple[int, ...], wanted: int, activation: str) -> None:
    """The least margin over all corners of the box, which holds the least over the box itself."""
    for seed in range(4):
        model = network(sizes, seed, activation)
        box = WeightBox(Classifier(model, INPUTS, tuple(map(str, model.classes_))), Label(str(wanted)))
        corners = np.array(list(product((-1.0, 1.0), repeat=parameters(model))))
        assert box.exact
        for delta in (0.0, 0.05, 0.6):
            least = [margins(model, wanted, outputs(model, delta * corners, point)).min() for point in POINTS]
            assert box.worst(POINTS, delta) == pytest.approx(least, abs=1e-9)


@pytest.mark.parametrize("wanted", ["0", "1", "2"])
def test_linear_models_of_several_classes_are_exact(wanted: str) -> None:
    """Every rival's weights move as well: all corners of six weights and three intercepts."""
    rng = np.random.default_rng(int(wanted))
    model = LogisticRegression().fit(rng.normal(size=(30, 2)), np.arange(30) % 3)
    model.coef_, model.intercept_ = rng.normal(size=(3, 2)), rng.normal(size=3)
    box = WeightBox(Classifier(model, INPUTS, ("0", "1", "2")), Label(wanted))
    corners = np.array(list(product((-1.0, 1.0), repeat=9)))
    for delta in (0.0, 0.05, 0.6):
        moved = model.coef_ + delta * corners[:, :6].reshape(-1, 3, 2)
        raw = moved @ POINTS.T + (model.intercept_ + delta * corners[:, 6:])[:, :, None]  # corner, class, point
        least = raw[:, int(wanted)] - np.delete(raw, int(wanted), axis=1).max(axis=1)
        assert box.worst(POINTS, delta) == pytest.approx(least.min(axis=0), abs=1e-9)


def test_each_row_has_a_delta_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where rows are taken by blocks, here of two."""
    box = WeightBox(Classifier(network((2, 3, 1), 0), INPUTS, ("0", "1")), Label("1"))
    deltas = np.array([0.3, 0.0, 0.1, 0.2])
    alone = [box.worst(POINTS[[place]], delta)[0] for place, delta in enumerate(deltas)]
    monkeypatch.setattr("harness.certificate.weights.BLOCK", 2 * 6)
    assert box.worst(POINTS, deltas) == pytest.approx(alone, abs=1e-12)


def test_deeper_networks_have_a_bound_below_every_model() -> None:
    rng = np.random.default_rng(0)
    below = []
    for seed in range(5):
        model = network((2, 3, 2, 1), seed)
        box = WeightBox(Classifier(model, INPUTS, ("0", "1")), Label("1"))
        drawn = rng.choice([-0.1, 0.1], size=(4000, parameters(model)))
        least = np.array([outputs(model, drawn, point).min() for point in POINTS])
        bound = box.worst(POINTS, 0.1)
        assert not box.exact
        assert (bound <= least + 1e-12).all()
        below.append(least - bound)
    assert np.median(below) < 0.5  # a bound, and no mere minus infinity


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_linear_models_in_closed_form(fit_intercept: bool) -> None:
    """An intercept that the model has not got stays 0 when it is trained again."""
    rng = np.random.default_rng(1)
    data = rng.normal(size=(60, 2))
    labels = data[:, 0] - data[:, 1] > 0.2
    model = LogisticRegression(fit_intercept=fit_intercept).fit(data, labels)
    box = WeightBox(Classifier(model, INPUTS, ("0", "1"), threshold=0.7), Label("1"))
    room = model.decision_function(POINTS) - np.log(0.7 / 0.3)
    sums = np.abs(POINTS).sum(axis=1) + fit_intercept
    assert box.worst(POINTS, 0.1) == pytest.approx(room - 0.1 * sums, abs=1e-10)
    assert box.largest(POINTS) == pytest.approx(np.clip(room / sums, 0, 1), rel=1e-5)
    assert (box.worst(POINTS, box.largest(POINTS))[room > 0] > 0).all()  # it is proven


@pytest.mark.parametrize(
    ("target", "room"),
    [(Interval(-1.0, 2.0), lambda y: np.minimum(y + 1, 2 - y)), (Interval(0.5), lambda y: y - 0.5)],
)
def test_intervals_of_a_regression_have_two_sides(target: Target, room: object) -> None:
    model = Ridge().fit(np.random.default_rng(2).normal(size=(30, 2)), np.arange(30.0) / 10)
    sums = np.abs(POINTS).sum(axis=1) + 1
    expected = room(model.predict(POINTS)) - 0.02 * sums  # type: ignore[operator]
    assert WeightBox(Classifier(model, INPUTS), target).worst(POINTS, 0.02) == pytest.approx(expected, abs=1e-10)


def test_models_without_weights_are_refused() -> None:
    tree = DecisionTreeClassifier().fit(POINTS, [0, 1, 0, 1])
    with pytest.raises(UnsupportedError, match="DecisionTreeClassifier has no weights"):
        WeightBox(Classifier(tree, INPUTS, ("0", "1")), Label("1"))
    elsewhere = network((2, 1, 1), 0)
    elsewhere.engine = object()  # another library predicts, and rounds its sums in a way of its own
    with pytest.raises(UnsupportedError, match="MLPClassifier has no weights"):
        WeightBox(Classifier(elsewhere, INPUTS, ("0", "1")), Label("1"))
    three = Classifier(network((2, 1, 3), 0), INPUTS, ("0", "1", "2"))
    with pytest.raises(UnsupportedError, match="several classes"):
        WeightBox(three, Probability("1", 0.5, 1.0))
    exponential = MLPRegressor("poisson", (2,), max_iter=500).fit(POINTS, [1.0, 2.0, 3.0, 4.0])
    with pytest.raises(UnsupportedError, match="loss 'poisson' is an exponential"):
        WeightBox(Classifier(exponential, INPUTS), Interval(high=7.5))


def test_metrics_are_means_over_valid_answers() -> None:
    """Three answers of which one is invalid; each of the others as ``WeightBox`` has it."""
    three = answers.iloc[[0, 0, 1]].assign(income=[80.0, 50.1, 30.0])
    inputs = linear.classifier.matrix(three.iloc[:2])
    each = np.array([0.3, 0.001]) / (np.abs(inputs).sum(axis=1) + 1)
    assert certified_delta(factual, three, linear) == pytest.approx(each.mean(), rel=1e-5)
    assert delta_validity(factual, three, linear) == 0.5
    assert certified_delta(factual, three.iloc[2:], linear) is None


@pytest.mark.parametrize(("income", "share"), [(53.0, 0.0), (54.0, 1.0)])
def test_each_weight_may_be_a_hundredth_off(income: float, share: float) -> None:
    """Inputs of .53 (or .54), .5 and 1, and the 1 of the intercept: room for .03 / 3.03 = .0099, or .04 / 3.04."""
    assert delta_validity(factual, answers.iloc[:1].assign(income=income), linear) == share
