"""Tables are read by what their pages say: of a table of contents that says less, a few bytes would become many."""

from __future__ import annotations

import io
import random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from harness.core.errors import HarnessError
from harness.store import tabled
from harness.store.pages import pages

LONG = "x" * 300_000


def file_of(values: list[Any], **options: Any) -> bytes:
    file = io.BytesIO()
    plain = {"compression": "zstd", "use_dictionary": False, "store_schema": False}  # with statistics in its headers
    pq.write_table(pa.table({"run": pa.array(values)}), file, **(plain | options))
    return file.getvalue()


def chunk_of(content: bytes) -> pq.ColumnChunkMetaData:
    return pq.ParquetFile(io.BytesIO(content)).metadata.row_group(0).column(0)


def with_contents(content: bytes, old: bytes, new: bytes) -> bytes:
    """A file whose table of contents, at its end, has other bytes in places of equal length."""
    assert len(old) == len(new)
    start = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    assert old in content[start:]
    return content[:start] + content[start:].replace(old, new)


def number(value: int, length: int = 0) -> bytes:
    """A number of Thrift's compact protocol, in so many bytes at least."""
    value, made = value << 1, bytearray()
    while value > 127 or len(made) + 1 < length:
        made.append(value & 127 | 128)
        value >>= 7
    return bytes([*made, value])


@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize(
    "values", [["a", None, LONG] * 50, [1.5] * 9000, [True, False, None] * 11, [None] * 7, list(range(40_000))]
)
def test_pages_are_as_large_as_the_chunk_says(values: list[Any], version: str) -> None:
    """But for their headers, which are smaller than 100 bytes each; several pages have all values together."""
    content = file_of(values, data_page_version=version, data_page_size=100_000)
    found, chunk = list(pages(content, chunk_of(content))), chunk_of(content)
    assert sum(page.values or 0 for page in found) == chunk.num_values == len(values)
    stated = chunk.total_uncompressed_size - sum(page.size for page in found)
    assert 0 < stated < 100 * len(found)
    table, size = tabled.opened(content, 10**9)
    assert table.column("run").to_pylist() == values
    assert size == sum(page.size for page in found) + tabled.CELL * len(values)


def test_a_table_of_contents_that_states_less_is_not_believed() -> None:
    content = file_of([LONG])
    old = number(chunk_of(content).total_uncompressed_size)
    small = with_contents(content, old, number(100, len(old)))
    assert chunk_of(small).total_uncompressed_size == 100
    with pytest.raises(HarnessError, match=r"a table of it would have 300,0\d\d bytes, and 10,000 are allowed"):
        tabled.opened(small, 10_000)


@pytest.mark.parametrize(
    ("options", "old", "new"),
    [
        ({"use_dictionary": True}, bytes([0x35, 0, 6, 16]), bytes([0x35, 0, 6, 0])),
        ({"column_encoding": {"run": "DELTA_BYTE_ARRAY"}}, bytes([0x25, 6, 14]), bytes([0x25, 6, 0])),
    ],
    ids=["dictionary", "prefixes"],
)
def test_what_a_table_of_contents_hides_is_found(options: dict[str, Any], old: bytes, new: bytes) -> None:
    """Both repeat a long text for a few bytes more."""
    content = file_of([LONG] * 500, **options)
    with pytest.raises(HarnessError, match=r"is written with [A-Z_]+, of which a few bytes may become many"):
        tabled.opened(content, 10**9)
    hidden = with_contents(content, old, new)
    assert set(chunk_of(hidden).encodings) <= tabled.ENCODINGS
    with pytest.raises(HarnessError, match="is written with a hidden encoding, of which a few bytes may become many"):
        tabled.opened(hidden, 10**9)


def test_a_field_that_comes_twice_is_refused() -> None:
    """Readers take the one or the other: after the size another one of a page, of another type, that is small."""
    content = file_of([f"{n}" * 40 for n in range(9000)], write_statistics=False)
    chunk, start = chunk_of(content), chunk_of(content).data_page_offset
    size = number(next(pages(content, chunk)).size)
    place = content.index(size, start) + len(size)
    again = bytes([6, 4]) + number(100)  # field 2 as a number of 64 bits
    longer = content[:place] + again + content[place:]
    old = number(chunk.total_compressed_size)
    longer = with_contents(longer, old, number(chunk.total_compressed_size + len(again), len(old)))
    with pytest.raises(ValueError, match="has a field twice"):
        tabled.opened(longer, 10_000)


@pytest.mark.parametrize(
    "header",
    [
        bytes([0x19, 0xF3]) + b"\xff" * 8 + b"\x0f",  # field 1, a list of 2^60 bytes
        bytes([0x1B]) + b"\xff" * 8 + b"\x0f" + bytes([0x33]),  # a map of as many
        bytes([0x18]) + b"\xff" * 8 + b"\x0f",  # a text
        bytes([0x19]) + b"\x19" * 5000,  # lists of lists
        b"\x1c" * 5000,  # structures within structures
        b"\x15" + b"\xff" * 5000,  # a number
    ],
    ids=["list", "map", "text", "lists", "structures", "number"],
)
def test_a_header_comes_to_an_end(header: bytes) -> None:
    content = file_of([1])
    chunk = chunk_of(content)
    with pytest.raises((ValueError, IndexError)):
        list(pages(content[: chunk.data_page_offset] + header, chunk))


def test_pages_have_as_many_values_as_the_table_of_contents_says() -> None:
    """Of nothing but gaps a page takes a few bytes, however many it has."""
    content = file_of([None] * 1000 + ["a"])
    for count in (1, 1001 * 2):
        other = with_contents(content, number(1001), number(count, 2))
        with pytest.raises((HarnessError, OSError, ValueError)):  # or the library itself finds it
            tabled.opened(other, 10**9)


def test_other_bytes_are_no_pages() -> None:
    """Some headers with other bytes are read, as others; none takes for ever, or fails in a way that is not named."""
    content = file_of(list(range(20)))
    chunk, draw = chunk_of(content), random.Random(0)
    for _ in range(5000):
        other = bytearray(content)
        for place in draw.sample(range(4, 40), draw.choice((1, 3))):
            other[place] = draw.randrange(256)
        try:
            list(pages(bytes(other), chunk))
        except (IndexError, KeyError, ValueError):
            continue
