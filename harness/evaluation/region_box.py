"""The points of a region, as the model itself is asked about them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from harness.core.classifier import Classifier
from harness.core.space import Space
from harness.core.target import Target


@dataclass(frozen=True)
class Box:
    """The points of a region: decoded rows that differ from ``row`` in the numbers of ``ends`` only.

    Parameters
    ----------
    ends
        The least and the greatest value by feature, in original units; integers are real numbers in here.
    """

    space: Space
    classifier: Classifier
    target: Target
    row: Mapping[str, Any]
    ends: Mapping[str, tuple[float, float]]

    def frame(self, points: np.ndarray) -> pd.DataFrame:
        """Decoded rows of values of the numbers of ``ends``, shape (points, numbers)."""
        columns = {name: [self.row[name]] * len(points) for name in self.space.names}
        columns |= dict(zip(self.ends, np.asarray(points, dtype=float).T.tolist(), strict=True))
        return pd.DataFrame(columns, columns=self.space.index)

    def invalid(self, points: np.ndarray) -> bool:
        """Whether the model itself refuses one of some points, cut to the box."""
        low, high = np.array(list(self.ends.values())).reshape(-1, 2).T
        return not self.target.holds(self.classifier, self.frame(np.clip(points, low, high))).all()


def every(found: Iterable[bool | None]) -> bool | None:
    """Whether all hold: False once one does not, after which no other is looked at; None where one is not settled."""
    settled = True
    for holds in found:
        if holds is False:
            return False
        settled &= holds is True
    return True if settled else None
