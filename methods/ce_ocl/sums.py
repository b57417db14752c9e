"""Relations that add up numbers of many values: how cheaply a box of states keeps them, and at which values."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from harness.core.method import Deadline
from harness.core.problem import Problem
from harness.core.relations import Row, all_kept, clauses_of
from harness.core.space import Feature, Kind, Space
from harness.core.tolerances import COORDINATE_TIE, DECODING
from harness.solvers.program import Compiled, Program
from methods.cells.records import Box
from methods.cells.relations import boxed
from methods.milp.cost import Cost
from methods.milp.relations import RelationRows
from methods.milp.variables import Variables

Span = tuple[int, int]  # the first and the last state of a feature


@dataclass(frozen=True)
class Settled:
    """The values of the related features that keep all relations within a box of states, and what they cost.

    Without values the cost is infinite; an infinite bound is a proof that there are none.
    """

    values: Mapping[str, Any] | None
    cost: float
    bound: float


class Sums:
    r"""The relations of a problem that are no boxes of states, over their features alone.

    States tell a model all that it sees, and of a number only the value nearest to the factual. Within a box of states,
    :math:`\min \sum_j c_j(x_j)` under the relations is a small program without the model.

    Raises
    ------
    UnsupportedError
        Where a number that is added up has no bounds.
    """

    def __init__(self, problem: Problem, costs: Sequence[Cost], weights: np.ndarray) -> None:
        related = [relation for relation in problem.space.relations if not boxed(relation)]
        names = {name for relation in related for name in relation.features}
        features = problem.space.features
        self.places = [f for f, feature in enumerate(features) if feature.name in names]
        texts = tuple(relation.text for relation in related)
        self.space = Space(tuple(features[f] for f in self.places), texts)
        self.costs, self.weights = [costs[f] for f in self.places], weights[self.places]
        program = Program()
        self.variables = Variables(program, self.space, cells=False)
        self.variables.close()
        self.compiled: Compiled = program.compile()
        self.variables.attach(self.compiled)
        self.base = self.compiled.mark()

    def of(self, factual: Mapping[str, Any], values: Sequence[np.ndarray], own: np.ndarray) -> FactualSums:
        """The same for a decoded factual, the values of each feature's states, and which state is the factual's."""
        parts = [_Part(f, feature, values[f], int(own[f]), factual[feature.name]) for f, feature in self.related]
        return FactualSums(self, self.space.frame([{name: factual[name] for name in self.space.names}]), parts)

    @property
    def related(self) -> list[tuple[int, Feature]]:
        """The related features and their positions in the problem's space."""
        return list(zip(self.places, self.space.features, strict=True))


@dataclass(frozen=True)
class _Part:
    """A related feature's states: its position and values, and the factual's own state and value."""

    place: int
    feature: Feature
    values: np.ndarray
    own: int
    value: Any

    def ends(self, span: Span) -> tuple[float, float]:
        """The least and the greatest number of some states; each is at its value nearest to the factual's."""
        values, (first, last) = self.values, span
        low, high = self.feature.interval(self.value)
        whole = self.feature.kind is Kind.INTEGER
        floor, ceiling = values[first], values[last]
        if first <= self.own:
            before = values[first - 1]
            after_it = before + 1.0 if whole else math.nextafter(before, math.inf)
            floor = after_it if first else min(low, self.value)
        if last >= self.own:
            final = last == len(values) - 1
            after = values[min(last + 1, len(values) - 1)]
            before_it = after - 1.0 if whole else math.nextafter(after, -math.inf)
            ceiling = max(high, self.value) if final else before_it
        return float(floor), float(ceiling)

    def within(self, span: Span) -> Any:
        """Some states as ``Variables.pose`` takes them."""
        feature = self.feature
        if feature.numeric:
            return tuple((end - feature.scale[0]) / feature.range for end in self.ends(span))
        codes = self.values[list(span)]
        return tuple(codes / feature.steps) if feature.kind is Kind.ORDINAL else int(codes[0])

    def least(self, span: Span, cost: Cost, row: Row) -> tuple[float, float, list[tuple[float, float]]]:
        """Of the cheapest of some states its cost and what it adds to a literal; and by how much less, at what price.

        Gains as pairs of a price, at least so much a unit, and how many units there are.
        """
        if self.feature.numeric:
            return self._least_number(span, cost, row)
        table = row.tables.get(self.feature)
        codes = self.values[span[0] : span[1] + 1]
        added = np.zeros(len(codes)) if table is None else table[codes]
        gaps = np.abs(codes - self.values[self.own]).astype(float)
        ordinal = self.feature.kind is Kind.ORDINAL
        paid = cost(gaps / self.feature.steps if ordinal else np.minimum(gaps, 1.0))
        start = int(paid.argmin())
        gain, price = added[start] - added, paid - paid[start]
        better = gain > 0
        gains = [(float((price[better] / gain[better]).min()), float(gain.max()))] if better.any() else []
        return float(paid[start]), float(added[start]), gains

    def _least_number(self, span: Span, cost: Cost, row: Row) -> tuple[float, float, list[tuple[float, float]]]:
        low, high = self.ends(span)
        value, unit = float(self.value), self.feature.range
        slope, price = row.numbers.get(self.feature, 0.0), row.changes.get(self.feature, 0.0)
        nearest = min(max(value, low), high)
        gap, stays = abs(nearest - value) / unit, nearest == value
        gains = []
        if slope and (units := slope * nearest - min(slope * low, slope * high)) > 0:
            rate = (cost.linear + 2 * cost.quadratic * gap) / (unit * abs(slope))
            gains.append((rate + (cost.fixed / units if stays else 0.0), units))
        if price < 0 and stays:
            gains.append((0.0, -price))
        return float(cost(gap)), slope * nearest + (0.0 if stays else price), gains


