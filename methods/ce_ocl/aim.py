"""What CE-OCL minimises."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pandas as pd

from harness.core.objective import Objective, tolerance
from harness.core.problem import Problem
from harness.core.space import Space
from methods.ce_ocl.parameters import Parameters
from methods.milp.distance import Distance, Separable, distance_of


@dataclass(frozen=True)
class Aim:
    """The objective (2a): a distance, and a price of each weighted change.

    Parameters
    ----------
    claim
        The same as the harness evaluates it, with what lying outside a hull costs.
    weights
        Of each feature's change, shape (features,).
    alpha
        The price of a change of weight 1.
    """

    claim: Objective
    distance: Distance
    weights: np.ndarray
    alpha: float

    @classmethod
    def of(cls, parameters: Parameters, problem: Problem) -> Aim:
        claim = parameters.objective(problem)
        distance = distance_of(claim.terms[0], problem, parameters.count)
        return cls(claim, distance, parameters.weights(problem), parameters.alpha)

    @cached_property
    def squared(self) -> bool:
        """Whether squares are minimised, which a program sees through tangents."""
        return isinstance(self.distance, Separable) and bool(self.distance.quadratic.any())

    def price(self, lexical: bool = False) -> np.ndarray:
        """What each feature's change costs besides its distance, shape (features,); ``lexical``: nothing."""
        return np.zeros(len(self.weights)) if lexical else self.alpha * self.weights

    def changes(self, space: Space, factual: pd.DataFrame, frame: pd.DataFrame) -> np.ndarray:
        """The weighted changes of rows, shape (rows,)."""
        changes: np.ndarray = space.changed(factual, frame) @ self.weights
        return changes

    def values(self, space: Space, factual: pd.DataFrame, frame: pd.DataFrame) -> np.ndarray:
        """The objective of rows without what lying outside the hull costs: the cuts tell that, not all points."""
        terms = tuple(term for term in self.claim.terms if term.name != "slack")
        return replace(self.claim, terms=terms).evaluate(space, factual, frame)

    def least(self, gaps: np.ndarray, changed: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Lower bounds on objective and weighted changes of moves of at least these gaps, each of shape (moves,)."""
        changes = changed @ self.weights
        return self.distance.least(gaps, changed) + self.alpha * changes, changes

    def tolerance(self, value: float) -> float:
        """The gap at a value that counts as none."""
        return tolerance(value, self.squared)
