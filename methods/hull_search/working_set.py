"""The points of a hull, and the few of them in the programs of its boxes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from methods.hull_search import kernels
from methods.hull_search.records import HullPoints
from methods.milp.hull import Hull, Outside, Shares

ROOM = 6000  # points in the working set of one hull, at most
FEW = 60  # points that are all in the working set from the start
MANY = 400  # points of earlier questions with which a question begins, at most: all are looked at in each pivot


@dataclass
class WorkingSet:
    """The points of a hull, of which ``used`` are in the set. Points enter as programs need them."""

    arrays: HullPoints
    used: int = 0

    @property
    def points(self) -> np.ndarray:
        """All points, shape (columns, points)."""
        return self.arrays.points

    @classmethod
    def of(cls, points: np.ndarray) -> WorkingSet:
        """The working set of points of shape (points, columns), begun with the extreme ones of each column."""
        return cls.ordered(points[near_each_other(points)])

    @classmethod
    def ordered(cls, points: np.ndarray) -> WorkingSet:
        """As ``of``, of points whose order is that of their blocks."""
        count, size = points.shape
        room = min(count, ROOM)
        starts = np.arange(0, count, kernels.BLOCK)
        corners = np.stack([np.minimum.reduceat(points, starts).T, np.maximum.reduceat(points, starts).T])
        arrays = HullPoints(
            np.ascontiguousarray(points.T), np.ascontiguousarray(corners), np.zeros((size, room)),
            np.zeros(room, dtype=np.int64), np.zeros(count, dtype=bool),
        )  # fmt: skip
        self = cls(arrays)
        extreme = {0, *points.argmin(axis=0).tolist(), *points.argmax(axis=0).tolist()}
        for k in range(count) if count <= FEW else sorted(extreme):
            self.add(k)
        return self

    def add(self, k: int) -> None:
        """Take point k into the set, where there is room."""
        points, _, work, members, inside = self.arrays
        if not inside[k] and self.used < len(members):
            work[:, self.used], members[self.used], inside[k] = points[:, k], k, True
            self.used += 1

    def replace_last(self, values: np.ndarray) -> None:
        """Give the points other values of their last column, shape (points,)."""
        starts = np.arange(0, len(values), kernels.BLOCK)
        points, corners, work, members, _ = self.arrays
        points[-1] = values
        corners[:, -1] = np.minimum.reduceat(values, starts), np.maximum.reduceat(values, starts)
        work[-1, : self.used] = values[members[: self.used]]


class WorkingSets:
    """The working sets of hulls that come again, each kept with the hull that it is found by."""

    def __init__(self) -> None:
        self._kept: dict[int, tuple[Hull, WorkingSet]] = {}

    def of(self, piece: Shares | Outside) -> WorkingSet:
        """The points of a piece."""
        if isinstance(piece, Shares):
            return WorkingSet.of(piece.points)
        key = id(piece.hull)
        if key not in self._kept:
            self._kept[key] = piece.hull, WorkingSet.of(piece.hull.points)
        elif self._kept[key][1].used > MANY:
            self._kept[key] = piece.hull, WorkingSet.ordered(self._kept[key][1].points.T)
        return self._kept[key][1]


def near_each_other(points: np.ndarray) -> np.ndarray:
    """An order of points in which blocks of ``kernels.BLOCK`` lie close: halves of halves of the widest column."""
    done: list[np.ndarray] = []
    stack = [np.arange(len(points))]
    while stack:
        rows = stack.pop()
        if len(rows) <= kernels.BLOCK:
            done.append(rows)
            continue
        values = points[rows]
        widest = int(np.argmax(np.ptp(values, axis=0)))
        # Cut at a multiple of the block, so that only the last one is not full.
        half = -(-len(rows) // (2 * kernels.BLOCK)) * kernels.BLOCK
        order = np.argpartition(values[:, widest], half - 1)
        stack += [rows[order[half:]], rows[order[:half]]]
    return np.concatenate(done)
