"""Moves of a scorecard: the bins that each feature of a factual can move to, and the change of its value there."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from harness.core.problem import Problem
from harness.core.space import Actionability, Feature, Kind, Space
from harness.core.tolerances import COORDINATE_TIE
from harness.models.card import Bin, Card, Variable
from methods.estimators.trees import DOUBLE

FLOOR = 0.01  # of its range: the least MAD of a feature's values that divides
RIDGE = 1e-6  # of the mean variance, where values do not vary independently


@dataclass(frozen=True, eq=False)
class Moves:
    """Bins that a factual's features can move to. Options of feature f are those from ``start[f]`` to ``start[f + 1]``.

    Parameters
    ----------
    current
        Values of the factual's own bins, shape (features,).
    score
        The factual's score.
    start
        Shape (features + 1,).
    owner, place
        By option: its feature, and the position of its bin.
    delta
        By option: by how much the feature's value changes.
    targets
        By option: the value in original units nearest to the factual's own.
    """

    current: np.ndarray
    score: float
    start: np.ndarray
    owner: np.ndarray
    place: np.ndarray
    delta: np.ndarray
    targets: tuple[Any, ...]


class MoveFinder:
    """A card over a problem's space: finds the ``Moves`` of a factual.

    Parameters
    ----------
    special
        Whether bins of special codes and unknown categories are targets, where the space has values for them.
    frequency
        Number of training rows of each category, by feature; counted where None.
    """

    def __init__(
        self, card: Card, problem: Problem, special: bool = False, frequency: Mapping[str, dict[Any, int]] | None = None
    ) -> None:
        self.card, self.space = card, problem.space
        self.coefficients = card.coefficients
        if frequency is None:
            text = [name for name in card.names if not problem.space[name].numeric]
            frequency = {name: problem.train[name].value_counts().to_dict() for name in text}
        self.frequency = frequency
        self.axes = [_Axis(v, problem.space[v.name], special, frequency.get(v.name, {})) for v in card.variables]

    def moves(self, origin: Mapping[str, Any]) -> Moves:
        """The moves from decoded values by feature name."""
        current, start = np.empty(len(self.axes)), np.zeros(len(self.axes) + 1, dtype=np.int64)
        owner: list[int] = []
        place: list[int] = []
        targets: list[Any] = []
        for f, axis in enumerate(self.axes):
            value = origin[axis.feature.name]
            own = axis.bin_of(value)
            current[f] = axis.values[own]
            for bin_, target in axis.options(value, own):
                owner.append(f)
                place.append(bin_)
                targets.append(target)
            start[f + 1] = len(owner)
        owners, places = np.array(owner, dtype=np.int64), np.array(place, dtype=np.int64)
        delta = np.array([self.axes[f].values[b] - current[f] for f, b in zip(owner, place, strict=True)])
        score = float(current @ self.coefficients + self.card.intercept)
        return Moves(current, score, start, owners, places, delta, tuple(targets))

    def within(self, moves: Moves, option: int, value: Any) -> Sequence[Any]:
        """What an option's feature may hold after the move from a value: the ends of its numbers, or categories."""
        return self.axes[moves.owner[option]].within(int(moves.place[option]), value, moves.targets[option])

    def beside(self, origin: Mapping[str, Any], moves: Moves) -> bool:
        """Whether a number lies so near to another bin that distances take the move there for none."""
        options = ((self.axes[f].feature, target) for f, target in zip(moves.owner, moves.targets, strict=True))
        numbers = ((feature, target) for feature, target in options if feature.kind is Kind.CONTINUOUS)
        return any(feature.moved(origin[feature.name], target) <= COORDINATE_TIE for feature, target in numbers)

    def alike(self, name: str, value: Any) -> list[Sequence[Any]]:
        """Where else a feature may be, from a value, so that the score stays: ends of numbers, or sets of categories.

        A feature that the card does not use may be anywhere within reach.
        """
        feature = self.space[name]
        if feature.actionability is Actionability.IMMUTABLE:
            return []
        if name in self.card.names:
            found = self.axes[self.card.names.index(name)].alike(value)
        else:
            found = [feature.interval(float(value)) if feature.numeric else feature.reachable(value)]
        if feature.numeric:
            return [ends for ends in found if ends[0] < ends[1] or ends[0] == ends[1] != value]
        return [members for members in found if set(members) - {value}]

    def lists(self, name: str, value: Any) -> bool:
        """Whether ``within`` and ``alike`` give all that a feature may hold, from a value."""
        return name not in self.card.names or self.axes[self.card.names.index(name)].lists(value)

    def evidence(self, name: str, value: Any) -> float:
        """The weight of evidence, or mean, of a value's bin; 0 where the card does not use the feature."""
        if name not in self.card.names:
            return 0.0
        axis = self.axes[self.card.names.index(name)]
        return float(axis.values[axis.bin_of(value)])


