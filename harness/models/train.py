"""Train the estimators under explanation, and keep them in a cache."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import sklearn
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.ensemble import GradientBoostingClassifier

from harness.core.classifier import Classifier
from harness.core.errors import HarnessError
from harness.core.packages import digest_of, version
from harness.core.space import Space
from harness.models import gaps
from harness.models.adopt import of_inputs
from harness.models.files import load, log, save

SUM_OF_TREES = "sum_of_trees"


class Amended(NamedTuple):
    """What is changed of an estimator once it is fitted; what is left is the model.

    Parameters
    ----------
    decimals
        To which the weights are rounded.
    decision
        ``sum_of_trees``: of gradient boosting, class 1 iff what the trees add to the start value is at least 0.5; the
        estimator's own rule where None.
    """

    decimals: int | None = None
    decision: str | None = None

    def classifier(
        self, fitted: Any, space: Space, classes: tuple[Any, ...], threshold: float | None, frame: pd.DataFrame
    ) -> Classifier:
        """The model of an estimator that was fitted to such rows as ``frame``, which it may alter."""
        if self.decimals is not None:
            _round(fitted, self.decimals)
        if self.decision is not None:
            _decide(fitted, self.decision)
        if hasattr(fitted, "inputs"):
            made = Classifier(fitted, fitted.inputs(space), classes, threshold)
        else:
            made = of_inputs(fitted, space, classes, threshold, frame)
        return gaps.taken(made, space, frame)


class Trained(NamedTuple):
    """A classifier, and what its fit depends on, as a hash: the name of its file in the cache."""

    classifier: Classifier
    content: str


@dataclass(frozen=True, eq=False)
class Training:
    """What a model is trained of; the fields are the parameters of ``train``."""

    estimator: Any
    space: Space
    frame: pd.DataFrame
    labels: np.ndarray
    classes: tuple[Any, ...]
    threshold: float | None = None
    cache: Path | None = None
    amended: Amended = field(default_factory=Amended)

    def by(self, estimator: Any) -> Training:
        """The same of another estimator."""
        return replace(self, estimator=estimator)

    def on(self, frame: pd.DataFrame, labels: np.ndarray) -> Training:
        """The same on other rows; what is fitted is another estimator, as fitting alters it."""
        return replace(self, estimator=clone(self.estimator), frame=frame, labels=labels)

    def done(self) -> Trained:
        """As ``train``, with the model's name."""
        estimator, space = self.estimator, self.space
        if why := misfit(estimator, self.classes):
            raise HarnessError(f"{type(estimator).__name__} {why}.")
        inputs, decoded = space.encode(self.frame), hasattr(estimator, "inputs")
        targets = _codes(self.labels, self.classes) if self.classes else np.asarray(self.labels, dtype=float)
        if len(np.unique(targets)) < 2:
            raise HarnessError(
                f"all training rows have the label {self.labels[0]}; a model needs two. Use a larger split, or "
                f"stratify it."
            )
        content = _content(estimator, inputs, targets, space if decoded else None)
        path = None if self.cache is None else self.cache / f"{content}.skops"
        fitted = _cached(path)
        if fitted is None:
            fitted = _fitted(estimator, (self.frame, targets, space) if decoded else (inputs, targets), space)
            if path is not None:
                _keep(fitted, path)
        return Trained(self.amended.classifier(fitted, space, self.classes, self.threshold, self.frame), content)


def train(
    estimator: Any,
    space: Space,
    frame: pd.DataFrame,
    labels: np.ndarray,
    classes: tuple[Any, ...],
    threshold: float | None = None,
    cache: Path | None = None,
    amended: Amended | None = None,
) -> Classifier:
    """An estimator fitted to the scaled columns of the training rows; taken from ``cache`` where it was fitted before.

    An estimator with ``inputs`` of its own, as scorecards have, is fitted to the decoded rows.

    Parameters
    ----------
    estimator
        Unfitted scikit-learn estimator.
    frame, labels
        Decoded training rows and their class names (numbers, for regression).
    classes
        Class names; their positions are the codes that the estimator learns. Empty for regression.
    threshold
        Class 1 iff the score exceeds it; the estimator's own rule where None.
    amended
        What is changed of the fitted estimator.

    Raises
    ------
    HarnessError
        If estimator and labels do not fit.
    """
    return Training(
        estimator, space, frame, labels, classes, threshold, cache, amended or Amended()
    ).done().classifier  # fmt: skip


