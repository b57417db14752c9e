"""A CSV of the user's own as a Dataset: its settings, what is inferred of it, and why. Trusts neither file nor YAML."""

from __future__ import annotations

import hashlib
import logging
import math
import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from harness.core.errors import DatasetError, choices
from harness.core.space import Actionability, Feature, Kind
from harness.data.datasets import ATTRIBUTES, EXACT, MISSING, OPPOSITE, SPLIT, TASKS, Dataset, load_dataset
from harness.data.discretise import Intervals
from harness.data.reader import COLUMNS, MEGABYTES, NA, Column, Form, Table, read_table
from harness.data.sidecar import read_sidecar

LINE = "the command line"
CATEGORIES = 200  # different texts of a feature, unless it is set otherwise
CLASSES = 50
LARGEST, SMALLEST = 1e30, 1e-30  # numbers beyond do not survive scaling, or a model's single precision
ID_ROWS = 20  # a table of so few rows may have a different value in each by chance
CODES = 10  # so few different whole numbers may be codes
MESSAGE = 1200  # characters of an error: a list of all categories is no sentence
SHOWN = 48  # characters of a name or list in the table
NUMBERS, OF_VALUES = (Kind.CONTINUOUS, Kind.INTEGER), (Kind.BINARY, Kind.ORDINAL, Kind.CATEGORICAL)
_DATE = re.compile(r"\d{4}-\d{1,2}-\d{1,2}([T ].*)?|\d{1,2}[./-]\d{1,2}[./-]\d{2,4}|\d{4}/\d{1,2}/\d{1,2}", re.ASCII)
_ID = re.compile(r"(^|[\s_.-])(id|no|nr|number|key|index|row)$|Id$|ID$", re.ASCII)

logger = logging.getLogger(__name__)
_BOOLS = {"True": True, "TRUE": True, "true": True, "False": False, "FALSE": False, "false": False}


def shown_name(path: Any, name: Any = None) -> str:
    """The name of a CSV in tables and folders: its stem, without what means something to a file system.

    >>> shown_name("../my data/Loans 2024.v2.csv")
    'Loans_2024.v2'
    """
    first = path[0] if isinstance(path, list | tuple) and path else path
    text = str(name) if name is not None else re.split(r"[/\\]", str(first or ""))[-1]
    text = text if name is not None else re.sub(r"\.(csv|tsv|txt)$", "", text, flags=re.IGNORECASE)
    safe = re.sub(r"[^\w.-]+", "_", unicodedata.normalize("NFKC", text)).strip("._-")
    return safe[:40].encode()[:80].decode(errors="ignore").strip("._-") or "csv"


# --- settings -----------------------------------------------------------------------------------------------------


def _scalar(value: Any) -> bool:
    if isinstance(value, str):
        return len(value) <= 1000 and not any("\ud800" <= character <= "\udfff" for character in value)
    return isinstance(value, bool | int) or (isinstance(value, float) and not math.isnan(value))


def _list(value: Any) -> bool:
    return isinstance(value, list | tuple) and all(map(_scalar, value))


def _name(value: Any) -> bool:
    return _scalar(value) and bool(str(value))


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= LARGEST


def _end(value: Any) -> bool:
    return value is None or _number(value) or value in (math.inf, -math.inf)


def _mark(value: Any) -> bool:
    return isinstance(value, str) and len(value) == 1 and value not in "\"'\r\n" and not value.isalnum()


