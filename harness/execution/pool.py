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

START_LIMIT = 120.0  # seconds for a worker to import and receive a cell, before its limit to fit begins
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
    """What became of one factual: its explanation, seconds, and those of the fit and compilation that served it."""

    factual: Any
    explanation: Explanation
    seconds: float
    fit_seconds: float
    compile_seconds: float = 0.0
    late: bool = False


@dataclass(frozen=True)
class GroupOutcome:
    """What became of a group: its explanation, or why there is none; else as ``Outcome``."""

    group: Any
    told: GroupReply
    seconds: float
    fit_seconds: float
    compile_seconds: float = 0.0
    late: bool = False

    @property
    def explanation(self) -> GroupExplanation | None:
        return self.told.explanation


@dataclass(frozen=True)
class _Task:
    """What one message is about: its problem, how to ask a fitted worker, and what to say where none can be fitted."""

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
        """Fit; a worker that does not manage is killed and says why."""
        reply, limit = self._exchange(FitRequest(method, problem, limits.memory), START_LIMIT), START_LIMIT
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
        told = self._exchange(ExplainRequest(factual, count, seed, limits.time), limits.time + limits.grace)
        if told is not None:
            if any(answer.reason is Reason.MEMORY for answer in told.explanation.answers):
                self.kill()  # what it has not freed is not to cost the next factual its answer
            return told
        if self._hung:
            why = f"no answer within {limits.time:g} s"
            return ExplainReply(Explanation.none(count, Status.GAVE_UP, Reason.TIME_LIMIT, why), limits.time)
        why = f"the worker process ended with code {self.process.wait()}"
        return ExplainReply(Explanation.none(count, Status.FAILED, Reason.CRASH, why), 0.0)

    def ask_group(self, factuals: pd.DataFrame, seed: tuple[int, ...], limits: Limits) -> GroupReply:
        """Explain a group; as ``ask``."""
        told = self._exchange(GroupRequest(factuals, seed, limits.time), limits.time + limits.grace)
        if told is not None:
            if told.reason is Reason.MEMORY:
                self.kill()
            return told
        if self._hung:
            why = f"no answer within {limits.time:g} s"
            return GroupReply(None, limits.time, Status.GAVE_UP, Reason.TIME_LIMIT, why)
        why = f"the worker process ended with code {self.process.wait()}"
        return GroupReply(None, 0.0, Status.FAILED, Reason.CRASH, why)

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
    """Workers that outlive a cell and serve the next one; a killed one is replaced and fits again."""

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

    def _take(self, threads: int) -> Worker:
        with self._lock:
            for worker in self._idle:
                if worker.threads == threads and worker.alive:
                    self._idle.remove(worker)
                    return worker
        return self._starter.submit(Worker, threads).result()

    def _give_back(self, worker: Worker) -> None:
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

        def task(number: int) -> _Task:
            identity = factuals.index[number]
            return _Task(
                lambda: problem_of(identity),
                lambda worker: _answered(worker, factuals.iloc[[number]], count, seed(identity), limits),
                lambda fitted: _without(fitted, identity, count),
            )

        yield from self._run(method, [task(number) for number in range(len(factuals))], limits, jobs)

    def explain_groups(
        self,
        method: Method,
        groups: Mapping[Any, tuple[Problem, pd.DataFrame]],
        seed: Callable[[Any], tuple[int, ...]],
        limits: Limits,
        jobs: int = 1,
    ) -> Iterator[GroupOutcome]:
        """As ``explain``, for groups by name: the problem and the factuals of each; ``limits.time`` is a group's."""

        def task(name: Any, problem: Problem, factuals: pd.DataFrame) -> _Task:
            return _Task(
                lambda: problem,
                lambda worker: _answered_group(worker, name, factuals, seed(name), limits),
                lambda fitted: _without_group(fitted, name),
            )

        yield from self._run(method, [task(name, *group) for name, group in groups.items()], limits, jobs)

    def _run(self, method: Method, asked: Sequence[_Task], limits: Limits, jobs: int) -> Iterator[Any]:
        """Outcomes of tasks in the order in which they come about."""
        tasks: queue.SimpleQueue[_Task] = queue.SimpleQueue()
        for task in asked:
            tasks.put(task)
        outcomes: queue.SimpleQueue[Any] = queue.SimpleQueue()
        stop = threading.Event()
        running: list[Worker] = []
        unfit: dict[int, Fitted] = {}  # a fit that failed or was refused is not tried again for the next factual

        def run() -> None:
            worker, loaded = self._take(limits.threads), None
            running.append(worker)
            try:
                while not stop.is_set():
                    try:
                        task = tasks.get_nowait()
                    except queue.Empty:
                        break
                    problem = task.problem()
                    if not worker.alive:
                        running.remove(worker)
                        worker, loaded = self._take(limits.threads), None
                        running.append(worker)
                    if id(problem) not in unfit and loaded is not problem:
                        fitted = worker.load(method, problem, limits)
                        loaded = problem
                        if fitted.refusal or fitted.fault:
                            unfit[id(problem)] = fitted
                    if failed := unfit.get(id(problem)):
                        outcomes.put(task.without(failed))
                    else:
                        outcomes.put(task.ask(worker))
            except BaseException as fault:
                outcomes.put(fault)
            finally:
                running.remove(worker)
                if stop.is_set():
                    worker.kill()
                else:
                    self._give_back(worker)
                outcomes.put(None)

        threads = [threading.Thread(target=run, daemon=True) for _ in range(min(jobs, len(asked)))]
        for thread in threads:
            thread.start()
        try:
            ended = 0
            while ended < len(threads):
                outcome = outcomes.get()
                if outcome is None:
                    ended += 1
                elif isinstance(outcome, BaseException):
                    raise outcome
                else:
                    yield outcome
        finally:
            stop.set()
            if any(thread.is_alive() for thread in threads):
                for worker in list(running):
                    worker.end()
            for thread in threads:  # so that every worker is either ended or idle, where ``close`` finds it
                thread.join(timeout=10.0)


