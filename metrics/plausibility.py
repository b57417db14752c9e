"""Whether the answers look like the training data."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.neighbors import LocalOutlierFactor

from harness.core.asked import Asked
from harness.core.clusters import clustered
from harness.core.density import Density
from harness.core.metric import metric, together
from harness.core.problem import Problem
from harness.core.space import Kind, Space
from harness.core.tolerances import SCORE_TIE
from metrics._once import once

NEIGHBOURS = 5
LOF_NEIGHBOURS = 20
LOF_ROWS = 5_000  # the fit grows with the square of the rows
COMPONENTS = 5  # of the density


@metric(better="higher", family="plausibility", range=(0.0, 1.0), criterion="plausibility", place=3)
@together
def ynn(asked: Asked) -> np.ndarray:
    """Mean share of the 5 nearest training rows that are *predicted* as desired, in [0, 1], higher is better.

    yNN of Pawelczyk et al. (2021), there nearest in Euclidean distance, here in Gower's; the earlier row first where
    the floats of two are equal. None without answers.

    >>> from metrics._example import answers, factual, problem
    >>> round(ynn(factual, answers, problem), 9)  # three of five, twice
    0.6
    """
    return asked.mean(_predicted_desired(asked.problem)[_neighbours(asked).nearest])


@metric(better="lower", family="plausibility", range=(0.0, np.inf), shown=False)
@together
def knn(asked: Asked) -> np.ndarray:
    """Mean Gower distance to the 5 nearest training rows *labelled* as desired, in [0, inf), lower is better.

    All such rows where there are fewer than 5. The fourth objective of Dandl et al. (2020), who take rows of every
    label and may weigh them. None without answers or such rows.

    >>> from metrics._example import answers, factual, problem
    >>> round(knn(factual, answers, problem), 9)  # to all five rows labelled granted: 0.374, then 0.45
    0.412
    """
    if not _labelled_desired(asked.problem).any():
        return np.full(len(asked.counts), np.nan)
    return asked.mean(_neighbours(asked).away)


@metric(better="lower", family="plausibility", range=(0.0, np.inf), shown=False)
@together
def lof(asked: Asked) -> np.ndarray:
    """Mean local outlier factor among the training rows *labelled* as desired, in (0, inf), lower is better.

    The factor of Breunig et al. (2000): about 1 amid the data, larger outside. Euclidean in scaled columns, 20
    neighbours (all others, where fewer), over the distinct rows, since 20 copies of one row make a density without
    bound; of more than 5,000 of them a seeded sample. A number that may be missing has a second column, 1 at a gap,
    where its own is the median. None without answers or with fewer than two such rows.

    >>> from metrics._example import answers, factual, problem
    >>> inside, outside = answers.assign(income=80.0), answers.assign(income=500.0)
    >>> lof(factual, inside, problem) < lof(factual, outside, problem)
    True
    """
    detector = _outlier_detector(asked.problem)
    if not len(asked.answers) or detector is None:
        return np.full(len(asked.counts), np.nan)
    encoded = _filled(asked.problem, asked.problem.space.encode(asked.answers))
    return asked.mean(-detector.score_samples(encoded))


@metric(better="higher", family="plausibility", range=(0.0, 1.0), shown=False)
@together
def likelihood(asked: Asked) -> np.ndarray:
    """Mean share of training rows *labelled* as desired that are no likelier, in [0, 1], higher is better.

    Under a mixture of histograms (``harness.core.density``) of these rows, a component for each of 5 clusters. This
    project's definition. None without answers or such rows.

    >>> from metrics._example import answers, factual, problem
    >>> rare, row = answers.iloc[:1], problem.train.iloc[[5]]  # the second is one of the rows labelled granted
    >>> likelihood(factual, rare, problem), likelihood(factual, row, problem)
    (0.0, 1.0)
    """
    if not len(asked.answers) or not _labelled_desired(asked.problem).any():
        return np.full(len(asked.counts), np.nan)
    density, known = _density(asked.problem)
    found = density.likelihood(asked.problem.space.encode(asked.answers))
    return asked.mean(np.searchsorted(known, found + SCORE_TIE, side="right") / len(known))


@once
def _density(problem: Problem) -> tuple[Density, np.ndarray]:
    """The density of the training rows labelled as desired, and what it says of them, in ascending order."""
    rows = problem.encoded[_labelled_desired(problem)]
    density = Density.of(problem.space, rows, clustered(_filled(problem, rows), COMPONENTS))
    return density, np.sort(density.likelihood(rows))


@once
def _train(problem: Problem) -> np.ndarray:
    return _gower_columns(problem.space, problem.encoded)


class _Neighbours(NamedTuple):
    """The training rows near each answer, in Gower distance."""

    nearest: np.ndarray  # (answers, NEIGHBOURS) int, the nearest rows, the earlier one first where two are as near
    away: np.ndarray  # (answers, NEIGHBOURS) distances to the nearest rows labelled as desired, in ascending order


@once
def _neighbours(asked: Asked) -> _Neighbours:
    problem, rows = asked.problem, _train(asked.problem)
    desired = np.flatnonzero(_labelled_desired(problem))
    answers = _gower_columns(problem.space, problem.space.encode(asked.answers))
    nearest, away = [], []
    for row in answers:
        distances = _gower(problem.space, row, rows)
        nearest.append(_first(distances))
        wanted = distances[desired]
        away.append(wanted[_first(wanted)])
    return _Neighbours(np.array(nearest, dtype=int), np.array(away))


def _first(distances: np.ndarray) -> np.ndarray:
    """The places of the ``NEIGHBOURS`` least distances, in ascending order; the earlier one first of two equal ones."""
    if len(distances) <= NEIGHBOURS:
        return distances.argsort(kind="stable")
    near = np.flatnonzero(distances <= np.partition(distances, NEIGHBOURS - 1)[NEIGHBOURS - 1])
    return near[distances[near].argsort(kind="stable")[:NEIGHBOURS]]


@once
def _predicted_desired(problem: Problem) -> np.ndarray:
    return problem.valid(problem.train)


@once
def _labelled_desired(problem: Problem) -> np.ndarray:
    """Which training rows have the wanted label, bool."""
    return problem.labelled(problem.labels)


@once
def _outlier_detector(problem: Problem) -> LocalOutlierFactor | None:
    rows = np.unique(_filled(problem, problem.encoded[_labelled_desired(problem)]), axis=0)
    if len(rows) < 2:
        return None
    if len(rows) > LOF_ROWS:
        rows = rows[np.random.default_rng(0).choice(len(rows), LOF_ROWS, replace=False)]
    return LocalOutlierFactor(min(LOF_NEIGHBOURS, len(rows) - 1), algorithm="ball_tree", novelty=True).fit(rows)


def _filled(problem: Problem, encoded: np.ndarray) -> np.ndarray:
    """Scaled columns in which gaps are the training rows' median; then, for each that has gaps, which they are."""
    gaps = [c.start for f, c in zip(problem.space.features, problem.space.slices, strict=True) if f.missing]
    if not gaps:
        return encoded
    empty = np.isnan(encoded[:, gaps])
    whole = encoded.copy()
    whole[:, gaps] = np.where(empty, np.nanmedian(problem.encoded[:, gaps], axis=0), whole[:, gaps])
    return np.column_stack([whole, empty])


def _gower_columns(space: Space, encoded: np.ndarray) -> np.ndarray:
    """Scaled columns so weighted that Manhattan distance is Gower's: a changed category moves two one-hot columns."""
    weights = np.concatenate(
        [np.full(feature.width, 0.5 if feature.kind is Kind.CATEGORICAL else 1.0) for feature in space.features]
    )
    return encoded * (weights / len(space.features))


def _gower(space: Space, row: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Gower distances, shape (rows,), of what ``_gower_columns`` gave; a gap is one unit from a number."""
    if not space.gaps:
        return cdist(row[None], rows, "cityblock")[0]
    apart = np.abs(rows - row)
    return np.where(
        np.isnan(rows) & np.isnan(row), 0.0, np.where(np.isnan(apart), 1.0 / len(space.features), apart)
    ).sum(1)
