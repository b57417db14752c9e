"""Runs of the solver on one program, and which of them count as proofs."""

from __future__ import annotations

import math
from dataclasses import dataclass

from harness.core.tolerances import BUDGET_CUTOFF, FEASIBILITY, SHARP_FEASIBILITY
from harness.solvers.highs import Linear, Solution
from harness.solvers.program import Compiled
from methods.ce_ocl.program import CounterfactualProgram


@dataclass
class Runs:
    """Solves of one program, to which rows are added; only the last one's proof is confirmed, as it takes a second run.

    Parameters
    ----------
    confirmed
        Whether the last solution counts: it claims no proof, or a confirmed one.
    """

    compiled: Compiled
    form: Linear
    scale: float
    cutoff: float
    feasibility: float
    confirmed: bool = True
    last: Solution | None = None
    again: bool = False

    @classmethod
    def of(cls, program: CounterfactualProgram, form: Linear, budget: float, cutoff: float) -> Runs:
        """With the scale and tolerances that squares need below a budget: they are small beside absolute ones."""
        scale = 10.0 / max(budget, BUDGET_CUTOFF) if program.aim.squared and math.isfinite(budget) else 1.0
        sharp = program.aim.squared and not program.splits
        return cls(program.compiled, form, scale, cutoff, SHARP_FEASIBILITY if sharp else FEASIBILITY)

    def next(self, seconds: float) -> Solution:
        """Solve the program as it stands; or, after ``counts`` said no, confirm its last solution."""
        if self.again and self.last is not None:
            found = self.compiled.confirm(self.last, self.form, seconds, self.scale, self.cutoff, self.feasibility)
        else:
            found = self.compiled.solve(
                self.form, seconds, self.scale, cutoff=self.cutoff, feasibility=self.feasibility, confirm=False
            )
            if not found.proven:
                self.compiled.confirm(found, self.form, seconds)  # nothing to confirm, but a bound to doubt
        self.confirmed, self.last, self.again = self.again or not found.proven, found, False
        return found

    def counts(self) -> bool:
        """Whether the last solution counts; if not, the next one is it, confirmed."""
        self.again = not self.confirmed
        return self.confirmed
