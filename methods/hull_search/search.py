"""The closest valid point of a convex hull, for linear models, sums of trees and networks, without a solver."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from harness.core.method import Deadline
from harness.core.problem import Problem
from methods.hull_search import kernels, network_kernels
from methods.hull_search.bounds import Costs
from methods.hull_search.fewest import Fewest
from methods.hull_search.models import Model
from methods.hull_search.network_run import NetworkRun
from methods.hull_search.outside import PricedHull, points_of
from methods.hull_search.part import HullPart
from methods.hull_search.run import Run
from methods.hull_search.working_set import WorkingSets
from methods.milp import core_kernels
from methods.milp.distance import Separable
from methods.milp.hull import Outside, Shares

OWN = 0.3  # share of the time left for the factual's own categories, where there are too many others to search
Found = tuple[dict[str, Any] | None, float, float]  # a row, its cost, a bound


class BoxSearch:
    r"""Best-first branch and bound over boxes of numbers in a convex hull, categories fixed.

    .. math::
        \min_x \; \textstyle\sum_j f_j [x_j \ne \hat x_j] + c_j |x_j - \hat x_j| + q_j (x_j - \hat x_j)^2 \quad
        \text{s.t. } h(x) \models \tilde y, \; x = \sum_i \lambda_i \bar x_i, \; \sum_i \lambda_i = 1, \;
        \lambda \ge 0

    The bound of a box is a convex program over box and hull (and the model, where it is linear), a fixed cost being
    replaced by its convex envelope over the box, and squares by tangents that move towards its solution. A point on
    which a sum of trees is invalid is grown to a box on which it surely is; x has to leave it by one of its faces. A
    network is bounded by linear forms over each box (``network_run.py``). The fewest changes, where they come first,
    are found by sets of numbers that cannot all stay (``fewest.py``).
    Points enter the program as they are needed. Bounds are Lagrangian: whatever the pivots did, they hold up to the
    rounding of one product with all points. A point is taken once the real model predicts it as wanted. A hull that x
    may leave at a price is searched by combination of categories (``methods/hull_search/outside.py``).

    Parameters
    ----------
    alpha, weights, max_changes
        Cost, weights by feature and greatest weighted number of changes.
    margin
        Of a linear model's score beyond its threshold.
    bare
        Whether that margin is kept only once the model refuses a point, in units of ``unit_of`` it: the bound is then
        one of the model's own rule.
    """

    def __init__(
        self,
        problem: Problem,
        distance: Separable,
        alpha: float,
        weights: np.ndarray,
        max_changes: float | None,
        margin: float,
        bare: bool = False,
    ) -> None:
        self.distance, self.alpha, self.weights = distance, alpha, weights
        self._cost = Separable(distance.fixed + alpha * weights, distance.linear, distance.quadratic)
        self.model = Model.of(problem, margin, bare)
        self.adopt(problem, max_changes)
        kernels.compile_all()
        network_kernels.compile_all()
        core_kernels.compile_all()
        self._sets = WorkingSets()
        self._priced: dict[int, tuple[np.ndarray, PricedHull]] = {}

    def adopt(self, problem: Problem, max_changes: float | None) -> None:
        """Search from now on within other bounds and actionability, and another number of changes."""
        self.model = replace(self.model, problem=problem)
        self.most = math.inf if max_changes is None else float(max_changes)

    def closest(
        self,
        factual: pd.DataFrame,
        piece: Shares | Outside,
        upper: float,
        deadline: Deadline,
        fewest: Fewest | None = None,
    ) -> Found:
        """The closest valid point of a piece, if it costs less than ``upper``.

        Parameters
        ----------
        fewest
            The piece's fewest changes, where alpha exceeds every distance within it, so that they come first.

        Returns
        -------
        The row or None, its cost (``upper`` without one), and a proven lower bound on what the piece holds; inf:
        nothing below ``upper``.
        """
        if piece.price is not None:
            return self._around(factual, piece, upper, deadline)
        if fewest is None:
            part = self._part(factual, piece)
            return self._together(part, upper, deadline) if part.possible else (None, upper, math.inf)
        part = fewest.part
        known = math.floor(upper / self.alpha) if math.isfinite(upper) else math.inf
        fewest.settle(min(known, self.most + 1.0), deadline)
        best, value, least = fewest.row, upper, fewest.least
        if best is not None:
            value = min(upper, part.price(best, self.distance) + self.alpha * part.changes(best))
        if math.isinf(least) or least > min(known, self.most):
            return None, upper, math.inf
        if not fewest.settled(known):
            return best, value, self.alpha * least
        second = self._run(part, Costs.of(part, self.distance, least), value - self.alpha * least, deadline)
        second.cores = fewest.words()
        row, rest = second.search()
        if row is not None:
            best, value = row, rest + self.alpha * part.changes(row)
        if best is None and second.bound == math.inf:
            return None, upper, math.inf
        return best, value, min(value, self.alpha * least + second.bound)

    def fewest(self, factual: pd.DataFrame, piece: Shares | Outside) -> Fewest:
        """The fewest changes of a piece, nothing known of them yet."""
        return Fewest(self._part(factual, piece), self.distance, self._run)

    def _run(self, part: HullPart, costs: Costs, upper: float, deadline: Deadline) -> Run:
        return (Run if self.model.margins is None else NetworkRun)(part, costs, upper, deadline)

    def _together(self, part: HullPart, upper: float, deadline: Deadline) -> Found:
        """The closest valid point of a part, changes and distance in one stage; as ``closest``."""
        costs = Costs.of(part, self._cost, self.most)
        run = self._run(part, costs, upper, deadline)
        row, value = run.search()
        return row, value, run.bound

    def _around(self, factual: pd.DataFrame, piece: Shares | Outside, upper: float, deadline: Deadline) -> Found:
        """The closest valid point where the hull may be left at a price; as ``closest``.

        The factual's own categories come first, then all others whose changes cost less. Where these are too many, the
        bound is what the first change of a category costs.
        """
        space, hull = self.model.problem.space, self._priced_hull(piece)
        cost = self._cost.fixed + self._cost.linear + self._cost.quadratic
        combinations = hull.combinations(space, factual, cost)
        part = HullPart(self.model, self.weights, hull.points, factual, hull.piece(space, combinations.own))
        few = combinations.below(upper) is not None
        until = deadline if few else Deadline.after(OWN * deadline.left)
        best, value, bound = self._together(part, upper, until)
        others = combinations.below(value)
        if others is None:
            return best, value, min(bound, float(combinations.cost.min()))
        lowest = [(least + hull.price * float(hull.distances(codes).min()), codes) for least, codes in others]
        for least, codes in sorted(lowest, key=lambda entry: entry[0]):
            if least >= value:
                break
            if deadline.passed:
                return best, value, min(bound, least)
            part = HullPart(self.model, self.weights, hull.points, factual, hull.piece(space, codes))
            row, value, lower = self._together(part, value, deadline)
            best, bound = best if row is None else row, min(bound, lower)
        return best, value, bound

    def _part(self, factual: pd.DataFrame, piece: Shares | Outside) -> HullPart:
        return HullPart(self.model, self.weights, self._sets.of(piece), factual, piece)

    def _priced_hull(self, piece: Shares | Outside) -> PricedHull:
        """The hull of a piece that may be left; kept, with the points that it is found by."""
        points = points_of(piece)
        if id(points) not in self._priced:
            assert piece.price is not None
            hull = PricedHull.of(self.model.problem.space, points, piece.price)
            self._priced[id(points)] = points, hull
        return self._priced[id(points)][1]
