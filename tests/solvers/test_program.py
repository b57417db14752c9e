"""The solver: that its version is a right one, and that a compiled program can be changed and taken back."""

from __future__ import annotations

import itertools
import math
import subprocess
import sys
from importlib.metadata import version

import numpy as np
import pytest

from harness.solvers.highs import Linear
from harness.solvers.program import Compiled, Program


def form(compiled: Compiled, *terms: tuple[object, float], constant: float = 0.0) -> Linear:
    return Linear.of([(compiled.column(variable), weight) for variable, weight in terms], constant)


def test_the_installed_solver_is_a_right_one() -> None:
    """Some versions of the solver say 12 here; the optimum is x = 7.5, y = 0."""
    assert version("highspy") == "1.12.0"
    program = Program()
    x, y = program.variable(0, 10), program.variable(0, 10, integer=True)
    program.add(x + 2 * y >= 7.5)
    compiled = program.compile()
    solution = compiled.solve(form(compiled, (x, 1), (y, 3)), seconds=10)
    assert solution.proven
    assert solution.objective == pytest.approx(7.5, abs=1e-6)


def test_the_solver_prints_nothing() -> None:
    """Nor through C's buffer, in blocks that overlap, at the level of the process; what others print is kept."""
    program = (
        "import ctypes, os, threading\n"
        "from harness.solvers.highs import new_solver\n"
        "from harness.solvers.silence import silent\n"
        "libc = ctypes.CDLL(None)\n"
        "libc.puts(b'before')\n"
        "solver = new_solver(1.0)\n"
        "solver.addVars(2, [0, 0], [1, 1])\n"
        "solver.setOptionValue('output_flag', True)\n"
        "solver.run()\n"
        "inside, outside = threading.Event(), threading.Event()\n"
        "def other():\n"
        "    with silent():\n"
        "        inside.set(); outside.wait(); libc.puts(b'other')\n"
        "thread = threading.Thread(target=other); thread.start(); inside.wait()\n"
        "with silent():\n"
        "    libc.puts(b'within'); os.write(1, b'written')\n"
        "outside.set(); thread.join()\n"
        "libc.puts(b'after')\n"
    )
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert found.stdout == "before\nafter\n"


def knapsack(items: int = 6, seed: int = 0) -> tuple[Compiled, list, object, np.ndarray, np.ndarray]:
    """The cheapest items of a total weight of at least 10."""
    rng = np.random.default_rng(seed)
    prices, weights = rng.integers(1, 20, items).astype(float), rng.integers(1, 9, items)
    program = Program()
    take = [program.binary() for _ in range(items)]
    enough = program.add(sum(int(w) * t for w, t in zip(weights, take, strict=True)) >= 10)
    return program.compile(), take, enough, prices, weights


def cheapest(prices: np.ndarray, weights: np.ndarray, need: float, fixed: dict[int, int] | None = None) -> float:
    """The optimum of ``knapsack`` by enumeration; infinite where nothing is heavy enough."""
    choices = np.array(list(itertools.product([0, 1], repeat=len(prices))))
    keep = choices @ weights >= need
    for item, value in (fixed or {}).items():
        keep &= choices[:, item] == value
    return float((choices[keep] @ prices).min(initial=math.inf))


@pytest.mark.parametrize("seed", range(5))
def test_bounds_sides_and_coefficients_change_between_solves(seed: int) -> None:
    """Each change gives the optimum of the changed program, and undoing all gives the first optimum again."""
    compiled, take, enough, prices, weights = knapsack(seed=seed)
    cost = form(compiled, *zip(take, prices, strict=True))

    def best() -> float:
        return compiled.solve(cost, seconds=10).objective

    first = best()
    assert first == pytest.approx(cheapest(prices, weights, 10))
    compiled.low[compiled.column(take[0])] = 1
    assert best() == pytest.approx(cheapest(prices, weights, 10, {0: 1}))
    compiled.low[compiled.column(take[0])] = 0
    compiled.row_low[compiled.row(enough)] = 16
    assert best() == pytest.approx(cheapest(prices, weights, 16))
    compiled.row_low[compiled.row(enough)] = 10
    compiled.data[compiled.position(enough, take[2])] = 10.0
    assert best() == pytest.approx(cheapest(prices, np.where(np.arange(6) == 2, 10, weights), 10))
    compiled.data[compiled.position(enough, take[2])] = float(weights[2])
    assert best() == pytest.approx(first)


def test_temporary_columns_and_rows_are_rewound() -> None:
    """They hold until they are rewound, down to the mark that is named and no further."""
    compiled, take, _, prices, weights = knapsack()
    cost = form(compiled, *zip(take, prices, strict=True))
    first = compiled.solve(cost, seconds=10).objective
    outer = compiled.mark()
    spare = compiled.add_column()
    compiled.add_row(Linear.of([(compiled.column(take[0]), 1.0), (spare, 1.0)], constant=1.0), low=2.0)
    inner = compiled.mark()
    compiled.add_row(Linear.of([(spare, 1.0)]), high=0.0)
    assert compiled.solve(cost, seconds=10).objective == pytest.approx(cheapest(prices, weights, 10, {0: 1}))
    compiled.rewind(inner)
    solution = compiled.solve(cost, seconds=10)
    assert solution.objective == pytest.approx(first)
    assert solution.x is not None
    assert solution.x[compiled.column(take[0])] + solution.x[spare] >= 1 - 1e-6
    compiled.rewind(outer)
    assert compiled.mark() == outer
    assert compiled.solve(cost, seconds=10).objective == pytest.approx(first)


