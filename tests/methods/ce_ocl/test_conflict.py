"""Why CE-OCL has no answer: what is lifted in search of the reason, by which engine, and in what time."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.tree import DecisionTreeClassifier
from support.applicants import FREE, GRID, problem_of
from support.enumeration import ask

from harness.core.classifier import Classifier
from harness.core.explanation import Status
from harness.core.inputs import space_inputs
from harness.core.problem import Problem
from methods.ce_ocl import CeOcl


def ruled(right: np.ndarray, space: Any, estimator: Any = None) -> Problem:
    """A model that says yes to some points of the grid; a tree unless given."""
    estimator = DecisionTreeClassifier(random_state=0) if estimator is None else clone(estimator)
    estimator.fit(FREE.encode(GRID), right.astype(int))
    return problem_of(Classifier(estimator, space_inputs(FREE), ("no", "yes")), "yes", space)


@pytest.mark.every(1)
@pytest.mark.parametrize(
    ("estimator", "method"),
    [
        (DecisionTreeClassifier(random_state=0), CeOcl(engine="search")),
        (DecisionTreeClassifier(random_state=0), CeOcl(engine="milp")),
        (LogisticRegression(C=1000), CeOcl()),
        (DecisionTreeClassifier(random_state=0), CeOcl("linf")),
        (MLPClassifier((3,), max_iter=2000, learning_rate_init=0.02, random_state=0), CeOcl()),
    ],
    ids=["search", "milp", "lr", "linf", "mlp"],
)
@pytest.mark.parametrize(
    ("bounds", "actionability", "low", "wanted"),
    [
        ((0, math.inf), "immutable", 2, lambda age: age >= 6),
        ((-math.inf, math.inf), "immutable", 2, lambda age: age >= 6),
        ((-math.inf, 7), "increase", 5, lambda age: age <= 1),
        ((0, math.inf), "decrease", 2, lambda age: age >= 6),
    ],
    ids=str,
)
def test_a_number_without_an_end_is_blamed_as_any_other(
    estimator: Any,
    method: CeOcl,
    bounds: tuple[float, float],
    actionability: str,
    low: int,
    wanted: Callable[[Any], Any],
) -> None:
    """An age that may not move, or not that way, needs no end there until it is lifted: then there is an answer.

    A tree asks for nothing else; other models may be content with a debt far beyond its bounds, too.
    """
    space = FREE.replace({"age": {"bounds": bounds, "actionability": actionability}})
    problem = ruled(wanted(GRID["age"].to_numpy()), space, estimator)
    factual = GRID[(GRID["age"] == low) & (GRID["debt"] == 2)].iloc[[0]]
    explained = ask(method, problem, factual)
    assert explained.answers[0].status is Status.INFEASIBLE
    assert explained.conflict[:1] == (f"{actionability} age",)
    assert not isinstance(estimator, DecisionTreeClassifier) or len(explained.conflict) == 1
