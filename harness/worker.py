"""A worker process: fits a method to a problem, then answers one factual a message. Started by ``pool.py``."""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import signal
import sys
import time
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

import numpy as np
import pandas as pd

from harness.errors import HarnessError
from harness.explanation import Answer, Explanation, Reason, Status
from harness.method import Deadline, Explainer, Method
from harness.problem import Problem


@dataclass(frozen=True)
class Load:
    """Fit ``method`` to ``problem``. Answered by ``Begun``, then by ``Fitted``."""

    method: Method
    problem: Problem
    memory_limit: float | None


@dataclass(frozen=True)
class Begun:
    """A ``Load`` has arrived whole: from here on the time is the fit's."""


@dataclass(frozen=True)
class Fitted:
    """``refusal``: why the method does not take the problem; ``fault``: why the fit failed, in a word ``reason``.

    ``seconds`` leaves out those spent compiling, which are ``compile_seconds``.
    """

    seconds: float
    compile_seconds: float = 0.0
    refusal: str | None = None
    fault: str | None = None
    reason: Reason = Reason.CRASH


@dataclass(frozen=True)
class Ask:
    """Explain one factual. Answered by ``Told``."""

    factual: pd.DataFrame
    count: int
    seed: tuple[int, ...]
    limit: float


@dataclass(frozen=True)
class Told:
    """An explanation and the wall-clock seconds it took."""

    explanation: Explanation
    seconds: float


def serve(connection: Connection) -> None:
    """Answer messages until the other end closes."""
    problem: Problem | None = None
    explainer: Explainer | None = None
    while True:
        try:
            message = connection.recv()
        except (EOFError, OSError):
            return
        except Exception:
            connection.send(Fitted(0.0, fault=traceback.format_exc()))
            continue
        if isinstance(message, Load):
            explainer = None  # free the last cell's memory before the next one is built
            problem = message.problem
            connection.send(Begun())
            explainer, fitted = _fit(message)
            connection.send(fitted)
        elif explainer is not None and problem is not None:
            connection.send(_explain(explainer, problem, message))


def _fit(load: Load) -> tuple[Explainer | None, Fitted]:
    _limit_memory(load.memory_limit)
    explainer, refusal, fault, reason = None, None, None, Reason.CRASH
    start = time.perf_counter()
    with _compilation() as compiled:
        try:
            refusal = load.method.refuses(load.problem)
            explainer = None if refusal else load.method.fit(load.problem)
        except HarnessError as error:
            refusal = str(error)
        except MemoryError:
            fault, reason = "the memory limit was reached while fitting", Reason.MEMORY
        except Exception:
            fault = traceback.format_exc()
    seconds = time.perf_counter() - start
    return explainer, Fitted(seconds - sum(compiled), sum(compiled), refusal, fault, reason)


@contextlib.contextmanager
def _compilation() -> Iterator[list[float]]:
    """Seconds that numba spends on compiling meanwhile; they are no part of a fit, as they are spent once a machine."""
    spent: list[float] = []
    if "numba" not in sys.modules:
        yield spent
        return
    from numba.core.event import install_timer

    with install_timer("numba:compile", spent.append):
        yield spent


def _explain(explainer: Explainer, problem: Problem, ask: Ask) -> Told:
    rng = np.random.default_rng(np.random.SeedSequence(ask.seed))
    start = time.perf_counter()
    try:
        explanation = explainer.explain(ask.factual.copy(), ask.count, rng, Deadline.after(ask.limit))
        fault = breach(explanation, problem, ask)
        if fault:
            explanation = Explanation.none(ask.count, Status.FAILED, Reason.CRASH, fault)
    except MemoryError:
        explanation = Explanation.none(ask.count, Status.GAVE_UP, Reason.MEMORY, "the memory limit was reached")
    except Exception:
        explanation = Explanation.none(ask.count, Status.FAILED, Reason.CRASH, traceback.format_exc())
    return Told(explanation, time.perf_counter() - start)


def breach(explanation: Explanation, problem: Problem, ask: Ask) -> str | None:
    """How an explanation breaks the contract of ``Explainer``, if it does."""
    if len(explanation.answers) != ask.count:
        return f"the method was asked for {ask.count} answers and gave {len(explanation.answers)}"
    origin = ask.factual.iloc[0].to_dict()
    for answer in explanation.answers:
        if answer.row is None:
            continue
        if set(answer.row) != set(problem.space.names):
            return f"the method gave a row with columns {sorted(answer.row)}, not {sorted(problem.space.names)}"
        if any(pd.isna(value) for value in answer.row.values()):
            return "the method gave a row with missing values"
        if all(answer.row[name] == origin[name] for name in origin):
            return "the method handed the factual back as an answer"
    return None


def refused(count: int, why: str) -> Explanation:
    """The answers of a method that does not take the question."""
    return Explanation(tuple(Answer(Status.UNSUPPORTED, reason=Reason.REFUSED, detail=why) for _ in range(count)))


def _limit_memory(gibibytes: float | None) -> None:
    limit = resource.RLIM_INFINITY if gibibytes is None else int(gibibytes * 2**30)
    resource.setrlimit(resource.RLIMIT_DATA, (limit, resource.getrlimit(resource.RLIMIT_DATA)[1]))


def _die_with_parent() -> None:
    """On Linux, have the kernel end this process when its parent ends, however it does."""
    with contextlib.suppress(OSError, AttributeError):
        set_parent_death_signal = 1
        ctypes.CDLL(None).prctl(set_parent_death_signal, signal.SIGKILL)


def main(arguments: list[str]) -> None:
    """Serve on the inherited file descriptor named by the first argument; what methods print is thrown away."""
    _die_with_parent()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    quiet = os.open(os.devnull, os.O_WRONLY)
    os.dup2(quiet, 1)
    os.dup2(quiet, 2)
    connection: Any = Connection(int(arguments[0]))
    serve(connection)


if __name__ == "__main__":
    # The messages are unpickled as harness.worker's, so the module must be known by that name, not as __main__.
    from harness import worker

    worker.main(sys.argv[1:])
