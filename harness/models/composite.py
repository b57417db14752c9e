"""Classifiers made of others, read as one that exact methods know: its own rule says what all of them together say.

Searches and frozen models are what they hold, and a threshold set afterwards is a threshold. A monotone calibration of
one model moves that model's threshold. Averages and votes of trees are sums of trees, each behind a pipeline of its own
or not.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from scipy.special import logit
from sklearn.calibration import CalibratedClassifierCV
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    RandomForestClassifier,
    StackingClassifier,
    VotingClassifier,
)
from sklearn.frozen import FrozenEstimator
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.model_selection import FixedThresholdClassifier, TunedThresholdClassifierCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import Pipeline
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from sklearn.tree._tree import Tree

from harness.core.errors import UnsupportedError

FORESTS = (RandomForestClassifier, ExtraTreesClassifier)
MADE_OF_OTHERS = (
    AdaBoostClassifier, BaggingClassifier, CalibratedClassifierCV, OneVsRestClassifier, StackingClassifier,
    VotingClassifier,
)  # fmt: skip
TIE = 1e-13  # of the greatest sum of leaves: more than its rounding, and less than what fitted models decide themselves

Walk = Callable[[Any, Any], tuple[Any, Any]]  # an estimator and its columns; the last step, and the columns before it


class Grown(NamedTuple):
    """A tree's nodes as scikit-learn keeps them, what each adds to the sum, and where its columns begin."""

    nodes: np.ndarray
    values: np.ndarray
    depth: int
    offset: int


@dataclass
class Sum:
    """A constant and trees over columns laid side by side, a part for every member with a pipeline of its own."""

    walk: Walk
    constant: float = 0.0
    trees: list[Grown] = field(default_factory=list)
    parts: list[Any] = field(default_factory=list)  # the columns of each part

    def place(self, flow: Any) -> int:
        """Where the columns of a part begin."""
        offset = 0
        for part in self.parts:
            if part is flow:
                return offset
            offset += len(part.columns)
        self.parts.append(flow)
        return offset

    def add(self, tree: Tree, values: np.ndarray, flow: Any, columns: np.ndarray | None = None) -> None:
        """One tree; ``columns``: those that it was given."""
        state = tree.__getstate__()
        nodes = state["nodes"].copy()
        if columns is not None:
            inner = nodes["feature"] >= 0
            nodes["feature"][inner] = columns[nodes["feature"][inner]]
        self.trees.append(Grown(nodes, values, state["max_depth"], self.place(flow)))


def chosen(model: Any) -> Any:
    """The model that a frozen one is, or that a search has chosen; else the model."""
    if isinstance(model, FrozenEstimator):  # which has all attributes of what it holds
        return model.estimator
    return getattr(model, "best_estimator_", model)


def held(model: Any) -> Any:
    """What a search, a frozen model, a threshold set afterwards or one model against the rest holds; else the model."""
    if (inner := chosen(model)) is not model:
        return inner
    if isinstance(model, FixedThresholdClassifier | TunedThresholdClassifierCV):
        return getattr(model, "estimator_", model.estimator)
    if isinstance(model, OneVsRestClassifier) and len(model.estimators_) == 1:
        return model.estimators_[0]
    return model


def own_threshold(model: Any) -> float | None:
    """The score that class 1 has to exceed by a threshold that was set afterwards; None where none was.

    Raises
    ------
    UnsupportedError
        Where it is one of another score than ``Classifier.score``, or of the first class.
    """
    while isinstance(model, Pipeline) or chosen(model) is not model:
        model = model.steps[-1][1] if isinstance(model, Pipeline) else chosen(model)
    if (inner := held(model)) is model:
        return None
    kinds, name = ("predict_proba", "decision_function"), type(model).__name__
    asked = kinds[0] if hasattr(inner, kinds[0]) else kinds[1]
    middle = 0.5 if asked == "predict_proba" else 0.0
    if isinstance(model, OneVsRestClassifier):
        return middle
    if model.response_method not in ("auto", asked):
        raise UnsupportedError(f"{name} has a threshold of its {model.response_method}; set response_method=auto")
    tuned = isinstance(model, TunedThresholdClassifierCV)
    first = model._curve_scorer._get_pos_label() if tuned else model.pos_label
    if first is not None and first != model.classes_[1]:
        raise UnsupportedError(f"{name} has a threshold for {first}, its first class, not its second")
    value = model.best_threshold_ if tuned else model.threshold
    return math.nextafter(middle if value == "auto" else float(value), -math.inf)  # class 1 at the threshold, too