def test_a_cutoff_leaves_the_optimum_or_nothing() -> None:
    """Above the least cost the optimum is the same, below it there is none; the row is gone afterwards."""
    compiled, take, _, prices, weights = knapsack(items=12)
    cost, before = form(compiled, *zip(take, prices, strict=True)), compiled.mark()
    least = cheapest(prices, weights, 10)
    assert compiled.solve(cost, seconds=10, cutoff=least + 1.0).objective == pytest.approx(least)
    assert compiled.solve(cost, seconds=10, cutoff=least - 0.5).infeasible
    assert compiled.mark() == before


def test_infeasibility_is_proven() -> None:
    compiled, take, enough, _, _ = knapsack()
    compiled.row_low[compiled.row(enough)] = 1000
    solution = compiled.solve(form(compiled, (take[0], 1.0)), seconds=10)
    assert (solution.x, solution.infeasible, solution.proven) == (None, True, True)


def test_an_empty_interval_is_infeasible() -> None:
    """Of a column as of a row."""
    compiled, take, enough, _, _ = knapsack()
    cost = form(compiled, (take[0], 1.0))
    compiled.low[compiled.column(take[0])] = 2
    assert compiled.solve(cost, seconds=10).infeasible
    compiled.low[compiled.column(take[0])] = 0
    compiled.row_high[compiled.row(enough)] = 9
    assert compiled.solve(cost, seconds=10).infeasible


def test_the_constant_of_the_objective_counts() -> None:
    compiled, take, _, _, _ = knapsack()
    assert compiled.solve(form(compiled, (take[0], 1.0), constant=5.0), seconds=10).objective == pytest.approx(5.0)


def split(rows: int = 4, seed: int = 0) -> tuple[Compiled, Linear]:
    """Choose goods so that every sum is hit: there is a way, of cost 0, but it takes long to find."""
    rng = np.random.default_rng(seed)
    goods = 10 * (rows - 1)
    amounts, way = rng.integers(0, 100, (rows, goods)), rng.integers(0, 2, goods)
    program = Program()
    take = [program.binary() for _ in range(goods)]
    off = [program.variable(0, None) for _ in range(2 * rows)]
    for row, amount in enumerate(amounts):
        total = sum(int(a) * t for a, t in zip(amount, take, strict=True))
        program.add(total + off[2 * row] - off[2 * row + 1] == int(amount @ way))
    compiled = program.compile()
    return compiled, form(compiled, *((o, 1.0) for o in off))


@pytest.mark.parametrize("seconds", [0.0, 0.2])
def test_out_of_time_the_bound_is_honest(seconds: float) -> None:
    """It does not exceed the true optimum of 0, and the point found, if any, is not called proven."""
    compiled, cost = split()
    solution = compiled.solve(cost, seconds=seconds)
    assert not solution.infeasible
    assert solution.bound <= 1e-6
    assert solution.proven == (solution.x is not None and solution.objective <= 1e-6)


def test_forms_add_up() -> None:
    """The sum of forms is the form of the sum, with each column named once."""
    rng = np.random.default_rng(0)
    forms = [
        Linear(rng.permutation(9)[:size].astype(np.int32), rng.normal(size=size), rng.normal()) for size in (4, 0, 9, 2)
    ]
    total, x = Linear.sum(forms), rng.normal(size=9)
    assert total(x) == pytest.approx(sum(part(x) for part in forms))
    assert len(set(total.columns)) == len(total.columns)
    assert Linear.sum([])(x) == 0


def test_an_expression_becomes_a_form() -> None:
    compiled, take, _, _, _ = knapsack()
    x = np.random.default_rng(0).normal(size=6)
    at = [compiled.column(variable) for variable in take]
    assert compiled.linear(2 * take[3] - take[1] + 4)(x) == pytest.approx(2 * x[at[3]] - x[at[1]] + 4)
    assert compiled.linear(4)(x) == 4


def test_a_coefficient_of_zero_has_no_position() -> None:
    program = Program()
    x, y = program.variable(), program.variable()
    row = program.add(x >= 0.5)
    program.add(x + y >= 1)
    compiled = program.compile()
    with pytest.raises(KeyError):
        compiled.position(row, y)


@pytest.mark.parametrize("holds", [True, False])
def test_a_relation_between_constants_holds_or_not(holds: bool) -> None:
    """Expressions may turn out to be numbers: a program of a false relation is infeasible."""
    program = Program()
    x = program.variable()
    row = program.add(np.bool_(holds))
    compiled = program.compile()
    assert compiled.row(row) >= 0
    assert compiled.solve(form(compiled, (x, 1.0)), seconds=5).infeasible == (not holds)
