"""Sums of trees: the nearest invalid point by branch and bound over leaves."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit

from harness.certificate.balls import Ball, Budget, Certificate
from harness.certificate.margins import Margin
from harness.certificate.tree_kernels import FOUND, FULL, NONE, TIED, Cells, Heap, Leaves, Limits, search
from harness.core.classifier import Classifier
from harness.core.errors import UnsupportedError
from harness.core.inputs import Affine, Input
from harness.core.space import Space
from harness.core.tolerances import SCORE_TIE, SMALLEST_NUMBER

NODES = 2000  # boxes looked at between two looks at the clock
TIE = 20  # boxes that asking the model about one point counts for
LINK = 4.0  # roundings of a logistic function, and of what it is compared with
LARGEST = 4_000_000  # open boxes kept; then the radius proven so far is returned


@dataclass(frozen=True)
class Split:
    """Values of a feature up to ``last`` are on the low side of a split, which is its left one where ``rising``."""

    feature: str
    last: float
    rising: bool


def last_low(source: Affine, threshold: float, single: bool) -> float:
    """The largest float64 value whose input is on the low side of a split, as the library compares them.

    The low side is the left one (input <= threshold) where the input rises with the value, else the right one.
    """
    rising = source.unit > 0

    def low(value: float) -> bool:
        number = source.of(value)
        return ((float(np.float32(number)) if single else number) <= threshold) == rising

    guess = source.shift + threshold * source.unit
    step = max(abs(guess), abs(source.shift), abs(source.unit), SMALLEST_NUMBER) * 2.0**-26
    below, above = guess - step, guess + step
    while not low(below):
        below, step = below - step, 2 * step
    while low(above):
        above, step = above + step, 2 * step
    while (middle := below + (above - below) / 2) not in (below, above):
        below, above = (middle, above) if low(middle) else (below, middle)
    return float(below)


def sums(estimator: Any) -> tuple[list[tuple[Any, np.ndarray]], np.ndarray, bool]:
    """A fitted estimator as trees and what each adds to every raw output at each node, the outputs without any tree,
    and whether inputs are rounded to float32 before they are compared with a threshold."""
    if (read := getattr(estimator, "trees", None)) is not None:
        nodes = ((_Nodes(tree.left, tree.right, tree.column, tree.threshold), tree.value) for tree in read.trees)
        return list(nodes), read.base, read.single
    if hasattr(estimator, "_predictors"):
        return _histogram(estimator)
    if not hasattr(estimator, "init_"):
        members = list(getattr(estimator, "estimators_", [estimator]))
        trees = []
        for member in members:
            values = member.tree_.value[:, 0, :]
            if hasattr(estimator, "classes_"):
                values = values / values.sum(axis=1, keepdims=True)
                values = values[:, 1:] if values.shape[1] == 2 else values
            trees.append((_Nodes.of(member.tree_), values / len(members)))
        return trees, np.zeros(trees[0][1].shape[1]), True
    outputs = estimator.estimators_.shape[1]
    trees = []
    for stage in estimator.estimators_:
        for k, member in enumerate(stage):
            values = np.zeros((member.tree_.node_count, outputs))
            values[:, k] = estimator.learning_rate * member.tree_.value[:, 0, 0]
            trees.append((_Nodes.of(member.tree_), values))
    return trees, _base(estimator, trees, single=True), True


def _histogram(estimator: Any) -> tuple[list[tuple[Any, np.ndarray]], np.ndarray, bool]:
    outputs = estimator.n_trees_per_iteration_
    trees = []
    for stage in estimator._predictors:
        for k, predictor in enumerate(stage):
            nodes = predictor.nodes
            values = np.zeros((len(nodes), outputs))
            values[:, k] = nodes["value"]
            leaf = nodes["is_leaf"].astype(bool)
            left, right = (np.where(leaf, -1, nodes[side].astype(np.int64)) for side in ("left", "right"))
            trees.append((_Nodes(left, right, nodes["feature_idx"].astype(np.int64), nodes["num_threshold"]), values))
    return trees, _base(estimator, trees, single=False), False


@dataclass(frozen=True)
class _Nodes:
    """A tree's nodes; a child of -1 is none."""

    left: np.ndarray
    right: np.ndarray
    column: np.ndarray
    threshold: np.ndarray

    @classmethod
    def of(cls, tree: Any) -> _Nodes:
        return cls(tree.children_left, tree.children_right, tree.feature, tree.threshold)

    def leaf(self, inputs: np.ndarray) -> int:
        """The leaf that a row of inputs, shape (inputs,), falls into."""
        node = 0
        while self.left[node] >= 0:
            node = (self.left if inputs[self.column[node]] <= self.threshold[node] else self.right)[node]
        return int(node)


