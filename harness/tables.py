"""Stored answers beside a paper's table: ``python -m harness.tables results/ce_ocl_table2``."""

from __future__ import annotations

import argparse
import json
import math
import pkgutil
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pandas as pd

from harness import papers, scoring
from harness.core.errors import HarnessError, choices
from harness.core.metric import Metric
from harness.core.objective import displacement
from harness.core.problem import Problem
from harness.store.cell import Cell, cells

PACKAGE = Path(__file__).parent
PUBLISHED = next(
    folder for folder in (PACKAGE.parent / "results" / "published", PACKAGE / "published") if folder.is_dir()
)
ARROWS = {"higher": "↑", "lower": "↓"}
DASH = "–"
STATUS = "status"
UNESCAPED = re.compile(r"(?<!\\)\|")  # what ends a cell of a Markdown table
LETTERS = "abcdefghijklmnopqrstuvwxyz"
COLUMNS = (
    "measure", "better", "published", "published_se", "ours", "ours_se", "n", "difference", "difference_se",
    "valid", "valid_se", "valid_n", "coverage", "factuals",
)  # fmt: skip
EXPLAINED = (
    "*ours*: averaged over factuals as in the paper; *difference*: ours − published, in brackets in standard errors of "
    "both.",
    "*ours, valid*: over valid counterfactuals only; *coverage*: valid ones per one asked for, over all factuals; *n*: "
    "factuals with an answer.",
    "Mean (standard error). **Bold**: the best of its column among methods, published and ours each.",
)


class Table(Protocol):
    """A published table, and how stored cells become its counterpart."""

    @property
    def title(self) -> str: ...

    def build(self, found: Sequence[Cell]) -> tuple[str, pd.DataFrame]:
        """Markdown without a heading, and every number, one a row."""
        ...


def returned(cell: Cell) -> pd.DataFrame:
    """Scores as the CE-OCL tables have them: over every counterfactual a method returned, invalid ones included.

    Each factual's score is rounded to two decimals before any mean is taken; factuals without an answer are left out.
    """
    frame, targets = cell.factuals()
    classifier, labels = cell.classifier, np.zeros(0, dtype=object)
    problems = {
        index: Problem(cell.space, classifier, frame.iloc[:0], labels, target) for index, target in targets.items()
    }
    return scoring.score(cell, problems, list(_metrics(cell).values()), "returned").round(2)


