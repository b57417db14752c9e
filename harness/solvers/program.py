"""Mixed-integer programs in Pyomo, compiled once for HiGHS and changed between solves."""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sparse

from harness.core.tolerances import FEASIBILITY
from harness.solvers.highs import (
    RUNS,
    Linear,
    Solution,
    confirmed,
    cut_short,
    new_solver,
    solved,
)
from harness.solvers.lp import Lp

Expression = Any  # a linear Pyomo expression, or a number


def _pyomo() -> Any:
    """Pyomo, with what it writes programs by."""
    import pyomo.environ  # slow: searches that need no program come without it

    return pyomo


class Program:
    """Variables and linear constraints, in Pyomo; ``compile`` freezes them into arrays for ``Compiled``."""

    def __init__(self) -> None:
        pyo = _pyomo().environ
        self.model = pyo.ConcreteModel()
        self.model.variables = pyo.VarList()
        self.model.constraints = pyo.ConstraintList()

    def variable(self, low: float | None = 0.0, high: float | None = 1.0, integer: bool = False) -> Any:
        """A new variable; a binary one is integer within [0, 1]."""
        variable = self.model.variables.add()
        variable.domain = _pyomo().environ.Integers if integer else _pyomo().environ.Reals
        variable.setlb(low)
        variable.setub(high)
        return variable

    def binary(self) -> Any:
        """A new 0/1 variable."""
        return self.variable(0, 1, integer=True)

    def add(self, relation: Any) -> Any:
        """Add a constraint, such as ``x + y <= 1``; returns it, so that its row can be found after ``compile``."""
        if isinstance(relation, bool | np.bool_):  # of constants; a column that is 0 can or cannot hold it
            relation = self.variable(0, 0) >= (0 if relation else 1)
        return self.model.constraints.add(relation)

    def constant(self, expression: Expression) -> float | None:
        """The value of an expression whose coefficients are all 0, which ``compile`` would drop; None of others."""
        repn = _pyomo().repn.generate_standard_repn(expression)
        return None if any(repn.linear_coefs) else float(repn.constant)

    def compile(self) -> Compiled:
        """Freeze: from here on only bounds, coefficients, costs and temporary rows change."""
        compiler = _pyomo().repn.plugins.standard_form.LinearStandardFormCompiler()
        self.model.cost = _pyomo().environ.Objective(expr=0)
        form = compiler.write(self.model, mixed_form=True)
        self.model.del_component("cost")
        variables = list(self.model.variables.values())
        index = {id(variable): column for column, variable in enumerate(variables)}
        order = np.array([index[id(variable)] for variable in form.columns], dtype=np.int32)
        matrix = sparse.csc_matrix(form.A).tocoo()
        columns = order[matrix.col] if len(order) else matrix.col
        return Compiled(
            variables,
            form.rows,
            form.rhs,
            sparse.csr_matrix((matrix.data, (matrix.row, columns)), shape=(len(form.rows), len(variables))),
        )


