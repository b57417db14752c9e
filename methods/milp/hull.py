"""Convex hulls of rows in a program."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from scipy.optimize import nnls

from harness.core.hull import PULL
from harness.core.tolerances import COORDINATE_TIE, HULL_INSIDE
from harness.solvers.highs import Linear
from harness.solvers.lp import Lp
from harness.solvers.program import Compiled
from methods.milp.forms import scaled

Bound = Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]  # as ``Manifold.pieces`` takes it


@dataclass(frozen=True)
class Cut:
    r"""A half-space that holds a hull, :math:`\pi^T x \le \pi_0`, with :math:`\|\pi\|_q \le 1`."""

    normal: np.ndarray
    end: float


class Hull:
    r"""The convex hull of points, seen through the half-spaces that hold it.

    The distance of x from the hull in norm p is :math:`\max \pi^T x - \pi_0` over :math:`\|\pi\|_q \le 1`,
    1/p + 1/q = 1, and :math:`\pi^T \bar x_i \le \pi_0` for all points: a linear program for p of 1 and inf, solved over
    the few points that matter, which one product with all of them finds round by round. For p = 2 it is a least-squares
    problem over the shares of those points. The end of a cut is the greatest value over *all* points.
    """

    def __init__(self, points: np.ndarray, norm: float) -> None:
        self.points, self.norm = points, norm
        self.cuts: list[Cut] = []
        self._work: list[int] = []
        self._lp: Lp | None = None

    def separate(self, x: np.ndarray, seconds: float, among: np.ndarray | None = None) -> tuple[Cut | None, float]:
        """The cut farthest from x, and how far x lies beyond it: its distance from the hull where that is positive.

        Without a cut, and infinitely far, where time did not allow to find it. In norm 1, the normal is 0 but in the
        columns ``among`` all.
        """
        normal = self._least_squares(x) if self.norm == 2 else self._normal(x, seconds, among)
        if normal is None:
            return None, math.inf
        cut = Cut(normal, float((self.points @ normal).max()))
        return cut, float(normal @ x) - cut.end

    def _normal(self, x: np.ndarray, seconds: float, among: np.ndarray | None) -> np.ndarray | None:
        size = len(x)
        both = self.norm == math.inf  # ‖π‖₁ ≤ 1 needs π in two parts
        if self._lp is None:
            low = np.append(np.zeros(2 * size) if both else -np.ones(size), -math.inf)
            self._lp = Lp(low, np.append(np.ones(2 * size if both else size), math.inf))
            if both:
                row = np.append(np.ones(2 * size), 0.0)[None, :]
                self._lp.add_dense(row, np.array([-math.inf]), np.ones(1))
            self._enter(np.linspace(0, len(self.points) - 1, min(len(self.points), size + 1)).astype(int))
        if not both:
            free = np.ones(size) if among is None else among.astype(float)
            self._lp.bounds(np.append(-free, -math.inf), np.append(free, math.inf))
        cost = np.append(np.concatenate([-x, x]) if both else -x, 1.0)
        while True:
            found = self._lp.solve(cost, seconds)
            if found.x is None or not found.proven:
                return None
            normal = found.x[:size] - found.x[size:-1] if both else found.x[:-1]
            values = self.points @ normal
            worst = np.argpartition(-values, min(BATCH, len(values) - 1))[:BATCH]
            worst = worst[values[worst] > found.x[-1] + COORDINATE_TIE]
            if not len(worst) or set(worst.tolist()) <= set(self._work):
                return normal
            self._enter(worst)

    def _enter(self, rows: np.ndarray) -> None:
        assert self._lp is not None
        self._work += rows.tolist()
        points = self.points[rows]
        parts = [points, -points] if self.norm == math.inf else [points]
        self._lp.add_dense(
            np.hstack([*parts, -np.ones((len(rows), 1))]), np.full(len(rows), -math.inf), np.zeros(len(rows))
        )

    def _least_squares(self, x: np.ndarray) -> np.ndarray:
        """The unit direction from the hull's nearest point to x."""
        work = [int(((self.points - x) ** 2).sum(axis=1).argmin())]
        while True:
            moved = self.points[work] - x
            system = np.vstack([moved.T, np.full(len(work), PULL)])
            shares = nnls(system, np.append(np.zeros(len(x)), PULL))[0]
            nearest = shares @ moved / shares.sum()
            length = float(np.linalg.norm(nearest))
            if length <= COORDINATE_TIE:
                return np.zeros(len(x))
            values = (self.points - x) @ (-nearest / length)
            worst = int(values.argmax())
            if values[worst] <= -length + COORDINATE_TIE or worst in work:
                return -nearest / length
            work.append(worst)

    def distance(self, x: np.ndarray, seconds: float = math.inf) -> float:
        """Distance of a point from the hull; 0 inside."""
        return max(self.separate(x, seconds)[1], 0.0)

    def known(self, x: np.ndarray, most: float) -> list[Cut]:
        """The cuts met before that x lies beyond by more than ``most``, the worst first."""
        if not self.cuts:
            return []
        beyond = np.array([cut.normal @ x - cut.end for cut in self.cuts])
        order = np.argsort(-beyond)[: 4 * BATCH]
        return [self.cuts[i] for i in order if beyond[i] > most]


