"""A target as bounds on a model's raw output: what validity means to a program or a search."""

from __future__ import annotations

import math
from dataclasses import dataclass

from harness.classifier import Classifier
from harness.errors import UnsupportedError
from harness.problem import Interval, Label, Problem
from methods.milp.embed import splits_only


@dataclass(frozen=True)
class RawInterval:
    """The raw output (``Classifier.raw``) has to lie in [low, high]; where ``strict``, above low.

    Parameters
    ----------
    ties
        Whether the model's outputs can tie exactly with an end, as averages of leaf fractions do. Which way rounding
        turns a tie is for the estimator to say.
    """

    low: float
    high: float
    strict: bool
    ties: bool

    def bounds(self, margin: float) -> tuple[float, float]:
        """The ends, moved inwards by ``margin`` where an output on an end itself would be wrong or within rounding."""
        closed = 0.0 if self.ties else margin
        return self.low + (margin if self.strict else closed), self.high - closed

    @property
    def sense(self) -> int:
        """1 where only more is better, -1 where only less is, 0 where both ends count."""
        return int(math.isinf(self.high)) - int(math.isinf(self.low))


def raw_interval(problem: Problem) -> RawInterval:
    """The bounds that a problem's target puts on the raw output of a binary classifier or a regressor.

    Raises
    ------
    UnsupportedError
        For a classifier of more than two classes, whose output is no single number.
    """
    classifier, target = problem.classifier, problem.target
    ties = averages(classifier)
    if isinstance(target, Interval):
        if classifier.classes:
            raise UnsupportedError("an interval of numbers needs a regression model; set 'desired' to a class.")
        return RawInterval(target.low, target.high, strict=False, ties=ties)
    if not classifier.binary:
        raise UnsupportedError(f"{len(classifier.classes)} classes have no single score.")
    if isinstance(target, Label):
        threshold = classifier.raw_threshold
        if classifier.code(target.value) == 1:
            return RawInterval(threshold, math.inf, strict=True, ties=ties)
        return RawInterval(-math.inf, threshold, strict=False, ties=ties)
    low, high = target.low, target.high
    if classifier.code(target.label) == 0:
        low, high = 1.0 - high, 1.0 - low
    return RawInterval(
        classifier.to_raw(low) if low > 0 else -math.inf,
        classifier.to_raw(high) if high < 1 else math.inf,
        strict=False,
        ties=ties,
    )


def averages(classifier: Classifier) -> bool:
    """Whether the model averages leaf values, so that outputs tie exactly."""
    return splits_only(classifier.estimator) and not hasattr(classifier.estimator, "staged_predict")
