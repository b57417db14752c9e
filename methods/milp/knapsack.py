"""Bounds of linear forms of the inputs over changes within a count and a budget: knapsacks, not boxes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from harness.core.inputs import Input
from harness.core.tolerances import BOUND_ROUNDING
from methods.milp.category_block import CategoryBlock
from methods.milp.cost import Cost
from methods.milp.number_block import NumberBlock
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
        self.members: dict[int, list[tuple[int, Any]]] = {}
        blocks = {id(block): place for place, block in enumerate(variables.blocks)}
        for column, source in enumerate(inputs):
            made: Any = variables.source(source)
            self.members.setdefault(blocks[id(made.block)], []).append((column, made))
        self.costs: Sequence[Cost] = ()
        self.count, self.budget = math.inf, math.inf

    def limit(self, costs: Sequence[Cost], weights: np.ndarray, count: float, budget: float) -> None:
        """Set the cost of a change and its weight by feature, and the most changes and the budget."""
        self.costs, self.weights, self.count, self.budget = costs, weights, count, budget

    def __call__(self, weights: np.ndarray, shift: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        here = shift.astype(float).copy()
        gains, prices, counts = [], [], []
        for place, members in self.members.items():
            block = self.variables.blocks[place]
            if isinstance(block, NumberBlock):
                slope = sum(weights[:, column] * source.slope for column, source in members)
                origin = (block.value - block.feature.scale[0]) / block.feature.range
                here += sum(weights[:, column] * (source.slope * origin + source.shift) for column, source in members)
                rise, fall = block.reach.rise, block.reach.fall
                up, down = slope * rise, -slope * fall
                best, worst = np.maximum(np.maximum(up, down), 0), np.minimum(np.minimum(up, down), 0)
                price = block.prices
                gains.append((best, worst))
                prices.append((np.where(up >= down, price[0], price[1]), np.where(up <= down, price[0], price[1])))
            elif isinstance(block, CategoryBlock):
                table: Any = sum(np.outer(weights[:, column], source.table) for column, source in members)
                here += table[:, block.code]
                change = table[:, block.open] - table[:, [block.code]]
                price = np.maximum(block.weights[block.open], 0.0)
                best, worst = change.max(axis=1), change.min(axis=1)
                # The best ratio of any level bounds what a unit of cost can buy of this feature.
                with np.errstate(divide="ignore", invalid="ignore"):
                    rate_up = np.nan_to_num(np.where(change > 0, change / price, 0.0), posinf=np.inf).max(axis=1)
                    rate_down = np.nan_to_num(np.where(change < 0, -change / price, 0.0), posinf=np.inf).max(axis=1)
                    price_up = np.where(best > 0, best / rate_up, 0.0)
                    price_down = np.where(worst < 0, -worst / rate_down, 0.0)
                gains.append((best, worst))
                prices.append((price_up, price_down))
            counts.append(self.weights[place])
        gain_up, gain_down = (np.array([gain[side] for gain in gains]).T for side in (0, 1))
        price_up, price_down = (np.array([price[side] for price in prices]).T for side in (0, 1))
        count = np.array(counts)
        high = here + self._most(gain_up, price_up, count)
        low = here - self._most(-gain_down, price_down, count)
        slack = BOUND_ROUNDING * (1.0 + np.abs(here))
        return low - slack, high + slack

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
