"""Which rows span a convex hull."""

from __future__ import annotations

import numpy as np

from harness.core.problem import Problem

SUPPORTS = ("labelled", "predicted", "both")


def supports(problem: Problem, which: str) -> np.ndarray:
    """Which reference rows span the hull, bool: those labelled as wanted, predicted as wanted, or both."""
    labelled = problem.labelled(problem.reference_labels)
    if which == "labelled":
        return labelled
    predicted = problem.valid(problem.reference)
    return predicted if which == "predicted" else labelled & predicted


def support_points(problem: Problem, which: str) -> np.ndarray:
    """The points that span the hull, each once, in scaled space, shape (points, columns)."""
    return np.unique(problem.space.encode(problem.reference.loc[supports(problem, which)]), axis=0)
