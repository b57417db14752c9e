"""The closest cell of the wanted class, proven: best-first branch and bound over the cells of a tree ensemble."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache, cached_property, partial
from heapq import heappop, heappush
from itertools import accumulate, count
from typing import Any

import numpy as np

from harness.core.gaps import missing
from harness.core.method import Deadline
from harness.core.problem import Problem
from harness.core.space import Kind
from harness.core.tolerances import COST_TIE
from methods.cells import kernels
from methods.cells.additive import NO_ROOM, leaf_spans, room_for
from methods.cells.closest import Closest
from methods.cells.grid import Grid, build
from methods.cells.leaf_program import LeafSearch
from methods.cells.numbers import NumberStates, unchanged, with_gap
from methods.cells.records import AdditiveRoom, Box, Clauses, Neighbourhood, Nodes, Progress, States, doubled
from methods.cells.relations import RelationBoxes
from methods.cells.rows import cells_of, decision, known_cells
from methods.estimators.raw_target import conditions
from methods.estimators.thresholds import separated_values

EASY = 100_000  # units of work after which a first guess saves time: some milliseconds
EFFORT = 200_000  # units of work (clauses and trees looked at) between two looks at the clock: some milliseconds
INTERRUPTIBLE = {kernels.DONE, kernels.ASK, kernels.PAUSED, kernels.MORE_LOOKS}
NODES, CLAUSES = 128, 256  # room to begin with; doubled when full
EASY_NODES = 40  # until what changes gain together is looked at, which takes as long as a few nodes do
TRIES, SEEK = 20, 3  # at a better incumbent, and between how many looks at the clock; no clock decides on an answer
PASSED = 20  # incumbents left for better ones that the next answer starts from
HARD = 20_000_000  # units of work after which linear programs over the leaves are tried: about a second


class CellSearch:
    """Closest points of one problem; the grid is built once, states and costs for each factual.

    Parameters
    ----------
    problem
        A sum of trees, and a class or an interval.
    coefficients
        Fixed, linear and quadratic cost of a change and its priced gap, each of shape (features,).
    weights
        What each changed feature adds to a sum that is limited to ``most``, shape (features,).
    gap_costs
        Of a change from or to missing, shape (features,); that of one whole unit unless given.
    like
        A search that differs in bounds, special codes, actionability and relations alone: its cells are taken over.

    Raises
    ------
    UnsupportedError
        Where the model is no sum of trees, every output is right, or a feature has too many categories.
    """

    def __init__(
        self,
        problem: Problem,
        coefficients: tuple[np.ndarray, np.ndarray, np.ndarray],
        weights: np.ndarray,
        most: float = math.inf,
        gap_costs: np.ndarray | None = None,
        like: CellSearch | None = None,
    ) -> None:
        self.problem, self.weights, self.most = problem, weights, most
        self.fixed, linear, quadratic = coefficients
        rates = np.array([feature.rates[1] for feature in problem.space.features])
        self.linear, self.quadratic = linear * rates, quadratic * rates**2
        self.gap_costs = np.sum(coefficients, axis=0) if gap_costs is None else gap_costs
        self.grid: Grid = build(problem.space, problem.classifier, conditions(problem)) if like is None else like.grid
        self._grid = self.grid.arrays
        self.plain_grid = tuple(self._grid)
        self._right: Callable[[Mapping[str, Any]], bool] = decision(problem, self.grid) if like is None else like._right
        self.numbers = NumberStates(problem, self.grid.ends, coefficients, self.gap_costs)
        self.known: np.ndarray = known_cells(problem, self.grid) if like is None else like.known
        self.leaf_spans = cache(partial(leaf_spans, self._grid))
        self._levels: dict[tuple[int, Any], tuple[tuple[np.ndarray, np.ndarray, np.ndarray, int], np.uint64]] = {}

    def levels(self, f: int, value: Any) -> tuple[tuple[np.ndarray, np.ndarray, np.ndarray, int], np.uint64]:
        """Cells, values and costs of a categorical feature's states, the factual's own, and the set of reachable ones.

        The set is used for unordered features only; of the others only reachable categories have a state.
        """
        if (f, value) in self._levels:
            return self._levels[f, value]
        feature = self.problem.space.features[f]
        codes, own, allowed = np.arange(len(feature.categories)), feature.categories.index(value), np.uint64(0)
        gaps = feature.charges[own]
        reachable = [feature.categories.index(category) for category in feature.reachable(value)]
        if feature.kind is not Kind.CATEGORICAL:
            # What lies between two reachable levels and is not reachable itself is no state.
            codes = np.array(sorted({own, *reachable}))
            own = int(np.searchsorted(codes, own))
        elif reachable:
            allowed = np.bitwise_or.reduce(np.uint64(1) << np.array(reachable, dtype=np.uint64))
        gaps = gaps[codes]
        self._levels[f, value] = (codes, codes, self.numbers.cost(f, gaps, np.arange(len(codes)) != own), own), allowed
        return self._levels[f, value]

    def compile(self, row: Mapping[str, Any]) -> None:
        """Have the kernels compiled (or read from numba's cache) before any clock runs."""
        self.closest(row, [row], 0.5, Deadline.after(0.0))
        self._right(row)
        state = State(self, Layout(self, row, [], 0.5))
        state.guess()
        state.improve()

    def closest(
        self,
        factual: Mapping[str, Any],
        earlier: Sequence[Mapping[str, Any]],
        separation: float,
        deadline: Deadline,
        known: Sequence[Mapping[str, Any]] = (),
    ) -> Closest:
        """The cheapest right point separated from all ``earlier`` ones; ``known`` right points may help."""

        def found(emptied: Mapping[int, bool]) -> Closest:
            state = State(self, Layout(self, factual, earlier, separation, emptied), known)
            each = self.finish(state, deadline)
            return replace(each, passed=state.passed()) if state.incumbents else each

        if not self.numbers.lowered(factual):
            return found({})
        best, bound, order = Closest(None, math.inf, math.inf), math.inf, count()
        nodes: list[tuple[float, int, dict[int, bool]]] = [(0.0, next(order), {})]
        while nodes and nodes[0][0] < best.value - COST_TIE and not (best.row and deadline.passed):
            _, _, emptied = heappop(nodes)
            each = found(emptied)
            more = self.numbers.lowered(factual, each.row) if each.row else {}
            more = {f: cost for f, cost in more.items() if f not in emptied}
            best = min(best, replace(each, value=each.value + sum(more.values())), key=lambda one: one.value)
            if more and each.proven:  # searched at less than it costs: with the greatest such number missing, or not
                f = max(more, key=more.__getitem__)
                for choice in (False, True):
                    heappush(nodes, (each.bound, next(order), {**emptied, f: choice}))
            else:
                bound = min(bound, each.bound)
        return replace(best, bound=min(bound, best.value, nodes[0][0] if nodes else math.inf))

    def finish(self, state: State, deadline: Deadline) -> Closest:
        """Run a search until it is done or the deadline has passed."""
        guessed, growth, pauses = False, 0.0, 0
        while True:
            began = time.monotonic()
            stopped = state.go(EFFORT if guessed else min(EASY, EFFORT))
            crowded = stopped == kernels.MORE_NODES and 2 * growth > deadline.left
            if stopped == kernels.PAUSED:
                # Hard enough for a first guess to save time: its cost bounds the search.
                if not guessed:
                    guessed = True
                    state.guess()
                elif pauses % SEEK == 0:
                    state.improve()
                pauses += 1
                state.remember()
                if state.counters[kernels.WORK] > HARD and not state.relaxed:
                    stopped = self._relax(state, deadline)
            if stopped == kernels.DONE:
                found = state.result(done=True)
                if found.row is None or self._right(found.row):
                    return found
                state.refuse()
            elif stopped == kernels.ASK:
                state.decide(self._right(state.undecided_row()))
            elif stopped == kernels.MORE_NODES and not crowded:
                began = time.monotonic()
                state.more_nodes()
                growth = time.monotonic() - began
            elif stopped == kernels.MORE_CLAUSES:
                state.more_clauses()
            elif stopped == kernels.MORE_LOOKS:
                state.more_looks()
            # Twice as many looks at one point, or nodes, take twice as long, and cannot be interrupted.
            late = stopped == kernels.MORE_LOOKS and 2 * (time.monotonic() - began) > deadline.left
            if late or crowded or (stopped in INTERRUPTIBLE and deadline.passed):
                found = state.result(done=False)
                return found if found.row is None or self._right(found.row) else Closest(None, math.inf, found.bound)

    def _relax(self, state: State, deadline: Deadline) -> int:
        """Go on by linear programs where they say more than the search knows; ``kernels.DONE`` where they end it."""
        state.relaxed = True
        if state.neighbourhood is not None or not math.isfinite(state.upper[0]):
            return kernels.PAUSED
        program = LeafSearch(state)
        if program.promises(deadline):
            program.run(deadline)
        return kernels.DONE if state.upper[1] >= state.upper[0] - COST_TIE else kernels.PAUSED


class Layout:
    """The states of one factual: their cells, values and costs, and the boxes that are ruled out.

    By earlier answers, and by relations between features.
    """

    def __init__(
        self,
        search: CellSearch,
        factual: Mapping[str, Any],
        earlier: Sequence[Mapping[str, Any]],
        separation: float,
        emptied: Mapping[int, bool] | None = None,
    ) -> None:
        """``emptied``: of some numbers, by position, whether they have to be missing, or must not be."""
        self.features = search.problem.space.features
        self.factual = factual
        self.grid = search.grid
        space = search.problem.space
        related = RelationBoxes(space, space.frame([factual])) if space.relations else None
        laid = search.numbers.lay(self.features, factual, earlier, separation, related)
        self.sets = np.zeros(len(self.features), np.uint64)
        for f, feature in enumerate(self.features):
            if not feature.numeric:
                laid[f], self.sets[f] = search.levels(f, factual[feature.name])
                continue
            if feature.missing:
                emptying = (emptied or {}).get(f)
                laid[f] = with_gap(
                    feature, factual, laid[f], len(search.grid.ends[f]) + 1, search.gap_costs[f], emptying
                )
        parts = [laid[f] for f in range(len(self.features))]
        self.values = [values for _, values, _, _ in parts]
        self.cell_of = np.concatenate([cell for cell, _, _, _ in parts])
        self.cost = np.concatenate([cost for _, _, cost, _ in parts])
        self.factual_state = np.array([own for _, _, _, own in parts], dtype=np.int64)
        self.state_start = np.array([0, *accumulate(len(values) for values in self.values)], dtype=np.int64)
        self.boxes = [self._around(row, separation) for row in earlier]
        if related is not None:
            self.boxes += related.boxes(self.values, self.factual_state)

    def states(self, weight: np.ndarray, most: float) -> States:
        """The states as kernels take them."""
        return States(
            self.grid.unordered, self.sets, self.state_start, self.cell_of, self.cost, self.factual_state,
            *unchanged(self.features, self.factual, self.values, self.factual_state), weight, float(most),
        )  # fmt: skip

    def _around(self, row: Mapping[str, Any], separation: float) -> Box:
        """The states that are not separated from an earlier answer, as a box."""
        low, high, sets = np.zeros_like(self.factual_state), np.zeros_like(self.factual_state), np.zeros_like(self.sets)
        for f, (feature, values) in enumerate(zip(self.features, self.values, strict=True)):
            value = row[feature.name]
            if missing(value):
                near = np.flatnonzero(np.isnan(values))
            elif feature.numeric:
                up, down = separated_values(feature, float(value), separation)
                near = np.flatnonzero((values > down) & (values < up))
            else:
                near = np.flatnonzero(np.asarray(values) == feature.categories.index(value))
            if feature.kind is Kind.CATEGORICAL:
                sets[f] = np.uint64(1) << np.uint64(near[0])
            elif len(near):
                low[f], high[f] = near[0], near[-1]
            else:
                low[f], high[f] = 1, 0
        return Box(low, high, sets)

    @property
    def touched(self) -> tuple[np.ndarray, np.ndarray]:
        """The first and the last cell that counts for each state."""
        return self.cell_of, self.cell_of

    def cells(self, point: np.ndarray) -> np.ndarray:
        """The cells of a point of states."""
        return self.cell_of[self.state_start[:-1] + point]

    def within(self, cells: np.ndarray) -> np.ndarray:
        """Points by their cells, shape (points, features); what may not be missing here is as in the factual."""
        cells = cells.copy()
        for f, feature in enumerate(self.features):
            own = self.cell_of[self.state_start[f] : self.state_start[f + 1]]
            gap = len(self.grid.ends[f]) + 1
            if feature.missing and gap not in own:
                cells[cells[:, f] == gap, f] = own[self.factual_state[f]]
        return cells

    def row(self, point: np.ndarray) -> dict[str, Any]:
        """Decoded values of a point of states; what did not change is given back as it was."""
        row = {}
        for feature, values, state, own in zip(self.features, self.values, point, self.factual_state, strict=True):
            if state == own:
                row[feature.name] = self.factual[feature.name]
            elif not feature.numeric:
                row[feature.name] = feature.categories[int(values[state])]
            elif feature.kind is Kind.INTEGER and not missing(values[state]):
                row[feature.name] = int(values[state])
            else:
                row[feature.name] = float(values[state])
        return row


class State:
    """The arrays of a running search, which outlive a pause."""

    neighbourhood: Neighbourhood | None = None  # where it counts
    relaxed = False  # whether linear programs were tried

    def __init__(self, search: CellSearch, layout: Layout, known: Sequence[Mapping[str, Any]] = ()) -> None:
        self.search, self.layout, self.right = search, layout, known
        self.grid, self.states = search._grid, layout.states(search.weights, search.most)
        self.incumbents: list[np.ndarray] = []
        count = len(layout.factual_state)
        self.counters = np.zeros(16, np.int64)
        self.best, self.asked = np.zeros(count, np.int64), np.zeros(count, np.int64)
        self.upper = np.array([math.inf, 0.0])
        for c, box in enumerate(box for box in layout.boxes if (box.low <= box.high).all()):
            self.clauses.low[c], self.clauses.high[c], self.clauses.sets[c] = box.low, box.high, box.sets
            self.counters[kernels.CLAUSES] = self.counters[kernels.HARD] = c + 1

    @cached_property
    def clauses(self) -> Clauses:
        """Room for them, to begin with."""
        room = max(CLAUSES, 2 * len(self.layout.boxes))
        return _clauses(room, len(self.layout.features), len(self.layout.cost))

    @cached_property
    def nodes(self) -> Any:
        """Room for the open nodes, to begin with: ``Nodes``, or a subclass's own."""
        return _nodes(NODES, len(self.layout.features))

    @cached_property
    def rng(self) -> np.random.Generator:
        """What ``improve`` draws from: made where it is needed, which few questions do."""
        return np.random.default_rng(0)

    @cached_property
    def known(self) -> np.ndarray:
        """The cells of right points, shape (points, features), those given for this question first."""
        cells = self.search.known
        if self.right:
            own = cells_of(self.search.problem.space.frame(self.right), self.layout.features, self.search.grid)
            cells = np.concatenate([own, cells])
        return self.layout.within(cells)

    @property
    def progress(self) -> Progress:
        """What the kernels change, beside nodes and clauses."""
        return Progress(self.counters, self.best, self.asked, self.upper)

    def go(self, effort: int) -> int:
        """Search on, for about so many units of work."""
        hard = self.counters[kernels.NODES_SEEN] > EASY_NODES
        additive = None if self.neighbourhood is not None else self.additive if hard else NO_ROOM
        return kernels.run(
            self.search.plain_grid, tuple(self.states), tuple(self.clauses), tuple(self.nodes), tuple(self.progress),
            effort, self.neighbourhood, additive,
        )  # fmt: skip

    @cached_property
    def additive(self) -> AdditiveRoom:
        """What bounds that add up what changes gain need."""
        return room_for(self.search.leaf_spans(), self.grid, self.states)

    def undecided_row(self) -> dict[str, Any]:
        """The decoded point whose score is too near to the threshold to decide."""
        return self.layout.row(self.asked)

    def decide(self, right: bool) -> None:
        """Take in what the real model says of the undecided point."""
        if not right:
            self._rule_out(self.layout.cells(self.asked))
            return
        self.take(self.asked)

    def accepts(self, point: np.ndarray) -> bool:
        """What the real model says of a point of states."""
        return self.search._right(self.layout.row(point))

    def take(self, point: np.ndarray) -> None:
        """Take a right point of states as the incumbent, if it is a better one."""
        cost = sum(self.layout.cost[self.layout.state_start[:-1] + point].tolist())
        if cost < self.upper[0]:
            self.upper[0], self.best[:], self.counters[kernels.FOUND] = cost, point, 1

    def guess(self) -> None:
        """Look for an incumbent around the factual, and among known points."""
        self._guess(np.empty((0, 2 + len(self.best))), self.known)

    def improve(self) -> None:
        """Look for a better incumbent, between known points and the one there is."""
        if len(self.known):
            self._guess(self.rng.random((TRIES, 2 + len(self.best))), self.known)

    def improve_by(self, points: np.ndarray) -> None:
        """The same, between some points of states, right or not, and the one there is."""
        cells = np.array([self.layout.cells(point) for point in points])
        self._guess(self.rng.random((TRIES, 2 + len(self.best))), cells)

    def _guess(self, draws: np.ndarray, rows: np.ndarray) -> None:
        kernels.guess(self.grid, self.states, self.clauses, self.nodes, rows, draws, self.progress)

    def remember(self) -> None:
        """Keep the incumbent, if it is a new one."""
        if self.counters[kernels.FOUND] and not (self.incumbents and (self.incumbents[-1] == self.best).all()):
            self.incumbents.append(self.best.copy())

    def passed(self) -> tuple[dict[str, Any], ...]:
        """Incumbents that were left for better ones, the last first."""
        worse = [point for point in self.incumbents[-1 - PASSED :] if (point != self.best).any()]
        return tuple(self.layout.row(point) for point in reversed(worse))

    def refuse(self) -> None:
        """Start again without the leaves of the incumbent, which the real model has refused."""
        self._rule_out(self.layout.cells(self.best))
        self._restart(math.inf)

    def exclude(self, box: Box, upper: float) -> None:
        """Start again without a box of states, for points that cost less than ``upper``."""
        last = int(self.counters[kernels.CLAUSES])
        if last + 1 >= len(self.clauses.width):
            self.more_clauses()
        self.clauses.low[last], self.clauses.high[last], self.clauses.sets[last] = box.low, box.high, box.sets
        self.counters[kernels.CLAUSES] += 1
        self._restart(upper)

    def _restart(self, upper: float) -> None:
        """Start again with the last clause as a hard one: nothing else keeps points from being moved into it."""
        hard, last = self.counters[kernels.HARD], self.counters[kernels.CLAUSES] - 1
        for part in (self.clauses.low, self.clauses.high, self.clauses.sets):
            part[[hard, last]] = part[[last, hard]]
        self.clauses.table[:] = 0
        self.counters[kernels.HARD] += 1
        self.upper[:] = upper, 0.0
        for counter in (kernels.FOUND, kernels.ROOT, kernels.HEAP, kernels.TOP, kernels.FREE, kernels.ENTERED):
            self.counters[counter] = 0

    def rule_out(self, point: np.ndarray) -> Box:
        """Leave out a point of states that the real model refused, and what is predicted alike; returns their box."""
        if self.counters[kernels.CLAUSES] + 1 >= len(self.clauses.width):
            self.more_clauses()
        self._rule_out(self.layout.cells(point))
        c = int(self.counters[kernels.CLAUSES]) - 1
        return Box(self.clauses.low[c], self.clauses.high[c], self.clauses.sets[c])

    def _rule_out(self, cells: np.ndarray) -> None:
        """Leave out the states that touch a cell with the same leaves as some cells: all of it is predicted alike."""
        c, start = self.counters[kernels.CLAUSES], self.layout.state_start
        for f, alike in enumerate(self.search.grid.alike(cells)):
            own = slice(start[f], start[f + 1])
            first, last = (part[own] for part in self.layout.touched)
            if self.grid.unordered[f]:
                self.clauses.sets[c, f] = np.bitwise_or.reduce(np.uint64(1) << np.flatnonzero(alike).astype(np.uint64))
                continue
            others = np.flatnonzero(~alike)
            after = others.searchsorted(cells[f])
            above = others[after] if after < len(others) else len(alike)
            below = others[after - 1] if after else -1
            touching = np.flatnonzero((last > below) & (first < above))
            self.clauses.low[c, f], self.clauses.high[c, f] = touching[[0, -1]]
        self.counters[kernels.CLAUSES] = c + 1

    def more_nodes(self) -> None:
        """Twice the room for open nodes."""
        self.nodes = doubled(self.nodes)

    def more_looks(self) -> None:
        """Twice the effort for a single point; one cell takes no effort."""

    def more_clauses(self) -> None:
        """Twice the room for clauses."""
        larger = _clauses(2 * len(self.clauses.width), len(self.best), len(self.layout.cost))
        for new, old in zip(larger, self.clauses, strict=True):
            if old is self.clauses.table:
                new[:, : old.shape[1]] = old
            else:
                new[: len(old)] = old
        self.clauses = larger

    def result(self, done: bool) -> Closest:
        value = float(self.upper[0])
        bound = value if done else min(value, float(self.upper[1]))
        return Closest(self.layout.row(self.best) if self.counters[kernels.FOUND] else None, value, bound)


def _clauses(room: int, count: int, states: int) -> Clauses:
    return Clauses(
        *_boxes(room, count),
        faces=np.empty((room, 2 * count), np.int16),
        beyond=np.empty((room, 2 * count), np.int64),
        width=np.empty(room, np.int64),
        table=np.zeros((2 * states, -(-room // 64)), np.uint64),
    )


def _nodes(room: int, count: int) -> Nodes:
    return Nodes(*_boxes(room, count), np.empty(room), np.empty(room, np.int64), np.empty(room, np.int64))


def _boxes(room: int, count: int) -> Box:
    return Box(np.empty((room, count), np.int64), np.empty((room, count), np.int64), np.zeros((room, count), np.uint64))
