r"""What few nodes of cells decide: a hard question about trees, by linear programs over their leaves.

Of one factual's states each feature has a nearest one, p. Let :math:`u_{fs}` be whether a number is at state s > p or
beyond it, :math:`d_{fs}` whether at s < p or below it, :math:`c_{fs}` whether a category is s, and :math:`z_{tl}`
whether the point lies in leaf l of tree t. With k the cost of a state and v the value of a leaf, the cheapest right
point solves

.. math::

    \min\ & \sum_{f, s} (k_{fs} - k_{f, s-1}) u_{fs} + (k_{fs} - k_{f, s+1}) d_{fs} + k_{fs} c_{fs} \\
    & \sum_l z_{tl} = 1, \quad \sum_s c_{fs} = 1, \quad \sum_{t, l} v_{tl} z_{tl} \ge 0 \text{ of each sum}, \\
    & \sum_{l \text{ from } s \text{ on}} z_{tl} \le u_{fs}, \quad
      \sum_{l \text{ up to } s - 1} z_{tl} \le 1 - u_{fs}, \text{ and the same of } d, \\
    & \sum_{l \text{ within } S} z_{tl} \le \sum_{s \in S} c_{fs} \text{ for the sets S that leaves ask for,}

u and d monotone, and u, d and c whole: the program of Parmentier and Vidal (2021), OCEAN, with a row for all leaves on
one side of a threshold. States and leaves that cost as much as the incumbent are left out; once it is a tenth cheaper,
the program is made again, as a smaller one.

Its relaxation is solved again and again: branch and bound, diving from the least bound, by pseudo-costs that strong
branching begins, with reduced-cost fixing (a column stays at an end where its price says that the other cannot pay) and
incumbents by rounding. Every bound is the Lagrangian one of the rows' multipliers, which ``harness.solvers.lp``
computes itself: no tolerance of the solver is part of a proof.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Protocol

import numpy as np

from harness.core.method import Deadline
from harness.core.tolerances import COST_TIE, LINEAR_WHOLE, SCORE_TIE
from harness.solvers.highs import Linear
from harness.solvers.lp import Lp, LpRow
from methods.cells import kernels
from methods.cells.records import AdditiveRoom, Box, Clauses, GridArrays, States

LOOKS, LOOK_STEPS = 6, 30  # columns that are tried before one is branched on, and simplex iterations for each side
ROUNDED = 0.0, 0.1, 0.3, 0.5  # a move is made where more than this share of it is, for incumbents
FIRST_STEPS = 5_000  # simplex iterations after which the whole question's relaxation has to say something
OUTDATED = 0.9  # of the incumbent's cost at which a program was made: for a cheaper one, a new one is
MET = 50  # whole points that close no node before the rest of such nodes is left open
STEP = np.array([1.0, -1.0])  # a column is at most another one
UNKNOWN = -1  # the column of a state that has none


class Question(Protocol):
    """A running search over cells, as its ``State`` has it; ``upper`` are the incumbent's cost and a proven bound."""

    grid: GridArrays
    states: States
    counters: np.ndarray
    upper: np.ndarray

    @property
    def clauses(self) -> Clauses: ...

    @property
    def additive(self) -> AdditiveRoom: ...

    def accepts(self, point: np.ndarray) -> bool: ...

    def take(self, point: np.ndarray) -> None: ...

    def rule_out(self, point: np.ndarray) -> Box: ...

    def improve_by(self, points: np.ndarray) -> None: ...


@dataclass
class Node:
    """Bounds of the columns, a lower bound on what they allow, and how the node came to be."""

    low: np.ndarray
    high: np.ndarray
    bound: float
    branched: tuple[int, int, float] | None = None  # the column, its side, and by how much that moved it