class FactualSums:
    """``Sums`` for one factual."""

    def __init__(self, sums: Sums, factual: pd.DataFrame, parts: Sequence[_Part]) -> None:
        self.sums, self.factual, self.parts = sums, factual, parts
        self.clauses = clauses_of(sums.space.relations, factual)

    def keeps(self, row: Mapping[str, Any]) -> bool:
        """Whether a decoded row keeps the relations."""
        space = self.sums.space
        return bool(all_kept(self.clauses, space.frame([{name: row[name] for name in space.names}]))[0])

    def settle(self, spans: Sequence[Span], changes: float, deadline: Deadline) -> Settled:
        """The cheapest values within a box of states that keep the relations, of at most so many weighted changes."""
        sums, compiled, variables = self.sums, self.sums.compiled, self.sums.variables
        compiled.rewind(sums.base)
        variables.pose(
            self.factual, sums.costs, [part.within(span) for part, span in zip(self.parts, spans, strict=True)]
        )
        if math.isfinite(changes):
            compiled.add_row(variables.changed(sums.weights), high=changes)
        related = RelationRows(compiled, variables, self.clauses)
        form, bound = variables.cost(), -math.inf
        while True:
            found = compiled.solve(form, deadline.left)
            if related.exact:
                bound = max(bound, math.inf if found.infeasible else found.bound)
            if found.x is None:
                return Settled(None, math.inf, bound)
            if related.exact and variables.refine(found.x) and not deadline.passed:
                continue
            row = related.complete(self._clipped(variables.read(found.x), spans), self._ends(spans))
            if self.keeps(row):
                return Settled(row, self.cost(row), bound)
            if not related.tighten():
                return Settled(None, math.inf, bound)

    def cost(self, row: Mapping[str, Any]) -> float:
        """What the changes of the related features cost."""
        total = 0.0
        for part, cost in zip(self.parts, self.sums.costs, strict=True):
            feature, value = part.feature, row[part.feature.name]
            if feature.numeric:
                gap = abs(float(value) - float(part.value)) / feature.range
            else:
                ranks = abs(feature.categories.index(value) - feature.categories.index(part.value))
                gap = ranks / feature.steps if feature.kind is Kind.ORDINAL else float(ranks > 0)
            total += float(cost(gap)) if gap > COORDINATE_TIE else 0.0
        return total

    def _ends(self, spans: Sequence[Span]) -> dict[str, tuple[float, float]]:
        parts = zip(self.parts, spans, strict=True)
        return {part.feature.name: part.ends(span) for part, span in parts if part.feature.numeric}

    def _clipped(self, row: Mapping[str, Any], spans: Sequence[Span]) -> dict[str, Any]:
        """A row with its changed numbers within a box of states."""
        found = dict(row)
        origin = self.factual.iloc[0]
        for name, (low, high) in self._ends(spans).items():
            if found[name] != origin[name]:
                found[name] = type(found[name])(min(max(found[name], low), high))
        return found

    def least(self, spans: Sequence[Span]) -> float:
        """A lower bound on the cost of keeping the relations within a box of states; inf: it keeps one of them nowhere.

        Of each literal by itself: a knapsack of what lowers its sum.
        """
        return max(min(self._least(row, spans) for row in clause) for clause in self.clauses)

    def _least(self, row: Row, spans: Sequence[Span]) -> float:
        total, wanted, gains = 0.0, -row.high - DECODING * row.unit, list[tuple[float, float]]()
        for part, cost, span in zip(self.parts, self.sums.costs, spans, strict=True):
            paid, added, better = part.least(span, cost, row)
            total, wanted = total + paid, wanted + added
            gains += better
        for price, units in sorted(gains):
            if wanted <= 0:
                break
            total += price * min(units, wanted)
            wanted -= units
        return total if wanted <= 0 else math.inf

    def grown(self, point: np.ndarray, enough: Callable[[Sequence[Span]], bool]) -> list[Span]:
        """A box of states around a point's, as large as some test allows that the point's own states pass."""
        spans = [(int(point[part.place]),) * 2 for part in self.parts]
        for k, part in enumerate(self.parts):
            if part.feature.kind in {Kind.CATEGORICAL, Kind.BINARY}:
                continue
            for side in (0, 1):
                near, far = spans[k][side], (len(part.values) - 1) * side
                trial = far
                while near != far:  # by halves, after all of them at once
                    widened = (trial, spans[k][1]) if side == 0 else (spans[k][0], trial)
                    if enough([*spans[:k], widened, *spans[k + 1 :]]):
                        spans[k], near = widened, trial
                    else:
                        far = trial + (1 if side == 0 else -1)
                    trial = (near + far + side) // 2
        return spans


def outward(count: int, own: int, state: int) -> Span:
    """The states that are at least as far from the factual's own as one of them is, on its side of it."""
    if state == own:
        return 0, count - 1
    return (state, count - 1) if state > own else (0, state)


def outside(counts: Sequence[int], own: np.ndarray, point: np.ndarray, still: np.ndarray, unordered: np.ndarray) -> Box:
    """The box of the states that cost at least as much as a point's; those that are ``still`` stay where they are."""
    spans = [outward(*part) for part in zip(counts, own.tolist(), point.tolist(), strict=True)]
    low, high = np.where(still, point, np.array(spans, dtype=np.int64).T)
    mine, factual = (np.uint64(1) << states.astype(np.uint64) for states in (np.where(unordered, point, 0), own))
    every = np.array([2 ** min(count, 64) - 1 for count in counts], dtype=np.uint64)
    sets = np.where(still, mine, np.where(point == own, every, every & ~factual))
    return Box(low, high, np.where(unordered, sets, np.uint64(0)))
