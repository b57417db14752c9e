"""The column that stands for a squared gap: beneath the square, and near it from the start."""

from __future__ import annotations

import numpy as np
import pytest

from harness.solvers.program import Compiled, Program
from methods.milp.square import Square


def square_of(step: float, widest: float) -> tuple[Compiled, int, Square]:
    """A square of one column, and that column."""
    program = Program()
    gap = program.variable(0.0, widest)
    program.add(gap <= widest)
    compiled = program.compile()
    column = compiled.column(gap)
    return compiled, column, Square(compiled, step, (column,), widest)


def relaxed(compiled: Compiled, column: int, square: Square, gap: float) -> float:
    """What the square costs at least at a gap, in a linear program."""
    lp = compiled.relaxation()
    lp.bound(column, gap, gap)
    place, weight = square.cost(1.0)
    cost = np.zeros(lp.size)
    cost[place] = weight
    return lp.solve(cost, 60.0).objective


def test_tangents_are_beneath_and_near() -> None:
    """By at most a hundredth, down to a fiftieth of the widest gap."""
    made = square_of(0.0, 0.6)
    for gap in np.linspace(0.6 / 50, 0.6, 97):
        assert 0.99 * gap**2 <= relaxed(*made, gap) <= gap**2 + 1e-9


@pytest.mark.parametrize("steps", [1, 2, 5, 90, 400])
def test_chords_of_whole_numbers_are_beneath_and_begin_at_none(steps: int) -> None:
    """Half a step costs half of one step's square; a whole one no more than its own."""
    step = 0.9 / steps
    made = square_of(step, 0.9)
    assert relaxed(*made, step / 2) == pytest.approx(step**2 / 2, rel=1e-6, abs=1e-12)
    for count in range(0, steps + 1, max(steps // 20, 1)):
        assert relaxed(*made, count * step) <= (count * step) ** 2 + 1e-9


def test_a_solution_that_lacks_a_chord_gets_both_of_its_sides() -> None:
    compiled, column, square = square_of(0.001, 0.9)
    x = np.zeros(len(compiled.low))
    x[column] = 0.777
    assert square.refine(x)
    for before, after in ((0.776, 0.777), (0.777, 0.778)):
        between = relaxed(compiled, column, square, (before + after) / 2)
        assert between == pytest.approx((before**2 + after**2) / 2, abs=1e-9)
    x[square.column] = (0.777 / square.unit) ** 2
    assert not square.refine(x)
