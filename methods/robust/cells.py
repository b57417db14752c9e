"""The closest point whose box or ball is of the wanted class, proven: the search over cells with a radius."""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from harness.core.errors import UnsupportedError
from harness.core.method import Deadline
from harness.core.objective import Objective
from harness.core.problem import Problem
from harness.core.space import Feature, Kind
from harness.core.tolerances import BALL_GAP, RADII_BEYOND
from methods.cells import kernels, neighbourhood
from methods.cells.closest import Closest
from methods.cells.grid import Grid
from methods.cells.records import Adversary, Box, Neighbourhood, Nodes, Perturbed, Spans, Touching, doubled
from methods.cells.rows import ROWS
from methods.cells.search import CLAUSES, NODES, CellSearch, Layout, State
from methods.estimators.raw_target import raw_interval
from methods.robust import ball_kernels
from methods.robust.outcome import Outcome
from methods.robust.settings import Settings

LOOKS = 2000  # boxes that the adversary may look at for one point, to begin with
SHARE = 0.3  # of a ball's time limit that the search for the box of the same radius may take
NEAREST, SUREST = 200, 50  # training rows that are tried for a first point: by cost, and by score
EXCUSES = 16  # room for boxes that the model has found right, to begin with


class RobustCells:
    """The search over cells as a solver of robust counterfactuals.

    Raises
    ------
    UnsupportedError
        Where the model is no sum of trees, or the target or distance does not fit the search.
    """

    def __init__(self, problem: Problem, settings: Settings) -> None:
        coefficients = Objective(settings.terms).separable(problem.space)
        if coefficients is None:
            raise UnsupportedError(f"the cell search takes no distance {settings.distance!r}; use l1 or l2sq.")
        kind = BallSearch if settings.norm == "l2" and settings.radius > 0 else NeighbourhoodSearch
        self.search = kind(problem, settings, coefficients)
        self.search.compile(problem.train.iloc[0].to_dict())

    def solve(self, row: Mapping[str, Any], deadline: Deadline) -> Outcome:
        start = time.monotonic()
        found = self.search.region(row, deadline)
        rho = self.search.perturbation.rho if found.row is not None else 0.0
        step = {"iteration": 1, "distance": found.value, "radius": rho, "seconds": time.monotonic() - start}
        return Outcome(found.row, found.value, found.bound, rho, (step,))


class NeighbourhoodSearch(CellSearch):
    """``CellSearch`` for points whose neighbourhood, a box, has to be right too."""

    def __init__(
        self, problem: Problem, settings: Settings, coefficients: tuple[np.ndarray, np.ndarray, np.ndarray]
    ) -> None:
        self.perturbation = settings.perturbation(problem)
        self.space = problem.space
        most = math.inf if settings.max_changes is None else float(settings.max_changes)
        count = len(problem.space.features)
        super().__init__(replace(problem, space=self.perturbation.relaxed), coefficients, np.ones(count), most)
        if len(self.grid.walks) > 1:
            raise UnsupportedError("the cell search of regions takes a target with one end.")
        self.reach = self.perturbation.reach
        self.spans = _spans(self.grid, self.leaf_spans())
        valid = problem.train.loc[problem.valid(problem.train)]
        self.examples = valid.iloc[np.random.default_rng(0).permutation(len(valid))[:ROWS]]
        sure = (
            raw_interval(problem).sense * problem.classifier.raw(self.examples).ravel() if len(valid) else np.empty(0)
        )
        self.surest = np.argsort(-sure, kind="stable")[:SUREST]

    @cached_property
    def adversary(self) -> Adversary:
        """Room for the adversary of one search after another."""
        grid, count = self.grid, len(self.space.features)
        depth = 2 * int(grid.offset[-1]) + 2 * count + 2
        low, high, mid_low, mid_high, worst_low, worst_high = np.empty((6, count), np.int64)
        return Adversary(
            stack_low=np.empty((depth, count), np.int64),
            stack_high=np.empty((depth, count), np.int64),
            bounds=np.empty(depth),
            masks=np.empty((len(grid.members), grid.upto.shape[2]), np.uint64),
            leaf=np.zeros(len(grid.values), np.int64),
            low=low,
            high=high,
            mid_low=mid_low,
            mid_high=mid_high,
            fresh=np.empty((1, grid.upto.shape[2]), np.uint64),
            worst_low=worst_low,
            worst_high=worst_high,
            counters=np.zeros(4, np.int64),
        )

    def compile(self, row: Mapping[str, Any]) -> None:
        self._right(row)
        state = self.state(row)
        state.guess()
        state.go(1)
        state.decide(right=True)

    def state(self, factual: Mapping[str, Any]) -> _NeighbourhoodState:
        """The arrays of a search from a factual."""
        return _NeighbourhoodState(self, _NeighbourhoodLayout(self, factual))

    def region(self, factual: Mapping[str, Any], deadline: Deadline) -> Closest:
        """The cheapest point whose neighbourhood is right."""
        return self.finish(self.state(factual), deadline)


