"""Estimators that another library computes, behind scikit-learn's protocol; what is read of them lies beside.

Their type says what they are read as, so that readers choose by it: a network of ReLUs, trees, or nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin

from harness.core.classifier import Classifier
from harness.core.inputs import Input
from harness.core.tolerances import PROBABILITY_TIE
from harness.models.runtime.engine import LOGITS, Engine, Predicted, decided, probabilities
from harness.models.runtime.records import Layers, Trees

NEAR = 16.0  # roundings of a sum's terms within which two ways of adding them up may differ


class RuntimeModel(BaseEstimator):
    """A fitted model whose every prediction its own library makes.

    Parameters
    ----------
    engine
        That library with the model.
    inputs
        Maps from decoded features to what is read of it, or to its columns; none where each of these is an input of its
        own, and nothing is read.
    names
        Names of the features that it takes.
    """

    opaque: str | None = None

    def __init__(self, engine: Engine, inputs: Sequence[Input], names: Sequence[str]) -> None:
        self.engine, self.inputs, self.names = engine, inputs, names
        self.feature_names_in_ = np.array(list(names), dtype=object)
        self.n_features_in_ = len(inputs) or len(names)

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def predicted(self, rows: Any) -> Predicted:
        """What the library says of decoded rows, a frame, or of a matrix of its inputs, shape (rows, inputs)."""
        if self.engine.columns:
            rows = rows if isinstance(rows, pd.DataFrame) or self.engine.decoder is None else self.engine.decoder(rows)
        elif isinstance(rows, pd.DataFrame) and self.inputs:
            rows = Classifier(None, tuple(self.inputs)).matrix(rows)
        return self.engine(rows)

    def differs(self, matrix: np.ndarray) -> str | None:
        """What is read of the model but not as its library computes it, over rows of inputs; None where it agrees."""
        if self.opaque is not None:
            return None
        reading: Any = self.engine.reading
        sums, found = reading.sums(matrix), self.predicted(matrix)
        room = NEAR * reading.epsilon * reading.sizes(matrix)[:, None]
        if isinstance(self, RegressorMixin):
            return "numbers" if (np.abs(found.scores - sums) > room).any() else None
        linked = not isinstance(reading, Trees) or reading.logistic
        share = probabilities(sums, LOGITS) if linked and sums.shape[1] == 1 else sums
        ends = [probabilities(sums + side * room, LOGITS)[:, -1:] if linked else sums + side * room for side in (-1, 1)]
        if sums.shape[1] == 1:
            own = probabilities(found.scores, self.engine.kind)[:, 1:]
            if ((own < ends[0] - PROBABILITY_TIE) | (own > ends[1] + PROBABILITY_TIE)).any():
                return "scores"
            lead = sums - (0.0 if linked else 0.5)
            codes, sure = (lead[:, 0] > 0).astype(int), np.abs(lead[:, 0]) > room[:, 0]
        else:
            ordered = np.sort(sums, axis=1)
            codes, sure = share.argmax(axis=1), ordered[:, -1] - ordered[:, -2] > 2 * room[:, 0]
        return "classes" if (self._codes(found) != codes)[sure].any() else None

    def _codes(self, found: Predicted) -> np.ndarray:
        """Class codes of predictions, shape (rows,)."""
        if found.labels is None:
            return decided(found.scores, self.engine.kind)
        known = {label: code for code, label in enumerate(self.engine.labels)}
        return np.array([known[label] for label in found.labels.tolist()], dtype=int)


class RuntimeClassifier(ClassifierMixin, RuntimeModel):
    """Classes; read as nothing."""

    def __init__(self, engine: Engine, inputs: Sequence[Input], names: Sequence[str]) -> None:
        super().__init__(engine, inputs, names)
        self.classes_ = np.array(engine.labels)

    def predict(self, rows: Any) -> np.ndarray:
        """Labels, shape (rows,)."""
        return self.classes_[self._codes(self.predicted(rows))]

    def predict_proba(self, rows: Any) -> np.ndarray:
        """Of each class, shape (rows, classes); float64 of what the library computes."""
        return probabilities(self.predicted(rows).scores, self.engine.kind)


class RuntimeRegressor(RegressorMixin, RuntimeModel):
    """Numbers; read as nothing."""

    def predict(self, rows: Any) -> np.ndarray:
        """Shape (rows,), float64 of what the library computes."""
        return self.predicted(rows).scores[:, 0].astype(float)


class RuntimeNetwork:
    """A network's layers as those of ``sklearn.neural_network``."""

    activation = "relu"
    engine: Engine
    out_activation_: str

    @property
    def layers(self) -> Layers:
        assert isinstance(self.engine.reading, Layers)
        return self.engine.reading

    @property
    def coefs_(self) -> list[np.ndarray]:
        return list(self.layers.weights)

    @property
    def intercepts_(self) -> list[np.ndarray]:
        return list(self.layers.shifts)


class RuntimeNetworkClassifier(RuntimeNetwork, RuntimeClassifier):
    """Classes by a network of ReLUs."""

    def __init__(self, engine: Engine, inputs: Sequence[Input], names: Sequence[str]) -> None:
        super().__init__(engine, inputs, names)
        self.out_activation_ = "logistic" if len(self.classes_) == 2 else "softmax"

    def decision_function(self, matrix: np.ndarray) -> np.ndarray:
        """The last layer's sums in float64, log odds of two classes, shape (rows,), or one a class."""
        sums = self.layers.sums(matrix)
        return sums[:, 0] if sums.shape[1] == 1 else sums


class RuntimeNetworkRegressor(RuntimeNetwork, RuntimeRegressor):
    """Numbers by a network of ReLUs."""

    out_activation_ = "identity"


class RuntimeTrees:
    """Trees."""

    engine: Engine

    @property
    def trees(self) -> Trees:
        assert isinstance(self.engine.reading, Trees)
        return self.engine.reading


class RuntimeTreesClassifier(RuntimeTrees, RuntimeClassifier):
    """Classes by trees whose leaves add up to probabilities."""


class RuntimeBoostingClassifier(RuntimeTreesClassifier):
    """Classes by trees whose leaves add up to log odds, or to one number a class of several."""

    def decision_function(self, matrix: np.ndarray) -> np.ndarray:
        """The sums in float64, shape (rows,) or one a class."""
        sums = self.trees.sums(matrix)
        return sums[:, 0] if sums.shape[1] == 1 else sums


class RuntimeTreesRegressor(RuntimeTrees, RuntimeRegressor):
    """Numbers by trees."""


def estimator_of(engine: Engine, inputs: Sequence[Input], names: Sequence[str], classifier: bool) -> RuntimeModel:
    """The estimator of an engine, of the type that says what it is read as."""
    kinds: tuple[type[RuntimeModel], type[RuntimeModel]]
    reading = engine.reading
    if isinstance(reading, Layers):
        kinds = RuntimeNetworkRegressor, RuntimeNetworkClassifier
    elif isinstance(reading, Trees):
        summed = reading.logistic or len(reading.base) > 1
        kinds = RuntimeTreesRegressor, RuntimeBoostingClassifier if summed else RuntimeTreesClassifier
    else:
        kinds = RuntimeRegressor, RuntimeClassifier
    found = kinds[classifier](engine, inputs, names)
    if kinds[0] is RuntimeRegressor:
        found.opaque = str(reading)
    return found