@dataclass(frozen=True)
class Comparison:
    """A table of means over factuals, one row a published row, beside the same means of ours.

    Parameters
    ----------
    title
        Of the published table, with its source.
    published
        Name of the file of published cells; a column ``x_se`` holds the standard error of ``x``.
    keys
        The columns that name a published row, and what each is in a cell: ``dataset``, ``model``, ``method``, or a
        setting such as ``variant``.
    ours
        Per such column, our name of each published one; others are the same.
    measures
        The columns of numbers, and the metric of each.
    fixed
        What cells must have besides, such as the one model of the table.
    as_published
        Scores of a cell in the population that the paper averages: one row a factual, one column a metric.
    decimals
        With which numbers are shown.
    notes
        What a reader has to know, one sentence each.
    """

    title: str
    published: str
    keys: Mapping[str, str]
    measures: Mapping[str, str]
    ours: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    fixed: Mapping[str, str] = field(default_factory=dict)
    as_published: Callable[[Cell], pd.DataFrame] = returned
    decimals: int = 2
    notes: tuple[str, ...] = ()

    def build(self, found: Sequence[Cell]) -> tuple[str, pd.DataFrame]:
        lines = self.compare(found)
        notes = "".join(f"- {note}\n" for note in (*self.notes, *EXPLAINED))
        return f"{self._markdown(lines)}\n{notes}", lines

    def compare(self, found: Sequence[Cell]) -> pd.DataFrame:
        """One row a published row (or cell of ours without one) and measure; NaN where there is nothing.

        Columns: the keys, ``measure``, ``better``; ``published`` and ``ours`` (mean in the paper's population), each
        with ``_se``; ``n``, the factuals behind ours; ``valid`` with ``valid_se`` and ``valid_n``, the mean over valid
        answers only; ``coverage`` and ``factuals``; ``difference``, and ``difference_se`` in standard errors of both.
        """
        keys, better = list(self.keys), _directions(found)
        table = pd.read_csv(PUBLISHED / self.published, dtype=dict.fromkeys(keys, str)).to_dict("records")
        ran = {self._place(cell.meta): cell for cell in found if self._belongs(cell.meta)}
        rows = {self._translated(row): row for row in table}
        rows |= {place: dict(zip(keys, place, strict=True)) for place in ran if place not in rows}
        records: list[dict[str, Any]] = []
        for place, row in rows.items():
            means = _means(ran[place], self.as_published(ran[place])) if place in ran else {}
            for measure, name in self.measures.items():
                known = {column: row.get(column, math.nan) for column in (measure, f"{measure}_se")}
                records.append(
                    {key: row[key] for key in keys}
                    | {"measure": measure, "better": better.get(name, "")}
                    | {"published": known[measure], "published_se": known[f"{measure}_se"]}
                    | means.get(name, {})
                )
        lines = pd.DataFrame(records, columns=[*keys, *COLUMNS])
        lines["difference"] = lines["ours"] - lines["published"]
        spread = np.sqrt(lines["ours_se"].astype(float) ** 2 + lines["published_se"].astype(float) ** 2)
        lines["difference_se"] = lines["difference"] / spread.where(spread > 0)
        return lines

    def _belongs(self, meta: Mapping[str, Any]) -> bool:
        return all(_setting(meta, key) == value for key, value in self.fixed.items())

    def _place(self, meta: Mapping[str, Any]) -> tuple[str, ...]:
        return tuple(str(_setting(meta, key)) for key in self.keys.values())

    def _translated(self, row: Mapping[str, Any]) -> tuple[str, ...]:
        return tuple(self.ours.get(key, {}).get(row[key], row[key]) for key in self.keys)

    def _markdown(self, lines: pd.DataFrame) -> str:
        """Up to four rows a published row: published, ours, their difference, ours over valid answers."""
        keys = list(self.keys)
        ways = lines.groupby("measure")["better"].max().map(ARROWS).fillna("")
        head = [*keys, "", *(f"{name.replace('_', ' ')} {ways[name]}".strip() for name in self.measures)]
        best = {column: self._best(lines, column) for column in ("published", "ours", "valid")}
        body = []
        for place, block in lines.groupby(keys, sort=False):
            blank, first = [""] * len(keys), block.iloc[0]
            shown = {column: self._cells(block, column, best[column]) for column in best}
            body.append([*map(str, place), "published", *shown["published"], "", ""])
            if math.isnan(first["factuals"]):
                body.append([*blank, "ours", *["not run"] * len(block), "", ""])
                continue
            counts = [f"{first['coverage']:.2f}", f"{first['n']:.0f} of {first['factuals']:.0f}"]
            body.append([*blank, "ours", *shown["ours"], *counts])
            body.append([*blank, "difference", *map(self._difference, block.to_dict("records")), "", ""])
            body.append([*blank, "ours, valid", *shown["valid"], "", ""])
        return markdown([*head, "coverage", "n"], body)

    def _best(self, lines: pd.DataFrame, column: str) -> set[Any]:
        """The lines with the best number, as shown, among those that differ in the last key only; ties are all best."""
        *block, _ = self.keys
        winners: set[Any] = set()
        for _, group in lines.groupby([*block, "measure"], sort=False) if block else ():
            shown = group[column].astype(float).round(self.decimals)
            if shown.count() > 1:
                top = shown.min() if group["better"].max() == "lower" else shown.max()
                winners |= set(group.index[shown == top])
        return winners

    def _cells(self, block: pd.DataFrame, column: str, best: set[Any]) -> list[str]:
        texts = [
            number(mean, self.decimals, error) for mean, error in zip(block[column], block[f"{column}_se"], strict=True)
        ]
        return [f"**{text}**" if index in best else text for index, text in zip(block.index, texts, strict=True)]

    def _difference(self, row: Mapping[str, Any]) -> str:
        if math.isnan(row["difference"]):
            return DASH
        errors = "" if math.isnan(row["difference_se"]) else f" ({row['difference_se']:+.1f})"
        return f"{row['difference']:+,.{self.decimals}f}{errors}"


