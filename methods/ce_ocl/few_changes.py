"""Closest points of ReLU networks within one or two changes: branch and bound over segments, without a solver."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from harness.core.inputs import Affine, Input
from harness.core.method import Deadline
from harness.core.objective import tolerance
from harness.core.problem import Problem
from harness.core.space import Feature, Kind
from harness.core.tolerances import COORDINATE_TIE, SCORE_INSET, SCORE_TIE
from methods.estimators.network_margins import Margins
from methods.estimators.thresholds import separated_values

BATCH = 1024  # boxes looked at together, the cheapest first
MOST = 40_000  # boxes before the search gives up: more would cost more than a mixed-integer program


@dataclass(frozen=True)
class Few:
    """What a search over few changes found.

    Parameters
    ----------
    row
        The cheapest valid point found below the budget, decoded; None where there is none.
    proven
        Whether nothing within the limits is cheaper than ``row``, or than the budget where that is None.
    """

    row: dict[str, Any] | None
    proven: bool


class FewChanges:
    r"""Exact search for the cheapest valid point of a ReLU network that differs in one or two features.

    A *segment* is a way to change one feature: a number's move to one side, or another category. A box is one or two
    segments. Over a box the first layer's sums have exact bounds, and a linear form lies above the network's margin
    over its target (``methods/estimators/network_margins.py``). What the form is short of at the box's cheapest corner
    has to be gained at the least marginal cost: that bounds the cost from below and shortens the segments. Boxes are
    halved until no bound lies below the best valid point.

    Parameters
    ----------
    margin
        Least distance of the raw output from its threshold, as in the mixed-integer program. Without one, bounds are
        those of the network's own rule; the points that are tried lie a little within it.
    weights
        What a changed feature counts, shape (features,).
    """

    def __init__(self, problem: Problem, margin: float, weights: np.ndarray) -> None:
        self.problem, self.weights = problem, weights
        self.network = Margins(problem, margin)
        self.inputs: dict[str, list[int]] = {name: [] for name in problem.space.names}
        for column, source in enumerate(problem.classifier.inputs):
            self.inputs[source.feature].append(column)

    def closest(
        self,
        factual: Mapping[str, Any],
        price: np.ndarray,
        most: float,
        budget: float,
        earlier: Sequence[Mapping[str, Any]],
        separation: float,
        deadline: Deadline,
    ) -> Few:
        """The cheapest valid point whose one or two changes count at most ``most`` and cost less than ``budget``.

        It is separated from all earlier points: in some category, or by ``separation`` in some scaled number.
        ``price``: fixed, linear and quadratic cost of a change by feature, in scaled units, shape (features, 3); what a
        unit of a feature costs comes on top.
        """
        segments = self._segments(factual, price, earlier, separation)
        chosen = segments.choices(most)
        open_ = _Boxes(chosen, segments.near[chosen], segments.far[chosen], np.zeros(len(chosen)))
        best: tuple[np.ndarray, np.ndarray] | None = None
        seen = 0
        while len(open_.least):
            order = np.argsort(open_.least, kind="stable")
            boxes, later = open_.take(order[:BATCH]), open_.take(order[BATCH:])
            seen += len(boxes.least)
            if seen > MOST or deadline.passed:
                return Few(self._decoded(factual, segments, best), proven=False)
            boxes, tries = self._bounded(segments, boxes, budget)
            for moves in tries:
                value = segments.cost(boxes.chosen, moves)
                better = np.flatnonzero(value < budget)
                sums = segments.sums(boxes.chosen[better], moves[better])
                better = better[(self.network.margins(sums) >= SCORE_INSET / 2).all(axis=1)]
                if len(better):
                    place = better[value[better].argmin()]
                    budget, best = float(value[place]), (boxes.chosen[place], moves[place])
            for place in self._doubtful(segments, boxes, budget):
                if self._decoded(factual, segments, (boxes.chosen[place], boxes.near[place])) is not None:
                    best = boxes.chosen[place], boxes.near[place]
                    budget = float(segments.cost(boxes.chosen[[place]], boxes.near[[place]])[0])
            open_ = later.joined(boxes.halved(segments))
            if best is not None:  # what counts changes has no part in the tolerance
                rest = budget - float(segments.price[best[0], 0].sum())
                enough = budget - tolerance(rest, bool(price[:, 2].any())) / 10
                open_ = open_.take(np.flatnonzero(open_.least < enough))
        row = self._decoded(factual, segments, best)
        return Few(row, proven=best is None or row is not None)

    def _doubtful(self, segments: _Segments, boxes: _Boxes, budget: float) -> np.ndarray:
        """The boxes of a single point below the budget, too near to an end for rounding to tell, the dearest first."""
        cost = segments.cost(boxes.chosen, boxes.near)
        single = np.flatnonzero((boxes.far <= boxes.near).all(axis=1) & (cost < budget))
        margins = self.network.margins(segments.sums(boxes.chosen[single], boxes.near[single])).min(axis=1)
        single = single[(margins >= -2 * SCORE_TIE) & (margins < SCORE_INSET / 2)]
        return single[np.argsort(-cost[single], kind="stable")]

    def _segments(
        self,
        factual: Mapping[str, Any],
        prices: np.ndarray,
        earlier: Sequence[Mapping[str, Any]],
        separation: float,
    ) -> _Segments:
        weights, shifts = self.network.layers[0]
        sources, features = self.problem.classifier.inputs, self.problem.space.features
        origin = weights @ np.array([source.of(factual[source.feature]) for source in sources]) + shifts
        listed = [_Segment(-1, np.zeros(len(shifts)), 0.0, 0.0, 0.0, np.zeros(3), None, [False] * len(earlier))]
        stays = np.zeros(
            (len(features) + 1, len(earlier)), dtype=bool
        )  # separated without a change; the last: no feature
        for place, feature in enumerate(features):
            value, price = factual[feature.name], prices[place]
            others = [row[feature.name] for row in earlier]
            if feature.numeric:
                ends = [_close(feature, float(value), float(other), separation) for other in others]
                stays[place] = [low >= 0 or high <= 0 for low, high in ends]
                rate = sum(weights[:, c] * (feature.range / _unit(sources[c])) for c in self.inputs[feature.name])
                step = 1.0 / feature.range if feature.kind is Kind.INTEGER else 0.0
                least, most = ((end - float(value)) / feature.range for end in feature.interval(float(value)))
                for low, high in _parts(least, most, step, ends):
                    side = 1.0 if high > 0 else -1.0
                    near, far = sorted((side * low, side * high))
                    paid = price * feature.rates[side > 0] ** np.arange(3)
                    separated = [high <= first + COORDINATE_TIE or low >= last - COORDINATE_TIE for first, last in ends]
                    listed.append(_Segment(place, side * rate, near, far, step, paid, side, separated))
                continue
            stays[place] = [other != value for other in others]
            for level in feature.reachable(value):
                if level != value:
                    rate = sum(
                        weights[:, c] * (sources[c].of(level) - sources[c].of(value)) for c in self.inputs[feature.name]
                    )
                    gap = float(feature.charged([value], [level])[0])
                    cost = np.array([price @ (1.0, gap, gap**2), 0.0, 0.0])
                    separated = [other != level for other in others]
                    listed.append(_Segment(place, rate, 1.0, 1.0, 0.0, cost, level, separated))
        return _Segments(origin, listed, self.weights, stays)

    def _bounded(self, segments: _Segments, boxes: _Boxes, budget: float) -> tuple[_Boxes, list[np.ndarray]]:
        """The boxes that may hold a valid point below the budget, shortened, and candidate points of each."""
        slope = segments.slope[boxes.chosen]
        half, middle = (boxes.far - boxes.near) / 2, (boxes.far + boxes.near) / 2
        centre = segments.origin + np.einsum("nsu,ns->nu", slope, middle)
        radius = np.einsum("nsu,ns->nu", np.abs(slope), half)
        lows, highs = self.network.bounds(centre - radius, centre + radius)
        near, far, least = boxes.near.copy(), boxes.far.copy(), boxes.least.copy()
        keep = np.ones(len(near), dtype=bool)
        tries = []
        for weights, shift in self.network.above(lows, highs):
            rate = np.einsum("nu,nsu->ns", weights, slope)
            room = far - near
            missing = -SCORE_TIE - shift - weights @ segments.origin - (rate * near).sum(axis=1)
            gain = np.maximum(rate, 0.0) * room
            spare = gain.sum(axis=1) - missing
            keep &= spare >= 0
            with np.errstate(divide="ignore", invalid="ignore"):
                limit = np.where(rate != 0, spare[:, None] / np.abs(rate), np.inf)
            # A segment that helps must give what the others cannot; one that harms may take no more than they spare.
            near = np.where(rate > 0, np.maximum(near, far - limit), near)
            far = np.where(rate < 0, np.minimum(far, near + limit), far)
            near, far = segments.on_steps(boxes.chosen, near, far)
            missing = -SCORE_TIE - shift - weights @ segments.origin - (rate * near).sum(axis=1)
            _, cost = segments.cheapest(boxes.chosen, near, far, rate, missing)
            least = np.maximum(least, cost)
            moves, _ = segments.cheapest(boxes.chosen, near, far, rate, missing + SCORE_INSET)
            tries += [moves, np.where(rate > 0, far, near)]
        if math.isfinite(budget):
            far = np.minimum(far, segments.affordable(boxes.chosen, near, budget))
            near, far = segments.on_steps(boxes.chosen, near, far)
        kept = np.flatnonzero(keep & (far >= near).all(axis=1) & (least < budget))
        unsettled = ((lows[0] < 0) & (highs[0] > 0)).astype(float)
        doubt = np.einsum("nsu,nu->ns", np.abs(slope), unsettled) + 1e-3  # without such units the longest is halved
        boxes = _Boxes(boxes.chosen, near, far, least, doubt)
        return boxes.take(kept), [moves[kept] for moves in tries]

    def _decoded(
        self, factual: Mapping[str, Any], segments: _Segments, best: tuple[np.ndarray, np.ndarray] | None
    ) -> dict[str, Any] | None:
        """A point in the features' own values, if the real model accepts it."""
        if best is None:
            return None
        row = dict(factual)
        for segment, move in zip(*best, strict=True):
            if segments.feature[segment] < 0:
                continue
            feature = self.problem.space.features[segments.feature[segment]]
            if not feature.numeric:
                row[feature.name] = segments.listed[segment].what
                continue
            old = float(factual[feature.name])
            value = float(np.clip(old + segments.listed[segment].what * move * feature.range, *feature.interval(old)))
            row[feature.name] = round(value) if feature.kind is Kind.INTEGER else value
        return row if self.problem.valid(self.problem.space.frame([row]))[0] else None


