"""The figures of a study as files, each as SVG, PDF and PNG, and as the page shows them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from markupsafe import Markup

from harness.evaluation.checker import ACCEPTED
from harness.evaluation.contest import too_few
from harness.evaluation.numbers import Numbers
from harness.evaluation.study import Entry, Study
from harness.reports import stored
from harness.reports.canvas import column_style, save
from harness.reports.page import charts
from harness.store.run import StoredRun

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FOLDER = "figures"
# Beginnings of the names of all that is drawn here.
NAMES = ("ranks.", "critical_differences_", "performance_profiles.", "trade_off_", "one_person.")
NONE = (None, "none")  # where a method has no answer stored


class Plan(NamedTuple):
    """A figure to be drawn: the name of its files, its title, what a reader has to know, and how it is drawn."""

    name: str
    title: str
    text: str
    draw: Callable[[], Figure]


class Shown(NamedTuple):
    """A figure on the page."""

    title: str
    text: str
    picture: Markup  # the SVG, as its file has it
    name: str  # of its files, without suffix


def write(numbers: Numbers, folder: Path) -> list[Shown]:
    """Write every figure that the scores of a study allow into its folder ``figures``; returns what the page shows.

    Figures there that these scores do not allow are removed.
    """
    home = folder / FOLDER
    home.mkdir(exist_ok=True)
    found = []
    with column_style():
        for plan in plans(numbers):
            text = save(plan.draw(), home / plan.name, plan.title).read_text()
            found.append(Shown(plan.title, plan.text, Markup(text[text.index("<svg") :]), plan.name))
    for path in home.iterdir():  # of an earlier report on other runs; a user's own files stay
        if path.name.startswith(NAMES) and path.stem not in {shown.name for shown in found}:
            path.unlink()
    return found


def _remarks(study: Study) -> dict[str, str]:
    """By method, why its mean ranks do not compare with those of the others, where they do not."""
    tasks = len(study.tasks)
    took = Counter(entry.method for entry in study.entries if entry.refusal is None)
    some = {method: f"{took[method]} of {tasks} tasks" for method in study.methods if took[method] < tasks}
    return some | dict.fromkeys(sorted(too_few(study)), "answers too few")


def plans(numbers: Numbers) -> Iterator[Plan]:
    """The figures of a study, in the order of the page."""
    study, looks = numbers.study, charts.look(numbers.study.methods)
    named = {criterion.name: criterion for criterion in numbers.criteria}
    several = len(study.methods) > 1
    if several and any(len(standing.mean_ranks) for standing in numbers.standings.values()):
        text = f"Mean normalised rank{' over data sets' * (len(study.datasets) > 1)}: 0 is best, 1 last."
        remarks = _remarks(study)
        text += " Below the line: over the tasks that the method takes, or of who answers too few." * bool(remarks)
        yield Plan("ranks", "Methods by criterion", text, lambda: charts.heat(numbers.standings, looks, remarks))
    for name, standing in numbers.standings.items():
        if standing.test is not None:
            text = "Methods joined by a bar are not told apart by Nemenyi's test."
            title, file = f"Critical differences: {name}", f"critical_differences_{_plain(name)}"
            yield Plan(file, title, text, lambda standing=standing: charts.critical(standing, looks))  # type: ignore[misc]
    found = numbers.contests["proximity"] if several and "proximity" in named else []
    if any(study.of_task(contest.task) for contest in found):  # a method that refuses all has no questions
        text = (
            "Share of questions, each once a seed, with an accepted answer within a factor of the nearest one, and "
            "within so many seconds."
        )
        yield Plan("performance_profiles", "Quality and time", text, lambda: charts.profile(study, found))
    if {"proximity", "plausibility"} <= set(named):
        text = (
            "Of the nearest accepted counterfactual: means over the questions that all methods answer, but for those "
            "that answer too few; the line joins what nothing beats in both. Where fewer than ten are common, "
            "each method's own means, and no line."
        )
        two = named["proximity"], named["plausibility"]
        for dataset in study.datasets:
            title, file = f"Distance against plausibility: {dataset}", f"trade_off_{_plain(dataset)}"
            yield Plan(file, title, text, lambda dataset=dataset: charts.tradeoff(numbers, dataset, *two))  # type: ignore[misc]
    if (plan := _person(study, looks)) is not None:
        yield plan


def _plain(name: str) -> str:
    """A name as part of a file's.

    >>> _plain("my data (v=2)")
    'my_data_v_2'
    """
    return re.sub(r"\W+", "_", name).strip("_")


def _person(study: Study, looks: charts.Looks) -> Plan | None:
    """What changes for one factual of the first task: that for which most methods have an answer."""
    entries = [entry for entry in study.entries if entry.task == study.tasks[0]]
    answers = {entry.method: _taken(entry.runs[0]) for entry in entries}
    frame, _ = entries[0].runs[0].factuals()
    answered = {i: sum(found.get(i, NONE)[0] is not None for found in answers.values()) for i in frame.index}
    chosen = max(frame.index, key=lambda i: answered[i])
    if not answered[chosen]:
        return None
    rows = {method: found.get(chosen, NONE)[0] for method, found in answers.items()}
    words = {entry.method: _remark(entry, answers[entry.method].get(chosen, NONE)[1]) for entry in entries}
    remarks = {method: word for method, word in words.items() if word}
    text = (
        f"Factual {chosen} of {study.tasks[0]}: of each method the nearest accepted counterfactual, or else the first, "
        "and why that is not accepted."
    )
    features = entries[0].runs[0].space.features
    draw = lambda: charts.strip(frame.loc[chosen], rows, features, looks, remarks)  # noqa: E731
    return Plan("one_person", "What changes, for one person", text, draw)


def _taken(run: StoredRun) -> dict[Any, tuple[Mapping[str, Any] | None, str]]:
    """By factual, the answer that a person would take, and the checker's word on it."""
    rows, verdicts = run.rows(), run.verdicts()
    points = {(row["factual"], row["ce"]): row["row"] for row in rows}
    words = {(verdict["factual"], verdict["ce"]): verdict["verdict"] for verdict in verdicts}
    numbers = stored.taken(run.space, run.factuals()[0], rows, verdicts)
    return {place[0]: (points[place], words.get(place, "none")) for place in numbers.items()}


def _remark(entry: Entry, word: str) -> str:
    """What there is to say of an answer on which the checker has a word; empty where it is accepted, or none."""
    if entry.refusal is not None:
        return "refuses the model"
    return "" if word in {"none", ACCEPTED} else word
