"""The board of a study: for each choice of data sets and model, every method's coverage, and its ranks by criterion."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

from harness.evaluation.contest import Contest, Criterion, mean_coverage, rank_estimates, standing, too_few
from harness.evaluation.numbers import Numbers
from harness.evaluation.statistics import Estimate
from harness.evaluation.study import Entry, Study
from harness.reports.page.against import shown_pairs
from harness.reports.page.elements import Names
from harness.reports.page.which import blocks_of, first_in, how, meaning, place_of, ranked_in, ranking
from harness.reports.stored import provenance
from harness.store.run import method_of

ALL = ""  # of the models
SEVERAL = 5  # data sets, at most, of which every choice has its numbers; of more, all and each alone


def board(numbers: Numbers) -> dict[str, Any]:
    """What the page shows of a study, as JSON data; methods are given by their places in ``methods``."""
    study = numbers.study
    names = Names(study.methods)
    return {
        "name": study.name,
        "methods": study.methods,
        "kinds": [next(method_of(e.metas[0]) for e in study.entries if e.method == method) for method in study.methods],
        "looks": str(names.samples),
        "marks": [{"colour": names.looks[m]["color"], "shape": names.marker(m, 2)} for m in study.methods],
        "faults": study.faults,
        "conditions": _unlike(study),
        "provenance": _provenance(study),
        "criteria": {c.name: {"better": c.better, "meaning": meaning(numbers, c)} for c in numbers.criteria},
        "tasks": [_task(study, task) for task in study.tasks],
        "choices": choices(study.datasets),
    }


def choices(datasets: Sequence[str]) -> list[tuple[str, ...]]:
    """What may be chosen of some data sets: all, then any of them together; of more than five, each alone.

    >>> choices(["a", "b", "c"])
    [('a', 'b', 'c'), ('a',), ('b',), ('c',), ('a', 'b'), ('a', 'c'), ('b', 'c')]
    >>> len(choices("abcde")), len(choices("abcdef"))
    (31, 7)
    """
    sizes = range(1, len(datasets)) if len(datasets) <= SEVERAL else [1]
    return [tuple(datasets), *(choice for size in sizes for choice in combinations(datasets, size))]


def views(numbers: Numbers, chosen: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Of some data sets, by model (``ALL``: of all of them) what methods come to; nothing of models without a run."""
    models = list(dict.fromkeys(entry.model for entry in numbers.study.entries))
    parts = {model: _part(numbers.study, chosen, model) for model in ([ALL, *models] if len(models) > 1 else models)}
    return {model: _view(numbers, part) for model, part in parts.items() if part.entries}


def _unlike(study: Study) -> list[str]:
    """What is unlike between tasks; what a method sees on one of them stands with the task."""
    seen = {text for task in study.tasks for text in study.conditions([task])}
    return [text for text in study.conditions(study.tasks) if text not in seen]


def _provenance(study: Study) -> str:
    """What was run, as the report says it, and how much was asked."""
    took = [entry for entry in study.entries if entry.refusal is None]
    counts = {
        "questions a task": {len(entry.table) + entry.impossible for entry in took},
        "counterfactuals a question": {meta["n_counterfactuals"] for entry in took for meta in entry.metas},
    }
    asked = "; ".join(f"{what} {', '.join(map(str, sorted(found)))}" for what, found in counts.items())
    return f"{provenance(study.runs)} Asked: {asked}."


def _task(study: Study, task: str) -> dict[str, Any]:
    """A task: who refuses it, who was not asked, and who sees what others do not, by place."""
    entries = {entry.method: entry for entry in study.entries if entry.task == task}
    placed = [(place, entries[name]) for place, name in enumerate(study.methods) if name in entries]
    first = placed[0][1]
    return {
        **{"name": task, "dataset": first.dataset, "model": first.model, "absent": study.absent(task)},
        "refused": [[place, entry.refusal] for place, entry in placed if entry.refusal is not None],
        "sees": [[place, more] for place, e in placed if e.refusal is None and (more := study.more(e))],
        "unasked": [place for place, name in enumerate(study.methods) if name not in entries],
    }


def _part(study: Study, datasets: Sequence[str], model: str) -> Study:
    """The study of some of the data sets, and one of the models or all."""
    kept = (e for e in study.entries if e.dataset in datasets and model in (ALL, e.model))
    return replace(study, entries=tuple(kept))


