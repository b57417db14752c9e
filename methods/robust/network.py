"""Robust counterfactuals of ReLU networks by a branch and bound of their own (``network_kernels.py``).

Each choice of categories is a *slice* of the space, opened in the order of its cost: in it only numbers move. Nodes of
a slice hold bounds of the first layer's sums and phases of later units; each is a linear program in x alone, over the
perturbations found so far. Where a quick adversary finds no invalid perturbation, an exact one finds one or proves that
there is none. Better points are found by descents over the pieces of the margin. A point is taken once the harness's
checker, whose adversary is independent, has certified its decoded row too.
"""

from __future__ import annotations

import heapq
import math
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import count
from typing import Any

import numpy as np
import pandas as pd

from harness.core.inputs import Affine, by_category
from harness.core.method import Deadline
from harness.core.problem import Problem
from harness.core.space import Actionability, Kind
from harness.core.tolerances import BRANCHING_GAIN, COORDINATE_TIE, LITTLE_PROGRESS, OPTIMALITY_GAP
from harness.solvers.scaling import balanced
from methods.estimators.network import dense_layers, has_hidden_units, stacked
from methods.estimators.raw_target import raw_interval
from methods.robust.adversarial import Adversarial
from methods.robust.network_kernels import (
    BRANCH,
    CANDIDATE,
    EMPTY,
    L1,
    LINF,
    MORE,
    PROVEN,
    VIOLATED,
    Ball,
    Cuts,
    Layers,
    Reach,
    Solution,
    node,
    quick,
    reached,
    step,
    weakest,
    worst,
)
from methods.robust.network_nodes import Best, Looked, Node, PseudoCosts, Scenarios, Slice, Trace
from methods.robust.outcome import Outcome
from methods.robust.perturbation import WIDE
from methods.robust.settings import Settings

NODES = 20  # of the adversary between two looks at the clock
PULLS, HALVINGS = 14, 8  # halvings of a point's way back to the factual, and of a step
LONGEST = 8.0  # times as far from the factual as a relaxed solution, in search of a robust point on its line
EVERY, RARER = 10, 3  # nodes between two searches for a better point; by how many they grow where there was none
STARTS = 10  # rows of the wanted class that searches begin at as long as none is robust, one in each later slice
DESCENTS = 20  # of one search: each knows the perturbation that broke the end of the last one
LOOKS = 20  # of the exact adversary at such an end, twice as many after each as long as none is robust
TRUST, TRUSTED = 0.2, 20  # a descent's first step in each number; times the gain that ends it, its last one


class Network(Adversarial):
    """Exact for networks of ReLUs over real numbers and categories, the distances ``l1`` and ``linf``.

    Integers that may change, special values, squares, costs of changes or of one's own, data manifolds and relations
    between features are left to Algorithm 1.
    """

    def __init__(self, problem: Problem, settings: Settings) -> None:
        super().__init__(problem, settings)
        features = problem.space.features
        plain = settings.distance in {"l1", "linf"} and not settings.alpha and settings.max_changes is None
        still = Actionability.IMMUTABLE
        numbers = [f for f in features if f.numeric]
        real = all((f.kind is Kind.CONTINUOUS and not f.special) or f.actionability is still for f in numbers)
        deep = has_hidden_units(problem.classifier.estimator)
        free = settings.hull == "none" and not problem.space.relations and not problem.space.priced
        self.own = plain and free and real and bool(numbers) and deep
        if self.own:
            self._read(problem)
            _Search(self, problem.train.iloc[0].to_dict(), Deadline.after(math.inf)).compile()

    def _read(self, problem: Problem) -> None:
        """The network as a function of the scaled numbers, its output signed so that more is better, and balanced."""
        interval, space = raw_interval(problem), problem.space
        numbers = [feature.name for feature in space.features if feature.numeric]
        places = {name: slice(column, column + 1) for column, name in enumerate(numbers)}
        width = len(numbers)
        for feature in space.features:
            if not feature.numeric:
                places[feature.name] = slice(width, width + len(feature.categories))
                width += len(feature.categories)
        rates, offset = np.zeros((len(self.slopes), width)), np.zeros(len(self.slopes))
        for row, (source, slope) in enumerate(zip(problem.classifier.inputs, self.slopes, strict=True)):
            feature = space[source.feature]
            if feature.numeric:
                assert isinstance(source, Affine)
                offset[row] = (feature.scale[0] - source.shift) / source.unit
            rates[row, places[feature.name]] = slope if feature.numeric else by_category(feature, source)
        *layers, (outgoing, outputs) = [(w.T, b) for w, b in dense_layers(problem.classifier.estimator)]
        weights, shifts = layers[0]
        layers[0] = (weights @ rates, weights @ offset + shifts)
        sign = float(interval.sense)
        end = interval.low if sign > 0 else interval.high
        layers, self.last, self.constant = balanced(layers, sign * outgoing[0], float(sign * (outputs[0] - end)))
        weights, shifts = layers[0]
        # What each category adds to the first layer's sums, shape (categories, units).
        self.added = {name: weights[:, place].T for name, place in places.items() if name not in numbers}
        layers[0] = (weights[:, : len(numbers)], shifts)
        self.weights, self.shifts, widths = stacked(layers)
        self.sizes = np.array([len(numbers), *widths])
        numeric = [feature.numeric for feature in space.features]
        self.moving = np.asarray(self.perturbation.moved)[numeric]
        self.columns = np.array(self.first_guess.numbers)
        self.margins = self.settings.margin / 10, self.settings.margin / 100

    def layers(self, categories: Mapping[str, Any]) -> Layers:
        """The network as the kernels take it, at a choice of categories."""
        shifts = self.shifts.copy()
        for name, value in categories.items():
            place = self.space[name].categories.index(value)
            shifts[0, : self.sizes[1]] += self.added[name][place]
        return Layers(self.weights, shifts, self.sizes, self.last, self.constant)

    def solve(self, row: Mapping[str, Any], deadline: Deadline) -> Outcome:
        return _Search(self, row, deadline).run() if self.own else super().solve(row, deadline)


