"""CE-OCL's answers to one factual: the engine that finds them, and why where there are none."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from numba.core import event

from harness.core.conflict import conflict_text, equations_of, groups_of, irreducible, lifted
from harness.core.errors import UnsupportedError
from harness.core.explanation import Explanation, Status
from harness.core.method import Deadline
from harness.core.problem import Problem
from harness.core.target import Classes, Label
from methods.ce_ocl import any_class
from methods.ce_ocl.cell_engine import CellEngine
from methods.ce_ocl.formulation import blocking, check, searched
from methods.ce_ocl.parameters import Parameters

if TYPE_CHECKING:
    from methods.ce_ocl.program_engine import ProgramEngine

MANIFOLD = "data manifold"  # as a constraint group


def refusal(parameters: Parameters, problem: Problem) -> str | None:
    """Why CE-OCL with these parameters cannot take the problem, in a sentence; None where it can."""
    if problem.classifier.opaque:
        return problem.classifier.opaque
    if parameters.causality and not problem.equations:
        return (
            "causality=true keeps to structural equations, and the data have none; give the data's 'causality', such "
            "as {debt: {parents: [income], learn: mlp_regressor}}, or leave causality out of the method."
        )
    if isinstance(problem.target, Classes):
        each = any_class.parts(parameters, problem)
        return any_class.refusal(parameters) or next(filter(None, (refusal(*part) for part in each)), None)
    if not isinstance(problem.target, Label) and len(problem.classifier.classes) > 2:
        return "a probability of one of several classes cannot be embedded; set 'desired' to a class."
    try:
        check(parameters, problem)
    except UnsupportedError as fault:
        return str(fault)
    return None


def start(parameters: Parameters, problem: Problem) -> CellEngine | ProgramEngine | any_class.AnyClass:
    """The engine that answers."""
    if isinstance(problem.target, Classes):
        engines = [_engine(*part) for part in any_class.parts(parameters, problem)]
        return any_class.AnyClass(parameters, problem, engines)
    return _engine(parameters, problem)


def _engine(parameters: Parameters, problem: Problem) -> CellEngine | ProgramEngine:
    """The engine of a question about one class, or a number."""
    if searched(parameters, problem):
        try:
            return CellEngine(parameters, problem)
        except UnsupportedError:
            if parameters.engine == "search" or blocking("program", parameters, problem) is not None:
                raise
    from methods.ce_ocl.program_engine import ProgramEngine  # slow: kernels that trees need for hulls alone

    plain = None
    if parameters.soft:
        plain = _engine(replace(parameters, hull="none", diversity="distance"), problem)
    return ProgramEngine(parameters, problem, plain)


class CeOclExplainer:
    """An engine, and the reason where it finds that there is no counterfactual."""

    def __init__(self, method: Parameters, problem: Problem) -> None:
        self.method, self.problem = method, problem
        self.engine = self._started(method, problem)

    def _started(self, method: Parameters, problem: Problem) -> CellEngine | ProgramEngine | any_class.AnyClass:
        """The engine of a question; keeps how many seconds it took to build, beside kernels, which come only once."""
        began, compiling = time.monotonic(), list[float]()
        with event.install_timer("numba:compile", compiling.append):
            engine = start(method, problem)
        self.building = time.monotonic() - began - sum(compiling)
        return engine

    def explain(self, factual: pd.DataFrame, n: int, rng: np.random.Generator, deadline: Deadline) -> Explanation:
        deadline = deadline.sooner()
        answers = self.engine.answers(factual, n, deadline)
        conflict: tuple[str, ...] = ()
        if answers[0].status is Status.INFEASIBLE:
            conflict = self._conflict(factual, deadline)
            if conflict:
                detail = f"{answers[0].detail}; these cannot hold together: {conflict_text(conflict)}"
                answers[0] = replace(answers[0], detail=detail)
        return Explanation(tuple(answers), conflict).padded(n, answers[-1])

    def _conflict(self, factual: pd.DataFrame, deadline: Deadline) -> tuple[str, ...]:
        """Constraint groups that leave no valid point, as few as time allows.

        A group without which another engine is needed is not asked about where the last one took too long to build.
        """
        most = f"max_changes={self.method.max_changes}"

        def infeasible(without: frozenset[str], until: Deadline) -> bool | None:
            method = self.method
            if most in without:
                method = replace(method, max_changes=None)
            if MANIFOLD in without:
                method = replace(method, **self.method.free)
            problem = lifted(self.problem, without)
            built, engine = method.manifold == self.method.manifold, self.engine
            built = built and len(problem.equations) == len(self.problem.equations)
            if built:
                with engine.under(method, problem):
                    answer = engine.answers(factual, 1, until)[0]
            elif self.building > until.left:  # no deadline interrupts building
                return None
            else:
                answer = self._started(method, problem).answers(factual, 1, until)[0]
            return None if answer.status is Status.GAVE_UP else answer.status is Status.INFEASIBLE

        groups = [*groups_of(self.problem)]
        groups += [] if self.method.max_changes is None else [most]
        groups += self.problem.space.constraints
        groups += equations_of(self.problem) if self.method.causality else []
        groups += [MANIFOLD] if self.method.manifold and not self.method.soft else []
        return irreducible(groups, infeasible, deadline)
