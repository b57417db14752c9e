"""A pool's bookkeeping, with workers that are no processes: what they reply, and when they are replaced."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest

from harness.core.explanation import Answer, Explanation, GroupExplanation, Reason, Status
from harness.core.objective import Objective, Term
from harness.core.problem import Problem
from harness.execution import pool as pools
from harness.execution.messages import (
    Compiling,
    ExplainReply,
    ExplainRequest,
    FitRequest,
    FitStarted,
    Fitted,
    GroupReply,
    GroupRequest,
)
from harness.execution.pool import Limits, Outcome, Pool, Worker

LIMITS = Limits(time=10.0, fit=7.0)
SILENCE = object()  # no message until the limit


class Line:
    """A connection whose other end sends some messages; an exception among them is raised where it is read."""

    def __init__(self, *messages: Any) -> None:
        self.messages, self.limits, self.sent = list(messages), list[float](), list[Any]()
        self.closed = False

    def send(self, message: Any) -> None:
        self.sent.append(message)

    def poll(self, limit: float) -> bool:
        self.limits.append(limit)
        return self.messages[0] is not SILENCE

    def recv(self) -> Any:
        message = self.messages.pop(0)
        if isinstance(message, Exception):
            raise message
        return message

    def close(self) -> None:
        self.closed = True


class Deaf(Line):
    def send(self, message: Any) -> None:
        raise BrokenPipeError


class Bare(Worker):
    """A worker without a process, whose code is 3 once it has ended."""

    def __init__(self, connection: Line) -> None:
        self.line = connection
        self.connection: Any = connection
        self.process: Any = SimpleNamespace(wait=lambda timeout=None: 3, poll=lambda: None)

    def end(self) -> None:
        pass


def told(fitted: Fitted) -> tuple[float, Reason, str]:
    return fitted.seconds, fitted.reason, fitted.fault or ""


@pytest.mark.parametrize(
    ("messages", "expected"),
    [
        ((FitStarted(), Fitted(2.0)), None),
        ((FitStarted(), Fitted(8.0)), None),  # as the worker says; the clock here saw it in time
        ((FitStarted(), Fitted(7.0, compile_seconds=0.5)), None),
        ((Fitted(fault="unreadable"),), None),
        ((SILENCE,), (0.0, Reason.CRASH, "the worker did not come to fit within 120 s")),
        ((FitStarted(), SILENCE), (7.0, Reason.TIME_LIMIT, "the fit took more than 7 s")),
        ((EOFError(),), (0.0, Reason.CRASH, "the worker process ended with code 3 while fitting")),
        ((FitStarted(), ConnectionResetError()), (0.0, Reason.CRASH, "ended with code 3 while fitting")),
    ],
)
def test_what_becomes_of_a_fit(
    messages: tuple[Any, ...], expected: tuple[float, Reason, str] | None, problem: Problem
) -> None:
    """A worker that does not manage is killed; the fit is noted, whatever became of it."""
    worker = Bare(Line(*messages))
    found = worker.load("method", problem, replace(LIMITS, memory=2.0), (4,))  # type: ignore[arg-type]
    assert worker.line.sent == [FitRequest("method", problem, 2.0, 7.0, (4,))]  # type: ignore[arg-type]
    assert (worker.fitted, worker.problem) == (found, problem)
    assert worker.line.closed is (expected is not None)
    if expected is None:
        assert found == messages[-1]
    else:
        assert told(found)[:2] == expected[:2]
        assert expected[2] in told(found)[2]
    assert worker.line.limits == pytest.approx([120.0, 7.0][: len(messages)], abs=1.0)


def test_a_worker_that_cannot_be_asked_has_ended(problem: Problem) -> None:
    worker = Bare(Deaf())
    assert told(worker.load("method", problem, LIMITS, (0,))) == (  # type: ignore[arg-type]
        0.0, Reason.CRASH, "the worker process ended with code 3 while fitting"
    )  # fmt: skip
    assert worker.line.closed


def test_there_is_time_enough_to_compile(problem: Problem, monkeypatch: pytest.MonkeyPatch) -> None:
    """A quarter of an hour more while numba compiles, of fits and questions, then what it took; who waits is told."""
    notices: list[bool] = []
    monkeypatch.setattr(pools, "say_compiling", notices.append)
    told = (Compiling(ours=False), Compiling(ours=False, seconds=30.0), Compiling(), Compiling(seconds=5.0))
    worker = Bare(Line(FitStarted(), *told, Fitted(3.0, compile_seconds=35.0)))
    assert worker.load("method", problem, LIMITS, (0,)) == Fitted(3.0, compile_seconds=35.0)  # type: ignore[arg-type]
    assert worker.line.limits == pytest.approx([120.0, 7.0, 907.0, 37.0, 937.0, 42.0], abs=1.0)
    assert notices == [False, False, True, True]
    hung = Bare(Line(*told, SILENCE))
    assert hung.ask(problem.train.iloc[:1], 1, (0,), LIMITS).explanation.answers[0].reason is Reason.TIME_LIMIT
    assert hung.line.limits == pytest.approx([10.5, 910.5, 40.5, 940.5, 45.5], abs=1.0)


@pytest.mark.parametrize(
    ("reason", "status"), [(Reason.MEMORY, Status.GAVE_UP), (Reason.CRASH, Status.FAILED)], ids=["memory", "crash"]
)
def test_a_question_that_a_worker_cannot_read_is_its_answer(reason: Reason, status: Status, problem: Problem) -> None:
    """Where a fitted method leaves no memory for it; the worker is killed, as what it would read next is unknown."""
    unread, one = Fitted(fault="MemoryError", reason=reason), problem.train.iloc[:1]
    worker = Bare(Line(unread))
    (answer,) = worker.ask(one, 1, (0,), LIMITS).explanation.answers
    assert (answer.status, answer.reason) == (status, reason)
    assert answer.detail == "the worker process could not read the question: MemoryError"
    assert worker.line.closed
    reply = Bare(Line(unread)).ask_group(one, (0,), LIMITS)
    assert (reply.explanation, reply.status, reply.reason) == (None, status, reason)


def test_a_worker_that_died_unheard_has_crashed(problem: Problem) -> None:
    """A process that it forked holds the connection open: nothing comes until the limit, and it is no time-out."""
    worker = Bare(Line(SILENCE))
    worker.process.poll = lambda: 3
    (answer,) = worker.ask(problem.train.iloc[:1], 1, (0,), LIMITS).explanation.answers
    assert (answer.status, answer.reason) == (Status.FAILED, Reason.CRASH)
    assert answer.detail == "the worker process ended with code 3"


def test_a_passed_limit_is_not_below_zero(problem: Problem) -> None:
    worker = Bare(Line(SILENCE))
    worker.ask(problem.train, 1, (0,), Limits(time=-5.0))
    assert worker.line.limits == [0.0]


FOUND = Answer(Status.FOUND, {})


@pytest.mark.parametrize(
    ("reply", "killed"),
    [
        (ExplainReply(Explanation((FOUND, FOUND)), 1.0), False),
        (ExplainReply(Explanation((FOUND, FOUND)), 1.0, last=True), True),
        (GroupReply(GroupExplanation(()), 1.0), False),
        (GroupReply(None, 1.0, Status.GAVE_UP, Reason.MEMORY, last=True), True),
        (GroupReply(None, 1.0, Status.GAVE_UP, Reason.TIME_LIMIT), False),
    ],
)
def test_who_can_answer_no_more_is_killed(reply: Any, killed: bool, problem: Problem) -> None:
    """Its answer counts; the time is the question's limit and the grace of half a second."""
    worker, rows = Bare(Line(reply)), problem.train.iloc[:1]
    group = isinstance(reply, GroupReply)
    assert (worker.ask_group(rows, (5,), LIMITS) if group else worker.ask(rows, 2, (5,), LIMITS)) == reply
    (sent,) = worker.line.sent
    assert (type(sent), sent.seed, sent.limit) == (GroupRequest if group else ExplainRequest, (5,), 10.0)
    assert worker.line.limits == pytest.approx([10.5], abs=0.2)
    assert worker.line.closed is killed


