"""The methods of a task against each other by one criterion, and of a study over its data sets."""

from __future__ import annotations

import logging
import math
import pkgutil
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np
import pandas as pd

from harness.core.metric import CRITERIA, Metric
from harness.core.packages import plugged
from harness.core.tolerances import RANK_DIGITS
from harness.evaluation import statistics
from harness.evaluation.scoring import NEAREST
from harness.evaluation.statistics import LEVEL, Better, Common, Estimate, Friedman, Pair
from harness.evaluation.study import ANSWERED, Entry, Study
from harness.store.run import StoredRun

log = logging.getLogger("harness")

DIVERSITY, SECONDS = "diversity", "seconds"


def metrics_of(*runs: StoredRun) -> dict[str, Metric]:
    """The metrics that runs were scored by, by full name; without those that cannot be imported here, and of an archive
    without those of packages that bring no choices here: whatever an archive names is not imported."""
    named = dict.fromkeys((path, packed) for run in runs for packed in [run.packed] for path in metric_paths(run))
    found = (_metric(path, packed) for path, packed in named)
    return {metric.name: metric for metric in found if metric is not None}


def metric_paths(run: StoredRun) -> Sequence[str]:
    """The dotted names of the metrics that a run was scored by."""
    return (run.meta.get("scored") or {"metrics": {"names": ()}})["metrics"]["names"]


@cache
def _metric(path: str, foreign: bool) -> Metric | None:
    if foreign and re.split("[.:]", path)[0] not in {"metrics", *plugged()}:
        log.warning("no column for the metric %s: an archive's own are not imported; unpack it if you trust it.", path)
        return None
    try:
        found = pkgutil.resolve_name(path)
        return found if isinstance(found, Metric) else None
    except (Exception, SystemExit) as fault:  # of a module that anybody may have written
        log.warning("no column for the metric %s, which cannot be imported here (%s); set PYTHONPATH.", path, fault)
        return None


@dataclass(frozen=True)
class Criterion:
    """What methods are compared by.

    Parameters
    ----------
    name
        One of proximity, sparsity, plausibility, robustness, diversity and seconds; else the heading of a metric, or
        its full name where the heading is taken.
    metric
        The metric's full name; ``seconds`` of seconds.
    better
        ``lower`` or ``higher``.
    """

    name: str
    metric: str
    better: Better

    def of(self, entry: Entry) -> pd.Series:
        """The value of each question, shape (questions,): that of the nearest accepted counterfactual.

        Of diversity that of all, over the seeds that had as many accepted as asked for, where these are at least half.
        NaN where the question is not answered.
        """
        if self.name == DIVERSITY:
            tables = entry.by_seed if entry.seeds > 1 else [entry.table]
            full = [t[self.metric].where(t["filled"] >= 1) for t in tables if self.metric in t]
            values = pd.concat(full, axis=1).reindex(entry.table.index)
            return values.mean(axis=1).where(values.notna().mean(axis=1) >= ANSWERED)
        column = SECONDS if self.name == SECONDS else NEAREST + self.metric
        return entry.table[column].where(entry.answered)


def criteria_of(runs: Iterable[StoredRun]) -> list[Criterion]:
    """What runs can be compared by: of the five what was measured, seconds, and further metrics of a report."""
    metrics = metrics_of(*runs)
    named = {metric.criterion: metric for metric in metrics.values() if metric.criterion}
    five = [Criterion(name, named[name].name, named[name].better) for name in CRITERIA if name in named]
    further = sorted((m for m in metrics.values() if not m.criterion and "report" in m.shown), key=lambda m: m.place)
    taken, own = {*CRITERIA, SECONDS}, []
    for metric in (metric for metric in further if metric.over != "returned"):
        name = metric.name if metric.column in taken else metric.column
        taken.add(name)
        own.append(Criterion(name, metric.name, metric.better))
    return [*five, Criterion(SECONDS, SECONDS, "lower"), *own]


