"""Counterfactuals that a search has found so far."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from harness.core.space import Space
from methods.ce_ocl.assignments import Assignment

DIGITS = 4  # of scaled columns, in which counterfactuals of one pool differ


@dataclass(frozen=True)
class Incumbent:
    """The best counterfactual; before there is one, without a row and infinitely dear.

    Parameters
    ----------
    value
        Its objective, with what lying outside a hull costs.
    count
        Its weighted changes.
    distance
        The objective without the price of changes.
    read
        The assignment of the solution that it was read from, where assignments tell counterfactuals apart.
    """

    row: dict[str, Any] | None = None
    value: float = math.inf
    count: float = math.inf
    distance: float = math.inf
    read: Assignment | None = None

    @property
    def stays(self) -> bool:
        """Whether nothing is paid for a change: it is the factual, or costs nothing."""
        return self.count == 0.0 or self.value == 0.0


def printed(space: Space, row: dict[str, Any]) -> tuple[float, ...]:
    """The scaled columns of a row, rounded to ``DIGITS``: those that agree in them count as one counterfactual."""
    return tuple(np.round(space.encode(space.frame([row]))[0], DIGITS))


class Pool:
    """All incumbents of one solve with their objectives."""

    def __init__(self, space: Space) -> None:
        self.space = space
        self.met: list[tuple[float, dict[str, Any]]] = []

    def add(self, value: float, row: dict[str, Any]) -> None:
        self.met.append((value, row))

    def best(self, n: int) -> list[tuple[float, dict[str, Any]]]:
        """The ``n`` best that differ after rounding, or fewer."""
        seen = set()
        kept: list[tuple[float, dict[str, Any]]] = []
        for value, row in sorted(self.met, key=lambda entry: entry[0]):
            name = printed(self.space, row)
            if name not in seen and len(kept) < n:
                seen.add(name)
                kept.append((value, row))
        return kept
