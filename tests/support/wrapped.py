"""Models made of others, of all nine kinds, each member with an encoding of its own, before the loans."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import pandas as pd
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
from support.own import GRADES, pipeline, table

from harness.core.problem import Problem
from harness.library import pose


def behind(model: Any) -> Any:
    """A pipeline that encodes for itself, scaling, spreading and ranking."""
    return make_pipeline(clone(pipeline("visits")[0]), model)


def tree(depth: int = 3) -> Any:
    return behind(DecisionTreeClassifier(max_depth=depth, random_state=0))


def line() -> Any:
    return behind(LogisticRegression())


WRAPPED: dict[str, Callable[[], Any]] = {
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
OPAQUE = {"hard votes", "stacking"}  # of them


@cache
def wrapped(kind: str) -> tuple[Problem, pd.DataFrame]:
    """The problem of a model, and two factuals."""
    frame = table("loans")
    model = WRAPPED[kind]().fit(frame.drop(columns="outcome"), frame["outcome"])
    features = {**dict.fromkeys(frame.columns.drop("outcome")), "grade": {"kind": "ordinal", "categories": GRADES}}
    task = pose(frame, "outcome", model, desired="good", features=features, immutable=["member"])
    problem = next(iter(task.problems.values()))
    return problem, problem.train.loc[~problem.valid(problem.train)].iloc[:2]
