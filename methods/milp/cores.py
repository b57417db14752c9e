"""Cores, sets of features that cannot all stay as they are: how few have to change at least."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from harness.core.method import Deadline
from harness.core.tolerances import HULL_INSIDE, HULL_NORMAL
from methods.milp.core_kernels import lightest
from methods.milp.hull import Hull

CLEAR = 10 * HULL_INSIDE  # beyond a half-space by more, a point is in no hull within it, whatever rounding says


class Cores(ABC):
    r"""Sets of features of which each valid point changes at least one, and the fewest changes that meet them all.

    A least hitting set of such *cores* bounds the weighted number of changes from below, and proposes which features to
    let go: either the others can then be kept, or there is a further core (implicit hitting sets [1]_).

    Parameters
    ----------
    may
        The features that may stay as they are.
    weights
        What a changed feature counts, > 0; infinite where it may not change.
    base
        What changes count that every valid point makes, besides.

    Attributes
    ----------
    sets
        The cores found.
    changed
        The features of the lightest hitting set.
    least
        A lower bound on the weighted number of changes; infinite where nothing is valid.
    closed
        Whether ``grow`` has no more to tell.

    References
    ----------
    .. [1] Moreno-Centeno, E., and R. M. Karp (2013). The implicit hitting set approach to solve combinatorial
       optimization problems with an application to multigenome alignment. *Operations Research* 61 (2).
    """

    def __init__(self, may: Iterable[int], weights: np.ndarray, base: float) -> None:
        self.may, self.weights, self.base = frozenset(may), weights, base
        self.sets: list[frozenset[int]] = []
        self.changed: frozenset[int] = frozenset()
        self.least, self.closed = base, False

    @abstractmethod
    def core(self, kept: frozenset[int], deadline: Deadline) -> frozenset[int] | None:
        """A small core among some features; None: none is known."""

    def grow(self, deadline: Deadline) -> None:
        """Look for cores without the features of the lightest hitting set, as many as have none in common."""
        kept, found = self.may - self.changed, list[frozenset[int]]()
        while not deadline.passed and (core := self.core(kept, deadline)) is not None:
            found.append(core)
            kept -= core
            if not core:  # nothing is valid, whatever changes
                break
        self.add(found)
        self.closed = math.isinf(self.least) or (not found and not deadline.passed)

    def add(self, cores: Sequence[frozenset[int]]) -> None:
        """Take further cores into account."""
        if cores:
            self.sets += cores
            self.changed, weight = hitting(self.sets, self.weights, self.least - self.base)
            self.least, self.closed = self.base + weight, math.isinf(weight)


class HullCores(Cores):
    r"""Cores of a hull, whatever the model says of its points.

    Let :math:`\pi^T \bar x_i \le \pi_0` for all points of the hull, and :math:`\pi^T \hat x > \pi_0` for the factual:
    a point that keeps the features of which :math:`\pi` is not 0 is not in the hull. Each core is made as small as
    possible.

    Parameters
    ----------
    hull
        Of numbers, in norm 1.
    x
        The factual in the hull's columns.
    columns
        The hull's columns of each feature.
    weights, base
        As in ``Cores``.
    """

    def __init__(
        self, hull: Hull, x: np.ndarray, columns: Mapping[int, Sequence[int]], weights: np.ndarray, base: float
    ) -> None:
        super().__init__(columns, weights, base)
        self.hull, self.x, self.columns = hull, x, columns

    def core(self, kept: frozenset[int], deadline: Deadline) -> frozenset[int] | None:
        """Some features, none too many, that the hull does not let stay as they are; None: all of these can."""
        core = self._apart(kept, deadline) if kept else None
        if core is None:
            return None
        for feature in sorted(core, key=lambda f: (self.weights[f], f)):
            smaller = self._apart(core - {feature}, deadline) if feature in core and len(core) > 1 else None
            core = smaller or core
        return core

    def _apart(self, kept: frozenset[int], deadline: Deadline) -> frozenset[int] | None:
        """The features of a half-space, of some, that holds the hull, and not the factual; None: there is none."""
        among = np.zeros(len(self.x), dtype=bool)
        for feature in kept:
            among[list(self.columns[feature])] = True
        cut, beyond = self.hull.separate(self.x, deadline.left, among)
        if cut is None or beyond <= CLEAR:
            return None
        carried = np.abs(cut.normal) > HULL_NORMAL
        return frozenset(feature for feature in kept if carried[list(self.columns[feature])].any())


def hitting(sets: Sequence[frozenset[int]], weights: np.ndarray, least: float = 0.0) -> tuple[frozenset[int], float]:
    """The lightest features of which each set has one, and their weight; infinite where some set has none of finite.

    ``least``: a lower bound on that weight.
    """
    member = np.zeros((len(sets), len(weights)), dtype=bool)
    for k, one in enumerate(sets):
        member[k, list(one)] = True
    member = np.unique(member, axis=0)
    member = member[np.argsort(member.sum(axis=1), kind="stable")]
    taken, weight = lightest(member, np.asarray(weights, dtype=float), least)
    return frozenset(np.flatnonzero(taken).tolist()), float(weight)
