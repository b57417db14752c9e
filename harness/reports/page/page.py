"""The page: question, set-up, tables, figures, worst cases, failures and a ranking, in one HTML file."""

from __future__ import annotations

import base64
import io
import math
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jinja2
from markupsafe import Markup, escape

from harness.core.wording import target_text
from harness.evaluation import statistics
from harness.evaluation.contest import SECONDS, Criterion, Standing
from harness.evaluation.numbers import Numbers
from harness.evaluation.statistics import BLOCKS, ENOUGH, LEVEL, Estimate
from harness.evaluation.study import Entry, Study
from harness.reports import departures, markup, stored
from harness.reports.overview import overview
from harness.reports.page import charts
from harness.reports.summary import line_of
from harness.store import mlflow

if TYPE_CHECKING:
    from matplotlib.figure import Figure


WORST = 12  # cases shown
MEANINGS = {
    "proximity": "Gower distance of the nearest accepted counterfactual",
    "sparsity": "number of features that it changes",
    "plausibility": "share of its near training rows that are predicted as desired",
    "robustness": "share of its noisy copies that are no longer valid",
    "diversity": "mean pairwise Gower distance, where as many were accepted as asked for",
    SECONDS: "to the last answer of a question",
}


def write(folder: Path) -> Path:
    """Write ``report.html`` of a study from what is stored, and return its path.

    Raises
    ------
    HarnessError
        Where nothing is finished and scored.
    """
    numbers = Numbers(Study.of(folder))
    study = numbers.study
    runs = [run for entry in study.entries for run in entry.runs]
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent), autoescape=True, undefined=jinja2.StrictUndefined,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    text = environment.get_template("page.html").render(
        name=study.name,
        question=_question(study),
        provenance=stored.provenance(runs),
        tasks=[_task(numbers, task) for task in study.tasks],
        papers=_papers(study, folder),
        overview=_rendered(overview(numbers)[0]),
        pictures=_pictures(folder),
        figures=_figures(numbers),
        worst=_worst(numbers),
        failures=_failures(study),
        faults=study.faults,
        runs=_runs(study),
        criteria=[_placed(numbers, criterion) for criterion in numbers.criteria],
        sees=[(entry.task, entry.method, ", ".join(entry.sees)) for entry in study.entries if entry.sees],
        departures=_rendered(departed) if (departed := _departures(study)) else None,
        refused=[(entry.task, entry.method, entry.refusal) for entry in study.refused],
        impossible=[(task, len(found)) for task, found in study.impossible.items()],
        level=LEVEL, blocks=BLOCKS, enough=ENOUGH, several_tasks=len(study.tasks) > 1,
    )  # fmt: skip
    path = folder / "report.html"
    path.write_text(text, encoding="utf-8")
    return path


def _question(study: Study) -> list[tuple[str, str]]:
    first = study.entries[0]
    meta = first.metas[0]
    config = meta["config"]
    targets = (target_text(target) for entry in study.entries for target in entry.runs[0].factuals()[1].values())
    most = max(len(entry.table) for entry in study.entries)
    return [
        ("datasets", ", ".join(study.datasets)),
        ("models", ", ".join(dict.fromkeys(entry.model for entry in study.entries))),
        ("methods", ", ".join(study.methods)),
        ("wanted", ", ".join(dict.fromkeys(targets))),
        ("factuals", f"{most} per dataset and model, the same for every method"),
        ("counterfactuals", f"{meta['n_counterfactuals']} per factual, within {config['time_limit']} s"),
    ]


