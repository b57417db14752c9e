"""What a worker answers, asked in this process, with clocks that are set by hand."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import psutil
import pytest

from harness.core.doubts import doubt
from harness.core.errors import HarnessError
from harness.core.explanation import Answer, Explanation, GroupExplanation, Reason, Status
from harness.core.method import Deadline
from harness.core.objective import Objective, Term
from harness.core.problem import Problem
from harness.execution import worker
from harness.execution.messages import (
    ExplainReply,
    ExplainRequest,
    FitRequest,
    FitStarted,
    Fitted,
    GroupReply,
    GroupRequest,
)

ROOT = Path(__file__).parents[2]


@dataclass
class Clocks:
    """Wall-clock, processor and compiling seconds, which go on only as they are told."""

    wall: float = 100.0
    processor: float = 7.0
    seconds: float = 1.5  # that numba compiled for

    def spend(self, wall: float, processor: float = 0.0, compiling: float = 0.0) -> None:
        self.wall += wall
        self.processor += processor
        self.seconds += compiling


@pytest.fixture
def clocks(monkeypatch: pytest.MonkeyPatch) -> Clocks:
    known = Clocks()
    monkeypatch.setattr(worker.time, "perf_counter", lambda: known.wall)
    monkeypatch.setattr(worker, "processor_seconds", lambda: known.processor)
    monkeypatch.setattr(worker, "CompileClock", lambda begun: known)
    monkeypatch.setattr(worker, "_limit_memory", lambda gibibytes: None)
    return known


@dataclass(frozen=True)
class Acts:
    """A method of which each step does what it is told."""

    clocks: Clocks
    refused: str | None = None
    fits: Callable[[], Any] = lambda: "fitted"

    def refuses(self, problem: Problem) -> str | None:
        self.clocks.spend(1.0)
        return self.refused

    def fit(self, problem: Problem) -> Any:
        self.clocks.spend(5.0, compiling=3.0)
        return self.fits()

    def objective(self, problem: Problem) -> Objective:
        self.clocks.spend(20.0)
        return Objective((Term("l1"),))


def raising(fault: BaseException) -> Callable[..., Any]:
    def act(*_: Any) -> Any:
        raise fault

    return act


def test_a_fit_is_charged_what_it_takes(clocks: Clocks, problem: Problem) -> None:
    """1 s to refuse and 5 s to fit, 3 of them compiling; not the claim's 20 s."""
    explainer, fitted = worker._fit(FitRequest(Acts(clocks), problem, None, 60.0), clocks)  # type: ignore[arg-type]
    assert (explainer, fitted) == ("fitted", Fitted(3.0, claim=Objective((Term("l1"),)).stored()))


@pytest.mark.parametrize(
    ("method", "seconds", "refusal", "words", "reason"),
    [
        ({"refused": "not this"}, 1.0, "not this", None, Reason.CRASH),
        ({"fits": raising(HarnessError("nor this"))}, 3.0, "nor this", None, Reason.CRASH),
        ({"fits": raising(MemoryError())}, 3.0, None, "the memory limit was reached while fitting", Reason.MEMORY),
        ({"fits": raising(LookupError("no luck"))}, 3.0, None, "LookupError: no luck", Reason.CRASH),
    ],
)
def test_a_fit_that_fails_says_why(
    clocks: Clocks, problem: Problem, method: dict[str, Any], seconds: float, refusal: str | None, words: str | None,
    reason: Reason,
) -> None:  # fmt: skip
    """And what it took; nothing is claimed."""
    request = FitRequest(Acts(clocks, **method), problem, None, 60.0)
    explainer, fitted = worker._fit(request, clocks)  # type: ignore[arg-type]
    assert explainer is None
    assert (fitted.seconds, fitted.refusal, fitted.reason, fitted.claim) == (seconds, refusal, reason, None)
    assert fitted.fault is None if words is None else words in (fitted.fault or "")


@dataclass
class Explains:
    """An explainer that spends time and does what it is told, and notes what it was asked with."""

    clocks: Clocks
    act: Callable[[pd.DataFrame], Any]
    draws: list[float] = field(default_factory=list)
    left: list[float] = field(default_factory=list)

    def explain(self, factual: pd.DataFrame, n: int, rng: np.random.Generator, deadline: Deadline) -> Any:
        self.clocks.spend(2.0, processor=1.25)
        self.draws.append(float(rng.random()))
        self.left.append(deadline.left)
        factual["income"] = -1.0  # its own copy
        return self.act(factual)


