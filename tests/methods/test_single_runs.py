"""No single run of HiGHS is a proof: whichever method asked, a run that lies is overruled, or the answer says so."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import highspy
import numpy as np
import pandas as pd
import pytest
from sklearn.neural_network import MLPClassifier
from support.discrete import negatives, posed
from support.plane import SPACE, rows
from support.scorecards import toy, undesired

from harness.core.classifier import Classifier
from harness.core.doubts import ONE_RUN, UNCONFIRMED, UNCONFIRMED_BOUND, doubts, with_doubts
from harness.core.explanation import Answer, Explanation, GroupExplanation, Reason, Status
from harness.core.inputs import space_inputs
from harness.core.method import Deadline
from harness.core.problem import Problem
from harness.core.target import Label
from harness.solvers import cover, highs, program
from harness.solvers.highs import RUNS, Solution
from methods.ce_ocl import CeOcl
from methods.column_generation import ColumnGeneration
from methods.robust import Robust
from methods.scorecard import Scorecard

Found = Explanation | GroupExplanation


def network() -> Problem:
    frame, labels = rows()
    model = MLPClassifier((4,), solver="lbfgs", max_iter=2000, random_state=0).fit(SPACE.encode(frame), labels)
    return Problem(SPACE, Classifier(model, space_inputs(SPACE), ("no", "yes")), frame, labels, Label("yes"))


def person(method: Any, problem: Problem, factual: pd.DataFrame) -> Found:
    explainer = method.fit(problem)
    with doubts() as met:
        return with_doubts(explainer.explain(factual, 1, np.random.default_rng(0), Deadline.after(30.0)), met)


def group(method: Any, problem: Problem, factuals: pd.DataFrame) -> Found:
    explainer = method.fit(problem)
    with doubts() as met:
        return with_doubts(explainer.explain_group(factuals, np.random.default_rng(0), Deadline.after(30.0)), met)


def in_the_plane(method: Any) -> Found:
    problem = network()
    return person(method, problem, problem.train.loc[~problem.valid(problem.train)].iloc[[0]])


def of_a_card(method: Any) -> Found:
    problem = toy(0, Label("yes"))
    return person(method, problem, next(undesired(problem, 1)))


def of_many(method: Any) -> Found:
    problem = posed("linear")
    return group(method, problem, negatives(problem, 9, 0))


ASKED: dict[str, Callable[[], Found]] = {
    "ce_ocl": lambda: in_the_plane(CeOcl("l1", engine="milp")),
    "robust": lambda: in_the_plane(Robust(rho=0.03, algorithm="adversarial")),
    "scorecard": lambda: of_a_card(Scorecard(engine="milp")),
    "columns": lambda: of_many(ColumnGeneration(t_max=1, solver="column_generation")),
    "program": lambda: of_many(ColumnGeneration(t_max=1, solver="milp_paper", change_seconds=0)),
}


def infeasible(solver: Any, truth: Solution) -> Solution:
    return Solution(None, math.inf, math.inf, infeasible=True)


def optimal(solver: Any, truth: Solution) -> Solution:
    """The first point that the solver met is the best one."""
    solver.clearSolver()
    solver.setOptionValue("mip_max_improving_sols", 1)
    solver.run()
    if solver.getInfo().primal_solution_status != 2:
        return truth
    value = solver.getInfo().objective_function_value
    return Solution(np.array(solver.getSolution().col_value), value, value)


def lied(monkeypatch: pytest.MonkeyPatch, lie: Callable[[Any, Solution], Solution]) -> list[int]:
    """Have every first run of a mixed-integer program lie; returns a list that counts the lies."""
    honest, told_lies = highs.read_solution, list[int]()

    def read(solver: Any) -> Solution:
        truth = honest(solver)
        first = solver.getOptionValue("presolve")[1] == "choose"
        whole = highspy.HighsVarType.kInteger in solver.getLp().integrality_
        if not (first and whole):
            return truth
        told_lies.append(1)
        return lie(solver, truth)

    monkeypatch.setattr(highs, "read_solution", read)
    return told_lies


def value(found: Found) -> float | None:
    return found.answers[0].objective if isinstance(found, Explanation) else float(len(found.points))


def status(found: Found) -> Status:
    return found.answers[0].status if isinstance(found, Explanation) else found.status


@pytest.mark.parametrize("lie", [infeasible, optimal])
@pytest.mark.parametrize("name", ASKED)
def test_a_lie_is_overruled(monkeypatch: pytest.MonkeyPatch, name: str, lie: Any) -> None:
    """By two further runs that agree: the answer is that of a solver that tells the truth."""
    honest = ASKED[name]()
    assert status(honest) is Status.OPTIMAL
    lies = lied(monkeypatch, lie)
    found = ASKED[name]()
    assert lies
    assert status(found) is Status.OPTIMAL
    assert value(found) == pytest.approx(value(honest), abs=2e-6)


@pytest.mark.parametrize("lie", [infeasible, optimal])
@pytest.mark.parametrize("name", ASKED)
def test_a_lie_that_nothing_confirms_is_no_proof(monkeypatch: pytest.MonkeyPatch, name: str, lie: Any) -> None:
    """With no time for further runs; the trace says so, and the detail of an answer."""
    honest = ASKED[name]()
    late: Mapping[str, Any] = {"presolve": "off", "time_limit": 0.0}
    for module in (highs, program, cover):
        monkeypatch.setattr(module, "RUNS", (RUNS[0], late))
    lies = lied(monkeypatch, lie)
    found = ASKED[name]()
    assert lies
    assert status(found) in {Status.FOUND, Status.GAVE_UP}
    assert any(step.get("proof") == "unconfirmed" for step in found.trace)
    if isinstance(found, Explanation):
        (answer,) = found.answers
        assert UNCONFIRMED in answer.detail
        assert answer.bound is None or answer.bound <= honest.answers[0].objective + 1e-6  # type: ignore[union-attr]


def cut(solver: Any, truth: Solution) -> Solution:
    """The run ends a little early: with its point, and a bound below."""
    return truth if truth.x is None else Solution(truth.x, truth.objective, truth.objective - 0.01)


@pytest.mark.parametrize("name", ASKED)
def test_a_bound_of_one_run_is_unconfirmed(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Where every first run is cut short; a bound that is given with what is not proven is said to be that run's."""
    lies = lied(monkeypatch, cut)
    found = ASKED[name]()
    assert lies
    given = found.answers[0] if isinstance(found, Explanation) else found
    doubted = any(step.get("of") == ONE_RUN for step in found.trace)
    assert doubted == (given.status in {Status.FOUND, Status.GAVE_UP} and given.bound is not None)
    if isinstance(found, Explanation):
        (answer,) = found.answers
        assert (UNCONFIRMED_BOUND in answer.detail) == doubted
        assert UNCONFIRMED not in answer.detail


def test_a_bound_that_nothing_gives_is_not_doubted() -> None:
    """A proof has none to doubt, an answer without a bound neither; an earlier question's is not this one's."""
    row = {"a": 1}
    proven = Answer(Status.OPTIMAL, row, Reason.PROOF, 1.0, 1.0)
    free = Answer(Status.FOUND, row, Reason.TIME_LIMIT, 1.0)
    bounded = Answer(Status.FOUND, row, Reason.TIME_LIMIT, 1.0, 0.5, detail="so far")
    for answer, expected in ((proven, ""), (free, ""), (bounded, f"so far; {UNCONFIRMED_BOUND}")):
        found = with_doubts(Explanation((answer,)), [ONE_RUN, ONE_RUN])
        assert found.answers[0].detail == expected
        assert len(found.trace) == bool(expected)
    both = with_doubts(Explanation((bounded,)), ["a claim", ONE_RUN])
    assert both.answers[0].detail == f"so far; {UNCONFIRMED}; {UNCONFIRMED_BOUND}"
