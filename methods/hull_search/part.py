"""One part of a search within hulls: a combination of categories, with the numbers that can move."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from harness.core.space import Feature, Kind
from harness.core.tolerances import COORDINATE_TIE, SCORE_TIE
from methods.hull_search.models import Model, Sums, Trees
from methods.hull_search.records import LeafArrays
from methods.hull_search.working_set import WorkingSet
from methods.milp.distance import Separable
from methods.milp.hull import Outside, Shares


@dataclass
class Numbers:
    """The numbers and ranks that move, each array of shape (numbers,): decoded values are shift + unit * scaled ones.

    Parameters
    ----------
    place
        Their features.
    value
        Of the factual.
    low, high
        The ends of its reach, and of its own value.
    hole
        The ends of what lies between the two, shape (2, numbers); NaN where nothing does.
    integer
        Whether only whole values exist.
    """

    place: np.ndarray
    shift: np.ndarray
    unit: np.ndarray
    value: np.ndarray
    low: np.ndarray
    high: np.ndarray
    hole: np.ndarray
    integer: np.ndarray

    @classmethod
    def of(cls, count: int) -> Numbers:
        """So many, to be set."""
        flags = np.zeros(count, dtype=bool)
        shift, value, low, high = np.zeros((4, count))
        hole = np.full((2, count), np.nan)
        return cls(np.zeros(count, dtype=int), shift, np.ones(count), value, low, high, hole, flags)

    def decoded(self, x: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
        """Values of moving numbers from scaled ones, clipped to a box; integers are rounded."""
        point = np.clip(self.shift + self.unit * x, low, high)
        return np.where(self.integer, np.rint(point), point)

    def off(self, x: np.ndarray, point: np.ndarray) -> float:
        """How far values of moving numbers are from scaled ones, in scaled units, all together."""
        return float((np.abs(self.shift + self.unit * x - point) / self.unit).sum())

    def moved(self, point: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Scaled gaps of the moving numbers, and which of them are changes."""
        gaps = np.abs(point - self.value) / self.unit
        return gaps, gaps > COORDINATE_TIE


@dataclass
class Still:
    """The features that do not move: their decoded values by name, and arrays over all features.

    ``fixed`` holds codes, ranks or values, ``gaps`` how far they are from the factual's in scaled units.
    """

    row: dict[str, Any]
    fixed: np.ndarray
    gaps: np.ndarray
    changed: np.ndarray

    @classmethod
    def of(cls, features: int) -> Still:
        """Of so many features, none of them fixed yet."""
        return cls({}, np.zeros(features), np.zeros(features), np.zeros(features, dtype=bool))


