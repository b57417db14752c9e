"""The perturbations under which a counterfactual has to stay valid: perturbed columns and their radii."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from harness.certificate import Ball, perturbed
from harness.core.errors import UnsupportedError, choices
from harness.core.space import Feature, Kind, Space

WIDE = 10.0  # scaled units around the factual in which programs look at unbounded numbers first


def boundless(feature: Feature) -> bool:
    """Whether a feature may go farther than programs look first."""
    return feature.numeric and feature.bounds[1] - feature.bounds[0] > 2 * WIDE * feature.range


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

    @cached_property
    def moved(self) -> np.ndarray:
        """Which features are perturbed, bool, shape (features,)."""
        names = perturbed(self.space, self.unperturbed)
        return np.array([name in names for name in self.space.names], dtype=bool)

    @cached_property
    def columns(self) -> np.ndarray:
        """P: the positions of the perturbed columns among the scaled ones, int."""
        return np.array([s.start for s, moves in zip(self.space.slices, self.moved, strict=True) if moves], dtype=int)

    @cached_property
    def reach(self) -> np.ndarray:
        """How far each feature may be moved by itself, in original units, shape (features,)."""
        return np.array(
            [self.rho * f.range if m else 0.0 for f, m in zip(self.space.features, self.moved, strict=True)]
        )

    def region(self, row: Mapping[str, Any]) -> dict[str, tuple[float, float]]:
        r"""Per number, the interval in original units whose values stay valid together.

        For ``linf`` :math:`x_j \pm \rho R_j`; for ``l2`` the box in the ball, :math:`x_j \pm \rho R_j / \sqrt{|P|}`.
        The ends are the last doubles within.
        """
        share = 1.0 if self.norm == "linf" else 1.0 / math.sqrt(max(len(self.columns), 1))
        region = {}
        for feature, reach in zip(self.space.features, self.reach, strict=True):
            if feature.numeric:
                value = float(row[feature.name])
                low, high = self.limits(feature, value)
                least = min(math.nextafter(value - share * reach, math.inf), value)
                most = max(math.nextafter(value + share * reach, -math.inf), value)
                region[feature.name] = max(least, low), min(most, high)
        return region

    def limits(self, feature: Feature, value: float) -> tuple[float, float]:
        """The least and greatest value that a number may be moved to: with ``clip`` its bounds, and where it is."""
        if not self.clip:
            return -math.inf, math.inf
        return min(feature.bounds[0], value), max(feature.bounds[1], value)

    def ball(self, row: Mapping[str, Any]) -> Ball:
        """The perturbed points as the independent checker takes them."""
        moved = [f for f, moves in zip(self.space.features, self.moved, strict=True) if moves]
        limits = {f.name: self.limits(f, float(row[f.name])) for f in moved}
        return Ball(self.norm, {f.name: f.range for f in moved}, limits)

    @cached_property
    def relaxed(self) -> Space:
        """The space that perturbed points lie in: perturbed integers are reals there."""
        integers = [
            f.name for f, m in zip(self.space.features, self.moved, strict=True) if m and f.kind is Kind.INTEGER
        ]
        return self.space.replace({name: {"kind": "continuous"} for name in integers if self.rho > 0})