def _fitted(estimator: Any, data: tuple[Any, ...], space: Space) -> Any:
    """The estimator fitted to data; of a search over settings, the best."""
    try:
        with warnings.catch_warnings(action="ignore", category=sklearn.exceptions.ConvergenceWarning):
            fitted = estimator.fit(*data)
    except ValueError as fault:
        if not space.gaps or "NaN" not in str(fault):
            raise
        raise gaps.refused(type(estimator).__name__, space) from fault
    return getattr(fitted, "best_estimator_", fitted)


def _round(fitted: Any, decimals: int) -> None:
    """Round the weights of a linear model or a network, in place."""
    weights = [getattr(fitted, name, None) for name in ("coef_", "intercept_")]
    for part in [*weights, *getattr(fitted, "coefs_", ()), *getattr(fitted, "intercepts_", ())]:
        if isinstance(part, np.ndarray):
            part[...] = np.round(part, decimals)
    if not hasattr(fitted, "coefs_") and not isinstance(weights[0], np.ndarray):
        raise HarnessError(
            f"decimals={decimals} rounds weights, and {type(fitted).__name__} has none; set model.decimals=null."
        )


def _decide(fitted: Any, decision: str) -> None:
    """Have gradient boosting decide by the sum of its trees, in place: no start value, the first tree 0.5 lower."""
    if decision != SUM_OF_TREES:
        raise HarnessError(f"decision={decision} does not exist; set model.decision={SUM_OF_TREES}, or null.")
    if not isinstance(fitted, GradientBoostingClassifier) or fitted.estimators_.shape[1] != 1:
        raise HarnessError(
            f"decision={decision} is for GradientBoostingClassifier on two classes, and this is "
            f"{type(fitted).__name__}; set model.decision=null."
        )
    fitted.init = fitted.init_ = "zero"
    values = fitted.estimators_[0, 0].tree_.value
    values -= 0.5 / fitted.learning_rate


def misfit(estimator: Any, classes: tuple[Any, ...]) -> str | None:
    """Why an estimator cannot learn labels of these classes (of numbers, where empty), or None where it can."""
    if classes and is_regressor(estimator):
        return f"predicts numbers, but the labels are classes ({', '.join(map(str, classes))})"
    if not classes and is_classifier(estimator):
        return "predicts classes, but the labels are numbers"
    return None


def _codes(labels: np.ndarray, classes: tuple[Any, ...]) -> np.ndarray:
    codes = pd.Index(classes).get_indexer(pd.Index(labels))
    if (codes < 0).any():
        raise HarnessError(f"a training row has the label {labels[codes < 0][0]!r}; allowed: {list(classes)}.")
    return codes


def _content(estimator: Any, inputs: np.ndarray, targets: np.ndarray, space: Space | None) -> str:
    """What a fit depends on, as a hash: the data to the bit, the parameters, and the code that fits."""
    digest = hashlib.sha256()
    digest.update(np.ascontiguousarray(inputs).tobytes())
    digest.update(np.ascontiguousarray(targets).tobytes())
    kind = type(estimator)
    parameters = sorted(estimator.get_params().items())
    digest.update(f"{kind.__module__}.{kind.__qualname__} {parameters!r} {_versions(estimator)!r}".encode())
    if any(type(part).__module__.startswith("harness.") for part in _estimators(estimator)):
        digest.update(digest_of(Path(__file__).parent))
    if space is not None:
        digest.update(repr(space).encode())
    return digest.hexdigest()[:32]


def _versions(estimator: Any) -> dict[str, str | None]:
    """Versions of the libraries that take part in a fit, by name."""
    names = {"sklearn"}
    for part in _estimators(estimator):
        names |= {type(part).__module__.partition(".")[0], *getattr(part, "fitted_by", ())}
    return {name: version(name) for name in sorted(names)}


def _estimators(node: Any) -> Iterator[Any]:
    """An estimator and all those among its parameters, such as the steps of a pipeline."""
    if isinstance(node, Mapping):
        node = list(node.values())
    if isinstance(node, list | tuple):
        for part in node:
            yield from _estimators(part)
    elif hasattr(node, "get_params") and not isinstance(node, type):
        yield node
        yield from _estimators(node.get_params(deep=False))


def _cached(path: Path | None) -> Any:
    if path is None or not path.is_file():
        return None
    try:
        return load(path)
    except Exception as fault:
        log.warning("the cached model %s cannot be read (%s); it is trained again.", path, fault)
        return None


def _keep(estimator: Any, path: Path) -> None:
    try:
        save(estimator, path)
    except Exception as fault:
        log.warning("the model cannot be cached in %s (%s); it will be trained again next time.", path.parent, fault)
