"""The compiled program of one problem, posed for one factual after another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from harness.core.problem import Problem
from harness.solvers.highs import Linear
from harness.solvers.program import Program
from methods.ce_ocl import formulation
from methods.ce_ocl.aim import Aim
from methods.ce_ocl.constraints import Posed, Stated
from methods.ce_ocl.parameters import Parameters
from methods.estimators.trees import splits_only
from methods.milp.distance import dominated
from methods.milp.hull import Piece
from methods.milp.likely import Likely
from methods.milp.manifold import Manifold
from methods.milp.number_block import NumberBlock


class CounterfactualProgram(Stated):
    """The program of one problem; factuals change bounds, coefficients and temporary rows only."""

    def __init__(self, parameters: Parameters, problem: Problem) -> None:
        self.parameters, self.problem = parameters, problem
        self.aim = Aim.of(parameters, problem)
        self.coupled = formulation.coupled(parameters, problem)
        self.splits = splits_only(problem.classifier.estimator)
        self.program = Program()
        self.parts = [row.part(self) for row in formulation.imposed(parameters, problem) if row.part is not None]
        self.variables.close()
        self.compiled = self.program.compile()
        for part in self.parts:
            part.attach()
        self.adopt(parameters, problem)
        self.base = self.compiled.mark()

    def adopt(self, parameters: Parameters, problem: Problem) -> None:
        """Pose from now on with another bound on the number of changes, other feature bounds and actionability."""
        self.parameters, self.problem = parameters, problem
        for block, feature in zip(self.variables.blocks, problem.space.features, strict=True):
            block.feature = feature
            if isinstance(block, NumberBlock):
                block.counted = parameters.counted or bool(problem.space.relations)

    def lexical(self, factual: pd.DataFrame, manifold: Manifold | Likely | None) -> bool:
        """Whether alpha exceeds every distance from this factual, so that the fewest changes come first."""
        low, high = self.problem.space.reach(factual)
        if manifold is not None:
            low, high = np.maximum(low, manifold.ends[0]), np.minimum(high, manifold.ends[1])
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
        price, distance = self.aim.price(lexical), self.aim.distance
        self.compiled.rewind(self.base)
        box = distance.box(price, budget, self.problem.space.encode(factual)[0])
        box = _intersection(box, None if piece is None else piece.box)
        posed = Posed(factual, earlier, count, budget, distance.costs(price, budget), box, piece)
        for part in self.parts:
            part.pose(posed)

    @property
    def exact(self) -> bool:
        """Whether bounds are those of the constraints: none keeps a margin yet."""
        return all(part.exact for part in self.parts)

    def tighten(self) -> bool:
        """Keep margins from here on where tolerances decide; False where that was so already."""
        tightened = [part.tighten() for part in self.parts]  # each of them
        return any(tightened)

    def keeps(self, factual: pd.DataFrame, earlier: Sequence[Any], frame: pd.DataFrame) -> np.ndarray:
        """Which rows keep all constraints but validity, bounds and the manifold, bool of shape (rows,)."""
        return np.logical_and.reduce([part.keeps(factual, earlier, frame) for part in self.parts])

    def broken(self, frame: pd.DataFrame) -> bool:
        """Whether a solution that was read breaks a constraint by the solver's tolerances."""
        return any(part.broken(frame) for part in self.parts)

    def cost(self, lexical: bool) -> Linear:
        """The objective (2a) of the posed factual, without the cost of leaving a hull; ``lexical``: the distance."""
        return self.aim.distance.form(self.variables, self.aim.price(lexical), self.compiled)

    def changes(self) -> Linear:
        """The weighted number of changes of the posed factual."""
        return self.variables.changed(self.aim.weights)

    def read(self, x: np.ndarray, factual: pd.DataFrame) -> pd.DataFrame:
        """A solution as a decoded row, the structural equations kept; ``strayed`` where it is not the program's own."""
        own = row = self.variables.read(x)
        for part in reversed(self.parts):  # what moves single numbers before what computes them
            row = part.complete(factual, row)
        self.strayed = row != own
        return self.problem.space.frame([row])


def _intersection(box: list[Any] | None, other: list[Any] | None) -> list[Any] | None:
    """Both boxes at once; None: no bounds."""
    if box is None or other is None:
        return other if box is None else box
    return [
        b if a is None else a if b is None else (max(a[0], b[0]), min(a[1], b[1]))
        for a, b in zip(box, other, strict=True)
    ]
