"""Embedded classifiers: with the inputs fixed, a program's outputs are the estimator's own, to the last threshold."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.linear_model import (
    BayesianRidge,
    ElasticNet,
    HuberRegressor,
    Lasso,
    LinearRegression,
    LogisticRegression,
    Perceptron,
    Ridge,
    RidgeClassifier,
    RidgeClassifierCV,
    SGDClassifier,
)
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.svm import SVR, LinearSVC, LinearSVR
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from harness.core.classifier import Classifier
from harness.core.errors import UnsupportedError
from harness.core.inputs import Affine, Lookup, space_inputs
from harness.core.space import Feature, Space
from harness.solvers.highs import Linear
from harness.solvers.program import Compiled, Program
from methods.estimators.optional import ByName
from methods.estimators.thresholds import last_decoded, last_left
from methods.estimators.tree_arrays import leaves_of
from methods.estimators.trees import ensemble, splits_only
from methods.milp.block import Free
from methods.milp.cost import Cost
from methods.milp.embed.embedded import Embedded
from methods.milp.embed.registry import embed
from methods.milp.variables import Variables

SPACE = Space(
    tuple(
        Feature(name, kind, categories, (low, high), (low, high), actionability="immutable")
        if not categories
        else Feature(name, kind, categories, actionability="immutable")
        for name, kind, categories, low, high in [
            ("age", "integer", (), 18, 90),
            ("income", "continuous", (), -3.0, 47.0),
            ("grade", "ordinal", ("low", "mid", "high", "top"), 0, 0),
            ("member", "binary", (False, True), 0, 0),
            ("region", "categorical", ("n", "s", "w"), 0, 0),
        ]
    )
)

FOREST = {"n_estimators": 6, "max_depth": 4, "random_state": 0}
BOOSTING = {"n_estimators": 8, "max_depth": 3, "random_state": 0}
HISTOGRAM = {"max_iter": 8, "max_depth": 3, "random_state": 0}
NETWORK: dict[str, Any] = {"max_iter": 60, "random_state": 0}
CASES = {
    "logistic regression": (LogisticRegression(), 2),
    "logistic regression, 3 classes": (LogisticRegression(), 3),
    "linear svm": (LinearSVC(), 2),
    "linear svm, 3 classes": (LinearSVC(), 3),
    "ridge classifier": (RidgeClassifier(), 2),
    "ridge classifier, 3 classes": (RidgeClassifier(), 3),
    "ridge classifier of the best penalty": (RidgeClassifierCV(), 2),
    "hinge": (SGDClassifier(random_state=0), 2),
    "hinge, 3 classes": (SGDClassifier(random_state=0), 3),
    "perceptron": (Perceptron(random_state=0), 2),
    "discriminant analysis": (LinearDiscriminantAnalysis(), 2),
    "discriminant analysis, 3 classes": (LinearDiscriminantAnalysis(), 3),
    "linear regression": (LinearRegression(), 0),
    "ridge": (Ridge(), 0),
    "lasso": (Lasso(0.01), 0),
    "elastic net": (ElasticNet(0.01), 0),
    "huber": (HuberRegressor(), 0),
    "bayesian ridge": (BayesianRidge(), 0),
    "linear svm for numbers": (LinearSVR(), 0),
    "svm for numbers, linear": (SVR(kernel="linear"), 0),
    "tree": (DecisionTreeClassifier(max_depth=5, random_state=0), 2),
    "tree, 3 classes": (DecisionTreeClassifier(max_depth=5, random_state=0), 3),
    "regression tree": (DecisionTreeRegressor(max_depth=5, random_state=0), 0),
    "forest": (RandomForestClassifier(**FOREST), 2),
    "forest, 3 classes": (RandomForestClassifier(**FOREST), 3),
    "regression forest": (RandomForestRegressor(**FOREST), 0),
    "extra trees": (ExtraTreesClassifier(**FOREST), 2),
    "extra trees, 3 classes": (ExtraTreesClassifier(**FOREST), 3),
    "regression extra trees": (ExtraTreesRegressor(**FOREST), 0),
    "boosting": (GradientBoostingClassifier(**BOOSTING), 2),
    "boosting, 3 classes": (GradientBoostingClassifier(**BOOSTING), 3),
    "boosting from zero": (GradientBoostingClassifier(init="zero", **BOOSTING), 2),
    "regression boosting": (GradientBoostingRegressor(**BOOSTING), 0),
    "histogram boosting": (HistGradientBoostingClassifier(**HISTOGRAM), 2),
    "histogram boosting, 3 classes": (HistGradientBoostingClassifier(**HISTOGRAM), 3),
    "regression histogram boosting": (HistGradientBoostingRegressor(**HISTOGRAM), 0),
    "network": (MLPClassifier((8,), **NETWORK), 2),
    "network, 2 layers": (MLPClassifier((6, 5), **NETWORK), 2),
    "network, 3 classes": (MLPClassifier((6,), **NETWORK), 3),
    "network without hidden layers": (MLPClassifier((), **NETWORK), 2),
    "regression network": (MLPRegressor(hidden_layer_sizes=(6, 4), **NETWORK), 0),
}


def sample(rows: int = 300, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "age": rng.integers(18, 91, rows),
            "income": rng.uniform(-3, 47, rows),
            "grade": rng.choice(["low", "mid", "high", "top"], rows).astype(object),
            "member": (rng.random(rows) < 0.5).astype(object),
            "region": rng.choice(["n", "s", "w"], rows).astype(object),
        }
    )


def fitted(name: str) -> Classifier:
    estimator, classes = CASES[name]
    frame = sample()
    merit = frame["age"] / 30 + np.sin(frame["income"] / 5) + frame["member"] + (frame["region"] == "s")
    merit = merit.to_numpy(float) + 0.3 * np.random.default_rng(1).normal(size=len(frame))
    names = tuple(f"class {code}" for code in range(classes))
    classifier = Classifier(estimator, space_inputs(SPACE), names)
    cuts = np.quantile(merit, np.arange(1, classes) / classes) if classes else []
    estimator.fit(classifier.matrix(frame), np.searchsorted(cuts, merit) if classes else merit)
    return classifier


class Box:
    """Bounds over independent inputs."""

    def __init__(self, low: np.ndarray, high: np.ndarray) -> None:
        self.low, self.high = low, high

    def __call__(self, weights: np.ndarray, shift: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        rise, fall = np.maximum(weights, 0), np.minimum(weights, 0)
        return rise @ self.low + fall @ self.high + shift, rise @ self.high + fall @ self.low + shift


class Fixed:
    """A classifier over the variables of a space in which nothing may change."""

    def __init__(self, classifier: Classifier, space: Space = SPACE, sense: int = 0) -> None:
        program, self.width = Program(), len(classifier.inputs)
        self.variables = Variables(program, space, cells=splits_only(classifier.estimator))
        inputs = [self.variables.source(source) for source in classifier.inputs]
        self.embedded: Embedded = embed(classifier.estimator, program, inputs, sense)
        self.variables.close()
        self.compiled: Compiled = program.compile()
        self.variables.attach(self.compiled)
        self.embedded.attach(self.compiled)
        self.base = self.compiled.mark()

    def put(self, row: pd.DataFrame) -> None:
        self.compiled.rewind(self.base)
        self.variables.pose(row, [Cost(0.0, 1.0, 0.0)] * len(self.variables.blocks))
        if self.embedded.tighten is not None:
            self.embedded.tighten(Box(np.full(self.width, -0.5), np.full(self.width, 1.5)))

    def ends(self, output: Any) -> tuple[float, float]:
        """Least and greatest value of an output."""
        return ends(self.compiled, output)


def ends(compiled: Compiled, output: Any) -> tuple[float, float]:
    form = compiled.linear(output)
    opposite = Linear(form.columns, -form.coefficients, -form.constant)
    least, greatest = compiled.solve(form, seconds=20), compiled.solve(opposite, seconds=20)
    assert least.proven
    assert greatest.proven
    return least.objective, -greatest.objective


def raw(classifier: Classifier, row: pd.DataFrame) -> np.ndarray:
    return np.ravel(classifier.raw(row))


def test_every_registered_type_has_a_case() -> None:
    """A new encoder needs a case above; own estimators and other libraries' trees have tests elsewhere."""
    kinds = {kind for kind in (*embed.registry, *ensemble.registry) if not issubclass(kind, ByName)}
    kinds = {kind for kind in kinds if not kind.__module__.startswith("harness.")}
    assert {type(estimator) for estimator, _ in CASES.values()} == kinds - {object}


