"""The boxes on which trees are wrong, as one factual meets them: whether a point keeps away from them."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from typing import Any

import numpy as np

from harness.core.method import Deadline
from harness.core.space import Feature, Kind
from harness.core.tolerances import WALL
from methods.cells.closest import Closest
from methods.cells.masks import ASK, DONE, MORE_LOOKS
from methods.cells.records import Box
from methods.robust.ball_kernels import ASKED, CLAUSES, MET, ROOT_ROUNDS, Duals, Point
from methods.robust.cells import BallSearch, _BallState, _NeighbourhoodLayout
from methods.robust.wall_kernels import Place, cover, look

UNKNOWN = -1
MOST_LOOKS = 40  # doublings of the adversary's allowance
MOST_ASKED = 2000  # cells of which the model itself is asked, as rounding decides there


class Walls:
    """The walls of one factual: those that are known, and an adversary that finds more.

    Attributes
    ----------
    left, right
        The coordinates, scaled differences from the factual, at which each feature leaves a wall; shape (walls,
        features).
    step
        Which features leave a wall altogether or not at all, shape (features,); others add up squares.
    radius
        That walls ask for, a little more than rho.
    """

    def __init__(self, search: BallSearch, factual: Mapping[str, Any], cube: bool, deadline: Deadline) -> None:
        self.deadline = deadline
        layout = _NeighbourhoodLayout(search, factual)
        self.search, self.layout, self.cube = search, layout, cube
        self.state = _BallState(search, layout, Closest(None, math.inf, 0.0))
        self.features = search.space.features
        space, count = self.state.ball_space, len(self.features)
        self.radius, self.met = math.sqrt(space.squares[ASKED]), float(space.squares[MET])
        self.moved = search.reach > 0
        self.step = ~self.moved | cube
        self.left, self.right = np.empty((0, count)), np.empty((0, count))
        self._factual = {f.name: self._rank(f, factual[f.name]) for f in self.features}
        none = np.zeros((2 * count, 1))
        self._duals = Duals(none, none, none, np.zeros(2 * count, np.int64), np.zeros(count))

    def compile(self, row: Mapping[str, Any], reach: Box) -> None:
        """Have the kernels compiled (or read from numba's cache) before any clock runs."""
        self.search._right(row)
        self.broken(row, reach)
        self.state.asked[:] = self.layout.cells_of(row)
        self.state.decide(right=True)
        self.state.decide(right=False)
        self._learn()
        room = np.zeros(len(self.features))
        cover(self.left[0], self.right[0], self.step, self.radius, room, room, room, room)

    @staticmethod
    def _rank(feature: Feature, value: Any) -> float:
        """A number, or the position of a category."""
        return float(value) if feature.numeric else float(feature.categories.index(value))

    def point(self, row: Mapping[str, Any]) -> np.ndarray:
        """The coordinates of a row, shape (features,); 0 of features without an order."""
        found = np.zeros(len(self.features))
        for f, feature in enumerate(self.features):
            if feature.kind is not Kind.CATEGORICAL:
                found[f] = (self._rank(feature, row[feature.name]) - self._factual[feature.name]) / self.unit(feature)
        return found

    @staticmethod
    def unit(feature: Feature) -> float:
        """What a coordinate of 1 is, in original units or ranks."""
        return feature.range if feature.numeric else float(feature.steps)

    def broken(self, row: Mapping[str, Any], reach: Box) -> int | None:
        """A wall that a row is too near to, the one it is farthest inside of those that are known.

        None where the row is robust, ``UNKNOWN`` where that could not be found out in time. ``reach``: where the search
        may move to, for which new walls are grown.
        """
        y, cells = self.point(row), self.layout.cells_of(row)
        known = self._nearest(y, cells)
        if known is not None:
            return known
        place = Place(Point(y, cells), cells, reach, self._duals, self.cube)
        state = self.state
        more = asked = 0
        while more < MOST_LOOKS and asked < MOST_ASKED:
            if state.counters[CLAUSES] + ROOT_ROUNDS + 2 > len(state.wrong.low):
                state.more_clauses()
            began = time.monotonic()
            found = look(state.search._grid, state.ball_space, place, state.wrong, state.counters, state.neighbourhood)
            if found == DONE:
                return None
            if found == ASK:
                state.asked[:] = state.neighbourhood.adversary.worst_low
                state.decide(state.search._right(state.undecided_row()))
                asked += 1
            elif found == MORE_LOOKS:
                state.more_looks()
                more += 1
            if self._learn():
                return len(self.left) - 1
            # Twice as many looks take twice as long, and cannot be interrupted.
            if 2 * (time.monotonic() - began) > self.deadline.left:
                break
        return UNKNOWN

    def _learn(self) -> bool:
        """Take in the walls that the kernels have added; whether there are any."""
        state, space = self.state, self.state.ball_space
        known, number = len(self.left), int(state.counters[CLAUSES])
        for c in range(known, number):
            left, right = np.full(len(self.features), -math.inf), np.full(len(self.features), math.inf)
            for f, feature in enumerate(self.features):
                low, high = int(state.wrong.low[c, f]), int(state.wrong.high[c, f])
                first, cells = int(space.offset[f]), int(space.offset[f + 1] - space.offset[f])
                if feature.numeric:
                    left[f] = space.closes[first + low - 1] if low else -math.inf
                    right[f] = space.closes[first + high]
                elif feature.kind is not Kind.CATEGORICAL:
                    own, top = self._factual[feature.name], self.unit(feature)
                    left[f] = (low - 1 - own) / top if low else -math.inf
                    right[f] = (high + 1 - own) / top if high + 1 < cells else math.inf
            if self.cube:
                left, right = left - self.radius * self.moved, right + self.radius * self.moved
            self.left, self.right = np.vstack([self.left, left]), np.vstack([self.right, right])
        return number > known

    def _nearest(self, y: np.ndarray, cells: np.ndarray) -> int | None:
        """The wall that a point is farthest inside; None where it is outside all of them."""
        number = len(self.left)
        if not number:
            return None
        wrong = self.state.wrong
        within = (wrong.low[:number] <= cells) & (cells <= wrong.high[:number])
        unordered = self.state.ball_space.unordered > 0
        bit = (wrong.sets[:number] >> cells.astype(np.uint64)) & np.uint64(1) == 1
        within = np.where(unordered, bit, within)
        away = np.maximum(np.maximum(self.left - y, y - self.right), 0.0)
        if self.cube:
            inside = np.where(self.moved, ~self._beyond(y), within).all(axis=1)
            return int(np.argmax(inside)) if inside.any() else None
        inside = (within | self.moved).all(axis=1)
        squares = np.where(inside, (np.where(self.moved, away, 0.0) ** 2).sum(axis=1), math.inf)
        worst = int(np.argmin(squares))
        return worst if squares[worst] < self.met else None

    def _beyond(self, y: np.ndarray) -> np.ndarray:
        """Where a point is as far from a wall as a box of perturbations asks, but for rounding."""
        return (y >= self.right - WALL * self.radius) | (y <= self.left + WALL * self.radius)
