"""Validity under changes of weights as a constraint, against every corner of the box of weights at every point."""

from __future__ import annotations

import warnings
from dataclasses import replace
from itertools import pairwise, product

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.svm import SVR
from sklearn.tree import DecisionTreeClassifier
from support.weight_corners import ALL, DELTA, GRID, INPUTS, SPACE, least, posed

from harness.certificate import proven, weight_box
from harness.core.classifier import Classifier
from harness.core.explanation import Status
from harness.core.inputs import Affine, Indicator, Input, Lookup, Step, space_inputs
from harness.core.method import Deadline
from harness.core.space import Feature, Space
from harness.core.target import Interval, Label
from harness.evaluation.checker import examine
from harness.evaluation.weights import withstands
from methods.ce_ocl import CeOcl
from methods.ce_ocl.proplace import Proplace
from methods.delta import pessimistic, signs
from methods.nearest import Nearest

CASES = list(product(("lr", "svm", "network"), INPUTS, ("yes", "no")))


@pytest.mark.parametrize(("kind", "inputs", "wanted"), CASES)
def test_one_model_says_the_worst_of_all(kind: str, inputs: str, wanted: str) -> None:
    for seed in range(3):
        problem = posed(kind, inputs, wanted, seed)
        worst = least(problem, GRID)
        for sign in {tuple(signs(problem)), (0.0, 0.0, 0.0)}:
            said = pessimistic(problem, DELTA, np.array(sign)).classifier
            towards = 1 if wanted == "yes" else -1
            assert towards * (said.raw(GRID) - said.raw_threshold) == pytest.approx(worst, abs=1e-9)
        box = weight_box(problem.classifier, problem.target)
        assert box.worst(problem.classifier.matrix(GRID), DELTA) == pytest.approx(worst, abs=1e-9)


@pytest.mark.parametrize("wanted", ["yes", "no"])
@pytest.mark.parametrize("inputs", INPUTS)
@pytest.mark.parametrize("shape", [(3, 2), (2, 3, 2)])
def test_with_more_layers_it_says_the_sums_of_intervals(shape: tuple[int, ...], inputs: str, wanted: str) -> None:
    """As the certificate adds them up; PROPLACE takes such a network, and its answers pass that certificate."""
    problem, rng = posed("network", inputs, wanted, 0), np.random.default_rng(len(shape))
    network, sizes = problem.classifier.estimator, (3, *shape, 1)
    network.coefs_ = [rng.normal(0.3, 1, pair) for pair in pairwise(sizes)]
    network.intercepts_ = [rng.normal(size=size) for size in sizes[1:]]
    network.n_layers_ = len(sizes)
    network.intercepts_[-1] -= np.median(problem.classifier.raw(GRID)) - problem.classifier.raw_threshold
    box, towards = weight_box(problem.classifier, problem.target), 1 if wanted == "yes" else -1
    worst = box.worst(problem.classifier.matrix(GRID), DELTA)
    for sign in (signs(problem), np.zeros(3)):
        said = pessimistic(problem, DELTA, sign).classifier
        assert towards * (said.raw(GRID) - said.raw_threshold) == pytest.approx(worst, abs=1e-9)
    method = Proplace(5, DELTA / 100)
    assert method.refuses(problem) is None
    fitted, found = method.fit(problem), 0
    for place in np.flatnonzero(~problem.valid(GRID))[::9]:
        (answer,) = fitted.explain(GRID.iloc[[place]], 1, rng, Deadline.after(20)).answers
        if answer.row is not None:
            row = problem.classifier.matrix(SPACE.frame([answer.row]))
            assert box.worst(row, method.delta * (1 - 1e-6))[0] > 0
            found += 1
    assert found


def test_signs_are_those_of_all_points() -> None:
    assert signs(posed("lr", "scaled", "yes", 0)).tolist() == [1, -1, 1]
    assert signs(posed("lr", "centred", "yes", 0)).tolist() == [0, 0, 1]
    coded = SPACE.replace({"a": {"special": (-9,)}})
    assert signs(replace(posed("lr", "scaled", "yes", 0), space=coded)).tolist() == [0, -1, 1]


