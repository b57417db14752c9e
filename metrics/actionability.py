"""Whether the answers can be acted on at all."""

from __future__ import annotations

import numpy as np

from harness.core.asked import Asked
from harness.core.metric import metric, together


@metric(better="lower", family="actionability", over="returned", place=6)
@together
def violations(asked: Asked) -> np.ndarray:
    """Mean number of features changed against actionability or bounds, in [0, features], lower is better.

    Of all that was returned and whose values exist. None without such an answer.

    >>> from metrics._example import answers, factual, problem
    >>> violations(factual, answers, problem)  # age may only increase; the second answer is ten years younger
    0.5
    """
    space = asked.problem.space
    existing = asked.where([not fault for fault in space.incoherent(asked.answers)])
    rows = space.frame(existing.answers.to_dict("records"))
    return existing.mean(_numbers(space.violations(existing.origins, rows)))


@metric(better="lower", family="actionability", over="returned", shown=False)
@together
def incoherent(asked: Asked) -> np.ndarray:
    """Mean number of features that hold no value of theirs (missing, unknown, fractional), lower is better.

    In [0, features]. None without answers.

    >>> from metrics._example import answers, factual, problem
    >>> incoherent(factual, answers, problem)
    0.0
    >>> incoherent(factual, answers.assign(age=[40.5, 20.0]), problem)
    0.5
    """
    return asked.mean(_numbers(asked.problem.space.incoherent(asked.answers)))


def _numbers(faults: list[list[str]]) -> np.ndarray:
    return np.array([len(fault) for fault in faults])
