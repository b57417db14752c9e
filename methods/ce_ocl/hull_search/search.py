"""The closest valid point of a convex hull, for linear models and sums of trees, without a mixed-integer program."""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from harness.core.errors import UnsupportedError
from harness.core.method import Deadline
from harness.core.problem import Problem
from harness.core.space import SAME
from methods.ce_ocl.hull_search import kernels
from methods.ce_ocl.hull_search.kernels import INFEASIBLE, OPTIMAL, STUCK, TINY
from methods.ce_ocl.hull_search.models import LINEAR, WHOLE, Line, Trees, climbs
from methods.ce_ocl.hull_search.part import Part, compile
from methods.estimators.raw_target import raw_interval
from methods.estimators.trees import splits_only
from methods.milp.distance import Distance, Separable
from methods.milp.hull import Outside, Shares

ROOM = 6000  # points in the working set of one hull, at most
NEAR = 1e-7  # scaled moves from the program's point, all features together, by which a point is still in the hull
SNAP = 1e-7  # scaled moves that are none
CLOSE = 1e-9  # costs this near are equal
DIVES = 10  # nodes from one that is followed down to its end to the next
RELIABLE = 4  # children of a number that are looked at before their mean gain is believed
EASY = 30  # nodes before a search for the fewest changes looks for incumbents elsewhere
SEEDS = 20  # points of the hull to start from then
LOOKS = 4  # numbers looked at without a better one
WIDER = 10.0  # the margin's factor where the real model refuses a point of a linear one


@dataclass
class _Work:
    """The points of a hull, those in the program, and the last basis."""

    points: np.ndarray
    corners: np.ndarray
    work: np.ndarray
    members: np.ndarray
    inside: np.ndarray
    used: int = 0
    keep: Any = None

    @classmethod
    def of(cls, points: np.ndarray, keep: Any = None) -> _Work:
        count, size = points.shape
        room = min(count, ROOM)
        points = points[_near_each_other(points)]
        starts = np.arange(0, count, kernels.BLOCK)
        corners = np.stack([np.minimum.reduceat(points, starts).T, np.maximum.reduceat(points, starts).T])
        self = cls(
            np.ascontiguousarray(points.T), np.ascontiguousarray(corners), np.zeros((size, room)),
            np.zeros(room, dtype=np.int64),
            np.zeros(count, dtype=bool), keep=keep,
        )  # fmt: skip
        every = count <= 60
        first = range(count) if every else {0, *points.argmin(axis=0).tolist(), *points.argmax(axis=0).tolist()}
        for k in sorted(first):
            self.add(k)
        return self

    def add(self, k: int) -> None:
        if not self.inside[k] and self.used < len(self.members):
            self.work[:, self.used], self.members[self.used], self.inside[k] = self.points[:, k], k, True
            self.used += 1