@pytest.mark.parametrize("name", CASES)
def test_outputs_at_a_point_are_the_estimators(name: str) -> None:
    """With all inputs fixed, no output can be anything but the estimator's, up or down.

    Log-probabilities of a network with several classes are its outputs up to one number common to all classes.
    """
    classifier = fitted(name)
    fixed = Fixed(classifier)
    for row in range(5):
        point = sample(5, seed=7).iloc[[row]]
        fixed.put(point)
        found, expected = np.array([fixed.ends(output) for output in fixed.embedded.outputs]), raw(classifier, point)
        if name == "network, 3 classes":
            expected = expected + found.mean() - expected.mean()
        assert found.shape == (len(expected), 2)
        np.testing.assert_allclose(found, np.column_stack([expected, expected]), rtol=0, atol=1e-6)


@pytest.mark.parametrize("sense", [1, -1])
@pytest.mark.parametrize("name", [name for name in CASES if "network" in name and "classes" not in name])
def test_in_its_sense_an_output_cannot_be_overstated(name: str, sense: int) -> None:
    """A network embedded for one direction reaches its true value in that direction, and never more."""
    classifier = fitted(name)
    fixed = Fixed(classifier, sense=sense)
    for row in range(5):
        point = sample(5, seed=8).iloc[[row]]
        fixed.put(point)
        least, greatest = fixed.ends(fixed.embedded.outputs[0])
        assert (greatest if sense == 1 else least) == pytest.approx(raw(classifier, point)[0], abs=1e-6)


