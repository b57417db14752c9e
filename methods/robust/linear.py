"""The robust counterpart of a linear model."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pandas as pd

from harness.core.errors import UnsupportedError
from harness.core.method import Deadline
from harness.core.space import Space
from harness.core.tolerances import RADIUS_ROUNDING
from methods.estimators.linear import is_linear, weights_of
from methods.robust.outcome import Outcome
from methods.robust.program import InstanceProgram, RobustProgram, limit, next_step


class LinearCounterpart(RobustProgram):
    r"""(75): the worst perturbation costs a linear model :math:`\rho \|\beta_P\|_*`, so one solve is enough."""

    def search(
        self, factual: pd.DataFrame, start: dict[str, Any] | None, budget: float, far: float, deadline: Deadline
    ) -> Outcome:
        """The bound is of the model's own rule; where the certificate asks, more than rho is kept, or a margin."""
        space = self.around(factual, budget, far)
        trace, bound = list[dict[str, Any]](), 0.0
        rho = self.settings.radius
        for radius, margin in ((rho, 0.0), (rho + RADIUS_ROUNDING, 0.0), (rho, self.settings.margin)):
            began, own = time.monotonic(), radius == rho and not margin
            found, answer = self._instance(factual, space, budget, radius, margin).settled(deadline)
            if own:
                bound = budget if found.infeasible else max(bound, limit(found, budget))
            if answer is None:
                return self.outcome(start, factual, bound, trace)
            proven = self.certifier.radius(answer, deadline.left)
            trace.append(next_step(1, found.objective, proven, time.monotonic() - began, 0.0))
            if proven >= rho:
                start = answer
                break
        return self.outcome(start, factual, bound, trace)

    def _instance(
        self, factual: pd.DataFrame, space: Space, budget: float, radius: float, margin: float
    ) -> InstanceProgram:
        instance = InstanceProgram(self, space, factual, budget)
        estimator = self.problem.classifier.estimator
        if not is_linear(estimator):
            raise UnsupportedError(f"{type(estimator).__name__} is no linear model; set algorithm=adversarial.")
        weights, _ = weights_of(estimator)
        moved = self.perturbation.moved

        def excess(outputs: np.ndarray) -> float:
            slope: dict[int, float] = {}
            for place, weight, rate in zip(self.owners, outputs @ weights, self.slopes, strict=True):
                if moved[place]:
                    slope[place] = slope.get(place, 0.0) + float(weight * rate)
            dual = np.array(list(slope.values()))
            return radius * float(np.abs(dual).sum() if self.settings.norm == "linf" else np.linalg.norm(dual))

        instance.require(instance.embed(np.zeros(len(self.slopes))), margin, excess)
        instance.close()
        return instance
