"""One dataset, one model, one method: pick the factuals, ask, store what came back."""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from harness.answers import Cell, answer_row
from harness.causality import Equation
from harness.classifier import Classifier
from harness.data import Dataset, parse_target
from harness.data.own import read_people
from harness.errors import DatasetError, choices
from harness.method import Method
from harness.pool import Limits, Outcome, Pool
from harness.problem import Label, Problem, Target
from harness.worker import refused

PICK, EXPLAIN = 0, 1  # streams of random numbers: which factuals, and what a method draws for each


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
        return bool(self.problem(factual).valid(self.factuals.loc[[factual]])[0])


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
        rows (of all rows); a row number, or several; or the path of a CSV file with the people to explain.
    equations
        Those of ``dataset.causality``, as ``harness.causality.equations`` makes them.
    """
    endogenous = {name for name, entry in dataset.causality.items() if entry is not None}
    if missing := endogenous ^ {equation.feature for equation in equations}:
        raise DatasetError(
            f"{dataset.name} and the equations do not agree on {', '.join(sorted(missing))}; "
            f"give those that harness.causality.equations makes of the dataset's 'causality'."
        )
    wish = parse_target(dataset, desired)
    if isinstance(which, str) and which in {"test", "all"}:
        rows = dataset.test if which == "test" else np.arange(len(dataset.frame))
        order = np.random.default_rng(np.random.SeedSequence([seed, PICK])).permutation(rows)
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
        raise DatasetError(
            f"factuals={path} is no file; {choices(str(path), ['test', 'all'])}, row numbers, or a CSV file."
        )
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
) -> None:
    """Ask a method about every factual without an answer, storing each as it comes; what failed is left open."""
    answered = cell.answered()
    progress(len(answered & set(question.factuals.index)))
    todo = question.factuals.loc[[index not in answered for index in question.factuals.index]]
    satisfied = [question.satisfied(index) for index in todo.index]
    why = "the model already says what is wanted of this factual"
    done = (Outcome(index, refused(count, why), 0.0, 0.0) for index in todo.index[satisfied])
    asked = todo.loc[np.logical_not(satisfied)]
    for outcome in chain(done, pool.explain(method, question.problem, asked, count, entropy(seed), limits, jobs)):
        spent = {name: getattr(outcome, name) for name in ("seconds", "fit_seconds", "compile_seconds")}
        timing = {**spent, "late": outcome.late, "jobs": jobs}
        extra = {"conflict": outcome.explanation.conflict, "trace": outcome.explanation.trace}
        cell.append(
            answer_row(outcome.factual, k + 1, answer, **timing, **(extra if k == 0 else {}))
            for k, answer in enumerate(outcome.explanation.answers)
        )
        progress(1)
    if set(question.factuals.index) <= cell.answered():
        cell.finish()


def entropy(seed: int) -> Callable[[Any], tuple[int, ...]]:
    """The entropy of a factual's generator: neither order nor resumption nor parallel work changes it."""

    def of(factual: Any) -> tuple[int, ...]:
        number = int(factual) if isinstance(factual, int | np.integer) else zlib.crc32(str(factual).encode())
        return (seed, EXPLAIN, number)

    return of
