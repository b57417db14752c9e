"""The search over cells under relations that add up numbers of many values."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property

import numpy as np

from harness.core.method import Deadline
from harness.core.space import Kind
from harness.core.tolerances import COST_TIE
from methods.ce_ocl.sums import FactualSums, Settled, Span, Sums, outside
from methods.cells.closest import Closest
from methods.cells.search import CellSearch, State
from methods.milp.cost import Cost


class RelatedSearch(CellSearch):
    """``CellSearch`` where some relations are no boxes of states.

    The search takes every state at its value nearest to the factual, which costs no more than any other. Where the
    point that it finds breaks a relation, the cheapest values in its states that keep all of them are an incumbent. A
    box of states around it in which nothing that keeps them costs less is then left out, until nothing cheaper is left.
    """

    @cached_property
    def sums(self) -> Sums:
        costs = [Cost(*map(float, parts)) for parts in zip(*self.numbers.coefficients, strict=True)]
        return Sums(self.problem, costs, self.weights)

    def finish(self, state: State, deadline: Deadline) -> Closest:
        """As ``CellSearch.finish``, all relations kept."""
        layout = state.layout
        sums = self.sums.of(layout.factual, layout.values, layout.factual_state)
        best, floor = Closest(None, math.inf, math.inf), math.inf
        while True:
            found = super().finish(state, deadline)
            if found.row is None or not found.proven or found.value >= best.value - COST_TIE:
                return Closest(best.row, best.value, min(found.bound, floor, best.value))
            if sums.keeps(found.row):
                return Closest(found.row, found.value, min(found.bound, floor))
            others, settled = self._settled(state, sums, deadline)
            floor = min(floor, others + settled.bound)
            if settled.values is not None and others + settled.cost < best.value:
                row = {**found.row, **settled.values}
                if self._right(row):
                    best = Closest(row, others + settled.cost, 0.0)
            self._leave_out(state, sums, others, best.value, deadline)

    def _settled(self, state: State, sums: FactualSums, deadline: Deadline) -> tuple[float, Settled]:
        """The cheapest values in an incumbent's states, and what the states of all unrelated features cost."""
        layout, point, related, states = state.layout, state.best, set(self.sums.places), state.states
        others, changes = 0.0, self.most
        for f, (start, place) in enumerate(zip(layout.state_start, point, strict=False)):
            if f not in related:
                others += float(layout.cost[start + place])
                changes -= float(self.weights[f]) * (not states.first[f] <= place <= states.last[f])
        spans = [(int(point[f]),) * 2 for f in self.sums.places]
        return others, sums.settle(spans, changes, deadline)

    def _leave_out(self, state: State, sums: FactualSums, others: float, upper: float, deadline: Deadline) -> None:
        """Go on without a box of states around the incumbent's, none of which keeps the relations for less."""
        layout, point = state.layout, state.best
        most = upper - others - COST_TIE if math.isfinite(upper) else math.inf

        def enough(spans: Sequence[Span]) -> bool:
            return sums.least(spans) >= most

        def surely(spans: Sequence[Span]) -> bool:
            return enough(spans) or sums.settle(spans, math.inf, deadline).bound >= most

        alone = [(int(point[f]),) * 2 for f in self.sums.places]
        spans = sums.grown(point, enough if enough(alone) else surely)
        still = np.array([feature.missing for feature in layout.features])
        unordered = np.array([feature.kind is Kind.CATEGORICAL for feature in layout.features])
        box = outside([len(values) for values in layout.values], layout.factual_state, point, still, unordered)
        for f, (low, high) in zip(self.sums.places, spans, strict=True):
            box.low[f], box.high[f] = low, high
            if unordered[f]:
                box.sets[f] = np.uint64(1) << np.uint64(point[f])
        state.exclude(box, upper)
