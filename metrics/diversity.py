"""How much the answers to one factual differ from each other; None with fewer than two."""

from __future__ import annotations

import numpy as np

from harness.core.asked import Asked
from harness.core.metric import metric, together
from metrics._distances import (
    absolute,
    categories,
    gower,
    mad_scaled,
    numbers,
    over_answers,
    over_pairs,
    share_changed,
)


@metric(better="higher", family="mothilal", range=(0.0, 1.0), shown=False)
@together
def categorical_diversity(asked: Asked) -> np.ndarray:
    """Mean over pairs of the share of categorical features that differ, in [0, 1], higher is better.

    Mothilal family: Mothilal et al. (2020), as in Maragno et al. (2022), appendix B; binary and ordinal features are
    categorical too. None with fewer than two answers or no such feature.

    >>> from metrics._example import answers, factual, problem
    >>> categorical_diversity(factual, answers, problem)  # all three differ
    1.0
    """
    return over_pairs(share_changed, categories(asked.problem.space), asked)


@metric(better="higher", family="mothilal", range=(0.0, np.inf), shown=False)
@together
def continuous_diversity(asked: Asked) -> np.ndarray:
    """Mean over pairs of the summed differences of numbers, original units, in [0, inf), higher is better.

    Mothilal family: Mothilal et al. (2020), in original units as in Maragno et al. (2022), appendix B. None with fewer
    than two answers or no continuous or integer feature.

    >>> from metrics._example import answers, factual, problem
    >>> continuous_diversity(factual, answers, problem)  # incomes differ by 50, ages by 20
    70.0
    """
    return over_pairs(absolute, numbers(asked.problem.space), asked)


@metric(better="higher", family="mothilal", range=(0.0, 1.0), shown=False)
@together
def sparsity_diversity(asked: Asked) -> np.ndarray:
    """Mean over pairs of the share of all features that differ, in [0, 1], higher is better.

    Mothilal family: Mothilal et al. (2020), as in Maragno et al. (2022), appendix B. None with fewer than two answers.

    >>> from metrics._example import answers, factual, problem
    >>> sparsity_diversity(factual, answers, problem)  # all five differ
    1.0
    """
    return over_pairs(share_changed, asked.problem.space, asked)


@metric(better="higher", family="diversity", range=(0.0, np.inf), criterion="diversity", place=5)
@together
def pairwise_gower(asked: Asked) -> np.ndarray:
    """Mean over pairs of Gower's distance, as ``metrics.proximity.gower`` has it, in [0, inf), higher is better.

    This project's definition: a mean over pairs, as in Mothilal et al. (2020), of the distance of Gower (1971). None
    with fewer than two answers.

    >>> from metrics._example import answers, factual, problem
    >>> round(pairwise_gower(factual, answers, problem), 9)  # three are half a range apart, two differ
    0.7
    """
    return over_pairs(gower, asked.problem.space, asked)


@metric(better="higher", family="pso", range=(0.0, np.inf), shown=False)
@together
def diversity(asked: Asked) -> np.ndarray:
    """Mean over pairs of the distance of ``pso/proximity``, in [0, inf), higher is better.

    PSO family: (14) of Shekhar et al. (2023). Numbers count by difference / MAD, any other feature by 0 or 1. None with
    fewer than two answers.

    >>> from metrics._example import answers, factual, problem
    >>> round(diversity(factual, answers, problem), 9)  # (50/25 + 20/10 + 3 * 1) / 5
    1.4
    """
    return over_pairs(mad_scaled(asked.problem), asked.problem.space, asked)


@metric(better="higher", family="pso", range=(0.0, np.inf), shown=False)
@together
def normalised_diversity(asked: Asked) -> np.ndarray:
    """``pso/diversity`` over ``pso/proximity``, in [0, inf), higher is better.

    PSO family: of one question, what Table II of Shekhar et al. (2023) gives of means, mean diversity over mean
    proximity. None with fewer than two answers or where all equal the factual.

    >>> from metrics._example import answers, factual, problem
    >>> round(normalised_diversity(factual, answers, problem), 9)  # 1.4 / 0.7
    2.0
    """
    distance, space = mad_scaled(asked.problem), asked.problem.space
    away = over_answers(distance, space, asked)
    return over_pairs(distance, space, asked) / np.where(away == 0, np.nan, away)


@metric(better="higher", family="pso", range=(0.0, 1.0), shown=False)
@together
def normalised_diversity_15(asked: Asked) -> np.ndarray:
    """Mean over pairs of their distance over the sum of both distances to the factual, in [0, 1], higher is better.

    PSO family: (15) of Shekhar et al. (2023), at most 1 by the triangle inequality. Pairs of which both equal the
    factual are left out; None where no pair is left.

    >>> from metrics._example import answers, factual, problem
    >>> round(normalised_diversity_15(factual, answers, problem), 9)  # 1.4 / (0.6 + 0.8)
    1.0
    """
    distance, space = mad_scaled(asked.problem), asked.problem.space
    first, second = asked.pairs
    total = distance(space, second.origins, first) + distance(space, second.origins, second.answers)
    defined = total > 0
    ratios = distance(space, first, second.answers)[defined] / total[defined]
    return second.where(defined).mean(np.minimum(ratios, 1.0))  # rounding alone may pass 1
