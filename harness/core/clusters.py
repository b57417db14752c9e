"""Clusters of rows."""

from __future__ import annotations

import numpy as np
from sklearn.cluster import KMeans


def clustered(points: np.ndarray, count: int) -> np.ndarray:
    """The cluster of each point, by k-means in scaled columns, seeded, shape (points,)."""
    if count <= 1 or len(points) <= count:
        return np.zeros(len(points), dtype=int) if count <= 1 else np.arange(len(points))
    return np.asarray(KMeans(count, n_init=4, random_state=0).fit_predict(points))
