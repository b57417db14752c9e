"""Positions of particles, and the decoded rows that they stand for."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from harness.core.space import Feature, Kind
from harness.core.tolerances import COORDINATE_TIE
from methods.md_pso.oracle import Oracle


class Actions:
    """Boxes of latent positions around some factuals, and the permitted points of the space within them.

    Parameters
    ----------
    reach
        Relative and absolute half-width of the box of a number.

    Attributes
    ----------
    origin, low, high
        The factuals and the ends of their boxes, shape (factuals, columns).
    owned
        Which columns are each feature's, bool, shape (features, columns).
    halved
        Which features are numbers, bool, shape (features,).
    """

    def __init__(self, oracle: Oracle, factuals: pd.DataFrame, reach: tuple[float, float]) -> None:
        self.oracle, space = oracle, oracle.problem.space
        self.origin = space.encode(factuals)[:, oracle.places]
        self.base = factuals if oracle.inputs is None else oracle.classifier.matrix(factuals)
        self.low, self.high = self.origin.copy(), self.origin.copy()
        self.owned = np.zeros((len(oracle.features), len(oracle.places)), dtype=bool)
        self.halved = np.array([feature.numeric for feature in oracle.features], dtype=bool)
        self.own = np.empty((len(factuals), len(oracle.numeric)))
        self.gaps: list[tuple[int, np.ndarray, np.ndarray]] = []  # column, interval outside which only the own value is
        self.barred: list[tuple[int, np.ndarray]] = []  # column, special codes, which nobody enters
        self.ranked: list[tuple[int, np.ndarray]] = []  # column, nearest permitted code by factual and code
        self.hot: list[tuple[slice, np.ndarray]] = []  # columns, permitted categories by factual
        number = 0
        for index, (feature, columns) in enumerate(zip(oracle.features, oracle.slices, strict=True)):
            self.owned[index, columns] = True
            values = factuals[feature.name].tolist()
            if feature.numeric:
                self.own[:, number] = values
                self._bound(feature, columns.start, values, reach)
                if feature.special:
                    codes = (np.array(feature.special, dtype=float) - feature.scale[0]) / feature.range
                    self.barred.append((columns.start, codes))
                number += 1
            elif feature.kind is Kind.CATEGORICAL:
                allowed = np.array([[c in feature.reachable(value) for c in feature.categories] for value in values])
                several = allowed.sum(axis=1, keepdims=True) > 1
                self.low[:, columns] = np.where(several, 0.0, self.origin[:, columns])
                self.high[:, columns] = np.where(several, allowed, self.origin[:, columns])
                self.hot.append((columns, allowed))
            else:
                self._rank(feature, columns.start, values, reach)
        self.starts = np.array([columns.start for columns in oracle.slices], dtype=int)
        self.weight = np.concatenate([[0.5 if f.kind is Kind.CATEGORICAL else 1.0] * f.width for f in oracle.features])
        self.continuous = np.zeros(len(oracle.places), dtype=bool)
        self.continuous[oracle.numeric[~oracle.integral]] = True

    def _bound(self, feature: Feature, column: int, values: Sequence[float], reach: tuple[float, float]) -> None:
        """Set the box of a number: within reach, [0, 1], the bounds and the actionable side, the factual included."""
        ends = np.array([feature.interval(float(value)) for value in values]).T
        low, high = (ends - feature.scale[0]) / feature.range
        z = self.origin[:, column]
        outside = (z < low) | (z > high)  # a special code
        size = np.maximum(reach[0] * np.abs(z), reach[1])
        if feature.kind is Kind.INTEGER:
            size = np.maximum(size, 1.0 / feature.range)
        size = np.where(outside, np.inf, size)
        low = np.maximum(low, np.maximum(z - size, np.minimum(z, 0.0)))
        high = np.minimum(high, np.minimum(z + size, np.maximum(z, 1.0)))
        if feature.kind is Kind.INTEGER:
            low = (np.ceil(feature.scale[0] + low * feature.range - COORDINATE_TIE) - feature.scale[0]) / feature.range
            high = (
                np.floor(feature.scale[0] + high * feature.range + COORDINATE_TIE) - feature.scale[0]
            ) / feature.range
        empty = low > high
        low, high = np.where(empty, z, low), np.where(empty, z, high)
        if outside.any():
            self.gaps.append((column, low, high))
        self.low[:, column], self.high[:, column] = np.minimum(low, z), np.maximum(high, z)

    def _rank(self, feature: Feature, column: int, values: Sequence[object], reach: tuple[float, float]) -> None:
        """Set the box of an ordinal or binary feature: permitted ranks within reach, and at least the next ones."""
        levels = np.arange(len(feature.categories))
        top, nearest = max(len(levels) - 1, 1), np.empty((len(values), len(levels)), dtype=int)
        for row, value in enumerate(values):
            own = feature.categories.index(value)
            allowed = np.sort(feature.codes(feature.reachable(value)))
            if feature.kind is Kind.ORDINAL:
                size = max(reach[0] * own / top, reach[1]) * top
                place = int(np.searchsorted(allowed, own))
                near = np.arange(len(allowed))
                allowed = allowed[(np.abs(allowed - own) <= size + COORDINATE_TIE) | (np.abs(near - place) <= 1)]
            nearest[row] = allowed[np.abs(levels[:, None] - allowed).argmin(axis=1)]
            self.low[row, column], self.high[row, column] = allowed[0] / top, allowed[-1] / top
        self.ranked.append((column, nearest))

    def snap(self, positions: np.ndarray, owner: np.ndarray) -> np.ndarray:
        """The permitted points nearest to latent positions within the boxes, shape (rows, columns)."""
        oracle, points = self.oracle, positions.copy()
        for column, low, high in self.gaps:
            x, low, high, z = positions[:, column], low[owner], high[owner], self.origin[owner, column]
            inside = np.clip(x, low, high)
            points[:, column] = np.where(np.abs(x - z) < np.abs(x - inside), z, inside)
        if oracle.integral.any():
            columns = oracle.numeric[oracle.integral]
            shift, unit = oracle.shift[oracle.integral], oracle.range[oracle.integral]
            points[:, columns] = (np.rint(shift + points[:, columns] * unit) - shift) / unit
        for column, codes in self.barred:
            entered = (np.abs(points[:, [column]] - codes) <= COORDINATE_TIE).any(axis=1)
            points[entered, column] = self.origin[owner[entered], column]
        for column, nearest in self.ranked:
            top = max(nearest.shape[1] - 1, 1)
            points[:, column] = nearest[owner, np.rint(positions[:, column] * top).astype(int)] / top
        for columns, allowed in self.hot:
            best = np.where(allowed[owner], positions[:, columns], -1.0).argmax(axis=1)
            points[:, columns] = np.arange(allowed.shape[1]) == best[:, None]
        origin = self.origin[owner]
        return np.where(np.abs(points - origin) <= COORDINATE_TIE, origin, points)

    def displacement(self, points: np.ndarray, owner: np.ndarray) -> np.ndarray:
        """How far each active feature of snapped points moved, in scaled units; 1 for a category; (rows, features)."""
        moved = np.abs(points - self.origin[owner]) * self.weight
        return np.add.reduceat(moved, self.starts, axis=1)

    def priced(self, points: np.ndarray, owner: np.ndarray, moved: np.ndarray) -> np.ndarray:
        """What displacements cost where features have costs of their own, shape (rows, features)."""
        costs, place = moved, -1
        for index, (feature, columns) in enumerate(zip(self.oracle.features, self.oracle.slices, strict=True)):
            place += feature.numeric
            if not feature.priced:
                continue
            costs = moved.copy() if costs is moved else costs
            if feature.curved:
                costs[:, index] = feature.charged(self.own[owner, place], self.oracle.values(points)[:, place])
            elif feature.kind is Kind.CATEGORICAL:
                own, codes = (x[:, columns].argmax(axis=1) for x in (self.origin[owner], points))
                costs[:, index] = feature.charges[own, codes]
            elif feature.numeric:
                falls = points[:, columns.start] < self.origin[owner, columns.start]
                costs[:, index] *= np.where(falls, *feature.rates)
            else:
                top = feature.steps
                own, codes = (np.rint(x[:, columns.start] * top).astype(int) for x in (self.origin[owner], points))
                costs[:, index] = feature.charges[own, codes]
        return costs

    def judge(self, points: np.ndarray, owner: np.ndarray, strict: bool = False) -> tuple[np.ndarray, ...]:
        """``Oracle.judge`` of snapped points: which are valid, bool, and distances of their scores, both (rows,)."""
        values = self.oracle.values(points)
        columns = self.oracle.numeric
        values = np.where(points[:, columns] == self.origin[owner][:, columns], self.own[owner], values)
        base = self.base.iloc[owner] if isinstance(self.base, pd.DataFrame) else self.base[owner]
        return self.oracle.judge(points, values, base, strict)
