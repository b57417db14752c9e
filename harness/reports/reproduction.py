"""Every published cell beside ours: ``python -m harness.tables --all`` writes results/REPRODUCTION.md."""

from __future__ import annotations

import logging
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from harness.core.errors import HarnessError, short
from harness.core.wording import number_of
from harness.reports import figures, markup, registry, stored
from harness.reports.claim import FAILS, HOLDS, OPEN, Numbers, decided
from harness.reports.comparison import printed_at
from harness.reports.verdict import (
    AGREES,
    AS_PRINTED,
    BETTER,
    DIFFERS,
    ENOUGH,
    MARKS,
    NEAR,
    NO_ANSWER,
    NOT_RUN,
    UNASKED,
    UNDECIDED,
    WORSE,
    marked,
    missing,
    verdict,
)
from harness.store.archive import answers_of, in_cache, packed_as, studies
from harness.store.run import StoredRun, method_of

log = logging.getLogger("harness")
CLAIMS = "Claims"  # the heading above them
HEAD = (
    "table", "results", "questions asked", "as printed", "agree", "undecided", "differ: ours worse", "ours better",
    "neither", "rivals: worse", "better", "no answer", "not run", "costs", "published / ours, median", "proven wrong",
)  # fmt: skip
OF_RIVALS = {WORSE: f"{WORSE}, of a rival", BETTER: f"{BETTER}, of a rival"}
COUNTED = (
    AS_PRINTED, AGREES, UNDECIDED, WORSE, BETTER, DIFFERS, *OF_RIVALS.values(), NO_ANSWER, NOT_RUN,
)  # fmt: skip  # in the order of the columns
QUESTIONS, LAST_RESULT, COSTS = 2, 12, 13  # columns
LEGEND = (
    f"Results: {MARKS[AS_PRINTED]} as printed; {MARKS[AGREES]} agrees: the 95 % interval of the difference holds 0, "
    f"which is at most 25 % of the larger (where no error is published: {NEAR:.0%}, whatever the interval), with as "
    f"many questions as the paper or {ENOUGH}; {MARKS[UNDECIDED]} undecided: the interval holds 0, but the rest does "
    f"not, ours has one question where the paper has more, or the clock stopped the search for a group of ours; "
    f"{MARKS[WORSE]}, "
    f"{MARKS[BETTER]} differs, ours worse or better by the paper's own criterion (the same method here, be it the "
    f"paper's own or a rival, beside what is printed of it); {MARKS[DIFFERS]} differs, without a "
    f"better way, as a single drawn group has none; {MARKS[NO_ANSWER]} was asked here, and has no answer; "
    f"{MARKS[NOT_RUN]} not run; without a mark what is set or assigned, not measured, which counts nowhere. In "
    "brackets what is published. Costs (seconds, iterations, early stops) have no verdict but a ratio, published / "
    "ours: machines, solvers and limits differ; of what a clock stopped, here or there, there is none. Proven wrong: "
    "counterfactuals that the authors' own model refuses or that an accepted one is nearer than, and means that "
    "counterfactuals which all change something cannot have."
)


ELSEWHERE = re.compile(r"^- (\*ours(, accepted)?\*:|Mean \(standard error\))")  # on columns that this page has not


@dataclass(frozen=True)
class Section:
    """A table's part of the page.

    Parameters
    ----------
    row
        Its line in the page's first table.
    text
        What follows its heading.
    """

    row: list[str]
    text: str


@dataclass(frozen=True)
class Page:
    """What an earlier page has: the sections of its tables, and cells of its claims by sentence."""

    sections: Mapping[str, Section]
    claims: Mapping[str, list[str]]

    @classmethod
    def read(cls, path: Path, known: Mapping[str, registry.Table]) -> Page:
        """Nothing where there is no such page.

        Raises
        ------
        HarnessError
            Where it has other columns, and what it has more of could not be kept.
        """
        head, *blocks = re.split(r"^## ", path.read_text() if path.is_file() else "", flags=re.MULTILINE)
        found = {title: text for title, _, text in (block.partition("\n") for block in blocks)}
        first, *lines = _rows(head) or [[]]
        if first and first != list(HEAD):
            raise HarnessError(f"{path} has other columns than this version writes; move it away to have a new one.")
        rows = {cells[0].partition(":")[0]: cells for cells in lines}
        sections = {
            name: Section(rows[name], found[table.title].strip("\n"))
            for name, table in known.items()
            if name in rows and table.title in found
        }
        return cls(sections, {cells[0]: cells for cells in _rows(found.get(CLAIMS, ""))})

    def has_more(self, name: str, new: Section | None) -> bool:
        """Whether more of a table's cells have a number there, or more questions stand behind them."""
        if name not in self.sections:
            return False
        return new is None or any(a > b for a, b in zip(_size(self.sections[name]), _size(new), strict=True))


