"""What a sweep ends with: its tables on the console, the same in Markdown, and every number in CSV files."""

from __future__ import annotations

import json
import logging
import math
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from harness.core.explanation import Status
from harness.core.tolerances import CLAIM
from harness.core.wording import some
from harness.core.writing import write_whole
from harness.evaluation import scoring
from harness.evaluation.checker import NOT_PERMITTED
from harness.evaluation.contest import DIVERSITY, Criterion
from harness.evaluation.numbers import Numbers, numbers_of
from harness.evaluation.statistics import ENOUGH, Estimate
from harness.evaluation.study import Entry, Study
from harness.reports.markup import DASH, csv_of, digits, markdown, short_of_one
from harness.reports.overview import failures
from harness.reports.stored import headings
from harness.store.run import StoredRun

log, results = logging.getLogger("harness"), logging.getLogger("harness-results")

GROUPED = {"group/points": "points", "group/gap": "points_gap"}
REFUSED = {str(Status.UNSUPPORTED), str(Status.FAILED)}
OWN = (
    "dataset", "model", "method", "seeds", "asked", "coverage", "coverage_sd", "filled", "validity", "optimal",
    *GROUPED.values(), "s", "s_p95", "cpu_s", "model_s", "setup_s",
)  # fmt: skip
ENDED = {"cpu_s": "cpu_seconds", "model_s": "model_seconds"}
COMPARED = "Compared on the questions that all of them answer (*: best), and mean rank over all questions (0 is best):"
NAMED = 3  # features, relations or limits that a fault is of, in one sentence
WHAT = {"incoherent": "incoherent", NOT_PERMITTED: "violations", "beyond its limits": "limits"}  # of verdicts, by fault
ALONE = "Each by itself, over the questions that it answers (in brackets how many, where these are not all):"


def write(folder: Path, finished: Sequence[StoredRun], numbers: Numbers, chosen: bool = True) -> int:
    """Write ``summary.csv``, ``summary.md`` and ``pairs.csv`` of a study, print its tables, return how much is wrong.

    That is the number of runs of this sweep (``finished``) with failures, or with refusals of some of their factuals,
    of ``disagreements``, of proofs that an accepted answer refutes, and of methods that refuse all runs, where it was
    ``chosen`` which methods these are, or where all refuse. Otherwise, as where an experiment names a method of
    scorecards and the command another model, that is no fault. Printed are the tasks of this sweep, among all methods
    of the study.
    """
    study = numbers.study
    table = numbers.table()
    write_whole(folder / "summary.csv", csv_of(table))
    write_whole(folder / "pairs.csv", csv_of(numbers.pairs()))
    touched = {run.path for run in finished}
    tasks = study.tasks_of(touched)
    parts, notes = _tables(numbers, study.tasks)
    text = "\n".join(f"{title}\n\n{_markdown(frame)}" for title, frame in parts)
    notes = [*study.faults, *failures(study, study.tasks), *notes]
    write_whole(folder / "summary.md", text + "".join(f"\n- {note}" for note in notes) + "\n" * bool(notes))
    parts, notes = _tables(numbers, tasks)
    for title, frame in parts:
        results.info("\n%s\n%s", title, frame.to_string(index=False, na_rep=DASH))
    for note in notes:
        results.info("%s", note)
    shown = [run for entry in study.entries if entry.task in tasks and entry.refusal is None for run in entry.runs]
    if earlier := sum(run.path not in touched for run in shown):
        results.info("Earlier runs of %s are shown, too (%d); study=NAME begins a study of its own.", folder, earlier)
    results.info("%s", folder / "summary.csv")
    faults = [*disagreements(finished), *study.faults]
    for sentence in faults:
        log.error("%s", sentence)
    names = {run.path: entry.method for entry in study.entries for run in entry.runs}
    outcomes = [(run, names.get(run.path, run.meta["method"]), scoring.outcome(run)) for run in finished]
    return _refusals(outcomes, chosen) + len(faults)


