"""Which rows are separated from earlier counterfactuals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from methods.ce_ocl.program import CounterfactualProgram


class Separation:
    """What ``formulation.separation`` demands of a program's solutions, of rows.

    Parameters
    ----------
    earlier
        Rows, or with ``diversity=assignments`` assignments.
    """

    def __init__(self, program: CounterfactualProgram, factual: pd.DataFrame, earlier: Sequence[Any]) -> None:
        self.program, self.factual, self.earlier = program, factual, earlier

    def of(self, frame: pd.DataFrame) -> np.ndarray:
        """Which rows are separated from all earlier counterfactuals, bool of shape (rows,)."""
        if (assignments := self.program.assignments) is not None:
            return np.array([one not in self.earlier for one in assignments.of(self.factual, frame)], dtype=bool)
        separated = np.ones(len(frame), dtype=bool)
        rule = self._repeats_none if self.program.parameters.diversity == "features" else self._far
        for row in self.earlier:
            separated &= rule(frame, row)
        return separated

    def _far(self, frame: pd.DataFrame, row: dict[str, Any]) -> np.ndarray:
        """Which rows differ from an earlier counterfactual in a category, or by ``separation`` in a number."""
        far = np.zeros(len(frame), dtype=bool)
        for feature in self.program.problem.space.features:
            values = frame[feature.name]
            if feature.numeric:
                gap = np.abs(values.to_numpy(float) - float(row[feature.name])) / feature.range
                far |= gap >= self.program.parameters.separation
            else:
                far |= (values != row[feature.name]).to_numpy(bool)
        return far

    def _repeats_none(self, frame: pd.DataFrame, row: dict[str, Any]) -> np.ndarray:
        """Which rows make none of an earlier counterfactual's changes: a category, or a number to the same side."""
        free = np.ones(len(frame), dtype=bool)
        for feature in self.program.problem.space.features:
            origin, value, values = self.factual[feature.name].iloc[0], row[feature.name], frame[feature.name]
            if value == origin:
                continue
            if feature.numeric:
                free &= ((values <= origin) if value > origin else (values >= origin)).to_numpy(bool)
            else:
                free &= (values != value).to_numpy(bool)
        return free
