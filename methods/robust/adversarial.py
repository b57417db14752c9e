"""Algorithm 1 of the paper: perturbations are added to a program until its region is proven valid."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from harness.core.method import Deadline
from harness.core.problem import Problem
from harness.core.space import Space, values_of
from harness.core.tolerances import COORDINATE_TIE, SCORE_SOLVED
from methods.milp.embed.registry import embeddable
from methods.robust.adversaries import ScoreAdversary, TreeAdversary, Worst
from methods.robust.outcome import Outcome
from methods.robust.program import SHARE, InstanceProgram, RobustProgram, limit, next_step
from methods.robust.settings import Settings

WIDER = 10.0  # times as wide a margin, where a master's tolerances took up the one before


class Adversarial(RobustProgram):
    """Algorithm 1: a master program over perturbations found so far, and an adversary that looks for another one.

    The master has one copy of the model for each perturbation. Trees are extended continuously over their wrong leaves
    by the depth inside them (section 3.1), which the adversary maximises (26)-(35), (41)-(45). For a network it
    minimises the score. The master is a relaxation, in which both sides of a split hold its threshold, so that its
    value is a lower bound throughout. A point is accepted when its certified radius is rho: a depth below epsilon is
    no validity.

    Meanwhile points of the master that are not robust yet are moved to robust ones, so that there is an answer at the
    time limit. Where there is none, the trace has every point with its certified radius.
    """

    def __init__(self, problem: Problem, settings: Settings) -> None:
        super().__init__(problem, settings)
        embeddable(problem.classifier.estimator)
        self.adversary = TreeAdversary(self) if self.leaves else ScoreAdversary(self)

    def search(
        self, factual: pd.DataFrame, start: dict[str, Any] | None, budget: float, far: float, deadline: Deadline
    ) -> Outcome:
        best, rho = start, self.settings.radius
        moves, trace, bound = [np.zeros(len(self.space.features))], list[dict[str, Any]](), 0.0
        margin, closest, own = self.settings.margin if self.leaves else 0.0, None, True
        while not deadline.passed and bound < budget:
            began = time.monotonic()
            space = self.around(factual, budget, far)
            found, answer = self._master(factual, space, budget, moves, margin).settled(deadline)
            if own:
                # Nothing within the budget: the best point is optimal, or there is no point at all.
                bound = budget if found.infeasible else max(bound, limit(found, budget))
            if answer is None:
                break
            master = time.monotonic() - began
            began = time.monotonic()
            radius, worst = self.certifier.radius(answer, SHARE * deadline.left), None
            if short := radius < rho:
                worst = self.adversary.worst(answer, deadline)
            step = next_step(len(moves), found.objective, radius, master, time.monotonic() - began)
            trace.append(step | {"row": answer})
            better: dict[str, Any] | None = None if short else answer
            if short and worst is None:  # by no more than the tolerances of both programs
                closest = closest or answer
                better = self._repaired(answer, None, factual, Deadline.after(SHARE * deadline.left))
            elif short and len(moves).bit_count() == 1:  # 1, 2, 4, 8 ...: not by the clock, which never repeats
                better = self._repaired(answer, best, factual, Deadline.after(SHARE * deadline.left))
            if better is not None and (value := self.value(better, factual)) < budget:
                best, budget = better, value
            if worst is None:
                break
            if not self.leaves and self._settled(worst, moves):
                margin, closest, own = max(self.settings.margin, WIDER * margin), closest or answer, False
            else:
                moves.append(worst.move)
        outcome = self.outcome(best, factual, bound, trace)
        if (
            best is None
            or closest is None
            or outcome.proven(self.settings.alpha, values_of(factual))
            or deadline.passed
        ):
            return outcome
        best, _ = self.first_guess.between(self.frame(closest), best, factual, Deadline.after(SHARE * deadline.left))
        return self.outcome(best, factual, bound, trace)

    def _settled(self, worst: Worst, moves: Sequence[np.ndarray]) -> bool:
        """Whether a perturbation is known, or takes a point no farther than to the threshold, where masters leave it.

        A master with a margin then finds a point beyond, whose value is no bound on the model's own rule.
        """
        return worst.score > -SCORE_SOLVED or any(np.abs(worst.move - move).max() <= COORDINATE_TIE for move in moves)

    def _master(
        self, factual: pd.DataFrame, space: Space, budget: float, moves: Sequence[np.ndarray], margin: float
    ) -> InstanceProgram:
        """The program of the perturbations so far, (21)-(25), of forests with (40), of networks (52)-(59)."""
        instance = InstanceProgram(self, space, factual, budget)
        for move in moves:
            instance.require(instance.embed(self.slopes * move[self.owners]), margin)
        instance.close()
        return instance

    def _repaired(
        self, row: dict[str, Any], best: dict[str, Any] | None, factual: pd.DataFrame, deadline: Deadline
    ) -> dict[str, Any] | None:
        """A robust row near one that is not: on the way to the best known one, else beyond it; None where none is."""
        if deadline.passed:
            return None
        if best is None:
            best = self.first_guess.beyond(row, factual, deadline)
        return None if best is None else self.first_guess.between(self.frame(row), best, factual, deadline)[0]