def restated(model: Any, flow: Any, walk: Walk, threshold: float | None) -> tuple[Any, list[Any]] | None:
    """An estimator whose own rule says what a composite says, and the columns of its parts; None of anything else.

    Parameters
    ----------
    flow, walk
        The columns that the model is given; what goes through a member's own pipeline.
    threshold
        That class 1's score has to exceed; the model's own rule where None.

    Raises
    ------
    UnsupportedError
        For a composite that is neither a calibration of one model nor a sum of trees.
    """
    if not isinstance(model, MADE_OF_OTHERS):
        return None
    if isinstance(model, StackingClassifier):
        raise UnsupportedError("a model that learns from other models' answers is read by no exact method")
    if len(model.classes_) != 2:
        raise UnsupportedError(f"{type(model).__name__} of {len(model.classes_)} classes is read by no exact method")
    if isinstance(model, CalibratedClassifierCV) and len(model.calibrated_classifiers_) == 1:
        (own,) = model.calibrated_classifiers_
        cut = uncalibrated(own, 0.5 if threshold is None else threshold)
        model, flow = walk(own.estimator, flow)
        if (moved := _moved(model, cut)) is not None:
            return moved, [flow]
    else:
        cut = _cut(model, threshold)
    total = Sum(walk)
    _add(total, model, flow, 1.0)
    total.constant -= cut
    return _boosting(total), total.parts


def uncalibrated(calibrated: Any, probability: float) -> float:
    """The score of a model that a calibrated probability above this one needs to be exceeded.

    Raises
    ------
    UnsupportedError
        For a calibration that is not rising there.
    """
    calibrator, name = calibrated.calibrators[0], type(calibrated.estimator).__name__
    if isinstance(calibrator, IsotonicRegression):
        ends, values = calibrator.X_thresholds_, calibrator.y_thresholds_
        if calibrator.increasing_ and values[0] <= probability < values[-1]:
            last = int(np.searchsorted(values, probability, side="right")) - 1
            share = (probability - values[last]) / (values[last + 1] - values[last])
            return float(ends[last] + share * (ends[last + 1] - ends[last]))
    elif hasattr(calibrator, "a_") and calibrator.a_ < 0 and 0 < probability < 1:
        return float((logit(probability) + calibrator.b_) / -calibrator.a_)
    raise UnsupportedError(f"the calibration of {name} does not rise through {probability:g}")


def _moved(model: Any, cut: float) -> Any | None:
    """A linear model or network whose own threshold is moved to a score; None of other models."""
    moved = copy.deepcopy(model)
    if isinstance(model, LogisticRegression | LinearSVC | RidgeClassifier):
        moved.intercept_ = np.atleast_1d(model.intercept_) - cut
    elif isinstance(model, MLPClassifier) and 0 < cut < 1:
        moved.intercepts_[-1] = model.intercepts_[-1] - logit(cut)
    else:
        return None
    return moved


def _cut(model: Any, threshold: float | None) -> float:
    """The sum of trees beyond which a composite says class 1, by a threshold of its score or its own rule."""
    if threshold is None:
        return 0.0 if _signed(model) else 0.5
    if isinstance(model, AdaBoostClassifier):
        return float(logit(threshold))
    if _signed(model):
        raise UnsupportedError("hard votes have no score of which a threshold is read; leave the threshold out")
    return threshold


def _signed(model: Any) -> bool:
    """Whether the sum of trees is one of votes and decision values, around 0; else it is a probability."""
    hard = isinstance(model, VotingClassifier) and model.voting == "hard"
    return hard or isinstance(model, AdaBoostClassifier | GradientBoostingClassifier)


def _add(total: Sum, model: Any, flow: Any, weight: float, columns: np.ndarray | None = None) -> None:
    """Add ``weight`` times a model's probability of class 1, or decision value where ``_signed``, as trees."""
    model, flow = total.walk(model, flow) if columns is None else (model, flow)
    name = type(model).__name__
    if isinstance(model, DecisionTreeClassifier):
        total.add(model.tree_, weight * _share(model), flow, columns)
    elif isinstance(model, FORESTS):
        for tree in model.estimators_:
            total.add(tree.tree_, weight / len(model.estimators_) * _share(tree), flow, columns)
    elif isinstance(model, BaggingClassifier):
        for member, drawn in zip(model.estimators_, model.estimators_features_, strict=True):
            used = drawn if columns is None else columns[drawn]
            all_of_them = columns is None and np.array_equal(drawn, np.arange(model.n_features_in_))
            _add_share(total, member, flow, weight / len(model.estimators_), None if all_of_them else used)
    elif isinstance(model, VotingClassifier) and model.voting == "soft":
        weights = _weights(model)
        for member, own in zip(model.estimators_, weights, strict=True):
            _add_share(total, member, flow, weight * own, columns)
    elif isinstance(model, VotingClassifier):
        for member, own in zip(model.estimators_, _weights(model), strict=True):
            _add_votes(total, member, flow, weight * own, columns)
    elif isinstance(model, AdaBoostClassifier):
        all_weights = model.estimator_weights_[: len(model.estimators_)]
        for member, own in zip(model.estimators_, all_weights / model.estimator_weights_.sum(), strict=True):
            _add_votes(total, member, flow, weight * own * 2.0, columns)
    elif isinstance(model, GradientBoostingClassifier) and (start := _start(model)) is not None:
        for (tree,) in model.estimators_:
            total.add(tree.tree_, weight * model.learning_rate * tree.tree_.value.ravel(), flow, columns)
        total.constant += weight * start
    elif isinstance(model, CalibratedClassifierCV):
        for part in model.calibrated_classifiers_:
            inner, own_flow = total.walk(part.estimator, flow)
            if not isinstance(inner, DecisionTreeClassifier):
                raise UnsupportedError(f"an average of calibrated {type(inner).__name__} is no sum of trees")
            values = np.asarray(part.calibrators[0].predict(_share(inner)), dtype=float)
            total.add(inner.tree_, weight / len(model.calibrated_classifiers_) * values, own_flow, columns)
    else:
        raise UnsupportedError(f"{name} among others is no sum of trees")


