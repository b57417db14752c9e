"""How many features stay as they are, or do not: the two published families count opposite sides."""

from __future__ import annotations

import numpy as np

from harness.core.asked import Asked
from harness.core.metric import metric, together
from metrics import _distances


@metric(better="higher", family="mothilal", range=(0.0, 1.0), shown=False)
@together
def sparsity(asked: Asked) -> np.ndarray:
    """Mean share of the features *kept*, in [0, 1], higher is better.

    Mothilal family: [1]_, as in [2]_, appendix B. None without answers.

    >>> from metrics._example import answers, factual, problem
    >>> round(sparsity(factual, answers, problem), 9)  # three of five kept, then one
    0.4

    References
    ----------
    .. [1] Mothilal, R. K., A. Sharma, and C. Tan (2020). Explaining machine learning classifiers through diverse
       counterfactual explanations. *FAT\\**. doi:10.1145/3351095.3372850.
    .. [2] Maragno, D., T. E. Röber, and I. Birbil (2022). Counterfactual explanations using optimization with
       constraint learning. *OPT 2022: Optimization for Machine Learning*.
    """
    return 1.0 - _distances.over_answers(_distances.share_changed, asked.problem.space, asked)


@metric(better="lower", family="pso", range=(0.0, 1.0), shown=False)
@together
def share_changed(asked: Asked) -> np.ndarray:
    """Mean share of the features *changed*, in [0, 1], lower is better.

    PSO family: (12), where p is a misprint for the number of answers, and (13) of [1]_, which calls it sparsity. None
    without answers.

    >>> from metrics._example import answers, factual, problem
    >>> round(share_changed(factual, answers, problem), 9)  # two of five changed, then four
    0.6

    References
    ----------
    .. [1] Shekhar, S., A. Salim, A. Bansode, V. Jinturkar, and A. Nayak (2023). A PSO based method to generate
       actionable counterfactuals for high dimensional data. arXiv:2311.12825.
    """
    return _distances.over_answers(_distances.share_changed, asked.problem.space, asked)
