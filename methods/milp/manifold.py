"""The data manifold: convex hulls of the wanted class, exact over all of its points."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from harness.core.space import Kind, Space
from harness.core.tolerances import COORDINATE_TIE
from methods.milp.hull import Bound, Hull, Outside, Piece, Shares

SHARED = 1000  # points up to which a hull is stated by their shares, above by cuts


def whole(hull: Hull, most: float, price: float | None = None) -> Shares | Outside:
    """A hull, enlarged by ``most`` or left at a price, as one piece: by the shares of its points, or by cuts."""
    every = np.arange(hull.points.shape[1])
    if len(hull.points) <= SHARED and hull.norm != 2:
        return Shares(hull.points, every, norm=hull.norm, most=most, price=price)
    return Outside(hull, every, most, price)


class Groups:
    """The points of a manifold by cluster and categories.

    0/1 columns are extreme values: without slack, only points of x's own categories have a share in it, so that each
    group is a hull of its own, over numbers alone.

    Attributes
    ----------
    categorical, numeric
        Features with their places in the space, and their columns or column.
    numbers
        The columns of numbers, shape (numbers,).
    members
        The rows of the points of each group.
    cluster, codes
        The cluster and the categories of each group, shape (groups,) and (groups, categorical).
    low, high
        The least and greatest number, shape (groups, numbers).
    """

    def __init__(self, space: Space, points: np.ndarray, cluster: np.ndarray) -> None:
        self.points = points
        places = [(place, f, c) for place, (f, c) in enumerate(zip(space.features, space.slices, strict=True))]
        self.categorical = [(p, f, c) for p, f, c in places if f.kind in {Kind.CATEGORICAL, Kind.BINARY}]
        self.numeric = [(p, f, c.start) for p, f, c in places if f.kind not in {Kind.CATEGORICAL, Kind.BINARY}]
        self.numbers = np.array([start for _, _, start in self.numeric], dtype=int)
        codes = [
            points[:, c].argmax(axis=1) if f.kind is Kind.CATEGORICAL else np.rint(points[:, c.start])
            for _, f, c in self.categorical
        ]
        keys = np.column_stack([cluster, *codes]).astype(int)
        unique, group = np.unique(keys, axis=0, return_inverse=True)
        order = np.argsort(group, kind="stable")
        starts = np.searchsorted(group[order], np.arange(len(unique)))
        self.members = np.split(order, starts[1:])
        self.cluster, self.codes = unique[:, 0], unique[:, 1:]
        values = points[order][:, self.numbers]
        self.low = np.minimum.reduceat(values, starts, axis=0) if len(self.numbers) else np.zeros((len(unique), 0))
        self.high = np.maximum.reduceat(values, starts, axis=0) if len(self.numbers) else np.zeros((len(unique), 0))

    def within_reach(
        self, space: Space, factual: pd.DataFrame, label: Any = None
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Groups that actionability and bounds of a space leave, how far each feature has to move, and which have to.

        Of shapes (left,), (left, features) and (left, features); of one cluster where there is a ``label``.
        """
        low, high = space.reach(factual)
        origin = space.encode(factual)[0]
        kept = np.ones(len(self.codes), dtype=bool) if label is None else self.cluster == label
        gaps = np.zeros((len(self.codes), len(space.names)))
        for column, (place, feature, columns) in enumerate(self.categorical):
            codes = self.codes[:, column]
            if feature.kind is Kind.CATEGORICAL:
                kept &= high[columns][codes] > 0.5
                gaps[:, place] = codes != origin[columns].argmax()
            else:
                kept &= (codes >= low[columns.start] - COORDINATE_TIE) & (codes <= high[columns.start] + COORDINATE_TIE)
                gaps[:, place] = codes != origin[columns.start]
        for column, (place, _, start) in enumerate(self.numeric):
            least, most = self.low[:, column], self.high[:, column]
            stays = (least <= origin[start] + COORDINATE_TIE) & (most >= origin[start] - COORDINATE_TIE)
            kept &= stays | ((least <= high[start] + COORDINATE_TIE) & (most >= low[start] - COORDINATE_TIE))
            gaps[:, place] = np.maximum(np.maximum(least - origin[start], origin[start] - most), 0.0)
        rows = np.flatnonzero(kept)
        return rows, gaps[rows], gaps[rows] > COORDINATE_TIE

    def faces(
        self, space: Space, factual: pd.DataFrame, group: int
    ) -> tuple[np.ndarray, list[int | tuple[float, float] | None]] | None:
        """The numbers of a group's points on the faces that the reach leaves, and the box around them.

        Shape (points, numbers); the box is a category's code or a number's ends by feature. None where a single point
        is left, which is a known row.
        """
        low, high = (ends[self.numbers] for ends in space.reach(factual))
        origin = space.encode(factual)[0][self.numbers]
        low, high = np.minimum(low, origin), np.maximum(high, origin)
        values = self.points[self.members[group]][:, self.numbers]
        while len(values):
            floor, top = values.min(axis=0), values.max(axis=0)
            on_floor = (high <= floor + COORDINATE_TIE) & (floor < top)
            on_top = (low >= top - COORDINATE_TIE) & (floor < top)
            if not (on_floor.any() or on_top.any()):
                break
            keep = (values[:, on_floor] <= floor[on_floor] + COORDINATE_TIE).all(axis=1)
            keep &= (values[:, on_top] >= top[on_top] - COORDINATE_TIE).all(axis=1)
            values = values[keep]
        if len(values) <= 1:
            return None
        box: list[int | tuple[float, float] | None] = [None] * len(space.names)
        for column, (place, _, _) in enumerate(self.categorical):
            box[place] = int(self.codes[group, column])
        for column, (place, _, _) in enumerate(self.numeric):
            box[place] = (float(floor[column]), float(top[column]))
        return values, box