Check = tuple[Callable[[Any], bool], str]
_NAMES: Check = (_list, "a list of column names")
_VALUES: Check = (_list, "a list of values")
CHECKS: dict[str, Check] = {
    "path": (lambda value: _scalar(value) or (_list(value) and bool(value)), "the path of a CSV file"),
    "name": (_name, "a text"),
    "sidecar": (lambda value: isinstance(value, bool | str), "the path of a YAML file, or false"),
    "target": (_name, "a column name"),
    "desired": (_scalar, "a class, or for numbers such as '>= 12'"),
    "immutable": _NAMES,
    "drop": _NAMES,
    "missing": (lambda value: value in MISSING, f"one of {', '.join(MISSING)}"),
    "features": (lambda value: _list(value) or _features(value), "a mapping by column name, or a list of names"),
    "causality": (lambda value: _causality(value), "a mapping by column name, to a 'formula' or 'parents' and 'learn'"),
    "label": (lambda value: _label(value), "a mapping {column: ..., classes: {CLASS: [VALUES]}}"),
    "classes": _VALUES,
    "task": (lambda value: value in TASKS, f"one of {', '.join(TASKS)}"),
    "empty": (_number, "a number"),
    "outliers": (lambda value: _number(value) and value > 0, "a number above 0"),
    "unbounded": (lambda value: isinstance(value, bool), "true or false"),
    "discretise": (lambda value: isinstance(value, str | Mapping), "quantile, median, levels, or a mapping"),
    "sep": (lambda value: _mark(value) or value in ("tab", "\\t"), "one character, or tab"),
    "decimal": (lambda value: value in (".", ","), "'.' or ','"),
    "thousands": (_mark, "one character that is neither letter nor digit"),
    "encoding": (lambda value: isinstance(value, str) and value.isascii(), "a name such as utf-8 or cp1252"),
    "na": _VALUES,
    "names": _NAMES,
    "max_megabytes": (lambda value: _number(value) and value > 0, "a number above 0"),
    "max_categories": (lambda value: type(value) is int and value > 0, "a whole number above 0"),
}
ONLY_LINE = ("path", "name", "sidecar", "max_megabytes", "max_categories")
ATTRIBUTE_CHECKS: dict[str, Check] = {
    "kind": (lambda value: value in list(Kind), f"one of {', '.join(Kind)}"),
    "actionability": (lambda value: value in list(Actionability), f"one of {', '.join(Actionability)}"),
    "bounds": (
        lambda value: isinstance(value, list | tuple) and all(map(_end, value)) and len(value) in (0, 2),
        f"two numbers within ±{LARGEST:g}, null (the data's own) or .inf",
    ),
    "special": (lambda value: isinstance(value, list | tuple) and all(map(_number, value)), "a list of numbers"),
    "categories": _VALUES,
    "order": _VALUES,
}


def _features(value: Any) -> bool:
    return isinstance(value, Mapping) and all(entry is None or isinstance(entry, Mapping) for entry in value.values())


def _causality(value: Any) -> bool:
    return isinstance(value, Mapping) and all(
        entry is None
        or (isinstance(entry, Mapping) and all(map(_scalar, entry)) and _text(entry.get("formula")) and _parents(entry))
        for entry in value.values()
    )


def _text(value: Any) -> bool:
    return value is None or (isinstance(value, str | int | float) and len(str(value)) <= 1000)


def _parents(entry: Mapping[str, Any]) -> bool:
    return "parents" not in entry or _list(entry["parents"])


def _label(value: Any) -> bool:
    return (
        isinstance(value, Mapping)
        and all(_scalar(item) for key, item in value.items() if key != "classes")
        and isinstance(classes := value.get("classes", {}), Mapping)
        and all(map(_list, classes.values()))
    )


def _checked(said: Mapping[str, Any], where: str, allowed: Iterable[str]) -> dict[str, Any]:
    """The settings that are set, if all exist and each is of its type."""
    checked: dict[str, Any] = {}
    allowed = list(allowed)
    for key, value in said.items():
        if key not in allowed:
            hint = "; it is set on the command line" if key in ONLY_LINE else ""
            raise DatasetError(f"{where} has no setting {str(key)[:60]!r}{hint}; {choices(key, allowed)}.")
        if value is None:
            continue
        if key in {"immutable", "drop", "names"} and _name(value):
            value = [value]
        fits, what = CHECKS[key]
        if not fits(value):
            raise DatasetError(f"{key} of {where} is {str(value)[:80]!r}; give {what}.")
        checked[key] = value
    entries = checked.get("features")
    for feature, entry in entries.items() if isinstance(entries, Mapping) else ():
        _check_attributes(feature, entry or {}, where)
    return checked


