"""Fitted classifiers as arrays over level codes, with which the kernels score points."""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.special import expit
from sklearn.neural_network import MLPClassifier

from harness.core.classifier import Classifier
from harness.core.errors import UnsupportedError
from harness.core.inputs import by_category, owners
from harness.core.linear import CLASSIFIERS
from harness.core.problem import Problem
from harness.core.target import Label, Probability
from harness.core.tolerances import MARGIN_SHARE, SCORE_TIE
from methods.column_generation import kernels
from methods.column_generation.records import CodedArrays
from methods.estimators.linear import weights_of
from methods.estimators.network import dense_layers, has_hidden_units
from methods.estimators.raw_target import Condition, conditions
from methods.estimators.thresholds import as_compared
from methods.estimators.tree_arrays import leaves_of
from methods.estimators.trees import DOUBLE, LINK, ensemble, splits_only

SAMPLE = 20  # training rows over which the effect of a code is averaged
Asked = tuple[Label | Probability, Condition]  # a target, and what it asks of the raw output


@dataclass(frozen=True)
class CodedModel:
    """A classifier as the kernels take it.

    The threshold of ``model`` is that from which on the fitted model may say what is wanted: a search loses no point,
    and the model is asked about those below ``sure``.

    Parameters
    ----------
    estimator
        The fitted estimator, its weights rounded where the method rounds them.
    sign
        1 where a larger raw output is wanted, else -1.
    model
        Its arrays over level codes.
    sure
        The signed score from which on the fitted model says what is wanted, whatever its sums are rounded to.
    exact
        Whether the scores are those of the fitted model: no weight was rounded.
    """

    estimator: Any
    sign: int
    model: CodedArrays
    sure: float
    exact: bool

    @property
    def threshold(self) -> float:
        """The least ``sign`` times raw output of a counterfactual."""
        return self.model.threshold

    def raised(self, threshold: float) -> CodedModel:
        """The same with another threshold."""
        return replace(self, model=self.model._replace(threshold=threshold))

    def scores(self, codes: np.ndarray) -> np.ndarray:
        """The signed score of rows of level codes, shape (rows,)."""
        options, model = np.empty(codes.shape[1], np.uint64), tuple(self.model)
        return np.array([kernels.score(model, row, row, options) for row in codes])


def rounds(estimator: Any, decimals: int | None) -> bool:
    """Whether so many decimals are kept of the weights of an estimator: those of linear models and networks."""
    return decimals is not None and not splits_only(estimator)


def rounded(estimator: Any, decimals: int) -> Any:
    """A copy of a linear model or a network whose weights have so many decimals."""
    twin = copy.deepcopy(estimator)
    for name in ("coef_", "intercept_"):
        if hasattr(twin, name):
            setattr(twin, name, np.round(getattr(twin, name), decimals))
    for name in ("coefs_", "intercepts_"):
        if hasattr(twin, name):
            setattr(twin, name, [np.round(part, decimals) for part in getattr(twin, name)])
    return twin


def asked_of(problem: Problem, tau: float) -> list[Asked]:
    """What the raw output has to reach: the target's own end and, where a class is wanted, the probability ``tau``.

    Raises
    ------
    UnsupportedError
        For targets that are no class and no single end of a probability, and for probabilities that a model does not
        give.
    """
    classifier, target = problem.classifier, problem.target
    if not classifier.binary:
        raise UnsupportedError(
            f"groups need a model with two classes, this one has {len(classifier.classes)}; set the dataset's 'label'."
        )
    if not isinstance(target, Label | Probability):
        raise UnsupportedError("groups need a wanted class or a least probability; set 'desired' to a class.")
    targets: list[Label | Probability] = [target]
    if isinstance(target, Label) and tau != 0.5:
        targets.append(Probability(target.value, tau))
    if isinstance(targets[-1], Probability) and not classifier.probabilistic:
        name = type(classifier.estimator).__name__
        what = (
            f"threshold={tau} needs; use threshold=0.5" if len(targets) > 1 else "are wanted; set 'desired' to a class"
        )
        raise UnsupportedError(f"{name} gives no probabilities, which {what}.")
    found = [(each, condition) for each in targets for condition in conditions(replace(problem, target=each))]
    if len(found) > len(targets):
        raise UnsupportedError("groups need a probability with one end; leave the other one out.")
    return found


