"""The closest point whose whole box is of the wanted class, proven: the search over cells with a radius."""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from harness.core.errors import UnsupportedError
from harness.core.method import Deadline
from harness.core.objective import Objective, Term
from harness.core.problem import Problem
from harness.core.space import Feature, Kind
from methods.cells import kernels, neighbourhood
from methods.cells.grid import Grid
from methods.cells.search import CLAUSES, NODES, ROWS, CellSearch, Closest, _Layout, _State
from methods.estimators.raw_target import raw_interval
from methods.robust import ball_kernels
from methods.robust.outcome import Outcome
from methods.robust.settings import Settings

LOOKS = 2000  # boxes that the adversary may look at for one point, to begin with
SHARE = 0.3  # of the time for a ball that may go into the box of the same radius
NEAREST, SUREST = 200, 50  # training rows that are tried for a first point: by cost, and by score
EXCUSES = 16  # room for boxes on which the model said it is right, to begin with


class RobustCells:
    """The search over cells as a solver of robust counterfactuals.

    Raises
    ------
    UnsupportedError
        Where the model is no sum of trees, or the target or distance does not fit the search.
    """

    def __init__(self, problem: Problem, settings: Settings) -> None:
        terms = [Term(settings.distance)] + ([Term("l0", settings.alpha)] if settings.alpha else [])
        coefficients = Objective(tuple(terms)).separable(problem.space)
        if coefficients is None:
            raise UnsupportedError(f"the cell search takes no distance {settings.distance!r}; use l1 or l2sq.")
        kind = BallSearch if settings.norm == "l2" and settings.radius > 0 else TouchSearch
        self.search = kind(problem, settings, coefficients)
        self.search.compile(problem.train.iloc[0].to_dict())

    def solve(self, row: Mapping[str, Any], deadline: Deadline) -> Outcome:
        start = time.monotonic()
        found = self.search.region(row, deadline)
        rho = self.search.perturbation.rho if found.row is not None else 0.0
        step = {"iteration": 1, "distance": found.value, "radius": rho, "seconds": time.monotonic() - start}
        return Outcome(found.row, found.value, found.bound, rho, (step,))


class TouchSearch(CellSearch):
    """``CellSearch`` for points with a box around them."""

    def __init__(
        self, problem: Problem, settings: Settings, coefficients: tuple[np.ndarray, np.ndarray, np.ndarray]
    ) -> None:
        self.perturbation = settings.perturbation(problem)
        self.clip = settings.clip
        self.space = problem.space
        most = math.inf if settings.max_changes is None else float(settings.max_changes)
        count = len(problem.space.features)
        relaxed = replace(self.perturbation, space=self.space).relaxed
        super().__init__(replace(problem, space=relaxed), coefficients, np.ones(count), most)
        self.original = problem
        self.reach = self.perturbation.reach
        self.spans = _spans(self.grid)
        valid = problem.train.loc[problem.valid(problem.train)]
        self.examples = valid.iloc[np.random.default_rng(0).permutation(len(valid))[:ROWS]]
        sure = (
            raw_interval(problem).sense * problem.classifier.raw(self.examples).ravel() if len(valid) else np.empty(0)
        )
        self.surest = np.argsort(-sure, kind="stable")[:SUREST]

    def compile(self, row: Mapping[str, Any]) -> None:
        self.region(row, Deadline.after(0.0))
        _TouchState(self, _TouchLayout(self, row)).guess()

    def region(self, factual: Mapping[str, Any], deadline: Deadline) -> Closest:
        """The cheapest point all of whose box is right."""
        return self.finish(_TouchState(self, _TouchLayout(self, factual)), deadline)

    def decided(self, row: Mapping[str, Any]) -> bool:
        """What the real model says of one row, perturbed integers as reals."""
        return self._right(row)


class BallSearch(TouchSearch):
    """``TouchSearch`` for balls; the optimum for the box of the same radius is where it begins."""

    def region(self, factual: Mapping[str, Any], deadline: Deadline) -> Closest:
        layout = _TouchLayout(self, factual)
        first = self.finish(_TouchState(self, layout), Deadline(deadline.at - (1 - SHARE) * deadline.left))
        return self.finish(_BallState(self, layout, first), deadline)


