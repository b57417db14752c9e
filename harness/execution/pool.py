"""Worker processes with hard limits: what hangs, crashes or eats the memory for one factual or group costs no other."""

from __future__ import annotations

import os
import pickle
import queue
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from tempfile import TemporaryDirectory
from typing import Any

import pandas as pd

from harness.core.errors import HarnessError, short
from harness.core.explanation import Explanation, GroupExplanation, Reason, Status
from harness.core.method import Method
from harness.core.objective import Objective
from harness.core.problem import Problem
from harness.execution.clocks import say_compiling
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
from harness.execution.start import Started, start

ENDING = 3.0  # seconds for a worker that has gone away to end by itself
START_LIMIT = 120.0  # seconds for a worker to import and receive a problem, before its limit to fit begins
COMPILE_LIMIT = 900.0  # seconds for numba to compile a kernel, besides any limit


@dataclass(frozen=True)
class Limits:
    """Seconds per factual and per fit, gibibytes per worker, threads per worker."""

    time: float = 5.0
    fit: float = 120.0
    memory: float | None = None
    threads: int = 1

    @property
    def grace(self) -> float:
        """Seconds after the limit in which an answer is still taken, and marked late."""
        return max(0.5, 0.05 * self.time)


@dataclass(frozen=True, kw_only=True)
class Noted:
    """What is noted of a question, and of the fit that served it.

    Parameters
    ----------
    seconds, cpu_seconds
        Wall-clock seconds of the question, without those that numba compiled for, and processor seconds, with them; the
        latter None where its worker was killed or crashed, and where none was asked.
    model_seconds
        Of ``seconds``, those that went on what a method's own process asked about the model; None where it has none.
    peak_mib
        The most memory of the worker from its fit to the end of the question, in MiB; other processes' is not counted.
    fit_seconds, compile_seconds
        Of the fit to the factual's problem, as of ``Fitted``.
    claim
        What the method claims to minimise, as the worker stated it once fitted.
    setup_seconds, setup_cpu_seconds
        From the start of the run's first worker, a fresh process, to the moment it was ready for the first question,
        imports and fit included; the same for every outcome of a run. Processor seconds are None where it crashed.
    """

    seconds: float = 0.0
    fit_seconds: float = 0.0
    compile_seconds: float = 0.0
    late: bool = False
    claim: Objective | None = None
    cpu_seconds: float | None = None
    model_seconds: float | None = None
    peak_mib: float | None = None
    setup_seconds: float | None = None
    setup_cpu_seconds: float | None = None


@dataclass(frozen=True)
class Outcome(Noted):
    """The explanation of one factual."""

    factual: Any
    explanation: Explanation


@dataclass(frozen=True)
class GroupOutcome(Noted):
    """The explanation of a group, or why there is none."""

    group: Any
    reply: GroupReply

    @property
    def explanation(self) -> GroupExplanation | None:
        return self.reply.explanation


@dataclass(frozen=True)
class _Job:
    """One message: its problem, how to ask a fitted worker, and the outcome where none can be fitted."""

    problem: Callable[[], Problem]
    ask: Callable[[Worker], Any]
    without: Callable[[Fitted], Any]


