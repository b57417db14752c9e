"""Workers keep every limit by killing, and what one factual does costs no other anything."""

from __future__ import annotations

import ctypes
import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import psutil
import pytest

from harness.core.explanation import Answer, Explanation, Reason, Status
from harness.core.method import Deadline
from harness.core.objective import Objective
from harness.core.problem import Problem
from harness.execution import pool as pools
from harness.execution.pool import Limits, Outcome, Pool
from harness.execution.start import start

LIMITS = Limits(time=10.0, fit=60.0)
BRIEF = Limits(time=1.0, fit=60.0)
COUNT = 2
EVERYBODY = "everybody"


@dataclass(frozen=True)
class Acts:
    """A method that acts up for one factual (or in the fit), and answers the others at random."""

    act: str = ""
    victim: Any = None
    fit_act: str = ""

    def refuses(self, problem: Problem) -> str | None:
        return "it takes nothing at all" if self.act == "refuse" else None

    def objective(self, problem: Problem) -> Objective | None:
        return None

    def fit(self, problem: Problem) -> _Explainer:
        if self.fit_act == "forget":
            return None  # type: ignore[return-value]
        if self.fit_act:
            ACTS[self.fit_act](pd.DataFrame())
        return _Explainer(self, problem)


@dataclass
class _Explainer:
    method: Acts
    problem: Problem

    def explain(self, factual: pd.DataFrame, n: int, rng: np.random.Generator, deadline: Deadline) -> Explanation:
        struck = self.method.victim in (factual.index[0], EVERYBODY)
        if struck and (acted := ACTS[self.method.act](factual)) is not None:
            return acted
        others = self.problem.train.drop(index=factual.index, errors="ignore")
        rows = others.iloc[rng.choice(len(others), n, replace=False)].to_dict("records")
        return Explanation(
            tuple(Answer(Status.FOUND, row) for row in rows), trace=({"pid": os.getpid(), "leader": os.getpgrp()},)
        )


def _fork_and_raise(factual: pd.DataFrame) -> None:
    """The copy ends with the question, as far as the method knows."""
    if os.fork():
        time.sleep(0.5)
    raise LookupError("forked")


def _fork(factual: pd.DataFrame) -> None:
    """Both go on."""
    if os.fork():
        time.sleep(0.5)


def _print(factual: pd.DataFrame) -> None:
    for _ in range(4000):
        print("noise" * 200)


def _native_print(factual: pd.DataFrame) -> None:
    for descriptor in (1, 2):
        os.write(descriptor, b"noise" * 2**20)


def _spin(factual: pd.DataFrame) -> None:
    while True:
        pass


def _hoard(factual: pd.DataFrame) -> None:
    hoard = [np.zeros(2**24) for _ in range(64)]  # 8 GiB of addresses
    raise AssertionError(f"{len(hoard)} blocks were had in spite of the limit")


def _raise(factual: pd.DataFrame) -> None:
    raise LookupError("no such luck")


def _rows(*changes: dict[str, Any]) -> Callable[[pd.DataFrame], Explanation]:
    def answer(factual: pd.DataFrame) -> Explanation:
        origin = factual.iloc[0].to_dict()
        return Explanation(tuple(Answer(Status.FOUND, {**origin, **change}) for change in changes))

    return answer


def _prove(factual: pd.DataFrame) -> Explanation:
    """Optima of a method that claims no objective."""
    (first, second) = (factual.iloc[0].to_dict() | {"income": income} for income in (1.0, 2.0))
    return Explanation(tuple(Answer(Status.OPTIMAL, row, objective=0.0, bound=0.0) for row in (first, second)))


LINGERED = 0.6  # seconds
LEAKED: list[np.ndarray] = []  # of a worker, as long as it lives
ACTS: dict[str, Callable[[pd.DataFrame], Explanation | None]] = {
    "sleep": lambda factual: time.sleep(1000),
    "linger": lambda factual: time.sleep(LINGERED),
    "exit": lambda factual: os._exit(3),
    "abort": lambda factual: os.abort(),
    "segfault": lambda factual: ctypes.string_at(0),
    "spin": _spin,
    "native": lambda factual: ctypes.PyDLL(None).sleep(1000),  # holds the interpreter's lock
    "fork": lambda factual: (os.fork(), time.sleep(1000))[1],
    "sys.exit": lambda factual: sys.exit(0),
    "fork and raise": _fork_and_raise,
    "fork and go on": _fork,
    "odd detail": lambda factual: Explanation((Answer(Status.GAVE_UP, detail=ValueError("no")),) * 2),  # type: ignore[arg-type]
    "odd row": _rows({"income": Decimal("1.5")}, {"income": 1.0}),
    "print": _print,
    "native print": _native_print,
    "leak": lambda factual: LEAKED.append(np.zeros(2**28)),  # 2 GiB of addresses
    "raise": _raise,
    "hoard": _hoard,
    "too few": _rows({"income": 1.0}),
    "NaN": _rows({"income": float("nan")}, {"income": 1.0}),
    "factual": _rows({}, {"income": 1.0}),
    "prove": _prove,
    "columns": _rows({"wage": 1.0}, {"income": 1.0}),
}


