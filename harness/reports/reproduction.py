"""Every published cell beside ours: ``python -m harness.tables --all`` writes results/REPRODUCTION.md."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from harness.core.errors import HarnessError
from harness.reports import markup, registry, stored
from harness.reports.claim import Numbers
from harness.store.run import StoredRun

NEAR_ERRORS = 2.0  # standard errors of both sides
NEAR_SHARE = 0.1  # of the published value, where there are no standard errors
CLAIMS = "Claims"  # the heading above them
REGENERATED = 2  # the cell of a table's row that counts them
PRINTED = 2  # decimals that a published number has at least
MARKS = {"equal": "=", "near": "≈", "far": "≠", "missing": markup.DASH}


@dataclass(frozen=True)
class Page:
    """What an earlier page has: cells of the first table and a section by table, cells of the claims by sentence."""

    rows: Mapping[str, list[str]]
    sections: Mapping[str, str]
    claims: Mapping[str, list[str]]

    @classmethod
    def read(cls, path: Path, known: Mapping[str, registry.Table]) -> Page:
        """Nothing where there is no such page."""
        head, *blocks = re.split(r"^## ", path.read_text() if path.is_file() else "", flags=re.MULTILINE)
        found = {title: text for title, _, text in (block.partition("\n") for block in blocks)}
        rows = {cells[0].partition(":")[0]: cells for cells in _rows(head)}
        sections = {name: found[table.title] for name, table in known.items() if table.title in found}
        claims = {cells[0]: cells for cells in _rows(found.get(CLAIMS, ""))}
        return cls({name: cells for name, cells in rows.items() if name in sections}, sections, claims)

    def has_more(self, name: str, row: Sequence[Any] | None) -> bool:
        """Whether it regenerates more cells of a table than a new row counts, or has a table that is not at hand."""
        return name in self.rows and (row is None or int(self.rows[name][REGENERATED]) > row[REGENERATED])


def _rows(text: str) -> list[list[str]]:
    """The cells of a text's tables in Markdown, heads and marks among them."""
    lines = [line.strip()[1:-1] for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in markup.UNESCAPED.split(line)] for line in lines]


def write(home: Path) -> str:
    """Write ``REPRODUCTION.md`` from the answers stored under ``home``, and return a message that names it.

    A table of which an earlier page has more stays as it is there, and so do the claims of its paper.
    """
    numbers, reasons = regenerated(home)
    known = registry.known()
    path = home / "REPRODUCTION.md"
    before = Page.read(path, known)
    rows = {name: _row(name, table, numbers.get(name), reasons[name]) for name, table in known.items()}
    kept = [name for name in known if before.has_more(name, rows[name] if name in numbers else None)]
    renewed = [name for name in known if name in numbers and name not in kept]
    parts = [
        "# What is regenerated\n",
        f"Of every published cell: ours beside it. {MARKS['equal']} equal as printed; {MARKS['near']} within "
        f"{NEAR_ERRORS:.0f} standard errors of both, or within {NEAR_SHARE:.0%} where one has none; "
        f"{MARKS['far']} farther; {MARKS['missing']} not regenerated. Made by `python -m harness.tables --all` from "
        "stored answers.\n",
        markup.markdown(
            ["table", "published cells", "regenerated", "equal", "near", "far", "not regenerated, because"],
            [before.rows[name] if name in kept else rows[name] for name in known],
        ),
        f"Kept from the page before, which has more of them: {', '.join(kept)}.\n" if kept else "",
        _uncovered(known),
        f"## {CLAIMS}\n",
        _claims(numbers, kept, before.claims),
    ]
    for name, table in known.items():
        if name in kept:
            parts.append(f"## {table.title}\n{before.sections[name].rstrip()}\n")
        elif name in numbers:
            frame = numbers[name]
            parts += [f"## {table.title}\n", f"{frame.attrs['run']}\n", _cells(table.compared(frame))]
    path.write_text("\n".join(part for part in parts if part))
    names = {"renewed": renewed, "kept, as the page had more of them": kept}
    lists = [f"{how}: {', '.join(found)}" for how, found in names.items() if found]
    return "; ".join([f"{path}: {len(renewed) + len(kept)} of {len(known)} tables", *lists])


def regenerated(home: Path) -> tuple[dict[str, pd.DataFrame], dict[str, str]]:
    """Numbers of each table whose experiment has stored answers, and why the others have none."""
    found: dict[str, list[StoredRun]] = {}
    for folder in sorted(path.parent for path in home.glob("*/answers")):
        try:
            finished = stored.latest(folder)
        except HarnessError:
            continue
        if name := next((run.meta["config"].get("table") for run in finished), None):
            found.setdefault(name, []).extend(finished)
    numbers, reasons = {}, {}
    for name, table in registry.known().items():
        if name not in found:
            reasons[name] = "its experiment was not run here"
            continue
        try:
            _, frame = table.build(found[name])
        except HarnessError as fault:
            reasons[name] = str(fault)
        else:
            frame.attrs["run"] = _extent(found[name])
            numbers[name] = frame
            reasons[name] = "no cell of ours, or no answer in it"
    return numbers, reasons


