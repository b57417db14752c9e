"""Distances from the factual as linear objectives, with the bounds that each puts on a single feature's move."""

from __future__ import annotations

import math
from typing import Any, Protocol

import numpy as np
import pandas as pd

from harness.core.objective import Objective, Term, covariance
from harness.core.problem import Problem
from harness.core.space import Space
from harness.solvers.highs import Linear
from harness.solvers.program import Compiled
from methods.milp.cost import Cost
from methods.milp.forms import difference, scaled
from methods.milp.variables import Variables


class Distance(Protocol):
    """What is minimised besides the number of changes."""

    def costs(self, extra: np.ndarray, budget: float) -> list[Cost]:
        """What a change costs by feature, ``extra`` included, where costs add up; else ``extra`` alone."""
        ...

    def box(self, extra: np.ndarray, budget: float, origin: np.ndarray) -> list[Any] | None:
        """By feature the least and greatest scaled number within the budget, where ``costs`` do not bound it."""
        ...

    def form(self, variables: Variables, extra: np.ndarray, compiled: Compiled) -> Linear:
        """The distance plus ``extra`` of the changed features, of posed variables."""
        ...

    def least(self, gaps: np.ndarray, changed: np.ndarray) -> np.ndarray:
        """A lower bound on the distance of moves of at least these gaps, both of shape (moves, features)."""
        ...

    def most(self, gaps: np.ndarray) -> float:
        """An upper bound on the distance of moves of at most these gaps, shape (features,)."""
        ...


class Separable:
    """A sum over features of fixed + linear gap + quadratic gap², where features have costs, of a priced gap.

    Attributes
    ----------
    fixed, linear, quadratic
        The coefficients of a gap where a unit costs least, each of shape (features,).
    own
        Those of a priced gap, likewise.
    """

    def __init__(
        self, fixed: np.ndarray, linear: np.ndarray, quadratic: np.ndarray, space: Space | None = None
    ) -> None:
        self.space, self.own = space, (fixed, linear, quadratic)
        rates = np.ones((len(fixed), 2)) if space is None else space.rates
        self.fixed, self.linear, self.quadratic = fixed, linear * rates[:, 0], quadratic * rates[:, 0] ** 2
        self.rates = rates

    def costs(self, extra: np.ndarray, budget: float) -> list[Cost]:
        fixed, linear, quadratic = self.own
        parts = zip(fixed + extra, linear, quadratic, strict=True)
        rates = self.rates if self.space is None else [feature.rates for feature in self.space.features]
        return [Cost(*part, budget, *map(float, rate)) for part, rate in zip(parts, rates, strict=True)]

    def box(self, extra: np.ndarray, budget: float, origin: np.ndarray) -> list[Any] | None:
        return None

    def form(self, variables: Variables, extra: np.ndarray, compiled: Compiled) -> Linear:
        return variables.cost()

    def least(self, gaps: np.ndarray, changed: np.ndarray) -> np.ndarray:
        return changed @ self.fixed + gaps @ self.linear + gaps**2 @ self.quadratic

    def most(self, gaps: np.ndarray) -> float:
        fixed, linear, quadratic = self.own
        most = gaps * self.rates[:, 1]
        return float(fixed.sum()) + _total(linear, most) + _total(quadratic, most**2)


class Coupled:
    """A distance that is no sum over features: ``costs`` are those of a change, ``box`` bounds the numbers."""

    def __init__(self, problem: Problem) -> None:
        self.space = problem.space

    def costs(self, extra: np.ndarray, budget: float) -> list[Cost]:
        return [Cost(part, 0.0, 0.0, budget) for part in extra]

    def reach(self) -> np.ndarray:
        """How far each feature can move for a distance of 1, in scaled units, shape (features,)."""
        raise NotImplementedError

    def box(self, extra: np.ndarray, budget: float, origin: np.ndarray) -> list[Any] | None:
        if not math.isfinite(budget):
            return None
        with np.errstate(invalid="ignore"):
            radius = np.maximum(budget - extra, 0.0) * self.reach()
        starts = [columns.start for columns in self.space.slices]
        return [
            (origin[start] - far, origin[start] + far) if feature.numeric and math.isfinite(far) else None
            for feature, start, far in zip(self.space.features, starts, radius, strict=True)
        ]

    def least(self, gaps: np.ndarray, changed: np.ndarray) -> np.ndarray:
        return (gaps / self.reach()).max(axis=1, initial=0.0)