@pytest.fixture
def factuals(problem: Problem) -> pd.DataFrame:
    return problem.train.loc[~problem.valid(problem.train)].iloc[:3]


def seed(factual: Any) -> tuple[int, ...]:
    return (0, 1, int(factual or 0))


def explain(
    method: Acts, problem: Problem, factuals: pd.DataFrame, limits: Limits = LIMITS, jobs: int = 1
) -> list[Outcome]:
    return list(Pool().explain(method, lambda _: problem, factuals, COUNT, seed, limits, jobs))


def statuses(outcome: Outcome) -> set[tuple[Status, Reason]]:
    assert len(outcome.explanation.answers) == COUNT
    return {(answer.status, answer.reason) for answer in outcome.explanation.answers}


FOUND = {(Status.FOUND, Reason.FINISHED)}
FAILED = {(Status.FAILED, Reason.CRASH)}


@pytest.mark.parametrize(
    ("act", "limits", "expected", "words"),
    [
        ("sleep", BRIEF, {(Status.GAVE_UP, Reason.TIME_LIMIT)}, "no answer within 1 s"),
        ("exit", LIMITS, FAILED, "ended with code 3"),
        pytest.param(
            *("spin", BRIEF, {(Status.GAVE_UP, Reason.TIME_LIMIT)}, "no answer within 1 s"), marks=pytest.mark.slow
        ),
        ("native", BRIEF, {(Status.GAVE_UP, Reason.TIME_LIMIT)}, "no answer within 1 s"),
        ("fork", BRIEF, {(Status.GAVE_UP, Reason.TIME_LIMIT)}, "no answer within 1 s"),
        pytest.param("abort", LIMITS, FAILED, "ended with code -6", marks=pytest.mark.slow),
        ("segfault", LIMITS, FAILED, "ended with code -11"),
        ("raise", LIMITS, FAILED, "LookupError: no such luck"),
        ("hoard", replace(LIMITS, memory=2.0), {(Status.GAVE_UP, Reason.MEMORY)}, "memory limit"),
        ("too few", LIMITS, FAILED, "asked for 2 answers and gave 1"),
        pytest.param("NaN", LIMITS, FAILED, "missing values", marks=pytest.mark.slow),
        ("factual", LIMITS, FAILED, "handed the factual back"),
        ("prove", LIMITS, FAILED, "objective() returns None; return an Objective there"),
        ("columns", LIMITS, FAILED, "which is no feature"),
        ("odd detail", LIMITS, FAILED, "ValueError('no') as detail, a ValueError, which is no plain value"),
        ("odd row", LIMITS, FAILED, "Decimal('1.5') as income"),
        ("sys.exit", LIMITS, FAILED, "ended with code 0"),
        ("fork and raise", LIMITS, FAILED, "LookupError: forked"),
    ],
)
def test_what_one_factual_does_costs_no_other_anything(
    problem: Problem,
    factuals: pd.DataFrame,
    act: str,
    limits: Limits,
    expected: set[tuple[Status, Reason]],
    words: str,
) -> None:
    """The second of three factuals goes wrong and says how; the first and the third are answered."""
    first, second, third = explain(Acts(act, victim=factuals.index[1]), problem, factuals, limits)
    assert [outcome.factual for outcome in (first, second, third)] == list(factuals.index)
    assert statuses(first) == statuses(third) == FOUND
    assert statuses(second) == expected
    assert words in second.explanation.answers[0].detail


def test_nobody_gets_the_answer_to_anothers_question(problem: Problem, factuals: pd.DataFrame) -> None:
    """Where a method forks, its copy would answer as well; answers are those of a method that does not."""
    plain = explain(Acts(), problem, factuals)
    for method in (
        Acts("fork and raise", factuals.index[0]),
        Acts("fork and go on", factuals.index[0]),
        Acts(fit_act="fork and go on"),
    ):
        forked = explain(method, problem, factuals)
        assert [outcome.explanation.answers for outcome in forked[1:]] == [o.explanation.answers for o in plain[1:]]
        assert all(row["pid"] == row["leader"] for outcome in forked for row in outcome.explanation.trace)