def _extent(found: Sequence[StoredRun]) -> str:
    """One line about the extent: number of stored runs, factuals of each, and their time limits."""
    asked = sorted({len({row["factual"] for row in run.rows()}) for run in found})
    configs = [run.meta["config"] for run in found]
    limits = sorted({config["group_time_limit" if config.get("group") else "time_limit"] for config in configs})
    unit = "group" if any(config.get("group") for config in configs) else "factual"
    factuals, seconds = (", ".join(f"{number:g}" for number in numbers) for numbers in (asked, limits))
    return f"Run: {len(found)} cells of {factuals} factuals, within {seconds} s a {unit}."


def nearness(row: Mapping[str, Any]) -> str:
    """How near a regenerated number is to the published one: equal, near, far, or missing.

    >>> nearness({"published": 0.85, "ours": 0.8512}), nearness({"published": 0.85, "ours": 0.99, "difference_se": 1.4})
    ('equal', 'near')
    >>> nearness({"published": 0.85, "ours": float("nan")}), nearness({"published": 4.0, "ours": 5.0})
    ('missing', 'far')
    """
    try:
        published, ours = float(row["published"]), float(row["ours"])
    except (TypeError, ValueError):
        same = str(row["published"]).strip() == str(row["ours"]).strip()
        return "missing" if pd.isna(row["ours"]) or row["ours"] in ("", "nan") else "equal" if same else "far"
    if math.isnan(ours):
        return "missing"
    decimals = len(repr(published).partition(".")[2]) if abs(published) < 1e15 else 0
    if round(ours, max(decimals, PRINTED)) == published:  # a file does not tell 1 from 1.00
        return "equal"
    errors = row.get("difference_se", math.nan)
    if errors is not None and not math.isnan(float(errors)):
        return "near" if abs(float(errors)) <= NEAR_ERRORS else "far"
    return "near" if abs(ours - published) <= NEAR_SHARE * abs(published) else "far"


def _published(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.loc[frame["published"].notna() & (frame["published"].astype(str) != "")]


def _row(name: str, table: registry.Table, frame: pd.DataFrame | None, reason: str) -> list[Any]:
    lines = table.compared(table.build(())[1] if frame is None else frame)
    if "published" not in lines:
        return [f"{name}: {table.title}", 0, 0, "", "", "", reason if frame is None else "nothing is published"]
    cells = _published(lines)
    counts = pd.Series([nearness(row) for row in cells.to_dict("records")], dtype=object).value_counts()
    missing = int(counts.get("missing", 0))
    kinds = [int(counts.get(kind, 0)) for kind in ("equal", "near", "far")]
    return [
        f"{name}: {table.title}",
        len(cells),
        len(cells) - missing,
        *kinds,
        f"{missing}: {reason}" if missing else "",
    ]


def _cells(frame: pd.DataFrame) -> str:
    """One line a published row, one entry a measure: mark, ours, published."""
    if "published" not in frame:
        return "No published numbers.\n"
    at = list(frame.columns).index("measure")
    keys = list(frame.columns[:at])
    cells = _published(frame)
    measures = list(dict.fromkeys(cells["measure"]))
    body = []
    for place, block in cells.groupby(keys, sort=False) if keys else [((), cells)]:
        entries = {row["measure"]: _entry(row) for row in block.to_dict("records")}
        body.append([*map(str, place), *(entries.get(measure, "") for measure in measures)])
    return markup.markdown([*keys, *(measure.replace("_", " ") for measure in measures)], body)


def _entry(row: Mapping[str, Any]) -> str:
    kind = nearness(row)
    ours = "" if kind == "missing" else _plain(row["ours"])
    return f"{MARKS[kind]} {ours} ({_plain(row['published'])})"


def _plain(value: Any) -> str:
    try:
        real = float(value)
    except (TypeError, ValueError):
        return str(value)
    return f"{real:,.0f}" if abs(real) >= 1000 else f"{real:.3g}"


def _uncovered(known: Mapping[str, registry.Table]) -> str:
    """Published files that no table regenerates."""
    covered = {file for table in known.values() for file in table.published}
    left = sorted(path.name for path in stored.PUBLISHED.glob("*.csv") if path.name not in covered)
    return f"No table regenerates {', '.join(left)}.\n" if left else ""


def _claims(numbers: Numbers, kept: Sequence[str], before: Mapping[str, list[str]]) -> str:
    """A row a claim; of a paper whose tables are kept, the row that was there."""
    papers, body = {name.partition("_")[0] for name in kept}, []
    for name, claim in registry.collected("CLAIMS").items():
        if name.partition("_")[0] in papers and claim.sentence in before:
            body.append(before[claim.sentence])
            continue
        lacking = [name for name in claim.needs if name not in numbers]
        holds, text = (None, f"{', '.join(lacking)} was not run") if lacking else claim.decide(numbers)
        verdict = "cannot be decided" if holds is None else "holds" if holds else "does not hold"
        body.append([claim.sentence, verdict, text])
    return markup.markdown(["claim", "", "number"], body)
