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
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from typing import Any

import numpy as np
import pandas as pd

from harness.core.errors import HarnessError
from harness.core.explanation import Answer, Explanation, GroupExplanation, Reason, Status
from harness.core.method import Deadline, Explainer, GroupExplainer, Method
from harness.core.problem import Problem


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


@dataclass(frozen=True)
class AskGroup:
    """Explain several factuals at once. Answered by ``ToldGroup``."""

    factuals: pd.DataFrame
    seed: tuple[int, ...]
    limit: float


@dataclass(frozen=True)
class ToldGroup:
    """The explanation of a group, or why there is none; and the wall-clock seconds it took."""

    explanation: GroupExplanation | None
    seconds: float
    status: Status = Status.FOUND
    reason: Reason = Reason.FINISHED
    detail: str = ""


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
            answer = _explain_group if isinstance(message, AskGroup) else _explain
            connection.send(answer(explainer, problem, message))


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


def _explain_group(explainer: Explainer, problem: Problem, ask: AskGroup) -> ToldGroup:
    if not isinstance(explainer, GroupExplainer):
        why = "this method explains no groups; leave 'group' out, or choose a method such as column_generation"
        return ToldGroup(None, 0.0, Status.UNSUPPORTED, Reason.REFUSED, why)
    rng = np.random.default_rng(np.random.SeedSequence(ask.seed))
    start = time.perf_counter()
    try:
        explanation = explainer.explain_group(ask.factuals.copy(), rng, Deadline.after(ask.limit))
    except HarnessError as error:
        told = ToldGroup(None, 0.0, Status.UNSUPPORTED, Reason.REFUSED, str(error))
    except MemoryError:
        told = ToldGroup(None, 0.0, Status.GAVE_UP, Reason.MEMORY, "the memory limit was reached")
    except Exception:
        told = ToldGroup(None, 0.0, Status.FAILED, Reason.CRASH, traceback.format_exc())
    else:
        fault = group_breach(explanation, problem, ask.factuals)
        failed = ToldGroup(None, 0.0, Status.FAILED, Reason.CRASH, fault or "")
        told = failed if fault else ToldGroup(explanation, 0.0)
    return replace(told, seconds=time.perf_counter() - start)


def group_breach(explanation: GroupExplanation, problem: Problem, factuals: pd.DataFrame) -> str | None:
    """How an explanation breaks the contract of ``GroupExplainer``, if it does."""
    assigned, left = explanation.assignment, explanation.uncoverable
    if strangers := (set(assigned) | set(left)) - set(factuals.index):
        return f"the method spoke of {sorted(map(str, strangers))}, who are not in the group"
    if both := set(assigned) & set(left):
        return f"the method both explained {sorted(map(str, both))} and called them uncoverable"
    if odd := set(assigned.values()) ^ set(range(len(explanation.points))):
        return f"the method gave {len(explanation.points)} points, and those numbered {sorted(odd)} serve nobody"
    if len(explanation.changed) != len(explanation.points):
        return f"the method gave {len(explanation.points)} points and changed features of {len(explanation.changed)}"
    for point in explanation.points:
        if point.row is None:
            return "the method gave a point without a row"
        if fault := _misfit(point.row, problem):
            return fault
    return None


def _misfit(row: dict[str, Any], problem: Problem) -> str | None:
    if set(row) != set(problem.space.names):
        return f"the method gave a row with columns {sorted(row)}, not {sorted(problem.space.names)}"
    return "the method gave a row with missing values" if any(pd.isna(value) for value in row.values()) else None


def breach(explanation: Explanation, problem: Problem, ask: Ask) -> str | None:
    """How an explanation breaks the contract of ``Explainer``, if it does."""
    if len(explanation.answers) != ask.count:
        return f"the method was asked for {ask.count} answers and gave {len(explanation.answers)}"
    origin = ask.factual.iloc[0].to_dict()
    for answer in explanation.answers:
        if answer.row is None:
            continue
        if fault := _misfit(answer.row, problem):
            return fault
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