def _size(section: Section) -> tuple[int, int, int]:
    """Results that were run, costs that were, and questions asked."""
    cells = section.row
    return int(cells[1]) - int(cells[LAST_RESULT]), _first(cells[COSTS]), int(cells[QUESTIONS])


def _first(cell: str) -> int:
    """The number of a cell, or the first of ``4 of 12``; 0 of a dash."""
    return 0 if cell == markup.DASH else int(cell.partition(" of ")[0])


def _rows(text: str) -> list[list[str]]:
    """The cells of a text's tables in Markdown, heads included, marks not."""
    lines = [line.strip()[1:-1] for line in text.splitlines() if line.startswith("|")]
    cells = [[cell.strip() for cell in markup.UNESCAPED.split(line)] for line in lines]
    return [line for line in cells if not re.fullmatch(r":?-+", line[0])]


def write(home: Path) -> str:
    """Write ``REPRODUCTION.md`` and ``figures`` from the answers stored under ``home``; returns a message.

    A table of which an earlier page has more stays as it is there, and so do the claims of its paper.

    Raises
    ------
    HarnessError
        Where the earlier page has other columns. And, once the page is written, where tables could not be made of
        their answers, as files of data or models are lacking.
    """
    known, path = registry.known(), home / "REPRODUCTION.md"
    before, finished = Page.read(path, known), list(_finished(home))
    runs = _of_tables(found for _, found in finished)
    sections, numbers = {}, {}
    refused: dict[str, list[str]] = {}  # tables by what is lacking
    for name in (name for name in known if name in runs):
        try:
            sections[name], numbers[name] = section(name, known[name], runs[name], home)
        except HarnessError as fault:
            refused.setdefault(str(fault), []).append(name)
    kept = [name for name in known if before.has_more(name, sections.get(name))]
    there = sections | {name: before.sections[name] for name in kept}
    shown = {name: there[name] for name in known if name in there}
    absent = [name for name in known if name not in shown and name not in runs]
    claims = _claims(numbers, kept, before.claims)
    parts = [
        "# What is regenerated\n",
        f"{_opening(shown.values(), claims)}\n",
        f"{LEGEND} Made by `python -m harness.tables --all` from stored answers.\n",
        markup.markdown(HEAD, [each.row for each in shown.values()], 1),
        f"Not run here at all: {', '.join(absent)}.\n" if absent else "",
        "".join(f"Not made here: {', '.join(names)}: {why}\n" for why, names in refused.items()),
        f"Kept from the page before, which has more of them: {', '.join(kept)}.\n" if kept else "",
        _uncovered(known),
        f"## {CLAIMS}\n",
        "What the papers themselves say, with the place; those that do not hold here come first, some of which the "
        "printed numbers do not bear out either. That one method is better than another holds where it is in more than "
        "half of the settings, unless it is said of all.\n",
        markup.markdown(["claim", "where", "here", "number"], claims),
        *(f"## {known[name].title}\n\n{each.text}\n" for name, each in shown.items()),
        _figures(home, finished),
    ]
    path.write_text("\n".join(part for part in parts if part))
    renewed = [name for name in shown if name not in kept]
    names = {"renewed": renewed, "kept, as the page had more of them": kept}
    lists = [f"{how}: {', '.join(found)}" for how, found in names.items() if found]
    message = "; ".join([f"{path}: {len(shown)} of {len(known)} tables", *lists])
    if refused:
        lacking = "; ".join(f"{', '.join(names)} could not be made: {why}" for why, names in refused.items())
        raise HarnessError(f"{message}; {lacking}")
    return message


def _of_tables(studies: Iterable[list[StoredRun]]) -> dict[str, list[StoredRun]]:
    """The finished runs of each table, from those of some studies."""
    found: dict[str, list[StoredRun]] = {}
    for finished in studies:
        if name := next((run.meta["config"].get("table") for run in finished), None):
            found.setdefault(name, []).extend(finished)
    return found


def _finished(home: Path) -> Iterator[tuple[Path, list[StoredRun]]]:
    """The studies under a folder with their finished runs; without those that have none, and damaged archives."""
    for folder in studies(home):
        try:
            yield folder, stored.latest(folder)
        except HarnessError:
            continue
        except Exception as fault:
            if not in_cache(answers_of(folder)):
                raise
            log.warning("the archive of %s is damaged, and left out (%s).", folder, short(fault))  # anybody's


