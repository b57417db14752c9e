"""What the harness answers where the far side asks about the model."""

from __future__ import annotations

import base64
import io
import sys
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any

import numpy as np
import pandas as pd
import skops.io

from harness.core.errors import HarnessError, UnsupportedError
from harness.core.feature import take
from harness.core.problem import Problem
from harness.core.space import Feature, Space
from harness.core.target import Classes, Interval, Label
from methods.estimators.linear import is_linear, weights_of
from methods.estimators.network import NETWORKS, dense_layers
from methods.estimators.trees import ensemble

WHOLE = 2**53  # above it not every whole number is a float64


def described(problem: Problem, limit: float | None) -> dict[str, Any]:
    """The problem as a message: features, training rows, target, the model's inputs and classes, seconds to fit."""
    space, classifier, target = problem.space, problem.classifier, problem.target
    wanted: dict[str, Any]
    if isinstance(target, Label):
        wanted = {"class": target.value}
    elif isinstance(target, Classes):
        wanted = {"classes": list(target.values)}
    elif isinstance(target, Interval):
        wanted = {"interval": _ends((target.low, target.high))}
    else:
        wanted = {"probability": [target.low, target.high], "class": target.label}
    return {
        "features": [_feature(feature) for feature in space.features],
        "train": values(problem.train[list(space.names)]),
        "labels": np.asarray(problem.labels).tolist(),
        "target": wanted,
        "constraints": list(space.constraints),
        "inputs": [{"type": type(source).__name__.lower(), **asdict(source)} for source in classifier.inputs],
        "classes": list(classifier.classes),
        "limit": limit,
    }


def _feature(feature: Feature) -> dict[str, Any]:
    """A feature without the rules of what may change, which come with each person, as ``reach_of``."""
    return {
        "name": feature.name,
        "kind": str(feature.kind),
        "categories": list(feature.categories),
        "scale": _ends(feature.scale),
        "bounds": _ends(feature.bounds),
    }


def reach_of(space: Space, factual: pd.DataFrame) -> dict[str, dict[str, Any]]:
    """What a person may take of each feature, by name: {"values"}, or {"low", "high", "barred"} of a number.

    ``low`` and ``high`` are None where there is no end; ``barred`` are the codes between them.
    """
    found: dict[str, dict[str, Any]] = {}
    for feature in space.features:
        value = factual[feature.name].iloc[0]
        if feature.numeric:
            low, high = feature.interval(float(value))
            barred = [code for code in feature.special if low <= code <= high]
            found[feature.name] = {**dict(zip(("low", "high"), _ends((low, high)), strict=True)), "barred": barred}
        else:
            found[feature.name] = {"values": list(feature.reachable(value))}
    return found


def _ends(pair: tuple[float, float]) -> list[float | None]:
    """Two ends, None for an infinite one, which JSON has not."""
    return [float(end) if np.isfinite(end) else None for end in pair]


def values(frame: pd.DataFrame) -> list[list[Any]]:
    """Rows of plain values."""
    return [list(row) for row in frame.astype(object).itertuples(index=False, name=None)]


