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

    Mothilal family: Mothilal et al. (2020), as in Maragno et al. (2022), appendix B. None without answers.

    >>> from metrics._example import answers, factual, problem
    >>> round(sparsity(factual, answers, problem), 9)  # three of five kept, then one
    0.4
    """
    return 1.0 - _distances.over_answers(_distances.share_changed, asked.problem.space, asked)


@metric(better="lower", family="pso", range=(0.0, 1.0), shown=False)
@together
def share_changed(asked: Asked) -> np.ndarray:
    """Mean share of the features *changed*, in [0, 1], lower is better.

    PSO family: (12), where p is a misprint for the number of answers, and (13) of Shekhar et al. (2023), who call it
    sparsity. None without answers.

    >>> from metrics._example import answers, factual, problem
    >>> round(share_changed(factual, answers, problem), 9)  # two of five changed, then four
    0.6
    """
    return _distances.over_answers(_distances.share_changed, asked.problem.space, asked)
