"""Linear models: which estimators are, and their weights."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.linear_model import (
    BayesianRidge,
    ElasticNet,
    HuberRegressor,
    Lasso,
    LinearRegression,
    LogisticRegression,
    Ridge,
    RidgeClassifier,
)
from sklearn.svm import SVR, LinearSVC, LinearSVR

from harness.core.problem import Problem

CLASSIFIERS = (LogisticRegression, LinearSVC, RidgeClassifier)
REGRESSORS = (LinearRegression, Ridge, Lasso, ElasticNet, HuberRegressor, BayesianRidge, LinearSVR)
PARTS = 100.0  # units that the most moving input moves an output


def is_linear(estimator: Any) -> bool:
    """Whether the raw output of a fitted estimator is ``weights_of`` it times its inputs, plus a constant."""
    if isinstance(estimator, SVR):
        return bool(estimator.kernel == "linear")
    return isinstance(estimator, (*CLASSIFIERS, *REGRESSORS))


def weights_of(estimator: Any) -> tuple[np.ndarray, np.ndarray]:
    """Weights, shape (outputs, inputs), and intercepts, shape (outputs,), of a linear model."""
    weights = np.atleast_2d(estimator.coef_)
    return weights, np.broadcast_to(np.atleast_1d(estimator.intercept_), len(weights))


def unit_of(problem: Problem) -> float:
    """A unit of a linear model's outputs: a hundredth of the most that an input moves one within the training rows.

    In it tolerances and margins of 1e-6 are small, and an integer's step is great, however small or great the weights.
    1 of other models.
    """
    if not is_linear(problem.classifier.estimator):
        return 1.0
    weights, _ = weights_of(problem.classifier.estimator)
    moves = np.abs(weights) * np.ptp(problem.classifier.matrix(problem.train), axis=0)
    return float(moves.max(initial=0.0)) / PARTS or 1.0
