"""Levels that are left out, of features with few of them: earlier changes, special ones, those that nobody has."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.tree import DecisionTreeClassifier

from harness.core.classifier import Classifier
from harness.core.explanation import Answer, Status
from harness.core.inputs import space_inputs
from harness.core.method import Deadline
from harness.core.problem import Problem
from harness.core.space import Feature, Space
from harness.core.target import Label
from methods.ce_ocl import CeOcl
from methods.robust import Robust

pytestmark = pytest.mark.every(1)

AGE = Feature("age", "integer", scale=(0, 3), bounds=(0, 3))
LEVELS = ("low", "mid", "high")


def posed(feature: Feature, wanted: set[Any], seen: int | None = None) -> Problem:
    """A tree that wants some categories, whatever the age, and knows all points; labelled are the first ``seen``."""
    space = Space((feature, AGE))
    frame = space.frame({"g": category, "age": age} for category in feature.categories for age in range(4))
    labels = np.where(frame["g"].isin(wanted), "yes", "no").astype(object)
    tree = DecisionTreeClassifier(random_state=0).fit(space.encode(frame), labels == "yes")
    classifier = Classifier(tree, space_inputs(space), ("no", "yes"))
    known = () if seen is None else (frame.iloc[:seen], labels[:seen])
    return Problem(space, classifier, frame, labels, Label("yes"), *known)


def asked(method: Any, problem: Problem, n: int = 1) -> list[Answer]:
    last: pd.DataFrame = problem.space.frame([{"g": problem.space["g"].categories[-1], "age": 1}])
    return list(method.fit(problem).explain(last, n, np.random.default_rng(0), Deadline.after(20.0)).answers)


@pytest.mark.parametrize("engine", [{}, {"engine": "milp"}], ids=["auto", "milp"])
@pytest.mark.parametrize(
    ("kind", "categories"), [("ordinal", LEVELS), ("binary", (False, True)), ("categorical", LEVELS)]
)
def test_no_change_to_a_first_category_is_made_twice(kind: str, categories: tuple[Any, ...], engine: Any) -> None:
    """Which has no column of its own where a feature is not one-hot."""
    problem = posed(Feature("g", kind, categories), {categories[0]})
    answers = asked(CeOcl("l1", diversity="features", **engine), problem, 3)
    assert [answer.status for answer in answers] == [Status.OPTIMAL, Status.INFEASIBLE, Status.INFEASIBLE]


MANIFOLDS = [
    {}, {"hull": "hard"}, {"hull": "hard", "epsilon": 0.5}, {"hull": "fallback"}, {"hull": "penalised"},
    {"likelihood": 0.2},
]  # fmt: skip


@pytest.mark.parametrize("manifold", MANIFOLDS, ids=str)
def test_a_special_level_between_others_is_never_entered(manifold: dict[str, Any]) -> None:
    """From high, where low and mid are wanted, and mid is special: it takes two steps to low."""
    problem = posed(Feature("g", "ordinal", LEVELS, special=("mid",)), {"low", "mid"})
    (answer,) = asked(CeOcl("l1", **manifold), problem)
    assert answer.status is Status.OPTIMAL
    assert answer.row == {"g": "low", "age": 1}
    assert answer.objective == pytest.approx(1.0)


@pytest.mark.parametrize("special", [(), ("mid",), ("low",)])
def test_robust_regions_within_a_hull_take_levels_that_are_no_interval_for_none(special: tuple[str, ...]) -> None:
    problem = posed(Feature("g", "ordinal", LEVELS, special=special), {"low", "mid"})
    method = Robust(rho=0.1, hull="hard")
    refusal = method.refuses(problem)
    if special == ("mid",):
        assert refusal is None or "special ones" in refusal
    else:
        assert refusal is None
    if refusal is None:
        (answer,) = asked(method, problem)
        assert (answer.row or {"g": "low"})["g"] not in special


@pytest.mark.parametrize("manifold", [*MANIFOLDS[1:], {"hull": "hard", "diversity": "clusters"}], ids=str)
def test_a_manifold_of_no_row_holds_no_point(manifold: dict[str, Any]) -> None:
    """Where no row of the reference has the wanted class."""
    problem = posed(Feature("g", "ordinal", LEVELS), {"high"}, seen=4)
    space = problem.space
    factual = space.frame([{"g": "low", "age": 1}])
    method = CeOcl("l1", **manifold)
    assert method.refuses(problem) is None
    for n in (1, 3):
        answers = method.fit(problem).explain(factual, n, np.random.default_rng(0), Deadline.after(20.0)).answers
        assert {answer.status for answer in answers} == {Status.INFEASIBLE}
