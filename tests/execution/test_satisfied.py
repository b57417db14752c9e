"""Factuals of which the model already says what is wanted: asked about all the same, copies of them are dropped."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.tree import DecisionTreeClassifier

from harness.core.classifier import Classifier
from harness.core.explanation import Answer, Explanation, Status
from harness.core.inputs import Affine
from harness.core.method import Deadline, refusal
from harness.core.problem import Problem
from harness.core.space import Feature, Kind, Space
from harness.core.target import Label
from harness.execution.satisfied import SPENT, WithoutCopies
from methods.ce_ocl import CeOcl
from tests.support.enumeration import ask

SPACE = Space((Feature("a", Kind.CONTINUOUS, scale=(0, 10)), Feature("sort", Kind.BINARY, categories=("x", "y"))))
FACTUAL = pd.DataFrame({"a": [4.0], "sort": ["x"]}, index=[7])


@dataclass(frozen=True)
class Told:
    """A method that gives what it is told to, up to as many as it is asked for."""

    rows: tuple[dict[str, Any] | None, ...]

    def refuses(self, problem: Problem) -> str | None:
        return "no" if problem is None else None

    def objective(self, problem: Problem) -> str:  # type: ignore[override]
        return "claimed"

    def fit(self, problem: Problem) -> Told:
        return self

    def explain(self, factual: pd.DataFrame, n: int, rng: np.random.Generator, deadline: Deadline) -> Explanation:
        answers = tuple(Answer(Status.FOUND if row else Status.GAVE_UP, row) for row in self.rows[:n])
        return Explanation(answers, ("hull",))


def problem_with(classifier: Any = None) -> Problem:
    frame = pd.DataFrame({"a": [0.0, 10.0], "sort": ["x", "y"]})
    return Problem(SPACE, classifier, frame, np.array(["no", "yes"]), Label("yes"))


def given(n: int, *rows: dict[str, Any] | None, satisfied: frozenset[Any] = frozenset({7})) -> Explanation:
    explainer = WithoutCopies(Told(rows), satisfied).fit(problem_with())  # type: ignore[arg-type]
    return explainer.explain(FACTUAL, n, np.random.default_rng(0), Deadline.after(1))


COPY, NEAR, FAR = ({"a": a, "sort": "x"} for a in (4.0, 4.00049, 4.00051))  # 0.000049 and 0.000051 of the range off
OTHER = {"a": 4.0, "sort": "y"}


@pytest.mark.parametrize(
    ("rows", "left"),
    [
        ((COPY, FAR, OTHER), [FAR, OTHER]),
        ((FAR, NEAR, OTHER), [FAR, OTHER]),
        ((FAR, OTHER, COPY), [FAR, OTHER]),
        ((COPY, NEAR, OTHER), [OTHER, None]),
        ((COPY, FAR, None), [FAR, None]),
    ],
)
def test_copies_are_dropped(rows: tuple[Any, ...], left: list[Any]) -> None:
    """Wherever they stand, to four decimals of a number's range; two answers there are, with or without a point."""
    found = given(2, *rows)
    assert [answer.row for answer in found.answers] == left
    assert found.conflict == ("hull",)


def test_what_is_missing_says_why() -> None:
    assert given(2, COPY, NEAR, COPY).answers == (SPENT, SPENT)


def test_other_factuals_are_asked_as_ever() -> None:
    """For as many as are wanted, and a copy stays for the harness to call a fault."""
    found = given(2, COPY, FAR, OTHER, satisfied=frozenset({8}))
    assert [answer.row for answer in found.answers] == [COPY, FAR]


def test_all_else_is_the_methods_own() -> None:
    method = WithoutCopies(Told(()), frozenset())  # type: ignore[arg-type]
    assert (method.refuses(None), method.refuses(problem_with())) == ("no", None)  # type: ignore[arg-type]
    assert method.objective(problem_with()) == "claimed"


def test_a_refusal_names_the_method_that_is_asked() -> None:
    """And not what is around it."""
    gapped = problem_with()
    gapped = replace(gapped, space=SPACE.replace({"a": {"missing": True}}))
    method = WithoutCopies(Told(()), frozenset())  # type: ignore[arg-type]
    assert str(refusal(method, gapped)).startswith("Told takes no missing values, and a keeps them")


def test_the_next_leaf_is_the_nearest_counterfactual() -> None:
    """A tree on one number: below 3 and from 3 to 7 it says yes, above 7 no. From 4, in the middle leaf, the next best
    point is 3 itself, 0.1 of the range away, for one changed column; from 1 it is just above 3, 0.2 away."""
    values = np.repeat([1.0, 5.0, 9.0], 4)[:, None]
    tree = DecisionTreeClassifier().fit(values, [1, 1, 1, 1, 0, 1, 1, 1, 0, 0, 0, 0])
    assert sorted(tree.tree_.threshold[tree.tree_.feature >= 0]) == [3.0, 7.0]
    problem = problem_with(Classifier(tree, (Affine("a", 0.0, 1.0),), ("no", "yes")))
    method = CeOcl(distance="l2sq", alpha=10000, count="columns", diversity="assignments")
    for value, reached, cost in ((4.0, 3.0, 0.01), (1.0, 3.0, 0.04)):
        factual = FACTUAL.assign(a=value)
        first = ask(method, problem, factual, 2).answers[0]
        assert first.row == factual.iloc[0].to_dict()
        (found,) = ask(WithoutCopies(method, frozenset({7})), problem, factual).answers  # type: ignore[arg-type]
        assert found.row is not None
        assert found.row["a"] == pytest.approx(reached, abs=1e-5)
        assert found.objective == pytest.approx(10000 + cost, abs=1e-5)
        assert found.status is Status.OPTIMAL