class _Search:
    """The search for one factual."""

    def __init__(self, network: Network, row: Mapping[str, Any], deadline: Deadline) -> None:
        self.network, self.deadline = network, deadline
        self.ball = Ball(network.settings.radius, network.settings.norm == "l2", network.moving)
        self.factual: pd.DataFrame = network.frame(row)
        self.origin = network.space.encode(self.factual)[0, network.columns]
        low, high = (end[network.columns] for end in network.space.reach(self.factual))
        self.low, self.high = np.minimum(low - self.origin, 0.0), np.maximum(high - self.origin, 0.0)
        self.alternatives = [self._alternatives(name) for name in network.added]
        self.scenarios = Scenarios(len(self.origin), network.shifts.shape)
        self.pseudo_costs = PseudoCosts(network.shifts.shape)
        self.best = Best()
        self.trace = Trace()
        self.bound, self.looks = 0.0, LOOKS
        self.unsettled = math.inf  # the least bound of the nodes that are looked at no more

    @property
    def norm(self) -> int:
        return LINF if self.network.settings.distance == "linf" else L1

    def _alternatives(self, name: str) -> list[tuple[float, Any]]:
        """The reachable categories of a feature with their costs; the factual's first."""
        network, own = self.network, self.factual[name].iloc[0]
        values = [value for value in network.space[name].reachable(own) if value != own]
        rows = [{**self.factual.iloc[0].to_dict(), name: value} for value in values]
        if not rows:
            return [(0.0, own)]
        costs = network.objective.evaluate(network.space, self.factual, network.space.frame(rows))
        return [(0.0, own), *sorted(zip(map(float, costs), values, strict=True), key=lambda pair: pair[0])]

    def slice(self, places: tuple[int, ...], last: int) -> Slice:
        chosen = [options[place] for options, place in zip(self.alternatives, places, strict=True)]
        costs = [cost for cost, _ in chosen]
        categories = dict(zip(self.network.added, (value for _, value in chosen), strict=True))
        return Slice(self.norm_of(costs), places, last, categories, self.network.layers(categories))

    def successors(self, here: Slice) -> Iterator[Slice]:
        """Slices that cost as much or more, each of which succeeds one slice only."""
        for k in range(here.last, len(here.places)):
            if here.places[k] + 1 < len(self.alternatives[k]):
                yield self.slice((*here.places[:k], here.places[k] + 1, *here.places[k + 1 :]), k)

    def norm_of(self, parts: Iterable[float]) -> float:
        return max(parts, default=0.0) if self.norm == LINF else math.fsum(parts)

    def root(self, within: Slice) -> Node:
        infinite = np.full(int(self.network.sizes[1]), math.inf)
        return Node(within, self.origin, -infinite, infinite, {}, -infinite, infinite)

    def compile(self) -> None:
        """Call every kernel of the search once."""
        first = self.slice((0,) * len(self.alternatives), 0)
        self.violation(first, self.origin, self.network.margins[0])
        self._sink(first, self.origin, np.zeros(len(self.origin)))
        self.broken(first, self.origin)
        self._descended(first, self.origin, LITTLE_PROGRESS)
        self._look(self.root(first))

    def distance(self, within: Slice, point: np.ndarray) -> float:
        return self.norm_of([within.cost, self.norm_of(np.abs(point - self.origin))])

    def broken(self, within: Slice, point: np.ndarray) -> np.ndarray | None:
        """A perturbation by which a quick adversary takes a point's margin, or None."""
        move, scenarios = np.zeros(len(self.origin)), self.scenarios.record()
        margin = weakest(tuple(within.layers), tuple(self.ball), scenarios, point, move)
        return move if margin < self.network.margins[0] else None

    def violation(self, within: Slice, point: np.ndarray, margin: float, looks: float = math.inf) -> np.ndarray | None:
        """A perturbation that takes half a point's margin, of size 0 where none does; None: not settled."""
        network, began = self.network, time.monotonic()
        boxes = int(network.sizes[1:].sum()) + 2
        stack, depth = np.zeros((boxes, *network.shifts.shape), np.int8), np.ones(1, np.int64)
        move, code = np.zeros(len(self.origin)), MORE
        while code == MORE and looks > 0 and not self.deadline.passed:
            looks -= 1
            code = worst(tuple(within.layers), tuple(self.ball), stack, depth, point, margin / 2, NODES, move)
        self.trace.adversary_seconds += time.monotonic() - began
        if code == VIOLATED:
            self._sink(within, point, move)
            return move
        return move[:0] if code == PROVEN else None

    def _sink(self, within: Slice, point: np.ndarray, move: np.ndarray) -> None:
        """Take a perturbation on downhill, where it cuts off more."""
        quick(tuple(within.layers), tuple(self.ball), point, move)

    def take(self, within: Slice, point: np.ndarray) -> bool:
        """A new incumbent, once the harness's own checker has certified the decoded row."""
        network = self.network
        encoded = network.space.encode(self.factual)[0]
        encoded[network.columns] = point
        row = network.space.decode(encoded, like=self.factual).to_dict("records")[0] | within.categories
        value = network.value(row, self.factual)
        if value >= self.best.value:
            return False
        radius = network.certifier.radius(row, self.deadline.left)
        if radius < self.ball.radius:
            return False
        self.best = Best(value, row, within, point)
        self.trace.add(int(self.scenarios.count[0]), value, radius, self.bound)
        return True

    def improve(self, within: Slice, point: np.ndarray, gain: float = LITTLE_PROGRESS) -> None:
        """A better incumbent, by descents that begin on the ray from the factual through a point.

        As long as there is none, the first that is robust on the ray will do.
        """
        for _ in range(DESCENTS):
            start = self._on_ray(within, point)
            if start is None or self.deadline.passed:
                return
            known, none = int(self.scenarios.count[0]), math.isinf(self.best.value)
            point = start if none else self._descended(within, start, gain)
            self.scenarios.forget(known)
            if self.distance(within, point) >= self.best.value:
                return
            move = self.violation(within, point, self.network.margins[0], self.looks)
            if move is None:
                self.looks *= 2 if none else 1
                return
            if not len(move):
                self.take(within, point)
                return
            self.scenarios.add(move)

    def _on_ray(self, within: Slice, point: np.ndarray) -> np.ndarray | None:
        """The nearest point on the ray that a quick adversary does not break."""
        way = point - self.origin
        far = 1.0
        while self.broken(within, self._on(way, far)) is not None:
            far *= 1.3
            if far > LONGEST:
                return None
        near = far / 1.3 if far > 1.0 else 0.0
        for _ in range(PULLS):
            middle = (near + far) / 2
            near, far = (near, middle) if self.broken(within, self._on(way, middle)) is None else (middle, far)
        return self._on(way, far)

    def _descended(self, within: Slice, point: np.ndarray, gain: float) -> np.ndarray:
        """A cheaper point that a quick adversary does not break either.

        Each step solves a linear program near the last point, and goes as far towards its solution as is robust. Steps
        become shorter where they gain less than a share ``gain`` of the distance.
        """
        network, scenarios = self.network, self.scenarios
        layers, reach = tuple(within.layers), tuple(Reach(self.origin, self.low, self.high, WIDE, self.norm))
        trust, distance, aim = TRUST, self.distance(within, point), np.empty(len(point))
        while trust > TRUSTED * gain and not self.deadline.passed:
            margin, known = 2 * network.margins[0], scenarios.record()
            if not step(layers, reach, known, margin, trust, point, aim):
                trust /= 2
                continue
            near, move = 1.0, self.broken(within, aim)
            if move is not None:
                scenarios.add(move)
                near, far = 0.0, 1.0
                for _ in range(HALVINGS):
                    middle = (near + far) / 2
                    held = self.broken(within, point + middle * (aim - point)) is None
                    near, far = (middle, far) if held else (near, middle)
            trial = point + near * (aim - point)
            if (value := self.distance(within, trial)) < distance * (1 - gain):
                point, distance = trial, value
            else:
                trust /= 2
        return point

    def _on(self, way: np.ndarray, share: float) -> np.ndarray:
        return self.origin + np.clip(share * way, self.low, self.high)

    def start(self, within: Slice) -> None:
        """Rows of the wanted class near the factual, moved towards it."""
        network = self.network
        rows = network.space.encode(network.first_guess.rows)[:, network.columns]
        moves = rows - self.origin
        rows = rows[((moves >= self.low - COORDINATE_TIE) & (moves <= self.high + COORDINATE_TIE)).all(axis=1)]
        order = np.argsort([self.distance(within, row) for row in rows], kind="stable")
        for place in order[: STARTS if math.isinf(self.best.value) else 1]:
            self.improve(within, rows[place])

    def run(self) -> Outcome:
        network = self.network
        numbers, heap = count(0, -1), list[tuple[float, int, Slice | Node]]()
        heapq.heappush(heap, (0.0, next(numbers), self.slice((0,) * len(self.alternatives), 0)))
        looked, polished, search, wait = 0, math.inf, 1, EVERY
        while heap and not self.deadline.passed:
            key, _, here = heapq.heappop(heap)
            self.bound = max(self.bound, min(key, self.unsettled))
            if key >= self.best.value - self._enough():
                self.unsettled = min(self.unsettled, key)
                break
            if isinstance(here, Slice):
                for other in self.successors(here):
                    heapq.heappush(heap, (other.cost, next(numbers), other))
                heapq.heappush(heap, (key, next(numbers), self.root(here)))
                self.start(here)
                continue
            if self.best.value < polished:
                assert self.best.slice is not None
                assert self.best.point is not None
                self.improve(self.best.slice, self.best.point, OPTIMALITY_GAP)
                polished = self.best.value
            found = self._look(here)
            looked += 1
            found = replace(found, value=max(found.value, key))
            if found.code in (CANDIDATE, BRANCH) and (looked >= search or math.isinf(self.best.value)):
                before = self.best.value
                self.improve(here.slice, found.point)
                wait = EVERY if self.best.value < before else wait + RARER
                search = looked + wait
            for bound, rest in self._left(here, found):
                if bound < self.best.value - self._enough():
                    heapq.heappush(heap, (bound, next(numbers), rest))
                else:
                    self.unsettled = min(self.unsettled, bound)
        least = min(self.unsettled, self.best.value, *(entry[0] for entry in heap[:1]))
        return network.outcome(self.best.row, self.factual, max(self.bound, least), self.trace.lines)

    def _left(self, here: Node, found: Looked) -> list[tuple[float, Node]]:
        """What is left to look at of a node: nodes with their bounds."""
        if found.value >= self.best.value - self._enough():
            self.unsettled = min(self.unsettled, found.value)
        elif found.code == CANDIDATE:
            return self._answered(here, found)
        elif found.code == BRANCH:
            if found.excess.max() > 0:
                return self._branched(here, found)
            self.unsettled = min(self.unsettled, found.value)
        return []

    def _answered(self, here: Node, found: Looked) -> list[tuple[float, Node]]:
        """What is left of a node whose relaxed solution no known perturbation breaks: nothing where it is answered.

        That solution lies on the very threshold. The same program with a margin has a point beyond it, which is taken
        where no other perturbation breaks it; where it costs too much, a smaller margin is tried. Perturbations met
        since may break the solution itself, and bounds rule it out: the node is looked at again.
        """
        for margin in self.network.margins:
            kept = self._look(replace(here, point=found.point, way=None), margin)
            if kept.code == BRANCH and kept.excess.max() > 0:
                return self._branched(here, replace(kept, value=found.value))
            move = self.violation(here.slice, kept.point, margin) if kept.code == CANDIDATE else None
            if move is None:
                continue
            if len(move):
                self.scenarios.add(move)
                return [(found.value, here)]
            self.take(here.slice, kept.point)
            if found.value >= self.best.value - self._enough():
                break
        if self.scenarios.count[0] > found.known:
            return [(found.value, here)]
        if kept.code == EMPTY and self._look(here).code == EMPTY:
            return []
        self.unsettled = min(self.unsettled, found.value)
        return []

    def _enough(self) -> float:
        return OPTIMALITY_GAP / 2 * max(1.0, self.best.value) if math.isfinite(self.best.value) else 0.0

    def _budget(self, within: Slice) -> tuple[np.ndarray, np.ndarray, float]:
        """How far each number may go, and all of them together, in a point that is better than the incumbent.

        Without one, all that is near is looked at: no number farther than ``WIDE``; what is beyond costs more.
        """
        if math.isfinite(self.best.value):
            return self.low, self.high, self.best.value - (0.0 if self.norm == LINF else within.cost)
        low, high = np.maximum(self.low, -WIDE), np.minimum(self.high, WIDE)
        if (low > self.low).any() or (high < self.high).any():
            self.unsettled = min(self.unsettled, WIDE)
        return low, high, self.norm_of(np.maximum(-low, high)) + 1.0

    def _look(self, here: Node, margin: float = 0.0) -> Looked:
        """Bound a node, whose ends become tighter, by its relaxed solution; with a margin the bound is of no use."""
        network, scenarios = self.network, self.scenarios
        ends_low, ends_high, budget = self._budget(here.slice)
        scenarios.reserve(len(scenarios.moves) // 2)
        units = int(network.sizes[1])
        low, high = np.empty(units), np.empty(units)
        layers, shape = tuple(here.slice.layers), network.shifts.shape
        reach = tuple(Reach(self.origin, ends_low, ends_high, budget, self.norm))
        reached(layers, reach, low, high)
        here.bottom, here.top = np.maximum(low, here.bottom), np.minimum(high, here.top)
        low, high = np.maximum(here.bottom, here.low), np.minimum(here.top, here.high)
        solution = Solution(here.point.copy(), np.zeros(1, np.int64), np.zeros(shape))
        phases = np.zeros((len(scenarios.moves), *shape), np.int8)
        for place, phase in here.phases.items():
            phases[place] = phase
        enough = self._enough() if self.best.row is not None else 0.0
        code, value = node(
            layers, reach, tuple(Cuts(low, high, here.low, here.high)), scenarios.record(phases), tuple(self.ball),
            margin, enough, tuple(solution),
        )  # fmt: skip
        here.bottom, here.top = low, high
        value = max(self.norm_of([here.slice.cost, value]), here.value)
        if here.way is not None:
            gain = min(value, self.best.value) - here.value
            if math.isfinite(gain):
                self.pseudo_costs.learn(here.way, gain / here.excess)
        return Looked(code, value, solution.point, int(solution.scenario[0]), solution.excess, int(scenarios.count[0]))

    def _branched(self, here: Node, found: Looked) -> list[tuple[float, Node]]:
        """Two nodes with their bounds, on the unit that promises to raise both the most."""
        score, trials = self.pseudo_costs.scores(found.excess)
        best, chosen = -math.inf, list[tuple[float, Node]]()
        for layer, unit in trials.tolist():
            if self.deadline.passed:
                break
            pair = [(self._look(child).value, child) for child in self._children(here, found, layer, unit)]
            least = BRANCHING_GAIN * float(found.excess[layer, unit])
            merit = math.prod(max(min(bound, self.best.value) - found.value, least) for bound, _ in pair)
            if merit > best:
                best, chosen = merit, pair
        score[tuple(trials.T)] = -1.0
        layer, unit = (int(place) for place in np.unravel_index(int(score.argmax()), score.shape))
        if score[layer, unit] > best:
            chosen = [(found.value, child) for child in self._children(here, found, layer, unit)]
        return chosen

    def _children(self, here: Node, found: Looked, layer: int, unit: int) -> list[Node]:
        """A node with a unit decided either way."""
        scenario, error = found.scenario, float(found.excess[layer, unit])
        if layer > 0:
            decided = [(here.low, here.high, {**here.phases, (scenario, layer, unit): sign}) for sign in (1, -1)]
        else:
            cut = -float(self.network.weights[0, unit, : len(self.origin)] @ self.scenarios.moves[scenario])
            low, high = here.low.copy(), here.high.copy()
            low[unit], high[unit] = cut, cut
            decided = [(low, here.high, here.phases), (here.low, high, here.phases)]
        return [
            Node(here.slice, found.point, *ends, here.bottom, here.top, found.value, (layer, unit, side), error)
            for side, ends in enumerate(decided)
        ]
