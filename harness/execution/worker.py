"""A worker process: fits a method to a problem, then answers a factual or a group a message. Started by ``pool.py``."""

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
from dataclasses import replace
from multiprocessing.connection import Connection
from typing import Any

import numpy as np

from harness.core.errors import HarnessError
from harness.core.explanation import Explanation, Reason, Status
from harness.core.method import Deadline, Explainer, GroupExplainer
from harness.core.problem import Problem
from harness.execution.contract import breach, group_breach
from harness.execution.messages import (
    ExplainReply,
    ExplainRequest,
    FitRequest,
    FitStarted,
    Fitted,
    GroupReply,
    GroupRequest,
)


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
        if isinstance(message, FitRequest):
            explainer = None  # free the last cell's memory before the next one is built
            problem = message.problem
            connection.send(FitStarted())
            explainer, fitted = _fit(message)
            connection.send(fitted)
        elif explainer is not None and problem is not None:
            answer = _explain_group if isinstance(message, GroupRequest) else _explain
            connection.send(answer(explainer, problem, message))


def _fit(load: FitRequest) -> tuple[Explainer | None, Fitted]:
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


def _explain(explainer: Explainer, problem: Problem, ask: ExplainRequest) -> ExplainReply:
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
    return ExplainReply(explanation, time.perf_counter() - start)


def _explain_group(explainer: Explainer, problem: Problem, ask: GroupRequest) -> GroupReply:
    if not isinstance(explainer, GroupExplainer):
        why = "this method explains no groups; leave 'group' out, or choose a method such as column_generation"
        return GroupReply(None, 0.0, Status.UNSUPPORTED, Reason.REFUSED, why)
    rng = np.random.default_rng(np.random.SeedSequence(ask.seed))
    start = time.perf_counter()
    try:
        explanation = explainer.explain_group(ask.factuals.copy(), rng, Deadline.after(ask.limit))
    except HarnessError as error:
        told = GroupReply(None, 0.0, Status.UNSUPPORTED, Reason.REFUSED, str(error))
    except MemoryError:
        told = GroupReply(None, 0.0, Status.GAVE_UP, Reason.MEMORY, "the memory limit was reached")
    except Exception:
        told = GroupReply(None, 0.0, Status.FAILED, Reason.CRASH, traceback.format_exc())
    else:
        fault = group_breach(explanation, problem, ask.factuals)
        failed = GroupReply(None, 0.0, Status.FAILED, Reason.CRASH, fault or "")
        told = failed if fault else GroupReply(explanation, 0.0)
    return replace(told, seconds=time.perf_counter() - start)


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
    # Messages name this module, so it must be known by its name, not as __main__.
    from harness.execution import worker

    worker.main(sys.argv[1:])