def _rounding(read: Any, terms: float, threshold: float) -> float:
    """How far the sum of trees that were read may be from that of the library, which adds up in its own numbers.

    ``terms`` is the size of all of them; of a logistic function at the threshold LINK roundings more.
    """
    rounding = read.epsilon * (len(read.trees) + 2) * terms
    if read.logistic and len(read.base) == 1:
        rounding += LINK * read.epsilon / max(float(expit(threshold) * expit(-threshold)), SCORE_TIE)
    return rounding


def _base(estimator: Any, trees: list[tuple[Any, np.ndarray]], single: bool) -> np.ndarray:
    """The model's raw outputs at a point less the sum of its trees; shape (outputs,)."""
    point = np.zeros(estimator.n_features_in_)
    raw = estimator.decision_function if hasattr(estimator, "decision_function") else estimator.predict
    raw_outputs = np.asarray(raw(point[None]), dtype=float).reshape(-1)
    return raw_outputs - sum(values[nodes.leaf(point)] for nodes, values in trees)


class Trees:
    """One margin of a sum of trees, over the cells between thresholds of each number."""

    def __init__(self, space: Space, classifier: Classifier, margin: Margin) -> None:
        self.space, self.classifier = space, classifier
        trees, base, self.single = sums(classifier.estimator)
        weights = np.atleast_2d(margin.weights).T
        self.trees = [(nodes, values @ weights) for nodes, values in trees]
        self.base = base @ weights + margin.constant
        terms = sum(float(np.abs(values[nodes.left < 0]).max()) for nodes, values in self.trees)
        self.tiny = SCORE_TIE * (1.0 + float(np.abs(self.base).max()) + terms)
        if (read := getattr(classifier.estimator, "trees", None)) is not None:
            self.tiny = max(self.tiny, _rounding(read, float(np.abs(base @ weights).max()) + terms, margin.constant))
        self.numbers = {feature.name: feature for feature in space.features if feature.numeric}
        self._splits: dict[tuple[int, float], Split | None] = {}
        for nodes, _ in self.trees:
            for node in np.flatnonzero(nodes.left >= 0):
                self._split(int(nodes.column[node]), float(nodes.threshold[node]))
        found = [split for split in self._splits.values() if split is not None]
        self.cuts = {
            name: np.array(sorted({split.last for split in found if split.feature == name})) for name in self.numbers
        }

    def _split(self, column: int, threshold: float) -> Split | None:
        """A split of a number; None of a category."""
        key = (column, threshold)
        if key not in self._splits:
            source: Input = self.classifier.inputs[column]
            if source.feature not in self.numbers:
                self._splits[key] = None
            else:
                assert isinstance(source, Affine)  # as ``readable`` has seen
                if not math.isfinite(threshold):
                    kind = type(self.classifier.estimator).__name__
                    raise UnsupportedError(
                        f"no radius can be certified for a {kind} that splits on missing values; train it without any."
                    )
                last = last_low(source, threshold, self.single)
                self._splits[key] = Split(source.feature, last, source.unit > 0)
        return self._splits[key]

    def nearest(
        self, row: Mapping[str, Any], ball: Ball, within: float, budget: Budget, valid: Callable[..., bool]
    ) -> Certificate:
        """As ``Search.nearest``."""
        names = [name for name in ball.units if len(self.cuts.get(name, ()))]
        here = {name: float(row[name]) for name in names}
        cells = {name: _cells(self.cuts[name]) for name in names}
        start = np.cumsum([0, *(len(first) for first, _ in cells.values())])
        down, up = self._gaps(here, ball, cells)
        places = tuple(Cells(start[:-1], down, up))
        leaves = tuple(self._leaves(row, names))
        heap = Heap(np.diff(start) - 1)
        euclidean = ball.norm == "l2"
        limits = tuple(Limits(self.base, self.tiny, euclidean, float(within**2 if euclidean else within)))
        kernel: Any = search
        while True:
            code, key = kernel(tuple(heap.boxes), places, leaves, limits, NODES)
            radius = min(math.sqrt(key) if euclidean else key, within)
            if code == NONE:
                return Certificate(within, math.inf)
            if code == FOUND or (code == TIED and not valid({**row, **self._nearest_in(heap, here, cells)})):
                return Certificate(radius, radius)
            if code == FULL and heap.size < LARGEST:
                heap.grow()
            elif code == FULL or budget.spent(TIE if code == TIED else NODES):
                return Certificate(radius, math.inf)

    def _gaps(self, here: dict[str, float], ball: Ball, cells: dict[str, Any]) -> tuple[np.ndarray, np.ndarray]:
        """The distance, in units, to the last and to the first number of every cell; squared where the norm is."""
        down, up = [np.zeros(0)], [np.zeros(0)]
        for name, (first, last) in cells.items():
            room_down, room_up = ball.room(name, here[name])
            for gaps, side, room in ((down, here[name] - last, room_down), (up, first - here[name], room_up)):
                gap = np.maximum(side, 0.0) / ball.units[name]
                gaps.append(np.where(gap > room, math.inf, gap))
        return np.concatenate(down), np.concatenate(up)

    def _leaves(self, row: Mapping[str, Any], names: list[str]) -> Leaves:
        """The leaves that the features without perturbation leave open, each as cells of the others."""
        place = {name: d for d, name in enumerate(names)}
        inputs = self.classifier.vector(row)[0]
        inputs = inputs.astype(np.float32).astype(float) if self.single else inputs
        starts, parts, values = [0], [0], list[np.ndarray]()
        sides = list[tuple[int, int, int]]()
        for nodes, value in self.trees:
            stack: list[tuple[int, dict[int, tuple[int, int]]]] = [(0, {})]
            while stack:
                node, box = stack.pop()
                if nodes.left[node] < 0:
                    values.append(value[node])
                    sides += [(d, low, high) for d, (low, high) in box.items()]
                    parts.append(len(sides))
                    continue
                column, threshold = int(nodes.column[node]), float(nodes.threshold[node])
                split = self._split(column, threshold)
                if split is None or split.feature not in place:
                    side = nodes.left if inputs[column] <= threshold else nodes.right
                    stack.append((int(side[node]), box))
                    continue
                d, cuts = place[split.feature], self.cuts[split.feature]
                cut = int(np.searchsorted(cuts, split.last))
                low, high = box.get(d, (0, len(cuts)))
                below, above = (nodes.left, nodes.right) if split.rising else (nodes.right, nodes.left)
                if low <= cut:
                    stack.append((int(below[node]), {**box, d: (low, min(high, cut))}))
                if high > cut:
                    stack.append((int(above[node]), {**box, d: (max(low, cut + 1), high)}))
            starts.append(len(values))
        table = np.array(sides, dtype=np.int32).reshape(-1, 3)
        side, first, last = (np.ascontiguousarray(table[:, k]) for k in range(3))
        return Leaves(np.array(starts), np.array(parts), side, first, last, np.array(values))

    @staticmethod
    def _nearest_in(heap: Heap, here: dict[str, float], cells: dict[str, Any]) -> dict[str, float]:
        """The nearest point of the box that the search took out last."""
        return {
            name: float(np.clip(here[name], first[low], last[high]))
            for (name, (first, last)), low, high in zip(cells.items(), *heap.taken, strict=True)
        }


def _cells(cuts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The first and the last number of each cell between cuts."""
    return np.concatenate([[-math.inf], np.nextafter(cuts, math.inf)]), np.concatenate([cuts, [math.inf]])