@dataclass(frozen=True)
class Listing:
    """Counterfactuals one by one, as changes of the factual, beside the published ones where there are any.

    Parameters
    ----------
    title
        Of the published table, with its source.
    label
        The setting that tells its parts apart, such as ``variant``.
    published
        Name of the file of published counterfactuals: ``part``, ``counterfactual`` (a, b, ...), then features, empty
        where unchanged; None for a demonstration without published values.
    metrics
        The published metrics of the same parts, compared below.
    optima
        By part, the exact optimum for a margin of 0, where one is known; the distance alone.
    notes
        What a reader has to know, one sentence each.
    """

    title: str
    label: str
    published: str | None = None
    metrics: Comparison | None = None
    optima: Mapping[str, float] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def build(self, found: Sequence[Cell]) -> tuple[str, pd.DataFrame]:
        parts = {str(_setting(cell.meta, self.label)): cell for cell in found}
        pieces = [self._listed(parts)]
        if known := {part: parts[part] for part in self.optima if part in parts}:
            pieces.append("## Optima\n\n" + self._optima(known))
        numbers = pd.DataFrame()
        if self.metrics is not None:
            text, numbers = self.metrics.build(found)
            pieces.append(f"## {self.metrics.title}\n\n{text}")
        notes = "".join(f"- {note}\n" for note in self.notes)
        return "\n".join([pieces[0], notes, *pieces[1:]]), numbers

    def _listed(self, parts: Mapping[str, Cell]) -> str:
        """The factual, then every counterfactual, published above ours; a dash where a feature is unchanged."""
        rows, origin = self._published(), {}
        for part, cell in parts.items():
            factual, _ = cell.factuals()
            origin = factual.iloc[0].to_dict()
            rows += [(part, LETTERS[row["ce"] - 1], "ours", _changes(cell, factual, row)) for row in cell.rows()]
        rows.sort(key=lambda row: (row[0], row[1], row[2] == "ours"))
        names = [name for name in origin if any(name in row[3] for row in rows)]
        body = [["factual", "", "", *(_shown(origin[name]) for name in names), ""]]
        for part, letter, source, changed in rows:
            cells = [_shown(changed[name]) if name in changed else DASH for name in names]
            body.append([part, letter, source, *cells, str(changed.get(STATUS, ""))])
        return markdown([self.label, "", "", *names, STATUS], body)

    def _published(self) -> list[tuple[str, str, str, dict[str, Any]]]:
        if self.published is None:
            return []
        table = pd.read_csv(PUBLISHED / self.published, dtype=str, keep_default_na=False)
        rows = []
        for row in table.to_dict("records"):
            part, letter = row.pop("part"), row.pop("counterfactual")
            rows.append((part, letter, "published", {name: value for name, value in row.items() if value}))
        return [row for row in rows if row[0] != "factual"]

    def _optima(self, parts: Mapping[str, Cell]) -> str:
        """The squared distance of each first counterfactual to the last digit, beside the exact optimum.

        A margin moves the optimum of a linear model by the factor (1 + margin / |score|)².
        """
        body = []
        for part, cell in parts.items():
            factual, _ = cell.factuals()
            first = next(row for row in cell.rows() if row["ce"] == 1)
            if first["row"] is None:
                continue
            ours = float((displacement(cell.space, factual, cell.space.frame([first["row"]])) ** 2).sum())
            reach = abs(float(cell.classifier.raw(factual)[0]))
            ideal = self.optima[part] * (1 + cell.meta["config"]["method"]["margin"] / reach) ** 2
            numbers = (f"{value:.13f}" for value in (ours, self.optima[part], ideal))
            body.append([part, first["status"], *numbers, f"{ours - ideal:+.1e}"])
        return markdown(["part", STATUS, "ours", "exact, margin 0", "exact, our margin", "ours − exact"], body)


def known() -> dict[str, Table]:
    """Every published table, by the name under which an experiment asks for it."""
    return papers.collected("TABLES")


