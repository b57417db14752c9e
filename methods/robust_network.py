"""Robust counterfactuals of ReLU networks by a branch and bound of their own (``methods/robust_kernels.py``).

Nodes hold bounds of the first layer's sums and phases of later units; each is a linear program in x alone, over the
perturbations found so far. What a quick adversary cannot break, an exact one breaks or proves; both are the search's
own. A point is taken once the harness's checker, which has another, has certified its decoded row too.
"""

from __future__ import annotations

import heapq
import math
import time
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import count
from typing import Any, cast

import numpy as np
import pandas as pd

from harness.classifier import Affine
from harness.errors import UnsupportedError
from harness.method import Deadline
from harness.problem import Kind, Problem
from methods.milp.target import raw_interval
from methods.perturbation import OPTIMAL, Outcome, Settings
from methods.robust_kernels import BRANCH, CANDIDATE, L1, LINF, MORE, PROVEN, VIOLATED, node, quick, reached, worst
from methods.robust_program import ENOUGH, WIDE, Adversarial

SCENARIOS = 64  # perturbations kept for one factual
NODES = 100  # of the adversary between two looks at the clock
PULLS = 14  # halvings of a point's way back to the factual
LONGEST = 8.0  # times as far from the factual as a relaxed solution, in search of a robust point on its line
EVERY = 10  # nodes between two such searches
ROOM = 1e-7  # by which a point is kept robust beyond rho, where the search takes one from a line


class Network(Adversarial):
    """Exact for networks of ReLUs over numbers, the distances ``l1`` and ``linf`` and no price of changes.

    Anything else is Algorithm 1's to solve.
    """

    def __init__(self, problem: Problem, settings: Settings) -> None:
        super().__init__(problem, settings)
        estimator = problem.classifier.estimator
        free = all(f.kind is Kind.CONTINUOUS for f in problem.space.features if self.perturbs(f.name) or f.numeric)
        plain = settings.distance in {"l1", "linf"} and not settings.alpha and settings.max_changes is None
        plain = plain and settings.hull == "none"
        fixed = all(f.numeric for f in problem.space.features) and not any(f.special for f in problem.space.features)
        self.own = free and plain and fixed and len(estimator.coefs_) > 1
        if self.own:
            self._read(problem)
            _Search(self, problem.train.iloc[0].to_dict(), Deadline.after(math.inf)).compile()

    def perturbs(self, name: str) -> bool:
        """Whether perturbations move a feature."""
        return bool(dict(zip(self.problem.space.names, self.perturbation.moved, strict=True))[name])

    def _read(self, problem: Problem) -> None:
        """The network as a function of the scaled columns, its output signed so that more is better."""
        estimator, interval = problem.classifier.estimator, raw_interval(problem)
        names = problem.space.names
        rates, offset = np.zeros((len(self.slopes), len(names))), np.zeros(len(self.slopes))
        for row, (source, slope) in enumerate(zip(problem.classifier.inputs, self.slopes, strict=True)):
            if not isinstance(source, Affine):
                raise UnsupportedError(f"{type(source).__name__} of {source.feature} cannot be embedded yet.")
            rates[row, names.index(source.feature)] = slope
            offset[row] = (problem.space[source.feature].scale[0] - source.shift) / source.unit
        layers = list(zip((w.T for w in estimator.coefs_[:-1]), estimator.intercepts_[:-1], strict=True))
        weights, shifts = layers[0]
        layers[0] = (weights @ rates, weights @ offset + shifts)
        self.sizes = np.array([len(names), *(len(b) for _, b in layers)])
        width = int(self.sizes[1:].max())
        self.weights = np.zeros((len(layers), width, int(self.sizes[:-1].max())))
        self.shifts = np.zeros((len(layers), width))
        for k, (w, b) in enumerate(layers):
            self.weights[k, : w.shape[0], : w.shape[1]], self.shifts[k, : len(b)] = w, b
        sign = float(interval.sense)
        self.last = sign * estimator.coefs_[-1][:, 0]
        end = interval.low if sign > 0 else interval.high
        self.constant = float(sign * (estimator.intercepts_[-1][0] - end))
        self.moving = self.perturbation.moved

    @property
    def layers(self) -> tuple[Any, ...]:
        return self.weights, self.shifts, self.sizes, self.last, self.constant

    def solve(self, row: Mapping[str, Any], deadline: Deadline) -> Outcome:
        return _Search(self, row, deadline).run() if self.own else super().solve(row, deadline)


