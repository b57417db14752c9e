"""How much the answers to one factual differ from each other; None with fewer than two."""

from __future__ import annotations

import numpy as np
import pandas as pd

from harness.core.metric import metric
from harness.core.problem import Problem
from metrics._distances import (
    absolute,
    categories,
    gower,
    mad_scaled,
    numbers,
    over_answers,
    over_pairs,
    pairwise,
    share_changed,
)


@metric(better="higher", family="mothilal", range=(0.0, 1.0), shown=False)
def categorical_diversity(factual: pd.DataFrame, answers: pd.DataFrame, problem: Problem) -> float | None:
    """Mean over pairs of the share of categorical features that differ, in [0, 1], higher is better.

    Mothilal family; binary and ordinal features are categorical too. None with fewer than two answers or no
    such feature.

    >>> from metrics._example import answers, factual, problem
    >>> categorical_diversity(factual, answers, problem)  # all three differ
    1.0
    """
    return over_pairs(share_changed, categories(problem.space), answers)


@metric(better="higher", family="mothilal", shown=False)
def continuous_diversity(factual: pd.DataFrame, answers: pd.DataFrame, problem: Problem) -> float | None:
    """Mean over pairs of the summed differences of numbers, original units, in [0, inf), higher is better.

    Mothilal family. None with fewer than two answers or no continuous or integer feature.

    >>> from metrics._example import answers, factual, problem
    >>> continuous_diversity(factual, answers, problem)  # incomes differ by 50, ages by 20
    70.0
    """
    return over_pairs(absolute, numbers(problem.space), answers)


@metric(better="higher", family="mothilal", range=(0.0, 1.0), shown=False)
def sparsity_diversity(factual: pd.DataFrame, answers: pd.DataFrame, problem: Problem) -> float | None:
    """Mean over pairs of the share of all features that differ, in [0, 1], higher is better.

    Mothilal family. None with fewer than two answers.

    >>> from metrics._example import answers, factual, problem
    >>> sparsity_diversity(factual, answers, problem)  # all five differ
    1.0
    """
    return over_pairs(share_changed, problem.space, answers)


@metric(better="higher", family="diversity", criterion="diversity", place=5)
def pairwise_gower(factual: pd.DataFrame, answers: pd.DataFrame, problem: Problem) -> float | None:
    """Mean over pairs of Gower's distance, as ``metrics.proximity.gower`` has it, in [0, inf), higher is better.

    None with fewer than two answers.

    >>> from metrics._example import answers, factual, problem
    >>> round(pairwise_gower(factual, answers, problem), 9)  # three are half a range apart, two differ
    0.7
    """
    return over_pairs(gower, problem.space, answers)


@metric(better="higher", family="pso", shown=False)
def diversity(factual: pd.DataFrame, answers: pd.DataFrame, problem: Problem) -> float | None:
    """Mean over pairs of the distance of ``pso/proximity``, in [0, inf), higher is better.

    PSO family. Numbers count by difference / MAD, any other feature by 0 or 1. None with fewer than two answers.

    >>> from metrics._example import answers, factual, problem
    >>> round(diversity(factual, answers, problem), 9)  # (50/25 + 20/10 + 3 * 1) / 5
    1.4
    """
    return over_pairs(mad_scaled(problem), problem.space, answers)


@metric(better="higher", family="pso", shown=False)
def normalised_diversity(factual: pd.DataFrame, answers: pd.DataFrame, problem: Problem) -> float | None:
    """``pso/diversity`` over ``pso/proximity``, in [0, inf), higher is better.

    PSO family, as in the paper's Table II. None with fewer than two answers or where all equal the factual.

    >>> from metrics._example import answers, factual, problem
    >>> round(normalised_diversity(factual, answers, problem), 9)  # 1.4 / 0.7
    2.0
    """
    between = over_pairs(mad_scaled(problem), problem.space, answers)
    away = over_answers(mad_scaled(problem), problem.space, factual, answers)
    return between / away if between is not None and away else None


@metric(better="higher", family="pso", range=(0.0, 1.0), shown=False)
def normalised_diversity_15(factual: pd.DataFrame, answers: pd.DataFrame, problem: Problem) -> float | None:
    """Mean over pairs of their distance over the sum of both distances to the factual, in [0, 1], higher is better.

    PSO family, the paper's equation (15), at most 1 by the triangle inequality. Pairs of which both equal the factual
    are left out; None where no pair is left.

    >>> from metrics._example import answers, factual, problem
    >>> round(normalised_diversity_15(factual, answers, problem), 9)  # 1.4 / (0.6 + 0.8)
    1.0
    """
    if len(answers) < 2:
        return None
    distance = mad_scaled(problem)
    away = distance(problem.space, factual, answers)
    first, second = np.triu_indices(len(answers), k=1)
    total = away[first] + away[second]
    defined = total > 0
    if not defined.any():
        return None
    ratios = pairwise(distance, problem.space, answers)[defined] / total[defined]
    return float(np.minimum(ratios, 1.0).mean())  # rounding alone may pass 1
