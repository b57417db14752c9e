"""A user's own CSV as a Dataset."""

from __future__ import annotations

import hashlib
import logging
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from harness.core.errors import DatasetError, choices
from harness.core.notation import Notation
from harness.core.python import python_errors, warn
from harness.data.csv_columns import CATEGORIES, ColumnParser, check_complete, present, target_values
from harness.data.csv_notation import READING, notations
from harness.data.csv_settings import settle
from harness.data.dataset import OPPOSITE, Dataset
from harness.data.description import SPLIT
from harness.data.findings import with_findings
from harness.data.gaps import gaps_of
from harness.data.load import load_dataset
from harness.data.reader import COLUMNS, MEGABYTES, NA, Column, Form, Table, composed, read_table

MESSAGE = 1200  # characters of an error: a list of all categories is no sentence

logger = logging.getLogger(__name__)


@python_errors()
def load_csv(path: str | Path | Sequence[str | Path], target: str | None = None, **settings: Any) -> Dataset:
    """A CSV of one's own as a dataset.

    Parameters
    ----------
    path
        Of one file, or a list of several with the same columns.
    target
        The column of what the model predicts.
    settings
        Those of ``conf/dataset/csv.yaml``, such as ``features``, ``missing`` and ``na``, and ``split``.

    Returns
    -------
    The rows, and the space that counterfactuals are looked for in.

    Raises
    ------
    DatasetError
        If file, YAML beside it and settings do not fit.
    """
    split = settings.pop("split", SPLIT)
    paths = str(path) if isinstance(path, str | Path) else [str(each) for each in path]
    settled, _ = settle({**settings, "path": paths, "target": target})
    return load_settled(settled, split)


def load_settled(settled: Mapping[str, Any], split: Mapping[str, Any] | str | None = SPLIT) -> Dataset:
    """The dataset of the settings that ``settle`` gives.

    Raises
    ------
    DatasetError
        In one line, if file and settings do not fit.
    """
    try:
        return _load(settled, composed(split))
    except DatasetError as fault:
        raise DatasetError(one_line(fault)) from None


def one_line(fault: Exception) -> str:
    """One line, without the middle of a list of thousands."""
    text = " ".join(str(fault).split())
    return text if len(text) <= MESSAGE else f"{text[: MESSAGE - 300]} ... {text[-250:]}"


def _load(settled: Mapping[str, Any], split: Mapping[str, Any] | str | None) -> Dataset:
    name, target, label, missing = settled["name"], settled["target"], settled["label"], settled["missing"] or "error"
    given = _form(settled)
    table, rows = _stacked([read_table(Path(path).expanduser(), given) for path in settled["path"]])
    column = str((label or {}).get("column", target))
    selected = _selected(settled, table, column)
    regression, features = settled["task"] == "regression", settled["features"]
    times = [time for time in _times(split) if time in table.columns and time not in {*selected, column}]
    texts = _texts(table, [*selected, *times, *([column] if regression else [])], given)
    written, unread, mark = notations(name, texts, features, given)
    dates = _left_out(unread, column, _times(split))
    form, notices = replace(given, decimal=mark), [*table.notices, *dates]
    selected = [feature for feature in selected if feature not in unread]
    if not selected:
        raise DatasetError(f"{name} has no column left beside the target {column!r}: {' '.join(dates)}")
    gaps = gaps_of(missing, {feature: features.get(feature, {}) for feature in selected})
    strict = [*(feature for feature in selected if gaps[feature].remedy == "error"), column]
    check_complete(name, table, strict if missing == "error" else strict[:-1], column, form)
    raw, reasons, plain = _of_day(table, written, times, features), {}, Notation(mark, given.thousands or "")
    for feature in (*selected, *(time for time in times if time not in raw)):
        parser = ColumnParser(name, feature, table.columns[feature], form, written[feature] or plain)
        most = settled["max_categories"] or CATEGORIES
        raw[feature], reasons[feature] = parser.typed(features.get(feature, {}).get("kind"), most)
        notices += parser.notices
    parser = ColumnParser(name, column, table.columns[column], form, written.get(column) or plain)
    raw[column] = target_values(parser, regression, bool(label or settled["classes"]))
    frame, ends = pd.DataFrame(raw), np.cumsum(rows)
    parts = [frame.iloc[end - count : end] for end, count in zip(ends, rows, strict=True)]
    dataset = load_dataset(
        name,
        (),
        target,
        tables=(parts, table.sha256),
        desired=OPPOSITE if settled["desired"] is None else settled["desired"],
        features=selected,
        task=settled["task"] or "classification",
        missing=missing,
        unbounded=bool(settled["unbounded"]),
        split=split,
        overrides=_overrides(features, {feature: written[feature] for feature in selected}),
        written={name: how for name in (*selected, column) if (how := written.get(name)) is not None},
        **{
            key: settled[key]
            for key in ("label", "classes", "empty", "outliers", "constraints", "causality", "discretise")
        },
    )
    reasons = {feature: reasons[feature] for feature in selected}
    check_columns(dataset)
    for feature in dataset.space.names:
        if (dataset.frame[feature] == dataset.frame[feature].iloc[0]).all():
            reasons[feature] = f"constant: {dataset.space[feature].actionability}"
    for notice in notices:
        warn(logger, notice)
    dataset = with_findings(dataset)
    unusual = {
        f.name: {"notation": written[f.name]} for f in dataset.space.features if f.numeric and _marked(written[f.name])
    }
    space = dataset.space.replace(unusual)
    reading = replace(dataset.reading, form=replace(form, sep=given.sep))
    return replace(dataset, space=space, notices=(*notices, *dataset.notices), reading=reading, reasons=reasons)