def _near_each_other(points: np.ndarray) -> np.ndarray:
    """An order of points in which blocks of ``kernels.BLOCK`` lie close: halves of halves of the widest column."""
    done: list[np.ndarray] = []
    stack = [np.arange(len(points))]
    while stack:
        rows = stack.pop()
        if len(rows) <= kernels.BLOCK:
            done.append(rows)
            continue
        values = points[rows]
        widest = int(np.argmax(np.ptp(values, axis=0)))
        # Cut at a multiple of the block, so that only the last one is not full.
        half = -(-len(rows) // (2 * kernels.BLOCK)) * kernels.BLOCK
        order = np.argpartition(values[:, widest], half - 1)
        stack += [rows[order[half:]], rows[order[:half]]]
    return np.concatenate(done)


@dataclass(order=True)
class _Node:
    """A box of decoded values, which numbers surely change, and what is known of it."""

    bound: float
    number: int
    low: np.ndarray = field(compare=False)
    high: np.ndarray = field(compare=False)
    forced: np.ndarray = field(compare=False)
    basis: np.ndarray = field(compare=False)
    margin: float = field(compare=False, default=1.0)


class BoxSearch:
    r"""Best-first branch and bound over boxes of numbers in a convex hull, categories fixed.

    .. math::
        \min_x \; \textstyle\sum_j f_j [x_j \ne \hat x_j] + c_j |x_j - \hat x_j| \quad
        \text{s.t. } h(x) \models \tilde y, \; x = \sum_i \lambda_i \bar x_i, \; \sum_i \lambda_i = 1, \;
        \lambda \ge 0

    The bound of a box is a linear program over box and hull (and the model, where it is linear), a fixed cost being
    replaced by its convex envelope over the box. A point on which a sum of trees is wrong is grown to a box on which
    it surely is; x has to leave it by one of its faces. Points enter the program as they are needed. Bounds are
    Lagrangian: whatever the pivots did, they hold up to the rounding of one product with all points. A point
    counts once the real model predicts it as wanted.

    Parameters
    ----------
    distance
        Squares count as the gaps themselves: where only the fewest changes are asked for.
    alpha, weights, max_changes
        Cost, weights by feature and greatest weighted number of changes.
    margin
        Of a linear model's score beyond its threshold.
    """

    def __init__(
        self,
        problem: Problem,
        distance: Separable,
        alpha: float,
        weights: np.ndarray,
        max_changes: float | None,
        margin: float,
    ) -> None:
        self.problem, self.space = problem, problem.space
        linear = np.where(distance.quadratic > 0, distance.quadratic, distance.linear)
        self.distance = Separable(distance.fixed, linear, np.zeros_like(linear))
        self.alpha, self.weights = alpha, weights
        self.most = math.inf if max_changes is None else float(max_changes)
        self.limits = raw_interval(problem)
        self.margin = margin
        straight = isinstance(problem.classifier.estimator, LINEAR)
        self.line = Line(problem) if straight else None
        end = self.limits.low if self.limits.sense > 0 else self.limits.high
        self.trees = None if straight else Trees(problem, self.limits.sense, end)
        compile()
        self._works: dict[int, _Work] = {}
        self.nodes = 0
        self.pivots = 0

    @staticmethod
    def takes(problem: Problem, distance: Distance) -> bool:
        """Whether the search answers: a linear model, or trees and one end of their sum; a sum over features.

        Of a distance with squares it finds the fewest changes only.
        """
        if not isinstance(distance, Separable):
            return False
        classifier = problem.classifier
        if len(classifier.classes) > 2 or any(climbs(feature) for feature in problem.space.features):
            return False
        try:
            if isinstance(classifier.estimator, LINEAR):
                Line(problem)
                return True
            if not splits_only(classifier.estimator):
                return False
            sense = raw_interval(problem).sense
            if sense:
                Trees(problem, sense, 0.0)
            return sense != 0
        except UnsupportedError:
            return False

    def closest(
        self, factual: pd.DataFrame, piece: Shares | Outside, upper: float, deadline: Deadline, lexical: bool = False
    ) -> tuple[dict[str, Any] | None, float, float]:
        """The closest valid point of a piece, if it costs less than ``upper``.

        Parameters
        ----------
        lexical
            Alpha exceeds every distance within the piece, so that the fewest changes come first.

        Returns
        -------
        The row or None, its cost (``upper`` without one), and a proven lower bound on what the piece holds; inf:
        nothing below ``upper``.
        """
        part = Part(self, factual, piece)
        if not part.possible:
            return None, upper, math.inf
        fixed, linear = self.distance.fixed, self.distance.linear
        if not self.alpha or not lexical:
            run = _Run(part, fixed + self.alpha * self.weights, linear, self.most, upper, deadline)
            row, value = run.search()
            return row, value, run.bound
        best, value = None, upper
        known = math.floor(upper / self.alpha) if math.isfinite(upper) else math.inf
        row, least, bound = self._fewest(part, known, deadline)
        if row is not None:
            best, value = row, min(upper, part.price(row, fixed, linear) + self.alpha * least)
        if bound < least:  # the deadline came first
            return best, value, self.alpha * bound
        if least == math.inf:
            return None, upper, math.inf
        second = _Run(part, fixed, linear, least, value - self.alpha * least, deadline)
        row, rest = second.search()
        if row is not None:
            best, value = row, rest + self.alpha * part.changes(row)
        if best is None and second.bound == math.inf:
            return None, upper, math.inf
        return best, value, min(value, self.alpha * least + second.bound)

    def fewest(
        self, factual: pd.DataFrame, piece: Shares | Outside, known: float, deadline: Deadline
    ) -> tuple[dict[str, Any] | None, float]:
        """A valid point of the fewest changes, if they count less than ``known``, and a lower bound on them.

        Returns
        -------
        The row or None, and the bound, proven; inf: nothing that counts less than ``known``.
        """
        part = Part(self, factual, piece)
        if not part.possible:
            return None, math.inf
        row, least, bound = self._fewest(part, known, deadline)
        return row, math.inf if row is None and bound >= least else bound

    def _fewest(self, part: Part, known: float, deadline: Deadline) -> tuple[dict[str, Any] | None, float, float]:
        """The distance only tells equals apart. Row or None, its changes (``known`` without), and a bound on them."""
        linear = self.distance.linear
        ceiling = min(known, self.most + 1.0) - 0.5
        run = _Run(part, self.weights, linear * part.spread(linear), math.inf, ceiling, deadline, whole=True)
        row, _ = run.search()
        least = known if row is None else part.changes(row)
        return row, least, least if run.bound >= least else float(max(math.ceil(run.bound - WHOLE), 0))

    def work(self, piece: Shares | Outside) -> _Work:
        """The program's points of a piece; kept for hulls that come again."""
        if isinstance(piece, Shares):
            return _Work.of(piece.points)
        key = id(piece.hull)
        if key not in self._works:
            self._works[key] = _Work.of(piece.hull.points, keep=piece.hull)
        return self._works[key]


class _Run:
    """One minimisation over a part.

    Parameters
    ----------
    fixed, linear
        Cost of a change and of a scaled unit, by feature.
    most
        Greatest weighted number of changes.
    upper
        Only what costs less is looked for.
    whole
        Costs are whole numbers, but for less than ``WHOLE``.
    """

    def __init__(
        self,
        part: Part,
        fixed: np.ndarray,
        linear: np.ndarray,
        most: float,
        upper: float,
        deadline: Deadline,
        whole: bool = False,
    ) -> None:
        self.part, self.deadline, self.whole = part, deadline, whole
        self.search_ = part.search
        self.fixed, self.linear = fixed[part.place], linear[part.place]
        self.constant = float(part.changed @ fixed + part.gaps @ linear)
        weights = self.search_.weights
        self.weight = weights[part.place]
        self.rest = most - float(part.changed @ weights)  # changes left for the moving numbers
        self.upper = upper
        self.bound = math.inf
        self.doubt = math.inf  # bounds of what the real model refused although the margin held
        self.row: dict[str, Any] | None = None
        self.tried: set[bytes] = set()
        self.serial = 0
        line, counts = self.search_.line is not None, math.isfinite(most)
        count = len(part.place)
        self.rows = int(line) + int(counts)
        self.line, self.counts = line, counts
        size = 2 * count + self.rows
        self.extra = np.zeros((self.rows, 2 * count))
        if line:
            self.extra[0] = np.concatenate([part.slope, -part.slope])
        self.cost, self.ends_low, self.ends_high = np.zeros(size), np.zeros(size), np.zeros(size)
        self.slopes = np.zeros((2, count))
        self.gains = np.zeros((2, count)), np.zeros((2, count), dtype=int)  # of bounds a unit, by way and number

    def search(self) -> tuple[dict[str, Any] | None, float]:
        """The best row and its cost (without a row: ``upper`` as it was)."""
        part = self.part
        if self.rest < 0 or self.constant >= self.upper - CLOSE:
            return None, self.upper
        forced = np.zeros(len(part.place), dtype=bool)
        heap = [_Node(self.constant, 0, part.low, part.high, forced, self._first_basis())]
        seen = 0
        while heap:
            node: _Node | None = heapq.heappop(heap)
            assert node is not None
            if node.bound >= self.upper - CLOSE:
                break
            if self.whole and seen == EASY:
                self._seed()
            dives = seen % DIVES == 0
            seen += 1
            while node is not None:
                if self.deadline.passed:
                    heap.append(node)
                    self.bound = min(self.doubt, min(other.bound for other in heap))
                    return self.row, self.upper
                children = [child for child in self._expand(node) if child.bound < self.upper - CLOSE]
                node = min(children) if dives and children else None
                for child in children:
                    if child is not node:
                        heapq.heappush(heap, child)
        found = self.upper + 0.5 if self.whole else self.upper
        self.bound = min(self.doubt, math.inf if self.row is None else found)
        return self.row, self.upper

    def _first_basis(self) -> np.ndarray:
        count = len(self.part.place)
        return np.concatenate(
            [np.arange(count), [2 * count + self.rows], 2 * count + np.arange(self.rows)]
        ).astype(np.int64)  # fmt: skip

    def _prepare(self, low: np.ndarray, high: np.ndarray, forced: np.ndarray, margin: float) -> float:
        """Set the program to a box; what it costs in any case, or inf where it holds nothing."""
        part = self.part
        constant, changes = kernels.prepare(
            low, high, part.value, part.shift, part.unit, self.fixed, self.linear, self.weight, forced, self.cost,
            self.ends_low, self.ends_high, self.extra, self.counts,
        )  # fmt: skip
        at = 2 * len(low)
        if self.line:
            least, most = self.search_.limits.bounds(self.search_.margin * margin)
            span = kernels.span(self.extra[0], self.ends_low, self.ends_high)
            self.ends_low[at] = max(least - part.score, span[0])
            self.ends_high[at] = min(most - part.score, span[1])
            if self.ends_low[at] > self.ends_high[at]:
                return math.inf
        if self.counts:
            self.ends_low[at + self.rows - 1], self.ends_high[at + self.rows - 1] = 0.0, self.rest - changes
            if changes > self.rest + SAME:
                return math.inf
        return self.constant + constant

    def _solve(self, basis: np.ndarray, upper: float) -> Any:
        work = self.part.work
        found = kernels.simplex(
            work.points, work.corners, work.work, work.members, work.inside, work.used, basis, self.part.origin,
            self.cost, self.ends_low, self.ends_high, self.extra, upper,
        )  # fmt: skip
        work.used = found[4]
        self.search_.nodes += 1
        self.search_.pivots += found[5]
        return found

    def _expand(self, node: _Node) -> list[_Node]:
        part = self.part
        low, high = node.low, node.high
        if not self.line:
            first, last, _, _, value, start, base = part.leaves
            if kernels.greatest(first, last, value, start, base, low, high) < -TINY:
                return []
        constant = self._prepare(low, high, node.forced, node.margin)
        if constant >= self.upper - CLOSE:
            return []
        basis = node.basis.copy()
        status, bound, moves, y, _, _, most = self._solve(basis, self.upper - CLOSE - constant)
        if status == INFEASIBLE:
            return []
        node.bound = max(node.bound, constant + bound)
        if node.bound >= self.upper - CLOSE:
            return []
        self.y, self.top, self.basis, self.node = y, most, basis, node
        x = part.origin + moves
        if math.isfinite(self.upper):
            low, high = self._narrow(low, high, node.forced, self.upper - constant - bound)
        point = np.clip(part.shift + part.unit * x, low, high)
        point = np.where(part.whole, np.rint(point), point)
        stays = (np.abs(moves) <= SNAP) & (low <= part.value) & (part.value <= high)
        point = np.where(stays, part.value, point)
        hollow = np.flatnonzero((part.hole[0] < point) & (point < part.hole[1]))
        if len(hollow):
            return self._split(int(hollow[0]), part.hole[0, hollow[0]], part.hole[1, hollow[0]])
        off = np.abs(part.shift + part.unit * x - point) / part.unit
        inside = status != STUCK and off.sum() <= NEAR
        score = 0.0 if self.line else kernels.greatest(first, last, value, start, base, point, point)
        if score < -TINY:
            return self._leave(point, wrong=True)
        if inside:
            if self._take(point):
                if self.whole:
                    self.thin(point)
                if node.bound >= self.upper - CLOSE:
                    return []
                return self._change(point, moves) or self._divide(point, x)
            if self._loses(point):
                return self._change(point, moves) or self._divide(point, x)
            if not self.line:
                return self._leave(point, wrong=False)
            self.doubt = min(self.doubt, node.bound)
            return [self._child(low, high, node.forced, node.margin * WIDER)] if node.margin < 1e6 else []
        self._round(point)
        return self._change(point, moves) or self._fraction(point, x) or self._divide(point, x)

    def _narrow(
        self, low: np.ndarray, high: np.ndarray, forced: np.ndarray, spare: float
    ) -> tuple[np.ndarray, np.ndarray]:
        """The node's box without what its multipliers say costs more than the incumbent, now that it is solved."""
        part, node = self.part, self.node
        node.low, node.high = low.copy(), high.copy()
        kernels.narrow(
            node.low, node.high, part.value, part.unit, part.whole, self.y, self.cost, self.ends_low, self.ends_high,
            self.extra, spare,
        )  # fmt: skip
        return node.low, node.high

    def _loses(self, point: np.ndarray) -> bool:
        """Whether a point is no better than what is known."""
        cost, changes = self._costs(point)
        return cost >= self.upper - CLOSE or changes > self.rest + SAME

    def _costs(self, point: np.ndarray) -> tuple[float, float]:
        gaps, changed = self.part.moved(point)
        return self.constant + float(changed @ self.fixed + gaps @ self.linear), float(changed @ self.weight)

    def _take(self, point: np.ndarray) -> bool:
        """Take a point of the hull as incumbent, if it is better and the real model agrees."""
        if self._loses(point):
            return False
        row = self.part.read(point)
        if not self.search_.problem.valid(self.search_.space.frame([row]))[0]:
            return False
        self.row = row
        self.upper = self._costs(point)[0]
        if self.whole:
            self.upper = math.floor(self.upper + CLOSE) - 0.5
        return True

    def _seed(self) -> None:
        """First incumbents: the nearest right points that span the hull, thinned."""
        part = self.part
        moves = np.abs(part.work.points - part.origin[:, None])
        seeds = 0
        for row in np.argsort(moves.sum(axis=0), kind="stable"):
            if seeds == SEEDS or self.deadline.passed:
                return
            point = part.shift + part.unit * part.work.points[:, row]
            point = np.where(part.whole, np.rint(point), point)
            if ((point < part.low) | (point > part.high)).any() or not self._scores(point):
                continue
            seeds += 1
            self._take(point)
            self.thin(point)

    def _scores(self, point: np.ndarray) -> bool:
        """Whether the model is right at a point, up to rounding."""
        part = self.part
        if self.line:
            score = part.score + float(part.slope @ ((point - part.value) / part.unit))
            least, most = self.search_.limits.bounds(self.search_.margin)
            return least <= score <= most
        first, last, _, _, value, start, base = part.leaves
        return bool(kernels.greatest(first, last, value, start, base, point, point) >= -TINY)

    def thin(self, point: np.ndarray) -> None:
        """Put a valid point's numbers back one by one, the nearest first, as far as hull and model allow it."""
        part, forced, basis = self.part, np.zeros(len(point), dtype=bool), self._first_basis()
        gaps, changed = part.moved(point)
        while not self.deadline.passed:
            low, high = self._right(point)
            low, high = np.where(changed, low, part.value), np.where(changed, high, part.value)
            best = point
            for k in np.argsort(gaps, kind="stable"):
                if not changed[k] or not low[k] <= part.value[k] <= high[k]:
                    continue
                ends = low[k], high[k]
                low[k] = high[k] = part.value[k]
                moved = self._within(low, high, forced, basis)
                if moved is None:
                    low[k], high[k] = ends
                else:
                    best = moved
            if best is point:
                return
            point = best
            gaps, changed = part.moved(point)
            self._take(point)

    def _within(self, low: np.ndarray, high: np.ndarray, forced: np.ndarray, basis: np.ndarray) -> np.ndarray | None:
        """The cheapest point of the hull in a box on which the model is right, if its whole numbers are whole."""
        part = self.part
        if self._prepare(low, high, forced, 1.0) == math.inf:
            return None
        status, _, moves, *_ = self._solve(basis.copy(), math.inf)
        if status != OPTIMAL:
            return None
        x = part.origin + moves
        point = np.clip(part.shift + part.unit * x, low, high)
        point = np.where(part.whole, np.rint(point), point)
        off = np.abs(part.shift + part.unit * x - point) / part.unit
        return point if off.sum() <= NEAR else None

    def _right(self, point: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """A box around a valid point, as far towards the factual as the trees surely say that all of it is right."""
        part = self.part
        low, high = part.low.copy(), part.high.copy()
        if self.line:
            return low, high
        first, last, before, after, value, start, base = part.leaves
        kernels.cell(first, last, start, point, low, high)
        nearer = np.array([point > part.value, point < part.value])
        slopes = np.where(nearer, 1.0, 1e6) / part.unit
        kernels.grow(first, last, before, after, -value, start, -base, part.low, part.high, slopes, point, low, high)
        return low, high

    def _round(self, point: np.ndarray) -> None:
        """Take the rounded point, if it is better, valid and in the hull."""
        part = self.part
        if self._loses(point) or point.tobytes() in self.tried:
            return
        self.tried.add(point.tobytes())
        if ((point < part.low) | (point > part.high)).any():
            return
        if self._prepare(point, point, self.node.forced, 1.0) == math.inf:
            return
        status, _, moves, *_ = self._solve(self.basis.copy(), math.inf)
        if status == OPTIMAL and np.abs(part.origin + moves - (point - part.shift) / part.unit).sum() <= NEAR:
            self._take(point)

    def _child(self, low: np.ndarray, high: np.ndarray, forced: np.ndarray, margin: float | None = None) -> _Node:
        """A box within the node's, with the bound that the node's multipliers give it."""
        node, margin = self.node, self.node.margin if margin is None else margin
        self.serial += 1
        constant = self._prepare(low, high, forced, margin)
        bound = constant
        if constant < math.inf:
            bound += kernels.lagrange(
                self.y, self.cost, self.ends_low, self.ends_high, self.part.origin, self.extra, len(low), self.top
            )
        return _Node(max(node.bound, bound), self.serial, low, high, forced, self.basis, margin)

    def _split(self, k: int, end: float, begin: float, forced: bool = False) -> list[_Node]:
        """The parts of the node where number k is at most ``end``, or at least ``begin``."""
        node, children = self.node, []
        low, high, marks = node.low.copy(), node.high.copy(), node.forced.copy()
        marks[k] |= forced
        if node.low[k] <= end:
            high[k] = min(high[k], end)
            children.append(self._child(node.low, high, marks))
        if node.high[k] >= begin:
            low[k] = max(low[k], begin)
            children.append(self._child(low, node.high, marks))
        return children

    def _fraction(self, point: np.ndarray, x: np.ndarray) -> list[_Node]:
        """Branch on a whole number that the program leaves between two: the one that both children gain most by."""
        part, node = self.part, self.node
        values = np.clip(part.shift + part.unit * x, node.low, node.high)
        floors = np.floor(values + 1e-6)
        shares = np.where(part.whole, values - floors, 0.0)
        places = np.flatnonzero(shares > 1e-6)
        if not len(places):
            return []
        sums, counts = self.gains
        rates = np.where(counts > 0, sums / np.maximum(counts, 1), sums.sum(axis=1)[:, None] / max(counts.sum(), 1))
        fall, rise = rates[0, places] * shares[places], rates[1, places] * (1 - shares[places])
        merit = np.maximum(fall, 1e-6) * np.maximum(rise, 1e-6)
        best: tuple[float, list[_Node]] = (-1.0, [])
        idle = 0
        for place in np.argsort(-merit, kind="stable"):
            k = int(places[place])
            if counts[:, k].min() >= RELIABLE:
                if merit[place] > best[0]:
                    return self._split(k, floors[k], floors[k] + 1.0)
                break
            children = self._split(k, floors[k], floors[k] + 1.0)
            for child in children:
                self._look(child)
                rising = child.low[k] > floors[k]
                gap = (1 - shares[k]) if rising else shares[k]
                gain = min(child.bound, self.upper) - node.bound
                sums[int(rising), k] += gain / gap
                counts[int(rising), k] += 1
            live = [child for child in children if child.bound < self.upper - CLOSE]
            if len(live) < 2:
                return live
            gain = max(live[0].bound - node.bound, 1e-6) * max(live[1].bound - node.bound, 1e-6)
            idle += 1
            if gain > best[0]:
                best, idle = (gain, live), 0
            if idle >= LOOKS:
                break
        return best[1]

    def _look(self, child: _Node) -> None:
        """The bound of a child's own program."""
        constant = self._prepare(child.low, child.high, child.forced, child.margin)
        if constant == math.inf:
            child.bound = math.inf
            return
        child.basis = child.basis.copy()
        status, bound, *_ = self._solve(child.basis, self.upper - CLOSE - constant)
        child.bound = math.inf if status == INFEASIBLE else max(child.bound, constant + bound)

    def _change(self, point: np.ndarray, moves: np.ndarray) -> list[_Node]:
        """Branch on whether a number changes whose change is not paid in full."""
        part, node = self.part, self.node
        if not self.fixed.any() and not self.counts:
            return []
        home = (node.low <= part.value) & (part.value <= node.high) & ~node.forced & (np.abs(moves) > SNAP)
        room = np.where(moves > 0, node.high - part.value, part.value - node.low) / part.unit
        paid = np.abs(moves) / np.maximum(room, SAME)
        unpaid = np.where(home, (1.0 - paid) * (self.fixed + (self.weight if self.counts else 0.0)), 0.0)
        k = int(np.argmax(unpaid))
        if unpaid[k] <= CLOSE:
            return []
        low, high, forced = node.low.copy(), node.high.copy(), node.forced.copy()
        low[k] = high[k] = part.value[k]
        children = [self._child(low, high, forced)]
        if part.whole[k]:
            return children + self._split(k, part.value[k] - 1.0, part.value[k] + 1.0)
        forced = forced.copy()
        forced[k] = True
        return [*children, self._child(node.low, node.high, forced)]

    def _divide(self, point: np.ndarray, x: np.ndarray) -> list[_Node]:
        """Where rounding leaves nothing else to tell apart: halve the widest number."""
        node, part = self.node, self.part
        width = (node.high - node.low) / part.unit
        k = int(np.argmax(width))
        if part.whole[k]:
            middle = math.floor((node.low[k] + node.high[k]) / 2)
            return self._split(k, middle, middle + 1.0) if width[k] > 0 else []
        if width[k] <= SAME:
            self.doubt = min(self.doubt, node.bound)
            return []
        middle = (node.low[k] + node.high[k]) / 2
        return self._split(k, middle, np.nextafter(middle, math.inf))

    def _leave(self, point: np.ndarray, wrong: bool) -> list[_Node]:
        """Children outside a wrong box around a point: its cell, grown where the trees say that all of it is wrong."""
        part, node = self.part, self.node
        first, last, before, after, value, start, base = part.leaves
        low, high = node.low.copy(), node.high.copy()
        kernels.cell(first, last, start, point, low, high)
        if wrong:
            self.slopes[0] = np.where(point <= part.value, self.linear, 0.0)
            self.slopes[1] = np.where(point >= part.value, self.linear, 0.0)
            kernels.grow(
                first, last, before, after, value, start, base, node.low, node.high, self.slopes, point, low, high
            )
        faces = []
        for k in range(len(point)):
            below = low[k] - 1.0 if part.whole[k] else np.nextafter(low[k], -math.inf)
            above = high[k] + 1.0 if part.whole[k] else np.nextafter(high[k], math.inf)
            if below >= node.low[k]:
                child = node.high.copy()
                child[k] = below
                faces.append((self._child(node.low, child, node.forced).bound, k, False, below))
            if above <= node.high[k]:
                child = node.low.copy()
                child[k] = above
                faces.append((self._child(child, node.high, node.forced).bound, k, True, above))
        children = []
        floor, top = node.low.copy(), node.high.copy()
        for _, k, rising, end in sorted(faces):
            child_low, child_high = floor.copy(), top.copy()
            if rising:
                child_low[k], top[k] = end, high[k]
            else:
                child_high[k], floor[k] = end, low[k]
            if (child_low <= child_high).all():
                children.append(self._child(child_low, child_high, node.forced))
        return children
