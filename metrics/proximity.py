"""How far the answers lie from the factual."""

from __future__ import annotations

import numpy as np
import pandas as pd

from harness.core.asked import Asked
from harness.core.metric import metric, together
from harness.core.objective import Moves, displacement
from harness.core.space import Space
from metrics import _distances
from metrics._distances import absolute, categories, mad_scaled, numbers, over_answers, share_changed


@metric(better="higher", family="mothilal", range=(0.0, 1.0), shown=False)
@together
def categorical_proximity(asked: Asked) -> np.ndarray:
    """1 - mean share of the binary, ordinal and categorical features changed, in [0, 1], higher is better.

    Mothilal family: Mothilal et al. (2020), as in Maragno et al. (2022), appendix B. None without answers or such
    features.

    >>> from metrics._example import answers, factual, problem
    >>> categorical_proximity(factual, answers, problem)  # none of three changed, then all three
    0.5
    """
    return 1.0 - over_answers(share_changed, categories(asked.problem.space), asked)


@metric(better="higher", family="mothilal", range=(-np.inf, 0.0), shown=False)
@together
def continuous_proximity(asked: Asked) -> np.ndarray:
    """- mean over answers of the summed changes of numbers, original units, in (-inf, 0], higher is better.

    Mothilal family: Mothilal et al. (2020), in original units as in Maragno et al. (2022), appendix B. None without
    answers or continuous and integer features.

    >>> from metrics._example import answers, factual, problem
    >>> continuous_proximity(factual, answers, problem)  # income + 50 and age + 10, then age - 10
    -35.0
    """
    return 0.0 - over_answers(absolute, numbers(asked.problem.space), asked)


@metric(better="lower", family="pso", range=(0.0, np.inf), shown=False)
@together
def proximity_cont(asked: Asked) -> np.ndarray:
    """Mean over answers and numbers of change / MAD, in [0, inf), lower is better.

    PSO family: (8) and (9) of Shekhar et al. (2023). MADs are those of the training rows, at least 1 % of the range.
    None without answers or continuous and integer features.

    >>> from metrics._example import answers, factual, problem
    >>> proximity_cont(factual, answers, problem)  # MADs are 25 and 10: (50/25 + 10/10) / 2, then (0 + 10/10) / 2
    1.0
    """
    return over_answers(mad_scaled(asked.problem), numbers(asked.problem.space), asked)


@metric(better="lower", family="pso", range=(0.0, 1.0), shown=False)
@together
def proximity_cat(asked: Asked) -> np.ndarray:
    """Mean share of the binary, ordinal and categorical features changed, in [0, 1], lower is better.

    PSO family: (10) and (11) of Shekhar et al. (2023). None without answers or such features.

    >>> from metrics._example import answers, factual, problem
    >>> proximity_cat(factual, answers, problem)
    0.5
    """
    return over_answers(share_changed, categories(asked.problem.space), asked)


@metric(better="lower", family="pso", range=(0.0, np.inf), shown=False)
@together
def proximity(asked: Asked) -> np.ndarray:
    """``proximity_cont`` and ``proximity_cat`` weighted by their numbers of features, in [0, inf), lower is better.

    PSO family: Shekhar et al. (2023) leave the weights open. None without answers.

    >>> from metrics._example import answers, factual, problem
    >>> round(proximity(factual, answers, problem), 9)  # (2 * 1.0 + 3 * 0.5) / 5
    0.7
    """
    return over_answers(mad_scaled(asked.problem), asked.problem.space, asked)


@metric(better="lower", family="distance", range=(0.0, np.inf), criterion="sparsity", place=2)
@together
def l0(asked: Asked) -> np.ndarray:
    """Mean number of features changed, a category counting once, in [0, features], lower is better.

    This project's definition. None without answers.

    >>> from metrics._example import answers, factual, problem
    >>> l0(factual, answers, problem)  # two features, then four
    3.0
    """
    return over_answers(_l0, asked.problem.space, asked)


