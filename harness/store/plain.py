"""What is stored, as plain data."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Mapping
from typing import Any

import numpy as np

TAG, ARRAY = "__type__", "__array__"


def to_plain(value: Any, arrays: dict[str, np.ndarray] | None = None) -> Any:
    """Plain JSON data of the types that describe a question; ``codec.from_plain`` is the inverse.

    Arrays become lists, or, where ``arrays`` is given, references to what is put there by its checksum.
    """
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        stored = [f for f in dataclasses.fields(value) if not _left_out(f, getattr(value, f.name))]
        fields = {f.name: to_plain(getattr(value, f.name), arrays) for f in stored}
        return {TAG: type(value).__name__, **fields}
    if isinstance(value, Mapping):
        return {str(key): to_plain(item, arrays) for key, item in value.items()}
    if isinstance(value, np.ndarray) and arrays is not None:
        name = hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()[:16]
        arrays[name] = value
        return {ARRAY: name}
    if isinstance(value, np.generic | np.ndarray) and not value.ndim:
        return value.item()
    if isinstance(value, list | tuple | np.ndarray):
        return [to_plain(item, arrays) for item in value]
    return value


def _left_out(field: dataclasses.Field[Any], value: Any) -> bool:
    """Whether a field is its default, which it is then read as, and is not stored."""
    return "unstored" in field.metadata and bool(value == field.default)