class Manifold:
    """The hulls of a problem: of all points, or of those of each cluster.

    Parameters
    ----------
    points
        Distinct points in scaled columns.
    cluster
        The cluster of each point.
    norm
        Of distances from a hull: 1, 2 or inf.
    most
        Distance up to which points outside a hull are accepted.
    price
        Instead of a bound, what a unit of distance costs.
    entry
        What lying outside costs besides.
    """

    def __init__(
        self,
        space: Space,
        points: np.ndarray,
        cluster: np.ndarray,
        norm: float,
        most: float,
        price: float | None,
        entry: float = 0.0,
    ) -> None:
        self.space, self.points, self.cluster = space, points, cluster
        self.norm, self.most, self.price, self.entry = norm, most, price, entry
        self.labels = np.unique(cluster)
        exact = most == 0 and price is None and len(points) > 0
        self.groups = Groups(space, points, cluster) if exact else None
        self._hulls: dict[Any, Hull] = {}

    @property
    def exact(self) -> bool:
        """Whether points lie in the hulls themselves: it is then searched group by group."""
        return self.groups is not None

    @property
    def ends(self) -> tuple[np.ndarray, np.ndarray]:
        """The least and the greatest value of each scaled column, shape (columns,), infinite without points."""
        if not len(self.points):
            return np.full(self.points.shape[1], -math.inf), np.full(self.points.shape[1], math.inf)
        return self.points.min(axis=0) - self.most, self.points.max(axis=0) + self.most

    def slack(self, x: np.ndarray, label: Any = None) -> float:
        """Distance of a point from the nearest of the hulls, or from that of a cluster."""
        labels = self.labels if label is None else [label]
        return min((self._hull(one).distance(x) for one in labels), default=math.inf)

    def _hull(self, label: Any) -> Hull:
        if label not in self._hulls:
            self._hulls[label] = Hull(self.points[self.cluster == label], self.norm)
        return self._hulls[label]

    def pieces(self, factual: pd.DataFrame, bound: Bound, label: Any = None) -> Iterator[Piece]:
        """The parts of the manifold that a factual can reach, the cheapest first by a lower bound.

        Parameters
        ----------
        bound
            Lower bounds on objective and weighted changes, of moves given by their least gaps and whether each feature
            has to change, both of shape (moves, features).
        label
            A cluster; all of them where None.
        """
        if self.groups is None:
            for cluster in self.labels if label is None else [label]:
                yield whole(self._hull(cluster), self.most, self.price)
            return
        rows, gaps, changed = self.groups.within_reach(self.space, factual, label)
        if not len(rows):
            return
        least, changes = bound(gaps, changed)
        for place in np.argsort(least, kind="stable"):
            piece = self._piece(factual, int(rows[place]), float(least[place]), float(changes[place]))
            if piece is not None:
                yield piece

    def _piece(self, factual: pd.DataFrame, group: int, least: float, changes: float) -> Piece | None:
        """A group as a piece, cut to the faces that the reach leaves; a single point is none, being a known row."""
        assert self.groups is not None
        found = self.groups.faces(self.space, factual, group)
        if found is None:
            return None
        values, box = found
        moving = np.flatnonzero(values.max(axis=0) > values.min(axis=0) + COORDINATE_TIE)
        columns = self.groups.numbers[moving]
        if len(values) <= SHARED:
            return Shares(values[:, moving], columns, box, least, changes)
        key = (group, hash(values.tobytes()))
        if key not in self._hulls:
            self._hulls[key] = Hull(values[:, moving], 1)
        return Outside(self._hulls[key], columns, box=box, least=least, changes=changes)

    def unreachable(self, factual: pd.DataFrame) -> str | None:
        """Why no part of the manifold can be reached: features whose actionability leaves none; None if some can."""
        if self.groups is None or len(self.groups.within_reach(self.space, factual)[0]):
            return None
        blamed = []
        for name in self.space.names:
            others = {other: {"actionability": "free"} for other in self.space.names if other != name}
            if not len(self.groups.within_reach(self.space.replace(others), factual)[0]):
                blamed.append(name)
        names = blamed or [f.name for f in self.space.features if f.actionability != "free"]
        return f"no row of the wanted class can be reached as {', '.join(names)} may change"
