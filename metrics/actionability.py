"""Whether the answers can be acted on at all."""

from __future__ import annotations

import numpy as np
import pandas as pd

from harness.core.metric import metric
from harness.core.problem import Problem


@metric(better="lower", family="actionability", over="returned", place=6)
def violations(factual: pd.DataFrame, answers: pd.DataFrame, problem: Problem) -> float | None:
    """Mean number of features changed against actionability or bounds, in [0, features], lower is better.

    Of all that was returned and whose values exist. None without such an answer.

    >>> from metrics._example import answers, factual, problem
    >>> violations(factual, answers, problem)  # age may only increase; the second answer is ten years younger
    0.5
    """
    known = [not fault for fault in problem.space.incoherent(answers)]
    rows = problem.space.frame(answers.loc[known].to_dict("records"))
    return _mean_faults(problem.space.violations(factual, rows))


@metric(better="lower", family="actionability", over="returned", shown=False)
def incoherent(factual: pd.DataFrame, answers: pd.DataFrame, problem: Problem) -> float | None:
    """Mean number of features that hold no value of theirs (missing, unknown, fractional), lower is better.

    In [0, features]. None without answers.

    >>> from metrics._example import answers, factual, problem
    >>> incoherent(factual, answers, problem)
    0.0
    >>> incoherent(factual, answers.assign(age=[40.5, 20.0]), problem)
    0.5
    """
    return _mean_faults(problem.space.incoherent(answers))


def _mean_faults(faults: list[list[str]]) -> float | None:
    return float(np.mean([len(fault) for fault in faults])) if faults else None
