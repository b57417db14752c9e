"""What a scorecard's bins are worth, as plain data: for the terms of an objective."""

from __future__ import annotations

from typing import Any

from harness.core.space import Space
from harness.models.card import Card


def table_of(card: Card, space: Space) -> list[dict[str, Any]]:
    """What each feature's values are worth: by ``thresholds`` (values[k] within (t[k - 1], t[k]]), or by ``levels``."""
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
