"""The worst point of a box of inputs in a sum of scikit-learn's trees: depth first over combinations of leaves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from harness.core.inputs import Affine
from harness.core.tolerances import SCORE_TIE
from harness.evaluation.region_box import Box, every

NODES = 100_000  # combinations of leaves looked at
PROBES = 64  # points at which what was read of the trees is compared with the model's own output


@dataclass(frozen=True)
class Nodes:
    """A tree's nodes, ``left`` -1 at leaves; what each adds to the outputs, shape (nodes, outputs)."""

    left: np.ndarray
    right: np.ndarray
    column: np.ndarray
    threshold: np.ndarray
    value: np.ndarray


def valid(box: Box, margins: Sequence[tuple[np.ndarray, float]]) -> bool | None:
    """Whether each margin is positive in all of a box; None for other models, and where ``NODES`` do not suffice.

    Of a margin with several forms, one of them at each point.
    """
    classifier = box.classifier
    if (trees := _read(classifier.estimator)) is None:
        return None
    foreign = getattr(classifier.estimator, "trees", None)  # read of another library
    single = not hasattr(classifier.estimator, "_predictors") if foreign is None else foreign.single
    scales = np.array([box.space[name].scale for name in box.ends])  # wide: a box may lie where any trees are flat
    probes = scales[:, 0] + np.random.default_rng(1).random((PROBES, len(scales))) * (scales[:, 1] - scales[:, 0])
    frame = box.frame(probes)
    matrix = classifier.matrix(frame)
    matrix = matrix.astype(np.float32).astype(float) if single else matrix
    sums = np.array([sum(_leaf(tree, inputs) for tree in trees) for inputs in matrix])
    raw = np.asarray(classifier.raw(frame), dtype=float).reshape(len(sums), -1)
    if raw.shape != sums.shape:
        return None
    rest = raw - sums
    near = SCORE_TIE * (1.0 + np.abs(raw).max() + sum(float(np.abs(tree.value).max()) for tree in trees))
    if foreign is not None:
        near *= max(1.0, foreign.epsilon * (len(trees) + 2) / SCORE_TIE)
    if np.ptp(rest, axis=0).max() > near:
        return None
    forms = ((np.atleast_2d(weights).T, constant) for weights, constant in margins)
    return every(
        _Search(box, trees, form, rest[0] @ form + constant, near, single, matrix[0]).run() for form, constant in forms
    )


def _read(estimator: Any) -> list[Nodes] | None:
    """The trees of an estimator, their values scaled as it adds them up; None where it has none that are known."""
    if (foreign := getattr(estimator, "trees", None)) is not None:
        return [Nodes(tree.left, tree.right, tree.column, tree.threshold, tree.value) for tree in foreign.trees]
    if hasattr(estimator, "_predictors"):
        return None if estimator.is_categorical_ is not None else _histogram(estimator)
    stages = getattr(estimator, "estimators_", None)
    if isinstance(stages, np.ndarray):
        found = []
        for (_, output), member in np.ndenumerate(stages):
            value = np.zeros((member.tree_.node_count, stages.shape[1]))
            value[:, output] = estimator.learning_rate * member.tree_.value[:, 0, 0]
            found.append(_nodes(member.tree_, value))
        return found
    members = [estimator] if stages is None else list(stages)
    if not all(hasattr(member, "tree_") for member in members):
        return None
    found = []
    for member in members:
        value = member.tree_.value[:, 0, :]
        if hasattr(estimator, "classes_"):
            value = value / value.sum(axis=1, keepdims=True)
            value = value[:, 1:] if value.shape[1] == 2 else value
        found.append(_nodes(member.tree_, value / len(members)))
    return found


def _nodes(tree: Any, value: np.ndarray) -> Nodes:
    return Nodes(tree.children_left, tree.children_right, tree.feature, tree.threshold, value)


def _histogram(estimator: Any) -> list[Nodes]:
    found = []
    for stage in estimator._predictors:
        for output, predictor in enumerate(stage):
            nodes = predictor.nodes
            value = np.zeros((len(nodes), len(stage)))
            value[:, output] = nodes["value"]
            left = np.where(nodes["is_leaf"], -1, nodes["left"].astype(np.int64))
            found.append(
                Nodes(left, nodes["right"].astype(np.int64), nodes["feature_idx"], nodes["num_threshold"], value)
            )
    return found


def _leaf(tree: Nodes, inputs: np.ndarray) -> np.ndarray:
    """What a tree adds to the outputs for a row of inputs."""
    node = 0
    while tree.left[node] >= 0:
        node = int((tree.left if inputs[tree.column[node]] <= tree.threshold[node] else tree.right)[node])
    return tree.value[node]