def test_factuals_of_one_problem_are_asked_about_together(problem: Problem) -> None:
    """A worker holds one fit, and who switches between two targets would pay for each switch."""
    other, people = replace(problem), problem.train.iloc[:6]
    turns = dict(zip(people.index, (problem, other) * 3, strict=True))
    outcomes = list(Pool().explain(Acts(), turns.__getitem__, people, COUNT, seed, LIMITS, 1))
    assert [turns[outcome.factual] is problem for outcome in outcomes] == [True] * 3 + [False] * 3


def test_a_killed_worker_is_replaced(problem: Problem, factuals: pd.DataFrame) -> None:
    """The factual after one that hung is answered by another process, the time charged is the limit."""
    first, second, third = explain(Acts("sleep", factuals.index[1]), problem, factuals, BRIEF)
    assert first.explanation.trace != third.explanation.trace
    assert (second.seconds, second.cpu_seconds) == (BRIEF.time, None)
    assert not second.late


def test_seconds_are_those_of_the_question_and_of_the_fit(problem: Problem, factuals: pd.DataFrame) -> None:
    """A method that sleeps for some time takes at least that, and the whole loop bounds what is noted."""
    start = time.monotonic()
    outcomes = explain(Acts("linger", factuals.index[1], fit_act="linger"), problem, factuals)
    whole = time.monotonic() - start
    first, second, third = outcomes
    assert LINGERED <= second.seconds <= whole
    assert 0 < first.seconds < second.seconds
    assert 0 < third.seconds < second.seconds
    assert [outcome.fit_seconds for outcome in outcomes] == [first.fit_seconds] * 3
    assert LINGERED <= first.fit_seconds <= whole - second.seconds


@pytest.mark.parametrize(("limit", "late"), [(0.35, True), (0.75 + LINGERED, False)])
def test_an_answer_after_the_limit_is_late(problem: Problem, factuals: pd.DataFrame, limit: float, late: bool) -> None:
    """It is still taken within the half second of grace, which begins at the limit."""
    limits = replace(BRIEF, time=limit)
    first, second, _ = explain(Acts("linger", factuals.index[1]), problem, factuals, limits)
    assert statuses(second) == FOUND
    assert (first.late, second.late) == (False, late)
    assert (second.seconds > limit) is late


@pytest.mark.parametrize(("limit", "grace"), [(1.0, 0.5), (10.0, 0.5), (60.0, 3.0)])
def test_the_grace_is_a_twentieth_and_at_least_half_a_second(limit: float, grace: float) -> None:
    assert Limits(time=limit).grace == pytest.approx(grace)