def _task(numbers: Numbers, task: str) -> dict[str, Any]:
    """The numbers of a task: a row a method, the best common mean of each criterion marked."""
    entries = numbers.study.of_task(task)
    criteria = [c for c in numbers.criteria if any(_has(numbers, entry, c) for entry in entries)]
    further = [
        m for m in stored.headings(numbers.metrics.values(), "report").values() if not _is_criterion(m.name, criteria)
    ]
    lines = [line_of(entry) for entry in entries]
    plain = [key for key in dict.fromkeys(key for line in lines for key in line) if key not in {"task", "method"}]
    rows = []
    for entry, line in zip(entries, lines, strict=True):
        own = [_count(line[key]) if key != "coverage" else _interval(entry.coverage) for key in plain if key in line]
        means = [_figure(entry.mean(metric.name).value) for metric in further]
        rows.append(
            {
                "method": entry.method,
                "own": own + means,
                "compared": [_compared(numbers, entry, criterion) for criterion in criteria],
                "faults": ", ".join(f"{n} {word}" for word, n in entry.faults.items()),
            }
        )
    common = [contest.common.n if (contest := numbers.contest(task, c)) else 0 for c in criteria]
    arrows = [f"{c.name} {markup.ARROWS[c.better]}" for c in criteria]
    left = next((c.common.left_out for c in (numbers.contest(task, criterion) for criterion in criteria) if c), ())
    return {
        "title": task, "own": [*plain, *(metric.column for metric in further)], "criteria": arrows, "common": common,
        "rows": rows, "left_out": ", ".join(left), "places": _task_places(numbers, task),
        "pairs": _pairs(numbers, task, criteria),
    }  # fmt: skip


def _pairs(numbers: Numbers, task: str, criteria: Iterable[Criterion]) -> list[list[str]]:
    """The pairs of methods of each criterion that has too few common questions for a mean."""
    rows = []
    for criterion in criteria:
        contest = numbers.contest(task, criterion)
        if contest is None or contest.common.enough:
            continue
        for pair in contest.pairs:
            tests = [markup.DASH if math.isnan(p) else f"{p:.2g}" for p in (pair.p, pair.mcnemar)]
            counts = [str(pair.difference.n), str(pair.only_first), str(pair.only_second)]
            names = [criterion.name, pair.first, pair.second]
            rows.append([*names, counts[0], _interval(pair.difference), tests[0], *counts[1:], tests[1]])
    return rows


def _is_criterion(metric: str, criteria: Iterable[Criterion]) -> bool:
    return any(criterion.metric == metric for criterion in criteria)


def _has(numbers: Numbers, entry: Entry, criterion: Criterion) -> bool:
    contest = numbers.contest(entry.task, criterion)
    return contest is not None and entry.method in contest.values and bool(contest.values[entry.method].notna().any())


def _compared(numbers: Numbers, entry: Entry, criterion: Criterion) -> dict[str, Any]:
    """A cell: the common mean with its interval, whether it is the best, and the mean rank."""
    contest = numbers.contest(entry.task, criterion)
    if contest is None or entry.method not in contest.values:
        return {"text": markup.DASH, "best": False, "rank": ""}
    mean = contest.common.means.get(entry.method)
    text = _interval(mean) if mean is not None and contest.common.enough else markup.DASH
    return {"text": text, "best": entry.method in contest.best, "rank": f"{contest.ranks[entry.method].mean():.2f}"}


def _task_places(numbers: Numbers, task: str) -> list[tuple[str, str]]:
    """Of each criterion, places from the paired comparisons of one task."""
    if len(numbers.study.of_task(task)) < 2:
        return []
    found = ((c, numbers.contest(task, c)) for c in numbers.criteria)
    lines = []
    for criterion, contest in found:
        if contest is not None and contest.places:
            kept = statistics.comparable(contest.coverage)
            few = [name for name in contest.places if name not in kept]
            text = _listed({name: place for name, place in contest.places.items() if name in kept})
            lines.append((criterion.name, text + (f"; answer too few: {', '.join(few)}" if few else "")))
    return lines


def _listed(places: Mapping[str, int]) -> str:
    """``1: a, b; 3: c``."""
    grouped: dict[int, list[str]] = {}
    for name, place in places.items():
        grouped.setdefault(place, []).append(name)
    return "; ".join(f"{place}: {', '.join(names)}" for place, names in sorted(grouped.items()))


def _count(value: float) -> str:
    return markup.DASH if math.isnan(value) else f"{value:.3g}"


def _figure(value: float) -> str:
    return markup.DASH if math.isnan(value) else f"{value:.3f}"


def _interval(estimate: Estimate) -> str:
    """A number with its interval: ``0.93 (0.80 to 0.98)``."""
    if math.isnan(estimate.low):
        return _figure(estimate.value)
    return f"{estimate.value:.3g} ({estimate.low:.3g} to {estimate.high:.3g})"