class _Axis:
    """One feature: which bin a value lies in, and the nearest value within reach in each other bin."""

    def __init__(self, variable: Variable, feature: Feature, special: bool, frequency: Mapping[Any, int]) -> None:
        self.feature = feature
        self.variable, self.values = variable, variable.values
        self.codes = {code for b in variable.bins if b.role == "special" for code in b.members}
        self.codes |= set(self.feature.special)
        self.open = [p for p, b in enumerate(variable.bins) if b.ordinary or (special and b.role != "missing")]
        self._known: dict[Any, list[tuple[int, Any]]] = {}
        if self.feature.numeric:
            thresholds, places = variable.steps()
            self._thresholds, self._places = thresholds.tolist(), places.tolist()
            return
        categories = self.feature.categories
        self._bin = dict(zip(categories, variable.bins_of(categories).tolist(), strict=True))
        self._frequency = {category: frequency.get(category, 0) for category in categories}

    def bin_of(self, value: Any) -> int:
        """The position of a value's bin."""
        if self.feature.numeric:
            return int(self._places[bisect_left(self._thresholds, value)])
        return int(self._bin[value])

    def options(self, value: Any, own: int) -> list[tuple[int, Any]]:
        """Bins of another weight of evidence that contain a permitted value, each with the nearest such value."""
        if value not in self._known:
            found = []
            if self.feature.actionability is not Actionability.IMMUTABLE:
                for place in self.open:
                    if place != own and self.values[place] != self.values[own]:
                        target = self._nearest(self.variable.bins[place], place, value)
                        if target is not None:
                            found.append((place, target))
            self._known[value] = found
        return self._known[value]

    def _nearest(self, target: Bin, place: int, value: Any) -> Any:
        """The value of a bin nearest to the factual's: by number, by rank, or the most frequent category; or None."""
        if self.feature.numeric:
            return self._number(target, float(value))
        reachable = [c for c in self.feature.reachable(value) if self._bin[c] == place]
        if not reachable:
            return None
        if self.feature.kind is Kind.ORDINAL:
            rank = self.feature.categories.index
            return min(reachable, key=lambda category: abs(rank(category) - rank(value)))
        return max(reachable, key=self._frequency.__getitem__)

    def _number(self, target: Bin, value: float) -> float | int | None:
        integral = self.feature.kind is Kind.INTEGER
        if target.role != "interval":
            codes = self._codes(target, value)
            return _typed(min(codes, key=lambda code: abs(code - value)), integral) if codes else None
        low, high = self._ends(target, value)
        beside = [self._beside(min(max(low, value), high), away, (low, high)) for away in (1, -1)]
        found = [number for number in beside if number is not None]
        return _typed(min(found, key=lambda number: abs(number - value)), integral) if found else None

    def _codes(self, target: Bin, value: float) -> list[float]:
        """A bin's special codes within reach that are ordinary numbers of the space."""
        low, high = self.feature.interval(value)
        return [code for code in target.members if low <= code <= high and code not in self.feature.special]

    def lists(self, value: Any) -> bool:
        """Whether ``within`` gives all that a place has: of several codes of one bin it gives the nearest.

        And where the person stands at a code amid an interval, the numbers on the nearest one's side.
        """
        bins = [self.variable.bins[place] for place in self.open] if self.feature.numeric else []
        return not any(self._parted(target, float(value)) for target in bins)

    def _parted(self, target: Bin, value: float) -> bool:
        """Whether a bin has several codes within reach, or numbers on both sides of a value that is a code."""
        if target.role != "interval":
            return len(self._codes(target, value)) > 1
        low, high = self._apart(target, value)
        return value in self.codes and low < value < high

    def _apart(self, target: Bin, value: float) -> tuple[float, float]:
        """The ends of an interval, within reach, that are no codes; as they are where all its numbers are codes."""
        ends = self._ends(target, value)
        low, high = self._beside(ends[0], 1, ends), self._beside(ends[1], -1, ends)
        return ends if low is None or high is None else (low, high)

    def _beside(self, number: float, away: int, ends: tuple[float, float]) -> float | None:
        """The first number from one on, upwards or downwards, that is no code; None where there is none within ends."""
        while number in self.codes:
            number = self._next(number, away)
        return number if ends[0] <= number <= ends[1] else None

    def _next(self, number: float, away: int) -> float:
        """The number of the feature's kind beside one, upwards or downwards."""
        return number + away if self.feature.kind is Kind.INTEGER else math.nextafter(number, away * math.inf)

    def _ends(self, target: Bin, value: float) -> tuple[float, float]:
        """The least and the greatest number within reach in a bin that is an interval."""
        low, high = self.feature.interval(value)
        integral = self.feature.kind is Kind.INTEGER
        low = max(low, math.ceil(target.low) if integral and math.isfinite(target.low) else target.low)
        top = math.ceil(target.high) - 1 if integral and math.isfinite(target.high) else target.high
        return low, min(high, top if integral or math.isinf(top) else math.nextafter(top, -math.inf))

    def within(self, place: int, value: Any, nearest: Any) -> Sequence[Any]:
        """The ends of the numbers within reach in a bin, beside a value that is a code; or its categories."""
        if not self.feature.numeric:
            return [category for category in self.feature.reachable(value) if self._bin[category] == place]
        target = self.variable.bins[place]
        if target.role != "interval":
            return nearest, nearest
        low, high = self._apart(target, float(value))
        if value in self.codes and low < value < high:  # there a program settles, as it is as near as can be
            return (nearest, high) if nearest > value else (low, nearest)
        return low, high

    def alike(self, value: Any) -> list[Sequence[Any]]:
        """Where else the feature may be at the weight of evidence of a value: ``within`` its bin and those like it."""
        own = self.bin_of(value)
        places = [place for place in {own, *self.open} if self.values[place] == self.values[own]]
        found = []
        for place in sorted(places):
            nearest = self._nearest(self.variable.bins[place], place, value)
            if nearest is not None:
                found.append(self.within(place, value, nearest))
        return found