def _figures(home: Path, finished: Iterable[tuple[Path, list[StoredRun]]]) -> str:
    """Draw what has stored answers, and show all figures of papers that are there; nothing where there is none.

    Those of a study's own are drawn for the study of their name, and are not shown.
    """
    folder, drawn = home / "figures", dict[str, str]()
    known = [name for name in figures.known() if name not in figures.OF_STUDIES]
    for study, found in finished:
        name = next((run.meta["config"].get("figure") for run in found), None)
        if name in known or (name in figures.OF_STUDIES and name == study.name):
            folder.mkdir(exist_ok=True)
            with suppress(HarnessError):
                figures.draw(study, name, folder / name, ("png",))
                drawn[name] = f"{_extent(found, 1)} {_behind(found, home)}\n\n"
    there = [name for name in known if (folder / f"{name}.png").is_file()]
    lacking = [name for name in known if name not in there]
    text = "".join(f"![{name}](figures/{name}.png)\n\n{drawn.get(name, '')}" for name in there)
    old = [name for name in there if name not in drawn]
    text += f"Of an earlier page, whose answers are not here: {', '.join(old)}.\n\n" if old else ""
    text += f"Not drawn here: {', '.join(lacking)}.\n" if lacking else ""
    return f"## Figures\n\n{text}" if there else ""


def section(name: str, table: registry.Table, found: Sequence[StoredRun], home: Path) -> tuple[Section, pd.DataFrame]:
    """A table's part of the page, and the frame of all its numbers; ``home`` holds its studies."""
    text, frame = table.build(found)
    lines = table.compared(frame)
    wrong, judged = table.refuted(found) if isinstance(table, registry.Refutes) else ([], 0)
    excluded = {(line.place, line.published) for line in wrong}
    cells = _published(lines)
    if excluded and "better" in cells:  # what cannot be is not reached
        impossible = [printed_at(row, _keys(cells)) in excluded for row in cells.to_dict("records")]
        cells = cells.assign(better=cells["better"].mask(impossible, ""))
    costs = cells["measure"].map(lambda measure: measure.partition(",")[0] in table.costs)
    results = [row for row in cells.loc[~costs].to_dict("records") if not marked(row, "given")]
    words = [verdict(row, table.asked) for row in results]
    count = Counter(
        OF_RIVALS.get(word, word) if marked(row, "rival") else word for row, word in zip(results, words, strict=True)
    )
    row = [f"{name}: {table.title}", len(results), sum(map(_asked, found)), *(count[word] for word in COUNTED)]
    row += [*_priced(cells.loc[costs]), f"{len(wrong)} of {judged}" if judged else markup.DASH]
    notes = [note for note in re.findall(r"^- .+$", text, flags=re.MULTILINE) if not ELSEWHERE.search(note)]
    for name, kind in (("No answer", NO_ANSWER), ("Not run", NOT_RUN)):
        told = (
            UNASKED if missing(row.get("why")) else row["why"]
            for row, word in zip(results, words, strict=True)
            if word == kind
        )
        if reasons := Counter(told):
            notes.append(f"- {name}: " + "; ".join(f"{number} {why}" for why, number in reasons.most_common()) + ".")
    parts = [
        _extent(found, table.asked),
        _behind(found, home),
        _cells(cells, lines, table),
        _excluded(wrong, judged, found, home),
        "\n".join(dict.fromkeys(notes)),
    ]
    return Section([str(cell) for cell in row], "\n\n".join(part.strip("\n") for part in parts if part)), frame


def _priced(costs: pd.DataFrame) -> list[str]:
    """How many costs stand beside ours; and by measure the median of the ratios that there are."""
    if costs.empty:
        return [markup.DASH, markup.DASH]
    ratios = costs.assign(ratio=[_ratio(row) for row in costs.to_dict("records")]).groupby("measure", sort=False)
    medians = ratios["ratio"].median().dropna()
    said = "; ".join(f"{measure.replace('_', ' ')} {markup.digits(value)}" for measure, value in medians.items())
    return [f"{costs['ours'].notna().sum()} of {len(costs)}", said or markup.DASH]


def _keys(lines: pd.DataFrame) -> list[str]:
    """The columns that say where a number is printed: those before ``measure``."""
    return list(lines.columns[: list(lines.columns).index("measure")])