def _check_attributes(feature: str, entry: Mapping[str, Any], where: str) -> None:
    for key, value in entry.items():
        if key not in ATTRIBUTES:
            raise DatasetError(f"feature {feature} has no attribute {key!r} in {where}; {choices(key, ATTRIBUTES)}.")
        fits, what = ATTRIBUTE_CHECKS[key]
        if value is not None and not fits(value):
            raise DatasetError(f"{key} of {feature} in {where} is {str(value)[:80]!r}; give {what}.")


def settle(
    given: Mapping[str, Any], features: Mapping[str, Any] | None = None, desired: Any = None
) -> tuple[dict[str, Any], dict[str, str]]:
    """All that is said of a CSV: the command line wins over the YAML beside the file.

    Parameters
    ----------
    given
        ``conf/dataset/csv.yaml`` with what the command line changed; None is not said.
    features
        The command line's attributes by feature, which win over all else.
    desired
        The command line's wish, which wins over ``given``'s.

    Returns
    -------
    The settings for ``load_settled``, and where each attribute of a feature was set, by ``feature.attribute``.

    Raises
    ------
    DatasetError
        For unknown settings, those of the wrong type, and without a path or a target.
    """
    said = {key: None if isinstance(value, str) and value == "???" else value for key, value in given.items()}
    line = _checked({**said, "desired": said.get("desired") if desired is None else desired}, LINE, CHECKS)
    if not line.get("path"):
        raise DatasetError("dataset=csv needs a file: give dataset.path=FILE.csv, and dataset.target=COLUMN.")
    paths = [str(path) for path in (line["path"] if isinstance(line["path"], list | tuple) else [line["path"]])]
    beside, where = _beside(Path(paths[0]).expanduser(), line.get("sidecar"))
    settled: dict[str, Any] = {key: None for key in CHECKS if key != "sidecar"} | beside | line | {"path": paths}
    settled["name"] = shown_name(paths, line.get("name"))
    if settled["target"] is None:
        expected = Path(paths[0]).with_suffix(".yaml").name
        raise DatasetError(
            f"{paths[0]} needs a target: give dataset.target=COLUMN, or a line 'target: COLUMN' in {expected}."
        )
    settled["target"] = str(settled["target"])
    settled["causality"] = {**beside.get("causality", {}), **line.get("causality", {})}
    lists = [said["features"] for said in (line, beside) if isinstance(said.get("features"), list | tuple)]
    settled["select"] = list(map(str, lists[0])) if lists else None
    entries: dict[str, dict[str, Any]] = {}
    origins: dict[str, str] = {}
    _check_attributes_of(features or {})
    immutable = "immutable" in line
    layers: list[tuple[str, Any]] = [
        (where, {} if immutable else _immutable(beside)),
        (where, beside.get("features")),
        (LINE, _immutable(line)),
        (LINE, line.get("features")),
        (LINE, features),
    ]
    for source, layer in layers:
        for feature, entry in layer.items() if isinstance(layer, Mapping) else ():
            for key, value in (entry or {}).items():
                entries.setdefault(str(feature), {})[key] = value
                origins[f"{feature}.{key}"] = source
    settled["features"] = {
        feature: {key: value for key, value in entry.items() if value is not None} for feature, entry in entries.items()
    }
    del settled["immutable"]
    return settled, origins


def _check_attributes_of(features: Mapping[str, Any]) -> None:
    if not _features(features):
        raise DatasetError(f"features on {LINE} is {str(features)[:80]!r}; give features.NAME.kind=... and the like.")
    for feature, entry in features.items():
        _check_attributes(feature, entry or {}, LINE)


def _immutable(said: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    return {str(name): {"actionability": str(Actionability.IMMUTABLE)} for name in said.get("immutable", ())}


def _beside(path: Path, wished: Any) -> tuple[dict[str, Any], str]:
    """What the YAML beside a CSV says, and its name."""
    file = Path(wished).expanduser() if isinstance(wished, str) else path.with_suffix(".yaml")
    if wished is False or (not isinstance(wished, str) and not _exists(file)):
        return {}, file.name
    beside = _checked(read_sidecar(file), file.name, [key for key in CHECKS if key not in ONLY_LINE])
    for feature, entry in beside.get("causality", {}).items():
        if entry and not isinstance(entry.get("learn", ""), str):
            raise DatasetError(
                f"the equation of {feature} in {file.name} is to be learnt by {str(entry['learn'])[:60]!r}; give the "
                f"name of a regression model, such as ridge."
            )
    return beside, file.name


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):  # the CSV's own path is at fault, and is told there
        return False


