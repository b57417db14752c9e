"""The closest point in a convex hull whose box or ball is of the wanted class, proven, for sums of trees."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from harness.core.errors import UnsupportedError
from harness.core.method import Deadline
from harness.core.objective import Objective
from harness.core.problem import Problem
from harness.core.space import Kind
from harness.core.tolerances import COORDINATE_TIE
from methods.cells.records import Box
from methods.hull_search import kernels
from methods.hull_search.bounds import Costs
from methods.hull_search.models import Model, searchable
from methods.hull_search.part import HullPart
from methods.hull_search.working_set import WorkingSets
from methods.milp.distance import Separable
from methods.milp.hull import Outside, Shares
from methods.milp.manifold import Manifold
from methods.robust.cells import BallSearch
from methods.robust.hull_run import Reach, RobustRun
from methods.robust.outcome import Outcome
from methods.robust.settings import Settings
from methods.robust.walls import UNKNOWN, Walls

Found = tuple[dict[str, Any] | None, float, float]  # a row, its cost, a bound


class RobustHull:
    """Best-first branch and bound within the hulls of each combination of categories, as of CE-OCL's ``BoxSearch``.

    Points of the program over hull and box that are not robust meet a wall (``wall_kernels``), a box of cells on which
    the model is wrong: the program then keeps away from the wall as far as a line above the distance from it asks, and
    the box is divided where that line is farthest above it.

    Raises
    ------
    UnsupportedError
        Where the model is no sum of trees, or the target or distance does not fit the search.
    """

    def __init__(self, problem: Problem, settings: Settings) -> None:
        coefficients = Objective(settings.terms).separable(problem.space)
        if coefficients is None or not searchable(problem):
            raise UnsupportedError("the search within hulls takes sums of trees, and l1 or l2sq.")
        self.problem, self.settings = problem, settings
        self.cost = Separable(*coefficients, problem.space)
        self.weights = np.ones(len(problem.space.features))
        self.most = math.inf if settings.max_changes is None else float(settings.max_changes)
        self.model = Model.of(problem, 0.0)
        self.search = BallSearch(problem, settings, coefficients)
        slack = next(limit.term for limit in settings.claim(problem).limits if limit.term.name == "slack")
        points = slack.params["points"]
        self.manifold = Manifold(problem.space, points, np.zeros(len(points), dtype=int), 1, 0.0, None)
        valid = problem.valid(problem.space.decode(points)) if len(points) else np.zeros(0, dtype=bool)
        self.rows = points[valid]
        self._sets = WorkingSets()
        kernels.compile_all()
        row = problem.train.iloc[0].to_dict()
        walls = Walls(self.search, row, settings.norm == "linf", Deadline.after(math.inf))
        walls.compile(row, _anywhere(walls))

    def solve(self, row: Mapping[str, Any], deadline: Deadline) -> Outcome:
        start, factual = time.monotonic(), self.problem.space.frame([row])
        walls = Walls(self.search, row, self.settings.norm == "linf", deadline)
        best, value, bound = self._nearest_row(factual, walls, deadline)
        if self.manifold.groups is not None:
            for piece in self.manifold.pieces(factual, self._least):
                if piece.least >= value or deadline.passed:
                    bound = min(bound, piece.least)
                    break
                assert isinstance(piece, Shares | Outside)
                part = HullPart(self.model, self.weights, self._sets.of(piece), factual, piece)
                if part.possible:
                    run = RobustRun(part, Costs.of(part, self.cost, self.most), value, deadline, Reach(walls, part))
                    found, value = run.search()
                    best, bound = best if found is None else found, min(bound, run.bound)
        rho = self.settings.radius if best is not None else 0.0
        step = {"iteration": 1, "distance": value, "radius": rho, "seconds": time.monotonic() - start}
        return Outcome(best, value, min(bound, value), rho, (step,))

    def _least(self, gaps: np.ndarray, changed: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Lower bounds on cost and changes of moves, as ``Manifold.pieces`` takes them."""
        return self.cost.least(gaps, changed), changed @ self.weights

    def _nearest_row(self, factual: pd.DataFrame, walls: Walls, deadline: Deadline) -> Found:
        """The cheapest of the hull's own points that is robust; a hull of one point is found no other way."""
        space = self.problem.space
        moved = np.abs(self.rows - space.encode(factual)[0])
        gaps = np.column_stack([moved[:, columns].max(axis=1) for columns in space.slices])
        costs, changes = self._least(gaps, gaps > COORDINATE_TIE)
        near = (space.reached(factual, self.rows) | (gaps <= COORDINATE_TIE)).all(axis=1) & (changes <= self.most)
        places, reach = np.flatnonzero(near), _anywhere(walls)
        unsettled = math.inf  # the least cost of a row of which it could not be found out
        for place in places[np.argsort(costs[places], kind="stable")]:
            cost = float(costs[place])
            if deadline.passed:
                return None, math.inf, min(unsettled, cost)
            row = space.decode(self.rows[[place]], like=factual).to_dict("records")[0]
            wall = walls.broken(row, reach)
            if wall is None:
                return row, cost, unsettled
            unsettled = min(unsettled, cost) if wall == UNKNOWN else unsettled
        return None, math.inf, unsettled


def _anywhere(walls: Walls) -> Box:
    """All coordinates, for walls that are met at rows."""
    count = len(walls.features)
    # A word has room for unordered categories alone, and ordered ones are coordinates.
    nominal = [f.kind is Kind.CATEGORICAL for f in walls.features]
    sets = np.array(
        [(1 << len(f.categories)) - 1 if own else 0 for f, own in zip(walls.features, nominal, strict=True)],
        dtype=np.uint64,
    )
    return Box(np.full(count, -math.inf), np.full(count, math.inf), sets)