class _TouchLayout(_Layout):
    """States of one factual with the cells that each touches."""

    def __init__(self, search: TouchSearch, factual: Mapping[str, Any]) -> None:
        super().__init__(search, factual, [], 0.5)
        self.search = search
        self.plain = {  # cells and values of the states of what is not perturbed
            f: (self.cell_of[int(self.soff[f]) : int(self.soff[f + 1])], self.values[f]) for f in range(len(self.home))
        }
        first: list[Any] = []
        last: list[Any] = []
        values: list[Any] = []
        cost: list[Any] = []
        home: list[Any] = []
        for f, feature in enumerate(search.space.features):
            own = slice(int(self.soff[f]), int(self.soff[f + 1]))
            if search.reach[f] > 0:
                parts = self._touching(search, f, feature, float(factual[feature.name]))
            else:
                cells = self.cell_of[own]
                parts = (cells, cells, self.values[f], self.cost[own], int(self.home[f]))
            for target, part in zip((first, last, values, cost, home), parts, strict=True):
                target.append(part)
        self.features = search.space.features
        self.first, self.last, self.values = np.concatenate(first), np.concatenate(last), values
        self.cell_of, self.cost, self.home = self.first, np.concatenate(cost), np.array(home, dtype=np.int64)
        self.soff = np.concatenate([[0], np.cumsum([len(part) for part in values])]).astype(np.int64)
        self.high = np.diff(self.soff) - 1
        self.low = np.zeros_like(self.high)

    def examples(self) -> np.ndarray:
        """States near valid training rows, the cheapest first, then those of the surest; shape (rows, features).

        A perturbed number takes the last state on its way from the factual to the row; what a row has out of reach is
        left as it is.
        """
        search, columns, price = self.search, list[np.ndarray](), np.zeros(len(self.search.examples))
        for f, (feature, values) in enumerate(zip(self.features, self.values, strict=True)):
            home, told = int(self.home[f]), search.examples[feature.name]
            if search.reach[f] > 0:
                seen = told.to_numpy(float)
                up = np.searchsorted(values, seen, side="right") - 1
                down = np.searchsorted(values, seen, side="left")
                states = np.where(seen >= values[home], np.maximum(up, home), np.minimum(down, home))
            else:
                cells = self.plain[f][0]
                own = np.searchsorted(self.grid.ends[f], told) if feature.numeric else feature.codes(told)
                place = np.minimum(np.searchsorted(cells, own), len(cells) - 1)
                right = cells[place] == own
                if feature.kind is Kind.CATEGORICAL:
                    right &= (self.sets[f] >> place.astype(np.uint64)) & np.uint64(1) == 1
                states = np.where(right, place, home)
            columns.append(states)
            price += self.cost[int(self.soff[f]) + states]
        order = np.concatenate([np.argsort(price, kind="stable")[:NEAREST], search.surest])
        return np.ascontiguousarray(np.column_stack(columns)[order], dtype=np.int64)

    def cells_of(self, row: Mapping[str, Any]) -> np.ndarray:
        """The cell that a decoded row lies in itself."""
        cells = [
            np.searchsorted(ends, float(row[f.name])) if f.numeric else f.categories.index(row[f.name])
            for f, ends in zip(self.features, self.grid.ends, strict=True)
        ]
        return np.array(cells, dtype=np.int64)

    def listed(self, f: int, y: float) -> Any:
        """The value of an unperturbed number that has a coordinate."""
        values = self.plain[f][1]
        feature = self.features[f]
        place = np.abs(values - (float(self.factual[feature.name]) + y * feature.range)).argmin()
        return int(values[place]) if feature.kind is Kind.INTEGER else float(values[place])

    def _touching(self, search: TouchSearch, f: int, feature: Feature, value: float) -> tuple[Any, ...]:
        low, high = feature.interval(value)
        floor, ceiling = -math.inf, math.inf
        if search.clip:
            bounds = search.original.space.features[f].bounds
            floor, ceiling = min(bounds[0], value), max(bounds[1], value)
        costs = (float(part[f]) for part in (search.fixed, search.linear, search.quadratic))
        return neighbourhood.lay_touching(
            search.grid.ends[f], value, low, high, float(search.reach[f]), floor, ceiling, feature.range,
            feature.kind is Kind.INTEGER, *costs,
        )  # fmt: skip


