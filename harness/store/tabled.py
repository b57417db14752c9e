"""Records (JSON lines, a JSON object, rows of a CSV) of many files as one Parquet table, and back to the same bytes."""

from __future__ import annotations

import contextlib
import csv
import io
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from harness.core.errors import HarnessError
from harness.store.pages import pages

Record = dict[str, Any]  # by name, in the order of its file

RUN, FORM = "run", "form"  # columns beside those of the records: whose a record is, and its names in order
ABOUT = b"ce-harness"  # in the table's metadata: the lists of names that FORM counts, and the columns held as JSON
LEVEL, PAGE = 19, 1 << 24  # of zstd; bytes of a page, which is compressed as a whole
CELL = 16  # bytes that a value takes at least once it is read, be it none
ENCODINGS = {"PLAIN", "RLE", "BIT_PACKED"}  # with these, sizes and numbers of values say what they take
TYPES = ((bool, pa.bool_()), (int, pa.int64()), (float, pa.float64()), (str, pa.string()))


class Form(NamedTuple):
    """How the bytes of a file become records, and back."""

    read: Callable[[bytes], list[Record]]
    write: Callable[[Sequence[Record]], bytes]


def _sound(content: bytes) -> Iterator[tuple[bytes, Record]]:
    """The JSON lines of a file with their records; one that was cut short is dropped, as by every reader."""
    for line in content.splitlines(keepends=True):
        with contextlib.suppress(ValueError):
            yield line, json.loads(line)


def _cells(content: bytes) -> list[Record]:
    head, *rows = csv.reader(io.StringIO(content.decode(), newline=""))
    return [dict(zip(head, map(_cell, row), strict=True)) for row in rows]


def _cell(text: str) -> Any:
    """A cell as a number, where that is written as it was; an empty one is None."""
    for kind in (int, float):
        try:
            if str(value := kind(text)) == text:
                return value
        except ValueError:
            continue
    return text or None


def _sheet(records: Sequence[Record]) -> bytes:
    file = io.StringIO(newline="")
    writer = csv.writer(file, lineterminator="\n")
    if records:
        writer.writerow(records[0])
    writer.writerows(record.values() for record in records)
    return file.getvalue().encode()


LINES = Form(
    lambda content: [record for _, record in _sound(content)],
    lambda records: "".join(json.dumps(record) + "\n" for record in records).encode(),
)
WHOLE = Form(lambda content: [json.loads(content)], lambda records: json.dumps(records[0], indent=1).encode())
SHEET = Form(_cells, _sheet)


def records_of(content: bytes, form: Form) -> list[Record] | None:
    """The records of a file that a table gives back to the last byte (but for a torn line); None of others."""
    try:
        found = form.read(content)
        kept = b"".join(line for line, _ in _sound(content))
        same = form.write(found) in (content, kept)
        return found if same and all(isinstance(r, dict) and not {RUN, FORM} & r.keys() for r in found) else None
    except (ValueError, LookupError, csv.Error):
        return None


def parquet(runs: Mapping[str, Sequence[Record]]) -> bytes:
    """The records of some runs as a Parquet file: a column a name, ``run``, and ``form``.

    A column whose values have several types holds them as JSON. No column has a dictionary, so that the size that the
    file states is the size that it takes to read.
    """
    forms: dict[tuple[str, ...], int] = {}
    columns: dict[str, list[Any]] = {RUN: [], FORM: []}
    count = 0
    for run, records in runs.items():
        for record in records:
            for name in record.keys() - columns.keys():
                columns[name] = []
            for name, values in columns.items():
                values.extend([None] * (count - len(values)))
                if name in record:
                    values.append(record[name])
            columns[RUN].append(run)
            columns[FORM].append(forms.setdefault(tuple(record), len(forms)))
            count += 1
    order = [RUN, FORM, *dict.fromkeys(name for form in forms for name in form)]
    made = {name: _column(columns[name] + [None] * (count - len(columns[name]))) for name in order}
    about = {"forms": [list(form) for form in forms], "json": [name for name in order if made[name][1]]}
    return written(pa.table({name: values for name, (values, _) in made.items()}), about)


def written(table: pa.Table, about: Mapping[str, Any]) -> bytes:
    """A table as a Parquet file, with what is to be known about it."""
    file = io.BytesIO()
    options = {"compression": "zstd", "compression_level": LEVEL, "use_dictionary": False, "data_page_size": PAGE}
    with pq.ParquetWriter(file, table.schema, **options, write_statistics=False, store_schema=False) as writer:
        writer.write_table(table)
        writer.add_key_value_metadata({ABOUT: json.dumps(about)})
    return file.getvalue()


def _column(values: list[Any]) -> tuple[pa.Array, bool]:
    """The values as an array, and whether it holds them as JSON."""
    kinds = {type(value) for value in values if value is not None}
    for kind, type_ in TYPES:
        if kinds == {kind}:
            with contextlib.suppress(pa.ArrowException, OverflowError, UnicodeError):
                return pa.array(values, type_, from_pandas=False), False
    return pa.array([None if value is None else json.dumps(value) for value in values], pa.string()), True


def opened(content: bytes, most: int) -> tuple[pa.Table, int]:
    """The table of a Parquet file of at most ``most`` bytes unpacked, and how many these are, as its pages say.

    Raises
    ------
    HarnessError
        If it is larger, or has pages whose size says nothing of what they become.
    """
    about = pq.ParquetFile(io.BytesIO(content)).metadata
    groups = [about.row_group(number) for number in range(about.num_row_groups)]
    size = 0
    for group in groups:
        for chunk in map(group.column, range(group.num_columns)):
            found = list(pages(content, chunk))
            encodings = set(chunk.encodings) - ENCODINGS
            if encodings or any(page.values is None for page in found):
                odd = min(encodings, default="a hidden encoding")
                raise HarnessError(f"a table of it is written with {odd}, of which a few bytes may become many")
            if not group.num_rows == chunk.num_values == sum(page.values or 0 for page in found):
                raise HarnessError("a table of it has other numbers of values than it states")
            size += sum(page.size for page in found) + CELL * chunk.num_values
    if size > most:
        raise HarnessError(f"a table of it would have {size:,} bytes, and {most:,} are allowed")
    return pq.read_table(io.BytesIO(content), use_threads=False), size


def records(table: pa.Table) -> dict[str, list[Record]]:
    """What ``parquet`` was given: records by run."""
    about = json.loads(table.schema.metadata[ABOUT])
    columns = {name: table.column(name).to_pylist() for name in table.schema.names}
    for name in about["json"]:
        columns[name] = [None if value is None else json.loads(value) for value in columns[name]]
    found: dict[str, list[Record]] = {}
    for place, (run, form) in enumerate(zip(columns[RUN], columns[FORM], strict=True)):
        found.setdefault(run, []).append({name: columns[name][place] for name in about["forms"][form]})
    return found