def _tables(numbers: Numbers, tasks: Collection[str]) -> tuple[list[tuple[str, pd.DataFrame]], list[str]]:
    """The tables of some tasks with their titles, and what is to be said beside them."""
    parts = ((ALONE, _alone(numbers, tasks)), (COMPARED, _compared(numbers, tasks)))
    notes = [*numbers.study.clocks(tasks), *numbers.study.conditions(tasks)]
    notes += [*_left_out(numbers, tasks), *_unaccepted(numbers.study.entries, tasks)]
    return [(title, frame) for title, frame in parts if len(frame)], notes


def _markdown(frame: pd.DataFrame) -> str:
    return markdown(list(frame.columns), frame.astype(object).fillna(DASH).to_numpy())


def _alone(numbers: Numbers, tasks: Collection[str]) -> pd.DataFrame:
    """One row an entry: what is reported of it whatever others do."""
    shown = headings(numbers.metrics.values(), "summary", OWN)
    frame = pd.DataFrame(
        line_of(entry) | of_ended(entry) | {heading: entry.mean(metric.name) for heading, metric in shown.items()}
        for entry in numbers.study.entries
        if entry.task in tasks and entry.refusal is None
    ).map(_rounded)
    for name in (name for name in (*ENDED, *shown) if name in frame):
        frame[name] = _with_counts(frame[name], frame["asked"])
    named = (*shown, "coverage_sd", "model_s")
    frame = frame.drop(columns=[name for name in named if name in frame and frame[name].isna().all()])
    return frame if len(frame) and (frame["seeds"] > 1).any() else frame.drop(columns="seeds", errors="ignore")


def of_ended(entry: Entry) -> dict[str, Estimate]:
    """What is not known of questions that were stopped, each with the number of those of which it is."""
    known = numbers_of(entry, ())
    return {heading: known[name] for heading, name in ENDED.items()}


def _with_counts(means: pd.Series, asked: pd.Series) -> pd.Series:
    """Rounded means; as texts where some stand for fewer questions than were asked, with the number of these."""
    values = means.map(lambda mean: _rounded(mean.value))
    fewer = means.map(lambda mean: mean.n) < asked
    if not (fewer & values.notna()).any():
        return values
    texts = [f"{value:.3f}" if abs(value) >= 0.001 or value == 0 else f"{value:g}" for value in values]
    counts = [f" ({mean.n})" if few else "" for mean, few in zip(means, fewer, strict=True)]
    told = pd.Series([text + count for text, count in zip(texts, counts, strict=True)], means.index, dtype=object)
    return told.where(values.notna())


def _rounded(value: Any) -> Any:
    """A number as texts round it, to three decimals (by NumPy 0.6065 is 0.606), or to two digits where it is less."""
    if not isinstance(value, float):
        return value
    return float(f"{value:.2g}") if 0 < abs(value) < 0.001 else round(short_of_one(value), 3)


def line_of(entry: Entry) -> dict[str, Any]:
    """The numbers of an entry that do not depend on metrics, by the headings of the printed table."""
    line: dict[str, Any] = {"task": entry.task, "method": entry.method}
    line |= {"seeds": entry.seeds, "asked": len(entry.table), "coverage": entry.coverage.value}
    line |= {"coverage_sd": entry.seed_spread("coverage")}
    line |= {"filled": entry.filled} if any(meta["n_counterfactuals"] > 1 for meta in entry.metas) else {}
    line |= {"validity": entry.validity, "optimal": entry.table["optimal"].mean()}
    line |= {heading: entry.groups[name] for name, heading in GROUPED.items() if name in entry.groups}
    spent = {"s": entry.spent(), "s_p95": entry.spent(share=0.95), "cpu_s": entry.spent("cpu_seconds")}
    served = entry.spent("model_seconds")
    spent |= {} if math.isnan(served) else {"model_s": served}
    return line | spent | {"setup_s": entry.setup[0]}


