"""What was read and inferred of a CSV, as a table of features."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from harness.data.csv_columns import SHOWN
from harness.data.csv_notation import READING
from harness.data.csv_settings import LINE
from harness.data.dataset import OPPOSITE, Dataset
from harness.data.features import ATTRIBUTES


def introduce(dataset: Dataset, origins: Mapping[str, str]) -> str:
    """What was read and inferred, as a table of features: kind, range or categories, actionability, and why."""
    classes = dataset.classes
    counts = {name: int((dataset.labels == name).sum()) for name in classes}
    head = f"{dataset.name}: {len(dataset.frame):,} rows, {len(dataset.train):,} to train on"
    if classes:
        head += f"; classes {listed([f'{name} ({count:,})' for name, count in counts.items()], 200)}"
    head += f"; desired: {dataset.desired}"
    if dataset.desired == OPPOSITE and OPPOSITE not in classes:
        head += f" (of what the model says of each person; name one by desired={classes[0]} or desired={classes[1]})"
    lines = [("feature", "kind", "values", "actionability", "why")]
    for feature in dataset.space.features:
        values = (
            " to ".join(map(feature.text, feature.bounds)) if feature.numeric else listed(feature.categories, SHOWN)
        )
        values += ", or missing" if feature.missing else ""
        lines.append(
            (
                _cut(feature.name, SHOWN),
                str(feature.kind),
                values,
                str(feature.actionability),
                _why(dataset.reasons.get(feature.name, ""), feature.name, origins),
            )
        )
    widths = [max(len(line[column]) for line in lines) for column in range(4)]
    table = [
        "  ".join([*(cell.ljust(width) for cell, width in zip(line[:4], widths, strict=True)), line[4]])
        for line in lines
    ]
    return "\n".join([head, *(f"  {line}".rstrip() for line in table)])


def _why(inferred: str, name: str, origins: Mapping[str, str]) -> str:
    places: dict[str, list[str]] = {}
    for key in (*ATTRIBUTES, *READING):
        if origin := origins.get(f"{name}.{key}"):
            places.setdefault("set on the command line" if origin == LINE else f"set in {origin}", []).append(key)
    settings = [f"{' and '.join(keys)} {place}" for place, keys in places.items()]
    constant = inferred.startswith("constant")
    return "; ".join(settings if f"{name}.kind" in origins and not constant else [inferred, *settings])


def listed(values: Sequence[Any], length: int) -> str:
    """Values, as many as fit, and how many there are beyond."""
    texts = [_cut(str(value), SHOWN) for value in values]
    for kept in range(len(texts), 0, -1):
        more = f", ... ({len(texts)} in all)" if kept < len(texts) else ""
        if len(line := ", ".join(texts[:kept]) + more) <= length or kept == 1:
            return line
    return ""


def _cut(text: str, length: int) -> str:
    text = " ".join(text.split())
    return text if len(text) <= length else f"{text[: length - 1]}…"
