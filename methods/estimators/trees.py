"""One reader of fitted tree ensembles: whatever the library, flat trees whose leaf values add up to the raw output.

A family is one function registered with ``ensemble``; the mixed-integer embedding and both searches follow from it.
"""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, singledispatch, update_wrapper
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from scipy.special import expit, logit
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
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from harness.core.errors import UnsupportedError
from harness.core.tolerances import LIGHTGBM_ZERO, SCORE_INSET, SCORE_TIE
from harness.models.runtime.estimators import RuntimeTrees
from harness.models.runtime.records import DOUBLE, SINGLE, Tree
from harness.models.scorecard import ScorecardClassifier, ScorecardRegressor
from methods.estimators.category_splits import CategorySplit, by_threshold
from methods.estimators.optional import LightGBM, XGBoost
from methods.estimators.tree_arrays import FlatTrees, leaves_of

CODED = "put a OneHotEncoder before it in the pipeline, and declare no categorical features"
LINK = 4.0  # relative errors of one rounding that a probability may have
PARTS = 1024  # of a leaf's share, of which sums are exact
APART = 100  # insets that counted outputs are apart, at least
LOOKED, LEAVES = 25, 32  # trees, and leaves of each, at whose ends what is read is compared with the library
COMMON = 1000  # the greatest common denominator of leaf values that is looked for

ZERO = float(np.float32(LIGHTGBM_ZERO))


@dataclass(frozen=True)
class Ensemble:
    r"""Trees whose leaf values add up to the raw output, ``Classifier.raw``: base + weight · Σ values.

    Parameters
    ----------
    trees
        All trees, of whichever output.
    weight
        What a leaf's value is multiplied with.
    base
        Each output before any tree, shape (outputs,).
    single
        Whether inputs are rounded to float32 before they are compared with a threshold.
    mean
        Whether the model averages leaf values, so that outputs can tie exactly.
    epsilon
        Relative spacing of the numbers in which the library adds leaf values up.
    logistic
        Whether the library compares probabilities, a logistic function of the raw output, in those numbers.
    """

    trees: tuple[Tree, ...]
    weight: float
    base: np.ndarray
    single: bool
    mean: bool = False
    epsilon: float = DOUBLE
    logistic: bool = False

    def reached(self, matrix: np.ndarray) -> np.ndarray:
        """The leaf of each tree, a node of it, that rows of estimator inputs come to, shape (rows, trees)."""
        inputs = matrix.astype(np.float32) if self.single else np.asarray(matrix, dtype=float)
        nodes = np.zeros((len(inputs), len(self.trees)), dtype=np.int64)
        for place, tree in enumerate(self.trees):
            nodes[:, place] = tree.reached(inputs)
        return nodes

    def raw(self, matrix: np.ndarray) -> np.ndarray:
        """The raw outputs of rows of estimator inputs, added up in float64, shape (rows, outputs)."""
        total = np.tile(self.base, (len(matrix), 1))
        for tree, node in zip(self.trees, self.reached(matrix).T, strict=True):
            total[:, tree.outputs] += self.weight * tree.value[node]
        return total

    @cached_property
    def takes_gaps(self) -> bool:
        """Whether it is known where missing inputs go."""
        return all(tree.gap_left is not None for tree in self.trees)

    @cached_property
    def splits_gaps(self) -> bool:
        """Whether a split tells missing inputs from all others, which trees without gaps have not."""
        return any(np.isinf(tree.threshold[tree.left >= 0]).any() for tree in self.trees)

    def gains(self, tree: Tree, weights: np.ndarray) -> np.ndarray:
        """What each node of a tree, as a leaf, adds to a weighted sum of the outputs, shape (nodes,)."""
        return np.asarray(self.weight * (tree.value @ weights[list(tree.outputs)]), dtype=float)

    def rounding(self, threshold: float, outputs: int = 1) -> float:
        r"""How far from a raw threshold the float64 sum has to be, for the real model to be on the same side for sure.

        Within it only the model itself can tell. :math:`n` roundings of partial sums, in whichever order they are
        added, and that of a probability :math:`p` at the threshold, which has the slope :math:`p (1 - p)`; of the
        difference of two ``outputs`` twice that. 0 where that is less than ``SCORE_TIE``, within which the fitted model
        decides anyway.
        """
        largest = np.abs(self.base)
        for tree in self.trees:
            largest[list(tree.outputs)] += abs(self.weight) * np.abs(tree.value[tree.left < 0]).max(axis=0)
        total = self.epsilon / 2 * (len(self.trees) + 2) * float(largest.max())
        if self.logistic:
            total += LINK * self.epsilon / max(float(expit(threshold) * expit(-threshold)), SCORE_TIE)
        total *= outputs
        return total if total > SCORE_TIE else 0.0

    def spacing(self) -> float:
        """A number of which every tree's contribution to an output is a multiple, as averaged votes are; 0: unknown."""
        common = 1
        for value in np.unique(np.concatenate([tree.value[tree.left < 0].ravel() for tree in self.trees])):
            part = Fraction(float(value)).limit_denominator(COMMON)
            common = math.lcm(common, part.denominator)
            if common > COMMON or abs(float(part) - value) > DOUBLE:
                return 0.0
        return self.weight / common

    @cached_property
    def counts(self) -> float:
        """A number of which every output, between 0 and 1, is a multiple as the model computes it; 0: unknown.

        As of a forest whose trees vote, or have leaves of one class each: sums of halves, quarters and so on are exact,
        and the mean is rounded once, so that equal outputs compare as equal.
        """
        values = np.concatenate([tree.value[tree.left < 0].ravel() for tree in self.trees]) * PARTS
        exact = np.isin(values, np.arange(PARTS + 1)).all() and PARTS * len(self.trees) < 1 / self.epsilon
        averages = self.mean and not self.base.any() and self.weight == 1 / len(self.trees)
        spacing = self.spacing() if exact and averages else 0.0
        return spacing if spacing > APART * SCORE_INSET else 0.0

    def flat(self, weights: np.ndarray | None = None) -> FlatTrees:
        """All trees in the same arrays; their values are those of the weighted sum of the outputs, or the only one."""
        weights = np.ones(1) if weights is None else weights
        sizes = np.cumsum([0, *(len(tree.left) for tree in self.trees)])
        left, right = (
            np.concatenate([np.where(part < 0, -1, part + first) for part, first in zip(side, sizes, strict=False)])
            for side in ([tree.left for tree in self.trees], [tree.right for tree in self.trees])
        )
        column = np.concatenate([tree.column for tree in self.trees])
        threshold = np.concatenate([tree.threshold for tree in self.trees])
        value = np.concatenate([self.gains(tree, weights) for tree in self.trees])
        return FlatTrees(sizes[:-1], left, right, column, threshold, value)


