"""Whether the answers keep to the structural equations between features."""

from __future__ import annotations

import numpy as np
import pandas as pd

from harness.core.metric import metric
from harness.core.problem import Problem


@metric(better="lower", family="causality", range=(0.0, np.inf), shown=False)
def residual(factual: pd.DataFrame, answers: pd.DataFrame, problem: Problem) -> float | None:
    """Mean over answers of how far the endogenous features lie from what their causes imply, lower is better.

    Summed over equations, in scaled units, in [0, inf); 0 where a method imposes them. This project's definition: the
    difference between the sides of equation (7) of Maragno et al. (2022). None without answers or equations.

    >>> from dataclasses import replace
    >>> from harness.models.equations import equations
    >>> from metrics._example import SPACE, TRAIN, answers, factual, problem
    >>> causal = replace(problem, equations=equations(SPACE, TRAIN, {"income": {"formula": "2 * age"}}))
    >>> round(residual(factual, answers, causal), 9)  # 80 where 50 is implied, and 30 where 10 is, in a range of 100
    0.25
    """
    if not len(answers) or not problem.equations:
        return None
    gaps = [equation.residual(problem.space, factual, answers) for equation in problem.equations]
    return float(np.abs(gaps).sum(axis=0).mean())
