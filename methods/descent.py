"""Descent by Adam on a loss of a model with gradients, and on the distance: what methods by gradients share."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pandas as pd
from scipy.special import expit

from harness.core.explanation import Answer, Explanation, Reason, Status
from harness.core.method import Deadline
from harness.core.numbers import check_above, check_counts
from harness.core.objective import Objective
from harness.core.problem import Problem
from harness.core.space import Kind
from harness.core.target import Label
from harness.core.tolerances import COORDINATE_TIE
from methods.estimators.gradients import layers_of, without_gradients

SLOPES = {  # derivatives of activations, from their values
    "relu": lambda value: (value > 0).astype(float),
    "tanh": lambda value: 1.0 - value**2,
    "logistic": lambda value: value * (1.0 - value),
}
ACTIVATIONS = {"relu": lambda total: np.maximum(total, 0.0), "tanh": np.tanh, "logistic": expit}
MEMORY = 0.9, 0.999  # of Adam's moments
SMALL = 1e-8  # below every gradient that counts


@dataclass(frozen=True, kw_only=True)
class Descent:
    r"""Parameters of a descent on a loss, which is the method's, and on :math:`\lambda \|x - \hat x\|_1`.

    Where no point that keeps what the method asks for is met, the weight of the distance falls and the descent goes on.
    The answer is the nearest point met that keeps it, else the nearest valid one, and its status is FOUND. The loss
    and its gradient are those of the point with its categories rounded; the gradient moves the point itself, between
    the columns of a category, until another one is the nearest.

    Parameters
    ----------
    weight, decay, rounds
        First :math:`\lambda` > 0, what it is multiplied with, in (0, 1), and how many values it takes.
    steps, rate
        Steps of descent for each :math:`\lambda`, and Adam's step > 0 in scaled units.
    last
        Whether to hand back the descent's last point, whatever the model says of it, in place of the nearest point met.
    """

    deterministic: ClassVar[bool] = True
    gives: ClassVar[str] = "one"
    title: ClassVar[str]
    doubt: ClassVar[str]  # what is said of an answer that does not keep what the method asks for

    weight: float = 1.0
    decay: float = 0.5
    rounds: int = 10
    steps: int = 100
    rate: float = 0.02
    last: bool = False

    def __post_init__(self) -> None:
        check_above(self, 0, "weight", "rate")
        if not 0 < self.decay < 1:
            raise ValueError(f"decay is {self.decay}; it must be in (0, 1).")
        check_counts(self, 1, "rounds", "steps")

    def refuses(self, problem: Problem) -> str | None:
        if not isinstance(problem.target, Label):
            return f"{self.title} is run for a wanted class only; set 'desired' to a class."
        if not problem.classifier.binary:
            return f"{self.title} takes models with two classes, not {len(problem.classifier.classes)}."
        return without_gradients(problem, self.title)

    def objective(self, problem: Problem) -> Objective | None:
        """None: what is minimised holds a loss, and its minimum is not claimed."""
        return None


class Descending:
    """A descent fitted to a problem; a method says by ``slope`` and ``keeps`` what it descends on and asks for."""

    def __init__(self, method: Descent, problem: Problem) -> None:
        self.method, self.problem = method, problem
        self.space = problem.space
        self.score = Score(problem)

    def slope(self, point: np.ndarray) -> np.ndarray:
        """The gradient of the loss at a point of scaled columns, both of shape (columns,)."""
        raise NotImplementedError

    def keeps(self, point: np.ndarray) -> bool:
        """Whether a point keeps what the method asks for, as far as it can tell."""
        raise NotImplementedError

    def rounded(self, point: np.ndarray) -> np.ndarray:
        """A point of scaled columns with all that are no numbers at their nearest categories, shape (columns,)."""
        found = point.copy()
        for feature, columns in zip(self.space.features, self.space.slices, strict=True):
            if feature.kind is Kind.CATEGORICAL:
                found[columns] = np.arange(feature.width) == point[columns].argmax()
            elif not feature.numeric:
                steps = feature.steps
                found[columns] = np.rint(point[columns] * steps) / steps
        return found

    def explain(self, factual: pd.DataFrame, n: int, rng: np.random.Generator, deadline: Deadline) -> Explanation:
        points = Met(self, factual)
        self._descend(factual, points, deadline)
        kept, row = points.last if self.method.last else points.best
        why = Reason.TIME_LIMIT if deadline.passed else Reason.FINISHED
        answers: tuple[Answer, ...] = ()
        if row is not None:
            answers = (Answer(Status.FOUND, row, why, detail="" if kept else self.method.doubt),)
        filler = Answer(Status.GAVE_UP, reason=why, detail="the descent met no further valid point")
        return Explanation(answers).padded(n, filler)

    def _descend(self, factual: pd.DataFrame, points: Met, deadline: Deadline) -> None:
        method, origin = self.method, self.space.encode(factual)[0]
        low, high = self.space.reach(factual)
        low, high = np.minimum(low, origin), np.maximum(high, origin)
        point, rounded, weight, count = origin.copy(), origin, method.weight, 0
        first, second = np.zeros_like(point), np.zeros_like(point)
        for _ in range(method.rounds):
            for _ in range(method.steps):
                if deadline.passed:
                    return
                count += 1
                change = weight * np.sign(point - origin) + self.slope(rounded)
                first += (1 - MEMORY[0]) * (change - first)
                second += (1 - MEMORY[1]) * (change**2 - second)
                step = first / (1 - MEMORY[0] ** count) / (np.sqrt(second / (1 - MEMORY[1] ** count)) + SMALL)
                point = np.clip(point - method.rate * step, low, high)
                rounded = self.rounded(point)
                points.look(rounded)
            if points.best[0]:
                return
            weight *= method.decay


class Score:
    """The score of a problem's network and its gradient at a point of scaled columns; above 0 is wanted."""

    def __init__(self, problem: Problem) -> None:
        layers = layers_of(problem)
        assert layers is not None
        assert isinstance(problem.target, Label)
        self.layers: Sequence[tuple[np.ndarray, np.ndarray]] = layers
        self.sign = 1.0 if problem.classifier.code(problem.target.value) == 1 else -1.0
        kind = getattr(problem.classifier.estimator, "activation", "relu")
        self.activation, self.slope = ACTIVATIONS[kind], SLOPES[kind]

    def __call__(self, point: np.ndarray) -> tuple[float, np.ndarray]:
        """Score and gradient, shape (columns,)."""
        values = [point]
        for weights, shifts in self.layers[:-1]:
            values.append(self.activation(values[-1] @ weights + shifts))
        weights, shifts = self.layers[-1]
        score = float((values[-1] @ weights + shifts)[0])
        back = weights[:, 0]
        for value, (inner, _) in zip(reversed(values[1:]), reversed(self.layers[:-1]), strict=True):
            back = inner @ (back * self.slope(value))
        return self.sign * score, self.sign * back


