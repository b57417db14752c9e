"""The compiled program of one problem, posed for one factual after another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from harness.core.problem import Problem
from harness.core.relations import clauses_of
from harness.core.tolerances import MARGIN
from harness.solvers.highs import Linear
from harness.solvers.program import Compiled, Program
from methods.ce_ocl import formulation
from methods.ce_ocl.aim import Aim
from methods.ce_ocl.assignments import Assignments
from methods.ce_ocl.exclusion import Exclusion
from methods.ce_ocl.parameters import Parameters
from methods.estimators import network
from methods.estimators.linear import is_linear, unit_of, weights_of
from methods.estimators.trees import splits_only
from methods.milp.distance import dominated
from methods.milp.hull import Piece
from methods.milp.knapsack import Knapsack
from methods.milp.manifold import Manifold
from methods.milp.number_block import NumberBlock
from methods.milp.relations import RelationRows


class CounterfactualProgram:
    """The program of one problem; factuals change bounds, coefficients and temporary rows only."""

    def __init__(self, parameters: Parameters, problem: Problem) -> None:
        self.aim = Aim.of(parameters, problem)
        program = Program()
        self.variables, self.embedded, self.causality = formulation.build(program, parameters, problem)
        self.variables.close()
        # Such a model is embedded without a margin, so that bounds are those of its own rule; an exclusion adds one.
        self.bare = bare(parameters, problem)
        unit = unit_of(problem)
        rows = formulation.validity(program, self.embedded, 0.0 if self.bare else parameters.margin, unit, problem)
        self.compiled: Compiled = program.compile()
        self.variables.attach(self.compiled)
        self.embedded.attach(self.compiled)
        if self.causality is not None:
            self.causality.attach(self.compiled)
        leaves = [
            np.array([self.compiled.column(leaf) for leaf in tree], dtype=np.int32) for tree in self.embedded.leaves
        ]
        phases = np.array([self.compiled.column(phase) for phase in self.embedded.phases], dtype=np.int32)
        self.splits = splits_only(problem.classifier.estimator)
        wider = parameters.margin if self.bare else 10.0 * parameters.margin / unit
        valid_rows = [self.compiled.row(row) for row in rows]
        self.exclusion = Exclusion(self.compiled, valid_rows, wider, leaves if self.splits else None)
        # Without more than splits, leaves tell what changes: all that they allow to stay does.
        counted = parameters.counted and (parameters.coupled(problem) or not self.splits)
        parts = problem, self.variables, counted, leaves, phases
        self.assignments = Assignments(*parts) if parameters.diversity == "assignments" else None
        self.knapsack = None if self.embedded.tighten is None else Knapsack(self.variables, problem.classifier.inputs)
        if parameters.coupled(problem):  # HiGHS 1.12 was seen to call wrong optima proven where leaves were continuous
            for tree in leaves:
                self.compiled.integer[tree] = 1
        self.adopt(parameters, problem)
        self.base = self.compiled.mark()

    def adopt(self, parameters: Parameters, problem: Problem) -> None:
        """Pose from now on with another bound on the number of changes, other feature bounds and actionability."""
        self.parameters, self.problem = parameters, problem
        for block, feature in zip(self.variables.blocks, problem.space.features, strict=True):
            block.feature = feature
            if isinstance(block, NumberBlock):
                block.counted = parameters.counted or bool(problem.space.relations)

    def lexical(self, factual: pd.DataFrame, manifold: Manifold | None) -> bool:
        """Whether alpha exceeds every distance from this factual, so that the fewest changes come first."""
        low, high = self.problem.space.reach(factual)
        if manifold is not None and len(manifold.points):
            low = np.maximum(low, manifold.points.min(axis=0) - manifold.most)
            high = np.minimum(high, manifold.points.max(axis=0) + manifold.most)
        return dominated(self.aim.distance, self.aim.alpha, self.problem.space, factual, low, high)

    def pose(
        self,
        factual: pd.DataFrame,
        earlier: Sequence[Any],
        count: float,
        budget: float,
        lexical: bool = False,
        piece: Piece | None = None,
    ) -> None:
        """Set the program for a factual: bounds within the budget, separation from earlier answers, tight big-M.

        ``earlier`` are rows, or with ``diversity=assignments`` their assignments.
        """
        price, distance, weights = self.aim.price(lexical), self.aim.distance, self.aim.weights
        self.compiled.rewind(self.base)
        costs = distance.costs(price, budget)
        box = distance.box(price, budget, self.problem.space.encode(factual)[0])
        self.variables.pose(factual, costs, _intersection(box, None if piece is None else piece.box))
        if self.assignments is not None:
            self.assignments.exclude(self.compiled, earlier)
        else:
            formulation.separation(self.compiled, self.variables, self.parameters, factual, earlier)
        formulation.sparsity(self.compiled, self.variables, weights, count)
        if self.knapsack is not None and self.embedded.tighten is not None:
            self.knapsack.limit(costs, weights, count, budget)
            self.embedded.tighten(self.knapsack)
        if self.causality is not None:
            self.causality.pose(factual, (costs, weights, count, budget))
        clauses = clauses_of(self.problem.space.relations, factual)
        self.related = RelationRows(self.compiled, self.variables, clauses)
        if piece is not None:
            piece.pose(self.compiled, self.variables.encoded())

    def cost(self, lexical: bool) -> Linear:
        """The objective (2a) of the posed factual, without the cost of leaving a hull; ``lexical``: the distance."""
        return self.aim.distance.form(self.variables, self.aim.price(lexical), self.compiled)

    def changes(self) -> Linear:
        """The weighted number of changes of the posed factual."""
        return self.variables.changed(self.aim.weights)

    def read(self, x: np.ndarray, factual: pd.DataFrame) -> pd.DataFrame:
        """A solution as a decoded row, the structural equations kept."""
        row = self.related.settle(self.variables.read(x))
        return self.problem.space.frame([row if self.causality is None else self.causality.settle(factual, row)])


def bare(parameters: Parameters, problem: Problem) -> bool:
    """Whether a network or linear model is posed without a margin: unless constant, or more than 1e-6 is asked."""
    estimator = problem.classifier.estimator
    if parameters.margin > MARGIN:
        return False
    return isinstance(estimator, network.NETWORKS) or (is_linear(estimator) and bool(weights_of(estimator)[0].any()))


def _intersection(box: list[Any] | None, other: list[Any] | None) -> list[Any] | None:
    """Both boxes at once; None: no bounds."""
    if box is None or other is None:
        return other if box is None else box
    return [
        b if a is None else a if b is None else (max(a[0], b[0]), min(a[1], b[1]))
        for a, b in zip(box, other, strict=True)
    ]