# --- data ---------------------------------------------------------------------------------------------------------


def load_csv(path: str | Path, target: str | None = None, **settings: Any) -> Dataset:
    """A CSV of one's own as a dataset, with the settings of ``conf/dataset/csv.yaml`` and ``split``.

    Raises
    ------
    DatasetError
        If file, YAML beside it and settings do not fit.
    """
    split = settings.pop("split", SPLIT)
    settled, _ = settle({**settings, "path": str(path), "target": target})
    return load_settled(settled, split)


def load_settled(settled: Mapping[str, Any], split: Mapping[str, Any] | str | None = SPLIT) -> Dataset:
    """The dataset of the settings that ``settle`` gives.

    Raises
    ------
    DatasetError
        In one line, if file and settings do not fit.
    """
    try:
        return _load(settled, split)
    except DatasetError as fault:
        raise DatasetError(_sentence(fault)) from None


def _sentence(fault: Exception) -> str:
    """One line, without the middle of a list of thousands."""
    text = " ".join(str(fault).split())
    return text if len(text) <= MESSAGE else f"{text[: MESSAGE - 300]} ... {text[-250:]}"


def _load(settled: Mapping[str, Any], split: Mapping[str, Any] | str | None) -> Dataset:
    name, target, label = settled["name"], settled["target"], settled["label"]
    given = Form(
        sep=settled["sep"],
        decimal=settled["decimal"],
        thousands=settled["thousands"],
        encoding=settled["encoding"],
        na=NA if settled["na"] is None else tuple(map(str, settled["na"])),
        names=None if settled["names"] is None else tuple(map(str, settled["names"])),
        megabytes=settled["max_megabytes"] or MEGABYTES,
    )
    if given.thousands is not None and given.thousands == (given.decimal or "."):
        raise DatasetError(f"decimal and thousands are both {given.thousands!r}; give two different characters.")
    table, rows = _stacked([read_table(Path(path).expanduser(), given) for path in settled["path"]])
    column = str((label or {}).get("column", target))
    drop = [str(dropped) for dropped in settled["drop"] or ()]
    for wanted, what in [(column, "target column"), *((dropped, "column to drop named") for dropped in drop)]:
        if wanted not in table.columns:
            raise DatasetError(f"{name} has no {what} {wanted!r}; {choices(wanted, table.columns)}.")
    entries = settled["features"]
    others = [other for other in table.columns if other not in {column, target, *drop}]
    selected = settled["select"] or others
    for feature in [*selected, *entries]:
        if feature not in others and not (feature in drop and feature not in selected):
            raise DatasetError(f"{name} has no feature {feature!r}; {choices(feature, others)}.")
    if not selected:
        raise DatasetError(f"{name} has no column left beside the target {column!r}; list fewer in 'drop'.")
    form = replace(given, decimal=given.decimal or _decimal(name, table, selected))
    missing = settled["missing"] or "error"
    if missing == "error":
        _complete(name, table, [*selected, column], form)
    raw, reasons, notices = {}, {}, list(table.told)
    for feature in dict.fromkeys(selected):
        entry = entries.get(feature, {})
        cells = ColumnParser(name, feature, table.columns[feature], form)
        raw[feature], reasons[feature] = cells.typed(entry.get("kind"), settled["max_categories"] or CATEGORIES)
        notices += cells.notices
    regression = settled["task"] == "regression"
    raw[column] = _target(
        ColumnParser(name, column, table.columns[column], form), regression, bool(label or settled["classes"])
    )
    frame = pd.DataFrame(raw)
    ends = np.cumsum(rows)
    parts = [frame.iloc[end - count : end] for end, count in zip(ends, rows, strict=True)]
    dataset = load_dataset(
        name,
        (),
        target,
        tables=(parts, table.sha256),
        desired=OPPOSITE if settled["desired"] is None else settled["desired"],
        features=list(dict.fromkeys(selected)),
        label=label,
        classes=settled["classes"],
        task=settled["task"] or "classification",
        missing=missing,
        empty=settled["empty"],
        outliers=settled["outliers"],
        unbounded=bool(settled["unbounded"]),
        split=split,
        overrides={feature: entry for feature, entry in entries.items() if feature in selected},
        causality=settled["causality"],
        discretise=settled["discretise"],
    )
    columns = dataset.space.columns
    if len(columns) > COLUMNS:
        raise DatasetError(
            f"the features of {name} have {len(columns)} columns when categories are encoded, and {COLUMNS} are "
            f"allowed; drop those with many categories."
        )
    if len(set(columns)) < len(columns):
        raise DatasetError(f"{name} has a column named like a category of another ('a=b'); rename it.")
    for feature in dataset.space.features:
        if (dataset.frame[feature.name] == dataset.frame[feature.name].iloc[0]).all():
            reasons[feature.name] = "constant: immutable"
    for notice in notices:
        logger.info(notice)
    form = replace(form, sep=given.sep)
    return replace(dataset, notices=(*notices, *dataset.notices), form=form, reasons=reasons)


