"""A question in the plane for the tests of robust regions: two numbers, a curved boundary, a model of each family."""

from __future__ import annotations

from functools import cache

import numpy as np
import pandas as pd

from harness.core.space import Feature, Kind, Space

SPACE = Space(
    (
        Feature("a", Kind.CONTINUOUS, scale=(0, 10), bounds=(0, 10)),
        Feature("b", Kind.CONTINUOUS, scale=(-1, 1), bounds=(-1, 1)),
    )
)


@cache
def rows() -> tuple[pd.DataFrame, np.ndarray]:
    """200 rows and their classes, 0 or 1."""
    points = np.random.default_rng(0).random((200, 2))
    wave = points[:, 1] > 0.5 + 0.25 * np.sin(6 * points[:, 0])
    return SPACE.decode(points), wave.astype(int)
