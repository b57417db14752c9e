"""The closest valid point of a convex hull, for linear models and sums of trees, without a mixed-integer program."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from harness.core.method import Deadline
from harness.core.problem import Problem
from methods.hull_search import kernels
from methods.hull_search.bounds import Costs
from methods.hull_search.models import Model
from methods.hull_search.outside import PricedHull, points_of
from methods.hull_search.part import TIES, Part
from methods.hull_search.run import Run
from methods.hull_search.working_set import WorkingSets
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
    which a sum of trees is invalid is grown to a box on which it surely is; x has to leave it by one of its faces.
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
        self._sets = WorkingSets()
        self._priced: dict[int, tuple[np.ndarray, PricedHull]] = {}

    def adopt(self, problem: Problem, max_changes: float | None) -> None:
        """Search from now on within other bounds and actionability, and another number of changes."""
        self.model = replace(self.model, problem=problem)
        self.most = math.inf if max_changes is None else float(max_changes)

    def closest(
        self, factual: pd.DataFrame, piece: Shares | Outside, upper: float, deadline: Deadline, lexical: bool = False
    ) -> Found:
        """The closest valid point of a piece, if it costs less than ``upper``.

        Parameters
        ----------
        lexical
            Alpha exceeds every distance within the piece, so that the fewest changes come first.

        Returns
        -------
        The row or None, its cost (``upper`` without one), and a proven lower bound on what the piece holds; inf:
        nothing below ``upper``.
        """
        if piece.price is not None:
            return self._around(factual, piece, upper, deadline)
        part = self._part(factual, piece)
        if not part.possible:
            return None, upper, math.inf
        if not self.alpha or not lexical:
            return self._together(part, upper, deadline)
        best, value = None, upper
        known = math.floor(upper / self.alpha) if math.isfinite(upper) else math.inf
        row, least, bound = self._fewest(part, known, deadline)
        if row is not None:
            best, value = row, min(upper, part.price(row, self.distance) + self.alpha * least)
        if bound < least:  # the deadline came first
            return best, value, self.alpha * bound
        if least == math.inf:
            return None, upper, math.inf
        second = Run(part, Costs.of(part, self.distance, least), value - self.alpha * least, deadline)
        row, rest = second.search()
        if row is not None:
            best, value = row, rest + self.alpha * part.changes(row)
        if best is None and second.bound == math.inf:
            return None, upper, math.inf
        return best, value, min(value, self.alpha * least + second.bound)

    def _together(self, part: Part, upper: float, deadline: Deadline) -> Found:
        """The closest valid point of a part, changes and distance in one stage; as ``closest``."""
        costs = Costs.of(part, self._cost, self.most)
        run = Run(part, costs, upper, deadline)
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
        part = Part(self.model, self.weights, hull.points, factual, hull.piece(space, combinations.own))
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
            part = Part(self.model, self.weights, hull.points, factual, hull.piece(space, codes))
            row, value, lower = self._together(part, value, deadline)
            best, bound = best if row is None else row, min(bound, lower)
        return best, value, bound

    def _fewest(self, part: Part, known: float, deadline: Deadline) -> tuple[dict[str, Any] | None, float, float]:
        """A valid point of the fewest changes or None, its changes (``known`` without one), and a bound on them.

        The distance only tells equals apart.
        """
        linear = self.distance.linear + self.distance.quadratic
        ceiling = min(known, self.most + 1.0) - 0.5
        counted = Separable(self.weights, linear * part.spread(linear), 0.0 * linear)
        costs = Costs.of(part, counted, math.inf, counting=True)
        run = Run(part, costs, ceiling, deadline)
        row, _ = run.search()
        least = known if row is None else part.changes(row)
        return row, least, least if run.bound >= least else float(max(math.ceil(run.bound - TIES), 0))

    def _part(self, factual: pd.DataFrame, piece: Shares | Outside) -> Part:
        return Part(self.model, self.weights, self._sets.of(piece), factual, piece)

    def _priced_hull(self, piece: Shares | Outside) -> PricedHull:
        """The hull of a piece that may be left; kept, with the points that it is found by."""
        points = points_of(piece)
        if id(points) not in self._priced:
            assert piece.price is not None
            hull = PricedHull.of(self.model.problem.space, points, piece.price)
            self._priced[id(points)] = points, hull
        return self._priced[id(points)][1]
