"""A target as bounds on a model's raw output, for programs and searches."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from harness.core.classifier import Classifier
from harness.core.errors import UnsupportedError
from harness.core.problem import Problem
from harness.core.target import Interval, Label, Probability
from harness.core.tolerances import OUTPUT_PLACE, SCORE_INSET
from methods.estimators.trees import Ensemble, ensemble, splits_only


@dataclass(frozen=True)
class RawInterval:
    """The raw output (``Classifier.raw``) has to lie in [low, high]; where ``strict``, above low.

    Parameters
    ----------
    steps
        Whether the model is a sum of trees: an end may be one of its outputs, so that any margin may lose some. The
        estimator decides outputs on an end.
    gap
        How far above low the next output of such a model lies; 0 where that is not known.
    rounding
        How far beyond an end the exact sum of a model's trees may lie where the model's own rounded sum is within it: a
        proof includes that range, and the estimator decides points in it.
    """

    low: float
    high: float
    strict: bool
    steps: bool = False
    gap: float = 0.0
    rounding: float = 0.0

    def bounds(self, margin: float) -> tuple[float, float]:
        """The ends, moved inwards by ``margin`` where an output on an end itself would be wrong or within rounding.

        Those of a sum of trees are moved outwards by ``rounding`` instead, so that no point that the real model accepts
        is lost: the model decides near points. It has a margin where that is known to lose no output.
        """
        if not self.steps:
            return self.low + margin, self.high - margin
        inwards = margin if self.strict and self.rounding < margin < self.gap else 0.0
        return self.low + inwards - self.rounding, self.high + self.rounding

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
        return _interval(classifier, target.low, target.high)
    if not classifier.binary:
        raise UnsupportedError(f"{len(classifier.classes)} classes have no single score.")
    if isinstance(target, Label):
        threshold, odds = classifier.raw_threshold, classifier.threshold is not None
        if classifier.code(target.value) == 1:
            return _interval(classifier, threshold, math.inf, strict=True, odds=odds)
        return _interval(classifier, -math.inf, threshold, odds=odds)
    assert isinstance(target, Probability)  # of two classes, several are never wanted
    low, high = target.low, target.high
    if classifier.code(target.label) == 0:
        low, high = 1.0 - high, 1.0 - low
    return _interval(
        classifier,
        classifier.to_raw(low) if low > 0 else -math.inf,
        classifier.to_raw(high) if high < 1 else math.inf,
        odds=True,
    )


def _interval(classifier: Classifier, low: float, high: float, strict: bool = False, odds: bool = False) -> RawInterval:
    """``odds``: the ends are read off probabilities, rounded themselves."""
    if not splits_only(classifier.estimator):
        return RawInterval(low, high, strict)
    model = ensemble(classifier.estimator, gaps=True)
    linked = replace(model, logistic=model.logistic or (odds and not model.mean))
    rounding = max((linked.rounding(end) for end in (low, high) if math.isfinite(end)), default=0.0)
    gap, spacing = 0.0, model.spacing() if strict and model.mean else 0.0
    if spacing:
        place = (low - float(model.base[0])) / spacing
        tie = round(place)
        if abs(place - tie) > OUTPUT_PLACE:  # no output is near the end
            gap = (math.ceil(place) - place) * spacing
        elif _compared(model) and tie / round(1 / spacing) <= low:  # one is, and known not to lie above it
            gap = (tie + 1 - place) * spacing
    return RawInterval(low, high, strict, steps=True, gap=gap, rounding=rounding)


def _compared(model: Ensemble) -> float:
    """A number of which every output is a multiple that compares as such; 0: unknown. A single tree adds nothing up."""
    return model.spacing() if model.mean and len(model.trees) == 1 else model.counts


@dataclass(frozen=True)
class Condition:
    """``weights @ outputs`` of a model has to be above a threshold, or at it where the model itself says so.

    Parameters
    ----------
    weights
        Of the raw outputs, shape (outputs,).
    threshold
        In raw outputs.
    rounding
        How near to the threshold the model's own rounding decides.
    """

    weights: np.ndarray
    threshold: float
    rounding: float


def conditions(problem: Problem) -> tuple[Condition, ...]:
    """What a target asks of a sum of trees: one condition an end, or one for each other class.

    Raises
    ------
    UnsupportedError
        For a target that asks nothing, and for a probability of one of several classes.
    """
    classifier, target = problem.classifier, problem.target
    if len(classifier.classes) <= 2:
        limits = raw_interval(problem)
        ends = [(side, side * end) for side, end in ((1.0, limits.low), (-1.0, limits.high)) if math.isfinite(end)]
        if not ends:
            raise UnsupportedError("every prediction is in the wanted interval; give it an end.")
        if isinstance(target, Label) and splits_only(classifier.estimator):
            ends = [(side, _counted(classifier, side, end)) for side, end in ends]
        return tuple(Condition(np.array([side]), end, limits.rounding) for side, end in ends)
    if not isinstance(target, Label):
        raise UnsupportedError("only one class is a bound on sums of trees of several; set 'desired' to a class.")
    unit, wanted = np.eye(len(classifier.classes)), classifier.code(target.value)
    model = ensemble(classifier.estimator, gaps=True)
    rounding, spacing = model.rounding(0.0, outputs=2), model.counts  # then no two classes' outputs are nearly equal
    more = [(spacing if k < wanted else 0.0) - SCORE_INSET if spacing else 0.0 for k in range(len(unit))]
    return tuple(Condition(unit[wanted] - unit[k], more[k], rounding) for k in range(len(unit)) if k != wanted)


def _counted(classifier: Classifier, side: float, end: float) -> float:
    """The end of what a class asks of a model's raw output, ``side`` times it, moved to the first output that is right.

    Just before it, where the model is known to compute its outputs exactly: then none is so near to the end that the
    model itself has to be asked. Class 1 (``side`` 1) is what lies above its threshold.
    """
    spacing = ensemble(classifier.estimator, gaps=True).counts
    if not spacing:
        return end
    parts = round(1 / spacing)
    last = int(np.count_nonzero(np.arange(parts + 1) / parts <= side * end)) - 1  # that is not above the threshold
    return side * (last + (side > 0)) * spacing - SCORE_INSET


def leads(classifier: Classifier, margin: float) -> tuple[float, float]:
    """The leads over an earlier and a later class's output with which a class is predicted; the first of equals is.

    For a sum of trees less the model's own rounding of both outputs, which decides; it has a margin over an earlier
    class where votes are known to differ by more, if they do not tie.
    """
    if not splits_only(classifier.estimator):
        return margin, margin
    model = ensemble(classifier.estimator, gaps=True)
    rounding = model.rounding(0.0, outputs=2)
    inwards = margin if rounding < margin < _compared(model) else 0.0
    return inwards - rounding, -rounding