@dataclass
class Units:
    """The first layer of a network over the moving numbers.

    ``slope``: of sums a scaled unit, shape (units, numbers); ``sums``: at the factual's numbers; ``low``, ``high``:
    their ends over the hull's points, infinite where that may be left.
    """

    slope: np.ndarray
    sums: np.ndarray
    low: np.ndarray
    high: np.ndarray

    @classmethod
    def of(cls, slope: np.ndarray, sums: np.ndarray, part: HullPart) -> Units:
        """The first layer in a part."""
        if part.outside is not None:
            return cls(slope, sums, np.full(len(sums), -np.inf), np.full(len(sums), np.inf))
        values = sums[:, None] + slope @ (part.points.points - part.origin[:, None])
        room = SCORE_TIE * np.maximum(np.abs(values).max(axis=1), 1.0)
        return cls(slope, sums, values.min(axis=1) - room, values.max(axis=1) + room)

    def at(self, moves: np.ndarray) -> np.ndarray:
        """The sums at moves in scaled units."""
        values: np.ndarray = self.sums + self.slope @ moves
        return values

    def ends(self, low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The ends of the sums in a box of moves within the hull."""
        centre, radius = self.at((low + high) / 2), np.abs(self.slope) @ ((high - low) / 2)
        return np.maximum(centre - radius, self.low), np.minimum(centre + radius, self.high)


class HullPart:
    """A piece of the manifold as this factual reaches it: which numbers move, and where; everything else fixed."""

    def __init__(
        self, model: Model, weights: np.ndarray, points: WorkingSet, factual: pd.DataFrame, piece: Shares | Outside
    ) -> None:
        space = model.problem.space
        self.model, self.weights, self.points = model, weights, points
        self.origin_row = factual.to_dict("records")[0]
        moving = {int(column): k for k, column in enumerate(piece.at)}
        self.possible, self.outside = True, piece.price  # what a unit outside costs, where that is allowed
        self.numbers, self.still = Numbers.of(len(moving)), Still.of(len(space.features))
        assert piece.box is not None
        reach = space.reach(factual)
        for j, (feature, columns) in enumerate(zip(space.features, space.slices, strict=True)):
            box, value = piece.box[j], factual[feature.name].iloc[0]
            if feature.kind in {Kind.CATEGORICAL, Kind.BINARY}:
                category = feature.categories[box]
                self._fix(j, box, category, float(category != value))
                continue
            number = _number(feature, value, box, (reach[0][columns.start], reach[1][columns.start]))
            self.possible &= number.stays or number.possible
            if columns.start in moving:
                self._move(moving[columns.start], j, number)
            elif number.stays:
                self._fix(j, number.value, value, 0.0)
            else:
                nearest = min(number.low, number.high)
                self._fix(j, nearest, _plain(feature, nearest), abs(nearest - number.value) / number.unit, changed=True)
        self.origin = (self.numbers.value - self.numbers.shift) / self.numbers.unit
        if model.trees is not None:
            self.leaves = self._fix_trees(model.trees)
            return
        assert model.sums is not None
        slopes, sums = self._fix_sums(model.sums)
        if model.margins is not None:
            self.units = Units.of(slopes, sums, self)
        else:
            self.slope, self.score = slopes[0], float(sums[0])

    def _fix(self, j: int, code: float, value: Any, gap: float, changed: bool = False) -> None:
        """Fix feature j at a code, rank or number that decodes to ``value``."""
        feature = self.model.problem.space.features[j]
        self.still.fixed[j], self.still.row[feature.name] = code, value
        self.still.gaps[j], self.still.changed[j] = gap, changed or gap > 0

    def _move(self, k: int, j: int, number: _Number) -> None:
        """Let feature j be moving number k, from the factual's value to its reach, where the piece holds both."""
        numbers = self.numbers
        numbers.place[k], numbers.shift[k], numbers.unit[k] = j, number.shift, number.unit
        numbers.value[k], numbers.integer[k] = number.value, number.integer
        low, high = number.low, number.high
        if not number.possible:
            low = high = number.value
        elif number.stays:
            if number.value < low:
                numbers.hole[:, k] = number.value, low
            elif number.value > high:
                numbers.hole[:, k] = high, number.value
            low, high = min(low, number.value), max(high, number.value)
        numbers.low[k], numbers.high[k] = low, high

    def _still(self) -> list[tuple[int, Feature]]:
        """The features that do not move, with their places."""
        moving = set(self.numbers.place.tolist())
        return [(j, feature) for j, feature in enumerate(self.model.problem.space.features) if j not in moving]

    def _fix_sums(self, sums: Sums) -> tuple[np.ndarray, np.ndarray]:
        """Sums with all other features fixed: slopes (sums, numbers) a scaled unit, and values at the factual's."""
        slopes = sums.slope[:, self.numbers.place]
        values = sums.constant + slopes @ self.numbers.value
        for j, feature in self._still():
            code = self.still.fixed[j]
            straight = feature.numeric or feature.kind is Kind.ORDINAL
            values = values + (sums.slope[:, j] * code if straight else sums.tables[j][:, int(code)])
        return slopes * self.numbers.unit, values

    def _fix_trees(self, trees: Trees) -> tuple[Any, ...]:
        """The leaves that are left with all other features fixed: plain ``LeafArrays``, over the moving numbers."""
        kept = np.ones(len(trees.value), dtype=bool)
        for j, feature in self._still():
            if feature.numeric or feature.kind is Kind.ORDINAL:
                kept &= (trees.first[:, j] <= self.still.fixed[j]) & (trees.last[:, j] >= self.still.fixed[j])
            else:
                kept &= trees.met[j][:, int(self.still.fixed[j])]
        numbers = self.numbers
        kept &= (trees.first[:, numbers.place] <= numbers.high).all(axis=1)
        kept &= (trees.last[:, numbers.place] >= numbers.low).all(axis=1)
        order = np.flatnonzero(kept)
        start = np.searchsorted(trees.owner[order], np.arange(trees.owner[-1] + 2)).astype(np.int64)
        first = np.ascontiguousarray(trees.first[order][:, numbers.place])
        last = np.ascontiguousarray(trees.last[order][:, numbers.place])
        step = np.where(numbers.integer, 1.0, 0.0)
        before = np.where(numbers.integer, first - step, np.nextafter(first, -np.inf))
        after = np.where(numbers.integer, last + step, np.nextafter(last, np.inf))
        return tuple(LeafArrays(first, last, before, after, trees.value[order], start, trees.base))

    def read(self, point: np.ndarray) -> dict[str, Any]:
        """Decoded values of a point of moving numbers."""
        space = self.model.problem.space
        row = dict(self.still.row)
        for k, j in enumerate(self.numbers.place):
            feature = space.features[j]
            same = point[k] == self.numbers.value[k]
            row[feature.name] = self.origin_row[feature.name] if same else _plain(feature, point[k])
        return {name: row[name] for name in space.names}

    def price(self, row: dict[str, Any], distance: Separable) -> float:
        """The distance of a row from the factual."""
        return float(distance.least(*self._gaps(row)))

    def changes(self, row: dict[str, Any]) -> float:
        """The weighted number of changes of a row."""
        return float(self._gaps(row)[1] @ self.weights)

    def moved(self, row: dict[str, Any]) -> frozenset[int]:
        """The moving numbers that a row changes."""
        return frozenset(np.flatnonzero(self._gaps(row)[1][self.numbers.place]).tolist())

    def _gaps(self, row: dict[str, Any]) -> tuple[np.ndarray, np.ndarray]:
        """Scaled gaps of a row by feature, and which features change."""
        gaps, changed = self.still.gaps.copy(), self.still.changed.copy()
        point = np.empty(len(self.numbers.place))
        for k, j in enumerate(self.numbers.place):
            feature = self.model.problem.space.features[j]
            value = row[feature.name]
            point[k] = value if feature.numeric else feature.categories.index(value)
        gaps[self.numbers.place], changed[self.numbers.place] = self.numbers.moved(point)
        return gaps, changed


@dataclass(frozen=True)
class _Number:
    """A number or rank as a factual reaches it in a piece: decoded ends are value = shift + unit * scaled.

    ``stays``: the piece holds the factual's value; ``possible``: it holds some of [low, high], which is the reach.
    """

    value: float
    shift: float
    unit: float
    low: float
    high: float
    integer: bool
    stays: bool
    possible: bool


def _number(feature: Feature, own: Any, box: tuple[float, float], reach: tuple[float, float]) -> _Number:
    """A number or rank of value ``own``, between the scaled ends of a piece's box and of the factual's reach."""
    if feature.numeric:
        shift, unit, value = feature.scale[0], feature.range, float(own)
        low, high = feature.interval(value)
    else:
        shift, unit = 0.0, float(feature.steps)
        value = float(feature.categories.index(own))
        low, high = np.rint(reach[0] * unit), np.rint(reach[1] * unit)
    integer = feature.kind is not Kind.CONTINUOUS
    floor, top = shift + box[0] * unit, shift + box[1] * unit
    if integer:
        floor, top = np.rint(floor), np.rint(top)
    stays = bool(floor - COORDINATE_TIE * unit <= value <= top + COORDINATE_TIE * unit)
    possible = bool(max(low, floor) <= min(high, top) + (0.0 if integer else COORDINATE_TIE * unit))
    low, high = min(max(low, floor), high), max(min(high, top), low)
    return _Number(value, shift, unit, low, high, integer, stays, possible)


def _plain(feature: Feature, value: float) -> Any:
    """A decoded value from a number or a rank."""
    if feature.kind is Kind.ORDINAL:
        return feature.categories[int(value)]
    return int(value) if feature.kind is Kind.INTEGER else float(value)