def _stacked(tables: Sequence[Table]) -> tuple[Table, list[int]]:
    """Tables one below the other, columns as in the first; and the rows of each."""
    first = tables[0]
    if len(tables) == 1:
        return first, [first.rows]
    columns, told = {}, list(first.told)
    for number, table in enumerate(tables[1:], 2):
        told += table.told
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
    return Table(columns, sum(rows), first.form, sha256, tuple(told)), rows


def _pattern(decimal: str, thousands: str | None) -> re.Pattern[str]:
    grouped = rf"\d{{1,3}}(?:{re.escape(thousands)}\d{{3}})+|" if thousands else ""
    point = re.escape(decimal)
    return re.compile(rf"[-+]?(?:(?:{grouped}\d+)(?:{point}\d*)?|{point}\d+)(?:[eE][-+]?\d{{1,5}})?", re.ASCII)


def _decimal(name: str, table: Table, selected: Iterable[str]) -> str:
    """The decimal mark: a comma only where cells are not separated by it and whole columns are numbers so only."""
    if table.form.sep == ",":
        return "."
    thousands, na = table.form.thousands, {"", *table.form.na}
    point, comma = _pattern(".", thousands), _pattern(",", thousands)
    found: dict[str, tuple[str, str]] = {}
    for feature in selected:
        texts = [text for text in table.columns[feature].texts if text not in na]
        for mark, pattern in ((".", point), (",", comma)):
            if any(mark in text for text in texts) and all(map(pattern.fullmatch, texts)):
                found.setdefault(mark, (feature, next(text for text in texts if mark in text)))
    if len(found) == 2:
        (one, first), (other, second) = found["."], found[","]
        raise DatasetError(
            f"{name} holds {first!r} in column {one!r} and {second!r} in column {other!r}: set 'decimal' to '.' or ','"
            f", and 'thousands' to the other where it groups digits."
        )
    return next(iter(found), ".")


def _complete(name: str, table: Table, selected: Iterable[str], form: Form) -> None:
    for feature in dict.fromkeys(selected):
        column = table.columns[feature]
        gaps = {code: text for code, text in enumerate(column.texts) if text in {"", *form.na}}
        if len(gaps) == len(column.texts):
            raise DatasetError(f"column {feature!r} of {name} holds no value at all; list it in 'drop'.")
        if gaps:
            row = int(np.flatnonzero(np.isin(column.codes, list(gaps)))[0])
            text = gaps[int(column.codes[row])]
            word = f" ({text!r}; set na=[] where such a word is a value)" if text else ""
            raise DatasetError(
                f"{name} has a missing value in column {feature!r}, row {row}{word}; set 'missing' to drop, median (of "
                f"numbers) or category (of texts)."
            )


