"""Small models, and what every corner of the box of their weights says of every point."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.svm import LinearSVC

from harness.core.classifier import Classifier
from harness.core.inputs import Affine, Indicator
from harness.core.problem import Problem
from harness.core.space import Feature, Space
from harness.core.target import Label

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
