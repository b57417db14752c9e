"""Whether the answers stay valid when they are carried out imprecisely."""

from __future__ import annotations

import numpy as np
import pandas as pd

from harness.metric import metric
from harness.problem import Actionability, Problem

DRAWS = 1_000
SIGMA = 0.05  # scaled units


@metric(better="lower", family="robustness", range=(0.0, 1.0))
def invalidation_rate(factual: pd.DataFrame, answers: pd.DataFrame, problem: Problem) -> float | None:
    """Mean share of 1,000 noisy copies of a valid answer that are no longer valid, in [0, 1], lower is better.

    Normal noise of standard deviation 0.05 in scaled units moves each number that is not immutable, integers as real
    numbers and beyond bounds too. The draws are seeded and the same for every answer, so that methods meet the same
    noise. None without a valid answer or without such a feature.

    >>> from metrics._example import answers, factual, problem
    >>> near = answers.assign(income=[55.0, 30.0])  # one standard deviation above the split; the second is invalid
    >>> round(invalidation_rate(factual, near, problem), 1)
    0.2
    """
    moving = [f for f in problem.space.features if f.numeric and f.actionability is not Actionability.IMMUTABLE]
    if not moving or not len(answers):
        return None
    valid = answers[problem.valid(answers)]
    if not len(valid):
        return None
    noise = np.random.default_rng(0).normal(0.0, SIGMA, (DRAWS, len(moving)))
    copies = valid.iloc[np.repeat(np.arange(len(valid)), DRAWS)].reset_index(drop=True)
    shifted = {
        feature.name: copies[feature.name].to_numpy(float) + np.tile(shift, len(valid)) * feature.range
        for feature, shift in zip(moving, noise.T, strict=True)
    }
    return float(1.0 - problem.valid(copies.assign(**shifted)).mean())
