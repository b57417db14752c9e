"""A fitted estimator, and how its inputs come from decoded features."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from numbers import Real
from typing import Any, Protocol

import numpy as np
import pandas as pd
from scipy.special import logit

from harness.core.errors import UnsupportedError, choices
from harness.core.inputs import Indicator, Input, Lookup


@dataclass(frozen=True, eq=False)
class WrappedModel:
    """A fitted model with preprocessing of its own, asked about rows laid out as those that it was trained on.

    Parameters
    ----------
    model
        A fitted scikit-learn estimator or pipeline.
    columns
        Names of the features it takes, in its order.
    logical
        Those of them that hold True and False, objects in decoded frames and bool in a file.
    named
        Whether it was trained on a frame with these names; else on an array.
    path, sha256
        The file it came from, and the checksum of that file.
    trusted
        Whether reading the file needed the user's word that its maker is trusted.
    inputs
        The columns that it was trained on, where those are maps of decoded features rather than features.
    settings
        How a file of another library was taken, as ``harness.models.runtime.source.ModelSource`` has it.
    """

    model: Any
    columns: tuple[str, ...]
    logical: tuple[str, ...] = ()
    named: bool = True
    path: str = ""
    sha256: str = ""
    trusted: bool = False
    inputs: tuple[Input, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)

    def table(self, frame: pd.DataFrame) -> Any:
        """What the model takes, shape (rows, columns): a frame, or an array where it knows no names."""
        if self._encoded is not None:
            return self._encoded.matrix(frame)
        taken = frame[list(self.columns)].astype(dict.fromkeys(self.logical, bool))
        return taken if self.named else taken.to_numpy()

    @cached_property
    def _encoded(self) -> Classifier | None:
        return Classifier(self.model, self.inputs) if self.inputs else None


class Retraining(Protocol):
    """Other trainings of a model."""

    def models(self, change: str) -> tuple[Classifier, ...]:
        """The models of a change, such as ``bootstrap``; none where it is not defined."""

    @property
    def names(self) -> Mapping[str, Sequence[str]]:
        """By change, the names of the models that were asked for."""


@dataclass(frozen=True, eq=False)
class Classifier:
    """A fitted estimator behind decoded frames. Regression models are taken too, with no classes.

    Parameters
    ----------
    estimator
        A fitted scikit-learn estimator, trained on the columns of ``inputs`` and on ``labels`` in the order of
        ``classes``.
    inputs
        One map from a decoded feature per estimator column.
    classes
        Class names by code; empty for a regression model.
    threshold
        Class 1 iff ``score > threshold`` (binary models); the estimator's own rule where it is None.
    wrapped
        The model that ``predict``, ``score`` and ``probability`` ask where it is more than ``estimator``: a pipeline
        whose last step ``estimator`` is, and whose other steps are ``inputs``.
    opaque
        Why the model cannot be read: a sentence. There are then no inputs, and ``estimator`` is ``wrapped``.
    labels
        What the estimator calls its classes; the codes 0, 1, ... where empty.
    cut
        The raw output of ``estimator`` above which ``wrapped`` says class 1, where it has other scores: of a calibrated
        model, say. Of more than two classes any number says so; the one with the greatest raw output is said.
    retraining
        Models as another training would give them, where it is known how this one was trained. Methods do not see it.
    """

    estimator: Any
    inputs: tuple[Input, ...]
    classes: tuple[Any, ...] = ()
    threshold: float | None = None
    wrapped: WrappedModel | None = None
    opaque: str | None = None
    labels: tuple[Any, ...] = ()
    cut: float | None = None
    retraining: Retraining | None = None

    def __post_init__(self) -> None:
        for name in ("inputs", "classes", "labels"):
            object.__setattr__(self, name, tuple(getattr(self, name)))
        if self.threshold is not None and not self.binary:
            raise UnsupportedError("a threshold needs a model with two classes; leave it out.")
        if self.threshold is not None and not self._in_range(self.threshold):
            allowed = "a number from 0 to below 1, as of probabilities," if self.probabilistic else "a finite number"
            raise UnsupportedError(
                f"threshold={self.threshold!r} does not fit; give {allowed} or null for the model's own rule."
            )

    def __getstate__(self) -> dict[str, Any]:
        """Without other trainings: a method's process is told of this model alone."""
        return {name: value for name, value in self.__dict__.items() if name != "retraining"}

    def _in_range(self, threshold: Any) -> bool:
        """Whether scores may lie on both sides of a threshold."""
        if isinstance(threshold, bool) or not isinstance(threshold, Real) or not math.isfinite(threshold):
            return False
        return not self.probabilistic or 0 <= float(threshold) < 1

    @property
    def binary(self) -> bool:
        return len(self.classes) == 2

    def matrix(self, frame: pd.DataFrame) -> np.ndarray:
        """The estimator's inputs, float64, shape (rows, inputs)."""
        matrix = np.empty((len(frame), len(self.inputs)))
        for name, columns in self._columns.items():
            values = frame[name]
            if all(isinstance(self.inputs[column], Indicator | Lookup) for column in columns):
                codes, present = pd.factorize(values.to_numpy())
                tables = [self.inputs[column].table(tuple(present)) for column in columns]  # type: ignore[union-attr]
                matrix[:, columns] = np.column_stack(tables)[codes]
            else:
                for column in columns:
                    matrix[:, column] = self.inputs[column](values)
        return matrix

    @cached_property
    def _columns(self) -> dict[str, list[int]]:
        """The input columns made of each feature."""
        columns: dict[str, list[int]] = {}
        for column, source in enumerate(self.inputs):
            columns.setdefault(source.feature, []).append(column)
        return columns

    def vector(self, row: Mapping[str, Any]) -> np.ndarray:
        """The estimator's inputs of one row of decoded values, shape (1, inputs): ``matrix`` without a frame."""
        return np.array([[source.of(row[source.feature]) for source in self.inputs]])

    def code(self, label: Any) -> int:
        """Class code of a class name."""
        for code, name in enumerate(self.classes):
            if name == label or str(name) == str(label):
                return code
        raise UnsupportedError(f"the model has no class {label!r}; {choices(label, self.classes)}.")

    def predict(self, frame: pd.DataFrame) -> np.ndarray:
        """Class names (or numbers, for regression), shape (rows,)."""
        return self.named(self._decisions(*self.asked(frame)))

    def named(self, codes: np.ndarray) -> np.ndarray:
        """The names of class codes; numbers of a regression as they are."""
        if not self.classes:
            return codes
        names = np.empty(len(self.classes), dtype=object)
        names[:] = self.classes
        return names[codes]

    def decide(self, matrix: np.ndarray) -> np.ndarray:
        """Class codes (or numbers) straight from estimator inputs, shape (rows,)."""
        if self.cut is not None:
            raw = self._raw(matrix)
            return (raw > self.cut).astype(int) if self.binary else raw.argmax(axis=1)
        return self._decisions(self.estimator, matrix)

    def grade(self, matrix: np.ndarray) -> np.ndarray:
        """``score`` straight from estimator inputs."""
        return self._scores(self.estimator, matrix)

    def score(self, frame: pd.DataFrame) -> np.ndarray:
        """Probabilities where the estimator has them, else decision values (or numbers, for regression).

        Shape (rows,) of class 1 for two classes and for regression, else (rows, classes). Where a model tells nothing
        but classes, the one that it says has the score 1, and others 0.
        """
        return self._scores(*self.asked(frame))

    def graded(self, frame: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
        """Class codes (or numbers), shape (rows,), and ``score``; where one follows from the other, asked once."""
        model, data = self.asked(frame)
        scores = self._scores(model, data)
        if self.threshold is not None:
            return (scores > self.threshold).astype(int), scores
        return (self._decisions(model, data) if self.classes else scores), scores

    def codes(self, frame: pd.DataFrame) -> np.ndarray:
        """Class codes (or numbers, for regression), shape (rows,)."""
        return self._decisions(*self.asked(frame))

    @property
    def probabilistic(self) -> bool:
        """Whether scores are probabilities."""
        return hasattr(self.estimator if self.wrapped is None else self.wrapped.model, "predict_proba")

    def probability(self, frame: pd.DataFrame, label: Any) -> np.ndarray:
        """Probability of a class, shape (rows,)."""
        model, data = self.asked(frame)
        if not self.probabilistic:
            raise UnsupportedError(f"{type(model).__name__} gives no probabilities; ask for a label instead.")
        with warnings.catch_warnings(action="ignore", category=UserWarning):
            return _probabilities(model, data)[:, self.code(label)]

    def asked(self, frame: pd.DataFrame) -> tuple[Any, Any]:
        """The model that decides, and the frame as it takes it."""
        if self.wrapped is None:
            return self.estimator, self.matrix(frame)
        return self.wrapped.model, self.wrapped.table(frame)

    def _decisions(self, model: Any, data: Any) -> np.ndarray:
        if self.threshold is not None:
            return (self._scores(model, data) > self.threshold).astype(int)
        return self._coded(model, data)

    def _coded(self, model: Any, data: Any) -> np.ndarray:
        """Class codes (or numbers) by the model's own rule."""
        with warnings.catch_warnings(action="ignore", category=UserWarning):
            predicted = np.asarray(model.predict(data))
        if not self.classes:
            return predicted.astype(float)
        if not self.labels:
            return predicted.astype(int)
        codes = {label: code for code, label in enumerate(self.labels)}
        try:
            return np.array([codes[label] for label in predicted.tolist()], dtype=int)
        except KeyError as fault:
            known = ", ".join(map(repr, self.labels))
            raise ValueError(f"predict gives {fault.args[0]!r}, and classes_ are {known}") from fault

    def _scores(self, model: Any, data: Any) -> np.ndarray:
        with warnings.catch_warnings(action="ignore", category=UserWarning):
            if not self.classes:
                return np.asarray(model.predict(data), dtype=float)
            if hasattr(model, "predict_proba"):
                scores = _probabilities(model, data)
                return scores[:, 1] if self.binary else scores
            if hasattr(model, "decision_function"):
                return model.decision_function(data)
        codes = self._coded(model, data)  # votes, say, of which only the outcome is told
        return codes.astype(float) if self.binary else np.eye(len(self.classes))[codes]

    def raw(self, frame: pd.DataFrame) -> np.ndarray:
        """What the mixed-integer layer models, as one number a row (binary, regression) or one a class.

        Decision value of linear models and boosting (the margin before any link, of XGBoost and LightGBM too), mean
        leaf fraction of trees and forests, last pre-activation of networks.
        """
        return self._raw(self.matrix(frame))

    def _raw(self, matrix: np.ndarray) -> np.ndarray:
        estimator = self.estimator
        if not self.classes:
            return np.asarray(estimator.predict(matrix), dtype=float)
        if hasattr(estimator, "decision_function"):
            return estimator.decision_function(matrix)
        if hasattr(estimator, "get_booster"):  # XGBoost
            return np.asarray(estimator.predict(matrix, output_margin=True), dtype=float)
        if hasattr(estimator, "booster_"):  # LightGBM
            with warnings.catch_warnings(action="ignore", category=UserWarning):
                return np.asarray(estimator.predict(matrix, raw_score=True), dtype=float)
        if hasattr(estimator, "coefs_"):
            probabilities = estimator.predict_proba(matrix)
            return logit(probabilities[:, 1]) if self.binary else np.log(probabilities)
        probabilities = estimator.predict_proba(matrix)
        return probabilities[:, 1] if self.binary else probabilities

    @property
    def raw_threshold(self) -> float:
        """The threshold on ``raw`` above which a binary model says class 1."""
        if self.cut is not None:
            return self.cut
        if not hasattr(self.estimator, "predict_proba"):
            return self.threshold or 0.0
        return self.to_raw(0.5 if self.threshold is None else self.threshold)

    def to_raw(self, probability: float) -> float:
        """The ``raw`` of a binary model at which class 1 has this probability.

        Raises
        ------
        UnsupportedError
            Where ``raw`` is that of another model, with the same classes but not the same probabilities.
        """
        estimator = self.estimator
        if self.cut is not None:
            raise UnsupportedError("probabilities of a model made of others are not read; set 'desired' to a class.")
        if not any(hasattr(estimator, kind) for kind in ("decision_function", "coefs_", "get_booster", "booster_")):
            return probability
        loss = getattr(estimator, "loss", "")
        if loss == "modified_huber":  # P = (raw + 1) / 2, within 0 and 1
            return 2.0 * probability - 1.0 if 0 <= probability < 1 else math.copysign(math.inf, probability)
        # Boosting with the exponential loss has P = expit(2 raw), LightGBM's expit(sigmoid raw), the others expit(raw).
        slope = 2.0 if loss == "exponential" else 1.0
        if hasattr(estimator, "booster_"):
            slope = float(estimator.get_params().get("sigmoid", 1.0))
        return float(logit(probability)) / slope


def _probabilities(model: Any, data: Any) -> np.ndarray:
    """Those of a model's classes, shape (rows, classes), which a class of somebody's own may give as a list or a frame.

    Raises
    ------
    ValueError
        Where they are no table.
    """
    found = np.asarray(model.predict_proba(data))
    if found.ndim != 2:
        raise ValueError(f"predict_proba gives the shape {found.shape}, and not a column for each class")
    return found