class ColumnParser:
    """The cells of one column on their way to numbers or categories."""

    def __init__(self, table: str, name: str, column: Column, form: Form) -> None:
        self.table, self.name, self.column = table, name, column
        self.notices: list[str] = []
        missing = {"", *form.na}
        self.present = np.array([text not in missing for text in column.texts])
        pattern = _pattern(form.decimal or ".", form.thousands)
        self.numbers = np.array([self._parse(text, pattern, form) for text in column.texts], dtype=float)
        self.counts = np.bincount(column.codes, minlength=len(column.texts))
        self.comma = form.decimal == ","

    @staticmethod
    def _parse(text: str, pattern: re.Pattern[str], form: Form) -> float:
        """A number, or NaN where the text is none."""
        if not pattern.fullmatch(text):
            return math.nan
        bare = text.replace(form.thousands, "") if form.thousands else text
        return float(bare.replace(form.decimal or ".", "."))

    @property
    def texts(self) -> list[str]:
        return [text for text, present in zip(self.column.texts, self.present, strict=True) if present]

    @property
    def padded(self) -> bool:
        """Whether some numbers begin with zeros, as codes do."""
        return any(re.match(r"[-+]?0\d", text) for text in self.texts)

    @property
    def numeric(self) -> bool:
        return bool(self.present.any()) and not np.isnan(self.numbers[self.present]).any()

    def row_of(self, wrong: np.ndarray) -> tuple[int, str]:
        """The first row, and its text, among codes that are wrong; bool, shape (texts,)."""
        row = int(np.argmax(wrong[self.column.codes]))
        return row, self.column.texts[self.column.codes[row]]

    def typed(self, kind: str | None, most: int) -> tuple[pd.Series, str]:
        """A feature's values, and why they are of their kind."""
        if self.numeric and kind not in OF_VALUES:
            return self.as_numbers(), self._why_numbers()
        bools = all(text in _BOOLS for text in self.texts)
        if kind in NUMBERS or (kind is None and not bools):
            self._not_mixed(kind)
        distinct = len(self.texts)
        about = f"{distinct:,} different texts"
        dates = distinct > 1 and all(_DATE.fullmatch(text) for text in self.texts[:1000])
        if dates:
            about += ", dates by their look, which are no numbers here"
        example = f"{about}, such as {self.texts[0][:SHOWN]!r}" if distinct else about
        if kind is None and distinct == self.counts[self.present].sum() > ID_ROWS:
            raise DatasetError(
                f"column {self.name!r} of {self.table} has a different text in every row ({example}), like an id or a "
                f"name; list it in 'drop', or set features.{self.name}.kind=categorical."
            )
        if distinct > most and kind != Kind.ORDINAL:
            raise DatasetError(
                f"column {self.name!r} of {self.table} has {example}, and {most} are allowed; list it in 'drop', group "
                f"them, or raise 'max_categories'."
            )
        if bools:
            return self.as_values(), "true and false"
        plain = {1: "one text", 2: "two texts"}.get(distinct, about)
        return self.as_values(), about if dates else plain

    def _not_mixed(self, kind: str | None) -> None:
        """Refuse a column of numbers with a few texts among them."""
        odd = self.present & np.isnan(self.numbers)
        numbers = int(self.counts[self.present & ~odd].sum())
        if not odd.any() or (kind is None and 2 * numbers < self.counts[self.present].sum()):
            return
        row, text = self.row_of(odd)
        known = f"holds {numbers} numbers" if kind is None else f"is {kind}"
        raise DatasetError(
            f"column {self.name!r} of {self.table} {known}, but {text[:SHOWN]!r} in row {row}; correct it, list it in "
            f"'na' if it stands for a missing value, or set features.{self.name}.kind=categorical."
        )

    def as_numbers(self) -> pd.Series:
        size = np.abs(self.numbers)
        wrong = self.present & ((size > LARGEST) | ((size > 0) & (size < SMALLEST)))
        if wrong.any():
            row, text = self.row_of(wrong)
            raise DatasetError(
                f"column {self.name!r} of {self.table} holds {text[:SHOWN]} in row {row}, which is infinite, "
                f"beyond {LARGEST:g} or nearer to 0 than {SMALLEST:g}; use another unit, or list it in 'drop'."
            )
        values = pd.Series(np.where(self.present, self.numbers, np.nan)[self.column.codes])
        whole = self.present.all() and self._whole and size.max() <= EXACT
        return values.astype(np.int64) if whole else values

    @property
    def _whole(self) -> bool:
        known = self.numbers[self.present]
        return bool((known == np.rint(known)).all())

    def as_values(self) -> pd.Series:
        """Categories: codes stay numbers where nothing of them is lost, True and False are booleans."""
        known = self.numbers[self.present]
        if self.numeric and not self.padded and (self._whole or len(known) <= CLASSES) and np.abs(known).max() <= EXACT:
            return self.as_numbers()
        bools = all(text in _BOOLS for text in self.texts) and bool(self.texts)
        lookup = np.empty(len(self.column.texts), dtype=object)
        lookup[:] = [
            (_BOOLS[text] if bools else text) if present else np.nan
            for text, present in zip(self.column.texts, self.present, strict=True)
        ]
        return pd.Series(lookup[self.column.codes], dtype=object)

    def _why_numbers(self) -> str:
        known = np.unique(self.numbers[self.present])
        if not self._whole:
            return "numbers with decimal commas" if self.comma else "numbers"
        if set(known) == {0, 1}:
            return "0 and 1"
        if np.abs(known).max() > EXACT:
            return f"whole numbers beyond {EXACT:.0e}, which are not exact"
        rows = int(self.counts[self.present].sum())
        consecutive = known[-1] - known[0] == rows - 1
        if rows > ID_ROWS and len(known) == rows and (consecutive or _ID.search(self.name)):
            self.notices.append(
                f"{self.table}: column {self.name!r} holds a different whole number in every row; if it is a row "
                f"number or an id, list it in 'drop'."
            )
            return "whole numbers, all different: an id? then drop it"
        if self.padded:
            return "whole numbers, some with leading zeros: codes? then set kind: categorical"
        if len(known) <= CODES:
            return f"{len(known)} different whole numbers: codes? then set kind: categorical"
        return "whole numbers"


