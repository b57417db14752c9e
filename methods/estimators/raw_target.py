"""A target as bounds on a model's raw output, for programs and searches."""

from __future__ import annotations

import math
from dataclasses import dataclass

from harness.core.classifier import Classifier
from harness.core.errors import UnsupportedError
from harness.core.problem import Problem
from harness.core.target import Interval, Label
from methods.estimators.trees import ensemble, splits_only


@dataclass(frozen=True)
class RawInterval:
    """The raw output (``Classifier.raw``) has to lie in [low, high]; where ``strict``, above low.

    Parameters
    ----------
    ties
        Whether the model's outputs can tie exactly with an end, as averages of leaf fractions do. The estimator decides
        ties.
    rounding
        How far beyond an end the exact sum of a model's trees may lie where the model's own rounded sum is within it: a
        proof includes that range, and the estimator decides points in it.
    """

    low: float
    high: float
    strict: bool
    ties: bool
    rounding: float = 0.0

    def bounds(self, margin: float) -> tuple[float, float]:
        """The ends, moved inwards by ``margin`` where an output on an end itself would be wrong or within rounding.

        They are moved back outwards by ``rounding``, so that no point that the real model accepts is lost. Where that
        is more than the margin, there is no margin, as the model decides near points anyway.
        """
        margin = margin if self.rounding < margin else 0.0
        closed = 0.0 if self.ties else margin
        return self.low + (margin if self.strict else closed) - self.rounding, self.high - closed + self.rounding

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
    if isinstance(target, Interval):
        if classifier.classes:
            raise UnsupportedError("an interval of numbers needs a regression model; set 'desired' to a class.")
        return _interval(classifier, target.low, target.high, strict=False)
    if not classifier.binary:
        raise UnsupportedError(f"{len(classifier.classes)} classes have no single score.")
    if isinstance(target, Label):
        threshold = classifier.raw_threshold
        if classifier.code(target.value) == 1:
            return _interval(classifier, threshold, math.inf, strict=True)
        return _interval(classifier, -math.inf, threshold, strict=False)
    low, high = target.low, target.high
    if classifier.code(target.label) == 0:
        low, high = 1.0 - high, 1.0 - low
    return _interval(
        classifier,
        classifier.to_raw(low) if low > 0 else -math.inf,
        classifier.to_raw(high) if high < 1 else math.inf,
        strict=False,
    )


def _interval(classifier: Classifier, low: float, high: float, strict: bool) -> RawInterval:
    if not splits_only(classifier.estimator):
        return RawInterval(low, high, strict, ties=False)
    model = ensemble(classifier.estimator)
    rounding = max((model.rounding(end) for end in (low, high) if math.isfinite(end)), default=0.0)
    return RawInterval(low, high, strict, model.mean, rounding)


def leads(classifier: Classifier, margin: float) -> tuple[float, float]:
    """The leads over an earlier and a later class's output with which a class is predicted; the first of equals is.

    Without ``margin`` where averages tie exactly, and less the model's own rounding of both outputs.
    """
    if not splits_only(classifier.estimator):
        return margin, margin
    model = ensemble(classifier.estimator)
    rounding = 2 * model.rounding(0.0)
    margin = margin if rounding < margin else 0.0
    return margin - rounding, (0.0 if model.mean else margin) - rounding