def _excluded(lines: Sequence[registry.Refuted], looked: int, found: Sequence[StoredRun], home: Path) -> str:
    """A table of published numbers that are excluded; empty without any."""
    if not lines:
        return ""
    head, body = ["where", "published", "why it is excluded"], [[e.place, e.published, e.why] for e in lines]
    command = f"python -m harness.check {' '.join(_places(found, home))}"
    said = (
        f"Proven wrong, {len(lines)} of {looked} that can be judged; `{command}` judges them, and the answers, again:"
    )
    return f"{said}\n\n{markup.markdown(head, body, 1)}"


def _paper(name: str) -> str:
    return name.partition("_")[0]


def _asked(run: StoredRun) -> int:
    """Questions that a run was asked."""
    return len({row["factual"] for row in run.rows()})


def _behind(found: Sequence[StoredRun], home: Path) -> str:
    """Where the answers behind a table are kept, in words."""
    return f"Answers behind it: {', '.join(f'`{place}`' for place in _places(found, home))}."


def _places(found: Sequence[StoredRun], home: Path) -> list[str]:
    """The studies or archives that some runs are of."""
    places: dict[Path, None] = {}
    for run in found:
        study = home / run.path.parents[1].name
        places[(packed_as(study) or study) if run.packed else study] = None
    return [place.relative_to(home.parent).as_posix() for place in places]


def _extent(found: Sequence[StoredRun], asked: int) -> str:
    """What was run: methods, models, data sets, splits, limits, and how many were asked, here and by the paper."""
    metas, configs = [run.meta for run in found], [run.meta["config"] for run in found]
    unit, limit = ("group", "group_time_limit") if any(c.get("group") for c in configs) else ("factual", "time_limit")
    listed: dict[str, Iterable[Any]] = {
        "methods": map(_method, metas),
        "models": (meta["model"] for meta in metas),
        "data sets": (meta["dataset"] for meta in metas),
        "seeds": sorted(meta["seed"] for meta in metas),
        "factuals a run": _tallied(sorted(map(_asked, found))),
        f"seconds a {unit}": _tallied(sorted(config[limit] for config in configs)),
        "rows to train on": (_split(config.get("split")) for config in configs),
    }
    words = [f"{name}: {', '.join(map(str, dict.fromkeys(values)))}" for name, values in listed.items()]
    words += [f"factuals behind a published number: {asked}"] if asked > 1 else []
    return f"{number_of(len(found), 'run')}. " + "; ".join(words) + "."


def _tallied(values: Iterable[Any]) -> list[str]:
    """Each value once; where there are several, with how many runs have it."""
    count = Counter(values)
    return [f"{value} ({number} runs)" if len(count) > 1 else str(value) for value, number in count.items()]


def _method(meta: Mapping[str, Any]) -> str:
    """A method's name without its variant, and its algorithm where it has a choice of them."""
    name = method_of(meta)
    settings = meta["config"]["method"]
    kind = settings.get("algorithm") or settings.get("solver")
    return f"{name} ({kind})" if kind else name


def _split(split: Any) -> str:
    if not isinstance(split, Mapping):
        return "all" if split in (None, "none") else str(split)
    kind = "stratified, " if split.get("stratify") else ""
    return f"{1 - float(split['test_size']):.0%} ({kind}seed {split.get('seed', 0)})"


def _published(lines: pd.DataFrame) -> pd.DataFrame:
    if "published" not in lines:
        return pd.DataFrame(columns=["measure", "published", "ours"])
    return lines.loc[[not missing(value) for value in lines["published"]]]


def _ratio(row: Mapping[str, Any]) -> float:
    """Published / ours of a cost; NaN where either is none, a count of stops, or what a clock stopped."""
    if missing(row["ours"]) or not missing(row.get("of")) or not float(row["ours"]):
        return math.nan
    if marked(row, "stopped") or marked(row, "published_stopped"):
        return math.nan
    return float(row["published"]) / float(row["ours"])


def _cells(cells: pd.DataFrame, lines: pd.DataFrame, table: registry.Table) -> str:
    """One line a published row, one entry a measure; and of how many asked there is an answer, where that is known."""
    if cells.empty:
        return "No published numbers."
    keys = _keys(lines)
    alone = lines.loc[lines["alone"].astype(bool)] if "alone" in lines else lines.iloc[:0]
    shown = pd.concat([cells, alone])
    measures = list(dict.fromkeys(shown["measure"]))
    body, told = [], ["answered"] if {"n", "factuals"} <= set(lines) else []
    for place, block in shown.groupby(keys, sort=False) if keys else [((), shown)]:
        if all(verdict(row, table.asked) == NOT_RUN for row in block.to_dict("records")):
            continue
        entries = {row["measure"]: entry(row, table) for row in block.to_dict("records")}
        counts = [block[name].max() for name in ("n", "factuals") if told]
        answered = (
            ["" if any(map(missing, counts)) else " of ".join(f"{count:.0f}" for count in counts)] if told else []
        )
        body.append([*map(str, place), *(entries.get(measure, "") for measure in measures), *answered])
    head = [*keys, *(measure.replace("_", " ") for measure in measures), *told]
    return markup.markdown(head, body, len(keys)) if body else "Nothing of it has an answer."


