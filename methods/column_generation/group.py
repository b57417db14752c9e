"""A group of instances in level codes: which of them can share a counterfactual, and where it lies."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pandas as pd

from harness.core.inputs import Input
from harness.core.method import Deadline
from harness.core.problem import Problem
from harness.core.space import Actionability, Space
from methods.column_generation import kernels
from methods.column_generation.estimator import CodedModel, codes_of
from methods.column_generation.records import Listing, Profiles, Room

NODES = 200_000  # of the search for one point, which is undecided after so many
FIRST, MORE = 1_000, 8  # nodes that it is given whatever the clock says, and the factor on them while there is time


@dataclass(frozen=True)
class Group:
    """Distinct profiles of a group of factuals.

    Parameters
    ----------
    space, inputs
        Features, and the classifier's inputs made of them.
    coded
        The classifier.
    codes
        Level codes of each profile, int64, shape (n, features).
    reach
        Bit mask of codes that each feature of each profile may change to, its own included, uint64, same shape.
    movable
        Features that may change at all, bool.
    most
        T, the most features that the members of a group may change together.
    members
        Ids of the factuals of each profile.
    """

    space: Space
    inputs: tuple[Input, ...]
    coded: CodedModel
    codes: np.ndarray
    reach: np.ndarray
    movable: np.ndarray
    most: int
    members: tuple[tuple[object, ...], ...]

    @classmethod
    def of(cls, problem: Problem, coded: CodedModel, factuals: pd.DataFrame, most: int) -> Group:
        """Factuals in decoded rows, those with equal values merged; no more than all features can change."""
        most = min(most, len(problem.space.features))  # one more is what a feature counts that may not
        codes = codes_of(problem, factuals)
        distinct, inverse = np.unique(codes, axis=0, return_inverse=True)
        members: list[list[object]] = [[] for _ in distinct]
        for place, profile in enumerate(inverse.ravel()):
            members[profile].append(factuals.index[place])
        reach = np.zeros(distinct.shape, dtype=np.uint64)
        for j, feature in enumerate(problem.space.features):
            masks = [
                sum(1 << feature.categories.index(other) for other in feature.reachable(value))
                for value in feature.categories
            ]
            reach[:, j] = np.array(masks, dtype=np.uint64)[distinct[:, j]]
        movable = np.array([f.actionability is not Actionability.IMMUTABLE for f in problem.space.features])
        return cls(
            problem.space,
            problem.classifier.inputs,
            coded,
            distinct,
            reach,
            movable,
            most,
            tuple(map(tuple, members)),
        )

    def part(self, kept: np.ndarray) -> Group:
        """The group of some profiles, by place."""
        members = tuple(self.members[place] for place in kept)
        return replace(self, codes=self.codes[kept], reach=self.reach[kept], members=members)

    @property
    def size(self) -> int:
        return len(self.codes)

    @cached_property
    def profiles(self) -> Profiles:
        """As the kernels take them."""
        free = bool((self.reach[:, self.movable] == self.reach[:1, self.movable]).all())
        return Profiles(self.codes, self.reach, self.movable, self.most, free)

    def room(self, profiles: np.ndarray, extras: int) -> Room:
        """The points that serve profiles and change at most so many features on which these do not differ."""
        allowed = np.bitwise_and.reduce(self.reach[profiles], axis=0)
        return Room(self.codes[profiles[0]], words(self.changed(profiles)), allowed, self.movable, extras)

    def coverable(self) -> np.ndarray:
        """Per profile 1 where a counterfactual exists, 0 where none does, -1 where the search did not decide."""
        return self.reached()[0]

    def reached(self, deadline: Deadline | None = None) -> tuple[np.ndarray, np.ndarray]:
        """``coverable``, and codes of a counterfactual where it is 1: shapes (n,) and (n, features).

        What the deadline leaves no time for is undecided as well.
        """
        found = [self._settled(np.array([place]), self.most, deadline) for place in range(self.size)]
        return np.array([settled for settled, _ in found]), np.array([point for _, point in found])

    def changed(self, profiles: np.ndarray) -> np.ndarray:
        """Features on which profiles differ, bool."""
        rows = self.codes[profiles]
        return (rows != rows[0]).any(axis=0)

    def point(self, profiles: np.ndarray, effort: int = 1) -> np.ndarray | None:
        """Codes of a counterfactual that these profiles can share, with the fewest further changes; or None.

        Also None where each search for it ended undecided, after ``effort`` times the usual nodes.
        """
        spare = self.most - int(self.changed(profiles).sum())
        for extras in range(spare + 1):
            settled, point = self._attains(profiles, extras, effort)
            if settled == 1:
                return point
        return None

    def may_share(self, profiles: np.ndarray) -> bool:
        """Whether these profiles share a counterfactual, or that was not decided."""
        spare = self.most - int(self.changed(profiles).sum())
        return spare >= 0 and self._attains(profiles, spare)[0] != 0

    def fewest_changes(self, deadline: Deadline) -> np.ndarray:
        """Per profile the fewest features that it changes alone, or fewer where that was not decided, int64."""
        return np.array([self._fewest(place, deadline) for place in range(self.size)], dtype=np.int64)

    def _fewest(self, place: int, deadline: Deadline) -> int:
        for extras in range(self.most):
            if deadline.passed or self._settled(np.array([place]), extras, deadline)[0] != 0:
                return extras
        return self.most

    def _settled(self, profiles: np.ndarray, extras: int, deadline: Deadline | None) -> tuple[int, np.ndarray]:
        """``_attains``, begun anew with more nodes as long as these will end by the deadline."""
        if deadline is None:
            return self._attains(profiles, extras)
        nodes = FIRST
        while True:
            left = deadline.left
            settled, point = self._attains(profiles, extras, nodes=nodes)
            if settled >= 0 or nodes >= NODES or MORE * (left - deadline.left) >= deadline.left:
                return settled, point
            nodes = min(MORE * nodes, NODES)

    def _attains(
        self, profiles: np.ndarray, extras: int, effort: int = 1, nodes: int = NODES
    ) -> tuple[int, np.ndarray]:
        point, room = np.empty(self.codes.shape[1], dtype=np.int64), self.room(profiles, extras)
        return kernels.attains(tuple(self.coded.model), tuple(room), point, effort * nodes), point

    def listed(self, changes: int, room: int, limit: int) -> tuple[np.ndarray, bool]:
        """Codes of at most ``room`` counterfactuals of the first profile with exactly so many changes.

        Also whether the search for them ended within ``limit`` nodes.
        """
        return kernels.listed(tuple(self.coded.model), self.codes[0], self.reach[0], self.movable, changes, room, limit)

    def extended(self, groups: np.ndarray, order: np.ndarray) -> np.ndarray:
        """Groups, as bit sets over profiles, made maximal: profiles join in this order."""
        groups = groups.copy()
        kernels.extend(tuple(self.coded.model), tuple(self.profiles), order, groups, NODES)
        return groups

    def search(
        self, weight: np.ndarray, first: int, least: float, listing: bool, room: int, limit: int, effort: int = 1
    ) -> tuple[np.ndarray, np.ndarray, int]:
        """Groups of at least a weight, as ``kernels.search``; heavy profiles come first.

        ``effort`` multiplies the limits on nodes, of the search and of each of its searches for a point.
        """
        order = np.argsort(-weight, kind="stable")
        aim = Listing(least, listing, room, effort * limit, effort * NODES)
        return kernels.search(tuple(self.coded.model), tuple(self.profiles), weight, order, first, tuple(aim))


def words(mask: np.ndarray) -> np.ndarray:
    """A bool array as 64-bit words, the first entry in the least significant bit."""
    padded = np.zeros(-(-len(mask) // 64) * 64, dtype=bool)
    padded[: len(mask)] = mask
    return np.packbits(padded, bitorder="little").view(np.uint64).copy()


def places(bits: np.ndarray, size: int) -> np.ndarray:
    """The entries of a bit set, increasing."""
    return np.flatnonzero(np.unpackbits(bits.view(np.uint8), bitorder="little", count=size))
