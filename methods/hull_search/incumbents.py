"""The best point of a part found so far, and ways to a better one besides branching."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from harness.core.method import Deadline
from harness.core.tolerances import COORDINATE_SOLVED, COORDINATE_TIE
from methods.estimators.linear import surely_valid
from methods.hull_search.bounds import BoxProgram, Solved
from methods.hull_search.kernels import OPTIMAL


class Incumbents:
    """The best valid point found so far as a row, its cost ``upper``, and ``goal``, below which a cost is better."""

    def __init__(self, program: BoxProgram, upper: float, deadline: Deadline) -> None:
        self.program, self.part, self.costs = program, program.part, program.costs
        self.deadline = deadline
        self._aim(upper)
        self.row: dict[str, Any] | None = None
        self.tried: set[bytes] = set()
        self._outside: dict[bytes, float] = {}  # what it costs to leave the hull, by the points that do

    def loses(self, point: np.ndarray) -> bool:
        """Whether a point is no better than what is known."""
        cost, changes = self._cost(point)
        if cost >= self.goal or changes > self.costs.rest + COORDINATE_TIE:
            return True
        return cost + self._leaving(point) >= self.goal

    def _leaving(self, point: np.ndarray) -> float:
        """What it costs that a point lies outside the hull, where that has a price."""
        if self.part.outside is None:
            return 0.0
        if (key := point.tobytes()) not in self._outside:
            self._outside[key] = self.program.outside(point)
        return self._outside[key]

    def _cost(self, point: np.ndarray) -> tuple[float, float]:
        """Cost and weighted changes of moving numbers' values."""
        gaps, changed = self.part.numbers.moved(point)
        costs = self.costs
        cost = costs.constant + float(changed @ costs.fixed + gaps @ costs.linear + gaps**2 @ costs.square)
        return cost, float(changed @ costs.weight)

    def take(self, point: np.ndarray) -> bool:
        """Take a point of the hull as incumbent, if it is better and the real model agrees."""
        if self.loses(point):
            return False
        row = self.part.read(point)
        if not self.accepts(row):
            return False
        self.row = row
        value = self._cost(point)[0] + self._leaving(point)
        self._aim(value)
        return True

    def accepts(self, row: dict[str, Any]) -> bool:
        """Whether the real model agrees that a row is valid."""
        problem = self.part.model.problem
        return bool(surely_valid(problem, problem.space.frame([row]))[0])

    def _aim(self, upper: float) -> None:
        self.upper, self.close = upper, self.costs.close(upper)
        self.goal = upper - self.close

    def round(self, point: np.ndarray, solved: Solved) -> None:
        """Take the rounded point of a solved node, if it is better, valid and in the hull."""
        part, program = self.part, self.program
        if self.loses(point) or point.tobytes() in self.tried:
            return
        self.tried.add(point.tobytes())
        if ((point < part.numbers.low) | (point > part.numbers.high)).any():
            return
        if part.outside is not None:
            self.take(point)
            return
        if program.prepare(point, point, solved.node.forced) == math.inf:
            return
        solution = program.solve(solved.basis.copy(), math.inf)
        off = part.numbers.off(part.origin + solution.moves, point)
        if solution.status == OPTIMAL and off <= COORDINATE_SOLVED:
            self.take(point)
