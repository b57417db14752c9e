"""Which method to use for what: places by criterion with the coverage of each method, and who answers too few."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from markupsafe import Markup

from harness.evaluation.contest import SECONDS, Contest, Criterion, Standing, asked, mean_coverage
from harness.evaluation.numbers import Numbers
from harness.evaluation.study import Entry
from harness.reports.markup import DASH, share
from harness.reports.page.elements import Column, Names, interval, table
from harness.reports.stored import measured

MEANINGS = {
    "distance/gower": "Gower distance of the nearest accepted counterfactual",
    "distance/l0": "number of features that the nearest accepted counterfactual changes",
    "plausibility/ynn": (
        "share of the training rows near the nearest accepted counterfactual that are predicted as desired"
    ),
    "robustness/invalidation_rate": (
        "share of noisy copies of the nearest accepted counterfactual that are no longer valid"
    ),
    "diversity/pairwise_gower": "mean pairwise Gower distance, where as many were accepted as asked for",
    SECONDS: "to the last answer of a question",
}
COLUMNS = (Column("place"), Column("methods"))
BY_RANK, OF_SOME = "by mean rank", "by mean rank, of some tasks"
NOT_TESTED = "not tested"  # of who has no rank in some task


class Recommendation(NamedTuple):
    """What the page says of a criterion: its meaning, where the places come from, and a table of places."""

    name: str
    better: str
    meaning: str
    how: str
    places: Markup


def recommendations(numbers: Numbers, names: Names) -> list[Recommendation]:
    """One a criterion, but of what no method has a value of, or one alone takes part in."""
    covered = _covered(numbers)
    found = numbers.contests
    defined = [c for c in numbers.criteria if any(one.values.notna().any(axis=None) for one in found[c.name])]
    defined = [c for c in defined if numbers.standings[c.name].mean_ranks.notna().any()]
    return [_recommended(numbers, criterion, names, covered) for criterion in defined]


def _covered(numbers: Numbers) -> dict[str, Markup]:
    """The coverage of each method in words: the mean over its tasks with its interval, and the least of them."""
    return {name: _coverage(entries) for name, entries in asked(numbers.study).items()}


def _coverage(entries: Sequence[Entry]) -> Markup:
    if not entries:
        return Markup("no question")
    mean, least = mean_coverage(entries)
    text = Markup("coverage {}").format(interval(mean))
    return text if math.isclose(least, mean.value) else Markup("{}, least {}").format(text, share(least))


def _recommended(numbers: Numbers, criterion: Criterion, names: Names, covered: Mapping[str, Markup]) -> Recommendation:
    """Methods by place where a test or the pairs of one task give places, else by mean rank."""
    standing, found = numbers.standings[criterion.name], numbers.contests[criterion.name]
    means = standing.mean_ranks.dropna()
    kept = [str(name) for name in means.index if name not in standing.too_few]
    said = {name: f"rank {means[name]:.2f}{beside(standing, found, name)}, " for name in kept}
    lines: dict[str, list[str]] = {}
    for name in kept:
        ranked = BY_RANK if ranked_in(found, name) == ranking(found) else OF_SOME
        lines.setdefault(place_of(standing, name) if standing.places else ranked, []).append(name)
    rows = [
        [place, _listed([(names(name), said[name] + covered[name]) for name in those])]
        for place, those in sorted(lines.items(), key=lambda line: line[0] in (NOT_TESTED, OF_SOME))
    ]
    if few := [str(name) for name in means.index if name in standing.too_few]:
        texts = _listed([(names(name), covered[name]) for name in few])
        rows.append([DASH, Markup("answers too few: {}").format(texts)])
    source, shown = how(standing), table(COLUMNS, rows)
    return Recommendation(criterion.name, criterion.better, meaning(numbers, criterion), source, shown)


def place_of(standing: Standing, name: str) -> str:
    """A method's place, or why it alone has none; a dash where nothing is tested."""
    if name in standing.places:
        return str(standing.places[name])
    return NOT_TESTED if standing.places else DASH


def beside(standing: Standing, found: list[Contest], name: str) -> str:
    """Of how many tasks a rank is where not of all, and ``first_in``, as the rest of a sentence."""
    first, ranked, tasks = first_in(standing, found, name), ranked_in(found, name), ranking(found)
    some = f", {ranked} of {tasks} tasks" if ranked < tasks else ""
    return some + (f", first in {first}" if first else "")


def ranking(found: Sequence[Contest]) -> int:
    """In how many tasks any method has a rank."""
    return sum(bool(contest.mean_ranks.notna().any()) for contest in found)


def ranked_in(found: Sequence[Contest], name: str) -> int:
    """In how many tasks a method has a rank."""
    return sum(name in contest.mean_ranks.dropna() for contest in found)


def first_in(standing: Standing, found: list[Contest], name: str) -> str:
    """Of how many tasks the pairs place a method first, of those where not all methods are; empty without any.

    And where a test spans the tasks.
    """
    ranked = [(contest, contest.mean_ranks.dropna().index) for contest in found]
    apart = [contest for contest, names in ranked if any(contest.places.get(str(each)) != 1 for each in names)]
    if standing.places or not (among := ranked_in(apart, name)):
        return ""
    return f"{sum(contest.places.get(name) == 1 for contest in apart)} of {among} tasks"


def blocks_of(standing: Standing, name: str) -> str:
    """How many data sets a method takes, where these are not all."""
    took, known = standing.blocks[name], len(standing.ranks)
    return f"{took} of {known} data sets" if took < known else ""


def places(numbers: Numbers, task: str, names: Names) -> list[tuple[str, Markup]]:
    """Of each criterion, the places from the paired comparisons of one task; nothing where one method takes it."""
    lines = []
    for criterion in numbers.criteria if len(numbers.study.of_task(task)) > 1 else ():
        contest = numbers.contest(task, criterion)
        if contest is None or not len(ranked := contest.mean_ranks.dropna().index):
            continue
        grouped: dict[str, list[Markup]] = {}
        for name, place in contest.places.items():
            grouped.setdefault(str(place), []).append(names(name))
        few = [names(str(name)) for name in ranked if name not in contest.places]
        grouped |= {"answers too few": few} if few else {}
        texts = (Markup("{}: {}").format(place, Markup(", ").join(those)) for place, those in grouped.items())
        lines.append((criterion.name, Markup("; ").join(texts)))
    return lines


def _listed(methods: list[tuple[Markup, str]]) -> Markup:
    parts = (Markup('<span class="pick">{} <small>({})</small></span>').format(*each) for each in methods)
    return Markup(" ").join(parts)


def how(standing: Standing) -> str:
    """Where the places come from."""
    if standing.test is not None:
        first = sum(place == 1 for place in standing.places.values())
        shared = f"; {first} methods share the first place" if first > 1 else ""
        return f"Friedman p = {standing.test.p:.2g} over {len(standing.ranks)} data sets, then Nemenyi{shared}"
    return "paired comparisons of this one task" if standing.places else "mean ranks, not tested over data sets"


def meaning(numbers: Numbers, criterion: Criterion) -> str:
    """What a criterion measures; of a metric that is none of the five, the first line of its docstring, or its name."""
    if criterion.metric in MEANINGS:
        return MEANINGS[criterion.metric]
    return f"{measured(numbers.metrics[criterion.metric])}; of the nearest accepted counterfactual"
