"""The sets of perturbed points that a certificate is about, and its result."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from harness.core.errors import UnsupportedError, choices
from harness.core.space import Actionability, Space
from harness.core.tolerances import RADIUS

NORMS = ("linf", "l2")


def perturbed(space: Space, unperturbed: Iterable[str] = ()) -> tuple[str, ...]:
    """Names of the features that an imprecise implementation moves: numbers that are not immutable, nor left out."""
    left_out = set(unperturbed)
    return tuple(
        feature.name
        for feature in space.features
        if feature.numeric and feature.actionability is not Actionability.IMMUTABLE and feature.name not in left_out
    )


@dataclass(frozen=True)
class Ball:
    """Points around a row: those that differ in the features of ``units`` only, by at most a radius in a norm.

    Parameters
    ----------
    norm
        ``linf`` or ``l2``, of the moves in units.
    units
        What a move of 1 is in original units, > 0, by feature. Integers move as real numbers.
    limits
        The least and greatest original value that a feature may be moved to; all numbers where it is not listed.
    """

    norm: str
    units: Mapping[str, float]
    limits: Mapping[str, tuple[float, float]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.norm not in NORMS:
            raise UnsupportedError(f"norm is {self.norm!r}; {choices(self.norm, NORMS)}.")

    @classmethod
    def scaled(cls, space: Space, norm: str, unperturbed: Iterable[str] = ()) -> Ball:
        """The ball in the space's scaled columns, over all features that are perturbed."""
        return cls(norm, {name: space[name].range for name in perturbed(space, unperturbed)})

    def room(self, name: str, value: float) -> tuple[float, float]:
        """How far a feature may be moved down and up from a value, in units, each at least 0."""
        low, high = self.limits.get(name, (-math.inf, math.inf))
        unit = self.units[name]
        return max(value - low, 0.0) / unit, max(high - value, 0.0) / unit


@dataclass(frozen=True)
class Certificate:
    """What is known of the largest radius for which all points are valid.

    Parameters
    ----------
    radius
        Proven: every point nearer than this is valid. May be infinite.
    violated
        The distance of an invalid point that was met, or, where the model turns at a threshold, of the first number
        beyond it; infinite where none was met.
    """

    radius: float
    violated: float

    @property
    def exact(self) -> bool:
        """Whether the radius is the largest one."""
        return (
            self.violated - self.radius <= RADIUS * max(1.0, self.violated) if math.isfinite(self.violated) else False
        )


class Budget:
    """What a certificate may cost. Counted in nodes it is the same on every machine, in seconds it is not.

    Parameters
    ----------
    seconds
        On the monotonic clock, from now on.
    nodes
        Boxes that a search looks at; one of a network, a linear program, counts for ``PROGRAM`` of a sum of trees.
    exact
        Whether the largest radius is wanted, not only whether all is valid within the one that is asked for.
    """

    PROGRAM = 100

    def __init__(self, seconds: float = math.inf, nodes: float = math.inf, exact: bool = True) -> None:
        self.until, self.nodes, self.exact = time.monotonic() + seconds, nodes, exact

    def spent(self, nodes: int) -> bool:
        """Whether nothing is left after so many further nodes."""
        self.nodes -= nodes
        return self.nodes <= 0 or time.monotonic() > self.until


class Search(Protocol):
    """Finds the nearest invalid point of one model and margin; there is one class for each family of models."""

    def nearest(
        self, row: Mapping[str, Any], ball: Ball, within: float, budget: Budget, valid: Callable[..., bool]
    ) -> Certificate:
        """The certificate of a decoded row.

        Parameters
        ----------
        within
            The greatest radius to prove.
        budget
            When to stop.
        valid
            Whether the model itself accepts a decoded row; decides where the margin is too near to 0.
        """
        ...
