"""Worker processes with hard limits: what hangs, crashes or eats the memory for one factual or group costs no other."""

from __future__ import annotations

import atexit
import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import Any

import pandas as pd

from harness.core.explanation import Explanation, GroupExplanation, Reason, Status
from harness.core.method import Method
from harness.core.objective import Objective
from harness.core.problem import Problem
from harness.execution.contract import refused
from harness.execution.messages import (
    ExplainReply,
    ExplainRequest,
    FitRequest,
    FitStarted,
    Fitted,
    GroupReply,
    GroupRequest,
)

START_LIMIT = 120.0  # seconds for a worker to import and receive a problem, before its limit to fit begins
THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


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


@dataclass(frozen=True)
class Outcome:
    """The explanation of one factual, its seconds, and what is noted of the fit that served it.

    ``claim``: what the method claims to minimise, as the worker stated it once fitted.
    """

    factual: Any
    explanation: Explanation
    seconds: float
    fit_seconds: float
    compile_seconds: float = 0.0
    late: bool = False
    claim: Objective | None = None


@dataclass(frozen=True)
class GroupOutcome:
    """The explanation of a group, or why there is none; else as ``Outcome``."""

    group: Any
    reply: GroupReply
    seconds: float
    fit_seconds: float
    compile_seconds: float = 0.0
    late: bool = False
    claim: Objective | None = None

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
    """One child process, loaded with one method and problem."""

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self.fitted: Fitted | None = None
        ours, theirs = Pipe()
        environment = {**os.environ, **dict.fromkeys(THREAD_VARIABLES, str(threads)), "PYTHONHASHSEED": "0"}
        environment["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
        self.process = subprocess.Popen(
            [sys.executable, "-m", "harness.execution.worker", str(theirs.fileno())],
            pass_fds=[theirs.fileno()],
            env=environment,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
        theirs.close()
        self.connection: Connection = ours

    @property
    def alive(self) -> bool:
        return self.process.poll() is None

    def load(self, method: Method, problem: Problem, limits: Limits) -> Fitted:
        """Fit; a worker that does not manage is killed, and the reply says why."""
        request = FitRequest(method, problem, limits.memory)
        reply, limit = self._exchange(request, START_LIMIT), START_LIMIT
        if isinstance(reply, FitStarted):
            reply, limit = self._receive(limits.fit), limits.fit
        if reply is None and self._hung:
            reply = Fitted(limit, fault=f"the fit took more than {limit:g} s", reason=Reason.TIME_LIMIT)
        elif reply is None:
            reply = Fitted(0.0, fault=f"the worker process ended with code {self.process.wait()} while fitting")
        self.fitted = reply
        return reply

    def ask(self, factual: pd.DataFrame, count: int, seed: tuple[int, ...], limits: Limits) -> ExplainReply:
        """Explain; a worker that does not answer in time is killed, which is an answer too."""
        reply = self._exchange(ExplainRequest(factual, count, seed, limits.time), limits.time + limits.grace)
        if reply is not None:
            if any(answer.reason is Reason.MEMORY for answer in reply.explanation.answers):
                self.kill()  # what it has not freed is not to cost the next factual its answer
            return reply
        status, reason, seconds, why = self._silent(limits)
        return ExplainReply(Explanation.none(count, status, reason, why), seconds)

    def ask_group(self, factuals: pd.DataFrame, seed: tuple[int, ...], limits: Limits) -> GroupReply:
        """Explain a group; as ``ask``."""
        reply = self._exchange(GroupRequest(factuals, seed, limits.time), limits.time + limits.grace)
        if reply is not None:
            if reply.reason is Reason.MEMORY:
                self.kill()
            return reply
        status, reason, seconds, why = self._silent(limits)
        return GroupReply(None, seconds, status, reason, why)

    def _silent(self, limits: Limits) -> tuple[Status, Reason, float, str]:
        """What became of a worker that did not answer: status, reason, seconds and a sentence."""
        if self._hung:
            return Status.GAVE_UP, Reason.TIME_LIMIT, limits.time, f"no answer within {limits.time:g} s"
        return Status.FAILED, Reason.CRASH, 0.0, f"the worker process ended with code {self.process.wait()}"

    def _exchange(self, message: Any, limit: float) -> Any:
        """The reply, or None where the worker hung (and was killed) or ended."""
        self._hung = False
        try:
            self.connection.send(message)
        except OSError:
            self.kill()
            return None
        return self._receive(limit)

    def _receive(self, limit: float) -> Any:
        """The next message, as ``_exchange`` gives it."""
        try:
            if self.connection.poll(limit):
                return self.connection.recv()
            self._hung = True
        except (EOFError, OSError):
            pass
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


class Pool:
    """Workers that outlive a run and serve the next one; a killed one is replaced and fits again."""

    def __init__(self) -> None:
        self._idle: list[Worker] = []
        self._lock = threading.Lock()
        # A worker dies with the thread that started it (``worker._die_with_parent``), so one starts them all.
        self._starter = ThreadPoolExecutor(max_workers=1)
        atexit.register(self.close)

    def close(self) -> None:
        """End all idle workers."""
        with self._lock:
            for worker in self._idle:
                worker.kill()
            self._idle.clear()

    def take(self, threads: int) -> Worker:
        """An idle worker, or a new one."""
        with self._lock:
            for worker in self._idle:
                if worker.threads == threads and worker.alive:
                    self._idle.remove(worker)
                    return worker
        return self._starter.submit(Worker, threads).result()

    def give_back(self, worker: Worker) -> None:
        """Keep a worker for the next run."""
        if worker.alive:
            with self._lock:
                self._idle.append(worker)

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

        Factuals with the same problem (by identity) share a fit; ``seed`` gives the entropy of each factual's
        generator, so that neither order nor ``jobs`` changes an answer.
        """

        def job(number: int) -> _Job:
            identity = factuals.index[number]
            return _Job(
                lambda: problem_of(identity),
                lambda worker: _answered(worker, factuals.iloc[[number]], count, seed(identity), limits),
                lambda fitted: _without(fitted, identity, count),
            )

        yield from self._run(method, [job(number) for number in range(len(factuals))], limits, jobs)

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

        yield from self._run(method, [job(name, *group) for name, group in groups.items()], limits, jobs)

    def _run(self, method: Method, waiting: Sequence[_Job], limits: Limits, jobs: int) -> Iterator[Any]:
        """Outcomes of jobs in the order in which they come about."""
        batch = _Batch(self, method, limits, waiting)
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
            batch.stop.set()
            if any(thread.is_alive() for thread in threads):
                for worker in list(batch.running):
                    worker.end()
            for thread in threads:  # so that every worker is either ended or idle, where ``close`` finds it
                thread.join(timeout=10.0)


class _Batch:
    """The jobs of one method, and what the threads that work on them share."""

    def __init__(self, pool: Pool, method: Method, limits: Limits, waiting: Sequence[_Job]) -> None:
        self.pool, self.method, self.limits = pool, method, limits
        self.waiting: queue.SimpleQueue[_Job] = queue.SimpleQueue()
        for job in waiting:
            self.waiting.put(job)
        self.outcomes: queue.SimpleQueue[Any] = queue.SimpleQueue()  # None: a thread has ended
        self.stop = threading.Event()
        self.running: list[Worker] = []
        self.unfit: dict[int, Fitted] = {}  # a fit that failed or was refused is not tried again for the next factual

    def work(self) -> None:
        """Do jobs with one worker until none is left."""
        worker, loaded = self._worker(), None
        try:
            while not self.stop.is_set():
                try:
                    job = self.waiting.get_nowait()
                except queue.Empty:
                    break
                problem = job.problem()
                if not worker.alive:
                    self.running.remove(worker)
                    worker, loaded = self._worker(), None
                if id(problem) not in self.unfit and loaded is not problem:
                    fitted = worker.load(self.method, problem, self.limits)
                    loaded = problem
                    if fitted.refusal or fitted.fault:
                        self.unfit[id(problem)] = fitted
                failed = self.unfit.get(id(problem))
                self.outcomes.put(job.without(failed) if failed else job.ask(worker))
        except BaseException as fault:
            self.outcomes.put(fault)
        finally:
            self.running.remove(worker)
            if self.stop.is_set():
                worker.kill()
            else:
                self.pool.give_back(worker)
            self.outcomes.put(None)

    def _worker(self) -> Worker:
        worker = self.pool.take(self.limits.threads)
        self.running.append(worker)
        return worker


def _without(fitted: Fitted, identity: Any, count: int) -> Outcome:
    """The outcome of a factual whose problem could not be fitted."""
    if fitted.refusal:
        return Outcome(identity, refused(count, fitted.refusal), 0.0, fitted.seconds)
    explanation = Explanation.none(count, _status(fitted), fitted.reason, fitted.fault or "")
    return Outcome(identity, explanation, 0.0, fitted.seconds)


def _without_group(fitted: Fitted, name: Any) -> GroupOutcome:
    if fitted.refusal:
        reply = GroupReply(None, 0.0, Status.UNSUPPORTED, Reason.REFUSED, fitted.refusal)
    else:
        reply = GroupReply(None, 0.0, _status(fitted), fitted.reason, fitted.fault or "")
    return GroupOutcome(name, reply, 0.0, fitted.seconds)


def _status(fitted: Fitted) -> Status:
    return Status.FAILED if fitted.reason is Reason.CRASH else Status.GAVE_UP


def _answered(worker: Worker, factual: pd.DataFrame, count: int, seed: tuple[int, ...], limits: Limits) -> Outcome:
    reply = worker.ask(factual, count, seed, limits)
    return Outcome(factual.index[0], reply.explanation, *_noted(worker, reply.seconds, limits))


def _answered_group(
    worker: Worker, name: Any, factuals: pd.DataFrame, seed: tuple[int, ...], limits: Limits
) -> GroupOutcome:
    reply = worker.ask_group(factuals, seed, limits)
    return GroupOutcome(name, reply, *_noted(worker, reply.seconds, limits))


def _noted(worker: Worker, seconds: float, limits: Limits) -> tuple[float, float, float, bool, Objective | None]:
    """Seconds, those of the fit and of compilation, whether the answer is late, and the method's claim."""
    fitted = worker.fitted or Fitted(0.0)
    return seconds, fitted.seconds, fitted.compile_seconds, seconds > limits.time, fitted.claim
