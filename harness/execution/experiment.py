"""One run: a method is asked about each factual of a task, or about groups of them, and the answers are stored."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import numpy as np
import pandas as pd

from harness.core.errors import DatasetError, choices
from harness.core.explanation import Answer, Reason, Status
from harness.core.method import Method
from harness.core.notation import MOST
from harness.core.objective import Objective
from harness.core.wording import SATISFIED, target_text
from harness.execution.contract import refused
from harness.execution.pool import GroupOutcome, Limits, Outcome, Pool
from harness.execution.satisfied import ASK, LEAVE_OUT, WithoutCopies
from harness.execution.task import EXPLAIN, Task
from harness.store.rows import answer_row, group_line
from harness.store.run import StoredRun

EVERYBODY = "all"  # the name of the one group


@dataclass(frozen=True)
class Workers:
    """Who answers, and under which conditions, which are noted beside each timing.

    Parameters
    ----------
    limits
        Those of an answer; ``limits.time`` is that of a factual, or of a group.
    jobs
        How many questions of a run are asked at once.
    beside
        How many runs go on at once, this one included.
    """

    pool: Pool
    limits: Limits
    jobs: int = 1
    beside: int = 1

    def timing(self, outcome: Outcome | GroupOutcome) -> dict[str, Any]:
        """The times of an outcome, as they are stored."""
        spent = ("seconds", "cpu_seconds", "fit_seconds", "compile_seconds", "late")
        times = {name: getattr(outcome, name) for name in spent}
        known = {"model_seconds": outcome.model_seconds, "peak_mib": outcome.peak_mib}
        times |= {name: value for name, value in known.items() if value is not None}
        return {**times, "jobs": self.jobs, "beside": self.beside}


def run(
    stored: StoredRun,
    task: Task,
    method: Method,
    count: int,
    seed: int,
    workers: Workers,
    progress: Callable[[int], object] = lambda done: None,
    satisfied: str = LEAVE_OUT,
) -> None:
    """Ask a method about every factual without an answer, storing each as it comes; what failed is left open.

    Parameters
    ----------
    satisfied
        What becomes of factuals that the target holds for already: ``leave_out``, as there is no question, or ``ask``,
        where a copy of the factual is no counterfactual.
    """
    done, open_ = _open(stored, task, count, progress, satisfied)
    if satisfied == ASK:
        method = WithoutCopies(method, frozenset(open_.index[task.content(open_)]))
    once = _Once(stored, task)
    asked = workers.pool.explain(method, task.problem, open_, count, entropy(seed), workers.limits, workers.jobs)
    for outcome in chain(done, asked):
        once.keep(outcome)
        timing = workers.timing(outcome)
        extra = {"conflict": outcome.explanation.conflict, "trace": outcome.explanation.trace}
        stored.append(
            answer_row(outcome.factual, k + 1, answer, **timing, **(extra if k == 0 else {}))
            for k, answer in enumerate(outcome.explanation.answers)
        )
        progress(1)
    _close(stored, task)


class _Once:
    """Stores what is known of the whole run, as the first outcomes bring it: the set-up, and what the method claims."""

    def __init__(self, stored: StoredRun, task: Task, group: bool = False) -> None:
        self.stored, self.group, self.several = stored, group, len(task.problems) > 1
        self.unclaimed = stored.meta["objective"] is None
        self.unmeasured = stored.meta.get("setup") is None  # a run that is resumed keeps the first

    def keep(self, outcome: Outcome | GroupOutcome) -> None:
        """Store what an outcome brings for the first time."""
        if self.unmeasured and outcome.setup_seconds is not None:
            self.unmeasured = False
            self.stored.update(setup={"seconds": outcome.setup_seconds, "cpu_seconds": outcome.setup_cpu_seconds})
        if self.unclaimed and outcome.claim is not None:
            self.unclaimed = False
            self._claim(outcome.claim)

    def _claim(self, claim: Objective) -> None:
        """Store a claim; of a group the limits alone, as what is minimised is the number of its points."""
        shared = claim.common() if self.several else claim
        if shared is not None:
            self.stored.put_objective(shared.limiting() if self.group else shared)


def _open(
    stored: StoredRun, task: Task, count: int, progress: Callable[[int], object], kept: str = LEAVE_OUT
) -> tuple[Iterator[Outcome], pd.DataFrame]:
    """Of the factuals without an answer: outcomes of those that are left out, as the target holds for them already, and
    the others."""
    answered = stored.answered()
    progress(len(answered & set(task.factuals.index)))
    rest = task.factuals.loc[[index not in answered for index in task.factuals.index]]
    satisfied = task.content(rest) & (kept == LEAVE_OUT)
    done = (Outcome(index, refused(count, SATISFIED)) for index in rest.index[satisfied])
    return done, rest.loc[~satisfied]


def _close(stored: StoredRun, task: Task) -> None:
    if set(task.factuals.index) <= stored.answered():
        stored.finish()


def groups(task: Task, by: bool | str) -> dict[str, pd.DataFrame]:
    """The factuals that the target does not hold for yet, as groups by name; those of a group share a target.

    Parameters
    ----------
    by
        True: all as one group. The name of a feature: one group a value, ``sex=Male``.

    Raises
    ------
    DatasetError
        For a feature that does not exist.
    """
    space, factuals = task.dataset.space, task.factuals
    factuals = factuals.loc[~task.content(factuals)]
    if by is not True and by not in space.names:
        raise DatasetError(f"group={by} is no feature of the dataset; {choices(by, ['true', *space.names])}.")
    several = len({task.targets[index] for index in factuals.index}) > 1
    names = []
    values = [None] * len(factuals) if by is True else factuals[by].tolist()
    for index, value in zip(factuals.index, values, strict=True):
        name = EVERYBODY if by is True else f"{by}={space[by].text(value, MOST)}"
        names.append(f"{name}, wanted {target_text(task.targets[index])}" if several else name)
    return {str(name): group for name, group in factuals.groupby(np.array(names, dtype=object), sort=True)}


def run_groups(
    stored: StoredRun,
    task: Task,
    method: Method,
    by: bool | str,
    seed: int,
    workers: Workers,
    progress: Callable[[int], object] = lambda done: None,
) -> None:
    """Ask a method about every group of which a factual has no answer, storing each as it comes; otherwise as ``run``.

    Each factual's row holds the point that it is assigned to, the number of that
    point, and the seconds of the whole group.
    """
    done, open_ = _open(stored, task, 1, progress)
    for outcome in done:
        (answer,) = outcome.explanation.answers
        stored.append([answer_row(outcome.factual, 1, answer, **workers.timing(outcome))])
        progress(1)
    waiting, once = set(open_.index), _Once(stored, task, group=True)
    rest = {name: group for name, group in groups(task, by).items() if waiting & set(group.index)}
    posed = {name: (task.problem(group.index[0]), group) for name, group in rest.items()}
    for found in workers.pool.explain_groups(method, posed, entropy(seed), workers.limits, workers.jobs):
        once.keep(found)
        timing = workers.timing(found)
        members, reply = rest[found.group].index.tolist(), found.reply
        status = reply.status if reply.explanation is None else reply.explanation.status
        ending = {"status": str(status), "reason": str(reply.reason), "detail": reply.detail}
        stored.append_group(group_line(found.group, members, reply.explanation, **ending, **timing))
        stored.append(_member_rows(found, members, timing))
        progress(len(waiting & set(members)))
    _close(stored, task)


def _member_rows(found: GroupOutcome, members: Sequence[Any], timing: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The row of each factual of a group."""
    explanation, reply = found.explanation, found.reply
    for member in members:
        point = None
        if explanation is None:
            answer = Answer(reply.status, reason=reply.reason, detail=reply.detail)
        elif (point := explanation.assignment.get(member)) is not None:
            proven = explanation.status is Status.OPTIMAL
            answer = replace(
                explanation.points[point],
                status=Status.OPTIMAL if proven else Status.FOUND,
                reason=Reason.PROOF if proven else explanation.points[point].reason,
                objective=None,  # what is minimised, and bounded, is the group's
                bound=None,
            )
        elif member in explanation.uncoverable:
            why = "no counterfactual within the method's limits changes the prediction"
            answer = Answer(Status.INFEASIBLE, reason=Reason.PROOF, detail=why)
        else:
            answer = Answer(Status.GAVE_UP, detail="the method left this factual of the group without a counterfactual")
        yield answer_row(member, 1, answer, group=found.group, **({} if point is None else {"point": point}), **timing)


def entropy(seed: int) -> Callable[[Any], tuple[int, ...]]:
    """The entropy of a factual's generator: neither order nor resumption nor parallel work changes it."""

    def of(factual: Any) -> tuple[int, ...]:
        number = int(factual) if isinstance(factual, int | np.integer) else zlib.crc32(str(factual).encode())
        return (seed, EXPLAIN, number)

    return of
