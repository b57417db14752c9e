"""Swarms for MD-PSO: what particles may hold, what the model says of a whole generation of them, how they move."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from harness.core.errors import UnsupportedError
from harness.core.inputs import Affine, Input, by_category
from harness.core.problem import Problem
from harness.core.space import SAME, Feature, Kind
from harness.core.target import Interval, Label, Probability

if TYPE_CHECKING:
    from methods.md_pso import MdPso


INVALID = 1e3  # what any invalid point costs beside its distance from the wanted scores: more than any valid one
ALIKE = 9  # decimals to which two scaled points are the same
ASKED = 300  # training rows on which scores and predictions are compared


class Oracle:
    """A problem in the columns of a few active features, the others as in a factual: one prediction for many rows.

    Points are rows of the active features' scaled columns, in the order of ``features``; ``owner`` says which of some
    factuals each row belongs to.

    Whether a row is valid is read off its score, so that a row costs one prediction; where scores and predictions
    disagree on training rows, the model is asked for both.
    """

    def __init__(self, problem: Problem, active: Sequence[str]) -> None:
        space = problem.space
        self.problem, self.classifier = problem, problem.classifier
        self.features = tuple(space[name] for name in active)
        ends = np.cumsum([0, *(feature.width for feature in self.features)])
        self.slices = tuple(slice(int(start), int(end)) for start, end in pairwise(ends))
        where = dict(zip(space.names, space.slices, strict=True))
        self.places = np.array([c for name in active for c in range(where[name].start, where[name].stop)], dtype=int)
        self.numeric = np.array([s.start for f, s in self._each() if f.numeric], dtype=int)
        numbers = [f for f in self.features if f.numeric]
        self.shift = np.array([f.scale[0] for f in numbers])
        self.range = np.array([f.range for f in numbers])
        self.whole = np.array([f.kind is Kind.INTEGER for f in numbers], dtype=bool)
        self.opaque = not self._look_inside()
        self.strict = False
        rows = problem.train.iloc[:ASKED]
        held, _ = self._read(self.classifier.score(rows))
        self.strict = bool((held != problem.valid(rows)).any())

    def _each(self) -> list[tuple[Feature, slice]]:
        return list(zip(self.features, self.slices, strict=True))

    def _look_inside(self) -> bool:
        """Find out how active features become the estimator's inputs; False where only frames will do."""
        self.affine: list[tuple[int, int, Affine]] = []  # input, place among the numbers, map
        self.mapped: list[tuple[int, int, Input]] = []
        self.tables: list[tuple[slice, list[int], np.ndarray]] = []  # columns, inputs, values by category
        if self.classifier.opaque is not None:
            return False
        inputs: dict[str, list[int]] = {}
        for column, source in enumerate(self.classifier.inputs):
            inputs.setdefault(source.feature, []).append(column)
        place = 0
        for feature, columns in self._each():
            sources = [(i, self.classifier.inputs[i]) for i in inputs.get(feature.name, ())]
            if feature.numeric:
                for i, source in sources:
                    if type(source) is Affine:
                        self.affine.append((i, place, source))
                    else:
                        self.mapped.append((i, place, source))
                place += 1
            elif sources:
                try:
                    table = np.column_stack([by_category(feature, source) for _, source in sources])
                except UnsupportedError:
                    return False
                self.tables.append((columns, [i for i, _ in sources], table))
        self.affine_inputs = np.array([i for i, _, _ in self.affine], dtype=int)
        self.affine_places = np.array([place for _, place, _ in self.affine], dtype=int)
        self.affine_shift = np.array([source.shift for _, _, source in self.affine])
        self.affine_unit = np.array([source.unit for _, _, source in self.affine])
        return True

    def encode(self, row: Mapping[str, Any]) -> np.ndarray:
        """Decoded values as a point, shape (columns,)."""
        point = np.zeros(len(self.places))
        for feature, columns in self._each():
            if feature.numeric:
                point[columns] = (float(row[feature.name]) - feature.scale[0]) / feature.range
            elif feature.kind is Kind.CATEGORICAL:
                point[columns.start + feature.codes([row[feature.name]])[0]] = 1.0
            else:
                point[columns] = feature.codes([row[feature.name]]) / max(len(feature.categories) - 1, 1)
        return point

    def values(self, points: np.ndarray) -> np.ndarray:
        """The numbers among the features, in original units, shape (rows, numbers)."""
        values = self.shift + points[:, self.numeric] * self.range
        return np.where(self.whole, np.rint(values), values)

    def codes(self, points: np.ndarray, columns: slice) -> np.ndarray:
        """Category codes of a feature, shape (rows,)."""
        block = points[:, columns]
        feature = self.features[self.slices.index(columns)]
        if feature.kind is Kind.CATEGORICAL:
            return block.argmax(axis=1)
        return np.rint(block[:, 0] * (len(feature.categories) - 1)).astype(int)

    def judge(
        self, points: np.ndarray, values: np.ndarray, base: np.ndarray | pd.DataFrame, strict: bool = False
    ) -> tuple[np.ndarray, ...]:
        """Per row, whether it is valid, bool, and how far its score is from the wanted ones, at least 0.

        Parameters
        ----------
        values
            As ``values`` gives them.
        base
            The row's factual as the estimator takes it, written to; a frame where nobody can look inside the model.
        strict
            Whether to ask for predictions besides scores, in any case.
        """
        if isinstance(base, pd.DataFrame):
            names = [f.name for f in self.features if f.numeric]
            types = self.problem.train.dtypes
            changed = {name: values[:, i].astype(types[name]) for i, name in enumerate(names)}
            for feature, columns in self._each():
                if not feature.numeric:
                    held = pd.Series(list(feature.categories), dtype=types[feature.name])
                    changed[feature.name] = held.take(self.codes(points, columns)).to_numpy()
            frame = base.assign(**changed)
            held, gap = self._read(self.classifier.score(frame))
            return (self.problem.valid(frame) if strict or self.strict else held), gap
        base[:, self.affine_inputs] = (values[:, self.affine_places] - self.affine_shift) / self.affine_unit
        for i, place, source in self.mapped:
            base[:, i] = source(pd.Series(values[:, place]))
        for columns, inputs, table in self.tables:
            base[:, inputs] = table[self.codes(points, columns)]
        held, gap = self._read(self.classifier.grade(base))
        if strict or self.strict:
            held = self._decided(self.classifier.decide(base), held)
        return held, gap

    def _decided(self, codes: np.ndarray, held: np.ndarray) -> np.ndarray:
        target = self.problem.target
        return codes == self.classifier.code(target.value) if isinstance(target, Label) else held

    def _read(self, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Whether scores are wanted ones, and how far they are from them (4)."""
        target, classifier = self.problem.target, self.classifier
        if isinstance(target, Interval):
            return _within(scores, target.low, target.high)
        if isinstance(target, Probability):
            code = classifier.code(target.label)
            share = scores[:, code] if scores.ndim > 1 else scores if code else 1.0 - scores
            return _within(share, target.low, target.high)
        code = classifier.code(target.value)
        if scores.ndim > 1:
            own, others = scores[:, code], np.delete(scores, code, axis=1).max(axis=1)
            return scores.argmax(axis=1) == code, np.maximum(others - own, 0.0)
        middle = classifier.threshold
        if middle is None:
            middle = 0.5 if classifier.probabilistic else 0.0
        above = scores > middle
        return (above if code else ~above), np.maximum(middle - scores if code else scores - middle, 0.0)


def _within(scores: np.ndarray, low: float, high: float) -> tuple[np.ndarray, np.ndarray]:
    gap = np.maximum(np.maximum(low - scores, scores - high), 0.0)
    return gap == 0, gap


class Actions:
    """What may become of each of some factuals: a box of latent positions, and the points of the space within it.

    Parameters
    ----------
    reach
        Relative and absolute half-width of the box of a number.

    Attributes
    ----------
    origin, low, high
        The factuals and the ends of their boxes, shape (factuals, columns).
    owned
        Which columns are each feature's, bool, shape (features, columns).
    halved
        Which features are numbers, bool, shape (features,).
    """

    def __init__(self, oracle: Oracle, factuals: pd.DataFrame, reach: tuple[float, float]) -> None:
        self.oracle, space = oracle, oracle.problem.space
        self.home = space.encode(factuals)
        self.origin = self.home[:, oracle.places]
        self.base = factuals if oracle.opaque else oracle.classifier.matrix(factuals)
        self.low, self.high = self.origin.copy(), self.origin.copy()
        self.owned = np.zeros((len(oracle.features), len(oracle.places)), dtype=bool)
        self.halved = np.array([feature.numeric for feature in oracle.features], dtype=bool)
        self.own = np.empty((len(factuals), len(oracle.numeric)))
        self.gaps: list[tuple[int, np.ndarray, np.ndarray]] = []  # column, ends beside which only the own value may be
        self.ranked: list[tuple[int, np.ndarray]] = []  # column, nearest permitted code by factual and code
        self.hot: list[tuple[slice, np.ndarray]] = []  # columns, permitted categories by factual
        number = 0
        for index, (feature, columns) in enumerate(zip(oracle.features, oracle.slices, strict=True)):
            self.owned[index, columns] = True
            held = factuals[feature.name].tolist()
            if feature.numeric:
                self.own[:, number] = held
                self._bound(feature, columns.start, held, reach)
                number += 1
            elif feature.kind is Kind.CATEGORICAL:
                allowed = np.array([[c in feature.reachable(value) for c in feature.categories] for value in held])
                several = allowed.sum(axis=1, keepdims=True) > 1
                self.low[:, columns] = np.where(several, 0.0, self.origin[:, columns])
                self.high[:, columns] = np.where(several, allowed, self.origin[:, columns])
                self.hot.append((columns, allowed))
            else:
                self._rank(feature, columns.start, held, reach)
        self.starts = np.array([columns.start for columns in oracle.slices], dtype=int)
        self.weight = np.concatenate([[0.5 if f.kind is Kind.CATEGORICAL else 1.0] * f.width for f in oracle.features])
        self.continuous = np.zeros(len(oracle.places), dtype=bool)
        self.continuous[oracle.numeric[~oracle.whole]] = True

    def _bound(self, feature: Feature, column: int, held: Sequence[float], reach: tuple[float, float]) -> None:
        """The box of a number: within reach, [0, 1], the bounds and the actionable side, and with the factual in it."""
        ends = np.array([feature.interval(float(value)) for value in held]).T
        low, high = (ends - feature.scale[0]) / feature.range
        z = self.origin[:, column]
        outside = (z < low) | (z > high)  # a special code
        size = np.maximum(reach[0] * np.abs(z), reach[1])
        if feature.kind is Kind.INTEGER:
            size = np.maximum(size, 1.0 / feature.range)
        size = np.where(outside, np.inf, size)
        low = np.maximum(low, np.maximum(z - size, np.minimum(z, 0.0)))
        high = np.minimum(high, np.minimum(z + size, np.maximum(z, 1.0)))
        if feature.kind is Kind.INTEGER:
            low = (np.ceil(feature.scale[0] + low * feature.range - SAME) - feature.scale[0]) / feature.range
            high = (np.floor(feature.scale[0] + high * feature.range + SAME) - feature.scale[0]) / feature.range
        empty = low > high
        low, high = np.where(empty, z, low), np.where(empty, z, high)
        if outside.any():
            self.gaps.append((column, low, high))
        self.low[:, column], self.high[:, column] = np.minimum(low, z), np.maximum(high, z)

    def _rank(self, feature: Feature, column: int, held: Sequence[object], reach: tuple[float, float]) -> None:
        """The ranks of an ordinal or binary feature that are within reach, and at least the next ones."""
        levels = np.arange(len(feature.categories))
        top, nearest = max(len(levels) - 1, 1), np.empty((len(held), len(levels)), dtype=int)
        for row, value in enumerate(held):
            own = feature.categories.index(value)
            allowed = np.sort(feature.codes(feature.reachable(value)))
            if feature.kind is Kind.ORDINAL:
                size = max(reach[0] * own / top, reach[1]) * top
                place = int(np.searchsorted(allowed, own))
                near = np.arange(len(allowed))
                allowed = allowed[(np.abs(allowed - own) <= size + SAME) | (np.abs(near - place) <= 1)]
            nearest[row] = allowed[np.abs(levels[:, None] - allowed).argmin(axis=1)]
            self.low[row, column], self.high[row, column] = allowed[0] / top, allowed[-1] / top
        self.ranked.append((column, nearest))

    def snap(self, positions: np.ndarray, owner: np.ndarray) -> np.ndarray:
        """The permitted points nearest to latent positions within the boxes, shape (rows, columns)."""
        oracle, points = self.oracle, positions.copy()
        for column, low, high in self.gaps:
            x, low, high, z = positions[:, column], low[owner], high[owner], self.origin[owner, column]
            inside = np.clip(x, low, high)
            points[:, column] = np.where(np.abs(x - z) < np.abs(x - inside), z, inside)
        if oracle.whole.any():
            columns = oracle.numeric[oracle.whole]
            shift, unit = oracle.shift[oracle.whole], oracle.range[oracle.whole]
            points[:, columns] = (np.rint(shift + points[:, columns] * unit) - shift) / unit
        for column, nearest in self.ranked:
            top = max(nearest.shape[1] - 1, 1)
            points[:, column] = nearest[owner, np.rint(positions[:, column] * top).astype(int)] / top
        for columns, allowed in self.hot:
            best = np.where(allowed[owner], positions[:, columns], -1.0).argmax(axis=1)
            points[:, columns] = np.arange(allowed.shape[1]) == best[:, None]
        home = self.origin[owner]
        return np.where(np.abs(points - home) <= SAME, home, points)

    def displacement(self, points: np.ndarray, owner: np.ndarray) -> np.ndarray:
        """How far each active feature of snapped points moved, in scaled units; 1 for a category; (rows, features)."""
        moved = np.abs(points - self.origin[owner]) * self.weight
        return np.add.reduceat(moved, self.starts, axis=1)

    def judge(self, points: np.ndarray, owner: np.ndarray, strict: bool = False) -> tuple[np.ndarray, ...]:
        """As ``Oracle.judge``, of snapped points."""
        values = self.oracle.values(points)
        columns = self.oracle.numeric
        values = np.where(points[:, columns] == self.origin[owner][:, columns], self.own[owner], values)
        base = self.base.iloc[owner] if isinstance(self.base, pd.DataFrame) else self.base[owner]
        return self.oracle.judge(points, values, base, strict)

    def encoded(self, points: np.ndarray, owner: np.ndarray) -> np.ndarray:
        """Snapped points in all columns of the space."""
        rows = self.home[owner]
        rows[:, self.oracle.places] = points
        return rows


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

    def __init__(self, method: MdPso, actions: Actions, rngs: Sequence[np.random.Generator]) -> None:
        self.method, self.actions, self.rngs = method, actions, rngs
        self.low, self.high = actions.low[:, None], actions.high[:, None]
        self.owner = np.repeat(np.arange(len(rngs)), method.particles)
        self.shape = (len(rngs), method.particles, actions.low.shape[1])
        self.limit = (self.high - self.low) * np.where(actions.continuous, method.clamp, 1.0)
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
        method = self.method
        r1, r2, r3 = (self._draw() for _ in range(3))
        if method.draws == "paper":
            r1, r2 = r1 * method.cognitive, r2 * method.social
            r3 = method.cognitive + r3 * (method.social - method.cognitive)
        leader = self.best[np.arange(self.shape[0]), self.best_cost.argmin(axis=1)][:, None]
        velocity = method.inertia * self.velocity
        velocity += method.cognitive * r1 * (self.best - self.position)
        velocity += method.social * r2 * (leader - self.position)
        apart = (self.position - self.position.mean(axis=1, keepdims=True)) * self.actions.continuous
        velocity += method.diversity * r3 * apart
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
        if self.method.archive and self.method.selection != "personal" and self.valid.any():
            self.met.append((self.points[self.valid], self.cost[self.valid], self.owner[self.valid]))

    def _weigh(self, gap: np.ndarray) -> np.ndarray:
        """Equation (3) of the points, by Deb's rule or as it stands, shape (rows,)."""
        merit = self.merit(self.actions.displacement(self.points, self.owner))
        if self.method.cost == "paper":
            return np.where(self.valid, 0.0, gap) + merit
        return np.where(self.valid, merit, INVALID + gap)

    def merit(self, moved: np.ndarray) -> np.ndarray:
        """What valid points are compared by, shape (rows,), of the features' displacements."""
        method, proximity, count = self.method, moved.sum(axis=1) / self.features, (moved > 0).sum(axis=1)
        if method.cost == "paper":
            return proximity + count
        return method.proximity_weight * proximity + method.sparsity_weight * count / self.features

    def verdict(self, points: np.ndarray, owner: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Which points are counterfactuals by the model's predictions, bool, and what they are compared by."""
        if not len(points):
            return np.zeros(0, dtype=bool), np.zeros(0)
        moved = self.actions.displacement(points, owner)
        held, _ = self.actions.judge(points, owner, strict=True)
        return held & (moved > 0).any(axis=1), self.merit(moved)

    def candidates(self) -> tuple[np.ndarray, np.ndarray]:
        """Distinct valid points to select from, each swarm's best first, and their owners."""
        if self.method.selection == "personal":
            ok = self.best_valid
            found = [(self.best_points[ok], self.best_cost.ravel()[ok], self.owner[ok])]
        elif not self.method.archive or not self.met:
            found = [(self.points[self.valid], self.cost[self.valid], self.owner[self.valid])]
        else:
            found = self.met
        points, cost, owner = (np.concatenate(parts) for parts in zip(*found, strict=True))
        places = [np.flatnonzero(owner == s) for s in range(self.shape[0])]
        most = None if self.method.pull_back else self.method.archive or None
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
