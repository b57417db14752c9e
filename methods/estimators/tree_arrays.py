"""The leaves of trees, and all nodes of several in the same arrays."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from harness.models.runtime.records import Tree


@dataclass(frozen=True)
class Leaf:
    """A leaf's index in the tree, and the open-closed interval of each input it constrains: (above, at most].

    ``gaps`` says of each of these inputs whether the leaf is reached where it is missing.
    """

    node: int
    above: dict[int, float]
    at_most: dict[int, float]
    gaps: dict[int, bool] = field(default_factory=dict)


def leaves_of(tree: Tree) -> list[Leaf]:
    """The leaves of a tree, left to right."""
    found: list[Leaf] = []
    stack = [Leaf(0, {}, {})]
    while stack:
        place = stack.pop()
        left, right = int(tree.left[place.node]), int(tree.right[place.node])
        if left < 0:
            found.append(place)
            continue
        column, threshold = int(tree.column[place.node]), float(tree.threshold[place.node])
        above = {**place.above, column: max(threshold, place.above.get(column, -np.inf))}
        at_most = {**place.at_most, column: min(threshold, place.at_most.get(column, np.inf))}
        goes = tree.gap_left is not None and bool(tree.gap_left[place.node])
        kept = place.gaps.get(column, tree.gap_left is not None)
        stack.append(Leaf(right, above, place.at_most, {**place.gaps, column: kept and not goes}))
        stack.append(Leaf(left, place.above, at_most, {**place.gaps, column: kept and goes}))
    return found


class FlatTrees(NamedTuple):
    """The nodes of all trees, one after the other, as ``walk_kernels`` takes them."""

    roots: np.ndarray  # (trees,), the place of each tree's first node
    left: np.ndarray  # (nodes,), the child where the column is at most the threshold; -1 of a leaf
    right: np.ndarray  # (nodes,), the other one
    column: np.ndarray  # (nodes,), of the inputs
    threshold: np.ndarray  # (nodes,)
    value: np.ndarray  # (nodes,), what a leaf adds to the sum
