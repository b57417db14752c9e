"""Adversarially robust recourse by gradient descent (Dominguez-Olmedo et al.): the baseline of robust regions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pandas as pd
from scipy.special import expit

from harness.certificate import perturbed
from harness.core.explanation import Answer, Explanation, Reason, Status
from harness.core.method import Deadline
from harness.core.objective import Objective
from harness.core.problem import Problem
from harness.core.space import Space
from harness.core.target import Label
from methods.estimators.gradients import layers_of, without_gradients

SLOPES = {  # derivatives of activations, from their values
    "relu": lambda value: (value > 0).astype(float),
    "tanh": lambda value: 1.0 - value**2,
    "logistic": lambda value: value * (1.0 - value),
}
ACTIVATIONS = {"relu": lambda total: np.maximum(total, 0.0), "tanh": np.tanh, "logistic": expit}
MEMORY = 0.9, 0.999  # of Adam's moments
SMALL = 1e-8  # below every gradient that counts


@dataclass(frozen=True)
class AdversarialRecourse:
    r"""A point that descends on the loss of the worst perturbation, and on its distance.

    .. math::
        \min_x \max_{\|s\|_2 \le \rho} \ell(h(x + s), \tilde y) + \lambda \|x - \hat x\|_1

    with the logistic loss. The inner maximum is taken by projected gradient ascent, the outer minimum by Adam. Where
    no worst case found is valid at the end, the weight falls and the descent goes on, so distance is given up for
    robustness. Nothing is proven: the ascent may miss the worst perturbation. The answer is the nearest point met
    whose worst case was valid, else the nearest valid one; its status is FOUND. Categories follow the gradient
    between their columns and are rounded at the end of each step.

    Parameters
    ----------
    rho
        :math:`\rho \ge 0`, radius of the ball in scaled units; it moves numbers that are not immutable.
    weight, decay, rounds
        First :math:`\lambda` > 0, what it is multiplied with, in (0, 1), and how many values it takes.
    steps, rate
        Steps of descent for each :math:`\lambda`, and Adam's step > 0 in scaled units.
    ascents
        Steps of each inner maximum.
    last
        Whether to hand back the descent's last point, whatever the model says of it, in place of the nearest point met.

    References
    ----------
    .. [1] Dominguez-Olmedo, R., A.-H. Karimi, and B. Schölkopf (2022). On the adversarial robustness of causal
       algorithmic recourse. *ICML*.
    """

    deterministic: ClassVar[bool] = True
    gives: ClassVar[str] = "one"

    rho: float = 0.1
    weight: float = 1.0
    decay: float = 0.5
    rounds: int = 10
    steps: int = 100
    rate: float = 0.02
    ascents: int = 10
    last: bool = False

    def __post_init__(self) -> None:
        if not (math.isfinite(self.rho) and self.rho >= 0):
            raise ValueError(f"rho is {self.rho}; it must be a finite number >= 0, in scaled units.")
        for name in ("weight", "rate"):
            if not getattr(self, name) > 0:
                raise ValueError(f"{name} is {getattr(self, name)}; it must be > 0.")
        if not 0 < self.decay < 1:
            raise ValueError(f"decay is {self.decay}; it must be in (0, 1).")
        for name in ("rounds", "steps", "ascents"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} is {getattr(self, name)}; it must be at least 1.")

    def refuses(self, problem: Problem) -> str | None:
        if not isinstance(problem.target, Label):
            return "adversarial recourse is run for a wanted class only; set 'desired' to a class."
        if not problem.classifier.binary:
            return f"adversarial recourse takes models with two classes, not {len(problem.classifier.classes)}."
        return without_gradients(problem, "adversarial recourse")

    def objective(self, problem: Problem) -> Objective | None:
        """None: what is minimised holds a loss, and its minimum is not claimed."""
        return None

    def fit(self, problem: Problem) -> _Explainer:
        return _Explainer(self, problem)


class _Explainer:
    def __init__(self, method: AdversarialRecourse, problem: Problem) -> None:
        self.method, self.problem = method, problem
        self.space = problem.space
        self.score = Score(problem)
        moved = perturbed(self.space)
        parts = zip(self.space.names, self.space.slices, strict=True)
        self.columns = np.array([columns.start for name, columns in parts if name in moved], dtype=int)

    def explain(self, factual: pd.DataFrame, n: int, rng: np.random.Generator, deadline: Deadline) -> Explanation:
        points = _Met(self, factual)
        self._descend(factual, points, deadline)
        robust, row = points.last if self.method.last else points.best
        late = deadline.passed
        why = Reason.TIME_LIMIT if late else Reason.FINISHED
        answers: tuple[Answer, ...] = ()
        if row is not None:
            detail = "" if robust else "a perturbation within rho was found that makes it invalid"
            answers = (Answer(Status.FOUND, row, why, detail=detail),)
        filler = Answer(Status.GAVE_UP, reason=why, detail="the descent met no further valid point")
        return Explanation(answers).padded(n, filler)

    def _descend(self, factual: pd.DataFrame, points: _Met, deadline: Deadline) -> None:
        method, origin = self.method, self.space.encode(factual)[0]
        low, high = self.space.reach(factual)
        low, high = np.minimum(low, origin), np.maximum(high, origin)
        point, weight, count = origin.copy(), method.weight, 0
        first, second = np.zeros_like(point), np.zeros_like(point)
        for _ in range(method.rounds):
            for _ in range(method.steps):
                if deadline.passed:
                    return
                count += 1
                value, slope = self.score(point + self.worst(point))
                # The derivative of log(1 + exp(-h)) is -1 / (1 + exp(h)).
                change = weight * np.sign(point - origin) - expit(-value) * slope
                first += (1 - MEMORY[0]) * (change - first)
                second += (1 - MEMORY[1]) * (change**2 - second)
                step = first / (1 - MEMORY[0] ** count) / (np.sqrt(second / (1 - MEMORY[1] ** count)) + SMALL)
                point = np.clip(point - method.rate * step, low, high)
                points.look(point)
            if points.best[0]:
                return
            weight *= method.decay

    def worst(self, point: np.ndarray) -> np.ndarray:
        """The perturbation, shape (columns,), of the least score that projected gradient ascent finds."""
        method, columns = self.method, self.columns
        move, least, found = np.zeros_like(point), math.inf, np.zeros_like(point)
        for step in range(method.ascents + 1):
            value, slope = self.score(point + move)
            if value < least:
                least, found = value, move.copy()
            length = float(np.linalg.norm(slope[columns]))
            if length == 0 or step == method.ascents:
                break
            move[columns] -= 2.5 * method.rho / method.ascents * slope[columns] / length
            move *= min(1.0, method.rho / max(float(np.linalg.norm(move)), SMALL))
        return found


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


class _Met:
    """The nearest decoded point met: one whose worst case is valid before one that is only valid itself."""

    def __init__(self, explainer: _Explainer, factual: pd.DataFrame) -> None:
        self.explainer, self.factual = explainer, factual
        self.origin = explainer.space.encode(factual)[0]
        nothing: tuple[float, dict[str, object] | None] = (math.inf, None)
        self.nearest, self.point = {False: nothing, True: nothing}, self.origin

    @property
    def best(self) -> tuple[bool, dict[str, object] | None]:
        """Whether a robust point was met, and the decoded row; None where no valid one was."""
        robust = self.nearest[True][1] is not None
        return robust, self.nearest[robust][1]

    @property
    def last(self) -> tuple[bool, dict[str, object] | None]:
        """As ``best``, of the point that was looked at last; None where it is the factual itself."""
        frame = self.explainer.space.decode(self.point, like=self.factual)
        (rounded,) = self.explainer.space.encode(frame)
        robust = bool(self.explainer.score(rounded + self.explainer.worst(rounded))[0] > 0)
        return robust, None if (rounded == self.origin).all() else frame.to_dict("records")[0]

    def look(self, point: np.ndarray) -> None:
        """Keep a point of the descent where it is better than what is kept."""
        score, self.point = self.explainer.score, point
        if score(point)[0] <= 0:
            return
        space: Space = self.explainer.space
        frame = space.decode(point, like=self.factual)
        rounded = space.encode(frame)[0]
        far = float(np.abs(rounded - self.origin).sum())
        robust = score(rounded + self.explainer.worst(rounded))[0] > 0
        if far >= self.nearest[robust][0] or far == 0:
            return
        if space.violations(self.factual, frame)[0] or not self.explainer.problem.valid(frame)[0]:
            return
        self.nearest[robust] = far, frame.to_dict("records")[0]
