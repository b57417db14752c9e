"""Factuals of which the model already says what is wanted, asked about all the same, as some papers do."""

from __future__ import annotations

from dataclasses import dataclass, replace
from numbers import Real
from typing import Any

import numpy as np
import pandas as pd

from harness.core.explanation import Answer, Explanation, Reason, Status
from harness.core.gaps import missing
from harness.core.gaps import same as equal
from harness.core.method import Deadline, Explainer, Method, fit
from harness.core.objective import Objective
from harness.core.problem import Problem
from harness.core.space import Space

LEAVE_OUT, ASK = "leave_out", "ask"  # what becomes of such factuals
SMALLEST = 0.5e-4  # of a number's range: nearer values are the same to four decimals
SPENT = Answer(Status.GAVE_UP, reason=Reason.FINISHED, detail="the method gave no more than copies of the factual")


@dataclass(frozen=True)
class WithoutCopies:
    """A method, asked for one counterfactual more about some factuals, and less the copies of the factual.

    The best answer about such a factual is the factual itself, which is no counterfactual [1]_. What is proven of the
    others is as the method proves it of second and later answers.

    Parameters
    ----------
    satisfied
        Ids of the factuals of which the model already says what is wanted.

    References
    ----------
    .. [1] Maragno, D., T. E. Röber, and I. Birbil (2022). Counterfactual explanations using optimization with
       constraint learning. *OPT 2022: Optimization for Machine Learning*. Its code drops from a solver's pool what
       equals the factual to four decimals in scaled units.
    """

    method: Method
    satisfied: frozenset[Any]

    @property
    def takes_gaps(self) -> bool:
        return bool(getattr(self.method, "takes_gaps", False))

    @property
    def shown(self) -> str:
        """What messages call it: as the method."""
        return type(self.method).__name__

    def refuses(self, problem: Problem) -> str | None:
        return self.method.refuses(problem)

    def objective(self, problem: Problem) -> Objective | None:
        return self.method.objective(problem)

    def fit(self, problem: Problem) -> Explainer:
        return _Explainer(self.method.fit(problem), self.satisfied, problem.space)

    def fit_within(self, problem: Problem, deadline: Deadline) -> Explainer:
        return _Explainer(fit(self.method, problem, deadline), self.satisfied, problem.space)


@dataclass(frozen=True)
class _Explainer:
    explainer: Explainer
    satisfied: frozenset[Any]
    space: Space

    def __getattr__(self, name: str) -> Any:
        return getattr(self.explainer, name)  # the optional ones

    def explain(self, factual: pd.DataFrame, n: int, rng: np.random.Generator, deadline: Deadline) -> Explanation:
        if factual.index[0] not in self.satisfied:
            return self.explainer.explain(factual, n, rng, deadline)
        found, origin = self.explainer.explain(factual, n + 1, rng, deadline), factual.iloc[0].to_dict()
        others = tuple(a for a in found.answers if a.row is None or not _copy(self.space, origin, a.row))
        return replace(found, answers=others).padded(n, SPENT)


def _copy(space: Space, origin: dict[str, Any], row: dict[str, Any]) -> bool:
    """Whether a row equals the factual: categories exactly, numbers to four decimals of their range."""

    def same(name: str) -> bool:
        before, after, feature = origin[name], row.get(name), space[name]
        if feature.numeric and isinstance(after, Real) and not (missing(after) or missing(before)):
            return bool(abs(float(after) - float(before)) < SMALLEST * feature.range)
        return equal(after, before)

    return all(map(same, space.names))
