"""How large a radius has to be for a random perturbation to stay within it, and back.

Perturbations are independent normal in each of n columns, of standard deviation sigma in scaled units. Equations of
Maragno et al. (2024), Finding regions of counterfactual explanations via robust optimization, Appendix 6.
"""

from __future__ import annotations

import math

from scipy.stats import chi2
from scipy.stats import norm as normal

from harness.certificate.balls import NORMS


def probability(rho: float, sigma: float, columns: int, norm: str = "linf") -> float:
    r"""The probability, in [0, 1], that a perturbation stays within a radius rho >= 0.

    (68), Euclidean: :math:`p = F_{\chi^2_n}(\rho^2 / \sigma^2)`. (71), greatest norm:
    :math:`p = (2 \Phi(\rho / \sigma) - 1)^n`.

    >>> round(probability(0.0392, 0.02, 1), 3)
    0.95
    """
    _check(norm, columns, sigma=sigma)
    if rho < 0:
        raise ValueError(f"rho is {rho}; it must be >= 0.")
    if norm == "l2":
        return float(chi2.cdf((rho / sigma) ** 2, columns))
    return float((2.0 * normal.cdf(rho / sigma) - 1.0) ** columns)


def radius(p: float, sigma: float, columns: int, norm: str = "linf") -> float:
    r"""The least radius, in scaled units, that holds a perturbation with probability p in (0, 1).

    (69), Euclidean: :math:`\rho = \sigma \sqrt{F^{-1}_{\chi^2_n}(p)}`. (72), greatest norm:
    :math:`\rho = \sigma \Phi^{-1}((1 + p^{1/n}) / 2)`.

    >>> round(radius(0.95, 0.02, 4), 4), round(radius(0.95, 0.02, 4, "l2"), 4)
    (0.0498, 0.0616)
    """
    _check(norm, columns, sigma=sigma)
    return sigma * _unit(p, columns, norm)


def deviation(rho: float, p: float, columns: int, norm: str = "linf") -> float:
    """The largest standard deviation whose perturbations stay within rho >= 0 with probability p in (0, 1): (70), (73).

    >>> round(deviation(0.0498, 0.95, 4), 3)
    0.02
    """
    _check(norm, columns)
    if rho < 0:
        raise ValueError(f"rho is {rho}; it must be >= 0.")
    return rho / _unit(p, columns, norm)


def _unit(p: float, columns: int, norm: str) -> float:
    if not 0 < p < 1:
        raise ValueError(f"the probability is {p}; it must be in (0, 1).")
    if norm == "l2":
        return math.sqrt(float(chi2.ppf(p, columns)))
    return float(normal.ppf((1.0 + p ** (1.0 / columns)) / 2.0))


def _check(norm: str, columns: int, sigma: float = 1.0) -> None:
    if norm not in NORMS:
        raise ValueError(f"norm is {norm!r}; allowed: {', '.join(NORMS)}.")
    if columns < 1:
        raise ValueError(f"there are {columns} perturbed columns; give at least 1.")
    if not sigma > 0:
        raise ValueError(f"sigma is {sigma}; it must be > 0, in scaled units.")