def test_a_sense_saves_phases() -> None:
    """A unit that can only do harm by exceeding its value needs no 0/1 column."""
    classifier = fitted("network")
    outgoing = classifier.estimator.coefs_[-1][:, 0]
    exact, upward = Fixed(classifier), Fixed(classifier, sense=1)
    saved = int(exact.compiled.integer.sum() - upward.compiled.integer.sum())
    assert saved == (outgoing <= 0).sum() > 0


def shifted(classifier: Classifier, shifts: np.ndarray) -> tuple[Compiled, list[Any], list[Embedded]]:
    """A program with one set of inputs in [0, 1], and a copy of the classifier for each shift of them."""
    program = Program()
    x = [program.variable(0, 1) for _ in classifier.inputs]
    copies = []
    for shift in shifts:
        inputs = [Free(program, v + float(s), float(s), 1 + float(s)) for v, s in zip(x, shift, strict=True)]
        copies.append(embed(classifier.estimator, program, inputs))
    compiled = program.compile()
    for copy, shift in zip(copies, shifts, strict=True):
        copy.attach(compiled)
        if copy.tighten is not None:
            copy.tighten(Box(shift, 1 + shift))
    return compiled, x, copies


@pytest.mark.parametrize("name", ["tree", "forest", "boosting", "network", "network, 2 layers", "regression network"])
def test_shifted_copies_say_what_the_estimator_says_of_shifted_points(name: str) -> None:
    """Inputs may be any expression: each copy has the estimator's output at its own point, whatever the other has."""
    classifier, rng = fitted(name), np.random.default_rng(3)
    estimator = classifier.estimator
    shifts = rng.uniform(-0.2, 0.2, (2, len(classifier.inputs)))
    compiled, x, copies = shifted(classifier, shifts)
    at = [compiled.column(variable) for variable in x]
    judge = Classifier(estimator, [Affine(str(column)) for column in range(len(at))], classifier.classes)
    for _ in range(5):
        point = rng.random(len(at))
        compiled.low[at] = compiled.high[at] = point
        for copy, shift in zip(copies, shifts, strict=True):
            expected = judge.raw(pd.DataFrame([point + shift], columns=[str(c) for c in range(len(at))]))[0]
            np.testing.assert_allclose(ends(compiled, copy.outputs[0]), expected, rtol=0, atol=1e-6)


def test_copies_share_no_variable() -> None:
    """Two copies have twice the columns of one, beside the common inputs."""
    classifier = fitted("forest")
    one, x, _ = shifted(classifier, np.zeros((1, len(classifier.inputs))))
    two, _, _ = shifted(classifier, np.zeros((2, len(classifier.inputs))))
    assert len(two.low) - len(x) == 2 * (len(one.low) - len(x))


def test_outside_its_range_a_free_input_needs_no_column() -> None:
    program = Program()
    source = Free(program, program.variable(0.2, 0.4), 0.2, 0.4)
    assert (source.right_of(0.1), source.right_of(0.5)) == (1, 0)
    assert source.right_of(0.3) is source.right_of(0.3)


def neighbours(value: float, steps: int = 2) -> list[float]:
    """A value and the floats around it."""
    found, up, down = [value], value, value
    for _ in range(steps):
        up, down = float(np.nextafter(up, np.inf)), float(np.nextafter(down, -np.inf))
        found += [up, down]
    return found


def probes(threshold: float, source: Affine) -> list[float]:
    """Decoded values at a threshold, at the float32 values around it, and where float64 rounds from one to the next."""
    around = [np.float32(threshold)]
    around += [np.nextafter(around[0], np.float32(side)) for side in (-np.inf, np.inf)]
    numbers = sorted({float(single) for single in around})
    numbers += [threshold, *((a + b) / 2 for a, b in itertools.pairwise(numbers))]
    return [probe for number in numbers for probe in neighbours(source.shift + number * source.unit)]


