"""Whether the fitted model itself says what was wanted."""

from __future__ import annotations

import pandas as pd

from harness.core.metric import metric
from harness.core.problem import Problem


@metric(better="higher", family="mothilal", range=(0.0, 1.0), over="returned", shown=False)
def validity(factual: pd.DataFrame, answers: pd.DataFrame, problem: Problem) -> float | None:
    """Share of the answers that the model puts where the target asks, in [0, 1], higher is better.

    Mothilal family. An answer with a value that does not exist is not valid. None without answers.

    >>> from metrics._example import answers, factual, problem
    >>> validity(factual, answers, problem)  # an income of 80, not of 30, lies above the model's split at 50
    0.5
    """
    if not len(answers):
        return None
    coherent = answers.loc[[not faults for faults in problem.space.incoherent(answers)]]
    if not len(coherent):
        return 0.0
    typed = coherent.astype(problem.space.frame([]).dtypes.to_dict())  # what came as it came is of no column's type
    return float(problem.valid(typed).sum()) / len(answers)
