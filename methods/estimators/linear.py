"""Linear models: which estimators are, and their weights."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from sklearn.svm import SVR

from harness.core.linear import CLASSIFIERS, REGRESSORS
from harness.core.problem import Problem
from harness.core.space import Kind
from harness.core.target import Label
from harness.core.tolerances import LOG_ODDS_DIGITS, SUM_ROUNDING
from methods.estimators import network
from methods.estimators.raw_target import raw_interval

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
    That of ``methods.estimators.network`` of a network, 1 of other models.
    """
    if isinstance(problem.classifier.estimator, network.NETWORKS):
        return network.unit_of(problem)
    if not is_linear(problem.classifier.estimator):
        return 1.0
    weights, _ = weights_of(problem.classifier.estimator)
    moves = np.abs(weights) * np.ptp(problem.classifier.matrix(problem.train), axis=0)
    return float(moves.max(initial=0.0)) / PARTS or 1.0


def surely_valid(problem: Problem, frame: pd.DataFrame) -> np.ndarray:
    """Which rows the model accepts, bool; a linear one or a network by more than its rounding of continuous numbers.

    The same row is summed in another order among other rows, and a point on the very threshold would be accepted here
    and refused there.
    """
    valid, classifier = problem.valid(frame), problem.classifier
    continuous = any(feature.kind is Kind.CONTINUOUS for feature in problem.space.features)
    if not valid.any() or not continuous:
        return valid
    if is_linear(classifier.estimator):
        weights, intercepts = weights_of(classifier.estimator)
        matrix = classifier.matrix(frame)
        outputs = matrix @ weights.T + intercepts
        terms = (np.abs(matrix) @ np.abs(weights).T + np.abs(intercepts)).max(axis=1)
    elif isinstance(classifier.estimator, network.NETWORKS) and classifier.estimator.activation == "relu":
        outputs, terms = network.outputs_of(classifier.estimator, classifier.matrix(frame))
    else:
        return valid
    if outputs.shape[1] == 1:
        limits = raw_interval(problem)
        room = np.minimum(outputs[:, 0] - limits.low, limits.high - outputs[:, 0])
    else:
        assert isinstance(problem.target, Label)
        wanted = classifier.code(problem.target.value)
        room = outputs[:, wanted] - np.delete(outputs, wanted, axis=1).max(axis=1)
    least = SUM_ROUNDING * terms
    if classifier.threshold is not None and classifier.probabilistic:
        least = np.maximum(least, LOG_ODDS_DIGITS)
    return valid & (room > least)
