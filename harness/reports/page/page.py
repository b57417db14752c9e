"""The page: question, set-up, tables, figures, worst cases, failures and a ranking, in one HTML file."""

from __future__ import annotations

import base64
import io
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jinja2
import pandas as pd
from markupsafe import Markup, escape

from harness.core.metric import Metric
from harness.core.wording import target_text
from harness.reports import markup, stored
from harness.reports.overview import Overview
from harness.reports.page import charts
from harness.reports.page.results import ACCEPTED, NAMES, VIOLATIONS, Results
from harness.reports.page.statistics import LEVEL, Ranking, rank
from harness.store import mlflow

if TYPE_CHECKING:
    from matplotlib.figure import Figure


WORST = 12  # cases shown


@dataclass(frozen=True)
class Requirement:
    """What a reader may want of a counterfactual, and the scores that measure it: the first one computed counts."""

    name: str
    metrics: tuple[str, ...]
    better: str
    meaning: str

    def metric(self, scores: pd.DataFrame) -> str | None:
        return next((name for name in self.metrics if name in scores and scores[name].notna().any()), None)


REQUIREMENTS = (
    Requirement("valid", (ACCEPTED,), "higher", "share of what was asked for that is valid, coherent and permitted"),
    Requirement("near", ("distance/gower",), "lower", "Gower distance from the factual"),
    Requirement("few changes", ("distance/l0",), "lower", "number of changed features"),
    Requirement("plausible", ("plausibility/ynn",), "higher", "share of near training rows predicted as desired"),
    Requirement(
        "robust",
        ("robustness/certified_radius_linf", "robustness/region_validity"),
        "higher",
        "radius of the largest box around it proven valid, in scaled units; else the share of a box that is valid",
    ),
    Requirement("diverse", ("mothilal/sparsity_diversity",), "higher", "share of features that differ between answers"),
    Requirement("fast", ("seconds",), "lower", "seconds per factual, all its counterfactuals"),
)


def write(folder: Path) -> Path:
    """Write ``report.html`` of an experiment from what is stored, and return its path.

    Raises
    ------
    HarnessError
        Where nothing is finished and scored.
    """
    results = Results.of(folder)
    requirements = wanted(results)
    rankings = ranked(results, requirements)
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent), autoescape=True, undefined=jinja2.StrictUndefined,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    text = environment.get_template("page.html").render(
        name=results.name,
        question=_question(results),
        provenance=stored.provenance(results.runs),
        summary=_summary(results, requirements),
        papers=_papers(results, folder),
        overview=_rendered(Overview().build(results.runs)[0]),
        pictures=_pictures(folder),
        figures=_figures(results, rankings),
        worst=_worst(results),
        failures=_failures(results),
        runs=_runs(results),
        requirements=[requirement for requirement in requirements if requirement.name in rankings],
        unmeasured=[requirement for requirement in REQUIREMENTS if requirement.name not in rankings],
        places={name: _placed(ranking) for name, ranking in rankings.items()},
        blocks={name: ranking.blocks for name, ranking in rankings.items()},
        unit="a dataset with a model" if len(results.among("dataset")) > 1 else "a factual of a model",
        partial=_partial(results),
        level=LEVEL,
    )
    path = folder / "report.html"
    path.write_text(text, encoding="utf-8")
    return path


def ranked(results: Results, requirements: Sequence[Requirement]) -> dict[str, Ranking]:
    """A ranking per requirement that was measured, of the methods that answer for every model of the sweep."""
    found = {}
    for requirement in requirements:
        metric = requirement.metric(results.scores)
        if metric is not None and len(results.general) > 1:
            found[requirement.name] = rank(
                results.matrix(metric, results.general, requirement.better), requirement.better
            )
    return found


def wanted(results: Results) -> list[Requirement]:
    """``REQUIREMENTS``, then one for each further metric that a report shows: one of a user's own is ranked, too."""
    known = {VIOLATIONS, *(name for requirement in REQUIREMENTS for name in requirement.metrics)}
    headings = ACCEPTED, "violations", *(requirement.name for requirement in REQUIREMENTS)
    further = [
        Requirement(heading, (metric.name,), metric.better, _first_sentence(metric))
        for heading, metric in stored.columns(results.runs, "report", headings).items()
        if metric.name not in known
    ]
    return [*REQUIREMENTS, *further]


