"""How often methods look into a model: a refusal by its type and settings, a fit once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.svm import SVR

from harness.core.errors import UnsupportedError
from harness.core.method import Deadline, Method
from harness.core.problem import Problem
from harness.core.target import Interval
from harness.solvers import program
from methods.ce_ocl import CeOcl
from methods.ce_ocl.program import CounterfactualProgram
from methods.estimators import trees
from methods.robust import Robust

HULL = CeOcl(hull="hard")


@pytest.fixture
def readings(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """One entry for each time that a forest is read."""
    found: list[int] = []
    read = trees._averaged

    def counted(members: Any) -> Any:
        found.append(len(members))
        return read(members)

    monkeypatch.setattr(trees, "_averaged", counted)
    return found


def anew(problem: Problem) -> Problem:
    """The problem with a model that nobody has seen, trained alike."""
    classifier = problem.classifier
    labels = [classifier.code(label) for label in problem.labels]
    estimator = clone(classifier.estimator).fit(classifier.matrix(problem.train), labels)
    return replace(problem, classifier=replace(classifier, estimator=estimator))


@pytest.mark.parametrize("method", [CeOcl(), HULL, CeOcl("linf"), Robust(rho=0.01)], ids=repr)
def test_a_model_is_read_once(method: Method, readings: list[int], problem_of: Callable[..., Problem]) -> None:
    """By refusal, fit, explanation and objective together."""
    problem = anew(problem_of("rf"))
    readings.clear()
    assert method.refuses(problem) is None
    factual = problem.train.loc[~problem.valid(problem.train)].iloc[[0]]
    method.fit(problem).explain(factual, 1, np.random.default_rng(0), Deadline.after(0.5))
    method.objective(problem)
    assert readings == [10]


def test_a_model_that_is_trained_again_is_read_again(readings: list[int], problem_of: Callable[..., Problem]) -> None:
    problem = anew(problem_of("rf"))
    estimator = problem.classifier.estimator
    before = trees.ensemble(estimator)
    assert trees.ensemble(estimator) is before
    estimator.fit(problem.classifier.matrix(problem.train), problem.train["member"].astype(int))
    assert trees.ensemble(estimator) is not before


@pytest.mark.parametrize("model", ["rf", "lr", "mlp"])
@pytest.mark.parametrize("method", [CeOcl(), HULL, CeOcl(engine="milp")], ids=repr)
def test_a_refusal_builds_no_program(
    method: CeOcl, model: str, problem_of: Callable[..., Problem], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(self: Any) -> None:
        raise AssertionError("a program was built")

    monkeypatch.setattr(program.Program, "__init__", refused)
    assert method.refuses(problem_of(model)) is None


@pytest.mark.parametrize(
    "estimator",
    [
        MLPClassifier((3,), activation="tanh", max_iter=5),
        GaussianProcessClassifier(),
        GradientBoostingClassifier(n_estimators=2, init=MLPClassifier((2,), max_iter=5)),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
def test_a_refusal_is_what_building_would_say(estimator: Any, problem: Problem) -> None:
    classifier = problem.classifier
    labels = [classifier.code(label) for label in problem.labels]
    fitted = clone(estimator).fit(classifier.matrix(problem.train), labels)
    other = replace(problem, classifier=replace(classifier, estimator=fitted, threshold=None))
    with pytest.raises(UnsupportedError) as fault:
        CounterfactualProgram(CeOcl(), other)
    assert CeOcl().refuses(other) == str(fault.value)


def test_a_support_vector_machine_is_refused_by_its_kernel(problem_of: Callable[..., Problem]) -> None:
    problem = problem_of("ridge")
    for kernel, refused in (("rbf", True), ("linear", False)):
        fitted = SVR(kernel=kernel).fit(problem.classifier.matrix(problem.train), problem.labels)
        other = replace(problem, classifier=replace(problem.classifier, estimator=fitted), target=Interval(0.0, 1.0))
        assert (CeOcl().refuses(other) is not None) == refused


def test_a_number_without_ends_is_refused(problem_of: Callable[..., Problem]) -> None:
    """Where a program needs its value; trees see it through thresholds."""
    for model, refused in (("lr", True), ("rf", False)):
        problem = problem_of(model)
        space = problem.space.replace({"income": {"bounds": (-np.inf, np.inf)}})
        assert (CeOcl().refuses(replace(problem, space=space)) is not None) == refused
