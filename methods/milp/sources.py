"""Inputs of an estimator as expressions of a program."""

from __future__ import annotations

import math
from typing import Any, Protocol

import numpy as np

from harness.core.inputs import Affine
from harness.solvers.program import Expression
from methods.estimators.thresholds import as_compared
from methods.milp.category_block import CategoryBlock
from methods.milp.interval_block import IntervalBlock
from methods.milp.number_block import NumberBlock


class Source(Protocol):
    """One input of an estimator inside a program, whatever it is made of."""

    low: float
    high: float

    @property
    def size(self) -> float:
        """How far the input moves; of a number without ends, as far as its scale."""
        ...

    @property
    def expression(self) -> Expression:
        """The input's value."""
        ...

    def right_of(self, threshold: float, single: bool = True) -> Expression:
        """A 0/1 expression: 1 iff the input, where ``single`` its float32, exceeds the threshold: to the right."""
        ...


class Moved(Source, Protocol):
    """One that is made of a feature, whose posed block knows what it costs to move."""

    block: Any

    @property
    def here(self) -> float:
        """The input's value at the posed factual."""
        ...

    @property
    def gains(self) -> np.ndarray:
        """What each whole move of the block adds to the input, shape (moves,); its ``shares`` are parts of them."""
        ...


class LevelSource:
    """An estimator input that is a function of a feature's category."""

    def __init__(self, block: CategoryBlock, table: np.ndarray) -> None:
        self.block, self.table = block, table
        self.low, self.high = float(table.min()), float(table.max())

    @property
    def size(self) -> float:
        return self.high - self.low

    @property
    def expression(self) -> Expression:
        return sum(float(value) * self.block.level(code) for code, value in enumerate(self.table) if value)

    @property
    def here(self) -> float:
        return float(self.table[self.block.code])

    @property
    def gains(self) -> np.ndarray:
        gains: np.ndarray = self.table[self.block.others] - self.here
        return gains

    def right_of(self, threshold: float, single: bool = True) -> Expression:
        right = as_compared(self.table, single) > threshold
        if right.all():
            return 1
        return sum(self.block.level(int(code)) for code in np.flatnonzero(right))


class NumberSource:
    """An estimator input that is an affine function of a number."""

    low, high = -math.inf, math.inf

    def __init__(self, block: IntervalBlock | NumberBlock, affine: Affine) -> None:
        self.block, self.affine = block, affine
        feature = block.feature
        self.slope = feature.range / affine.unit
        self.shift = (feature.scale[0] - affine.shift) / affine.unit

    @property
    def size(self) -> float:
        return abs(self.slope)

    @property
    def expression(self) -> Expression:
        return self.slope * self.block.x + self.shift

    @property
    def here(self) -> float:
        feature = self.block.feature
        return float(self.slope * (self.block.value - feature.scale[0]) / feature.range + self.shift)

    @property
    def gains(self) -> np.ndarray:
        assert isinstance(self.block, NumberBlock)
        gains: np.ndarray = self.slope * self.block.reach.ways
        return gains

    def right_of(self, threshold: float, single: bool = True) -> Expression:
        return self.block.right_of(self.affine, threshold, single)