class LeafProgram:
    """The program of one question, for points that cost less than its incumbent."""

    def __init__(self, state: Question) -> None:
        self.state, self.grid, self.states = state, state.grid, state.states
        count = len(self.states.factual)
        self.point, self.floor = np.empty(count, np.int64), np.empty(count)
        for f in range(count):
            cost = self._cost(f)
            self.point[f] = self.states.factual[f]
            if self.grid.unordered[f]:
                cost = np.where(self._allowed(f), cost, math.inf)
                self.point[f] = int(cost.argmin())
            self.floor[f] = cost[self.point[f]]
        self.slack = float(state.upper[0]) - COST_TIE - float(self.floor.sum())
        self._lay_states()
        self.rows: list[LpRow] = []
        self.size = self.whole = len(self._prices)
        self._link_states()
        self._link_leaves()
        self._limit()
        self.cost = np.concatenate([self._prices, np.zeros(self.size - self.whole)])

    def _cost(self, f: int) -> np.ndarray:
        return self.states.cost[self.states.start[f] : self.states.start[f + 1]]

    def _allowed(self, f: int) -> np.ndarray:
        """Which categories a feature without order may take."""
        codes = np.arange(self.states.start[f + 1] - self.states.start[f], dtype=np.uint64)
        return (self.states.sets[f] >> codes) & np.uint64(1) != 0

    def _lay_states(self) -> None:
        """A column for each state that may pay but a number's nearest, and the first and last such state of each."""
        self.column = np.full(self.states.start[-1], UNKNOWN)
        self.low, self.high = self.point.copy(), self.point.copy()
        self._prices: list[float] = []
        for f, p in enumerate(self.point.tolist()):
            cost = self._cost(f)
            pays = cost - self.floor[f] < self.slack
            if self.grid.unordered[f]:
                for k in np.flatnonzero(pays & self._allowed(f)).tolist():
                    self._lay(f, k, float(cost[k]))
                continue
            for step, end in ((1, len(cost)), (-1, -1)):
                for s in range(p + step, end, step):
                    if not pays[s]:
                        break
                    self._lay(f, s, float(cost[s] - cost[s - step]))
                    self.low[f], self.high[f] = min(self.low[f], s), max(self.high[f], s)

    def _lay(self, f: int, s: int, price: float) -> None:
        self.column[self.states.start[f] + s] = len(self._prices)
        self._prices.append(price)

    def _of(self, f: int) -> np.ndarray:
        return self.column[self.states.start[f] : self.states.start[f + 1]]

    def onwards(self, f: int, s: int) -> Linear:
        """Whether a number is at state s or beyond it."""
        if s <= self.low[f] or s > self.high[f]:
            return Linear.of(constant=float(s <= self.low[f]))
        own = self._of(f)
        return _sum_of(own[[s]]) if s > self.point[f] else _opposite(_sum_of(own[[s - 1]]))

    def _link_states(self) -> None:
        """A number that is beyond a state is beyond those before it, and not on both sides; a category is one."""
        for f, p in enumerate(self.point.tolist()):
            own = self._of(f)
            if self.grid.unordered[f]:
                self.rows.append(LpRow(_sum_of(own[own != UNKNOWN]), 1.0, 1.0))
                continue
            above, below = own[p + 1 : self.high[f] + 1], own[self.low[f] : p][::-1]
            for side in (above, below):
                for nearer, further in pairwise(side):
                    self.rows.append(LpRow(Linear(np.array([further, nearer]), STEP), high=0.0))
            if len(above) and len(below):
                self.rows.append(LpRow(_sum_of(np.array([above[0], below[0]])), high=1.0))

    def _link_leaves(self) -> None:
        """Columns for the leaves that may pay, and the rows that hold them to the states; one row a sum."""
        grid = self.grid
        totals = {int(which): [Linear.of(constant=grid.base)] for which in np.unique(grid.sums)}
        for t in range(len(grid.values)):
            total = totals[int(grid.sums[t])]
            if grid.starts[t] == grid.starts[t + 1]:
                total.append(Linear.of(constant=float(grid.values[t, -1])))
                continue
            leaves, parts = self._leaves(t)
            own = self.size + np.arange(len(leaves))
            self.size += len(leaves)
            self.rows.append(LpRow(_sum_of(own), 1.0, 1.0))
            total.append(Linear(own, grid.values[t, leaves]))
            for f, part in parts:
                if grid.unordered[f]:
                    self._link_sets(f, own, part[0])
                else:
                    self._link_ends(f, own, *part)
        self.rows += [LpRow(Linear.sum(total), low=-SCORE_TIE) for total in totals.values()]

    def _leaves(self, t: int) -> tuple[np.ndarray, list[tuple[int, tuple[np.ndarray, ...]]]]:
        """The leaves of a tree that may pay; of each feature it asks, their sets, or first and last states."""
        room = self.state.additive
        spans, count = room.spans, room.spans.leaves[t]
        needed, met = np.zeros(count), np.ones(count, dtype=bool)
        parts: list[tuple[int, tuple[np.ndarray, ...]]] = []
        for k in range(self.grid.starts[t], self.grid.starts[t + 1]):
            f = int(self.grid.members[k])
            cost, own = self._cost(f) - self.floor[f], self._of(f)
            if self.grid.unordered[f]:
                allowed = np.flatnonzero(own != UNKNOWN).astype(np.uint64)
                inside = ((spans.categories[k, :count, None] >> allowed) & np.uint64(1)).astype(bool)
                needed += np.where(inside, cost[allowed.astype(int)], math.inf).min(axis=1, initial=math.inf)
                parts.append((f, (inside,)))
                continue
            first = self.grid.offset[f]
            a = np.maximum(room.onwards[first + spans.low[k, :count]], self.low[f])
            b = np.minimum(room.upto[first + spans.high[k, :count]], self.high[f])
            met &= (a <= b) & (spans.low[k, :count] <= spans.high[k, :count])
            nearest = np.clip(self.point[f], a, np.maximum(a, b)).clip(0, len(cost) - 1)
            needed += cost[nearest]
            parts.append((f, (a, b)))
        met &= needed < self.slack
        return np.flatnonzero(met), [(f, tuple(part[met] for part in own)) for f, own in parts]

    def _link_sets(self, f: int, own: np.ndarray, inside: np.ndarray) -> None:
        """Leaves that lie within some categories need one of them."""
        columns = self._of(f)[self._of(f) != UNKNOWN]
        for chosen in np.unique(inside, axis=0):
            if chosen.all():
                continue
            within = own[~(inside & ~chosen).any(axis=1)]
            self._at_most(within, _sum_of(columns[chosen]))

    def _link_ends(self, f: int, own: np.ndarray, a: np.ndarray, b: np.ndarray) -> None:
        """Leaves that begin at a state or beyond it need it; those that end before it rule it out."""
        for s in np.unique(a[a > self.low[f]]).tolist():
            self._at_most(own[a >= s], self.onwards(f, s))
        for s in np.unique(b[b < self.high[f]]).tolist():
            self._at_most(own[b <= s], _opposite(self.onwards(f, s + 1)))

    def _at_most(self, leaves: np.ndarray, condition: Linear) -> None:
        """No more of a tree than the condition lies in some of its leaves."""
        columns = np.concatenate([leaves, condition.columns])  # no column twice: a sum of forms would look for them
        coefficients = np.concatenate([np.ones(len(leaves)), -condition.coefficients])
        self.rows.append(LpRow(Linear(columns, coefficients, -condition.constant), high=0.0))

    def _limit(self) -> None:
        """At most so many changes, and outside the boxes that are ruled out."""
        states = self.states
        if math.isfinite(states.most):
            changes = []
            for f, (p, first, last) in enumerate(zip(states.factual, states.first, states.last, strict=True)):
                own, weight = self._of(f), float(states.weight[f])
                if self.grid.unordered[f]:
                    stays = own[[p]][own[[p]] != UNKNOWN]
                    changes.append(Linear(stays, np.full(len(stays), -weight), weight))
                else:
                    beside = own[[s for s in (first - 1, last + 1) if self.low[f] <= s <= self.high[f]]]
                    changes.append(Linear(beside, np.full(len(beside), weight)))
            self.rows.append(LpRow(Linear.sum(changes), high=states.most))
        clauses = self.state.clauses
        for c in range(self.state.counters[kernels.HARD]):
            self.rows.append(self.outside(Box(clauses.low[c], clauses.high[c], clauses.sets[c])))

    def outside(self, box: Box) -> LpRow:
        """The point is outside a box of states."""
        ways = []
        for f in range(len(self.point)):
            if self.grid.unordered[f]:
                own = self._of(f)
                inside = (box.sets[f] >> np.arange(len(own), dtype=np.uint64)) & np.uint64(1) != 0
                ways.append(_sum_of(own[~inside & (own != UNKNOWN)]))
            else:
                ways += [self.onwards(f, int(box.high[f]) + 1), _opposite(self.onwards(f, int(box.low[f])))]
        return LpRow(Linear.sum(ways), low=1.0)

    def read(self, x: np.ndarray, least: float = 0.5) -> np.ndarray:
        """The point of states of a solution: a number goes as far as its columns are at more than ``least``."""
        taken = x[: self.whole]
        steps = [np.bincount(of[taken[own] > least], minlength=len(self.point)) for own, of in self._moves]
        most = [self._most(taken, own, of) for own, of in self._moves]
        point = self.point + np.where(most[1] > most[0], -steps[1], steps[0])
        for f in np.flatnonzero(self.grid.unordered).tolist():
            own = self._of(f)
            point[f] = int(np.where(own == UNKNOWN, 0.0, x[own]).argmax())
        return point

    @cached_property
    def _moves(self) -> tuple[tuple[np.ndarray, np.ndarray], ...]:
        """The columns of numbers' states above their nearest ones, and below them, and the features that each is of."""
        feature = np.repeat(np.arange(len(self.point)), np.diff(self.states.start))
        state = np.arange(len(self.column)) - self.states.start[feature]
        numbers = (self.column != UNKNOWN) & (self.grid.unordered[feature] == 0)
        sides = numbers & (state > self.point[feature]), numbers & (state < self.point[feature])
        return tuple((self.column[side], feature[side]) for side in sides)

    def _most(self, taken: np.ndarray, own: np.ndarray, of: np.ndarray) -> np.ndarray:
        """The greatest of each feature's columns."""
        most = np.zeros(len(self.point))
        np.maximum.at(most, of, taken[own])
        return most


