"""What the model should say: a class, a class with a probability, or a number in an interval."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

if TYPE_CHECKING:
    from harness.core.classifier import Classifier


@dataclass(frozen=True)
class Label:
    """Wanted: the model's own ``predict`` gives this class."""

    value: Any

    def holds(self, classifier: Classifier, frame: pd.DataFrame) -> np.ndarray:
        """Per row, whether the real model gives the wanted class, bool."""
        return np.asarray(classifier.predict(frame) == self.value, dtype=bool)


@dataclass(frozen=True)
class Interval:
    """Wanted: a regression model's prediction lies in [low, high]."""

    low: float = -np.inf
    high: float = np.inf

    def __post_init__(self) -> None:
        if not self.low <= self.high:
            raise ValueError(f"the interval [{self.low}, {self.high}] is empty; give low <= high.")

    def holds(self, classifier: Classifier, frame: pd.DataFrame) -> np.ndarray:
        """Per row, whether the real model's prediction lies in the interval, bool."""
        predicted = np.asarray(classifier.predict(frame), dtype=float)
        return (predicted >= self.low) & (predicted <= self.high)


@dataclass(frozen=True)
class Probability:
    """Wanted: the model's probability of a class lies in [low, high]."""

    label: Any
    low: float = 0.0
    high: float = 1.0

    def __post_init__(self) -> None:
        if not 0 <= self.low <= self.high <= 1:
            raise ValueError(f"the probability interval [{self.low}, {self.high}] is not within [0, 1] and in order.")

    def holds(self, classifier: Classifier, frame: pd.DataFrame) -> np.ndarray:
        """Per row, whether the real model's probability lies in the interval, bool."""
        probability = classifier.probability(frame, self.label)
        return (probability >= self.low) & (probability <= self.high)


Target = Label | Interval | Probability
