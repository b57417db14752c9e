"""Estimators whose raw output is ``coef_`` times their inputs, plus ``intercept_``."""

from __future__ import annotations

from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import (
    BayesianRidge,
    ElasticNet,
    HuberRegressor,
    Lasso,
    LinearRegression,
    LogisticRegression,
    Perceptron,
    Ridge,
    RidgeClassifier,
    RidgeClassifierCV,
    SGDClassifier,
)
from sklearn.svm import LinearSVC, LinearSVR

CLASSIFIERS = (
    LogisticRegression, LinearSVC, RidgeClassifier, RidgeClassifierCV, SGDClassifier, Perceptron,
    LinearDiscriminantAnalysis,
)  # fmt: skip
REGRESSORS = (LinearRegression, Ridge, Lasso, ElasticNet, HuberRegressor, BayesianRidge, LinearSVR)
