"""Bounds of boxes within a hull: the linear program of a box, and what a point of it costs."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from harness.core.space import SAME
from methods.ce_ocl.hull_search import kernels
from methods.ce_ocl.hull_search.part import Part
from methods.milp.distance import Separable, tolerance

CLOSE = 1e-9  # costs this near are equal
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
    counting
        Costs are numbers of changes, but for less than ``TIES``.
    """

    fixed: np.ndarray
    linear: np.ndarray
    square: np.ndarray
    weight: np.ndarray
    constant: float
    rest: float
    counting: bool

    @classmethod
    def of(cls, part: Part, distance: Separable, most: float, counting: bool = False) -> Costs:
        """The costs on a part, from a distance over all features, and the most changes."""
        constant = float(distance.least(part.still.gaps, part.still.changed))
        rest = most - float(part.still.changed @ part.weights)
        place = part.numbers.place
        own = distance.fixed[place], distance.linear[place], distance.quadratic[place]
        return cls(*own, part.weights[place], constant, rest, counting)

    def close(self, upper: float) -> float:
        """How near to ``upper`` a cost counts as no better: squares are proven to a gap relative to themselves."""
        if not self.square.any() or upper == math.inf:
            return CLOSE
        apart = upper - self.constant
        least = float(self.fixed.min())
        return min(CLOSE, SHARE * tolerance(math.fmod(apart, least) if least else apart, squared=True))


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


class Solution(NamedTuple):
    """What ``kernels.simplex`` returns."""

    status: int
    bound: float  # of the cost besides the constant
    moves: np.ndarray  # (numbers,), in scaled units
    duals: np.ndarray  # (rows,)
    used: int  # size of the working set
    pivots: int
    support: float  # greatest product of the duals with a point


class Solved(NamedTuple):
    """A node whose program is solved; ``basis`` is the last one."""

    node: Node
    solution: Solution
    basis: np.ndarray


class BoxProgram:
    """The linear program over the boxes of a part; ``prepare`` sets it to one of them.

    Where the hull may be left, its points have one column more than the part has numbers, what their categories are
    away: 0 at x itself. ``ways`` are the ups and downs of all columns, and those by which x leaves the hull.
    """

    def __init__(self, part: Part, costs: Costs) -> None:
        self.part, self.costs = part, costs
        self.line, self.counts = part.model.line is not None, math.isfinite(costs.rest)
        count = len(part.numbers.place)
        self.rows = int(self.line) + int(self.counts)
        self.origin = part.origin if part.outside is None else np.append(part.origin, 0.0)
        self.size = len(self.origin)  # of ups, of downs
        self.ways = (2 if part.outside is None else 4) * self.size
        self.touches = kernels.TOUCHES if costs.square.any() else np.zeros(1)
        self.extra = np.zeros((self.rows, self.ways))
        if self.line:
            self.extra[0, :count], self.extra[0, self.size : self.size + count] = part.slope, -part.slope
        self.cost, self.square, self.start, self.ends_low, self.ends_high = np.zeros((5, self.ways + self.rows))
        self.square[:count] = self.square[self.size : self.size + count] = costs.square
        if part.outside is not None:
            numbers, points = part.numbers, part.points.points
            low, high = (np.append((ends - numbers.shift) / numbers.unit, 0.0) for ends in (numbers.low, numbers.high))
            farthest = np.concatenate([points.max(axis=1) - low, high - points.min(axis=1)])
            self.cost[2 * self.size : self.ways] = part.outside
            self.ends_high[2 * self.size : self.ways] = np.maximum(farthest, 0.0)

    def first_basis(self) -> np.ndarray:
        """The basis of all ups, the first point and the slacks."""
        slacks = 2 * self.size * (len(self.touches) - 1) + self.ways  # ups and downs are in pieces
        first_point = np.array([slacks + self.rows])
        return np.concatenate([np.arange(self.size), first_point, slacks + np.arange(self.rows)]).astype(np.int64)

    def prepare(self, low: np.ndarray, high: np.ndarray, forced: np.ndarray, margin: float = 1.0) -> float:
        """Set the program to a box; returns what it costs in any case, or inf where it holds nothing."""
        part, costs, numbers = self.part, self.costs, self.part.numbers
        constant, changes = kernels.prepare(
            low, high, numbers.value, numbers.shift, numbers.unit, costs.fixed, costs.linear, costs.square,
            costs.weight, forced, self.size, self.cost, self.start, self.ends_low, self.ends_high, self.extra,
            self.counts,
        )  # fmt: skip
        at = self.ways
        if self.line:
            least, most = part.model.limits.bounds(part.model.margin * margin)
            span = kernels.span(self.extra[0], self.ends_low, self.ends_high)
            self.ends_low[at] = max(least - part.score, span[0])
            self.ends_high[at] = min(most - part.score, span[1])
            if self.ends_low[at] > self.ends_high[at]:
                return math.inf
        if self.counts:
            self.ends_low[at + self.rows - 1], self.ends_high[at + self.rows - 1] = 0.0, costs.rest - changes
            if changes > costs.rest + SAME:
                return math.inf
        return costs.constant + constant

    def solve(self, basis: np.ndarray, upper: float, close: float = CLOSE) -> Solution:
        """The cheapest point of the box in the hull; ``basis`` changes, and bounds above ``upper`` need no proof.

        ``close``: what a squared cost may be above its bound.
        """
        points = self.part.points
        found = Solution(*kernels.minimum(
            points.points, points.corners, points.work, points.members, points.inside, points.used, basis,
            self.origin, self.cost, self.square, self.start, self.ends_low, self.ends_high, self.extra, self.touches,
            upper, close,
        ))  # fmt: skip
        points.used = found.used
        return found._replace(moves=found.moves[: len(self.part.numbers.place)])

    def lagrangian(self, solution: Solution) -> float:
        """The bound that another box's multipliers give the one that the program is set to."""
        return kernels.lagrange(
            solution.duals, self.cost, self.square, self.start, self.ends_low, self.ends_high, self.origin, self.extra,
            self.size, solution.support,
        )  # fmt: skip

    def narrow(self, node: Node, solution: Solution, spare: float) -> None:
        """Cut a node's box to moves that by its multipliers cost at most ``spare`` more than its bound."""
        numbers = self.part.numbers
        node.low, node.high = node.low.copy(), node.high.copy()
        kernels.narrow(
            node.low, node.high, numbers.value, numbers.unit, numbers.integer, self.size, solution.duals, self.cost,
            self.square, self.start, self.ends_low, self.ends_high, self.extra, spare,
        )  # fmt: skip

    def outside(self, point: np.ndarray) -> float:
        """What it costs that a point of decoded values lies outside the hull; inf where that was not found out."""
        if self.part.outside is None:
            return 0.0
        self.prepare(point, point, np.zeros(len(point), dtype=bool), -math.inf)
        self.cost[: 2 * self.size] = 0.0
        solution = self.solve(self.first_basis(), math.inf)
        squares = float(self.square @ self.ends_low**2)
        return solution.bound - squares if solution.status == kernels.OPTIMAL else math.inf
