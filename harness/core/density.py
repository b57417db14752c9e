"""How likely points are under rows of data, by a mixture of histograms."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from harness.core.space import Feature, Kind, Space
from harness.core.tolerances import LIMIT_MET

BINS = 10  # of a number, between the least and the greatest of the rows
APART = 4 * LIMIT_MET  # what edges of bins are apart at least, in scaled units


@dataclass(frozen=True)
class DensityPart:
    """One feature's part of a density, over its scaled columns.

    Parameters
    ----------
    columns
        The first column, and the one after the last.
    edges
        Between the bins of a number, an ordinal or a binary feature, in order, shape (bins - 1,); none of a category,
        whose bins are its columns.
    values
        The log-density in each bin, shape (components, bins); of a number with gaps, a last one is that of these.
    """

    columns: tuple[int, int]
    edges: np.ndarray
    values: np.ndarray

    @property
    def category(self) -> bool:
        """Whether its bins are one-hot columns."""
        return self.columns[1] - self.columns[0] > 1

    def at(self, points: np.ndarray) -> np.ndarray:
        """The log-density of each component at scaled points, shape (points, components).

        Within ``LIMIT_MET`` of an edge the greater of both bins counts.
        """
        own = points[:, slice(*self.columns)]
        if self.category:
            return self.values.T[own.argmax(axis=1)]
        gap, last = np.isnan(own[:, 0]), self.values.shape[1] - 1
        sides = [np.searchsorted(self.edges, own[:, 0] + shift) for shift in (-LIMIT_MET, LIMIT_MET)]
        sides = [np.where(gap, last, side) for side in sides]
        return np.maximum(*(self.values.T[side] for side in sides))


@dataclass(frozen=True)
class Density:
    r"""A mixture of products of histograms, each point judged by its likeliest component.

    .. math::
        \ell(x) = \max_c \Big[\log \pi_c + \sum_j \log p_{cj}(x_j)\Big]

    :math:`\pi_c` is the share of component c among the rows, :math:`p_{cj}` the histogram of feature j in it: of a
    number ``BINS`` bins of equal width between its least and greatest values (whole values, of integers), one beyond
    each end and one of gaps, of any other feature one a category. Each bin counts one row more than it holds. The
    maximum is a lower bound of the mixture's log-likelihood.

    Parameters
    ----------
    shares
        :math:`\log \pi_c`, shape (components,).
    parts
        One for each feature.
    """

    shares: np.ndarray
    parts: tuple[DensityPart, ...]

    @classmethod
    def of(cls, space: Space, rows: np.ndarray, component: np.ndarray) -> Density:
        """The density of scaled rows, shape (rows, columns), of which each belongs to one component, shape (rows,)."""
        _, codes, counts = np.unique(component, return_inverse=True, return_counts=True)
        whole = np.eye(len(counts))[codes]
        parts = tuple(_part(f, c, rows, whole) for f, c in zip(space.features, space.slices, strict=True))
        return cls(np.log(counts / max(len(rows), 1)), parts)

    def likelihood(self, points: np.ndarray) -> np.ndarray:
        r""":math:`\ell` of scaled points, shape (points,)."""
        total: np.ndarray = self.shares + sum(part.at(points) for part in self.parts)
        return total.max(axis=1, initial=-np.inf)  # without a component nothing is likely

    @property
    def plain(self) -> dict[str, Any]:
        """The same as parameters of a term."""
        return {"shares": self.shares, "parts": [vars(part) for part in self.parts]}

    @classmethod
    def read(cls, params: Mapping[str, Any]) -> Density:
        """What ``plain`` gave, as it is stored."""
        parts = [
            DensityPart(tuple(part["columns"]), *(np.asarray(part[name], dtype=float) for name in ("edges", "values")))
            for part in params["parts"]
        ]
        return cls(np.asarray(params["shares"], dtype=float), tuple(parts))


def _part(feature: Feature, columns: slice, rows: np.ndarray, whole: np.ndarray) -> DensityPart:
    """A feature's part; ``whole``: 1 where a row is of a component, shape (rows, components)."""
    if feature.kind is Kind.CATEGORICAL:
        edges, held = np.zeros(0), rows[:, columns]
    else:
        own = rows[:, columns.start]
        edges = _edges(feature, own)
        places = np.searchsorted(edges, own)
        if feature.numeric and len(edges):  # the least of the rows lies on the first edge
            places = np.clip(places, 1, len(edges) - 1)
        bins = len(edges) + 1 + feature.missing
        held = np.eye(bins)[np.where(np.isnan(own), bins - 1, places)]
    counts = whole.T @ held + 1.0
    width = np.ones(counts.shape[1])
    if feature.numeric and len(edges):
        width[:] = np.diff(edges).mean()
        width[1 : len(edges)] = np.diff(edges)
    values = np.log(counts / counts.sum(axis=1, keepdims=True) / width)
    return DensityPart((columns.start, columns.stop), edges, values)


def _edges(feature: Feature, values: np.ndarray) -> np.ndarray:
    """Between the bins of a feature of one column, scaled; none of a number of which all are gaps."""
    if not feature.numeric:
        steps = len(feature.categories) - 1
        return (np.arange(steps) + 0.5) / max(steps, 1)
    known = values[~np.isnan(values)]
    if not len(known):
        return np.zeros(0)
    low, high = known.min(), known.max()
    edges = np.linspace(low, high, BINS + 1)
    if feature.kind is Kind.INTEGER:
        whole = np.rint(feature.scale[0] + edges * feature.range)
        whole = np.append(whole[:-1] - 0.5, whole[-1] + 0.5)
        edges = (np.unique(whole) - feature.scale[0]) / feature.range
    if edges[-1] - edges[0] <= APART:
        return np.array([edges[0] - APART, edges[-1] + APART])
    kept = [edges[0]]
    for edge in edges[1:-1]:
        kept += [edge] if edge - kept[-1] > APART < edges[-1] - edge else []
    return np.array([*kept, edges[-1]])