class _Search:
    """One margin: the box in the inputs that move, and of each tree the leaves that meet it."""

    def __init__(
        self,
        box: Box,
        trees: Sequence[Nodes],
        weights: np.ndarray,
        constant: np.ndarray,
        near: float,
        single: bool,
        inputs: np.ndarray,
    ) -> None:
        self.box, self.near, self.single, self.inputs = box, near, single, inputs
        self.sources = {c: s for c, s in enumerate(box.classifier.inputs) if s.feature in box.ends}
        self.columns = {column: place for place, column in enumerate(self.sources)}
        low, high = [], []
        for source in self.sources.values():
            first, last = sorted(self._seen(source.of(end)) for end in box.ends[source.feature])
            kind = np.float32 if single else np.float64  # the number before it, as boxes are open below
            low.append(float(np.nextafter(kind(first), kind(-np.inf))))
            high.append(last)
        self.low, self.high = np.array(low), np.array(high)
        listed = [self._leaves(tree, tree.value @ weights) for tree in trees]
        self.base = constant + sum(values[0] for _, _, values in listed if len(values) == 1)
        kept = sorted((p for p in listed if len(p[2]) > 1), key=lambda p: -float(np.ptp(p[2], axis=0).max()))
        self.start = np.cumsum([0, *(len(values) for _, _, values in kept)])
        size = len(self.low)
        self.above = np.concatenate([np.zeros((0, size)), *(above for above, _, _ in kept)])
        self.most = np.concatenate([np.zeros((0, size)), *(most for _, most, _ in kept)])
        self.value = np.concatenate([np.zeros((0, weights.shape[1])), *(values for _, _, values in kept)])

    def _seen(self, number: float) -> float:
        """An input as the trees compare it."""
        return float(np.float32(number)) if self.single else float(number)

    def _leaves(self, tree: Nodes, value: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The leaves that meet the box: above what and at most what their inputs lie, and what they add."""
        above, most, values = [], [], []
        stack = [(0, self.low, self.high)]
        while stack:
            node, low, high = stack.pop()
            if tree.left[node] < 0:
                above.append(low)
                most.append(high)
                values.append(value[node])
                continue
            column, threshold = int(tree.column[node]), float(tree.threshold[node])
            if column not in self.columns:
                stack.append((int((tree.left if self.inputs[column] <= threshold else tree.right)[node]), low, high))
                continue
            place, last = self.columns[column], threshold
            if self.single and (last := float(np.float32(threshold))) > threshold:
                last = float(np.nextafter(np.float32(last), np.float32(-np.inf)))
            if low[place] < last:
                stack.append((int(tree.left[node]), low, _with(high, place, min(float(high[place]), last))))
            if last < high[place]:
                stack.append((int(tree.right[node]), _with(low, place, max(float(low[place]), last)), high))
        return np.array(above), np.array(most), np.array(values)

    def run(self) -> bool | None:
        """False where the model refuses a point; True where no combination of leaves could be refused."""
        trees, unsure, nodes = len(self.start) - 1, False, 0
        stack = [(0, self.low, self.high, self.base)]
        while stack:
            tree, low, high, total = stack.pop()
            nodes += 1
            if nodes > NODES:
                return None
            first = self.start[tree]
            met = (np.maximum(self.above[first:], low) < np.minimum(self.most[first:], high)).all(axis=1)
            values = np.where(met[:, None], self.value[first:], np.inf)
            least = np.minimum.reduceat(values, self.start[tree:-1] - first).sum(axis=0) if tree < trees else 0.0
            if (total + least > self.near).any():
                continue
            if tree == trees:
                if self.box.invalid(self._point(low, high)):
                    return False
                unsure |= bool((total < -self.near).all())  # the sum says invalid, and no number in between was found
                continue
            own = np.flatnonzero(met[: self.start[tree + 1] - first])
            for leaf in own[np.argsort(-values[own].max(axis=1), kind="stable")] + first:
                stack.append(
                    (tree + 1, np.maximum(low, self.above[leaf]), np.minimum(high, self.most[leaf]),
                     total + self.value[leaf])
                )  # fmt: skip
        return None if unsure else True

    def _point(self, low: np.ndarray, high: np.ndarray) -> np.ndarray:
        """A point of a combination of leaves, in decoded values, shape (1, numbers)."""
        inputs = high if self.single else low + (high - low) / 2
        values = {name: sum(ends) / 2 for name, ends in self.box.ends.items()}
        for source, number in zip(self.sources.values(), inputs, strict=True):
            assert isinstance(source, Affine)  # as ``regions.verdict`` has seen
            values[source.feature] = source.shift + float(number) * source.unit
        return np.array([list(values.values())])


def _with(values: np.ndarray, place: int, value: float) -> np.ndarray:
    """A copy with another value at a place."""
    copied = values.copy()
    copied[place] = value
    return copied
