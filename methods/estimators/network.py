"""Networks of ReLUs: the estimators that are ones, and the size of their outputs."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.neural_network import MLPClassifier, MLPRegressor

from harness.core.problem import Problem
from harness.models.torch_mlp import TorchMLPClassifier

NETWORKS = (MLPClassifier, MLPRegressor, TorchMLPClassifier)
PARTS = 100.0  # units in the range of an output over the training rows


def outputs_of(estimator: Any, matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The last layer's sums of rows of inputs, shape (rows, outputs), and the size of all terms in them, (rows,)."""
    values, sizes = matrix, np.abs(matrix)
    for depth, (weights, shifts) in enumerate(zip(estimator.coefs_, estimator.intercepts_, strict=True)):
        values = np.maximum(values, 0.0) if depth else values
        values, sizes = values @ weights + shifts, sizes @ np.abs(weights) + np.abs(shifts)
    return values, sizes.max(axis=1)


def phases_of(estimator: Any, matrix: np.ndarray) -> np.ndarray:
    """Which hidden units are at work in rows of inputs, layer by layer, bool of shape (rows, hidden units)."""
    values, phases = matrix, [np.zeros((len(matrix), 0), dtype=bool)]
    for weights, shifts in zip(estimator.coefs_[:-1], estimator.intercepts_[:-1], strict=True):
        values = values @ weights + shifts
        phases.append(values > 0)
        values = np.maximum(values, 0.0)
    return np.hstack(phases)


def unit_of(problem: Problem) -> float:
    """A unit of a network's outputs, in which margins of 1e-6 and the solver's tolerances are small, whatever its size.

    A hundredth of the most that an output, or a lead over another one, varies over the training rows.
    """
    outputs, _ = outputs_of(problem.classifier.estimator, problem.classifier.matrix(problem.train))
    leads = outputs - outputs[:, :1] if outputs.shape[1] > 1 else outputs
    return float(np.ptp(leads, axis=0).max()) / PARTS or 1.0
