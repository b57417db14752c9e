"""Whether the fitted model itself says what was wanted."""

from __future__ import annotations

import numpy as np

from harness.core.asked import Asked
from harness.core.metric import metric, together


@metric(better="higher", family="mothilal", range=(0.0, 1.0), over="returned", shown=False)
@together
def validity(asked: Asked) -> np.ndarray:
    """Share of the answers that the model puts where the target asks, in [0, 1], higher is better.

    Mothilal family: Mothilal et al. (2020), as in Maragno et al. (2022), appendix B. An answer with a value that does
    not exist is not valid. None without answers.

    >>> from metrics._example import answers, factual, problem
    >>> validity(factual, answers, problem)  # an income of 80, not of 30, lies above the model's split at 50
    0.5
    """
    space, found = asked.problem.space, np.zeros(len(asked.answers), dtype=bool)
    existing = np.array([not faults for faults in space.incoherent(asked.answers)], dtype=bool)
    typed = asked.answers.loc[existing].astype(space.frame([]).dtypes.to_dict())  # what came is of no column's type
    found[existing] = asked.problem.valid(typed)
    return asked.mean(found)
