"""Rows walked through the trees of an ensemble, compiled."""

from __future__ import annotations

from harness.core.compiling import njit, njit_no_refcount
from methods.estimators.tree_arrays import FlatTrees


@njit_no_refcount
def walk(trees, base, inputs):
    """The base and the trees' leaf values for one row of inputs (float32 or float64, as they compare it), added up.

    ``trees`` is the plain ``tuple`` of a ``FlatTrees``, which numba recognises sooner.
    """
    roots, left, right, column, threshold, value = FlatTrees(*trees)
    total = base
    for root in roots:
        node = root
        while left[node] >= 0:
            node = left[node] if inputs[column[node]] <= threshold[node] else right[node]
        total += value[node]
    return total


@njit(cache=True)
def walk_all(trees, base, rows, totals):
    """``walk`` of many rows, written into ``totals``."""
    for i in range(len(rows)):
        totals[i] = walk(trees, base, rows[i])
