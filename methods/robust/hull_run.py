"""One minimisation over a part of a hull in which points keep away from walls."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from harness.core.method import Deadline
from harness.core.space import Kind
from harness.core.tolerances import (
    COORDINATE_SOLVED,
    LIMIT_MET,
    OPTIMALITY_GAP,
    ROW_MISSED,
    STEP_WIDTH,
    TANGENT_ROOM,
    WHOLE_NUMBER,
)
from methods.cells.records import Box
from methods.hull_search import kernels
from methods.hull_search.bounds import BoxProgram, Costs, Node, Solution, Solved
from methods.hull_search.incumbents import Incumbents
from methods.hull_search.part import HullPart
from methods.hull_search.run import Run
from methods.robust.wall_kernels import cover
from methods.robust.walls import UNKNOWN, Walls

CUTS = 6  # walls that the program of one box keeps away from
ROUNDS = 12  # of cuts in one node
TURNS = 8  # of tangents, from one point
CLOSE = 0.4 * OPTIMALITY_GAP  # by which a cost is no better


class Reach:
    """The walls as a part meets them: all but its moving numbers stay as they are."""

    def __init__(self, walls: Walls, part: HullPart) -> None:
        self.walls, self.part = walls, part
        numbers = part.numbers
        row = part.read(numbers.value)
        self.still = walls.point(row)
        codes = [f.categories.index(row[f.name]) if f.kind is Kind.CATEGORICAL else 0 for f in walls.features]
        low, high = self.ends(numbers.low, numbers.high)
        self.box = Box(low, high, np.array([1 << code for code in codes], dtype=np.uint64))

    def ends(self, low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The coordinates of all features in a box of decoded values of moving numbers."""
        return self.coordinates(low), self.coordinates(high)

    def coordinates(self, point: np.ndarray) -> np.ndarray:
        """Those of all features, where moving numbers have some decoded values."""
        numbers, y = self.part.numbers, self.still.copy()
        y[numbers.place] = (point - numbers.value) / numbers.unit
        return y

    def broken(self, row: dict[str, Any]) -> int | None:
        """As ``Walls.broken``."""
        return self.walls.broken(row, self.box)

    def lines(self, c: int, low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Slopes, and values at 0, of lines above how far a wall is left in a box, by feature, in units of rho²."""
        walls, (first, last) = self.walls, self.ends(low, high)
        slopes, ends = np.empty(len(first)), np.empty(len(first))
        cover(walls.left[c], walls.right[c], walls.step, walls.radius, first, last, slopes, ends)
        return slopes, ends - slopes * first

    def away(self, c: int, y: np.ndarray) -> np.ndarray:
        """What the lines are above: by feature, at a point."""
        walls = self.walls
        out = np.maximum(np.maximum(walls.left[c] - y, y - walls.right[c]), 0.0)
        left = (y >= walls.right[c]) | (y <= walls.left[c])
        return np.where(walls.step, np.where(left, walls.radius**2, 0.0), np.minimum(out, walls.radius) ** 2)


class WallProgram(BoxProgram):
    """The program of a box with rows that keep away from walls.

    ``active`` are the walls whose lines are stated, ``tangents`` rows of slopes and least values that are stated
    instead of them.
    """

    def __init__(self, part: HullPart, costs: Costs, reach: Reach) -> None:
        super().__init__(part, costs, CUTS)
        self.reach = reach
        self.active: list[int] = []
        self.tangents: list[tuple[np.ndarray, float]] | None = None

    def prepare(self, low: np.ndarray, high: np.ndarray, forced: np.ndarray, margin: float = 1.0) -> float:
        constant = super().prepare(low, high, forced, margin)
        place, radius = self.part.numbers.place, self.reach.walls.radius
        rows = self.tangents
        if rows is None:
            rows = []
            for c in self.active:
                slopes, values = self.reach.lines(c, low, high)
                fixed = np.delete(slopes * self.reach.still, place).sum() + values.sum()
                rows.append((slopes[place] / radius, radius - fixed / radius))
        return constant if self.cut(rows) else math.inf


class RobustIncumbents(Incumbents):
    """Incumbents are robust, and better by more than a part of what counts as proven."""

    def __init__(self, program: WallProgram, upper: float, deadline: Deadline) -> None:
        super().__init__(program, upper, deadline)
        self.reach = program.reach

    def accepts(self, row: dict[str, Any]) -> bool:
        return self.reach.broken(row) is None

    def _aim(self, upper: float) -> None:
        self.upper, self.close = upper, CLOSE * max(1.0, upper) if math.isfinite(upper) else CLOSE
        self.goal = upper - self.close


class RobustRun(Run):
    """As ``Run``, of points that are robust."""

    program: WallProgram

    def __init__(self, part: HullPart, costs: Costs, upper: float, deadline: Deadline, reach: Reach) -> None:
        self.reach = reach
        super().__init__(part, costs, upper, deadline)
        self.active: dict[int, tuple[int, ...]] = {}  # the walls that a node begins with, by its number

    def _begin(self, upper: float) -> tuple[BoxProgram, Incumbents]:
        program = WallProgram(self.part, self.costs, self.reach)
        return program, RobustIncumbents(program, upper, self.deadline)

    def _expand(self, node: Node) -> list[Node]:
        self.program.active = list(self.active.pop(node.number, ()))
        children = self._divide(node)
        for child in children:
            self.active[child.number] = tuple(self.program.active)
        return children

    def _divide(self, node: Node) -> list[Node]:
        """The children of a node, after its program keeps away from the walls that its points have met."""
        part, incumbents, branching = self.part, self.incumbents, self.branching
        for turn in range(ROUNDS):
            solved = self._solve(node)
            if solved is None:
                return []
            x, point = self._point(solved)
            if (sides := branching.hollow(solved, point)) is not None:
                return sides
            if not self._inside(solved, x, point):
                incumbents.round(point, solved)
                return branching.change(solved) or branching.integer(solved) or branching.halve(solved)
            wall = self.reach.broken(part.read(point))
            if wall is None:
                incumbents.take(point)
                if node.bound >= incumbents.goal:
                    return []
                return branching.change(solved) or branching.halve(solved)
            if wall == UNKNOWN or self.deadline.passed:
                break
            if turn + 1 == ROUNDS or not self._cut(node, wall, solved):
                children = self._leave(solved, wall, point)
                if self._polish(point, solved, near=not children) and node.bound >= incumbents.goal:
                    return []
                return children or branching.halve(solved)
        branching.undecided = min(branching.undecided, node.bound)
        return []

    def _cut(self, node: Node, wall: int, solved: Solved) -> bool:
        """State the lines of a wall, where they cut a solution off and there is room for them."""
        program, solution, radius = self.program, solved.solution, self.reach.walls.radius
        if wall in program.active:
            return False
        slopes, values = self.reach.lines(wall, node.low, node.high)
        y = self.reach.still.copy()
        y[self.part.numbers.place] = solution.moves
        if float(slopes @ y + values.sum()) >= radius * (radius - ROW_MISSED):
            return False
        if len(program.active) == CUTS:
            duals = np.abs(solution.duals[len(program.lines.origin) + 1 :][:CUTS])
            spare = int(np.argmin(duals))
            if duals[spare] > 0:
                return False
            program.active.pop(spare)
        program.active.append(wall)
        return True

    def _leave(self, solved: Solved, wall: int, point: np.ndarray) -> list[Node]:
        """Divide a box where the line of a wall is farthest above what it stands for."""
        node, numbers, walls = solved.node, self.part.numbers, self.reach.walls
        slopes, values = self.reach.lines(wall, node.low, node.high)
        y = self.reach.coordinates(point)
        missed = (slopes * y + values - self.reach.away(wall, y))[numbers.place]
        missed = np.where(node.high > node.low, missed, 0.0)
        k = int(np.argmax(missed))
        if missed[k] <= ROW_MISSED * walls.radius:
            return []
        j = int(numbers.place[k])
        left, right, step = walls.left[wall, j], walls.right[wall, j], bool(walls.step[j])
        top = self.reach.coordinates(node.high)[j]
        at, up = y[j], top >= right if step else top > right + STEP_WIDTH
        if step or left < at < right:
            at = right if up else left
        value, gap = numbers.value[k] + numbers.unit[k] * at, STEP_WIDTH * numbers.unit[k] if step else 0.0
        if numbers.integer[k]:
            end = math.ceil(value - WHOLE_NUMBER) - 1.0 if up or not step else math.floor(value + WHOLE_NUMBER)
            return self.branching.split(solved, k, end, end + 1.0)
        if up:
            return self.branching.split(solved, k, value - gap, value)
        return self.branching.split(solved, k, value, value + gap)

    def _polish(self, point: np.ndarray, solved: Solved, near: bool) -> bool:
        """Look for an incumbent beyond tangents of the walls that a point meets; ``near``: hardly outside its box."""
        part, found = self.part, False
        low, high, rows = part.numbers.low, part.numbers.high, list[tuple[np.ndarray, float]]()
        if near:
            around = LIMIT_MET * part.numbers.unit
            low, high = np.maximum(solved.node.low - around, low), np.minimum(solved.node.high + around, high)
        seen: list[int] = []
        for _ in range(TURNS):
            wall = self.reach.broken(part.read(point))
            if wall is None:
                found = self.incumbents.take(point)
                break
            if wall == UNKNOWN or len(seen) == CUTS or wall in seen:
                break
            seen.append(wall)
            row = self._tangent(wall, point)
            if row is None:
                break
            rows.append(row)
            moved = self._beyond(rows, low, high, solved)
            if moved is None:
                break
            point = moved
        self.program.tangents = None
        return found

    def _beyond(
        self, rows: list[tuple[np.ndarray, float]], low: np.ndarray, high: np.ndarray, solved: Solved
    ) -> np.ndarray | None:
        """The cheapest point of the hull on the far side of tangents."""
        program, part = self.program, self.part
        program.tangents = rows
        constant = program.prepare(low, high, np.zeros(len(low), dtype=bool))
        if constant >= self.incumbents.goal:
            return None
        solution: Solution = program.solve(solved.basis.copy(), self.incumbents.goal - constant)
        if solution.status != kernels.OPTIMAL:
            return None
        x = part.origin + solution.moves
        point = part.numbers.decoded(x, low, high)
        return point if part.numbers.off(x, point) <= COORDINATE_SOLVED else None

    def _tangent(self, wall: int, point: np.ndarray) -> tuple[np.ndarray, float] | None:
        """Slopes and least value of a half-space away from a wall; None where no face of it can be reached."""
        numbers, walls, y = self.part.numbers, self.reach.walls, self.reach.coordinates(point)
        left, right = walls.left[wall], walls.right[wall]
        gaps = np.where(walls.step, 0.0, np.maximum(y - right, 0.0) - np.maximum(left - y, 0.0))
        length = float(np.linalg.norm(gaps))
        if length > TANGENT_ROOM:
            slopes = gaps / length
            ends = np.where(gaps > 0, right, left)
            least = walls.radius + float((slopes * np.where(slopes != 0, ends, 0.0)).sum())
        else:
            way = self._cheapest(wall, y)
            if way is None:
                return None
            j, up = way
            far = 0.0 if walls.step[j] else walls.radius
            slopes = np.zeros(len(y))
            slopes[j] = 1.0 if up else -1.0
            least = right[j] + far if up else far - left[j]
        still = np.delete(slopes * y, numbers.place).sum()
        return slopes[numbers.place], least - float(still) + TANGENT_ROOM

    def _cheapest(self, wall: int, y: np.ndarray) -> tuple[int, bool] | None:
        """The feature, and whether upwards, by which leaving a wall altogether moves least."""
        walls, box, best = self.reach.walls, self.reach.box, (math.inf, 0, True)
        for j in self.part.numbers.place:
            far = 0.0 if walls.step[j] else walls.radius
            for up in (True, False):
                end = walls.right[wall, j] + far if up else walls.left[wall, j] - far
                inside = end <= box.high[j] if up else end >= box.low[j]
                if inside and abs(end - y[j]) < best[0]:
                    best = abs(end - y[j]), int(j), up
        return None if math.isinf(best[0]) else (best[1], best[2])