class BallSearch(NeighbourhoodSearch):
    """``NeighbourhoodSearch`` for balls; it starts from the optimum for the box of the same radius."""

    def compile(self, row: Mapping[str, Any]) -> None:
        super().compile(row)
        state = _BallState(self, _NeighbourhoodLayout(self, row), Closest(dict(row), math.inf, 0.0))
        state.go(1)
        state.decide(right=False)
        state.decide(right=True)
        state.refuse()

    def region(self, factual: Mapping[str, Any], deadline: Deadline) -> Closest:
        layout = _NeighbourhoodLayout(self, factual)
        first = self.finish(_NeighbourhoodState(self, layout), Deadline(deadline.at - (1 - SHARE) * deadline.left))
        return self.finish(_BallState(self, layout, first), deadline)


class _NeighbourhoodLayout(Layout):
    """States of one factual, with the interval of cells that each touches."""

    def __init__(self, search: NeighbourhoodSearch, factual: Mapping[str, Any]) -> None:
        super().__init__(search, factual, [], 0.5)
        self.search = search
        self.unperturbed = {  # cells and values of the states of what is not perturbed
            f: (self.cell_of[int(self.state_start[f]) : int(self.state_start[f + 1])], values)
            for f, values in enumerate(self.values)
        }
        parts = list[Touching]()
        for f, feature in enumerate(search.space.features):
            own = slice(int(self.state_start[f]), int(self.state_start[f + 1]))
            if search.reach[f] > 0:
                parts.append(self._neighbourhoods(search, f, feature, float(factual[feature.name])))
            else:
                cells = self.cell_of[own]
                parts.append(Touching(cells, cells, self.values[f], self.cost[own], int(self.factual_state[f])))
        self.features = search.space.features
        first, last, values, cost, factual_state = zip(*parts, strict=True)
        self.first, self.last, self.values = np.concatenate(first), np.concatenate(last), [*values]
        self.cell_of, self.cost = self.first, np.concatenate(cost)
        self.factual_state = np.array(factual_state, dtype=np.int64)
        self.state_start = np.concatenate([[0], np.cumsum([len(part) for part in values])]).astype(np.int64)

    def examples(self) -> np.ndarray:
        """States near valid training rows, the cheapest first, then those of the surest; shape (rows, features).

        A perturbed number takes the last state on its way from the factual to the row; a value that is no state is
        left as the factual has it.
        """
        search, columns, cost = self.search, list[np.ndarray](), np.zeros(len(self.search.examples))
        for f, (feature, values) in enumerate(zip(self.features, self.values, strict=True)):
            factual_state, column = int(self.factual_state[f]), search.examples[feature.name]
            if search.reach[f] > 0:
                seen = column.to_numpy(float)
                up = np.searchsorted(values, seen, side="right") - 1
                down = np.searchsorted(values, seen, side="left")
                above, below = np.maximum(up, factual_state), np.minimum(down, factual_state)
                states = np.where(seen >= values[factual_state], above, below)
            else:
                cells = self.unperturbed[f][0]
                own = np.searchsorted(self.grid.ends[f], column) if feature.numeric else feature.codes(column)
                place = np.minimum(np.searchsorted(cells, own), len(cells) - 1)
                right = cells[place] == own
                if feature.kind is Kind.CATEGORICAL:
                    right &= (self.sets[f] >> place.astype(np.uint64)) & np.uint64(1) == 1
                states = np.where(right, place, factual_state)
            columns.append(states)
            cost += self.cost[int(self.state_start[f]) + states]
        order = np.concatenate([np.argsort(cost, kind="stable")[:NEAREST], search.surest])
        return np.ascontiguousarray(np.column_stack(columns)[order], dtype=np.int64)

    @property
    def touched(self) -> tuple[np.ndarray, np.ndarray]:
        return self.first, self.last

    def cells(self, point: np.ndarray) -> np.ndarray:
        return self.cells_of(self.row(point))

    def cells_of(self, row: Mapping[str, Any]) -> np.ndarray:
        """The cell that a decoded row lies in itself."""
        cells = [
            np.searchsorted(ends, float(row[f.name])) if f.numeric else f.categories.index(row[f.name])
            for f, ends in zip(self.features, self.grid.ends, strict=True)
        ]
        return np.array(cells, dtype=np.int64)

    def listed(self, f: int, y: float) -> Any:
        """The value of an unperturbed number that has a coordinate."""
        values = self.unperturbed[f][1]
        feature = self.features[f]
        place = np.abs(values - (float(self.factual[feature.name]) + y * feature.range)).argmin()
        return int(values[place]) if feature.kind is Kind.INTEGER else float(values[place])

    def _neighbourhoods(self, search: NeighbourhoodSearch, f: int, feature: Feature, value: float) -> Touching:
        low, high = map(float, feature.interval(value))  # a kernel is compiled for floats, and for integers anew
        floor, ceiling = map(float, search.perturbation.limits(search.perturbation.space.features[f], value))
        fixed, linear, quadratic = (float(part[f]) for part in (search.fixed, search.linear, search.quadratic))
        number = Perturbed(
            value, low, high, float(search.reach[f]), floor, ceiling, float(feature.range),
            feature.kind is Kind.INTEGER, fixed, linear, quadratic,
        )  # fmt: skip
        touching: Touching = neighbourhood.lay_neighbourhoods(search.grid.ends[f], tuple(number))
        if feature.even:
            return touching
        return touching._replace(cost=search.numbers.moving(f, feature, value, touching.values))


