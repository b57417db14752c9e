"""Factuals from a second CSV, read as the dataset's own file was."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from harness.core.errors import DatasetError, lacking
from harness.core.gaps import MISSED
from harness.core.notation import ISO, Notation
from harness.core.space import Feature, Kind
from harness.core.target import class_text
from harness.data.csv_columns import BOOLS, LARGEST, SHOWN, SMALLEST
from harness.data.csv_load import one_line
from harness.data.csv_report import listed
from harness.data.dataset import Dataset
from harness.data.discretise import Intervals
from harness.data.features import EXACT
from harness.data.gaps import advice, filled_message
from harness.data.reader import Form, Table, read_table

logger = logging.getLogger(__name__)


def read_factuals(dataset: Dataset, path: Path) -> pd.DataFrame:
    """The rows of a second CSV as factuals of a dataset, read as the dataset's own file was.

    Columns may come in another order; others than the features are not looked at.

    Raises
    ------
    DatasetError
        Naming row and column, for a missing column or value, a text in place of a number, or an unknown category.
    """
    try:
        return _factuals(dataset, path)
    except DatasetError as fault:
        raise DatasetError(one_line(fault)) from None


def _factuals(dataset: Dataset, path: Path) -> pd.DataFrame:
    names, form = dataset.space.names, dataset.reading.form
    table = _table(path, form, names)
    for name in names:
        if name not in table.columns:
            raise DatasetError(lacking(str(path), name, table.columns, names))
    marks = [form.decimal or "."]
    if table.form.sep != "," and not dataset.reasons:
        marks.append(",")  # nothing is known of how the dataset's own numbers are written
    elif table.form.sep == "," and form.sep is None:
        marks.append(".")  # a file separated by commas, beside one with decimal commas
    data, filled = {}, []
    for feature in dataset.space.features:
        column, filler = table.columns[feature.name], dataset.reading.filler(feature.name)
        intervals, gaps = dataset.reading.intervals.get(feature.name), [text in {"", *form.na} for text in column.texts]
        own = dataset.reading.written.get(feature.name, feature.notation)
        ways = _ways(own, [Notation(mark, form.thousands or "") for mark in marks])
        there = [text for text, gap in zip(column.texts, gaps, strict=True) if not gap]
        ways = _alike(f"column {feature.name!r} of {path}", there, ways)
        meanings = [
            filler if gap and filler is not None else _meaning(feature, text, ways, intervals, gap)
            for text, gap in zip(column.texts, gaps, strict=True)
        ]
        if filler is not None and (count := int(np.array(gaps)[column.codes].sum())):
            filled.append(filled_message(feature.name, count, filler))
        for code in range(len(meanings)):
            if isinstance(value := meanings[code], _Fault):
                row = column.first(code)
                raise DatasetError(f"{path} {value.text} in column {feature.name!r}, row {row}; {value.remedy}.")
        data[feature.name] = [meanings[code] for code in column.codes]
    if filled:
        logger.warning(f"{path}: missing cells: filled {', '.join(filled)} (by the training rows of {dataset.name}).")
    rows = [dict(zip(data, values, strict=True)) for values in zip(*data.values(), strict=True)]
    frame = dataset.reading.clipped(str(path), dataset.space.frame(rows))
    dataset.space.check(frame, str(path))
    for feature in dataset.space.features:
        if feature.numeric:
            _warn_of_far(feature, frame[feature.name], path)
    return frame


def person_read(dataset: Dataset, person: Mapping[str, Any]) -> dict[str, Any]:
    """A person whose texts and dates are what they stand for, read as the cells of ``read_factuals``.

    Raises
    ------
    DatasetError
        For a text in place of a number, or an unknown category.
    """
    form, found = dataset.reading.form, dict(person)
    for feature in dataset.space.features:
        filler, text = dataset.reading.filler(feature.name), _cell(feature, found.get(feature.name))
        if text is None:
            continue
        own = dataset.reading.written.get(feature.name, feature.notation)
        ways = _ways(own, [Notation(form.decimal or ".", form.thousands or "")])
        gap = text in {"", *form.na}
        meaning = _meaning(feature, text, ways, dataset.reading.intervals.get(feature.name), gap)
        if gap and filler is not None:
            meaning = math.nan  # which is filled, and said to be, as any gap of a person
        if isinstance(meaning, _Fault):
            raise DatasetError(f"the person {meaning.text} in column {feature.name!r}; {meaning.remedy}.")
        found[feature.name] = meaning
    return found


def _cell(feature: Feature, value: Any) -> str | None:
    """A person's value as a cell of a file has it; None where it is read as it is."""
    if isinstance(value, date) and value is not pd.NaT:
        return value.isoformat()
    number = isinstance(value, int | float | np.number) and value == value
    if not (isinstance(value, str) or (number and not feature.numeric)) or value in feature.categories:
        return None
    return class_text(value).strip()


