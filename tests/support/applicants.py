"""A space of five features whose points can all be listed, and models fitted to them: problems of CE-OCL."""

from __future__ import annotations

import itertools
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.ensemble import (
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from support.enumeration import merit

from harness.core.classifier import Classifier
from harness.core.inputs import space_inputs
from harness.core.problem import Problem
from harness.core.space import Feature, Space
from harness.core.target import Label

MODELS: dict[str, Any] = {
    "lr": LogisticRegression(),
    "svm": LinearSVC(),
    "cart": DecisionTreeClassifier(max_depth=4, random_state=0),
    "rf": RandomForestClassifier(8, max_depth=3, random_state=0),
    "gbm": GradientBoostingClassifier(n_estimators=8, max_depth=2, random_state=0),
    "mlp": MLPClassifier((8,), max_iter=300, learning_rate_init=0.02, random_state=0),
}
REGRESSORS: dict[str, Any] = {
    "linear": LinearRegression(),
    "cart": DecisionTreeRegressor(max_depth=4, random_state=0),
    "rf": RandomForestRegressor(8, max_depth=3, random_state=0),
    "gbm": GradientBoostingRegressor(n_estimators=8, max_depth=2, random_state=0),
    "mlp": MLPRegressor(hidden_layer_sizes=(8,), max_iter=300, learning_rate_init=0.02, random_state=0),
}
SPLITTING = ("cart", "rf", "gbm")

FREE = Space(
    (
        Feature("age", "integer", scale=(0, 7), bounds=(0, 7)),
        Feature("debt", "integer", scale=(0, 5), bounds=(0, 5)),
        Feature("member", "binary", (False, True)),
        Feature("grade", "ordinal", ("low", "mid", "high")),
        Feature("region", "categorical", ("n", "s", "w")),
    )
)
SPACES = {
    "free": FREE,
    "kept": FREE.replace(
        {
            "age": {"actionability": "increase", "bounds": (0, 5)},
            "member": {"actionability": "immutable"},
            "grade": {"actionability": "increase"},
            "region": {"actionability": "conditional", "order": ("w", "n", "s")},
        }
    ),
    "coded": FREE.replace(
        {
            "age": {"actionability": "decrease"},
            "debt": {"bounds": (1, 4), "special": (-2, 9)},
            "region": {"actionability": "conditional", "order": ("s", "w")},
        }
    ),
}
VALUES = {
    "age": range(8),
    "debt": range(-2, 10),
    "member": (False, True),
    "grade": ("low", "mid", "high"),
    "region": ("n", "s", "w"),
}
GRID = FREE.frame(dict(zip(VALUES, row, strict=True)) for row in itertools.product(*VALUES.values()))


@cache
def classifier(model: str, classes: int = 2, threshold: float | None = None) -> Classifier:
    frame = GRID.sample(300, random_state=0)
    noise = np.random.default_rng(1).normal(0, 0.3, len(frame))
    codes = np.searchsorted(np.quantile(merit(GRID), np.arange(1, classes) / classes), merit(frame) + noise)
    estimator = clone(MODELS[model])
    estimator.fit(FREE.encode(frame), codes)
    return Classifier(estimator, space_inputs(FREE), ("no", "yes", "very")[:classes], threshold)


def problem_of(fitted: Classifier, target: str, space: Space = FREE) -> Problem:
    frame = GRID.sample(300, random_state=0)
    return Problem(space, fitted, frame, np.empty(300, dtype=object), Label(target))


def refitted(problem: Problem, estimator: Any) -> Problem:
    """The problem of another estimator, fitted to what the first says of the training rows."""
    estimator.fit(problem.classifier.matrix(problem.train), problem.valid(problem.train).astype(int))
    return replace(problem, classifier=replace(problem.classifier, estimator=estimator))


def factuals(problem: Problem, count: int, seed: int = 0) -> list[pd.DataFrame]:
    """Points of the grid that the model puts elsewhere, one with a debt of -2 or 9: special codes, in one space."""
    candidates = GRID[~problem.valid(GRID)].sample(frac=1, random_state=seed)
    special = candidates["debt"].isin((-2, 9))
    coded, plain = candidates[special], candidates[~special]
    return [part.iloc[[row]] for part, rows in ((plain, count - 1), (coded, 1)) for row in range(min(rows, len(part)))]
