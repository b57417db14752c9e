"""What the harness and a worker process send each other."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from harness.core.explanation import Explanation, GroupExplanation, Reason, Status
from harness.core.method import Method
from harness.core.objective import Objective
from harness.core.problem import Problem


@dataclass(frozen=True)
class FitRequest:
    """Fit ``method`` to ``problem`` within ``limit`` seconds. Answered by ``FitStarted``, then by ``Fitted``."""

    method: Method
    problem: Problem
    memory_limit: float | None
    limit: float
    seed: tuple[int, ...] = ()  # of what draws from the process's own generators


@dataclass(frozen=True)
class FitStarted:
    """A ``FitRequest`` has been received in full: from here on the time is the fit's."""


@dataclass(frozen=True)
class Compiling:
    """Numba has begun to compile a kernel, of ``ours`` or of others, or has compiled one, in ``seconds``.

    Sent before another reply. These seconds are no part of any limit.
    """

    ours: bool = True
    seconds: float | None = None


@dataclass(frozen=True)
class Fitted:
    """What became of a fit.

    Parameters
    ----------
    seconds
        Of the method's ``refuses`` and ``fit``, without those that numba compiled for.
    compile_seconds
        That numba compiled for since the request came, imports of the method's modules included; 0 where all kernels
        came from its cache.
    cpu_seconds
        Processor seconds of the worker since its start, of its ended children too; None where it ended before.
    refusal
        Why the method does not take the problem.
    fault, reason
        Why the fit failed.
    claim
        What the method claims to minimise and the limits it states, as they are stored; None where it claims nothing.
    """

    seconds: float = 0.0
    compile_seconds: float = 0.0
    cpu_seconds: float | None = None
    refusal: str | None = None
    fault: str | None = None
    reason: Reason = Reason.CRASH
    claim: Objective | None = None


@dataclass(frozen=True)
class ExplainRequest:
    """Explain one factual. Answered by ``ExplainReply``."""

    factual: pd.DataFrame
    count: int
    seed: tuple[int, ...]
    limit: float


@dataclass(frozen=True)
class ExplainReply:
    """An explanation, the wall-clock seconds it took, and the worker's processor seconds.

    ``cpu_seconds`` are those of processes that it started, too; None of a worker that was killed or crashed.
    ``model_seconds``: of ``seconds``, those in which the worker answered such a process about the model; None where
    there is none. ``peak_mib``: the worker's most memory since its fit began. ``last``: whether the worker can answer
    no more.
    """

    explanation: Explanation
    seconds: float = 0.0
    cpu_seconds: float | None = None
    model_seconds: float | None = None
    peak_mib: float | None = None
    last: bool = False


@dataclass(frozen=True)
class GroupRequest:
    """Explain several factuals at once. Answered by ``GroupReply``."""

    factuals: pd.DataFrame
    seed: tuple[int, ...]
    limit: float


@dataclass(frozen=True)
class GroupReply:
    """The explanation of a group, or why there is none; and its seconds, as of ``ExplainReply``."""

    explanation: GroupExplanation | None
    seconds: float = 0.0
    status: Status = Status.FOUND
    reason: Reason = Reason.FINISHED
    detail: str = ""
    cpu_seconds: float | None = None
    model_seconds: float | None = None
    peak_mib: float | None = None
    last: bool = False