class Reader:
    """A ``singledispatch`` that reads a fitted estimator once, until it is fitted again."""

    def __init__(self, read: Any) -> None:
        self.read, self.register, self.dispatch, self.registry = read, read.register, read.dispatch, read.registry
        self._known: WeakKeyDictionary[Any, tuple[dict[str, Any], Ensemble]] = WeakKeyDictionary()
        update_wrapper(self, read)

    def __call__(self, estimator: Any, gaps: bool = False) -> Ensemble:
        """The ensemble; with ``gaps`` also one whose splits tell missing inputs from all others."""
        if self.dispatch(type(estimator)) is self.dispatch(object):
            return self.read(estimator)  # raises
        fitted = dict(getattr(estimator, "__dict__", {}))
        before, found = self._known.get(estimator, ({}, None))
        same = before.keys() == fitted.keys() and all(before[name] is value for name, value in fitted.items())
        if found is None or not same:
            found = self.read(estimator)
            self._known[estimator] = fitted, found
        if found.splits_gaps and not gaps:
            raise UnsupportedError(
                f"a tree of this {type(estimator).__name__} splits on missing values; train it on rows without any."
            )
        return found


@Reader
@singledispatch
def ensemble(estimator: Any) -> Ensemble:
    """A fitted estimator as a sum of trees.

    Raises
    ------
    UnsupportedError
        For a type that is none, and for fitted trees that do something else than compare a number with a threshold.
    """
    known = sorted(kind.__name__ for kind in ensemble.registry if kind is not object)
    raise UnsupportedError(f"{type(estimator).__name__} is no sum of trees that is known; known: {', '.join(known)}.")


