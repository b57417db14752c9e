"""Every published cell beside ours: ``python -m harness.tables --all`` writes results/REPRODUCTION.md."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from harness.core.errors import HarnessError
from harness.reports import markup, registry, stored
from harness.reports.claim import Numbers
from harness.store.run import StoredRun

NEAR_ERRORS = 2.0  # standard errors of both sides
NEAR_SHARE = 0.1  # of the published value, where there are no standard errors
PRINTED = 2  # decimals that a published number has at least
MARKS = {"equal": "=", "near": "≈", "far": "≠", "missing": markup.DASH}


def write(home: Path) -> str:
    """Write ``REPRODUCTION.md`` from the answers stored under ``home``, and return a message that names it."""
    numbers, reasons = regenerated(home)
    known = registry.known()
    parts = [
        "# What is regenerated\n",
        f"Of every published cell: ours beside it. {MARKS['equal']} equal as printed; {MARKS['near']} within "
        f"{NEAR_ERRORS:.0f} standard errors of both, or within {NEAR_SHARE:.0%} where one has none; "
        f"{MARKS['far']} farther; {MARKS['missing']} not regenerated. Made by `python -m harness.tables --all` from "
        "stored answers.\n",
        markup.markdown(
            ["table", "published cells", "regenerated", "equal", "near", "far", "not regenerated, because"],
            [_row(name, table, numbers.get(name), reasons[name]) for name, table in known.items()],
        ),
        _uncovered(known),
        "## Claims\n",
        _claims(numbers),
    ]
    for name, frame in numbers.items():
        parts.append(f"## {known[name].title}\n")
        parts.append(f"{frame.attrs['run']}\n")
        parts.append(_cells(known[name].compared(frame)))
    path = home / "REPRODUCTION.md"
    path.write_text("\n".join(part for part in parts if part))
    return f"{path}: {len(numbers)} of {len(known)} tables"


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


def _claims(numbers: Numbers) -> str:
    body = []
    for claim in registry.collected("CLAIMS").values():
        lacking = [name for name in claim.needs if name not in numbers]
        holds, text = (None, f"{', '.join(lacking)} was not run") if lacking else claim.decide(numbers)
        verdict = "cannot be decided" if holds is None else "holds" if holds else "does not hold"
        body.append([claim.sentence, verdict, text])
    return markup.markdown(["claim", "", "number"], body)