@dataclass
class _Node:
    """Bounds of the first layer's sums (infinite where nothing was decided), and phases of later units by scenario."""

    low: np.ndarray
    high: np.ndarray
    phases: dict[tuple[int, int, int], int]


class _Search:
    """The search for one factual."""

    def __init__(self, network: Network, row: Mapping[str, Any], deadline: Deadline) -> None:
        self.network, self.deadline = network, deadline
        settings = network.settings
        self.rho, self.euclidean = settings.radius, settings.norm == "l2"
        self.norm = LINF if settings.distance == "linf" else L1
        self.factual: pd.DataFrame = network.frame(row)
        self.origin = network.space.encode(self.factual)[0]
        low, high = network.space.reach(self.factual)
        self.low, self.high = np.minimum(low - self.origin, 0.0), np.maximum(high - self.origin, 0.0)
        self.moves = np.zeros((SCENARIOS, len(self.origin)))
        self.count = np.ones(1, np.int64)
        self.value, self.row = math.inf, None
        self.trace: list[dict[str, Any]] = []
        self.began = time.monotonic()
        self.attacking = 0.0
        self.bound = 0.0

    def compile(self) -> None:
        """Call every kernel once."""
        root = _Node(np.full(int(self.network.sizes[1]), -math.inf), np.full(int(self.network.sizes[1]), math.inf), {})
        self.violation(self.origin)
        self.broken(self.origin)
        self._look(root, self.origin.copy(), np.zeros(3, np.int64))

    def distance(self, point: np.ndarray) -> float:
        gaps = np.abs(point - self.origin)
        return float(gaps.max() if self.norm == LINF else gaps.sum())

    def broken(self, point: np.ndarray) -> bool:
        """Whether a quick adversary finds a margin below 0."""
        network, move = self.network, np.zeros(len(self.origin))
        kernel: Any = quick
        least = kernel(point, self.rho, self.euclidean, network.moving, *network.layers, move)
        return bool(least < network.settings.margin)

    def violation(self, point: np.ndarray) -> np.ndarray | None:
        """A perturbation that takes half a point's margin, of size 0 where none breaks it; None: not settled."""
        network, began = self.network, time.monotonic()
        sizes, kernel = network.sizes, cast(Any, worst)
        stack, depth = np.zeros((int(sizes[1:].sum()) + 2, *network.shifts.shape), np.int8), np.ones(1, np.int64)
        move, code = np.zeros(len(self.origin)), MORE
        while code == MORE and not self.deadline.passed:
            code = kernel(
                stack, depth, point, self.rho, self.euclidean, network.moving, *network.layers,
                network.settings.margin / 2, NODES, move,
            )  # fmt: skip
        self.attacking += time.monotonic() - began
        if code == PROVEN:
            return move[:0]
        return move if code == VIOLATED else None

    def take(self, point: np.ndarray) -> bool:
        """A new incumbent, once the harness's own checker has certified the decoded row."""
        network = self.network
        frame = network.space.decode(point, like=self.factual)
        row = frame.to_dict("records")[0]
        value = network.value(row, self.factual)
        if value >= self.value:
            return False
        radius = network.judge.radius(row, self.deadline.left)
        if radius < self.rho - ENOUGH:
            return False
        self.value, self.row = value, row
        now = time.monotonic() - self.began
        self.trace.append(
            {
                "iteration": int(self.count[0]), "distance": value, "radius": radius, "bound": self.bound,
                "master_seconds": now - self.attacking, "adversary_seconds": self.attacking,
            }
        )  # fmt: skip
        return True

    def along(self, point: np.ndarray) -> None:
        """The nearest robust point on the ray from the factual through a point, where a quick adversary sees one."""
        way = point - self.origin
        far = 1.0
        while self.broken(self._on(way, far)):
            far *= 1.3
            if far > LONGEST:
                return
        near = far / 1.3 if far > 1.0 else 0.0
        for _ in range(PULLS):
            middle = (near + far) / 2
            near, far = (middle, far) if self.broken(self._on(way, middle)) else (near, middle)
        trial = self._on(way, far)
        if self.distance(trial) < self.value:
            move = self.violation(trial)
            if move is not None and not len(move):
                self.take(trial)
            elif move is not None:
                self.add(move)

    def _on(self, way: np.ndarray, share: float) -> np.ndarray:
        return self.origin + np.clip(share * way, self.low, self.high)

    def add(self, move: np.ndarray) -> None:
        if self.count[0] < SCENARIOS:
            self.moves[self.count[0]] = move
            self.count[0] += 1

    def start(self) -> None:
        """Rows of the wanted class near the factual, moved towards it."""
        network = self.network
        rows = network.space.encode(network.starts.rows)
        rows = rows[((rows - self.origin >= self.low - 1e-9) & (rows - self.origin <= self.high + 1e-9)).all(axis=1)]
        order = np.argsort([self.distance(row) for row in rows], kind="stable")
        for place in order[:3]:
            self.along(rows[place])

    def run(self) -> Outcome:
        network = self.network
        self.start()
        units = int(network.sizes[1])
        infinite = np.full(units, math.inf)
        numbers, heap = count(), list[tuple[float, int, _Node]]()
        heapq.heappush(heap, (0.0, next(numbers), _Node(-infinite, infinite, {})))
        point, chosen = np.zeros(len(self.origin)), np.zeros(3, np.int64)
        looked = 0
        unsettled = math.inf
        while heap and not self.deadline.passed:
            key, _, here = heapq.heappop(heap)
            self.bound = max(self.bound, min(key, unsettled))
            if key >= self.value - self._enough():
                heap.clear()
                break
            code, value = self._look(here, point, chosen)
            looked += 1
            value = max(value, key)
            if code in (CANDIDATE, BRANCH) and (looked % EVERY == 1 or math.isinf(self.value)):
                self.along(point)
            if value >= self.value - self._enough():
                continue
            if code == CANDIDATE:
                move = self.violation(point)
                if move is None or (len(move) and self.count[0] >= SCENARIOS):
                    unsettled = min(unsettled, value)
                elif len(move):
                    self.add(move)
                    heapq.heappush(heap, (value, next(numbers), here))
                elif not self.take(point.copy()) and self.value > value + self._enough():
                    unsettled = min(unsettled, value)
            elif code == BRANCH:
                for child in self._children(here, chosen):
                    heapq.heappush(heap, (value, next(numbers), child))
                if chosen[1] < 0:
                    unsettled = min(unsettled, value)
        least = min([unsettled, self.value, *(entry[0] for entry in heap[:1])])
        return network.outcome(self.row, self.factual, max(self.bound, least), self.trace)

    def _enough(self) -> float:
        return OPTIMAL / 2 * max(1.0, self.value) if math.isfinite(self.value) else 0.0

    def _look(self, here: _Node, point: np.ndarray, chosen: np.ndarray) -> tuple[int, float]:
        network = self.network
        budget = self.value if math.isfinite(self.value) else WIDE
        units = int(network.sizes[1])
        low, high = np.empty(units), np.empty(units)
        weights, shifts, sizes, last, constant = network.layers
        reached(self.origin, self.low, self.high, budget, self.norm, weights, shifts, sizes, low, high)
        split = np.isfinite(here.low) | np.isfinite(here.high)
        low, high = np.maximum(low, here.low), np.minimum(high, here.high)
        phases = np.zeros((SCENARIOS, *shifts.shape), np.int8)
        for place, phase in here.phases.items():
            phases[place] = phase
        return node(
            self.origin, self.low, self.high, budget, self.norm, low, high, split, phases, self.moves, self.count,
            self.rho, self.euclidean, network.moving, weights, shifts, sizes, last, constant,
            network.settings.margin, self._enough() if self.row is not None else 0.0, point, chosen,
        )  # fmt: skip

    def _children(self, here: _Node, chosen: np.ndarray) -> list[_Node]:
        scenario, layer, unit = (int(part) for part in chosen)
        if layer < 0:
            return []
        if layer > 0:
            return [_Node(here.low, here.high, {**here.phases, (scenario, layer, unit): sign}) for sign in (1, -1)]
        network = self.network
        cut = -float(network.weights[0, unit, : len(self.origin)] @ self.moves[scenario])
        low, high = here.low.copy(), here.high.copy()
        low[unit], high[unit] = cut, cut
        return [_Node(low, here.high, here.phases), _Node(here.low, high, here.phases)]
