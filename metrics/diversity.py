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

    Mothilal family: [1]_, as in [2]_, appendix B; binary and ordinal features are categorical too. None with fewer
    than two answers or no such feature.

    >>> from metrics._example import answers, factual, problem
    >>> categorical_diversity(factual, answers, problem)  # all three differ
    1.0

    References
    ----------
    .. [1] Mothilal, R. K., A. Sharma, and C. Tan (2020). Explaining machine learning classifiers through diverse
       counterfactual explanations. *FAT\\**. doi:10.1145/3351095.3372850.
    .. [2] Maragno, D., T. E. Röber, and I. Birbil (2022). Counterfactual explanations using optimization with
       constraint learning. *OPT 2022: Optimization for Machine Learning*.
    """
    return over_pairs(share_changed, categories(asked.problem.space), asked)


@metric(better="higher", family="mothilal", shown=False)
@together
def continuous_diversity(asked: Asked) -> np.ndarray:
    """Mean over pairs of the summed differences of numbers, original units, in [0, inf), higher is better.

    Mothilal family: [1]_, in original units as in [2]_, appendix B. None with fewer than two answers or no
    continuous or integer feature.

    >>> from metrics._example import answers, factual, problem
    >>> continuous_diversity(factual, answers, problem)  # incomes differ by 50, ages by 20
    70.0

    References
    ----------
    .. [1] Mothilal, R. K., A. Sharma, and C. Tan (2020). Explaining machine learning classifiers through diverse
       counterfactual explanations. *FAT\\**. doi:10.1145/3351095.3372850.
    .. [2] Maragno, D., T. E. Röber, and I. Birbil (2022). Counterfactual explanations using optimization with
       constraint learning. *OPT 2022: Optimization for Machine Learning*.
    """
    return over_pairs(absolute, numbers(asked.problem.space), asked)


@metric(better="higher", family="mothilal", range=(0.0, 1.0), shown=False)
@together
def sparsity_diversity(asked: Asked) -> np.ndarray:
    """Mean over pairs of the share of all features that differ, in [0, 1], higher is better.

    Mothilal family: [1]_, as in [2]_, appendix B. None with fewer than two answers.

    >>> from metrics._example import answers, factual, problem
    >>> sparsity_diversity(factual, answers, problem)  # all five differ
    1.0

    References
    ----------
    .. [1] Mothilal, R. K., A. Sharma, and C. Tan (2020). Explaining machine learning classifiers through diverse
       counterfactual explanations. *FAT\\**. doi:10.1145/3351095.3372850.
    .. [2] Maragno, D., T. E. Röber, and I. Birbil (2022). Counterfactual explanations using optimization with
       constraint learning. *OPT 2022: Optimization for Machine Learning*.
    """
    return over_pairs(share_changed, asked.problem.space, asked)


@metric(better="higher", family="diversity", criterion="diversity", place=5)
@together
def pairwise_gower(asked: Asked) -> np.ndarray:
    """Mean over pairs of Gower's distance, as ``metrics.proximity.gower`` has it, in [0, inf), higher is better.

    This project's definition: a mean over pairs, as in [1]_, of the distance of [2]_. None with fewer than two answers.

    >>> from metrics._example import answers, factual, problem
    >>> round(pairwise_gower(factual, answers, problem), 9)  # three are half a range apart, two differ
    0.7

    References
    ----------
    .. [1] Mothilal, R. K., A. Sharma, and C. Tan (2020). Explaining machine learning classifiers through diverse
       counterfactual explanations. *FAT\\**. doi:10.1145/3351095.3372850.
    .. [2] Gower, J. C. (1971). A general coefficient of similarity and some of its properties. *Biometrics* 27(4).
    """
    return over_pairs(gower, asked.problem.space, asked)


@metric(better="higher", family="pso", shown=False)
@together
def diversity(asked: Asked) -> np.ndarray:
    """Mean over pairs of the distance of ``pso/proximity``, in [0, inf), higher is better.

    PSO family: (14) of [1]_. Numbers count by difference / MAD, any other feature by 0 or 1. None with fewer than two
    answers.

    >>> from metrics._example import answers, factual, problem
    >>> round(diversity(factual, answers, problem), 9)  # (50/25 + 20/10 + 3 * 1) / 5
    1.4

    References
    ----------
    .. [1] Shekhar, S., A. Salim, A. Bansode, V. Jinturkar, and A. Nayak (2023). A PSO based method to generate
       actionable counterfactuals for high dimensional data. arXiv:2311.12825.
    """
    return over_pairs(mad_scaled(asked.problem), asked.problem.space, asked)


@metric(better="higher", family="pso", shown=False)
@together
def normalised_diversity(asked: Asked) -> np.ndarray:
    """``pso/diversity`` over ``pso/proximity``, in [0, inf), higher is better.

    PSO family, as in Table II of [1]_. None with fewer than two answers or where all equal the factual.

    >>> from metrics._example import answers, factual, problem
    >>> round(normalised_diversity(factual, answers, problem), 9)  # 1.4 / 0.7
    2.0

    References
    ----------
    .. [1] Shekhar, S., A. Salim, A. Bansode, V. Jinturkar, and A. Nayak (2023). A PSO based method to generate
       actionable counterfactuals for high dimensional data. arXiv:2311.12825.
    """
    distance, space = mad_scaled(asked.problem), asked.problem.space
    away = over_answers(distance, space, asked)
    return over_pairs(distance, space, asked) / np.where(away == 0, np.nan, away)


@metric(better="higher", family="pso", range=(0.0, 1.0), shown=False)
@together
def normalised_diversity_15(asked: Asked) -> np.ndarray:
    """Mean over pairs of their distance over the sum of both distances to the factual, in [0, 1], higher is better.

    PSO family: (15) of [1]_, at most 1 by the triangle inequality. Pairs of which both equal the factual are left out;
    None where no pair is left.

    >>> from metrics._example import answers, factual, problem
    >>> round(normalised_diversity_15(factual, answers, problem), 9)  # 1.4 / (0.6 + 0.8)
    1.0

    References
    ----------
    .. [1] Shekhar, S., A. Salim, A. Bansode, V. Jinturkar, and A. Nayak (2023). A PSO based method to generate
       actionable counterfactuals for high dimensional data. arXiv:2311.12825.
    """
    distance, space = mad_scaled(asked.problem), asked.problem.space
    first, second = asked.pairs
    total = distance(space, second.origins, first) + distance(space, second.origins, second.answers)
    defined = total > 0
    ratios = distance(space, first, second.answers)[defined] / total[defined]
    return second.where(defined).mean(np.minimum(ratios, 1.0))  # rounding alone may pass 1
