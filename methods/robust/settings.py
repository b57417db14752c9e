"""Parameters of robust counterfactuals."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Self

from harness.certificate.radius import radius as radius_for
from harness.core.errors import check_choices
from harness.core.objective import Limit, Objective, Term, check_weight
from harness.core.problem import Problem
from harness.core.tolerances import LEAST_RADIUS, MARGIN
from methods.milp.supports import SUPPORTS, support_points
from methods.robust.perturbation import Perturbation

HULLS = {"hull": ("none", "hard"), "hull_norm": (1, 2, "inf"), "hull_points": SUPPORTS}
ALLOWED = {
    "norm": ("linf", "l2"),
    "distance": ("l1", "l2sq", "linf"),
    "algorithm": ("auto", "cells", "adversarial", "leaf", "network"),
}
SECONDS = 10.0  # for the certificate of one point


@dataclass(frozen=True, kw_only=True)
class DataManifold:
    """Of the parameters of robust counterfactuals, those of the hull of reference rows that they have to lie in."""

    hull: str = "none"
    epsilon: float = 0.0
    hull_norm: int | str = 1
    hull_points: str = "labelled"

    def __post_init__(self) -> None:
        check_choices(self, HULLS)
        if not (math.isfinite(self.epsilon) and self.epsilon >= 0):
            raise ValueError(f"epsilon is {self.epsilon}; it must be >= 0, in scaled units.")
        if self.epsilon and self.hull == "none":
            raise ValueError(f"epsilon is {self.epsilon}; it enlarges a data manifold, so set hull=hard or leave it 0.")

    def near(self, problem: Problem) -> list[Limit]:
        """The limit on the distance from the hull, where there is one."""
        if self.hull == "none":
            return []
        params = {"points": support_points(problem, self.hull_points), "norm": self.hull_norm}
        return [Limit(Term("slack", 1.0, params), self.epsilon)]


@dataclass(frozen=True)
class Settings(DataManifold):
    r"""The parameters of robust counterfactuals; ``Robust`` documents each of them."""

    rho: float | None = 0.05
    norm: str = "linf"
    distance: str = "l1"
    algorithm: str = "auto"
    clip: bool = False
    unperturbed: tuple[str, ...] = ()
    alpha: float = 0.0
    max_changes: int | None = None
    margin: float = MARGIN
    probability: float | None = None
    sigma: float | None = None
    relations_in_region: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "unperturbed", tuple(self.unperturbed))
        super().__post_init__()
        check_choices(self, ALLOWED)
        if self.rho is None:
            if self.probability is None or self.sigma is None:
                raise ValueError("rho is null; give a number >= 0, or both probability and sigma to find it from.")
            radius_for(self.probability, self.sigma, 1, self.norm)
        elif self.probability is not None or self.sigma is not None:
            raise ValueError(f"probability and sigma set rho, which is {self.rho}; set rho=null or leave them out.")
        elif not (math.isfinite(self.rho) and (self.rho == 0 or self.rho >= LEAST_RADIUS)):
            raise ValueError(
                f"rho is {self.rho}; it must be a finite number of at least {LEAST_RADIUS:g}, in scaled units, or 0: "
                f"less is rounding."
            )
        check_weight("alpha", self.alpha)
        if self.max_changes is not None and self.max_changes < 1:
            raise ValueError(f"max_changes is {self.max_changes}; it must be >= 1, or null for no bound.")
        if self.margin < MARGIN:
            raise ValueError(f"margin is {self.margin}; it must be at least {MARGIN}, above the solver's tolerance.")

    def resolved(self, problem: Problem) -> Self:
        """With the radius as a number: (69) or (72) of the paper on as many columns as the problem has perturbed."""
        if self.probability is None or self.sigma is None:
            return self
        count = len(Perturbation(problem.space, 0.0, self.norm, self.unperturbed).columns)
        rho = radius_for(self.probability, self.sigma, count, self.norm) if count else 0.0
        rho = max(rho, LEAST_RADIUS) if rho > 0 else rho
        return replace(self, rho=rho, probability=None, sigma=None)

    def perturbation(self, problem: Problem) -> Perturbation:
        """The perturbations under which the problem's counterfactuals have to stay valid."""
        settings = self.resolved(problem)
        return Perturbation(problem.space, settings.radius, settings.norm, settings.unperturbed, settings.clip)

    def claim(self, problem: Problem) -> Objective:
        """(3), the distance and the cost of changes, with the limits on changes and to the data manifold."""
        limits = [] if self.max_changes is None else [Limit(Term("l0"), self.max_changes)]
        return Objective(self.terms, limits=(*limits, *self.near(problem)))

    @property
    def terms(self) -> tuple[Term, ...]:
        """(3): the distance, and the cost of changes."""
        return (Term(self.distance), *([Term("l0", self.alpha)] if self.alpha else []))

    @property
    def radius(self) -> float:
        """``rho`` where it is a number, as it is once ``resolved``."""
        assert self.rho is not None
        return self.rho
