"""How far the weights of a model may change, as by another training, without any answer becoming invalid."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.special import expit

from harness.certificate.margins import FAMILIES, Margin, margins
from harness.core.classifier import Classifier
from harness.core.errors import UnsupportedError
from harness.core.target import Target
from harness.core.tolerances import LIMIT_MET, SUM_ROUNDING

ACTIVATIONS = {  # all grow with their argument, so that intervals of sums become intervals of units
    "identity": lambda sums: sums,
    "relu": lambda sums: np.maximum(sums, 0.0),
    "logistic": expit,
    "tanh": np.tanh,
}
HALVINGS = 40  # as many for every row, so that none depends on the others
BLOCK = 1_000_000  # products that are held at once


class Layer(NamedTuple):
    """Sums of a layer: ``weights``, shape (inputs, units), and ``shifts``, shape (units,)."""

    weights: np.ndarray
    shifts: np.ndarray
    shifted: float  # 1 where the shifts are parameters of the model, which change as well; 0 where they are none


class WeightBox:
    r"""What a model may say of a point if each weight moves on its own by at most :math:`\delta`: Δ-robustness [1]_.

    The set of models is :math:`\{\theta' : \|\theta' - \theta\|_\infty \le \delta\}`, all weights and intercepts, on
    the inputs that the estimator itself takes. Sums of intervals give the least margin of all of them. For linear
    models, :math:`w^\top x + b - \delta (\|x\|_1 + 1)`, and for networks of one hidden layer it is attained, since each
    unit has weights of its own; with more layers it is a lower bound.

    Parameters
    ----------
    classifier, target
        The model, and what it is to say.

    Raises
    ------
    UnsupportedError
        For models without weights, such as trees; for networks with activations other than ``ACTIVATIONS``; and for a
        target that is no bound on raw outputs.

    References
    ----------
    .. [1] Jiang, J., F. Leofante, A. Rago and F. Toni (2023). Formalising the robustness of counterfactual
       explanations for neural networks. *AAAI 37*.
    """

    def __init__(self, classifier: Classifier, target: Target) -> None:
        self.margins: list[Margin] = margins(classifier, target)
        estimator = classifier.estimator
        if getattr(estimator, "out_activation_", "") == "exp":
            raise UnsupportedError("a network with loss 'poisson' is an exponential of its sums; use 'squared_error'.")
        linear = isinstance(estimator, FAMILIES["linear"])
        if linear and hasattr(estimator, "coef_"):
            weights = np.atleast_2d(estimator.coef_).T
            shifts = np.broadcast_to(np.atleast_1d(estimator.intercept_), weights.shape[1])
            self.layers = [Layer(weights, shifts, float(getattr(estimator, "fit_intercept", True)))]
            self.activation = ACTIVATIONS["identity"]
        elif (
            hasattr(estimator, "coefs_")
            and not hasattr(estimator, "engine")
            and getattr(estimator, "activation", "") in ACTIVATIONS
        ):
            parts = zip(estimator.coefs_, estimator.intercepts_, strict=True)
            self.layers = [Layer(np.asarray(w, float), np.asarray(b, float), 1.0) for w, b in parts]
            self.activation = ACTIVATIONS[estimator.activation]
        else:
            raise UnsupportedError(
                f"{type(estimator).__name__} has no weights that could change a little; linear models have, and "
                f"networks with activation {', '.join(ACTIVATIONS)}."
            )

    @property
    def exact(self) -> bool:
        """Whether ``worst`` is attained by some model, rather than a bound."""
        return len(self.layers) <= 2

    def worst(self, matrix: np.ndarray, delta: np.ndarray | float) -> np.ndarray:
        """The least margin over all models, shape (rows,), less its rounding: where it is positive, all say the target.

        Parameters
        ----------
        matrix
            The estimator's inputs, shape (rows, inputs).
        delta
            How much a weight may change, one number or one a row, >= 0.
        """
        delta = np.broadcast_to(delta, len(matrix))
        widest = max(layer.weights.size for layer in self.layers)
        rows = max(1, BLOCK // max(widest, 1))
        parts = [self._worst(matrix[k : k + rows], delta[k : k + rows]) for k in range(0, len(matrix), rows)]
        return np.concatenate([np.empty(0), *parts])

    def _worst(self, matrix: np.ndarray, delta: np.ndarray) -> np.ndarray:
        low = high = matrix
        *hidden, last = self.layers
        for layer in hidden:
            low, high = _sums(low, high, layer, delta)
            low, high = self.activation(low), self.activation(high)
        if any(len(margin.weights) != last.weights.shape[1] for margin in self.margins):
            raise UnsupportedError("the model's outputs are not one for each class.")
        least = np.full(len(matrix), np.inf)
        for margin in self.margins:  # the outputs' weights change independently: their leads change by the sum
            lead = Layer(last.weights @ margin.weights[:, None], last.shifts @ margin.weights[:, None], last.shifted)
            sums, _ = _sums(low, high, lead, delta * np.abs(margin.weights).sum())
            least = np.minimum(least, sums[:, 0] + margin.constant - SUM_ROUNDING * abs(margin.constant))
        return least

    def largest(self, matrix: np.ndarray, within: float = 1.0) -> np.ndarray:
        """The greatest change of every weight for which all models are proven to say the target, shape (rows,).

        Parameters
        ----------
        within
            The greatest that is asked for.
        """
        low, high = np.zeros(len(matrix)), np.full(len(matrix), within)
        low = np.where(self.worst(matrix, within) > 0, within, low)
        high = np.where(self.worst(matrix, 0.0) > 0, high, low)
        for _ in range(HALVINGS):
            middle = (low + high) / 2
            holds = self.worst(matrix, middle) > 0
            low, high = np.where(holds, middle, low), np.where(holds, high, middle)
        return low


def _sums(low: np.ndarray, high: np.ndarray, layer: Layer, delta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Ends of a layer's sums over units between ``low`` and ``high``, and weights within ``delta``, by row."""
    change = delta[:, None, None]
    ends = [(layer.weights + sign * change) * units[:, :, None] for sign in (-1, 1) for units in (low, high)]
    least, most = np.minimum.reduce(ends), np.maximum.reduce(ends)
    shift = delta[:, None] * layer.shifted
    room = SUM_ROUNDING * (np.maximum(np.abs(least), np.abs(most)).sum(axis=1) + np.abs(layer.shifts) + shift)
    return least.sum(axis=1) + layer.shifts - shift - room, most.sum(axis=1) + layer.shifts + shift + room


@lru_cache(maxsize=8)
def weight_box(classifier: Classifier, target: Target) -> WeightBox:
    """The ``WeightBox`` of a question, kept for the next answers."""
    return WeightBox(classifier, target)


def proven(classifier: Classifier, target: Target, frame: pd.DataFrame, delta: float) -> np.ndarray:
    """Which decoded rows are valid for all weights within ``delta``, but for a millionth of it; bool, shape (rows,)."""
    return weight_box(classifier, target).worst(classifier.matrix(frame), delta * (1 - LIMIT_MET)) > 0
