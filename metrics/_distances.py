"""Distances of rows and their means over answers and over pairs of answers, which several metrics share."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd

from harness.core.asked import Asked
from harness.core.objective import Moves, displacement, mad
from harness.core.problem import Problem
from harness.core.space import Space
from metrics._once import once

Distance = Callable[[Space, pd.DataFrame, pd.DataFrame], np.ndarray]
"""``distance(space, origins, frame)``: from each row of one frame to the row beside it in another, shape (rows,)."""


def numbers(space: Space) -> Space:
    """The continuous and integer features."""
    return Space(tuple(feature for feature in space.features if feature.numeric))


def categories(space: Space) -> Space:
    """The binary, ordinal and categorical features."""
    return Space(tuple(feature for feature in space.features if not feature.numeric))


def over_answers(distance: Distance, space: Space, asked: Asked) -> np.ndarray:
    """Per question, the mean distance from the factual to an answer, shape (questions,).

    NaN with no answer or no feature.
    """
    if not space.features:
        return np.full(len(asked.counts), np.nan)
    return asked.mean(distance(space, asked.origins, asked.answers))


def over_pairs(distance: Distance, space: Space, asked: Asked) -> np.ndarray:
    """Per question, the mean distance of two answers, over all pairs, shape (questions,).

    NaN with fewer than two or no feature.
    """
    if not space.features:
        return np.full(len(asked.counts), np.nan)
    first, second = asked.pairs
    return second.mean(distance(space, first, second.answers))


def share_changed(space: Space, origins: pd.DataFrame, frame: pd.DataFrame) -> np.ndarray:
    """Share of the features that differ, in [0, 1], shape (rows,)."""
    return space.changed(origins, frame).mean(axis=1)


def absolute(space: Space, origins: pd.DataFrame, frame: pd.DataFrame) -> np.ndarray:
    """Sum of absolute differences of numbers, each in its original unit, in [0, inf), shape (rows,).

    To a gap the difference is the training rows' range.
    """
    units = np.array([feature.range for feature in space.features])
    names = list(space.names)
    moved = np.abs(frame[names].to_numpy(float) - origins[names].to_numpy(float))
    if space.gaps:
        moved = np.where(np.isnan(moved), displacement(space, origins, frame) * units, moved)
    return np.ascontiguousarray(moved).sum(axis=1)  # by columns, rounding would depend on the number of rows


def gower(space: Space, origins: pd.DataFrame, frame: pd.DataFrame) -> np.ndarray:
    """Mean over features of scaled changes, in [0, inf), shape (rows,): Gower's distance (1971)."""
    return displacement(space, origins, frame).mean(axis=1)


@once
def _spreads(problem: Problem) -> dict[str, float]:
    return mad(problem.space, problem.train)


def mad_scaled(problem: Problem) -> Distance:
    """Mean over features of difference / MAD for a number, and of 0 or 1 (same or not) for any other, and for a gap.

    The distances of equations (9) and (11) of Shekhar et al. (2023) in one mean, in [0, inf), shape (rows,). The MAD is
    that of the training rows, at least 1 % of the range, so that a feature that seldom varies neither divides by 0 nor
    drowns the others.
    """
    spreads = _spreads(problem)

    def distance(space: Space, origins: pd.DataFrame, frame: pd.DataFrame) -> np.ndarray:
        numeric = [feature.numeric for feature in space.features]
        units = np.array([spreads.get(name, 1.0) for name in space.names])  # displacement and MAD are both scaled
        moved = np.where(numeric, displacement(space, origins, frame) / units, space.changed(origins, frame))
        return np.where(Moves(space, origins, frame).emptied, 1.0, moved).mean(axis=1)

    return distance
