"""A mixed-integer program: written in Pyomo, solved again and again by HiGHS. The only file that knows the solver."""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import highspy
import numpy as np
import pyomo.environ as pyo
import scipy.sparse as sparse
from pyomo.repn.plugins.standard_form import LinearStandardFormCompiler

FEASIBILITY = 1e-7  # of rows, bounds and integrality; with 1e-9 for integrality HiGHS 1.12 gave a wrong optimum
PROVEN = 1e-6  # a gap this small, relative to max(1, |objective|), is none

Expression = Any  # a linear Pyomo expression, or a number


@dataclass(frozen=True)
class Linear:
    """A linear form over the columns of a compiled program: ``coefficients @ x[columns] + constant``."""

    columns: np.ndarray
    coefficients: np.ndarray
    constant: float = 0.0

    @classmethod
    def of(cls, pairs: Sequence[tuple[int, float]] = (), constant: float = 0.0) -> Linear:
        columns = np.array([column for column, _ in pairs], dtype=np.int32)
        return cls(columns, np.array([coefficient for _, coefficient in pairs], dtype=float), constant)

    @classmethod
    def sum(cls, forms: Sequence[Linear]) -> Linear:
        """The sum of forms; columns that several of them name are merged."""
        if not forms:
            return cls.of()
        columns, inverse = np.unique(np.concatenate([form.columns for form in forms]), return_inverse=True)
        coefficients = np.bincount(
            inverse, weights=np.concatenate([form.coefficients for form in forms]), minlength=len(columns)
        )
        return cls(columns.astype(np.int32), coefficients, sum(form.constant for form in forms))

    def __call__(self, x: np.ndarray) -> float:
        return float(self.coefficients @ x[self.columns] + self.constant)


@dataclass(frozen=True)
class Solution:
    """What the solver said.

    Parameters
    ----------
    x
        Values by column, None where no feasible point was found.
    objective, bound
        Of the minimisation; the bound is proven. Infinite where there is no point (no proof).
    infeasible
        Proven: no point satisfies the rows.
    """

    x: np.ndarray | None
    objective: float
    bound: float
    infeasible: bool = False

    @property
    def proven(self) -> bool:
        """Whether the point is optimal, or infeasibility is proven."""
        if self.x is None:
            return self.infeasible
        return self.objective - self.bound <= PROVEN * max(1.0, abs(self.objective))


class Program:
    """Variables and linear constraints, in Pyomo; ``compile`` freezes them into arrays for ``Compiled``."""

    def __init__(self) -> None:
        self.model = pyo.ConcreteModel()
        self.model.variables = pyo.VarList()
        self.model.constraints = pyo.ConstraintList()

    def variable(self, low: float | None = 0.0, high: float | None = 1.0, integer: bool = False) -> Any:
        """A new variable; a binary one is integer within [0, 1]."""
        variable = self.model.variables.add()
        variable.domain = pyo.Integers if integer else pyo.Reals
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

    def compile(self) -> Compiled:
        """Freeze: from here on only bounds, coefficients, costs and temporary rows change."""
        compiler = LinearStandardFormCompiler()
        self.model.cost = pyo.Objective(expr=0)
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
        from pyomo.repn import generate_standard_repn

        repn = generate_standard_repn(expression)
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
    ) -> Solution:
        """Minimise a form.

        Parameters
        ----------
        seconds
            Wall-clock limit.
        scale
            What the solver sees the objective multiplied with, where its absolute tolerances would be coarse.
        met
            Where given, the solver's improving incumbents are appended, each a point by column.
        cutoff
            Points of a greater objective do not count: a row says so, since HiGHS 1.12 was seen to call a wrong optimum
            proven where its option ``objective_bound`` did.
        feasibility
            By how much rows, bounds and integrality may be missed.
        """
        if math.isfinite(cutoff):
            mark = self.mark()
            self.add_row(objective, high=cutoff)
            found = self.solve(objective, seconds, scale=scale, met=met, feasibility=feasibility)
            self.rewind(mark)
            return found
        columns, rows = len(self.low), len(self.row_low)
        if (self.low > self.high).any() or (self.row_low > self.row_high).any():
            return Solution(None, math.inf, math.inf, infeasible=True)
        cost = np.zeros(columns)
        cost[objective.columns] = scale * objective.coefficients
        starts, indices, values = self._rows()
        solver = _solver(seconds, feasibility)
        nothing = np.zeros(1, dtype=np.int32)
        by_rows, no_hessian, minimise = 2, 1, 1
        solver.passModel(
            columns, rows, len(values), 0, by_rows, no_hessian, minimise, scale * objective.constant, cost,
            self.low, self.high, self.row_low, self.row_high, starts, indices, values,
            nothing, nothing, nothing.astype(float), self.integer,
        )  # fmt: skip
        if met is not None:
            solver.cbMipImprovingSolution += lambda event: met.append(np.array(event.data_out.mip_solution))
        solver.run()
        found = _read(solver)
        return Solution(found.x, found.objective / scale, found.bound / scale, found.infeasible)


