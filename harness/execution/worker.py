"""A worker process: fits a method to a problem, then answers a factual or a group a message. See ``start.py``."""

from __future__ import annotations

import contextlib
import importlib
import os
import resource
import signal
import sys
import time
import traceback
from dataclasses import replace
from multiprocessing.connection import Connection
from typing import Any

from harness.core.doubts import doubts, with_doubts
from harness.core.errors import HarnessError
from harness.core.explanation import Explanation, Reason, Status
from harness.core.method import Deadline, Explainer, GroupExplainer, fit
from harness.core.method import refusal as refusal_of
from harness.core.problem import Problem
from harness.core.processes import die_with_parent
from harness.core.randomness import seeded
from harness.execution.clocks import CompileClock, forget_peak, peak_mib, processor_seconds
from harness.execution.contract import breach, group_breach
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


def serve(connection: Connection) -> None:
    """Answer messages until the other end closes."""
    problem: Problem | None = None
    explainer: Explainer | None = None
    claims = True
    compiling, own = CompileClock(lambda ours, seconds: connection.send(Compiling(ours, seconds))), os.getpid()
    while True:
        compiled = compiling.seconds  # receiving a method imports its modules, which may compile
        try:
            message = connection.recv()
        except (EOFError, OSError):
            return
        except Exception as fault:
            reason = Reason.MEMORY if isinstance(fault, MemoryError) else Reason.CRASH
            connection.send(Fitted(cpu_seconds=processor_seconds(), fault=traceback.format_exc(), reason=reason))
            continue
        if isinstance(message, FitRequest):
            explainer = None  # frees the last one's memory before the next is built
            forget_peak()
            problem = message.problem
            connection.send(FitStarted())
            explainer, fitted = _fit(message, compiling)
            claims = fitted.claim is not None
            _end_a_copy(own)
            compiled = compiling.seconds - compiled
            connection.send(
                replace(fitted, compile_seconds=compiled, cpu_seconds=processor_seconds() + _far_seconds(explainer))
            )
        elif explainer is not None and problem is not None:
            reply = _timed(explainer, problem, message, compiling, claims)
            _end_a_copy(own)
            connection.send(reply)


def _end_a_copy(own: int) -> None:
    """End a process that a method has forked from the worker, as it would read and answer messages, too."""
    if os.getpid() != own:
        os._exit(1)


def _fit(request: FitRequest, compiling: CompileClock) -> tuple[Explainer | None, Fitted]:
    _limit_memory(request.memory_limit)
    seeded(request.seed)
    method, problem, deadline = request.method, request.problem, Deadline.after(request.limit)
    explainer, claim, refusal, fault, reason = None, None, None, None, Reason.CRASH
    start = time.perf_counter() - compiling.seconds  # seconds spent compiling are none of the fit's

    def elapsed() -> float:
        return time.perf_counter() - compiling.seconds - start

    seconds = None
    try:
        refusal = refusal_of(method, problem)
        explainer = None if refusal else fit(method, problem, deadline)
        seconds = elapsed()
        claim = None if refusal else method.objective(problem)
    except HarnessError as error:
        refusal = str(error)
    except MemoryError:
        fault, reason = "the memory limit was reached while fitting", Reason.MEMORY
    except Exception:
        fault = traceback.format_exc()
    stored = None if claim is None else claim.stored()
    seconds = elapsed() if seconds is None else seconds
    return explainer, Fitted(seconds, refusal=refusal, fault=fault, reason=reason, claim=stored)


