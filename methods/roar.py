"""ROAR: recourse by gradient descent against changes of the model (Upadhyay, Joshi and Lakkaraju)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from harness.core.problem import Problem
from methods.delta import check_delta
from methods.descent import Descending, Descent, logistic


@dataclass(frozen=True, kw_only=True)
class Roar(Descent):
    r"""A point that descends on the loss of the worst model within a box of weights, and on its distance.

    .. math::
        \min_x \max_{\|\delta\|_\infty \le \delta_{\max}} \ell(M_\delta(x), \tilde y) + \lambda \|x - \hat x\|_1

    This is the problem of [1]_ for shifts of the weights in a box, the set of models of Δ-robustness [2]_, with the
    logistic loss. :math:`M_\delta` is a linear model whose weights and intercept have each moved by at most
    :math:`\delta_{\max}`. The worst of them says :math:`w^\top x + b - \delta_{\max} (\|x\|_1 + 1)`, so that the inner
    maximum needs no ascent. A network is replaced at each point by the plane through its score with its gradient as the
    weights, where the paper fits a surrogate to samples: of networks, what the answer withstands is a change of that
    plane, not one of all weights. The outer minimum is that of ``methods.descent``.

    Parameters
    ----------
    delta
        :math:`\delta_{\max}` in [0, 1], in units of the weights of the scaled columns.

    References
    ----------
    .. [1] Upadhyay, S., S. Joshi, and H. Lakkaraju (2021). Towards robust and reliable algorithmic recourse. *NeurIPS*.
    .. [2] Jiang, J., F. Leofante, A. Rago, and F. Toni (2023). Formalising the robustness of counterfactual
       explanations for neural networks. *AAAI 37*.
    """

    title: ClassVar[str] = "ROAR"
    doubt: ClassVar[str] = "a model within delta makes it invalid"

    delta: float = 0.1

    def __post_init__(self) -> None:
        super().__post_init__()
        check_delta(self.delta)

    def fit(self, problem: Problem) -> _Explainer:
        return _Explainer(self, problem)


class _Explainer(Descending):
    method: Roar

    def slope(self, point: np.ndarray) -> np.ndarray:
        return logistic(*self.worst(point))

    def keeps(self, point: np.ndarray) -> bool:
        return self.worst(point)[0] > 0

    def worst(self, point: np.ndarray) -> tuple[float, np.ndarray]:
        """The score that the worst model gives a point, and that model's weights, shape (columns,)."""
        (score, weights), delta = self.score(point), self.method.delta
        return score - delta * (float(np.abs(point).sum()) + 1.0), weights - delta * np.sign(point)
