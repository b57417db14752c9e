"""Parameters of MD-PSO."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass

from harness.core.errors import check_choices
from harness.core.numbers import check_counts, check_least

CHOICES = {
    "pull_back": (True, False),
    "selection": ("kmeans", "top", "personal"),
    "pick": ("best", "random"),
    "cost": ("deb", "paper"),
}


@dataclass(frozen=True, kw_only=True)
class Movement:
    """Of the parameters of MD-PSO, the size of a swarm and how its particles move by (1)."""

    particles: int = 50
    iterations: int = 100
    inertia: float = 0.72
    cognitive: float = 1.49
    social: float = 1.49
    diversity: float = 0.1
    draws: str = "unit"
    clamp: float = 0.5

    def __post_init__(self) -> None:
        check_choices(self, {"draws": ("unit", "paper")})
        check_counts(self, 1, "particles", "iterations")
        check_least(self, 0, "inertia", "cognitive", "social", "diversity")
        if not 0 < self.clamp <= 1:
            raise ValueError(f"clamp is {self.clamp}; it must lie in (0, 1], a share of the box.")


@dataclass(frozen=True)
class Parameters(Movement):
    r"""The numbers and options of a swarm; ``MdPso`` describes each."""

    n_active: int = 25
    epsilon: float = 0.6
    epsilon_abs: float = 0.1
    _: KW_ONLY
    cost: str = "deb"
    proximity_weight: float = 1.0
    sparsity_weight: float = 1.0
    archive: int = 60
    doublings: int = 5
    selection: str = "kmeans"
    pick: str = "best"
    pull_back: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choices(self, CHOICES)
        check_counts(self, 1, "n_active")
        check_counts(self, 0, "archive", "doublings")
        check_least(self, 0, "epsilon", "epsilon_abs", "proximity_weight", "sparsity_weight")

    def box(self, doublings: int) -> tuple[float, float]:
        """Relative and absolute half-width of a number's box after some doublings."""
        return self.epsilon * 2.0**doublings, self.epsilon_abs * 2.0**doublings
