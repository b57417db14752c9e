"""Bounds of boxes within a hull: the linear program of a box, and what a point of it costs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from harness.core.objective import tolerance
from harness.core.tolerances import COORDINATE_TIE, COST_TIE
from methods.hull_search import kernels
from methods.hull_search.part import HullPart
from methods.hull_search.records import Columns, MovingNumbers, Prices, Rows, Solution
from methods.milp.distance import Separable

SHARE = 0.1  # of the gap that counts as none


@dataclass(frozen=True)
class Costs:
    """What the points of a part cost.

    Parameters
    ----------
    fixed, linear, square, weight
        Cost of a change, of a scaled unit and of its square, and weight of a change, each of shape (numbers,).
    constant
        Cost of the features that do not move.
    rest
        Greatest weighted number of changes left for the moving numbers.
    """

    fixed: np.ndarray
    linear: np.ndarray
    square: np.ndarray
    weight: np.ndarray
    constant: float
    rest: float

    @classmethod
    def of(cls, part: HullPart, distance: Separable, most: float) -> Costs:
        """The costs on a part, from a distance over all features, and the most changes."""
        constant = float(distance.least(part.still.gaps, part.still.changed))
        rest = most - float(part.still.changed @ part.weights)
        place = part.numbers.place
        own = distance.fixed[place], distance.linear[place], distance.quadratic[place]
        return cls(*own, part.weights[place], constant, rest)

    def close(self, upper: float) -> float:
        """How near to ``upper`` a cost counts as no better: squares are proven to a gap relative to themselves."""
        if not self.square.any() or upper == math.inf:
            return COST_TIE
        apart = upper - self.constant
        least = float(self.fixed.min())
        return min(COST_TIE, SHARE * tolerance(math.fmod(apart, least) if least else apart, squared=True))


@dataclass(order=True)
class Node:
    """A box of decoded values, which numbers surely change, and what is known of it."""

    bound: float
    number: int
    low: np.ndarray = field(compare=False)
    high: np.ndarray = field(compare=False)
    forced: np.ndarray = field(compare=False)
    basis: np.ndarray = field(compare=False)
    margin: float = field(compare=False, default=1.0)  # factor of a linear model's


class Solved(NamedTuple):
    """A node whose program is solved; ``basis`` is the last one."""

    node: Node
    solution: Solution
    basis: np.ndarray


class BoxProgram:
    """The linear program over the boxes of a part; ``prepare`` sets it to one of them.

    Where the hull may be left, its points have one column more than the part has numbers, what their categories are
    away: 0 at x itself. ``ways`` are the ups and downs of all columns, and those by which x leaves the hull. ``cuts``
    is how many further rows there can be.
    """

    def __init__(self, part: HullPart, costs: Costs, cuts: int = 0) -> None:
        self.part, self.costs = part, costs
        self.line, self.counts = part.model.linear, math.isfinite(costs.rest)
        self.room = self.filled = cuts  # further rows; of them, those that may hold what is asked of another box
        count = len(part.numbers.place)
        self.rows = int(self.line) + cuts + int(self.counts)
        origin = part.origin if part.outside is None else np.append(part.origin, 0.0)
        self.size = len(origin)  # of ups, of downs
        self.ways = (2 if part.outside is None else 4) * self.size
        self.touches = kernels.TOUCHES if costs.square.any() else np.zeros(1)
        extra = np.zeros((self.rows, self.ways))
        if self.line:
            extra[0, :count], extra[0, self.size : self.size + count] = part.slope, -part.slope
        self.columns, self.lines = Columns(*np.zeros((5, self.ways + self.rows))), Rows(origin, extra)
        self.columns.square[:count] = self.columns.square[self.size : self.size + count] = costs.square
        self.numbers = MovingNumbers(part.numbers.value, part.numbers.unit, part.numbers.integer)
        self.prices = Prices(costs.fixed, costs.linear, costs.square, costs.weight)
        # As the kernels take them, for each box.
        self.plain = tuple(self.columns), tuple(self.lines)
        if part.outside is not None:
            numbers, points = part.numbers, part.points.points
            low, high = (np.append((ends - numbers.shift) / numbers.unit, 0.0) for ends in (numbers.low, numbers.high))
            farthest = np.concatenate([points.max(axis=1) - low, high - points.min(axis=1)])
            self.columns.cost[2 * self.size : self.ways] = part.outside
            self.columns.high[2 * self.size : self.ways] = np.maximum(farthest, 0.0)

    def first_basis(self) -> np.ndarray:
        """The basis of all ups, the first point and the slacks."""
        slacks = 2 * self.size * (len(self.touches) - 1) + self.ways  # ups and downs are in pieces
        first_point = np.array([slacks + self.rows])
        return np.concatenate([np.arange(self.size), first_point, slacks + np.arange(self.rows)]).astype(np.int64)

    def prepare(self, low: np.ndarray, high: np.ndarray, forced: np.ndarray, margin: float = 1.0) -> float:
        """Set the program to a box; returns what it costs in any case, or inf where it holds nothing."""
        part, costs, columns = self.part, self.costs, self.columns
        constant, changes = kernels.prepare(
            low, high, forced, tuple(self.numbers), tuple(self.prices), *self.plain, self.counts
        )
        at = self.ways
        if self.line:
            least, most = part.model.limits.bounds(part.model.margin * margin)
            span = kernels.span(self.lines.extra[0], columns.low, columns.high)
            columns.low[at] = max(least - part.score, span[0])
            columns.high[at] = min(most - part.score, span[1])
            if columns.low[at] > columns.high[at]:
                return math.inf
        if self.counts:
            columns.low[at + self.rows - 1], columns.high[at + self.rows - 1] = 0.0, costs.rest - changes
            if changes > costs.rest + COORDINATE_TIE:
                return math.inf
        return costs.constant + constant

    def cut(self, rows: Sequence[tuple[np.ndarray, float]]) -> bool:
        """Ask of each further row, as far as there is room, that its slopes times the moves be at least so much.

        ``rows``: slopes, shape (numbers,), and least values.

        Returns
        -------
        Whether each can be so somewhere in the box; those after the first that cannot are not set.
        """
        rows = rows[: self.room]
        count, filled, self.filled = len(self.part.numbers.place), self.filled, len(rows)
        nothing = np.zeros(count), -math.inf
        for r, (slopes, least) in enumerate([*rows, *[nothing] * (filled - len(rows))]):
            row, at = self.lines.extra[r], self.ways + r
            row[:count], row[self.size : self.size + count] = slopes, -slopes
            span = kernels.span(row, self.columns.low, self.columns.high)
            self.columns.low[at], self.columns.high[at] = max(least, span[0]), span[1]
            if self.columns.low[at] > self.columns.high[at]:
                self.filled = max(filled, len(rows))
                return False
        return True

    def solve(self, basis: np.ndarray, upper: float, close: float = COST_TIE) -> Solution:
        """The cheapest point of the box in the hull; ``basis`` changes, and bounds above ``upper`` need no proof.

        ``close``: what a squared cost may be above its bound.
        """
        points = self.part.points
        found: Solution = kernels.minimum(
            tuple(points.arrays), points.used, basis, *self.plain, self.touches, upper, close
        )
        points.used = found.used
        return found._replace(moves=found.moves[: len(self.part.numbers.place)])

    def lagrangian(self, solution: Solution) -> float:
        """The bound that another box's multipliers give the one that the program is set to."""
        return kernels.lagrange(solution.duals, *self.plain, solution.support)

    def narrow(self, node: Node, solution: Solution, spare: float) -> None:
        """Cut a node's box to moves that by its multipliers cost at most ``spare`` more than its bound."""
        node.low, node.high = node.low.copy(), node.high.copy()
        kernels.narrow(node.low, node.high, tuple(self.numbers), solution.duals, *self.plain, spare)

    def outside(self, point: np.ndarray) -> float:
        """What it costs that a point of decoded values lies outside the hull; inf where that was not found out."""
        if self.part.outside is None:
            return 0.0
        self.prepare(point, point, np.zeros(len(point), dtype=bool), -math.inf)
        self.columns.cost[: 2 * self.size] = 0.0
        solution = self.solve(self.first_basis(), math.inf)
        squares = float(self.columns.square @ self.columns.low**2)
        return solution.bound - squares if solution.status == kernels.OPTIMAL else math.inf
