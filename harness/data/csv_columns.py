"""Texts of a CSV's columns become numbers or categories, with the reason for each."""

from __future__ import annotations

import re
from collections.abc import Iterable

import numpy as np
import pandas as pd

from harness.core.errors import DatasetError
from harness.core.notation import Notation
from harness.core.space import Kind
from harness.data.csv_notation import OF_VALUES, says, unlike
from harness.data.features import EXACT
from harness.data.gaps import advice
from harness.data.reader import Column, Form, Table

CATEGORIES = 200  # different texts of a feature, unless it is set otherwise
CLASSES = 50
LARGEST, SMALLEST = 1e30, 1e-30  # numbers beyond do not survive scaling, or a model's single precision
ID_ROWS = 20  # a table of so few rows may have a different value in each by chance
FEW_DATES = 10  # whole numbers, which may be days by chance
CODES = 10  # so few different whole numbers may be codes
SHOWN = 48  # characters of a name or list in the table
NUMBERS = (Kind.CONTINUOUS, Kind.INTEGER)
_ID = re.compile(r"(^|[\s_.-])(id|no|nr|number|key|index|row)$|Id$|ID$", re.ASCII)
BOOLS = {"True": True, "TRUE": True, "true": True, "False": False, "FALSE": False, "false": False}


def check_complete(name: str, table: Table, columns: Iterable[str], target: str, form: Form) -> None:
    """Raise ``DatasetError`` for the first missing value in these columns, of which one may be the target's."""
    for feature in columns:
        column = table.columns[feature]
        gaps = {code: text for code, text in enumerate(column.texts) if text in {"", *form.na}}
        if len(gaps) == len(column.texts):
            raise DatasetError(f"column {feature!r} of {name} holds no value at all; list it in 'drop'.")
        if gaps:
            row = int(np.flatnonzero(np.isin(column.codes, list(gaps)))[0])
            text = gaps[int(column.codes[row])]
            word = f" ({text!r}; set na=[] where such a word is a value)" if text else ""
            fit = "set 'missing' to drop" if feature == target else advice(feature)
            raise DatasetError(f"{name} has a missing value in column {feature!r}, row {row}{word}; {fit}.")


def like_an_id(name: str, known: np.ndarray, rows: int) -> bool:
    """Whether a column's different whole numbers, ascending, may be its rows' numbers, or ids by its name."""
    consecutive = known[-1] - known[0] == rows - 1
    return rows > ID_ROWS and len(known) == rows and bool(consecutive or _ID.search(name))


def present(column: Column, form: Form) -> np.ndarray:
    """Which different texts are no missing value, bool, shape (texts,)."""
    return np.array([text not in {"", *form.na} for text in column.texts])