@dataclass(frozen=True)
class Contest:
    """The methods that take a task, by one criterion.

    Parameters
    ----------
    values
        One row a question, one column a method that takes part; NaN where it has no accepted counterfactual, or one of
        which the criterion is not defined.
    answered
        Of every method that takes the task, whether it has an accepted one; NA where it was not asked, as by its
        constraints none exists.
    covered
        The coverage of each of them; by default the share of what is answered, which is another with several seeds.
    """

    task: str
    criterion: Criterion
    values: pd.DataFrame
    answered: pd.DataFrame
    covered: Mapping[str, float] | None = None

    @classmethod
    def of(cls, task: str, entries: Sequence[Entry], criterion: Criterion) -> Contest:
        """Of diversity methods that give one counterfactual take no part; of seconds none of another machine, or that
        was asked about groups, whose people share one reading of the clock."""
        able = [entry for entry in entries if entry.several or criterion.name != DIVERSITY]
        able = [e for e in able if (e.timed if criterion.name == SECONDS else criterion.metric in e.table)]
        questions = pd.Index(dict.fromkeys(index for entry in entries for index in entry.table.index))
        values = pd.DataFrame({entry.method: criterion.of(entry) for entry in able}, index=questions, dtype=float)
        answered = pd.DataFrame({e.method: e.answered.astype("boolean") for e in entries}, index=questions)
        return cls(task, criterion, values, answered, {e.method: e.coverage.value for e in entries})

    @property
    def defined(self) -> bool:
        """Whether the criterion says anything of the task: some answer has a value, or nobody answers."""
        return bool(self.values.size) and bool(self.values.notna().any(axis=None) or not self.answered.any(axis=None))

    @cached_property
    def comparable(self) -> list[str]:
        """Methods that cover at least half of what the best covers, over all seeds and by what half of them answer."""
        answered = self.answered.mean().astype(float)
        covered = answered if self.covered is None else pd.Series(self.covered, dtype=float)
        enough = statistics.comparable(covered)
        return [name for name in statistics.comparable(answered) if name in enough]

    @cached_property
    def pairs(self) -> list[Pair]:
        """Of diversity, who gives as many as asked for is told from who does not, as elsewhere who answers."""
        return statistics.pairs(self.values, self.counted[list(self.values)])

    @cached_property
    def counted(self) -> pd.DataFrame:
        """As ``answered``; of diversity only of methods that take part, whether a question has as many as asked for."""
        if self.criterion.name != DIVERSITY:
            return self.answered
        return self.values.notna().astype("boolean").where(self.answered[list(self.values)].notna())

    @cached_property
    def common(self) -> Common:
        """Of methods that cover enough; of diversity, that also fill enough, as one that does not has few questions."""
        enough = [name for name in self.comparable if name in self.values]
        return statistics.common(self.values, self.counted[enough].mean().astype(float))

    @cached_property
    def ranks(self) -> pd.DataFrame:
        """Normalised rank of each method (columns) in each question (rows), 0 is best.

        Who answers has none where the criterion is not defined; of diversity, who gives fewer than asked for is last.
        Who was not asked has none.
        """
        answered = self.answered[list(self.values)]
        undefined = answered & self.values.isna() & (self.criterion.name != DIVERSITY)
        unranked = (undefined | answered.isna()).astype(bool)
        return statistics.normalised_ranks(self.values, self.criterion.better, unranked)

    @cached_property
    def mean_ranks(self) -> pd.Series:
        """By method, best first."""
        return best_first(self.ranks)

    @cached_property
    def best(self) -> set[str]:
        """The methods with the best common mean among those that answer no less than who answers most."""
        if not self.common.enough:
            return set()
        return statistics.best(self.common.means, self.criterion.better, self.counted)

    @cached_property
    def places(self) -> dict[str, int]:
        """Place by method, of those that do not answer too few: shared with those that no pair finds the first better
        than."""
        ahead = {names for pair in self.pairs for names in pair.ahead(self.criterion.better)}
        ranked = [name for name in self.mean_ranks.dropna().index if name in self.comparable]
        return statistics.places(ranked, lambda one, other: (one, other) in ahead)


@dataclass(frozen=True)
class Standing:
    """Methods over the data sets of a study by one criterion.

    Parameters
    ----------
    ranks
        One row a data set, one column a method: its mean normalised rank over tasks, each task's over its questions;
        NaN where it takes no task of the data set.
    test
        Over the methods that refuse no task; None where there is no such test.
    places
        By method, from the test, or of a study of one task from its pairs; empty where there is neither. Who answers
        too few has none.
    too_few
        Methods that cover less than half of what another does, as ``too_few`` has it; recommended for nothing.
    """

    criterion: Criterion
    ranks: pd.DataFrame
    test: Friedman | None
    places: Mapping[str, int]
    too_few: frozenset[str]

    @property
    def mean_ranks(self) -> pd.Series:
        """By method, best first."""
        return best_first(self.ranks)

    @property
    def blocks(self) -> pd.Series:
        """Number of data sets behind each mean rank."""
        return self.ranks.notna().sum()


