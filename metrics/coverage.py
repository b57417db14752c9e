"""How much of what was asked for came back; defined without answers too, where an average would hide a failure."""

from __future__ import annotations

import pandas as pd

from harness.core.metric import metric
from harness.core.problem import Problem


@metric(better="higher", family="coverage", range=(0.0, 1.0), shown=False)
def success_rate(factual: pd.DataFrame, answers: pd.DataFrame, problem: Problem) -> float:
    """1 where at least one answer is valid, else 0, higher is better.

    Averaged over factuals this is the coverage per factual of the PSO family. 0 without answers.

    >>> from metrics._example import answers, factual, problem
    >>> success_rate(factual, answers, problem)
    1.0
    >>> success_rate(factual, answers.iloc[:0], problem)
    0.0
    """
    return float(len(answers) > 0 and problem.valid(answers).any())


@metric(better="higher", family="coverage", shown=False)
def valid(factual: pd.DataFrame, answers: pd.DataFrame, problem: Problem) -> float:
    """Number of distinct valid answers, in [0, inf), higher is better.

    Over the number requested, which only the caller knows, this is the coverage per answer of the PSO family. 0
    without answers.

    >>> from metrics._example import answers, factual, problem
    >>> valid(factual, answers.iloc[[0, 0, 1]], problem)  # one valid answer, given twice, and an invalid one
    1.0
    """
    distinct = answers.drop_duplicates(list(problem.space.names))
    return float(problem.valid(distinct).sum()) if len(distinct) else 0.0