class ExplainsGroups(Explains):
    def explain_group(self, factuals: pd.DataFrame, rng: np.random.Generator, deadline: Deadline) -> Any:
        return self.explain(factuals, 0, rng, deadline)


def rows(problem: Problem, *places: int) -> Explanation:
    return Explanation(tuple(Answer(Status.FOUND, row) for row in problem.train.iloc[list(places)].to_dict("records")))


@pytest.mark.parametrize(
    ("act", "status", "reason", "words"),
    [
        (None, Status.FOUND, Reason.FINISHED, ""),
        (lambda _: Explanation(()), Status.FAILED, Reason.CRASH, "asked for 2 answers and gave 0"),
        (raising(MemoryError()), Status.GAVE_UP, Reason.MEMORY, "the memory limit was reached"),
        (raising(KeyError("job")), Status.FAILED, Reason.CRASH, "KeyError: 'job'"),
    ],
)
def test_an_answer_and_what_it_took(
    clocks: Clocks, problem: Problem, act: Any, status: Status, reason: Reason, words: str
) -> None:
    """As many as asked for, whatever happens; numbers are drawn by the question's own seed."""
    explainer = Explains(clocks, act or (lambda _: rows(problem, 1, 2)))
    request = ExplainRequest(problem.train.iloc[[0]], 2, (3, 4), 60.0)
    reply = worker._timed(explainer, problem, request, clocks)  # type: ignore[arg-type]
    assert isinstance(reply, ExplainReply)
    assert (reply.seconds, reply.cpu_seconds, reply.last) == (2.0, 1.25, reason is Reason.MEMORY)
    assert [(answer.status, answer.reason) for answer in reply.explanation.answers] == [(status, reason)] * 2
    assert all(words in answer.detail for answer in reply.explanation.answers)
    assert explainer.draws == [np.random.default_rng(np.random.SeedSequence((3, 4))).random()]
    assert 55 < explainer.left[0] <= 60
    assert request.factual["income"].iloc[0] == problem.train["income"].iloc[0]


@pytest.mark.parametrize(
    ("act", "status", "reason", "words"),
    [
        (None, Status.FOUND, Reason.FINISHED, ""),
        (lambda _: GroupExplanation((), {"stranger": 0}), Status.FAILED, Reason.CRASH, "not in the group"),
        (lambda _: GroupExplanation((), None), Status.FAILED, Reason.CRASH, "TypeError"),  # type: ignore[arg-type]
        (raising(HarnessError("too many")), Status.UNSUPPORTED, Reason.REFUSED, "too many"),
        (raising(MemoryError()), Status.GAVE_UP, Reason.MEMORY, "the memory limit was reached"),
        (raising(KeyError("job")), Status.FAILED, Reason.CRASH, "KeyError: 'job'"),
    ],
)
def test_a_groups_answer_and_what_it_took(
    clocks: Clocks, problem: Problem, act: Any, status: Status, reason: Reason, words: str
) -> None:
    nobody = GroupExplanation(())
    explainer = ExplainsGroups(clocks, act or (lambda _: nobody))
    request = GroupRequest(problem.train.iloc[:3], (3, 4), 60.0)
    reply = worker._timed(explainer, problem, request, clocks)  # type: ignore[arg-type]
    assert isinstance(reply, GroupReply)
    assert (reply.seconds, reply.cpu_seconds, reply.last) == (2.0, 1.25, reason is Reason.MEMORY)
    assert (reply.status, reply.reason) == (status, reason)
    assert words in reply.detail
    assert reply.explanation == (None if act else nobody)
    assert explainer.draws == [np.random.default_rng(np.random.SeedSequence((3, 4))).random()]
    assert request.factuals["income"].tolist() == problem.train["income"].iloc[:3].tolist()


@pytest.mark.parametrize("kind", [Explains, ExplainsGroups])
def test_seconds_of_a_question_are_without_those_that_numba_compiled_for(
    kind: type[Explains], clocks: Clocks, problem: Problem
) -> None:
    """As of a fit, whoever's kernels these are: two by the method's own doing, three before it, five for numba."""

    def act(factuals: pd.DataFrame) -> Any:
        clocks.spend(8.0, compiling=5.0)
        return rows(problem, 1) if kind is Explains else GroupExplanation(())

    one, several = ExplainRequest(problem.train.iloc[[0]], 1, (0,), 60.0), GroupRequest(problem.train, (0,), 60.0)
    asked: Any = one if kind is Explains else several
    assert worker._timed(kind(clocks, act), problem, asked, clocks).seconds == 5.0  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", [Explains, ExplainsGroups])