def write(folder: Path, name: str | None) -> str:
    """Write ``table.md``, ``table.tex`` and ``table.csv`` of an experiment from its stored cells.

    Without a name, what every method answered on every model.

    Raises
    ------
    HarnessError
        For a table that does not exist, or without finished cells.
    """
    from harness.overview import Overview

    if name is not None and name not in known():
        raise HarnessError(f"there is no table {name!r}; {choices(name, known())}.")
    found, table = latest(folder), Overview() if name is None else known()[name]
    text, numbers = table.build(found)
    (folder / "table.md").write_text(f"# {table.title}\n\n{provenance(found)}\n\n{text}")
    (folder / "table.tex").write_text(latex(text))
    numbers.to_csv(folder / "table.csv", index=False)
    return f"{folder / 'table.md'}: {table.title}"


def latest(folder: Path) -> list[Cell]:
    """The cells of an experiment that were asked to the end, failures included: of equal names, the one that the last
    sweep made or took over."""
    found = {cell.path.name: cell for cell in cells(folder)}
    order = list(found)
    for record in sorted((folder / "sweeps").glob("*.jsonl")):
        lines = (json.loads(line) for line in record.read_text().splitlines())
        order += [Path(line["cell"]).name for line in lines if line["state"] != "failed"]
    last = {found[name].label: found[name] for name in order if name in found and found[name].asked}
    if not last:
        raise HarnessError(f"no cell under {folder} is finished; run its experiment to the end.")
    return list(last.values())


def provenance(found: Sequence[Cell]) -> str:
    """One line that says what was run: data, versions, seed, limits, machine."""
    metas = [cell.meta for cell in found]
    configs = [meta["config"] for meta in metas]
    environments = [meta["environment"] for meta in metas]
    packages = {f"{name} {version}" for env in environments for name, version in env["packages"].items() if version}

    def each(texts: Iterable[Any]) -> str:
        return ", ".join(dict.fromkeys(map(str, texts)))

    parts = {
        "data (sha256)": each(f"{meta['dataset']} {meta['data_sha256']}" for meta in metas),
        "seed": each(meta["seed"] for meta in metas),
        "seconds per factual": each(config["time_limit"] for config in configs if not config.get("group")),
        "seconds per group": each(config["group_time_limit"] for config in configs if config.get("group")),
        "python": each(env["python"] for env in environments),
        "packages": each(sorted(packages)),
        "machine": each(f"{env['cpu']}, {env['cores']} cores, {env['threads']} thread(s)" for env in environments),
    }
    return "Run: " + "; ".join(f"{name} {text}" for name, text in parts.items() if text) + "."


def markdown(head: Sequence[str], body: Iterable[Sequence[Any]]) -> str:
    """A table in Markdown."""
    lines = [head, ["---"] * len(head), *body]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines) + "\n"


def latex(text: str) -> str:
    r"""The tables of a Markdown text, for LaTeX with the package booktabs; sentences become comments.

    >>> print(latex("| a | b_c ↑ |\n| --- | --- |\n| **1** | 50% |\n\n- A note."), end="")
    \begin{tabular}{ll}
    \toprule
    a & b\_c $\uparrow$ \\
    \midrule
    \textbf{1} & 50\% \\
    \bottomrule
    \end{tabular}
    % A note.
    """
    out: list[str] = []
    rows: list[str] = []
    for line in [*text.splitlines(), ""]:
        if line.startswith("|"):
            rows.append(line)
            continue
        if rows:
            head, _, *body = ([_tex(cell.strip()) for cell in UNESCAPED.split(row.strip()[1:-1])] for row in rows)
            lines = [" & ".join(cells) + r" \\" for cells in (head, *body)]
            out += [rf"\begin{{tabular}}{{{'l' * len(head)}}}", r"\toprule", lines[0], r"\midrule", *lines[1:]]
            out += [r"\bottomrule", r"\end{tabular}"]
            rows = []
        if line.strip():
            out.append(f"% {line.lstrip('-# ')}")
    return "\n".join(out) + "\n"


def _tex(text: str) -> str:
    for sign in "&%$#_{}":
        text = text.replace(sign, f"\\{sign}")
    for sign, command in {
        "↑": r"$\uparrow$",
        "↓": r"$\downarrow$",
        DASH: "--",
        "≤": r"$\le$",
        "≥": r"$\ge$",
        r"\|": r"$|$",
    }.items():
        text = text.replace(sign, command)
    return re.sub(r"\*\*(.+?)\*\*", r"\\textbf{\1}", text)


