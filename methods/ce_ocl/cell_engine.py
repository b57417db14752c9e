"""CE-OCL on trees by branch and bound over their cells, without a solver."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from harness.core.errors import UnsupportedError
from harness.core.explanation import Answer, Reason, Status
from harness.core.method import Deadline
from harness.core.problem import Problem
from harness.core.space import Kind, values_of
from harness.core.tolerances import OPTIMALITY_GAP
from methods.ce_ocl.answers import gave_up, infeasible
from methods.ce_ocl.parameters import Parameters
from methods.cells.closest import Closest
from methods.cells.grid import WORD
from methods.cells.relations import boxed
from methods.cells.search import CellSearch
from methods.estimators.raw_target import conditions
from methods.estimators.trees import splits_only


class CellEngine:
    """CE-OCL on trees without a solver: the cheapest cell of the wanted class."""

    def __init__(self, parameters: Parameters, problem: Problem) -> None:
        self.separation = parameters.separation
        objective = parameters.objective(problem)
        coefficients = objective.separable(problem.space)
        assert coefficients is not None
        gap_costs = objective.gap_costs(problem.space)
        self.search = self._kind(problem)(
            problem, coefficients, parameters.weights(problem), parameters.most, gap_costs
        )
        self.search.compile(problem.train.iloc[[0]].to_dict("records")[0])

    @staticmethod
    def _kind(problem: Problem) -> type[CellSearch]:
        if all(boxed(relation) for relation in problem.space.relations):
            return CellSearch
        from methods.ce_ocl.related_cells import RelatedSearch  # slow: Pyomo

        return RelatedSearch

    @staticmethod
    def takes(parameters: Parameters, problem: Problem) -> bool:
        """Whether the cell search takes the problem: constraints by feature, a sum of trees, a class or an interval."""
        unrelated = replace(problem, space=replace(problem.space, constraints=()))
        if parameters.coupled(unrelated) or parameters.diversity != "distance":
            return False
        space = problem.space
        added = {name for relation in space.relations if not boxed(relation) for name in relation.features}
        if any(f.name in added and f.numeric and not np.isfinite(f.bounds).all() for f in space.features):
            return False
        if added and (space.curved or not space.even or (space.rates != 1).any()):
            return False  # what its values within states cost knows of no costs of features
        if not splits_only(problem.classifier.estimator):
            return False
        if any(f.kind is Kind.CATEGORICAL and len(f.categories) > WORD for f in problem.space.features):
            return False
        try:
            return bool(conditions(problem))
        except UnsupportedError:
            return False

    def answers(self, factual: pd.DataFrame, n: int, deadline: Deadline) -> list[Answer]:
        """The best answers, each separated from those before; fewer than ``n`` end with one that has no point."""
        origin = values_of(factual)
        answers: list[Answer] = []
        passed: tuple[dict[str, Any], ...] = ()
        while len(answers) < n:
            earlier = [answer.row for answer in answers if answer.row is not None]
            found = self.search.closest(origin, earlier, self.separation, deadline, passed)
            passed = (*found.passed, *passed)
            answers.append(_answer(found, bool(earlier)))
            if found.row is None:
                break
        return answers

    def further(self, factual: pd.DataFrame, earlier: Sequence[dict[str, Any]], deadline: Deadline) -> Answer:
        """The best answer that is separated from earlier ones."""
        found = self.search.closest(values_of(factual), earlier, self.separation, deadline)
        return _answer(found, bool(earlier))


def _answer(found: Closest, further: bool) -> Answer:
    """What a search found, as an answer; ``further``: there are answers before it."""
    if found.row is None:
        return infeasible(further) if found.proven else gave_up(Reason.TIME_LIMIT)
    if found.value - found.bound <= OPTIMALITY_GAP * max(1.0, abs(found.value)):
        return Answer(Status.OPTIMAL, found.row, Reason.PROOF, found.value, found.bound)
    return Answer(Status.FOUND, found.row, Reason.TIME_LIMIT, found.value, found.bound)