def _placed(numbers: Numbers, criterion: Criterion) -> dict[str, Any]:
    """A criterion with its methods: by place where a test or the pairs of one task give places, else by mean rank."""
    standing = numbers.standings[criterion.name]
    means, blocks = standing.mean_ranks.dropna(), standing.blocks
    kept = [str(name) for name in means.index if name not in standing.too_few]
    names = {name: f"{name} ({means[name]:.2f})" for name in kept}
    places = {name: place for name, place in standing.places.items() if name in kept}
    if places:
        lines = [
            (str(place), [names[name] for name in kept if places.get(name) == place])
            for place in sorted(set(places.values()))
        ]
        lines += (
            [("not tested", [names[name] for name in kept if name not in places])] if len(places) < len(kept) else []
        )
    else:
        lines = [("", [f"{names[name]}" for name in kept])]
    return {
        "name": criterion.name,
        "meaning": MEANINGS.get(criterion.name) or _first_sentence(numbers, criterion),
        "better": criterion.better,
        "lines": [(place, ", ".join(texts)) for place, texts in lines],
        "too_few": ", ".join(str(name) for name in means.index if name in standing.too_few),
        "how": _how(standing, len(numbers.contests[criterion.name])),
        "blocks": int(blocks.max()) if len(blocks) else 0,
    }


def _how(standing: Standing, tasks: int) -> str:
    """Where the places come from."""
    if standing.test is not None:
        return f"Friedman p = {standing.test.p:.2g} over {len(standing.ranks)} datasets, then Nemenyi"
    return "paired comparisons of this one task" if tasks == 1 else "mean ranks, not tested"


def _first_sentence(numbers: Numbers, criterion: Criterion) -> str:
    """What a metric measures: the first line of its docstring, or its full name."""
    metric = numbers.metrics[criterion.metric]
    return (metric.__doc__ or metric.name).strip().splitlines()[0].rstrip(".")


def _figures(numbers: Numbers) -> list[tuple[str, str, Markup]]:
    """Title, explanation and picture of each figure that the scores allow."""
    study = numbers.study
    named = {criterion.name: criterion for criterion in numbers.criteria}
    drawn: list[tuple[str, str, Figure]] = []
    if {"proximity", "plausibility"} <= set(named):
        text = "Means over the questions that each method answers. The line joins what nothing beats in both."
        picture = charts.tradeoff(study, named["proximity"], named["plausibility"])
        drawn.append(("Distance against plausibility", text, picture))
    if len(study.methods) > 1:
        text = "Mean normalised rank over data sets: 0 is best, 1 last."
        drawn.append(("Methods by criterion", text, charts.heat(numbers.standings)))
    if "proximity" in named and len(study.methods) > 1:
        text = (
            "Share of questions with an accepted answer within a factor of the nearest one, and within so many seconds."
        )
        drawn.append(("Quality and time", text, charts.profile(study, numbers.contests["proximity"])))
    for name, standing in numbers.standings.items():
        if standing.test is not None:
            text = "Methods joined by a bar are not told apart by Nemenyi's test."
            drawn.append((f"Critical differences: {name}", text, charts.critical(standing)))
    if strip := _strip(study):
        drawn.append(("What changes, for one factual", "The first counterfactual of each method.", strip))
    return [(title, text, _inline(figure, title)) for title, text, figure in drawn]


def _strip(study: Study) -> Figure | None:
    """Of the first task, the factual for which most methods have an answer."""
    entries = [entry for entry in study.entries if entry.task == study.tasks[0]]
    firsts = {e.method: {r["factual"]: r["row"] for r in e.runs[0].rows() if r["ce"] == 1} for e in entries}
    frame, _ = entries[0].runs[0].factuals()
    answered = {i: sum(rows.get(i) is not None for rows in firsts.values()) for i in frame.index}
    chosen = max(frame.index, key=lambda i: answered[i])
    if not answered[chosen]:
        return None
    rows = {name: found.get(chosen) for name, found in firsts.items()}
    return charts.strip(frame.loc[chosen], rows, entries[0].runs[0].space.names)


def _inline(figure: Figure, title: str) -> Markup:
    """A figure as SVG in the page, readable by a screen reader as one picture."""
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg", metadata={"Date": None})
    svg = buffer.getvalue()
    svg = svg[svg.index("<svg") :]
    unique = re.sub(r"\W+", "-", title)
    for attribute in ('id="', 'href="#', "url(#"):  # several pictures on a page must not share names
        svg = svg.replace(attribute, f"{attribute}{unique}-")
    return Markup(svg.replace("<svg", f'<svg role="img" aria-label="{escape(title)}"', 1))