@pytest.mark.parametrize("unit", [1.0, 50.0, 0.3, -7.0])
def test_values_at_thresholds_fall_on_the_estimators_side(unit: float) -> None:
    """The program's leaf is that of ``apply`` at thresholds, their float64 neighbours and float32 rounding ends."""
    rng = np.random.default_rng(0)
    space = Space((Feature("a", "continuous", bounds=(-1e3, 1e3), actionability="immutable"),))
    source = Affine("a", 1.7, unit)
    frame = pd.DataFrame({"a": 1.7 + unit * rng.random(400)})
    tree = DecisionTreeClassifier(max_leaf_nodes=25, random_state=0)
    classifier = Classifier(tree, (source,), ("no", "yes"))
    tree.fit(classifier.matrix(frame), rng.integers(0, 2, len(frame)))
    nodes = [leaf.node for leaf in leaves_of(ensemble(tree).trees[0])]
    thresholds = tree.tree_.threshold[tree.tree_.children_left >= 0]
    assert (thresholds.astype(np.float32).astype(float) != thresholds).any()
    fixed = Fixed(classifier, space)
    at = [fixed.compiled.column(leaf) for leaf in fixed.embedded.leaves[0]]
    values = np.unique([probe for threshold in thresholds for probe in probes(float(threshold), source)])
    expected = tree.apply(classifier.matrix(pd.DataFrame({"a": values})))
    found = []
    for value in values:
        fixed.put(pd.DataFrame({"a": [value]}))
        x = fixed.compiled.solve(Linear.of(), seconds=5).x
        assert x is not None
        assert fixed.variables.read(x) == {"a": value}
        found.append(nodes[int(x[at].argmax())])
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("kind", ["ordinal", "categorical"])
def test_categories_at_thresholds_fall_on_the_estimators_side(kind: str) -> None:
    """Also where the numbers looked up are float32 neighbours, with thresholds between them that only float64 has."""
    levels = tuple(range(40))
    space = Space((Feature("a", kind, levels, actionability="immutable"),))
    numbers = tuple(8 + level * float(np.spacing(np.float32(8))) for level in levels)
    tree = DecisionTreeClassifier(random_state=0)
    classifier = Classifier(tree, (Lookup("a", levels, numbers),), ("no", "yes"))
    frame = pd.DataFrame({"a": levels})
    tree.fit(classifier.matrix(frame), np.random.default_rng(0).integers(0, 2, len(levels)))
    fixed = Fixed(classifier, space)
    for row in levels:
        fixed.put(frame.iloc[[row]])
        assert fixed.ends(fixed.embedded.outputs[0]) == pytest.approx(2 * tuple(raw(classifier, frame.iloc[[row]])))


def goes_left(value: float, threshold: float) -> bool:
    """What scikit-learn's splits do: a float32 compared with a float64."""
    return bool(np.float32(value).astype(np.float64) <= np.float64(threshold))


finite = st.floats(-1e30, 1e30, allow_nan=False) | st.floats(-2, 2, allow_nan=False)
single = st.floats(-4, 4, width=32)


@given(finite | st.builds(lambda a, b: a / 2 + b / 2, single, single))
def test_last_left_is_the_last_left(threshold: float) -> None:
    """It goes left, and the next float64 does not."""
    value = last_left(threshold)
    assert goes_left(value, threshold)
    assert not goes_left(float(np.nextafter(value, np.inf)), threshold)


@given(
    integer=st.booleans(),
    shift=st.floats(-1e4, 1e4),
    unit=st.floats(1e-3, 1e5) | st.floats(-1e5, -1e-3),
    threshold=st.floats(-3, 3) | st.builds(lambda a, b: a / 2 + b / 2, single, single),
)
def test_last_decoded_is_the_last_before_a_split(integer: bool, shift: float, unit: float, threshold: float) -> None:
    """It is on the low side of the split, the next value (of a falling input: on the left) on the other."""
    feature = Feature("a", "integer" if integer else "continuous")
    value = last_decoded(feature, Affine("a", shift, unit), threshold)

    def low_side(number: float) -> bool:
        return goes_left((number - shift) / unit, threshold) == (unit > 0)

    assert not integer or value.is_integer()
    assert low_side(value)
    assert not low_side(value + 1 if integer else float(np.nextafter(value, np.inf)))


def test_unknown_estimators_and_parts_are_named() -> None:
    """The message says what is known, or what to set instead."""

    def message(estimator: Any, inputs: Sequence[Any] = ()) -> str:
        with pytest.raises(UnsupportedError) as fault:
            embed(estimator, Program(), inputs)
        return str(fault.value)

    known = message(KNeighborsClassifier())
    assert "KNeighborsClassifier" in known
    assert "read are linear models, networks of ReLUs, and trees and sums of them" in known
    x, y = np.random.default_rng(0).random((40, 2)), np.arange(40) % 2
    assert "tanh" in message(MLPClassifier((2,), activation="tanh", max_iter=5).fit(x, y))
    assert "poisson" in message(MLPRegressor("poisson", hidden_layer_sizes=(2,), max_iter=5).fit(x, y))
    first = DecisionTreeClassifier(max_depth=1)
    assert "init" in message(GradientBoostingClassifier(init=first, n_estimators=2).fit(x, y))
