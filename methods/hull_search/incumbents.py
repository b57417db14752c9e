"""The best point of a part found so far, and ways to a better one besides branching."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from harness.core.method import Deadline
from harness.core.tolerances import COORDINATE_SOLVED, COORDINATE_TIE, COST_TIE, SCORE_TIE
from methods.estimators.linear import surely_valid
from methods.hull_search.bounds import BoxProgram, Solved
from methods.hull_search.kernels import OPTIMAL

SEEDS = 20  # points of the hull that first incumbents start from


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
        self._aim(math.floor(value + COST_TIE) - 0.5 if self.costs.counting else value)
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
        x = part.origin + solution.moves
        if (
            solution.status == OPTIMAL
            and np.abs(x - (point - part.numbers.shift) / part.numbers.unit).sum() <= COORDINATE_SOLVED
        ):
            self.take(point)

    def seed(self) -> None:
        """First incumbents: the nearest valid points that span the hull, thinned."""
        part = self.part
        points = part.points.points
        moves = np.abs(points - part.origin[:, None])
        seeds = 0
        for row in np.argsort(moves.sum(axis=0), kind="stable"):
            if seeds == SEEDS or self.deadline.passed:
                return
            point = part.numbers.shift + part.numbers.unit * points[:, row]
            point = np.where(part.numbers.integer, np.rint(point), point)
            if ((point < part.numbers.low) | (point > part.numbers.high)).any() or not self._valid(point):
                continue
            seeds += 1
            self.take(point)
            self.thin(point)

    def _valid(self, point: np.ndarray) -> bool:
        """Whether the model is valid at a point, up to rounding."""
        part = self.part
        if self.program.line:
            score = part.score + float(part.slope @ ((point - part.numbers.value) / part.numbers.unit))
            least, most = part.model.limits.bounds(part.model.margin)
            return bool(least <= score <= most)
        return bool(part.leaves.greatest(point, point) >= -SCORE_TIE)

    def thin(self, point: np.ndarray) -> None:
        """Put a valid point's numbers back one by one, the nearest first, as far as hull and model allow it."""
        part = self.part
        gaps, changed = part.numbers.moved(point)
        while not self.deadline.passed:
            low, high = self._valid_box(point)
            low, high = np.where(changed, low, part.numbers.value), np.where(changed, high, part.numbers.value)
            best = point
            for k in np.argsort(gaps, kind="stable"):
                if not changed[k] or not low[k] <= part.numbers.value[k] <= high[k]:
                    continue
                ends = low[k], high[k]
                low[k] = high[k] = part.numbers.value[k]
                moved = self._cheapest(low, high)
                if moved is None:
                    low[k], high[k] = ends
                else:
                    best = moved
            if best is point:
                return
            point = best
            gaps, changed = part.numbers.moved(point)
            self.take(point)

    def _cheapest(self, low: np.ndarray, high: np.ndarray) -> np.ndarray | None:
        """The cheapest point of the hull in a box on which the model is valid, if its integers are whole."""
        part, program = self.part, self.program
        if program.prepare(low, high, np.zeros(len(low), dtype=bool)) == math.inf:
            return None
        solution = program.solve(program.first_basis(), math.inf)
        if solution.status != OPTIMAL:
            return None
        x = part.origin + solution.moves
        point = part.numbers.decoded(x, low, high)
        return point if part.numbers.off(x, point) <= COORDINATE_SOLVED else None

    def _valid_box(self, point: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """A box around a valid point, as far towards the factual as the trees are surely valid on all of it."""
        part = self.part
        low, high = part.numbers.low.copy(), part.numbers.high.copy()
        if self.program.line:
            return low, high
        part.leaves.cell(point, low, high)
        nearer = np.array([point > part.numbers.value, point < part.numbers.value])
        slopes = np.where(nearer, 1.0, 1e6) / part.numbers.unit
        part.leaves.grow(True, (part.numbers.low, part.numbers.high), slopes, point, low, high)
        return low, high