def _target(cells: ColumnParser, regression: bool, named: bool) -> pd.Series:
    if regression:
        return cells.as_numbers() if cells.numeric else cells.as_values()
    distinct = len(cells.texts)
    if distinct > CLASSES and not named:
        remedy = "set task: regression, or " if cells.numeric else ""
        raise DatasetError(
            f"the target {cells.name!r} of {cells.table} holds {distinct:,} different values, and {CLASSES} are "
            f"allowed for classes; {remedy}choose another target."
        )
    return cells.as_values()


# --- people to explain --------------------------------------------------------------------------------------------


def read_people(dataset: Dataset, path: Path) -> pd.DataFrame:
    """The rows of a second CSV as factuals of a dataset, read as the dataset's own file was.

    Columns may come in another order; others than the features are not looked at.

    Raises
    ------
    DatasetError
        Naming row and column, for a missing column or value, a text in place of a number, or an unknown category.
    """
    try:
        return _people(dataset, path)
    except DatasetError as fault:
        raise DatasetError(_sentence(fault)) from None


def _people(dataset: Dataset, path: Path) -> pd.DataFrame:
    names, form = dataset.space.names, dataset.form
    table = read_table(path, replace(form, names=None), str(path), least=1)
    if form.names and not set(names) <= set(table.columns):
        table = read_table(path, form, str(path), least=1)
    for name in names:
        if name not in table.columns:
            raise DatasetError(f"{path} has no column {name!r}; {choices(name, table.columns)}.")
    marks = [form.decimal or "."]
    if table.form.sep != "," and not dataset.reasons:
        marks.append(",")  # nothing is known of how the dataset's own numbers are written
    elif table.form.sep == "," and form.sep is None:
        marks.append(".")  # a file separated by commas, beside one with decimal commas
    data = {}
    for feature in dataset.space.features:
        column = table.columns[feature.name]
        forms, intervals = [replace(form, decimal=mark) for mark in marks], dataset.intervals.get(feature.name)
        said = [_meaning(feature, text, forms, intervals) for text in column.texts]
        for code in range(len(said)):
            if isinstance(value := said[code], _Fault):
                row = column.first(code)
                raise DatasetError(f"{path} {value.text} in column {feature.name!r}, row {row}; {value.remedy}.")
        data[feature.name] = [said[code] for code in column.codes]
    rows = [dict(zip(data, values, strict=True)) for values in zip(*data.values(), strict=True)]
    frame = dataset.space.frame(rows)
    dataset.space.check(frame, str(path))
    return frame


