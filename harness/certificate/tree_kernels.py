"""The compiled branch and bound of ``trees``: boxes of cells, nearest first, cut along the leaves of one tree."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from harness.core.compiling import njit
from harness.solvers.heap import pop, push

FOUND, NONE, TIED, FULL, MORE = 0, 1, 2, 3, 4
WRONG, EQUAL, LOST = -1, -2, -3  # instead of a tree to branch on: invalid; only the model can tell; valid or too far
FIRST = 1024


class Boxes(NamedTuple):
    """The open boxes: B places for them, D features."""

    low: np.ndarray  # (B, D) int32, the first cell of each feature
    high: np.ndarray  # (B, D) int32, the last one
    key: np.ndarray  # (B,), the distance
    branch: np.ndarray  # (B,) int32, the tree to branch on, or ``WRONG`` or ``EQUAL``
    order: np.ndarray  # (B,) int32, a heap of boxes by their distance
    counts: np.ndarray  # (3,) int64, boxes made; of them in the order; the one taken out last


class Cells(NamedTuple):
    """The cells of all features; distances are 0 where the point is not beyond the number, squared if Euclidean."""

    start: np.ndarray  # (D,) int64, each feature's first one
    down: np.ndarray  # (cells,), the distance to the last number of each from above
    up: np.ndarray  # (cells,), to its first one from below


class Leaves(NamedTuple):
    """The leaves of the trees, each a box of cells with some sides."""

    starts: np.ndarray  # (trees + 1,) int64, each tree's first leaf
    parts: np.ndarray  # (leaves + 1,) int64, each leaf's first side
    side: np.ndarray  # (sides,) int32, the feature
    first: np.ndarray  # (sides,) int32, its first cell
    last: np.ndarray  # (sides,) int32, its last cell
    values: np.ndarray  # (leaves, forms)


class Limits(NamedTuple):
    """When a box counts."""

    base: np.ndarray  # (forms,), is added to the leaves' values; a point is valid where one of the sums is positive
    tiny: float  # sums this near to 0 are for the model itself to judge
    euclidean: bool
    most: float  # distance beyond which nothing counts; squared where ``euclidean``


class Heap:
    """Open boxes of cells, the nearest first, as growing arrays.

    Parameters
    ----------
    tops
        The number of each feature's last cell, shape (features,).
    """

    def __init__(self, tops: np.ndarray) -> None:
        low, high = np.zeros((2, FIRST, len(tops)), np.int32)
        high[0] = tops
        branch, order = np.zeros((2, FIRST), np.int32)
        self.boxes = Boxes(low, high, np.zeros(FIRST), branch, order, np.array([1, 0, -1]))

    @property
    def size(self) -> int:
        """Boxes that there is room for."""
        return len(self.boxes.key)

    @property
    def taken(self) -> tuple[np.ndarray, np.ndarray]:
        """The first and last cells of the box taken out last."""
        last = self.boxes.counts[2]
        return self.boxes.low[last], self.boxes.high[last]

    def grow(self) -> None:
        """Twice the room."""
        *parts, counts = self.boxes
        self.boxes = Boxes._make([*(np.concatenate([part, np.zeros_like(part)]) for part in parts), counts])


@njit(cache=True)
def _judge(low, high, gaps, sums, cells, leaves, limits):
    """The distance of a box, and the tree to branch on: ``WRONG``, ``EQUAL`` or ``LOST``.

    What is invalid, or equal, within ``most`` is so where the box is nearest: that is enough. ``gaps``, shape (D,), and
    ``sums``, (4, forms), are overwritten.
    """
    start, down, up = cells.start, cells.down, cells.up
    starts, parts, side, values = leaves.starts, leaves.parts, leaves.side, leaves.values
    cell_low, cell_high = leaves.first, leaves.last
    base, tiny, euclidean, most = limits.base, limits.tiny, limits.euclidean, limits.most
    distance = 0.0
    for d in range(len(low)):
        gap = max(down[start[d] + high[d]], up[start[d] + low[d]])
        gaps[d] = gap
        if euclidean:
            distance += gap * gap
        elif gap > distance:
            distance = gap
    if distance > most:
        return distance, LOST
    widest, tree = -1.0, -1
    least, greatest, bottom, top = sums[0], sums[1], sums[2], sums[3]
    least[:], greatest[:] = base, base
    for k in range(len(starts) - 1):
        reached = 0
        bottom[:], top[:] = np.inf, -np.inf
        for leaf in range(starts[k], starts[k + 1]):
            within, inside = distance, True
            for p in range(parts[leaf], parts[leaf + 1]):
                d = side[p]
                first, last = max(low[d], cell_low[p]), min(high[d], cell_high[p])
                if first > last:
                    inside = False
                    break
                gap = max(down[start[d] + last], up[start[d] + first])
                if euclidean:
                    within += gap * gap - gaps[d] * gaps[d]
                elif gap > within:
                    within = gap
            if inside and within <= most:
                reached += 1
                for c in range(len(base)):
                    bottom[c], top[c] = min(bottom[c], values[leaf, c]), max(top[c], values[leaf, c])
        if reached == 0:  # rounding of the Euclidean sums: nothing of the box is near enough
            return distance, LOST
        for c in range(len(base)):
            least[c] += bottom[c]
            greatest[c] += top[c]
            if reached > 1 and top[c] - bottom[c] > widest:
                widest, tree = top[c] - bottom[c], k
    wrong = True
    for c in range(len(base)):
        if least[c] > tiny:
            return distance, LOST
        wrong &= greatest[c] < -tiny
    if tree < 0:
        return distance, (WRONG if wrong else EQUAL)
    return distance, (WRONG if wrong else tree)


@njit(cache=True)
def search(boxes, cells, leaves, limits, nodes):
    """Look at up to ``nodes`` boxes. Returns a code and the distance below which everything is proven.

    Takes plain tuples of the records: numba recognises them in half the time.
    """
    boxes, cells, leaves, limits = Boxes(*boxes), Cells(*cells), Leaves(*leaves), Limits(*limits)
    low, high, key, branch, order, count = (
        boxes.low, boxes.high, boxes.key, boxes.branch, boxes.order, boxes.counts
    )  # fmt: skip
    starts, parts, side, most = leaves.starts, leaves.parts, leaves.side, limits.most
    cell_low, cell_high = leaves.first, leaves.last
    features = low.shape[1]
    gaps, sums = np.empty(features), np.empty((4, len(limits.base)))
    child_low, child_high = np.empty(features, np.int32), np.empty(features, np.int32)
    if count[2] < 0:
        count[2] = 0
        key[0], branch[0] = _judge(low[0], high[0], gaps, sums, cells, leaves, limits)
        if branch[0] != LOST:
            count[1] = 1
    widest = 0
    for k in range(len(starts) - 1):
        widest = max(widest, starts[k + 1] - starts[k])
    for _ in range(nodes):
        if count[1] == 0:
            return NONE, most
        if count[0] + widest > len(key):
            return FULL, key[order[0]]
        box, count[1] = pop(order, key, count[1])
        count[2] = box
        if branch[box] == WRONG:
            return FOUND, key[box]
        if branch[box] == EQUAL:
            return TIED, key[box]
        tree = branch[box]
        for leaf in range(starts[tree], starts[tree + 1]):
            inside = True
            for d in range(features):
                child_low[d], child_high[d] = low[box, d], high[box, d]
            for p in range(parts[leaf], parts[leaf + 1]):
                d = side[p]
                child_low[d], child_high[d] = max(child_low[d], cell_low[p]), min(child_high[d], cell_high[p])
                if child_low[d] > child_high[d]:
                    inside = False
                    break
            if not inside:
                continue
            distance, verdict = _judge(child_low, child_high, gaps, sums, cells, leaves, limits)
            if verdict == LOST:
                continue
            new = count[0]
            low[new], high[new] = child_low, child_high
            key[new], branch[new] = distance, verdict
            count[0] += 1
            count[1] = push(order, key, count[1], new)
    return (MORE, key[order[0]]) if count[1] else (NONE, most)
