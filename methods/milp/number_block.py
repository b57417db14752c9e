"""A number in a program, in scaled units."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from harness.core.errors import UnsupportedError
from harness.core.inputs import Affine
from harness.core.space import Feature, Kind
from harness.core.tolerances import COORDINATE_TIE
from harness.solvers.highs import Linear
from harness.solvers.program import Compiled, Expression, Program
from methods.estimators.thresholds import separated_values
from methods.milp.block import INTEGRAL, Block
from methods.milp.cost import Cost
from methods.milp.number_cells import NumberCells
from methods.milp.passed import Passed
from methods.milp.square import Square


def bounded(feature: Feature) -> None:
    """Nothing where a number has two ends, as its variable needs them.

    Raises
    ------
    UnsupportedError
        Where it has not.
    """
    if not np.isfinite(feature.interval(0.0)).all():
        raise UnsupportedError(f"{feature.name} has no least or greatest value; set its 'bounds' for this model.")


@dataclass(frozen=True)
class _Moves:
    """The variables of a number, ``x = x̂ + up − down`` and "changed", and the rows that tie them, in Pyomo."""

    number: Any  # in original units for integers, else scaled
    up: Any
    down: Any
    change: Any
    link: Any
    move: Any
    minimum_jump: Any

    @classmethod
    def of(cls, program: Program, feature: Feature) -> _Moves:
        integer = feature.kind is Kind.INTEGER
        up, down, change = program.variable(0, None), program.variable(0, None), program.binary()
        number = program.variable(None, None, integer=integer)
        return cls(
            number, up, down, change,
            # For integers the link is stated in number / range, whose factual part is set by pose().
            link=program.add(number / (feature.range if integer else 1.0) - up + down == 0),
            move=program.add(2 * up + 2 * down - change <= 0),
            minimum_jump=program.add(up - down - 2 * change >= 0),
        )  # fmt: skip


class _Places:
    """Where they lie in the compiled program: columns, rows, and the coefficients that ``pose`` sets."""

    def __init__(self, moves: _Moves, compiled: Compiled) -> None:
        stated = moves.number, moves.up, moves.down, moves.change
        self.number, self.up, self.down, self.change = (compiled.column(variable) for variable in stated)
        self.link, self.minimum_jump = compiled.row(moves.link), compiled.row(moves.minimum_jump)
        self.up_entry = compiled.position(moves.move, moves.up)
        self.down_entry = compiled.position(moves.move, moves.down)
        self.jump_entry = compiled.position(moves.minimum_jump, moves.change)


@dataclass(frozen=True)
class Reach:
    """How far a number may move from its factual value, in scaled units, as far as a budget allows.

    Parameters
    ----------
    rise, fall
        Upward and downward, at least 0.
    jump
        How far a change goes at least: upward where positive, downward where negative. Not 0 where the factual value
        lies outside the bounds, as a special code does.
    must
        Whether the number has to change.
    """

    rise: float
    fall: float
    jump: float
    must: bool

    @property
    def ways(self) -> np.ndarray:
        """The whole moves up and down, shape (2,)."""
        return np.array([self.rise, -self.fall])

    @classmethod
    def of(
        cls, feature: Feature, value: float, radii: tuple[float, float], within: tuple[float, float] | None
    ) -> Reach:
        """Of a value: within its interval, radii downward and upward, and ``within`` scaled ends where given."""
        low, high = ((end - feature.scale[0]) / feature.range for end in feature.interval(value))
        origin = (value - feature.scale[0]) / feature.range
        must = False
        if within is not None:
            must = not within[0] - COORDINATE_TIE <= origin <= within[1] + COORDINATE_TIE
            coded = not low - COORDINATE_TIE <= origin <= high + COORDINATE_TIE
            low, high = max(low, within[0]), min(high, within[1])
            if high < low <= high + COORDINATE_TIE:  # one value, written in two ways
                low = high
            if not must and not coded:
                low, high = min(low, origin), max(high, origin)
        jump = low - origin if low > origin else min(high - origin, 0.0)
        rise, fall = min(max(high - origin, 0.0), radii[1]), min(max(origin - low, 0.0), radii[0])
        if low > high or abs(jump) > max(rise, fall) + COORDINATE_TIE:
            rise = fall = 0.0
        if feature.kind is Kind.INTEGER:
            rise, fall = (math.floor(part * feature.range + COORDINATE_TIE) / feature.range for part in (rise, fall))
        return cls(rise, fall, jump, must)


class NumberBlock(Block):
    """A number as a scaled variable ``x = x̂ + up − down``, with a 0/1 column "changed".

    Where splits look at the number as well, it keeps to their cells (``NumberCells``); a squared gap is a column above
    its tangents (``Square``).
    """

    def __init__(self, program: Program, feature: Feature) -> None:
        bounded(feature)
        self.feature = feature
        self.moves = _Moves.of(program, feature)
        self.cells = NumberCells(program, feature)
        self.counted = True  # whether the number of changes matters

    @property
    def x(self) -> Expression:
        """The scaled number."""
        feature, number = self.feature, self.moves.number
        return (number - feature.scale[0]) / feature.range if feature.kind is Kind.INTEGER else number

    def right_of(self, affine: Affine, threshold: float, single: bool) -> Expression:
        return self.cells.sides.right_of(affine, threshold, single)

    def close(self) -> None:
        self.cells.close(self.moves.number)

    def attach(self, compiled: Compiled) -> None:
        self.compiled, self.at = compiled, _Places(self.moves, compiled)
        self.cells.attach(compiled)

    def pose(self, value: Any, cost: Cost, within: Any = None) -> None:
        """As in ``Block``. Where changes count nothing, "changed" needs no integrality but for a minimum jump."""
        self.value, self.rule = float(value), cost
        radii = cost.radii
        if self.feature.curved:
            down, up = (
                Passed.of(self.feature, self.value, side).farthest(share)
                for side, share in zip((-1, 1), radii, strict=True)
            )
            radii = down, up
        self.reach = reach = Reach.of(self.feature, self.value, radii, within)
        self.passed = [
            Passed.of(self.feature, self.value, side, far) for side, far in ((1, reach.rise), (-1, reach.fall))
            if self.feature.curved
        ]  # fmt: skip
        self._paid: tuple[int, int] | None = None
        ends = self._bound(reach)
        self._tie(reach)
        self.cells.pose(self.value, ends, self.at.change, self.feature.interval(self.value))
        # With their weights: one of the gap, or where a unit does not cost the same up and down, one of each way.
        self.squares: list[tuple[Square, float]] = []
        if cost.quadratic:
            curved, (up, down) = self.feature.curved, self.paid
            rise, fall = (1.0, 1.0) if curved else (reach.rise, reach.fall)
            parts: list[tuple[tuple[int, ...], float, float]] = [((up,), rise, cost.up), ((down,), fall, cost.down)]
            if cost.up == cost.down:
                parts = [((up, down), max(rise, fall), cost.up)]
            whole = self.feature.kind is Kind.INTEGER and not curved
            for ways, widest, rate in parts:
                square = Square(self.compiled, 1.0 / self.feature.range if whole else 0.0, ways, widest)
                self.squares.append((square, cost.quadratic * rate**2))

    @property
    def paid(self) -> tuple[int, int]:
        """The columns of how far it rises and falls: in scaled units, or in shares of the population."""
        if not self.feature.curved:
            return self.at.up, self.at.down
        if self._paid is None:
            up, down = self.passed
            self._paid = up.state(self.compiled, self.at.up), down.state(self.compiled, self.at.down)
        return self._paid

    @property
    def prices(self) -> np.ndarray:
        """What it costs to rise, and to fall, as far as it may, shape (2,): at least, where shares bend.

        A part of the way costs no less than that part of it, or where squares count, than that part's square.
        """
        moves = self.reach.ways
        rates = [way.rate for way in self.passed] or 1.0
        return np.where(moves != 0, self.rule.moved(moves * rates), 0.0)

    @property
    def shares(self) -> list[Linear]:
        """How much of the whole moves up and down is made, each in [0, 1]."""
        ways = (self.at.up, self.reach.rise), (self.at.down, self.reach.fall)
        return [Linear.of([(column, 1.0 / far)] if far > 0 else []) for column, far in ways]

    def _bound(self, reach: Reach) -> tuple[float, float]:
        """Set the bounds of the columns; returns those of the number."""
        feature, compiled, at = self.feature, self.compiled, self.at
        integer = feature.kind is Kind.INTEGER
        origin = (self.value - feature.scale[0]) / feature.range
        compiled.row_low[at.link] = compiled.row_high[at.link] = self.value / feature.range if integer else origin
        start, unit = (self.value, feature.range) if integer else (origin, 1.0)
        ends = start - reach.fall * unit, start + reach.rise * unit
        if integer:  # 15 - 15 / 22 * 22 is not 0, and no whole number below it is 0 then
            ends = round(ends[0]), round(ends[1])
        compiled.low[at.number], compiled.high[at.number] = ends
        compiled.high[at.up], compiled.high[at.down] = reach.rise, reach.fall
        compiled.integer[at.change] = self.counted or reach.jump != 0
        compiled.low[at.change] = float(reach.must)
        compiled.high[at.change] = float(reach.rise > 0 or reach.fall > 0)
        return ends

    def _tie(self, reach: Reach) -> None:
        """Set the rows by which moves are changes, and a change is at least the minimum jump."""
        compiled, at = self.compiled, self.at
        compiled.data[at.up_entry] = 1.0 / reach.rise if reach.rise > 0 else 1.0
        compiled.data[at.down_entry] = 1.0 / reach.fall if reach.fall > 0 else 1.0
        # up - down is at least the minimum jump where the feature changes, or at most minus that jump.
        compiled.row_low[at.minimum_jump] = 0.0 if reach.jump > 0 else -math.inf
        compiled.row_high[at.minimum_jump] = 0.0 if reach.jump < 0 else math.inf
        compiled.data[at.jump_entry] = -reach.jump or 1.0

    def refine(self, x: np.ndarray) -> bool:
        """Add the tangents that a solution lacks; whether there were any."""
        return sum(square.refine(x) for square, _ in self.squares) > 0

    def cost(self) -> Linear:
        rule = self.rule
        up, down = self.paid if rule.linear else (self.at.up, self.at.down)
        terms = [(up, rule.linear * rule.up), (down, rule.linear * rule.down), (self.at.change, rule.fixed)]
        return Linear.of([*terms, *(square.cost(weight) for square, weight in self.squares)])

    def gap(self) -> Linear:
        down, up = self.feature.rates
        return Linear.of(list(zip(self.paid, (up, down), strict=True)))

    def encoded(self) -> list[Linear]:
        feature = self.feature
        if feature.kind is not Kind.INTEGER:
            return [Linear.of([(self.at.number, 1.0)])]
        return [Linear.of([(self.at.number, 1.0 / feature.range)], -feature.scale[0] / feature.range)]

    def forbid(self, value: Any) -> None:
        self.compiled.high[self.at.up if value > self.value else self.at.down] = 0.0

    def changed(self) -> Linear:
        return Linear.of([(self.at.change, 1.0)])

    def distance_form(self, value: Any, separation: float) -> Linear:
        up, down = separated_values(self.feature, float(value), separation)
        low, high = self.compiled.low[self.at.number], self.compiled.high[self.at.number]
        if self.feature.kind is not Kind.INTEGER:
            up, down = ((end - self.feature.scale[0]) / self.feature.range for end in (up, down))
        parts = []
        if up <= high:
            above = self.compiled.add_column()
            self.compiled.add_row(Linear.of([(self.at.number, 1.0), (above, -(up - low))]), low=low)
            parts.append((above, 1.0))
        if down >= low:
            below = self.compiled.add_column()
            self.compiled.add_row(Linear.of([(self.at.number, 1.0), (below, high - down)]), high=high)
            parts.append((below, 1.0))
        return Linear.of(parts)

    def values_listed(self) -> Sequence[Any]:
        return ()

    def read(self, x: np.ndarray) -> Any:
        feature, number = self.feature, x[self.at.number]
        if x[self.at.up] + x[self.at.down] <= INTEGRAL:
            value = self.value
        elif feature.kind is Kind.INTEGER:
            value = float(np.rint(number))
        else:
            value = float(np.clip(feature.scale[0] + number * feature.range, *feature.interval(self.value)))
        value = self.cells.clip(value, x)
        return int(value) if feature.kind is Kind.INTEGER else value