class Worker:
    """One child process, loaded with one method and problem.

    Parameters
    ----------
    started
        Its process.
    """

    _unread: Fitted | None = None  # what it said of a question that it could not receive

    def __init__(self, started: Started) -> None:
        self.process, self.connection, self.started = started
        self.problem: Problem | None = None
        self.fitted = Fitted()

    @property
    def alive(self) -> bool:
        return self.process.poll() is None

    def load(self, method: Method, problem: Problem, limits: Limits, seed: tuple[int, ...]) -> Fitted:
        """Fit; a worker that does not manage is killed, and the reply says why."""
        limit, late = limits.fit, Fitted(fault=f"the worker did not come to fit within {START_LIMIT:g} s")
        reply = self._exchange(FitRequest(method, problem, limits.memory, limit, seed), START_LIMIT)
        if isinstance(reply, FitStarted):
            late = Fitted(limit, fault=f"the fit took more than {limit:g} s", reason=Reason.TIME_LIMIT)
            reply = self._receive(limit)
        if reply is None and self._hung:
            reply = late
        elif reply is None:
            reply = Fitted(fault=f"the worker process ended with code {self.process.wait()} while fitting")
        self.problem, self.fitted = problem, reply
        return reply

    def ask(self, factual: pd.DataFrame, count: int, seed: tuple[int, ...], limits: Limits) -> ExplainReply:
        """Explain; a worker that does not answer in time is killed, which is an answer too."""
        reply = self._question(ExplainRequest(factual, count, seed, limits.time), limits)
        if reply is not None:
            return reply
        seconds, status, reason, why = self._silent(limits)
        return ExplainReply(Explanation.none(count, status, reason, why), seconds)

    def ask_group(self, factuals: pd.DataFrame, seed: tuple[int, ...], limits: Limits) -> GroupReply:
        """Explain a group; as ``ask``."""
        reply = self._question(GroupRequest(factuals, seed, limits.time), limits)
        return reply or GroupReply(None, *self._silent(limits))

    def _question(self, request: ExplainRequest | GroupRequest, limits: Limits) -> Any:
        """The reply to a question, or None; a worker that says that it was its last, or has read none, is killed."""
        reply = self._exchange(request, limits.time + limits.grace)
        if isinstance(reply, Fitted):
            self._unread = reply
        if reply is not None and (self._unread or reply.last):
            self.kill()
        return None if self._unread else reply

    def _silent(self, limits: Limits) -> tuple[float, Status, Reason, str]:
        """What became of a worker that did not answer: seconds, status, reason and a sentence."""
        if self._hung:
            return limits.time, Status.GAVE_UP, Reason.TIME_LIMIT, f"no answer within {limits.time:g} s"
        if self._unread is not None:
            why = f"the worker process could not read the question: {self._unread.fault}"
            ended = Status.GAVE_UP if self._unread.reason is Reason.MEMORY else Status.FAILED
            return 0.0, ended, self._unread.reason, why
        return 0.0, Status.FAILED, Reason.CRASH, f"the worker process ended with code {self.process.wait()}"

    def _exchange(self, message: Any, limit: float) -> Any:
        """The reply, or None where the worker hung (and was killed) or ended."""
        self._hung = False
        try:
            self.connection.send(message)
        except OSError:
            self.kill()
            return None
        except (pickle.PicklingError, AttributeError, TypeError) as fault:
            self.kill()
            raise HarnessError(
                f"the method or the model cannot be sent to a process of its own ({short(fault)}); define its "
                "functions in a module, and not as lambdas."
            ) from fault
        return self._receive(limit)

    def _receive(self, limit: float) -> Any:
        """The next message, as ``_exchange`` gives it; while kernels are compiled there is time enough for that."""
        until = time.monotonic() + limit
        try:
            while self.connection.poll(max(until - time.monotonic(), 0.0)):
                if not isinstance(message := self.connection.recv(), Compiling):
                    return message
                say_compiling(message.ours)
                until += COMPILE_LIMIT if message.seconds is None else message.seconds - COMPILE_LIMIT
            self._hung = self.alive  # a process that it forked may hold the connection open
        except (EOFError, OSError):
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(ENDING)  # or its own code would be that of being killed
        self.kill()
        return None

    def end(self) -> None:
        """End the process and everything it started; any thread may, and the owner then reads the end of file."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def kill(self) -> None:
        """End the process and close the connection; for the thread that owns the worker alone."""
        self.end()
        self.connection.close()


@dataclass(frozen=True)
class Pool:
    """Where runs find their workers: each run starts its own, and ends them.

    What a worker has imported and compiled serves the run that it was started for, so that a set-up does not depend on
    the runs before. A killed worker is replaced, and fits again.

    Parameters
    ----------
    first_use
        Have workers compile all kernels anew, as on a machine that has never run the method. Otherwise a set-up that
        compiled is measured once more, in another worker, which finds the kernels in numba's cache.
    spare
        A worker that was started already, for the first that is needed.
    """

    first_use: bool = False
    spare: Started | None = None

    def explain(
        self,
        method: Method,
        problem_of: Callable[[Any], Problem],
        factuals: pd.DataFrame,
        count: int,
        seed: Callable[[Any], tuple[int, ...]],
        limits: Limits,
        jobs: int = 1,
    ) -> Iterator[Outcome]:
        """Outcomes in the order in which they come about.

        Factuals with the same problem (by identity) share a fit, and are asked about together; ``seed`` gives the
        entropy of each factual's generator, and of the fits' (None), so that neither order nor ``jobs`` changes an
        answer.
        """

        def job(number: int) -> _Job:
            identity = factuals.index[number]
            return _Job(
                lambda: problem_of(identity),
                lambda worker: _answered(worker, factuals.iloc[[number]], count, seed(identity), limits),
                lambda fitted: _without(fitted, identity, count),
            )

        problems = [problem_of(identity) for identity in factuals.index]
        together: dict[int, list[int]] = {}
        for number, problem in enumerate(problems):
            together.setdefault(id(problem), []).append(number)
        waiting = [job(number) for part in together.values() for number in part]
        yield from self._run(method, waiting, limits, jobs, seed(None))

    def explain_groups(
        self,
        method: Method,
        groups: Mapping[Any, tuple[Problem, pd.DataFrame]],
        seed: Callable[[Any], tuple[int, ...]],
        limits: Limits,
        jobs: int = 1,
    ) -> Iterator[GroupOutcome]:
        """As ``explain``, for groups by name: the problem and the factuals of each; ``limits.time`` is a group's."""

        def job(name: Any, problem: Problem, factuals: pd.DataFrame) -> _Job:
            return _Job(
                lambda: problem,
                lambda worker: _answered_group(worker, name, factuals, seed(name), limits),
                lambda fitted: _without_group(fitted, name),
            )

        yield from self._run(method, [job(name, *group) for name, group in groups.items()], limits, jobs, seed(None))

    def _run(
        self, method: Method, waiting: Sequence[_Job], limits: Limits, jobs: int, seed: tuple[int, ...]
    ) -> Iterator[Any]:
        """Outcomes of jobs in the order in which they come about."""
        with ExitStack() as stack:
            kernels = None
            if self.first_use:
                kernels = stack.enter_context(TemporaryDirectory(ignore_cleanup_errors=True))
            batch = _Batch(method, limits, waiting, kernels, seed, self.spare)
            threads = [threading.Thread(target=batch.work, daemon=True) for _ in range(min(jobs, len(waiting)))]
            for thread in threads:
                thread.start()
            try:
                ended = 0
                while ended < len(threads):
                    outcome = batch.outcomes.get()
                    if outcome is None:
                        ended += 1
                    elif isinstance(outcome, BaseException):
                        raise outcome
                    else:
                        yield outcome
            finally:
                batch.end()
                for thread in threads:
                    thread.join(timeout=10.0)


