"""What is read of a model that another library computes: layers of a network, or trees, in float64."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from harness.core.errors import UnsupportedError

SINGLE, DOUBLE = float(np.finfo(np.float32).eps), float(np.finfo(np.float64).eps)


@dataclass(frozen=True, eq=False)
class Layers:
    """A network of ReLUs: weights, shape (inputs, units), and shifts, shape (units,), by layer.

    The last layer has one unit for two classes, whose log odds it is, and for numbers; else a unit a class.
    """

    weights: tuple[np.ndarray, ...]
    shifts: tuple[np.ndarray, ...]
    epsilon: float = SINGLE

    def sums(self, matrix: np.ndarray) -> np.ndarray:
        """The last layer's sums, shape (rows, units)."""
        values = np.asarray(matrix, dtype=float)
        for depth, (weights, shifts) in enumerate(zip(self.weights, self.shifts, strict=True)):
            values = (np.maximum(values, 0.0) if depth else values) @ weights + shifts
        return values

    def sizes(self, matrix: np.ndarray) -> np.ndarray:
        """The size of all terms in ``sums``, shape (rows,)."""
        sizes = np.abs(np.asarray(matrix, dtype=float))
        for weights, shifts in zip(self.weights, self.shifts, strict=True):
            sizes = sizes @ np.abs(weights) + np.abs(shifts)
        return sizes.max(axis=1)


@dataclass(frozen=True)
class Tree:
    """A binary tree as arrays over its nodes, the root first; ``x[column] <= threshold`` goes left.

    Parameters
    ----------
    left, right
        Children, -1 at leaves; shape (nodes,). Nodes that nothing leads to may be there.
    column, threshold
        The split of each inner node, shape (nodes,); thresholds are float64.
    value
        What a leaf adds to each of ``outputs``, shape (nodes, len(outputs)); anything at inner nodes.
    outputs
        The model's outputs that the tree adds to.
    gap_left
        Whether a missing input goes left, bool, shape (nodes,); None where the model takes none. A threshold is
        infinite where a split tells missing inputs from all others.
    """

    left: np.ndarray
    right: np.ndarray
    column: np.ndarray
    threshold: np.ndarray
    value: np.ndarray
    outputs: tuple[int, ...] = (0,)
    gap_left: np.ndarray | None = None

    def reached(self, inputs: np.ndarray) -> np.ndarray:
        """The node, a leaf, that each row of inputs comes to, shape (rows,)."""
        rows, node = np.arange(len(inputs)), np.zeros(len(inputs), dtype=np.int64)
        while (inner := self.left[node] >= 0).any():
            seen = inputs[rows, np.where(inner, self.column[node], 0)].astype(float)
            goes = seen <= self.threshold[node]
            if self.gap_left is not None:
                goes |= np.isnan(seen) & self.gap_left[node]
            node = np.where(inner, np.where(goes, self.left[node], self.right[node]), node)
        return node


class Split(NamedTuple):
    """An inner node: its children, the column and threshold that it compares, and where a missing input goes."""

    left: int
    right: int
    column: int
    threshold: float
    gap_left: bool


@dataclass(frozen=True, eq=False)
class Trees:
    """Trees whose leaf values add up: base + Σ values, shape (outputs,).

    Parameters
    ----------
    trees, base
        One output for two classes and for numbers, else one a class.
    single
        Whether inputs are rounded to float32 before they are compared.
    epsilon
        Relative spacing of the numbers in which the library adds up.
    logistic
        Whether the probability is a logistic function of the sum; else it is the sum.
    """

    trees: tuple[Tree, ...]
    base: np.ndarray
    single: bool
    epsilon: float = SINGLE
    logistic: bool = False

    def sums(self, matrix: np.ndarray) -> np.ndarray:
        """Shape (rows, outputs), added up in float64."""
        inputs = np.asarray(matrix, dtype=np.float32 if self.single else float)
        return sum((tree.value[tree.reached(inputs)] for tree in self.trees), np.tile(self.base, (len(inputs), 1)))

    def sizes(self, matrix: np.ndarray) -> np.ndarray:
        """The size of the largest terms of ``sums``, times their number, shape (rows,)."""
        largest = np.abs(self.base).sum() + sum(float(np.abs(tree.value).max(initial=0.0)) for tree in self.trees)
        return np.full(len(matrix), largest * (len(self.trees) + 2))


def flat_tree(nodes: dict[int, Split], leaves: dict[int, np.ndarray], outputs: int) -> Tree:
    """A tree of numbered nodes.

    Parameters
    ----------
    nodes
        By number the inner nodes.
    leaves
        By number the value of each leaf that has one, shape (outputs,).

    Raises
    ------
    UnsupportedError
        Where the nodes are no tree.
    """
    children = {child for split in nodes.values() for child in split[:2]}
    roots = (set(nodes) | set(leaves)) - children
    if len(roots) != 1:
        raise UnsupportedError(f"a tree of its has {len(roots)} roots")
    order, stack = dict[int, int](), [roots.pop()]
    while stack:
        number = stack.pop()
        if number in order:
            raise UnsupportedError("a tree of its has a node with two parents")
        order[number] = len(order)
        if number in nodes:
            stack += [nodes[number].right, nodes[number].left]
    count = len(order)
    left, right, column = np.full(count, -1), np.full(count, -1), np.zeros(count, dtype=np.int64)
    threshold, value, gap_left = np.zeros(count), np.zeros((count, outputs)), np.zeros(count, dtype=bool)
    for number, place in order.items():
        if number in nodes:
            low, high, column[place], threshold[place], gap_left[place] = nodes[number]
            left[place], right[place] = order[low], order[high]
        elif number in leaves:
            value[place] = leaves[number]
    return Tree(left, right, column, threshold, value, tuple(range(outputs)), gap_left)