def _without(fitted: Fitted, identity: Any, count: int) -> Outcome:
    """The outcome of a factual whose problem could not be fitted."""
    if fitted.refusal:
        return Outcome(identity, refused(count, fitted.refusal), 0.0, fitted.seconds)
    explanation = Explanation.none(count, _status(fitted), fitted.reason, fitted.fault or "")
    return Outcome(identity, explanation, 0.0, fitted.seconds)


def _without_group(fitted: Fitted, name: Any) -> GroupOutcome:
    if fitted.refusal:
        told = GroupReply(None, 0.0, Status.UNSUPPORTED, Reason.REFUSED, fitted.refusal)
    else:
        told = GroupReply(None, 0.0, _status(fitted), fitted.reason, fitted.fault or "")
    return GroupOutcome(name, told, 0.0, fitted.seconds)


def _status(fitted: Fitted) -> Status:
    return Status.FAILED if fitted.reason is Reason.CRASH else Status.GAVE_UP


def _answered_group(
    worker: Worker, name: Any, factuals: pd.DataFrame, seed: tuple[int, ...], limits: Limits
) -> GroupOutcome:
    fitted = worker.fitted or Fitted(0.0)
    told = worker.ask_group(factuals, seed, limits)
    late = told.seconds > limits.time
    return GroupOutcome(name, told, told.seconds, fitted.seconds, fitted.compile_seconds, late)


def _answered(worker: Worker, factual: pd.DataFrame, count: int, seed: tuple[int, ...], limits: Limits) -> Outcome:
    fitted = worker.fitted or Fitted(0.0)
    told = worker.ask(factual, count, seed, limits)
    late = told.seconds > limits.time
    return Outcome(factual.index[0], told.explanation, told.seconds, fitted.seconds, fitted.compile_seconds, late)
