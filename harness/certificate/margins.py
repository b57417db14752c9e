"""A target as linear forms of a model's raw outputs: positive where the model predicts the target."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.ensemble import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.svm import SVR
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from harness.core.classifier import Classifier
from harness.core.errors import UnsupportedError
from harness.core.inputs import Affine
from harness.core.linear import CLASSIFIERS, REGRESSORS
from harness.core.space import Space
from harness.core.target import Classes, Interval, Label, Target
from harness.core.wording import READ

FAMILIES: dict[str, tuple[type, ...]] = {
    "linear": (*CLASSIFIERS, *REGRESSORS, SVR),
    "trees": (
        DecisionTreeClassifier, DecisionTreeRegressor, RandomForestClassifier, RandomForestRegressor,
        ExtraTreesClassifier, ExtraTreesRegressor, GradientBoostingClassifier, GradientBoostingRegressor,
        HistGradientBoostingClassifier, HistGradientBoostingRegressor,
    ),
    "network": (MLPClassifier, MLPRegressor),
}  # fmt: skip

LOSSES = ("log_loss", "squared_error", "absolute_error", "quantile")  # of histogram boosting


@dataclass(frozen=True)
class Margin:
    """``weights @ raw + constant``: positive where valid, negative where not; at 0 only the model itself can tell.

    Weights of shape (forms, outputs) are those of several wanted classes: one of their forms has to be positive.
    """

    weights: np.ndarray
    constant: float


def readable(space: Space, classifier: Classifier, target: Target) -> None:
    """Nothing where a radius can be certified, without a look at more than types and settings.

    Raises
    ------
    UnsupportedError
        As ``harness.certificate.Checker``.
    """
    margins(classifier, target)
    if space.gaps:
        raise UnsupportedError(f"{space.gaps[0].name} may be missing, and no radius is certified around a gap.")
    estimator = classifier.estimator
    kind = family(estimator)
    numbers = {feature.name for feature in space.features if feature.numeric}
    for source in classifier.inputs:
        if source.feature in numbers and not isinstance(source, Affine):
            raise UnsupportedError(f"{type(source).__name__} of {source.feature}, a number, is no affine input.")
    refusal = "no radius can be certified for"
    if hasattr(estimator, "engine") and (whole := sorted(numbers & set(estimator.engine.whole))):
        raise UnsupportedError(f"{refusal} a model that takes {whole[0]} as a whole number; export it with floats.")
    if kind == "linear" and not hasattr(estimator, "coef_"):
        raise UnsupportedError(f"{refusal} SVR with kernel {estimator.kernel!r}; set kernel='linear'.")
    if kind == "network":
        if estimator.activation != "relu" and len(estimator.coefs_) > 1:
            raise UnsupportedError(f"{refusal} a network with activation {estimator.activation!r}; use 'relu'.")
        if estimator.out_activation_ == "exp":
            raise UnsupportedError(f"{refusal} a network with loss 'poisson', an exponential; use 'squared_error'.")
    elif hasattr(estimator, "_predictors"):
        if estimator.is_categorical_ is not None:
            raise UnsupportedError(
                f"{refusal} histogram boosting with categorical features; put a OneHotEncoder before it in the "
                f"pipeline, and set categorical_features=None."
            )
        if estimator.loss not in LOSSES:
            allowed = ", ".join(LOSSES)
            raise UnsupportedError(f"{refusal} histogram boosting with loss {estimator.loss!r}; allowed: {allowed}.")
    elif hasattr(estimator, "init_") and estimator.init is not None and estimator.init != "zero":
        raise UnsupportedError(f"{refusal} gradient boosting with an 'init' estimator; leave init unset.")


def family(estimator: Any) -> str:
    """``linear``, ``trees`` or ``network``; UnsupportedError for any other type.

    Trees also where another library computes them, of which they were read: ``estimator.trees``.
    """
    for name, types in FAMILIES.items():
        if isinstance(estimator, types):
            return name
    if hasattr(estimator, "trees"):
        return "trees"
    if hasattr(estimator, "layers"):
        library = estimator.engine.library
        raise UnsupportedError(
            f"no radius can be certified for a network whose sums {library} rounds in a way of its own."
        )
    raise UnsupportedError(
        f"no radius can be certified for {type(estimator).__name__}; {READ}, but not those of XGBoost and LightGBM."
    )


def margins(classifier: Classifier, target: Target) -> list[Margin]:
    """The forms that all have to be positive. Raises UnsupportedError for a target that is no bound on raw outputs."""
    if classifier.opaque:
        raise UnsupportedError(classifier.opaque)
    unit = np.eye(len(classifier.classes))
    if isinstance(target, Classes):
        if family(classifier.estimator) != "trees":
            raise UnsupportedError(
                "a region of several classes, one here and another there, is certified of trees alone; set 'desired' "
                "to a class."
            )
        wanted = [classifier.code(value) for value in target.values]
        return [Margin(unit[wanted] - unit[other], 0.0) for other in range(len(unit)) if other not in wanted]
    if isinstance(target, Interval):
        return _between(target.low, target.high)
    if isinstance(target, Label):
        code = classifier.code(target.value)
        if classifier.binary:
            sign, threshold = (1.0 if code else -1.0), classifier.raw_threshold
            return [Margin(np.array([sign]), -sign * threshold)]
        return [Margin(unit[code] - unit[other], 0.0) for other in range(len(unit)) if other != code]
    if not classifier.binary:
        raise UnsupportedError("a probability of one of several classes is no bound on a raw output; ask for a class.")
    low, high = target.low, target.high
    if classifier.code(target.label) == 0:
        low, high = 1.0 - high, 1.0 - low
    ends = [classifier.to_raw(end) if binds else np.inf for end, binds in ((low, low > 0), (high, high < 1))]
    if (low > 0 and not np.isfinite(ends[0])) or (high < 1 and not np.isfinite(ends[1])):
        raise UnsupportedError("no finite output has a probability of exactly 0 or 1; ask for a little more or less.")
    return _between(*ends)


def _between(low: float, high: float) -> list[Margin]:
    one = np.ones(1)
    return ([Margin(one, -low)] if np.isfinite(low) else []) + ([Margin(-one, high)] if np.isfinite(high) else [])
