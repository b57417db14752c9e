"""A gap: a decoded value that is missing, as a state of its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

MISSED = "missing"  # the category of gaps, and how a gap is called


def missing(value: Any) -> bool:
    """Whether a decoded value is a gap: NaN in frames and rows, null in files.

    >>> missing(float("nan")), missing(None), missing(0), missing("missing")
    (True, True, False, False)
    """
    return value is None or bool(value != value)


def same(one: Any, other: Any) -> bool:
    """Whether two decoded values are equal; two gaps are.

    >>> same(float("nan"), None), same(1, 1.0), same(float("nan"), 0)
    (True, True, False)
    """
    return bool(one == other) or (missing(one) and missing(other))


def same_row(row: Mapping[str, Any], origin: Mapping[str, Any]) -> bool:
    """Whether a decoded row has all the values of another.

    >>> same_row({"age": 30, "job": None}, {"job": float("nan")}), same_row({"age": 30}, {"age": 31})
    (True, False)
    """
    return all(same(row.get(name), value) for name, value in origin.items())
