"""Fitted classifiers as arrays over level codes, with which the kernels score points."""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.neural_network import MLPClassifier

from harness.core.classifier import Classifier
from harness.core.errors import UnsupportedError
from harness.core.inputs import by_category
from harness.core.linear import CLASSIFIERS
from harness.core.problem import Problem
from harness.core.target import Label, Probability
from harness.core.tolerances import MARGIN_SHARE, SCORE_TIE
from methods.column_generation import kernels
from methods.column_generation.records import CodedArrays
from methods.estimators.linear import weights_of
from methods.estimators.network import dense_layers, has_hidden_units
from methods.estimators.thresholds import as_compared
from methods.estimators.tree_arrays import leaves_of
from methods.estimators.trees import Ensemble, ensemble, splits_only

SAMPLE = 20  # training rows over which the effect of a code is averaged


@dataclass(frozen=True)
class CodedModel:
    """A classifier as the kernels take it.

    Parameters
    ----------
    estimator
        The fitted estimator, its weights rounded where the method rounds them.
    sign
        1 where a larger raw output is wanted, else -1.
    model
        Its arrays over level codes.
    """

    estimator: Any
    sign: int
    model: CodedArrays

    @property
    def threshold(self) -> float:
        """The least ``sign`` times raw output of a counterfactual."""
        return self.model.threshold

    def stricter(self, by: float) -> CodedModel:
        """The same with a higher threshold."""
        return replace(self, model=self.model._replace(threshold=self.threshold + by))

    def scores(self, codes: np.ndarray) -> np.ndarray:
        """The signed score of rows of level codes, shape (rows,)."""
        options, model = np.empty(codes.shape[1], np.uint64), tuple(self.model)
        return np.array([kernels.score(model, row, row, options) for row in codes])


def rounded(estimator: Any, decimals: int | None) -> Any:
    """A copy of a linear model or a network whose weights have so many decimals; else the estimator itself."""
    if decimals is None or splits_only(estimator):
        return estimator
    twin = copy.deepcopy(estimator)
    for name in ("coef_", "intercept_"):
        if hasattr(twin, name):
            setattr(twin, name, np.round(getattr(twin, name), decimals))
    for name in ("coefs_", "intercepts_"):
        if hasattr(twin, name):
            setattr(twin, name, [np.round(part, decimals) for part in getattr(twin, name)])
    return twin


def ends(problem: Problem, tau: float, margin: float) -> tuple[int, float]:
    """The sign of the wanted raw output, and the least signed raw output of a counterfactual.

    Raises
    ------
    UnsupportedError
        For targets that are no class or least probability, and for probabilities that a model does not give.
    """
    classifier, target = problem.classifier, problem.target
    if not classifier.binary:
        raise UnsupportedError(
            f"groups need a model with two classes, this one has {len(classifier.classes)}; set the dataset's 'label'."
        )
    if isinstance(target, Label):
        label, least = target.value, tau
    elif isinstance(target, Probability) and target.high == 1.0:
        label, least = target.label, max(target.low, tau)
    else:
        raise UnsupportedError("groups need a wanted class or a least probability; set 'desired' to a class.")
    sign = 1 if classifier.code(label) == 1 else -1
    limits = [sign * classifier.raw_threshold] if isinstance(target, Label) else []
    if not limits or tau != 0.5:
        if not classifier.probabilistic:
            name = type(classifier.estimator).__name__
            raise UnsupportedError(f"{name} gives no probabilities, which threshold={least} needs; use threshold=0.5.")
        limits.append(sign * classifier.to_raw(least if sign == 1 else 1.0 - least))
    threshold = max(limits)
    if splits_only(classifier.estimator):
        model = ensemble(classifier.estimator)
        rounding = model.rounding(sign * threshold)
        margin = min(margin, 100 * SCORE_TIE)
        if isinstance(target, Label) and threshold == sign * classifier.raw_threshold:
            margin = _beside_ties(classifier, model, sign, margin)
        margin += rounding
    else:  # keeps outputs that exceed the threshold by exactly the margin, as sums of rounded weights may
        margin *= 1.0 - MARGIN_SHARE
    return sign, threshold + margin


def _beside_ties(classifier: Classifier, model: Ensemble, sign: int, margin: float) -> float:
    """By how much a sum of trees has to exceed its threshold, so that ties are the class that the model says.

    Averages that tie are the first class; the cut of a model made of others lies beside its ties, on the right side.
    """
    if classifier.cut is not None:
        return 0.0
    first = model.mean and classifier.threshold is None and sign == -1
    return -SCORE_TIE if first else margin