def _compared(numbers: Numbers, tasks: Collection[str]) -> pd.DataFrame:
    """One row an entry of a task with several: common mean, and mean rank, by criterion."""
    rows = []
    for task in (task for task in numbers.study.tasks if task in tasks):
        entries = numbers.study.of_task(task)
        for entry in entries if len(entries) > 1 else ():
            cells = {c.name: _standing(numbers, entry, c) for c in numbers.criteria}
            rows.append({"task": task, "method": entry.method, **cells})
    frame = pd.DataFrame(rows)
    return frame.loc[:, ~(frame == DASH).all()] if len(frame) else frame


def _standing(numbers: Numbers, entry: Entry, criterion: Criterion) -> str:
    """``0.051* [0.21]``: the common mean, marked where it is the best, and the mean normalised rank."""
    contest = numbers.contest(entry.task, criterion)
    if contest is None or entry.method not in contest.values:
        return DASH
    mean = contest.common.means.get(entry.method)
    text = digits(mean.value) if mean is not None and contest.common.enough else DASH
    rank = contest.ranks[entry.method].mean()
    return text if math.isnan(rank) else f"{text}{'*' * (entry.method in contest.best)} [{rank:.2f}]"


def _left_out(numbers: Numbers, tasks: Collection[str]) -> list[str]:
    """What the comparison of each task leaves out: refusals, questions without a counterfactual, methods."""
    study, notes = numbers.study, _refused(numbers.study, tasks)
    for task in (task for task in study.tasks if task in tasks):
        if absent := study.absent(task):
            notes.append(f"{task}: {absent}.")
        contest = numbers.contest(task, numbers.criteria[0])
        if contest is None or len(contest.values.columns) < 2 or contest.values.empty:
            continue
        common = contest.common
        if common.left_out:
            notes.append(f"{task}: {_listed(common.left_out, 'answer')} too few questions for common means.")
        other = next((one for one in numbers.contests.get(DIVERSITY, ()) if one.task == task), None)
        if few := [name for name in (other.common.left_out if other else ()) if name not in common.left_out]:
            notes.append(f"{task}: {_listed(few, 'fill')} too few questions for common means of diversity.")
        notes.append(f"{task}: {_behind_means(numbers, task)}.")
    return notes


def _behind_means(numbers: Numbers, task: str) -> str:
    """How many questions the common means of a task are over, by criterion."""
    by_count: dict[int, list[str]] = {}
    for criterion in numbers.criteria:
        contest = numbers.contest(task, criterion)
        if contest is not None and len(contest.values.columns) > 1:
            by_count.setdefault(contest.common.n, []).append(criterion.name)
    counts = "; ".join(f"{n} ({', '.join(names)})" for n, names in sorted(by_count.items(), reverse=True))
    few = (
        f"; fewer than {ENOUGH} have no mean: see pairs.csv, or ask about more people" if min(by_count) < ENOUGH else ""
    )
    fill = ", or fill for diversity" if any(DIVERSITY in names for names in by_count.values()) else ""
    return f"common means are of the questions that all of these answer{fill}: {counts}{few}"


def _listed(methods: Sequence[str], verb: str) -> str:
    """Methods and what they do: one of them does it, several do.

    >>> _listed(["face"], "answer"), _listed(["face", "clue"], "answer")
    ('face answers', 'face, clue answer')
    """
    return f"{', '.join(methods)} {verb}{'s' * (len(methods) == 1)}"


def _refused(study: Study, tasks: Collection[str]) -> list[str]:
    """Who refuses which tasks, and why: methods that refuse the same ones for the same reason in one sentence."""
    where = defaultdict[tuple[str, str], list[str]](list)
    for entry in study.refused:
        if entry.task in tasks:
            where[entry.method, entry.refusal or ""].append(entry.task)
    alike = defaultdict[tuple[str, ...], list[str]](list)
    for (method, why), refused in where.items():
        alike[why, *refused].append(method)
    return [
        f"{', '.join(refused)}: {', '.join(methods)} {'refuses' if len(methods) == 1 else 'refuse'} "
        f"{'it' if len(refused) == 1 else 'them'}: {why}"
        for (why, *refused), methods in alike.items()
    ]


