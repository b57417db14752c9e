"""Columns that are computed of one input each: thresholds on them as thresholds on the inputs, to the last bit."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

Step = Callable[[np.ndarray], np.ndarray]  # of a matrix, by column


def run(rows: np.ndarray, steps: Sequence[Step]) -> np.ndarray:
    """A matrix after steps, one upon another."""
    for step in steps:
        rows = step(rows)
    return rows


def last_before(
    steps: Sequence[Step], width: int, columns: tuple[np.ndarray, np.ndarray], threshold: np.ndarray, falls: np.ndarray
) -> np.ndarray:
    """The greatest inputs of float32 whose column after ``steps`` is still on its first side of the threshold.

    That is at most the threshold where the column rises with its input, and above it where it falls.
    """
    own, column = columns
    places = np.arange(len(own))

    def first(keys: np.ndarray) -> np.ndarray:
        rows = np.zeros((len(own), width), dtype=np.float32)
        rows[places, own] = _numbered(keys)
        return (run(rows, steps)[places, column].astype(float) <= threshold) != falls

    ends = np.float32(np.finfo(np.float32).max)
    low, high = _key(np.full(len(own), -ends)), _key(np.full(len(own), ends))
    for _ in range(33):
        middle = (low + high + 1) // 2
        inside = first(middle)
        low, high = np.where(inside, middle, low), np.where(inside, high, middle - 1)
    return _numbered(low).astype(float)


def _key(values: np.ndarray) -> np.ndarray:
    """Whole numbers in the order of float32 numbers."""
    bits = values.astype(np.float32).view(np.int32).astype(np.int64)
    return np.where(bits < 0, -(bits & 0x7FFFFFFF), bits)


def _numbered(keys: np.ndarray) -> np.ndarray:
    """The float32 numbers of ``_key``."""
    return np.where(keys < 0, (-keys) | 0x80000000, keys).astype(np.uint32).view(np.float32)
