"""Whether the answers stay valid when they are carried out imprecisely, or when the weights of the model change."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from harness.certificate import Ball, WeightBox, checker, perturbed, weight_box
from harness.core.asked import Asked
from harness.core.errors import UnsupportedError
from harness.core.frames import with_columns
from harness.core.metric import metric, together
from harness.core.problem import Problem
from metrics._once import once

DRAWS = 1_000
BLOCK = 8  # answers whose copies a model is asked about together: more would outgrow the processor's cache
SIGMA = 0.05  # scaled units
RADIUS = 0.05  # of the box that ``region_validity`` samples, scaled units
MOST = 1.0  # beyond which no radius is asked for: the range of the training rows
DELTA = 0.01  # change of every weight that ``delta_validity`` allows
NODES = 200_000  # of the search for one certificate: no clock, whose readings would be another on every machine


@metric(better="lower", family="robustness", range=(0.0, 1.0), criterion="robustness", place=4)
@together
def invalidation_rate(asked: Asked) -> np.ndarray:
    """Mean share of 1,000 noisy copies of a valid answer that are no longer valid, in [0, 1], lower is better.

    The invalidation rate of Pawelczyk et al. (2023), by samples. Normal noise of standard deviation 0.05 in scaled
    units moves each number that is not immutable, integers as real numbers and beyond bounds too. The draws are seeded
    and the same for every answer, so that methods meet the same noise. None without a valid answer or without such a
    feature, and where the model cannot be asked about numbers beyond the data's, such as the logarithm of one below 0.

    >>> from metrics._example import answers, factual, problem
    >>> near = answers.assign(income=[55.0, 30.0])  # one standard deviation above the split; the second is invalid
    >>> round(invalidation_rate(factual, near, problem), 1)
    0.2
    """
    names = perturbed(asked.problem.space)
    return 1.0 - _kept(asked, "normal", np.random.default_rng(0).normal(0.0, SIGMA, (DRAWS, len(names))))


@metric(better="higher", family="robustness", range=(0.0, 1.0), shown=False)
@together
def region_validity(asked: Asked) -> np.ndarray:
    """Mean share of 1,000 points around a valid answer that are valid too, in [0, 1], higher is better.

    Uniform in the box of radius 0.05 in scaled units over the numbers that are not immutable, as ``invalidation_rate``
    otherwise. This project's definition.

    >>> from metrics._example import answers, factual, problem
    >>> near = answers.assign(income=[52.5, 30.0])  # half a radius above the split; the second is invalid
    >>> round(region_validity(factual, near, problem), 2)
    0.75
    """
    names = perturbed(asked.problem.space)
    return _kept(asked, "uniform", np.random.default_rng(0).uniform(-RADIUS, RADIUS, (DRAWS, len(names))))


@metric(
    better="higher",
    family="robustness",
    range=(0.0, MOST),
    heading="certified radius",
    shown=("overview", "report"),
    place=7,
)
@together
def certified_radius_linf(asked: Asked) -> np.ndarray:
    """Mean over valid answers of the radius, in [0, 1], of the largest box proven valid around each; higher is better.

    This project's definition, for the regions of Maragno et al. (2024). In scaled units over the numbers that are not
    immutable. A radius counts at most 1, and as far as it is proven within 200,000 nodes of the search. None without a
    valid answer, where no number can be moved, and for models that ``harness.certificate`` cannot look into.

    >>> from metrics._example import answers, factual, problem
    >>> round(certified_radius_linf(factual, answers, problem), 2)  # 30 of 100 above the only split
    0.3
    """
    return _certified(asked, "linf")


@metric(better="higher", family="robustness", range=(0.0, MOST), shown=False)
@together
def certified_radius_l2(asked: Asked) -> np.ndarray:
    """As ``certified_radius_linf``, in [0, 1], of the largest Euclidean ball.

    >>> from metrics._example import answers, factual, problem
    >>> round(certified_radius_l2(factual, answers, problem), 2)
    0.3
    """
    return _certified(asked, "l2")


@metric(better="higher", family="robustness", range=(0.0, 1.0), shown=("report",), heading="Δ-validity", place=8)
@together
def delta_validity(asked: Asked) -> np.ndarray:
    """Mean share of valid answers that every model with weights at most 0.01 off says the same of; higher is better.

    By the Δ-robustness of Jiang, Leofante et al. (2023). In [0, 1], proven: ``harness.certificate.weights``, for linear
    models and networks, of which more than one hidden layer gives a lower bound. None without a valid answer, and for
    models without weights, such as trees.

    >>> from metrics._example import answers, factual, linear
    >>> delta_validity(factual, answers.assign(income=[80.0, 50.1]), linear)  # of two valid answers, by 0.3 and 0.001
    0.5
    """
    return _weighed(asked, lambda box, inputs: box.worst(inputs, DELTA) > 0)


@metric(better="higher", family="robustness", range=(0.0, MOST), shown=("report",), heading="certified Δ", place=9)
@together
def certified_delta(asked: Asked) -> np.ndarray:
    """Mean over valid answers of the greatest change of all weights proven to leave them valid; higher is better.

    This project's definition, by the Δ-robustness of Jiang, Leofante et al. (2023). In [0, 1], in units of the weights,
    which are those of the estimator's own inputs: the same for all methods of a task, and no number to compare models
    by. As ``delta_validity`` otherwise.

    >>> from metrics._example import answers, factual, linear
    >>> round(certified_delta(factual, answers, linear), 4)  # 0.3 above the threshold; inputs 0.8, 0.5, 1, and the 1
    0.0909
    """
    return _weighed(asked, lambda box, inputs: box.largest(inputs, MOST))


@once
def _known(problem: Problem) -> dict[tuple[Any, ...], Any]:
    """What was found of answers already, by what is measured and their values: methods often give the same."""
    return {}


def _keys(name: str, answers: pd.DataFrame) -> list[tuple[Any, ...]]:
    """Of each answer, what is measured and its values; gaps are None, as no NaN is another."""
    rows = answers.itertuples(index=False, name=None)
    return [(name, *(None if value != value else value for value in row)) for row in rows]


def _kept(asked: Asked, name: str, noise: np.ndarray) -> np.ndarray:
    """Mean share of noisy copies of the valid answers that are valid too; noise by draw and perturbed feature."""
    problem, valid = asked.problem, asked.where(asked.problem.valid(asked.answers))
    moving = [problem.space[name] for name in perturbed(problem.space)]
    if not moving:
        return np.full(len(asked.counts), np.nan)
    known, keys = _known(problem), _keys(name, valid.answers)
    new = [place for place, key in enumerate(keys) if key not in known]
    for start in range(0, len(new), BLOCK):
        some = valid.answers.iloc[places := new[start : start + BLOCK]]
        copies = some.iloc[np.repeat(np.arange(len(some)), len(noise))].reset_index(drop=True)
        shifted = {
            feature.name: copies[feature.name].to_numpy(float) + np.tile(shift, len(some)) * feature.range
            for feature, shift in zip(moving, noise.T, strict=True)
        }
        kept = _valid(problem, with_columns(copies, shifted), len(some))
        known.update(zip((keys[place] for place in places), kept, strict=True))
    return valid.mean(np.array([known[key] for key in keys], dtype=float).reshape(len(keys), len(noise)))


def _valid(problem: Problem, copies: pd.DataFrame, answers: int) -> np.ndarray:
    """Which copies of each answer are valid, shape (answers, copies); NaN where the model does not take an answer's.

    That says nothing about the other answers that are asked about with it.
    """
    try:
        with np.errstate(invalid="ignore", divide="ignore"):
            return problem.valid(copies).reshape(answers, -1)
    except Exception:  # whatever a model raises of numbers that no person has, as the logarithm of one below 0
        size = len(copies) // answers
        if answers == 1:
            return np.full((1, size), np.nan)
        return np.concatenate([_valid(problem, copies.iloc[at : at + size], 1) for at in range(0, len(copies), size)])


def _certified(asked: Asked, norm: str) -> np.ndarray:
    problem, valid = asked.problem, asked.where(asked.problem.valid(asked.answers))
    try:
        judge = checker(problem.space, problem.classifier, problem.target)
    except UnsupportedError:
        return np.full(len(asked.counts), np.nan)
    ball = Ball.scaled(problem.space, norm)
    if not ball.units:
        return np.full(len(asked.counts), np.nan)
    known, keys = _known(problem), _keys(norm, valid.answers)
    for key, row in zip(keys, valid.answers.to_dict("records"), strict=True):
        if key not in known:
            known[key] = judge.certify(row, ball, MOST, nodes=NODES).radius
    return valid.mean(np.array([known[key] for key in keys], dtype=float))


def _weighed(asked: Asked, measure: Callable[[WeightBox, np.ndarray], np.ndarray]) -> np.ndarray:
    """Mean of what is measured of the estimator's inputs of valid answers, where its weights can change."""
    problem, valid = asked.problem, asked.where(asked.problem.valid(asked.answers))
    try:
        box = weight_box(problem.classifier, problem.target)
    except UnsupportedError:
        return np.full(len(asked.counts), np.nan)
    return valid.mean(measure(box, problem.classifier.matrix(valid.answers)))
