"""The methods of a task against each other: common means with ranks, pairs, and the farthest answers."""

from __future__ import annotations

import math
from typing import NamedTuple

from markupsafe import Markup

from harness.evaluation.contest import DIVERSITY, Contest
from harness.evaluation.numbers import Numbers
from harness.evaluation.statistics import Pair
from harness.evaluation.study import Entry
from harness.reports.markup import ARROWS, DASH
from harness.reports.page.elements import Column, Names, interval, table
from harness.reports.page.which import places

WORST = 12  # cases shown
FEW = 6  # methods of which all pairs are shown
PAIRS = (
    Column("criterion"), Column("first"), Column("second"), Column("both", True, "questions that both answer"),
    Column("median of first − second", True), Column("Wilcoxon, Holm", True), Column("only first", True),
    Column("only second", True), Column("McNemar, Holm", True),
)  # fmt: skip
FAR = (
    Column("task"), Column("method"), Column("factual"), Column("distance", True), Column("nearest", True),
    Column("times", True),
)  # fmt: skip


class Compared(NamedTuple):
    """What the page says of a task that several methods take."""

    task: str
    means: Markup
    left_out: str  # methods without a common mean
    unfilled: str  # those without one of diversity alone
    few: str  # criteria without common means, as too few questions are answered by all
    places: list[tuple[str, Markup]]
    pairs: Markup


def compared(numbers: Numbers, names: Names) -> list[Compared]:
    """One a task that several methods take."""
    tasks = [task for task in numbers.study.tasks if len(numbers.study.of_task(task)) > 1]
    return [_task(numbers, task, names) for task in tasks]


def _task(numbers: Numbers, task: str, names: Names) -> Compared:
    found = [contest for c in numbers.criteria if (contest := numbers.contest(task, c)) is not None]
    found = [contest for contest in found if contest.values.notna().any(axis=None)]
    columns = [Column("method")]
    for contest in found:
        name, n = contest.criterion.name, f"n = {contest.common.n}"
        heading = f"{name} {ARROWS[contest.criterion.better]}"
        columns.append(Column(heading, True, f"{heading}, {n}", n))
        columns.append(Column("rank", True, f"{name}, rank"))
    rows = [
        [names(entry.method), *(cell for contest in found for cell in _cells(contest, entry))]
        for entry in numbers.study.of_task(task)
    ]
    left_out = next((contest.common.left_out for contest in found), ())
    unfilled = [n for c in found if c.criterion.name == DIVERSITY for n in c.common.left_out if n not in left_out]
    few = ", ".join(contest.criterion.name for contest in found if not contest.common.enough)
    pairs = table(PAIRS, [row for contest in found for row in _pairs(contest, names)])
    without = ", ".join(left_out), ", ".join(unfilled)
    return Compared(task, table(columns, rows), *without, few, places(numbers, task, names), pairs)


def _cells(contest: Contest, entry: Entry) -> tuple[str, str]:
    """The common mean with its interval, bold where it is the best; and the mean rank."""
    if entry.method not in contest.values:
        return DASH, ""
    mean = contest.common.means.get(entry.method)
    text = interval(mean) if mean is not None and contest.common.enough else Markup(DASH)
    shown = Markup("<b>{}</b>").format(text) if entry.method in contest.best else text
    rank = contest.ranks[entry.method].mean()
    return shown, "" if math.isnan(rank) else f"{rank:.2f}"


def _pairs(contest: Contest, names: Names) -> list[list[str]]:
    """A row a pair that is shown."""
    rows = []
    for pair in shown_pairs(contest):
        tests = [DASH if math.isnan(p) else f"{p:.2g}" for p in (pair.p, pair.mcnemar)]
        who = [contest.criterion.name, names(pair.first), names(pair.second)]
        only = [str(pair.only_first), str(pair.only_second)]
        rows.append([*who, str(pair.difference.n), interval(pair.difference), tests[0], *only, tests[1]])
    return rows


def shown_pairs(contest: Contest) -> list[Pair]:
    """The pairs of who ranks first with each other method; all pairs of few methods without common means."""
    first = contest.mean_ranks.index[0]
    every = not contest.common.enough and len(contest.values.columns) <= FEW
    return [pair for pair in contest.pairs if every or first in (pair.first, pair.second)]


def farthest(numbers: Numbers, names: Names) -> Markup | None:
    """Nearest accepted answers that are farthest from the nearest one for the same question; None without any."""
    lines = []
    for contest in numbers.contests.get("proximity", ()):
        best = contest.values.min(axis=1)
        for question, row in contest.values.loc[best > 0].iterrows():
            for method, value in row.dropna().items():
                nearest = best[question]
                shown = [f"{value:.3g}", f"{nearest:.3g}", f"{value / nearest:.1f}"]
                lines.append((value / nearest, [contest.task, names(str(method)), str(question), *shown]))
    lines.sort(key=lambda line: -line[0])
    return table(FAR, [cells for _, cells in lines[:WORST]]) if lines else None
