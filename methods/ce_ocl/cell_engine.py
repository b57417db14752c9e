"""CE-OCL on trees by branch and bound over their cells."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pandas as pd

from harness.core.explanation import Answer, Reason, Status
from harness.core.method import Deadline
from harness.core.problem import Problem
from harness.core.space import values_of
from methods.ce_ocl.answers import gave_up, infeasible, proves
from methods.ce_ocl.parameters import Parameters
from methods.ce_ocl.related_cells import RelatedSearch
from methods.cells.closest import Closest
from methods.cells.relations import boxed
from methods.cells.search import CellSearch


class CellEngine:
    """CE-OCL on trees: the cheapest cell of the wanted class."""

    def __init__(self, parameters: Parameters, problem: Problem) -> None:
        self.separation, self.squared = parameters.separation, parameters.distance == "l2sq"
        self.space, self.prices = problem.space, parameters.alpha * parameters.weights(problem)
        self.search = _search(parameters, problem)
        self.search.compile(problem.train.iloc[[0]].to_dict("records")[0])

    @contextmanager
    def under(self, parameters: Parameters, problem: Problem) -> Iterator[None]:
        """The same trees under other bounds, actionability, relations and number of changes, for a while."""
        before = self.space, self.search
        try:
            self.space, self.search = problem.space, _search(parameters, problem, self.search)
            yield
        finally:
            self.space, self.search = before

    def answers(self, factual: pd.DataFrame, n: int, deadline: Deadline) -> list[Answer]:
        """The best answers, each separated from those before; fewer than ``n`` end with one that has no point."""
        origin = values_of(factual)
        answers: list[Answer] = []
        passed: tuple[dict[str, Any], ...] = ()
        while len(answers) < n:
            earlier = [answer.row for answer in answers if answer.row is not None]
            found = self.search.closest(origin, earlier, self.separation, deadline, passed)
            passed = (*found.passed, *passed)
            answers.append(self._answer(found, factual, bool(earlier)))
            if found.row is None:
                break
        return answers

    def further(self, factual: pd.DataFrame, earlier: Sequence[dict[str, Any]], deadline: Deadline) -> Answer:
        """The best answer that is separated from earlier ones."""
        found = self.search.closest(values_of(factual), earlier, self.separation, deadline)
        return self._answer(found, factual, bool(earlier))

    def _answer(self, found: Closest, factual: pd.DataFrame, further: bool) -> Answer:
        """What a search found, as an answer; ``further``: there are answers before it."""
        if found.row is None:
            return infeasible(further) if found.proven else gave_up(Reason.TIME_LIMIT)
        if found.proven or proves(found.bound, found.value, found.value - self._counted(found, factual), self.squared):
            return Answer(Status.OPTIMAL, found.row, Reason.PROOF, found.value, found.bound)
        return Answer(Status.FOUND, found.row, Reason.TIME_LIMIT, found.value, found.bound)

    def _counted(self, found: Closest, factual: pd.DataFrame) -> float:
        """What a found row's changes cost as such."""
        return float((self.space.changed(factual, self.space.frame([found.row or {}])) @ self.prices)[0])


def _search(parameters: Parameters, problem: Problem, like: CellSearch | None = None) -> CellSearch:
    """The search that answers a question; ``like``: one of the same model and target, whose cells it takes over."""
    objective = parameters.objective(problem)
    coefficients = objective.separable(problem.space)
    assert coefficients is not None
    gap_costs = objective.gap_costs(problem.space)
    kind = CellSearch if all(map(boxed, problem.space.relations)) else RelatedSearch
    return kind(problem, coefficients, parameters.weights(problem), parameters.most, gap_costs, like)
