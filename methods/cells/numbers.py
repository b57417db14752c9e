"""The states of numbers: the values nearest to the factual in each cell, what they cost, and a last one for a gap."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from harness.core.gaps import missing
from harness.core.problem import Problem
from harness.core.space import Feature, Kind
from harness.core.tolerances import COORDINATE_TIE
from methods.cells import kernels
from methods.cells.records import Intervals, Laid, Numbers
from methods.cells.relations import RelationBoxes
from methods.estimators.thresholds import separated_values

Laying = tuple[np.ndarray, np.ndarray, np.ndarray, int]  # cells, values and costs of states, and which the factual's is


def unchanged(
    features: Sequence[Feature], factual: Mapping[str, Any], values: Sequence[np.ndarray], own: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The first and the last state of each feature that ``Space.changed`` takes for the factual's ``own`` one.

    ``values``: of each feature's states.
    """
    first, last = own.copy(), own.copy()
    for f, feature in enumerate(features):
        value = factual[feature.name]
        if feature.numeric and not missing(value):
            near = np.flatnonzero(feature.moved(float(value), values[f]) <= COORDINATE_TIE)
            first[f], last[f] = min(first[f], *near[:1]), max(last[f], *near[-1:])
    return first, last


class NumberStates:
    """The numbers of a space as the kernels take them: thresholds, sizes of a scaled unit, costs of a change."""

    def __init__(
        self,
        problem: Problem,
        ends: Sequence[np.ndarray],
        coefficients: tuple[np.ndarray, np.ndarray, np.ndarray],
        gap_costs: np.ndarray,
    ) -> None:
        self.features, self.coefficients, self.gap_costs = problem.space.features, coefficients, gap_costs
        self.places = [f for f, feature in enumerate(self.features) if feature.numeric]
        own = [ends[f] for f in self.places]
        fixed, linear, quadratic = (np.ascontiguousarray(part[self.places], dtype=float) for part in coefficients)
        rates = np.array([self.features[f].rates[1] for f in self.places])  # of those that are even
        arrays = Numbers(
            ends=np.concatenate([np.zeros(0), *own]),
            ends_start=np.cumsum([0, *map(len, own)]),
            unit=np.array([self.features[f].range for f in self.places]),
            integer=np.array([self.features[f].kind is Kind.INTEGER for f in self.places], dtype=np.bool_),
            fixed=fixed,
            linear=linear * rates,
            quadratic=quadratic * rates**2,
        )
        self.arrays = tuple(arrays)
        gaps = [f for f in self.places if self.features[f].missing]
        self.losing = [f for f in self.places if self.features[f].loses]
        self.usual = {f: float(np.nan_to_num(problem.train[self.features[f].name].median())) for f in gaps}

    def lowered(self, factual: Mapping[str, Any], row: Mapping[str, Any] | None = None) -> dict[int, float]:
        """Numbers that beyond some value cost more than their gap, which comes after them in the order of states.

        By position: how much more, in a ``row`` or at their greatest. A state's cost must not fall away from the
        factual, so these are searched at the gap's.
        """
        found = {}
        for f in self.losing:
            feature, value = self.features[f], factual[self.features[f].name]
            if missing(value):
                continue
            reached = feature.interval(value)[1] if row is None else row[feature.name]
            rises = not missing(reached) and reached > value
            gap = float(feature.charged(value, [reached])[0]) if rises else 0.0
            fixed, linear, quadratic = (part[f] for part in self.coefficients)
            more = fixed + linear * gap + quadratic * gap**2 - self.gap_costs[f]
            if gap > 0 and more > 0:
                found[f] = float(more)
        return found

    def lay(
        self,
        features: Sequence[Feature],
        factual: Mapping[str, Any],
        earlier: Sequence[Mapping[str, Any]],
        separation: float,
        related: RelationBoxes | None,
    ) -> dict[int, tuple[np.ndarray, np.ndarray, np.ndarray, int]]:
        """Cells, values and costs of each number's states, and the factual's own one, by the feature's position."""
        count = len(self.places)
        value, low, high = np.empty(count), np.empty(count), np.empty(count)
        cuts: list[float] = []
        cuts_start = np.zeros(count + 1, np.int64)
        for j, f in enumerate(self.places):
            feature = features[f]
            own = factual[feature.name]
            low[j], high[j] = feature.interval(own)
            if missing(own):  # what fills it may be as near to the usual value as its cell allows
                usual = np.rint(self.usual[f]) if feature.kind is Kind.INTEGER else self.usual[f]
                own = min(max(usual, low[j]), high[j])
            value[j] = own
            there = [row[feature.name] for row in earlier if not missing(row[feature.name])]
            cuts += _cuts(feature, there, separation)
            cuts += [] if related is None else related.cuts(feature, min(low[j], own), max(high[j], own))
            cuts_start[j + 1] = len(cuts)
        intervals = Intervals(value, low, high, np.array(cuts, dtype=float), cuts_start)
        laid: Laid = kernels.lay_numbers(self.arrays, tuple(intervals))
        start = laid.start.tolist()
        for f, i, j in zip(self.places, start, start[1:], strict=False):
            feature = features[f]
            if not feature.even and not missing(own_value := factual[feature.name]):
                laid.cost[i:j] = self.moving(f, feature, float(own_value), laid.values[i:j])
        return {
            f: (laid.cell[i:j], laid.values[i:j], laid.cost[i:j], own)
            for f, i, j, own in zip(self.places, start, start[1:], laid.factual.tolist(), strict=False)
        }

    def moving(self, f: int, feature: Feature, value: float, values: np.ndarray) -> np.ndarray:
        """What the values of a number's states cost; those as near to the factual's as rounding are no change."""
        return self.cost(f, feature.charged(value, values), feature.moved(value, values) > COORDINATE_TIE)

    def cost(self, f: int, gaps: np.ndarray, moved: np.ndarray) -> np.ndarray:
        """What the states of a feature cost by priced gaps, which may be 0 of states that ``moved``, too."""
        fixed, linear, quadratic = (part[f] for part in self.coefficients)
        cost: np.ndarray = np.where(moved, fixed, 0.0) + linear * gaps + quadratic * gaps**2
        return cost