def _times(split: Mapping[str, Any] | str | None) -> list[str]:
    """The column by which rows are split, which need not be a feature; empty where they are split otherwise."""
    time = split.get("time") if isinstance(split, Mapping) else None
    return [] if time is None else [str(time)]


def _texts(table: Table, names: Iterable[str], form: Form) -> dict[str, list[str]]:
    """The different texts of columns that are no missing value."""
    found = {}
    for name in names:
        column = table.columns[name]
        found[name] = [text for text, there in zip(column.texts, present(column, form), strict=True) if there]
    return found


def _left_out(unread: Mapping[str, tuple[str, str]], target: str, times: Iterable[str]) -> list[str]:
    """A sentence for each column of dates that cannot be read; those of what is predicted or split by are raised."""
    for needed, or_else in ((target, ""), *((time, ", or split.time=null") for time in times)):
        if needed in unread:
            raise DatasetError(f"{'; '.join(unread[needed])}{or_else}.")
    return [
        f"{why}; it is left out; {remedy}, or set features.{feature}.kind=categorical."
        for feature, (why, remedy) in unread.items()
    ]


def _of_day(
    table: Table,
    written: Mapping[str, Notation | None],
    times: Iterable[str],
    entries: Mapping[str, Mapping[str, Any]],
) -> dict[str, np.ndarray]:
    """The cells, as they stand, of columns to split by that may hold times of the day, which days would lose."""
    found = [time for time in times if "format" not in entries.get(time, {})]
    dated = {time: table.columns[time] for time in found if (how := written[time]) is None or how.date}
    return {time: np.array(column.texts, dtype=object)[column.codes] for time, column in dated.items()}


def _marked(notation: Notation | None) -> bool:
    """Whether a column is written otherwise than numbers are printed."""
    return notation is not None and replace(notation, places=0) != Notation()


def _overrides(
    entries: Mapping[str, Mapping[str, Any]], written: Mapping[str, Notation | None]
) -> dict[str, dict[str, Any]]:
    """Attributes of the features that are read, without those that say how; bounds may be written as the column is."""
    found = {}
    for feature, entry in entries.items():
        if feature not in written:
            continue
        notation = written[feature]
        found[feature] = {key: value for key, value in entry.items() if key not in READING}
        for key in ("bounds", "clip", "special"):
            if key in entry:
                found[feature][key] = [_number(f"{key} of {feature}", each, notation) for each in entry[key]]
        filler = entry.get("missing")
        if isinstance(filler, float) or (
            isinstance(filler, str) and notation is not None and not math.isnan(notation.parse(filler))
        ):
            found[feature]["missing"] = _number(f"missing of {feature}", filler, notation)
    return found