@metric(better="lower", family="distance", range=(0.0, np.inf), shown=False)
@together
def l1(asked: Asked) -> np.ndarray:
    """Mean sum of the scaled changes, in [0, inf), lower is better.

    A number changes by its share of the training range, an ordinal feature by 1 / (levels - 1) a step, any other
    by 1. This project's definition. None without answers.

    >>> from metrics._example import answers, factual, problem
    >>> l1(factual, answers, problem)  # 0.5 + 0.25, then 0.25 + 1 + 0.5 + 1
    1.75
    """
    return over_answers(_l1, asked.problem.space, asked)


@metric(better="lower", family="distance", range=(0.0, np.inf), shown=False)
@together
def l2(asked: Asked) -> np.ndarray:
    """Mean Euclidean norm (the root is taken) of the scaled changes of ``l1``, in [0, inf), lower is better.

    This project's definition. None without answers.

    >>> from metrics._example import answers, factual, problem
    >>> round(l2(factual, answers.iloc[:1], problem), 4)  # the root of 0.5 ** 2 + 0.25 ** 2
    0.559
    """
    return over_answers(_l2, asked.problem.space, asked)


@metric(better="lower", family="distance", range=(0.0, np.inf), shown=False)
@together
def linf(asked: Asked) -> np.ndarray:
    """Mean largest of the scaled changes of ``l1``, in [0, inf), lower is better.

    This project's definition. None without answers.

    >>> from metrics._example import answers, factual, problem
    >>> linf(factual, answers, problem)  # 0.5, then 1
    0.75
    """
    return over_answers(_linf, asked.problem.space, asked)


@metric(better="lower", family="distance", range=(0.0, np.inf), criterion="proximity", place=1)
@together
def gower(asked: Asked) -> np.ndarray:
    """Mean over answers and features of the scaled changes of ``l1``, in [0, inf), lower is better.

    One minus the similarity of Gower (1971), ordinal features by rank. At most 1 within the ranges of the training
    data, which are the ones used. None without answers.

    >>> from metrics._example import answers, factual, problem
    >>> round(gower(factual, answers, problem), 9)  # l1 over five features
    0.35
    """
    return over_answers(_distances.gower, asked.problem.space, asked)


@metric(better="lower", family="distance", range=(0.0, np.inf), place=0)
@together
def cost(asked: Asked) -> np.ndarray:
    """Mean sum of the scaled changes of ``l1``, each at its feature's own cost, in [0, inf), lower is better.

    This project's definition. None without answers, and where no feature has a cost of its own.

    >>> from dataclasses import replace
    >>> from metrics._example import answers, factual, problem
    >>> weighted = problem.space.replace({"income": {"weight": 3}})
    >>> cost(factual, answers, replace(problem, space=weighted))  # 3 * 0.5 + 0.25, then 0.25 + 1 + 0.5 + 1
    2.25
    """
    space = asked.problem.space
    return over_answers(_cost if space.priced else _undefined, space, asked)


def _cost(space: Space, origins: pd.DataFrame, frame: pd.DataFrame) -> np.ndarray:
    return Moves(space, origins, frame).priced.sum(axis=1)


def _undefined(space: Space, origins: pd.DataFrame, frame: pd.DataFrame) -> np.ndarray:
    return np.full(len(frame), np.nan)


def _l0(space: Space, origins: pd.DataFrame, frame: pd.DataFrame) -> np.ndarray:
    return space.changed(origins, frame).sum(axis=1)


def _l1(space: Space, origins: pd.DataFrame, frame: pd.DataFrame) -> np.ndarray:
    return displacement(space, origins, frame).sum(axis=1)


def _l2(space: Space, origins: pd.DataFrame, frame: pd.DataFrame) -> np.ndarray:
    return np.linalg.norm(displacement(space, origins, frame), axis=1)


def _linf(space: Space, origins: pd.DataFrame, frame: pd.DataFrame) -> np.ndarray:
    return displacement(space, origins, frame).max(axis=1)
