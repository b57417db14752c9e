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


class FlatTree(NamedTuple):
    """A tree as arrays over its nodes, the root first: ``x[column] <= threshold`` goes left.

    ``left`` and ``right`` are -1 at leaves; ``value``, shape (nodes, outputs), is what a leaf adds. ``gap_left``:
    whether a missing input goes left.
    """

    left: np.ndarray
    right: np.ndarray
    column: np.ndarray
    threshold: np.ndarray
    value: np.ndarray
    gap_left: np.ndarray


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

    trees: tuple[FlatTree, ...]
    base: np.ndarray
    single: bool
    epsilon: float = SINGLE
    logistic: bool = False

    def sums(self, matrix: np.ndarray) -> np.ndarray:
        """Shape (rows, outputs), added up in float64."""
        inputs = np.asarray(matrix, dtype=np.float32 if self.single else float)
        rows, total = np.arange(len(inputs)), np.tile(self.base, (len(inputs), 1))
        for tree in self.trees:
            node = np.zeros(len(inputs), dtype=np.int64)
            while (inner := tree.left[node] >= 0).any():
                seen = inputs[rows, np.where(inner, tree.column[node], 0)].astype(float)
                goes = (seen <= tree.threshold[node]) | (np.isnan(seen) & tree.gap_left[node])
                node = np.where(inner, np.where(goes, tree.left[node], tree.right[node]), node)
            total += tree.value[node]
        return total

    def sizes(self, matrix: np.ndarray) -> np.ndarray:
        """The size of the largest terms of ``sums``, times their number, shape (rows,)."""
        largest = np.abs(self.base).sum() + sum(float(np.abs(tree.value).max(initial=0.0)) for tree in self.trees)
        return np.full(len(matrix), largest * (len(self.trees) + 2))


def flat_tree(nodes: dict[int, Split], leaves: dict[int, np.ndarray], outputs: int) -> FlatTree:
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
    return FlatTree(left, right, column, threshold, value, gap_left)
