"""Targets as forms of raw outputs; whether an answer stays valid where the model's weights change for the worst."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.linear_model import LinearRegression
from sklearn.svm import SVR

from harness.core.classifier import Classifier
from harness.core.errors import UnsupportedError
from harness.core.space import Space
from harness.core.target import Classes, Interval, Label, Target
from harness.core.tolerances import LIMIT_MET

LARGEST = np.finfo(float).max / 4  # for what is infinite, so that sums of two are numbers
ACTIVATIONS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "relu": lambda sums: np.maximum(sums, 0.0), "identity": lambda sums: sums, "tanh": np.tanh,
    "logistic": lambda sums: 0.5 + 0.5 * np.tanh(0.5 * sums),
}  # fmt: skip


def withstands(space: Space, classifier: Classifier, target: Target, row: Mapping[str, Any], delta: float) -> bool:
    """Whether no model with weights within ``delta`` of the real one is found that refuses a decoded row.

    Exact for linear models and networks of at most one hidden layer, whose worst weights are known: the changed model
    itself says what it makes of the row. Of others no such model is looked for.
    """
    if isinstance(target, Classes):
        raise UnsupportedError("several classes are no bounds on raw outputs.")
    inputs, frame = classifier.vector(row)[0], space.frame([row])
    for weights, constant in margins(classifier, target):
        changed = _worst(classifier.estimator, inputs, weights, delta * (1 - LIMIT_MET))
        if changed is None:
            continue
        with np.errstate(divide="ignore"):  # of a probability that is 0 it is infinite
            raw = np.atleast_1d(replace(classifier, estimator=changed, wrapped=None).raw(frame)[0])
        raw = np.nan_to_num(raw, posinf=LARGEST, neginf=-LARGEST)
        if float(weights @ raw) + constant < 0:
            return False
    return True


def _worst(estimator: Any, inputs: np.ndarray, weights: np.ndarray, delta: float) -> Any:
    """The model within ``delta`` with the least ``weights @ outputs`` at a point; None where it is not known."""
    changed, side, towards = deepcopy(estimator), np.sign(inputs), np.sign(weights)
    if hasattr(estimator, "coef_"):
        if isinstance(estimator, SVR):  # of which the weights are worked out from its dual ones
            changed = LinearRegression()
        coef = np.atleast_2d(estimator.coef_) - delta * np.outer(towards, side)
        changed.coef_ = coef.reshape(np.shape(estimator.coef_))
        if getattr(estimator, "fit_intercept", True):
            changed.intercept_ = estimator.intercept_ - delta * (
                towards if np.ndim(estimator.intercept_) else towards[0]
            )
        return changed
    layers = list(zip(*(getattr(estimator, name, ()) for name in ("coefs_", "intercepts_")), strict=True))
    if len(layers) == 1:
        ((first, shifts),) = layers
        changed.coefs_, changed.intercepts_ = [first - delta * np.outer(side, towards)], [shifts - delta * towards]
        return changed
    if len(layers) != 2 or estimator.activation not in ACTIVATIONS:
        return None
    (first, shifts), (last, ends) = layers
    sums, room = inputs @ first + shifts, delta * (np.abs(inputs).sum() + 1)
    choices = np.array([(unit, way) for unit in (-1, 1) for way in (-1, 1)])  # of a unit's sum, and what leaves it
    lead, least = last @ weights, delta * np.abs(weights).sum()
    unit_of = ACTIVATIONS[estimator.activation]  # each rises, so that its ends are those of the sums
    values = [unit_of(sums + unit * room) * (lead + way * least) for unit, way in choices]
    units, ways = choices[np.argmin(values, axis=0)].T
    changed.coefs_ = [first + delta * np.outer(side, units), last + delta * np.outer(ways, towards)]
    changed.intercepts_ = [shifts + delta * units, ends - delta * towards]
    return changed


def margins(classifier: Classifier, target: Target) -> list[tuple[np.ndarray, float]]:
    """Forms (weights, constant) of the raw outputs that are all positive where a point is valid, negative where not.

    Of several wanted classes weights have the shape (classes, outputs), and one of the class's forms is positive.

    Raises
    ------
    UnsupportedError
        For a target that is no bound on raw outputs.
    """
    if isinstance(target, Label):
        wanted, count = classifier.code(target.value), len(classifier.classes)
        if count > 2:
            return [(np.eye(count)[wanted] - np.eye(count)[other], 0.0) for other in range(count) if other != wanted]
        sign = 1.0 if wanted else -1.0
        return [(np.array([sign]), -sign * classifier.raw_threshold)]
    if isinstance(target, Classes):
        unit, codes = np.eye(len(classifier.classes)), [classifier.code(value) for value in target.values]
        return [(unit[codes] - unit[other], 0.0) for other in range(len(unit)) if other not in codes]
    low, high = target.low, target.high
    if not isinstance(target, Interval):
        if not classifier.binary:
            raise UnsupportedError("a probability of one of several classes is no bound on a raw output.")
        if classifier.code(target.label) == 0:
            low, high = 1.0 - high, 1.0 - low
        ends = [(low, low > 0, -math.inf), (high, high < 1, math.inf)]
        low, high = (classifier.to_raw(end) if binds else none for end, binds, none in ends)
        if low == math.inf or high == -math.inf:
            raise UnsupportedError("a probability of exactly 0 or 1 is no bound on a raw output.")
    found = [(np.ones(1), -low)] if math.isfinite(low) else []
    return found + ([(-np.ones(1), high)] if math.isfinite(high) else [])