def _band(classifier: Classifier, model: CodedArrays, asked: Asked) -> tuple[float, float]:
    """The signed scores from which on the fitted model may, and surely does, say what is wanted.

    Between them its own rounding decides. Scores of a single tree, and those of models made of others, have no
    rounding that counts: those are compared as they are, and the cut of these lies beside their ties.
    """
    target, condition = asked
    threshold, rounding = condition.threshold, condition.rounding
    if model.kind != kernels.TREES:
        slope = float(expit(threshold) * expit(-threshold))
        room = SCORE_TIE * (1.0 + _size(model)) + LINK * DOUBLE / max(slope, DOUBLE)
        return threshold - room, threshold + room
    trees = ensemble(classifier.estimator)
    if isinstance(target, Label) and not rounding:
        if classifier.cut is not None:
            return threshold, threshold
        if trees.mean and len(trees.trees) == 1:
            strict = classifier.code(target.value) == 1  # of equal shares the first class is said
            least = math.nextafter(threshold, math.inf) if strict else threshold
            return least, least
    room = max(rounding, SCORE_TIE)
    return threshold - room, threshold + room


def _size(model: CodedArrays) -> float:
    """The greatest sum of the sizes of a score's terms, which its rounding is relative to; not of trees."""
    if model.kind == kernels.LINEAR:
        return abs(model.base) + float(np.abs(model.table).max(axis=1).sum())
    sizes, at, shift_at = np.abs(model.first).max(axis=1).sum(axis=0) + np.abs(model.shift), 0, 0
    for rows, columns in pairwise(model.widths.tolist()):
        layer = model.weights[at : at + rows * columns].reshape(rows, columns)
        sizes = sizes @ np.abs(layer) + np.abs(model.shifts[shift_at : shift_at + columns])
        at, shift_at = at + rows * columns, shift_at + columns
    return float(sizes.max())


def encode_model(problem: Problem, tau: float, margin: float, decimals: int | None) -> CodedModel:
    """A problem's classifier over the level codes of its space, whose features are all discrete.

    Raises
    ------
    UnsupportedError
        For estimators that cannot be read, and as ``asked_of`` does.
    """
    classifier, features = problem.classifier, problem.space.features
    asked = asked_of(problem, tau)
    sign, estimator = int(asked[0][1].weights[0]), classifier.estimator
    exact = not rounds(estimator, decimals)
    if decimals is not None and not exact:
        estimator = rounded(estimator, decimals)
    model = _arrays(problem, estimator, sign)
    if exact:
        bands = [_band(classifier, model, each) for each in asked]
        least, sure = (max(ends) for ends in zip(*bands, strict=True))
    else:  # keeps outputs that exceed the threshold by exactly the margin, as sums of rounded weights may
        least = sure = max(condition.threshold for _, condition in asked) + margin * (1.0 - MARGIN_SHARE)
    model = model._replace(threshold=float(least))
    if model.kind != kernels.LINEAR:
        rows = problem.train.iloc[np.linspace(0, len(problem.train) - 1, SAMPLE).astype(int)]
        sizes = np.array([len(feature.categories) for feature in features])
        model = model._replace(table=kernels.effects(tuple(model), codes_of(problem, rows), sizes))
    return CodedModel(estimator, sign, model, float(sure), exact)


def _arrays(problem: Problem, estimator: Any, sign: int) -> CodedArrays:
    """An estimator's arrays, without a threshold, and without the mean effects of codes."""
    space = problem.space
    d = len(space.features)
    owner = owners(space, problem.classifier.inputs)
    tables = [by_category(space[source.feature], source) for source in problem.classifier.inputs]
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
    return CodedArrays(kind, 0.0, table, base, first, shift, weights, shifts, widths, masks, values, start)


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
