"""The counterfactuals of a run as one CSV file or spreadsheet, for a person and an office."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from harness.core.errors import HarnessError
from harness.core.explanation import gap
from harness.core.gaps import MISSED, missing
from harness.core.notation import Notation
from harness.core.packages import install
from harness.core.space import Feature, Space
from harness.core.wording import scored
from harness.core.writing import replacing
from harness.store.run import StoredRun

NAME, SHEET = "counterfactuals.csv", "counterfactuals.xlsx"
MOST_ROWS = 1_048_575  # of a spreadsheet, beside the header
OURS = (
    "factual", "ce", "status", "verdict", "objective", "bound", "gap",
    "score_before", "score_after", "predicted_before", "predicted_after",
)  # fmt: skip

# A spreadsheet runs a cell that begins with one of these, also where it takes another delimiter for the file's own.
_TRIGGER = "[=+\\-@\t\r\n＝＋－＠]"
_RISKY = re.compile(f"(^|[,;|\t\r\n])([ ']*)(?={_TRIGGER})")
_WHOLE = re.compile(r"-?(0|[1-9]\d*)")  # 007 is a code
_NUMBER = re.compile(r"-?((0|[1-9]\d*)(\.\d+)?(e[-+]?\d+)?|inf)")
_COMMA = re.compile(r"-?((0|[1-9]\d*)(,\d+)?(e[-+]?\d+)?|inf)")
_ESCAPED = re.compile(f"(^|[,;|\t\r\n])'([ ']*)(?={_TRIGGER})")


@dataclass(frozen=True)
class Form:
    """How the file is written.

    Parameters
    ----------
    sep, decimal
        What separates cells, one character, and the decimal mark. With another ``sep`` than a comma the file begins
        with the mark of UTF-8, which offices look for.
    excel
        Whether ``counterfactuals.xlsx`` is written, too.

    Raises
    ------
    HarnessError
        For marks that do not fit, and without openpyxl where it is needed.
    """

    sep: str = ","
    decimal: str = "."
    excel: bool = False

    def __post_init__(self) -> None:
        if self.sep in {"tab", "\\t"}:
            object.__setattr__(self, "sep", "\t")
        if self.sep not in {",", ";", "\t", "|"}:
            raise HarnessError(f"export.sep={self.sep} does not fit; allowed: ',', ';', '|', tab.")
        if self.decimal not in {".", ","} or self.decimal == self.sep:
            beside = ", or ',' with another export.sep such as ';'"
            raise HarnessError(f"export.decimal={self.decimal} does not fit; allowed: '.'{beside}.")
        if not isinstance(self.excel, bool):
            raise HarnessError(f"export.excel={self.excel} does not fit; give true or false.")
        if self.excel:
            check_openpyxl("export.excel=true")


def check_openpyxl(what: str) -> None:
    """Raise ``HarnessError`` where openpyxl is not installed; ``what`` needs it."""
    if find_spec("openpyxl") is None:
        raise HarnessError(f"{what} needs openpyxl; install it by `{install('excel')}`.")


class _Comma(float):
    """A number that is written with a decimal comma, and without quotes."""

    def __str__(self) -> str:
        return float.__repr__(self).replace(".", ",")


def write(run: StoredRun, form: Form = Form()) -> Path:
    """Write ``counterfactuals.csv`` beside a run's answers, which the checker has judged.

    One row for each counterfactual asked for, with or without a point, after the factual's own as number 0. Its
    columns are ``OURS``, with an underscore behind a name that a feature has too, then the features. Numbers are
    written to the last bit, dates as the data write them; scores are as ``harness.core.wording.scored`` gives them.
    """
    space, classifier, (frame, targets) = run.space, run.classifier, run.factuals()
    verdicts = {(verdict["factual"], verdict["ce"]): verdict for verdict in run.verdicts()}
    rows = sorted(run.rows(), key=lambda row: (frame.index.get_loc(row["factual"]), row["ce"]))
    asked = frame.loc[list(dict.fromkeys(row["factual"] for row in rows))]
    origins = dict(zip(asked.index, asked.to_dict("records"), strict=True))
    there = [row for row in rows if row["row"] is not None and not verdicts[row["factual"], row["ce"]]["incoherent"]]
    before = dict(zip(asked.index, scored(classifier, asked, [targets[i] for i in asked.index]), strict=True))
    wanted = [targets[row["factual"]] for row in there]
    after = scored(classifier, space.frame(row["row"] for row in there), wanted)
    after_of = {(row["factual"], row["ce"]): pair for row, pair in zip(there, after, strict=True)}

    lines: list[list[Any]] = []
    header = [*unused(OURS, space.names), *space.names]
    for row in rows:
        identity, number = row["factual"], row["ce"]
        score, label = before[identity]
        if number == 1:
            values = origins[identity]
            lines.append([identity, 0, *[None] * 5, score, None, label, None, *_cells(space, values)])
        objective, bound = row["objective"], row["bound"]
        score_after, label_after = after_of.get((identity, number), (None, None))
        how = [row["status"], verdicts[identity, number]["verdict"], objective, bound, gap(objective, bound)]
        scores = [score, score_after, label, label_after]
        lines.append([identity, number, *how, *scores, *_cells(space, row["row"] or {})])
    path = run.path / NAME
    encoding = "utf-8" if form.sep == "," else "utf-8-sig"
    with replacing(path) as temporary, temporary.open("w", newline="", encoding=encoding) as file:
        table = csv.writer(file, delimiter=form.sep, quoting=csv.QUOTE_NONNUMERIC, lineterminator="\n")
        table.writerow(map(escape, header))
        table.writerows([_plain(value, form.decimal) for value in line] for line in lines)
    (run.path / SHEET).unlink(missing_ok=True)  # of earlier answers
    if form.excel:
        write_sheet(run.path / SHEET, pd.DataFrame(lines, columns=header, dtype=object))
    return path


def write_sheet(path: Path, frame: pd.DataFrame) -> None:
    """Write a table as an Excel file; texts as in the CSV, so that none is run as a formula.

    Raises
    ------
    HarnessError
        Without openpyxl, for more rows than a sheet holds, and where the file cannot be written.
    """
    check_openpyxl(path.name)
    if len(frame) > MOST_ROWS:
        raise HarnessError(f"{path.name} would have {len(frame):,} rows, and a sheet holds {MOST_ROWS:,}; use the CSV.")
    safe = pd.DataFrame([[_plain(value) for value in line] for line in frame.itertuples(index=False)], dtype=object)
    header = [escape(str(name)) for name in frame.columns]
    try:
        with replacing(path) as temporary, temporary.open("wb") as file:
            safe.to_excel(file, header=header, index=False, freeze_panes=(1, 0), engine="openpyxl")
    except OSError as fault:
        why = f"{path} cannot be written ({fault.strerror or fault})"
        raise HarnessError(f"{why}; close it where it is open, or give a file in a folder that exists.") from None


def _cells(space: Space, row: Mapping[str, Any]) -> list[Any]:
    """The values of all features: whole days as the dates that they are, gaps by their name; none of an empty row."""
    return [_cell(feature, row[feature.name]) if row else None for feature in space.features]


def _cell(feature: Feature, value: Any) -> Any:
    dates = feature.notation is not None and feature.notation.date
    return feature.text(value) if missing(value) or (dates and float(value).is_integer()) else value


def read(path: Path | str) -> pd.DataFrame:
    """Read such a file as it was meant: without the apostrophes that guard against spreadsheets, numbers exact.

    Where ``cell.json`` lies beside it, categories and classes are the dataset's own values, and dates the days that
    they stand for. What is empty is missing; so is a feature's gap.
    """
    path = Path(path)
    text = path.read_text(encoding="utf-8-sig")
    first = re.match(r'"[^"]*"(.)', text)
    sep = first[1] if first else ","
    header, *lines = (
        [unescape(cell) for cell in line] for line in csv.reader(io.StringIO(text, newline=""), delimiter=sep)
    )
    columns = dict(zip(header, map(list, zip(*lines, strict=True)), strict=True)) if lines else {n: [] for n in header}
    run, own = StoredRun(path.parent), {}
    if run.started:
        for feature in run.space.features:
            if feature.name in columns and feature.notation is not None and feature.notation.date:
                columns[feature.name] = [_days(text, feature.notation) for text in columns[feature.name]]
        own = {feature.name: feature.categories for feature in run.space.features if feature.categories}
        for feature in run.space.gaps:
            columns[feature.name] = ["" if text == MISSED else text for text in columns[feature.name]]
        own |= dict.fromkeys(header[len(OURS) - 2 : len(OURS)], tuple(run.meta["classes"]))
    return pd.DataFrame({name: _values(texts, own.get(name, ())) for name, texts in columns.items()})


def _days(text: str, notation: Notation) -> str:
    """The days that a date stands for, as text; other cells as they are."""
    days = notation.parse(text)
    return text if math.isnan(days) else str(int(days))


def _values(texts: Sequence[str], categories: Sequence[Any]) -> pd.Series:
    """Categories by their text; else numbers where all of them are numbers, else the texts."""
    if not categories:
        if all(_COMMA.fullmatch(text) for text in texts if text):
            texts = [text.replace(",", ".") for text in texts]
        for kind, pattern in ((int, _WHOLE), (float, _NUMBER)):
            if all(pattern.fullmatch(text) for text in texts if text):
                return pd.Series([kind(text) if text else None for text in texts])
    known = {str(value): value for value in categories}
    return pd.Series([known.get(text, text) if text else None for text in texts], dtype=object)


def escape(text: str) -> str:
    """Text that no spreadsheet takes for a formula: an apostrophe before what would begin one.

    >>> escape("=1+1"), escape("a;=1+1"), escape("1+1")
    ("'=1+1", "a;'=1+1", '1+1')
    """
    return _RISKY.sub(r"\1'\2", text)


def unescape(text: str) -> str:
    """The text that ``escape`` was given.

    >>> unescape("'=1+1")
    '=1+1'
    """
    return _ESCAPED.sub(r"\1\2", text)


def unused(names: Sequence[str], features: Sequence[str]) -> list[str]:
    """Names of columns beside features, with underscores behind those that features have."""
    found = []
    for name in names:
        while name in features:
            name += "_"
        found.append(name)
    return found


def _plain(value: Any, decimal: str = ".") -> Any:
    """What the writer puts down to the last bit: numbers as they are, all else as harmless text; nothing for None."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and decimal == "," and math.isfinite(value):
        return _Comma(value)
    if value is None or (isinstance(value, int | float) and not isinstance(value, bool)):
        return value
    return escape(str(value))