class _TouchState(_State):
    """The arrays of a running search, and those of its adversary."""

    search: TouchSearch
    layout: _TouchLayout
    reach: tuple[Any, ...]

    def __init__(self, search: TouchSearch, layout: _TouchLayout) -> None:
        super().__init__(search, layout)
        grid, count = search.grid, len(layout.home)
        words, trees = grid.upto.shape[2], len(grid.values)
        depth = 2 * int(grid.offset[-1]) + 2 * count + 2
        spared = np.empty((2, EXCUSES, count), np.int64)
        stack = np.empty((2, depth, count), np.int64)
        boxes = np.empty((6, count), np.int64)
        limits = np.zeros(4, np.int64)
        limits[neighbourhood.ALLOWANCE] = LOOKS
        self.reach = (
            layout.first, layout.last, *search.spans, spared[0], spared[1], stack[0], stack[1], np.empty(depth),
            np.empty((len(grid.members), words), np.uint64), np.zeros(trees, np.int64), *boxes[:4],
            np.empty((1, words), np.uint64), *boxes[4:], limits, np.zeros(count, np.int64),
        )  # fmt: skip

    def question(self) -> dict[str, Any]:
        """A decoded point in the cell that is too near to the threshold to tell."""
        row = dict(self.layout.factual)
        for feature, ends, cell in zip(self.layout.features, self.search.grid.ends, self.asked, strict=True):
            if not feature.numeric:
                row[feature.name] = feature.categories[int(cell)]
            elif len(ends):
                inner = cell < len(ends)
                row[feature.name] = float(ends[cell]) if inner else float(np.nextafter(ends[-1], math.inf))
        return row

    def answer(self, right: bool) -> None:
        """What the real model says of that point holds for all points with the same leaves."""
        if not right:
            self._rule_out(self.asked.copy())
            return
        neighbourhood.leaves_at(self.search._grid, self.search.grid.split, self.asked, self.reach)
        limits = self.reach[20]
        number = limits[neighbourhood.EXCUSED]
        if number == len(self.reach[6]):
            larger = [np.concatenate([part, np.empty_like(part)]) for part in self.reach[6:8]]
            self.reach = (*self.reach[:6], *larger, *self.reach[8:])
        self.reach[6][number], self.reach[7][number] = self.reach[18], self.reach[19]
        limits[neighbourhood.EXCUSED] += 1

    def refuse(self) -> None:
        """Start again without the leaves of the incumbent, which the real model has refused."""
        self.best[:] = self.layout.cells_of(self.layout.row(self.best))
        super().refuse()

    def guess(self) -> None:
        """Training rows that are right with all that they touch, moved to states nearer to the factual."""
        search, layout = self.search, self.layout
        kernels.guess_touched(
            search._grid, search.grid.base, search.grid.split, layout.soff, layout.home, layout.cost, search.weights,
            search.most, self.clauses, layout.examples(), self.upper, self.best, self.counters, self.reach,
        )  # fmt: skip

    def improve(self) -> None:
        """Nothing more: one row with all that it touches takes as long as many points."""

    def more_looks(self) -> None:
        """Twice the effort for a single point."""
        self.reach[20][neighbourhood.ALLOWANCE] *= 2

    def _rule_out(self, cells: np.ndarray) -> None:
        """Add the states that touch a cell with the same leaves as this one."""
        layout, search, count = self.layout, self.search, len(cells)
        residual = (np.zeros(len(layout.cost)), np.zeros(len(layout.cost)), np.zeros(count))
        neighbourhood.leaves_at(search._grid, search.grid.split, cells, self.reach)
        kernels.learn(
            search._grid, search.grid.base, True, search.grid.split, layout.cell_of, layout.soff,
            (layout.low, layout.high, layout.sets), residual, layout.home, layout.home, self.clauses, self.counters,
            self.reach,
        )  # fmt: skip


