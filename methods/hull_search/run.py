"""One minimisation over a part: best-first branch and bound, with dives."""

from __future__ import annotations

import heapq
import math
from typing import Any

import numpy as np

from harness.core.method import Deadline
from harness.core.tolerances import COORDINATE_SOLVED, SCORE_TIE
from methods.hull_search.bounds import BoxProgram, Costs, Node, Solved
from methods.hull_search.branching import Branching
from methods.hull_search.incumbents import Incumbents
from methods.hull_search.kernels import INFEASIBLE, STUCK
from methods.hull_search.part import Part

DIVES = 10  # nodes from one that is followed down to its end to the next
EASY = 30  # nodes before a search for the fewest changes looks for incumbents elsewhere
EXACT = 0.1  # of what counts as no better, by which a box's point may cost more than its bound
WIDER = 10.0  # the margin's factor where the real model refuses a point of a linear one


class Run:
    """One minimisation over a part.

    ``bound`` is one on all that the part holds, inf without anything; ``upper``: only what costs less is looked for.
    """

    def __init__(self, part: Part, costs: Costs, upper: float, deadline: Deadline) -> None:
        self.part, self.costs, self.deadline = part, costs, deadline
        self.program, self.incumbents = self._begin(upper)
        self.branching = Branching(self.incumbents)
        self.bound = math.inf

    def _begin(self, upper: float) -> tuple[BoxProgram, Incumbents]:
        program = BoxProgram(self.part, self.costs)
        return program, Incumbents(program, upper, self.deadline)

    def search(self) -> tuple[dict[str, Any] | None, float]:
        """The best row and its cost (without a row: ``upper`` as it was)."""
        part, incumbents = self.part, self.incumbents
        if self.costs.rest < 0:
            return None, incumbents.upper
        forced = np.zeros(len(part.numbers.place), dtype=bool)
        basis = self.program.first_basis()
        heap = [Node(self.costs.constant, 0, part.numbers.low, part.numbers.high, forced, basis, part.model.first)]
        seen = 0
        while heap:
            node: Node | None = heapq.heappop(heap)
            assert node is not None
            if node.bound >= incumbents.goal:
                break
            if self.costs.counting and seen == EASY:
                incumbents.seed()
            dives = seen % DIVES == 0
            seen += 1
            while node is not None:
                if self.deadline.passed:
                    heap.append(node)
                    self.bound = min(self.branching.undecided, min(other.bound for other in heap))
                    return incumbents.row, incumbents.upper
                children = [child for child in self._expand(node) if child.bound < incumbents.goal]
                node = min(children) if dives and children else None
                for child in children:
                    if child is not node:
                        heapq.heappush(heap, child)
        proven = incumbents.goal
        if self.costs.counting:
            proven = math.inf if incumbents.row is None else incumbents.upper + 0.5
        self.bound = min(self.branching.undecided, proven)
        return incumbents.row, incumbents.upper

    def _expand(self, node: Node) -> list[Node]:
        """The children of a node, after its program is solved and its point was looked at."""
        part, incumbents, branching = self.part, self.incumbents, self.branching
        solved = self._solve(node)
        if solved is None:
            return []
        solution = solved.solution
        x, point = self._point(solved)
        hollow = np.flatnonzero((part.numbers.hole[0] < point) & (point < part.numbers.hole[1]))
        if len(hollow):
            return branching.split(
                solved, int(hollow[0]), part.numbers.hole[0, hollow[0]], part.numbers.hole[1, hollow[0]]
            )
        inside = solution.status != STUCK and part.numbers.off(x, point) <= COORDINATE_SOLVED
        if not self.program.line and part.leaves.greatest(point, point) < -SCORE_TIE:
            return branching.leave(solved, point, invalid=True)
        if not inside:
            incumbents.round(point, solved)
            return branching.change(solved) or branching.integer(solved) or branching.halve(solved)
        if incumbents.take(point):
            if self.costs.counting:
                incumbents.thin(point)
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
        return [branching.child(solved, node.low, node.high, node.forced, max(node.margin * WIDER, 1.0))]

    def _point(self, solved: Solved) -> tuple[np.ndarray, np.ndarray]:
        """A solution's numbers, scaled, and decoded in its box: integers rounded, what hardly moves left as it is."""
        node, moves, numbers = solved.node, solved.solution.moves, self.part.numbers
        x = self.part.origin + moves
        point = numbers.decoded(x, node.low, node.high)
        stays = (np.abs(moves) <= COORDINATE_SOLVED) & (node.low <= numbers.value) & (numbers.value <= node.high)
        return x, np.where(stays, numbers.value, point)

    def _solve(self, node: Node) -> Solved | None:
        """A node with the solution of its program, its bound raised and its box narrowed; None where it is done."""
        program, goal = self.program, self.incumbents.goal
        if not program.line and self.part.leaves.greatest(node.low, node.high) < -SCORE_TIE:
            return None
        constant = program.prepare(node.low, node.high, node.forced, node.margin)
        if constant >= goal:
            return None
        basis = node.basis.copy()
        solution = program.solve(basis, goal - constant, EXACT * self.incumbents.close)
        if solution.status == INFEASIBLE:
            return None
        node.bound = max(node.bound, constant + solution.bound)
        if node.bound >= goal:
            return None
        if math.isfinite(goal):
            program.narrow(node, solution, goal - constant - solution.bound)
        return Solved(node, solution, basis)
