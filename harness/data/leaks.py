"""Columns that give the target away: known only once the target is, or the target in other words."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd
from sklearn.metrics import roc_auc_score

from harness.data.dataset import Dataset

SURE = 0.99  # the area under the curve above which a column is named
LEAST = 10  # rows of each class, below which one column may tell them apart by chance


def leaks(dataset: Dataset) -> Iterator[str]:
    """A sentence for each feature that alone tells the classes apart; none for numbers as targets."""
    labels = np.asarray(dataset.labels)
    sizes = [int((labels == name).sum()) for name in dataset.classes]
    if len(sizes) < 2 or min(sizes) < LEAST:
        return
    for feature in dataset.space.features:
        values = dataset.frame[feature.name]
        area = min(_area(values, labels == name, feature.numeric) for name in dataset.classes)
        if area > SURE:
            yield (
                f"{dataset.name}: column {feature.name!r} alone tells the classes apart (AUC {area:.3f}); if it is "
                f"known only afterwards, or is the target in other words, list it in 'drop'."
            )


def _area(values: pd.Series, positive: np.ndarray, numeric: bool) -> float:
    """The area under the curve of a column for a class; of a category, by its share in the other half of the rows."""
    if numeric:
        scores = values.fillna(values.min() - 1).to_numpy(float)  # gaps below all numbers
    else:
        halves = np.arange(len(values)) % 2 == 0
        scores = np.empty(len(values))
        for half in (halves, ~halves):
            share = pd.Series(positive[~half]).groupby(values[~half].to_numpy()).mean()
            scores[half] = values[half].map(share).astype(float).fillna(positive[~half].mean())
    area = float(roc_auc_score(positive, scores))
    return max(area, 1.0 - area) if numeric else area
