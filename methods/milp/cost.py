"""The cost of changing one feature, as a program needs it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from harness.core.tolerances import COORDINATE_TIE


@dataclass(frozen=True)
class Cost:
    """What a changed feature costs: ``fixed`` + ``linear`` gap + ``quadratic`` gap², its gap in scaled units.

    ``budget`` bounds the cost of all changes: a value that costs more by itself is ruled out. A unit of a number's gap
    counts ``down`` where it falls and ``up`` where it rises.
    """

    fixed: float
    linear: float
    quadratic: float
    budget: float = math.inf
    down: float = 1.0
    up: float = 1.0

    def moved(self, moves: np.ndarray | float) -> Any:
        """The cost of a number's moves, negative where it falls."""
        moves = np.asarray(moves)
        return self(np.abs(moves) * np.where(moves < 0, self.down, self.up))

    def __call__(self, gap: np.ndarray | float, changed: np.ndarray | None = None) -> Any:
        """The cost of gaps; those that cost nothing are changes where ``changed`` says so."""
        gap = np.asarray(gap)
        return (
            np.where(gap > COORDINATE_TIE if changed is None else changed, self.fixed, 0.0)
            + self.linear * gap
            + self.quadratic * gap**2
        )

    @property
    def radii(self) -> tuple[float, float]:
        """How far a number may fall, and rise, within the budget, in scaled units."""
        return self.radius / self.down, self.radius / self.up

    @property
    def radius(self) -> float:
        """The greatest gap that the budget allows."""
        rest = max(self.budget - self.fixed, 0.0)
        if not math.isfinite(rest) or not (self.linear or self.quadratic):
            return math.inf
        if not self.quadratic:
            return rest / self.linear
        root = math.sqrt(self.linear**2 + 4 * self.quadratic * rest)
        return 2 * rest / (self.linear + root) if rest else 0.0
