"""The children of a solved box: how the search within a hull divides it."""

from __future__ import annotations

import math

import numpy as np

from harness.core.tolerances import COORDINATE_SOLVED, COORDINATE_TIE, COST_TIE, PSEUDO_GAIN, WHOLE_BOUND
from methods.hull_search import kernels
from methods.hull_search.bounds import Node, Solved
from methods.hull_search.incumbents import Incumbents
from methods.hull_search.kernels import INFEASIBLE

RELIABLE = 4  # children of a number that are solved before their mean gain is believed
LOOKS = 4  # numbers whose children are solved without a better one


class Branching:
    """Ways to divide a solved node; each returns children, none where it does not apply."""

    def __init__(self, incumbents: Incumbents) -> None:
        self.program, self.incumbents = incumbents.program, incumbents
        self.part, self.costs = incumbents.part, incumbents.costs
        self.serial = 0
        self.undecided = math.inf  # least bound of the boxes that are not divided further, though nothing is proven
        count = len(self.part.numbers.place)
        infinite, squared = np.full(count, np.inf), self.costs.square > 0
        # The moves from which on a convex envelope counts all of the cost of a change, as squares exceed it.
        self.meets = np.sqrt(np.divide(self.costs.fixed, self.costs.square, out=infinite, where=squared))
        self.gains = np.zeros((2, count)), np.zeros((2, count), dtype=int)  # of bounds a unit, by way and number

    def child(
        self, solved: Solved, low: np.ndarray, high: np.ndarray, forced: np.ndarray, margin: float | None = None
    ) -> Node:
        """A box within a solved node's, with the bound that the node's multipliers give it."""
        node = solved.node
        margin = node.margin if margin is None else margin
        self.serial += 1
        bound = self.program.prepare(low, high, forced, margin)
        if bound < math.inf:
            bound += self.program.lagrangian(solved.solution)
        return Node(max(node.bound, bound), self.serial, low, high, forced, solved.basis, margin)

    def split(self, solved: Solved, k: int, end: float, begin: float) -> list[Node]:
        """The parts of the node where number k is at most ``end``, or at least ``begin``."""
        node, children = solved.node, []
        low, high = node.low.copy(), node.high.copy()
        if node.low[k] <= end:
            high[k] = min(high[k], end)
            children.append(self.child(solved, node.low, high, node.forced))
        if node.high[k] >= begin:
            low[k] = max(low[k], begin)
            children.append(self.child(solved, low, node.high, node.forced))
        return children

    def hollow(self, solved: Solved, point: np.ndarray) -> list[Node] | None:
        """Branch on a number that lies between the factual's value and the reach, where nothing is; None: none does.

        A box that lies between them has no children.
        """
        hole = self.part.numbers.hole
        places = np.flatnonzero((hole[0] < point) & (point < hole[1]))
        return self.split(solved, int(places[0]), *hole[:, places[0]]) if len(places) else None

    def integer(self, solved: Solved) -> list[Node]:
        """Branch on an integer that the program leaves between two: the one that both children gain most by."""
        part, node = self.part, solved.node
        values = np.clip(
            part.numbers.shift + part.numbers.unit * (part.origin + solved.solution.moves), node.low, node.high
        )
        floors = np.floor(values + WHOLE_BOUND)
        shares = np.where(part.numbers.integer, values - floors, 0.0)
        places = np.flatnonzero(shares > WHOLE_BOUND)
        if not len(places):
            return []
        sums, counts = self.gains
        rates = np.where(counts > 0, sums / np.maximum(counts, 1), sums.sum(axis=1)[:, None] / max(counts.sum(), 1))
        fall, rise = rates[0, places] * shares[places], rates[1, places] * (1 - shares[places])
        merit = np.maximum(fall, PSEUDO_GAIN) * np.maximum(rise, PSEUDO_GAIN)
        best: tuple[float, list[Node]] = (-1.0, [])
        idle = 0
        for place in np.argsort(-merit, kind="stable"):
            k = int(places[place])
            if counts[:, k].min() >= RELIABLE:
                if merit[place] > best[0]:
                    return self.split(solved, k, floors[k], floors[k] + 1.0)
                break
            live = self._solved_children(solved, k, floors[k], shares[k])
            if len(live) < 2:
                return live
            gain = max(live[0].bound - node.bound, PSEUDO_GAIN) * max(live[1].bound - node.bound, PSEUDO_GAIN)
            idle += 1
            if gain > best[0]:
                best, idle = (gain, live), 0
            if idle >= LOOKS:
                break
        return best[1]

    def _solved_children(self, solved: Solved, k: int, floor: float, share: float) -> list[Node]:
        """Both sides of an integer with their own bounds, as far as they may be better; their gains are remembered."""
        sums, counts = self.gains
        children = self.split(solved, k, floor, floor + 1.0)
        for child in children:
            self._bound(child)
            rising = child.low[k] > floor
            gain = min(child.bound, self.incumbents.upper) - solved.node.bound
            sums[int(rising), k] += gain / ((1 - share) if rising else share)
            counts[int(rising), k] += 1
        return [child for child in children if child.bound < self.incumbents.goal]

    def _bound(self, child: Node) -> None:
        """Give a child the bound of its own program."""
        constant = self.program.prepare(child.low, child.high, child.forced, child.margin)
        if constant == math.inf:
            child.bound = math.inf
            return
        child.basis = child.basis.copy()
        solution = self.program.solve(child.basis, self.incumbents.goal - constant, self.incumbents.close)
        infeasible = solution.status == INFEASIBLE
        child.bound = math.inf if infeasible else max(child.bound, constant + solution.bound)

    def change(self, solved: Solved) -> list[Node]:
        """Branch on whether a number changes: the one whose cost of a change the program counts least of."""
        part, node, costs = self.part, solved.node, self.costs
        if not costs.fixed.any() and not self.program.counts:
            return []
        moves = solved.solution.moves
        open_ = (
            (node.low <= part.numbers.value)
            & (part.numbers.value <= node.high)
            & ~node.forced
            & (np.abs(moves) > COORDINATE_SOLVED)
        )
        room = np.where(moves > 0, node.high - part.numbers.value, part.numbers.value - node.low) / part.numbers.unit
        missing = (
            np.maximum(1.0 - np.abs(moves) / np.maximum(np.minimum(room, self.meets), COORDINATE_TIE), 0.0)
            * costs.fixed
        )
        if self.program.counts:
            missing += (1.0 - np.abs(moves) / np.maximum(room, COORDINATE_TIE)) * costs.weight
        missing = np.where(open_, missing, 0.0)
        k = int(np.argmax(missing))
        if missing[k] <= COST_TIE:
            return []
        low, high = node.low.copy(), node.high.copy()
        low[k] = high[k] = part.numbers.value[k]
        children = [self.child(solved, low, high, node.forced)]
        if part.numbers.integer[k]:
            return children + self.split(solved, k, part.numbers.value[k] - 1.0, part.numbers.value[k] + 1.0)
        forced = node.forced.copy()
        forced[k] = True
        return [*children, self.child(solved, node.low, node.high, forced)]

    def halve(self, solved: Solved) -> list[Node]:
        """Halve the widest number, where rounding leaves no other way; none, and undecided, where none is wide."""
        node, part = solved.node, self.part
        width = (node.high - node.low) / part.numbers.unit
        k = int(np.argmax(width))
        if part.numbers.integer[k]:
            middle = math.floor((node.low[k] + node.high[k]) / 2)
            if width[k] > 0:
                return self.split(solved, k, middle, middle + 1.0)
        if width[k] <= COORDINATE_TIE:
            self.undecided = min(self.undecided, node.bound)
            return []
        middle = (node.low[k] + node.high[k]) / 2
        return self.split(solved, k, middle, np.nextafter(middle, math.inf))

    def leave(self, solved: Solved, point: np.ndarray, invalid: bool) -> list[Node]:
        """Children outside a point's cell; of an ``invalid`` point, grown where the trees are surely invalid."""
        part, node = self.part, solved.node
        low, high = node.low.copy(), node.high.copy()
        kernels.cell(part.leaves, point, low, high)
        if invalid:
            away = np.array([point <= part.numbers.value, point >= part.numbers.value])
            slopes = np.where(away, self.costs.linear + self.costs.square, 0.0)
            kernels.grow(part.leaves, node.low, node.high, slopes, point, low, high)
        children = []
        floor, top = node.low.copy(), node.high.copy()
        for _, k, rising, end in sorted(self._faces(solved, low, high)):
            child_low, child_high = floor.copy(), top.copy()
            if rising:
                child_low[k], top[k] = end, high[k]
            else:
                child_high[k], floor[k] = end, low[k]
            if (child_low <= child_high).all():
                children.append(self.child(solved, child_low, child_high, node.forced))
        return children

    def _faces(self, solved: Solved, low: np.ndarray, high: np.ndarray) -> list[tuple[float, int, bool, float]]:
        """The faces of a box within a node: the bound beyond each, its number and side, and the first value beyond."""
        node, faces = solved.node, []
        for k, integer in enumerate(self.part.numbers.integer):
            below = low[k] - 1.0 if integer else np.nextafter(low[k], -math.inf)
            above = high[k] + 1.0 if integer else np.nextafter(high[k], math.inf)
            if below >= node.low[k]:
                end = node.high.copy()
                end[k] = below
                faces.append((self.child(solved, node.low, end, node.forced).bound, k, False, below))
            if above <= node.high[k]:
                end = node.low.copy()
                end[k] = above
                faces.append((self.child(solved, end, node.high, node.forced).bound, k, True, above))
        return faces
