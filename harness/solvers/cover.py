"""The smallest or cheapest set cover, and the cheapest assignment to few places, as integer programs."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from typing import Any

import highspy
import numpy as np
import scipy.sparse as sparse

from harness.solvers.highs import RUNS, Solution, confirmed, new_solver, solved


class Cover:
    r"""The fewest, or cheapest, columns that cover every row, :math:`\min \sum_c k_c y_c, \; \sum_{c \ni i} y_c \ge 1`.

    Its linear relaxation is kept in the solver and goes on from the last solve as columns are added.

    Parameters
    ----------
    rows
        Their number.
    most
        Columns in use, at most.
    """

    def __init__(self, rows: int, most: float = math.inf) -> None:
        self.rows, self.most = rows, most
        self.columns: list[np.ndarray] = []
        self._solver = new_solver(math.inf)
        self._solver.setOptionValue("presolve", "off")  # it would throw the last basis away
        add_rows(self._solver, rows, most)

    def add(self, columns: Sequence[np.ndarray], costs: Sequence[float] | None = None) -> None:
        """Add columns, each the rows that it covers; each costs 1 if nothing else is said."""
        self.columns.extend(columns)
        _add_covers(self._solver, self.rows, columns, costs, math.isfinite(self.most))

    def relax(self, seconds: float) -> tuple[float, np.ndarray] | None:
        """The relaxation's value and its duals, not negative, shape (rows,); None where the time did not suffice.

        Where the number of columns is limited, what one more of them would save comes last, shape (rows + 1,).
        """
        self._solver.setOptionValue("time_limit", self._solver.getRunTime() + max(seconds, 0.0))
        self._solver.run()
        if self._solver.getModelStatus() != highspy.HighsModelStatus.kOptimal:
            return None
        duals = np.array(self._solver.getSolution().row_dual)
        duals[self.rows :] *= -1.0
        return float(self._solver.getInfo().objective_function_value), np.maximum(duals, 0.0)

    @staticmethod
    def solve(
        rows: int,
        columns: Sequence[np.ndarray],
        seconds: float,
        most: float = math.inf,
        costs: Sequence[float] | None = None,
    ) -> Solution:
        """The fewest, or cheapest, of these columns that cover all rows, at most ``most``; x holds 0 or 1 by column."""
        until = time.monotonic() + seconds
        size = len(columns)

        def run(options: Mapping[str, Any], left: float) -> Solution:
            solver = new_solver(left, options=options)
            add_rows(solver, rows, most)
            _add_covers(solver, rows, columns, costs, math.isfinite(most))
            _make_integer(solver, size)
            return solved(solver)

        return confirmed(run(RUNS[0], seconds), run, until)


def assign(
    rows: int, places: Sequence[tuple[np.ndarray, np.ndarray]], seconds: float, most: int, below: float
) -> Solution:
    r"""At most ``most`` of these places, and for each row one of them, at the least total cost, at most ``below``.

    .. math::
        \min \; \textstyle\sum_{c, i} k_{ic} a_{ic} \quad \text{s.t.} \quad \textstyle\sum_c a_{ic} \ge 1, \quad
            a_{ic} \le y_c, \quad \textstyle\sum_c y_c \le K

    Parameters
    ----------
    places
        Of each the rows that it can serve, and the cost of each of them.

    Returns
    -------
    Its x holds y by place, then a, by place and row.
    """
    until = time.monotonic() + seconds
    count, sizes = len(places), [len(served) for served, _ in places]
    pairs = sum(sizes)
    served = np.concatenate([served for served, _ in places])
    costs = np.concatenate([cost for _, cost in places]).astype(float)
    owner = np.repeat(np.arange(count), sizes)
    matrix = sparse.vstack(
        [
            sparse.csr_matrix((np.ones(pairs), (served, count + np.arange(pairs))), shape=(rows, count + pairs)),
            sparse.hstack(
                [
                    sparse.csr_matrix((np.ones(pairs), (np.arange(pairs), owner)), shape=(pairs, count)),
                    -sparse.eye(pairs, format="csr"),
                ]
            ),
            sparse.csr_matrix(np.concatenate([np.ones(count), np.zeros(pairs)])[None]),
            sparse.csr_matrix(np.concatenate([np.zeros(count), costs])[None]),
        ],
        format="csr",
    )
    low = np.concatenate([np.ones(rows), np.zeros(pairs), [-math.inf, -math.inf]])
    high = np.concatenate([np.full(rows + pairs, math.inf), [most, below]])

    def run(options: Mapping[str, Any], left: float) -> Solution:
        solver = new_solver(left, options=options)
        nothing, size = np.zeros(0, dtype=np.int32), count + pairs
        solver.addCols(
            size, np.concatenate([np.zeros(count), costs]), np.zeros(size), np.ones(size), 0,
            np.zeros(size, dtype=np.int32), nothing, np.zeros(0),
        )  # fmt: skip
        solver.addRows(
            len(low), low, high, matrix.nnz, matrix.indptr[:-1].astype(np.int32), matrix.indices.astype(np.int32),
            matrix.data,
        )  # fmt: skip
        _make_integer(solver, count)  # the assignment follows
        return solved(solver)

    return confirmed(run(RUNS[0], seconds), run, until)


def _make_integer(solver: highspy.Highs, count: int) -> None:
    """Of the first columns."""
    solver.changeColsIntegrality(count, np.arange(count, dtype=np.int32), [highspy.HighsVarType.kInteger] * count)


def add_rows(solver: highspy.Highs, rows: int, most: float) -> None:
    """Each row at least once, and, where that is finite, at most so many columns."""
    low, high = np.ones(rows), np.full(rows, math.inf)
    if math.isfinite(most):
        low, high = np.append(low, -math.inf), np.append(high, most)
    nothing = np.zeros(0, dtype=np.int32)
    solver.addRows(len(low), low, high, 0, np.zeros(len(low), dtype=np.int32), nothing, np.zeros(0))


def _add_covers(
    solver: highspy.Highs, rows: int, columns: Sequence[np.ndarray], costs: Sequence[float] | None, limited: bool
) -> None:
    """Add columns with a 1 in each of their rows, and, where their number is limited, in the row that counts them.

    They have no upper bound, which would take part in duals.
    """
    size = len(columns)
    if not size:
        return
    if limited:
        columns = [np.append(column, rows) for column in columns]
    starts = np.concatenate([[0], np.cumsum([len(column) for column in columns])]).astype(np.int32)
    indices = np.concatenate(columns).astype(np.int32)
    cost = np.ones(size) if costs is None else np.array(costs, dtype=float)
    low, high, values = np.zeros(size), np.full(size, math.inf), np.ones(len(indices))
    solver.addCols(size, cost, low, high, len(indices), starts[:-1], indices, values)