@pytest.mark.parametrize("act", ["print", "native print"])
def test_printing_is_thrown_away(
    problem: Problem, factuals: pd.DataFrame, act: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """Megabytes on the standard output neither block the worker nor reach the console."""
    outcomes = explain(Acts(act, victim=factuals.index[0]), problem, factuals)
    assert [statuses(outcome) for outcome in outcomes] == [FOUND] * 3
    assert capfd.readouterr() == ("", "")


def test_a_leak_is_not_handed_on(problem: Problem, factuals: pd.DataFrame) -> None:
    """Memory that a factual leaves behind is charged until the limit is met; then a new worker starts with none."""
    outcomes = explain(Acts("leak", EVERYBODY), problem, factuals, replace(LIMITS, memory=4.0))
    assert [statuses(outcome) for outcome in outcomes] == [FOUND, {(Status.GAVE_UP, Reason.MEMORY)}, FOUND]
    assert outcomes[0].explanation.trace != outcomes[2].explanation.trace


@pytest.mark.parametrize(
    ("act", "limits", "expected", "words"),
    [
        ("raise", LIMITS, FAILED, "LookupError: no such luck"),
        ("exit", LIMITS, FAILED, "ended with code 3 while fitting"),
        ("sleep", replace(LIMITS, fit=1.0), {(Status.GAVE_UP, Reason.TIME_LIMIT)}, "the fit took more than 1 s"),
        ("hoard", replace(LIMITS, memory=2.0), {(Status.GAVE_UP, Reason.MEMORY)}, "memory limit"),
        ("forget", LIMITS, FAILED, "the method's fit returned None; return an object with explain(factual, n, rng"),
    ],
)
def test_a_failed_fit_is_every_factuals_answer(
    problem: Problem,
    factuals: pd.DataFrame,
    act: str,
    limits: Limits,
    expected: set[tuple[Status, Reason]],
    words: str,
) -> None:
    """It is not tried again for the next factual, and the limit is the fit's own."""
    start = time.monotonic()
    outcomes = explain(Acts(fit_act=act), problem, factuals, limits)
    assert time.monotonic() - start < 60
    assert [statuses(outcome) for outcome in outcomes] == [expected] * 3
    assert all(words in outcome.explanation.answers[0].detail for outcome in outcomes)


def test_a_refusal_is_unsupported(problem: Problem, factuals: pd.DataFrame) -> None:
    """Each factual gets the method's own reason."""
    outcomes = explain(Acts("refuse"), problem, factuals)
    assert [statuses(outcome) for outcome in outcomes] == [{(Status.UNSUPPORTED, Reason.REFUSED)}] * 3
    assert outcomes[0].explanation.answers[0].detail == "it takes nothing at all"


def test_jobs_change_no_answer(problem: Problem, factuals: pd.DataFrame) -> None:
    """Two workers give, factual by factual, what one gives."""
    alone, shared = (
        {outcome.factual: outcome.explanation.answers for outcome in explain(Acts(), problem, factuals, jobs=jobs)}
        for jobs in (1, 2)
    )
    assert alone == shared


def test_each_factual_gets_its_own_problem(problem: Problem, factuals: pd.DataFrame) -> None:
    """Factuals with different problems are answered from the right one, fitted anew at each change."""
    halves = [replace(problem, train=problem.train.iloc[rows]) for rows in (slice(10, 12), slice(12, 14))]
    ids = list(factuals.index)
    for outcome in Pool().explain(Acts(), lambda i: halves[ids.index(i) % 2], factuals, COUNT, seed, LIMITS):
        rows = [answer.row for answer in outcome.explanation.answers]
        expected = halves[ids.index(outcome.factual) % 2].train.to_dict("records")
        assert sorted(rows, key=str) == sorted(expected, key=str)


def test_workers_end_with_their_run(problem: Problem, factuals: pd.DataFrame) -> None:
    """All factuals of a run share one, and the same pool's next run gets another."""
    before, pool = _children(), Pool()
    pids = []
    for _ in range(2):
        outcomes = pool.explain(Acts(), lambda _: problem, factuals, COUNT, seed, LIMITS)
        pids.append({outcome.explanation.trace[0]["pid"] for outcome in outcomes})
        assert not _children() - before
    assert [len(found) for found in pids] == [1, 1]
    assert pids[0] != pids[1]


@pytest.mark.parametrize("jobs", [1, 2])
def test_an_interrupted_consumer_leaves_no_process(problem: Problem, factuals: pd.DataFrame, jobs: int) -> None:
    """Closing the iterator, as Ctrl-C does, kills the workers in the middle of their search."""
    before = _children()
    outcomes = Pool().explain(Acts("sleep", factuals.index[1]), lambda _: problem, factuals, COUNT, seed, LIMITS, jobs)
    next(outcomes)
    outcomes.close()  # type: ignore[attr-defined]
    assert _gone(before)


def test_a_worker_imports_beforehand_what_it_is_told(problem: Problem, factuals: pd.DataFrame) -> None:
    """And serves as any other, whether it is there or not."""
    for module in ("json", "no_such_module"):
        spare = start(1, modules=(module,))
        outcomes = list(Pool(spare=spare).explain(Acts("where"), lambda _: problem, factuals, COUNT, seed, LIMITS))
        (pid,) = {outcome.explanation.trace[0]["pid"] for outcome in outcomes}
        assert pid == spare.process.pid


def test_a_consumer_interrupted_at_the_start_leaves_no_process(
    problem: Problem, factuals: pd.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker that was just being started is ended as well."""

    class Slow(pools.Worker):
        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments)
            time.sleep(0.5)

    monkeypatch.setattr(pools, "Worker", Slow)

    def interrupted(_: Any) -> Problem:
        raise KeyboardInterrupt

    before = _children()
    outcomes = Pool().explain(Acts(), interrupted, factuals, COUNT, seed, LIMITS, jobs=2)
    with pytest.raises(KeyboardInterrupt):
        next(outcomes)
    assert _gone(before)


def _children() -> set[int]:
    return {child.pid for child in psutil.Process().children(recursive=True)}


def _gone(before: set[int], patience: float = 10.0) -> bool:
    """Whether every child process started since ``before`` has ended, zombies included, after some patience."""
    end = time.monotonic() + patience
    while (left := _children() - before) and time.monotonic() < end:
        time.sleep(0.05)
    return not left