def _papers(study: Study, folder: Path) -> Markup | None:
    """The paper's table, where the experiment regenerates one."""
    path = folder / "table.md"
    follows = any(meta["config"].get("table") for entry in study.entries for meta in entry.metas)
    return _rendered(path.read_text()) if follows and path.is_file() else None


def _pictures(folder: Path) -> list[tuple[str, str]]:
    """The paper's figures, as data of the page."""
    return [
        (path.stem, "data:image/png;base64," + base64.b64encode(path.read_bytes()).decode())
        for path in sorted(folder.glob("*.png"))
    ]


def _rendered(text: str) -> Markup:
    """Markdown as ``harness.tables`` writes it: headings, paragraphs, tables, code, bold and italics."""
    out: list[str] = []
    for block in re.split(r"\n\s*\n", text.strip()):
        lines = block.splitlines()
        if lines[0].startswith("|"):
            head, _, *body = ([_inlined(cell) for cell in _split(line)] for line in lines)
            rows = "".join(_tr(row, "td") for row in body)
            out.append(f'<div class="wide"><table><thead>{_tr(head, "th")}</thead><tbody>{rows}</tbody></table></div>')
        elif lines[0].startswith("#"):
            out.append(f"<h3>{_inlined(lines[0].lstrip('# '))}</h3>")
        else:
            out.append("".join(f"<p>{_inlined(line.removeprefix('- '))}</p>" for line in lines))
    return Markup("".join(out))


def _split(line: str) -> list[str]:
    return [cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", line.strip().strip("|"))]


def _tr(cells: Iterable[str], tag: str) -> str:
    return "<tr>" + "".join(f"<{tag}>{cell}</{tag}>" for cell in cells) + "</tr>"


def _inlined(text: str) -> str:
    code = re.sub(r"`(.+?)`", r"<code>\1</code>", str(escape(text)))
    bold = re.sub(r"\*\*(.+?)\*\*", r"<b>\1</b>", code)
    return re.sub(r"\*(.+?)\*", r"<i>\1</i>", bold)


def _worst(numbers: Numbers) -> list[dict[str, Any]]:
    """Accepted answers that are farthest from the nearest one for the same question."""
    lines = []
    for contest in numbers.contests.get("proximity", ()):
        best = contest.values.min(axis=1)
        for question, row in contest.values.loc[best > 0].iterrows():
            for method, value in row.dropna().items():
                names = {"task": contest.task, "method": method, "factual": question}
                lines.append({**names, "distance": value, "best": best[question], "ratio": value / best[question]})
    return sorted(lines, key=lambda line: -line["ratio"])[:WORST]


def _failures(study: Study) -> list[dict[str, Any]]:
    """Entries in which something other than an accepted counterfactual came back, with counts and reasons."""
    lines = []
    for entry in study.entries:
        missing: dict[str, int] = {}
        for outcome in entry.outcomes:
            for word, n in outcome["status"].items():
                if word not in {"OPTIMAL", "FOUND"}:
                    missing[word] = missing.get(word, 0) + n
        if entry.faults or missing:
            reasons = [f"{text} ({n}x)" for text, n in list(entry.outcomes[0]["reasons"].items())[:2]]
            label, bad = f"{entry.task} / {entry.method}", _counts(entry.faults)
            lines.append({"label": label, "missing": _counts(missing), "bad": bad, "reason": "; ".join(reasons)})
    return lines


def _departures(study: Study) -> str:
    """Of the methods of a study, the settings that are not their libraries' own: a table in Markdown, or nothing."""
    names = {meta["method"] for entry in study.entries for meta in entry.metas}
    found = [departure for departure in departures.departures() if departure.method in names]
    return departures.table(found) if found else ""


def _counts(found: Mapping[str, int]) -> str:
    return ", ".join(f"{n} {word}" for word, n in found.items())


def _runs(study: Study) -> list[tuple[str, str]]:
    """Name and address of each run in MLflow, where its store is at hand."""
    known = mlflow.runs(study.name)
    return [
        (
            f"{entry.task} / {entry.method}" + (f" / seed {meta['seed']}" if entry.seeds > 1 else ""),
            known[meta["fingerprint"]],
        )
        for entry in study.entries
        for meta in entry.metas
        if meta.get("fingerprint") in known
    ]
