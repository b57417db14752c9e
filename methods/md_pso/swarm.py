"""Swarms of MD-PSO: how particles move, and how one call of the model scores a generation of all of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from methods.md_pso.actions import Actions
from methods.md_pso.oracle import INVALID
from methods.md_pso.parameters import Parameters

ALIKE = 9  # decimals to which two scaled points are the same


class Swarms:
    """One swarm for each of some factuals, all moved and scored together.

    Attributes
    ----------
    position
        Latent, shape (swarms, particles, columns).
    points
        The permitted points nearest to the positions, shape (swarms * particles, columns).
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
        self.best = self.position.copy()
        self.best_cost = np.full(self.shape[:2], np.inf)
        self.points = actions.snap(self.position.reshape(-1, self.shape[2]), self.owner)
        self.valid = np.zeros(len(self.owner), dtype=bool)
        self.cost = np.full(len(self.owner), np.inf)
        self.best_points, self.best_valid = self.points.copy(), self.valid.copy()
        self.age = 0
        self.met: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []  # valid points, their costs and owners
        self.features = max(len(actions.oracle.problem.space.names), 1)

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
        leader = self.best[np.arange(self.shape[0]), self.best_cost.argmin(axis=1)][:, None]
        velocity = parameters.inertia * self.velocity
        velocity += parameters.cognitive * r1 * (self.best - self.position)
        velocity += parameters.social * r2 * (leader - self.position)
        deviation = (self.position - self.position.mean(axis=1, keepdims=True)) * self.actions.continuous
        velocity += parameters.diversity * r3 * deviation
        self.velocity = np.clip(velocity, -self.limit, self.limit)
        self.position = np.clip(self.position + self.velocity, self.low, self.high)

    def _score(self) -> None:
        self.points = self.actions.snap(self.position.reshape(-1, self.shape[2]), self.owner)
        self.valid, gap = self.actions.judge(self.points, self.owner)
        self.cost = self._weigh(gap)
        better = self.cost < self.best_cost.ravel()
        self.best_points[better], self.best_valid[better] = self.points[better], self.valid[better]
        grid = better.reshape(self.shape[:2])
        self.best[grid] = self.position[grid]
        self.best_cost[grid] = self.cost[better]
        if self.parameters.archive and self.parameters.selection != "personal" and self.valid.any():
            self.met.append((self.points[self.valid], self.cost[self.valid], self.owner[self.valid]))

    def _weigh(self, gap: np.ndarray) -> np.ndarray:
        """Costs of the points, (3) or by Deb's rule, shape (rows,)."""
        merit = self.merit(self.actions.displacement(self.points, self.owner))
        if self.parameters.cost == "paper":
            return np.where(self.valid, 0.0, gap) + merit
        return np.where(self.valid, merit, INVALID + gap)

    def merit(self, moved: np.ndarray) -> np.ndarray:
        """The cost by which valid points are compared, shape (rows,), of the features' displacements."""
        parameters, count = self.parameters, (moved > 0).sum(axis=1)
        proximity = moved.sum(axis=1) / self.features
        if parameters.cost == "paper":
            return proximity + count
        return parameters.proximity_weight * proximity + parameters.sparsity_weight * count / self.features

    def verdict(self, points: np.ndarray, owner: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Which points the model predicts as the target, bool, and the cost of each, both of shape (points,)."""
        if not len(points):
            return np.zeros(0, dtype=bool), np.zeros(0)
        moved = self.actions.displacement(points, owner)
        valid, _ = self.actions.judge(points, owner, strict=True)
        return valid & (moved > 0).any(axis=1), self.merit(moved)

    def candidates(self) -> tuple[np.ndarray, np.ndarray]:
        """Distinct valid points to select from, each swarm's best first, and their owners."""
        if self.parameters.selection == "personal":
            ok = self.best_valid
            found = [(self.best_points[ok], self.best_cost.ravel()[ok], self.owner[ok])]
        elif not self.parameters.archive or not self.met:
            found = [(self.points[self.valid], self.cost[self.valid], self.owner[self.valid])]
        else:
            found = self.met
        points, cost, owner = (np.concatenate(parts) for parts in zip(*found, strict=True))
        places = [np.flatnonzero(owner == s) for s in range(self.shape[0])]
        most = None if self.parameters.pull_back else self.parameters.archive or None
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