def _view(numbers: Numbers, part: Study) -> dict[str, Any]:
    """What methods come to on the tasks of a part of the study."""
    few, tasks = _few(numbers, part), part.tasks
    lines = {}
    for place, method in enumerate(numbers.study.methods):
        entries = [e for e in part.entries if e.method == method and e.refusal is None]
        if any(len(entry.table) for entry in entries):
            lines[place] = _line(entries, alone=len(tasks) == 1) | {"few": method in few}
    by = {c.name: ranked for c in numbers.criteria if (ranked := _ranked(numbers, part, c))}
    return {"tasks": len(tasks), "methods": lines, "by": by, "clocks": part.clocks(tasks)}


def _few(numbers: Numbers, part: Study) -> Collection[str]:
    """Methods that answer too few; of one task those that its pairs give no place."""
    found = (contest for each in numbers.contests.values() for contest in each if contest.task in part.tasks)
    if len(part.tasks) > 1 or (contest := next(found, None)) is None:
        return too_few(part)
    return [name for name in contest.answered if name not in contest.comparable]


def _line(entries: Sequence[Entry], alone: bool) -> dict[str, Any]:
    """What a method comes to by itself, on some tasks or on one alone."""
    coverage, least = mean_coverage([entry for entry in entries if len(entry.table)])
    setups = [seconds for entry in entries if not math.isnan(seconds := entry.setup[0])]
    line: dict[str, Any] = {
        "coverage": _plain(coverage),
        "least": _rounded(least),
        "took": sum(len(entry.table) > 0 for entry in entries),
        "n": sum(len(entry.table) for entry in entries),
        "setup": _rounded(max(setups, default=math.nan)),
        "faults": sum((entry.faults for entry in entries), Counter[str]()),
        "missing": sum((_missing(entry) for entry in entries), Counter[str]()),
    }
    if alone:
        (entry,) = entries
        line |= {"filled": _rounded(entry.filled), "validity": _rounded(entry.validity)}
    return line


def _missing(entry: Entry) -> Counter[str]:
    """Counterfactuals that were asked for and not returned, by how their search ended; counts add up over seeds."""
    found: Counter[str] = Counter()
    for what, count in entry.counted("missing").items():
        found[what.partition(":")[0]] += count
    return found


def _ranked(numbers: Numbers, part: Study, criterion: Criterion) -> dict[str, Any]:
    """The ranks by a criterion, best first, with places; of one task common means and pairs. Nothing of one method."""
    tasks = set(part.tasks)
    found = [contest for contest in numbers.contests[criterion.name] if contest.task in tasks]
    if all(contest.values.shape[1] < 2 for contest in found):
        return {}
    stands = standing(part, criterion, found)
    estimates, places = rank_estimates(part, stands, found), {m: k for k, m in enumerate(numbers.study.methods)}
    own = _common(found[0]) if len(tasks) == 1 else {}
    lines = [
        {
            "method": places[name],
            "rank": _plain(estimates[name]),
            "place": place_of(stands, name),
            "first": first_in(stands, found, name),
            "blocks": blocks_of(stands, name),
            "ranked": ranked_in(found, name),
            **own.get(name, {}),
        }
        for name in map(str, stands.mean_ranks.dropna().index)
    ]
    common: dict[str, Any] = {}
    if own:
        common = {"n": found[0].common.n, "enough": found[0].common.enough, "pairs": _pairs(found[0], places)}
    alone = f", {found[0].task}, where alone it was measured" if len(found) == 1 < len(tasks) else ""
    return {"how": f"{how(stands)}{alone}", "tasks": ranking(found), "lines": lines, **common}


def _common(contest: Contest) -> Mapping[str, Mapping[str, Any]]:
    """By method, its mean over the questions that all answer, and whether it is the best of them."""
    means = contest.common.means if contest.common.enough else {}
    return {
        name: {"mean": _plain(means[name]) if name in means else None, "best": name in contest.best}
        for name in map(str, contest.values.columns)
    }


def _pairs(contest: Contest, places: Mapping[str, int]) -> list[list[Any]]:
    """The pairs that the report shows, with the methods' places, in the order of its columns."""
    rows = []
    for pair in shown_pairs(contest):
        who, only = [places[pair.first], places[pair.second]], [pair.only_first, pair.only_second]
        tests = _rounded(pair.p), _rounded(pair.mcnemar)
        rows.append([*who, pair.difference.n, _plain(pair.difference), tests[0], *only, tests[1]])
    return rows


def _plain(estimate: Estimate) -> list[float | None]:
    return [_rounded(value) for value in (estimate.value, estimate.low, estimate.high)]


def _rounded(value: float) -> float | None:
    """To six digits, which are more than the page shows; None for none."""
    return None if math.isnan(value) else float(f"{value:.6g}")
