"""What every method answered on every model: the table of an experiment that follows no paper."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from harness.core.metric import CRITERIA
from harness.core.wording import minimised, objective_text
from harness.evaluation.contest import SECONDS
from harness.evaluation.numbers import Numbers
from harness.evaluation.study import Entry
from harness.reports.markup import DASH, markdown, number
from harness.reports.stored import headings
from harness.store.run import StoredRun

NOTES = (
    "Coverage: the share of questions with an accepted counterfactual, one of which the model says what was wanted, "
    "within every constraint and in time; then median seconds over all questions, one without an answer at its limit. "
    f"{DASH} : the method refuses the model.",
    "*set-up s*: seconds from the start of a process to the first question, of the slowest model. Criteria: mean "
    "normalised rank over questions and models, 0 is best, 1 last; who has no accepted counterfactual is last. Other "
    "measures: means of the models' means. *objective*: what is minimised, averaged over the counterfactuals that all "
    "methods which minimise the same have.",
)


TITLE = "Methods by models"


def overview(numbers: Numbers) -> tuple[str, pd.DataFrame]:
    """A table a dataset, methods down, models across: Markdown without a heading, and every number of the study."""
    datasets = numbers.study.datasets
    blocks = [(f"## {dataset}\n\n" if len(datasets) > 1 else "") + _block(numbers, dataset) for dataset in datasets]
    return "\n".join([*blocks, *(f"- {note}" for note in NOTES)]) + "\n", numbers.table()


def _block(numbers: Numbers, dataset: str) -> str:
    entries = [entry for entry in numbers.study.entries if entry.dataset == dataset]
    tasks = list(dict.fromkeys(entry.task for entry in entries))
    shown = headings(numbers.metrics.values(), "overview")
    further = {heading: metric for heading, metric in shown.items() if not metric.criterion}
    named = {*CRITERIA, SECONDS}
    objectives, body = _objectives(entries), []
    ranks = {name: found.ranks for name, found in numbers.standings.items() if name in named}
    ranks = {name: table for name, table in ranks.items() if dataset in table.index}
    for method in dict.fromkeys(entry.method for entry in entries):
        mine = {entry.task: entry for entry in entries if entry.method == method}
        took = [entry for entry in mine.values() if entry.refusal is None]
        ends = [number(max((e.setup[0] for e in took), default=math.nan), 2)]
        ends += [number(table.loc[dataset].get(method, math.nan), 2) for table in ranks.values()]
        ends += [number(_mean([e.mean(metric.name).value for e in took]), 3) for metric in further.values()]
        ends += [objectives.get(method, DASH)] if objectives else []
        body.append([f"`{method}`", *(_text(mine.get(task)) for task in tasks), *ends])
    models = [task.removeprefix(f"{dataset} / ") for task in tasks]
    head = ["method", *models, "set-up s", *ranks, *further, *(["objective"] if objectives else [])]
    return markdown(head, body)


def _mean(values: Sequence[float]) -> float:
    known = [value for value in values if not math.isnan(value)]
    return float(np.mean(known)) if known else math.nan


def _text(entry: Entry | None) -> str:
    """``0.93, 0.05 s``."""
    if entry is None:
        return ""
    if entry.refusal is None and entry.table.empty:
        return "none exists"
    return DASH if entry.refusal is not None else f"{entry.coverage.value:.2f}, {entry.seconds(0.5):.2g} s"


def _objectives(entries: Sequence[Entry]) -> dict[str, str]:
    """By method, its mean objective over the counterfactuals that all methods which minimise the same one have.

    Where there are several objectives, each says what it is the sum of.
    """
    groups: dict[str, dict[str, dict[Any, float]]] = {}
    words: dict[str, str] = {}
    for entry in entries:
        for run, meta in zip(entry.runs, entry.metas, strict=True):
            if (claim := run.objective) is not None:
                same = json.dumps({**meta["objective"], "domain": None})
                words[same] = minimised(claim)
                values = groups.setdefault(same, {}).setdefault(entry.method, {})
                values |= _claimed(entry, run, meta)
    common = {same: set.intersection(*map(set, claims.values())) for same, claims in groups.items() if len(claims) > 1}
    common = {same: answers for same, answers in common.items() if answers}
    several = len({words[same] for same in common}) > 1
    return {
        method: objective_text(sum(values[key] for key in answers) / len(answers)) + f" ({words[same]})" * several
        for same, answers in common.items()
        for method, values in groups[same].items()
    }


def _claimed(entry: Entry, run: StoredRun, meta: Mapping[str, Any]) -> dict[Any, float]:
    return {
        (entry.task, meta["seed"], row["factual"], row["ce"]): row["objective"]
        for row in run.rows()
        if row["row"] is not None and row["objective"] is not None
    }