def splits_only(estimator: Any) -> bool:
    """Whether the estimator sees its inputs through thresholds only, as trees do: a sum of trees, read or refused."""
    return ensemble.dispatch(type(estimator)) is not ensemble.dispatch(object)


@ensemble.register(DecisionTreeClassifier)
@ensemble.register(DecisionTreeRegressor)
def _(estimator: Any) -> Ensemble:
    return _averaged([estimator])


@ensemble.register(RandomForestClassifier)
@ensemble.register(ExtraTreesClassifier)
@ensemble.register(RandomForestRegressor)
@ensemble.register(ExtraTreesRegressor)
def _(estimator: Any) -> Ensemble:
    return _averaged(estimator.estimators_)


def _averaged(members: Sequence[Any]) -> Ensemble:
    """The mean over trees of leaf fractions (of class 1, or of each class beyond two), or of leaf means."""
    trees = []
    for member in members:
        values = member.tree_.value[:, 0, :]
        values = values / values.sum(axis=1, keepdims=True) if values.shape[1] > 1 else values
        values = values[:, 1:] if values.shape[1] == 2 else values
        trees.append(_sklearn_tree(member, values, tuple(range(values.shape[1]))))
    return Ensemble(tuple(trees), 1.0 / len(trees), np.zeros(len(trees[0].outputs)), single=True, mean=True)


def _sklearn_tree(member: Any, values: np.ndarray, outputs: tuple[int, ...]) -> Tree:
    tree = member.tree_
    gaps = np.asarray(tree.missing_go_to_left).astype(bool)
    return Tree(tree.children_left, tree.children_right, tree.feature, tree.threshold, values, outputs, gaps)


@ensemble.register(GradientBoostingClassifier)
@ensemble.register(GradientBoostingRegressor)
def _(estimator: Any) -> Ensemble:
    """The initial score plus the learning rate times the sum of leaf values, one a class beyond two."""
    if estimator.init is not None and estimator.init != "zero":
        raise UnsupportedError("cannot read gradient boosting with an 'init' estimator; leave init unset.")
    stages, outputs = estimator.estimators_.shape
    trees = tuple(
        _sklearn_tree(estimator.estimators_[stage, k], estimator.estimators_[stage, k].tree_.value[:, 0, :], (k,))
        for k in range(outputs)
        for stage in range(stages)
    )
    model = Ensemble(trees, estimator.learning_rate, np.zeros(outputs), single=True)
    # The initial score is the model's raw output less the sum of its trees.
    point = np.zeros((1, estimator.n_features_in_))
    base = _of_sklearn(estimator, point)[0] - model.raw(point)[0]
    return Ensemble(trees, estimator.learning_rate, base, single=True)


def _of_sklearn(estimator: Any, points: np.ndarray) -> np.ndarray:
    """The raw outputs of boosting in scikit-learn, shape (rows, outputs)."""
    raw = estimator.decision_function if hasattr(estimator, "decision_function") else estimator.predict
    return np.asarray(raw(points), dtype=float).reshape(len(points), -1)


@ensemble.register(HistGradientBoostingClassifier)
@ensemble.register(HistGradientBoostingRegressor)
def _(estimator: Any) -> Ensemble:
    """Histogram boosting: float64 thresholds and sums."""
    name = type(estimator).__name__
    if estimator.loss not in {"log_loss", "squared_error", "absolute_error", "quantile"}:
        raise UnsupportedError(f"cannot read {name} with loss {estimator.loss!r}, an exponential; use 'squared_error'.")
    # Where categories are declared, trees number the columns anew: those first.
    first = estimator.is_categorical_
    order = np.arange(estimator.n_features_in_) if first is None else np.argsort(~first, kind="stable")
    trees = []
    for stage in estimator._predictors:
        for k, predictor in enumerate(stage):
            nodes = predictor.nodes
            leaf = nodes["is_leaf"].astype(bool)
            left, right = (np.where(leaf, -1, nodes[side].astype(np.int64)) for side in ("left", "right"))
            column = np.where(leaf, 0, order[np.where(leaf, 0, nodes["feature_idx"])])
            gaps = nodes["missing_go_to_left"].astype(bool)
            tree = Tree(left, right, column, nodes["num_threshold"], nodes["value"][:, None].copy(), (k,), gaps)
            splits = _category_splits(estimator, predictor, column)
            if splits:
                arrays = by_threshold(left, right, column, tree.threshold, nodes["value"], gaps, splits)
                tree = Tree(*arrays[:5], (k,), arrays[5])
            trees.append(tree)
    model = Ensemble(tuple(trees), 1.0, np.ravel(estimator._baseline_prediction).astype(float), single=False)
    return _confirmed(model, estimator, _of_sklearn, foreign=False)


