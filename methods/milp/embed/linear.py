"""Linear models: logistic regression, linear support vector machines, linear and ridge regression."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge, RidgeClassifier
from sklearn.svm import LinearSVC

from harness.solvers.program import Program
from methods.milp.embed.embedded import Embedded
from methods.milp.embed.registry import embed
from methods.milp.sources import Source


@embed.register(LogisticRegression)
@embed.register(LinearSVC)
@embed.register(RidgeClassifier)
@embed.register(LinearRegression)
@embed.register(Ridge)
def _(estimator: Any, program: Program, inputs: Sequence[Source], sense: int = 0) -> Embedded:
    """Output = w·x + b, one a row of weights."""
    weights = np.atleast_2d(estimator.coef_)
    intercepts = np.broadcast_to(np.atleast_1d(estimator.intercept_), len(weights))
    return Embedded(tuple(affine(w, b, inputs) for w, b in zip(weights, intercepts, strict=True)))


def affine(weights: np.ndarray, intercept: float, inputs: Sequence[Source]) -> Any:
    """w·x + b over the inputs' expressions."""
    return sum(float(w) * source.expression for w, source in zip(weights, inputs, strict=True) if w) + float(intercept)
