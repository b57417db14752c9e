"""PROPLACE: the closest point that withstands changes of the model, among people like oneself (Jiang et al.)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pandas as pd

from harness.certificate import proven
from harness.core.explanation import Answer, Explanation, Reason, Status
from harness.core.method import Deadline
from harness.core.numbers import check_counts
from harness.core.objective import Objective, Term
from harness.core.problem import Problem
from harness.core.target import Label
from methods.ce_ocl.method import CeOcl
from methods.delta import check_delta, limited, pessimistic, signs, unbounded

PROVEN = "proven nearest within the hull of the factual and its nearest rows that withstand delta"
NOTHING = (
    "nothing within the hull of the factual and its nearest rows that withstand delta is reachable and withstands it"
)


@dataclass(frozen=True)
class Proplace:
    r"""Closest point of the factual's plausible region that every model with weights within :math:`\delta` accepts.

    .. math::
        \min_x \;       & \|x - \hat x\|_1 \\
        \text{s.t. } \; & x \in \operatorname{conv}(\{\hat x\} \cup N_k(\hat x)) \\
                        & h_{\theta'}(x) \models \tilde y \text{ for all } \|\theta' - \theta\|_\infty \le \delta

    This is the robust problem of [1]_: the first constraint is its plausible region, the second Δ-robustness [2]_.
    :math:`N_k(\hat x)` are the k nearest training rows that meet the second one themselves and that the factual may
    become: of others, which differ in what may not change, a hull need not hold a single permitted point. The paper
    alternates between a program over x and one over :math:`\theta'`; here the worst model is embedded in one program,
    that of ``CeOcl`` with ``delta`` and a hull, which has the same optimum. With several hidden layers that model is a
    bound, the sums of intervals by which the paper judges, too: the answer withstands delta, and so may a nearer point.
    It is proven within the region, which is another for each factual, so that nothing is claimed over the space: the
    status is FOUND, and ``detail`` says what is proven.

    Parameters
    ----------
    neighbours
        k >= 1.
    delta
        In [0, 1], in units of the model's weights.

    References
    ----------
    .. [1] Jiang, J., J. Lan, F. Leofante, A. Rago, and F. Toni (2023). Provably robust and plausible counterfactual
       explanations for neural networks via robust optimisation. *ACML*.
    .. [2] Jiang, J., F. Leofante, A. Rago, and F. Toni (2023). Formalising the robustness of counterfactual
       explanations for neural networks. *AAAI 37*.
    """

    deterministic: ClassVar[bool] = True

    neighbours: int = 10
    delta: float = 0.01

    def __post_init__(self) -> None:
        check_delta(self.delta)
        check_counts(self, 1, "neighbours")

    @property
    def program(self) -> CeOcl:
        """What is solved, of a problem whose reference rows span the region."""
        return CeOcl(distance="l1", hull="hard", delta=self.delta)

    def refuses(self, problem: Problem) -> str | None:
        if not isinstance(problem.target, Label):
            return "PROPLACE is run for a wanted class only; set 'desired' to a class."
        why = unbounded(problem)
        return why or CeOcl(distance="l1").refuses(pessimistic(problem, self.delta, signs(problem)))

    def objective(self, problem: Problem) -> Objective:
        return limited(Objective((Term("l1"),)), problem, self.delta)

    def fit(self, problem: Problem) -> _Regions:
        return _Regions(self, problem)


class _Regions:
    def __init__(self, method: Proplace, problem: Problem) -> None:
        self.method, self.problem = method, problem
        robust = problem.train.loc[problem.valid(problem.train)].drop_duplicates()
        self.robust = robust.loc[proven(problem.classifier, problem.target, robust, method.delta)]
        self.encoded = problem.space.encode(self.robust)
        self.nearness = Objective((Term("l1"),))

    def explain(self, factual: pd.DataFrame, n: int, rng: np.random.Generator, deadline: Deadline) -> Explanation:
        if deadline.passed:
            return Explanation.none(n, Status.GAVE_UP, Reason.TIME_LIMIT)
        region = self.region(factual)
        if len(region) == 1:
            why = "no reachable training row is classified as desired by every model within delta"
            return Explanation.none(n, Status.GAVE_UP, Reason.FINISHED, why)
        target = self.problem.target
        assert isinstance(target, Label)
        labels = np.full(len(region), target.value, dtype=object)
        posed = replace(self.problem, reference=region, reference_labels=labels)
        found = self.method.program.fit(posed).explain(factual, n, rng, deadline)
        return Explanation(tuple(map(_within, found.answers)))

    def region(self, factual: pd.DataFrame) -> pd.DataFrame:
        """The rows that span the plausible region of a factual: itself and its nearest robust rows, decoded."""
        space = self.problem.space
        inside = space.reached(factual, self.encoded) | ~space.changed(factual, self.robust)
        reached = self.robust.loc[inside.all(axis=1)]
        nearest = np.argsort(self.nearness.evaluate(space, factual, reached), kind="stable")[: self.method.neighbours]
        return pd.concat([factual, reached.iloc[nearest]], ignore_index=True)


def _within(answer: Answer) -> Answer:
    """What the program says of a region, as an answer over the space: without a bound, and without a proof."""
    if answer.row is not None:
        detail = PROVEN if answer.status is Status.OPTIMAL else answer.detail
        return replace(answer, status=Status.FOUND, bound=None, detail=detail)
    if answer.status is Status.INFEASIBLE:
        return replace(answer, status=Status.GAVE_UP, reason=Reason.FINISHED, detail=NOTHING)
    return answer
