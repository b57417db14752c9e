"""Whether the answers look like the training data."""

from __future__ import annotations

import numpy as np
import pandas as pd
from sklearn.metrics.pairwise import manhattan_distances
from sklearn.neighbors import LocalOutlierFactor

from harness.core.metric import metric
from harness.core.problem import Problem
from harness.core.space import Kind, Space
from metrics._once import once_per_problem

NEIGHBOURS = 5
LOF_NEIGHBOURS = 20
LOF_ROWS = 5_000  # the fit grows with the square of the rows


@metric(better="higher", family="plausibility", range=(0.0, 1.0), criterion="plausibility", place=3)
def ynn(factual: pd.DataFrame, answers: pd.DataFrame, problem: Problem) -> float | None:
    """Mean share of the 5 nearest training rows that are *predicted* as desired, in [0, 1], higher is better.

    Nearest in Gower distance, the earlier row first where two are as near. None without answers.

    >>> from metrics._example import answers, factual, problem
    >>> round(ynn(factual, answers, problem), 9)  # three of five, twice
    0.6
    """
    if not len(answers):
        return None
    nearest = _gower(problem.space, answers, _train(problem)).argsort(axis=1, kind="stable")[:, :NEIGHBOURS]
    return float(_predicted_desired(problem)[nearest].mean())


@metric(better="lower", family="plausibility", shown=False)
def knn(factual: pd.DataFrame, answers: pd.DataFrame, problem: Problem) -> float | None:
    """Mean Gower distance to the 5 nearest training rows *labelled* as desired, in [0, inf), lower is better.

    All such rows where there are fewer than 5. None without answers or such rows.

    >>> from metrics._example import answers, factual, problem
    >>> round(knn(factual, answers, problem), 9)  # to all five rows labelled granted: 0.374, then 0.45
    0.412
    """
    desired = _desired(problem)
    if not len(answers) or not len(desired):
        return None
    return float(np.sort(_gower(problem.space, answers, desired), axis=1)[:, :NEIGHBOURS].mean())


@metric(better="lower", family="plausibility", shown=False)
def lof(factual: pd.DataFrame, answers: pd.DataFrame, problem: Problem) -> float | None:
    """Mean local outlier factor among the training rows *labelled* as desired, in (0, inf), lower is better.

    About 1 amid the data, larger outside. Euclidean in scaled columns, 20 neighbours (all others, where fewer), over
    the distinct rows, since 20 copies of one row make a density without bound; of more than 5,000 of them a seeded
    sample. None without answers or with fewer than two such rows.

    >>> from metrics._example import answers, factual, problem
    >>> inside, outside = answers.assign(income=80.0), answers.assign(income=500.0)
    >>> lof(factual, inside, problem) < lof(factual, outside, problem)
    True
    """
    detector = _outlier_detector(problem)
    if not len(answers) or detector is None:
        return None
    return float(-detector.score_samples(problem.space.encode(answers)).mean())


@once_per_problem
def _train(problem: Problem) -> np.ndarray:
    return _gower_columns(problem.space, problem.encoded)


@once_per_problem
def _desired(problem: Problem) -> np.ndarray:
    return _train(problem)[_labelled_desired(problem)]


@once_per_problem
def _predicted_desired(problem: Problem) -> np.ndarray:
    return problem.valid(problem.train)


@once_per_problem
def _labelled_desired(problem: Problem) -> np.ndarray:
    """Which training rows have the wanted label, bool."""
    return problem.labelled(problem.labels)


@once_per_problem
def _outlier_detector(problem: Problem) -> LocalOutlierFactor | None:
    rows = np.unique(problem.encoded[_labelled_desired(problem)], axis=0)
    if len(rows) < 2:
        return None
    if len(rows) > LOF_ROWS:
        rows = rows[np.random.default_rng(0).choice(len(rows), LOF_ROWS, replace=False)]
    return LocalOutlierFactor(n_neighbors=min(LOF_NEIGHBOURS, len(rows) - 1), novelty=True).fit(rows)


def _gower_columns(space: Space, encoded: np.ndarray) -> np.ndarray:
    """Scaled columns so weighted that Manhattan distance is Gower's: a changed category moves two one-hot columns."""
    weights = np.concatenate(
        [np.full(feature.width, 0.5 if feature.kind is Kind.CATEGORICAL else 1.0) for feature in space.features]
    )
    return encoded * (weights / len(space.features))


def _gower(space: Space, answers: pd.DataFrame, rows: np.ndarray) -> np.ndarray:
    """Gower distances, shape (answers, rows), to rows that ``_gower_columns`` gave."""
    return manhattan_distances(_gower_columns(space, space.encode(answers)), rows)
