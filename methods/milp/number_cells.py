"""The cells that splits cut a scaled number into."""

from __future__ import annotations

from typing import Any

import numpy as np

from harness.core.space import Feature, Kind
from harness.core.tolerances import COORDINATE_TIE, FEASIBILITY
from harness.solvers.highs import Linear
from harness.solvers.program import Compiled, Program
from methods.milp.block import keep_to
from methods.milp.interval_block import Sides, cells


class NumberCells:
    """Two rows that keep a number in the cell that the sides of its thresholds give; none without thresholds.

    A decoded value is clipped to that cell, so that the solver's tolerance decides no side. A cell that begins beyond
    what is permitted, by however little, is closed: the tolerance would let a number into it.
    """

    def __init__(self, program: Program, feature: Feature) -> None:
        self.program, self.feature = program, feature
        self.sides = Sides(program, feature)
        self.rows: tuple[Any, ...] = ()  # number >= the cell's first value, and <= its last

    def close(self, number: Any) -> None:
        """State the rows; their coefficients, widths of cells within reach, are set by ``pose``."""
        self.columns = self.sides.close()
        if self.columns:
            total = sum(2.0 * side for side in self.columns)
            self.rows = self.program.add(number - total >= 0), self.program.add(number - total <= 0)

    def attach(self, compiled: Compiled) -> None:
        self.compiled = compiled
        self.sides.attach(compiled)
        self.entries = [np.array([compiled.position(row, side) for side in self.columns]) for row in self.rows]

    def pose(self, value: float, reach: tuple[float, float], change: int, permitted: tuple[float, float]) -> None:
        """Keep the number in the cell that the sides give.

        Parameters
        ----------
        value
            The factual's.
        reach
            Least and greatest value of the program's number, which rounding may have widened.
        change
            The column "changed": to leave the factual's cell is a change.
        permitted
            Least and greatest decoded value that a changed number may take.
        """
        if not self.rows:
            return
        feature, compiled, at = self.feature, self.compiled, self.sides.at
        self.first, self.last = first, last = cells(feature, self.sides.ends)
        self.value, self.permitted = value, permitted
        open_ = (last >= permitted[0]) & (first <= permitted[1])
        if feature.kind is not Kind.INTEGER:
            first, last = ((ends - feature.scale[0]) / feature.range for ends in (first, last))
        floor, ceiling = (compiled.row(row) for row in self.rows)
        starts, ends = np.clip(first, *reach), np.clip(last, *reach)
        compiled.data[self.entries[0]], compiled.row_low[floor] = -np.diff(starts), starts[0]
        compiled.data[self.entries[1]], compiled.row_high[ceiling] = -np.diff(ends), ends[0]
        factual_cell = int(np.searchsorted(self.sides.ends, value, side="left"))
        open_ &= (last >= reach[0] - FEASIBILITY) & (first <= reach[1] + FEASIBILITY)
        open_[factual_cell] = True
        keep_to(compiled, at, open_)
        near = np.flatnonzero(np.maximum(self.first - value, value - self.last) / feature.range <= COORDINATE_TIE)
        down, up = min(factual_cell, *near[:1]), max(factual_cell, *near[-1:])  # as near as rounding is no change
        if up < len(at):
            compiled.add_row(Linear.of([(at[up], 1.0), (change, -1.0)]), high=0.0)
        if down > 0:
            compiled.add_row(Linear.of([(at[down - 1], 1.0), (change, 1.0)]), low=1.0)

    def clip(self, value: float, x: np.ndarray) -> float:
        """A decoded value within the cell of a solution; it moves there only to what is permitted."""
        if not self.rows:
            return value
        cell = int(np.rint(x[self.sides.at]).sum())
        first, last = self.first[cell], self.last[cell]
        if first <= value <= last:
            return value
        low, high = max(first, self.permitted[0]), min(last, self.permitted[1])
        # Of a cell that is open for the factual alone, a special code, nothing else is permitted.
        return float(np.clip(value, low, high)) if low <= high else self.value
