"""A category in a program: a binary a level."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from harness.core.space import Feature, Kind
from harness.core.tolerances import COORDINATE_TIE
from harness.solvers.highs import Linear
from harness.solvers.program import Compiled, Expression, Program
from methods.milp.block import Block, keep_to
from methods.milp.cost import Cost


class CategoryBlock(Block):
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
        """1 iff the feature is in its ``code``-th category."""
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

    def form(self, weights: np.ndarray) -> Linear:
        """The weight of the level that the feature is at."""
        if self.feature.kind is Kind.CATEGORICAL:
            used = np.flatnonzero(weights)
            return Linear(self.at[used], weights[used])
        return Linear(self.at, np.diff(weights), float(weights[0]))

    def pose(self, value: Any, cost: Cost, within: Any = None) -> None:
        code = self.feature.categories.index(value)
        self.code = code
        self.weights = cost(self.feature.charges[code], np.arange(self.size) != code)
        open_ = np.array([category in self.feature.reachable(value) for category in self.feature.categories])
        open_ &= self.weights <= cost.budget
        open_[code] = True
        if within is not None:
            ranks = np.arange(self.size) / max(self.size - 1, 1)
            ordinal = self.feature.kind is Kind.ORDINAL
            open_ = (
                (ranks >= within[0] - COORDINATE_TIE) & (ranks <= within[1] + COORDINATE_TIE) & open_
                if ordinal
                else np.arange(self.size) == within
            )
        self.open = open_
        self.others = np.flatnonzero(open_ & (np.arange(self.size) != code))
        if self.feature.kind is not Kind.CATEGORICAL and open_.any():
            keep_to(self.compiled, self.at, open_)
            return
        low, high = self.compiled.low, self.compiled.high
        low[self.at], high[self.at] = 0.0 if open_.any() else 1.0, open_[: len(self.at)]

    @property
    def prices(self) -> np.ndarray:
        """What it costs to move to each of the other open categories, shape (others,)."""
        prices: np.ndarray = np.maximum(self.weights[self.others], 0.0)
        return prices

    @property
    def shares(self) -> list[Linear]:
        """1 at each of the other open categories, else 0."""
        first = self.feature.kind is not Kind.CATEGORICAL  # which has no column of its own
        return [Linear.of(self._indicator(int(code)), float(first and code == 0)) for code in self.others]

    def cost(self) -> Linear:
        return self.form(self.weights)

    def gap(self) -> Linear:
        return self.form(self.feature.charges[self.code])

    def encoded(self) -> list[Linear]:
        if self.feature.kind is Kind.CATEGORICAL:
            return [Linear.of([(column, 1.0)]) for column in self.at]
        return [self.form(np.arange(self.size) / max(self.size - 1, 1))]

    def forbid(self, value: Any) -> None:
        code = self.feature.categories.index(value)
        self.compiled.add_row(self.form((np.arange(self.size) == code).astype(float)), high=0.0)

    def changed(self) -> Linear:
        return self.form((np.arange(self.size) != self.code).astype(float))

    def distance_form(self, value: Any, separation: float) -> Linear:
        code = self.feature.categories.index(value)
        return self.form((np.arange(self.size) != code).astype(float))

    def values_listed(self) -> Sequence[Any]:
        return [self.feature.categories[code] for code in np.flatnonzero(self.open) if code != self.code]

    def read(self, x: np.ndarray) -> Any:
        if self.feature.kind is Kind.CATEGORICAL:
            return self.feature.categories[int(x[self.at].argmax())]
        return self.feature.categories[int(np.rint(x[self.at]).sum())]
