"""Bytes of a CSV of unknown origin become texts by column, or one sentence on what is wrong. Executes nothing."""

from __future__ import annotations

import codecs
import csv
import hashlib
import io
import re
import stat
import unicodedata
from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from harness.core.errors import DatasetError

MEGABYTES = 200  # of a file, unless it is set otherwise
COLUMNS = 5000  # of a table, and of a table when encoded
FIELD = 100_000  # characters in one cell
DELIMITERS = (";", "\t", "|", ",")  # those that are looked for; the comma last, which may be a decimal mark
NAMED = {"tab": "\t", "\\t": "\t", "comma": ",", "semicolon": ";", "pipe": "|"}
# The words that pandas reads as missing, so that a file means the same here and there.
NA = (
    "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN", "<NA>", "N/A", "NA", "NULL",
    "NaN", "None", "n/a", "nan", "null",
)  # fmt: skip
MAGIC = {
    b"PK\x03\x04": "is a spreadsheet or a zip archive",
    b"\x1f\x8b": "is compressed by gzip",
    b"PAR1": "is a Parquet file",
    b"%PDF": "is a PDF",
    b"\xd0\xcf\x11\xe0": "is a spreadsheet",
}
MARKS = {  # of encodings, at the start; the longer ones first
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
SHOWN_AS = {",": "','", ";": "';'", "\t": "tabs", "|": "'|'"}
SAMPLE = 1 << 16  # characters to look for the delimiter in
RECORDS = 100  # lines of them
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")


@dataclass(frozen=True)
class Form:
    """How a file writes its table. What is None is found out.

    Parameters
    ----------
    sep
        One character between the cells.
    decimal
        ``.`` or ``,``.
    thousands
        One character between groups of digits; None where there is none.
    encoding
        A name that Python knows.
    na
        Texts that stand for a missing value, beside the empty cell.
    names
        Column names of a file without a header line.
    megabytes
        Files that are larger are refused.
    """

    sep: str | None = None
    decimal: str | None = None
    thousands: str | None = None
    encoding: str | None = None
    na: tuple[str, ...] = NA
    names: tuple[str, ...] | None = None
    megabytes: float = MEGABYTES


@dataclass(frozen=True, eq=False)
class Column:
    """Cells of a column, without the blanks around them: ``texts[codes[row]]``; int32, shape (rows,)."""

    codes: np.ndarray
    texts: tuple[str, ...]

    def first(self, code: int) -> int:
        """The first row that holds a text."""
        return int(np.argmax(self.codes == code))


@dataclass(frozen=True, eq=False)
class Table:
    """A file's columns by name, all equally long, and how they were read.

    Parameters
    ----------
    form
        The given one, completed by what was found; ``decimal`` is left to the reader of the numbers.
    notices
        What the user should know of how the file was read, one sentence each.
    """

    columns: dict[str, Column]
    rows: int
    form: Form
    sha256: str
    notices: tuple[str, ...]


def read_table(path: Path, form: Form = Form(), what: str | None = None, least: int = 2) -> Table:
    """Read a regular file as a table of texts.

    Parameters
    ----------
    what
        How the file is called in errors; its name unless given.
    least
        Columns it must have.

    Raises
    ------
    DatasetError
        If it is no file, too large, no text, or no table with a header line.
    """
    what = what or path.name
    content = read_file(path, form.megabytes, "max_megabytes")
    notices: list[str] = []
    text = decoded(what, content, form, notices)
    sep = form.sep or _delimiter(text, form.names)
    sep = NAMED.get(sep, sep)
    if form.sep is None and sep != ",":
        notices.append(f"{what}: the cells are separated by {SHOWN_AS[sep]}.")
    columns, rows = _columns(what, _records(what, text, sep), form.names, sep, least, notices)
    sha256 = hashlib.sha256(content).hexdigest()
    return Table(columns, rows, replace(form, sep=sep), sha256, tuple(notices))


def read_file(path: Path, megabytes: float, setting: str) -> bytes:
    """Content of a regular file, or of a link to one, of limited size.

    Raises
    ------
    DatasetError
        For folders, devices and pipes (which may never end), files that cannot be read, and those that are too large.
    """
    try:
        found = path.stat()
        if stat.S_ISDIR(found.st_mode):
            raise DatasetError(f"{path} is a folder; give the path of a CSV file in it.")
        if not stat.S_ISREG(found.st_mode):
            raise DatasetError(f"{path} is a device or a pipe; give the path of a regular file.")
        most = int(megabytes * 1e6)
        with path.open("rb") as file:
            content = file.read(most + 1)
    except FileNotFoundError:
        where = "" if path.is_absolute() else f"; relative paths are relative to {Path.cwd()}, where the command runs"
        raise DatasetError(f"there is no file {path}{where}.") from None
    except (OSError, ValueError, MemoryError, OverflowError) as fault:
        why = fault.strerror if isinstance(fault, OSError) else str(fault)
        raise DatasetError(f"{str(path)!r} cannot be read ({why}); give the path of a readable file.") from None
    if len(content) > most:
        raise DatasetError(f"{path} is larger than {megabytes:g} MB; raise '{setting}', or give fewer rows.")
    return content


def decoded(what: str, content: bytes, form: Form, notices: list[str]) -> str:
    """The text of a file: its mark's encoding, else UTF-8, else Western European.

    Raises
    ------
    DatasetError
        For an empty file, one in another encoding than was set, and one that is no text.
    """
    if not content.strip():
        raise DatasetError(f"{what} is empty; give a file with a header line and rows.")
    for magic, is_ in MAGIC.items():
        if content.startswith(magic):
            raise DatasetError(f"{what} {is_}, not a CSV file; save or unpack it as CSV.")
    marked = next((name for mark, name in MARKS.items() if content.startswith(mark)), None)
    encoding = form.encoding or marked or "utf-8"
    try:
        text = content.decode(encoding)
    except UnicodeError as fault:
        if form.encoding or marked:
            raise DatasetError(f"{what} is not in {encoding} ({_reason(fault)}); set another 'encoding'.") from None
        if b"\x00" in content:
            raise DatasetError(f"{what} holds NUL bytes, so it is no plain text; save it as CSV in UTF-8.") from None
        encoding = "cp1252" if not set(content) & {0x81, 0x8D, 0x8F, 0x90, 0x9D} else "latin-1"
        text = content.decode(encoding)
        notices.append(f"{what}: it is not in UTF-8, and was read as {encoding}; set 'encoding' where that is wrong.")
    except (LookupError, ValueError, TypeError) as fault:
        raise DatasetError(f"there is no encoding {encoding!r} ({_reason(fault)}); such as utf-8, cp1252.") from None
    text = composed(text.removeprefix("\ufeff"))
    if strange := _CONTROL.search(text):
        line = text.count("\n", 0, strange.start()) + 1
        raise DatasetError(
            f"{what} holds the control character {strange[0]!r} in line {line}, so it is no plain text; save it in "
            f"UTF-8, or set its 'encoding' (such as utf-16-le)."
        )
    if not text.strip():
        raise DatasetError(f"{what} is empty; give a file with a header line and rows.")
    return text


def composed(value: Any) -> Any:
    """A text, or all in a list or mapping, with one spelling of letters with accents: macOS has another than most."""
    if isinstance(value, str):
        return unicodedata.normalize("NFC", value)
    if isinstance(value, Mapping):
        return {composed(key): composed(each) for key, each in value.items()}
    return [composed(each) for each in value] if isinstance(value, list | tuple) else value


def _reason(fault: Exception) -> str:
    return fault.reason if isinstance(fault, UnicodeDecodeError) else " ".join(str(fault).split())


def _parsed(text: str, sep: str) -> Iterator[tuple[int, list[str]]]:
    """Number of the last line, and cells, of each record that is not blank."""
    lines = csv.reader(io.StringIO(text, newline=""), delimiter=sep, strict=True, skipinitialspace=not sep.isspace())
    for record in lines:
        if len(record) > 1 or (record and record[0].strip()):
            yield lines.line_num, record


def _delimiter(text: str, names: Sequence[str] | None) -> str:
    """The separator that cuts the first lines into the most even rows, more than one cell each; else the comma.

    Of equals one that cuts into as many cells as there are ``names``, then the one with more cells.
    """
    best, chosen = (0.0, False, 0), ","
    for sep in DELIMITERS:
        widths: list[int] = []
        try:
            for _, record in _parsed(text[:SAMPLE], sep):
                widths.append(len(record))
                if len(widths) == RECORDS:
                    break
        except csv.Error:  # the sample may end within quotes
            pass
        if widths and widths[0] > 1:
            even = sum(width == widths[0] for width in widths) / len(widths)
            merit = (even, widths[0] == len(names or ()), widths[0])
            if merit > best:
                best, chosen = merit, sep
    return chosen


def _records(what: str, text: str, sep: str) -> Iterator[tuple[int, list[str]]]:
    before = csv.field_size_limit(FIELD)
    try:
        yield from _parsed(text, sep)
    except csv.Error as fault:
        why = {
            "unexpected end of data": "a quote that opens a cell is never closed",
            f"field larger than field limit ({FIELD})": f"a cell has more than {FIELD:,} characters, or a quote that "
            f"opens it is never closed",
        }.get(str(fault), f"quotes do not fit, {fault}")
        raise DatasetError(
            f"{what} is no CSV file: {why}; quote a cell as a whole, and double the quotes in it."
        ) from None
    finally:
        csv.field_size_limit(before)


def _columns(
    what: str,
    records: Iterator[tuple[int, list[str]]],
    given: Sequence[str] | None,
    sep: str,
    least: int,
    notices: list[str],
) -> tuple[dict[str, Column], int]:
    """The columns by name, and the number of rows."""
    if given is None:
        first = next(records, None)
        if first is None:
            raise DatasetError(f"{what} is empty; give a file with a header line and rows.")
        header = [" ".join(name.split()) for name in first[1]]
    else:
        header = [" ".join(str(name).split()) for name in given]
    if len(header) > COLUMNS:
        raise DatasetError(f"{what} has {len(header)} columns; allowed are {COLUMNS}.")
    where = "the header line" if given is None else "names"
    columns, rows = _coded(what, records, len(header), sep, where)
    return _kept(what, header, columns, least, notices), rows


def _coded(
    what: str, records: Iterator[tuple[int, list[str]]], width: int, sep: str, where: str
) -> tuple[list[Column], int]:
    """The cells by column, and the number of rows; ``where`` says what gave the ``width``."""
    codes = [array("i") for _ in range(width)]
    known: list[dict[str, int]] = [{} for _ in range(width)]  # code by cell as it stands
    texts: list[dict[str, int]] = [{} for _ in range(width)]  # code by cell without blanks
    rows = 0
    for line, record in records:
        if len(record) != width:
            more = "more" if len(record) > width else "fewer"
            raise DatasetError(
                f"{what} has {len(record)} cells in line {line}, {more} than the {width} of {where}; quote cells "
                f"that hold {SHOWN_AS.get(sep, repr(sep))}, or set 'sep' to what separates them."
            )
        rows += 1
        for cell, numbers, seen, stripped in zip(record, codes, known, texts, strict=True):
            code = seen.get(cell)
            if code is None:
                code = seen[cell] = stripped.setdefault(cell.strip(), len(stripped))
            numbers.append(code)
    if not rows:
        raise DatasetError(f"{what} has no rows, only a header line; give one line for each example.")
    columns = [
        Column(np.array(numbers, dtype=np.int32), tuple(seen)) for numbers, seen in zip(codes, texts, strict=True)
    ]
    return columns, rows


def _kept(
    what: str, header: Sequence[str], columns: Sequence[Column], least: int, notices: list[str]
) -> dict[str, Column]:
    """The columns by name, without those that programs add by habit: an empty last one, and a count of the rows."""
    kept: dict[str, Column] = {}
    for number, (name, column) in enumerate(zip(header, columns, strict=True)):
        if not name and column.texts == ("",):
            continue  # every line ends in a separator
        if not name and number == 0 and _counts(column):
            notices.append(f"{what}: the first column has no name and counts the rows; it is left out.")
            continue
        if not name:
            raise DatasetError(
                f"column {number + 1} of {what} has no name; name it in the header line, or give all 'names'."
            )
        if name in kept:
            raise DatasetError(f"{what} has two columns named {name!r}; rename one in the header line.")
        kept[name] = column
    if len(kept) < least:
        raise DatasetError(
            f"{what} has one column only, {next(iter(kept), '')!r}, and a target and a feature are needed; if its "
            f"cells are separated by something else than {', '.join(SHOWN_AS.values())}, set 'sep'."
        )
    return kept


def _counts(column: Column) -> bool:
    """Whether the cells are 0, 1, 2, ... or 1, 2, 3, ..."""
    start = column.texts[0]
    return (
        start in {"0", "1"}
        and all(text == str(int(start) + i) for i, text in enumerate(column.texts))
        and bool((column.codes == np.arange(len(column.codes))).all())
    )