def _typed(value: float, integral: bool) -> float | int:
    return int(value) if integral else float(value)


def opened(card: Card, space: Space) -> bool:
    """Whether a space has a value that counterfactuals may take in some bin of special codes or unknown categories."""
    for variable in card.variables:
        feature = space[variable.name]
        values: Iterable[Any] = feature.categories
        if feature.numeric:
            low, high = feature.bounds
            values = [code for b in variable.bins if b.role == "special" for code in b.members if low <= code <= high]
        if any(v not in feature.special and not variable.bins[variable.bin_of(v)].ordinary for v in values):
            return True
    return False


def spread(values: np.ndarray, how: str) -> np.ndarray:
    """The unit of each feature's proximity, shape (features,): range or MAD of the training rows' values.

    A range of 0 counts as 1; a MAD below ``FLOOR`` of the range is raised to that.
    """
    ranges = np.ptp(values, axis=0)
    ranges[ranges == 0.0] = 1.0
    if how == "range":
        return ranges
    deviations = np.median(np.abs(values - np.median(values, axis=0)), axis=0)
    return np.maximum(deviations, FLOOR * ranges)


def optbinning_spread(card: Card) -> np.ndarray:
    """Units of OptBinning's proximity, shape (features,): ranges of the features' contributions over its bins.

    A range of 0, as of a feature without a weight, counts as 1.
    """
    ranges = []
    for variable in card.variables:
        listed = [b.role != "unknown" for b in variable.bins]
        ranges.append(float(np.ptp(variable.contributions[listed])) or 1.0)
    return np.array(ranges)


def closeness_factor(values: np.ndarray) -> np.ndarray:
    r"""L, lower triangular with :math:`LL^T = \Sigma^{-1}`, of the training rows' values, in table order.

    Where :math:`\Sigma` is singular, a millionth of the mean variance is added to each variance, and a millionth where
    nothing varies, as in a single row.
    """
    covariance = np.atleast_2d(np.cov(values, rowvar=False)) if len(values) > 1 else np.zeros((values.shape[1],) * 2)
    varies = np.diag(covariance) > (DOUBLE * np.abs(values).max(axis=0)) ** 2  # by more than rounding
    covariance = np.where(np.outer(varies, varies), covariance, 0.0)
    if np.linalg.cond(covariance) > 1.0 / RIDGE**2:
        covariance = covariance + (RIDGE * float(np.mean(np.diag(covariance))) or RIDGE) * np.eye(len(covariance))
    return np.linalg.cholesky(np.linalg.inv(covariance))


def table_of(card: Card, space: Space) -> list[dict[str, Any]]:
    """Weights of evidence (or means) by feature, as ``objective.woe`` takes them: by ``thresholds`` or ``levels``."""
    table: list[dict[str, Any]] = []
    for variable in card.variables:
        feature = space[variable.name]
        if feature.numeric:
            thresholds, places = variable.steps()
            entry: dict[str, Any] = {"thresholds": thresholds.tolist()}
        else:
            places = variable.bins_of(feature.categories)
            entry = {"levels": list(feature.categories)}
        table.append({"feature": variable.name, **entry, "values": variable.values[places].tolist()})
    return table
