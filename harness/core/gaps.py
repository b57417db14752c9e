"""A gap: a decoded value that is missing, as a state of its own."""

from __future__ import annotations

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
