"""The page: which method for what, the question, methods compared, numbers, figures, failures; in one HTML file."""

from __future__ import annotations

import base64
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from harness.core.errors import HarnessError
from harness.core.wording import some, target_text
from harness.core.writing import write_whole
from harness.evaluation.numbers import Numbers
from harness.evaluation.statistics import BLOCKS, ENOUGH, LEVEL
from harness.evaluation.study import Entry, Study
from harness.reports import departures, stored
from harness.reports.markup import figure
from harness.reports.overview import overview
from harness.reports.page import figures
from harness.reports.page.against import FEW, compared, farthest
from harness.reports.page.elements import Column, Names, count, interval, markdown, table
from harness.reports.page.which import recommendations
from harness.reports.summary import line_of, of_ended
from harness.store import mlflow
from harness.store.run import sweep_lines

NAMED = 6  # wanted values and reasons that are listed before "and 3 more"
QUESTION = (
    Column("data set"), Column("wanted"), Column("models"), Column("people asked", True),
    Column("counterfactuals each", True), Column("seconds each", True),
)  # fmt: skip
FAILURES = (
    Column("task"), Column("method"), Column("answers without a counterfactual: status, reason"),
    Column("returned and not accepted"),
)  # fmt: skip


def write(folder: Path, numbers: Numbers | None = None) -> Path:
    """Write ``report.html`` of a study from what is stored, and its ``figures``; returns the path of the page.

    Parameters
    ----------
    numbers
        Of the study, where they are known.

    Raises
    ------
    HarnessError
        Where nothing is finished and scored.
    """
    numbers = numbers or Numbers(Study.of(folder).held())
    study = numbers.study
    names = Names(study.methods)
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent), autoescape=True, undefined=jinja2.StrictUndefined,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    text = environment.get_template("page.html").render(
        name=study.name,
        samples=names.samples,
        faults=study.faults, clocks=study.clocks(study.tasks),
        recommendations=recommendations(numbers, names),
        question=_question(study), alike=_alike(study),
        methods=Markup(", ").join(names(method) for method in study.methods),
        provenance=stored.provenance(study.runs),
        compared=compared(numbers, names),
        farthest=farthest(numbers, names),
        overview=markdown(overview(numbers)[0], names),
        alone=[(task, _alone(numbers, task, names)) for task in study.tasks],
        papers=_papers(study, folder, names),
        pictures=_pictures(folder),
        figures=figures.write(numbers, folder),
        failures=_failures(study, names),
        stopped=_stopped(study, folder),
        refused=[(entry.task, names(entry.method), entry.refusal) for entry in study.refused],
        departures=_departures(study, names),
        runs=_runs(study),
        level=LEVEL, blocks=BLOCKS, enough=ENOUGH, few=FEW, one_task=len(study.tasks) == 1,
    )  # fmt: skip
    path = folder / "report.html"
    write_whole(path, text)
    return path


def _question(study: Study) -> Markup:
    """A row a data set: what is wanted of whom, and within which limits."""
    rows = []
    for dataset in study.datasets:
        entries = [entry for entry in study.entries if entry.dataset == dataset]
        metas = [meta for entry in entries for meta in entry.metas]
        targets = [target for entry in entries for run in entry.runs for target in run.factuals()[1].values()]
        column = stored.predicted(metas)
        wanted = some(dict.fromkeys(target_text(target) for target in targets), NAMED)
        cells = [
            dict.fromkeys(entry.model for entry in entries),
            [_people(entries)],
            dict.fromkeys(meta["n_counterfactuals"] for meta in metas),
            dict.fromkeys(_limit(meta["config"]) for meta in metas),
        ]
        named = f"{column}: {wanted}" if column else wanted
        rows.append([dataset, named, *(", ".join(map(str, cell)) for cell in cells)])
    return table(QUESTION, rows)


def _people(entries: Sequence[Entry]) -> str:
    """How many were asked about; of models that have other numbers than most by their names."""
    asked = dict.fromkeys((e.model, len(e.table) + e.impossible) for e in entries if e.refusal is None)
    usual = Counter(n for _, n in asked).most_common(1)
    others = [f"{model}: {n}" for model, n in asked if n != usual[0][0]]
    return "; ".join([*(str(n) for n, _ in usual), *others])


def _alike(study: Study) -> bool:
    """Whether all methods of a data set and model were asked about the same people, for as many counterfactuals within
    one limit, and nothing is wrong with the study."""
    asked = {
        (entry.dataset, _limit(meta["config"]), meta["n_counterfactuals"])
        for entry in study.entries
        for meta in entry.metas
    }
    models = {(entry.dataset, entry.model) for entry in study.entries}
    return not study.faults and len(asked) == len(study.datasets) and len(models) == len(study.tasks)


def _limit(config: Mapping[str, Any]) -> str:
    return f"{config['group_time_limit']} a group" if config.get("group") else str(config["time_limit"])