def test_who_draws_from_the_process_draws_by_the_questions_seed(
    kind: type[Explains], clocks: Clocks, problem: Problem
) -> None:
    """Whatever was drawn before; another seed, other numbers."""
    drawn: list[tuple[float, float]] = []

    def act(factuals: pd.DataFrame) -> Any:
        drawn.append((random.random(), np.random.random()))  # noqa: NPY002
        return rows(problem, 1) if kind is Explains else GroupExplanation(())

    explainer = kind(clocks, act)
    for seed in ((1, 2), (1, 2), (1, 3)):
        one, several = ExplainRequest(problem.train.iloc[[0]], 1, seed, 60.0), GroupRequest(problem.train, seed, 60.0)
        worker._timed(explainer, problem, one if kind is Explains else several, clocks)  # type: ignore[arg-type]
    first, again, other = drawn
    assert first == again
    assert first[0] != other[0]
    assert first[1] != other[1]


def test_a_fit_draws_from_the_process_by_the_runs_seed(clocks: Clocks, problem: Problem) -> None:
    drawn: list[tuple[float, float]] = []
    method: Any = Acts(clocks, fits=lambda: drawn.append((random.random(), np.random.random())))  # noqa: NPY002
    for seed in ((1,), (1,), (2,)):
        worker._fit(FitRequest(method, problem, None, 60.0, seed), clocks)  # type: ignore[arg-type]
    first, again, other = drawn
    assert first == again
    assert first[0] != other[0]
    assert first[1] != other[1]


@pytest.mark.parametrize("kind", [Explains, ExplainsGroups])
def test_what_an_explainer_has_running_elsewhere_is_told(
    kind: type[Explains], clocks: Clocks, problem: Problem
) -> None:
    """Its processor seconds are added, those that it spent on the model are apart, and a lost one is the last."""

    def act(factuals: pd.DataFrame) -> Any:
        explainer.cpu_seconds, explainer.model_seconds, explainer.lost = 13.0, 4.5, True
        return rows(problem, 1) if kind is Explains else GroupExplanation(())

    explainer: Any = kind(clocks, act)
    explainer.cpu_seconds, explainer.model_seconds, explainer.lost = 10.0, 4.0, False
    one, several = ExplainRequest(problem.train.iloc[[0]], 1, (0,), 60.0), GroupRequest(problem.train, (0,), 60.0)
    reply = worker._timed(explainer, problem, one if kind is Explains else several, clocks)
    assert (reply.cpu_seconds, reply.model_seconds, reply.last) == (4.25, 0.5, True)


@pytest.mark.parametrize("times", [0, 1, 2])
def test_doubts_of_a_solver_are_on_the_trace(clocks: Clocks, problem: Problem, times: int) -> None:
    """Of this question alone, each once, behind what the method put there; of a group's as of one person's."""
    kept: dict[str, Any] = {"trace": ({"step": 1},)}

    def act(factuals: pd.DataFrame) -> Any:
        for _ in range(times):
            doubt("a claim")
        found = rows(problem, 1) if len(factuals) == 1 else GroupExplanation(())
        return replace(found, **kept)

    explainer = ExplainsGroups(clocks, act)
    doubt("an earlier question's")
    told = {"proof": "unconfirmed", "of": "a claim"}
    for _ in range(2):
        reply = worker._explain(explainer, problem, ExplainRequest(problem.train.iloc[[0]], 1, (3,), 60.0))
        group = worker._explain_group(explainer, problem, GroupRequest(problem.train.iloc[:3], (3,), 60.0))
        for found in (reply.explanation, group.explanation):
            assert found is not None
            assert found.trace == ({"step": 1}, *[told] * min(times, 1))


def test_who_explains_no_groups_is_not_asked(clocks: Clocks, problem: Problem) -> None:
    reply = worker._explain_group(
        Explains(clocks, raising(KeyError())), problem, GroupRequest(problem.train, (0,), 1.0)
    )
    assert (reply.explanation, reply.seconds, reply.status) == (None, 0.0, Status.UNSUPPORTED)
    assert (reply.reason, reply.detail[:32]) == (Reason.REFUSED, "this method explains no groups; ")