@pytest.mark.parametrize("wanted", ["yes", "no"])
@pytest.mark.parametrize("kind", ["lr", "network"])
@pytest.mark.parametrize(
    ("inputs", "known"),
    [
        ((Indicator("d", ("x",)), Indicator("d", ("y",)), Step("a", (2.0,), (-1.0, -0.5))), [1, 1, -1]),
        (
            (Lookup("d", tuple("xyz"), (-1.0, 0.5, 2.0)), Step("a", (1.0, 3.0), (-1.0, 0.0, 2.0)), Affine("a")),
            [0, 0, 1],
        ),
        ((Lookup("d", tuple("xyz"), (-1.0, -0.5, 0.0)), Affine("a", 1.0, 4.0), Indicator("d", ("x", "z"))), [-1, 0, 1]),
    ],
)
def test_categories_and_steps_against_all_corners(
    inputs: tuple[Input, ...], known: list[int], kind: str, wanted: str
) -> None:
    """Three categories as indicators and as numbers, and a number in steps, of one sign and of both."""
    space = Space((Feature("a", "integer", scale=(0, 4), bounds=(0, 4)), Feature("d", "categorical", tuple("xyz"))))
    points = space.frame({"a": a, "d": d} for a, d in product(range(5), "xyz"))
    for seed in range(3):
        problem = posed(kind, "scaled", wanted, seed)
        classifier = replace(problem.classifier, inputs=inputs)
        problem = replace(problem, space=space, classifier=classifier, train=points, labels=classifier.predict(points))
        assert signs(problem).tolist() == known
        worst, towards = least(problem, points), 1 if wanted == "yes" else -1
        said = pessimistic(problem, DELTA, signs(problem)).classifier
        margins = towards * (said.raw(points) - said.raw_threshold)  # far ones come back from rounded probabilities
        assert margins == pytest.approx(worst, rel=1e-7, abs=1e-9)
        assert (proven(classifier, problem.target, points, DELTA) == (worst > 0)).all()


@pytest.mark.parametrize(("kind", "inputs", "wanted"), CASES)
def test_the_optimum_is_that_of_all_points_that_every_model_accepts(kind: str, inputs: str, wanted: str) -> None:
    statuses = []
    for seed in range(4):
        problem = posed(kind, inputs, wanted, seed)
        method = CeOcl(distance="l1", alpha=0.1, delta=DELTA)
        assert method.refuses(problem) is None
        fitted, objective = method.fit(problem), method.objective(problem)
        for factual in (GRID.iloc[[15]], GRID.iloc[[188]], pd.DataFrame({"a": [-3], "b": [12], "c": ["no"]})):
            if problem.valid(factual).all():
                continue
            answer = fitted.explain(factual, 1, np.random.default_rng(0), Deadline.after(20)).answers[0]
            reached = ALL.loc[[not found for found in SPACE.violations(factual, ALL)]]
            kept = reached.loc[least(problem, reached) > 0]
            best = objective.evaluate(SPACE, factual, kept).min(initial=np.inf)
            statuses.append(answer.status)
            if answer.row is None:
                assert answer.status is Status.INFEASIBLE
                assert best == np.inf
                continue
            assert answer.status is Status.OPTIMAL
            assert answer.objective == pytest.approx(best, abs=1e-6)
            assert least(problem, SPACE.frame([answer.row]))[0] > 0
    assert Status.OPTIMAL in statuses


def test_the_nearest_row_is_one_that_every_model_accepts() -> None:
    compared = 0
    for kind, inputs, wanted in CASES:
        problem = posed(kind, inputs, wanted, 1)
        kept = problem.train.loc[least(problem, problem.train) > 0]
        factual = GRID.loc[~problem.valid(GRID)].iloc[[0]]
        method = Nearest("l1", delta=DELTA)
        answer = method.fit(problem).explain(factual, 1, np.random.default_rng(0), Deadline.after(5)).answers[0]
        best = method.objective(problem).evaluate(SPACE, factual, kept).min(initial=np.inf)
        assert (np.inf if answer.row is None else answer.objective) == best
        compared += np.isfinite(best)
    assert compared > 6


def test_the_checker_finds_an_answer_that_some_model_refuses() -> None:
    """By the stored claim alone: valid by the model, but not by all within delta of it."""
    problem = posed("lr", "scaled", "yes", 0)
    stored = CeOcl(delta=DELTA).objective(problem).stored()
    assert stored.domain == {"delta": DELTA}
    worst, valid = least(problem, GRID), problem.valid(GRID)
    factual = GRID.loc[~valid].iloc[[0]]
    asked = (factual, SPACE, problem.classifier, problem.target, stored)
    for place, verdict in ((np.flatnonzero(valid & (worst < 0))[0], "beyond its limits"), (worst.argmax(), "accepted")):
        row = {"row": GRID.iloc[place].to_dict(), "objective": None}
        assert examine(row, *asked)["verdict"] == verdict


@pytest.mark.parametrize(("kind", "inputs", "wanted"), CASES)
def test_the_checker_finds_the_worst_model_by_itself(kind: str, inputs: str, wanted: str) -> None:
    for seed in range(2):
        problem = posed(kind, inputs, wanted, seed)
        some = GRID.iloc[::7]
        for row, worst in zip(some.to_dict("records"), least(problem, some), strict=True):
            kept = withstands(SPACE, problem.classifier, problem.target, row, DELTA)
            assert kept == (worst > 0) or abs(worst) < 1e-5


@pytest.mark.parametrize("activation", ["tanh", "logistic", "identity"])
def test_the_checker_knows_other_units_than_relus(activation: str) -> None:
    """As the certificate has them, of other code; some answers are kept, and some are not."""
    found = set()
    for seed, wanted in product(range(3), ("yes", "no")):
        problem = posed("network", "scaled", wanted, seed)
        problem.classifier.estimator.activation = activation
        some = GRID.iloc[::7]
        worsts = weight_box(problem.classifier, problem.target).worst(problem.classifier.matrix(some), DELTA)
        for row, worst, valid in zip(some.to_dict("records"), worsts, problem.valid(some), strict=True):
            kept = withstands(SPACE, problem.classifier, problem.target, row, DELTA)
            assert kept == (worst > 0) or abs(worst) < 1e-5
            found.add((bool(valid), kept))
    assert {(True, True), (True, False)} <= found


