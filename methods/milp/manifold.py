"""The data manifold: convex hulls of the wanted class, exact over all of its points."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd

from harness.core.space import SAME, Kind, Space
from methods.milp.hull import Hull, Outside, Piece, Shares

SHARED = 1000  # points up to which a hull is stated by their shares, above by cuts


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
        self.every = np.arange(points.shape[1])
        self._hulls: dict[Any, Hull] = {}
        self.exact = most == 0 and price is None and len(points) > 0
        if self.exact:
            self._group()

    def _group(self) -> None:
        """Group the points by cluster and categories.

        0/1 columns are extreme values: without slack, only points of x's own categories have a share.
        """
        space = self.space
        places = [(place, f, c) for place, (f, c) in enumerate(zip(space.features, space.slices, strict=True))]
        self.categorical = [(p, f, c) for p, f, c in places if f.kind in {Kind.CATEGORICAL, Kind.BINARY}]
        self.numeric = [(p, f, c.start) for p, f, c in places if f.kind not in {Kind.CATEGORICAL, Kind.BINARY}]
        self.at = np.array([start for _, _, start in self.numeric], dtype=int)
        codes = [
            self.points[:, c].argmax(axis=1) if f.kind is Kind.CATEGORICAL else np.rint(self.points[:, c.start])
            for _, f, c in self.categorical
        ]
        keys = np.column_stack([self.cluster, *codes]).astype(int)
        unique, group = np.unique(keys, axis=0, return_inverse=True)
        order = np.argsort(group, kind="stable")
        starts = np.searchsorted(group[order], np.arange(len(unique)))
        self.members = np.split(order, starts[1:])
        self.group_cluster, self.codes = unique[:, 0], unique[:, 1:]
        values = self.points[order][:, self.at]
        self.low = np.minimum.reduceat(values, starts, axis=0) if len(self.at) else np.zeros((len(unique), 0))
        self.high = np.maximum.reduceat(values, starts, axis=0) if len(self.at) else np.zeros((len(unique), 0))

    def slack(self, x: np.ndarray) -> float:
        """Distance of a point from the nearest of the hulls."""
        return min((self._hull(label).distance(x) for label in self.labels), default=math.inf)

    def _hull(self, label: Any) -> Hull:
        if label not in self._hulls:
            self._hulls[label] = Hull(self.points[self.cluster == label], self.norm)
        return self._hulls[label]

    def pieces(
        self,
        factual: pd.DataFrame,
        bound: Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]],
        label: Any = None,
    ) -> Iterator[Piece]:
        """The parts of the manifold that a factual can reach, the cheapest first by a lower bound.

        Parameters
        ----------
        bound
            Lower bounds on objective and weighted changes, of moves given by their least gaps and whether each feature
            has to change, both of shape (moves, features).
        label
            A cluster; all of them where None.
        """
        if not self.exact:
            for cluster in self.labels if label is None else [label]:
                hull = self._hull(cluster)
                if len(hull.points) <= SHARED and self.norm != 2:
                    yield Shares(hull.points, self.every, norm=self.norm, most=self.most, price=self.price)
                else:
                    yield Outside(hull, self.every, self.most, self.price)
            return
        rows, gaps, changed = self._within_reach(factual, label)
        if not len(rows):
            return
        least, changes = bound(gaps, changed)
        for place in np.argsort(least, kind="stable"):
            piece = self._piece(factual, int(rows[place]), float(least[place]), float(changes[place]))
            if piece is not None:
                yield piece

    def _within_reach(self, factual: pd.DataFrame, label: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Groups that actionability and bounds leave, and how far each feature has to move to them."""
        low, high = self.space.reach(factual)
        origin = self.space.encode(factual)[0]
        kept = np.ones(len(self.codes), dtype=bool) if label is None else self.group_cluster == label
        gaps = np.zeros((len(self.codes), len(self.space.names)))
        for column, (place, feature, columns) in enumerate(self.categorical):
            codes = self.codes[:, column]
            if feature.kind is Kind.CATEGORICAL:
                kept &= high[columns][codes] > 0.5
                gaps[:, place] = codes != origin[columns].argmax()
            else:
                kept &= (codes >= low[columns.start] - SAME) & (codes <= high[columns.start] + SAME)
                gaps[:, place] = codes != origin[columns.start]
        for column, (place, _, start) in enumerate(self.numeric):
            least, most = self.low[:, column], self.high[:, column]
            stays = (least <= origin[start] + SAME) & (most >= origin[start] - SAME)
            kept &= stays | ((least <= high[start] + SAME) & (most >= low[start] - SAME))
            gaps[:, place] = np.maximum(np.maximum(least - origin[start], origin[start] - most), 0.0)
        rows = np.flatnonzero(kept)
        return rows, gaps[rows], gaps[rows] > SAME

    def _piece(self, factual: pd.DataFrame, group: int, least: float, changes: float) -> Piece | None:
        """A group as a piece, cut to the faces that the reach leaves; a single point is none, being a known row."""
        low, high = (ends[self.at] for ends in self.space.reach(factual))
        origin = self.space.encode(factual)[0][self.at]
        low, high = np.minimum(low, origin), np.maximum(high, origin)
        members = self.members[group]
        values = self.points[members][:, self.at]
        while len(values):
            floor, top = values.min(axis=0), values.max(axis=0)
            on_floor = (high <= floor + SAME) & (floor < top)
            on_top = (low >= top - SAME) & (floor < top)
            if not (on_floor.any() or on_top.any()):
                break
            keep = (values[:, on_floor] <= floor[on_floor] + SAME).all(axis=1)
            keep &= (values[:, on_top] >= top[on_top] - SAME).all(axis=1)
            values = values[keep]
        if len(values) <= 1:
            return None
        box: list[Any] = [None] * len(self.space.names)
        for column, (place, _, _) in enumerate(self.categorical):
            box[place] = int(self.codes[group, column])
        for column, (place, _, _) in enumerate(self.numeric):
            box[place] = (float(floor[column]), float(top[column]))
        moving = np.flatnonzero(top > floor + SAME)
        if len(values) <= SHARED:
            return Shares(values[:, moving], self.at[moving], box, least, changes)
        key = (group, hash(values.tobytes()))
        if key not in self._hulls:
            self._hulls[key] = Hull(values[:, moving], 1)
        return Outside(self._hulls[key], self.at[moving], box=box, least=least, changes=changes)

    def unreachable(self, factual: pd.DataFrame) -> str | None:
        """Why no part of the manifold can be reached: features whose actionability leaves none; None if some can."""
        if not self.exact or len(self._within_reach(factual, None)[0]):
            return None
        blamed = []
        for name in self.space.names:
            others = {other: {"actionability": "free"} for other in self.space.names if other != name}
            alone = Manifold.__new__(Manifold)
            alone.__dict__ |= {**self.__dict__, "space": self.space.replace(others)}
            if not len(alone._within_reach(factual, None)[0]):
                blamed.append(name)
        names = blamed or [f.name for f in self.space.features if f.actionability != "free"]
        return f"no row of the wanted class can be reached as {', '.join(names)} may change"