class _Batch:
    """The jobs of one run, and what the threads that work on them share; each thread has one worker at a time."""

    def __init__(
        self,
        method: Method,
        limits: Limits,
        waiting: Sequence[_Job],
        kernels: str | None,
        seed: tuple[int, ...],
        spare: Started | None = None,
    ) -> None:
        self.method, self.limits, self.kernels, self.seed = method, limits, kernels, seed
        self.spare = [] if spare is None else [spare]
        self.waiting: queue.SimpleQueue[_Job] = queue.SimpleQueue()
        for job in waiting:
            self.waiting.put(job)
        self.outcomes: queue.SimpleQueue[Any] = queue.SimpleQueue()  # None: a thread has ended
        self.stop = threading.Event()
        self.workers: dict[int, Worker] = {}  # by thread
        self.unfit: dict[int, Fitted] = {}  # a fit that failed or was refused is not tried again for the next factual
        self.setting_up = threading.Lock()
        self.setup: dict[str, float | None] = {}

    def work(self) -> None:
        """Do jobs with one worker until none is left."""
        try:
            while not self.stop.is_set():
                try:
                    job = self.waiting.get_nowait()
                except queue.Empty:
                    break
                problem = job.problem()
                with self.setting_up:  # one worker alone: others that start meanwhile would take its processor
                    if not self.setup:
                        self._set_up(problem)
                if id(problem) not in self.unfit:
                    worker = self._ready(problem)
                failed = self.unfit.get(id(problem))
                outcome = job.without(failed) if failed else job.ask(worker)
                self.outcomes.put(replace(outcome, **self.setup))
        except BaseException as fault:
            self.outcomes.put(fault)
        finally:
            if (last := self.workers.pop(threading.get_ident(), None)) is not None:
                last.kill()
            self.outcomes.put(None)

    def end(self) -> None:
        """Have every thread end, and end its worker, whatever that is doing."""
        self.stop.set()
        for worker in list(self.workers.values()):
            worker.end()

    def _set_up(self, problem: Problem) -> None:
        """Measure how long the run's first worker takes until it is ready for a question."""
        worker = self._ready(problem)
        if worker.fitted.compile_seconds > 0 and self.kernels is None:
            # Kernels are compiled once a machine; where their cache cannot be written the next worker compiles, too.
            worker.kill()
            self.unfit.clear()
            worker = self._ready(problem)
        seconds = time.perf_counter() - worker.started
        self.setup = {"setup_seconds": seconds, "setup_cpu_seconds": worker.fitted.cpu_seconds}

    def _ready(self, problem: Problem) -> Worker:
        """This thread's worker, fitted to a problem; in ``unfit`` is noted why it could not be."""
        worker = self.workers.get(threading.get_ident())
        if worker is None or not worker.alive:
            # In this thread, as a worker dies with the one that started it (``die_with_parent``).
            started = self.spare.pop() if self.spare else start(self.limits.threads, self.kernels)
            worker = self.workers[threading.get_ident()] = Worker(started)
            if self.stop.is_set():  # ``end`` may have missed it
                worker.end()
        if worker.problem is not problem:
            fitted = worker.load(self.method, problem, self.limits, self.seed)
            if fitted.refusal or fitted.fault:
                self.unfit[id(problem)] = fitted
        return worker