@pytest.mark.parametrize(
    ("message", "status", "reason", "seconds", "words"),
    [
        (SILENCE, Status.GAVE_UP, Reason.TIME_LIMIT, 10.0, "no answer within 10 s"),
        (EOFError(), Status.FAILED, Reason.CRASH, 0.0, "the worker process ended with code 3"),
    ],
)
def test_no_reply_is_an_answer(
    message: Any, status: Status, reason: Reason, seconds: float, words: str, problem: Problem
) -> None:
    worker, peer = Bare(Line(message)), Bare(Line(message))
    one, group = worker.ask(problem.train.iloc[:1], 2, (0,), LIMITS), peer.ask_group(problem.train, (0,), LIMITS)
    assert one == ExplainReply(Explanation.none(2, status, reason, words), seconds)
    assert group == GroupReply(None, seconds, status, reason, words)
    assert worker.line.closed
    assert peer.line.closed


class Fake:
    """Stands for a worker: fits and answers at once, and notes what is done with it."""

    made: list[Fake] = []  # noqa: RUF012
    compiling: float = 0.0  # seconds of every worker's fit
    faults: list[str | None] = []  # noqa: RUF012  # of fits, one after the other
    seconds: float = 1.0  # of each question

    def __init__(self, started: tuple[int, str | None]) -> None:
        self.threads, self.kernels = started
        self.there = self.kernels is not None and Path(self.kernels).is_dir()
        self.started, self.problem, self.alive = time.perf_counter() - 50.0, None, True
        self.fits, self.killed, self.ended = list[Any](), 0, 0
        self.made.append(self)

    def load(self, method: Any, problem: Any, limits: Limits, seed: Any) -> Fitted:
        self.fits.append(problem)
        self.seeded = seed
        self.problem = problem
        fault = self.faults.pop(0) if self.faults else None
        refusal = fault if fault == "refused" else None
        own = {"fault": None if refusal else fault, "refusal": refusal, "cpu_seconds": float(len(self.made))}
        self.fitted = Fitted(0.25, compile_seconds=self.compiling, claim=CLAIM, **own)  # type: ignore[arg-type]
        return self.fitted

    def ask(self, factual: pd.DataFrame, count: int, seed: Any, limits: Limits) -> ExplainReply:
        if seed == "dies":
            self.alive = False
        if seed == "raises":
            raise KeyboardInterrupt
        return ExplainReply(Explanation((FOUND,) * count), self.seconds, 0.75)

    def ask_group(self, factuals: pd.DataFrame, seed: Any, limits: Limits) -> GroupReply:
        return GroupReply(GroupExplanation(()), self.seconds, cpu_seconds=0.75)

    def kill(self) -> None:
        self.killed, self.alive = self.killed + 1, False

    def end(self) -> None:
        self.ended += 1


