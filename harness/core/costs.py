"""What changes cost where features have costs of their own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from harness.core.errors import DatasetError, choices
from harness.core.numbers import number

HEAVIEST = 1e3  # a cost: beyond, distances beside it are lost in rounding, and with them proofs
LIGHTEST = 1e-3
KNOTS = 1000
UNSTORED = {"unstored": True}  # of a field that is stored only where it is not its default


def check_cost(value: Any, what: str) -> None:
    """Refuse what cannot be the cost of a change.

    Raises
    ------
    DatasetError
        Where a value is no number from ``LIGHTEST`` to ``HEAVIEST``.
    """
    if not (number(value) and LIGHTEST <= value <= HEAVIEST):
        raise DatasetError(
            f"{what} is {value!r}; it must be a number from {LIGHTEST:g} to {HEAVIEST:g}. To forbid a change, set "
            f"actionability instead."
        )


def population(values: np.ndarray) -> tuple[tuple[float, float], ...]:
    """Distinct values, at most ``KNOTS`` of them, with the share of all values below, those equal counted half.

    >>> population(np.array([3.0, 1.0, 3.0, 7.0]))
    ((1.0, 0.125), (3.0, 0.5), (7.0, 0.875))
    """
    points, counts = np.unique(values, return_counts=True)
    shares = (np.cumsum(counts) - counts / 2) / counts.sum()
    kept = np.unique(np.linspace(0, len(points) - 1, min(len(points), KNOTS)).round().astype(int))
    return tuple(zip(points[kept].tolist(), shares[kept].tolist(), strict=True))


def pairs(given: Any, categories: Sequence[Any], what: str) -> tuple[tuple[Any, Any, float], ...]:
    """Costs of pairs of categories as rows of (from, to, cost), from such rows or ``{from: {to: cost}}``.

    Raises
    ------
    DatasetError
        For a category that does not exist, one that costs something to stay in, a pair that comes twice, or a cost that
        is none.
    """
    if isinstance(given, Mapping) and all(isinstance(entry, Mapping) for entry in given.values()):
        given = [(origin, value, cost) for origin, entry in given.items() for value, cost in entry.items()]
    if not isinstance(given, list | tuple) or not all(isinstance(row, list | tuple) and len(row) == 3 for row in given):
        raise DatasetError(f"{what} are {str(given)[:80]!r}; give {{FROM: {{TO: COST}}}}, or a CSV of from,to,cost.")
    known = {str(category): category for category in categories}
    found: dict[tuple[Any, Any], float] = {}
    for row in given:
        for category in row[:2]:
            if str(category) not in known:
                raise DatasetError(f"{what} name {str(category)[:60]!r}; {choices(category, known)}.")
        pair = known[str(row[0])], known[str(row[1])]
        if pair[0] == pair[1] or pair in found:
            why = "stays as it is, which costs nothing" if pair[0] == pair[1] else "comes twice"
            raise DatasetError(f"{what} have a pair {row[0]} to {row[1]} that {why}; leave it out.")
        check_cost(row[2], f"the cost from {row[0]} to {row[1]} in {what}")
        found[pair] = float(row[2])
    return tuple((*pair, cost) for pair, cost in found.items())


@dataclass(frozen=True)
class Price:
    """What changes of a feature cost.

    Parameters
    ----------
    weight
        What a unit of its change costs, from ``LIGHTEST`` to ``HEAVIEST``: every distance but the number of changes is
        one of weighted changes.
    weight_up, weight_down
        What it costs to rise and to fall, instead of ``weight``: numbers, ranks, and the second of two categories.
    costs
        What it costs, times ``weight``, to go from one category to another, where that is not 1: a mapping
        ``{from: {to: cost}}``, kept as rows of (from, to, cost). Of binary and categorical features.
    shares
        Of a number or a rank that is measured by how much of the population it passes: (value, share of the population
        below) in ascending order, between which shares are linear, and beyond which they stay.
    """

    weight: float = 1.0
    weight_up: float | None = None
    weight_down: float | None = None
    costs: tuple[tuple[Any, Any, float], ...] = ()
    shares: tuple[tuple[float, float], ...] = ()

    @property
    def rates(self) -> tuple[float, float]:
        """What a scaled unit costs, downwards and upwards; of categories without an order, ``weight`` for both."""
        down, up = self.weight_down, self.weight_up
        return self.weight if down is None else down, self.weight if up is None else up

    @property
    def even(self) -> bool:
        """Whether a unit costs the same wherever it leads."""
        return self.rates == (self.weight, self.weight) and not self.costs and not self.shares
