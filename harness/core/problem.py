"""The question put to every method: features, the space they span, the target, the data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from itertools import takewhile
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from harness.core.space import Space
from harness.core.target import Classes, Interval, Label, Target, one_of

if TYPE_CHECKING:
    from harness.core.classifier import Classifier
    from harness.core.equation import Equation


@dataclass(frozen=True)
class Problem:
    """Everything a method may see.

    Parameters
    ----------
    space
        Features and scaled columns.
    classifier
        The fitted model.
    train
        Decoded rows of the training split only.
    labels
        True labels of ``train``, as class names (or numbers, for regression).
    target
        What the model has to say of a counterfactual.
    reference
        Decoded rows for hulls and neighbours, with their labels; the training rows unless given.
    equations
        What a change of some features does to others, causes before effects. Not every method imposes them.
    """

    space: Space
    classifier: Classifier
    train: pd.DataFrame
    labels: np.ndarray
    target: Target
    reference: pd.DataFrame = field(default=None)
    reference_labels: np.ndarray = field(default=None)  # type: ignore[arg-type]
    equations: tuple[Equation, ...] = ()
    _known: dict[tuple[Any, ...], bool] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.reference is None:
            object.__setattr__(self, "reference", self.train)
            object.__setattr__(self, "reference_labels", self.labels)
        object.__setattr__(self, "_known", {})

    def valid(self, frame: pd.DataFrame) -> np.ndarray:
        """Per decoded row, whether the fitted model itself meets the target, bool."""
        if frame.empty:
            return np.zeros(len(frame), dtype=bool)  # libraries refuse to predict for nobody
        if self._known:
            rows = frame.itertuples(index=False, name=None)
            found = list(takewhile(lambda known: known is not None, map(self._known.get, rows)))
            if len(found) == len(frame):
                return np.array(found, dtype=bool)
        return self.target.holds(self.classifier, frame)

    @contextmanager
    def knowing(self, found: Mapping[tuple[Any, ...], bool]) -> Iterator[None]:
        """Have ``valid`` take over, by the values of a row, what the model was found to say of some."""
        self._known.update(found)
        try:
            yield
        finally:
            self._known.clear()

    def labelled(self, labels: np.ndarray) -> np.ndarray:
        """Which true labels are as the target wants them, bool.

        For a probability the label that it is of; where it is to be at most so much, every other label.
        """
        labels, target = np.asarray(labels), self.target
        if isinstance(target, Interval):
            return (labels >= target.low) & (labels <= target.high)
        if isinstance(target, Classes):
            return one_of(labels, target.values)
        if isinstance(target, Label):
            return labels == target.value
        return labels != target.label if target.low == 0.0 and target.high < 1.0 else labels == target.label

    def __getstate__(self) -> dict[str, Any]:
        """Without what can be computed again, so that no process begins with more than another."""
        return {name: value for name, value in vars(self).items() if name != "encoded"}

    @cached_property
    def encoded(self) -> np.ndarray:
        """The training rows in scaled columns, shape (rows, columns)."""
        return self.space.encode(self.train)
