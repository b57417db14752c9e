"""Decision trees, and sums of them of any library, over leaves and the sides of splits, which trees share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from harness.solvers.program import Expression, Program
from methods.estimators.tree_arrays import Leaf, Tree, leaves_of
from methods.estimators.trees import Ensemble
from methods.milp.embed.embedded import Embedded
from methods.milp.sources import Source


def embed_trees(model: Ensemble, program: Program, inputs: Sequence[Source]) -> Embedded:
    """Outputs: the base plus the weight times the sum of leaf values, exact whatever the sense."""
    outputs: list[Any] = [float(value) for value in model.base]
    members = []
    for tree in model.trees:
        leaves, variables = _embed_tree(tree, program, inputs, model.single)
        members.append(tuple(variables))
        values = model.weight * tree.value[[leaf.node for leaf in leaves]]
        for k, column in zip(tree.outputs, values.T, strict=True):
            outputs[k] = outputs[k] + sum(float(v) * leaf for v, leaf in zip(column, variables, strict=True))
    return Embedded(tuple(outputs), leaves=tuple(members))


def _embed_tree(tree: Tree, program: Program, inputs: Sequence[Source], single: bool) -> tuple[list[Leaf], list[Any]]:
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
            right = inputs[column].right_of(threshold, single)
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