def encode_model(problem: Problem, tau: float, margin: float, decimals: int | None) -> CodedModel:
    """A problem's classifier over the level codes of its space, whose features are all discrete.

    Raises
    ------
    UnsupportedError
        For estimators that cannot be read, and as ``ends`` does.
    """
    sign, threshold = ends(problem, tau, margin)
    classifier, space = problem.classifier, problem.space
    estimator = rounded(classifier.estimator, decimals)
    d = len(space.features)
    places = {name: place for place, name in enumerate(space.names)}
    owner = np.array([places[source.feature] for source in classifier.inputs])
    tables = [by_category(space[source.feature], source) for source in classifier.inputs]
    table, base = np.zeros((d, kernels.WORD)), 0.0
    first, shift = np.zeros((d, 1, 1)), np.zeros(1)
    weights, shifts, widths = np.zeros(1), np.zeros(1), np.ones(1, dtype=np.int64)
    masks, values, start = np.zeros((1, d), np.uint64), np.zeros(1), np.zeros(1, dtype=np.int64)
    if isinstance(estimator, CLASSIFIERS):
        kind = kernels.LINEAR
        (line,), (constant,) = weights_of(estimator)
        base = sign * float(constant)
        for weight, place, column in zip(line, owner, tables, strict=True):
            table[place, : len(column)] += sign * weight * column
    elif isinstance(estimator, MLPClassifier):
        if estimator.activation != "relu" and has_hidden_units(estimator):
            raise UnsupportedError(f"a network with activation {estimator.activation!r} cannot be read; use 'relu'.")
        kind = kernels.NETWORK if has_hidden_units(estimator) else kernels.LINEAR
        coefs, intercepts = map(list, zip(*dense_layers(estimator), strict=True))
        coefs[-1], intercepts[-1] = sign * coefs[-1], sign * intercepts[-1]
        first, shift = np.zeros((d, kernels.WORD, coefs[0].shape[1])), np.array(intercepts[0], dtype=float)
        for row, place, column in zip(coefs[0], owner, tables, strict=True):
            first[place, : len(column)] += np.outer(column, row)
        if kind == kernels.LINEAR:
            table, base = first[:, :, 0].copy(), float(shift[0])
        else:
            weights = np.concatenate([part.ravel() for part in coefs[1:]])
            shifts = np.concatenate(intercepts[1:])
            widths = np.array([part.shape[0] for part in coefs[1:]] + [1], dtype=np.int64)
    elif splits_only(estimator):
        kind = kernels.TREES
        masks, values, start, base = _leaves(ensemble(estimator), sign, d, owner, tables, space.features)
    else:
        raise UnsupportedError(
            f"{type(estimator).__name__} cannot be read; known: linear models, ReLU networks and sums of trees."
        )
    model = CodedArrays(
        kind, float(threshold), table, base, first, shift, weights, shifts, widths, masks, values, start
    )
    if kind != kernels.LINEAR:
        rows = problem.train.iloc[np.linspace(0, len(problem.train) - 1, SAMPLE).astype(int)]
        codes = codes_of(problem, rows)
        sizes = np.array([len(feature.categories) for feature in space.features])
        model = model._replace(table=kernels.effects(tuple(model), codes, sizes))
    return CodedModel(estimator, sign, model)


def codes_of(problem: Problem, frame: Any) -> np.ndarray:
    """Level codes of decoded rows, shape (rows, features), int64."""
    features = problem.space.features
    return np.column_stack([feature.codes(frame[feature.name]) for feature in features]).astype(np.int64)


def _leaves(model: Any, sign: int, d: int, owner: Any, tables: Any, features: Any) -> tuple[Any, ...]:
    """Each leaf as the codes that it admits of each feature, its signed value, where trees start, and the base."""
    every = np.array([(1 << len(feature.categories)) - 1 for feature in features], dtype=np.uint64)
    inputs = [as_compared(column, model.single) for column in tables]
    masks, values, start = [], [], [0]
    for tree in model.trees:
        for leaf in leaves_of(tree):
            mask = every.copy()
            for column in leaf.above.keys() | leaf.at_most.keys():
                inside = inputs[column] > leaf.above.get(column, -math.inf)
                inside &= inputs[column] <= leaf.at_most.get(column, math.inf)
                mask[owner[column]] &= np.uint64(sum(1 << int(code) for code in np.flatnonzero(inside)))
            if mask.all():
                masks.append(mask)
                values.append(sign * model.weight * float(tree.value[leaf.node, 0]))
        start.append(len(masks))
    return np.array(masks), np.array(values), np.array(start), sign * float(model.base[0])
