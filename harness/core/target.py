"""What the model should say: a class, one of several, a class with a probability, or a number in an interval."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

if TYPE_CHECKING:
    from harness.core.classifier import Classifier


BOOLEANS = {"yes": True, "on": True, "true": True, "no": False, "off": False, "false": False}  # in YAML


@dataclass(frozen=True)
class Label:
    """Wanted: the model's own ``predict`` gives this class."""

    value: Any

    def holds(self, classifier: Classifier, frame: pd.DataFrame) -> np.ndarray:
        """Per row, whether the real model gives the wanted class, bool."""
        return np.asarray(classifier.predict(frame) == self.value, dtype=bool)


@dataclass(frozen=True)
class Classes:
    """Wanted: the model's own ``predict`` gives one of these classes, at least two and not all."""

    values: tuple[Any, ...]

    def holds(self, classifier: Classifier, frame: pd.DataFrame) -> np.ndarray:
        """Per row, whether the real model gives one of the wanted classes, bool."""
        return one_of(classifier.predict(frame), self.values)


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


Target = Label | Classes | Interval | Probability


def class_text(value: Any) -> str:
    """A class as a text, by which settings, data and models know it: 1.0, as of a column of floats, is 1.

    >>> class_text(1.0), class_text(1), class_text("1.0")
    ('1', '1', '1.0')
    """
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def class_named(value: Any, classes: Iterable[Any]) -> Any:
    """The class that a value names, by its text or else as ``class_text`` has both; None where there is none.

    A text that YAML takes for a boolean, where it stands without quotes, is that boolean.

    >>> class_named(1.0, [0, 1]), class_named("1.0", ["1.0", 1]), class_named("2", [0, 1])
    (1, '1.0', None)
    >>> class_named(False, ["no", "yes"]), class_named("On", [False, True]), class_named("on", ["yes"])
    ('no', True, None)
    """
    known = list(classes)
    named = next((each for text in (str, class_text) for each in known if text(each) == text(value)), None)
    if named is not None:
        return named
    unlike = [each for each in known if isinstance(each, bool) != isinstance(value, bool)]
    return next((each for each in unlike if _unquoted(each) is _unquoted(value)), None)


def _unquoted(value: Any) -> Any:
    """What YAML reads where a text stands without quotes, if that is a boolean; else the value."""
    return BOOLEANS.get(str(value).lower(), value)


def one_of(labels: np.ndarray, values: Sequence[Any]) -> np.ndarray:
    """Which labels are one of the values, bool, shape (labels,)."""
    return np.any([np.asarray(labels == value, dtype=bool) for value in values], axis=0)


def others(classes: Sequence[Any], predicted: Iterable[Any]) -> list[Target]:
    """For each predicted class, any other of the classes.

    >>> others(("low", "mid", "top"), ["mid"])
    [Classes(values=('low', 'top'))]
    """
    wanted = {each: tuple(other for other in classes if other != each) for each in classes}
    return [Label(rest[0]) if len(rest) == 1 else Classes(rest) for rest in map(wanted.__getitem__, predicted)]