class Compiled:
    """A program as arrays, kept between solves.

    Between factuals write to ``low``, ``high``, ``row_low``, ``row_high`` and ``data`` (through ``position``), add
    temporary columns and rows, and ``rewind`` them.
    """

    def __init__(
        self, variables: list[Any], rows: Sequence[Any], rhs: Sequence[float], matrix: sparse.csr_matrix
    ) -> None:
        self._column = {id(variable): column for column, variable in enumerate(variables)}
        self._keep = variables  # ids stay unique while the objects live
        self.low = np.array([-math.inf if v.lb is None else v.lb for v in variables], dtype=float)
        self.high = np.array([math.inf if v.ub is None else v.ub for v in variables], dtype=float)
        self.integer = np.array([v.is_integer() for v in variables], dtype=np.int32)
        self._row: dict[int, int] = {}
        self.row_low = np.full(len(rows), -math.inf)
        self.row_high = np.full(len(rows), math.inf)
        for number, (entry, value) in enumerate(zip(rows, rhs, strict=True)):
            self._row[id(entry.constraint)] = number
            if entry.bound_type >= 0:
                self.row_high[number] = value
            if entry.bound_type <= 0:
                self.row_low[number] = value
        self.matrix = matrix
        self.matrix.sort_indices()
        self._extra: list[tuple[np.ndarray, np.ndarray]] = []

    @property
    def data(self) -> np.ndarray:
        """The coefficients of the compiled rows; write through ``position``."""
        return self.matrix.data

    def column(self, variable: Any) -> int:
        """The column of a Pyomo variable."""
        return self._column[id(variable)]

    def row(self, constraint: Any) -> int:
        """The row of a Pyomo constraint."""
        return self._row[id(constraint)]

    def position(self, constraint: Any, variable: Any) -> int:
        """Where the coefficient of a variable in a constraint lies in ``data``; it must not have been 0."""
        row, column = self.row(constraint), self.column(variable)
        start, end = self.matrix.indptr[row], self.matrix.indptr[row + 1]
        found = start + int(np.searchsorted(self.matrix.indices[start:end], column))
        if found >= end or self.matrix.indices[found] != column:
            raise KeyError(f"the constraint has no entry for {variable}")
        return found

    def linear(self, expression: Expression) -> Linear:
        """A linear Pyomo expression as a form over columns."""
        repn = _pyomo().repn.generate_standard_repn(expression)
        pairs = [(self.column(v), float(c)) for v, c in zip(repn.linear_vars, repn.linear_coefs, strict=True)]
        return Linear.of(pairs, float(repn.constant))

    def add_column(self, low: float = 0.0, high: float = 1.0, integer: bool = True) -> int:
        """A temporary column, by default a 0/1 one."""
        first = self.add_columns(1, low, high)
        self.integer[first] = integer
        return first

    def add_columns(self, count: int, low: float, high: float) -> int:
        """Temporary continuous columns; returns the first."""
        first = len(self.low)
        self.low, self.high = np.append(self.low, np.full(count, low)), np.append(self.high, np.full(count, high))
        self.integer = np.append(self.integer, np.zeros(count, dtype=np.int32))
        return first

    def add_row(self, form: Linear, low: float = -math.inf, high: float = math.inf) -> None:
        """A temporary row: ``low <= form <= high``."""
        self._extra.append((form.columns, form.coefficients))
        self.row_low = np.append(self.row_low, low - form.constant)
        self.row_high = np.append(self.row_high, high - form.constant)

    def mark(self) -> tuple[int, int]:
        """Where the columns and rows end now, for ``rewind``."""
        return len(self.low), len(self.row_low)

    def rewind(self, mark: tuple[int, int]) -> None:
        """Drop the temporary columns and rows added since ``mark``."""
        columns, rows = mark
        self.low, self.high, self.integer = self.low[:columns], self.high[:columns], self.integer[:columns]
        self.row_low, self.row_high = self.row_low[:rows], self.row_high[:rows]
        del self._extra[rows - self.matrix.shape[0] :]

    def _rows(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Where each row starts, its columns and coefficients; temporary rows included."""
        sizes = [len(indices) for indices, _ in self._extra]
        starts = np.concatenate([self.matrix.indptr, self.matrix.nnz + np.cumsum(sizes, dtype=int)]).astype(np.int32)
        indices = np.concatenate([self.matrix.indices, *(indices for indices, _ in self._extra)]).astype(np.int32)
        return starts, indices, np.concatenate([self.matrix.data, *(values for _, values in self._extra)])

    def repeated(self, copies: int) -> Compiled:
        """So many copies side by side, of compiled rows and columns only: column j of copy k is k * width + j."""
        twin = copy.copy(self)
        for name in ("low", "high", "integer", "row_low", "row_high"):
            setattr(twin, name, np.tile(getattr(self, name), copies))
        twin.matrix = sparse.csr_matrix(sparse.kron(sparse.eye(copies), self.matrix, format="csr"))
        twin._extra = []
        return twin

    def relaxation(self) -> Lp:
        """The program as it stands without integrality, kept in the solver."""
        lp = Lp(self.low, self.high)
        starts, indices, values = self._rows()
        lp.add(starts, indices, values, self.row_low, self.row_high)
        return lp

    def solve(
        self,
        objective: Linear,
        seconds: float,
        scale: float = 1.0,
        met: list[np.ndarray] | None = None,
        cutoff: float = math.inf,
        feasibility: float = FEASIBILITY,
        confirm: bool = True,
    ) -> Solution:
        """Minimise a form.

        Parameters
        ----------
        seconds
            Wall-clock limit, for all runs.
        scale
            What the solver sees the objective multiplied with, where its absolute tolerances would be coarse.
        met
            Where given, the first run's improving incumbents are appended, each a point by column.
        cutoff
            Points of a greater objective do not count: a row says so, since HiGHS 1.12 was seen to call a wrong optimum
            proven where its option ``objective_bound`` did.
        feasibility
            By how much rows, bounds and integrality may be missed.
        confirm
            Whether a proof has to be confirmed by a second run. Without it the solution proves nothing: for points that
            are only looked at, and where ``confirm`` follows.
        """
        until = time.monotonic() + seconds
        if (self.low > self.high).any() or (self.row_low > self.row_high).any():
            return Solution(None, math.inf, math.inf, infeasible=True)
        with self._below(objective, cutoff):
            found = self._run(objective, scale, feasibility, RUNS[0], seconds, met=met)
        return (
            self.confirm(found, objective, until - time.monotonic(), scale, cutoff, feasibility) if confirm else found
        )

    def confirm(
        self,
        found: Solution,
        objective: Linear,
        seconds: float,
        scale: float = 1.0,
        cutoff: float = math.inf,
        feasibility: float = FEASIBILITY,
    ) -> Solution:
        """What further runs confirm of a solution of ``solve``, whose other arguments these are."""
        if not found.proven:
            return cut_short(found) if self.integer.any() else found

        def run(options: Mapping[str, Any], left: float) -> Solution:
            return _times(self._run(objective, scale, feasibility, options, left), scale)

        with self._below(objective, cutoff):
            return _times(confirmed(_times(found, scale), run, time.monotonic() + seconds), 1.0 / scale)

    @contextmanager
    def _below(self, objective: Linear, cutoff: float) -> Iterator[None]:
        """A row for a while: the objective is at most ``cutoff``."""
        mark = self.mark()
        if math.isfinite(cutoff):
            self.add_row(objective, high=cutoff)
        yield
        self.rewind(mark)

    def _run(
        self,
        objective: Linear,
        scale: float,
        feasibility: float,
        options: Mapping[str, Any],
        seconds: float,
        met: list[np.ndarray] | None = None,
    ) -> Solution:
        """One run of the solver, with options."""
        columns, rows = len(self.low), len(self.row_low)
        cost = np.zeros(columns)
        cost[objective.columns] = scale * objective.coefficients
        starts, indices, values = self._rows()
        solver = new_solver(seconds, feasibility, options)
        nothing = np.zeros(1, dtype=np.int32)
        by_rows, no_hessian, minimise = 2, 1, 1
        solver.passModel(
            columns, rows, len(values), 0, by_rows, no_hessian, minimise, scale * objective.constant, cost,
            self.low, self.high, self.row_low, self.row_high, starts, indices, values,
            nothing, nothing, nothing.astype(float), self.integer,
        )  # fmt: skip
        if met is not None:
            solver.cbMipImprovingSolution += lambda event: met.append(np.array(event.data_out.mip_solution))
        return _times(solved(solver), 1.0 / scale)


def _times(found: Solution, factor: float) -> Solution:
    """A solution of an objective that is multiplied by a factor."""
    return replace(found, objective=found.objective * factor, bound=found.bound * factor)
