"""A fitted estimator, and how its inputs come from decoded features."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import logit

from harness.errors import UnsupportedError, choices
from harness.problem import Feature, Kind, Space


@dataclass(frozen=True)
class Affine:
    """Input = (value - shift) / unit of a numeric feature."""

    feature: str
    shift: float = 0.0
    unit: float = 1.0

    def __call__(self, values: pd.Series) -> np.ndarray:
        return (values.to_numpy(float) - self.shift) / self.unit

    def of(self, value: Any) -> float:
        return (float(value) - self.shift) / self.unit


@dataclass(frozen=True)
class Indicator:
    """Input = 1 where the feature holds one of ``levels``, else 0."""

    feature: str
    levels: tuple[Any, ...]

    def __call__(self, values: pd.Series) -> np.ndarray:
        return values.isin(self.levels).to_numpy(float)

    def of(self, value: Any) -> float:
        return float(value in self.levels)

    def table(self, categories: tuple[Any, ...]) -> np.ndarray:
        """The input for each category."""
        return np.array([float(value in self.levels) for value in categories])


@dataclass(frozen=True)
class Lookup:
    """Input = the number listed for the feature's category: ranks, means, weights of evidence."""

    feature: str
    levels: tuple[Any, ...]
    values: tuple[float, ...]

    @cached_property
    def _listed(self) -> dict[Any, float]:
        return dict(zip(self.levels, self.values, strict=True))

    def __call__(self, values: pd.Series) -> np.ndarray:
        return self.table(tuple(values))

    def of(self, value: Any) -> float:
        return self._listed[value]

    def table(self, categories: tuple[Any, ...]) -> np.ndarray:
        """The input for each category."""
        listed = self._listed
        return np.array([listed[value] for value in categories], dtype=float)


@dataclass(frozen=True)
class Step:
    """Input = ``values[k]`` where k of the increasing ``cuts`` are <= the value of a numeric feature."""

    feature: str
    cuts: tuple[float, ...]
    values: tuple[float, ...]

    def __call__(self, values: pd.Series) -> np.ndarray:
        return np.asarray(self.values)[np.searchsorted(self.cuts, values.to_numpy(float), side="right")]

    def of(self, value: Any) -> float:
        return self.values[int(np.searchsorted(self.cuts, float(value), side="right"))]


Input = Affine | Indicator | Lookup | Step


def by_category(feature: Feature, source: Input) -> np.ndarray:
    """An input for each category of its feature, shape (categories,).

    Raises
    ------
    UnsupportedError
        For an input that is no function of a category.
    """
    if isinstance(source, Affine):
        return (np.array(feature.categories, dtype=float) - source.shift) / source.unit
    if isinstance(source, Step):
        raise UnsupportedError(f"{type(source).__name__} of {feature.name}, a category, cannot be embedded.")
    return source.table(feature.categories)


def space_inputs(space: Space) -> tuple[Input, ...]:
    """The scaled columns of a space as inputs: what this harness trains its own models on."""
    inputs: list[Input] = []
    for feature in space.features:
        if feature.numeric:
            inputs.append(Affine(feature.name, feature.scale[0], feature.range))
        elif feature.kind is Kind.CATEGORICAL:
            inputs.extend(Indicator(feature.name, (value,)) for value in feature.categories)
        else:
            top = max(len(feature.categories) - 1, 1)
            ranks = tuple(rank / top for rank in range(len(feature.categories)))
            inputs.append(Lookup(feature.name, feature.categories, ranks))
    return tuple(inputs)


@dataclass(frozen=True, eq=False)
class Classifier:
    """A fitted estimator behind decoded frames. Regression models are taken too, with no classes.

    Parameters
    ----------
    estimator
        A fitted scikit-learn estimator, trained on the columns of ``inputs`` and on class codes 0, 1, ... in the
        order of ``classes``.
    inputs
        One map from a decoded feature per estimator column.
    classes
        Class names by code; empty for a regression model.
    threshold
        Class 1 iff ``score > threshold`` (binary models); the estimator's own rule where it is None.
    """

    estimator: Any
    inputs: tuple[Input, ...]
    classes: tuple[Any, ...] = ()
    threshold: float | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "inputs", tuple(self.inputs))
        object.__setattr__(self, "classes", tuple(self.classes))
        if self.threshold is not None and not self.binary:
            raise UnsupportedError("a threshold needs a model with two classes; leave it out.")

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
        predicted = self.decide(self.matrix(frame))
        if not self.classes:
            return predicted
        names = np.empty(len(self.classes), dtype=object)
        names[:] = self.classes
        return names[predicted]

    def decide(self, matrix: np.ndarray) -> np.ndarray:
        """Class codes (or numbers) straight from estimator inputs, shape (rows,)."""
        if self.threshold is not None:
            return (self._score(matrix) > self.threshold).astype(int)
        predicted = self.estimator.predict(matrix)
        return np.asarray(predicted).astype(int) if self.classes else np.asarray(predicted, dtype=float)

    def score(self, frame: pd.DataFrame) -> np.ndarray:
        """Probabilities where the estimator has them, else decision values (or numbers, for regression).

        Shape (rows,) of class 1 for two classes and for regression, else (rows, classes).
        """
        return self._score(self.matrix(frame))

    def _score(self, matrix: np.ndarray) -> np.ndarray:
        if not self.classes:
            return np.asarray(self.estimator.predict(matrix), dtype=float)
        if hasattr(self.estimator, "predict_proba"):
            scores = self.estimator.predict_proba(matrix)
            return scores[:, 1] if self.binary else scores
        return self.estimator.decision_function(matrix)

    def probability(self, frame: pd.DataFrame, label: Any) -> np.ndarray:
        """Probability of a class, shape (rows,)."""
        if not hasattr(self.estimator, "predict_proba"):
            raise UnsupportedError(f"{type(self.estimator).__name__} gives no probabilities; ask for a label instead.")
        return self.estimator.predict_proba(self.matrix(frame))[:, self.code(label)]

    def raw(self, frame: pd.DataFrame) -> np.ndarray:
        """What the mixed-integer layer models, as one number a row (binary, regression) or one a class.

        Decision value of linear models and boosting, mean leaf fraction of trees and forests, last pre-activation of
        networks.
        """
        matrix = self.matrix(frame)
        estimator = self.estimator
        if not self.classes:
            return np.asarray(estimator.predict(matrix), dtype=float)
        if hasattr(estimator, "decision_function"):
            return estimator.decision_function(matrix)
        if hasattr(estimator, "coefs_"):
            probabilities = estimator.predict_proba(matrix)
            return logit(probabilities[:, 1]) if self.binary else np.log(probabilities)
        probabilities = estimator.predict_proba(matrix)
        return probabilities[:, 1] if self.binary else probabilities

    @property
    def raw_threshold(self) -> float:
        """The threshold on ``raw`` above which a binary model says class 1."""
        if not hasattr(self.estimator, "predict_proba"):
            return self.threshold or 0.0
        return self.to_raw(0.5 if self.threshold is None else self.threshold)

    def to_raw(self, probability: float) -> float:
        """The ``raw`` of a binary model at which class 1 has this probability."""
        estimator = self.estimator
        if not (hasattr(estimator, "decision_function") or hasattr(estimator, "coefs_")):
            return probability
        # Boosting with the exponential loss has P = expit(2 raw), everything else here expit(raw).
        return float(logit(probability)) / (2.0 if getattr(estimator, "loss", "") == "exponential" else 1.0)