class Piece(Protocol):
    """A part of the manifold in which a counterfactual is sought by itself.

    ``least`` is a lower bound on what the objective costs there, ``changes`` one on the weighted number of changes.
    ``box`` is by feature what stays within it (see ``Variables.pose``). ``partial``: ``pose`` states only a part of it,
    ``refine`` adds what a solution lacks. ``convex``: what lies between two of its points is in it.
    """

    box: list[Any] | None
    least: float
    changes: float
    partial: bool
    convex: bool

    def pose(self, compiled: Compiled, columns: Sequence[Linear]) -> None:
        """State the piece, given the forms of the scaled columns."""
        ...

    def refine(self, x: np.ndarray, seconds: float) -> list[tuple[Linear, float]]:
        """Rows ``form <= end`` that a solution lacks; none where it lies in the piece, or time was up."""
        ...

    def cost(self) -> Linear:
        """What lying outside costs, where that is allowed."""
        ...


@dataclass
class Shares:
    r"""The hull of few points by their shares: :math:`\sum_i \lambda_i \bar x_i = x + s` in some columns.

    No s, or one of at most ``most`` in norm 1 or inf, or one of norm 1 at a price.
    """

    points: np.ndarray
    at: np.ndarray
    box: list[Any] | None = None
    least: float = 0.0
    changes: float = 0.0
    norm: float = 1
    most: float = 0.0
    price: float | None = None
    partial = False
    convex = True
    _slack: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=np.int32), repr=False)

    def pose(self, compiled: Compiled, columns: Sequence[Linear]) -> None:
        """(3), with the shares as columns."""
        first = compiled.add_columns(len(self.points), 0.0, 1.0)
        shares = np.arange(first, first + len(self.points), dtype=np.int32)
        compiled.add_row(Linear(shares, np.ones(len(shares))), low=1.0, high=1.0)
        wide, count = self.most > 0 or self.price is not None, len(self.at)
        if wide:
            end = math.inf if self.price is not None else self.most
            first = compiled.add_columns(2 * count, 0.0, end)
            self._slack = np.arange(first, first + 2 * count, dtype=np.int32)
            if self.norm == 1 and self.price is None:
                compiled.add_row(Linear(self._slack, np.ones(2 * count)), high=self.most)
        for place, column in enumerate(self.at):
            form, values = columns[int(column)], self.points[:, place]
            used = values != 0
            off = self._slack[[place, count + place]] if wide else self._slack
            row = Linear(
                np.concatenate([form.columns, shares[used], off]),
                np.concatenate([form.coefficients, -values[used], [1.0, -1.0] if wide else []]),
                form.constant,
            )
            compiled.add_row(row, low=0.0, high=0.0)

    def refine(self, x: np.ndarray, seconds: float) -> list[tuple[Linear, float]]:
        return []

    def cost(self) -> Linear:
        price = 0.0 if self.price is None else self.price
        return Linear(self._slack, np.full(len(self._slack), price))


@dataclass
class Outside:
    """A hull by the half-spaces that solutions lie beyond, enlarged by ``most`` or left at a price."""

    hull: Hull
    at: np.ndarray
    most: float = 0.0
    price: float | None = None
    box: list[Any] | None = None
    least: float = 0.0
    changes: float = 0.0
    partial = True
    convex = True
    _columns: Sequence[Linear] = field(default=(), repr=False)
    _slack: int = -1

    def pose(self, compiled: Compiled, columns: Sequence[Linear]) -> None:
        self._columns = [columns[int(column)] for column in self.at]
        if self.price is not None:
            self._slack = compiled.add_column(0.0, math.inf, integer=False)

    def refine(self, x: np.ndarray, seconds: float) -> list[tuple[Linear, float]]:
        point = np.array([form(x) for form in self._columns])
        allowed = self.most if self.price is None else float(x[self._slack])
        cuts = self.hull.known(point, allowed + HULL_INSIDE)
        if not cuts:
            cut, beyond = self.hull.separate(point, seconds)
            if cut is None or beyond <= allowed + HULL_INSIDE:
                return []
            self.hull.cuts.append(cut)
            cuts = [cut]
        return [self._row(cut) for cut in cuts]

    def _row(self, cut: Cut) -> tuple[Linear, float]:
        used = np.flatnonzero(cut.normal)
        forms = [scaled(self._columns[int(i)], float(cut.normal[i])) for i in used]
        if self.price is not None:
            forms.append(Linear.of([(self._slack, -1.0)]))
        return Linear.sum(forms), cut.end + self.most

    def cost(self) -> Linear:
        return Linear.of() if self.price is None else Linear.of([(self._slack, self.price)])


BATCH = 5  # points that enter the separation problem at once, and known cuts that enter a program