def best_first(ranks: pd.DataFrame) -> pd.Series:
    """Means of columns, least first; equal ones by name, so that the order in which methods were run decides nothing.

    >>> best_first(pd.DataFrame({"b": [0.0, 1.0], "c": [0.0, 0.2], "a": [0.5, 0.5]})).index.tolist()
    ['c', 'a', 'b']
    """
    return ranks.mean().round(RANK_DIGITS).sort_index().sort_values(kind="stable")


def contests(study: Study, criterion: Criterion) -> list[Contest]:
    """One a task of the study of which the criterion says anything."""
    found = (Contest.of(task, study.of_task(task), criterion) for task in study.tasks)
    return [contest for contest in found if contest.defined]


def standing(study: Study, criterion: Criterion, found: Sequence[Contest]) -> Standing:
    """Over the data sets of a study; ``found`` are its contests by the criterion."""
    dataset_of = {entry.task: entry.dataset for entry in study.entries}
    by_task = pd.DataFrame({contest.task: contest.mean_ranks for contest in found}).T
    blocks = by_task.groupby([dataset_of[str(task)] for task in by_task.index], sort=False).mean().round(RANK_DIGITS)
    blocks = blocks.reindex(columns=[method for method in study.methods if method in blocks])
    silent = [{entry.method for entry in study.of_task(task)} for task in study.asked if task not in by_task.index]
    whole = [str(name) for name in by_task if by_task[name].notna().all() and all(name in took for took in silent)]
    tested = blocks[[name for name in blocks if name in whole]]
    test, few = statistics.friedman(tested), too_few(study)
    places: Mapping[str, int] = {}
    if test is not None:
        places = placed(tested, test, few)
    elif len(study.asked) == len(found) == 1:
        places = found[0].places
    return Standing(criterion, blocks, test, places, few)


def placed(tested: pd.DataFrame, test: Friedman, few: Collection[str]) -> dict[str, int]:
    """Places by a test over data sets, one row each, in the order of its own mean ranks."""
    ordered = [str(name) for name in best_first(tested.rank(axis=1)).index if name not in few]
    return statistics.places(ordered, lambda one, other: bool(test.pairs.loc[one, other] < LEVEL))


def rank_estimates(study: Study, standing: Standing, found: Sequence[Contest]) -> dict[str, Estimate]:
    """The mean rank of each method over the data sets of a study, with its interval: a bootstrap over questions.

    A question of several tasks of a data set is drawn for all of them at once; ``n`` is how many questions there are.
    """
    dataset_of = {entry.task: entry.dataset for entry in study.entries}
    known, draws, sizes = standing.ranks.notna(), [], []
    for seed, dataset in enumerate(known.index):
        tables = [contest.ranks for contest in found if dataset_of[contest.task] == dataset]
        questions = pd.Index(dict.fromkeys(index for table in tables for index in table.index))
        parts = [statistics.resampled(table.reindex(questions, columns=known.columns), seed) for table in tables]
        draws.append(np.ma.masked_invalid(parts).mean(axis=0).filled(math.nan))
        sizes.append(len(questions))
    took = known.to_numpy()
    drawn = np.where(took[:, None], np.reshape(draws, (len(took), statistics.RESAMPLES, took.shape[1])), 0.0)
    with np.errstate(invalid="ignore"):
        means = pd.DataFrame(drawn.sum(axis=0) / took.sum(axis=0), columns=known.columns)
    lows, highs = means.quantile([LEVEL / 2, 1 - LEVEL / 2]).to_numpy()
    values, questions = standing.ranks.mean(), np.array(sizes, int) @ took
    return {
        str(name): Estimate(float(values[name]), float(low), float(high), int(n))
        for name, low, high, n in zip(known.columns, lows, highs, questions, strict=True)
    }


def asked(study: Study) -> dict[str, list[Entry]]:
    """By method, its entries of the tasks that it takes, of those that have a question."""
    found: dict[str, list[Entry]] = {entry.method: [] for entry in study.entries if entry.refusal is None}
    for entry in study.entries:
        if entry.refusal is None and len(entry.table):
            found[entry.method].append(entry)
    return found


def mean_coverage(entries: Sequence[Entry]) -> tuple[Estimate, float]:
    """The mean coverage of a method over some tasks, with its interval for other people, and the least of them."""
    covered = [entry.coverage for entry in entries]
    return statistics.mean_of(covered, [entry.dataset for entry in entries]), min(each.value for each in covered)


def too_few(study: Study) -> frozenset[str]:
    """Methods that cover nothing, or less than half of what another covers of the tasks that both take."""
    found = {method: entries for method, entries in asked(study).items() if entries}
    covered = {method: {entry.task: entry.coverage.value for entry in entries} for method, entries in found.items()}
    return frozenset(statistics.falling_short(pd.DataFrame(covered)))