def number(value: Any, decimals: int, error: Any = math.nan) -> str:
    """A number as tables show it, with its standard error in brackets; a dash for none.

    >>> number(-4844.351, 2, 575.93), number(float("nan"), 2)
    ('-4,844.35 (575.93)', '–')
    """
    if value is None or math.isnan(value):
        return DASH
    text = f"{round(value, decimals) + 0.0:,.{decimals}f}"
    return text if error is None or math.isnan(error) else f"{text} ({error:,.{decimals}f})"


def _setting(meta: Mapping[str, Any], key: str) -> Any:
    """What names a cell, or a setting of its experiment."""
    return meta[key] if key in meta else meta["config"].get(key)


def _metrics(cell: Cell) -> dict[str, Metric]:
    """The metrics that a cell was scored by, by full name."""
    metrics = [pkgutil.resolve_name(path) for path in cell.meta["scored"]["metrics"]["names"]]
    return {metric.name: metric for metric in metrics}


def _directions(found: Sequence[Cell]) -> dict[str, str]:
    """Which way each metric is better."""
    return {name: metric.better for cell in found for name, metric in _metrics(cell).items()}


def _means(cell: Cell, published: pd.DataFrame) -> dict[str, dict[str, float]]:
    """Per metric, the entries of a line that come from a cell."""
    scores = pd.read_csv(cell.path / "scores.csv", index_col="factual")
    ours, valid = scoring.summarise(published), scoring.summarise(scores)
    common = {"coverage": scores["coverage"].mean(), "factuals": len(scores)}
    return {
        str(name): {
            **{"ours": ours["mean"][name], "ours_se": ours["se"][name], "n": ours["n"][name]},
            **{"valid": valid["mean"][name], "valid_se": valid["se"][name], "valid_n": valid["n"][name]},
            **common,
        }
        for name in valid.index
    }


def _changes(cell: Cell, factual: pd.DataFrame, row: Mapping[str, Any]) -> dict[str, Any]:
    """The changed features of a stored answer, and how it ended."""
    if row["row"] is None:
        return {STATUS: row["status"]}
    changed = cell.space.changed(factual, cell.space.frame([row["row"]]))[0]
    values = {name: row["row"][name] for name, moved in zip(cell.space.names, changed, strict=True) if moved}
    return {**values, STATUS: row["status"]}


def _shown(value: Any) -> str:
    """A value of a feature: fractions with two decimals, everything else as it is.

    >>> _shown(7.1234), _shown("12.0"), _shown(3), _shown("1<=X<4")
    ('7.12', '12.00', '3', '1<=X<4')
    """
    text = str(value)
    try:
        return text if text.lstrip("-").isdigit() else f"{float(text):.2f}"
    except ValueError:
        return text


def asked(program: str, description: str) -> list[Path]:
    """Result folders that a command line names: ``experiment=NAME``, with ``output_dir=`` before it, or paths."""
    parser = argparse.ArgumentParser(prog=f"python -m harness.{program}", description=description)
    parser.add_argument("folder", nargs="+", help="experiment=NAME, or the folder results/NAME")
    home, folders = Path("results"), []
    for argument in parser.parse_args().folder:
        key, _, value = argument.rpartition("=")
        if key == "output_dir":
            home = Path(value)
        else:
            folders += [home / name for name in value.split(",")] if key == "experiment" else [Path(argument)]
    return folders


def rebuild(kind: str, write: Callable[[Path, Any], str]) -> None:
    """The command line that makes every ``kind`` (table, figure) of result folders again from their stored cells.

    Exit code 1 where one cannot be made.
    """
    wrong = False
    for folder in asked(f"{kind}s", f"Make {kind}s of stored answers."):
        try:
            name = next((cell.meta["config"].get(kind) for cell in latest(folder)), None)
            print(write(folder, name))
        except HarnessError as fault:
            print(fault, file=sys.stderr)
            wrong = True
    sys.exit(1 if wrong else 0)


def main() -> None:
    """Rebuild the tables of result folders, or, with ``--all``, the page about every published cell."""
    if "--all" in sys.argv[1:]:
        from harness import reproduction

        homes = [argument.removeprefix("output_dir=") for argument in sys.argv[1:] if argument != "--all"]
        print(reproduction.write(Path(homes[0] if homes else "results")))
        return
    rebuild("table", write)


if __name__ == "__main__":
    main()
