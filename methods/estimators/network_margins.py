"""How far a network of ReLUs is inside its target, as a function of its first layer's sums, and linear bounds of it."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from harness.core.inputs import Affine
from harness.core.problem import Problem
from harness.core.target import Label
from methods.estimators.network import NETWORKS, dense_layers, has_hidden_units, stacked, unit_of
from methods.estimators.raw_target import raw_interval


def takes(problem: Problem) -> bool:
    """Whether the model is a network of ReLUs, its inputs affine in all numbers."""
    estimator, space = problem.classifier.estimator, problem.space
    if not isinstance(estimator, NETWORKS) or not has_hidden_units(estimator):
        return False
    numeric = {feature.name for feature in space.features if feature.numeric}
    affine = all(isinstance(s, Affine) for s in problem.classifier.inputs if s.feature in numeric)
    return affine and estimator.activation == "relu" and estimator.out_activation_ != "exp"


def _chords(low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Which units may be at work or not between two sums, and the slope of max(0, a) from the one to the other."""
    open_ = (low < 0) & (high > 0)
    return open_, np.where(open_, high / np.where(open_, high - low, 1.0), low >= 0)


class Margins:
    r"""The layers of a network, and how far its output is inside the target: one or more margins, all to be >= 0.

    Margins are in units of the output's size. Over a box of the first layer's sums, deeper ones have interval bounds,
    and a linear form lies above each margin [1]_: a unit max(0, a) is at most its chord where it pushes towards the
    target, and at least 0 or a where it pushes away.

    References
    ----------
    .. [1] Zhang, H., T.-W. Weng, P.-Y. Chen, C.-J. Hsieh, and L. Daniel (2018). Efficient neural network robustness
       certification with general activation functions. *NeurIPS*. Section 3.2.
    """

    def __init__(self, problem: Problem, margin: float) -> None:
        *self.layers, (weights, shifts) = [(w.T, b) for w, b in dense_layers(problem.classifier.estimator)]
        self.stacked = stacked(self.layers)
        unit = unit_of(problem)
        if len(problem.classifier.classes) > 2:
            assert isinstance(problem.target, Label)
            wanted = problem.classifier.code(problem.target.value)
            others = np.arange(len(shifts)) != wanted
            self.ends = (weights[wanted] - weights[others]) / unit
            self.shifts = (shifts[wanted] - shifts[others] - margin) / unit
            return
        low, high = raw_interval(problem).bounds(margin)
        sides = [side for side, end in ((1.0, low), (-1.0, high)) if math.isfinite(end)]
        self.ends = np.array([side * weights[0] / unit for side in sides])
        self.shifts = np.array([side * (shifts[0] - (low if side > 0 else high)) / unit for side in sides])

    def sums(self, first: np.ndarray) -> list[np.ndarray]:
        """Every layer's sums at points given by the first one's, each of shape (points, units)."""
        sums = [first]
        for weights, shifts in self.layers[1:]:
            sums.append(np.maximum(sums[-1], 0.0) @ weights.T + shifts)
        return sums

    def margins(self, first: np.ndarray) -> np.ndarray:
        """The margins at points given by the first layer's sums, shape (points, margins)."""
        return np.maximum(self.sums(first)[-1], 0.0) @ self.ends.T + self.shifts

    def bounds(
        self, low: np.ndarray, high: np.ndarray, phases: Sequence[np.ndarray] = ()
    ) -> tuple[list[np.ndarray], list[np.ndarray]]:
        """Bounds of every layer's sums, from those of the first, shape (boxes, units).

        ``phases``: by layer, where sums are known to be at least (1) or at most 0 (-1), shape (units,).
        """
        lows, highs = list[np.ndarray](), list[np.ndarray]()
        for depth, (weights, shifts) in enumerate(self.layers):
            if depth:
                rise, fall = np.maximum(weights, 0).T, np.minimum(weights, 0).T
                below, above = np.maximum(lows[-1], 0), np.maximum(highs[-1], 0)
                low, high = below @ rise + above @ fall + shifts, above @ rise + below @ fall + shifts
            if phases:
                low = np.where(phases[depth] > 0, np.maximum(low, 0.0), low)
                high = np.where(phases[depth] < 0, np.minimum(high, 0.0), high)
            lows.append(low)
            highs.append(high)
        return lows, highs

    def above(
        self, lows: list[np.ndarray], highs: list[np.ndarray], at: Sequence[np.ndarray] = ()
    ) -> list[tuple[np.ndarray, np.ndarray]]:
        """For each margin a linear form of the first layer's sums above it: weights (boxes, units), shift (boxes,).

        ``at``: which units are at work where the forms should be near the margins, by layer, bool of shape (boxes,
        units); otherwise those that reach farther above 0 than below.
        """
        forms = []
        for end, constant in zip(self.ends, self.shifts, strict=True):
            boxes = len(at[0]) if at else len(lows[-1])
            weights, shift = np.broadcast_to(end, (boxes, len(end))), np.full(boxes, constant)
            for depth in reversed(range(len(self.layers))):
                low, high = lows[depth], highs[depth]
                open_, chord = _chords(low, high)
                works = at[depth] if at else high > -low
                slope = np.where(weights > 0, chord, np.where(open_, works, low >= 0))
                shift = shift - (np.maximum(weights, 0.0) * np.where(open_, chord * low, 0.0)).sum(axis=1)
                weights = weights * slope
                if depth:
                    matrix, bias = self.layers[depth]
                    weights, shift = weights @ matrix, shift + weights @ bias
            forms.append((weights, shift))
        return forms

    def loose(self, lows: list[np.ndarray], highs: list[np.ndarray], sums: list[np.ndarray]) -> list[np.ndarray]:
        """By how much the chord of each unit lets the form ``at`` a point exceed the first margin there, by layer.

        All of one box and one point, shape (1, units).
        """
        weights, gaps = self.ends[:1], list[np.ndarray]()
        for depth in reversed(range(len(self.layers))):
            low, value = lows[depth], sums[depth]
            open_, chord = _chords(low, highs[depth])
            over = np.where(open_, chord * (value - low) - np.maximum(value, 0.0), 0.0)
            gaps.append(np.maximum(weights, 0.0) * over)
            weights = weights * np.where(weights > 0, chord, np.where(open_, value > 0, low >= 0))
            if depth:
                weights = weights @ self.layers[depth][0]
        return gaps[::-1]