CLAIM = Objective((Term("l1"),)).stored()


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Fake]]:
    """The workers of a pool."""
    monkeypatch.setattr(pools, "Worker", Fake)
    monkeypatch.setattr(pools, "start", lambda threads, kernels: (threads, kernels))
    for name, value in (("made", []), ("faults", []), ("compiling", 0.0), ("seconds", 1.0)):
        monkeypatch.setattr(Fake, name, value)
    yield Fake.made
    assert all(worker.killed or not worker.alive for worker in Fake.made)


FACTUALS = pd.DataFrame({"x": [1.0, 2.0, 3.0]}, index=[7, 8, 9])


def outcomes(
    first_use: bool = False, problems: Any = None, seeds: Any = None, jobs: int = 1, limits: Limits = LIMITS
) -> list[Outcome]:
    """Of three factuals, of which each has a problem and a seed."""
    posed, seeds = problems or dict.fromkeys(FACTUALS.index, "problem"), seeds or {}
    seed: Any = lambda index: seeds.get(index, (index,))  # noqa: E731
    return list(Pool(first_use).explain("method", posed.__getitem__, FACTUALS, 2, seed, limits, jobs))  # type: ignore[arg-type]


def test_one_worker_fits_once_and_answers_all(made: list[Fake]) -> None:
    """Each outcome notes the question's seconds, the fit's, and the set-up's: from the start to the first question."""
    found = outcomes(limits=replace(LIMITS, threads=3))
    (worker,) = made
    assert (worker.threads, worker.kernels, worker.fits) == (3, None, ["problem"])
    assert [outcome.factual for outcome in found] == [7, 8, 9]
    assert worker.seeded == (None,)  # of no factual
    for outcome in found:
        assert len(outcome.explanation.answers) == 2
        assert (outcome.seconds, outcome.cpu_seconds, outcome.fit_seconds) == (1.0, 0.75, 0.25)
        assert (outcome.compile_seconds, outcome.late, outcome.claim) == (0.0, False, CLAIM)
        assert 50 <= (outcome.setup_seconds or 0) < 60
        assert outcome.setup_cpu_seconds == 1.0


@pytest.mark.parametrize(("seconds", "late"), [(9.9, False), (10.0, False), (10.1, True)])
def test_late_is_after_the_limit(seconds: float, late: bool, made: list[Fake], monkeypatch: Any) -> None:
    monkeypatch.setattr(Fake, "seconds", seconds)
    assert {outcome.late for outcome in outcomes()} == {late}
    group: Any = {"all": ("problem", FACTUALS)}
    (found,) = Pool().explain_groups("method", group, lambda name: (0,), LIMITS)  # type: ignore[arg-type]
    assert (found.group, found.late, found.seconds, found.explanation) == ("all", late, seconds, GroupExplanation(()))
    assert len(made) == 2


@pytest.mark.parametrize("first_use", [False, True])
def test_a_set_up_that_compiled_is_measured_again(first_use: bool, made: list[Fake], monkeypatch: Any) -> None:
    """In another worker, which fits anew, also where the first failed; of first use, with kernels of its own, once."""
    monkeypatch.setattr(Fake, "compiling", 0.5)
    monkeypatch.setattr(Fake, "faults", [] if first_use else ["no luck"])
    found = outcomes(first_use)
    assert [worker.fits for worker in made] == [["problem"]] * (1 if first_use else 2)
    assert [worker.there for worker in made] == [first_use] * len(made)
    assert not first_use or not Path(str(made[0].kernels)).exists()
    assert {answer.status for outcome in found for answer in outcome.explanation.answers} == {Status.FOUND}
    assert {outcome.setup_cpu_seconds for outcome in found} == {float(len(made))}
    assert {outcome.compile_seconds for outcome in found} == {0.5}


