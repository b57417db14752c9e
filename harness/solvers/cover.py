"""The smallest set cover, as an integer program."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from typing import Any

import highspy
import numpy as np

from harness.solvers.highs import RUNS, Solution, confirmed, new_solver, run_from


class Cover:
    r"""The fewest columns that cover every row, :math:`\min \sum_c y_c, \; \sum_{c \ni i} y_c \ge 1`.

    Its linear relaxation is kept in the solver and goes on from the last solve as columns are added.

    Parameters
    ----------
    rows
        Their number.
    """

    def __init__(self, rows: int) -> None:
        self.rows = rows
        self.columns: list[np.ndarray] = []
        self._solver = new_solver(math.inf)
        self._solver.setOptionValue("presolve", "off")  # it would throw the last basis away
        nothing = np.zeros(0, dtype=np.int32)
        self._solver.addRows(
            rows, np.ones(rows), np.full(rows, math.inf), 0, np.zeros(rows, dtype=np.int32), nothing, np.zeros(0)
        )

    def add(self, columns: Sequence[np.ndarray]) -> None:
        """Add columns, each the rows that it covers."""
        self.columns.extend(columns)
        _add_covers(self._solver, columns)

    def relax(self, seconds: float) -> tuple[float, np.ndarray] | None:
        """The relaxation's value and its duals, not negative, shape (rows,); None where the time did not suffice."""
        self._solver.setOptionValue("time_limit", self._solver.getRunTime() + max(seconds, 0.0))
        self._solver.run()
        if self._solver.getModelStatus() != highspy.HighsModelStatus.kOptimal:
            return None
        duals = np.maximum(np.array(self._solver.getSolution().row_dual), 0.0)
        return float(self._solver.getInfo().objective_function_value), duals

    @staticmethod
    def solve(rows: int, columns: Sequence[np.ndarray], seconds: float, most: float = math.inf) -> Solution:
        """The fewest of these columns that cover all rows, at most ``most``; x holds 0 or 1 by column."""
        until = time.monotonic() + seconds
        size, nothing = len(columns), np.zeros(0, dtype=np.int32)
        every = np.arange(size, dtype=np.int32)

        def run(options: Mapping[str, Any], left: float, start: np.ndarray | None) -> Solution:
            solver = new_solver(left, options=options)
            solver.addRows(
                rows, np.ones(rows), np.full(rows, math.inf), 0, np.zeros(rows, dtype=np.int32), nothing, np.zeros(0)
            )
            _add_covers(solver, columns)
            solver.changeColsIntegrality(size, every, [highspy.HighsVarType.kInteger] * size)
            if math.isfinite(most):
                solver.addRow(-math.inf, most, size, every, np.ones(size))
            return run_from(solver, start)

        return confirmed(run(RUNS[0], seconds, None), run, until)


def _add_covers(solver: highspy.Highs, columns: Sequence[np.ndarray]) -> None:
    """Add columns of cost 1 with a 1 in each of their rows; without an upper bound, which would take part in duals."""
    size = len(columns)
    if not size:
        return
    starts = np.concatenate([[0], np.cumsum([len(column) for column in columns])]).astype(np.int32)
    indices = np.concatenate(columns).astype(np.int32)
    cost, low, high, values = np.ones(size), np.zeros(size), np.full(size, math.inf), np.ones(len(indices))
    solver.addCols(size, cost, low, high, len(indices), starts[:-1], indices, values)