def _warn_of_far(feature: Feature, values: pd.Series, path: Path) -> None:
    """Say which of a feature's numbers no training row comes near to."""
    low, high = feature.scale
    values = values.dropna()
    far = values[~values.between(low, high) & ~values.isin(feature.special)]
    if len(far):
        more = f" (and of {len(far) - 1} more)" if len(far) > 1 else ""
        first, low_text, high_text = map(_shown(feature), (far.iloc[0], low, high))
        found = f"{feature.name} {first} in row {far.index[0]}{more}"
        logger.warning(f"{path}: {found} is outside the training rows' {low_text} to {high_text}.")


def _shown(feature: Feature) -> Callable[[float], str]:
    return "{:.10g}".format if feature.notation is None else feature.text


def _table(path: Path, form: Form, names: Sequence[str]) -> Table:
    """The file's table, by its header line; else by the names of the dataset's columns, or of the features alone.

    Raises
    ------
    DatasetError
        Where neither fits: of the names of the dataset's columns, if there are.
    """
    if form.names is None:
        return read_table(path, form, str(path), least=1)
    features, faults = tuple(name for name in form.names if name in names), []
    for given in (None, form.names, features):
        try:
            table = read_table(path, replace(form, names=given), str(path), least=1)
        except DatasetError as fault:
            faults.append(fault)
            continue
        if given is None:
            if 2 * len({*names} & {*table.columns}) > len(names):  # what it lacks is told
                return table
        elif faults and {column.texts[column.codes[0]] for column in table.columns.values()} & {*names}:
            raise faults[0]  # of the header line
        else:
            return table
    raise faults[-2]


def _alike(what: str, texts: Sequence[str], ways: Sequence[Notation]) -> list[Notation]:
    """The ways in which all of a column's texts are written; all ways where there is none.

    Raises
    ------
    DatasetError
        Where a text is one number by the decimal mark of some of these ways, and another by that of others.
    """
    marks = dict.fromkeys((way.decimal, way.thousands) for way in ways if not way.date)
    fits = {}
    for mark in marks:
        of_mark = [way for way in ways if (way.decimal, way.thousands) == mark]
        values = [next((v for way in of_mark if not math.isnan(v := way.parse(text))), math.nan) for text in texts]
        if not any(map(math.isnan, values)):
            fits[mark] = values
    for text, *values in zip(texts, *fits.values(), strict=True):
        if len(set(values)) > 1:
            one, other = sorted(set(values))[:2]
            raise DatasetError(
                f"{what} can be read in two ways: {text[:SHOWN]!r} is {one:.10g} or {other:.10g}; write its numbers as "
                f"the dataset's file does, and separate the cells as there."
            )
    return [way for way in ways if way.date or (way.decimal, way.thousands) in fits] or list(ways)


def _ways(own: Notation | None, plain: list[Notation]) -> list[Notation]:
    """How a feature's cells may be written: as in the dataset, also without the unit; else plainly."""
    if own is None:
        return plain
    return [own, Notation(date=ISO)] if own.date else [own, replace(own, before="", after=""), *plain]


class _Fault:
    """What is wrong with a cell, and what to do."""

    def __init__(self, text: str, remedy: str) -> None:
        self.text, self.remedy = text, remedy


def _meaning(feature: Feature, text: str, ways: Sequence[Notation], intervals: Intervals | None, missing: bool) -> Any:
    """The value of a feature that a cell stands for, or a ``_Fault``; of ``intervals``, also by a number."""
    if missing and feature.missing:
        return math.nan
    found = _number(feature, text, ways) if feature.numeric else _category(feature, text, ways, intervals, missing)
    if missing and (feature.numeric or found is None):
        return _Fault("has a missing value", f"fill it in, or {advice(feature.name)}")
    if found is None:
        return _Fault(f"has the unseen category {text[:SHOWN]!r}", f"allowed: {listed(feature.categories, 400)}")
    return found


def _category(
    feature: Feature, text: str, ways: Sequence[Notation], intervals: Intervals | None, missing: bool
) -> Any | None:
    """The category that a cell stands for; None where there is none."""
    by_text = {str(category).strip(): category for category in feature.categories}
    if text in by_text:
        return by_text[text]
    if missing and MISSED in by_text:
        return by_text[MISSED]
    if text in BOOLS and str(BOOLS[text]) in by_text:
        return by_text[str(BOOLS[text])]
    for way in ways:
        number = way.parse(text)
        for category in feature.categories:
            if not isinstance(category, str) and category == number:
                return category
        if intervals is not None and not math.isnan(number):
            return intervals.of([number])[0]
    return None


def _number(feature: Feature, text: str, ways: Sequence[Notation]) -> float | _Fault:
    """The number that a cell stands for, in the first notation that fits."""
    for way in ways:
        number = way.parse(text)
        if math.isnan(number):
            continue
        if abs(number) > LARGEST or 0 < abs(number) < SMALLEST:
            return _Fault(f"holds the number {text[:SHOWN]}, which is infinite, too large or too small,", "correct it")
        if feature.kind is Kind.INTEGER and (number != round(number) or abs(number) > EXACT):
            return _Fault(f"holds {text[:SHOWN]}, which is no whole number that fits,", "the feature is integer")
        return number
    notation = feature.notation
    what = "date" if notation is not None and notation.date else "number"
    return _Fault(f"holds {text[:SHOWN]!r}", f"give a {what} such as {feature.text(feature.scale[0])}")