class Messages:
    """A connection whose other end sends some messages, and then closes."""

    def __init__(self, *messages: Any) -> None:
        self.messages, self.sent = list(messages), list[Any]()

    def send(self, message: Any) -> None:
        self.sent.append(message)

    def recv(self) -> Any:
        if not self.messages:
            raise EOFError
        message = self.messages.pop(0)
        return message() if callable(message) else message


def test_messages_are_answered_until_the_end(clocks: Clocks, problem: Problem) -> None:
    """One that cannot be read is a failed fit; without a fit nothing is answered; the last fit counts."""
    explainer = ExplainsGroups(
        clocks, lambda factuals: rows(problem, 1) if len(factuals) == 1 else GroupExplanation(())
    )
    one, group = ExplainRequest(problem.train.iloc[[0]], 1, (0,), 1.0), GroupRequest(problem.train[:2], (0,), 1.0)

    def imported() -> FitRequest:
        clocks.spend(0.0, compiling=0.25)
        return FitRequest(Acts(clocks, fits=lambda: explainer), problem, None, 60.0)

    refused = FitRequest(Acts(clocks, "not this"), problem, None, 60.0)
    short = Messages(raising(MemoryError()))
    worker.serve(short)  # type: ignore[arg-type]
    assert short.sent[0].reason is Reason.MEMORY
    line = Messages(raising(ModuleNotFoundError("no module")), one, imported, one, group, refused, one)
    worker.serve(line)  # type: ignore[arg-type]
    kinds = [type(message) for message in line.sent]
    assert kinds == [Fitted, FitStarted, Fitted, ExplainReply, GroupReply, FitStarted, Fitted]
    unread, _, fitted, reply, grouped, _, last = line.sent
    assert (unread.seconds, unread.cpu_seconds, unread.reason) == (0.0, 7.0, Reason.CRASH)
    assert "no module" in unread.fault
    assert (fitted.seconds, fitted.compile_seconds, fitted.cpu_seconds) == (3.0, 3.25, 7.0)
    assert reply.explanation == rows(problem, 1)
    assert (grouped.explanation, grouped.status) == (GroupExplanation(()), Status.FOUND)
    assert (last.refusal, last.compile_seconds, last.cpu_seconds) == ("not this", 0.0, 9.5)


@pytest.mark.parametrize(("gibibytes", "limit"), [(None, None), (2, 2**31), (0.5, 2**29), (4096, None)])
@pytest.mark.parametrize("most", [2**40, worker.resource.RLIM_INFINITY])
def test_memory_is_limited_in_gibibytes(
    gibibytes: float | None, limit: int | None, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of data; the hard limit stays, and is not exceeded, which no process may."""
    kept: list[Any] = []
    monkeypatch.setattr(worker.resource, "getrlimit", lambda which: (5, most))
    monkeypatch.setattr(worker.resource, "setrlimit", lambda *given: kept.append(given))
    worker._limit_memory(gibibytes)
    whole = 2**42 if gibibytes == 4096 and most == worker.resource.RLIM_INFINITY else most
    assert kept == [(worker.resource.RLIMIT_DATA, (whole if limit is None else limit, most))]


@pytest.mark.skipif(sys.platform != "linux", reason="Linux alone does this")
def test_a_worker_ends_with_its_parent() -> None:
    child = "from harness.core.processes import die_with_parent; die_with_parent(); print(1, flush=True); input()"
    parent = (
        "import os, subprocess, sys\n"
        f"child = subprocess.Popen([sys.executable, '-c', {child!r}], stdin=subprocess.PIPE, stdout=subprocess.PIPE)\n"
        "child.stdout.read(1)\n"
        "print(child.pid, flush=True)\n"
        "input()"
    )
    command = [sys.executable, "-c", parent]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}, **pipes) as started:  # type: ignore[call-overload]
        worker_process = psutil.Process(int(started.stdout.readline()))
        os.kill(worker_process.pid, signal.SIGSTOP)  # so that it does not end by the end of its input
        started.kill()
    end = time.monotonic() + 10.0
    while time.monotonic() < end and worker_process.is_running() and worker_process.status() != psutil.STATUS_ZOMBIE:
        time.sleep(0.02)
    gone = not worker_process.is_running() or worker_process.status() == psutil.STATUS_ZOMBIE
    if not gone:
        worker_process.kill()
    assert gone
