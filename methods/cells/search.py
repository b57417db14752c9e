"""The closest cell of the wanted class, proven: best-first branch and bound over the cells of a tree ensemble."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from harness.errors import UnsupportedError
from harness.method import Deadline
from harness.problem import Feature, Kind, Label, Problem
from methods.cells import kernels
from methods.cells.grid import Grid, build
from methods.milp.space import beyond
from methods.milp.start import Starts
from methods.milp.target import raw_interval
from methods.quick import quick_decide

EFFORT = 200_000  # units of work (clauses and trees looked at) between two looks at the clock: some milliseconds
NODES, CLAUSES = 1024, 2048  # room to begin with; doubled when full


@dataclass(frozen=True)
class Closest:
    """What a search found.

    Parameters
    ----------
    row
        The decoded point, None where there is none.
    value, bound
        Its cost, and a proven lower bound on any; both infinite where there is proof that no point exists.
    """

    row: dict[str, Any] | None
    value: float
    bound: float

    @property
    def proven(self) -> bool:
        """Whether the search ran to its end."""
        return self.bound >= self.value - kernels.CLOSE


class CellSearch:
    """Closest points of one problem; the grid is built once, each factual lays out its own states and costs.

    Parameters
    ----------
    problem
        A binary classifier or regressor that is a sum of trees, and a target with one end.
    coefficients
        Fixed, linear and quadratic cost of a change, each of shape (features,).
    weights
        What a changed feature counts, against ``most``.

    Raises
    ------
    UnsupportedError
        Where the model is no sum of trees, or a feature has too many categories.
    """

    def __init__(
        self,
        problem: Problem,
        coefficients: tuple[np.ndarray, np.ndarray, np.ndarray],
        weights: np.ndarray,
        most: float = math.inf,
    ) -> None:
        self.problem, self.weights, self.most = problem, weights, most
        self.fixed, self.linear, self.quadratic = coefficients
        wish = raw_interval(problem)
        if not wish.sense:
            raise UnsupportedError("the cell search takes a target with one end, not an interval with two.")
        threshold = wish.low if wish.sense > 0 else wish.high
        self.grid: Grid = build(problem.space, problem.classifier, wish.sense, threshold)
        g = self.grid
        self._grid = (g.offset, g.values, g.upto, g.onwards, g.starts, g.members, g.uses)
        self._right = _judge(problem)
        self._starts = Starts(problem)

    def compile(self, row: Mapping[str, Any]) -> None:
        """Have the kernels compiled (or read from numba's cache) before any clock runs."""
        self.closest(row, [row], 0.5, Deadline.after(0.0))
        state = _State(self, _Layout(self, row, [], 0.5))
        state.guess(row)
        state.answer(right=False)
        state.answer(right=True)

    def closest(
        self, factual: Mapping[str, Any], earlier: Sequence[Mapping[str, Any]], separation: float, deadline: Deadline
    ) -> Closest:
        """The cheapest right point that is apart from all ``earlier`` ones."""
        layout = _Layout(self, factual, earlier, separation)
        search = _State(self, layout)
        guessed = False
        while True:
            told = search.go()
            if told == kernels.PAUSED and not guessed:
                # Hard enough for a first guess to pay: its cost bounds what is worth looking at.
                guessed = True
                frame = self.problem.space.frame([factual])
                for row in self._starts.near(frame, 0.01 * self.weights).to_dict("records"):
                    search.guess(row)
            if told == kernels.DONE:
                found = search.result(done=True)
                if found.row is None or self._right(found.row):
                    return found
                search.refuse()
            elif told == kernels.ASK:
                search.answer(self._right(layout.row(search.asked)))
            elif told == kernels.MORE_NODES:
                search.more_nodes()
            elif told == kernels.MORE_CLAUSES:
                search.more_clauses()
            if told in {kernels.DONE, kernels.ASK, kernels.PAUSED} and deadline.passed:
                return search.result(done=False)


class _Layout:
    """The states of one factual: their cells, values and costs, and the boxes that earlier answers rule out."""

    def __init__(
        self, search: CellSearch, factual: Mapping[str, Any], earlier: Sequence[Mapping[str, Any]], separation: float
    ) -> None:
        self.features = search.problem.space.features
        self.factual = factual
        self.grid = search.grid
        count = len(self.features)
        cells, costs, home = [], [], []
        self.values: list[Any] = []
        self.low, self.high = np.zeros(count, np.int64), np.zeros(count, np.int64)
        self.sets = np.zeros(count, np.uint64)
        for f, feature in enumerate(self.features):
            fixed, linear, quadratic = search.fixed[f], search.linear[f], search.quadratic[f]
            value = factual[feature.name]
            if feature.numeric:
                low, high = feature.interval(float(value))
                cuts = _cuts(feature, [row[feature.name] for row in earlier], separation)
                cell, values, cost, own = kernels.lay_number(
                    self.grid.ends[f], cuts, float(value), low, high, feature.range, feature.kind is Kind.INTEGER,
                    fixed, linear, quadratic,
                )  # fmt: skip
            else:
                own = feature.categories.index(value)
                codes = np.arange(len(feature.categories))
                gaps = (codes != own).astype(float)
                if feature.kind is Kind.ORDINAL:
                    gaps = np.abs(codes - own) / max(len(codes) - 1, 1)
                reach = [feature.categories.index(category) for category in feature.reachable(value)]
                if feature.kind is not Kind.CATEGORICAL:
                    # What lies between two reachable levels and is not reachable itself is no state.
                    codes = np.array(sorted({own, *reach}))
                    own = int(np.searchsorted(codes, own))
                elif reach:
                    self.sets[f] = np.bitwise_or.reduce(np.uint64(1) << np.array(reach, dtype=np.uint64))
                cell, values, gaps = codes, codes, gaps[codes]
                cost = np.where(gaps > 0, fixed, 0.0) + linear * gaps + quadratic * gaps**2
            cells.append(cell)
            self.values.append(values)
            costs.append(cost)
            home.append(own)
            self.high[f] = len(cell) - 1
        self.cell_of = np.concatenate(cells).astype(np.int64)
        self.cost = np.concatenate(costs)
        self.soff = np.concatenate([[0], np.cumsum([len(cell) for cell in cells])]).astype(np.int64)
        self.home = np.array(home, dtype=np.int64)
        self.boxes = [self._around(row, separation) for row in earlier]

    def _around(self, row: Mapping[str, Any], separation: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The states that are not apart from an earlier answer, as a box."""
        low, high, sets = np.zeros_like(self.low), np.zeros_like(self.high), np.zeros_like(self.sets)
        for f, (feature, values) in enumerate(zip(self.features, self.values, strict=True)):
            value = row[feature.name]
            if feature.numeric:
                up, down = beyond(feature, float(value), separation)
                near = np.flatnonzero((values > down) & (values < up))
            else:
                near = np.flatnonzero(np.asarray(values) == feature.categories.index(value))
            if feature.kind is Kind.CATEGORICAL:
                sets[f] = np.uint64(1) << np.uint64(near[0])
            elif len(near):
                low[f], high[f] = near[0], near[-1]
            else:
                low[f], high[f] = 1, 0
        return low, high, sets

    def point(self, row: Mapping[str, Any]) -> np.ndarray | None:
        """The states that hold a row's values; None where one of them is no state."""
        point = np.zeros_like(self.home)
        for f, (feature, values, own) in enumerate(zip(self.features, self.values, self.home, strict=True)):
            value = row[feature.name]
            if value == self.factual[feature.name]:
                point[f] = own
            elif feature.numeric:
                # A state stands for its interval at the end nearest to the factual's value.
                rising = value > self.factual[feature.name]
                point[f] = (
                    np.searchsorted(values, value, side="right") - 1 if rising else np.searchsorted(values, value)
                )
            else:
                found = np.flatnonzero(np.asarray(values) == feature.categories.index(value))
                if not len(found):
                    return None
                point[f] = found[0]
        return point

    def row(self, point: np.ndarray) -> dict[str, Any]:
        """Decoded values of a point of states; what did not change is given back as it was."""
        row = {}
        for feature, values, state, own in zip(self.features, self.values, point, self.home, strict=True):
            if state == own:
                row[feature.name] = self.factual[feature.name]
            elif not feature.numeric:
                row[feature.name] = feature.categories[int(values[state])]
            else:
                row[feature.name] = int(values[state]) if feature.kind is Kind.INTEGER else float(values[state])
        return row


class _State:
    """The arrays of a running search, which outlive a pause."""

    def __init__(self, search: CellSearch, layout: _Layout) -> None:
        self.search, self.layout = search, layout
        count = len(layout.home)
        self.clauses = _clauses(CLAUSES, count)
        self.watch = np.zeros((CLAUSES, 2), np.int64)
        self.nodes = _nodes(NODES, count)
        self.counters = np.zeros(16, np.int64)
        self.best, self.asked = np.zeros(count, np.int64), np.zeros(count, np.int64)
        self.upper = np.array([math.inf, 0.0])
        for c, box in enumerate(box for box in layout.boxes if (box[0] <= box[1]).all()):
            for target, part in zip(self.clauses, box, strict=True):
                target[c] = part
            self.counters[kernels.CLAUSES] = self.counters[kernels.HARD] = c + 1
        kernels.add_node(layout.low, layout.high, layout.sets, 0.0, self.nodes, self.counters)

    def go(self) -> int:
        """Search on."""
        search, layout = self.search, self.layout
        return kernels.run(
            search._grid, search.grid.base, search.grid.split, layout.cell_of, layout.soff, layout.cost, layout.home,
            search.weights, search.most, self.clauses, self.watch, self.nodes, self.counters, self.best, self.asked,
            self.upper, EFFORT,
        )  # fmt: skip

    def answer(self, right: bool) -> None:
        """What the real model says of the point asked about."""
        layout = self.layout
        if right:
            value = float(kernels.cost_of(self.asked, layout.cost, layout.soff))
            kernels.keep(self.asked, value, self.upper, self.best, self.counters)
        else:
            self._rule_out(self.asked.copy())

    def guess(self, row: Mapping[str, Any]) -> None:
        """Take a row for an incumbent, pulled back to the factual, if it is right, allowed and better."""
        search, layout, hard = self.search, self.layout, self.counters[kernels.HARD]
        point = layout.point(row)
        if point is None or not kernels.allowed(point, self.clauses, hard, search.grid.split):
            return
        place = (search._grid, search.grid.base, search.grid.split, layout.cell_of, layout.soff)
        if kernels.score_point(*place, point) <= kernels.TINY:
            return
        kernels.pull_back(*place, layout.home, layout.cost, self.clauses, hard, point)
        if kernels.changes_of(point, layout.home, search.weights) <= search.most:
            value = float(kernels.cost_of(point, layout.cost, layout.soff))
            kernels.keep(point, value, self.upper, self.best, self.counters)

    def refuse(self) -> None:
        """Start again without the leaves of the incumbent, which the real model has refused."""
        self.upper[:] = math.inf, 0.0
        self.counters[kernels.FOUND] = self.counters[kernels.ROOT] = 0
        self._rule_out(self.best.copy())
        # A hard clause from now on: its score is right, so nothing else keeps a point from being pulled back into it.
        hard, last = self.counters[kernels.HARD], self.counters[kernels.CLAUSES] - 1
        for part in (*self.clauses, self.watch):
            part[[hard, last]] = part[[last, hard]]
        self.counters[kernels.HARD] += 1
        layout = self.layout
        kernels.add_node(layout.low, layout.high, layout.sets, 0.0, self.nodes, self.counters)

    def _rule_out(self, point: np.ndarray) -> None:
        """Add the box around a point on which every tree stays in its leaf, and so the real model says the same."""
        layout, search, count = self.layout, self.search, len(point)
        residual = (np.zeros(len(layout.cost)), np.zeros(len(layout.cost)), np.zeros(count))
        kernels.learn(
            search._grid, search.grid.base, True, search.grid.split, layout.cell_of, layout.soff,
            (layout.low, layout.high, layout.sets), residual, point, point, self.clauses, self.watch, self.counters,
        )  # fmt: skip

    def more_nodes(self) -> None:
        """Twice the room for open nodes."""
        larger = _nodes(2 * len(self.nodes[3]), len(self.best))
        for new, old in zip(larger, self.nodes, strict=True):
            new[: len(old)] = old
        self.nodes = larger

    def more_clauses(self) -> None:
        """Twice the room for clauses."""
        larger = _clauses(2 * len(self.watch), len(self.best))
        for new, old in zip(larger, self.clauses, strict=True):
            new[: len(old)] = old
        self.clauses = larger
        self.watch = np.concatenate([self.watch, np.zeros_like(self.watch)])

    def result(self, done: bool) -> Closest:
        value = float(self.upper[0])
        bound = value if done else min(value, float(self.upper[1]))
        return Closest(self.layout.row(self.best) if self.counters[kernels.FOUND] else None, value, bound)


def _clauses(room: int, count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return np.zeros((room, count), np.int64), np.zeros((room, count), np.int64), np.zeros((room, count), np.uint64)


def _nodes(room: int, count: int) -> tuple[np.ndarray, ...]:
    return (*_clauses(room, count), np.zeros(room), np.zeros(room, np.int64), np.zeros(room, np.int64))


def _cuts(feature: Feature, values: Sequence[Any], separation: float) -> np.ndarray:
    """Where states have to end so that "apart from an earlier answer" is a matter of whole states."""
    cuts = []
    for value in values:
        up, down = beyond(feature, float(value), separation)
        cuts += [down, up - 1 if feature.kind is Kind.INTEGER else float(np.nextafter(up, -math.inf))]
    return np.array(cuts, dtype=float)


def _judge(problem: Problem) -> Callable[[Mapping[str, Any]], bool]:
    """What the fitted estimator itself says of one decoded row."""
    if not isinstance(problem.target, Label):
        return lambda row: bool(problem.valid(problem.space.frame([row]))[0])
    wanted = problem.classifier.code(problem.target.value)
    classifier, decide = problem.classifier, quick_decide(problem.classifier)
    return lambda row: bool(decide(classifier.vector(row))[0] == wanted)