class _BallState(_TouchState):
    """The arrays of a running search over coordinates."""

    def __init__(self, search: TouchSearch, layout: _TouchLayout, first: Closest) -> None:
        super().__init__(search, layout)
        self.first = first
        count = len(layout.home)
        self.board, low, high = _board(search, layout)
        self.nodes = _real_nodes(NODES, count)
        self.clauses = _real_clauses(CLAUSES, count)
        self.counters = np.zeros(8, np.int64)
        self.best: np.ndarray = np.zeros(count)
        self.groups = np.zeros(count, np.int64)
        self.upper = np.array([first.value, 0.0])
        self._begin(low, high)

    def _begin(self, low: np.ndarray, high: np.ndarray) -> None:
        """Start with every point that may be; a special code of the factual's is a place apart from all others."""
        self.start = low, high
        apart = [f for f in range(len(low)) if low[f] > 0 or high[f] < 0]
        for stays in itertools.product((False, True), repeat=len(apart)):
            ends = low.copy(), high.copy()
            for f, stay in zip(apart, stays, strict=True):
                if stay:
                    ends[0][f] = ends[1][f] = 0.0
            ball_kernels.add_node(*ends, self.layout.sets, 0.0, self.nodes, self.counters)

    def go(self, effort: int) -> int:
        search = self.search
        return ball_kernels.run(
            search._grid, search.grid.base, self.board, search.most, self.clauses, self.nodes, self.counters,
            self.best, self.groups, self.asked, self.upper, effort, self.reach,
        )  # fmt: skip

    def guess(self) -> None:
        """No other guess than the optimum for the box."""

    def refuse(self) -> None:
        """Start again without the leaves of the incumbent, which the real model has refused."""
        cells = self.layout.cells_of(self._row())
        self.first = Closest(None, math.inf, 0.0)
        self.upper[:] = math.inf, 0.0
        self.counters[ball_kernels.FOUND] = self.counters[ball_kernels.ROOT] = 0
        self._rule_out(cells)
        self._begin(*self.start)

    def _rule_out(self, cells: np.ndarray) -> None:
        search, count = self.search, len(cells)
        neighbourhood.leaves_at(search._grid, search.grid.split, cells, self.reach)
        empty = np.zeros((2 * count, 1))
        ball_kernels.learn(
            search._grid, search.grid.base, True, self.board, *self.start, self.layout.sets, np.zeros(count), cells,
            np.zeros(count), (empty, empty, empty, np.zeros(2 * count, np.int64)), self.clauses, self.counters,
            self.reach,
        )  # fmt: skip

    def more_nodes(self) -> None:
        larger = _real_nodes(2 * len(self.nodes[3]), len(self.best))
        for new, old in zip(larger, self.nodes, strict=True):
            new[: len(old)] = old
        self.nodes = larger

    def more_clauses(self) -> None:
        larger = _real_clauses(2 * len(self.clauses[0]), len(self.best))
        for new, old in zip(larger, self.clauses, strict=True):
            new[: len(old)] = old
        self.clauses = larger

    def result(self, done: bool) -> Closest:
        value = float(self.upper[0])
        bound = max(value - ball_kernels.GAP, 0.0) if done else min(value, float(self.upper[1]))
        bound = max(bound, 0.0)
        if not self.counters[ball_kernels.FOUND]:
            return Closest(self.first.row, value, bound)
        return Closest(self._row(), value, bound)

    def _row(self) -> dict[str, Any]:
        """Decoded values of the incumbent."""
        if not self.counters[ball_kernels.FOUND]:
            assert self.first.row is not None
            return self.first.row
        row = dict(self.layout.factual)
        for f, (feature, y) in enumerate(zip(self.layout.features, self.best, strict=True)):
            own = row[feature.name]
            if feature.kind is Kind.CATEGORICAL:
                row[feature.name] = feature.categories[int(self.groups[f])]
            elif not feature.numeric:
                top = max(len(feature.categories) - 1, 1)
                row[feature.name] = feature.categories[round(feature.categories.index(own) + float(y) * top)]
            elif y != 0 and self.board[2][f] == 2:
                row[feature.name] = self.layout.listed(f, float(y))
            elif y != 0:
                low, high = feature.interval(float(own))
                value = min(max(float(own) + float(y) * feature.range, low), high)
                row[feature.name] = round(value) if feature.kind is Kind.INTEGER else value
        return row


