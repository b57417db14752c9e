"""What a search for a robust counterfactual ends with."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from harness.core.gaps import same
from harness.core.method import Deadline
from harness.core.tolerances import OPTIMALITY_GAP


@dataclass(frozen=True)
class Outcome:
    """What a solver found for one factual.

    Parameters
    ----------
    row
        The decoded counterfactual, None where there is none.
    value, bound
        Its cost, and a proven lower bound on any robust point's; both infinite where there is proof of none.
    radius
        The radius up to which the solver has proven the row valid, in scaled units; at least rho for a certified row.
    trace
        What it did: plain values by iteration, such as ``iteration``, ``distance``, ``radius``, ``seconds``, and where
        the points of an iteration may be of use without a proof, its ``row``.
    """

    row: dict[str, Any] | None
    value: float
    bound: float
    radius: float = 0.0
    trace: tuple[dict[str, Any], ...] = ()

    @property
    def farthest(self) -> float:
        """The largest radius of a point of the trace, at least 0."""
        return max((float(step["radius"]) for step in self.trace), default=0.0)

    def proven(self, alpha: float = 0.0, origin: Mapping[str, Any] | None = None) -> bool:
        """Whether nothing robust is cheaper: a gap counts by the distance alone, without ``alpha`` a change."""
        changes = sum(not same(self.row[name], value) for name, value in origin.items()) if self.row and origin else 0
        gap = OPTIMALITY_GAP * max(1.0, abs(self.value - alpha * changes))
        return self.bound >= self.value - gap or math.isinf(self.bound)


class Solver(Protocol):
    """An algorithm fitted to one problem."""

    def solve(self, row: Mapping[str, Any], deadline: Deadline) -> Outcome:
        """The cheapest robust point from one decoded factual."""
        ...
