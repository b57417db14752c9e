"""Splits by category as splits by threshold: a tree that sends sets of codes left becomes one that compares numbers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from harness.core.errors import UnsupportedError

MOST = 20_000  # nodes of one tree


@dataclass(frozen=True)
class CategorySplit:
    """A split of an input that holds codes of categories.

    Parameters
    ----------
    known
        The codes seen in training, increasing.
    left
        Whether each of them goes left, bool, same shape.
    others_left
        Whether all other numbers do.
    """

    known: np.ndarray
    left: np.ndarray
    others_left: bool

    def runs(self) -> list[tuple[float, bool]]:
        """The last number of each run of numbers that go to one side, in order, and whether that is the left one.

        Between whole codes that follow each other there is no other code, so that gap is given to either.

        >>> CategorySplit(np.array([0.0, 1.0, 2.0]), np.array([True, True, False]), False).runs()
        [(-5e-324, False), (1.0, True), (inf, False)]
        """
        found: list[tuple[float, bool]] = []
        before = -math.inf
        for code, left in zip(self.known.tolist(), self.left.tolist(), strict=True):
            if not (code == before + 1.0 and code.is_integer()):
                found.append((float(np.nextafter(code, -math.inf)), self.others_left))
            found.append((code, left))
            before = code
        found.append((math.inf, self.others_left))
        return [
            run for run, after in zip(found, [*found[1:], None], strict=True) if after is None or run[1] != after[1]
        ]

    def met(self, above: float, most: float) -> list[tuple[float, float, bool]]:
        """The runs of the numbers in (above, most], cut to them: above what, at most what, whether left."""
        runs = self.runs()
        starts = [-math.inf, *(last for last, _ in runs)]
        return [
            (max(first, above), min(last, most), left)
            for first, (last, left) in zip(starts, runs, strict=False)
            if first < most and last > above
        ]


def by_threshold(
    left: np.ndarray,
    right: np.ndarray,
    column: np.ndarray,
    threshold: np.ndarray,
    value: np.ndarray,
    gap_left: np.ndarray,
    splits: Mapping[int, CategorySplit],
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """A tree's arrays (as of ``Tree``), its ``splits`` by node replaced by splits on thresholds.

    What lies below such a split is repeated for each run of codes, less what no code of the run can reach. A missing
    input goes where numbers go that training did not see: through the last run.

    Raises
    ------
    UnsupportedError
        Where that gives more than ``MOST`` nodes.
    """
    nodes: list[tuple[int, int, int, float, float, bool]] = []

    def place(entry: tuple[int, int, int, float, float, bool]) -> int:
        nodes.append(entry)
        if len(nodes) > MOST:
            raise UnsupportedError(
                f"a tree splits on sets of categories that take more than {MOST} thresholds; put a OneHotEncoder "
                f"before it in the pipeline, and set categorical_features=None."
            )
        return len(nodes) - 1

    def grow(node: int, within: dict[int, tuple[float, float]]) -> int:
        """The place of a copied subtree, of whose columns only some numbers (above, at most] reach it."""
        if left[node] < 0:
            return place((-1, -1, 0, 0.0, float(value[node]), False))
        own = int(column[node])
        if node not in splits:
            here = place((-1, -1, own, float(threshold[node]), 0.0, bool(gap_left[node])))
            nodes[here] = (grow(int(left[node]), within), grow(int(right[node]), within), *nodes[here][2:])
            return here
        runs = splits[node].met(*within.get(own, (-math.inf, math.inf)))
        root, parent = -1, -1
        for k, (first, last, side) in enumerate(runs):
            ends = k == len(runs) - 1
            fork = -1 if ends else place((-1, -1, own, last, 0.0, False))
            child = grow(int((left if side else right)[node]), {**within, own: (first, last)})
            if not ends:
                nodes[fork] = (child, -1, *nodes[fork][2:])
            entry = child if ends else fork
            if parent >= 0:
                nodes[parent] = (nodes[parent][0], entry, *nodes[parent][2:])
            root, parent = (entry if root < 0 else root), fork
        return root

    grow(0, {})
    children = np.array([node[:2] for node in nodes], dtype=np.int64)
    columns = np.array([node[2] for node in nodes], dtype=np.int64)
    thresholds, values = np.array([node[3] for node in nodes]), np.array([node[4] for node in nodes])
    gaps = np.array([node[5] for node in nodes])
    return children[:, 0], children[:, 1], columns, thresholds, values[:, None], gaps
