"""CE-OCL on trees by branch and bound over their cells, without a solver."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd

from harness.core.explanation import Answer, Reason, Status
from harness.core.method import Deadline
from harness.core.problem import Problem
from harness.core.space import values_of
from harness.core.tolerances import OPTIMALITY_GAP
from methods.ce_ocl.answers import gave_up, infeasible
from methods.ce_ocl.parameters import Parameters
from methods.ce_ocl.related_cells import RelatedSearch
from methods.cells.closest import Closest
from methods.cells.relations import boxed
from methods.cells.search import CellSearch


class CellEngine:
    """CE-OCL on trees without a solver: the cheapest cell of the wanted class."""

    def __init__(self, parameters: Parameters, problem: Problem) -> None:
        self.separation = parameters.separation
        objective = parameters.objective(problem)
        coefficients = objective.separable(problem.space)
        assert coefficients is not None
        gap_costs = objective.gap_costs(problem.space)
        kind = CellSearch if all(map(boxed, problem.space.relations)) else RelatedSearch
        self.search = kind(problem, coefficients, parameters.weights(problem), parameters.most, gap_costs)
        self.search.compile(problem.train.iloc[[0]].to_dict("records")[0])

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
