"""How many features stay as they are, or do not: the two published families count opposite sides."""

from __future__ import annotations

import pandas as pd

from harness.core.metric import metric
from harness.core.problem import Problem
from metrics import _distances


@metric(better="higher", family="mothilal", range=(0.0, 1.0), shown=False)
def sparsity(factual: pd.DataFrame, answers: pd.DataFrame, problem: Problem) -> float | None:
    """Mean share of the features *kept*, in [0, 1], higher is better.

    Mothilal family. None without answers.

    >>> from metrics._example import answers, factual, problem
    >>> round(sparsity(factual, answers, problem), 9)  # three of five kept, then one
    0.4
    """
    changed = _distances.over_answers(_distances.share_changed, problem.space, factual, answers)
    return None if changed is None else 1.0 - changed


@metric(better="lower", family="pso", range=(0.0, 1.0), shown=False)
def share_changed(factual: pd.DataFrame, answers: pd.DataFrame, problem: Problem) -> float | None:
    """Mean share of the features *changed*, in [0, 1], lower is better.

    PSO family, whose paper calls it sparsity. None without answers.

    >>> from metrics._example import answers, factual, problem
    >>> round(share_changed(factual, answers, problem), 9)  # two of five changed, then four
    0.6
    """
    return _distances.over_answers(_distances.share_changed, problem.space, factual, answers)