def _without(fitted: Fitted, identity: Any, count: int) -> Outcome:
    """The outcome of a factual whose problem could not be fitted."""
    return Outcome(identity, Explanation.none(count, *_unfit(fitted)), fit_seconds=fitted.seconds)


def _without_group(fitted: Fitted, name: Any) -> GroupOutcome:
    return GroupOutcome(name, GroupReply(None, 0.0, *_unfit(fitted)), fit_seconds=fitted.seconds)


def _unfit(fitted: Fitted) -> tuple[Status, Reason, str]:
    """What a problem that could not be fitted is answered with."""
    if fitted.refusal:
        return Status.UNSUPPORTED, Reason.REFUSED, fitted.refusal
    return Status.FAILED if fitted.reason is Reason.CRASH else Status.GAVE_UP, fitted.reason, fitted.fault or ""


def _answered(worker: Worker, factual: pd.DataFrame, count: int, seed: tuple[int, ...], limits: Limits) -> Outcome:
    reply = worker.ask(factual, count, seed, limits)
    return Outcome(factual.index[0], reply.explanation, **_noted(worker, reply, limits))


def _answered_group(
    worker: Worker, name: Any, factuals: pd.DataFrame, seed: tuple[int, ...], limits: Limits
) -> GroupOutcome:
    reply = worker.ask_group(factuals, seed, limits)
    return GroupOutcome(name, reply, **_noted(worker, reply, limits))


def _noted(worker: Worker, reply: ExplainReply | GroupReply, limits: Limits) -> dict[str, Any]:
    """What an outcome notes of a reply, and of the fit that served it."""
    fitted = worker.fitted
    return {
        "seconds": reply.seconds,
        "cpu_seconds": reply.cpu_seconds,
        "model_seconds": reply.model_seconds,
        "peak_mib": reply.peak_mib,
        "late": reply.seconds > limits.time,
        "fit_seconds": fitted.seconds,
        "compile_seconds": fitted.compile_seconds,
        "claim": fitted.claim,
    }
