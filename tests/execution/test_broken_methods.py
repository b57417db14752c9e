"""A method whose ``refuses`` or ``objective`` hangs or crashes costs its own runs alone; its claim is kept to."""

from __future__ import annotations

import ctypes
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from support.groups import LIMITS, POINTS, SPACE, problem, question, started
from support.sweep import runner

from harness.core.explanation import Answer, GroupExplanation, Reason, Status
from harness.core.method import Deadline
from harness.core.objective import Limit, Objective, Term
from harness.core.problem import Problem
from harness.evaluation.checker import verdicts
from harness.execution.experiment import Workers, entropy, run, run_groups
from harness.execution.pool import Limits, Pool
from harness.store.run import StoredRun
from methods.column_generation.method import ColumnGeneration
from methods.nearest import Nearest

ACTS: dict[str, Callable[[], object]] = {
    "": lambda: None,
    "hang": lambda: time.sleep(1000),
    "exit": lambda: os._exit(3),
    "segfault": lambda: ctypes.string_at(0),
    "raise": lambda: 1 / 0,
}
BRIEF = Limits(time=10.0, fit=2.0)
COMPILING = Limits(time=30.0, fit=300.0)  # the first fit of a machine compiles


@dataclass(frozen=True)
class Broken(Nearest):
    """``Nearest``, but for what it does when asked whether it refuses, or what it claims."""

    refuse_act: str = ""
    claim_act: str = ""

    def refuses(self, problem: Problem) -> str | None:
        ACTS[self.refuse_act]()
        return None

    def objective(self, problem: Problem) -> Objective | None:
        ACTS[self.claim_act]()
        return super().objective(problem)


@dataclass(frozen=True)
class Reporting(Nearest):
    """Says by whom it is asked."""

    def refuses(self, problem: Problem) -> str | None:
        return f"asked in process {os.getpid()}"


def outcomes(method: Any, limits: Limits = BRIEF) -> list[Answer]:
    task = question()
    found = Pool().explain(method, task.problem, task.factuals.iloc[:2], 1, entropy(0), limits)
    return [answer for outcome in found for answer in outcome.explanation.answers]


@pytest.mark.parametrize("place", ["refuse_act", pytest.param("claim_act", marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    ("act", "status", "reason", "words"),
    [
        ("hang", Status.GAVE_UP, Reason.TIME_LIMIT, "the fit took more than 2 s"),
        ("exit", Status.FAILED, Reason.CRASH, "ended with code 3"),
        ("segfault", Status.FAILED, Reason.CRASH, "ended with code -11"),
        ("raise", Status.FAILED, Reason.CRASH, "ZeroDivisionError"),
    ],
)
def test_a_broken_refusal_or_claim_costs_its_own_answers(
    place: str, act: str, status: Status, reason: Reason, words: str
) -> None:
    """Within the limit of a fit; the next run is answered."""
    for answer in outcomes(Broken(**{place: act})):
        assert (answer.status, answer.reason) == (status, reason), answer.detail
        assert words in answer.detail
    assert {answer.status for answer in outcomes(Broken())} == {Status.FOUND}


def test_refusals_are_asked_of_workers_only(tmp_path: Path) -> None:
    """No process of ours runs a method's code; its refusal is stored as the worker gave it."""
    task, method = question(), Reporting()
    stored = started(tmp_path, task, method)
    run(stored, task, method, 1, 0, Workers(Pool(), LIMITS))
    details = {row["detail"] for row in stored.rows()}
    assert len(details) == 1
    assert f"asked in process {os.getpid()}" not in details
    assert "asked in process" in details.pop()
    assert stored.meta["setup"]["seconds"] > 0.1  # a process was started for it
    assert stored.meta["setup"]["cpu_seconds"] > 0.1


def test_a_claim_is_stored_once_a_worker_has_stated_it(tmp_path: Path) -> None:
    task, method = question(), ColumnGeneration(t_max=2)
    stored = started(tmp_path, task, method)
    assert stored.objective is None
    run(stored, task, method, 1, 0, Workers(Pool(), COMPILING))
    assert StoredRun(stored.path).objective == method.objective(problem())


@dataclass(frozen=True)
class Greedy:
    """A group method of somebody else: one point for everybody, whatever has to change, and a limit that it states."""

    most: int

    def refuses(self, problem: Problem) -> str | None:
        return None

    def objective(self, problem: Problem) -> Objective:
        return Objective((), limits=(Limit(Term("l0"), self.most),))

    def fit(self, problem: Problem) -> Greedy:
        return self

    def explain_group(self, factuals: pd.DataFrame, rng: Any, deadline: Deadline) -> GroupExplanation:
        row = POINTS.loc[problem().valid(POINTS)].iloc[0].to_dict()
        different = (factuals != pd.Series(row)).any()
        changed = (tuple(name for name in SPACE.names if different[name]),)
        return GroupExplanation((Answer(Status.FOUND, row),), dict.fromkeys(factuals.index, 0), changed=changed)


def test_a_group_method_is_held_to_the_limit_that_it_states(tmp_path: Path) -> None:
    """Whatever its parameters are called: all factuals of a point together may change so many features."""
    task = question()
    words = {}
    for most in (1, len(SPACE.names)):
        stored = started(tmp_path / str(most), task, Greedy(most))
        run_groups(stored, task, Greedy(most), True, 0, Workers(Pool(), LIMITS))
        assert stored.objective == Objective((), limits=(Limit(Term("l0"), most),))
        words[most] = {verdict["verdict"] for verdict in verdicts(stored)}
    assert "beyond its limits" in words[1]  # of the others, a feature that may not change did
    assert "beyond its limits" not in words[len(SPACE.names)]


def test_the_limits_of_a_group_come_without_what_is_minimised(tmp_path: Path) -> None:
    task, method = question(), ColumnGeneration(t_max=2)
    stored = started(tmp_path, task, method)
    run_groups(stored, task, method, True, 0, Workers(Pool(), COMPILING))
    assert stored.objective == replace(method.objective(problem()), terms=())
    assert {verdict["verdict"] for verdict in verdicts(stored)} <= {"accepted", "none"}


@pytest.mark.slow
def test_a_sweep_survives_a_method_that_hangs_when_asked_whether_it_refuses(tmp_path: Path) -> None:
    """Its own run has no answer, and says why; the other is answered."""
    (tmp_path / "broken.py").write_text(
        "import time\nfrom dataclasses import dataclass\nfrom methods.nearest import Nearest\n\n\n"
        "@dataclass(frozen=True)\nclass Broken(Nearest):\n    def refuses(self, problem):\n        time.sleep(1000)\n"
    )
    choices = tmp_path / "conf" / "method"
    choices.mkdir(parents=True)
    (choices / "broken.yaml").write_text("_target_: broken.Broken\n")
    sweep = runner(tmp_path)
    ended = sweep("hydra.searchpath=[conf]", "-m", "method=broken,nearest", "n_factuals=2", "fit_time_limit=3")
    assert ended.returncode == 0, ended.stderr
    assert "compas / lr: broken answers nothing: time limit, the fit took more than 3 s" in ended.stdout
    assert "compas/lr/nearest  done: 2 factuals, coverage 1.00" in ended.stderr
