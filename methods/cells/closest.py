"""What a search over cells found."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from harness.core.tolerances import COST_TIE


@dataclass(frozen=True)
class Closest:
    """What a search found.

    Parameters
    ----------
    row
        The decoded point, None where there is none.
    value, bound
        Its cost, and a proven lower bound on any; both infinite where there is proof that no point exists.
    passed
        Some right points that it left for better ones, the best first.
    """

    row: dict[str, Any] | None
    value: float
    bound: float
    passed: tuple[dict[str, Any], ...] = field(default=(), compare=False)

    @property
    def proven(self) -> bool:
        """Whether the search ran to its end."""
        return self.bound >= self.value - COST_TIE
