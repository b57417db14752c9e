"""HiGHS: options, statuses, linear expressions and solutions, and what makes a solution a proof."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import highspy
import numpy as np

from harness.core.doubts import ONE_RUN, doubt
from harness.core.tolerances import FEASIBILITY, OPTIMALITY_GAP
from harness.solvers.silence import silent

# No option of HiGHS, but of ``new_solver``; what it loosens bounds from below.
LOOSENESS = "times the feasibility tolerance"
# No single run proves anything: with presolve, releases 1.12 to 1.15 were seen to lose optimal points. A run differs
# from those before it in these options; two that agree are enough.
RUNS: tuple[Mapping[str, Any], ...] = (
    {}, {"presolve": "off"}, {"presolve": "off", "mip_heuristic_effort": 0.0, LOOSENESS: 10.0},
)  # fmt: skip


@dataclass(frozen=True)
class Linear:
    """A linear form over the columns of a compiled program: ``coefficients @ x[columns] + constant``."""

    columns: np.ndarray
    coefficients: np.ndarray
    constant: float = 0.0

    @classmethod
    def of(cls, pairs: Sequence[tuple[int, float]] = (), constant: float = 0.0) -> Linear:
        """A form of pairs of column and coefficient, no column twice."""
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
    """The solver's status, objective, bound and point.

    Parameters
    ----------
    x
        Values by column, None where no feasible point was found.
    objective, bound
        Of the minimisation; the bound is proven. Infinite where there is no point (no proof).
    infeasible
        Proven: no point satisfies the rows.
    unconfirmed
        Whether a run claimed a proof that no second one came to, so that the bound is a weaker one.
    """

    x: np.ndarray | None
    objective: float
    bound: float
    infeasible: bool = False
    unconfirmed: bool = False

    @property
    def proven(self) -> bool:
        """Whether the point is optimal, or infeasibility is proven."""
        if self.x is None:
            return self.infeasible
        return self.objective - self.bound <= OPTIMALITY_GAP * max(1.0, abs(self.objective))

    def limit(self, best: float, step: float) -> float:
        """The bound, where that is no proof so far below a known value that it proves nothing of that, either.

        A run that is cut short has a bound that no second run came to: it tells a gap, and closes none.
        """
        return self.bound if self.proven or math.isinf(best) else min(self.bound, best - step)


def confirmed(first: Solution, run: Callable[[Mapping[str, Any], float], Solution], until: float) -> Solution:
    """What a run with other options confirms of a proof; where the two contradict each other, a third one decides.

    None starts from what another one found: HiGHS 1.12 was seen to call a wrong optimum proven by all of ``RUNS`` from
    the first one's point, and by none of the others without it. The third one has a looser tolerance: without presolve
    a point that rows hold in place may be missed.

    Parameters
    ----------
    first
        The outcome of a run with the first of ``RUNS``; returned as it is where it claims no proof.
    run
        Solves with options, for so many seconds.
    until
        Of the monotonic clock.
    """
    runs = [first]
    while runs[-1].proven and len(runs) < len(RUNS):
        runs.append(run(RUNS[len(runs)], until - time.monotonic()))
        if (found := _agreed(runs)).proven:
            return found
    if len(runs) == 1:
        return cut_short(first)
    doubt("a solver's run claimed an optimum, or that there is none, which no second run came to in time")
    return replace(_agreed(runs), unconfirmed=True)


def cut_short(found: Solution) -> Solution:
    """A solution of a mixed-integer program that claims no proof; its bound, if it has one, is doubted."""
    if math.isfinite(found.bound):
        doubt(ONE_RUN)
    return found


def _agreed(runs: Sequence[Solution]) -> Solution:
    """The best point of some runs, and the bound that two of them came to; one above that point is refuted by it."""
    least = min(one.objective for one in runs)
    most = least + OPTIMALITY_GAP * max(1.0, abs(least))
    best = next(one for one in runs if one.objective <= most)  # not a later one's that is better by a looser tolerance
    bounds = sorted((one.bound for one in runs if one.bound <= most), reverse=True)
    bound = bounds[1] if len(bounds) > 1 else -math.inf
    return Solution(best.x, best.objective, min(bound, best.objective), best.x is None and bound == math.inf)


class Silent(highspy.Highs):
    """HiGHS without the messages that its option ``output_flag`` does not cover, which go past Python's streams."""

    def run(self) -> Any:
        with silent():
            return super().run()


def new_solver(seconds: float, feasibility: float = FEASIBILITY, options: Mapping[str, Any] = RUNS[0]) -> highspy.Highs:
    """A silent, deterministic HiGHS on one thread that stops after so many seconds, with further options."""
    solver, given = Silent(), dict(options)
    feasibility *= given.pop(LOOSENESS, 1.0)
    for option, value in (
        ("output_flag", False),
        ("threads", 1),
        ("random_seed", 0),
        ("time_limit", max(seconds, 0.0)),
        ("primal_feasibility_tolerance", feasibility),
        ("dual_feasibility_tolerance", feasibility),
        ("mip_feasibility_tolerance", feasibility),
        ("mip_rel_gap", 0.0),
        ("mip_abs_gap", OPTIMALITY_GAP),
        *given.items(),
    ):
        solver.setOptionValue(option, value)
    return solver


def solved(solver: highspy.Highs) -> Solution:
    """Run a solver, and read the outcome."""
    solver.run()
    return read_solution(solver)


def read_solution(solver: highspy.Highs) -> Solution:
    """The outcome of the last ``run`` of a solver."""
    status, info = solver.getModelStatus(), solver.getInfo()
    states = highspy.HighsModelStatus
    if status in {states.kInfeasible, states.kUnboundedOrInfeasible}:
        return Solution(None, math.inf, math.inf, infeasible=True)
    if status == states.kModelEmpty:
        return Solution(np.zeros(0), 0.0, 0.0)
    mixed = info.mip_node_count >= 0  # else ``mip_dual_bound`` is 0 and bounds nothing
    if info.primal_solution_status != 2:  # 2: a feasible point
        return Solution(None, math.inf, _finite(info.mip_dual_bound) if mixed else -math.inf)
    x = np.array(solver.getSolution().col_value)
    objective = info.objective_function_value
    bound = info.mip_dual_bound if mixed else objective if status == states.kOptimal else -math.inf
    return Solution(x, objective, min(_finite(bound), objective))


def _finite(bound: float) -> float:
    return bound if math.isfinite(bound) else -math.inf