def _cuts(feature: Feature, values: Sequence[Any], separation: float) -> list[float]:
    """Where states have to end so that each is separated from the earlier answers as a whole, or not at all."""
    cuts = []
    for value in values:
        up, down = separated_values(feature, float(value), separation)
        cuts += [down, up - 1 if feature.kind is Kind.INTEGER else float(np.nextafter(up, -math.inf))]
    return cuts


def with_gap(
    feature: Feature, factual: Mapping[str, Any], laid: Laying, cell: int, cost: float, emptied: bool | None
) -> Laying:
    """Cells, values and costs of a number's states and the factual's own, with missing as the last state, if it may be.

    A gap is left at one cost, whatever number fills it. Unless it is decided whether the number becomes missing, none
    above the factual's own costs more than that.
    """
    cells, values, costs, own = laid
    gap = np.array([cell]), np.array([np.nan])
    if missing(factual[feature.name]):
        low, high = feature.interval(math.nan)
        if low > high:
            return *gap, np.zeros(1), 0
        costs = np.append(np.full(len(cells), cost), 0.0)
        return np.append(cells, gap[0]), np.append(values, gap[1]), costs, len(cells)
    if not feature.loses or emptied is False:
        return laid
    if emptied:  # the factual's own state stays first, at which nothing is paid
        return np.append(cells[own], gap[0]), np.append(values[own], gap[1]), np.array([0.0, cost]), 0
    costs = np.append(costs[: own + 1], np.minimum(costs[own + 1 :], cost))
    return np.append(cells, gap[0]), np.append(values, gap[1]), np.append(costs, cost), own
