"""Nearest unlike neighbour: the closest training row that the model already classifies as desired."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import ClassVar

import numpy as np
import pandas as pd

from harness.certificate import proven
from harness.core.explanation import Answer, Explanation, Reason, Status
from harness.core.method import Deadline
from harness.core.objective import Objective, Term
from harness.core.problem import Problem
from methods.delta import check_delta, limited, refusal


@dataclass(frozen=True)
class Nearest:
    r"""Training row :math:`x_i` with :math:`h(x_i) \models \tilde y` and the least distance :math:`d(x_i, \hat x)`.

    Rows that differ from the factual in an immutable feature, or against a feature's actionability, are no candidates.
    Several counterfactuals are the next rows in order of distance, without repetition. The answer is the best among
    the training rows and carries no proof over the space: its status is FOUND.

    With ``delta`` a row is a candidate only if it is proven to stay valid whatever each weight of the model does within
    delta (``harness.certificate.weights``), exactly for linear models and networks of one hidden layer: RNCE [2]_.

    Parameters
    ----------
    distance
        ``gower``, ``l1`` or ``l0``, in scaled space.
    delta
        In [0, 1], in units of the model's weights; 0 for the model as it is.

    References
    ----------
    .. [1] Brughmans, D., P. Leyman, and D. Martens (2023). NICE: an algorithm for nearest instance counterfactual
       explanations. *Data Mining and Knowledge Discovery*.
    .. [2] Jiang, J., F. Leofante, A. Rago, and F. Toni (2024). Interval abstractions for robust counterfactual
       explanations. *Artificial Intelligence*.
    """

    deterministic: ClassVar[bool] = True
    takes_gaps: ClassVar[bool] = True

    distance: str = "gower"
    delta: float = 0.0

    def __post_init__(self) -> None:
        check_delta(self.delta)
        if self.distance not in {"gower", "l1", "l0"}:
            raise ValueError(f"distance is {self.distance!r}; allowed: gower, l1, l0.")

    def refuses(self, problem: Problem) -> str | None:
        return refusal(problem) if self.delta else None

    def objective(self, problem: Problem) -> Objective:
        return limited(Objective((Term(self.distance),)), problem, self.delta)

    def fit(self, problem: Problem) -> _Neighbours:
        unlike = problem.train.loc[problem.valid(problem.train)].drop_duplicates()
        if self.delta:
            unlike = unlike.loc[proven(problem.classifier, problem.target, unlike, self.delta)]
        return _Neighbours(problem, self.objective(problem), unlike)


class _Neighbours:
    def __init__(self, problem: Problem, objective: Objective, unlike: pd.DataFrame) -> None:
        self.problem, self.objective, self.unlike = problem, objective, unlike
        self.encoded = problem.space.encode(unlike)

    def explain(self, factual: pd.DataFrame, n: int, rng: np.random.Generator, deadline: Deadline) -> Explanation:
        space = self.problem.space
        inside = space.reached(factual, self.encoded) | ~space.changed(factual, self.unlike)
        candidates = self.unlike.loc[inside.all(axis=1)]
        cost = self.objective.evaluate(space, factual, candidates)
        ranked = np.argsort(cost, kind="stable")
        # what is reached may be a special code inside the bounds
        best = list(islice((i for i in ranked if not space.violations(factual, candidates.iloc[[i]])[0]), n))
        rows = candidates.iloc[best].to_dict("records")
        answers = tuple(Answer(Status.FOUND, row, objective=float(cost[i])) for row, i in zip(rows, best, strict=True))
        why = "no further training row is classified as desired and reachable"
        return Explanation(answers).padded(n, Answer(Status.GAVE_UP, reason=Reason.FINISHED, detail=why))
