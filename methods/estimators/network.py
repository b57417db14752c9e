"""Networks of ReLUs: the estimators that are ones, their layers, and the size of their outputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.neural_network import MLPClassifier, MLPRegressor

from harness.core.problem import Problem
from harness.models.runtime.estimators import RuntimeNetwork
from harness.models.torch_mlp import TorchMLPClassifier

NETWORKS = (MLPClassifier, MLPRegressor, TorchMLPClassifier, RuntimeNetwork)
PARTS = 100.0  # units in the range of an output over the training rows


def dense_layers(estimator: Any) -> list[tuple[np.ndarray, np.ndarray]]:
    """Weights, shape (values before, units), and intercepts, shape (units,), of each layer, the outputs' last."""
    return list(zip(estimator.coefs_, estimator.intercepts_, strict=True))


def stacked(layers: Sequence[tuple[np.ndarray, np.ndarray]]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Layers as compiled code takes them: weights (layers, units, values before), shifts (layers, units), and widths.

    ``layers``: weights, shape (units, values before), and shifts of each; what is narrower than others ends in zeros.
    """
    widths = np.array([len(shifts) for _, shifts in layers])
    weights = np.zeros((len(layers), widths.max(), max(matrix.shape[1] for matrix, _ in layers)))
    shifts = np.zeros((len(layers), widths.max()))
    for k, (matrix, own) in enumerate(layers):
        weights[k, : matrix.shape[0], : matrix.shape[1]], shifts[k, : len(own)] = matrix, own
    return weights, shifts, widths


def has_hidden_units(estimator: Any) -> bool:
    """Whether a network has more than a layer of outputs, so that its activation matters."""
    return len(dense_layers(estimator)) > 1


def _sums(estimator: Any, matrix: np.ndarray) -> list[np.ndarray]:
    """Each layer's sums of rows of inputs, the outputs last, shape (rows, units)."""
    sums, values = [], matrix
    for weights, shifts in dense_layers(estimator):
        sums.append(values @ weights + shifts)
        values = np.maximum(sums[-1], 0.0)
    return sums


def outputs_of(estimator: Any, matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The last layer's sums of rows of inputs, shape (rows, outputs), and the size of all terms in them, (rows,)."""
    sizes = np.abs(matrix)
    for weights, shifts in dense_layers(estimator):
        sizes = sizes @ np.abs(weights) + np.abs(shifts)
    return _sums(estimator, matrix)[-1], sizes.max(axis=1)


def phases_of(estimator: Any, matrix: np.ndarray) -> np.ndarray:
    """Which hidden units are at work in rows of inputs, layer by layer, bool of shape (rows, hidden units)."""
    hidden = _sums(estimator, matrix)[:-1]
    return np.hstack([np.zeros((len(matrix), 0)), *hidden]) > 0


def unit_of(problem: Problem) -> float:
    """A unit of a network's outputs, in which margins of 1e-6 and the solver's tolerances are small, whatever its size.

    A hundredth of the most that an output, or a lead over another one, varies over the training rows.
    """
    outputs, _ = outputs_of(problem.classifier.estimator, problem.classifier.matrix(problem.train))
    leads = outputs - outputs[:, :1] if outputs.shape[1] > 1 else outputs
    return float(np.ptp(leads, axis=0).max()) / PARTS or 1.0
