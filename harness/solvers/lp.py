"""A linear program that is solved again and again from its last basis."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import highspy
import numpy as np
import scipy.sparse as sparse

from harness.core.tolerances import FLAT, RAY_OF_PROGRAM
from harness.solvers.highs import Linear, Solution, new_solver, read_solution

NO_LIMIT = 2**31 - 1  # of iterations, as HiGHS has it


class LpRow(NamedTuple):
    """``low <= form <= high``."""

    form: Linear
    low: float = -math.inf
    high: float = math.inf


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
        self._low, self._high = np.array(low, dtype=float), np.array(high, dtype=float)
        self._rows = [(sparse.csr_matrix((self.size, 0)), np.zeros(0), np.zeros(0))]
        self.slope = np.zeros(self.size)  # what a unit of each column costs besides what the last bound pays for rows

    def add(
        self, starts: np.ndarray, columns: np.ndarray, values: np.ndarray, low: np.ndarray, high: np.ndarray
    ) -> None:
        """Add rows in compressed form: row i holds ``values[starts[i]:starts[i + 1]]``."""
        self._solver.addRows(
            len(low), low, high, len(values), starts[:-1].astype(np.int32), columns.astype(np.int32), values
        )
        matrix = sparse.csr_matrix((values, columns, starts), (len(low), self.size))
        self._rows.append((matrix.T.tocsr(), low, high))

    def add_rows(self, rows: Sequence[LpRow]) -> None:
        """Add rows of their own columns each."""
        forms = [row.form for row in rows]
        starts = np.cumsum([0, *(len(form.columns) for form in forms)])
        columns = np.concatenate([form.columns for form in forms])
        values = np.concatenate([form.coefficients for form in forms])
        constants = np.array([form.constant for form in forms])
        low, high = np.array([row.low for row in rows]), np.array([row.high for row in rows])
        self.add(starts, columns, values, low - constants, high - constants)

    def add_dense(self, rows: np.ndarray, low: np.ndarray, high: np.ndarray) -> None:
        """Add rows with a coefficient for every column, shape (rows, columns)."""
        count = len(rows)
        starts = np.arange(count + 1) * self.size
        self.add(starts, np.tile(self._columns, count), np.ascontiguousarray(rows, dtype=float).ravel(), low, high)

    def bound(self, column: int, low: float, high: float) -> None:
        """Change the bounds of a column."""
        self._low[column], self._high[column] = low, high
        self._solver.changeColBounds(column, low, high)

    def bounds(self, low: np.ndarray, high: np.ndarray) -> None:
        """Change the bounds of all columns."""
        self._low, self._high = np.array(low, dtype=float), np.array(high, dtype=float)
        self._solver.changeColsBounds(self.size, self._columns, self._low, self._high)

    def price(self, cost: np.ndarray) -> None:
        """Change the cost of all columns."""
        self._solver.changeColsCost(self.size, self._columns, np.asarray(cost, dtype=float))

    def reached(self, steps: int, seconds: float) -> float:
        """What the dual simplex gets to within some iterations, for the costs that there are; proves nothing."""
        self._solver.setOptionValue("simplex_iteration_limit", steps)
        self._run(seconds)
        self._solver.setOptionValue("simplex_iteration_limit", NO_LIMIT)
        if self._solver.getModelStatus() == highspy.HighsModelStatus.kInfeasible:
            return math.inf
        return float(self._solver.getInfo().objective_function_value)

    def solve(self, cost: np.ndarray, seconds: float) -> Solution:
        """Minimise ``cost @ x``; the bound is the objective where that is optimal."""
        self.price(cost)
        self._run(seconds)
        return read_solution(self._solver)

    def _run(self, seconds: float) -> None:
        self._solver.setOptionValue("time_limit", self._solver.getRunTime() + max(seconds, 0.0))
        self._solver.run()

    def prove(self, cost: np.ndarray, seconds: float) -> Solution:
        """``solve``, with the bound, or the infeasibility, that the rows' multipliers prove by themselves."""
        found = self.solve(cost, seconds)
        if found.infeasible:
            _, exists, ray = self._solver.getDualRay()
            ray = np.asarray(ray, dtype=float) / max(float(np.abs(ray).max(initial=0.0)), FLAT)
            sides = (self._lagrange(np.zeros(self.size), side * ray)[0] for side in (1.0, -1.0))
            if exists and max(sides) > RAY_OF_PROGRAM:
                return found
            return Solution(None, math.inf, -math.inf)
        if found.x is None:
            return found
        multipliers = np.array(self._solver.getSolution().row_dual)
        if not len(multipliers):  # of a run that was cut short
            return replace(found, bound=-math.inf)
        bound, self.slope = self._lagrange(np.asarray(cost, dtype=float), multipliers)
        return replace(found, bound=min(found.bound, bound))

    def _stacked(self) -> tuple[sparse.csr_matrix, np.ndarray, np.ndarray]:
        """All rows' coefficients, a column of the matrix each, and their ends."""
        if len(self._rows) > 1:
            matrices, lows, highs = zip(*self._rows, strict=True)
            self._rows = [(sparse.hstack(matrices, format="csr"), np.concatenate(lows), np.concatenate(highs))]
        return self._rows[0]

    def _lagrange(self, cost: np.ndarray, multipliers: np.ndarray) -> tuple[float, np.ndarray]:
        """A lower bound on the optimum from any multipliers of rows: positive ones of low ends, negative of high.

        And the slope of what is left of the cost: a column off the end that it prefers costs so much more a unit.
        """
        matrix, low, high = self._stacked()
        ends = np.where(multipliers > 0, low, high)
        own, ends = np.where(np.isfinite(ends), multipliers, 0.0), np.where(np.isfinite(ends), ends, 0.0)
        total, slope = float(own @ ends), cost - matrix @ own
        ends = np.where(slope > 0, self._low, self._high)
        open_ = np.isinf(ends)
        if (np.abs(slope[open_]) > FLAT).any():
            return -math.inf, slope
        return total + float(slope[~open_] @ ends[~open_]), slope