def logistic(score: float, slope: np.ndarray) -> np.ndarray:
    """The gradient of the logistic loss log(1 + exp(-score)), from the score's own."""
    return -expit(-score) * slope


class Met:
    """The nearest decoded point met: one that keeps what is asked for before one that is only valid."""

    def __init__(self, explainer: Descending, factual: pd.DataFrame) -> None:
        self.explainer, self.factual = explainer, factual
        self.origin = explainer.space.encode(factual)[0]
        parts = zip(explainer.space.features, explainer.space.slices, strict=True)
        numbers = {columns.start: feature for feature, columns in parts if feature.numeric}
        self.columns = np.array(list(numbers), dtype=int)
        self.shift, self.unit = np.array([(f.scale[0], f.range) for f in numbers.values()]).reshape(-1, 2).T
        self.whole = np.array([f.kind is Kind.INTEGER for f in numbers.values()], dtype=bool)
        self.own = np.array([factual[f.name].iloc[0] for f in numbers.values()], dtype=float)
        nothing: tuple[float, dict[str, object] | None] = (math.inf, None)
        self.nearest, self.point = {False: nothing, True: nothing}, self.origin

    @property
    def best(self) -> tuple[bool, dict[str, object] | None]:
        """Whether a point that keeps it was met, and the decoded row; None where no valid one was."""
        kept = self.nearest[True][1] is not None
        return kept, self.nearest[kept][1]

    @property
    def last(self) -> tuple[bool, dict[str, object] | None]:
        """As ``best``, of the point that was looked at last; None where it is the factual itself."""
        frame = self.explainer.space.decode(self.point, like=self.factual)
        (rounded,) = self.explainer.space.encode(frame)
        same = (rounded == self.origin).all()
        return self.explainer.keeps(rounded), None if same else frame.to_dict("records")[0]

    def rounded(self, point: np.ndarray) -> np.ndarray:
        """What ``encode`` makes of a point that ``decode`` made a row of, without the row; its categories are whole."""
        found, scaled = point.copy(), point[self.columns]
        values = self.shift + scaled * self.unit
        values = np.where(self.whole, np.rint(values), values)
        values = np.where(np.abs(scaled - self.origin[self.columns]) <= COORDINATE_TIE, self.own, values)
        found[self.columns] = (values - self.shift) / self.unit
        return found

    def look(self, point: np.ndarray) -> None:
        """Keep a point of the descent where it is better than what is kept."""
        explainer, self.point = self.explainer, point
        enough = explainer.method.last and self.best[0]  # which is the nearest does not matter then
        if enough or explainer.score(point)[0] <= 0:
            return
        rounded = self.rounded(point)
        far = float(np.abs(rounded - self.origin).sum())
        kept = explainer.keeps(rounded)
        if far >= self.nearest[kept][0] or far == 0:
            return
        space = explainer.space
        frame = space.decode(point, like=self.factual)
        if space.violations(self.factual, frame)[0] or not explainer.problem.valid(frame)[0]:
            return
        self.nearest[kept] = far, frame.to_dict("records")[0]
