"""One dataset, one model, one method: pick the factuals, ask of each or of groups, store what came back."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

import numpy as np
import pandas as pd

from harness.core.errors import DatasetError, choices
from harness.core.explanation import Answer, Reason, Status
from harness.core.method import Method
from harness.core.wording import SATISFIED, number, wish
from harness.execution.contract import refused
from harness.execution.pool import GroupOutcome, Limits, Outcome, Pool
from harness.execution.task import EXPLAIN, Task
from harness.store.rows import answer_row, group_line
from harness.store.run import StoredRun

EVERYBODY = "all"  # the name of the one group


def run(
    cell: StoredRun,
    question: Task,
    method: Method,
    count: int,
    seed: int,
    limits: Limits,
    pool: Pool,
    jobs: int = 1,
    progress: Callable[[int], object] = lambda done: None,
    beside: int = 1,
) -> None:
    """Ask a method about every factual without an answer, storing each as it comes; what failed is left open.

    ``beside``: how many cells are run at once, this one included; it is noted beside each timing.
    """
    done, asked = _open(cell, question, count, progress)
    for outcome in chain(done, pool.explain(method, question.problem, asked, count, entropy(seed), limits, jobs)):
        spent = {name: getattr(outcome, name) for name in ("seconds", "fit_seconds", "compile_seconds")}
        timing = {**spent, "late": outcome.late, "jobs": jobs, "beside": beside}
        extra = {"conflict": outcome.explanation.conflict, "trace": outcome.explanation.trace}
        cell.append(
            answer_row(outcome.factual, k + 1, answer, **timing, **(extra if k == 0 else {}))
            for k, answer in enumerate(outcome.explanation.answers)
        )
        progress(1)
    _close(cell, question)


def _open(
    cell: StoredRun, question: Task, count: int, progress: Callable[[int], object]
) -> tuple[Iterator[Outcome], pd.DataFrame]:
    """Of the factuals without an answer: outcomes of those who have what is wanted already, and the others."""
    answered = cell.answered()
    progress(len(answered & set(question.factuals.index)))
    todo = question.factuals.loc[[index not in answered for index in question.factuals.index]]
    satisfied = question.content(todo)
    done = (Outcome(index, refused(count, SATISFIED), 0.0, 0.0) for index in todo.index[satisfied])
    return done, todo.loc[~satisfied]


def _close(cell: StoredRun, question: Task) -> None:
    if set(question.factuals.index) <= cell.answered():
        cell.finish()


def groups(question: Task, by: bool | str) -> dict[str, pd.DataFrame]:
    """The factuals that still lack what is wanted, as groups by name; those of a group share a target.

    Parameters
    ----------
    by
        True: all as one group. The name of a feature: one group a value, ``sex=Male``.

    Raises
    ------
    DatasetError
        For a feature that does not exist.
    """
    space, factuals = question.dataset.space, question.factuals
    factuals = factuals.loc[~question.content(factuals)]
    if by is not True and by not in space.names:
        raise DatasetError(f"group={by} is no feature of the dataset; {choices(by, ['true', *space.names])}.")
    several = len({question.targets[index] for index in factuals.index}) > 1
    names = []
    values = [None] * len(factuals) if by is True else factuals[by].tolist()
    for index, value in zip(factuals.index, values, strict=True):
        name = EVERYBODY if by is True else f"{by}={number(value)}"
        names.append(f"{name}, wanted {wish(question.targets[index])}" if several else name)
    return {str(name): group for name, group in factuals.groupby(np.array(names, dtype=object), sort=True)}


def run_groups(
    cell: StoredRun,
    question: Task,
    method: Method,
    by: bool | str,
    seed: int,
    limits: Limits,
    pool: Pool,
    jobs: int = 1,
    progress: Callable[[int], object] = lambda done: None,
    beside: int = 1,
) -> None:
    """Ask a method about every group of which a factual has no answer, storing each as it comes; otherwise as ``run``.

    ``limits.time`` is that of a group. Each factual's row holds the point that it is assigned to, the number of that
    point, and the seconds of the whole group.
    """
    done, asked = _open(cell, question, 1, progress)
    for outcome in done:
        answer = outcome.explanation.answers[0]
        spent = dict.fromkeys(("seconds", "fit_seconds", "compile_seconds"), 0.0)
        cell.append([answer_row(outcome.factual, 1, answer, **spent, late=False, jobs=jobs, beside=beside)])
        progress(1)
    waiting = set(asked.index)
    todo = {name: group for name, group in groups(question, by).items() if waiting & set(group.index)}
    posed = {name: (question.problem(group.index[0]), group) for name, group in todo.items()}
    for found in pool.explain_groups(method, posed, entropy(seed), limits, jobs):
        spent = {name: getattr(found, name) for name in ("seconds", "fit_seconds", "compile_seconds", "late")}
        spent |= {"jobs": jobs, "beside": beside}
        members, told = todo[found.group].index.tolist(), found.told
        status = told.status if told.explanation is None else told.explanation.status
        said = {"status": str(status), "reason": str(told.reason), "detail": told.detail}
        cell.append_group(group_line(found.group, members, told.explanation, **said, **spent))
        cell.append(_member_rows(found, members, spent))
        progress(len(waiting & set(members)))
    _close(cell, question)


def _member_rows(found: GroupOutcome, members: Sequence[Any], spent: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The row of each factual of a group."""
    explanation, told = found.explanation, found.told
    for member in members:
        point = None
        if explanation is None:
            answer = Answer(told.status, reason=told.reason, detail=told.detail)
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
        yield answer_row(member, 1, answer, group=found.group, **({} if point is None else {"point": point}), **spent)


def entropy(seed: int) -> Callable[[Any], tuple[int, ...]]:
    """The entropy of a factual's generator: neither order nor resumption nor parallel work changes it."""

    def of(factual: Any) -> tuple[int, ...]:
        number = int(factual) if isinstance(factual, int | np.integer) else zlib.crc32(str(factual).encode())
        return (seed, EXPLAIN, number)

    return of
