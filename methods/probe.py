"""PROBE: recourse of which a stated share survives noise (Pawelczyk et al.)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.stats import norm

from harness.certificate import perturbed
from harness.core.problem import Problem
from methods.descent import Descending, Descent, logistic


@dataclass(frozen=True, kw_only=True)
class Probe(Descent):
    r"""A point that descends on its loss, on its distance, and on the share of its noisy copies that are invalid.

    .. math::
        \min_x \; & \max(0, \tilde\Delta(x) - r) + \ell(h(x), \tilde y) + \lambda \|x - \hat x\|_1 \\
        \tilde\Delta(x) = \; & 1 - \Phi\left(\frac{h(x)}{\sigma \|\nabla h(x)\|_2}\right)                       & (4)

    Equation number of [1]_, its Theorem 1: the invalidation rate of copies with normal noise, in closed form for the
    score linearised at x; for linear models it is exact. The loss is the logistic one. In its gradient
    :math:`\nabla h` counts as constant, as it is between the kinks of a network of ReLUs. Noise moves numbers that are
    not immutable. The minimum is that of ``methods.descent``.

    Parameters
    ----------
    rate_limit
        r in (0, 1): the share of noisy copies that may be invalid.
    sigma
        :math:`\sigma` > 0, standard deviation of the noise, in scaled units.

    References
    ----------
    .. [1] Pawelczyk, M., T. Datta, J. van den Heuvel, G. Kasneci, and H. Lakkaraju (2023). Probabilistically robust
       recourse: navigating the trade-offs between costs and robustness in algorithmic recourse. *ICLR*.
    """

    title: ClassVar[str] = "PROBE"
    doubt: ClassVar[str] = "more of its noisy copies are invalid than rate_limit allows"

    rate_limit: float = 0.1
    sigma: float = 0.1

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.rate_limit < 1:
            raise ValueError(f"rate_limit is {self.rate_limit}; it must be in (0, 1).")
        if not (math.isfinite(self.sigma) and self.sigma > 0):
            raise ValueError(f"sigma is {self.sigma}; it must be a finite number > 0, in scaled units.")

    def fit(self, problem: Problem) -> _Explainer:
        return _Explainer(self, problem)


class _Explainer(Descending):
    method: Probe

    def __init__(self, method: Probe, problem: Problem) -> None:
        super().__init__(method, problem)
        moved = perturbed(self.space)
        self.noisy = np.zeros(len(self.space.columns))
        for name, columns in zip(self.space.names, self.space.slices, strict=True):
            self.noisy[columns] = name in moved

    def slope(self, point: np.ndarray) -> np.ndarray:
        score, weights = self.score(point)
        invalid, change = self.invalidation(point)
        return logistic(score, weights) + (change if invalid > self.method.rate_limit else 0.0)

    def keeps(self, point: np.ndarray) -> bool:
        return self.invalidation(point)[0] <= self.method.rate_limit

    def invalidation(self, point: np.ndarray) -> tuple[float, np.ndarray]:
        """The rate of (4) at a point of scaled columns, and its gradient, shape (columns,)."""
        score, weights = self.score(point)
        spread = self.method.sigma * float(np.linalg.norm(weights * self.noisy))
        if spread == 0:  # no noise reaches the score
            return float(score <= 0), np.zeros_like(point)
        return float(norm.sf(score / spread)), -norm.pdf(score / spread) / spread * weights
