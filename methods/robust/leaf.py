"""Robust counterfactuals within one leaf of each tree."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pandas as pd

from harness.core.method import Deadline
from methods.milp.block import Free
from methods.robust.outcome import Outcome
from methods.robust.program import InstanceProgram, RobustProgram, next_step


class Leaf(RobustProgram):
    """(36)-(39): the best cell, one leaf a tree, shrunk by rho on the perturbed columns: an upper bound.

    The paper has it for one tree. The program sees no region that reaches over several cells; where it finds nothing,
    the answer is the first guess, which is certified as every other.
    """

    def search(
        self, factual: pd.DataFrame, start: dict[str, Any] | None, budget: float, far: float, deadline: Deadline
    ) -> Outcome:
        began, space = time.monotonic(), self.around(factual, budget, far)
        instance = InstanceProgram(self, space, factual, budget)
        moved = self.perturbation.moved[self.owners]
        inset = Free.margin + self.settings.radius * np.abs(self.slopes) * moved
        instance.require(instance.embed(np.zeros(len(self.slopes)), inset), self.settings.margin)
        instance.close()
        found, answer = instance.settled(deadline)
        if answer is not None:
            radius = self.certifier.radius(answer, deadline.left)
            trace = [next_step(1, found.objective, radius, time.monotonic() - began, 0.0)]
            if radius >= self.settings.radius:
                return self.outcome(answer, factual, 0.0, trace)
        return self.outcome(start, factual, 0.0, ())
