"""What every method answered on every model: the table of an experiment that follows no paper."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Collection, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd

from harness.core.explanation import Status
from harness.core.metric import CRITERIA, Metric
from harness.core.wording import minimised, number_of, objective_text
from harness.evaluation.checker import ACCEPTED
from harness.evaluation.contest import SECONDS, Contest
from harness.evaluation.numbers import Numbers
from harness.evaluation.scoring import NEAREST
from harness.evaluation.statistics import Estimate
from harness.evaluation.study import Entry, Study
from harness.reports.latex import Tabular
from harness.reports.markup import ARROWS, DASH, digits, figure, markdown, number, share
from harness.reports.stored import headings, measured
from harness.store.run import StoredRun

NOTES = (
    "Coverage: the share of questions with an accepted counterfactual, one of which the model says what was wanted, "
    "within every constraint and in time; then median seconds over all questions, one without an answer at its limit. "
    f"{DASH} : the method refuses the model.",
    "*set-up s*: seconds from the start of a process to the first question, of the slowest model. Criteria: mean "
    "normalised rank over questions and models, 0 is best, 1 last; those without an accepted counterfactual share the "
    "last ranks. *objective*: what is minimised, as the checker finds it, averaged over the accepted counterfactuals "
    "that all methods which minimise the same have; in brackets how many these are.",
)
OTHERS = "Means of the models' means, of methods that have one on every model on which any has: {}."
TITLE = "Methods by models"
INTERVAL = "proximity"  # the criterion that a paper's table shows with its interval
PRINTED = (INTERVAL, "sparsity", "plausibility", "robustness")  # and the others that it shows


@lru_cache(maxsize=1)
def overview(numbers: Numbers) -> tuple[str, pd.DataFrame]:
    """A table a dataset, methods down, models across: Markdown without a heading, and every number of the study."""
    datasets = numbers.study.datasets
    blocks = [(f"## {dataset}\n\n" if len(datasets) > 1 else "") + _block(numbers, dataset) for dataset in datasets]
    study, tasks = numbers.study, numbers.study.tasks
    absent = [f"{task}: {text}." for task in tasks if (text := study.absent(task))]
    further = _further(numbers)
    said = "; ".join(
        f"*{name}*, {words[0].lower()}{words[1:]}" for name, each in further.items() if (words := measured(each))
    )
    notes = [*study.faults, *absent, *failures(study, tasks), *study.clocks(tasks), *study.conditions(tasks), *NOTES]
    notes += [OTHERS.format(said)] if further else []
    return "\n".join([*blocks, *(f"- {note}" for note in notes)]) + "\n", numbers.table()


def for_paper(numbers: Numbers) -> list[Tabular]:
    """A table a task: methods down; coverage, criteria, median seconds and further metrics across.

    Of each criterion the common means, the best in bold, where enough questions are answered by all; else mean ranks,
    as means over other questions each compare nothing. A method without a rival has its own means. A column that is the
    same for all methods is a sentence of the caption.
    """
    return [_compared(numbers, task) for task in numbers.study.tasks]


def _compared(numbers: Numbers, task: str) -> Tabular:
    entries = numbers.study.of_task(task)
    found = (numbers.contest(task, criterion) for criterion in numbers.criteria if criterion.name in PRINTED)
    contests = [contest for contest in found if contest is not None]
    alone = len(entries) == 1
    columns: dict[str, list[str]] = {"method": [f"`{entry.method}`" for entry in entries]}
    columns["coverage ↑"] = [share(entry.coverage.value) for entry in entries]
    for contest in contests:
        c = contest.criterion
        if not (alone or contest.common.enough):
            columns[f"{c.name} rank {ARROWS['lower']}"] = [number(contest.mean_ranks.get(e.method), 2) for e in entries]
            continue
        means = [e.mean(NEAREST + c.metric) if alone else contest.common.means.get(e.method) for e in entries]
        best = [not alone and entry.method in contest.best for entry in entries]
        texts = [_estimate(mean, c.name == INTERVAL) for mean in means]
        columns[f"{c.name} {ARROWS[c.better]}"] = [f"**{t}**" if b else t for t, b in zip(texts, best, strict=True)]
    columns["seconds ↓"] = [digits(entry.spent()) for entry in entries]
    taken = [heading.partition(" ")[0] for heading in columns]
    shown = headings(numbers.metrics.values(), "overview", taken)
    further = {h: m for h, m in shown.items() if not m.criterion and m.over == "accepted"}
    parts, own = _caption(numbers, task, contests, alone), []
    for heading, metric in further.items():
        values = [number(entry.mean(metric.name).value, 3) for entry in entries]
        if len(set(values) - {DASH}) > 1:
            columns[f"{heading} {ARROWS[metric.better]}"] = values
            own.append(heading)
        elif set(values) - {DASH}:
            have = " that have one" if DASH in values else ""
            parts.append(f"Of all methods{have}, {heading} is {next(v for v in values if v != DASH)}.")
    if own and not alone:
        parts.append(f"Of {', '.join(own)}: each method's own means, over all that are accepted of it.")
    return Tabular(" ".join(parts), list(columns), list(zip(*columns.values(), strict=True)))


def _estimate(mean: Estimate | None, interval: bool) -> str:
    if mean is None or math.isnan(mean.value):
        return DASH
    low, high = (digits(end) for end in (mean.low, mean.high))
    return digits(mean.value) + (f" [{low}, {high}]" if interval and not math.isnan(mean.low) else "")


def _caption(numbers: Numbers, task: str, contests: Sequence[Contest], alone: bool) -> list[str]:
    """What a reader of the table has to know, in sentences."""
    entries, refused = numbers.study.of_task(task), [e for e in numbers.study.refused if e.task == task]
    asked = max((len(entry.table) for entry in entries), default=0)
    parts = [f"`{task}`: {number_of(asked, 'question')}. Coverage: the share with an accepted counterfactual."]
    enough, few = ([c for c in contests if c.common.enough is sort] for sort in (True, False))
    if alone:
        parts.append("Means are of the nearest accepted counterfactual, over the questions that it answers.")
    elif enough:
        whole = _behind(enough[0])
        other = [f"; of {c.criterion.name}, over {_behind(c)}" for c in enough if _behind(c) != whole]
        parts.append(
            f"Means are common: of the nearest accepted counterfactual, over {whole}{''.join(other)}. Bold: the best "
            f"of those whose coverage is not below the greatest."
        )
    if few and not alone:
        shared = ", ".join(f"{c.criterion.name} ({c.common.n})" for c in few)
        left = "".join(dict.fromkeys(map(_without, few)))
        parts.append(
            f"Too few questions are answered by all{left} for common means of {shared}: mean normalised ranks over all "
            f"questions, 0 is best, 1 last."
        )
    bracketed = any(c.criterion.name == INTERVAL and (alone or c.common.enough) for c in contests)
    parts += ["In brackets: the 95 % interval over questions."] * bracketed
    parts.append("Seconds: the median of all questions; one without an accepted counterfactual counts its limit.")
    absent = numbers.study.absent(task)
    parts += [f"{absent[0].upper()}{absent[1:]}."] if absent else []
    faults = [fault for fault in numbers.study.faults if fault.startswith(f"{task}: ")]
    parts += [f"{fault.rstrip('.')}." for fault in faults]
    parts += [*failures(numbers.study, [task]), *numbers.study.clocks([task]), *numbers.study.conditions([task])]
    return parts + [f"Refused by {', '.join(f'`{entry.method}`' for entry in refused)}."] * bool(refused)


def failures(study: Study, tasks: Collection[str]) -> list[str]:
    """Sentences about methods of some tasks that failed, which is no search that came to nothing."""
    said = []
    for entry in (entry for entry in study.entries if entry.task in tasks):
        missing = entry.counted("missing")
        if failed := Counter({what: n for what, n in missing.items() if what.startswith(f"{Status.FAILED}: ")}):
            ((why, _),) = failed.most_common(1)
            count = number_of(failed.total(), "answer")
            said.append(f"{entry.task}: {entry.method} failed to give {count} ({why.partition(': ')[2]}).")
    return said


def _behind(contest: Contest) -> str:
    """The questions of common means, and whose answers are not among them."""
    return f"the {contest.common.n} questions that all methods answer{_without(contest)}"


def _without(contest: Contest) -> str:
    """Whose answers are too few for common means."""
    left = ", ".join(f"`{name}`" for name in contest.common.left_out)
    return f" (without {left}, of too few answers)" if left else ""


def _further(numbers: Numbers) -> dict[str, Metric]:
    """By heading, the metrics of the table that are no criteria."""
    shown = headings(numbers.metrics.values(), "overview")
    return {heading: metric for heading, metric in shown.items() if not metric.criterion}


def _block(numbers: Numbers, dataset: str) -> str:
    entries = [entry for entry in numbers.study.entries if entry.dataset == dataset]
    tasks = list(dict.fromkeys(entry.task for entry in entries))
    further = _further(numbers)
    named = {*CRITERIA, SECONDS}
    objectives, body = _objectives(entries), []
    ranks = {name: found.ranks for name, found in numbers.standings.items() if name in named}
    ranks = {name: table for name, table in ranks.items() if dataset in table.index}
    defined = {m.name: {e.task for e in entries if not math.isnan(_own(e, m.name))} for m in further.values()}
    for method in dict.fromkeys(entry.method for entry in entries):
        mine = {entry.task: entry for entry in entries if entry.method == method}
        took = [entry for entry in mine.values() if entry.refusal is None]
        ends = [number(max((s for e in took if not math.isnan(s := e.setup[0])), default=math.nan), 2)]
        ends += [number(table.loc[dataset].get(method, math.nan), 2) for table in ranks.values()]
        ends += [figure(_mean(took, name, known)) for name, known in defined.items()]
        ends += [objectives.get(method, DASH)] if objectives else []
        body.append([f"`{method}`", *(_text(mine.get(task)) for task in tasks), *ends])
    models = [task.removeprefix(f"{dataset} / ") for task in tasks]
    head = ["method", *models, "set-up s", *ranks, *further, *(["objective"] if objectives else [])]
    return markdown(head, body)


def _mean(took: Sequence[Entry], metric: str, defined: Collection[str]) -> float:
    """The mean over models of a metric that the method has on each of those that it takes, of the ``defined`` ones."""
    values = [_own(entry, metric) for entry in took if entry.task in defined]
    return float(np.mean(values)) if values else math.nan


def _own(entry: Entry, metric: str) -> float:
    """The mean over the questions of which there is a value; NaN of none."""
    return float(entry.table[metric].mean()) if metric in entry.table else math.nan


def _text(entry: Entry | None) -> str:
    """``0.93, 0.05 s``."""
    if entry is None:
        return ""
    if entry.refusal is None and entry.table.empty:
        return "none exists"
    return DASH if entry.refusal is not None else f"{share(entry.coverage.value)}, {digits(entry.spent(), 2)} s"


def _objectives(entries: Sequence[Entry]) -> dict[str, str]:
    """By method, its mean objective over the accepted counterfactuals that all who minimise the same one have.

    Tasks of which other methods do so stand apart. Where there are several objectives, each says what it is the sum of.
    """
    found: dict[tuple[str, str], dict[str, dict[Any, list[float]]]] = {}
    words: dict[str, str] = {}
    for entry in entries:
        for run in entry.runs:
            if (claim := run.objective) is not None:
                same = json.dumps({**(run.minimised or {}), "domain": None}, sort_keys=True)
                words[same] = minimised(claim)
                for answer, reached in _accepted(entry, run).items():
                    values = found.setdefault((same, entry.task), {}).setdefault(entry.method, {})
                    values.setdefault(answer, []).append(reached)  # one a seed
    groups: dict[tuple[str, frozenset[str]], dict[str, dict[Any, list[float]]]] = {}
    for (same, _), by_method in found.items():
        group = groups.setdefault((same, frozenset(by_method)), {})
        for method, values in by_method.items():
            group.setdefault(method, {}).update(values)
    common = {same: set.intersection(*map(set, those.values())) for same, those in groups.items() if len(those) > 1}
    common = {same: answers for same, answers in common.items() if answers}
    often, told = Counter(words[same] for same, _ in common), dict[str, list[str]]()
    for (same, who), answers in common.items():
        own = [words[same]] if len(often) > 1 else []
        if often[words[same]] > 1:  # of one kind, and of other methods or relative to other training rows
            own += sorted({task.partition(" / ")[2] for task, *_ in answers})
        for method, values in groups[same, who].items():
            value = objective_text(np.mean([np.mean(values[key]) for key in answers]).item())
            told.setdefault(method, []).append(f"{value} ({', '.join([*own, str(len(answers))])})")
    return {method: "; ".join(texts) for method, texts in told.items()}


def _accepted(entry: Entry, run: StoredRun) -> dict[Any, float]:
    """By answer that the checker accepts, its objective."""
    return {
        (entry.task, verdict["factual"], verdict["ce"]): verdict["objective"]
        for verdict in run.verdicts()
        if verdict["verdict"] == ACCEPTED and verdict["objective"] is not None
    }