def _board(search: TouchSearch, layout: _TouchLayout) -> tuple[tuple[np.ndarray, ...], np.ndarray, np.ndarray]:
    """The features as ``balls`` takes them, and the least and greatest coordinate of each."""
    features, grid, count = layout.features, search.grid, len(layout.features)
    grain, home = np.full(count, 2), np.zeros(count, np.int64)
    closes = np.full(int(grid.offset[-1]), math.inf)
    low, high, origin = np.zeros(count), np.zeros(count), np.zeros(count)
    places, cells, at = [np.zeros(0)], [np.zeros(0, np.int64)], [0]
    for f, feature in enumerate(features):
        listed, own = layout.plain[f], layout.factual[feature.name]
        if feature.numeric:
            origin[f] = float(own)
            begin = int(grid.offset[f])
            closes[begin : begin + len(grid.ends[f])] = (grid.ends[f] - origin[f]) / feature.range
        if search.reach[f] > 0:
            grain[f] = 1 if feature.kind is Kind.INTEGER else 0
            low[f], high[f] = ((end - origin[f]) / feature.range for end in feature.interval(origin[f]))
        elif feature.kind is Kind.CATEGORICAL:
            home[f] = feature.categories.index(own)
        else:
            top = feature.range if feature.numeric else max(len(feature.categories) - 1, 1)
            zero = origin[f] if feature.numeric else feature.categories.index(own)
            places.append((np.asarray(listed[1], dtype=float) - zero) / top)
            cells.append(np.asarray(listed[0], dtype=np.int64))
            low[f], high[f] = places[-1][[0, -1]]
        at.append(sum(map(len, places)))
    radius = search.perturbation.rho * (1 + np.array([2e-9, 1.5e-9, 1e-9]))
    board = (
        grid.split, (search.reach > 0).astype(np.int64), grain, grid.offset, closes, np.array(at),
        np.concatenate(places), np.concatenate(cells), search.fixed, search.linear, search.quadratic,
        np.array([f.range if f.numeric else 1.0 for f in features]), origin, home, radius**2,
    )  # fmt: skip
    return board, low, high


def _real_nodes(room: int, count: int) -> tuple[np.ndarray, ...]:
    ends = np.empty((room, count)), np.empty((room, count)), np.zeros((room, count), np.uint64)
    return (*ends, np.empty(room), np.empty(room, np.int64), np.empty(room, np.int64))


def _real_clauses(room: int, count: int) -> tuple[np.ndarray, ...]:
    cells = np.empty((room, count), np.int64), np.empty((room, count), np.int64), np.zeros((room, count), np.uint64)
    return (*cells, np.empty((room, count)), np.empty((room, count)))


def _spans(grid: Grid) -> tuple[np.ndarray, ...]:
    """First and last cell of each leaf under each mask, shape (members, leaves); the masks of each feature."""
    leaves = grid.values.shape[1]
    low = np.zeros((len(grid.members), leaves), np.int64)
    high = np.zeros_like(low)
    for k, (f, t) in enumerate(zip(grid.members, grid.owner, strict=True)):
        own = slice(int(grid.offset[f]), int(grid.offset[f + 1]))
        # A leaf is met by a box that reaches up to its first cell or beyond, and from its last cell or before it.
        reaches = np.unpackbits(grid.upto[t, own].view(np.uint8), axis=1, bitorder="little")[:, :leaves].astype(bool)
        leaves_from = np.unpackbits(grid.onwards[t, own].view(np.uint8), axis=1, bitorder="little")[:, :leaves]
        low[k] = reaches.argmax(axis=0)
        high[k] = leaves_from.shape[0] - 1 - leaves_from[::-1].argmax(axis=0)
    order = np.argsort(grid.members, kind="stable")
    count = len(grid.offset) - 1
    at = np.concatenate([[0], np.cumsum(np.bincount(grid.members, minlength=count))]).astype(np.int64)
    return low, high, at, order.astype(np.int64)
