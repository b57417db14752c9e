"""What a method answers, failures included."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from harness.core.tolerances import OPTIMALITY_GAP, READING


class Status(StrEnum):
    """How an answer came about. Only OPTIMAL and FOUND carry a counterfactual."""

    OPTIMAL = "OPTIMAL"  # a point, and a proof that none is better
    FOUND = "FOUND"  # a point, no proof
    INFEASIBLE = "INFEASIBLE"  # a proof that there is no (further) point
    GAVE_UP = "GAVE_UP"  # neither point nor proof, within the limits
    UNSUPPORTED = "UNSUPPORTED"  # the question does not fit the method
    FAILED = "FAILED"  # a fault, of the method or its libraries

    @property
    def found(self) -> bool:
        return self in {Status.OPTIMAL, Status.FOUND}


class Reason(StrEnum):
    """Why an answer ended as it did."""

    PROOF = "proof"
    FINISHED = "finished"
    TIME_LIMIT = "time limit"
    MEMORY = "memory"
    CRASH = "crash"
    REFUSED = "refused"


def closed(objective: float | None, bound: float | None) -> bool:
    """Whether a lower bound proves that an objective is the least, but for ``OPTIMALITY_GAP``.

    >>> closed(2.0, 2.0), closed(2.0, 1.9), closed(2.0, None), closed(float("nan"), float("nan"))
    (True, False, False, False)
    """
    if objective is None or bound is None:
        return False
    return bool(objective - bound <= (OPTIMALITY_GAP + READING) * max(1.0, abs(objective)))


def gap(objective: float | None, bound: float | None) -> float | None:
    """Objective minus bound, at least 0; None where either is missing."""
    return None if objective is None or bound is None else max(objective - bound, 0.0)


@dataclass(frozen=True)
class Answer:
    """One counterfactual, or the reason why there is none.

    Parameters
    ----------
    row
        Decoded values by feature name; None exactly when the status carries no point.
    objective, bound
        Of what the method claims to minimise; the bound is a proven lower one. None where it claims nothing.
    region
        For robust methods: the least and greatest value per feature that stay valid, in original units.
    detail
        A sentence for a person: why nothing was found, what was refused.
    """

    status: Status
    row: dict[str, Any] | None = None
    reason: Reason = Reason.FINISHED
    objective: float | None = None
    bound: float | None = None
    region: dict[str, tuple[float, float]] | None = None
    detail: str = ""

    def __post_init__(self) -> None:
        if str(self.status) not in {*Status}:
            raise ValueError(f"an answer has the status {self.status!r}; give one of Status: {', '.join(Status)}.")
        object.__setattr__(self, "status", Status(self.status))  # its name will do
        if self.status.found != (self.row is not None):
            raise ValueError(f"an answer with status {self.status} {'needs' if self.status.found else 'has no'} row.")

    @property
    def gap(self) -> float | None:
        """Objective minus bound, at least 0; None where either is missing."""
        return gap(self.objective, self.bound)


@dataclass(frozen=True)
class Explanation:
    """The answers for one factual: exactly as many as were asked for, best first.

    Parameters
    ----------
    conflict
        Where the question is infeasible: names of constraint groups that cannot hold together.
    trace
        What the method wants to keep of its search, as rows of plain values.
    """

    answers: tuple[Answer, ...]
    conflict: tuple[str, ...] = ()
    trace: tuple[dict[str, Any], ...] = ()

    @classmethod
    def none(cls, count: int, status: Status, reason: Reason, detail: str = "") -> Explanation:
        """``count`` answers without a point."""
        return cls(tuple(Answer(status, reason=reason, detail=detail) for _ in range(count)))

    def padded(self, count: int, filler: Answer) -> Explanation:
        """This explanation with ``filler`` in place of each answer missing up to ``count``."""
        missing = count - len(self.answers)
        return replace(self, answers=self.answers[:count] + (filler,) * missing)


@dataclass(frozen=True)
class GroupExplanation:
    r"""A few counterfactuals for many factuals.

    Parameters
    ----------
    points
        The counterfactuals. The row of each serves all factuals assigned to it: outside the features ``changed`` it
        equals every one of them.
    assignment
        Index into ``points`` by factual id.
    bound
        Proven lower bound on the number of points that serve all but the ``uncoverable``.
    changed
        Per point, the features on which at least one of the factuals assigned to it differs from it.
    status
        OPTIMAL: proven that no fewer points serve as many; FOUND: not proven; INFEASIBLE: proven that none can be
        served; GAVE_UP: no points.
    total_change
        Over all factuals assigned, the number of features in which each differs from its point,
        :math:`\sum_i |\{l : \hat x_{il} \ne x^{k(i)}_l\}|`. None where the method does not count it.
    total_change_bound
        Proven lower bound on the total change of serving the same factuals by at most as many points. None where there
        is none.
    uncoverable
        Ids of factuals that no counterfactual within the limits can serve.
    undecided
        Ids of factuals for which it stayed open whether one can.
    trace
        What the method wants to keep of its search, as rows of plain values.
    """

    points: tuple[Answer, ...]
    assignment: dict[Any, int] = field(default_factory=dict)
    bound: float | None = None
    changed: tuple[tuple[str, ...], ...] = ()
    status: Status = Status.FOUND
    total_change: int | None = None
    total_change_bound: float | None = None
    uncoverable: tuple[Any, ...] = ()
    undecided: tuple[Any, ...] = ()
    trace: tuple[dict[str, Any], ...] = ()

    def members(self, point: int) -> tuple[Any, ...]:
        """Ids of the factuals assigned to a point."""
        return tuple(factual for factual, place in self.assignment.items() if place == point)

    @property
    def least_change(self) -> Status:
        """OPTIMAL where no other way to serve these factuals by as many points is proven to change less; else FOUND."""
        change, bound = self.total_change, self.total_change_bound
        return Status.OPTIMAL if change is not None and bound is not None and bound >= change else Status.FOUND
