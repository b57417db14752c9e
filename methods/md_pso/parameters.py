"""Parameters of MD-PSO."""

from __future__ import annotations

from dataclasses import dataclass

from harness.core.errors import choices

CHOICES = {
    "selection": ("kmeans", "top", "personal"),
    "pick": ("best", "random"),
    "draws": ("unit", "paper"),
    "cost": ("deb", "paper"),
}


@dataclass(frozen=True)
class Parameters:
    r"""The numbers and options of a swarm; ``MdPso`` describes each."""

    n_active: int = 25
    epsilon: float = 0.6
    epsilon_abs: float = 0.1
    particles: int = 50
    iterations: int = 100
    inertia: float = 0.72
    cognitive: float = 1.49
    social: float = 1.49
    diversity: float = 0.1
    draws: str = "unit"
    cost: str = "deb"
    proximity_weight: float = 1.0
    sparsity_weight: float = 1.0
    clamp: float = 0.5
    archive: int = 60
    doublings: int = 5
    selection: str = "kmeans"
    pick: str = "best"
    pull_back: bool = False

    def __post_init__(self) -> None:
        for name, allowed in CHOICES.items():
            if (value := getattr(self, name)) not in allowed:
                raise ValueError(f"{name} is {value!r}; {choices(value, allowed)}.")
        for name in ("n_active", "particles", "iterations"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} is {getattr(self, name)}; it must be at least 1.")
        signed = ("epsilon", "epsilon_abs", "inertia", "cognitive", "social", "diversity", "archive", "doublings")
        for name in (*signed, "proximity_weight", "sparsity_weight"):
            if getattr(self, name) < 0:
                raise ValueError(f"{name} is {getattr(self, name)}; it must not be negative.")
        if not 0 < self.clamp <= 1:
            raise ValueError(f"clamp is {self.clamp}; it must lie in (0, 1], a share of the box.")

    def box(self, doublings: int) -> tuple[float, float]:
        """Relative and absolute half-width of a number's box after some doublings."""
        return self.epsilon * 2.0**doublings, self.epsilon_abs * 2.0**doublings
