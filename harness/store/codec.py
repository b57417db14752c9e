"""Values as JSON and back, exact to the last bit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from harness.core.costs import Price
from harness.core.equation import Formula
from harness.core.inputs import Affine, Chain, Indicator, Lookup, Step
from harness.core.notation import Notation
from harness.core.objective import Limit, Objective, Term
from harness.core.space import Feature, Space
from harness.core.target import Classes, Interval, Label, Probability
from harness.store.plain import ARRAY, TAG

_TYPES = {
    kind.__name__: kind
    for kind in (
        Feature, Notation, Price, Space, Label, Classes, Interval, Probability, Affine, Chain, Indicator, Lookup, Step,
        Formula, Objective, Term, Limit,
    )
}  # fmt: skip


_TERMS = {"worth_l1": "woe_l1", "worth_mahalanobis": "woe_mahalanobis", "worth_outcome": "woe_outcome"}


def from_plain(data: Any, arrays: Mapping[str, np.ndarray] | None = None) -> Any:
    """Rebuild what ``to_plain`` took apart; lists become tuples."""
    if isinstance(data, dict):
        if ARRAY in data and arrays is not None:
            return arrays[data[ARRAY]]
        items = {key: from_plain(item, arrays) for key, item in data.items() if key != TAG}
        if TAG not in data:
            return items
        return _TYPES[data[TAG]](**(_renamed(items) if data[TAG] == "Term" else items))
    if isinstance(data, list):
        return tuple(from_plain(item, arrays) for item in data)
    return data


def _renamed(term: dict[str, Any]) -> dict[str, Any]:
    """The fields of a stored term, names of earlier versions as today's."""
    params = term["params"]
    if term["name"] == "worth_outcome":
        params = {("target" if name == "wish" else name): value for name, value in params.items()}
    return term | {"name": _TERMS.get(term["name"], term["name"]), "params": params}
