"""A number in a program, in scaled units."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from harness.core.errors import UnsupportedError
from harness.core.inputs import Affine
from harness.core.space import SAME, Feature, Kind
from harness.solvers.highs import FEASIBILITY, Linear
from harness.solvers.program import Compiled, Expression, Program
from methods.estimators.thresholds import separated_values
from methods.milp.block import INTEGRAL, Block
from methods.milp.cost import Cost
from methods.milp.interval_block import Sides, cells

SQUARE = 1e-9  # a square this much above its column needs another tangent
TANGENTS = 7  # of the square of a gap, to begin with


def bounded(feature: Feature) -> None:
    """Nothing where a number has two ends, as its variable needs them.

    Raises
    ------
    UnsupportedError
        Where it has not.
    """
    if not np.isfinite(feature.interval(0.0)).all():
        raise UnsupportedError(f"{feature.name} has no least or greatest value; set its 'bounds' for this model.")


class NumberBlock(Block):
    """A number as a scaled variable ``x = x̂ + up − down``, with a 0/1 column "changed".

    Where splits look at the number as well, two rows keep it in the cell that the sides of the thresholds give; its
    decoded value is clipped to that cell, so that the solver's tolerance decides no side.

    A squared gap is a column above its tangents, in units of the widest gap within the budget, so that the solver's
    tolerances are small beside it; ``refine`` adds the tangents that a solution lacks.
    """

    def __init__(self, program: Program, feature: Feature) -> None:
        bounded(feature)
        self.program, self.feature = program, feature
        self.up, self.down = program.variable(0, None), program.variable(0, None)
        self.change = program.binary()
        if feature.kind is Kind.INTEGER:
            self.number = program.variable(None, None, integer=True)
            self.x = (self.number - feature.scale[0]) / feature.range
        else:
            self.number = self.x = program.variable(None, None)
        self.link = program.add(
            self.number / (feature.range if feature.kind is Kind.INTEGER else 1.0) - self.up + self.down == 0
        )
        # For integers the link is stated in number / range, whose factual part is set by pose().
        self.move = program.add(2 * self.up + 2 * self.down - self.change <= 0)
        self.minimum_jump = program.add(self.up - self.down - 2 * self.change >= 0)
        self.counted = True  # whether the number of changes matters
        self.sides = Sides(program, feature)
        self.side_columns: list[Any] = []

    def right_of(self, affine: Affine, threshold: float, single: bool) -> Expression:
        return self.sides.right_of(affine, threshold, single)

    def close(self) -> None:
        self.side_columns = self.sides.close()
        if self.side_columns:  # the coefficients, widths of cells within reach, are set by pose()
            total = sum(2.0 * side for side in self.side_columns)
            self.floor, self.ceiling = (
                self.program.add(self.number - total >= 0),
                self.program.add(self.number - total <= 0),
            )

    def attach(self, compiled: Compiled) -> None:
        self.compiled = compiled
        self.sides.attach(compiled)
        if self.side_columns:
            self.cell_rows = [
                (compiled.row(row), np.array([compiled.position(row, side) for side in self.side_columns]))
                for row in (self.floor, self.ceiling)
            ]
        self.number_at, self.up_at, self.down_at, self.change_at = (
            compiled.column(v) for v in (self.number, self.up, self.down, self.change)
        )
        self.link_at, self.move_at, self.minimum_jump_at = (
            compiled.row(c) for c in (self.link, self.move, self.minimum_jump)
        )
        self.up_entry = compiled.position(self.move, self.up)
        self.down_entry = compiled.position(self.move, self.down)
        self.minimum_jump_entry = compiled.position(self.minimum_jump, self.change)

    def pose(self, value: Any, cost: Cost, within: Any = None) -> None:
        """As in ``Block``. Where changes count nothing, "changed" needs no integrality but for a minimum jump."""
        feature, compiled, value = self.feature, self.compiled, float(value)
        self.value, self.rule = value, cost
        low, high = ((end - feature.scale[0]) / feature.range for end in feature.interval(value))
        origin = (value - feature.scale[0]) / feature.range
        must = False
        if within is not None:
            must = not within[0] - SAME <= origin <= within[1] + SAME
            coded = not low - SAME <= origin <= high + SAME
            low, high = max(low, within[0]), min(high, within[1])
            if not must and not coded:
                low, high = min(low, origin), max(high, origin)
        rise, fall = max(high - origin, 0.0), max(origin - low, 0.0)
        least = max(low - origin, origin - high, 0.0)  # a special code jumps at least to the nearer bound
        if low > high:
            rise = fall = 0.0
        rise, fall = min(rise, cost.radius), min(fall, cost.radius)
        if least > max(rise, fall):
            rise = fall = 0.0
        integer = feature.kind is Kind.INTEGER
        if integer:
            rise, fall = (math.floor(part * feature.range + SAME) / feature.range for part in (rise, fall))
        offset = value / feature.range if integer else origin
        compiled.row_low[self.link_at] = compiled.row_high[self.link_at] = offset
        bottom, top = (value, value) if integer else (origin, origin)
        unit = feature.range if integer else 1.0
        compiled.low[self.number_at] = bottom = bottom - fall * unit
        compiled.high[self.number_at] = top = top + rise * unit
        compiled.high[self.up_at], compiled.high[self.down_at] = rise, fall
        compiled.integer[self.change_at] = self.counted or least > 0
        compiled.low[self.change_at] = float(must)
        compiled.high[self.change_at] = float(rise > 0 or fall > 0)
        compiled.data[self.up_entry] = 1.0 / rise if rise > 0 else 1.0
        compiled.data[self.down_entry] = 1.0 / fall if fall > 0 else 1.0
        # up - down is at least the minimum jump where the feature changes, or at most minus that jump.
        compiled.row_low[self.minimum_jump_at] = 0.0 if least > 0 and low > origin else -math.inf
        compiled.row_high[self.minimum_jump_at] = 0.0 if least > 0 and high < origin else math.inf
        compiled.data[self.minimum_jump_entry] = -least if low > origin else least or 1.0
        if self.side_columns:
            self._keep_in_cell(bottom, top)
        self.rise, self.fall = rise, fall
        self.square_at, self.unit = None, max(rise, fall) or 1.0
        if cost.quadratic:
            self.square_at = compiled.add_column(0.0, math.inf, integer=False)
            for power in range(TANGENTS):
                self._touch(self.unit / 2**power)

    def _keep_in_cell(self, bottom: float, top: float) -> None:
        """Keep the number in the cell that the sides give, within reach; leaving the factual's cell is a change."""
        feature, compiled, at = self.feature, self.compiled, self.sides.at
        first, last = cells(feature, self.sides.ends)
        self.first, self.last = first, last
        if feature.kind is not Kind.INTEGER:
            first, last = ((ends - feature.scale[0]) / feature.range for ends in (first, last))
        for (row, entries), ends in zip(self.cell_rows, (first, last), strict=True):
            ends = np.clip(ends, bottom, top)
            compiled.data[entries] = -np.diff(ends)
            if row == self.cell_rows[0][0]:
                compiled.row_low[row] = ends[0]
            else:
                compiled.row_high[row] = ends[0]
        factual_cell = int(np.searchsorted(self.sides.ends, self.value, side="left"))
        reach = last >= bottom - FEASIBILITY, first <= top + FEASIBILITY
        least, most = int(reach[0].argmax()), len(first) - 1 - int(reach[1][::-1].argmax())
        steps = np.arange(1, len(first))
        compiled.low[at], compiled.high[at] = steps <= min(least, factual_cell), steps <= max(most, factual_cell)
        if factual_cell < len(at):
            compiled.add_row(Linear.of([(at[factual_cell], 1.0), (self.change_at, -1.0)]), high=0.0)
        if factual_cell > 0:
            compiled.add_row(Linear.of([(at[factual_cell - 1], 1.0), (self.change_at, 1.0)]), low=1.0)

    def _touch(self, gap: float) -> None:
        """Bound the square from below by its tangent at a gap; for whole numbers by the chord to the next one."""
        if gap <= 0 or self.square_at is None:
            return
        slope, offset = 2 * gap, gap**2
        if self.feature.kind is Kind.INTEGER:
            unit = 1.0 / self.feature.range
            step = math.floor(gap / unit + SAME)
            slope, offset = (2 * step + 1) * unit, step * (step + 1) * unit**2
        slope, offset = slope / self.unit**2, offset / self.unit**2
        form = Linear.of([(self.square_at, 1.0), (self.up_at, -slope), (self.down_at, -slope)])
        self.compiled.add_row(form, low=-offset)

    def refine(self, x: np.ndarray) -> bool:
        """Add the tangents that a solution lacks; whether there were any."""
        if self.square_at is None:
            return False
        gap = float(x[self.up_at] + x[self.down_at])
        if (gap / self.unit) ** 2 - x[self.square_at] <= SQUARE:
            return False
        self._touch(gap)
        if self.feature.kind is Kind.INTEGER:
            self._touch(gap - 1.0 / self.feature.range)
        return True

    def cost(self) -> Linear:
        rule = self.rule
        terms = [(self.up_at, rule.linear), (self.down_at, rule.linear), (self.change_at, rule.fixed)]
        return Linear.of(terms if self.square_at is None else [*terms, (self.square_at, rule.quadratic * self.unit**2)])

    def gap(self) -> Linear:
        return Linear.of([(self.up_at, 1.0), (self.down_at, 1.0)])

    def encoded(self) -> list[Linear]:
        feature = self.feature
        if feature.kind is not Kind.INTEGER:
            return [Linear.of([(self.number_at, 1.0)])]
        return [Linear.of([(self.number_at, 1.0 / feature.range)], -feature.scale[0] / feature.range)]

    def forbid(self, value: Any) -> None:
        self.compiled.high[self.up_at if value > self.value else self.down_at] = 0.0

    def changed(self) -> Linear:
        return Linear.of([(self.change_at, 1.0)])

    def distance_form(self, value: Any, separation: float) -> Linear:
        up, down = separated_values(self.feature, float(value), separation)
        low, high = self.compiled.low[self.number_at], self.compiled.high[self.number_at]
        if self.feature.kind is not Kind.INTEGER:
            up, down = ((end - self.feature.scale[0]) / self.feature.range for end in (up, down))
        parts = []
        if up <= high:
            above = self.compiled.add_column()
            self.compiled.add_row(Linear.of([(self.number_at, 1.0), (above, -(up - low))]), low=low)
            parts.append((above, 1.0))
        if down >= low:
            below = self.compiled.add_column()
            self.compiled.add_row(Linear.of([(self.number_at, 1.0), (below, high - down)]), high=high)
            parts.append((below, 1.0))
        return Linear.of(parts)

    def values_listed(self) -> Sequence[Any]:
        return ()

    def read(self, x: np.ndarray) -> Any:
        feature, number = self.feature, x[self.number_at]
        if x[self.up_at] + x[self.down_at] <= INTEGRAL:
            value = self.value
        elif feature.kind is Kind.INTEGER:
            value = float(np.rint(number))
        else:
            value = float(np.clip(feature.scale[0] + number * feature.range, *feature.interval(self.value)))
        if self.side_columns:
            cell = int(np.rint(x[self.sides.at]).sum())
            value = float(np.clip(value, self.first[cell], self.last[cell]))
        return int(value) if feature.kind is Kind.INTEGER else value