class _NeighbourhoodState(State):
    """The arrays of a running search, and those of its adversary."""

    search: NeighbourhoodSearch
    layout: _NeighbourhoodLayout
    neighbourhood: Neighbourhood

    def __init__(self, search: NeighbourhoodSearch, layout: _NeighbourhoodLayout) -> None:
        super().__init__(search, layout)
        count, adversary = len(layout.factual_state), search.adversary
        adversary.counters[:] = 0
        adversary.counters[neighbourhood.ALLOWANCE] = LOOKS
        self.neighbourhood = Neighbourhood(
            first=layout.first,
            last=layout.last,
            **search.spans,
            excused_low=np.empty((EXCUSES, count), np.int64),
            excused_high=np.empty((EXCUSES, count), np.int64),
            tried=np.zeros(count, np.int64),
            adversary=adversary,
        )

    def undecided_row(self) -> dict[str, Any]:
        """A decoded point in the cell whose score is too near to the threshold to decide."""
        row, reach = dict(self.layout.factual), self.search.reach
        for f, (feature, ends, cell) in enumerate(
            zip(self.layout.features, self.search.grid.ends, self.asked, strict=True)
        ):
            if not feature.numeric:
                row[feature.name] = feature.categories[int(cell)]
            elif len(ends):
                whole = feature.kind is Kind.INTEGER and reach[f] == 0  # which nothing moves to a fraction
                beyond = math.floor(ends[-1]) + 1.0 if whole else np.nextafter(ends[-1], math.inf)
                row[feature.name] = float(ends[cell] if cell < len(ends) else beyond)
        return row

    def decide(self, right: bool) -> None:
        """Take in what the real model says of that point: it is the same for all points with its leaves."""
        if not right:
            self._rule_out(self.asked)
            return
        neighbourhood.leaves_at(self.grid, self.asked, self.neighbourhood)
        adversary = self.neighbourhood.adversary
        number = adversary.counters[neighbourhood.EXCUSED]
        low, high = self.neighbourhood.excused_low, self.neighbourhood.excused_high
        if number == len(low):
            low, high = (np.concatenate([part, np.empty_like(part)]) for part in (low, high))
            self.neighbourhood = self.neighbourhood._replace(excused_low=low, excused_high=high)
        low[number], high[number] = adversary.worst_low, adversary.worst_high
        adversary.counters[neighbourhood.EXCUSED] += 1

    def guess(self) -> None:
        """Training rows whose neighbourhood is right, moved to states nearer to the factual."""
        kernels.guess_neighbourhoods(
            self.grid, self.states, self.clauses, self.nodes, self.layout.examples(), self.progress, self.neighbourhood
        )

    def improve(self) -> None:
        """Nothing more: one row with its neighbourhood takes as long as many points."""

    def more_looks(self) -> None:
        """Twice the effort for a single point."""
        self.neighbourhood.adversary.counters[neighbourhood.ALLOWANCE] *= 2