def test_a_worker_that_was_started_already_comes_first(made: list[Fake]) -> None:
    """And once: where it dies, another is started."""
    pool: Any = Pool(spare=(7, "spare"))  # type: ignore[arg-type]
    seed: Any = {7: "dies", 8: (8,), 9: (9,)}.get
    assert len(list(pool.explain("method", lambda index: "problem", FACTUALS, 2, seed, LIMITS))) == 3
    assert [(worker.threads, worker.kernels) for worker in made] == [(7, "spare"), (LIMITS.threads, None)]


def test_groups_are_fitted_by_the_seed_of_nobody_too(made: list[Fake]) -> None:
    groups: Any = {"all": ("problem", FACTUALS), "none": ("problem", FACTUALS.iloc[:0])}
    assert len(list(Pool().explain_groups("method", groups, lambda name: (name,), LIMITS))) == 2  # type: ignore[arg-type, return-value]
    (worker,) = made
    assert worker.seeded == (None,)


def test_a_dead_worker_is_replaced_and_each_problem_fitted(made: list[Fake]) -> None:
    outcomes(problems={7: "one", 8: "two", 9: "two"}, seeds={8: "dies"})
    assert [worker.fits for worker in made] == [["one", "two"], ["two"]]


@pytest.mark.parametrize(("fault", "status"), [("refused", Status.UNSUPPORTED), ("no luck", Status.FAILED)])
def test_a_problem_that_cannot_be_fitted_is_not_asked(fault: str, status: Status, made: list[Fake]) -> None:
    """And is fitted once; the other problem's factuals are answered. So of groups."""
    Fake.faults[:] = [None, fault]
    found = outcomes(problems={7: "one", 8: "two", 9: "two"})
    assert [outcome.explanation.answers[0].status for outcome in found] == [Status.FOUND, status, status]
    assert [outcome.explanation.answers[1].detail for outcome in found] == ["", fault, fault]
    assert [outcome.fit_seconds for outcome in found] == [0.25] * 3
    assert made[0].fits == ["one", "two"]
    Fake.faults[:] = [fault]
    groups: Any = {"a": ("two", FACTUALS)}
    (group,) = Pool().explain_groups("method", groups, lambda name: (0,), LIMITS)  # type: ignore[arg-type]
    assert (group.reply.status, group.reply.detail, group.seconds, group.fit_seconds) == (status, fault, 0.0, 0.25)
    assert group.reply.reason is (Reason.REFUSED if fault == "refused" else Reason.CRASH)


def test_a_fit_out_of_time_gives_up() -> None:
    late = Fitted(7.0, fault="too long", reason=Reason.TIME_LIMIT)
    assert {answer.status for answer in pools._without(late, 7, 2).explanation.answers} == {Status.GAVE_UP}
    assert pools._without_group(late, "all").reply.status is Status.GAVE_UP


@pytest.mark.parametrize(("jobs", "workers"), [(1, 1), (2, 2), (9, 3)])
def test_no_more_workers_than_jobs_or_questions(
    jobs: int, workers: int, made: list[Fake], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each thread has one; all wait for each other here, so that none does another's work."""
    meet, ask = threading.Barrier(workers, timeout=10.0), Fake.ask
    met: set[int] = set()

    def wait(self: Fake, *given: Any) -> ExplainReply:
        if threading.get_ident() not in met:
            met.add(threading.get_ident())
            meet.wait()
        return ask(self, *given)

    monkeypatch.setattr(Fake, "ask", wait)
    assert {outcome.factual for outcome in outcomes(jobs=jobs)} == {7, 8, 9}
    assert len(made) == workers


def test_what_goes_wrong_in_a_thread_is_raised(made: list[Fake]) -> None:
    with pytest.raises(KeyboardInterrupt):
        outcomes(seeds={8: "raises"})
    assert len(made) == 1


def test_a_batch_that_is_ended_starts_nothing(made: list[Fake]) -> None:
    """Its workers are ended; one that was being started meanwhile, too."""
    batch = pools._Batch("method", LIMITS, [], None, (0,))  # type: ignore[arg-type]
    worker: Any = batch._ready("problem")  # type: ignore[arg-type]
    assert worker.ended == 0
    batch.end()
    assert worker.ended == 1
    worker.alive = False
    late: Any = batch._ready("problem")  # type: ignore[arg-type]
    assert (late is worker, late.ended) == (False, 1)
    batch.work()
    assert batch.outcomes.get() is None
    assert batch.outcomes.empty()
    worker.kill()