def _add_share(total: Sum, model: Any, flow: Any, weight: float, columns: np.ndarray | None) -> None:
    """Add a member of an average, which has to be one of probabilities."""
    inner = total.walk(model, flow)[0] if columns is None else model
    if _signed(inner):
        raise UnsupportedError(f"the probability of {type(inner).__name__} is no sum of trees")
    _add(total, model, flow, weight, columns)


def _add_votes(total: Sum, model: Any, flow: Any, weight: float, columns: np.ndarray | None) -> None:
    """Add ``weight`` where a tree says class 1, and subtract it elsewhere."""
    model, flow = total.walk(model, flow)
    if not isinstance(model, DecisionTreeClassifier):
        raise UnsupportedError(f"a vote of {type(model).__name__} is no sum of trees")
    total.add(model.tree_, weight * np.where(_share(model) > 0.5, 1.0, -1.0), flow, columns)


def _weights(model: VotingClassifier) -> np.ndarray:
    weights = np.array([1.0 if own is None else own for own in (model._weights_not_none or [1.0])], dtype=float)
    weights = np.broadcast_to(weights, len(model.estimators_)) if len(weights) == 1 else weights
    return weights / weights.sum()


def _start(model: GradientBoostingClassifier) -> float | None:
    """The decision value from which boosting starts, where that is 0 or the log odds of class 1."""
    start = model.init_
    if isinstance(start, DummyClassifier) and start.strategy == "prior" and model.loss == "log_loss":
        return float(logit(start.class_prior_[1]))
    return 0.0 if start == "zero" else None


def _share(tree: DecisionTreeClassifier) -> np.ndarray:
    """The share of class 1 of every node, shape (nodes,)."""
    values = tree.tree_.value[:, 0, :]
    if values.shape[1] != 2:
        if tree.classes_[0] not in (0, 1):
            raise UnsupportedError("a tree among others has seen one class only")
        return np.full(len(values), float(tree.classes_[0]))
    return values[:, 1] / values.sum(axis=1)


def _boosting(total: Sum) -> GradientBoostingClassifier:
    """The sum as boosting that starts at 0 with a learning rate of 1; a tie, up to rounding, is class 0."""
    width = sum(len(part.columns) for part in total.parts)
    if not total.trees:
        raise UnsupportedError("a composite without members cannot be read")
    leaves = [tree.nodes["left_child"] < 0 for tree in total.trees]
    largest = sum(float(np.abs(tree.values[own]).max()) for tree, own in zip(total.trees, leaves, strict=True))
    share = (total.constant - TIE * max(largest, abs(total.constant))) / len(total.trees)
    return boosting_of([_regressor(tree, share, width) for tree in total.trees], 1.0, width)


def _regressor(grown: Grown, constant: float, width: int) -> DecisionTreeRegressor:
    nodes = grown.nodes.copy()
    nodes["feature"][nodes["feature"] >= 0] += grown.offset
    tree = Tree(width, np.array([1], dtype=np.intp), 1)
    values = (grown.values + constant).reshape(-1, 1, 1)
    tree.__setstate__({"max_depth": grown.depth, "node_count": len(nodes), "nodes": nodes, "values": values})
    estimator = DecisionTreeRegressor()
    estimator.tree_, estimator.n_features_in_, estimator.n_outputs_, estimator.max_features_ = tree, width, 1, width
    return estimator


def boosting_of(trees: Sequence[DecisionTreeRegressor], rate: float, width: int) -> GradientBoostingClassifier:
    """Fitted boosting of two classes, coded 0 and 1, with these trees; it starts at 0."""
    estimator = GradientBoostingClassifier(n_estimators=1, learning_rate=rate, init="zero").fit(
        np.zeros((2, width)), np.array([0, 1])
    )  # for what it keeps to itself
    estimator.n_estimators = estimator.n_estimators_ = len(trees)
    estimator.estimators_ = np.array(trees, dtype=object).reshape(-1, 1)
    estimator.train_score_ = np.zeros(len(trees))
    return estimator