def _first_sentence(metric: Metric) -> str:
    """What a metric measures: the first line of its docstring, or its full name."""
    return (metric.__doc__ or metric.name).strip().splitlines()[0].rstrip(".")


def _question(results: Results) -> list[tuple[str, str]]:
    meta = results.metas[0]
    config = meta["config"]
    _, targets = results.runs[0].factuals()
    targets_in_words = dict.fromkeys(target_text(target) for target in targets.values())
    counts = results.scores.groupby(NAMES)["factual"].size()
    return [
        ("datasets", ", ".join(results.among("dataset"))),
        ("models", ", ".join(results.among("model"))),
        ("methods", ", ".join(results.among("method"))),
        ("wanted", ", ".join(targets_in_words)),
        ("factuals", f"{counts.max()} per dataset and model, the same for every method"),
        ("counterfactuals", f"{meta['n_counterfactuals']} per factual, within {config['time_limit']} s"),
    ]


def _summary(results: Results, requirements: Sequence[Requirement]) -> list[dict[str, Any]]:
    """One block a dataset and model: a row a method, with the best of each column marked."""
    shown = {"accepted": (ACCEPTED, "higher", 2), "valid": ("coverage", "higher", 2)}
    for requirement in requirements[1:]:
        if metric := requirement.metric(results.scores):
            shown[requirement.name] = (metric, requirement.better, 3)
    if VIOLATIONS in results.scores:
        shown["violations"] = (VIOLATIONS, "lower", 2)
    blocks = []
    refused = results.outcomes.set_index(NAMES)["refused"]
    for (dataset, model), part in results.scores.groupby(["dataset", "model"], sort=False):
        means = part.groupby("method", sort=False).mean(numeric_only=True)
        rows: list[dict[str, Any]] = []
        able = means.loc[[not refused[dataset, model, method] for method in means.index]]
        best = {
            name: (able[metric].max() if better == "higher" else able[metric].min())
            for name, (metric, better, _) in shown.items()
        }
        for method, line in means.iterrows():
            cells = [
                {"text": _figure(line[metric], digits), "best": line[metric] == best[name]}
                for name, (metric, _, digits) in shown.items()
            ]
            rows.append({"method": method, "cells": cells, "refused": refused[dataset, model, method]})
        heads = [f"{name} {markup.ARROWS[better]}" for name, (_, better, _) in shown.items()]
        blocks.append({"title": f"{dataset} / {model}", "head": heads, "rows": rows})
    return blocks


def _figure(value: float, digits: int) -> str:
    return markup.DASH if math.isnan(value) else f"{value:.{digits}f}"


def _figures(results: Results, rankings: Mapping[str, Ranking]) -> list[tuple[str, str, Markup]]:
    """Title, explanation and picture of each figure that the scores allow."""
    scores = results.scores
    drawn: list[tuple[str, str, Figure]] = []
    pair = ("distance/gower", "lower"), ("plausibility/ynn", "higher")
    if all(name in scores for name, _ in pair):
        title = "Distance against plausibility"
        drawn.append(
            (title, "Means over factuals. The line joins what nothing beats in both.", charts.tradeoff(results, *pair))
        )
    if rankings:
        heat = charts.heat(rankings, results.general)
        drawn.append(("Methods by requirement", "Mean rank, 1 is best; the number of methods is worst.", heat))
    if "distance/gower" in scores and len(results.general) > 1:
        text = (
            "Share of factuals with an accepted answer within a factor of the nearest one, and within so many seconds."
        )
        drawn.append(("Quality and time", text, charts.profile(results, "distance/gower")))
    for name in ("near", "few changes"):
        if name in rankings and len(rankings[name].ranks) > 2:
            text = "Methods joined by a bar are not told apart by Nemenyi's test."
            drawn.append((f"Critical differences: {name}", text, charts.critical(rankings[name], name)))
    if strip := _strip(results):
        drawn.append(("What changes, for one factual", "The first counterfactual of each method.", strip))
    return [(title, text, _inline(figure, title)) for title, text, figure in drawn]


