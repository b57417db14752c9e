"""Structural equations as rows of a mixed-integer program: an endogenous feature follows its parents."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from harness.core.equation import Equation, Formula
from harness.core.inputs import Affine
from harness.solvers.program import Compiled, Program
from methods.milp.block import INTEGRAL
from methods.milp.cost import Cost
from methods.milp.embed.embedded import Embedded
from methods.milp.embed.linear import affine
from methods.milp.embed.registry import embed
from methods.milp.knapsack import Knapsack
from methods.milp.sources import Source
from methods.milp.variables import Variables

Limits = tuple[Sequence[Cost], np.ndarray, float, float]
"""The arguments of ``Knapsack.limit``: costs, what each changed feature counts, most changes, budget."""


@embed.register(Formula)
def _(estimator: Formula, program: Program, inputs: Sequence[Source], sense: int = 0) -> Embedded:
    """Output = w·x + b."""
    return Embedded((affine(np.array(estimator.weights), estimator.intercept, inputs),))


class Causality:
    r"""One row for each equation, in units of the endogenous feature's range R, with c embedded as models are:

    .. math:: \frac{x_i - c_i(p_i)}{R_i} = \frac{\hat x_i - c_i(\hat p_i)}{R_i} .  \qquad (7)

    Only the right side depends on the factual. Bounds and actionability of the endogenous feature apply as well.

    Parameters
    ----------
    program, variables
        Neither closed nor compiled yet. Endogenous features, and parents whose values a model reads, must not be seen
        through cells.
    equations
        Causes before effects.

    Raises
    ------
    UnsupportedError
        For a regressor that cannot be embedded.
    """

    def __init__(self, program: Program, variables: Variables, equations: Sequence[Equation]) -> None:
        self.space, self.equations = variables.space, equations
        self.embedded, self.rows, self.knapsacks = [], [], []
        for equation in equations:
            feature, model = self.space[equation.feature], equation.model
            embedded = embed(model.estimator, program, [variables.source(source) for source in model.inputs])
            scaled = variables.source(Affine(feature.name, feature.scale[0], feature.range)).expression
            row = program.add(scaled - equation.unit / feature.range * embedded.outputs[0] == 0)
            self.embedded.append(embedded)
            self.rows.append(row)
            self.knapsacks.append(None if embedded.tighten is None else Knapsack(variables, model.inputs))

    def attach(self, compiled: Compiled) -> None:
        """Find the rows in the compiled program."""
        self.compiled = compiled
        for embedded in self.embedded:
            embedded.attach(compiled)
            # Leaves are 0 or 1 anyway; where they are left continuous, HiGHS 1.12's presolve sometimes loses the
            # integrality of the sides and then reports a point as optimal that is not.
            compiled.integer[[compiled.column(leaf) for tree in embedded.leaves for leaf in tree]] = 1
        self.at = np.array([compiled.row(row) for row in self.rows], dtype=int)
        self.constants = compiled.row_low[self.at]  # minus those of the expressions

    def pose(self, factual: pd.DataFrame, limits: Limits | None = None) -> None:
        """Set the right sides for a factual, whose variables are posed already.

        ``limits`` bounds the changes that are searched, for the bounds inside networks; without it these are those of
        the variables' reach.
        """
        count = len(self.space.features)
        limits = limits or ([Cost(0.0, 0.0, 0.0)] * count, np.ones(count), math.inf, math.inf)
        for at, constant, equation in zip(self.at, self.constants, self.equations, strict=True):
            feature = self.space[equation.feature]
            model = (equation.predict(factual)[0] - equation.shift) / feature.range
            right = (float(factual[feature.name].iloc[0]) - feature.scale[0]) / feature.range - model
            self.compiled.row_low[at] = self.compiled.row_high[at] = constant + right
        for embedded, knapsack in zip(self.embedded, self.knapsacks, strict=True):
            if knapsack is not None and embedded.tighten is not None:
                knapsack.limit(*limits)
                embedded.tighten(knapsack, knapsack.corners)

    def complete(self, factual: pd.DataFrame, row: dict[str, Any]) -> dict[str, Any]:
        """A decoded solution in which (7) holds by the models themselves, within ``INTEGRAL`` of each range.

        What is within that stays as it is, since a value may stand right beside a split; what the solver's tolerances,
        added up in a network, left further off is computed anew. The row has to be predicted again.
        """
        frame = self.space.frame([row])
        for equation in self.equations:
            feature, origin = self.space[equation.feature], float(factual[equation.feature].iloc[0])
            if abs(equation.residual(self.space, factual, frame)[0]) > INTEGRAL:
                frame[feature.name] = np.clip(equation.expected(factual, frame), *feature.interval(origin))
        return frame.to_dict("records")[0]
