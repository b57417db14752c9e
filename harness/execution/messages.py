"""What the harness and a worker process send each other."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from harness.core.explanation import Explanation, GroupExplanation, Reason, Status
from harness.core.method import Method
from harness.core.problem import Problem


@dataclass(frozen=True)
class FitRequest:
    """Fit ``method`` to ``problem``. Answered by ``Begun``, then by ``Fitted``."""

    method: Method
    problem: Problem
    memory_limit: float | None


@dataclass(frozen=True)
class FitStarted:
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
class ExplainRequest:
    """Explain one factual. Answered by ``Told``."""

    factual: pd.DataFrame
    count: int
    seed: tuple[int, ...]
    limit: float


@dataclass(frozen=True)
class ExplainReply:
    """An explanation and the wall-clock seconds it took."""

    explanation: Explanation
    seconds: float


@dataclass(frozen=True)
class GroupRequest:
    """Explain several factuals at once. Answered by ``ToldGroup``."""

    factuals: pd.DataFrame
    seed: tuple[int, ...]
    limit: float


@dataclass(frozen=True)
class GroupReply:
    """The explanation of a group, or why there is none; and the wall-clock seconds it took."""

    explanation: GroupExplanation | None
    seconds: float
    status: Status = Status.FOUND
    reason: Reason = Reason.FINISHED
    detail: str = ""