def test_the_checker_takes_a_linear_svr() -> None:
    """Whose weights are no attribute to set: w x + b - delta (|x| + 1) is what the worst model says."""
    frame = pd.DataFrame({"a": np.linspace(0, 1, 30)})
    space = Space((Feature("a", "continuous", scale=(0, 1)),))
    estimator = SVR(kernel="linear").fit(frame.to_numpy(), 3 * frame["a"])
    model, (said,) = Classifier(estimator, (Affine("a"),)), estimator.predict([[0.5]])
    for gap, kept in ((0.001, True), (-0.001, False)):
        assert withstands(space, model, Interval(said - 0.1 * 1.5 - gap), {"a": 0.5}, 0.1) == kept


@pytest.mark.parametrize(("end", "kept"), [(Interval(5e6 - 2), True), (Interval(5e6 - 1), False)])
def test_a_prediction_may_be_millions(end: Interval, kept: bool) -> None:
    """1e6 a at a = 5, of which each weight is .2 off: at worst 5e6 - .2 * (5 + 1)."""
    space = Space((Feature("a", "continuous", scale=(0, 10)),))
    model = Classifier(LinearRegression().fit([[0.0], [1.0]], [0.0, 1e6]), (Affine("a"),))
    assert withstands(space, model, end, {"a": 5.0}, 0.2) == kept


def test_a_probability_that_is_0_withstands_nothing() -> None:
    """Its logarithm is infinite: of three classes the worst model says so of the wanted one."""
    rng = np.random.default_rng(0)
    rows = rng.uniform(0, 90000, (300, 2))
    space = Space(tuple(Feature(name, "continuous", scale=(0, 90000)) for name in "ab"))
    estimator = MLPClassifier((8,), max_iter=300, random_state=0)
    with warnings.catch_warnings(action="ignore"):
        estimator.fit(rows, np.digitize(rows[:, 0] - rows[:, 1], [-20000, 20000]))
    model = Classifier(estimator, (Affine("a"), Affine("b")), ("no", "maybe", "yes"))
    frame = pd.DataFrame(rows[:40], columns=space.names)
    found = set()
    for label, (_, row) in product(model.classes, frame.iterrows()):
        if Label(label).holds(model, row.to_frame().T)[0]:
            kept = withstands(space, model, Label(label), row.to_dict(), 0.01)
            worst = weight_box(model, Label(label)).worst(model.vector(row.to_dict()), 0.01)[0]
            assert kept == (worst > 0)
            found.add(kept)
    assert found == {True, False}


def test_refusals_and_wrong_values() -> None:
    problem = posed("network", "scaled", "yes", 0)
    tree = DecisionTreeClassifier().fit(problem.classifier.matrix(GRID), problem.valid(GRID))
    of_trees = replace(problem, classifier=replace(problem.classifier, estimator=tree, threshold=None))
    for method in (CeOcl(delta=0.1), Nearest(delta=0.1)):
        assert "DecisionTreeClassifier has no weights" in (method.refuses(of_trees) or "")
    network = problem.classifier.estimator
    deep = MLPClassifier((2, 2), max_iter=1)
    with pytest.warns(UserWarning, match="Maximum iterations"):
        deep.fit(problem.classifier.matrix(GRID), problem.valid(GRID))
    layered = replace(problem, classifier=replace(problem.classifier, estimator=deep))
    assert "one hidden layer; this one has more" in (CeOcl(delta=0.1).refuses(layered) or "")
    assert Nearest(delta=0.1).refuses(layered) is None  # by a bound
    network.activation = "tanh"
    assert "ReLUs, not of 'tanh'" in (CeOcl(delta=0.1).refuses(problem) or "")
    for wrong in (-0.1, 1.5, float("nan")):
        with pytest.raises(ValueError, match="from 0 to 1"):
            CeOcl(delta=wrong)
    with pytest.raises(ValueError, match="labelled"):
        CeOcl(delta=0.1, hull="hard", hull_points="predicted")


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_an_intercept_that_is_not_fitted_does_not_change(fit_intercept: bool) -> None:
    """A score of 10 a: at a = 0.5 it falls by 0.5 delta, and by delta more where there is an intercept."""
    space = Space((Feature("a", "continuous", scale=(0.0, 1.0)),))
    fitted = LogisticRegression(fit_intercept=fit_intercept).fit([[0.0], [1.0]], [0, 1])
    fitted.coef_, fitted.intercept_ = np.array([[1.0]]), np.zeros(1)
    model = Classifier(fitted, space_inputs(space), classes=("no", "yes"))
    assert withstands(space, model, Label("yes"), {"a": 0.5}, 0.3)
    assert withstands(space, model, Label("yes"), {"a": 0.5}, 0.9) is not fit_intercept