def _unaccepted(entries: Sequence[Entry], tasks: Collection[str]) -> list[str]:
    """Of each entry, how many counterfactuals were returned and not accepted, by fault; where all were, why else."""
    notes = []
    for entry in (entry for entry in entries if entry.task in tasks and entry.refusal is None and len(entry.table)):
        bad = ", ".join(f"{n} {word}{_by_what(entry, word)}" for word, n in entry.faults.items())
        if entry.table["coverage"].any():
            notes += [f"{entry.task}: not accepted of {entry.method}'s counterfactuals: {bad}."] if bad else []
            continue
        why = "; ".join(f"{text} ({n}x)" for text, n in entry.counted("reasons").most_common(2))
        notes.append(f"{entry.task}: {entry.method} answers nothing: {'; '.join(filter(None, (bad, why)))}.")
    return notes


def _by_what(entry: Entry, word: str) -> str:
    """Which features, relations or limits of its own a fault is of, the most frequent first."""
    if word not in WHAT:
        return ""
    verdicts = [verdict for run in entry.runs for verdict in run.verdicts() if verdict["verdict"] == word]
    asked = set(map(str, entry.table.index))
    names = Counter(name for v in verdicts if str(v["factual"]) in asked for name in v[WHAT[word]])
    return f" ({some((f'{name} {n}x' for name, n in names.most_common()), NAMED)})"


def _refusals(finished: Sequence[tuple[StoredRun, str, Mapping[str, Any]]], chosen: bool) -> int:
    """Warn of each run that failed, and of each method that refuses all; return how many these are (see ``write``).

    ``finished``: runs, each with its method's name in the study, variant included, and its outcome.
    """
    troubled, able, unable = 0, set[str](), defaultdict[str, list[str]](list)
    for run, name, outcome in finished:
        counts, of = outcome["status"], sum(outcome["status"].values())
        first = outcome["details"][0].strip().splitlines()[-1] if outcome["details"] else ""
        if set(counts) == {Status.UNSUPPORTED}:
            unable[run.meta["method"]].append(first)
            continue
        if set(counts) - REFUSED:
            able.add(run.meta["method"])
        if refused := REFUSED & set(counts):
            troubled += 1
            words = (
                word if counts[word] == of else f"{word} {counts[word]} of {of} answers" for word in sorted(refused)
            )
            label = f"{run.meta['dataset']}/{run.meta['model']}/{name}"
            log.warning("%s: %s (%s)", label, ", ".join(words), first)
    if not (chosen or len(unable) == len({run.meta["method"] for run, *_ in finished})):
        return troubled
    nowhere = {name: why for name, why in unable.items() if name not in able}
    for name, why in nowhere.items():
        log.warning("%s refuses all that it is asked: %s", name, why[0])
    return troubled + len(nowhere)


def disagreements(finished: Sequence[StoredRun]) -> list[str]:
    """A sentence for each first counterfactual whose proven optimum is not the one that another run has proven.

    Compared are runs of the same configuration, but for the method and its seed, whose stored objectives are the same:
    terms, limits and all else that says among which points the optimum is.
    """
    proven: dict[tuple[str, Any], tuple[str, float]] = {}
    sentences = []
    for run in finished:
        meta = run.meta
        apart = {"method": None, "seed": None, "variant": None, "minimised": run.minimised}
        posed = json.dumps({**meta["config"], **apart}, sort_keys=True)
        for row in run.rows():
            if row["ce"] != 1 or row["status"] != Status.OPTIMAL or row["objective"] is None:  # a group's
                continue
            value = row["objective"]
            other, optimum = proven.setdefault((posed, row["factual"]), (run.label, value))
            if abs(value - optimum) > CLAIM * max(1.0, abs(optimum)):
                claims = f"{run.label} and {other} claim different optima for factual {row['factual']}"
                sentences.append(f"{claims}: {value!r} and {optimum!r}.")
    return sentences
