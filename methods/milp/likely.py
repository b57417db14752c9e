"""Points that are likely under a density of rows: as a data manifold, and as pieces of a program."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd

from harness.core.density import Density, DensityPart
from harness.core.objective import HEAVIEST, Limit, Term
from harness.core.space import Space
from harness.core.tolerances import LIMIT_MET
from harness.solvers.highs import Linear
from harness.solvers.program import Compiled
from methods.milp.forms import difference, scaled
from methods.milp.hull import Bound, Piece


class Likely:
    r"""The points with :math:`\ell(x) \ge \tau` (``Density``), a manifold with the interface of ``Manifold``.

    Parameters
    ----------
    rows
        In scaled columns, shape (rows, columns).
    component
        Of each row, shape (rows,).
    share
        In (0, 1): :math:`\tau` is the value that this share of the rows does not reach.
    """

    most, price, entry, exact = 0.0, None, 0.0, True
    ends = -math.inf, math.inf  # of the scaled columns: a density ends nowhere

    def __init__(self, space: Space, rows: np.ndarray, component: np.ndarray, share: float) -> None:
        self.space, self.density = space, Density.of(space, rows, component)
        found = self.density.likelihood(rows)
        self.least = float(np.quantile(found, share, method="lower")) if len(rows) else HEAVIEST
        self.points = np.unique(rows[found >= self.least], axis=0)
        self.cluster = np.zeros(len(self.points), dtype=int)
        self.labels = np.unique(self.cluster)

    @property
    def limit(self) -> Limit:
        """The same as a limit of a claim."""
        return Limit(Term("rarity", 1.0, self.density.plain), -self.least)

    def slack(self, x: np.ndarray, label: Any = None) -> float:
        """0 for one of the points, else infinite."""
        return 0.0 if self.density.likelihood(x[None])[0] >= self.least - LIMIT_MET else math.inf

    def pieces(self, factual: pd.DataFrame, bound: Bound, label: Any = None) -> Iterator[Piece]:
        """The points of each component, that of the most rows first; as ``Manifold.pieces``."""
        for component in np.argsort(-self.density.shares, kind="stable"):
            yield Component(self, int(component))

    def unreachable(self, factual: pd.DataFrame) -> str | None:
        """None: no feature by itself keeps a point from being likely."""
        return None


@dataclass
class Component:
    r"""The points that are likely under one component, :math:`\log \pi_c + \sum_j \log p_{cj}(x_j) \ge \tau`.

    Of a number :math:`\log p_{cj}(x_j) = \sum_b v_b y_b`, :math:`\sum_b y_b = 1` and
    :math:`\sum_b l_b y_b \le x_j \le \sum_b u_b y_b`, with a binary :math:`y_b` for each bin from :math:`l_b` to
    :math:`u_b`; neighbours of one value are one bin.
    """

    likely: Likely
    component: int
    box: list[Any] | None = None
    least: float = 0.0
    changes: float = 0.0
    partial = False
    convex = False

    def pose(self, compiled: Compiled, columns: Sequence[Linear]) -> None:
        """State the sum, given the forms of the scaled columns."""
        forms = [self._form(part, compiled, columns[slice(*part.columns)]) for part in self.likely.density.parts]
        share = float(self.likely.density.shares[self.component])
        compiled.add_row(Linear.sum(forms), low=self.likely.least - share)

    def _form(self, part: DensityPart, compiled: Compiled, columns: Sequence[Linear]) -> Linear:
        """The log-density of a feature."""
        values = part.values[self.component]
        if part.category:
            return Linear.sum([scaled(column, value) for column, value in zip(columns, values, strict=True)])
        bins = _bins(part.edges, values[: len(part.edges) + 1], *_ends(compiled, columns[0]))
        chosen = [compiled.add_column() for _ in bins]
        compiled.add_row(Linear.of([(column, 1.0) for column in chosen]), low=1.0, high=1.0)
        low, high, level = (
            Linear.of([(column, each[end]) for column, each in zip(chosen, bins, strict=True)]) for end in range(3)
        )
        compiled.add_row(difference(columns[0], low), low=0.0)
        compiled.add_row(difference(columns[0], high), high=0.0)
        return level

    def refine(self, x: np.ndarray, seconds: float) -> list[tuple[Linear, float]]:
        return []

    def cost(self) -> Linear:
        return Linear.of()


def _ends(compiled: Compiled, form: Linear) -> tuple[float, float]:
    """The least and the greatest value of a form within the bounds of its columns."""
    products = form.coefficients * np.stack([compiled.low[form.columns], compiled.high[form.columns]])
    return form.constant + float(products.min(axis=0).sum()), form.constant + float(products.max(axis=0).sum())


def _bins(edges: np.ndarray, values: np.ndarray, low: float, high: float) -> list[tuple[float, float, float]]:
    """Low end, high end and value of each bin that meets an interval, neighbours of one value joined."""
    found: list[tuple[float, float, float]] = []
    for (start, end), value in zip(pairwise([-math.inf, *edges, math.inf]), values.tolist(), strict=True):
        if end < low or start > high:
            continue
        start, end = max(start, low), min(end, high)
        if found and found[-1][2] == value:
            start = found.pop()[0]
        found.append((start, end, value))
    return found
