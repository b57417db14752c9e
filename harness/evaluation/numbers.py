"""The numbers of a study as tables: every number of an entry, what a task's methods come to together, and pairs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import pandas as pd

from harness.evaluation.contest import Contest, Criterion, Standing, contests, criteria_of, metrics_of, standing
from harness.evaluation.statistics import Estimate
from harness.evaluation.study import FAULTS, Entry, Study

COLUMNS = (
    "dataset", "model", "task", "method", "seeds", "number", "value", "low", "high", "n", "seed_sd",
    "common", "common_low", "common_high", "common_n", "rank", "best",
)  # fmt: skip

_STOPPED = ("cpu_seconds", "model_seconds", "peak_mib")  # not known of a question that was stopped

PAIRED = (
    "task", "criterion", "first", "second", "n", "difference", "low", "high", "p", "only_first", "only_second",
    "mcnemar",
)  # fmt: skip


def numbers_of(entry: Entry, metrics: Sequence[str]) -> dict[str, Estimate]:
    """Every number of an entry by name, counts of faults and means of metrics included; NaN where there is none.

    Seconds: ``seconds`` and ``seconds_p95`` of all questions, ``cpu_seconds``, ``model_seconds``,
    ``setup_seconds`` and ``setup_cpu_seconds``. Memory: ``peak_mib``.
    """
    known = {name: int(entry.table[name].notna().sum()) for name in _STOPPED if name in entry.table}
    found = {"coverage": entry.coverage}
    for name, value in _plain(entry).items():
        found[name] = Estimate(value, math.nan, math.nan, known.get(name, len(entry.table)))
    return found | {name: entry.mean(name) for name in metrics if name in entry.table}


def _plain(entry: Entry) -> dict[str, float]:
    """The numbers without an interval."""
    n = len(entry.table)
    setup, setup_cpu = entry.setup
    return {
        "none exists": float(entry.impossible),
        "filled": entry.filled,
        "validity": entry.validity,
        **{fault: float(entry.faults[fault]) for fault in FAULTS},
        "optimal": float(entry.table["optimal"].mean()) if n else math.nan,
        "seconds": entry.spent(),
        "seconds_p95": entry.spent(share=0.95),
        "cpu_seconds": entry.spent("cpu_seconds"),
        "model_seconds": entry.spent("model_seconds"),
        "peak_mib": entry.peak_mib,
        "setup_seconds": setup,
        "setup_cpu_seconds": setup_cpu,
        **entry.groups,
    }


def _spreads(entry: Entry) -> dict[str, float]:
    """Standard deviations over seeds of what each seed by itself comes to, but for counts; empty with one seed."""
    parts = pd.DataFrame([_plain(part) for part in entry.of_seeds] if entry.seeds > 1 else [])
    return {str(name): float(parts[name].std(ddof=1)) for name in parts if name not in (*FAULTS, "none exists")}


class Numbers:
    """All that is computed of a study, each once.

    Parameters
    ----------
    study
        What is compared.
    """

    def __init__(self, study: Study) -> None:
        self.study = study
        self.metrics = metrics_of(*study.runs)
        self.criteria = criteria_of(study.runs)
        self.contests: dict[str, list[Contest]] = {c.name: contests(study, c) for c in self.criteria}
        self.standings: dict[str, Standing] = {
            criterion.name: standing(study, criterion, self.contests[criterion.name]) for criterion in self.criteria
        }

    def contest(self, task: str, criterion: Criterion) -> Contest | None:
        return next((contest for contest in self.contests[criterion.name] if contest.task == task), None)

    def table(self) -> pd.DataFrame:
        """One row a number of an entry: ``COLUMNS``.

        Of a criterion also the common mean with its interval and questions, the mean normalised rank (0 is best), and
        whether it is ``best``: the best common mean of those that answer no less than who answers most.
        """
        return self._table.copy()

    @cached_property
    def _table(self) -> pd.DataFrame:
        rows = []
        for entry in self.study.entries:
            if entry.refusal is not None:
                continue
            compared, spreads = self.compared(entry), _spreads(entry)
            for name, estimate in numbers_of(entry, list(self.metrics)).items():
                names = {key: getattr(entry, key) for key in ("dataset", "model", "task", "method", "seeds")}
                spread = math.nan if name in FAULTS else spreads.get(name, entry.seed_spread(name))
                rows.append({**names, "number": name, **vars(estimate), "seed_sd": spread, **compared.get(name, {})})
        return pd.DataFrame(rows, columns=list(COLUMNS))

    def compared(self, entry: Entry) -> dict[str, dict[str, Any]]:
        """By the number of each criterion, what an entry comes to beside the others of its task."""
        found = {}
        for criterion in self.criteria:
            contest = self.contest(entry.task, criterion)
            if contest is None or entry.method not in contest.values:
                continue
            line: dict[str, Any] = {"rank": contest.ranks[entry.method].mean(), "best": entry.method in contest.best}
            if (mean := contest.common.means.get(entry.method)) is not None and contest.common.enough:
                line |= {"common": mean.value, "common_low": mean.low, "common_high": mean.high}
            found[criterion.metric] = {**line, "common_n": contest.common.n}
        return found

    def pairs(self) -> pd.DataFrame:
        """One row a pair of methods of a task and criterion, as ``statistics.Pair`` has it."""
        rows = (
            vars(pair.difference) | vars(pair) | {"task": contest.task, "criterion": name, "difference": gap}
            for name, found in self.contests.items()
            for contest in found
            for pair in contest.pairs
            for gap in [pair.difference.value]
        )
        return pd.DataFrame(rows, columns=list(PAIRED))