class ColumnParser:
    """The cells of one column as numbers or categories; ``notices`` are what a user should know of them.

    Parameters
    ----------
    notation
        How numbers are written; in a column of texts those among them.
    """

    def __init__(self, table: str, name: str, column: Column, form: Form, notation: Notation) -> None:
        self.table, self.name, self.column, self.notation = table, name, column, notation
        self.notices: list[str] = []
        self.present = present(column, form)
        self.numbers = np.array([notation.parse(text) for text in column.texts], dtype=float)
        self.counts = np.bincount(column.codes, minlength=len(column.texts))

    @property
    def texts(self) -> list[str]:
        """The different texts that are no missing value."""
        return [text for text, present in zip(self.column.texts, self.present, strict=True) if present]

    @property
    def padded(self) -> bool:
        """Whether some numbers begin with zeros, as codes do."""
        return any(re.match(r"[-+]?0\d", text) for text in self.texts)

    @property
    def numeric(self) -> bool:
        """Whether every text that is present is a number."""
        return bool(self.present.any()) and not np.isnan(self.numbers[self.present]).any()

    def row_of(self, wrong: np.ndarray) -> tuple[int, str]:
        """The first row, and its text, among codes that are wrong; bool, shape (texts,)."""
        row = int(np.argmax(wrong[self.column.codes]))
        return row, self.column.texts[self.column.codes[row]]

    def typed(self, kind: str | None, most: int) -> tuple[pd.Series, str]:
        """A feature's values, and why they are of their kind."""
        if self.numeric and kind not in OF_VALUES:
            return self.as_numbers(), self._why_numbers()
        bools = all(text in BOOLS for text in self.texts)
        if kind in NUMBERS or (kind is None and not bools):
            self._not_mixed(kind)
        distinct = len(self.texts)
        about = f"{distinct:,} different texts"
        if kind is None and (units := unlike(self.texts)):
            self.notices.append(
                f"{self.table}: column {self.name!r} holds numbers in different units or ways ({units}), so it stays "
                f"text; write all of them alike to have numbers."
            )
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
        return self.as_values(), plain

    def _not_mixed(self, kind: str | None) -> None:
        """Refuse a column of numbers with a few texts among them."""
        odd = self.present & np.isnan(self.numbers)
        numbers = int(self.counts[self.present & ~odd].sum())
        if not odd.any() or (kind is None and 2 * numbers < self.counts[self.present].sum()):
            return
        row, text = self.row_of(odd)
        what = "dates" if self.notation.date else "numbers"
        known = f"holds {numbers} {what}" if kind is None else f"is {kind}"
        raise DatasetError(
            f"column {self.name!r} of {self.table} {known}, but {text[:SHOWN]!r} in row {row}; correct it, list it in "
            f"'na' if it stands for a missing value, or set features.{self.name}.kind=categorical."
        )

    def as_numbers(self) -> pd.Series:
        """The column as int64 where that is exact, else as float64 with NaN where a value is missing."""
        size = np.abs(self.numbers)
        wrong = self.present & ((size > LARGEST) | ((size > 0) & (size < SMALLEST)))
        if wrong.any():
            row, text = self.row_of(wrong)
            raise DatasetError(
                f"column {self.name!r} of {self.table} holds {text[:SHOWN]} in row {row}, which is infinite, "
                f"beyond {LARGEST:g} or nearer to 0 than {SMALLEST:g}; use another unit, or list it in 'drop'."
            )
        values = pd.Series(np.where(self.present, self.numbers, np.nan)[self.column.codes])
        integers = self.present.all() and self._whole and size.max() <= EXACT
        return values.astype(np.int64) if integers else values

    @property
    def _whole(self) -> bool:
        known = self.numbers[self.present]
        return bool((known == np.rint(known)).all())

    def as_values(self) -> pd.Series:
        """Categories: codes stay numbers where nothing of them is lost, True and False are booleans."""
        known = self.numbers[self.present]
        few = len(known) <= CLASSES and len(np.unique(known)) == len(known)  # as the texts 1.1 and 1.10 are not
        if self.numeric and not self.padded and (self._whole or few) and np.abs(known).max() <= EXACT:
            return self.as_numbers()
        bools = all(text in BOOLS for text in self.texts) and bool(self.texts)
        lookup = np.empty(len(self.column.texts), dtype=object)
        lookup[:] = [
            (BOOLS[text] if bools else text) if present else np.nan
            for text, present in zip(self.column.texts, self.present, strict=True)
        ]
        return pd.Series(lookup[self.column.codes], dtype=object)

    def _why_numbers(self) -> str:
        """What the numbers are, and how they are written."""
        if self.notation.date:
            hours = any(len(text) > len("2024-01-31") for text in self.texts)
            return says(self.notation) + ("; times of the day are left out" if hours else "")
        what, how = self._numbers_by_look(), says(self.notation, self._whole)
        return f"{what}, {how}" if how else what

    def _numbers_by_look(self) -> str:
        known = np.unique(self.numbers[self.present])
        if not self._whole:
            return "numbers"
        if set(known) == {0, 1}:
            return "0 and 1"
        if np.abs(known).max() > EXACT:
            return f"whole numbers beyond {EXACT:.0e}, which are not exact"
        rows = int(self.counts[self.present].sum())
        if like_an_id(self.name, known, rows):
            self.notices.append(
                f"{self.table}: column {self.name!r} holds a different whole number in every row; if it is a row "
                f"number or an id, list it in 'drop'."
            )
            return "whole numbers, all different: an id? then drop it"
        if self.padded:
            return "whole numbers, some with leading zeros: codes? then set kind: categorical"
        if self._dates_in_one(known) and all(len(text) == len("20240131") for text in self.texts):
            self.notices.append(
                f"{self.table}: column {self.name!r} holds whole numbers that are all dates, as {known[0]:.0f}; set "
                f"features.{self.name}.format='%Y%m%d', or a day later may be 8,870 units away."
            )
            return "whole numbers, all of them dates: then set format"
        if len(known) <= CODES:
            return f"{len(known)} different whole numbers: codes? then set kind: categorical"
        return "whole numbers"

    @staticmethod
    def _dates_in_one(known: np.ndarray) -> bool:
        """Whether whole numbers are days as 20240131, in 1900 to 2100."""
        if len(known) < FEW_DATES or known[0] < 19000101 or known[-1] > 21001231:
            return False
        texts = pd.Series(known).astype(np.int64).astype(str)
        return bool(pd.to_datetime(texts, format="%Y%m%d", errors="coerce").notna().all())


def target_values(cells: ColumnParser, regression: bool, named: bool) -> pd.Series:
    """A target in the type that its task needs; ``named`` says that its classes are listed."""
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
