"""Sums of trees: forests and boosting of any library, over split variables that trees share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from harness.solvers.program import Program
from methods.estimators.trees import Ensemble
from methods.milp.embed.embedded import Embedded
from methods.milp.embed.tree import embed_tree
from methods.milp.sources import Source


def embed_trees(model: Ensemble, program: Program, inputs: Sequence[Source]) -> Embedded:
    """Outputs: the base plus the weight times the sum of leaf values, exact whatever the sense."""
    outputs: list[Any] = [float(value) for value in model.base]
    members = []
    for tree in model.trees:
        leaves, variables = embed_tree(tree, program, inputs, model.single)
        members.append(tuple(variables))
        values = model.weight * tree.value[[leaf.node for leaf in leaves]]
        for k, column in zip(tree.outputs, values.T, strict=True):
            outputs[k] = outputs[k] + sum(float(v) * leaf for v, leaf in zip(column, variables, strict=True))
    return Embedded(tuple(outputs), leaves=tuple(members))
