"""The second stage: among covers by so many points, one in which factuals change the fewest features in total."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from harness.core.method import Deadline
from harness.core.tolerances import COLUMN_WEIGHT, WHOLE_BOUND
from harness.solvers.cover import Cover, assign
from methods.column_generation import kernels
from methods.column_generation.change_kernels import best_points, cheapest
from methods.column_generation.group import Group
from methods.column_generation.records import Aim, Worth

# Nodes, of linear models; of others, whose nodes take longer, fewer: see ``_Search.nodes``.
FEW = 2_000  # of the search for the cheapest point of a group; and for one anchor of the pricing, at first
MANY = 500_000  # of the search for the cheapest point, where the bound on its change matters
CALL = 100_000  # of one call of the pricing, between looks at the clock
MORE = 8  # factor on the nodes of the pricing where they did not suffice
ROOM = 20_000  # points that a listing may find
POOL = 5_000  # columns of the first master, and of an integer program over listed groups
SHARE = 0.5  # of the time, for what follows the pricing


@dataclass(frozen=True)
class Column:
    """A point, as level codes, the profiles that it serves, increasing, and the features that their factuals change.

    ``bound`` is a proven one on the change of these profiles by any point, or the change itself where
    no bound is asked for.
    """

    point: np.ndarray
    members: np.ndarray
    change: int
    bound: float


@dataclass(frozen=True)
class Least:
    """Points that serve every profile once, and a proven bound on the total change of at most ``most`` of them."""

    columns: list[Column]
    bound: int
    most: int

    @property
    def change(self) -> int:
        """Over all factuals, the features in which each differs from its point."""
        return sum(column.change for column in self.columns)


def least_change(group: Group, groups: list[np.ndarray], deadline: Deadline) -> Least:
    """A cover by at most as many points as these groups, of the least total change that is found by the deadline.

    The master chooses among points with the profiles that each serves, at the cost of what they change; the pricing is
    exact. Where rounding up the relaxation does not settle it, all points that a better cover may hold are listed.
    """
    return _Search(group, groups, deadline).run()


def warm(group: Group) -> None:
    """Compile the kernels, by a group of any size."""
    search = _Search(group, [], Deadline.after(0.0))
    search._cheapest(np.array([0]))
    search._searched(search.people, Aim(math.inf, False, 1, 1), Deadline.after(math.inf))


class _Searched(NamedTuple):
    """Points, the profiles that each serves, its profit; and whether nothing of the profit asked for was left out."""

    points: list[np.ndarray]
    groups: list[np.ndarray]
    profits: list[float]
    complete: bool


class _Search:
    def __init__(self, group: Group, groups: list[np.ndarray], deadline: Deadline) -> None:
        self.group, self.deadline = group, deadline
        self.people = np.array([len(ids) for ids in group.members], dtype=float)
        self.alone = group.fewest_changes(deadline)
        model = group.coded.model
        slow = {kernels.LINEAR: 1, kernels.NETWORK: 4 + model.first.size // 50_000}
        self.slow = slow.get(model.kind, 4 + len(model.values) // 100)
        self.bound = float(self.people @ self.alone)
        self.groups, self.most = groups, len(groups)
        self.best: list[Column] = []
        self.known: dict[bytes, Column | None] = {}  # the cheapest of groups, by their profiles
        self.unclear = False  # whether for a group it stayed open if it has a point

    @property
    def change(self) -> int:
        return sum(column.change for column in self.best)

    @property
    def settled(self) -> bool:
        return self.change <= math.ceil(self.bound - WHOLE_BOUND)

    def nodes(self, count: int) -> int:
        """Nodes that take about as long as so many of a linear model."""
        return max(count // self.slow, 100)

    def start(self) -> None:
        """Points for the groups given, whose profiles may overlap: each then goes to the nearest."""
        columns = [column for members in self.groups for column in self._columns_of(members)]
        self.most = len(columns)
        self._take([column.point for column in columns], [column.members for column in columns])

    def run(self) -> Least:
        self.start()
        if not self.settled and not self.deadline.passed:
            self._price()
        if not self.settled and not self.deadline.passed:
            self._enumerate()
        columns = sorted(self.best, key=lambda column: int(column.members[0]))
        return Least(columns, min(math.ceil(self.bound - WHOLE_BOUND), self.change), self.most)

    def _column(self, point: np.ndarray, members: np.ndarray) -> Column:
        differing = (self.group.codes[members] != point).sum(axis=1)
        change = int(self.people[members] @ differing)
        return Column(point, members, change, change)

    def _cheapest(self, members: np.ndarray, limit: int = FEW) -> Column | None:
        """The point for these profiles of the least change, or of little where that takes long; None without one."""
        key = members.tobytes()
        before = self.known.get(key)
        if key not in self.known or (before is not None and limit > FEW and before.bound < before.change):
            group, differing = self.group, self.group.changed(members)
            spare = group.most - int(differing.sum())
            self.known[key] = None
            if spare >= 0 and not (differing & ~group.movable).any():
                model, within = tuple(group.coded.model), tuple(group.room(members, spare))
                point, cost, bound = cheapest(
                    model, within, group.codes[members], self.people[members], self.nodes(limit)
                )
                if math.isfinite(cost):
                    self.known[key] = Column(point, members, round(cost), bound)
                elif math.isfinite(bound):
                    self.unclear = True
        return self.known[key]

    def _better(self, column: Column) -> Column:
        """A column, or the cheapest that is found for its profiles."""
        other = self._cheapest(column.members)
        return column if other is None or other.change >= column.change else other

    def _columns_of(self, members: np.ndarray) -> list[Column]:
        """The cheapest that is found, for profiles that are known to share a point; each alone where it is not met."""
        if (column := self._cheapest(members)) is not None:
            return [column]
        if (point := self.group.point(members, self.deadline)) is not None:
            return [self._column(point, members)]
        return [column for place in members for column in self._columns_of(np.array([place]))]

    def _descend(self) -> None:
        """Local search: a profile moves to another group where that costs less in total."""
        again = True
        while again:
            again = False
            for place in range(self.group.size):
                if self.deadline.passed:
                    return
                again |= self._moved(place)

    def _moved(self, place: int) -> bool:
        here = next(k for k, column in enumerate(self.best) if place in column.members)
        own = self.best[here]
        rest = own.members[own.members != place]
        without = self._cheapest(rest) if len(rest) else None
        if len(rest) and without is None:
            return False
        saved = own.change - (0 if without is None else without.change)
        for k, column in enumerate(self.best):
            if k == here or saved <= 0:
                continue
            wider = self._cheapest(np.sort(np.append(column.members, place)))
            if wider is not None and wider.change - column.change < saved:
                self.best[k] = wider
                self.best[here : here + 1] = [] if without is None else [without]
                return True
        return False

    def _price(self) -> None:
        """Column generation: the relaxation and its bound, then covers by the points met."""
        n = self.group.size
        columns = [*self.best, *(column for place in range(n) for column in self._columns_of(np.array([place])))]
        columns += [column for column in self.known.values() if column is not None][:POOL]
        met = {(column.members.tobytes(), column.change) for column in columns}
        cover = Cover(n, self.most)
        cover.add([column.members for column in columns], [column.change for column in columns])
        end = Deadline(self.deadline.at - SHARE * self.deadline.left)
        converged, limit = None, self.nodes(FEW)
        while not self.settled and not end.passed and (relaxed := cover.relax(end.left)) is not None:
            price, rent, left = relaxed[1][:n], float(relaxed[1][n]), end.left
            found = self._searched(price, Aim(rent + COLUMN_WEIGHT, False, ROOM, limit), end)
            if found.complete:  # the Lagrangian bound
                profit = max([rent + COLUMN_WEIGHT, *found.profits])
                self.bound = max(self.bound, float(price.sum()) - self.most * profit)
            new = []
            for point, members in zip(found.points, found.groups, strict=True):
                column = self._column(point, members)
                if (key := (members.tobytes(), column.change)) not in met:
                    met.add(key)
                    new.append(column)
            if not new and found.complete:
                converged = price, rent
                break
            if not new:
                limit *= MORE
                if MORE * (left - end.left) > end.left:
                    break
            cover.add([column.members for column in new], [column.change for column in new])
            columns += new
        if not self.settled:
            self._cover(columns)
        if not self.settled and converged is not None:
            self._complete(*converged)

    def _enumerate(self) -> None:
        """Where groups are few, all of them: the cheapest cover by those that the duals do not exclude."""
        columns, open_ = list[Column](), [np.array([place]) for place in range(self.group.size)]
        while open_:
            if self.deadline.passed or self.unclear or len(columns) + len(open_) > ROOM:
                return
            if (column := self._cheapest(open_.pop())) is not None:
                columns.append(column)
                open_ += self._wider(column.members)
        if self.unclear:
            return
        cover = Cover(self.group.size, self.most)
        cover.add([column.members for column in columns], [column.bound for column in columns])
        if (relaxed := cover.relax(self.deadline.left)) is None:
            return
        price, rent = relaxed[1][:-1], float(relaxed[1][-1])
        least = float(price.sum()) - self.most * rent
        reduced = np.array([column.bound + rent - price[column.members].sum() for column in columns])
        least += self.most * min(float(reduced.min()), 0.0)  # the duals are exact within a tolerance
        self.bound = max(self.bound, least)
        if self.settled:
            return
        order = np.argsort(reduced, kind="stable")
        kept = order[reduced[order] <= self.change - 1 - least + WHOLE_BOUND]
        # A cover with a column that is left out costs at least what that adds to the relaxation.
        beyond = least + reduced[kept[POOL]] if len(kept) > POOL else float(self.change)
        close = [
            columns[place] if self.deadline.passed else self._cheapest(columns[place].members, MANY)
            for place in kept[:POOL]
        ]
        bound = self._cover([column for column in (*self.best, *close) if column is not None])
        self.bound = max(self.bound, min(bound, beyond, float(self.change)))

    def _wider(self, members: np.ndarray) -> list[np.ndarray]:
        """The profiles with one later one, whose differences alone are not too many."""
        group, codes = self.group, self.group.codes
        later = np.arange(members[-1] + 1, group.size)
        differing = (codes[later] != codes[members[0]]) | group.changed(members)
        fits = (differing.sum(axis=1) <= group.most) & ~(differing & ~group.movable).any(axis=1)
        return [np.append(members, place) for place in later[fits]]

    def _searched(self, price: np.ndarray, aim: Aim, deadline: Deadline) -> _Searched:
        """``best_points`` of all anchors, those whose price exceeds their own change most first."""
        order = np.argsort(-(price - self.people * self.alone), kind="stable")
        model, profiles = tuple(self.group.coded.model), tuple(self.group.profiles)
        worth, step = tuple(Worth(price, self.people, self.alone)), max(self.nodes(CALL) // aim.limit, 1)
        points, groups, profits = list[np.ndarray](), list[np.ndarray](), list[float]()
        complete = True
        for first in range(0, len(order), step):
            if deadline.passed or len(points) >= aim.room:
                complete = False
                break
            rest = tuple(aim._replace(room=aim.room - len(points)))
            found = best_points(model, profiles, worth, rest, order, first, min(first + step, len(order)))
            points += list(found[0])
            groups += [np.flatnonzero(serves) for serves in found[1]]
            profits += found[2].tolist()
            complete &= found[3]
        return _Searched(points, groups, profits, complete)

    def _cover(self, columns: list[Column]) -> float:
        """The cheapest cover by these columns, and what local search makes of it; returns the bound on such covers."""
        members, costs = [column.members for column in columns], [column.bound for column in columns]
        solution = Cover.solve(self.group.size, members, self.deadline.left, self.most, costs)
        if solution.x is not None:
            chosen = [columns[place] for place in np.flatnonzero(solution.x > 0.5)]
            if sum(column.change for column in chosen) < self.change:
                self._take([column.point for column in chosen], [column.members for column in chosen])
        return solution.limit(self.change, 1.0)

    def _take(self, points: list[np.ndarray], groups: list[np.ndarray]) -> None:
        """A better cover: each profile goes to the nearest of the points that serve it."""
        distance = np.full((len(points), self.group.size), np.inf)
        for place, (point, members) in enumerate(zip(points, groups, strict=True)):
            distance[place, members] = (self.group.codes[members] != point).sum(axis=1)
        nearest = distance.argmin(axis=0)
        self.best = [
            self._better(self._column(point, np.flatnonzero(nearest == place)))
            for place, point in enumerate(points)
            if (nearest == place).any()
        ]
        self._descend()

    def _complete(self, price: np.ndarray, rent: float) -> None:
        """List the points that a better cover may hold, by the duals of the relaxation, and choose among them."""
        n, before = self.group.size, float(self.change)
        gap = before - 1 - (float(price.sum()) - self.most * (rent + COLUMN_WEIGHT))
        found = self._searched(price, Aim(rent - gap - WHOLE_BOUND, True, ROOM, self.nodes(CALL)), self.deadline)
        if not found.complete:
            return
        if not found.groups or len(np.unique(np.concatenate(found.groups))) < n:
            self.bound = before
            return
        places = [
            (members, self.people[members] * (self.group.codes[members] != point).sum(axis=1))
            for point, members in zip(found.points, found.groups, strict=True)
        ]
        solution = assign(n, places, self.deadline.left, self.most, before - 1)
        if solution.x is not None:
            chosen = np.flatnonzero(solution.x[: len(places)] > 0.5).tolist()
            self._take([found.points[place] for place in chosen], [found.groups[place] for place in chosen])
        # before itself where none is better
        self.bound = max(self.bound, min(solution.limit(self.change, 1.0), before))
