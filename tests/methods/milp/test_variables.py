"""The mixed-integer variables of a feature: what they can reach, what that costs, what counts as changed and apart."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pandas as pd
import pytest

from harness.core.costs import Price
from harness.core.errors import UnsupportedError
from harness.core.inputs import Affine
from harness.core.objective import Objective, Term
from harness.core.space import Feature, Kind, Space
from harness.evaluation.checker import permitted
from harness.solvers.highs import Linear, Solution
from harness.solvers.program import Compiled, Program
from methods.milp.cost import Cost
from methods.milp.passed import Passed
from methods.milp.variables import Variables

NUMBERS = {"scale": (0.0, 10.0), "bounds": (0.0, 10.0), "special": (-9.0, -8.0, 99.0)}
LEVELS = ("a", "b", "c", "d")
INTEGERS = (*range(-10, 15), 98, 99, 100)
REALS = (-9.0, -8.0, -4.0, -2.0, -0.75, 0.0, 0.25, 4.0, 4.5, 7.0, 10.0, 10.5, 11.0, 12.0, 50.0, 99.0)
# inside the bounds, at an end, below, above, two special codes
FACTUALS: dict[Kind, tuple] = {
    Kind.INTEGER: (4, 0, -2, 12, -8, 99),
    Kind.CONTINUOUS: (4.0, 10.0, -2.0, 12.0, -8.0, 99.0),
    Kind.BINARY: LEVELS[:2],
    Kind.ORDINAL: LEVELS,
    Kind.CATEGORICAL: LEVELS,
}
VALUES: dict[Kind, tuple] = FACTUALS | {Kind.INTEGER: INTEGERS, Kind.CONTINUOUS: REALS}
FEATURES = [
    Feature("f", kind, actionability=kept, **NUMBERS)
    for kind, kept in itertools.product(("integer", "continuous"), ("free", "immutable", "increase", "decrease"))
]
FEATURES += [
    Feature("f", kind, LEVELS[:2] if kind == "binary" else LEVELS, actionability=kept)
    for kind in ("binary", "ordinal", "categorical")
    for kept in ("free", "immutable", "increase", "decrease", "conditional")
    if kind != "categorical" or kept not in {"increase", "decrease"}
]
FEATURES += [
    Feature("f", kind, LEVELS, actionability="conditional", order=("d", "a", "c"))
    for kind in ("ordinal", "categorical")
]
CASES = [
    pytest.param(feature, cells, id=f"{feature.kind}-{feature.actionability}{'-order' * bool(feature.order)}-{seen}")
    for feature in FEATURES
    for cells, seen in ((True, "cells"), (False, "scaled"))
    if (not cells if feature.kind is Kind.CONTINUOUS else cells or feature.numeric)
]


class Alone:
    """The program of a single feature; seen through cells, every listed value has a cell of its own, or ``cuts`` do."""

    def __init__(self, feature: Feature, cells: bool, cuts: tuple[float, ...] = ()) -> None:
        self.feature, self.space = feature, Space((feature,))
        program = Program()
        self.variables = Variables(program, self.space, cells)
        split = feature.numeric and (cells or bool(cuts))
        source = self.variables.source(Affine("f")) if split else None
        listed = VALUES[feature.kind]
        self.cuts = cuts or tuple((low + high) / 2 for low, high in itertools.pairwise(listed)) if source else ()
        sides = [source.right_of(cut) for cut in self.cuts] if source else []
        self.variables.close()
        self.compiled: Compiled = program.compile()
        self.variables.attach(self.compiled)
        self.block = self.variables.blocks[0]
        self.sides = [self.compiled.linear(side) for side in sides]
        self.base = self.compiled.mark()

    def pose(self, old: Any, cost: Cost) -> None:
        self.compiled.rewind(self.base)
        self.variables.pose(self.frame(old), [cost])

    def frame(self, value: Any) -> pd.DataFrame:
        return self.space.frame([{"f": value}])

    def put(self, value: Any) -> None:
        """Rows that hold the feature at a value."""
        if self.sides:
            for cut, side in zip(self.cuts, self.sides, strict=True):
                self.compiled.add_row(side, low=float(value > cut), high=float(value > cut))
        elif self.feature.numeric:
            number = value if self.feature.kind is Kind.INTEGER else value / 10
            self.compiled.add_row(self.compiled.linear(self.block.moves.number), low=number, high=number)
        else:
            code = self.feature.categories.index(value)
            self.compiled.add_row(self.compiled.linear(self.block.level(code)), low=1.0, high=1.0)

    def solve(self, form: Linear) -> Solution:
        solution = self.compiled.solve(form, seconds=5)
        assert solution.proven
        return solution


def cost_of(space: Space, objective: Objective, budget: float = np.inf) -> Cost:
    coefficients = objective.separable(space)
    assert coefficients is not None
    return Cost(*(float(part[0]) for part in coefficients), budget)


L1 = Objective((Term("l1"),))
OBJECTIVES = {
    "l0": Objective((Term("l0"),)),
    "l1": L1,
    "mad_l1 and l0": Objective((Term("mad_l1", params={"f": 0.3}), Term("l0", 0.7))),
    "gower, columns": Objective((Term("gower"), Term("l0", 2.0)), count="columns"),
    "l2sq and l0": Objective((Term("l2sq"), Term("l0", 0.3))),
}


@pytest.mark.parametrize(("feature", "cells"), CASES)
def test_the_reachable_values_are_the_permitted_ones(feature: Feature, cells: bool) -> None:
    """Every value that may be taken can be, no other can, and it is read back as it was put."""
    alone = Alone(feature, cells)
    for old, new in itertools.product(FACTUALS[feature.kind], VALUES[feature.kind]):
        alone.pose(old, cost_of(alone.space, L1))
        alone.put(new)
        solution = alone.solve(Linear.of())
        assert (solution.x is not None) == permitted(feature, old, new), (old, new)
        if solution.x is not None:
            assert alone.variables.read(solution.x)["f"] == (new if not feature.numeric else pytest.approx(new))


@pytest.mark.parametrize("name", OBJECTIVES)
@pytest.mark.parametrize(("feature", "cells"), [case for case in CASES if "free" in str(case.id)])
def test_the_cost_of_a_value_is_the_objective(feature: Feature, cells: bool, name: str) -> None:
    """For every factual and every value that it may move to, and so is the change of the count."""
    alone, objective = Alone(feature, cells), OBJECTIVES[name]
    for old, new in itertools.product(FACTUALS[feature.kind], VALUES[feature.kind]):
        if not permitted(feature, old, new):
            continue
        alone.pose(old, cost_of(alone.space, objective))
        alone.put(new)
        expected = objective.evaluate(alone.space, alone.frame(old), alone.frame(new))[0]
        solution = alone.solve(alone.variables.cost())
        while solution.x is not None and alone.variables.refine(solution.x):
            solution = alone.solve(alone.variables.cost())
        assert solution.objective == pytest.approx(expected, abs=1e-6), (old, new)
        changed = alone.solve(alone.variables.changed(np.array([2.0]))).objective
        assert changed == pytest.approx(2.0 * (new != old), abs=1e-6), (old, new)


def test_tangents_never_exceed_the_square() -> None:
    """Before any refinement what stands for a squared distance is a lower bound of it."""
    alone, objective = Alone(FEATURES[0], cells=False), Objective((Term("l2sq"),))
    for old, new in itertools.product(FACTUALS[FEATURES[0].kind], VALUES[FEATURES[0].kind]):
        if permitted(FEATURES[0], old, new):
            alone.pose(old, cost_of(alone.space, objective))
            alone.put(new)
            expected = objective.evaluate(alone.space, alone.frame(old), alone.frame(new))[0]
            assert alone.solve(alone.variables.cost()).objective <= expected + 1e-7


@pytest.mark.parametrize("bounds", [(0.0, np.inf), (-np.inf, 1.0)])
def test_a_scaled_variable_without_an_end_is_refused(bounds: tuple[float, float]) -> None:
    """Whether it changed was unknown; where actionability gives the end it is taken."""
    with pytest.raises(UnsupportedError, match="'bounds'"):
        Alone(Feature("f", "integer", bounds=bounds), cells=False)
    ended = "decrease" if np.isinf(bounds[1]) else "increase"
    Alone(Feature("f", "integer", bounds=bounds, actionability=ended), cells=False)


@pytest.mark.parametrize("separation", [0.05, 0.25, 1.0])
@pytest.mark.parametrize(("feature", "cells"), [case for case in CASES if "free" in str(case.id)])
def test_apart_is_another_category_or_that_far(feature: Feature, cells: bool, separation: float) -> None:
    """The form reaches 1 at exactly the values that are apart from an earlier one."""
    alone = Alone(feature, cells)
    values = VALUES[feature.kind]
    for old in FACTUALS[feature.kind][:3]:
        for earlier, new in itertools.product((*values[::3], old), values):
            if not permitted(feature, old, new):
                continue
            alone.pose(old, cost_of(alone.space, L1))
            alone.compiled.add_row(alone.variables.distance_form({"f": earlier}, separation), low=1.0)
            alone.put(new)
            apart = abs(new - earlier) / 10 >= separation - 1e-9 if feature.numeric else new != earlier
            assert (alone.solve(Linear.of()).x is not None) == apart, (old, earlier, new)


@pytest.mark.parametrize("budget", [0.0, 0.17, 0.55])
@pytest.mark.parametrize(("feature", "cells"), [case for case in CASES if "free" in str(case.id)])
def test_a_budget_leaves_what_it_can_pay(feature: Feature, cells: bool, budget: float) -> None:
    """Exactly the permitted values that cost no more by themselves."""
    alone = Alone(feature, cells)
    for old, new in itertools.product(FACTUALS[feature.kind], VALUES[feature.kind]):
        alone.pose(old, cost_of(alone.space, L1, budget))
        alone.put(new)
        price = L1.evaluate(alone.space, alone.frame(old), alone.frame(new))[0]
        expected = permitted(feature, old, new) and price <= budget
        assert (alone.solve(Linear.of()).x is not None) == expected, (old, new)


@pytest.mark.parametrize("cells", [True, False], ids=["cells", "scaled"])
@pytest.mark.parametrize("kept", ["free", "immutable", "increase", "decrease"])
@pytest.mark.parametrize("old", FACTUALS[Kind.CONTINUOUS])
def test_a_cell_stands_at_its_nearest_permitted_value(kept: str, old: float, cells: bool) -> None:
    """Between thresholds the program takes the value that is allowed and nearest to the factual, else none.

    Trees compare single precision: right of 4 and of 10 is what lies beyond 4.0000002 and 10.0000005, nearer to a 4
    that may not rise, and to the bound of 10, than a solver tells apart.
    """
    feature = Feature("f", "continuous", actionability=kept, **NUMBERS)
    cuts = (-1.5, 0.0, 2.25, 4.0, 9.75, 10.0, 11.5)
    alone, near = Alone(feature, cells, cuts), 1e-12 if cells else 1e-5  # a solver's numbers are less exact
    grid = np.concatenate([np.arange(-40, 60) / 4, np.nextafter(np.float32(cuts), np.float32(np.inf)), [old]])
    ends = [-np.inf, *cuts, np.inf]
    for low, high in itertools.pairwise(ends):
        inside = [value for value in grid if low < np.float32(value) <= high and permitted(feature, old, value)]
        alone.pose(old, cost_of(alone.space, L1))
        alone.put(high if np.isfinite(high) else low + 1)
        solution = alone.solve(alone.variables.cost())
        assert (solution.x is not None) == bool(inside)
        if solution.x is not None:
            value = alone.variables.read(solution.x)["f"]
            assert permitted(feature, old, value)
            assert low < np.float32(value) <= high
            assert abs(value - old) <= min(abs(np.array(inside) - old)) + near


@pytest.mark.parametrize("cells", [True, False], ids=["cells", "scaled"])
@pytest.mark.parametrize("kind", ["integer", "continuous"])
def test_several_earlier_answers_keep_their_distance(kind: str, cells: bool) -> None:
    """Each new value is apart from all earlier ones and the nearest such, until no room is left."""
    alone = Alone(Feature("f", kind, **NUMBERS), cells, cuts=(3.5,))
    found: list[float] = []
    while True:
        alone.pose(4, cost_of(alone.space, L1))
        for earlier in found:
            alone.compiled.add_row(alone.variables.distance_form({"f": earlier}, 0.3), low=1.0)
        solution = alone.solve(alone.variables.cost())
        if solution.x is None:
            break
        found.append(alone.variables.read(solution.x)["f"])
    assert found[0] == 4
    assert sorted(found[1:3]) == pytest.approx([1, 7], abs=1e-5)
    assert found[3:] == pytest.approx([10], abs=1e-5)


def test_no_move_passes_less_than_the_rate_says() -> None:
    """Upwards, moves of 0.25, 0.5 and 1 pass 0.1, 0.1 and 1; downwards, of 0.5, 0.75 and 1, 0.9, 0.9 and 1."""
    price = Price(shares=((0, 0), (1, 0.1), (2, 0.1), (4, 1.0)))
    feature = Feature("n", "integer", scale=(0, 4), bounds=(0, 4), price=price)
    ahead, back = Passed.of(feature, 0.0, 1, 1.0), Passed.of(feature, 4.0, -1, 1.0)
    assert (ahead.rate, back.rate) == pytest.approx((0.1 / 0.5, 1.0))
    assert [ahead.farthest(most) for most in (0.05, 0.1, 0.55)] == pytest.approx([0.125, 0.5, 0.75])
