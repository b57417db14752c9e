"""A feature space as mixed-integer variables: coherence, bounds, actionability, change, distance, separation."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
import pandas as pd

from harness.core.errors import UnsupportedError
from harness.core.inputs import Affine, Input, by_category
from harness.core.space import SAME, Feature, Kind, Space
from harness.solvers.highs import FEASIBILITY, Linear
from harness.solvers.program import Compiled, Expression, Program

INTEGRAL = 10 * FEASIBILITY  # a column this near to 0 counts as 0


@dataclass(frozen=True)
class Cost:
    """What a changed feature costs: ``fixed`` + ``linear`` gap + ``quadratic`` gap², its gap in scaled units.

    ``budget`` is what the whole change may cost: a value that costs more by itself is ruled out.
    """

    fixed: float
    linear: float
    quadratic: float
    budget: float = math.inf

    def __call__(self, gap: np.ndarray | float) -> Any:
        gap = np.asarray(gap)
        return np.where(gap > SAME, self.fixed, 0.0) + self.linear * gap + self.quadratic * gap**2

    @property
    def radius(self) -> float:
        """The greatest gap that the budget allows."""
        rest = max(self.budget - self.fixed, 0.0)
        if not math.isfinite(rest) or not (self.linear or self.quadratic):
            return math.inf
        if not self.quadratic:
            return rest / self.linear
        root = math.sqrt(self.linear**2 + 4 * self.quadratic * rest)
        return 2 * rest / (self.linear + root) if rest else 0.0


class Source(Protocol):
    """One input of an estimator inside a program, whatever it is made of."""

    low: float
    high: float

    @property
    def expression(self) -> Expression:
        """The input's value."""
        ...

    def right_of(self, threshold: float, single: bool = True) -> Expression:
        """A 0/1 expression: 1 iff the input, where ``single`` its float32, exceeds the threshold: to the right."""
        ...


def seen(inputs: np.ndarray, single: bool) -> np.ndarray:
    """Estimator inputs as a tree compares them with its thresholds: rounded to float32 where ``single``."""
    return inputs.astype(np.float32).astype(float) if single else inputs


def last_left(threshold: float, single: bool = True) -> float:
    """The largest float64 that a split sends left: it, or where ``single`` its ``float32``, is at most the threshold.

    >>> last_left(0.5) > 0.5
    True
    >>> bool(np.float32(last_left(0.5)) <= 0.5), bool(np.float32(np.nextafter(last_left(0.5), 1)) <= 0.5)
    (True, False)
    >>> last_left(0.5, single=False)
    0.5
    """
    if not single:
        return threshold
    below = np.float32(threshold)
    if float(below) > threshold:
        below = np.nextafter(below, np.float32(-np.inf))
    middle = (float(below) + float(np.nextafter(below, np.float32(np.inf)))) / 2  # exact in float64; ties go to even
    return middle if np.float32(middle) == below else float(np.nextafter(middle, -math.inf))


class Free:
    """An arbitrary linear expression as an input: a shifted copy, a structural equation. Shares binaries with nobody.

    A split keeps ``margin`` away from its threshold on either side, more than the solver's tolerance.
    """

    margin = 1e-6

    def __init__(self, program: Program, expression: Expression, low: float, high: float) -> None:
        self.program, self.expression, self.low, self.high = program, expression, low, high
        self._sides: dict[float, Any] = {}

    def right_of(self, threshold: float, single: bool = True) -> Expression:
        left = last_left(threshold, single)
        if self.high <= left:
            return 0
        if self.low > left:
            return 1
        if left not in self._sides:
            side = self.program.binary()
            at_most, at_least = left - self.margin, left + self.margin
            self.program.add(self.expression <= at_most + (self.high - at_most) * side)
            self.program.add(self.expression >= self.low + (at_least - self.low) * side)
            self._sides[left] = side
        return self._sides[left]