@dataclass(frozen=True)
class _Segment:
    """One way in which a feature, by place, can change.

    ``slope`` is what a unit of the move adds to the first layer's sums, shape (units,); the move goes from ``near`` to
    ``far`` in scaled steps (0: continuous) at a price of fixed + linear move + quadratic move²; ``what`` is the new
    category or the sign of the move; ``separated``: from which earlier points this change keeps the point.
    """

    feature: int
    slope: np.ndarray | float
    near: float
    far: float
    step: float
    price: np.ndarray
    what: Any
    separated: list[bool]


class _Segments:
    """All segments from one factual, as arrays; the first one changes nothing."""

    def __init__(self, origin: np.ndarray, listed: list[_Segment], weights: np.ndarray, stays: np.ndarray) -> None:
        self.origin, self.listed, self.stays = origin, listed, stays
        self.feature = np.array([segment.feature for segment in listed])
        self.slope = np.array([np.broadcast_to(segment.slope, origin.shape) for segment in listed])
        self.near, self.far, self.step = (
            np.array([getattr(segment, name) for segment in listed]) for name in ("near", "far", "step")
        )
        self.price = np.array([segment.price for segment in listed])
        self.weight = np.append(weights, 0.0)[self.feature]
        self.separated = np.array([segment.separated for segment in listed], dtype=bool)

    def choices(self, most: float) -> np.ndarray:
        """Single segments, and pairs of different features, that count at most ``most``: shape (choices, 2)."""
        pairs = np.array(list(itertools.combinations(range(len(self.listed)), 2)), dtype=int).reshape(-1, 2)
        features = self.feature[pairs]
        separated = self.separated[pairs].any(axis=1) | (self.stays.sum(axis=0) > self.stays[features].sum(axis=1))
        different = features[:, 0] != features[:, 1]
        return pairs[different & (self.weight[pairs].sum(axis=1) <= most) & separated.all(axis=1)]

    def cost(self, chosen: np.ndarray, moves: np.ndarray) -> np.ndarray:
        fixed, linear, quadratic = np.moveaxis(self.price[chosen], -1, 0)
        return (fixed + linear * moves + quadratic * moves**2).sum(axis=1)

    def sums(self, chosen: np.ndarray, moves: np.ndarray) -> np.ndarray:
        """The first layer's sums at points, shape (points, units)."""
        return self.origin + np.einsum("nsu,ns->nu", self.slope[chosen], moves)

    def marginal(self, chosen: np.ndarray, near: np.ndarray) -> np.ndarray:
        """The least price of a further unit of each move."""
        return self.price[chosen, 1] + 2 * self.price[chosen, 2] * near

    def on_steps(self, chosen: np.ndarray, near: np.ndarray, far: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Ends at full steps inside those given."""
        step = self.step[chosen]
        unit = np.where(step > 0, step, 1.0)
        return (
            np.where(step > 0, np.ceil(near / unit - COORDINATE_TIE) * step, near),
            np.where(step > 0, np.floor(far / unit + COORDINATE_TIE) * step, far),
        )

    def affordable(self, chosen: np.ndarray, near: np.ndarray, budget: float) -> np.ndarray:
        """How far each segment can go if the others stay at their near ends."""
        with np.errstate(divide="ignore", invalid="ignore"):
            rest = (budget - self.cost(chosen, near))[:, None] / self.marginal(chosen, near)
        return near + np.where(np.isnan(rest), np.inf, np.maximum(rest, 0.0))

    def cheapest(
        self, chosen: np.ndarray, near: np.ndarray, far: np.ndarray, rate: np.ndarray, missing: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """The cheapest moves that gain what a linear form is short of, in full steps, and a bound on their cost."""
        marginal, room = self.marginal(chosen, near), far - near
        with np.errstate(divide="ignore", invalid="ignore"):
            order = np.argsort(np.where(rate > 0, marginal / rate, np.inf), axis=1)
        moves, cost, rows = near.copy(), self.cost(chosen, near), np.arange(len(near))
        for segment in order.T:
            pace = np.maximum(rate[rows, segment], 0.0)
            with np.errstate(divide="ignore", invalid="ignore"):
                part = np.where(pace > 0, np.minimum(np.maximum(missing, 0.0) / pace, room[rows, segment]), 0.0)
            moves[rows, segment] += part
            cost += part * marginal[rows, segment]
            missing = missing - part * pace
        step = self.step[chosen]
        rounded = np.ceil(moves / np.where(step > 0, step, 1.0) - COORDINATE_TIE) * step
        return np.where(step > 0, np.minimum(rounded, far), moves), cost


@dataclass(frozen=True)
class _Boxes:
    """Two segments each, from near to far, with a lower bound on cost; ``doubt``: what halving one would settle."""

    chosen: np.ndarray
    near: np.ndarray
    far: np.ndarray
    least: np.ndarray
    doubt: np.ndarray | None = None

    def take(self, places: np.ndarray) -> _Boxes:
        doubt = None if self.doubt is None else self.doubt[places]
        return _Boxes(self.chosen[places], self.near[places], self.far[places], self.least[places], doubt)

    def joined(self, other: _Boxes) -> _Boxes:
        names = ("chosen", "near", "far", "least")
        return _Boxes(*(np.concatenate([getattr(self, name), getattr(other, name)]) for name in names))

    def halved(self, segments: _Segments) -> _Boxes:
        """Both halves of each box, along the segment that leaves most open; points have none."""
        assert self.doubt is not None
        rows, widest = np.arange(len(self.least)), ((self.far - self.near) * self.doubt).argmax(axis=1)
        near, far = self.near[rows, widest], self.far[rows, widest]
        step = segments.step[self.chosen[rows, widest]]
        middle = (near + far) / 2
        middle = np.where(step > 0, np.floor(middle / np.where(step > 0, step, 1.0) + COORDINATE_TIE) * step, middle)
        lower, upper = self.far.copy(), self.near.copy()
        lower[rows, widest], upper[rows, widest] = middle, middle + step
        wide = np.flatnonzero(far > near)
        first = _Boxes(self.chosen, self.near, lower, self.least).take(wide)
        return first.joined(_Boxes(self.chosen, upper, self.far, self.least).take(wide))


def _unit(source: Input) -> float:
    assert isinstance(source, Affine)  # see network_margins.takes
    return source.unit


def _close(feature: Feature, value: float, other: float, separation: float) -> tuple[float, float]:
    """Ends of the scaled moves between which a number is not separated from an earlier point's."""
    up, down = separated_values(feature, other, separation)
    room = 0.0 if feature.kind is Kind.INTEGER else COORDINATE_TIE  # for the rounding of decoded values
    return (down - value) / feature.range - room, (up - value) / feature.range + room


def _parts(low: float, high: float, step: float, ends: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """All moves from low to high but none at all, in parts to one side, each separated from an earlier point or not."""
    parts = [(low, min(high, -step)), (max(low, step), high)]
    for first, last in ends:
        parts = [
            part
            for a, b in parts
            for part in ((a, min(b, first)), (max(a, first + step), min(b, last - step)), (max(a, last), b))
        ]
    return [(a, b) for a, b in parts if b - a >= -COORDINATE_TIE and max(abs(a), abs(b)) > COORDINATE_TIE]
