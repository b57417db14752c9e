"""The fewest groups by column generation with a combinatorial pricing that is exact, and an exact completion."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from harness.core.method import Deadline
from harness.core.tolerances import COLUMN_WEIGHT, WHOLE_BOUND
from harness.solvers.cover import Cover
from harness.solvers.cover_tree import cover_within
from methods.column_generation import kernels
from methods.column_generation.group import Group, places, words
from methods.column_generation.records import Incidence

ROOM = 400_000  # columns that a listing may find
LIMIT = 100_000  # nodes of one call of a search that is to be compiled
START = 0.5  # of the time that the first groups may take
SWAPS = 50_000  # of one local search
SHARES = (0.3, 1.0)  # of the gap: greatest reduced costs of listed columns, one listing after the other


@dataclass
class Found:
    """Groups that cover all profiles, and a proven bound on their number.

    Parameters
    ----------
    groups
        Profiles of each group, increasing.
    bound
        Proven lower bound on the number of groups.
    trace
        Steps of the search, as rows of plain values.
    """

    groups: list[np.ndarray]
    bound: int
    trace: list[dict[str, Any]] = field(default_factory=list)


def solve(group: Group, seed: int, deadline: Deadline) -> Found:
    """The fewest groups that cover all profiles, each of which can be covered."""
    return _Search(group, seed, deadline).run()


def warm(group: Group) -> None:
    """Compile the kernels, by a group of any size."""
    search = _Search(group, 0, Deadline.after(0.0))
    singles = np.array([words(np.arange(group.size) == place) for place in range(group.size)])
    group.extended(singles, np.arange(group.size))
    group.search(np.ones(group.size), 0, 0.0, True, ROOM, LIMIT)
    group.coverable()
    points, _ = group.listed(1, 1, LIMIT)
    group.coded.scores(np.concatenate([points, group.codes]))
    search.best = [np.array([place]) for place in range(group.size)]
    search._improve([*search.best, np.arange(group.size)], 1)


class _Search:
    def __init__(self, group: Group, seed: int, deadline: Deadline) -> None:
        self.group, self.deadline, self.seed = group, deadline, seed
        self.cover = Cover(group.size)
        self.known: set[bytes] = set()
        self.bound = 0.0
        self.best: list[np.ndarray] = []
        self.trace: list[dict[str, Any]] = []

    @property
    def least(self) -> int:
        return max(math.ceil(self.bound - WHOLE_BOUND), 1)

    def run(self) -> Found:
        self._start()
        relaxed = not self.deadline.passed and self._price()
        if len(self.best) > self.least:
            self._improve(self.cover.columns, SWAPS)
        if relaxed and len(self.best) > self.least:
            self._complete()
        self._note("end")
        return Found(self.best, min(self.least, len(self.best)), self.trace)

    def _note(self, step: str, **values: Any) -> None:
        row = {"step": step, "columns": len(self.cover.columns), "bound": self.bound, "groups": len(self.best)}
        self.trace.append(row | values)

    def _add(self, groups: np.ndarray) -> int:
        new = []
        for bits in groups:
            if (key := bits.tobytes()) not in self.known:
                self.known.add(key)
                new.append(places(bits, self.group.size))
        self.cover.add(new)
        return len(new)

    def _start(self) -> None:
        """A maximal group around each profile, and a greedy cover by them."""
        for column in maximal(self.group, self.deadline):
            self._add(column)
        self.best = greedy(self.group.size, self.cover.columns)
        self._note("start")

    def _price(self) -> bool:
        """Solve the relaxation; returns whether that is done. The bound is valid even where it is not."""
        iterations = 0
        while True:
            relaxed = self.cover.relax(self.deadline.left)
            if relaxed is None:
                return False
            value, weight = relaxed
            weight[weight < WHOLE_BOUND * COLUMN_WEIGHT] = 0.0
            iterations += 1
            groups, heaviest, complete = self.group.searched(weight, 1.0 + COLUMN_WEIGHT, False, ROOM, self.deadline)
            heaviest = max(heaviest, 1.0 + COLUMN_WEIGHT)
            order = np.argsort(-weight, kind="stable")
            found = self._add(self.group.extended(np.array(groups), order, self.deadline)) if groups else 0
            if complete:
                self.bound = max(self.bound, float(weight.sum()) / heaviest)  # Farley's bound
                if found == 0:
                    self._note("relaxed", iterations=iterations, value=value)
                    self.weight = weight / heaviest  # no column weighs more than 1
                    return True
            if self.deadline.passed or not complete:
                return False

    def _improve(self, columns: list[np.ndarray], rounds: int) -> None:
        """Local search for a smaller cover by these columns."""
        n = self.group.size
        chosen = np.zeros(len(columns), dtype=bool)
        index = {column.tobytes(): place for place, column in enumerate(columns)}
        start = [index[column.tobytes()] for column in self.best if column.tobytes() in index]
        if len(start) < len(self.best):
            cover = greedy(n, columns)
            start = [index[column.tobytes()] for column in cover]
        chosen[start] = True
        rows = np.concatenate(columns)
        starts = np.concatenate([[0], np.cumsum([len(column) for column in columns])])
        owners = np.repeat(np.arange(len(columns)), np.diff(starts))
        by_row = np.argsort(rows, kind="stable")
        row_starts = np.searchsorted(rows[by_row], np.arange(n + 1))
        incidence = Incidence(rows, starts, owners[by_row], row_starts)
        better = kernels.improve(tuple(incidence), chosen, rounds, self.seed)
        if better.sum() < len(self.best):
            self.best = [columns[place] for place in np.flatnonzero(better).tolist()]
            self._note("local search")

    def _complete(self) -> None:
        """List the columns that a smaller cover may contain, those of least reduced cost first, and search in them."""
        while len(self.best) > self.least and not self.deadline.passed:
            before = len(self.best)
            gap = before - 1 - float(self.weight.sum())
            for share in SHARES:
                columns = self._listed(1.0 - share * gap - WHOLE_BOUND)
                if columns is None:
                    return
                self._note("listed", listed=len(columns))
                self._improve(columns, SWAPS)
                if len(self.best) < before:
                    break
                if share == SHARES[-1] and not self._settle(columns):
                    return

    def _settle(self, columns: list[np.ndarray]) -> bool:
        """Find a smaller cover among all columns that one may have, or that there is none; whether there was time."""
        before = len(self.best)
        smaller, proven = cover_within(self.group.size, columns, before - 1, self.deadline)
        self._note("tree", listed=len(columns))
        if smaller is not None:
            self.best = [columns[place] for place in smaller.tolist()]
        elif proven:
            self.bound = float(before)
        return proven

    def _listed(self, least: float) -> list[np.ndarray] | None:
        """All maximal groups of at least a weight, by the duals of the relaxation; None where there are too many."""
        groups, _, complete = self.group.searched(self.weight, least, True, ROOM, self.deadline)
        return [places(bits, self.group.size) for bits in groups] if complete else None


def maximal(group: Group, deadline: Deadline) -> list[np.ndarray]:
    """A maximal group around each profile, as bits, the nearest joining first; it alone where time has run out."""
    found, end = [], deadline.sooner(START)
    for place in range(group.size):
        bits = words(np.arange(group.size) == place)[None]
        distance = (group.codes != group.codes[place]).sum(axis=1)
        found.append(group.extended(bits, np.argsort(distance, kind="stable"), end))
    return found


def greedy(rows: int, columns: Sequence[np.ndarray]) -> list[np.ndarray]:
    """A cover by the columns, each time the one with most rows that are not covered yet."""
    left = np.ones(rows, dtype=bool)
    cover = []
    while left.any():
        best = max(columns, key=lambda column: int(left[column].sum()))
        left[best] = False
        cover.append(best)
    return cover
