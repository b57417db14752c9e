"""Row distances and their means over answers and over pairs of answers, which several metrics share."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd

from harness.core.objective import displacement, mad
from harness.core.problem import Problem
from harness.core.space import Space
from metrics._once import once_per_problem

Distance = Callable[[Space, pd.DataFrame, pd.DataFrame], np.ndarray]
"""``distance(space, origin, frame)``: from a one-row frame to each row of another, shape (rows,)."""


def numbers(space: Space) -> Space:
    """The continuous and integer features."""
    return Space(tuple(feature for feature in space.features if feature.numeric))


def categories(space: Space) -> Space:
    """The binary, ordinal and categorical features."""
    return Space(tuple(feature for feature in space.features if not feature.numeric))


def over_answers(distance: Distance, space: Space, factual: pd.DataFrame, answers: pd.DataFrame) -> float | None:
    """Mean distance from the factual to an answer; None with no answer or no feature."""
    if not space.features or not len(answers):
        return None
    return float(distance(space, factual, answers).mean())


def over_pairs(distance: Distance, space: Space, answers: pd.DataFrame) -> float | None:
    """Mean distance between two answers, over all pairs; None with fewer than two answers or no feature."""
    if not space.features or len(answers) < 2:
        return None
    return float(pairwise(distance, space, answers).mean())


def pairwise(distance: Distance, space: Space, answers: pd.DataFrame) -> np.ndarray:
    """Distance of each pair of two or more answers, in the order of ``np.triu_indices``, shape (pairs,)."""
    rows = range(len(answers) - 1)
    return np.concatenate([distance(space, answers.iloc[[row]], answers.iloc[row + 1 :]) for row in rows])


def share_changed(space: Space, origin: pd.DataFrame, frame: pd.DataFrame) -> np.ndarray:
    """Share of the features that differ."""
    return space.changed(origin, frame).mean(axis=1)


def absolute(space: Space, origin: pd.DataFrame, frame: pd.DataFrame) -> np.ndarray:
    """Sum of absolute differences of numbers, each in its original unit."""
    names = list(space.names)
    return np.abs(frame[names].to_numpy(float) - origin[names].to_numpy(float)).sum(axis=1)


def gower(space: Space, origin: pd.DataFrame, frame: pd.DataFrame) -> np.ndarray:
    """Mean over features of scaled changes."""
    return displacement(space, origin, frame).mean(axis=1)


@once_per_problem
def _spreads(problem: Problem) -> dict[str, float]:
    return mad(problem.space, problem.train)


def mad_scaled(problem: Problem) -> Distance:
    """Mean over features of difference / MAD for a number, and of 0 or 1 (same or not) for any other.

    The MAD is that of the training rows, at least 1 % of the range, so that a feature that seldom varies neither
    divides by 0 nor drowns the others.
    """
    spreads = _spreads(problem)

    def distance(space: Space, origin: pd.DataFrame, frame: pd.DataFrame) -> np.ndarray:
        numeric = [feature.numeric for feature in space.features]
        units = np.array([spreads.get(name, 1.0) for name in space.names])  # displacement and MAD are both scaled
        moved = np.where(numeric, displacement(space, origin, frame) / units, space.changed(origin, frame))
        return moved.mean(axis=1)

    return distance
