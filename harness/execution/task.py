"""A dataset and a model, and the problem that each of the factuals poses."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from textwrap import shorten
from typing import Any

import numpy as np
import pandas as pd

from harness.core.classifier import Classifier
from harness.core.equation import Equation
from harness.core.errors import DatasetError, choices
from harness.core.problem import Problem
from harness.core.space import Actionability
from harness.core.target import Target, others
from harness.core.wording import target_text
from harness.data import Dataset, parse_target
from harness.data.csv_factuals import read_factuals
from harness.data.dataset import OPPOSITE
from harness.data.published import published_factuals

PICK, EXPLAIN = 0, 1  # streams of random numbers: which factuals, and what a method draws for each
logger = logging.getLogger(__name__)
WIDTH = 120  # characters of a line of a task's text
BLOCK = 4096  # factuals that a model is asked about together
WHICH = ("test", "test_then_train", "all", "published")  # rows that factuals are picked from


@dataclass(frozen=True, repr=False)
class Task:
    """A dataset and a model, and the problem that each factual poses."""

    dataset: Dataset
    classifier: Classifier
    factuals: pd.DataFrame
    targets: Mapping[Any, Target]
    problems: Mapping[Target, Problem]

    def __repr__(self) -> str:
        """Five lines: data, features, what is wanted, model, factuals."""
        space, model = self.dataset.space, self.classifier
        fixed = [feature.name for feature in space.features if feature.actionability is Actionability.IMMUTABLE]
        kept = [f"immutable {', '.join(fixed)}"] * bool(fixed) + list(space.constraints)
        library = getattr(getattr(model.estimator, "engine", None), "library", None)
        kind = type(model.estimator).__name__ if library is None else f"of {library}"
        added = f" ({'; '.join(kept)})" if kept else ""
        lines = (
            f"{self.dataset.name}: {len(self.dataset.frame):,} rows",
            f"features: {', '.join(space.names)}{added}",
            f"wanted: {' or '.join(dict.fromkeys(map(target_text, self.problems)))}",
            f"model: {model.opaque or kind}",
            f"factuals: {len(self.factuals):,}",
        )
        return "\n".join(shorten(line, WIDTH, placeholder=" ...") for line in lines)

    def problem(self, factual: Any) -> Problem:
        """The problem of a factual, by id; factuals with the same target share it."""
        return self.problems[self.targets[factual]]

    def satisfied(self, factual: Any) -> bool:
        """Whether the target holds for the factual already; the model is asked about many at once, and once."""
        block, place = divmod(int(self.factuals.index.get_loc(factual)), BLOCK)
        if block not in self._content:
            self._content[block] = self.content(self.factuals.iloc[block * BLOCK : (block + 1) * BLOCK])
        return bool(self._content[block][place])

    @cached_property
    def _content(self) -> dict[int, np.ndarray]:
        """By block of factuals."""
        return {}

    def content(self, factuals: pd.DataFrame) -> np.ndarray:
        """Of which of these factuals the target holds already, bool, shape (factuals,)."""
        found, wanted = np.zeros(len(factuals), bool), [self.targets[index] for index in factuals.index]
        for target in dict.fromkeys(wanted):
            having = np.array([each == target for each in wanted])
            found[having] = self.problems[target].valid(factuals.loc[having])
        return found


def make_task(
    dataset: Dataset,
    classifier: Classifier,
    desired: Any = None,
    which: str | int | list[int] = "test",
    n_factuals: int = 30,
    seed: int = 0,
    equations: Sequence[Equation] = (),
) -> Task:
    """The factuals of a model, the same for every method, with their targets.

    Parameters
    ----------
    desired
        What the model should say; the dataset's own where None. As ``harness.data.parse_target`` takes it.
    which
        ``test`` or ``all``: the first ``n_factuals`` rows predicted as undesired, in one seeded permutation of the test
        rows (of all rows); ``test_then_train``: training rows where those of ``test`` are too few; a row number, or
        several; ``published``: the first ``n_factuals`` of those that the dataset's paper explained; or the path of a
        CSV file with the people to explain.
    equations
        Those of ``dataset.causality``, as ``harness.models.equations.equations`` makes them.
    """
    endogenous = {name for name, entry in dataset.causality.items() if entry is not None}
    if missing := endogenous ^ {equation.feature for equation in equations}:
        raise DatasetError(
            f"{dataset.name} and the equations do not agree on {', '.join(sorted(missing))}; "
            f"give those that harness.models.equations.equations makes of the dataset's 'causality'."
        )
    target = parse_target(dataset, desired)
    factuals = _picked(dataset, classifier, target, which, n_factuals, seed)
    if factuals.empty:
        raise DatasetError(
            f"the model already predicts {desired or dataset.desired!r} for every row of factuals={which}; "
            f"choose another 'desired', or other factuals."
        )
    targets = _targets(target, classifier, factuals)
    for relation in dataset.space.relations:
        broken = factuals.index[relation.broken_by(factuals)]
        if len(broken):
            nobody = ", which no row of the table keeps: is it in other units?"
            logger.warning(
                "%s: %d of %d factuals break '%s' themselves, such as %s; their answers may not break it further%s",
                dataset.name, len(broken), len(factuals), relation, broken[0],
                nobody if relation.broken_by(dataset.frame).all() else ".",
            )  # fmt: skip
    train = dataset.frame.iloc[dataset.train]
    labels = dataset.labels[dataset.train]
    problems = {
        target: Problem(dataset.space, classifier, train, labels, target, equations=tuple(equations))
        for target in dict.fromkeys(targets.values())
    }
    return Task(dataset, classifier, factuals, targets, problems)


def _picked(
    dataset: Dataset,
    classifier: Classifier,
    target: Target | str,
    which: str | int | list[int],
    n_factuals: int,
    seed: int,
) -> pd.DataFrame:
    """The factuals that ``which`` names, as for ``make_task``; none where the target holds for all candidates."""
    if isinstance(which, bool) or not isinstance(which, str | int | list | tuple):
        shown = "null" if which is None else which
        raise DatasetError(f"factuals={shown} does not fit; {choices(shown, WHICH)}, row numbers, or a CSV file.")
    if isinstance(which, str) and which not in WHICH:
        return _read(dataset, Path(which))
    if not isinstance(which, str):
        return _numbered(dataset, list(dict.fromkeys([which] if isinstance(which, int) else which)))
    if which == "published":
        return published_factuals(dataset).iloc[:n_factuals]
    shuffled = np.random.default_rng(np.random.SeedSequence([seed, PICK])).permutation
    order = shuffled(np.arange(len(dataset.frame)) if which == "all" else dataset.test)
    if which == "test_then_train":
        order = np.append(order, shuffled(np.setdiff1d(dataset.train, dataset.test)))
    candidates = dataset.frame.iloc[order]
    if isinstance(target, str):
        return candidates.iloc[:n_factuals]
    return candidates.loc[~target.holds(classifier, candidates)].iloc[:n_factuals]


def _numbered(dataset: Dataset, numbers: list[int]) -> pd.DataFrame:
    """Rows of the dataset by number."""
    if not numbers:
        raise DatasetError("factuals=[] names no row; allowed: test, all, row numbers, or a CSV file.")
    known = dataset.frame.index
    for number in numbers:
        if number not in known:
            dropped = ", without the rows dropped as incomplete" * (len(known) <= known.max() - known.min())
            raise DatasetError(
                f"there is no row {number} among the factuals of {dataset.name}; "
                f"allowed: {known.min()} to {known.max()}{dropped}."
            )
    return dataset.frame.loc[numbers]


def _targets(target: Target | str, classifier: Classifier, factuals: pd.DataFrame) -> dict[Any, Target]:
    if not isinstance(target, str):
        return dict.fromkeys(factuals.index, target)
    if target == OPPOSITE and not classifier.binary:
        raise DatasetError(
            f"desired=opposite needs two classes; choose one of: {', '.join(map(str, classifier.classes))}."
        )
    return dict(zip(factuals.index, others(classifier.classes, classifier.predict(factuals)), strict=True))


def _read(dataset: Dataset, path: Path) -> pd.DataFrame:
    path = path.expanduser()
    if not os.path.lexists(path):
        raise DatasetError(f"factuals={path} is no file; {choices(str(path), WHICH)}, row numbers, or a CSV file.")
    return read_factuals(dataset, path)
