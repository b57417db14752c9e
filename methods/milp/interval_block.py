"""A number in a program that lies in one of an ensemble's intervals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from harness.core.errors import UnsupportedError
from harness.core.inputs import Affine
from harness.core.space import Feature, Kind
from harness.core.tolerances import COORDINATE_TIE
from harness.solvers.highs import Linear
from harness.solvers.program import Compiled, Expression, Program
from methods.estimators.thresholds import last_decoded, separated_values
from methods.milp.block import keep_to
from methods.milp.cost import Cost


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


def cells(feature: Feature, ends: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The first and the last decoded value of each cell between thresholds, shape (cells,)."""
    after = ends + 1 if feature.kind is Kind.INTEGER else np.nextafter(ends, math.inf)
    return np.concatenate([[-math.inf], after]), np.concatenate([ends, [math.inf]])


class IntervalBlock:
    """A number seen only through thresholds: the cells between them, each at its value nearest to the factual.

    Of a ``Block`` it has what trees need, neither scaled columns nor moves to one side.

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
        first, last = cells(feature, self.ends)
        self.factual_cell = int(np.searchsorted(self.ends, value, side="left"))
        self.values = np.clip(value, np.maximum(first, low), np.minimum(last, high))
        empty = np.maximum(first, low) > np.minimum(last, high)
        self.values[self.factual_cell] = value
        empty[self.factual_cell] = False
        self.moved = feature.moved(value, self.values) > COORDINATE_TIE
        if feature.curved:
            self.weights = cost(feature.charged(value, self.values), self.moved)
        else:
            self.weights = cost.moved((self.values - value) / feature.range)
        open_ = ~empty & (self.weights <= cost.budget)
        open_[self.factual_cell] = True
        self.open = open_
        self.weights[~open_] = self.weights[open_].max()
        keep_to(self.compiled, self.at, open_)

    def _form(self, weights: np.ndarray) -> Linear:
        return Linear(self.at, np.diff(weights), float(weights[0]))

    def cost(self) -> Linear:
        return self._form(self.weights)

    def changed(self) -> Linear:
        return self._form(self.moved.astype(float))

    def distance_form(self, value: Any, separation: float) -> Linear:
        up, down = separated_values(self.feature, float(value), separation)
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
        return [self._plain(self.values[cell]) for cell in np.flatnonzero(self.open) if cell != self.factual_cell]

    def _plain(self, value: float) -> Any:
        return int(value) if self.feature.kind is Kind.INTEGER else float(value)

    def read(self, x: np.ndarray) -> Any:
        return self._plain(self.values[int(np.rint(x[self.at]).sum())])
