"""Columns that give the target away: known only once the target is, or the target in other words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
from sklearn.metrics import roc_auc_score

from harness.data.dataset import Dataset

SURE = 0.99  # the area under the curve above which a column is named
LEAST = 10  # rows of each class, below which one column may tell them apart by chance
CODES = 20  # so few different numbers may be codes, in whose order there is no meaning


def leaks(dataset: Dataset) -> Iterator[str]:
    """A sentence for each feature that alone tells the classes apart; none for numbers as targets."""
    labels = np.asarray(dataset.labels)
    sizes = [int((labels == name).sum()) for name in dataset.classes]
    if len(sizes) < 2 or min(sizes) < LEAST:
        return
    for feature in dataset.space.features:
        values = dataset.frame[feature.name]
        area = _of_numbers(values, labels, dataset.classes) if feature.numeric else 0.0
        if area <= SURE and (not feature.numeric or values.nunique() <= CODES):
            area = min(_of_values(values, labels == name) for name in dataset.classes)
        if area > SURE:
            yield (
                f"{dataset.name}: column {feature.name!r} alone tells the classes apart (AUC {area:.3f}); if it is "
                f"known only afterwards, or is the target in other words, list it in 'drop'."
            )


def _of_numbers(values: pd.Series, labels: np.ndarray, classes: Sequence[Any]) -> float:
    """The least area under the curve of a number between two classes whose medians follow each other; gaps come first.

    It rises from class to class, or falls, where it tells them apart.
    """
    numbers = values.fillna(values.min() - 1).to_numpy(float)
    parts = sorted((numbers[labels == name] for name in classes), key=np.median)
    areas = []
    for one, other in pairwise(parts):
        area = roc_auc_score(np.repeat([0, 1], [len(one), len(other)]), np.concatenate([one, other]))
        areas.append(max(area, 1.0 - area))
    return float(min(areas))


def _of_values(values: pd.Series, positive: np.ndarray) -> float:
    """The area under the curve, for a class, of its share among the same values in the other half of the rows."""
    halves, known = np.arange(len(values)) % 2 == 0, values.astype(object).where(values.notna(), None)
    scores = np.empty(len(values))
    for half in (halves, ~halves):
        share = pd.Series(positive[~half]).groupby(known[~half].to_numpy(), dropna=False).mean()
        scores[half] = known[half].map(share).astype(float).fillna(positive[~half].mean())
    return float(roc_auc_score(positive, scores))
