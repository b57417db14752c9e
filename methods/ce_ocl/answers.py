"""Answers without a counterfactual, the same whichever engine gives them, and by what answers are compared."""

from __future__ import annotations

import math
import sys

from harness.core.explanation import Answer, Reason, Status
from harness.core.objective import tolerance


def infeasible(further: bool) -> Answer:
    """A proof that there is no counterfactual; ``further``: none besides those found before."""
    beyond = " further from those before it" if further else ""
    detail = f"no point within the features' actionability, bounds and sparsity is classified as wanted{beyond}"
    return Answer(Status.INFEASIBLE, None, Reason.PROOF, detail=detail)


def gave_up(reason: Reason) -> Answer:
    """Neither a counterfactual nor a proof that there is none."""
    return Answer(Status.GAVE_UP, None, reason, detail="no counterfactual was found within the limits")


def cost_of(answer: Answer) -> float:
    """The objective of an answer; inf without one."""
    return math.inf if answer.objective is None else answer.objective


def proves(bound: float, value: float, distance: float, squared: bool) -> bool:
    """Whether a bound proves an objective: up to the tolerance of its ``distance``, in which changes have no part."""
    return value - bound <= tolerance(distance, squared) + 4 * sys.float_info.epsilon * abs(value)
