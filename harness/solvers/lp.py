"""A linear program that is solved again and again from its last basis."""

from __future__ import annotations

import math

import numpy as np

from harness.solvers.highs import Solution, new_solver, read_solution


class Lp:
    """A linear program kept in the solver: rows are added, costs and bounds change, each solve goes on from the last.

    Parameters
    ----------
    low, high
        Bounds of the columns.
    """

    def __init__(self, low: np.ndarray, high: np.ndarray) -> None:
        self.size = len(low)
        self._solver = new_solver(math.inf)
        self._solver.setOptionValue("presolve", "off")  # it would throw the last basis away
        self._solver.addVars(self.size, np.asarray(low, dtype=float), np.asarray(high, dtype=float))
        self._columns = np.arange(self.size, dtype=np.int32)

    def add(
        self, starts: np.ndarray, columns: np.ndarray, values: np.ndarray, low: np.ndarray, high: np.ndarray
    ) -> None:
        """Add rows in compressed form: row i holds ``values[starts[i]:starts[i + 1]]``."""
        self._solver.addRows(
            len(low), low, high, len(values), starts[:-1].astype(np.int32), columns.astype(np.int32), values
        )

    def add_dense(self, rows: np.ndarray, low: np.ndarray, high: np.ndarray) -> None:
        """Add rows with a coefficient for every column, shape (rows, columns)."""
        count = len(rows)
        starts = np.arange(count + 1) * self.size
        self.add(starts, np.tile(self._columns, count), np.ascontiguousarray(rows, dtype=float).ravel(), low, high)

    def bound(self, column: int, low: float, high: float) -> None:
        """Change the bounds of a column."""
        self._solver.changeColBounds(column, low, high)

    def solve(self, cost: np.ndarray, seconds: float) -> Solution:
        """Minimise ``cost @ x``; the bound is the objective where that is optimal."""
        self._solver.setOptionValue("time_limit", self._solver.getRunTime() + max(seconds, 0.0))
        self._solver.changeColsCost(self.size, self._columns, np.asarray(cost, dtype=float))
        self._solver.run()
        return read_solution(self._solver)
