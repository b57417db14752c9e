"""The laws of methods on models made of others, each member with an encoding of its own: all nine kinds."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import pytest
from hydra.utils import instantiate
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    RandomForestClassifier,
    StackingClassifier,
    VotingClassifier,
)
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import FixedThresholdClassifier, GridSearchCV, TunedThresholdClassifierCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.tree import DecisionTreeClassifier
from support import laws
from support.laws import Case
from support.own import GRADES, pipeline, table

from harness.core.problem import Problem
from harness.library import pose

from test_contract import METHOD_KINDS, WRAPPERS, chosen  # isort: skip

QUICK = {"nearest", "ce_ocl"}
EXACT = {"bagging", "ada", "fixed threshold", "search", "against the rest", "soft votes", "calibrated", "tuned"}


def behind(model: Any) -> Any:
    """A pipeline that encodes for itself, scaling, spreading and ranking."""
    return make_pipeline(clone(pipeline("visits")[0]), model)


def tree(depth: int = 3) -> Any:
    return behind(DecisionTreeClassifier(max_depth=depth, random_state=0))


def line() -> Any:
    return behind(LogisticRegression())


KINDS: dict[str, Callable[[], Any]] = {
    "calibrated": lambda: CalibratedClassifierCV(tree(), cv=2),
    "soft votes": lambda: VotingClassifier([("a", tree(2)), ("b", tree(4))], voting="soft", weights=[1, 2]),
    "hard votes": lambda: VotingClassifier([("a", line()), ("b", behind(RandomForestClassifier(3, random_state=0)))]),
    "bagging": lambda: behind(BaggingClassifier(DecisionTreeClassifier(max_depth=3), 4, random_state=0)),
    "ada": lambda: behind(AdaBoostClassifier(n_estimators=5, random_state=0)),
    "stacking": lambda: StackingClassifier([("a", line()), ("b", tree())], cv=2),
    "tuned": lambda: TunedThresholdClassifierCV(line(), cv=2),
    "fixed threshold": lambda: FixedThresholdClassifier(tree(), threshold=0.6),
    "search": lambda: GridSearchCV(tree(), {"decisiontreeclassifier__max_depth": [2, 3]}, cv=2),
    "against the rest": lambda: OneVsRestClassifier(line()),
}


@cache
def posed(kind: str) -> Problem:
    frame = table("loans")
    model = KINDS[kind]().fit(frame.drop(columns="outcome"), frame["outcome"])
    features = {**dict.fromkeys(frame.columns.drop("outcome")), "grade": {"kind": "ordinal", "categories": GRADES}}
    task = pose(frame, "outcome", model, desired="good", features=features, immutable=["member"])
    return next(iter(task.problems.values()))


def case(kind: str, method: str) -> Case:
    problem, built = posed(kind), instantiate(chosen("method", method), _convert_="all")
    factuals = problem.train.loc[~problem.valid(problem.train)].iloc[:2]
    return Case(built, problem, factuals, own=not type(built).__module__.startswith(WRAPPERS))


@pytest.mark.parametrize(
    "method", [pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in METHOD_KINDS]
)
@pytest.mark.parametrize("kind", KINDS)
def test_method_on_a_wrapped_model(kind: str, method: str) -> None:
    laws.judge(case(kind, method), *laws.ALL)


@pytest.mark.parametrize("kind", KINDS)
def test_exact_methods_take_what_is_a_sum_or_a_threshold(kind: str) -> None:
    assert (case(kind, "ce_ocl").refusal is None) == (kind in EXACT)