class Block(Protocol):
    """The variables of one feature. Created in a ``Program``; after ``attach``, posed for one factual after another."""

    feature: Feature

    def close(self) -> None:
        """Called when all inputs are embedded, before compilation."""
        ...

    def attach(self, compiled: Compiled) -> None:
        """Called once, after compilation."""
        ...

    def pose(self, value: Any, cost: Cost, within: Any = None) -> None:
        """Set bounds for a factual's value; values that cost more than the budget are ruled out.

        ``within`` narrows the choice further: a category's code, or the least and greatest scaled number or rank.
        """
        ...

    def cost(self) -> Linear:
        """The cost of the posed feature's change."""
        ...

    def gap(self) -> Linear:
        """How far the posed feature moves, in scaled units."""
        ...

    def encoded(self) -> list[Linear]:
        """The feature's scaled columns."""
        ...

    def bar(self, value: Any) -> None:
        """Rule out a state: a category, or for numbers any move to ``value``'s side of the factual."""
        ...

    def changed(self) -> Linear:
        """1 where the posed feature changes, else 0."""
        ...

    def apart(self, value: Any, separation: float) -> Linear:
        """A form that is >= 1 only where the feature is apart from ``value``: another category, or that far away."""
        ...

    def values_listed(self) -> Sequence[Any]:
        """The other values worth trying for this feature alone; empty where there are too many to list."""
        ...

    def read(self, x: np.ndarray) -> Any:
        """The decoded value in a solution."""
        ...


class Levels:
    """A binary, ordinal or categorical feature.

    Categorical: one 0/1 column a level, exactly one of them 1. Binary: one 0/1 column. Ordinal: one 0/1 column a step,
    "at least this level", non-increasing.
    """

    def __init__(self, program: Program, feature: Feature) -> None:
        self.program, self.feature = program, feature
        self.size = len(feature.categories)
        one_hot = feature.kind is Kind.CATEGORICAL
        self.columns = [program.binary() for _ in range(self.size if one_hot else self.size - 1)]
        if one_hot:
            program.add(sum(self.columns) == 1)
        else:
            for step, following in pairwise(self.columns):
                program.add(following <= step)

    def level(self, code: int) -> Expression:
        """1 iff the feature holds its ``code``-th category."""
        if self.feature.kind is Kind.CATEGORICAL:
            return self.columns[code]
        above = self.columns[code] if code < self.size - 1 else 0
        return (self.columns[code - 1] if code else 1) - above

    def close(self) -> None:
        pass

    def attach(self, compiled: Compiled) -> None:
        self.compiled = compiled
        self.at = np.array([compiled.column(column) for column in self.columns], dtype=np.int32)

    def _indicator(self, code: int) -> list[tuple[int, float]]:
        if self.feature.kind is Kind.CATEGORICAL:
            return [(self.at[code], 1.0)]
        below = [(self.at[code - 1], 1.0)] if code else []
        return below + ([(self.at[code], -1.0)] if code < self.size - 1 else [])

    def _form(self, weights: np.ndarray) -> Linear:
        """The weight of the level that the feature holds."""
        if self.feature.kind is Kind.CATEGORICAL:
            used = np.flatnonzero(weights)
            return Linear(self.at[used], weights[used])
        return Linear(self.at, np.diff(weights), float(weights[0]))

    def gaps(self, code: int) -> np.ndarray:
        """Scaled gap of each level from the ``code``-th."""
        codes = np.arange(self.size)
        if self.feature.kind is Kind.ORDINAL:
            return np.abs(codes - code) / max(self.size - 1, 1)
        return (codes != code).astype(float)

    def pose(self, value: Any, cost: Cost, within: Any = None) -> None:
        code = self.feature.categories.index(value)
        self.code = code
        self.weights = cost(self.gaps(code))
        open_ = np.array([category in self.feature.reachable(value) for category in self.feature.categories])
        open_ &= self.weights <= cost.budget
        open_[code] = True
        if within is not None:
            ranks = np.arange(self.size) / max(self.size - 1, 1)
            ordinal = self.feature.kind is Kind.ORDINAL
            open_ = (
                (ranks >= within[0] - SAME) & (ranks <= within[1] + SAME) & open_
                if ordinal
                else np.arange(self.size) == within
            )
        self.open = open_
        low, high = self.compiled.low, self.compiled.high
        if self.feature.kind is Kind.CATEGORICAL or not open_.any():
            low[self.at], high[self.at] = 0.0 if open_.any() else 1.0, open_[: len(self.at)]
            return
        reach = np.flatnonzero(open_)
        steps = np.arange(1, self.size)
        low[self.at], high[self.at] = steps <= reach.min(), steps <= reach.max()
        for shut in set(range(reach.min(), reach.max())) - set(reach.tolist()):
            self.compiled.add_row(Linear.of(self._indicator(shut)), high=0.0)

    def cost(self) -> Linear:
        return self._form(self.weights)

    def gap(self) -> Linear:
        return self._form(self.gaps(self.code))

    def encoded(self) -> list[Linear]:
        if self.feature.kind is Kind.CATEGORICAL:
            return [Linear.of([(column, 1.0)]) for column in self.at]
        return [self._form(np.arange(self.size) / max(self.size - 1, 1))]

    def bar(self, value: Any) -> None:
        self.compiled.add_row(Linear.of(self._indicator(self.feature.categories.index(value))), high=0.0)

    def changed(self) -> Linear:
        return self._form((np.arange(self.size) != self.code).astype(float))

    def apart(self, value: Any, separation: float) -> Linear:
        code = self.feature.categories.index(value)
        return self._form((np.arange(self.size) != code).astype(float))

    def values_listed(self) -> Sequence[Any]:
        return [self.feature.categories[code] for code in np.flatnonzero(self.open) if code != self.code]

    def read(self, x: np.ndarray) -> Any:
        if self.feature.kind is Kind.CATEGORICAL:
            return self.feature.categories[int(x[self.at].argmax())]
        return self.feature.categories[int(np.rint(x[self.at]).sum())]


