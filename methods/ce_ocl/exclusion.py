"""Solutions that the real model refuses, ruled out."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from harness.core.tolerances import FEASIBILITY
from harness.solvers.highs import Linear
from harness.solvers.program import Compiled

WIDER = 10.0  # times what tolerances hide


class Exclusion:
    """Rules out a solution that the real model refuses: its combination of leaves, or a margin ten times as wide.

    Parameters
    ----------
    rows
        Those of validity (2c).
    wider
        What the first margin adds to them.
    leaves
        The columns of each tree's leaves where the model has nothing but splits, else None.
    """

    def __init__(
        self, compiled: Compiled, rows: Sequence[int], wider: float, leaves: Sequence[np.ndarray] | None
    ) -> None:
        self.compiled, self.rows, self.wider, self.leaves = compiled, rows, wider, leaves

    def add(self, x: np.ndarray, repairs: int) -> None:
        """Rule out a solution, after ``repairs`` others."""
        compiled = self.compiled
        if self.leaves is not None:
            chosen = [int(tree[x[tree].argmax()]) for tree in self.leaves]
            compiled.add_row(Linear.of([(leaf, 1.0) for leaf in chosen]), high=len(chosen) - 1.0)
            return
        for row in self.rows:
            start, end = compiled.matrix.indptr[row], compiled.matrix.indptr[row + 1]
            form = Linear(compiled.matrix.indices[start:end], compiled.matrix.data[start:end])
            whole = compiled.integer[form.columns].all()  # whose tolerance may hide as much, at the same point again
            hidden = WIDER * FEASIBILITY * float(np.abs(form.coefficients).max()) if whole else 0.0
            extra = max(self.wider, hidden) * 10.0**repairs
            if math.isfinite(compiled.row_low[row]):
                compiled.add_row(form, low=compiled.row_low[row] + extra)
            else:
                compiled.add_row(form, high=compiled.row_high[row] - extra)
