"""Algorithm 1 of the paper: perturbations are added to a program until its region is proven valid."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from harness.core.method import Deadline
from harness.core.problem import Problem
from harness.solvers.program import Program
from methods.milp.embed.registry import embed
from methods.milp.variables import Variables
from methods.robust.adversaries import ScoreAdversary, TreeAdversary
from methods.robust.outcome import ENOUGH, Outcome
from methods.robust.program import SHARE, InstanceProgram, RobustProgram, next_step
from methods.robust.settings import Settings


class Adversarial(RobustProgram):
    """Algorithm 1: a master program over perturbations found so far, and an adversary that looks for another one.

    The master has one copy of the model for each perturbation. Trees are extended continuously over their wrong leaves
    by the depth inside them (20), which the adversary maximises (26)-(35), (41)-(45). For a network it minimises the
    score (56)-(59). The master is a relaxation, in which both sides of a split hold its threshold, so that its value is
    a lower bound throughout. A point is accepted when its certified radius is rho: a depth below epsilon is no
    validity.

    Meanwhile points of the master that are not robust yet are moved to robust ones, so that there is an answer at the
    time limit. Where there is none, the trace has every point with its certified radius.
    """

    def __init__(self, problem: Problem, settings: Settings) -> None:
        super().__init__(problem, settings)
        estimator = problem.classifier.estimator
        embed(
            estimator,
            Program(),
            [
                Variables(Program(), self.around(problem.train.iloc[[0]], 1.0), cells=False).source(source)
                for source in problem.classifier.inputs
            ],
        )  # refuses what cannot be embedded
        self.adversary = TreeAdversary(self) if self.leaves else ScoreAdversary(self)

    def shift(self, move: np.ndarray) -> np.ndarray:
        """A perturbation of features, in scaled units, as one of estimator inputs."""
        by_name = dict(zip(self.problem.space.names, move, strict=True))
        features = (source.feature for source in self.problem.classifier.inputs)
        return np.array([slope * by_name[name] for name, slope in zip(features, self.slopes, strict=True)])

    def solve(self, row: Mapping[str, Any], deadline: Deadline) -> Outcome:
        factual, rho = self.frame(row), self.settings.radius
        best, budget = self.first_guess.near(factual, Deadline(deadline.at - 0.8 * deadline.left))
        moves, trace, bound = [np.zeros(len(self.space.features))], list[dict[str, Any]](), 0.0
        while not deadline.passed and bound < budget:
            start = time.monotonic()
            instance = InstanceProgram(self, self.around(factual, budget), factual, budget)
            for move in moves:
                shift = self.shift(move)
                instance.require(instance.embed(instance.sources(shift), shift), lambda outputs: 0.0)
            instance.close()
            found, answer = instance.settled(deadline)
            if answer is None:
                # Nothing within the budget: the best point is optimal, or there is no point at all.
                bound = budget if found.infeasible else bound
                break
            master = time.monotonic() - start
            bound = max(bound, found.bound)
            start = time.monotonic()
            radius, worst = self.certifier.radius(answer, SHARE * deadline.left), None
            if radius < rho - ENOUGH:
                worst = self.adversary.worst(answer, deadline)
            step = next_step(len(moves), found.objective, radius, master, time.monotonic() - start)
            trace.append(step | {"row": answer})
            better: dict[str, Any] | None = answer if radius >= rho - ENOUGH else None
            if better is None and len(moves).bit_count() == 1:  # 1, 2, 4, 8 ...: not by the clock, which never repeats
                better = self._repaired(answer, best, factual, Deadline.after(SHARE * deadline.left))
            if better is not None and (value := self.value(better, factual)) < budget:
                best, budget = better, value
            if radius >= rho - ENOUGH or worst is None:
                break
            moves.append(worst)
        return self.outcome(best, factual, bound, trace)

    def _repaired(
        self, row: dict[str, Any], best: dict[str, Any] | None, factual: pd.DataFrame, deadline: Deadline
    ) -> dict[str, Any] | None:
        """A robust row near one that is not: on the way to the best known one, else beyond it; None where none is."""
        if deadline.passed:
            return None
        if best is None:
            best = self.first_guess.beyond(row, factual, deadline)
        return None if best is None else self.first_guess.between(self.frame(row), best, factual, deadline)[0]
