"""One dataset, one model, one method: pick the factuals, ask of each or of groups, store what came back."""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from harness.core.classifier import Classifier
from harness.core.equation import Equation
from harness.core.errors import DatasetError, choices
from harness.core.explanation import Answer, Reason, Status
from harness.core.method import Method
from harness.core.problem import Problem
from harness.core.target import Label, Target
from harness.data import Dataset, parse_target
from harness.data.own import read_people
from harness.explain import SATISFIED, number, wish
from harness.pool import GroupOutcome, Limits, Outcome, Pool
from harness.store.cell import Cell
from harness.store.rows import answer_row, group_line
from harness.worker import refused

PICK, EXPLAIN = 0, 1  # streams of random numbers: which factuals, and what a method draws for each
EVERYBODY = "all"  # the name of the one group
WHICH = ("test", "test_then_train", "all")  # rows that factuals are picked from


@dataclass(frozen=True)
class Question:
    """A dataset and a model, and the problem that each factual poses."""

    dataset: Dataset
    classifier: Classifier
    factuals: pd.DataFrame
    targets: Mapping[Any, Target]
    problems: Mapping[Target, Problem]

    def problem(self, factual: Any) -> Problem:
        """The problem of a factual, by id; factuals with the same target share it."""
        return self.problems[self.targets[factual]]

    def satisfied(self, factual: Any) -> bool:
        """Whether the model already says what is wanted."""
        return bool(self.content(self.factuals.loc[[factual]])[0])

    def content(self, factuals: pd.DataFrame) -> np.ndarray:
        """Of which of these factuals the model already says what is wanted, bool."""
        found, wanted = np.zeros(len(factuals), bool), [self.targets[index] for index in factuals.index]
        for target in dict.fromkeys(wanted):
            having = np.array([each == target for each in wanted])
            found[having] = self.problems[target].valid(factuals.loc[having])
        return found


def pose(
    dataset: Dataset,
    classifier: Classifier,
    desired: Any = None,
    which: str | int | list[int] = "test",
    n_factuals: int = 30,
    seed: int = 0,
    equations: Sequence[Equation] = (),
) -> Question:
    """The factuals of a model, the same for every method, with their targets.

    Parameters
    ----------
    desired
        What the model should say; the dataset's own wish where None. ``opposite`` wants the other class of two.
    which
        ``test`` or ``all``: the first ``n_factuals`` rows predicted as undesired, in one seeded permutation of the test
        rows (of all rows); ``test_then_train``: training rows where those of ``test`` are too few; a row number, or
        several; or the path of a CSV file with the people to explain.
    equations
        Those of ``dataset.causality``, as ``harness.models.equations.equations`` makes them.
    """
    endogenous = {name for name, entry in dataset.causality.items() if entry is not None}
    if missing := endogenous ^ {equation.feature for equation in equations}:
        raise DatasetError(
            f"{dataset.name} and the equations do not agree on {', '.join(sorted(missing))}; "
            f"give those that harness.models.equations.equations makes of the dataset's 'causality'."
        )
    wish = parse_target(dataset, desired)
    if isinstance(which, str) and which in WHICH:
        shuffled = np.random.default_rng(np.random.SeedSequence([seed, PICK])).permutation
        order = shuffled(np.arange(len(dataset.frame)) if which == "all" else dataset.test)
        if which == "test_then_train":
            order = np.append(order, shuffled(np.setdiff1d(dataset.train, dataset.test)))
        candidates = dataset.frame.iloc[order]
        if isinstance(wish, str):
            factuals = candidates.iloc[:n_factuals]
        else:
            factuals = candidates.loc[~wish.holds(classifier, candidates)].iloc[:n_factuals]
        if factuals.empty:
            raise DatasetError(
                f"the model already predicts {desired or dataset.desired!r} for every row of factuals={which}; "
                f"choose another 'desired', or other factuals."
            )
    elif isinstance(which, str):
        factuals = _read(dataset, Path(which))
    else:
        which = list(dict.fromkeys([which] if isinstance(which, int) else which))
        if not which:
            raise DatasetError("factuals=[] names no row; allowed: test, all, row numbers, or a CSV file.")
        known = dataset.frame.index
        for number in which:
            if number not in known:
                raise DatasetError(
                    f"there is no row {number} among the factuals of {dataset.name}; "
                    f"allowed: {known.min()} to {known.max()}, without the rows dropped as incomplete."
                )
        factuals = dataset.frame.loc[which]
    targets = _targets(wish, classifier, factuals)
    train = dataset.frame.iloc[dataset.train]
    labels = dataset.labels[dataset.train]
    problems = {
        target: Problem(dataset.space, classifier, train, labels, target, equations=tuple(equations))
        for target in dict.fromkeys(targets.values())
    }
    return Question(dataset, classifier, factuals, targets, problems)


def _targets(wish: Target | str, classifier: Classifier, factuals: pd.DataFrame) -> dict[Any, Target]:
    if not isinstance(wish, str):
        return dict.fromkeys(factuals.index, wish)
    if not classifier.binary:
        raise DatasetError(
            f"desired=opposite needs two classes; choose one of: {', '.join(map(str, classifier.classes))}."
        )
    first, second = classifier.classes
    predicted = classifier.predict(factuals)
    return {i: Label(second if c == first else first) for i, c in zip(factuals.index, predicted, strict=True)}


def _read(dataset: Dataset, path: Path) -> pd.DataFrame:
    path = path.expanduser()
    if not os.path.lexists(path):
        raise DatasetError(f"factuals={path} is no file; {choices(str(path), WHICH)}, row numbers, or a CSV file.")
    return read_people(dataset, path)


def run(
    cell: Cell,
    question: Question,
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
    cell: Cell, question: Question, count: int, progress: Callable[[int], object]
) -> tuple[Iterator[Outcome], pd.DataFrame]:
    """Of the factuals without an answer: outcomes of those who have what is wanted already, and the others."""
    answered = cell.answered()
    progress(len(answered & set(question.factuals.index)))
    todo = question.factuals.loc[[index not in answered for index in question.factuals.index]]
    satisfied = question.content(todo)
    done = (Outcome(index, refused(count, SATISFIED), 0.0, 0.0) for index in todo.index[satisfied])
    return done, todo.loc[~satisfied]


def _close(cell: Cell, question: Question) -> None:
    if set(question.factuals.index) <= cell.answered():
        cell.finish()


def groups(question: Question, by: bool | str) -> dict[str, pd.DataFrame]:
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
    cell: Cell,
    question: Question,
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