def _sum_of(columns: np.ndarray) -> Linear:
    return Linear(columns, np.ones(len(columns)))


def _opposite(condition: Linear) -> Linear:
    """Whether a condition does not hold."""
    return Linear(condition.columns, -condition.coefficients, 1.0 - condition.constant)


class LeafSearch:
    """Branch and bound over the relaxations of a ``LeafProgram``; the incumbent is that of the search's state."""

    def __init__(self, state: Question) -> None:
        self.state = state
        self._lay()

    def _lay(self) -> None:
        """Make the program for points that cost less than the incumbent, and begin with all of it."""
        self.program, self.upper = LeafProgram(self.state), float(self.state.upper[0])
        program = self.program
        self.constant = float(program.floor[program.grid.unordered == 0].sum())
        self.lp = Lp(np.zeros(program.size), np.ones(program.size))
        self.lp.add_rows(program.rows)
        self.gains = np.full((2, program.whole), np.nan)  # of the bound, for a column moved down or up by a unit
        self.open = [Node(np.zeros(program.size, np.int8), np.ones(program.size, np.int8), -math.inf)]
        self.met, self.least = 0, math.inf  # the least bound of nodes that nothing more can be told of

    @property
    def bound(self) -> float:
        """What is proven of all points by now."""
        return min([self.least, float(self.state.upper[0]), *(node.bound for node in self.open)])

    @property
    def cutoff(self) -> float:
        """What a better point costs less than."""
        return float(self.state.upper[0]) - COST_TIE

    def promises(self, deadline: Deadline) -> bool:
        """Whether the relaxation of the whole question says more than the search knows, within some iterations."""
        self.lp.price(self.program.cost)
        return self.lp.reached(FIRST_STEPS, deadline.left) + self.constant > float(self.state.upper[1])

    @property
    def outdated(self) -> bool:
        """Whether the incumbent has become so much cheaper that a new program is smaller."""
        return float(self.state.upper[0]) < OUTDATED * self.upper and self.bound < self.cutoff

    def run(self, deadline: Deadline) -> None:
        """Look at nodes until none is open, or the deadline has passed; writes what is proven to ``state.upper``."""
        known, diving = float(self.state.upper[1]), False
        while self.open and not deadline.passed:
            place = -1 if diving else min(range(len(self.open)), key=lambda i: self.open[i].bound)
            node, others = self.open.pop(place), len(self.open)
            if node.bound < self.cutoff and not self.look(node, deadline):
                if deadline.passed:
                    self.open.append(node)
                else:
                    self.least = min(self.least, node.bound)
            diving = len(self.open) > others
            if not diving and self.outdated and not deadline.passed:
                known = max(known, self.bound)
                self._lay()
        self.state.upper[1] = max(known, self.bound)

    def look(self, node: Node, deadline: Deadline) -> bool:
        """Close a node or branch on it; False where the solver could not tell, as where the time is over."""
        found = self._solve(node, deadline)
        if not found:
            return False
        bound, x, slope = found
        before, node.bound = node.bound, max(node.bound, bound)
        if node.branched is not None and math.isfinite(bound):
            column, side, moved = node.branched
            self._learn(column, side, (bound - before) / moved)
        if node.bound >= self.cutoff or x is None:
            return True
        node.low, node.high = self._fixed(node, bound, slope)
        self._round(x)
        whole = x[: self.program.whole]
        apart = np.flatnonzero(np.abs(whole - np.rint(whole)) > LINEAR_WHOLE)
        if not len(apart):
            return self._take(node, x)
        column = self._chosen(node, whole, apart, deadline)
        for side in (0, 1) if whole[column] > 0.5 else (1, 0):
            self.open.append(self._child(node, column, side, whole[column]))
        return True

    def _solve(self, node: Node, deadline: Deadline) -> tuple[float, np.ndarray | None, np.ndarray] | None:
        """The proven bound of a node, its solution (None: it holds no point), and what each column would add."""
        self.lp.bounds(node.low, node.high)
        solution = self.lp.prove(self.program.cost, deadline.left)
        if solution.infeasible:
            return math.inf, None, self.lp.slope
        if solution.x is None or solution.bound == -math.inf:
            return None
        return solution.bound + self.constant, solution.x, self.lp.slope

    def _fixed(self, node: Node, bound: float, slope: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The ends of a node's columns without what would cost as much as the incumbent."""
        spare = self.cutoff - bound
        low = np.where(slope < -spare, node.high, node.low)
        return low, np.where(slope > spare, node.low, node.high)

    def _round(self, x: np.ndarray) -> None:
        """Look for a better incumbent around a solution."""
        self.state.improve_by(np.array([self.program.read(x, least) for least in ROUNDED]))

    def _take(self, node: Node, x: np.ndarray) -> bool:
        """A whole point: the incumbent if the model accepts it. What is left of the node is looked at without it."""
        state, point = self.state, self.program.read(x)
        accepted = state.accepts(point)
        if accepted:
            state.take(point)
            if node.bound >= self.cutoff:
                return True
        self.met += 1
        if self.met > MET:
            self.least = min(self.least, node.bound)
            return True
        alone = np.where(self.program.grid.unordered, np.uint64(1) << point.astype(np.uint64), np.uint64(0))
        self.lp.add_rows([self.program.outside(Box(point, point, alone) if accepted else state.rule_out(point))])
        self.open.append(Node(node.low, node.high, node.bound))
        return True

    def _child(self, node: Node, column: int, side: int, value: float) -> Node:
        low, high = node.low.copy(), node.high.copy()
        (low if side else high)[column] = side
        return Node(low, high, node.bound, (column, side, max(abs(side - value), LINEAR_WHOLE)))

    def _learn(self, column: int, side: int, gain: float) -> None:
        known = self.gains[side, column]
        self.gains[side, column] = gain if math.isnan(known) else (known + gain) / 2

    def _chosen(self, node: Node, whole: np.ndarray, apart: np.ndarray, deadline: Deadline) -> int:
        """The column to branch on: of which the worse side is expected to gain most, unknown ones tried first."""
        order = apart[np.argsort(-self._expected(whole, apart), kind="stable")]
        unknown = [int(column) for column in order if np.isnan(self.gains[:, column]).any()]
        for column in unknown[:LOOKS]:
            for side in (0, 1):
                child = self._child(node, column, side, whole[column])
                self.lp.bounds(child.low, child.high)
                reached = min(self.lp.reached(LOOK_STEPS, deadline.left) + self.constant, self.cutoff)
                assert child.branched is not None
                self.gains[side, column] = max(reached - node.bound, 0.0) / child.branched[2]
        return int(apart[np.argmax(self._expected(whole, apart))])

    def _expected(self, whole: np.ndarray, apart: np.ndarray) -> np.ndarray:
        """What branching on each of some columns is expected to gain."""
        known = np.nan_to_num(self.gains)
        known = known.sum(axis=1) / np.maximum((~np.isnan(self.gains)).sum(axis=1), 1)
        down, up = (np.where(np.isnan(own), mean, own)[apart] for own, mean in zip(self.gains, known, strict=True))
        down, up = down * whole[apart], up * (1.0 - whole[apart])
        return np.minimum(down, up) + np.maximum(down, up) / 100
