"""Affine models: the nearest invalid point in closed form."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from harness.certificate.balls import Ball, Budget, Certificate
from harness.certificate.margins import Margin
from harness.core.classifier import Classifier
from harness.core.inputs import Affine
from harness.core.space import Space
from harness.core.tolerances import SUM_ROUNDING


def slopes(space: Space, classifier: Classifier, names: list[str]) -> np.ndarray:
    """By how much each estimator input grows with one unit of each number, shape (inputs, names)."""
    place = {name: column for column, name in enumerate(names)}
    slope = np.zeros((len(classifier.inputs), len(names)))
    for row, source in enumerate(classifier.inputs):
        if source.feature in place:
            assert isinstance(source, Affine)  # as ``readable`` has seen
            slope[row, place[source.feature]] = 1.0 / source.unit
    return slope


class Linear:
    """One margin of a linear model."""

    def __init__(self, space: Space, classifier: Classifier, margin: Margin) -> None:
        self.classifier = classifier
        self.names = [feature.name for feature in space.features if feature.numeric]
        estimator = classifier.estimator
        rows = np.atleast_2d(estimator.coef_)
        intercepts = np.broadcast_to(np.atleast_1d(estimator.intercept_), len(rows))
        self.weights = margin.weights @ rows
        self.constant = float(margin.weights @ intercepts + margin.constant)
        self.gradient = self.weights @ slopes(space, classifier, self.names)

    def nearest(
        self, row: Mapping[str, Any], ball: Ball, within: float, budget: Budget, valid: Callable[..., bool]
    ) -> Certificate:
        """As ``Search.nearest``; where rounding decides, the model is asked at the worst point ``within``."""
        inputs = self.classifier.vector(row)[0]
        margin = float(self.weights @ inputs) + self.constant
        rounding = SUM_ROUNDING * float(np.abs(self.weights * inputs).sum() + abs(self.constant))
        used = [(name, g) for name, g in zip(self.names, self.gradient, strict=True) if name in ball.units and g]
        pull = np.array([abs(g) * ball.units[name] for name, g in used])
        # Downhill is against the gradient.
        room = np.array([ball.room(name, float(row[name]))[int(g < 0)] for name, g in used])
        radius = self._spent(pull, room, margin - rounding, ball.norm)
        sure, undecided = radius > within, self._spent(pull, room, margin + rounding, ball.norm) >= within
        if not sure and undecided:
            moves = self._worst(pull, room, within, ball.norm)
            ends = {
                name: float(row[name]) - math.copysign(move, g) * ball.units[name]
                for (name, g), move in zip(used, moves, strict=True)
            }
            sure = valid({**row, **ends})
        return Certificate(within, math.inf) if sure else Certificate(radius, radius)

    @staticmethod
    def _spent(pull: np.ndarray, room: np.ndarray, margin: float, norm: str) -> float:
        """The least norm of moves ``0 <= s <= room`` with ``pull @ s >= margin``; infinite where there are none.

        The best moves are ``min(room, t)`` in the greatest norm and ``min(room, t · pull)`` in the Euclidean one, t
        growing until the margin is met: features whose room is used up drop out one after another.
        """
        if margin <= 0:
            return 0.0
        rate = np.ones_like(pull) if norm == "linf" else pull
        with np.errstate(divide="ignore"):
            full = room / rate
        rest = margin
        order = np.argsort(full)
        speeds = np.cumsum((pull * rate)[order][::-1])[::-1]  # of those that are left: differences would cancel
        for k, speed in zip(order, speeds, strict=True):
            if speed <= 0:
                break
            t = rest / speed
            if t <= full[k]:
                moves = np.minimum(room, t * rate)
                return float(t if norm == "linf" else math.sqrt(float(moves @ moves)))
            rest -= pull[k] * room[k]
        return math.inf

    @staticmethod
    def _worst(pull: np.ndarray, room: np.ndarray, radius: float, norm: str) -> np.ndarray:
        """The moves ``0 <= s <= room`` of at most a norm with the greatest ``pull @ s``, shape (numbers,)."""
        if norm == "linf":
            return np.minimum(room, radius)
        full, rest = room / pull, radius**2
        order = np.argsort(full)
        speeds = np.cumsum((pull**2)[order][::-1])[::-1]
        for k, speed in zip(order, speeds, strict=True):
            t = math.sqrt(rest / speed)
            if t <= full[k]:
                return np.minimum(room, t * pull)
            rest -= room[k] ** 2
        return room
