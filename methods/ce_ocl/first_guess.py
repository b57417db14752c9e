"""First counterfactuals, whose cost bounds the search: training rows of the wanted class, moved towards the factual."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd

from harness.core.inputs import space_inputs
from harness.core.problem import Problem
from harness.core.space import Kind
from harness.core.target import Label
from harness.core.tolerances import COORDINATE_TIE
from methods.estimators.fast_predict import fast_decide

ROWS = 2000  # training rows considered: a first guess needs a near one, not the nearest
NEIGHBOURS = 24  # training rows that are moved towards the factual
HALVINGS = 8  # of a number's way back to the factual


class FirstGuess:
    """Valid points near a factual: the nearest training rows of the desired class, pulled back feature by feature.

    Works on scaled rows; the model itself predicts whether they are valid, many rows a call.
    """

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.valid = _validity_test(problem)
        desired = problem.train.loc[problem.valid(problem.train)]
        rows = np.unique(problem.space.encode(desired), axis=0)
        self.rows = np.random.default_rng(0).permutation(rows)[:ROWS]
        self.groups = problem.space.slices
        # A number's column, and the scaled size of a whole unit where only whole units exist.
        self.numbers = [
            (columns.start, 1.0 / feature.range if feature.kind is Kind.INTEGER else 0.0)
            for feature, columns in zip(problem.space.features, self.groups, strict=True)
            if feature.numeric
        ]

    def near(self, factual: pd.DataFrame, weights: np.ndarray) -> pd.DataFrame:
        """Decoded valid points, the best guesses, possibly none; ``weights``: the cost of a changed feature."""
        space = self.problem.space
        origin = space.encode(factual)[0]
        low, high = space.reach(factual)
        if not len(self.rows):
            return factual.iloc[:0]
        points = self._reachable(origin, factual)
        gaps = np.abs(points - origin)
        changed = np.column_stack([(gaps[:, columns] > COORDINATE_TIE).any(axis=1) for columns in self.groups])
        order = np.argsort(changed @ weights + gaps.sum(axis=1), kind="stable")
        points = np.unique(points[order[: 8 * NEIGHBOURS]], axis=0)
        points = points[self.valid(points)]
        gaps = np.abs(points - origin).sum(axis=1)
        points = points[np.argsort(gaps, kind="stable")[:NEIGHBOURS]]
        if not len(points):
            return factual.iloc[:0]
        points = self._halve(self._restore(points, origin), np.clip(origin, low, high), origin)
        rows = space.decode(points, like=factual)
        return rows.loc[self.problem.valid(rows)]

    def _reachable(self, origin: np.ndarray, factual: pd.DataFrame) -> np.ndarray:
        """The rows with every feature that may not go there put back to the factual's value."""
        points = self.rows.copy()
        for columns, within in zip(self.groups, self.problem.space.reached(factual, points).T, strict=True):
            points[~within, columns] = origin[columns]
        return points

    def _restore(self, points: np.ndarray, origin: np.ndarray) -> np.ndarray:
        """Put back one feature after another, smallest move first, wherever the point stays valid."""
        order = np.argsort([np.abs(points[:, columns] - origin[columns]).sum() for columns in self.groups])
        starts = np.concatenate([points, points])
        for forward, backward in zip(order, order[::-1], strict=True):
            trial = starts.copy()
            half = len(points)
            trial[:half, self.groups[forward]] = origin[self.groups[forward]]
            trial[half:, self.groups[backward]] = origin[self.groups[backward]]
            kept = self.valid(trial)
            starts[kept] = trial[kept]
        return np.unique(starts, axis=0)

    def _halve(self, points: np.ndarray, nearest: np.ndarray, origin: np.ndarray) -> np.ndarray:
        """Halve the way of one number after another back to the factual, wherever the point stays valid.

        A special code has no way back: there ``nearest``, the end of the reach, stands for the factual.
        """
        for column, unit in self.numbers:
            away = np.flatnonzero(np.abs(points[:, column] - origin[column]) > COORDINATE_TIE)
            if not len(away):
                continue
            near, far = np.full(len(away), nearest[column]), points[away, column]
            trial = points[away]
            for _ in range(HALVINGS):
                middle = (near + far) / 2
                trial[:, column] = near + np.rint((middle - near) / unit) * unit if unit else middle
                ok = self.valid(trial)
                far, near = np.where(ok, trial[:, column], far), np.where(ok, near, trial[:, column])
            points[away, column] = far
        return points


def _validity_test(problem: Problem) -> Callable[[np.ndarray], np.ndarray]:
    """A test of scaled rows for validity, as fast as the model's inputs allow; decoded rows are tested again."""
    classifier, target = problem.classifier, problem.target
    if isinstance(target, Label) and classifier.opaque is None:
        code, decide = classifier.code(target.value), fast_decide(classifier)
        if classifier.inputs == space_inputs(problem.space):
            return lambda rows: decide(rows) == code
        return lambda rows: decide(classifier.matrix(problem.space.decode(rows))) == code
    return lambda rows: problem.valid(problem.space.decode(rows))
