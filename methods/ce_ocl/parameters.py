"""Parameters of CE-OCL."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np

from harness.core.clusters import clustered
from harness.core.errors import check_choices
from harness.core.numbers import check_counts
from harness.core.objective import Limit, Objective, Term, check_weight, mad, mahalanobis_factor
from harness.core.problem import Problem
from harness.core.space import Kind
from harness.core.tolerances import MARGIN
from methods.delta import check_delta, limited
from methods.milp.likely import Likely
from methods.milp.supports import SUPPORTS, support_points, supports

HULLS = {"hull": ("none", "hard", "penalised", "fallback"), "hull_norm": (1, 2, "inf"), "hull_points": SUPPORTS}
ALLOWED = {
    "distance": ("l0", "l1", "mad_l1", "gower", "l2sq", "linf", "mahalanobis"),
    "count": ("features", "columns"),
    "engine": ("auto", "search", "milp"),
    "diversity": ("distance", "pool", "assignments", "features", "clusters", "epsilon"),
}
WIDE = 1e3  # more than a feature within a hull costs by its distance


@dataclass(frozen=True, kw_only=True)
class DataManifold:
    """Of the parameters of CE-OCL, those that keep points near reference rows: hulls (3), and likelihood."""

    hull: str = "none"
    epsilon: float | Sequence[float] = 0.0
    hull_norm: int | str = 1
    penalty: float = 1.0
    hull_points: str = "labelled"
    clusters: int = 1
    likelihood: float = 0.0

    def __post_init__(self) -> None:
        check_choices(self, HULLS)
        if not self.epsilons or min(self.epsilons) < 0:
            raise ValueError(f"epsilon is {self.epsilon}; it must be >= 0, or a list of such numbers.")
        if list(self.epsilons) != sorted(self.epsilons):
            raise ValueError(f"epsilon is {self.epsilon}; list enlargements from the smallest up.")
        if self.hull == "fallback" and any(self.epsilons):
            raise ValueError(f"epsilon is {self.epsilon}; it enlarges a hard hull. With hull=fallback leave it 0.")
        check_weight("penalty", self.penalty)
        if not self.penalty:
            raise ValueError(f"penalty is {self.penalty}; it must be > 0.")
        check_counts(self, 1, "clusters")
        if not 0 <= self.likelihood < 1:
            raise ValueError(f"likelihood is {self.likelihood}; it must be in [0, 1), 0 for no density.")
        if self.likelihood and self.hull != "none":
            raise ValueError(
                f"likelihood is {self.likelihood}, hull {self.hull!r}; set likelihood to 0 or hull to none."
            )

    @property
    def manifold(self) -> bool:
        """Whether points are kept near the reference rows, by hulls or by their likelihood."""
        return self.hull != "none" or self.likelihood > 0

    @property
    def free(self) -> dict[str, Any]:
        """What to set so that they are not."""
        return {"hull": "none", "likelihood": 0.0, "diversity": "distance"}

    @property
    def epsilons(self) -> tuple[float, ...]:
        """The enlargements of the hull, in the order in which they are tried."""
        listed = [self.epsilon] if isinstance(self.epsilon, int | float) else list(self.epsilon)
        return tuple(float(value) for value in listed)

    @property
    def soft(self) -> bool:
        """Whether points outside the hull are accepted at a price."""
        return self.hull in {"penalised", "fallback"}

    def slack(self, problem: Problem, changes: float) -> Term:
        """The distance from the hull, at its price where it has one; ``changes``: the price of changing everything."""
        points = support_points(problem, self.hull_points)
        params: dict[str, Any] = {"points": points, "norm": 1 if self.soft else self.hull_norm}
        if self.clusters > 1:
            params["cluster"] = clustered(points, self.clusters)
        if self.hull == "fallback":  # more than any distance within a hull: outside comes after inside
            params["entry"] = (changes + WIDE * len(points.T)) / self.penalty
        return Term("slack", self.penalty if self.soft else 1.0, params)

    def likely(self, problem: Problem) -> Likely:
        """The points at least as likely as a share ``likelihood`` of the rows."""
        rows = problem.space.encode(problem.reference.loc[supports(problem, self.hull_points)])
        return Likely(problem.space, rows, clustered(rows, self.clusters), self.likelihood)


@dataclass(frozen=True)
class Parameters(DataManifold):
    """The numbers and choices of CE-OCL; documented at ``CeOcl``."""

    distance: str = "l1"
    alpha: float = 0.0
    max_changes: int | None = None
    count: str = "features"
    _: KW_ONLY
    causality: bool = False
    diversity: str = "distance"
    separation: float = 0.05
    margin: float = MARGIN
    engine: str = "auto"
    delta: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choices(self, ALLOWED)
        check_weight("alpha", self.alpha)
        if self.max_changes is not None and self.max_changes < 1:
            raise ValueError(f"max_changes is {self.max_changes}; it must be >= 1, or null for no bound.")
        if self.hull == "none" and self.diversity in {"clusters", "epsilon"}:
            raise ValueError(f"diversity={self.diversity} needs a data manifold; set hull to hard.")
        if self.diversity == "epsilon" and self.hull != "hard":
            raise ValueError("diversity=epsilon enlarges a hard hull; set hull to hard.")
        if self.diversity == "clusters" and self.soft:
            raise ValueError("diversity=clusters asks for a point in each cluster's hull; set hull to hard.")
        check_delta(self.delta)
        if self.delta and self.manifold and self.hull_points != "labelled":
            raise ValueError(
                f"hull_points is {self.hull_points!r}; with delta, hulls and densities are of the labelled points."
            )
        if not 0 < self.separation <= 1:
            raise ValueError(f"separation is {self.separation}; it must be in (0, 1].")
        if self.margin < MARGIN:
            raise ValueError(f"margin is {self.margin}; it must be at least {MARGIN}, above the solver's tolerance.")

    def weights(self, problem: Problem) -> np.ndarray:
        """What a changed feature counts, in changes, shape (features,)."""
        double = [self.count == "columns" and feature.kind is Kind.CATEGORICAL for feature in problem.space.features]
        return np.where(double, 2.0, 1.0)

    @property
    def most(self) -> float:
        """The greatest weighted number of changes, inf for no bound."""
        return math.inf if self.max_changes is None else float(self.max_changes)

    @property
    def counted(self) -> bool:
        """Whether the number of changes has a price or a bound."""
        return self.distance == "l0" or self.alpha > 0 or self.max_changes is not None

    def objective(self, problem: Problem) -> Objective:
        """(2a), with the bounds on it that are no constraints of the space."""
        params: dict[str, Any] = {}
        if self.distance == "mad_l1":
            params = mad(problem.space, problem.train)
        elif self.distance == "mahalanobis":
            params = {"factor": mahalanobis_factor(problem.encoded)}
        terms = [Term(self.distance, 1.0, params)]
        if self.alpha:
            terms.append(Term("l0", self.alpha))
        limits = [] if self.max_changes is None else [Limit(Term("l0"), self.max_changes)]
        if self.likelihood:
            limits.append(self.likely(problem).limit)
        if self.hull != "none":
            slack = self.slack(problem, self.alpha * float(self.weights(problem).sum()))
            if self.soft:
                terms.append(slack)
            else:
                limits.append(Limit(slack, max(self.epsilons)))
        causal = self.causality and bool(problem.equations)
        domain: dict[str, Any] = {}
        if self.margin > MARGIN:
            domain["margin"] = self.margin  # points within it are left out of a proof
        if len(self.epsilons) > 1 and self.hull == "hard":
            domain["epsilon"] = self.epsilons  # a proof is about the first of them that leaves a counterfactual
        found = Objective(tuple(terms), count=self.count, limits=tuple(limits), causal=causal, domain=domain)
        return limited(found, problem, self.delta)