def _timed(
    explainer: Explainer,
    problem: Problem,
    request: ExplainRequest | GroupRequest,
    compiling: CompileClock,
    claims: bool = True,
) -> ExplainReply | GroupReply:
    """The reply to a question with what it took, and whether it is the last that this process can give.

    What it took is without the seconds that numba compiled for, as of a fit.

    It is where the explainer has lost what it needs, and where memory ran out: what is not freed then would cost the
    next question its answer.
    """
    served, far = _model_seconds(explainer), _far_seconds(explainer)  # looking at other processes takes time itself
    spent, start = processor_seconds(), time.perf_counter() - compiling.seconds
    reply: ExplainReply | GroupReply
    if isinstance(request, GroupRequest):
        reply = _explain_group(explainer, problem, request)
        reasons = {reply.reason}
    else:
        reply = _explain(explainer, problem, request, claims)
        reasons = {answer.reason for answer in reply.explanation.answers}
    seconds, spent = time.perf_counter() - compiling.seconds - start, processor_seconds() - spent
    told = _model_seconds(explainer)
    return replace(
        reply,
        seconds=seconds,
        cpu_seconds=spent + _far_seconds(explainer) - far,
        model_seconds=None if told is None or served is None else told - served,
        peak_mib=peak_mib(),
        last=bool(getattr(explainer, "lost", False)) or Reason.MEMORY in reasons,
    )


def _explain(explainer: Explainer, problem: Problem, request: ExplainRequest, claims: bool = True) -> ExplainReply:
    count, rng = request.count, seeded(request.seed)
    try:
        with doubts() as met:
            explanation = explainer.explain(request.factual.copy(), count, rng, Deadline.after(request.limit))
        fault = breach(explanation, problem, request, claims)
        if fault:
            explanation = Explanation.none(count, Status.FAILED, Reason.CRASH, fault)
        explanation = with_doubts(explanation, met)
    except MemoryError:
        explanation = Explanation.none(count, Status.GAVE_UP, Reason.MEMORY, "the memory limit was reached")
    except Exception:
        explanation = Explanation.none(count, Status.FAILED, Reason.CRASH, traceback.format_exc())
    return ExplainReply(explanation)


def _far_seconds(explainer: Explainer | None) -> float:
    """Processor seconds of what the explainer has running elsewhere."""
    return float(getattr(explainer, "cpu_seconds", 0.0))


def _model_seconds(explainer: Explainer) -> float | None:
    found = getattr(explainer, "model_seconds", None)
    return None if found is None else float(found)


def _explain_group(explainer: Explainer, problem: Problem, request: GroupRequest) -> GroupReply:
    if not isinstance(explainer, GroupExplainer):
        why = "this method explains no groups; leave 'group' out, or choose a method such as column_generation"
        return GroupReply(None, status=Status.UNSUPPORTED, reason=Reason.REFUSED, detail=why)
    rng = seeded(request.seed)
    try:
        with doubts() as met:
            explanation = explainer.explain_group(request.factuals.copy(), rng, Deadline.after(request.limit))
        if fault := group_breach(explanation, problem, request.factuals):
            return GroupReply(None, status=Status.FAILED, reason=Reason.CRASH, detail=fault)
        return GroupReply(with_doubts(explanation, met))
    except HarnessError as error:
        return GroupReply(None, status=Status.UNSUPPORTED, reason=Reason.REFUSED, detail=str(error))
    except MemoryError:
        return GroupReply(None, status=Status.GAVE_UP, reason=Reason.MEMORY, detail="the memory limit was reached")
    except Exception:
        return GroupReply(None, status=Status.FAILED, reason=Reason.CRASH, detail=traceback.format_exc())


def _limit_memory(gibibytes: float | None) -> None:
    """Limit data to so many GiB, and in any case to what the machine allows."""
    most = resource.getrlimit(resource.RLIMIT_DATA)[1]
    limit = most if gibibytes is None else int(gibibytes * 2**30)
    limit = limit if most == resource.RLIM_INFINITY else min(limit, most)
    resource.setrlimit(resource.RLIMIT_DATA, (limit, most))


def main(arguments: list[str]) -> None:
    """Serve on the inherited file descriptor that the first argument names; what methods print is discarded.

    Further arguments are modules to import before the first message comes, where they are there.
    """
    die_with_parent()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    quiet = os.open(os.devnull, os.O_WRONLY)
    os.dup2(quiet, 1)
    os.dup2(quiet, 2)
    connection: Any = Connection(int(arguments[0]))
    for module in arguments[1:]:
        with contextlib.suppress(ImportError):
            importlib.import_module(module)
    serve(connection)


if __name__ == "__main__":
    main(sys.argv[1:])
