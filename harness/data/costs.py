"""Costs of changes, as a feature takes them: pairs of categories from a file, and shares of a population."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd

from harness.core.costs import population
from harness.core.errors import DatasetError
from harness.core.feature import Feature, Kind

COLUMNS = ["from", "to", "cost"]


def costed(feature: Feature, values: pd.Series, entry: Mapping[str, Any]) -> Feature:
    """A feature at the costs that an entry gives it; ``values`` are those of the population.

    Raises
    ------
    DatasetError
        Where they do not fit.
    """
    costs = dict(entry)
    by_population = costs.pop("percentile", False)
    if not isinstance(by_population, bool):
        raise DatasetError(f"percentile of {feature.name} is {by_population!r}; give true or false.")
    if isinstance(costs.get("costs"), str):
        costs["costs"] = read_costs(costs["costs"], feature.name)
    if by_population:
        if not feature.numeric and feature.kind is not Kind.ORDINAL:
            raise DatasetError(
                f"feature {feature.name} is {feature.kind}, and only a number or a rank passes others on its way; "
                f"leave percentile out."
            )
        known = values.dropna()
        known = known[~known.isin(feature.special)]
        costs["shares"] = population(known.to_numpy(float) if feature.numeric else feature.codes(known).astype(float))
    return replace(feature, price=replace(feature.price, **costs))


def read_costs(path: str, feature: str) -> list[tuple[str, str, float]]:
    """Rows of (from, to, cost) of a CSV with these columns.

    Raises
    ------
    DatasetError
        Where there is no such file, or it has other columns or a cost that is no number.
    """
    try:
        table = pd.read_csv(Path(path).expanduser(), dtype=str, keep_default_na=False)
    except (OSError, UnicodeDecodeError, pd.errors.ParserError, pd.errors.EmptyDataError) as fault:
        raise DatasetError(
            f"costs of {feature} cannot be read from {path!r} ({fault}); give a CSV of from,to,cost."
        ) from None
    if list(table.columns) != COLUMNS:
        raise DatasetError(
            f"{path}, costs of {feature}, has the columns {list(table.columns)}; name them from,to,cost."
        )
    costs = pd.to_numeric(table["cost"], errors="coerce")
    for row in table.index[costs.isna()]:
        raise DatasetError(f"{path}, costs of {feature}, holds {table['cost'][row]!r} in row {row + 2}; give a number.")
    return list(zip(table["from"], table["to"], costs.tolist(), strict=True))
