"""One minimisation over a part: best-first branch and bound, with dives."""

from __future__ import annotations

import heapq
import math
from typing import Any

import numpy as np

from harness.core.method import Deadline
from harness.core.tolerances import COORDINATE_SOLVED, SCORE_TIE
from methods.hull_search import kernels
from methods.hull_search.bounds import BoxProgram, Costs, Node, Solved
from methods.hull_search.branching import Branching
from methods.hull_search.incumbents import Incumbents
from methods.hull_search.kernels import INFEASIBLE, STUCK
from methods.hull_search.part import HullPart
from methods.milp.core_kernels import among, propagate, word

DIVES = 10  # nodes from one that is followed down to its end to the next
EXACT = 0.1  # of what counts as no better, by which a box's point may cost more than its bound
LEAST = 0.01  # of the margin, kept once the real model refuses a point of a linear one; ``WIDER``: factor of the next
WIDER = 10.0


class Run:
    """One minimisation over a part.

    ``bound`` is one on all that the part holds, inf without anything; ``upper``: only what costs less is looked for.
    """

    def __init__(self, part: HullPart, costs: Costs, upper: float, deadline: Deadline) -> None:
        self.part, self.costs, self.deadline = part, costs, deadline
        self.program, self.incumbents = self._begin(upper)
        self.branching = Branching(self.incumbents)
        self.bound = math.inf
        self.box = part.numbers.low, part.numbers.high
        self.basis = self.program.first_basis()
        self.cores = np.zeros(0, dtype=np.uint64)  # words of numbers of which each valid point changes one

    def _begin(self, upper: float) -> tuple[BoxProgram, Incumbents]:
        program = BoxProgram(self.part, self.costs)
        return program, Incumbents(program, upper, self.deadline)

    def search(self, first: bool = False, nodes: float = math.inf) -> tuple[dict[str, Any] | None, float]:
        """The best row, or the ``first`` one, within so many nodes, and its cost (without a row: ``upper``)."""
        incumbents = self.incumbents
        if self.costs.rest < 0:
            return None, incumbents.upper
        heap = [self._root(*self.box)]
        seen = 0
        while heap:
            node: Node | None = heapq.heappop(heap)
            assert node is not None
            if node.bound >= incumbents.goal:
                break
            dives = first or seen % DIVES == 0
            while node is not None:
                seen += 1
                if self.deadline.passed or seen > nodes or (first and incumbents.row is not None):
                    heap.append(node)
                    self.bound = min(self.branching.undecided, min(other.bound for other in heap))
                    return incumbents.row, incumbents.upper
                children = [child for child in self._expand(node) if child.bound < incumbents.goal]
                node = min(children) if dives and children else None
                for child in children:
                    if child is not node:
                        heapq.heappush(heap, child)
        self.bound = min(self.branching.undecided, incumbents.goal)
        return incumbents.row, incumbents.upper

    def _root(self, low: np.ndarray, high: np.ndarray) -> Node:
        part = self.part
        forced = np.zeros(len(part.numbers.place), dtype=bool)
        return Node(self.costs.constant, 0, low, high, forced, self.basis, part.model.first)

    def hopeless(self, low: np.ndarray, high: np.ndarray) -> bool:
        """Whether the program of a box of decoded values has no solution."""
        solved = self._solve(self._root(low, high))
        if solved is not None:
            self.basis = solved.basis
        return solved is None

    def _expand(self, node: Node) -> list[Node]:
        """The children of a node, after its program is solved and its point was looked at."""
        return self._look(node, exactly=False)

    def _look(self, node: Node, exactly: bool) -> list[Node]:
        """As ``_expand``; where squares are not solved ``exactly``, points are taken only once they are."""
        incumbents, branching = self.incumbents, self.branching
        solved = self._solve(node, exactly)
        if solved is None:
            return []
        x, point = self._point(solved)
        if (sides := branching.hollow(solved, point)) is not None:
            return sides
        if self._invalid(point, point):
            return branching.leave(solved, point, invalid=True)
        if not self._inside(solved, x, point):
            incumbents.round(point, solved)
            return branching.change(solved) or branching.integer(solved) or branching.halve(solved)
        if not exactly and self._loose(node):
            node.basis = solved.basis
            return self._look(node, exactly=True)
        if incumbents.take(point):
            if node.bound >= incumbents.goal:
                return []
            return branching.change(solved) or branching.halve(solved)
        if incumbents.loses(point):
            return branching.change(solved) or branching.halve(solved)
        if not self.program.line:
            return branching.leave(solved, point, invalid=False)
        branching.undecided = min(branching.undecided, node.bound)
        if node.margin >= 1e6:
            return []
        return [branching.child(solved, node.low, node.high, node.forced, max(node.margin * WIDER, LEAST))]

    def _point(self, solved: Solved) -> tuple[np.ndarray, np.ndarray]:
        """A solution's numbers, scaled, and decoded in its box: integers rounded, what hardly moves left as it is."""
        node, moves, numbers = solved.node, solved.solution.moves, self.part.numbers
        x = self.part.origin + moves
        point = numbers.decoded(x, node.low, node.high)
        stays = (np.abs(moves) <= COORDINATE_SOLVED) & (node.low <= numbers.value) & (numbers.value <= node.high)
        return x, np.where(stays, numbers.value, point)

    def _inside(self, solved: Solved, x: np.ndarray, point: np.ndarray) -> bool:
        """Whether a solution's scaled numbers lie in the hull, and decoding hardly moved them."""
        return solved.solution.status != STUCK and self.part.numbers.off(x, point) <= COORDINATE_SOLVED

    def _invalid(self, low: np.ndarray, high: np.ndarray) -> bool:
        """Whether a sum of trees is invalid on all of a box."""
        return self.part.model.trees is not None and kernels.greatest(self.part.leaves, low, high) < -SCORE_TIE

    def _propagate(self, node: Node) -> bool:
        """Let numbers of a node stay, as far as that follows from cores; whether that is possible."""
        numbers = self.part.numbers
        stays = (node.low == numbers.value) & (node.high == numbers.value)
        changes = node.forced | (numbers.value < node.low) | (node.high < numbers.value)
        at, away = word(np.flatnonzero(stays)), word(np.flatnonzero(changes))
        fits, kept, _ = propagate(self.cores, self.costs.weight, at, away, self.costs.rest)
        if fits:
            stays = among(kept, len(stays))
            node.low, node.high = np.where(stays, numbers.value, node.low), np.where(stays, numbers.value, node.high)
        return bool(fits)

    def _loose(self, node: Node) -> float:
        """What a squared cost may be above its bound while one branches: a point below the goal closes no node."""
        goal = self.incumbents.goal
        return goal - node.bound if self.costs.square.any() and math.isfinite(goal) else 0.0

    def _solve(self, node: Node, exactly: bool = True) -> Solved | None:
        """A node with the solution of its program, its bound raised and its box narrowed; None where it is done."""
        program, goal = self.program, self.incumbents.goal
        if len(self.cores) and not self._propagate(node):
            return None
        if self._invalid(node.low, node.high):
            return None
        constant = program.prepare(node.low, node.high, node.forced, node.margin)
        if constant >= goal:
            return None
        basis = node.basis.copy()
        close = max(EXACT * self.incumbents.close, 0.0 if exactly else self._loose(node))
        solution = program.solve(basis, goal - constant, close)
        if solution.status == INFEASIBLE:
            return None
        node.bound = max(node.bound, constant + solution.bound)
        if node.bound >= goal:
            return None
        if math.isfinite(goal):
            program.narrow(node, solution, goal - constant - solution.bound)
        return Solved(node, solution, basis)
