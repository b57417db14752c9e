"""One minimisation over a part for a network of ReLUs: rows above its margin, and units that are at work or not."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from harness.core.method import Deadline
from harness.core.tolerances import COST_TIE, ROW_MISSED, SCORE_TIE
from methods.hull_search.bounds import BoxProgram, Costs, Node, Solved
from methods.hull_search.incumbents import Incumbents
from methods.hull_search.network_kernels import rows_above
from methods.hull_search.part import HullPart
from methods.hull_search.run import Run

ROWS = 8  # forms above the margin, and units' sums, that the program of one box has
ROUNDS = 6  # of rows in one node


@dataclass(frozen=True)
class Known:
    """What a node knows beside its box.

    ``phases``: by hidden unit, at work (1), not at work (-1) or either (0); ``patterns``: which hidden units are at
    work where a form is near the margin; ``stated``: the units of the first layer whose sums have a row.
    """

    phases: np.ndarray
    patterns: tuple[np.ndarray, ...] = ()
    stated: tuple[int, ...] = ()


class NetworkProgram(BoxProgram):
    """The program of a box with rows that the network's margin asks for; ``known``: of the node at hand."""

    def __init__(self, part: HullPart, costs: Costs) -> None:
        super().__init__(part, costs, ROWS)
        assert part.model.margins is not None
        self.net, self.units = part.model.margins, part.units
        widths = [len(shifts) for _, shifts in self.net.layers]
        self.starts = np.cumsum(widths)[:-1]  # of the layers but the first
        self.known = Known(np.zeros(sum(widths)))
        self.usual = (np.ones(sum(widths), dtype=bool),)  # a pattern where none is known
        # As the kernel takes them, for each box.
        units, (last,), (constant,) = self.units, self.net.ends, self.net.shifts
        self.first_layer = units.slope, units.sums, units.low, units.high
        self.layers = *self.net.stacked, last, float(constant)

    def by_layer(self, values: np.ndarray) -> list[np.ndarray]:
        """Values of all hidden units, shape (..., units), by layer."""
        return np.split(values, self.starts, axis=-1)

    def ends(self, low: np.ndarray, high: np.ndarray) -> tuple[list[np.ndarray], list[np.ndarray]]:
        """Bounds of all sums in a box of decoded values, by layer, shape (1, units)."""
        numbers = self.part.numbers
        first = self.units.ends((low - numbers.value) / numbers.unit, (high - numbers.value) / numbers.unit)
        return self.net.bounds(first[0][None], first[1][None], self.by_layer(self.known.phases))

    def rows_of(self, low: np.ndarray, high: np.ndarray) -> list[tuple[np.ndarray, float]] | None:
        """Slopes and least values of the rows in a box; None where no point of it is valid."""
        numbers, units, known = self.part.numbers, self.units, self.known
        moves = (low - numbers.value) / numbers.unit, (high - numbers.value) / numbers.unit
        patterns = np.array(known.patterns or self.usual)
        forms, shifts = np.empty((len(patterns), len(units.sums))), np.empty(len(patterns))
        if not rows_above(self.first_layer, self.layers, *moves, known.phases, patterns, forms, shifts):
            return None
        least = -SCORE_TIE - (shifts + forms @ units.sums)
        rows = list(zip(forms @ units.slope, least.tolist(), strict=True))
        for unit in known.stated:
            sign = known.phases[unit]
            size = float(np.abs(units.slope[unit]).max()) or 1.0
            rows.append((sign * units.slope[unit] / size, -sign * float(units.sums[unit]) / size - SCORE_TIE))
        return rows

    def prepare(self, low: np.ndarray, high: np.ndarray, forced: np.ndarray, margin: float = 1.0) -> float:
        constant = super().prepare(low, high, forced, margin)
        rows = self.rows_of(low, high) if margin > 0 else []  # none: what a point outside the hull costs is asked
        return math.inf if rows is None or not self.cut(rows) else constant

    def margin(self, moves: np.ndarray) -> tuple[float, list[np.ndarray]]:
        """The network's margin at moves, and the sums of all layers there."""
        sums = self.net.sums(self.units.at(moves)[None])
        return float((np.maximum(sums[-1], 0.0) @ self.net.ends[0] + self.net.shifts[0])[0]), sums