class _BallState(_NeighbourhoodState):
    """The arrays of a running search over coordinates."""

    def __init__(self, search: NeighbourhoodSearch, layout: _NeighbourhoodLayout, first: Closest) -> None:
        super().__init__(search, layout)
        self.first = first
        count = len(layout.factual_state)
        self.ball_space, low, high = _ball_space(search, layout)
        self.nodes = _real_nodes(NODES, count)
        self.wrong = _real_clauses(CLAUSES, count)
        self.counters = np.zeros(8, np.int64)
        self.best: np.ndarray = np.zeros(count)
        self.categories = np.zeros(count, np.int64)
        self.upper = np.array([first.value, 0.0])
        self._begin(low, high)

    def _begin(self, low: np.ndarray, high: np.ndarray) -> None:
        """Start from all points; a special code of the factual's, outside a number's interval, is a node of its own."""
        self.start = low, high
        separate = [f for f in range(len(low)) if low[f] > 0 or high[f] < 0]
        for stays in itertools.product((False, True), repeat=len(separate)):
            box = Box(low.copy(), high.copy(), self.layout.sets)
            for f, stay in zip(separate, stays, strict=True):
                if stay:
                    box.low[f] = box.high[f] = 0.0
            ball_kernels.add_node(box, 0.0, self.nodes, self.counters)

    def go(self, effort: int) -> int:
        best = ball_kernels.Point(self.best, self.categories)
        progress = ball_kernels.BallProgress(self.counters, best, self.asked, self.upper)
        return ball_kernels.run(
            self.grid, self.ball_space, self.search.most, self.wrong, self.nodes, progress, effort, self.neighbourhood
        )

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
        neighbourhood.leaves_at(self.grid, cells, self.neighbourhood)
        ball_kernels.learn_leaves(self.ball_space, self.wrong, self.counters, self.neighbourhood)

    def more_clauses(self) -> None:
        self.wrong = doubled(self.wrong)

    def result(self, done: bool) -> Closest:
        value = float(self.upper[0])
        bound = max(value - BALL_GAP, 0.0) if done else min(value, float(self.upper[1]))
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
                row[feature.name] = feature.categories[int(self.categories[f])]
            elif not feature.numeric:
                top = feature.steps
                row[feature.name] = feature.categories[round(feature.categories.index(own) + float(y) * top)]
            elif y != 0 and self.ball_space.grain[f] == ball_kernels.LISTED:
                row[feature.name] = self.layout.listed(f, float(y))
            elif y != 0:
                low, high = feature.interval(float(own))
                value = min(max(float(own) + float(y) * feature.range, low), high)
                row[feature.name] = round(value) if feature.kind is Kind.INTEGER else value
        return row