def _alone(numbers: Numbers, task: str, names: Names) -> Markup | None:
    """The numbers of each method of a task by itself; None where every method refuses it."""
    entries = numbers.study.of_task(task)
    if not entries:
        return None
    lines = [line_of(entry) for entry in entries]
    shown = dict.fromkeys(key for line in lines for key in line)
    once = {"coverage_sd"} if all(entry.seeds == 1 for entry in entries) else set()
    keys = [key for key in shown if key not in {"task", "method"} | once]
    metrics = list(stored.headings(numbers.metrics.values(), "report", keys).items())
    rows = []
    for entry, line in zip(entries, lines, strict=True):
        known = {key: mean.n for key, mean in of_ended(entry).items()}
        fewer = {key: f" ({n})" for key, n in known.items() if 0 < n < len(entry.table)}
        texts = {key: count(line[key]) + fewer.get(key, "") for key in keys if key in line}
        own = [interval(entry.coverage) if key == "coverage" else texts.get(key, "") for key in keys]
        means = [_of_its_own(entry, metric.name) for _, metric in metrics]
        rows.append([names(entry.method), *own, *means, _counts(entry.faults)])
    numeric = [Column(heading, True) for heading in (*keys, *(heading for heading, _ in metrics))]
    return table([Column("method"), *numeric, Column("not accepted")], rows)


def _of_its_own(entry: Entry, metric: str) -> Markup:
    """The mean of a metric with its interval, how many questions it is over, and its spread over seeds."""
    mean, spread = entry.mean(metric), entry.seed_spread(metric)
    beside = [f"n = {mean.n}"] * (mean.n < len(entry.table) and not math.isnan(mean.value))
    beside += [f"sd over seeds {figure(spread)}"] * (not math.isnan(spread))
    return interval(mean) + (Markup(' <span class="ci">{}</span>').format("; ".join(beside)) if beside else "")


def _papers(study: Study, folder: Path, names: Names) -> Markup | None:
    """The paper's table, where the experiment regenerates one."""
    path = folder / "table.md"
    follows = any(meta["config"].get("table") for entry in study.entries for meta in entry.metas)
    return markdown(path.read_text(), names) if follows and path.is_file() else None


def _pictures(folder: Path) -> list[tuple[str, str]]:
    """The paper's figures, as data of the page."""
    return [
        (path.stem, "data:image/png;base64," + base64.b64encode(path.read_bytes()).decode())
        for path in sorted(folder.glob("*.png"))
    ]


def _failures(study: Study, names: Names) -> Markup | None:
    """Entries in which something other than an accepted counterfactual came back, with counts and reasons."""
    rows = []
    for entry in study.entries:
        missing = entry.counted("missing")
        if entry.refusal is None and (missing or entry.faults):
            texts = [f"{n} {what}" for what, n in missing.most_common(NAMED)]
            texts += [f"{len(missing) - NAMED} further reasons"] if len(missing) > NAMED else []
            rows.append([entry.task, names(entry.method), Markup("<br>").join(texts), _counts(entry.faults)])
    return table(FAILURES, rows) if rows else None


def _stopped(study: Study, folder: Path) -> list[tuple[str, str]]:
    """Runs of the study's sweeps that never came to an end, and why."""
    failed: list[Mapping[str, Any]] = []
    for line in sweep_lines(folder):
        failed = [other for other in failed if not _again(line, other)]
        failed += [line] if line["state"] == "failed" else []
    finished = {run.label for run in study.runs}
    return [(line["label"], line["message"]) for line in failed if "asked" in line or line["label"] not in finished]


def _again(line: Mapping[str, Any], failed: Mapping[str, Any]) -> bool:
    """Whether a line of a sweep is of what failed before: the same command, or another one that came to an end.

    A sweep's labels say in brackets what varied in it, so that one run has several.
    """
    same = failed["label"] in (line["label"], line["label"].partition(" (")[0])
    if "asked" in line and "asked" in failed:
        return line["asked"] == failed["asked"] or (same and line["state"] != "failed")
    return same


def _departures(study: Study, names: Names) -> Markup | None:
    """Of the methods of a study, the settings that are not their libraries' own."""
    methods = {meta["method"] for entry in study.entries for meta in entry.metas}
    found = [departure for departure in departures.departures() if departure.method in methods]
    return markdown(departures.table(found), names) if found else None


def _counts(found: Mapping[str, int]) -> str:
    return ", ".join(f"{n} {word}" for word, n in found.items())


def _runs(study: Study) -> list[tuple[str, str]]:
    """Name and address of each run in MLflow, where its store is at hand."""
    try:
        known = mlflow.runs(study.name)
    except HarnessError:
        return []
    return [
        (
            f"{entry.task} / {entry.method}" + (f" / seed {meta['seed']}" if entry.seeds > 1 else ""),
            known[meta["fingerprint"]],
        )
        for entry in study.entries
        for meta in entry.metas
        if meta.get("fingerprint") in known
    ]
