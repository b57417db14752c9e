"""Swarms of MD-PSO: how particles move, and how one call of the model scores a generation of all of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from methods.md_pso.actions import Actions
from methods.md_pso.oracle import INVALID
from methods.md_pso.parameters import Parameters

ALIKE = 9  # decimals to which two scaled points are the same


@dataclass
class Points:
    """What is known of the particles' permitted points, all swarms' one below the other.

    Of shapes (swarms * particles, columns), (swarms * particles,) and, bool, (swarms * particles,).
    """

    scaled: np.ndarray
    cost: np.ndarray
    valid: np.ndarray

    @classmethod
    def unscored(cls, scaled: np.ndarray) -> Points:
        return cls(scaled, np.full(len(scaled), np.inf), np.zeros(len(scaled), dtype=bool))

    def improve(self, other: Points, valid_first: bool) -> np.ndarray:
        """Take the better points of another generation; returns which, bool, shape (swarms * particles,).

        Those that cost less; where ``valid_first``, a valid one instead of an invalid one in any case.
        """
        better: np.ndarray = other.cost < self.cost
        if valid_first:
            better = np.where(other.valid == self.valid, better, other.valid)
        self.scaled[better], self.cost[better] = other.scaled[better], other.cost[better]
        self.valid[better] = other.valid[better]
        return better


class Swarms:
    """One swarm for each of some factuals, all moved and scored together.

    Attributes
    ----------
    position
        Latent, shape (swarms, particles, columns).
    memory
        The latent position of each particle's own best point, shape (swarms, particles, columns).
    points, best
        The permitted points nearest to the positions, and the particles' own best ones.
    age
        Generations scored so far.
    """

    def __init__(self, parameters: Parameters, actions: Actions, rngs: Sequence[np.random.Generator]) -> None:
        self.parameters, self.actions, self.rngs = parameters, actions, rngs
        self.low, self.high = actions.low[:, None], actions.high[:, None]
        self.owner = np.repeat(np.arange(len(rngs)), parameters.particles)
        self.shape = (len(rngs), parameters.particles, actions.low.shape[1])
        self.limit = (self.high - self.low) * np.where(actions.continuous, parameters.clamp, 1.0)
        start, push = (self._draw() for _ in range(2))
        self.position = self.low + start * (self.high - self.low)
        self.velocity = self.limit * (2.0 * push - 1.0)
        self.memory = self.position.copy()
        snapped = actions.snap(self.position.reshape(-1, self.shape[2]), self.owner)
        self.points, self.best = Points.unscored(snapped), Points.unscored(snapped.copy())
        self.age = 0
        self.met: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []  # valid points, their costs and owners

    def _draw(self) -> np.ndarray:
        """Uniform on [0, 1], each swarm's from its own generator."""
        return np.stack([rng.random(self.shape[1:]) for rng in self.rngs])

    def step(self) -> None:
        """Score the next generation; the first is that of the start."""
        if self.age:
            self._move()
        self._score()
        self.age += 1

    def _move(self) -> None:
        """Equation (1)."""
        parameters = self.parameters
        r1, r2, r3 = (self._draw() for _ in range(3))
        if parameters.draws == "paper":
            r1, r2 = r1 * parameters.cognitive, r2 * parameters.social
            r3 = parameters.cognitive + r3 * (parameters.social - parameters.cognitive)
        leading = self._leading()
        leader = self.memory[np.arange(self.shape[0]), leading][:, None]
        velocity = parameters.inertia * self.velocity
        velocity += parameters.cognitive * r1 * (self.memory - self.position)
        velocity += parameters.social * r2 * (leader - self.position)
        deviation = (self.position - self.position.mean(axis=1, keepdims=True)) * self.actions.continuous
        velocity += parameters.diversity * r3 * deviation
        self.velocity = np.clip(velocity, -self.limit, self.limit)
        self.position = np.clip(self.position + self.velocity, self.low, self.high)

    def _leading(self) -> np.ndarray:
        """The particle of each swarm with the best point: by Deb's rule a valid one where there is any; (swarms,)."""
        cost, valid = self.best.cost.reshape(self.shape[:2]), self.best.valid.reshape(self.shape[:2])
        if self.parameters.cost == "deb":
            cost = np.where(valid | ~valid.any(axis=1, keepdims=True), cost, np.inf)
        return cost.argmin(axis=1)

    def _score(self) -> None:
        scaled = self.actions.snap(self.position.reshape(-1, self.shape[2]), self.owner)
        valid, gap = self.actions.judge(scaled, self.owner)
        self.points = points = Points(scaled, self._weigh(scaled, valid, gap), valid)
        grid = self.best.improve(points, self.parameters.cost == "deb").reshape(self.shape[:2])
        self.memory[grid] = self.position[grid]
        if self.parameters.archive and self.parameters.selection != "personal" and valid.any():
            self.met.append(self._valid(points))

    def _valid(self, points: Points) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The valid ones among points, their costs and owners."""
        return points.scaled[points.valid], points.cost[points.valid], self.owner[points.valid]

    def _weigh(self, points: np.ndarray, valid: np.ndarray, gap: np.ndarray) -> np.ndarray:
        """Costs of points, (3) or by Deb's rule, which compares those of valid points, and of others, by themselves."""
        merit = self.merit(points, self.owner)
        if self.parameters.cost == "paper":
            return np.where(valid, 0.0, gap) + merit
        return np.where(valid, merit, INVALID + gap)

    def merit(self, points: np.ndarray, owner: np.ndarray) -> np.ndarray:
        """The cost by which valid points are compared, shape (rows,)."""
        moved = self.actions.displacement(points, owner)
        parameters, count = self.parameters, (moved > 0).sum(axis=1)
        features = max(len(self.actions.oracle.problem.space.names), 1)
        proximity = self.actions.priced(points, owner, moved).sum(axis=1) / features
        if parameters.cost == "paper":
            return proximity + count
        return parameters.proximity_weight * proximity + parameters.sparsity_weight * count / features

    def verdict(self, points: np.ndarray, owner: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Which points the model predicts as the target, bool, and the cost of each, both of shape (points,)."""
        if not len(points):
            return np.zeros(0, dtype=bool), np.zeros(0)
        moved = self.actions.displacement(points, owner)
        valid, _ = self.actions.judge(points, owner, strict=True)
        return valid & (moved > 0).any(axis=1), self.merit(points, owner)

    def candidates(self, most: int | None) -> tuple[np.ndarray, np.ndarray]:
        """Valid points to select from, as ``best_of`` has them."""
        if self.parameters.selection == "personal":
            found = [self._valid(self.best)]
        elif not self.parameters.archive or not self.met:
            found = [self._valid(self.points)]
        else:
            found = self.met
        points, _, owner = (np.concatenate(parts) for parts in zip(*found, strict=True))
        return self.best_of(points, owner, most)

    def best_of(self, points: np.ndarray, owner: np.ndarray, most: int | None) -> tuple[np.ndarray, np.ndarray]:
        """Distinct ones of valid points, each swarm's best first and no more than ``most``, and their owners."""
        cost, places = self.merit(points, owner), [np.flatnonzero(owner == s) for s in range(self.shape[0])]
        kept = np.concatenate([distinct(points, mine[np.argsort(cost[mine], kind="stable")], most) for mine in places])
        return points[kept], owner[kept]


def distinct(points: np.ndarray, order: np.ndarray, most: int | None = None) -> np.ndarray:
    """The first of equal points, in an order of rows, and of them no more than ``most``; int."""
    known: set[bytes] = set()
    kept: list[int] = []
    for row in order.tolist():
        key = (np.round(points[row], ALIKE) + 0.0).tobytes()  # no -0.0, whose bytes are others
        if key not in known:
            known.add(key)
            kept.append(row)
            if len(kept) == most:
                break
    return np.array(kept, dtype=int)
