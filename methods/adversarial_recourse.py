"""Adversarially robust recourse by gradient descent (Dominguez-Olmedo et al.): the baseline of robust regions."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from harness.certificate import perturbed
from harness.core.numbers import check_counts
from harness.core.problem import Problem
from methods.descent import SMALL, Descending, Descent, logistic


@dataclass(frozen=True, kw_only=True)
class AdversarialRecourse(Descent):
    r"""A point that descends on the loss of the worst perturbation, and on its distance.

    .. math::
        \min_x \max_{\|s\|_2 \le \rho} \ell(h(x + s), \tilde y) + \lambda \|x - \hat x\|_1

    This is the problem of [1]_ without its causal model: features move on their own. :math:`\ell` is the logistic loss
    of the score h of the wanted class :math:`\tilde y`. The inner maximum is taken by projected gradient ascent, the
    outer minimum by Adam (``methods.descent``, of which the other parameters are). Where no worst case found is valid
    at the end, :math:`\lambda` falls, so distance is given up for robustness. Nothing is proven: the ascent may miss
    the worst perturbation. The answer is the nearest point met whose worst case was valid, else the nearest valid one.

    Parameters
    ----------
    rho
        :math:`\rho \ge 0`, radius of the ball in scaled units; it moves numbers that are not immutable.
    ascents
        Steps of each inner maximum.

    References
    ----------
    .. [1] Dominguez-Olmedo, R., A.-H. Karimi, and B. Schölkopf (2022). On the adversarial robustness of causal
       algorithmic recourse. *ICML*.
    """

    title: ClassVar[str] = "adversarial recourse"
    doubt: ClassVar[str] = "a perturbation within rho was found that makes it invalid"

    rho: float = 0.1
    ascents: int = 10

    def __post_init__(self) -> None:
        super().__post_init__()
        if not (math.isfinite(self.rho) and self.rho >= 0):
            raise ValueError(f"rho is {self.rho}; it must be a finite number >= 0, in scaled units.")
        check_counts(self, 1, "ascents")

    def fit(self, problem: Problem) -> _Explainer:
        return _Explainer(self, problem)


class _Explainer(Descending):
    method: AdversarialRecourse

    def __init__(self, method: AdversarialRecourse, problem: Problem) -> None:
        super().__init__(method, problem)
        moved = perturbed(self.space)
        parts = zip(self.space.names, self.space.slices, strict=True)
        self.columns = np.array([columns.start for name, columns in parts if name in moved], dtype=int)

    def slope(self, point: np.ndarray) -> np.ndarray:
        return logistic(*self.score(point + self.worst(point)))

    def keeps(self, point: np.ndarray) -> bool:
        return self.score(point + self.worst(point))[0] > 0

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
