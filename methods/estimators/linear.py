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

CLASSIFIERS = (LogisticRegression, LinearSVC, RidgeClassifier)
REGRESSORS = (LinearRegression, Ridge, Lasso, ElasticNet, HuberRegressor, BayesianRidge, LinearSVR)


def is_linear(estimator: Any) -> bool:
    """Whether the raw output of a fitted estimator is ``weights_of`` it times its inputs, plus a constant."""
    if isinstance(estimator, SVR):
        return bool(estimator.kernel == "linear")
    return isinstance(estimator, (*CLASSIFIERS, *REGRESSORS))


def weights_of(estimator: Any) -> tuple[np.ndarray, np.ndarray]:
    """Weights, shape (outputs, inputs), and intercepts, shape (outputs,), of a linear model."""
    weights = np.atleast_2d(estimator.coef_)
    return weights, np.broadcast_to(np.atleast_1d(estimator.intercept_), len(weights))
