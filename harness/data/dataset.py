"""A dataset: features, rows, labels and the split, ready to train on and to explain."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import pandas as pd

from harness.core.frames import with_columns
from harness.core.notation import Notation
from harness.core.space import Space
from harness.data.clip import Clip, clipped
from harness.data.discretise import Intervals
from harness.data.reader import Form
from harness.data.sources import Source

OPPOSITE: Literal["opposite"] = "opposite"
OTHER: Literal["other"] = "other"  # of any number of classes

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Reading:
    """How the rows were read, and people who come later are.

    Parameters
    ----------
    form
        How the user's own file writes its table.
    intervals
        By feature, what its numbers were made of by ``discretise``; files of factuals may hold the numbers.
    fills
        By feature, what fills its gaps, before its numbers are made intervals.
    clips
        By feature, the ends that its numbers are put to.
    written
        By feature, how the user's own file writes its numbers.
    target
        How it writes the numbers that a regression predicts.

    Raises
    ------
    DatasetError
        For a number that fills gaps beyond the ends of its feature.
    """

    form: Form = field(default_factory=Form)
    intervals: Mapping[str, Intervals] = field(default_factory=dict)
    fills: Mapping[str, Any] = field(default_factory=dict)
    clips: Mapping[str, Clip] = field(default_factory=dict)
    written: Mapping[str, Notation] = field(default_factory=dict)
    target: Notation = field(default_factory=Notation)

    def __post_init__(self) -> None:
        for feature in self.clips.keys() & self.fills.keys():
            self.clips[feature].check("missing", [self.fills[feature]])

    def filler(self, feature: str) -> Any:
        """What fills a person's gap in a feature, as the feature holds it; None where nothing does."""
        value, cut = self.fills.get(feature), self.intervals.get(feature)
        return value if value is None or cut is None else cut.holding(value)

    def cut(self, people: pd.DataFrame) -> pd.DataFrame:
        """People with the intervals that their numbers lie in; what is an interval already stays."""
        held = {name: cut for name, cut in self.intervals.items() if name in people}
        return with_columns(people, {name: list(map(cut.holding, people[name])) for name, cut in held.items()})

    def clipped(self, what: str, people: pd.DataFrame) -> pd.DataFrame:
        """People with numbers within the ends; how many were not is said. Intervals hold all that lies beyond."""
        own = {feature: clip for feature, clip in self.clips.items() if feature not in self.intervals}
        made, line = clipped(what, people, own)
        if line:
            logger.warning(line)
        return made


@dataclass(frozen=True, eq=False)
class Dataset:
    """A table that is ready to train on and to explain.

    Parameters
    ----------
    name
        Name of the dataset.
    space
        Features; their scale and default bounds are those of the training rows.
    frame
        Decoded features of all rows; the index is the 0-based row number of the raw file (of all files in turn).
    labels
        Class names (object) or numbers (float, regression), one a row of ``frame``.
    classes
        Class names, undesired first; empty for regression.
    desired
        What a counterfactual should get: a class name, ``opposite``, or for regression such as ``>= 12``.
    train, test
        Positions (``iloc``) of the training and of the test rows, increasing.
    sha256
        Checksum of the raw content, uncompressed, of all files in turn.
    notices
        What the user should know of the data, one sentence each.
    causality
        Structural equations by endogenous feature, as ``harness.models.equations.equations`` takes them.
    reading
        How people who come later are read.
    reasons
        Why a feature's kind is as it is, by feature, where it was inferred from a user's own file.
    published
        The file of the factuals that a paper explained, where it published them.
    by_time
        Whether all test rows came after the training rows.
    """

    name: str
    space: Space
    frame: pd.DataFrame
    labels: np.ndarray
    classes: tuple[Any, ...]
    desired: Any
    train: np.ndarray
    test: np.ndarray
    sha256: str
    notices: tuple[str, ...] = ()
    causality: Mapping[str, Mapping[str, Any] | None] = field(default_factory=dict)
    reading: Reading = field(default_factory=Reading)
    reasons: Mapping[str, str] = field(default_factory=dict)
    published: Source | None = None
    by_time: bool = False