class NetworkRun(Run):
    r"""As ``Run``, for networks of ReLUs.

    A node's program has linear forms above the network's margin over its box (``network_margins.py``): each exact, but
    for chords, where the units are at work that are so at a solution met before. Where a solution is invalid, a unit
    whose chord errs most there is at work in one child and not in the other; its sum has a row once a solution is on
    the wrong side.
    """

    program: NetworkProgram

    def __init__(self, part: HullPart, costs: Costs, upper: float, deadline: Deadline) -> None:
        super().__init__(part, costs, upper, deadline)
        self.known: dict[int, Known] = {}

    def _begin(self, upper: float) -> tuple[BoxProgram, Incumbents]:
        program = NetworkProgram(self.part, self.costs)
        return program, Incumbents(program, upper, self.deadline)

    def _start(self) -> Known:
        """What is known of a part: which units are at work at the factual's numbers."""
        _, sums = self.program.margin(np.zeros(len(self.part.numbers.place)))
        pattern = np.concatenate(sums, axis=1)[0] > 0
        return Known(np.zeros(len(pattern)), (pattern,))

    def hopeless(self, low: np.ndarray, high: np.ndarray) -> bool:
        node = self._root(low, high)
        self.program.known = self._start()
        solved = self._met(node)
        if solved is not None:
            self.basis = solved[0].basis
        return solved is None

    def _met(self, node: Node) -> tuple[Solved, float, list[np.ndarray]] | None:
        """A solved node, once its program has the rows that its solutions miss, its margin and sums; None: done."""
        rounds = 1
        while (solved := self._solve(node)) is not None:
            margin, sums = self.program.margin(solved.solution.moves)
            if rounds == ROUNDS or not self._row(node, solved, margin, sums):
                return solved, margin, sums
            rounds += 1
        return None

    def _expand(self, node: Node) -> list[Node]:
        program = self.program
        program.known = self.known.pop(node.number) if node.number in self.known else self._start()
        children = self._divide(node)
        for child in children:
            self.known.setdefault(child.number, program.known)
        return children

    def _divide(self, node: Node) -> list[Node]:
        """The children of a node, after its program has the rows that its solutions miss."""
        incumbents, branching = self.incumbents, self.branching
        met = self._met(node)
        if met is None:
            return []
        solved, margin, sums = met
        x, point = self._point(solved)
        if (sides := branching.hollow(solved, point)) is not None:
            return sides
        if not self._inside(solved, x, point):
            incumbents.round(point, solved)
        elif self._accepted(point) and incumbents.take(point) and node.bound >= incumbents.goal:
            return []
        children = self._phase(solved, sums) if margin < -ROW_MISSED else []
        return children or branching.change(solved) or branching.integer(solved) or branching.halve(solved)

    def _accepted(self, point: np.ndarray) -> bool:
        """Whether the network's margin at a point of decoded values is kept, up to rounding."""
        numbers = self.part.numbers
        return self.program.margin((point - numbers.value) / numbers.unit)[0] >= -SCORE_TIE

    def _row(self, node: Node, solved: Solved, margin: float, sums: list[np.ndarray]) -> bool:
        """State a row that a solution misses, where there is room for it: a sum of a unit, or a form."""
        program, known = self.program, self.program.known
        values = np.concatenate(sums, axis=1)[0]
        first = len(sums[0][0])
        wrong = np.maximum(-known.phases[:first] * values[:first], 0.0)
        wrong[list(known.stated)] = 0.0
        if wrong.max(initial=0.0) > ROW_MISSED:
            new = Known(known.phases, known.patterns, (*known.stated, int(wrong.argmax())))
        elif margin < -ROW_MISSED:
            pattern = values > 0
            if any((pattern == old).all() for old in known.patterns):
                return False
            lows, highs = program.ends(node.low, node.high)
            ((weights, shift),) = program.net.above(lows, highs, program.by_layer(pattern[None]))
            if float(shift[0] + weights[0] @ sums[0][0]) >= -ROW_MISSED:
                return False
            new = Known(known.phases, (*known.patterns, pattern), known.stated)
        else:
            return False
        program.known = new if len(new.patterns) + len(new.stated) <= ROWS else self._spared(new, solved)
        return program.known is not known

    def _spared(self, new: Known, solved: Solved) -> Known:
        """What is known without the row that a solution needs least; as before, where it needs all."""
        program, known = self.program, self.program.known
        duals = np.abs(solved.solution.duals[len(program.lines.origin) + 1 :][:ROWS])
        spare = int(np.argmin(duals))
        if duals[spare] > COST_TIE:
            return known
        count = len(known.patterns)
        if spare < count:
            return Known(new.phases, new.patterns[:spare] + new.patterns[spare + 1 :], new.stated)
        spare -= count
        return Known(new.phases, new.patterns, new.stated[:spare] + new.stated[spare + 1 :])

    def _phase(self, solved: Solved, sums: list[np.ndarray]) -> list[Node]:
        """A child where the unit whose chord errs most is at work, and one where it is not; none where none errs."""
        program, known, node = self.program, self.program.known, solved.node
        lows, highs = program.ends(node.low, node.high)
        gaps = np.concatenate(program.net.loose(lows, highs, sums), axis=1)[0]
        unit = int(gaps.argmax())
        if gaps[unit] <= SCORE_TIE:
            return []
        children = []
        for phase in (1.0, -1.0):
            phases = known.phases.copy()
            phases[unit] = phase
            program.known = Known(phases, known.patterns, known.stated)
            child = self.branching.child(solved, node.low, node.high, node.forced)
            self.known[child.number] = program.known
            children.append(child)
        program.known = known
        return children
