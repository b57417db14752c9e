"""Values as JSON and back, exact to the last bit."""

from __future__ import annotations

import dataclasses
import hashlib
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

_TAG, _ARRAY = "__type__", "__array__"
_TYPES = {
    kind.__name__: kind
    for kind in (
        Feature, Notation, Price, Space, Label, Classes, Interval, Probability, Affine, Chain, Indicator, Lookup, Step,
        Formula, Objective, Term, Limit,
    )
}  # fmt: skip


_TERMS = {"worth_l1": "woe_l1", "worth_mahalanobis": "woe_mahalanobis", "worth_outcome": "woe_outcome"}


def to_plain(value: Any, arrays: dict[str, np.ndarray] | None = None) -> Any:
    """Plain JSON data of the types that describe a question; ``from_plain`` is the inverse.

    Arrays become lists, or, where ``arrays`` is given, references to what is put there by its checksum.
    """
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        stored = [f for f in dataclasses.fields(value) if not _left_out(f, getattr(value, f.name))]
        fields = {f.name: to_plain(getattr(value, f.name), arrays) for f in stored}
        return {_TAG: type(value).__name__, **fields}
    if isinstance(value, Mapping):
        return {str(key): to_plain(item, arrays) for key, item in value.items()}
    if isinstance(value, np.ndarray) and arrays is not None:
        name = hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()[:16]
        arrays[name] = value
        return {_ARRAY: name}
    if isinstance(value, list | tuple | np.ndarray):
        return [to_plain(item, arrays) for item in value]
    if isinstance(value, np.generic):
        return value.item()
    return value


def _left_out(field: dataclasses.Field[Any], value: Any) -> bool:
    """Whether a field is its default, which it is then read as, and is not stored."""
    return "unstored" in field.metadata and bool(value == field.default)


def from_plain(data: Any, arrays: Mapping[str, np.ndarray] | None = None) -> Any:
    """Rebuild what ``to_plain`` took apart; lists become tuples."""
    if isinstance(data, dict):
        if _ARRAY in data and arrays is not None:
            return arrays[data[_ARRAY]]
        items = {key: from_plain(item, arrays) for key, item in data.items() if key != _TAG}
        if _TAG not in data:
            return items
        return _TYPES[data[_TAG]](**(_renamed(items) if data[_TAG] == "Term" else items))
    if isinstance(data, list):
        return tuple(from_plain(item, arrays) for item in data)
    return data


def _renamed(term: dict[str, Any]) -> dict[str, Any]:
    """The fields of a stored term, names of earlier versions as today's."""
    params = term["params"]
    if term["name"] == "worth_outcome":
        params = {("target" if name == "wish" else name): value for name, value in params.items()}
    return term | {"name": _TERMS.get(term["name"], term["name"]), "params": params}