def _strip(results: Results) -> Figure | None:
    """Of the first dataset and model, the factual for which most methods have an answer."""
    first = results.metas[0]
    runs = {
        meta["method"]: run
        for run, meta in zip(results.runs, results.metas, strict=True)
        if (meta["dataset"], meta["model"]) == (first["dataset"], first["model"])
    }
    firsts = {name: {r["factual"]: r["row"] for r in run.rows() if r["ce"] == 1} for name, run in runs.items()}
    frame, _ = results.runs[0].factuals()
    answered = {i: sum(rows.get(i) is not None for rows in firsts.values()) for i in frame.index}
    chosen = max(frame.index, key=lambda i: answered[i])
    if not answered[chosen]:
        return None
    rows = {name: found.get(chosen) for name, found in firsts.items()}
    return charts.strip(frame.loc[chosen], rows, results.runs[0].space.names)


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


def _papers(results: Results, folder: Path) -> Markup | None:
    """The paper's table, where the experiment regenerates one."""
    path = folder / "table.md"
    follows = any(meta["config"].get("table") for meta in results.metas)
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


def _worst(results: Results) -> list[dict[str, Any]]:
    """Accepted answers that are farthest from the best one for the same factual."""
    if "distance/gower" not in results.scores:
        return []
    scores = results.scores.dropna(subset=["distance/gower"])
    if VIOLATIONS in scores:
        scores = scores.loc[scores[VIOLATIONS] == 0]
    best = scores.groupby(["dataset", "model", "factual"])["distance/gower"].transform("min")
    ratio = scores["distance/gower"] / best.where(best > 0)
    farthest = scores.assign(ratio=ratio, best=best).dropna(subset=["ratio"]).sort_values("ratio", ascending=False)
    return farthest.head(WORST)[[*NAMES, "factual", "distance/gower", "best", "ratio"]].to_dict("records")


def _failures(results: Results) -> list[dict[str, Any]]:
    """Runs in which something other than an accepted counterfactual came back, with counts and reasons."""
    lines = []
    for line in results.outcomes.to_dict("records"):
        bad = {word: n for word, n in line["verdict"].items() if word not in {"valid", "none"}}
        missing = {word: n for word, n in line["status"].items() if word not in {"OPTIMAL", "FOUND"}}
        if bad or missing:
            reason = line["details"][0].strip().splitlines()[-1] if line["details"] else ""
            label = " / ".join(line[name] for name in NAMES)
            lines.append({"label": label, "missing": _counts(missing), "bad": _counts(bad), "reason": reason})
    return lines


def _counts(found: Mapping[str, int]) -> str:
    return ", ".join(f"{n} {word}" for word, n in found.items())


def _partial(results: Results) -> list[tuple[str, str]]:
    """Methods that are not ranked, with the models they take."""
    taken = results.outcomes.loc[~results.outcomes["refused"]]
    return [
        (name, ", ".join(dict.fromkeys(taken.loc[taken["method"] == name, "model"])) or "none of these models")
        for name in results.among("method")
        if name not in results.general
    ]


def _placed(ranking: Ranking) -> list[tuple[int, str]]:
    """Place and names with their mean ranks, best first; those of one place are tied."""
    places = ranking.places
    grouped: dict[int, list[str]] = {}
    for name, mean in ranking.ranks.items():
        grouped.setdefault(int(places[name]), []).append(f"{name} ({mean:.1f})")
    return [(place, ", ".join(names)) for place, names in sorted(grouped.items())]


def _runs(results: Results) -> Sequence[tuple[str, str]]:
    """Label and address of each run in MLflow, where its store is at hand."""
    known = mlflow.runs(results.name)
    return [
        (run.label, known[meta["fingerprint"]])
        for run, meta in zip(results.runs, results.metas, strict=True)
        if meta.get("fingerprint") in known
    ]
