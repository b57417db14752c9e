"""One part of a search within hulls: a combination of categories."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from harness.core.space import SAME, Feature, Kind
from methods.ce_ocl.hull_search import kernels
from methods.ce_ocl.hull_search.models import WHOLE
from methods.milp.hull import Outside, Shares

if TYPE_CHECKING:
    from methods.ce_ocl.hull_search.search import BoxSearch


class Part:
    """A piece of the manifold as this factual reaches it: which numbers move, and where; everything else fixed."""

    def __init__(self, search: BoxSearch, factual: pd.DataFrame, piece: Shares | Outside) -> None:
        space = search.space
        self.search, self.factual = search, factual
        self.origin_row = factual.to_dict("records")[0]
        reach_low, reach_high = space.reach(factual)
        features = len(space.features)
        moving = {int(column): k for k, column in enumerate(piece.at)}
        count = len(moving)
        self.possible = True
        self.work = search.work(piece)
        self.place = np.zeros(count, dtype=int)  # feature of each moving number
        self.row: dict[str, Any] = {}  # values of the features that do not move
        self.gaps, self.changed = np.zeros(features), np.zeros(features, dtype=bool)  # of those
        self.shift, self.unit, self.value = np.zeros(count), np.ones(count), np.zeros(count)
        self.low, self.high = np.zeros(count), np.zeros(count)
        self.hole = np.full((2, count), np.nan)  # ends of what lies between the factual's value and its reach
        self.whole = np.zeros(count, dtype=bool)
        stays = np.zeros(features)  # codes, ranks or values of the features that do not move
        assert piece.box is not None
        for j, (feature, columns) in enumerate(zip(space.features, space.slices, strict=True)):
            box, value = piece.box[j], self.factual[feature.name].iloc[0]
            if feature.kind in {Kind.CATEGORICAL, Kind.BINARY}:
                stays[j], self.row[feature.name] = box, feature.categories[box]
                self.changed[j] = feature.categories[box] != value
                self.gaps[j] = float(self.changed[j])
                continue
            start = columns.start
            shift, unit, place = feature.scale[0], feature.range, float(value) if feature.numeric else 0.0
            low, high = feature.interval(place) if feature.numeric else (0.0, 0.0)
            if not feature.numeric:
                shift, unit = 0.0, float(max(len(feature.categories) - 1, 1))
                place = float(feature.categories.index(value))
                low, high = np.rint(reach_low[start] * unit), np.rint(reach_high[start] * unit)
            whole = feature.kind is not Kind.CONTINUOUS
            floor, top = shift + box[0] * unit, shift + box[1] * unit
            if whole:
                floor, top = np.rint(floor), np.rint(top)
            home = floor - SAME * unit <= place <= top + SAME * unit
            slack = 0.0 if whole else SAME * unit
            possible = max(low, floor) <= min(high, top) + slack
            low, high = min(max(low, floor), high), max(min(high, top), low)
            if start not in moving:
                self.possible &= bool(home or possible)
                stays[j] = place if home else min(max(floor, low), high)
                self.row[feature.name] = value if home else _plain(feature, stays[j])
                self.changed[j] = not home
                self.gaps[j] = 0.0 if home else abs(stays[j] - place) / unit
                continue
            k = moving[start]
            self.place[k], self.shift[k], self.unit[k], self.value[k], self.whole[k] = j, shift, unit, place, whole
            if not possible:
                self.possible &= bool(home)
                low = high = place
            elif home:
                if place < low:
                    self.hole[:, k] = place, low
                elif place > high:
                    self.hole[:, k] = high, place
                low, high = min(low, place), max(high, place)
            self.low[k], self.high[k] = low, high
        self.origin = (self.value - self.shift) / self.unit
        self._embed(stays)

    def _embed(self, stays: np.ndarray) -> None:
        """The model with all other features fixed."""
        search, space = self.search, self.search.space
        still = [j for j in range(len(space.features)) if j not in set(self.place.tolist())]
        if search.line is not None:
            line = search.line
            self.slope = line.slope[self.place] * self.unit
            self.score = line.constant + float(line.slope[self.place] @ self.value)
            for j in still:
                feature = space.features[j]
                straight = feature.numeric or feature.kind is Kind.ORDINAL
                self.score += line.slope[j] * stays[j] if straight else line.tables[j][int(stays[j])]
            return
        trees = search.trees
        assert trees is not None
        kept = np.ones(len(trees.value), dtype=bool)
        for j in still:
            feature = space.features[j]
            if feature.numeric or feature.kind is Kind.ORDINAL:
                kept &= (trees.first[:, j] <= stays[j]) & (trees.last[:, j] >= stays[j])
            else:
                kept &= trees.met[j][:, int(stays[j])]
        kept &= (trees.first[:, self.place] <= self.high).all(axis=1)
        kept &= (trees.last[:, self.place] >= self.low).all(axis=1)
        order = np.flatnonzero(kept)
        owner = trees.owner[order]
        start = np.searchsorted(owner, np.arange(trees.owner[-1] + 2)).astype(np.int64)
        first = np.ascontiguousarray(trees.first[order][:, self.place])
        last = np.ascontiguousarray(trees.last[order][:, self.place])
        step = np.where(self.whole, 1.0, 0.0)
        before = np.where(self.whole, first - step, np.nextafter(first, -np.inf))
        after = np.where(self.whole, last + step, np.nextafter(last, np.inf))
        self.leaves = (first, last, before, after, trees.value[order], start, trees.base)

    def read(self, point: np.ndarray) -> dict[str, Any]:
        """Decoded values of a point of moving numbers."""
        row = dict(self.row)
        for k, j in enumerate(self.place):
            feature = self.search.space.features[j]
            same = point[k] == self.value[k]
            row[feature.name] = self.origin_row[feature.name] if same else _plain(feature, point[k])
        return {name: row[name] for name in self.search.space.names}

    def moved(self, point: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Scaled gaps of the moving numbers, and which of them are changes."""
        gaps = np.abs(point - self.value) / self.unit
        return gaps, gaps > SAME

    def price(self, row: dict[str, Any], fixed: np.ndarray, linear: np.ndarray) -> float:
        """What a row costs."""
        gaps, changed = self._gaps(row)
        return float(changed @ fixed + gaps @ linear)

    def changes(self, row: dict[str, Any]) -> float:
        """The weighted number of changes of a row."""
        return float(self._gaps(row)[1] @ self.search.weights)

    def spread(self, linear: np.ndarray) -> float:
        """What to multiply the distance with, so that it never exceeds ``WHOLE`` in this piece."""
        gaps = self.gaps.copy()
        gaps[self.place] = np.maximum(np.abs(self.high - self.value), np.abs(self.low - self.value)) / self.unit
        return WHOLE / max(float(gaps @ linear), 1.0)

    def _gaps(self, row: dict[str, Any]) -> tuple[np.ndarray, np.ndarray]:
        gaps, changed = self.gaps.copy(), self.changed.copy()
        point = np.empty(len(self.place))
        for k, j in enumerate(self.place):
            feature = self.search.space.features[j]
            value = row[feature.name]
            point[k] = value if feature.numeric else feature.categories.index(value)
        gaps[self.place], changed[self.place] = self.moved(point)
        return gaps, changed