def _number(what: str, given: Any, notation: Notation | None) -> Any:
    """A number of a column's settings, where it is a text as the column writes it."""
    if not isinstance(given, str):
        marks = notation is not None and (notation.thousands == "." or notation.decimal == ",")
        if marks and isinstance(given, float) and math.isfinite(given):  # 1.200 has come as 1.2, and 1.000 as 1.0
            raise DatasetError(
                f"{what} is {given}, and its column separates thousands or decimals otherwise; give it in quotes as "
                f"the column has it, such as {(notation or Notation()).text(1200)!r}, or without a point."
            )
        return given
    value = math.nan if notation is None else notation.parse(given)
    if math.isnan(value):
        kind, like = ("date" if notation and notation.date else "number"), (notation or Notation()).text(12000)
        raise DatasetError(f"{what} holds {given[:80]!r}; give a {kind} as its column has, such as {like}.")
    return value


def _form(settled: Mapping[str, Any]) -> Form:
    """How the settings describe the file."""
    point = "," if settled["thousands"] == "." else None  # which the decimal mark then cannot be
    form = Form(
        sep=settled["sep"],
        decimal=settled["decimal"] or point,
        thousands=settled["thousands"],
        encoding=settled["encoding"],
        na=NA if settled["na"] is None else tuple(map(str, settled["na"])),
        names=None if settled["names"] is None else tuple(map(str, settled["names"])),
        megabytes=settled["max_megabytes"] or MEGABYTES,
    )
    if form.thousands is not None and form.thousands == (form.decimal or "."):
        raise DatasetError(f"decimal and thousands are both {form.thousands!r}; give two different characters.")
    return form


def _selected(settled: Mapping[str, Any], table: Table, column: str) -> list[str]:
    """The features' names, if the table has them and the label's column."""
    name, drop = settled["name"], [str(dropped) for dropped in settled["drop"] or ()]
    for needed, what in [(column, "target column"), *((dropped, "column to drop named") for dropped in drop)]:
        if needed not in table.columns:
            raise DatasetError(f"{name} has no {what} {needed!r}; {choices(needed, table.columns)}.")
    others = [other for other in table.columns if other not in {column, settled["target"], *drop}]
    selected = settled["select"] or others
    named = dict(settled["features"])
    if settled["task"] == "regression" and set(named.get(column) or ()) <= set(READING):
        named.pop(column, None)  # it says how the target is written
    for feature in [*selected, *named]:
        if feature not in others and not (feature in drop and feature not in selected):
            raise DatasetError(f"{name} has no feature {feature!r}; {choices(feature, others)}.")
    if not selected:
        raise DatasetError(f"{name} has no column left beside the target {column!r}; list fewer in 'drop'.")
    return list(dict.fromkeys(selected))


def check_columns(dataset: Dataset) -> None:
    """Refuse too many encoded columns, and two of one name."""
    columns = dataset.space.columns
    if len(columns) > COLUMNS:
        raise DatasetError(
            f"the features of {dataset.name} have {len(columns)} columns when categories are encoded, and {COLUMNS} "
            f"are allowed; drop those with many categories."
        )
    if len(set(columns)) < len(columns):
        raise DatasetError(f"{dataset.name} has a column named like a category of another ('a=b'); rename it.")


def _stacked(tables: Sequence[Table]) -> tuple[Table, list[int]]:
    """Tables one below the other, columns as in the first; and the rows of each."""
    first = tables[0]
    if len(tables) == 1:
        return first, [first.rows]
    columns, notices = {}, list(first.notices)
    for number, table in enumerate(tables[1:], 2):
        notices += table.notices
        if odd := sorted(set(table.columns) ^ set(first.columns)):
            raise DatasetError(f"file {number} and file 1 do not both have the column {odd[0]!r}; give both the same.")
    for name in first.columns:
        texts: dict[str, int] = {}
        codes = []
        for table in tables:
            column = table.columns[name]
            renamed = np.array([texts.setdefault(text, len(texts)) for text in column.texts], dtype=np.int32)
            codes.append(renamed[column.codes])
        columns[name] = Column(np.concatenate(codes), tuple(texts))
    sha256 = hashlib.sha256("".join(table.sha256 for table in tables).encode()).hexdigest()
    rows = [table.rows for table in tables]
    return Table(columns, sum(rows), first.form, sha256, tuple(notices)), rows