class _Fault:
    """What is wrong with a cell, and what to do."""

    def __init__(self, text: str, remedy: str) -> None:
        self.text, self.remedy = text, remedy


def _meaning(feature: Feature, text: str, forms: Sequence[Form], intervals: Intervals | None) -> Any:
    """The value of a feature that a cell stands for; of ``intervals``, also by a number."""
    missing = text in {"", *forms[0].na}
    if not feature.numeric:
        by_text = {str(category): category for category in feature.categories}
        if text in by_text:
            return by_text[text]
        if missing and "missing" in by_text:
            return by_text["missing"]
        if text in _BOOLS and str(_BOOLS[text]) in by_text:
            return by_text[str(_BOOLS[text])]
        for form in forms:
            number = ColumnParser._parse(text, _pattern(form.decimal or ".", form.thousands), form)
            for category in feature.categories:
                if not isinstance(category, str) and category == number:
                    return category
            if intervals is not None and not math.isnan(number):
                return intervals.of([number])[0]
        if missing:
            return _Fault("has a missing value", "fill it in")
        return _Fault(f"has the unseen category {text[:SHOWN]!r}", f"allowed: {_listed(feature.categories, 400)}")
    if missing:
        return _Fault("has a missing value", "fill it in")
    for form in forms:
        number = ColumnParser._parse(text, _pattern(form.decimal or ".", form.thousands), form)
        if math.isnan(number):
            continue
        if abs(number) > LARGEST or 0 < abs(number) < SMALLEST:
            return _Fault(f"holds the number {text[:SHOWN]}, which is infinite, too large or too small,", "correct it")
        if feature.kind is Kind.INTEGER and (number != round(number) or abs(number) > EXACT):
            return _Fault(f"holds {text[:SHOWN]}, which is no whole number that fits,", "the feature is integer")
        return number
    return _Fault(f"holds {text[:SHOWN]!r}", f"the feature is {feature.kind}, so give a number")


# --- what is told -------------------------------------------------------------------------------------------------


def introduce(dataset: Dataset, origins: Mapping[str, str]) -> str:
    """What was read and inferred, as a table of features: kind, range or categories, actionability, and why."""
    classes = dataset.classes
    counts = {name: int((dataset.labels == name).sum()) for name in classes}
    head = f"{dataset.name}: {len(dataset.frame):,} rows, {len(dataset.train):,} to train on"
    if classes:
        head += f"; classes {_listed([f'{name} ({count:,})' for name, count in counts.items()], 200)}"
    head += f"; desired: {dataset.desired}"
    if dataset.desired == OPPOSITE and OPPOSITE not in classes:
        head += f" (of what the model says of each person; name one by desired={classes[0]} or desired={classes[1]})"
    lines = [("feature", "kind", "values", "actionability", "why")]
    for feature in dataset.space.features:
        values = _listed(feature.categories, SHOWN) if not feature.numeric else " to ".join(map(_short, feature.bounds))
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
    for key in ATTRIBUTES:
        if origin := origins.get(f"{name}.{key}"):
            places.setdefault("set on the command line" if origin == LINE else f"set in {origin}", []).append(key)
    said = [f"{' and '.join(keys)} {place}" for place, keys in places.items()]
    constant = inferred.startswith("constant")
    return "; ".join(said if f"{name}.kind" in origins and not constant else [inferred, *said])


def _listed(values: Sequence[Any], length: int) -> str:
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


def _short(number: float) -> str:
    return f"{number:.0f}" if number == round(number) and abs(number) < 1e15 else f"{number:.6g}"
