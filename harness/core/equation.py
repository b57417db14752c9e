"""Structural equations between features: what a change of the causes does to the effect."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pandas as pd

from harness.core.classifier import Classifier
from harness.core.space import Space


@dataclass(frozen=True)
class Formula:
    """``weights`` · inputs + ``intercept``: an explicit equation, in the place of a fitted regressor."""

    weights: tuple[float, ...]
    intercept: float = 0.0

    def predict(self, matrix: np.ndarray) -> np.ndarray:
        """Shape (rows,), of inputs of shape (rows, inputs)."""
        return matrix @ np.array(self.weights, dtype=float) + self.intercept


@dataclass(frozen=True, eq=False)
class Equation:
    r"""A counterfactual x of x̂ has to keep, for an endogenous feature i and its parents p,

    .. math:: x_i = \hat x_i + c_i(p_i) - c_i(\hat p_i) .

    What the parents do not explain of the factual's value stays as it is. This is (7) of [1]_.

    Parameters
    ----------
    feature
        The endogenous feature, continuous.
    model
        Gives :math:`c_i` up to ``shift`` and ``unit``: a ``Formula`` or a fitted regressor behind maps of the parents.
    shift, unit
        :math:`c_i` = shift + unit · model, in the feature's original units.
    text
        An explicit equation as it was written.

    References
    ----------
    .. [1] Maragno, D., T. E. Röber, and I. Birbil (2022). Counterfactual explanations using optimization with
       constraint learning. *OPT 2022: Optimization for Machine Learning*.
    """

    feature: str
    model: Classifier
    shift: float = 0.0
    unit: float = 1.0
    text: str | None = None

    @property
    def parents(self) -> tuple[str, ...]:
        """The features that the equation reads."""
        return tuple(dict.fromkeys(source.feature for source in self.model.inputs))

    def predict(self, frame: pd.DataFrame) -> np.ndarray:
        """c of decoded rows, in original units, shape (rows,)."""
        return self.shift + self.unit * self.model.predict(frame)

    def expected(self, factual: pd.DataFrame, frame: pd.DataFrame) -> np.ndarray:
        """What the endogenous feature must be in each row, in original units, shape (rows,)."""
        return float(factual[self.feature].iloc[0]) + (self.predict(frame) - self.predict(factual)[0])

    def residual(self, space: Space, factual: pd.DataFrame, frame: pd.DataFrame) -> np.ndarray:
        """How far the endogenous feature lies above what is expected, in scaled units, shape (rows,)."""
        return (frame[self.feature].to_numpy(float) - self.expected(factual, frame)) / space[self.feature].range


def follow(equations: Iterable[Equation], factual: pd.DataFrame, frame: pd.DataFrame) -> pd.DataFrame:
    """The rows with every endogenous feature at its expected value; equations in causal order, bounds not looked at."""
    frame = frame.copy()
    for equation in equations:
        frame[equation.feature] = equation.expected(factual, frame)
    return frame
