"""What robust counterfactuals have to stand: settings, perturbed columns and their radii, and what a solver finds."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol, Self

import numpy as np
import pandas as pd

from harness.certificate.radius import radius as radius_for
from harness.core.errors import UnsupportedError, choices
from harness.core.method import Deadline
from harness.core.objective import WITHIN, Limit, Objective, Term
from harness.core.problem import Problem
from harness.core.space import Actionability, Feature, Kind, Space

if TYPE_CHECKING:
    from harness.certificate import Ball


ALLOWED = {
    "norm": ("linf", "l2"),
    "distance": ("l1", "l2sq", "linf"),
    "algorithm": ("auto", "cells", "adversarial", "leaf", "network"),
    "hull": ("none", "hard"),
    "hull_norm": (1, 2, "inf"),
    "hull_points": ("labelled", "predicted", "both"),
}
SECONDS = 10.0  # for the certificate of one point
LEAST = 1e-6  # margin, above the solver's tolerance
OPTIMAL = 1e-6  # a bound this near to the value, relative to max(1, value), proves it


@dataclass(frozen=True)
class Settings:
    r"""The numbers of a robust counterfactual; ``Robust`` says what each of them means."""

    rho: float | None = 0.05
    norm: str = "linf"
    distance: str = "l1"
    algorithm: str = "auto"
    clip: bool = False
    unperturbed: tuple[str, ...] = ()
    alpha: float = 0.0
    max_changes: int | None = None
    hull: str = "none"
    epsilon: float = 0.0
    hull_norm: int | str = 1
    hull_points: str = "labelled"
    margin: float = 1e-6
    probability: float | None = None
    sigma: float | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "unperturbed", tuple(self.unperturbed))
        for name, allowed in ALLOWED.items():
            if (value := getattr(self, name)) not in allowed:
                raise ValueError(f"{name} is {value!r}; allowed: {', '.join(map(str, allowed))}.")
        if self.rho is None:
            if self.probability is None or self.sigma is None:
                raise ValueError("rho is null; give a number >= 0, or both probability and sigma to find it from.")
            radius_for(self.probability, self.sigma, 1, self.norm)
        elif self.probability is not None or self.sigma is not None:
            raise ValueError(f"probability and sigma set rho, which is {self.rho}; set rho=null or leave them out.")
        elif not (math.isfinite(self.rho) and self.rho >= 0):
            raise ValueError(f"rho is {self.rho}; it must be a finite number >= 0, in scaled units.")
        if not (math.isfinite(self.alpha) and self.alpha >= 0):
            raise ValueError(f"alpha is {self.alpha}; it must be >= 0.")
        if self.max_changes is not None and self.max_changes < 1:
            raise ValueError(f"max_changes is {self.max_changes}; it must be >= 1, or null for no bound.")
        if not (math.isfinite(self.epsilon) and self.epsilon >= 0):
            raise ValueError(f"epsilon is {self.epsilon}; it must be >= 0, in scaled units.")
        if self.epsilon and self.hull == "none":
            raise ValueError(f"epsilon is {self.epsilon}; it enlarges a data manifold, so set hull=hard or leave it 0.")
        if self.margin < LEAST:
            raise ValueError(f"margin is {self.margin}; it must be at least {LEAST}, above the solver's tolerance.")

    def resolved(self, problem: Problem) -> Self:
        """With the radius as a number: (69) or (72) of the paper on as many columns as the problem has perturbed."""
        if self.probability is None or self.sigma is None:
            return self
        count = len(Perturbation(problem.space, 0.0, self.norm, self.unperturbed).columns)
        rho = radius_for(self.probability, self.sigma, count, self.norm) if count else 0.0
        return replace(self, rho=rho, probability=None, sigma=None)

    def claim(self, problem: Problem) -> Objective:
        """(3), the distance and the price of changes, with the limits on changes and to the data manifold."""
        terms = [Term(self.distance)] + ([Term("l0", self.alpha)] if self.alpha else [])
        limits = [] if self.max_changes is None else [Limit(Term("l0"), self.max_changes)]
        if self.hull == "hard":
            from methods.milp.manifold import supports

            rows = problem.reference.loc[supports(problem, self.hull_points)]
            points = np.unique(problem.space.encode(rows), axis=0)
            limits.append(Limit(Term("slack", 1.0, {"points": points, "norm": self.hull_norm}), self.epsilon))
        return Objective(tuple(terms), limits=tuple(limits))

    @property
    def radius(self) -> float:
        """``rho`` where it is a number, as it is once ``resolved``."""
        assert self.rho is not None
        return self.rho


@dataclass(frozen=True)
class Perturbation:
    """The columns that a perturbation moves, and how far.

    Parameters
    ----------
    space
        The features.
    rho
        Radius in scaled units, of the box (``linf``) or ball (``l2``).
    norm
        ``linf`` or ``l2``.
    unperturbed
        Features that stay as they are, beside those that hold categories and those that are immutable.
    clip
        Whether perturbed points keep to the bounds of the features.
    """

    space: Space
    rho: float
    norm: str
    unperturbed: tuple[str, ...] = ()
    clip: bool = False

    def __post_init__(self) -> None:
        for name in self.unperturbed:
            if name not in self.space.names:
                raise UnsupportedError(f"unperturbed names {name!r}; {choices(name, self.space.names)}.")

    @classmethod
    def of(cls, settings: Settings, problem: Problem) -> Perturbation:
        settings = settings.resolved(problem)
        return cls(problem.space, settings.radius, settings.norm, settings.unperturbed, settings.clip)

    @cached_property
    def moved(self) -> np.ndarray:
        """Which features are perturbed, bool, shape (features,)."""
        return np.array([self._moves(feature) for feature in self.space.features], dtype=bool)

    def _moves(self, feature: Feature) -> bool:
        fixed = feature.actionability is Actionability.IMMUTABLE or feature.name in self.unperturbed
        return feature.numeric and not fixed

    @cached_property
    def columns(self) -> np.ndarray:
        """P: the positions of the perturbed columns among the scaled ones, int."""
        return np.array([s.start for s, moves in zip(self.space.slices, self.moved, strict=True) if moves], dtype=int)

    @cached_property
    def radii(self) -> np.ndarray:
        """The radius of each scaled column: rho on P, else 0; shape (columns,)."""
        radii = np.zeros(len(self.space.columns))
        radii[self.columns] = self.rho
        return radii

    @cached_property
    def reach(self) -> np.ndarray:
        """How far each feature may be moved by itself, in original units, shape (features,)."""
        return np.array(
            [self.rho * f.range if m else 0.0 for f, m in zip(self.space.features, self.moved, strict=True)]
        )

    def region(self, row: Mapping[str, Any]) -> dict[str, tuple[float, float]]:
        r"""Per number, the interval in original units whose values stay valid together.

        For ``linf`` :math:`x_j \pm \rho R_j`; for ``l2`` the box in the ball, :math:`x_j \pm \rho R_j / \sqrt{|P|}`.
        """
        share = 1.0 if self.norm == "linf" else 1.0 / math.sqrt(max(len(self.columns), 1))
        region = {}
        for feature, reach in zip(self.space.features, self.reach, strict=True):
            if feature.numeric:
                value = float(row[feature.name])
                low, high = self.limits(feature, value)
                region[feature.name] = max(value - share * reach, low), min(value + share * reach, high)
        return region

    def limits(self, feature: Feature, value: float) -> tuple[float, float]:
        """The least and greatest value that a number may be moved to: with ``clip`` its bounds, and where it is."""
        if not self.clip:
            return -math.inf, math.inf
        return min(feature.bounds[0], value), max(feature.bounds[1], value)

    def ball(self, row: Mapping[str, Any]) -> Ball:
        """The perturbed points as the independent checker takes them."""
        from harness.certificate import Ball

        moved = [f for f, moves in zip(self.space.features, self.moved, strict=True) if moves]
        limits = {f.name: self.limits(f, float(row[f.name])) for f in moved}
        return Ball(self.norm, {f.name: f.range for f in moved}, limits)

    @cached_property
    def relaxed(self) -> Space:
        """The space that perturbed points lie in: perturbed integers are reals there."""
        whole = [f.name for f, m in zip(self.space.features, self.moved, strict=True) if m and f.kind is Kind.INTEGER]
        return self.space.replace({name: {"kind": "continuous"} for name in whole if self.rho > 0})


@dataclass(frozen=True)
class RobustObjective(Objective):
    """An objective that is also limited to points with no invalid one within rho, as the independent checker finds it.

    What is stored is the plain objective: the checker has the regions of the answers, and proves those itself.
    """

    problem: Problem | None = field(default=None, compare=False, repr=False)
    perturbation: Perturbation | None = field(default=None, compare=False, repr=False)

    def exceeded(self, space: Space, factual: pd.DataFrame, frame: pd.DataFrame) -> list[list[str]]:
        """As ``Objective.exceeded``; the limit is named ``radius``."""
        from harness.certificate import checker

        faults = super().exceeded(space, factual, frame)
        assert self.problem is not None
        assert self.perturbation is not None
        judge = checker(self.problem.space, self.problem.classifier, self.problem.target)
        rho = self.perturbation.rho * (1 - WITHIN)
        for fault, row in zip(faults, frame.to_dict("records"), strict=True):
            if judge.certify(row, self.perturbation.ball(row), within=rho, seconds=SECONDS).violated <= rho:
                fault.append("radius")
        return faults

    def stored(self) -> Objective:
        return Objective(self.terms, self.count, self.categories, self.limits, self.causal)


@dataclass(frozen=True)
class Outcome:
    """What a solver found for one factual.

    Parameters
    ----------
    row
        The decoded counterfactual, None where there is none.
    value, bound
        Its cost, and a proven lower bound on any robust point's; both infinite where there is proof of none.
    radius
        Up to which radius the solver has proven the row valid, in scaled units; at least rho for a certified row.
    trace
        What it did: plain values by iteration, such as ``iteration``, ``distance``, ``radius``, ``seconds``, and where
        the points of an iteration may be of use without a proof, its ``row``.
    """

    row: dict[str, Any] | None
    value: float
    bound: float
    radius: float = 0.0
    trace: tuple[dict[str, Any], ...] = ()

    @property
    def farthest(self) -> float:
        """The largest radius of a point of the trace, at least 0."""
        return max((float(step["radius"]) for step in self.trace), default=0.0)

    @property
    def proven(self) -> bool:
        """Whether nothing robust is cheaper."""
        return self.bound >= self.value - OPTIMAL * max(1.0, abs(self.value)) or math.isinf(self.bound)


class Solver(Protocol):
    """An algorithm fitted to one problem."""

    def solve(self, row: Mapping[str, Any], deadline: Deadline) -> Outcome:
        """The cheapest robust point from one decoded factual."""
        ...
