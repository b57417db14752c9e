"""Whether the answers stay valid when they are carried out imprecisely: the input changes, the model does not."""

from __future__ import annotations

import numpy as np
import pandas as pd

from harness.certificate import Ball, checker, perturbed
from harness.core.errors import UnsupportedError
from harness.core.metric import metric
from harness.core.problem import Problem

DRAWS = 1_000
SIGMA = 0.05  # scaled units
RADIUS = 0.05  # of the box that ``region_validity`` samples, scaled units
MOST = 1.0  # beyond which no radius is asked for: the range of the training rows
NODES = 200_000  # of the search for one certificate: no clock, whose readings would be another on every machine


@metric(better="lower", family="robustness", range=(0.0, 1.0), criterion="robustness", place=4)
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
    names = perturbed(problem.space)
    return _lost(answers, problem, np.random.default_rng(0).normal(0.0, SIGMA, (DRAWS, len(names))))


@metric(better="higher", family="robustness", range=(0.0, 1.0), shown=False)
def region_validity(factual: pd.DataFrame, answers: pd.DataFrame, problem: Problem) -> float | None:
    """Mean share of 1,000 points around a valid answer that are valid too, in [0, 1], higher is better.

    Uniform in the box of radius 0.05 in scaled units over the numbers that are not immutable, as ``invalidation_rate``
    otherwise.

    >>> from metrics._example import answers, factual, problem
    >>> near = answers.assign(income=[52.5, 30.0])  # half a radius above the split; the second is invalid
    >>> round(region_validity(factual, near, problem), 2)
    0.75
    """
    names = perturbed(problem.space)
    lost = _lost(answers, problem, np.random.default_rng(0).uniform(-RADIUS, RADIUS, (DRAWS, len(names))))
    return None if lost is None else 1.0 - lost


@metric(
    better="higher",
    family="robustness",
    range=(0.0, MOST),
    heading="certified radius",
    shown=("overview", "report"),
    place=7,
)
def certified_radius_linf(factual: pd.DataFrame, answers: pd.DataFrame, problem: Problem) -> float | None:
    """Mean over valid answers of the radius, in [0, 1], of the largest box proven valid around them; higher is better.

    In scaled units over the numbers that are not immutable. A radius counts at most 1, and as far as it is proven
    within 200,000 nodes of the search. None without a valid answer, and for models that ``harness.certificate`` cannot
    look into.

    >>> from metrics._example import answers, factual, problem
    >>> round(certified_radius_linf(factual, answers, problem), 2)  # 30 of 100 above the only split
    0.3
    """
    return _certified(answers, problem, "linf")


@metric(better="higher", family="robustness", range=(0.0, MOST), shown=False)
def certified_radius_l2(factual: pd.DataFrame, answers: pd.DataFrame, problem: Problem) -> float | None:
    """As ``certified_radius_linf``, of the largest Euclidean ball.

    >>> from metrics._example import answers, factual, problem
    >>> round(certified_radius_l2(factual, answers, problem), 2)
    0.3
    """
    return _certified(answers, problem, "l2")


def _lost(answers: pd.DataFrame, problem: Problem, noise: np.ndarray) -> float | None:
    """Mean share of noisy copies of the valid answers that are invalid; noise by draw and perturbed feature."""
    moving = [problem.space[name] for name in perturbed(problem.space)]
    if not moving or not len(answers):
        return None
    valid = answers[problem.valid(answers)]
    if not len(valid):
        return None
    copies = valid.iloc[np.repeat(np.arange(len(valid)), len(noise))].reset_index(drop=True)
    shifted = {
        feature.name: copies[feature.name].to_numpy(float) + np.tile(shift, len(valid)) * feature.range
        for feature, shift in zip(moving, noise.T, strict=True)
    }
    return float(1.0 - problem.valid(copies.assign(**shifted)).mean())


def _certified(answers: pd.DataFrame, problem: Problem, norm: str) -> float | None:
    valid = answers[problem.valid(answers)] if len(answers) else answers
    if not len(valid):
        return None
    try:
        judge = checker(problem.space, problem.classifier, problem.target)
    except UnsupportedError:
        return None
    ball = Ball.scaled(problem.space, norm)
    rows = valid.to_dict("records")
    return float(np.mean([judge.certify(row, ball, MOST, nodes=NODES).radius for row in rows]))