class Served:
    """Answers questions about a problem's model."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem

    def __call__(self, message: Mapping[str, Any]) -> Any:
        """The reply to ``{"ask": ..., "rows": ...}``.

        Raises
        ------
        HarnessError
            For a question that is none, rows that are none, or a model that has no such thing.
        """
        rows: dict[str, Callable[[pd.DataFrame], Any]] = {
            "predict": self.problem.classifier.predict,
            "score": self.problem.classifier.score,
            "accepts": self.problem.valid,
            "matrix": self.problem.classifier.matrix,
            "gradient": self._gradient,
        }
        whole: dict[str, Callable[[], Any]] = {
            "layers": self._layers, "trees": self._trees, "estimator": self._estimator,
        }  # fmt: skip
        asked = message["ask"]
        if not isinstance(asked, str):
            raise HarnessError(f"one cannot ask for {asked!r}; ask for {', '.join([*rows, *whole])}.")
        if asked in rows:
            return rows[asked](self._frame(message.get("rows")))
        if asked in whole:
            return whole[asked]()
        raise HarnessError(f"nothing is known of {asked!r}; ask for {', '.join([*rows, *whole])}.")

    def _frame(self, rows: Any) -> pd.DataFrame:
        """Rows of the far side, lists of values or an array of numbers, as rows of the space."""
        names = self.problem.space.names
        if isinstance(rows, dict):
            return self._decoded(_numbers(rows.get("npy"), len(names)))
        if not isinstance(rows, list) or any(not isinstance(row, list) or len(row) != len(names) for row in rows):
            raise HarnessError(f"'rows' must be lists of {len(names)} values, one a feature.")
        found = [read(self.problem, row) for row in rows]
        return self.problem.space.frame(found)

    def _decoded(self, matrix: np.ndarray) -> pd.DataFrame:
        """Rows of finite numbers, shape (rows, features), of a category its place, as rows of the space."""
        data: dict[str, Any] = {}
        for feature, values in zip(self.problem.space.features, matrix.T, strict=True):
            if feature.kind == "continuous":
                data[feature.name] = values
                continue
            low, high = (-WHOLE, WHOLE) if feature.numeric else (0, len(feature.categories) - 1)
            wrong = (values % 1 != 0) | (values < low) | (values > high)
            if wrong.any():
                what = f"is {feature.kind}" if feature.numeric else f"has {len(feature.categories)} categories"
                raise HarnessError(f"{feature.name} {what}, and cannot be {values[wrong][0]:g} in an array.")
            whole = values.astype(np.int64)
            data[feature.name] = whole.astype(feature.dtype) if feature.numeric else take(feature.categories, whole)
        return pd.DataFrame(data, columns=self.problem.space.index)

    def _layers(self) -> list[dict[str, Any]]:
        """From columns to outputs: weights, shape (inputs, outputs), intercepts, shape (outputs,), and activation.

        One output of two classes is what it has above the model's threshold.
        """
        classifier = self.problem.classifier
        estimator = classifier.estimator
        if is_linear(estimator):
            weights, shifts = weights_of(estimator)
            layers, activation = [(weights.T, shifts)], "identity"
        elif isinstance(estimator, NETWORKS):
            layers, activation = dense_layers(estimator), estimator.activation
        else:
            raise UnsupportedError(f"{type(estimator).__name__} has no layers; ask about a linear model or a network.")
        told: list[dict[str, Any]] = [
            {"weights": np.asarray(w), "intercepts": np.array(b, dtype=float), "activation": activation}
            for w, b in layers
        ]
        told[-1]["activation"] = "identity"
        if classifier.binary and len(told[-1]["intercepts"]) == 1:
            told[-1]["intercepts"] -= classifier.raw_threshold
        return told

    def _gradient(self, frame: pd.DataFrame) -> np.ndarray:
        """Of the first output's sum by the estimator's columns, shape (rows, columns)."""
        layers, matrix = self._layers(), self.problem.classifier.matrix(frame)
        if any(layer["activation"] != "relu" for layer in layers[:-1]):
            raise UnsupportedError("gradients are told of networks of ReLUs only.")
        slopes = np.broadcast_to(np.eye(matrix.shape[1]), (len(matrix), matrix.shape[1], matrix.shape[1]))
        for depth, layer in enumerate(layers):
            if depth:
                slopes, matrix = slopes * (matrix > 0)[:, None, :], np.maximum(matrix, 0.0)
            slopes, matrix = slopes @ layer["weights"], matrix @ layer["weights"] + layer["intercepts"]
        return slopes[:, :, 0]

    def _trees(self) -> dict[str, Any]:
        found = ensemble(self.problem.classifier.estimator)
        trees = [
            {name: getattr(tree, name) for name in ("left", "right", "column", "threshold", "value")}
            | {"outputs": list(tree.outputs)}
            for tree in found.trees
        ]
        return {"base": found.base, "weight": found.weight, "single": found.single, "trees": trees}

    def _estimator(self) -> str:
        """The fitted model for skops; none whose own rule is not the classifier's, which a far side would not know."""
        if self.problem.classifier.threshold is not None or self.problem.classifier.cut is not None:
            raise UnsupportedError("it decides by a threshold of its own, which the estimator does not have")
        return base64.b64encode(skops.io.dumps(self.problem.classifier.estimator)).decode("ascii")


def _numbers(told: Any, columns: int) -> np.ndarray:
    """An array of finite numbers, shape (rows, columns), from a file of numpy's in base64.

    Raises
    ------
    HarnessError
        For what is none.
    """
    try:
        found = np.lib.format.read_array(io.BytesIO(base64.b64decode(told)), allow_pickle=False)
    except (TypeError, ValueError) as fault:
        raise HarnessError(f"'rows' is no file of numpy's in base64 ({fault}).") from None
    if found.dtype.kind not in "biuf" or found.ndim != 2 or found.shape[1] != columns:
        raise HarnessError(f"'rows' must be an array of numbers, {columns} columns, one a feature.")
    numbers = np.asarray(found, dtype=float)
    if not np.isfinite(numbers).all():
        raise HarnessError("'rows' must hold finite numbers.")
    return numbers


def read(problem: Problem, row: Any) -> dict[str, Any]:
    """A row of values from the far side as a row of the space.

    Raises
    ------
    HarnessError
        For a value that is none of its feature.
    """
    names = problem.space.names
    if not isinstance(row, list) or len(row) != len(names):
        raise HarnessError(f"a row must be a list of {len(names)} values, one a feature; it is {str(row)[:60]}.")
    found = {}
    for feature, value in zip(problem.space.features, row, strict=True):
        if feature.numeric:
            number = finite(value)
            if number is None or (feature.kind == "integer" and (number % 1 or abs(number) > WHOLE)):
                raise HarnessError(f"{feature.name} is {feature.kind}, and cannot be {_short(value)}.")
            found[feature.name] = int(number) if feature.kind == "integer" else number
        elif value in feature.categories:
            found[feature.name] = feature.categories[feature.categories.index(value)]
        else:
            allowed = ", ".join(map(str, feature.categories))
            raise HarnessError(f"{feature.name} cannot be {_short(value)}; its categories are {allowed}.")
    return found


def finite(value: Any) -> float | None:
    """A number of JSON, or None for what is none, or lies beyond float64."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= sys.float_info.max:
        return None
    return float(value)


def _short(value: Any) -> str:
    return repr(value)[:60]
