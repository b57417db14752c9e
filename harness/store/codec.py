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


def from_plain(data: Any, arrays: Mapping[str, np.ndarray] | None = None) -> Any:
    """Rebuild what ``to_plain`` took apart; lists become tuples."""
    if isinstance(data, dict):
        if ARRAY in data and arrays is not None:
            return arrays[data[ARRAY]]
        items = {key: from_plain(item, arrays) for key, item in data.items() if key != TAG}
        return _TYPES[data[TAG]](**items) if TAG in data else items
    if isinstance(data, list):
        return tuple(from_plain(item, arrays) for item in data)
    return data
