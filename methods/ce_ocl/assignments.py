"""Assignments of CE-OCL's integer variables: what tells apart the points that a solver's pool of solutions lists."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from harness.core.problem import Problem
from harness.solvers.highs import Linear
from harness.solvers.program import Compiled
from methods.estimators.network import NETWORKS, phases_of
from methods.estimators.tree_arrays import leaves_of
from methods.estimators.trees import ensemble, splits_only
from methods.milp.variables import Variables


class Assignment(NamedTuple):
    """Values of the integer variables.

    Parameters
    ----------
    changed
        Of each feature, whether it may differ from the factual; empty where it is not ``counted``.
    categories
        Of each feature that is no number, its category.
    leaves
        Of each tree, the place of its leaf among ``leaves_of``.
    phases
        Of each hidden unit of a network, layer by layer, whether it is at work.
    """

    changed: tuple[bool, ...]
    categories: tuple[Any, ...]
    leaves: tuple[int, ...]
    phases: tuple[bool, ...]


class Assignments:
    """The assignments of points and of solutions, and how a program is kept from those of earlier ones.

    An assignment's points may leave a feature that may differ as it is: its best one may be that of another, too.

    Parameters
    ----------
    counted
        Whether what changes is told apart: it has a price or a bound.
    leaves, phases
        Columns of the compiled program: an array a tree, and the hidden units'.
    """

    def __init__(
        self, problem: Problem, variables: Variables, counted: bool, leaves: Sequence[np.ndarray], phases: np.ndarray
    ) -> None:
        self.counted = counted
        self.problem, self.variables, self.leaves, self.phases = problem, variables, leaves, phases
        estimator = problem.classifier.estimator
        self.trees = ensemble(estimator) if splits_only(estimator) else None
        self.places = [
            {leaf.node: place for place, leaf in enumerate(leaves_of(tree))}
            for tree in (self.trees.trees if self.trees is not None else ())
        ]
        self.network = estimator if isinstance(estimator, NETWORKS) else None

    def of(self, factual: pd.DataFrame, frame: pd.DataFrame) -> list[Assignment]:
        """The assignment of each row, in which no feature may differ that does not."""
        classifier, space, size = self.problem.classifier, self.problem.space, len(frame)
        changed, matrix = space.changed(factual, frame), classifier.matrix(frame)
        names = [feature.name for feature in space.features if not feature.numeric]
        nodes = np.zeros((size, 0), dtype=int) if self.trees is None else self.trees.reached(matrix)
        phases = np.zeros((size, 0), dtype=bool) if self.network is None else phases_of(self.network, matrix)
        return [
            Assignment(
                tuple(map(bool, changed[row])) if self.counted else (),
                tuple(frame[name].iloc[row] for name in names),
                tuple(places[node] for places, node in zip(self.places, nodes[row].tolist(), strict=True)),
                tuple(map(bool, phases[row])),
            )
            for row in range(size)
        ]

    def read(self, x: np.ndarray) -> Assignment:
        """The assignment of a solution of the posed program."""
        blocks = self.variables.blocks
        return Assignment(
            tuple(bool(np.rint(block.changed()(x))) for block in blocks if self.counted),
            tuple(block.read(x) for block in blocks if not block.feature.numeric),
            tuple(int(x[tree].argmax()) for tree in self.leaves),
            tuple(map(bool, np.rint(x[self.phases]))),
        )

    def exclude(self, compiled: Compiled, earlier: Sequence[Assignment]) -> None:
        """Keep the posed program from earlier assignments: at least one of the variables has another value."""
        blocks = self.variables.blocks
        others = [block for block in blocks if not block.feature.numeric]
        told = blocks if self.counted else []
        for one in earlier:
            forms = [_differs(block.changed(), value) for block, value in zip(told, one.changed, strict=True)]
            forms += [block.distance_form(value, 1.0) for block, value in zip(others, one.categories, strict=True)]
            columns = [tree[place] for tree, place in zip(self.leaves, one.leaves, strict=True)]
            forms += [Linear.of([(column, -1.0)], 1.0) for column in columns]
            for column, value in zip(self.phases, one.phases, strict=True):
                forms.append(_differs(Linear.of([(column, 1.0)]), value))
            compiled.add_row(Linear.sum(forms), low=1.0)


def _differs(form: Linear, value: bool) -> Linear:
    """1 where a form that is 0 or 1 has another value."""
    return Linear(form.columns, -form.coefficients, 1.0 - form.constant) if value else form
