"""Linear programs whose bounds are proven by their multipliers."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.optimize import linprog

from harness.solvers.lp import Lp


@pytest.mark.parametrize("seed", range(20))
def test_multipliers_prove_the_optimum_or_that_there_is_none(seed: int) -> None:
    """Rows that are added later count, and changed bounds; one column has no upper end."""
    rng = np.random.default_rng(seed)
    n, m = 6, 5
    rows, cost = rng.normal(size=(2 * m, n)), rng.normal(size=n)
    sides = rng.normal(size=2 * m)
    low, high = np.full(n, -1.0), np.full(n, 1.0)
    high[0], cost[0] = math.inf, abs(cost[0])
    lp = Lp(low, high)
    for part in (slice(0, m), slice(m, 2 * m)):
        lp.add_dense(rows[part], np.full(m, -math.inf), sides[part])
        lp.bound(1, -0.5, 0.25)
        bounds = [(-1, None), (-0.5, 0.25), *[(-1, 1)] * 4]
        expected = linprog(cost, rows[: part.stop], sides[: part.stop], bounds=bounds)
        found = lp.prove(cost, 10.0)
        assert found.infeasible == (expected.status == 2)
        if expected.status == 0:
            assert found.objective == pytest.approx(expected.fun, abs=1e-7)
            assert expected.fun - 1e-6 <= found.bound <= expected.fun + 1e-9


def test_multipliers_of_other_rows_prove_nothing() -> None:
    """Any multipliers give a bound that holds, however weak; only those of the optimum give its value."""
    rng = np.random.default_rng(0)
    rows, sides, cost = rng.normal(size=(4, 3)), np.ones(4), rng.normal(size=3)
    lp = Lp(np.zeros(3), np.ones(3))
    lp.add_dense(rows, np.full(4, -math.inf), sides)
    optimum = lp.solve(cost, 10.0).objective
    bounds = [lp._lagrange(cost, -rng.exponential(size=4))[0] for _ in range(200)]
    assert max(bounds) <= optimum + 1e-9
    assert min(bounds) < optimum - 0.1


@pytest.mark.parametrize("seconds", [0.0, 1e-4, 3e-4, 1e-3])
def test_a_run_that_is_cut_short_bounds_nothing_by_itself(seconds: float) -> None:
    """At the first run, with other costs, and with other bounds: no bound above the optimum, which is negative."""
    rng = np.random.default_rng(0)
    rows, size = rng.normal(size=(80, 60)), 60
    lp = Lp(np.full(size, -1.0), np.ones(size))
    lp.add_dense(rows, np.full(80, -0.1), np.full(80, math.inf))
    for low in (-1.0, -1.0, 0.3):
        cost = rng.normal(size=size)
        lp.bound(0, low, 0.5)
        short = lp.prove(cost, seconds)
        optimum = linprog(cost, -rows, np.full(80, 0.1), bounds=[(low, 0.5), *[(-1, 1)] * (size - 1)]).fun
        assert optimum < -1
        assert not short.infeasible
        assert short.bound <= optimum + 1e-6


def test_a_point_without_multipliers_has_no_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """Time may end a run when there is a feasible point and no dual solution yet."""
    lp = Lp(np.zeros(2), np.ones(2))
    lp.add_dense(np.ones((1, 2)), np.array([0.5]), np.array([math.inf]))
    point = SimpleNamespace(col_value=[1.0, 1.0], row_dual=[])
    monkeypatch.setattr(lp._solver, "getSolution", lambda: point)
    found = lp.prove(np.ones(2), 10.0)
    assert found.x is not None
    assert found.bound == -math.inf


def test_seconds_are_of_each_run() -> None:
    """HiGHS counts those of all runs of a solver: the limit is that much later."""
    lp, set_to = Lp(np.zeros(1), np.ones(1)), dict[str, float]()
    lp._solver = SimpleNamespace(getRunTime=lambda: 100.0, setOptionValue=set_to.__setitem__, run=lambda: None)
    lp._run(2.0)
    assert set_to == {"time_limit": 102.0}
