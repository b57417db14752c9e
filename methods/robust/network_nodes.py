"""What the search over ReLU networks keeps: slices and nodes, perturbations, what decisions gained, the best point."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from harness.core.tolerances import BRANCHING_GAIN, LINE_ERROR
from methods.robust.network_kernels import Known, Layers

ROOM = 64  # perturbations that there is room for at first; half of the room is for those that a node finds
RELIABLE = 4  # times that a unit was decided, to know what it gains
TRIALS = 6  # units that are tried at a node


@dataclass
class Slice:
    """One choice of categories: per feature, the place in its list of alternatives; what it costs; the network on it.

    ``last`` is the feature that was changed last: successors change it further, or a later one.
    """

    cost: float
    places: tuple[int, ...]
    last: int
    categories: dict[str, Any]
    layers: Layers


@dataclass
class Node:
    """Bounds of the first layer's sums (infinite where nothing was decided), and phases of later units by scenario.

    ``bottom`` and ``top`` are bounds of the first layer's sums that follow from all that. ``point`` is a relaxed
    solution of the node before, ``value`` its bound; ``way`` the layer, the unit and the side that were decided there,
    ``excess`` by how much that unit's line was too high.
    """

    slice: Slice
    point: np.ndarray
    low: np.ndarray
    high: np.ndarray
    phases: dict[tuple[int, int, int], int]
    bottom: np.ndarray
    top: np.ndarray
    value: float = 0.0
    way: tuple[int, int, int] | None = None
    excess: float = 0.0


@dataclass(frozen=True)
class Looked:
    """What a look at a node has found.

    Parameters
    ----------
    code
        Of ``network_kernels.node``.
    value
        A lower bound on the cost of the node's points.
    point
        The relaxed solution, scaled numbers.
    scenario
        The perturbation to branch on.
    excess
        By how much the line of each unit lies too high there, shape (layers, units).
    known
        How many perturbations were known then.
    """

    code: int
    value: float
    point: np.ndarray
    scenario: int
    excess: np.ndarray
    known: int


@dataclass(frozen=True)
class Best:
    """The best robust point: its cost, its decoded row, and where it lies; infinitely dear before there is one."""

    value: float = math.inf
    row: dict[str, Any] | None = None
    slice: Slice | None = None
    point: np.ndarray | None = None


class Trace:
    """A line for each better point, with the seconds spent until then by the adversary and by all else."""

    def __init__(self) -> None:
        self.lines: list[dict[str, Any]] = []
        self.began, self.adversary_seconds = time.monotonic(), 0.0

    def add(self, iteration: int, distance: float, radius: float, bound: float) -> None:
        master = time.monotonic() - self.began - self.adversary_seconds
        self.lines.append(
            {
                "iteration": iteration, "distance": distance, "radius": radius, "bound": bound,
                "master_seconds": master, "adversary_seconds": self.adversary_seconds,
            }
        )  # fmt: skip


class Scenarios:
    """Perturbations that break points, the first of them none at all, in arrays that kernels add to.

    Parameters
    ----------
    numbers
        How many they move.
    shape
        Of phases, (layers, units).

    Attributes
    ----------
    moves
        Of the scaled numbers, shape (room, numbers).
    lifted
        What they add to the first layer's sums, shape (room, units).
    count
        How many there are, and of how many ``lifted`` is known, shape (2,).
    """

    def __init__(self, numbers: int, shape: tuple[int, ...]) -> None:
        self.moves, self.lifted = np.zeros((ROOM, numbers)), np.zeros((ROOM, shape[-1]))
        self._undecided = np.zeros((0, *shape), np.int8)
        self.count = np.array([1, 0])

    def record(self, phases: np.ndarray | None = None) -> tuple[np.ndarray, ...]:
        """As the kernels take them, with the phases of their later units where these matter."""
        return tuple(Known(self._undecided if phases is None else phases, self.moves, self.lifted, self.count))

    def add(self, move: np.ndarray) -> None:
        self.reserve(1)
        self.moves[self.count[0]] = move
        self.count[0] += 1

    def forget(self, count: int) -> None:
        """All but the first so many."""
        self.count[:] = np.minimum(self.count, count)

    def reserve(self, further: int) -> None:
        """Room for some more, twice as much where there is too little."""
        if self.count[0] + further > len(self.moves):
            self.moves = np.concatenate([self.moves, np.zeros_like(self.moves)])
            self.lifted = np.concatenate([self.lifted, np.zeros_like(self.lifted)])


class PseudoCosts:
    """What bounds gained where a unit was decided, for how wrong its line was, by layer, unit and side."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.gains, self.tries = np.zeros((*shape, 2)), np.zeros((*shape, 2))

    def learn(self, way: tuple[int, int, int], gain: float) -> None:
        self.gains[way] += gain
        self.tries[way] += 1

    def scores(self, excess: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """What each unit promises to gain, -1 where its line is right, and the units that are to be tried first.

        With one layer the promise is how much its line lies too high. With more, it is also what deciding it has gained
        so far; those that were not decided often enough are tried. Shapes (layers, units) and (trials, 2).
        """
        open_ = excess > LINE_ERROR * excess.max()
        if len(excess) == 1:
            return np.where(open_, excess, -1.0), np.zeros((0, 2), int)
        usual = self.gains.sum() / max(self.tries.sum(), 1.0)
        mean = np.where(self.tries > 0, self.gains / np.maximum(self.tries, 1.0), usual)
        trials = np.argwhere(open_ & (self.tries.min(axis=2) < RELIABLE))
        trials = trials[np.argsort(-excess[tuple(trials.T)], kind="stable")][:TRIALS]
        return np.where(open_, excess**2 * np.maximum(mean, BRANCHING_GAIN).prod(axis=2), -1.0), trials
