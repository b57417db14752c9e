"""Validity under changes of weights as a constraint, against every corner of the box of weights at every point."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

from harness.certificate import weight_box
from harness.core.classifier import Classifier
from harness.core.explanation import Status
from harness.core.inputs import Affine, Indicator
from harness.core.method import Deadline
from harness.core.problem import Problem
from harness.core.space import Feature, Space
from harness.core.target import Label
from harness.evaluation.checker import examine
from harness.evaluation.weights import withstands
from methods.ce_ocl import CeOcl
from methods.delta import pessimistic, signs
from methods.nearest import Nearest

SPACE = Space(
    (
        Feature("a", "integer", scale=(0, 9), bounds=(0, 9)),
        Feature("b", "integer", scale=(0, 9), bounds=(0, 9)),
        Feature("c", "binary", ("no", "yes")),
    )
)
GRID = SPACE.frame({"a": a, "b": b, "c": c} for a, b, c in product(range(10), range(10), ("no", "yes")))
# Who is beyond the bounds may stay there, or come nearer.
ALL = SPACE.frame({"a": a, "b": b, "c": c} for a, b, c in product(range(-3, 10), range(13), ("no", "yes")))
INPUTS = {  # of one sign; of both
    "scaled": (Affine("a", 0.0, 9.0), Affine("b", 0.0, -9.0), Indicator("c", ("yes",))),
    "centred": (Affine("a", 4.0, 3.0), Affine("b", 6.0, 3.0), Indicator("c", ("yes",))),
}
DELTA = 0.1


def model(kind: str, seed: int) -> Any:
    rng = np.random.default_rng(seed)
    data, labels = rng.normal(size=(20, 3)), np.arange(20) % 2
    if kind == "network":
        fitted = MLPClassifier((2,), max_iter=1, random_state=0)
        with pytest.warns(UserWarning, match="Maximum iterations"):
            fitted.fit(data, labels)
        fitted.coefs_ = [rng.normal(size=(3, 2)), 2 * rng.normal(size=(2, 1))]
        fitted.intercepts_ = [rng.normal(size=2), rng.normal(size=1)]
        return fitted
    fitted = LinearSVC() if kind == "svm" else LogisticRegression()
    fitted.fit(data, labels)
    fitted.coef_, fitted.intercept_ = rng.normal(size=(1, 3)), rng.normal(size=1) / 2
    return fitted


def posed(kind: str, inputs: str, wanted: str, seed: int) -> Problem:
    classifier = Classifier(model(kind, seed), INPUTS[inputs], ("no", "yes"), threshold=0.4)
    end = classifier.estimator.intercepts_[-1] if kind == "network" else classifier.estimator.intercept_
    end -= np.median(classifier.raw(GRID)) - classifier.raw_threshold  # half of all points are accepted
    train = GRID.iloc[::3].reset_index(drop=True)
    return Problem(SPACE, classifier, train, classifier.predict(train), Label(wanted))


def least(problem: Problem, frame: pd.DataFrame) -> np.ndarray:
    """The least margin over all corners of the box of weights, shape (rows,)."""
    estimator, inputs = problem.classifier.estimator, problem.classifier.matrix(frame)
    if hasattr(estimator, "coefs_"):
        parts = [part for pair in zip(estimator.coefs_, estimator.intercepts_, strict=True) for part in pair]
    else:
        parts = [estimator.coef_.T, estimator.intercept_]
    corners = DELTA * np.array(list(product((-1.0, 1.0), repeat=sum(part.size for part in parts))))
    values, start = inputs[None], 0
    for number, (weights, shifts) in enumerate(zip(parts[::2], parts[1::2], strict=True)):
        stop = start + weights.size
        moved = weights + corners[:, start:stop].reshape(-1, *weights.shape)
        start = stop + shifts.size
        values = np.maximum(values, 0.0) if number else values
        values = values @ moved + (shifts + corners[:, stop:start])[:, None]
    towards = 1 if problem.target == Label("yes") else -1
    threshold = 0.4 if isinstance(estimator, LinearSVC) else np.log(0.4 / 0.6)
    return (towards * (values[:, :, 0] - threshold)).min(axis=0)


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


def test_signs_are_those_of_all_points() -> None:
    assert signs(posed("lr", "scaled", "yes", 0)).tolist() == [1, -1, 1]
    assert signs(posed("lr", "centred", "yes", 0)).tolist() == [0, 0, 1]


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
