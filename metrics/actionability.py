"""Whether the answers can be acted on at all."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from harness.core.asked import Asked
from harness.core.metric import metric, together


@metric(better="lower", family="actionability", range=(0.0, np.inf), over="returned", place=6)
@together
def violations(asked: Asked) -> np.ndarray:
    """Mean number of constraints broken, lower is better: features changed against actionability or bounds, relations.

    In [0, features + relations]. Of all that was returned and whose values exist. This project's definition. None
    without such an answer.

    >>> from metrics._example import answers, factual, problem
    >>> violations(factual, answers, problem)  # age may only increase; the second answer is ten years younger
    0.5
    """
    existing = _existing(asked)
    return existing.mean(_numbers(asked.problem.space.violations(existing.origins, existing.answers)))


@metric(better="lower", family="actionability", range=(0.0, np.inf), over="returned", shown=False)
@together
def relations(asked: Asked) -> np.ndarray:
    """Mean number of relations between features that are broken, lower is better.

    In [0, relations]; one that the factual breaks counts where it is broken further. Of all that was returned and
    whose values exist. This project's definition. None without such an answer, and without relations.

    >>> from dataclasses import replace
    >>> from metrics._example import SPACE, answers, factual, problem
    >>> related = replace(SPACE, constraints=("if education increases then age increases", "income <= 2 * age"))
    >>> relations(factual, answers, replace(problem, space=related))  # the second studied, and did not grow older
    0.5
    """
    existing, space = _existing(asked), asked.problem.space
    counts = _numbers(space.breaches(existing.origins, existing.answers)).astype(float)
    return existing.mean(counts if space.relations else np.full(len(counts), np.nan))


@metric(better="lower", family="actionability", range=(0.0, np.inf), over="returned", shown=False)
@together
def incoherent(asked: Asked) -> np.ndarray:
    """Mean number of features that hold no value of theirs (missing, unknown, fractional), lower is better.

    In [0, features]. This project's definition. None without answers.

    >>> from metrics._example import answers, factual, problem
    >>> incoherent(factual, answers, problem)
    0.0
    >>> incoherent(factual, answers.assign(age=[40.5, 20.0]), problem)
    0.5
    """
    return asked.mean(_numbers(asked.problem.space.incoherent(asked.answers)))


def _existing(asked: Asked) -> Asked:
    """The answers whose values exist, as decoded rows."""
    space = asked.problem.space
    existing = asked.where([not fault for fault in space.incoherent(asked.answers)])
    return replace(existing, answers=space.frame(existing.answers.to_dict("records")))


def _numbers(faults: list[list[str]]) -> np.ndarray:
    return np.array([len(fault) for fault in faults])