def _ball_space(
    search: NeighbourhoodSearch, layout: _NeighbourhoodLayout
) -> tuple[ball_kernels.BallSpace, np.ndarray, np.ndarray]:
    """The features as ``ball_kernels`` takes them, and the least and greatest coordinate of each."""
    features, grid, count = layout.features, search.grid, len(layout.features)
    grain, factual_category = np.full(count, ball_kernels.LISTED), np.zeros(count, np.int64)
    closes = np.full(int(grid.offset[-1]), math.inf)
    low, high, origin = np.zeros(count), np.zeros(count), np.zeros(count)
    places, cells, at = [np.zeros(0)], [np.zeros(0, np.int64)], [0]
    for f, feature in enumerate(features):
        listed, own = layout.unperturbed[f], layout.factual[feature.name]
        if feature.numeric:
            origin[f] = float(own)
            begin = int(grid.offset[f])
            closes[begin : begin + len(grid.ends[f])] = (grid.ends[f] - origin[f]) / feature.range
        if search.reach[f] > 0:
            grain[f] = ball_kernels.INTEGER if feature.kind is Kind.INTEGER else ball_kernels.REAL
            low[f], high[f] = ((end - origin[f]) / feature.range for end in feature.interval(origin[f]))
        elif feature.kind is Kind.CATEGORICAL:
            factual_category[f] = feature.categories.index(own)
        else:
            top = feature.range if feature.numeric else feature.steps
            zero = origin[f] if feature.numeric else feature.categories.index(own)
            places.append((np.asarray(listed[1], dtype=float) - zero) / top)
            cells.append(np.asarray(listed[0], dtype=np.int64))
            low[f], high[f] = places[-1][[0, -1]]
        at.append(sum(map(len, places)))
    radius = search.perturbation.rho * (1 + np.array(RADII_BEYOND))
    ball_space = ball_kernels.BallSpace(
        unordered=grid.unordered,
        moved=(search.reach > 0).astype(np.int64),
        grain=grain,
        offset=grid.offset,
        closes=closes,
        list_start=np.array(at),
        list_y=np.concatenate(places),
        list_cell=np.concatenate(cells),
        fixed=search.fixed,
        linear=search.linear,
        quadratic=search.quadratic,
        unit=np.array([f.range if f.numeric else 1.0 for f in features]),
        origin=origin,
        factual_category=factual_category,
        squares=radius**2,
    )
    return ball_space, low, high


def _real_nodes(room: int, count: int) -> Nodes:
    ends = np.empty((room, count)), np.empty((room, count)), np.zeros((room, count), np.uint64)
    return Nodes(*ends, np.empty(room), np.empty(room, np.int64), np.empty(room, np.int64))


def _real_clauses(room: int, count: int) -> ball_kernels.BallClauses:
    cells = np.empty((room, count), np.int64), np.empty((room, count), np.int64), np.zeros((room, count), np.uint64)
    return ball_kernels.BallClauses(*cells, np.empty((room, count)), np.empty((room, count)))


def _spans(grid: Grid, spans: Spans) -> dict[str, np.ndarray]:
    """The fields of a ``Neighbourhood`` that all factuals share: spans of the leaves, and the masks of each feature."""
    order = np.argsort(grid.members, kind="stable")
    count = len(grid.offset) - 1
    at = np.concatenate([[0], np.cumsum(np.bincount(grid.members, minlength=count))]).astype(np.int64)
    return {"span_low": spans.low, "span_high": spans.high, "by_start": at, "by": order.astype(np.int64)}
