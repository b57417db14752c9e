"""Networks of ReLUs: the nearest invalid point by an exact adversary called at ever smaller radii."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from harness.certificate.balls import Ball, Budget, Certificate
from harness.certificate.linear import slopes
from harness.certificate.margins import Margin
from harness.certificate.network_kernels import MORE, PROVEN, VIOLATED, Layers, Region, attack, forward
from harness.core.classifier import Classifier
from harness.core.space import Space
from harness.core.tolerances import RADIUS
from harness.solvers.scaling import balanced

NODES = 20  # boxes of phases looked at between two looks at the clock
FIRST, LAST = 0.0625, 64.0  # radii tried where none is given: doubled from the first up to the last
HALVINGS = 60


class Network:
    """One margin of a feed-forward network of ReLUs."""

    def __init__(self, space: Space, classifier: Classifier, margin: Margin) -> None:
        estimator = classifier.estimator
        self.classifier = classifier
        self.names = [feature.name for feature in space.features if feature.numeric]
        self.slopes = slopes(space, classifier, self.names)
        self.layers = [(w.T, b) for w, b in zip(estimator.coefs_[:-1], estimator.intercepts_[:-1], strict=True)]
        outgoing = estimator.coefs_[-1] @ margin.weights
        shift = float(estimator.intercepts_[-1] @ margin.weights + margin.constant)
        if not self.layers:  # an affine network: one unit that is always on for either sign of the sum
            both = np.vstack([outgoing, -outgoing])
            self.layers = [(both, np.zeros(2))]
            outgoing = np.array([1.0, -1.0])
        self.outgoing, self.shift = outgoing, shift
        compile_all()

    def nearest(
        self, row: Mapping[str, Any], ball: Ball, within: float, budget: Budget, valid: Callable[..., bool]
    ) -> Certificate:
        """As ``Search.nearest``."""
        attacker = Attacker(self, row, ball)
        if not attacker.size:
            return Certificate(within, math.inf)
        proven, radius = 0.0, min(within, FIRST) if math.isinf(within) else within
        violated = math.inf
        while math.isinf(violated):
            moves = attacker.ask(radius, budget)
            if moves is None:
                return Certificate(proven, math.inf)
            if not len(moves):
                proven = radius
                if radius >= min(within, LAST):
                    return Certificate(proven, math.inf)
                radius = min(2 * radius, within)
                continue
            violated = attacker.shrunk(moves)
        for step in range(HALVINGS if budget.exact else 0):
            if violated - proven <= RADIUS * violated:
                break
            # A shorter move is likely to be the shortest: ask just below it first, then halve.
            radius = violated * (1 - RADIUS) if step < 4 else (proven + violated) / 2
            moves = attacker.ask(radius, budget)
            if moves is None:
                break
            if len(moves):
                violated = min(attacker.shrunk(moves), radius)
            else:
                proven = radius
        return Certificate(proven, violated)


def compile_all() -> None:
    """Have the kernels compiled, by a network of one unit, before any clock runs."""
    one, sizes, move = np.ones(1), np.ones(2, np.int64), np.zeros(1)
    layers = tuple(Layers(np.ones((1, 1, 1)), np.ones((1, 1)), sizes, one, 1.0))
    stack, depth = np.zeros((3, 1, 1), np.int8), np.ones(1, np.int64)
    attack(layers, tuple(Region(-one, one, 1.0, False)), stack, depth, NODES, move)
    forward(layers, move)


class Attacker:
    """The network as a function of the moves, in units, around one row."""

    def __init__(self, network: Network, row: Mapping[str, Any], ball: Ball) -> None:
        used = [(column, name) for column, name in enumerate(network.names) if name in ball.units]
        room = np.array([ball.room(name, float(row[name])) for _, name in used]).reshape(-1, 2)
        self.down, self.up = room[:, 0], room[:, 1]
        self.size = len(used)
        self.euclidean = ball.norm == "l2"
        inputs = network.classifier.vector(row)[0]
        rates = network.slopes[:, [column for column, _ in used]] * np.array([ball.units[name] for _, name in used])
        weights, shifts = network.layers[0]
        layers = [(weights @ rates, weights @ inputs + shifts), *network.layers[1:]]
        layers, last, constant = balanced(layers, network.outgoing, network.shift)
        sizes = np.array([self.size, *(len(b) for _, b in layers)])
        padded = np.zeros((len(layers), int(sizes[1:].max()), int(sizes[:-1].max())))
        added = np.zeros(padded.shape[:2])
        for k, (w, b) in enumerate(layers):
            padded[k, : w.shape[0], : w.shape[1]], added[k, : len(b)] = w, b
        self.layers = Layers(padded, added, sizes, last, constant)
        self.units = int(sizes[1:].sum())

    def ask(self, radius: float, budget: Budget) -> np.ndarray | None:
        """Moves within a radius whose margin is at most 0; none at all where that is proven; None: not settled."""
        stack = np.zeros((self.units + 2, *self.layers.shifts.shape), np.int8)
        depth, moves = np.ones(1, np.int64), np.zeros(self.size)
        low, high = -np.minimum(radius, self.down), np.minimum(radius, self.up)
        layers, region = tuple(self.layers), tuple(Region(low, high, radius, self.euclidean))
        while True:
            code = attack(layers, region, stack, depth, NODES, moves)
            if code == VIOLATED:
                return moves
            if code == PROVEN:
                return moves[:0]
            if code != MORE or budget.spent(NODES * Budget.PROGRAM):
                return None

    def shrunk(self, moves: np.ndarray) -> float:
        """The norm of the shortest invalid point found on the way to one."""
        low, high, layers = 0.0, 1.0, tuple(self.layers)
        for _ in range(HALVINGS):
            middle = (low + high) / 2
            wrong = forward(layers, middle * moves) <= 0
            low, high = (low, middle) if wrong else (middle, high)
        return high * float(np.linalg.norm(moves) if self.euclidean else np.abs(moves).max())