class Lp:
    """A linear program kept in the solver: rows are added, costs and bounds change, each solve goes on from the last.

    Parameters
    ----------
    low, high
        Bounds of the columns.
    """

    def __init__(self, low: np.ndarray, high: np.ndarray) -> None:
        self.size = len(low)
        self._solver = _solver(math.inf)
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
        return _read(self._solver)


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
        self._solver = _solver(math.inf)
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
        solver = _solver(seconds)
        size, nothing = len(columns), np.zeros(0, dtype=np.int32)
        solver.addRows(
            rows, np.ones(rows), np.full(rows, math.inf), 0, np.zeros(rows, dtype=np.int32), nothing, np.zeros(0)
        )
        _add_covers(solver, columns)
        solver.changeColsIntegrality(size, np.arange(size, dtype=np.int32), [highspy.HighsVarType.kInteger] * size)
        if math.isfinite(most):
            solver.addRow(-math.inf, most, size, np.arange(size, dtype=np.int32), np.ones(size))
        solver.run()
        return _read(solver)


def _add_covers(solver: highspy.Highs, columns: Sequence[np.ndarray]) -> None:
    """Add columns of cost 1 with a 1 in each of their rows; without an upper bound, which would take part in duals."""
    size = len(columns)
    if not size:
        return
    starts = np.concatenate([[0], np.cumsum([len(column) for column in columns])]).astype(np.int32)
    indices = np.concatenate(columns).astype(np.int32)
    cost, low, high, values = np.ones(size), np.zeros(size), np.full(size, math.inf), np.ones(len(indices))
    solver.addCols(size, cost, low, high, len(indices), starts[:-1], indices, values)


def _solver(seconds: float, feasibility: float = FEASIBILITY) -> highspy.Highs:
    solver = highspy.Highs()
    for option, value in (
        ("output_flag", False),
        ("threads", 1),
        ("random_seed", 0),
        ("time_limit", max(seconds, 0.0)),
        ("primal_feasibility_tolerance", feasibility),
        ("dual_feasibility_tolerance", feasibility),
        ("mip_feasibility_tolerance", feasibility),
        ("mip_rel_gap", 0.0),
        ("mip_abs_gap", 1e-6),
    ):
        solver.setOptionValue(option, value)
    return solver


def _read(solver: highspy.Highs) -> Solution:
    status, info = solver.getModelStatus(), solver.getInfo()
    states = highspy.HighsModelStatus
    if status in {states.kInfeasible, states.kUnboundedOrInfeasible}:
        return Solution(None, math.inf, math.inf, infeasible=True)
    if status == states.kModelEmpty:
        return Solution(np.zeros(0), 0.0, 0.0)
    if info.primal_solution_status != 2:  # 2: a feasible point
        return Solution(None, math.inf, _finite(info.mip_dual_bound))
    x = np.array(solver.getSolution().col_value)
    objective = info.objective_function_value
    mixed = info.mip_node_count >= 0
    bound = info.mip_dual_bound if mixed else objective if status == states.kOptimal else -math.inf
    return Solution(x, objective, min(_finite(bound), objective))


def _finite(bound: float) -> float:
    return bound if math.isfinite(bound) else -math.inf
