"""A group of instances in level codes: which of them can share a counterfactual, and where it lies."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import TypeVar

import numpy as np
import pandas as pd

from harness.core.inputs import Input
from harness.core.method import Deadline
from harness.core.problem import Problem
from harness.core.space import Actionability, Space
from methods.column_generation import kernels
from methods.column_generation.estimator import CodedModel, codes_of
from methods.column_generation.records import Listing, Profiles, Room

NODES = 200_000  # of the search for one point, or for those that join a group, which is undecided after so many
FIRST, MORE = 1_000, 8  # nodes that it is given whatever the clock says, and the factor on them while there is time
FOREVER = Deadline(math.inf)

Found = TypeVar("Found")


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
    points
        Codes of counterfactuals that were met, by the profiles that share them (increasing, as bytes): to find one
        again may take as long as the search did.
    """

    space: Space
    inputs: tuple[Input, ...]
    coded: CodedModel
    codes: np.ndarray
    reach: np.ndarray
    movable: np.ndarray
    most: int
    members: tuple[tuple[object, ...], ...]
    points: dict[bytes, np.ndarray] = field(default_factory=dict)

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
        met = ((place, self.points.get(np.array([before]).tobytes())) for place, before in enumerate(kept))
        points = {np.array([place]).tobytes(): point for place, point in met if point is not None}
        return replace(self, codes=self.codes[kept], reach=self.reach[kept], members=members, points=points)

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

    def reached(self, deadline: Deadline = FOREVER) -> tuple[np.ndarray, np.ndarray]:
        """``coverable``, and codes of a counterfactual where it is 1: shapes (n,) and (n, features).

        What the deadline leaves no time for is undecided as well.
        """
        found = [self._settled(np.array([place]), self.most, deadline) for place in range(self.size)]
        self.points.update((np.array([i]).tobytes(), point) for i, (yes, point) in enumerate(found) if yes == 1)
        return np.array([settled for settled, _ in found]), np.array([point for _, point in found])

    def changed(self, profiles: np.ndarray) -> np.ndarray:
        """Features on which profiles differ, bool."""
        rows = self.codes[profiles]
        return (rows != rows[0]).any(axis=0)

    def point(self, profiles: np.ndarray, deadline: Deadline = FOREVER) -> np.ndarray | None:
        """Codes of a counterfactual that these profiles can share, with the fewest further changes; or None.

        One that was met before where each search for another ended undecided, or there is no time for one.
        """
        spare, met = self.most - int(self.changed(profiles).sum()), self.points.get(profiles.tobytes())
        for extras in range(spare + 1):
            if deadline.passed and (extras < spare or met is not None):
                continue  # of those not met, one look where there are the most points
            settled, point = self._settled(profiles, extras, deadline)
            if settled == 1:
                return point
        return met

    def may_share(self, profiles: np.ndarray, deadline: Deadline = FOREVER) -> bool:
        """Whether these profiles share a counterfactual, or that was not decided."""
        spare = self.most - int(self.changed(profiles).sum())
        return spare >= 0 and self._settled(profiles, spare, deadline)[0] != 0

    def fewest_changes(self, deadline: Deadline) -> np.ndarray:
        """Per profile the fewest features that it changes alone, or fewer where that was not decided, int64."""
        return np.array([self._fewest(place, deadline) for place in range(self.size)], dtype=np.int64)

    def _fewest(self, place: int, deadline: Deadline) -> int:
        for extras in range(self.most):
            if deadline.passed or self._settled(np.array([place]), extras, deadline)[0] != 0:
                return extras
        return self.most

    def _settled(self, profiles: np.ndarray, extras: int, deadline: Deadline) -> tuple[int, np.ndarray]:
        def attempt(nodes: int) -> tuple[tuple[int, np.ndarray], bool]:
            settled, point = self._attains(profiles, extras, nodes)
            return (settled, point), settled >= 0

        return granted(attempt, NODES, deadline)

    def _attains(self, profiles: np.ndarray, extras: int, nodes: int) -> tuple[int, np.ndarray]:
        point, room = np.empty(self.codes.shape[1], dtype=np.int64), self.room(profiles, extras)
        return kernels.attains(tuple(self.coded.model), tuple(room), point, nodes)[0], point

    def listed(self, changes: int, room: int, limit: int, deadline: Deadline = FOREVER) -> tuple[np.ndarray, bool]:
        """Codes of at most ``room`` counterfactuals of the first profile with exactly so many changes.

        Also whether the search for them ended within ``limit`` nodes and the deadline.
        """
        model, own = tuple(self.coded.model), (self.codes[0], self.reach[0], self.movable)

        def attempt(nodes: int) -> tuple[tuple[np.ndarray, bool], bool]:
            points, ended = kernels.listed(model, *own, changes, room, nodes)
            return (points, ended), ended

        return granted(attempt, limit, deadline)

    def extended(self, groups: np.ndarray, order: np.ndarray, deadline: Deadline = FOREVER) -> np.ndarray:
        """Groups, as bit sets over profiles, to which profiles are added in this order: maximal ones where time is.

        Their points are kept in ``points``.
        """
        found = groups.copy()
        for place in range(len(groups)):
            if deadline.passed:
                break
            attempt = partial(self._joined, groups[place : place + 1], order)
            bits, point = granted(attempt, NODES, deadline)
            found[place] = bits
            if point[0] >= 0:
                self.points[places(bits, self.size).tobytes()] = point
        return found

    def _joined(self, group: np.ndarray, order: np.ndarray, nodes: int) -> tuple[tuple[np.ndarray, np.ndarray], bool]:
        wider, point = group.copy(), np.full((1, self.codes.shape[1]), -1)
        ended = kernels.extend(tuple(self.coded.model), tuple(self.profiles), order, wider, point, nodes)
        return (wider[0], point[0]), ended

    def search(
        self, weight: np.ndarray, first: int, least: float, listing: bool, room: int, limit: int
    ) -> tuple[np.ndarray, np.ndarray, int]:
        """Groups of at least a weight, as ``kernels.search``; heavy profiles come first."""
        order = np.argsort(-weight, kind="stable")
        aim = Listing(least, listing, room, limit)
        return kernels.search(tuple(self.coded.model), tuple(self.profiles), weight, order, first, tuple(aim))

    def searched(
        self, weight: np.ndarray, least: float, listing: bool, room: int, deadline: Deadline
    ) -> tuple[list[np.ndarray], float, bool]:
        """``search`` from every anchor: groups as bits, the greatest of their weights, and whether these are all.

        A call has more nodes than the one before as long as these will end by the deadline.
        """
        groups, heaviest, first, nodes = list[np.ndarray](), 0.0, 0, FIRST
        while first < self.size:
            before, began = first, time.monotonic()
            found, weights, first = self.search(weight, first, least, listing, room - len(groups), nodes)
            groups += list(found)
            heaviest = max(heaviest, float(weights.max(initial=0.0)))
            if first < 0 or deadline.passed:  # no room, or no time
                break
            if MORE * (time.monotonic() - began) <= deadline.left:
                nodes *= MORE
            elif first == before:  # one profile alone takes more nodes than there is time for
                break
        return groups, heaviest, first == self.size


def granted(attempt: Callable[[int], tuple[Found, bool]], most: int, deadline: Deadline) -> Found:
    """What a search returns within so many nodes, begun anew with more as long as these will end by the deadline.

    ``attempt`` takes a number of nodes and tells whether the search ended within them.
    """
    nodes = min(FIRST, most)
    while True:
        began = time.monotonic()
        found, ended = attempt(nodes)
        if ended or nodes >= most or MORE * (time.monotonic() - began) >= deadline.left:
            return found
        nodes = min(MORE * nodes, most)


def words(mask: np.ndarray) -> np.ndarray:
    """A bool array as 64-bit words, the first entry in the least significant bit."""
    padded = np.zeros(-(-len(mask) // 64) * 64, dtype=bool)
    padded[: len(mask)] = mask
    return np.packbits(padded, bitorder="little").view(np.uint64).copy()


def places(bits: np.ndarray, size: int) -> np.ndarray:
    """The entries of a bit set, increasing."""
    return np.flatnonzero(np.unpackbits(bits.view(np.uint8), bitorder="little", count=size))
