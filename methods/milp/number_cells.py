"""The cells that splits cut a scaled number into."""

from __future__ import annotations

from typing import Any

import numpy as np

from harness.core.space import Feature, Kind
from harness.core.tolerances import FEASIBILITY
from harness.solvers.highs import Linear
from harness.solvers.program import Compiled, Program
from methods.milp.interval_block import Sides, cells


class NumberCells:
    """Two rows that keep a number in the cell that the sides of its thresholds give; none without thresholds.

    A decoded value is clipped to that cell, so that the solver's tolerance decides no side.
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

    def pose(self, value: float, reach: tuple[float, float], change: int) -> None:
        """Keep the number in the cell that the sides give.

        Parameters
        ----------
        value
            The factual's.
        reach
            Least and greatest value of the program's number.
        change
            The column "changed": to leave the factual's cell is a change.
        """
        if not self.rows:
            return
        feature, compiled, at = self.feature, self.compiled, self.sides.at
        self.first, self.last = first, last = cells(feature, self.sides.ends)
        if feature.kind is not Kind.INTEGER:
            first, last = ((ends - feature.scale[0]) / feature.range for ends in (first, last))
        floor, ceiling = (compiled.row(row) for row in self.rows)
        starts, ends = np.clip(first, *reach), np.clip(last, *reach)
        compiled.data[self.entries[0]], compiled.row_low[floor] = -np.diff(starts), starts[0]
        compiled.data[self.entries[1]], compiled.row_high[ceiling] = -np.diff(ends), ends[0]
        factual_cell = int(np.searchsorted(self.sides.ends, value, side="left"))
        near = last >= reach[0] - FEASIBILITY, first <= reach[1] + FEASIBILITY
        least, most = int(near[0].argmax()), len(first) - 1 - int(near[1][::-1].argmax())
        steps = np.arange(1, len(first))
        compiled.low[at], compiled.high[at] = steps <= min(least, factual_cell), steps <= max(most, factual_cell)
        if factual_cell < len(at):
            compiled.add_row(Linear.of([(at[factual_cell], 1.0), (change, -1.0)]), high=0.0)
        if factual_cell > 0:
            compiled.add_row(Linear.of([(at[factual_cell - 1], 1.0), (change, 1.0)]), low=1.0)

    def clip(self, value: float, x: np.ndarray) -> float:
        """A decoded value within the cell of a solution."""
        if not self.rows:
            return value
        cell = int(np.rint(x[self.sides.at]).sum())
        return float(np.clip(value, self.first[cell], self.last[cell]))
