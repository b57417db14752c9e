"""The points of a hull, and the few of them in the programs of its boxes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from methods.ce_ocl.hull_search import kernels

ROOM = 6000  # points in the working set of one hull, at most
FEW = 60  # points that are all in the working set from the start


@dataclass
class WorkingSet:
    """The points of a hull, columns of arrays; see ``kernels.simplex``. Points enter as programs need them.

    Parameters
    ----------
    points
        All points, shape (columns, points).
    corners
        The least and greatest coordinates of each block of points, shape (2, columns, blocks).
    work, members
        Coordinates and numbers of the points in the set, of which there are ``used``.
    inside
        Whether a point is in the set.
    """

    points: np.ndarray
    corners: np.ndarray
    work: np.ndarray
    members: np.ndarray
    inside: np.ndarray
    used: int = 0

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
        self = cls(
            np.ascontiguousarray(points.T), np.ascontiguousarray(corners), np.zeros((size, room)),
            np.zeros(room, dtype=np.int64), np.zeros(count, dtype=bool),
        )  # fmt: skip
        extreme = {0, *points.argmin(axis=0).tolist(), *points.argmax(axis=0).tolist()}
        for k in range(count) if count <= FEW else sorted(extreme):
            self.add(k)
        return self

    def add(self, k: int) -> None:
        """Take point k into the set, where there is room."""
        if not self.inside[k] and self.used < len(self.members):
            self.work[:, self.used], self.members[self.used], self.inside[k] = self.points[:, k], k, True
            self.used += 1

    def replace_last(self, values: np.ndarray) -> None:
        """Give the points other values of their last column, shape (points,)."""
        starts = np.arange(0, len(values), kernels.BLOCK)
        self.points[-1] = values
        self.corners[:, -1] = np.minimum.reduceat(values, starts), np.maximum.reduceat(values, starts)
        self.work[-1, : self.used] = values[self.members[: self.used]]


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
