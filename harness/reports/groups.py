"""The explanations of groups as sentences: who, what changes, to what; and how they divide people by sex and race."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from textwrap import fill
from typing import Any

import numpy as np
import pandas as pd

from harness.core.gaps import MISSED, missing, same
from harness.core.space import Feature
from harness.core.wording import number, number_of, some, target_text
from harness.core.writing import write_whole
from harness.evaluation.checker import ACCEPTED
from harness.evaluation.scoring import group_table
from harness.reports import markup
from harness.reports.person import WIDTH
from harness.store.run import StoredRun

REPORT, TABLE = "groups.md", "groups.csv"
LISTED = 12  # ids and values named in a sentence before "and ... more"


def write(run: StoredRun, divide: Sequence[str]) -> str:
    """Write ``groups.csv`` and the report ``groups.md`` beside a run's answers, which the checker has judged.

    ``divide`` names the features by which the report divides the factuals, where the dataset has them. Returns the
    report.
    """
    table = group_table(run)
    table.to_csv(run.path / TABLE)
    frame, targets = run.factuals()
    verdicts = {verdict["factual"]: verdict["verdict"] for verdict in run.verdicts()}
    parts = []
    for line in run.groups():
        factuals = frame.loc[line["factuals"]]
        rows = {row["factual"]: row for row in run.rows() if row["group"] == line["group"]}
        point_of = {factual: row["point"] for factual, row in rows.items() if row["row"] is not None}
        target = targets[line["factuals"][0]]
        sentences = [f"## {line['group']}: {_heading(table.loc[line['group']], line, target_text(target))}"]
        for point, values in enumerate(line["points"]):
            members = factuals.loc[[factual for factual in factuals.index if point_of.get(factual) == point]]
            sentences.append(explanation_text(point, members, values, line["changed"][point], run.space.features))
        sentences += _without(line, point_of, verdicts)
        bad = Counter(verdicts[factual] for factual in factuals.index if verdicts[factual] not in {ACCEPTED, "none"})
        sentences += [_wrapped(f"The checker found {counted(bad)}.")] if bad else []
        sentences += [_division(name, factuals, point_of, line["points"]) for name in divide if name in factuals]
        parts.append("\n\n".join(sentences))
    report = "\n\n".join(parts) + "\n"
    write_whole(run.path / REPORT, report)
    return report


def _heading(numbers: pd.Series, line: Mapping[str, Any], wanted: str) -> str:
    who = f"{number_of(len(line['factuals']), 'factual')}, wanted {wanted}"
    if not line["points"]:
        return f"{who}: {line['status']}, {_last(line['detail']) or 'no explanation'}"
    how = f"{who}: {number_of(len(line['points']), 'explanation')}"
    if line["status"] == "OPTIMAL":
        how += ", proven the fewest" if numbers["optimal"] else ", called the fewest"
    elif line["bound"] is not None:
        how += f", at least {number(numbers['points'] - numbers['gap'])} are needed"
    if not math.isnan(numbers["total_change"]):
        how += f"; {number_of(int(numbers['total_change']), 'change')} in all"
        if numbers["least_change"]:
            how += ", proven the least"
        elif numbers["total_change_bound"] > 0:
            how += f", at least {number(numbers['total_change_bound'])} with as few"
    return f"{how}; {line['seconds']:.2f} s"


def explanation_text(
    point: int, members: pd.DataFrame, values: Mapping[str, Any], changed: Sequence[str], features: Sequence[Feature]
) -> str:
    """Two sentences: what these factuals change and to what; in what they are alike."""
    order, text = [feature.name for feature in features], {feature.name: feature.text for feature in features}
    moved = sorted(changed, key=order.index)
    says = []
    for name in moved:
        before = Counter(map(text[name], members[name]))
        before.pop(text[name](values[name]), None)
        stay = len(members) - sum(before.values())
        already = f"; {stay} already there" if stay else ""
        says.append(f"{name} to {text[name](values[name])} (from {counted(before)}{already})")
    alike = [f"{name} {text[name](values[name])}" for name in order if name not in changed]
    who = f"{point + 1}. {number_of(len(members), 'factual')} ({some(members.index, LISTED)})"
    return _wrapped(f"{who}: change {', '.join(says)}.") + (
        "\n" + _wrapped(f"Alike in {some(alike, LISTED)}.", indent="   ") if alike else ""
    )


def _without(line: Mapping[str, Any], point_of: Mapping[Any, int], verdicts: Mapping[Any, str]) -> list[str]:
    lost = [factual for factual in line["uncoverable"] if verdicts[factual] == "none"]
    left = [factual for factual in line["factuals"] if factual not in point_of and factual not in lost]
    sentences = []
    if lost:
        sentences.append(_wrapped(f"Uncoverable, proven: {number_of(len(lost), 'factual')} ({some(lost, LISTED)})."))
    if left and line["points"]:
        sentences.append(_wrapped(f"Without an explanation: {number_of(len(left), 'factual')} ({some(left, LISTED)})."))
    return sentences


def _division(
    name: str, factuals: pd.DataFrame, point_of: Mapping[Any, int], points: Sequence[Mapping[str, Any]]
) -> str:
    """Per value of a feature: its factuals, those without an explanation, explanations that serve it, in all and a
    factual, the mean number of features that each factual changes; and, of few explanations, how many each serves."""
    body, shown = [], range(len(points) if len(points) <= LISTED else 0)
    for value, people in factuals.groupby(name, sort=True, dropna=False):
        served = Counter(point_of[factual] for factual in people.index if factual in point_of)
        alone = len(people) - sum(served.values())
        changes = [
            sum(not same(row[feature], value) for feature, value in points[point_of[factual]].items())
            for factual, row in people.to_dict("index").items()
            if factual in point_of
        ]
        per = len(served) / sum(served.values()) if served else float("nan")
        each = [str(served[point] or "") for point in shown]
        body.append(
            [
                MISSED if missing(value) else number(value),
                len(people),
                alone,
                len(served),
                markup.number(per, 2),
                markup.number(float(np.mean(changes)) if changes else per, 2),
                *each,
            ]
        )
    head = [name, "factuals", "without", "explanations", "explanations a factual", "changes (mean)"]
    return markup.markdown([*head, *(str(point + 1) for point in shown)], body).rstrip("\n")


def counted(counts: Mapping[str, int]) -> str:
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return some([f"{value}: {count}" for value, count in ordered], LISTED)


def _last(text: str) -> str:
    return text.strip().splitlines()[-1] if text.strip() else ""


def _wrapped(text: str, indent: str = "") -> str:
    return fill(text, WIDTH, initial_indent=indent, subsequent_indent="   ", break_on_hyphens=False)
