"""How much of what was asked for came back; defined without answers too, where an average would hide a failure."""

from __future__ import annotations

import numpy as np

from harness.core.asked import Asked
from harness.core.metric import metric, together


@metric(better="higher", family="coverage", range=(0.0, 1.0), shown=False)
@together
def success_rate(asked: Asked) -> np.ndarray:
    """1 where at least one answer is valid, else 0, higher is better.

    Averaged over factuals this is the coverage per factual of the PSO family (Shekhar et al. (2023), section IV-D). 0
    without answers.

    >>> from metrics._example import answers, factual, problem
    >>> success_rate(factual, answers, problem)
    1.0
    >>> success_rate(factual, answers.iloc[:0], problem)
    0.0
    """
    return (asked.where(asked.problem.valid(asked.answers)).counts > 0).astype(float)


@metric(better="higher", family="coverage", range=(0.0, np.inf), shown=False)
@together
def valid(asked: Asked) -> np.ndarray:
    """Number of distinct valid answers, in [0, inf), higher is better.

    Over the number requested, which only the caller knows, this is the coverage per answer of the PSO family (Shekhar
    et al. (2023), section IV-D). 0 without answers.

    >>> from metrics._example import answers, factual, problem
    >>> valid(factual, answers.iloc[[0, 0, 1]], problem)  # one valid answer, given twice, and an invalid one
    1.0
    """
    rows = asked.answers[list(asked.problem.space.names)]
    distinct = asked.where(~rows.set_axis(range(rows.shape[1]), axis=1).assign(question=asked.question).duplicated())
    return distinct.where(asked.problem.valid(distinct.answers)).counts.astype(float)
