"""No explanation compiles: whatever kernels it can reach are there once a method is fitted."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.kernels import forget, signatures

from harness.core.method import Deadline, Explainer, GroupExplainer
from harness.core.problem import Problem
from harness.execution.clocks import CompileClock
from methods.ce_ocl import CeOcl
from methods.robust import Robust
from methods.scorecard import Scorecard
from methods.warming import QUESTIONS, Question

ROOT = Path(__file__).parents[2]
LIMIT = 5.0  # the default, of a question
ASKED = 4
OPTIONS = (
    Question("few changes", CeOcl(max_changes=2, alpha=10, count="columns"), "tree"),
    Question("squares", CeOcl("l2sq"), "forest"),
    Question("many, by a program", CeOcl("linf"), "forest"),
    Question("a soft hull", CeOcl(hull="penalised"), "forest"),
    Question("a hull first", CeOcl(hull="fallback", max_changes=3), "linear"),
    Question("one kept far from another", CeOcl(diversity="features"), "forest"),
    Question("a network", CeOcl(), "network"),
    Question("by values", Scorecard(diversity=("values",), objectives={"changes": 1.0, "proximity": 1.0}), "scorecard"),
    Question("by rank", Scorecard(priorities={"proximity": 2, "closeness": 1}), "scorecard"),
    Question("clipped boxes", Robust(clip=True, rho=0.2), "forest"),
    Question("balls, few changes", Robust(rho=0.2, norm="l2", alpha=0.1, max_changes=2), "forest"),
    Question("no region", Robust(rho=0), "tree"),
    Question("a whole region", Robust(rho=1, unperturbed=("a", "b")), "tree"),
    Question("squares and a region", Robust(distance="l2sq"), "forest"),
    Question("the greatest move", Robust(distance="linf"), "tree"),
    Question("a region in a hull", Robust(hull="hard", rho=0.01), "tree"),
    Question("by leaves", Robust(algorithm="leaf", norm="l2", rho=0.01), "tree"),
    Question("balls by a network", Robust(norm="l2", distance="linf"), "network", "real"),
    Question("integers by a network", Robust(rho=0.02), "network"),
)
EVERY = pytest.mark.parametrize("question", [*QUESTIONS, *OPTIONS], ids=lambda question: question.title)


def asked(question: Question, explainer: Explainer, problem: Problem) -> list[list[str]]:
    """The statuses of the first questions, two answers each, and of a group."""
    factuals = problem.train.loc[~problem.valid(problem.train)].iloc[:ASKED]
    found = []
    for place in range(len(factuals)):
        rng = np.random.default_rng(place)
        explanation = explainer.explain(factuals.iloc[[place]].copy(), 2, rng, Deadline.after(LIMIT))
        found.append([str(answer.status) for answer in explanation.answers])
    if isinstance(explainer, GroupExplainer):
        group = explainer.explain_group(factuals, np.random.default_rng(0), Deadline.after(LIMIT))
        found.append([str(group.status)])
    return found


@EVERY
def test_an_explanation_compiles_nothing(question: Question) -> None:
    forget()
    problem = replace(question.problem)
    assert question.method.refuses(problem) is None
    explainer = question.method.fit(problem)
    before = signatures()
    asked(question, explainer, problem)
    assert signatures() - before == set()


@pytest.mark.slow
def test_a_first_run_answers_as_the_second(tmp_path: Path) -> None:
    """Under the default limit, with no kernel compiled yet and with all of them."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path), "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'tests'}"}
    command = [sys.executable, __file__]
    cold, warm = (
        json.loads(
            subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout.splitlines()[-1]
        )
        for _ in range(2)
    )
    assert warm["compiled"] == 0 < cold["compiled"]
    assert cold["statuses"] == warm["statuses"]


def test_warm_reaches_every_module_with_kernels() -> None:
    for question in QUESTIONS:
        question.method.fit(question.problem)
    folders = {"harness", "methods"}
    paths = {path for folder in folders for path in (ROOT / folder).rglob("*.py") if "\n@njit" in path.read_text()}
    written = {path.relative_to(ROOT).as_posix().removesuffix(".py").replace("/", ".") for path in paths}
    called = {name.rpartition(".")[0] for name, _ in signatures()}
    # Called by kernels alone:
    within = {"harness.core.compiling", "harness.solvers.heap", "harness.solvers.simplex"}
    within |= {"methods.cells.additive", "methods.cells.masks"}
    assert written - within == called - within


def statuses() -> dict[str, Any]:
    """Of every question, and how many seconds numba compiled for."""
    clock, found = CompileClock(), {}
    for question in [*QUESTIONS, *OPTIONS]:
        question.method.refuses(question.problem)
        found[question.title] = asked(question, question.method.fit(question.problem), question.problem)
    return {"statuses": found, "compiled": clock.seconds}


if __name__ == "__main__":
    print(json.dumps(statuses()))
