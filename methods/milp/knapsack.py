"""Bounds of linear forms of the inputs over changes within a count and a budget: knapsacks, not boxes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import compress

import numpy as np

from harness.core.inputs import Input
from harness.core.tolerances import BOUND_ROUNDING
from methods.milp.cost import Cost
from methods.milp.embed.embedded import Corners
from methods.milp.forms import stacked
from methods.milp.sources import Moved
from methods.milp.variables import Variables


class Knapsack:
    """Greatest and least values of ``weights @ inputs + shift`` over {at most K features change, cost ≤ budget}.

    What a form can gain from one feature is at most its gain over the feature's reach, at a cost in proportion;
    the sum over features is then the least of two bounds: the K largest gains, and the fractional knapsack of gains
    under the budget (for squared costs, the ellipsoid's).

    Parameters
    ----------
    variables
        Posed variables with scaled numbers; ``pose`` first, then ``limit``, then call.
    inputs
        The estimator's inputs, in the order of the forms' weights.
    """

    def __init__(self, variables: Variables, inputs: Sequence[Input]) -> None:
        self.variables = variables
        self.members: dict[int, tuple[list[int], list[Moved]]] = {}
        blocks = {id(block): place for place, block in enumerate(variables.blocks)}
        for column, source in enumerate(inputs):
            made = variables.source(source)
            columns, sources = self.members.setdefault(blocks[id(made.block)], ([], []))
            columns.append(column)
            sources.append(made)
        self.costs: Sequence[Cost] = ()
        self.count, self.budget = math.inf, math.inf

    def limit(self, costs: Sequence[Cost], weights: np.ndarray, count: float, budget: float) -> None:
        """Set the cost of a change and its weight by feature, and the most changes and the budget."""
        self.costs, self.weights, self.count, self.budget = costs, weights, count, budget

    def __call__(self, weights: np.ndarray, shift: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """As in ``Bounds``."""
        here, gains = self._here(weights, shift), self._gains(weights)
        prices = [self.variables.blocks[place].prices for place in self.members]
        count = np.array([self.weights[place] for place in self.members])
        high = here + self._most(*_best(gains, prices), count)
        low = here - self._most(*_best([-gain for gain in gains], prices), count)
        slack = BOUND_ROUNDING * (1.0 + np.abs(here))
        return low - slack, high + slack

    def corners(self, weights: np.ndarray, shift: np.ndarray) -> Corners | None:
        """As in ``Simplex``: where costs add up to a budget and no move is free, each corner spends it on one move."""
        if not math.isfinite(self.budget) or any(cost.quadratic for cost in self.costs):
            return None
        blocks = [self.variables.blocks[place] for place in self.members]
        price = np.concatenate([block.prices for block in blocks])
        shares = [share for block in blocks for share in block.shares]
        gain = np.column_stack(self._gains(weights))
        moved = [len(share.columns) > 0 for share in shares]
        if self.budget <= 0 or not (price[moved] > BOUND_ROUNDING * self.budget).all():
            return None
        here, parts = self._here(weights, shift)[:, None], price[moved] / self.budget
        columns, rates, constants = stacked(list(compress(shares, moved)))
        values = np.column_stack([here, here + gain[:, moved] / parts])
        return Corners(values, columns, rates * parts[:, None], constants * parts)

    def _here(self, weights: np.ndarray, shift: np.ndarray) -> np.ndarray:
        """The forms at the factual."""
        here = shift.astype(float).copy()
        for columns, sources in self.members.values():
            here += weights[:, columns] @ np.array([source.here for source in sources])
        return here

    def _gains(self, weights: np.ndarray) -> list[np.ndarray]:
        """What the whole moves of each feature add to the forms, each of shape (forms, moves)."""
        return [
            weights[:, columns] @ np.stack([source.gains for source in sources])
            for columns, sources in self.members.values()
        ]

    def _most(self, gains: np.ndarray, prices: np.ndarray, counts: np.ndarray) -> np.ndarray:
        """The least of the bounds by count and by budget, shape (forms,)."""
        total = gains.sum(axis=1)
        if math.isfinite(self.count):
            total = np.minimum(total, _fill(gains, np.broadcast_to(counts, gains.shape), self.count))
        if math.isfinite(self.budget):
            if any(cost.quadratic for cost in self.costs):
                # A share s of a gain costs at least s² of its price: Cauchy-Schwarz bounds what the budget buys.
                with np.errstate(divide="ignore", invalid="ignore"):
                    ratios = np.where(gains > 0, gains**2 / prices, 0.0)
                total = np.minimum(total, np.sqrt(self.budget * ratios.sum(axis=1)))
            else:
                total = np.minimum(total, _fill(gains, prices, self.budget))
        return total


def _best(gains: list[np.ndarray], prices: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """The most that a feature's moves gain, and what that costs at its best rate, both of shape (forms, features)."""
    most, costs = [], []
    for gain, price in zip(gains, prices, strict=True):
        best = gain.max(axis=1, initial=0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            rate = np.where(gain > 0, gain / price, 0.0).max(axis=1, initial=0.0)
            costs.append(np.where(best > 0, best / rate, 0.0))
        most.append(best)
    return np.column_stack(most), np.column_stack(costs)


def _fill(gains: np.ndarray, prices: np.ndarray, budget: float) -> np.ndarray:
    """Fractional knapsack per row: the most gain that a budget buys."""
    with np.errstate(divide="ignore", invalid="ignore"):
        rates = np.where(gains > 0, np.where(prices > 0, gains / prices, np.inf), 0.0)
    order = np.argsort(-rates, axis=1)
    gains, prices = np.take_along_axis(gains, order, axis=1), np.take_along_axis(prices, order, axis=1)
    before = np.cumsum(prices, axis=1) - prices
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(prices > 0, np.clip((budget - before) / prices, 0.0, 1.0), before <= budget)
    return (gains * share).sum(axis=1)
