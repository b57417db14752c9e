"""The objective of robust counterfactuals."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import pandas as pd

from harness.certificate import checker
from harness.core.objective import Objective
from harness.core.problem import Problem
from harness.core.space import Space
from harness.core.tolerances import LIMIT_MET, RADIUS_ROUNDING
from methods.robust.perturbation import Perturbation
from methods.robust.settings import SECONDS


@dataclass(frozen=True)
class RobustObjective(Objective):
    """An objective that is also limited to points with no invalid one within rho, as the independent checker finds.

    What is stored is the plain objective, with the perturbation as its domain: the checker has the regions of the
    answers, and proves those itself.
    """

    problem: Problem | None = field(default=None, compare=False, repr=False)
    perturbation: Perturbation | None = field(default=None, compare=False, repr=False)

    def exceeded(self, space: Space, factual: pd.DataFrame, frame: pd.DataFrame) -> list[list[str]]:
        """As ``Objective.exceeded``; the limit is named ``radius``."""
        faults = super().exceeded(space, factual, frame)
        assert self.problem is not None
        assert self.perturbation is not None
        certifier = checker(self.problem.space, self.problem.classifier, self.problem.target)
        rho = self.perturbation.rho
        if rho == 0.0:  # the point itself, of which the model decides
            for fault, valid in zip(faults, self.problem.valid(frame), strict=True):
                fault += [] if valid else ["radius"]
            return faults
        rho = min(rho * (1 - LIMIT_MET), rho - RADIUS_ROUNDING)
        for fault, row in zip(faults, frame.to_dict("records"), strict=True):
            if certifier.certify(row, self.perturbation.ball(row), within=rho, seconds=SECONDS).violated <= rho:
                fault.append("radius")
        return faults

    def stored(self) -> Objective:
        assert self.perturbation is not None
        domain = {name: getattr(self.perturbation, name) for name in ("rho", "norm", "unperturbed", "clip")}
        return replace(super().stored(), domain=domain)