class Sides:
    """The thresholds of a number: one 0/1 column each, "right of it", non-increasing.

    Thresholds are decoded floats: a cell begins at the float64 after the threshold's last left one.
    """

    def __init__(self, program: Program, feature: Feature) -> None:
        self.program, self.feature = program, feature
        self._sides: dict[float, Any] = {}  # by the last decoded value on the left

    def right_of(self, affine: Affine, threshold: float, single: bool) -> Expression:
        left = last_decoded(self.feature, affine, threshold, single)
        if left not in self._sides:
            self._sides[left] = self.program.binary()
        side = self._sides[left]
        return side if affine.unit > 0 else 1 - side

    def close(self) -> list[Any]:
        """Order the columns, and return them from the least threshold to the greatest."""
        columns = [self._sides[end] for end in sorted(self._sides)]
        for step, following in pairwise(columns):
            self.program.add(following <= step)
        return columns

    def attach(self, compiled: Compiled) -> None:
        self.ends = np.array(sorted(self._sides))
        self.at = np.array([compiled.column(self._sides[end]) for end in sorted(self._sides)], dtype=np.int32)


def _cells(feature: Feature, ends: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The first and the last decoded value of each cell between thresholds, shape (cells,)."""
    after = ends + 1 if feature.kind is Kind.INTEGER else np.nextafter(ends, math.inf)
    return np.concatenate([[-math.inf], after]), np.concatenate([ends, [math.inf]])


class Cells:
    """A number seen only through thresholds: the cells between them, each at its value nearest to the factual.

    Nothing but splits bounds the number, so a separable distance is one constant a cell and the program needs no
    variable for the value itself, and no tolerance decides a side.
    """

    def __init__(self, program: Program, feature: Feature) -> None:
        self.feature, self.sides = feature, Sides(program, feature)

    @property
    def x(self) -> Expression:
        raise UnsupportedError(f"{self.feature.name} is seen through cells; this model needs its value.")

    def right_of(self, affine: Affine, threshold: float, single: bool) -> Expression:
        return self.sides.right_of(affine, threshold, single)

    def close(self) -> None:
        self.sides.close()

    def attach(self, compiled: Compiled) -> None:
        self.compiled = compiled
        self.sides.attach(compiled)

    def pose(self, value: Any, cost: Cost) -> None:
        self.ends, self.at = self.sides.ends, self.sides.at
        self.value, self.rule = float(value), cost
        self._settle()

    def _settle(self) -> None:
        """Each cell's value nearest to the factual's, its cost, and the columns that this decides."""
        feature, cost, value = self.feature, self.rule, self.value
        low, high = feature.interval(value)
        first, last = _cells(feature, self.ends)
        self.home = int(np.searchsorted(self.ends, value, side="left"))
        self.values = np.clip(value, np.maximum(first, low), np.minimum(last, high))
        empty = np.maximum(first, low) > np.minimum(last, high)
        self.values[self.home] = value
        empty[self.home] = False
        gaps = np.abs(self.values - value) / feature.range
        self.weights = cost(gaps)
        open_ = ~empty & (self.weights <= cost.budget)
        open_[self.home] = True
        self.open = open_
        reach = np.flatnonzero(open_)
        sides = np.arange(1, len(self.values))
        self.compiled.low[self.at], self.compiled.high[self.at] = sides <= reach[0], sides <= reach[-1]
        self.weights[~open_] = self.weights[reach].max()
        for shut in set(range(reach[0], reach[-1])) - set(reach.tolist()):
            self.compiled.add_row(Linear.of([(self.at[shut], -1.0), (self.at[shut - 1], 1.0)]), high=0.0)

    def _form(self, weights: np.ndarray) -> Linear:
        return Linear(self.at, np.diff(weights), float(weights[0]))

    def cost(self) -> Linear:
        return self._form(self.weights)

    def changed(self) -> Linear:
        return self._form((np.arange(len(self.values)) != self.home).astype(float))

    def apart(self, value: Any, separation: float) -> Linear:
        up, down = beyond(self.feature, float(value), separation)
        right = self._cut(np.nextafter(up, -math.inf) if self.feature.kind is not Kind.INTEGER else up - 1)
        left = self._cut(down)
        return Linear.of([(right, 1.0), (left, -1.0)], 1.0)

    def _cut(self, end: float) -> int:
        """The column of "right of ``end``", temporary where no split has that threshold."""
        place = int(np.searchsorted(self.ends, end))
        if place < len(self.ends) and self.ends[place] == end:
            return int(self.at[place])
        column = self.compiled.add_column()
        if place > 0:
            self.compiled.add_row(Linear.of([(self.at[place - 1], 1.0), (column, -1.0)]), low=0.0)
        if place < len(self.at):
            self.compiled.add_row(Linear.of([(column, 1.0), (self.at[place], -1.0)]), low=0.0)
        self.ends = np.insert(self.ends, place, end)
        self.at = np.insert(self.at, place, column).astype(np.int32)
        self._settle()
        return column

    def values_listed(self) -> Sequence[Any]:
        return [self._plain(self.values[cell]) for cell in np.flatnonzero(self.open) if cell != self.home]

    def _plain(self, value: float) -> Any:
        return int(value) if self.feature.kind is Kind.INTEGER else float(value)

    def read(self, x: np.ndarray) -> Any:
        return self._plain(self.values[int(np.rint(x[self.at]).sum())])


SQUARE = 1e-9  # a square this much above its column needs another tangent
TANGENTS = 7  # of the square of a gap, to begin with


class Scaled:
    """A number as a scaled variable ``x = x̂ + up − down``, with a 0/1 column "changed".

    Where splits look at the number as well, two rows hold it in the cell that the sides of the thresholds say; its
    decoded value is clipped to that cell, so that the solver's tolerance decides no side.

    A squared gap is a column above its tangents, in units of the widest gap within the budget, so that the solver's
    tolerances are small beside it; ``refine`` adds the tangents that a solution lacks.
    """

    def __init__(self, program: Program, feature: Feature) -> None:
        if not np.isfinite(feature.interval(0.0)).all():
            raise UnsupportedError(f"{feature.name} has no least or greatest value; set its 'bounds' for this model.")
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
        self.leap = program.add(self.up - self.down - 2 * self.change >= 0)
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
            self.walls = [
                (compiled.row(row), np.array([compiled.position(row, side) for side in self.side_columns]))
                for row in (self.floor, self.ceiling)
            ]
        self.number_at, self.up_at, self.down_at, self.change_at = (
            compiled.column(v) for v in (self.number, self.up, self.down, self.change)
        )
        self.link_at, self.move_at, self.leap_at = (compiled.row(c) for c in (self.link, self.move, self.leap))
        self.up_entry = compiled.position(self.move, self.up)
        self.down_entry = compiled.position(self.move, self.down)
        self.leap_entry = compiled.position(self.leap, self.change)

    def pose(self, value: Any, cost: Cost, within: Any = None) -> None:
        """As in ``Block``. Where changes count nothing, "changed" needs no integrality but for a leap."""
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
        least = max(low - origin, origin - high, 0.0)  # a special code leaps at least to the nearer bound
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
        # up - down is at least the leap where the feature changes, or at most minus the leap.
        compiled.row_low[self.leap_at] = 0.0 if least > 0 and low > origin else -math.inf
        compiled.row_high[self.leap_at] = 0.0 if least > 0 and high < origin else math.inf
        compiled.data[self.leap_entry] = -least if low > origin else least or 1.0
        if self.side_columns:
            self._wall(bottom, top)
        self.rise, self.fall = rise, fall
        self.square_at, self.unit = None, max(rise, fall) or 1.0
        if cost.quadratic:
            self.square_at = compiled.add_column(0.0, math.inf, integer=False)
            for power in range(TANGENTS):
                self._touch(self.unit / 2**power)

    def _wall(self, bottom: float, top: float) -> None:
        """Hold the number in the cell that the sides say, as far as it is within reach; leaving home is a change."""
        feature, compiled, at = self.feature, self.compiled, self.sides.at
        first, last = _cells(feature, self.sides.ends)
        self.first, self.last = first, last
        if feature.kind is not Kind.INTEGER:
            first, last = ((ends - feature.scale[0]) / feature.range for ends in (first, last))
        for (row, entries), ends in zip(self.walls, (first, last), strict=True):
            ends = np.clip(ends, bottom, top)
            compiled.data[entries] = -np.diff(ends)
            if row == self.walls[0][0]:
                compiled.row_low[row] = ends[0]
            else:
                compiled.row_high[row] = ends[0]
        home = int(np.searchsorted(self.sides.ends, self.value, side="left"))
        reach = last >= bottom - FEASIBILITY, first <= top + FEASIBILITY
        least, most = int(reach[0].argmax()), len(first) - 1 - int(reach[1][::-1].argmax())
        steps = np.arange(1, len(first))
        compiled.low[at], compiled.high[at] = steps <= min(least, home), steps <= max(most, home)
        if home < len(at):
            compiled.add_row(Linear.of([(at[home], 1.0), (self.change_at, -1.0)]), high=0.0)
        if home > 0:
            compiled.add_row(Linear.of([(at[home - 1], 1.0), (self.change_at, 1.0)]), low=1.0)

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

    def bar(self, value: Any) -> None:
        self.compiled.high[self.up_at if value > self.value else self.down_at] = 0.0

    def changed(self) -> Linear:
        return Linear.of([(self.change_at, 1.0)])

    def apart(self, value: Any, separation: float) -> Linear:
        up, down = beyond(self.feature, float(value), separation)
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


class LevelSource:
    """An estimator input that is a function of a feature's category."""

    def __init__(self, block: Levels, table: np.ndarray) -> None:
        self.block, self.table = block, table
        self.low, self.high = float(table.min()), float(table.max())

    @property
    def expression(self) -> Expression:
        return sum(float(value) * self.block.level(code) for code, value in enumerate(self.table) if value)

    def right_of(self, threshold: float, single: bool = True) -> Expression:
        right = seen(self.table, single) > threshold
        if right.all():
            return 1
        return sum(self.block.level(int(code)) for code in np.flatnonzero(right))


class NumberSource:
    """An estimator input that is an affine function of a number."""

    low, high = -math.inf, math.inf

    def __init__(self, block: Cells | Scaled, affine: Affine) -> None:
        self.block, self.affine = block, affine
        feature = block.feature
        self.slope = feature.range / affine.unit
        self.shift = (feature.scale[0] - affine.shift) / affine.unit

    @property
    def expression(self) -> Expression:
        return self.slope * self.block.x + self.shift

    def right_of(self, threshold: float, single: bool = True) -> Expression:
        return self.block.right_of(self.affine, threshold, single)


class Variables:
    """The mixed-integer variables of a space: one block a feature, and the estimator inputs made of them.

    Parameters
    ----------
    cells
        See numbers only through thresholds (trees, where nothing else looks at a number), else as scaled variables.
    """

    def __init__(self, program: Program, space: Space, cells: bool) -> None:
        self.space = space
        number = Cells if cells else Scaled
        self.blocks: list[Any] = [(number if f.numeric else Levels)(program, f) for f in space.features]
        self._by_name = dict(zip(space.names, self.blocks, strict=True))

    def source(self, source: Input) -> Source:
        """An estimator input as an object that classifiers are embedded on."""
        block = self._by_name[source.feature]
        if isinstance(block, Levels):
            return LevelSource(block, by_category(block.feature, source))
        if not isinstance(source, Affine):
            raise UnsupportedError(f"{type(source).__name__} of {source.feature}, a number, cannot be embedded yet.")
        return NumberSource(block, source)

    def close(self) -> None:
        """State what depends on all embedded inputs."""
        for block in self.blocks:
            block.close()

    def attach(self, compiled: Compiled) -> None:
        """Find the blocks' columns in the compiled program."""
        for block in self.blocks:
            block.attach(compiled)

    def pose(self, factual: pd.DataFrame, costs: Sequence[Cost], box: Sequence[Any] | None = None) -> None:
        """Set bounds and coefficients for a factual; ``box`` holds what each block has to stay ``within``, or None."""
        self.factual = factual
        for place, (block, cost) in enumerate(zip(self.blocks, costs, strict=True)):
            value = factual[block.feature.name].iloc[0]
            if box is None or box[place] is None:
                block.pose(value, cost)
            else:
                block.pose(value, cost, box[place])

    def bar(self, row: dict[str, Any], factual: pd.DataFrame) -> None:
        """Rule out the states that an earlier counterfactual's changed features took."""
        for block in self.blocks:
            name = block.feature.name
            if row[name] != factual[name].iloc[0]:
                block.bar(row[name])

    def encoded(self) -> list[Linear]:
        """The scaled columns of the space, in its order."""
        return [column for block in self.blocks for column in block.encoded()]

    def gaps(self) -> list[Linear]:
        """How far each posed feature moves, in scaled units."""
        return [block.gap() for block in self.blocks]

    def cost(self) -> Linear:
        """The distance of the posed factual, with the costs given to ``pose``."""
        return Linear.sum([block.cost() for block in self.blocks])

    def changed(self, weights: np.ndarray) -> Linear:
        """The weighted number of changed features."""
        forms = [block.changed() for block in self.blocks]
        return Linear.sum(
            [
                Linear(form.columns, weight * form.coefficients, weight * form.constant)
                for form, weight in zip(forms, weights, strict=True)
            ]
        )

    def apart(self, row: dict[str, Any], separation: float) -> Linear:
        """A form that is >= 1 iff some category differs from ``row``'s or some number is ``separation`` away."""
        return Linear.sum([block.apart(row[block.feature.name], separation) for block in self.blocks])

    def refine(self, x: np.ndarray) -> bool:
        """Tighten what stands for squared gaps around a solution; whether there was anything to tighten."""
        return sum(block.refine(x) for block in self.blocks if isinstance(block, Scaled)) > 0

    def singles(self) -> Iterator[tuple[str, Any]]:
        """Every value that a single changed feature can take, as far as the blocks list them."""
        for block in self.blocks:
            for value in block.values_listed():
                yield block.feature.name, value

    def read(self, x: np.ndarray) -> dict[str, Any]:
        """Decoded values of a solution."""
        return {block.feature.name: block.read(x) for block in self.blocks}


def last_decoded(feature: Feature, affine: Affine, threshold: float, single: bool = True) -> float:
    """The last decoded value, in the number's order, before a split changes sides.

    For a rising input that is the largest value whose input, where ``single`` rounded to float32, is at most the
    threshold; for a falling one the largest with the input still to the right. Integers: the largest integer.
    """

    def before(value: float) -> bool:
        number = affine.of(value)
        left = (float(np.float32(number)) if single else number) <= threshold
        return left if affine.unit > 0 else not left

    guess = affine.shift + last_left(threshold, single) * affine.unit
    if feature.kind is Kind.INTEGER:
        value = math.floor(guess) + 1.0
        while not before(value):
            value -= 1
        return value
    value = guess
    # The guess is off by the rounding of two float64 operations: some ulps of the larger operand.
    step = 4 * np.spacing(max(abs(guess), abs(affine.shift), 1e-300))
    while not before(value):
        value, step = value - step, 2 * step
    above = value + step
    while before(above):
        above, step = above + step, 2 * step
    while np.nextafter(value, math.inf) < above:
        middle = value + (above - value) / 2
        value, above = (middle, above) if before(middle) else (value, middle)
    return float(value)


def beyond(feature: Feature, value: float, separation: float) -> tuple[float, float]:
    """The nearest decoded values above and below that are ``separation``, in scaled units, away from ``value``."""
    up, down = value + separation * feature.range, value - separation * feature.range
    if feature.kind is Kind.INTEGER:
        up, down = math.ceil(up - SAME * feature.range), math.floor(down + SAME * feature.range)
        return max(up, value + 1), min(down, value - 1)
    return up, down