class Chebyshev(Coupled):
    """The greatest weighted gap: one column above all of them."""

    def reach(self) -> np.ndarray:
        with np.errstate(divide="ignore"):  # a number that may pass nobody moves for nothing
            reach: np.ndarray = 1.0 / self.space.rates[:, 0]
        return reach

    def form(self, variables: Variables, extra: np.ndarray, compiled: Compiled) -> Linear:
        above = Linear.of([(compiled.add_column(0.0, math.inf, integer=False), 1.0)])
        for gap in variables.gaps():
            compiled.add_row(difference(above, gap), low=0.0)
        return Linear.sum([variables.changed(extra), above])

    def most(self, gaps: np.ndarray) -> float:
        return float((gaps * self.space.rates[:, 1]).max(initial=0.0))


class Mahalanobis(Coupled):
    r"""The :math:`\ell_1` norm of :math:`L^T(x - \hat x)`, :math:`L L^T = \Sigma^{-1}`: two columns a component.

    :math:`\|L^T v\|_1 \ge \|L^T v\|_2 = (v^T \Sigma^{-1} v)^{1/2} \ge |v_j| / \Sigma_{jj}^{1/2}` bounds each move.
    """

    def __init__(self, problem: Problem, factor: np.ndarray) -> None:
        super().__init__(problem)
        self.factor = factor
        spread = np.sqrt(np.diag(covariance(problem.encoded)))
        self.spread = np.array([spread[columns].max() for columns in self.space.slices])

    def reach(self) -> np.ndarray:
        return self.spread

    def form(self, variables: Variables, extra: np.ndarray, compiled: Compiled) -> Linear:
        columns = variables.encoded()
        origin = self.space.encode(variables.factual)[0]
        parts = []
        for weights in self.factor.T:
            used = np.flatnonzero(weights)
            up, down = (compiled.add_column(0.0, math.inf, integer=False) for _ in range(2))
            terms = [scaled(columns[i], weights[i]) for i in used]
            here = Linear.sum([*terms, Linear.of([(up, -1.0), (down, 1.0)], -float(weights @ origin))])
            compiled.add_row(here, low=0.0, high=0.0)
            parts.append(Linear.of([(up, 1.0), (down, 1.0)]))
        return Linear.sum([variables.changed(extra), *parts])

    def most(self, gaps: np.ndarray) -> float:
        wide = np.concatenate([np.full(f.width, gap) for f, gap in zip(self.space.features, gaps, strict=True)])
        return _total(np.abs(self.factor).sum(axis=1), wide)


def _total(weights: np.ndarray, gaps: np.ndarray) -> float:
    """The sum of weights times gaps, of which an infinite one counts nothing where its weight is 0."""
    counted = weights != 0
    return float(weights[counted] @ gaps[counted])


def dominated(
    distance: Distance, alpha: float, space: Space, factual: pd.DataFrame, low: np.ndarray, high: np.ndarray
) -> bool:
    """Whether alpha exceeds every distance from a factual to scaled columns within [low, high].

    The fewest changes then come first.
    """
    origin = space.encode(factual)[0]
    reach = np.maximum(np.abs(high - origin), np.abs(low - origin))
    return alpha > distance.most(np.array([reach[columns].max(initial=0.0) for columns in space.slices]))


def distance_of(term: Term, problem: Problem, count: str) -> Distance:
    """The distance that a term of an objective names."""
    parts = Objective((term,), count=count).separable(problem.space)
    if parts is not None:
        return Separable(*parts, problem.space)
    if term.name == "linf":
        return Chebyshev(problem)
    return Mahalanobis(problem, np.asarray(term.params["factor"]))
