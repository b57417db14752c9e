"""Models that are functions of a single tree, asked by the number of its node: thresholds and calibrations of one."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.model_selection import FixedThresholdClassifier, TunedThresholdClassifierCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.tree import DecisionTreeClassifier

THRESHOLDS = (FixedThresholdClassifier, TunedThresholdClassifierCV)


class Nodes(ClassifierMixin, BaseEstimator):
    """A fitted tree that takes the numbers of its nodes, shape (rows, 1)."""

    def __init__(self, tree: DecisionTreeClassifier) -> None:
        self.tree, self.classes_ = tree, tree.classes_

    def fit(self, *_: Any) -> Nodes:
        """Nothing: the tree is fitted."""
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def predict_proba(self, nodes: np.ndarray) -> np.ndarray:
        """The share of each class, shape (rows, classes)."""
        return np.asarray(self.tree.tree_.value[nodes[:, 0], 0, :])

    def predict(self, nodes: np.ndarray) -> np.ndarray:
        """Labels, shape (rows,)."""
        return np.asarray(self.classes_[self.predict_proba(nodes).argmax(axis=1)])


class OneTree(NamedTuple):
    """A tree, the columns that it is given, and the model as one of the numbers of its nodes."""

    tree: DecisionTreeClassifier
    flow: Any
    model: Any

    @property
    def nodes(self) -> np.ndarray:
        """All of them, as the model takes them."""
        return np.arange(self.tree.tree_.node_count)[:, None]


def inner_of(model: Any) -> Any | None:
    """The one model whose scores are those of a model with a threshold, or of one class against the rest."""
    if isinstance(model, THRESHOLDS):
        return getattr(model, "estimator_", model.estimator)
    if isinstance(model, OneVsRestClassifier) and len(model.estimators_) == 1:
        return model.estimators_[0]
    return None


def calibrated_of(model: Any) -> Any | None:
    """The calibrated model of a calibration of one; None of other models."""
    alone = isinstance(model, CalibratedClassifierCV) and len(model.calibrated_classifiers_) == 1
    return model.calibrated_classifiers_[0] if alone else None


def one_tree(model: Any, flow: Any, walk: Callable[[Any, Any], tuple[Any, Any]]) -> OneTree | None:
    """A model as a function of a tree's nodes; None of one that is more than thresholds and calibrations of one tree.

    Parameters
    ----------
    flow, walk
        As of ``composite.read``.
    """
    model, flow = walk(model, flow)
    if isinstance(model, DecisionTreeClassifier):
        return OneTree(model, flow, Nodes(model))
    inner, calibrated = inner_of(model), calibrated_of(model)
    inner = inner if calibrated is None else calibrated.estimator
    if inner is None or (found := one_tree(inner, flow, walk)) is None:
        return None
    changed = copy.copy(model)
    if isinstance(model, THRESHOLDS):
        changed.estimator_ = found.model
    elif isinstance(model, OneVsRestClassifier):
        changed.estimators_ = [found.model]
    else:
        own: Any = copy.copy(calibrated)
        own.estimator = found.model
        changed.calibrated_classifiers_ = [own]
    return found._replace(model=changed)
