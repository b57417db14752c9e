"""One decision tree as linear constraints over its leaves and the sides of its splits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from harness.program import Expression, Program
from methods.milp.embed import Embedded, embed, splits_only
from methods.milp.space import Source


@dataclass(frozen=True)
class Leaf:
    """A leaf's index in the tree, and the open-closed interval of each input it constrains: (above, at most]."""

    node: int
    above: dict[int, float]
    at_most: dict[int, float]


def leaves_of(tree: Any) -> list[Leaf]:
    """The leaves of a fitted scikit-learn tree (its ``tree_``), left to right."""
    found: list[Leaf] = []
    stack = [Leaf(0, {}, {})]
    while stack:
        place = stack.pop()
        left, right = int(tree.children_left[place.node]), int(tree.children_right[place.node])
        if left < 0:
            found.append(place)
            continue
        column, threshold = int(tree.feature[place.node]), float(tree.threshold[place.node])
        above = {**place.above, column: max(threshold, place.above.get(column, -np.inf))}
        at_most = {**place.at_most, column: min(threshold, place.at_most.get(column, np.inf))}
        stack.append(Leaf(right, above, place.at_most))
        stack.append(Leaf(left, place.above, at_most))
    return found


def embed_tree(tree: Any, program: Program, inputs: Sequence[Source]) -> tuple[list[Leaf], list[Any]]:
    r"""The leaves of a tree and their variables, of which exactly one is 1.

    With :math:`y_{jt} = [x_j > t]` shared by all trees, for each input j and threshold t of the tree

    .. math::
        \sum_{i: L_i \subseteq \{x_j > t\}} l_i \le y_{jt}, \qquad
        \sum_{i: L_i \subseteq \{x_j \le t\}} l_i \le 1 - y_{jt}, \qquad \sum_i l_i = 1 .

    All leaves on one side of a threshold stand in one row, also those that a later split put there, so that the
    relaxation is as tight as rows over single splits can make it. Leaves need no integrality: the sides imply it.
    """
    leaves = leaves_of(tree)
    variables = [program.variable(0, 1) for _ in leaves]
    program.add(sum(variables) == 1)
    thresholds: dict[int, set[float]] = {}
    for leaf in leaves:
        for column, threshold in [*leaf.above.items(), *leaf.at_most.items()]:
            thresholds.setdefault(column, set()).add(threshold)
    for column, levels in thresholds.items():
        for threshold in sorted(levels):
            right = inputs[column].right_of(threshold)
            beyond = [
                v for v, leaf in zip(variables, leaves, strict=True) if leaf.above.get(column, -np.inf) >= threshold
            ]
            within = [
                v for v, leaf in zip(variables, leaves, strict=True) if leaf.at_most.get(column, np.inf) <= threshold
            ]
            _bound(program, beyond, right)
            _bound(program, within, 1 - right)
    return leaves, variables


def _bound(program: Program, variables: list[Any], side: Expression) -> None:
    """The sum of leaf variables is at most the side they need; a side may be a constant."""
    if not variables:
        return
    if isinstance(side, int | float):
        for variable in variables if side == 0 else ():
            variable.setub(0)
        return
    program.add(sum(variables) <= side)


def leaf_values(tree: Any, leaves: Sequence[Leaf]) -> np.ndarray:
    """Class fractions (classifiers) or the mean (regressors) of each leaf, shape (leaves, outputs)."""
    values = tree.value[[leaf.node for leaf in leaves], 0, :]
    return values / values.sum(axis=1, keepdims=True) if values.shape[1] > 1 else values


@splits_only.register(DecisionTreeClassifier)
@splits_only.register(DecisionTreeRegressor)
def _(estimator: Any) -> bool:
    return True


@embed.register(DecisionTreeClassifier)
@embed.register(DecisionTreeRegressor)
def _(estimator: Any, program: Program, inputs: Sequence[Source], sense: int = 0) -> Embedded:
    """Outputs: the fraction of class 1 (of each class, where there are more than two), or the leaf's mean."""
    return average([estimator], program, inputs)


def average(trees: Sequence[Any], program: Program, inputs: Sequence[Source]) -> Embedded:
    """The mean of trees' leaf values: what a tree and a forest predict."""
    members, outputs = [], None
    for tree in trees:
        leaves, variables = embed_tree(tree.tree_, program, inputs)
        members.append(tuple(variables))
        values = leaf_values(tree.tree_, leaves)
        if values.shape[1] == 2:
            values = values[:, 1:]
        means = [
            sum(float(value) / len(trees) * variable for value, variable in zip(column, variables, strict=True))
            for column in values.T
        ]
        outputs = means if outputs is None else [total + mean for total, mean in zip(outputs, means, strict=True)]
    return Embedded(tuple(outputs or ()), leaves=tuple(members))
