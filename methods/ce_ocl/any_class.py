"""CE-OCL where any of several classes will do: the best answer of all of them, each class searched by itself."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from harness.core.explanation import Answer, Reason, Status
from harness.core.method import Deadline
from harness.core.problem import Problem
from harness.core.target import Classes, Label
from methods.ce_ocl.answers import cost_of, gave_up, infeasible, proves
from methods.ce_ocl.parameters import Parameters
from methods.milp.supports import supports

if TYPE_CHECKING:
    from methods.ce_ocl.cell_engine import CellEngine
    from methods.ce_ocl.program_engine import ProgramEngine


def refusal(parameters: Parameters) -> str | None:
    """Why parameters do not go with several wanted classes, in a sentence; None where they do."""
    if parameters.diversity != "distance":
        return (
            f"diversity={parameters.diversity} takes one wanted class; set 'desired' to a class, or diversity=distance."
        )
    if parameters.hull == "fallback" or len(parameters.epsilons) > 1:
        instead = "set hull=penalised" if parameters.hull == "fallback" else "give one epsilon"
        return f"several hulls tried in turn take one wanted class; set 'desired' to a class, or {instead}."
    return None


def parts(parameters: Parameters, problem: Problem) -> list[tuple[Parameters, Problem]]:
    """A question for each wanted class, all with the hull of all of them."""
    assert isinstance(problem.target, Classes)
    found = []
    inside = None
    if parameters.manifold:
        inside = problem.reference.loc[supports(problem, parameters.hull_points)]
        parameters = replace(parameters, hull_points="labelled")
    for value in problem.target.values:
        part = replace(problem, target=Label(value))
        if inside is not None:
            part = replace(part, reference=inside, reference_labels=np.full(len(inside), value, dtype=object))
        found.append((parameters, part))
    return found


class AnyClass:
    """An engine for each class; what they find and prove together."""

    def __init__(self, parameters: Parameters, problem: Problem, engines: Sequence[CellEngine | ProgramEngine]) -> None:
        self.engines, self.space = engines, problem.space
        self.prices, self.squared = parameters.alpha * parameters.weights(problem), parameters.distance == "l2sq"

    @contextmanager
    def under(self, parameters: Parameters, problem: Problem) -> Iterator[None]:
        """The same engines under other bounds, actionability, relations and number of changes, for a while."""
        with ExitStack() as stack:
            for engine, part in zip(self.engines, parts(parameters, problem), strict=True):
                stack.enter_context(engine.under(*part))
            yield

    def answers(self, factual: pd.DataFrame, n: int, deadline: Deadline) -> list[Answer]:
        """The best answers, each separated from those before; fewer than ``n`` end with one that has no point."""
        answers: list[Answer] = []
        while len(answers) < n and (not answers or answers[-1].row is not None):
            earlier = [answer.row for answer in answers if answer.row is not None]
            answers.append(self.further(factual, earlier, deadline))
        return answers

    def further(self, factual: pd.DataFrame, earlier: Sequence[dict[str, Any]], deadline: Deadline) -> Answer:
        """The best answer that is separated from earlier ones; each class may take its share of the time left."""
        found = []
        for left in range(len(self.engines), 0, -1):
            share = deadline if left == 1 else Deadline.after(deadline.left / left)
            found.append(self.engines[-left].further(factual, earlier, share))
        return self._best(factual, found, bool(earlier))

    def _best(self, factual: pd.DataFrame, found: Sequence[Answer], further: bool) -> Answer:
        """The cheapest answer, proven by the bounds of all, up to a share of its distance without changes."""
        if all(answer.status is Status.INFEASIBLE for answer in found):
            return infeasible(further)
        best = min(found, key=cost_of)
        if best.row is None or best.objective is None:
            ended = any(answer.reason is Reason.TIME_LIMIT for answer in found)
            return gave_up(Reason.TIME_LIMIT if ended else Reason.FINISHED)
        bound = min(best.objective, *map(_bound, found))
        counted = float((self.space.changed(factual, self.space.frame([best.row])) @ self.prices)[0])
        if proves(bound, best.objective, best.objective - counted, self.squared):
            return replace(best, status=Status.OPTIMAL, reason=Reason.PROOF, bound=bound)
        late = next((answer.reason for answer in found if answer.reason is not Reason.PROOF), best.reason)
        return replace(best, status=Status.FOUND, reason=late, bound=bound if math.isfinite(bound) else None)


def _bound(answer: Answer) -> float:
    """Below which nothing of a class is."""
    if answer.status is Status.INFEASIBLE:
        return math.inf
    return -math.inf if answer.bound is None else answer.bound
