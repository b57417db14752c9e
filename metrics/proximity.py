"""How far the answers lie from the factual."""

from __future__ import annotations

import numpy as np
import pandas as pd

from harness.core.metric import metric
from harness.core.objective import displacement
from harness.core.problem import Problem
from harness.core.space import Space
from metrics import _distances
from metrics._distances import absolute, categories, mad_scaled, numbers, over_answers, share_changed


@metric(better="higher", family="mothilal", range=(0.0, 1.0), shown=False)
def categorical_proximity(factual: pd.DataFrame, answers: pd.DataFrame, problem: Problem) -> float | None:
    """1 - mean share of the binary, ordinal and categorical features changed, in [0, 1], higher is better.

    Mothilal family. None without answers or such features.

    >>> from metrics._example import answers, factual, problem
    >>> categorical_proximity(factual, answers, problem)  # none of three changed, then all three
    0.5
    """
    changed = over_answers(share_changed, categories(problem.space), factual, answers)
    return None if changed is None else 1.0 - changed


@metric(better="higher", family="mothilal", range=(-np.inf, 0.0), shown=False)
def continuous_proximity(factual: pd.DataFrame, answers: pd.DataFrame, problem: Problem) -> float | None:
    """- mean over answers of the summed changes of numbers, original units, in (-inf, 0], higher is better.

    Mothilal family. None without answers or continuous and integer features.

    >>> from metrics._example import answers, factual, problem
    >>> continuous_proximity(factual, answers, problem)  # income + 50 and age + 10, then age - 10
    -35.0
    """
    moved = over_answers(absolute, numbers(problem.space), factual, answers)
    return None if moved is None else 0.0 - moved


@metric(better="lower", family="pso", shown=False)
def proximity_cont(factual: pd.DataFrame, answers: pd.DataFrame, problem: Problem) -> float | None:
    """Mean over answers and numbers of change / MAD, in [0, inf), lower is better.

    PSO family. MADs are those of the training rows, at least 1 % of the range. None without answers or continuous
    and integer features.

    >>> from metrics._example import answers, factual, problem
    >>> proximity_cont(factual, answers, problem)  # MADs are 25 and 10: (50/25 + 10/10) / 2, then (0 + 10/10) / 2
    1.0
    """
    return over_answers(mad_scaled(problem), numbers(problem.space), factual, answers)


@metric(better="lower", family="pso", range=(0.0, 1.0), shown=False)
def proximity_cat(factual: pd.DataFrame, answers: pd.DataFrame, problem: Problem) -> float | None:
    """Mean share of the binary, ordinal and categorical features changed, in [0, 1], lower is better.

    PSO family. None without answers or such features.

    >>> from metrics._example import answers, factual, problem
    >>> proximity_cat(factual, answers, problem)
    0.5
    """
    return over_answers(share_changed, categories(problem.space), factual, answers)


@metric(better="lower", family="pso", shown=False)
def proximity(factual: pd.DataFrame, answers: pd.DataFrame, problem: Problem) -> float | None:
    """``proximity_cont`` and ``proximity_cat`` weighted by their numbers of features, in [0, inf), lower is better.

    PSO family, which leaves the weights open. None without answers.

    >>> from metrics._example import answers, factual, problem
    >>> round(proximity(factual, answers, problem), 9)  # (2 * 1.0 + 3 * 0.5) / 5
    0.7
    """
    return over_answers(mad_scaled(problem), problem.space, factual, answers)


@metric(better="lower", family="distance", criterion="sparsity", place=2)
def l0(factual: pd.DataFrame, answers: pd.DataFrame, problem: Problem) -> float | None:
    """Mean number of features changed, a category counting once, in [0, features], lower is better.

    None without answers.

    >>> from metrics._example import answers, factual, problem
    >>> l0(factual, answers, problem)  # two features, then four
    3.0
    """
    return over_answers(_l0, problem.space, factual, answers)


@metric(better="lower", family="distance", shown=False)
def l1(factual: pd.DataFrame, answers: pd.DataFrame, problem: Problem) -> float | None:
    """Mean sum of the scaled changes, in [0, inf), lower is better.

    A number changes by its share of the training range, an ordinal feature by 1 / (levels - 1) a step, any other
    by 1. None without answers.

    >>> from metrics._example import answers, factual, problem
    >>> l1(factual, answers, problem)  # 0.5 + 0.25, then 0.25 + 1 + 0.5 + 1
    1.75
    """
    return over_answers(_l1, problem.space, factual, answers)


@metric(better="lower", family="distance", shown=False)
def l2(factual: pd.DataFrame, answers: pd.DataFrame, problem: Problem) -> float | None:
    """Mean Euclidean norm (the root is taken) of the scaled changes of ``l1``, in [0, inf), lower is better.

    None without answers.

    >>> from metrics._example import answers, factual, problem
    >>> round(l2(factual, answers.iloc[:1], problem), 4)  # the root of 0.5 ** 2 + 0.25 ** 2
    0.559
    """
    return over_answers(_l2, problem.space, factual, answers)


@metric(better="lower", family="distance", shown=False)
def linf(factual: pd.DataFrame, answers: pd.DataFrame, problem: Problem) -> float | None:
    """Mean largest of the scaled changes of ``l1``, in [0, inf), lower is better.

    None without answers.

    >>> from metrics._example import answers, factual, problem
    >>> linf(factual, answers, problem)  # 0.5, then 1
    0.75
    """
    return over_answers(_linf, problem.space, factual, answers)


@metric(better="lower", family="distance", criterion="proximity", place=1)
def gower(factual: pd.DataFrame, answers: pd.DataFrame, problem: Problem) -> float | None:
    """Mean over answers and features of the scaled changes of ``l1``, in [0, inf), lower is better.

    At most 1 within the ranges of the training data, which are the ones used. None without answers.

    >>> from metrics._example import answers, factual, problem
    >>> round(gower(factual, answers, problem), 9)  # l1 over five features
    0.35
    """
    return over_answers(_distances.gower, problem.space, factual, answers)


def _l0(space: Space, origin: pd.DataFrame, frame: pd.DataFrame) -> np.ndarray:
    return space.changed(origin, frame).sum(axis=1)


def _l1(space: Space, origin: pd.DataFrame, frame: pd.DataFrame) -> np.ndarray:
    return displacement(space, origin, frame).sum(axis=1)


def _l2(space: Space, origin: pd.DataFrame, frame: pd.DataFrame) -> np.ndarray:
    return np.linalg.norm(displacement(space, origin, frame), axis=1)


def _linf(space: Space, origin: pd.DataFrame, frame: pd.DataFrame) -> np.ndarray:
    return displacement(space, origin, frame).max(axis=1)