def _plain(feature: Feature, value: float) -> Any:
    """A decoded value from a number or a rank."""
    if feature.kind is Kind.ORDINAL:
        return feature.categories[int(value)]
    return int(value) if feature.kind is Kind.INTEGER else float(value)


def compile() -> None:
    """Load the kernels, or compile them where no cache holds them: outside of what answers are timed by."""
    one, flag = np.zeros(1), np.zeros(1, dtype=bool)
    ends, extra = np.zeros(2), np.zeros((0, 2))
    kernels.prepare(one, one, one, one, one + 1, one, one, one, flag, ends, ends, ends + 1, extra, False)
    kernels.span(ends, ends, ends)
    basis = np.array([0, 2])
    inside = np.ones(1, dtype=bool)
    members = np.zeros(1, dtype=np.int64)
    kernels.simplex(
        np.zeros((1, 1)),
        np.zeros((2, 1, 1)),
        np.zeros((1, 1)),
        members,
        inside,
        1,
        basis,
        one,
        ends,
        ends,
        ends + 1,
        extra,
        1.0,
    )
    kernels.lagrange(ends, ends, ends, ends, one, extra, 1, 0.0)
    kernels.narrow(one, one, one, one + 1, flag, ends, ends, ends, ends, extra, 1.0)
    leaf, start = np.zeros((1, 1)), np.array([0, 1])
    kernels.greatest(leaf, leaf, one, start, 0.0, one, one)
    kernels.cell(leaf, leaf, start, one, one, one)
    kernels.grow(leaf, leaf, leaf, leaf, one, start, 0.0, one, one, np.zeros((2, 1)), one, one, one)