def _category_splits(estimator: Any, predictor: Any, column: np.ndarray) -> dict[int, CategorySplit]:
    """The splits of a tree of histogram boosting that send sets of categories left, by node.

    A bit set holds the places of codes among those that training saw; a number that it did not see goes where missing
    values go.
    """
    nodes, splits = predictor.nodes, dict[int, CategorySplit]()
    for node in np.flatnonzero(nodes["is_categorical"].astype(bool) & ~nodes["is_leaf"].astype(bool)).tolist():
        encoder = estimator._preprocessor.named_transformers_["encoder"]
        known = encoder.categories_[int(np.count_nonzero(estimator.is_categorical_[: column[node]]))]
        if not np.issubdtype(np.asarray(known).dtype, np.number):
            raise UnsupportedError(f"{type(estimator).__name__} takes texts for categories; {CODED}.")
        bits = predictor.raw_left_cat_bitsets[nodes["bitset_idx"][node]]
        places = np.arange(len(known))
        left = bits[places // 32] >> (places % 32).astype(np.uint32) & 1 == 1
        seen = ~np.isnan(known.astype(float))
        others = bool(nodes["missing_go_to_left"][node])
        splits[node] = CategorySplit(known.astype(float)[seen], left[seen], others)
    return splits


@ensemble.register(ScorecardClassifier)
@ensemble.register(ScorecardRegressor)
def _(estimator: Any) -> Ensemble:
    """A scorecard: a tree for each feature, whose leaves are its bins."""
    card = estimator.card_
    trees = []
    for column, variable in enumerate(card.variables):
        thresholds, places = variable.steps()
        trees.append(_stairs(column, thresholds, variable.contributions[places]))
    return Ensemble(tuple(trees), 1.0, np.array([card.intercept]), single=False)


def _stairs(column: int, thresholds: np.ndarray, values: np.ndarray) -> Tree:
    """A balanced tree on one column: ``values[k]`` where k of the increasing ``thresholds`` are below it."""
    nodes: list[tuple[int, int, float, float]] = []

    def grow(first: int, last: int) -> int:
        place, middle = len(nodes), (first + last) // 2
        nodes.append((-1, -1, 0.0, float(values[first])))
        if first < last:
            nodes[place] = (grow(first, middle), grow(middle + 1, last), float(thresholds[middle]), 0.0)
        return place

    grow(0, len(values) - 1)
    left, right, threshold, value = (np.array(part) for part in zip(*nodes, strict=True))
    columns = np.where(left < 0, 0, column)
    return Tree(left.astype(np.int64), right.astype(np.int64), columns, threshold, value[:, None])


@ensemble.register(XGBoost)
def _(estimator: Any) -> Ensemble:
    """XGBoost: float32 inputs and sums; ``x < threshold`` goes left, which is ``x <=`` the float32 before it."""
    name, booster = type(estimator).__name__, estimator.get_booster()
    if not math.isnan(estimator.missing):
        raise UnsupportedError(f"cannot read {name} with missing={estimator.missing}; train it with missing=nan.")
    with suppress(AttributeError):  # where training was not stopped early
        booster = booster[: estimator.best_iteration + 1]
    learner = json.loads(booster.save_raw("json"))["learner"]
    kind, sizes = learner["gradient_booster"]["name"], learner["learner_model_param"]
    objective = learner["objective"]["name"]
    if kind != "gbtree":
        raise UnsupportedError(f"cannot read {name} with booster {kind!r}; use 'gbtree'.")
    if int(sizes.get("num_target", 1)) > 1:
        raise UnsupportedError(f"cannot read {name} with {sizes['num_target']} targets; train it on one.")
    losses = ("squarederror", "squaredlogerror", "pseudohubererror", "absoluteerror", "quantileerror")
    _allow(name, objective, "binary:logistic", "multi:softprob", "multi:softmax", *(f"reg:{loss}" for loss in losses))
    outputs = max(int(sizes["num_class"]), 1)
    base = np.broadcast_to(np.array(json.loads(sizes["base_score"]), dtype=np.float32), outputs).astype(float)
    if objective == "binary:logistic":
        base = logit(base)
    model = learner["gradient_booster"]["model"]
    trees = []
    for parts, k in zip(model["trees"], model["tree_info"], strict=True):
        left, right, column = (np.array(parts[n]) for n in ("left_children", "right_children", "split_indices"))
        if (np.array(parts["split_type"])[left >= 0] != 0).any():
            raise UnsupportedError(f"a tree of this {name} splits on native categories; {CODED}.")
        cut = np.array(parts["split_conditions"], dtype=np.float32)  # at leaves: their value
        before = np.nextafter(cut, np.float32(-np.inf)).astype(float)
        gaps = np.array(parts["default_left"]).astype(bool)
        trees.append(Tree(left, right, column, before, cut[:, None].astype(float), (int(k),), gaps))
    found = Ensemble(tuple(trees), 1.0, base, single=True, epsilon=SINGLE, logistic=objective[:3] != "reg")
    return _confirmed(found, estimator, lambda e, points: e.predict(points, output_margin=True))


@ensemble.register(LightGBM)
def _(estimator: Any) -> Ensemble:
    """LightGBM: float64 thresholds and sums."""
    name, dump = type(estimator).__name__, estimator.booster_.dump_model()
    if dump["average_output"]:
        raise UnsupportedError(f"cannot read {name} with boosting_type='rf'; use 'gbdt', or a scikit-learn forest.")
    # After a classifier's objective come its parameters; "sqrt" follows that of a regressor with another link.
    objective = dump.get("objective", "none")
    if hasattr(estimator, "classes_"):
        _allow(name, objective.split()[0], "binary", "multiclass", "multiclassova")
    else:
        _allow(name, objective, "regression", "regression_l1", "huber", "quantile", "fair", "mape")
    outputs = dump["num_tree_per_iteration"]
    roots = [listed["tree_structure"] for listed in dump["tree_info"]]
    # The dump ends at 1e300: it says so of a split of gaps alone, which is infinite, and of any threshold beyond.
    lines = (line.partition("=") for line in estimator.booster_.model_to_string().splitlines())
    exact = [list(map(float, texts.split())) for key, _, texts in lines if key == "threshold"]
    trees = tuple(
        _lightgbm_tree(root, cuts, place % outputs, name)
        for place, (root, cuts) in enumerate(zip(roots, exact, strict=True))
    )
    model = Ensemble(trees, 1.0, np.zeros(outputs), single=False)
    return _confirmed(model, estimator, lambda e, points: e.predict(points, raw_score=True))


def _cut(threshold: float) -> float:
    """The last number that LightGBM sends left: it takes all within ``ZERO`` of 0 for 0."""
    if -ZERO <= threshold < 0:
        return float(np.nextafter(-ZERO, -np.inf))
    return ZERO if 0 <= threshold < ZERO else threshold


def _lightgbm_tree(root: dict[str, Any], cuts: Sequence[float], output: int, name: str) -> Tree:
    """A tree of nested dictionaries, and the thresholds of its splits."""
    left, right, column, threshold, value = list[int](), list[int](), list[int](), list[float](), list[float]()
    gaps = list[bool]()
    stack: list[tuple[dict[str, Any], int, list[int]]] = [(root, -1, left)]
    while stack:
        node, parent, side = stack.pop()
        place = len(left)
        if parent >= 0:
            side[parent] = place
        inner = "split_feature" in node
        if node.get("leaf_features"):
            raise UnsupportedError(f"{name} has linear models in its leaves; train it with linear_tree=False.")
        if inner and node["decision_type"] != "<=":
            raise UnsupportedError(f"a tree of this {name} splits on native categories; {CODED}.")
        if inner and node["missing_type"] == "Zero":
            raise UnsupportedError(f"{name} takes zeros for missing values; train it with zero_as_missing=False.")
        left.append(-1)
        right.append(-1)
        column.append(node["split_feature"] if inner else 0)
        threshold.append(_cut(cuts[node["split_index"]]) if inner else 0.0)
        value.append(0.0 if inner else node["leaf_value"])
        # Where training saw none, a missing value is taken for 0.
        seen = inner and node["missing_type"] == "NaN"
        gaps.append(bool(node["default_left"] if seen else inner and threshold[-1] >= 0))
        if inner:
            stack += [(node["right_child"], place, right), (node["left_child"], place, left)]
    arrays = np.array(left), np.array(right), np.array(column), np.array(threshold, dtype=float)
    return Tree(*arrays, np.array(value, dtype=float)[:, None], (output,), np.array(gaps))


@ensemble.register(RuntimeTrees)
def _(estimator: Any) -> Ensemble:
    """Trees that were read, and compared with their library's answers, when the model was taken."""
    found = estimator.trees
    mean = hasattr(estimator, "classes_") and not found.logistic
    return Ensemble(found.trees, 1.0, found.base, found.single, mean, found.epsilon, found.logistic)


def _allow(name: str, objective: str, *allowed: str) -> None:
    """Refuse objectives whose predictions are not the raw sum, nor a logistic function of it."""
    if objective not in allowed:
        raise UnsupportedError(f"cannot read {name} with objective {objective!r}; allowed: {', '.join(allowed)}.")


def _corners(model: Ensemble, width: int) -> Iterator[np.ndarray]:
    """Points at the last and at the first numbers of some leaves, 0 where a leaf says nothing of a column."""
    seen, infinite = (np.float32, np.float32(np.inf)) if model.single else (np.float64, np.inf)
    for tree in model.trees[:: -(-len(model.trees) // LOOKED)]:
        for leaf in leaves_of(tree)[:LEAVES]:
            last, first = np.zeros(width), np.zeros(width)
            for column in {*leaf.above, *leaf.at_most}:
                above, most = leaf.above.get(column, -math.inf), leaf.at_most.get(column, math.inf)
                beyond = float(np.nextafter(seen(above), infinite)) if math.isfinite(above) else above
                if known := [end for end in (most, beyond) if math.isfinite(end)]:
                    last[column], first[column] = known[0], known[-1]
            yield from (last, first)


def _confirmed(model: Ensemble, estimator: Any, raw: Any, foreign: bool = True) -> Ensemble:
    """The ensemble, if its sum at some points is the library's: formats change from version to version."""
    if foreign and len(model.base) == len(getattr(estimator, "classes_", ())) == 2:
        raise UnsupportedError(
            f"this {type(estimator).__name__} has two outputs for two classes; train it with its objective for two "
            f"classes, which has one."
        )
    width = estimator.n_features_in_
    corners = _corners(model, width) if foreign else ()  # scikit-learn's own may split on codes of categories
    points = np.vstack([np.zeros(width), np.ones(width), *corners])
    if model.takes_gaps:
        points = np.vstack([points, np.full(width, np.nan)])
    with warnings.catch_warnings(action="ignore", category=UserWarning):  # of names that an array has not
        expected = np.asarray(raw(estimator, points), dtype=float).reshape(len(points), -1)
    found = model.raw(points)
    near = expected.shape == found.shape and np.abs(found - expected).max() <= max(model.rounding(0.0), SCORE_TIE)
    if near:
        return model
    version = type(estimator).__module__.partition(".")[0]
    raise UnsupportedError(
        f"the trees of this {type(estimator).__name__} do not add up to its own raw score; "
        f"this version of {version} stores them in another way, so take one that uv.lock names."
    )
