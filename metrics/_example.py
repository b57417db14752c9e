"""The small loan problem of the doctests: a factual, refused, and two answers, of which the model grants one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

from harness.core.classifier import Classifier
from harness.core.inputs import space_inputs
from harness.core.problem import Problem
from harness.core.space import Actionability, Feature, Kind, Space
from harness.core.target import Label

SPACE = Space(
    (
        Feature("income", Kind.CONTINUOUS, scale=(0, 100), bounds=(0, 100)),
        Feature("age", Kind.INTEGER, scale=(20, 60), bounds=(18, 90), actionability=Actionability.INCREASE),
        Feature("member", Kind.BINARY, ("no", "yes")),
        Feature("education", Kind.ORDINAL, ("school", "college", "degree")),
        Feature("job", Kind.CATEGORICAL, ("none", "clerk", "nurse")),
    )
)


def rows(*values: tuple[float, int, str, str, str]) -> pd.DataFrame:
    """A decoded frame from plain rows."""
    return SPACE.frame(dict(zip(SPACE.names, row, strict=True)) for row in values)


TRAIN = rows(
    (0.0, 30, "no", "school", "none"),
    (20.0, 20, "no", "college", "clerk"),
    (30.0, 45, "yes", "school", "clerk"),
    (40.0, 60, "no", "degree", "nurse"),
    (60.0, 25, "yes", "school", "clerk"),
    (70.0, 40, "no", "college", "nurse"),
    (80.0, 35, "no", "degree", "clerk"),
    (100.0, 50, "yes", "degree", "nurse"),
)
# The second row was granted, although the model, one split at an income of 50, refuses it.
LABELS = np.array(
    ["refused", "granted", "refused", "refused", "granted", "granted", "granted", "granted"], dtype=object
)

_tree = DecisionTreeClassifier(max_depth=1, random_state=0).fit(SPACE.encode(TRAIN), LABELS == "granted")
problem = Problem(
    space=SPACE,
    classifier=Classifier(_tree, space_inputs(SPACE), classes=("refused", "granted")),
    train=TRAIN,
    labels=LABELS,
    target=Label("granted"),
)
factual = rows((30.0, 30, "no", "school", "clerk"))
answers = rows((80.0, 40, "no", "school", "clerk"), (30.0, 20, "yes", "college", "nurse"))

# The same question to a linear model, which grants where income / 100 exceeds 0.5.
_line = LinearSVC().fit(SPACE.encode(TRAIN), LABELS == "granted")
_line.coef_, _line.intercept_ = np.array([[1.0, 0, 0, 0, 0, 0, 0]]), np.array([-0.5])
linear = replace(problem, classifier=replace(problem.classifier, estimator=_line))


class _Retraining:
    """Two other trees, of splits at incomes of 50 and 90, whatever changes; rows have no time."""

    names: Mapping[str, Sequence[str]] = {}

    def models(self, change: str) -> tuple[Classifier, ...]:
        return () if change == "later" else tuple(map(_granting, (45.0, 85.0)))


def _granting(least: float) -> Classifier:
    """A tree that grants from halfway between ``least`` and the next of the training rows' incomes."""
    tree = DecisionTreeClassifier(max_depth=1, random_state=0).fit(
        SPACE.encode(TRAIN.assign(income=[0.0, 20.0, 30.0, least, least + 10, 96.0, 98.0, 100.0])), np.arange(8) > 3
    )
    return replace(problem.classifier, estimator=tree)


retrained = replace(problem, classifier=replace(problem.classifier, retraining=_Retraining()))
