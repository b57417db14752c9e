"""Decoded rows as cells: those of the training data that are right, and what the real model says of one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from harness.core.problem import Problem
from harness.core.space import Feature
from harness.core.tolerances import SCORE_TIE
from methods.cells.grid import Grid
from methods.estimators import walk_kernels

ROWS = 2000  # training rows considered for a first guess, which needs a near one, not the nearest


def known_cells(problem: Problem, grid: Grid) -> np.ndarray:
    """The cells of some training rows that are right, shape (rows, features)."""
    rows = problem.train.loc[problem.valid(problem.train)]
    rows = rows.iloc[np.random.default_rng(0).permutation(len(rows))[:ROWS]]
    return np.unique(cells_of(rows, problem.space.features, grid), axis=0)


def cells_of(rows: pd.DataFrame, features: Sequence[Feature], grid: Grid) -> np.ndarray:
    """The cells of decoded rows, shape (rows, features)."""
    cells = [
        np.where(rows[feature.name].isna(), len(ends) + 1, np.searchsorted(ends, rows[feature.name].to_numpy(float)))
        if feature.numeric
        else feature.codes(rows[feature.name])
        for feature, ends in zip(features, grid.ends, strict=True)
    ]
    return np.column_stack(cells).astype(np.int64)


def decision(problem: Problem, grid: Grid) -> Callable[[Mapping[str, Any]], bool]:
    """Whether a decoded row is valid: by walking the trees, or by the fitted model itself where the score is close."""
    classifier, seen, gaps = problem.classifier, np.float32 if grid.single else np.float64, bool(problem.space.gaps)

    def right(row: Mapping[str, Any]) -> bool:
        inputs = classifier.vector(row)[0].astype(seen)
        if gaps and np.isnan(inputs).any():
            return bool(problem.valid(problem.space.frame([row]))[0])
        score = min(walk_kernels.walk(trees, base, inputs) for trees, base in grid.walks)
        if abs(score) > SCORE_TIE:
            return bool(score > 0)
        return bool(problem.valid(problem.space.frame([row]))[0])

    return right