def entry(row: Mapping[str, Any], table: registry.Table) -> str:
    """A cell of the page: a mark, our number, the published one in brackets; of a cost no mark but the ratio."""
    ours, published = _plain(row["ours"]), _plain(row["published"])
    if missing(row["published"]):
        return "" if missing(row["ours"]) else ours
    if not missing(row.get("published_of")):
        own = ours if missing(row["of"]) else f"{ours} of {_plain(row['of'])}"
        return f"{own} ({published} of {_plain(row['published_of'])})"
    if marked(row, "given") and not missing(row["ours"]):
        return f"{ours} ({published})"
    if row["measure"].partition(",")[0] in table.costs:
        if marked(row, "stopped") or marked(row, "published_stopped"):
            own, theirs = ("≥ " * marked(row, side) for side in ("stopped", "published_stopped"))
            return f"{own}{ours} ({theirs}{published})"
        ratio = _ratio(row)
        return f"{ours} ({published})" if math.isnan(ratio) else f"{ours} ({published}; {markup.digits(ratio)}×)"
    word = verdict(row, table.asked)
    return f"{MARKS[word]} ({published})" if word in (NOT_RUN, NO_ANSWER) else f"{MARKS[word]} {ours} ({published})"


def _plain(value: Any) -> str:
    if missing(value):
        return markup.DASH
    try:
        real = float(value)
    except (TypeError, ValueError):
        return str(value)
    return f"{real:,.0f}" if abs(real) >= 1000 else markup.digits(real)


def _opening(shown: Iterable[Section], claims: Sequence[Sequence[str]]) -> str:
    """The page in a paragraph: counts of all that follows."""
    shown = list(shown)
    rows = [[_first(cell) for cell in each.row[3 : COSTS + 1]] for each in shown]
    priced = sum(int(each.row[COSTS].partition(" of ")[2] or 0) for each in shown)
    wrong = sum(int(each.row[-1].partition(" of ")[0]) for each in shown if each.row[-1] != markup.DASH)
    printed, agree, undecided, worse, better, neither, rivals_worse, rivals_better, silent, unrun, costs = (
        sum(row[i] for row in rows) for i in range(len(COUNTED) + 1)
    )
    differ = worse + better + neither + rivals_worse + rivals_better
    ran = printed + agree + undecided + differ
    claimed = Counter(claim[2] for claim in claims)
    return (
        f"Of {ran + silent + unrun} comparisons with published results in {len(rows)} tables (what is asked of the "
        f"authors' models and of ours, or in two ways, counts twice), {ran} were regenerated: {printed} come out as "
        f"printed, {agree} agree, {undecided} are undecided, and {differ} differ (of the papers' own methods ours is "
        f"worse in {worse}, better in {better}; of their rivals in {rivals_worse} and {rivals_better}); of {silent} "
        f"there is no answer here, and {unrun} were not run. In "
        f"{wrong} places a printed counterfactual or mean is proven wrong. Of {priced} costs {costs} stand beside "
        f"ours. Of the papers' claims, {claimed[FAILS]} do not hold here, {claimed[HOLDS]} hold, and {claimed[OPEN]} "
        "are not tested enough."
    )


def _uncovered(known: Mapping[str, registry.Table]) -> str:
    """Published files that no table regenerates."""
    covered = {file for table in known.values() for file in table.published}
    left = sorted(path.name for path in stored.PUBLISHED.glob("*.csv") if path.name not in covered)
    return f"No table regenerates {', '.join(left)}.\n" if left else ""


def _claims(numbers: Numbers, kept: Sequence[str], before: Mapping[str, list[str]]) -> list[list[str]]:
    """A row a claim, those that do not hold first; of a paper whose tables are kept, the row that was there."""
    papers, rows = {_paper(name) for name in kept}, []
    for name, claim in registry.collected("CLAIMS").items():
        if _paper(name) in papers and claim.sentence in before:
            rows.append(before[claim.sentence])
        else:
            rows.append([claim.sentence, claim.place, *decided(claim, numbers)])
    return sorted(rows, key=lambda row: (FAILS, HOLDS, OPEN).index(row[2]))
