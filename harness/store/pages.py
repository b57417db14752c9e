"""What the pages of a Parquet file say of themselves: its table of contents is whatever its writer wants it to be."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import pyarrow.parquet as pq

DEEPEST = 8  # structures within structures of a page's header
LONGEST = 10  # bytes of a number
# Types of Thrift's compact protocol: truth values, whole numbers (a page's are the second), and what else there is.
TRUTH, WHOLE, BINARY, LISTS, MAP, STRUCT = (1, 2), (4, 5, 6), 8, (9, 10), 11, 12
LENGTHS = {3: 1, 7: 8}  # of other types, in bytes
TYPE, SIZE, PACKED = 1, 2, 3  # fields of a page's header
# By the type of a page of data, the field that is its own header, and in that the field of the encoding; of the values.
DATA, VALUES = {0: (5, 2), 3: (8, 4)}, 1
BOUNDED = {0, 3}  # encodings of which no value takes more than the page has: plain, and of truth values


class Page(NamedTuple):
    """The bytes of a page once it is unpacked, and how many values it has; None where these may take more bytes."""

    size: int
    values: int | None


def pages(content: bytes, chunk: pq.ColumnChunkMetaData) -> Iterator[Page]:
    """The pages of a column chunk, as a reader meets them.

    Raises
    ------
    IndexError, KeyError, ValueError
        Where they are none.
    """
    place = chunk.data_page_offset
    if chunk.has_dictionary_page and 0 < chunk.dictionary_page_offset < place:
        place = chunk.dictionary_page_offset
    end = place + chunk.total_compressed_size
    while place < end:
        reader = _Compact(content, place)
        header = reader.struct()
        kind, size, packed = (_whole(header[field]) for field in (TYPE, SIZE, PACKED))
        place = reader.place + packed
        if place > len(content):
            raise ValueError("a page ends beyond the file")
        field, encoding = DATA.get(kind, (-1, -1))
        about = header.get(field)
        values = None
        if isinstance(about, dict) and _whole(about[encoding]) in BOUNDED:
            values = _whole(about[VALUES])
        yield Page(size, values)


def _whole(value: Any) -> int:
    if type(value) is not int or value < 0:
        raise ValueError("a page has no size")
    return value


class _Compact:
    """Whole numbers and structures of Thrift's compact protocol, by field; all else is passed over.

    Readers differ in what they make of a field that comes twice, or is of another type than they know: it is refused.
    """

    def __init__(self, content: bytes, place: int) -> None:
        self.content, self.place = content, place

    def struct(self, depth: int = 0) -> dict[int, Any]:
        """Its fields by number."""
        if depth > DEEPEST:
            raise ValueError("a page's header has no end")
        found: dict[int, Any] = {}
        field = 0
        while head := self._byte():
            field = field + (head >> 4) if head >> 4 else self._signed()
            if field in found:
                raise ValueError("a page's header has a field twice")
            found[field] = self._value(head & 15, depth)
        return found

    def _value(self, kind: int, depth: int) -> Any:
        if kind in TRUTH:
            return None
        if kind in WHOLE:
            value = self._signed()
            return value if kind == WHOLE[1] else None
        if kind == STRUCT:
            return self.struct(depth + 1)
        if kind in LISTS:
            head = self._byte()
            self._elements([head & 15], head >> 4 if head >> 4 < 15 else self._number(), depth)
        elif kind == MAP:
            if count := self._number():
                kinds = self._byte()
                self._elements([kinds >> 4, kinds & 15], count, depth)
        else:
            self._pass(self._number() if kind == BINARY else LENGTHS[kind])
        return None

    def _elements(self, kinds: Sequence[int], count: int, depth: int) -> None:
        if depth >= DEEPEST:
            raise ValueError("a page's header has no end")
        for _ in range(count):
            for kind in kinds:
                if kind in TRUTH:  # which take a byte here
                    self._pass(1)
                else:
                    self._value(kind, depth + 1)

    def _pass(self, length: int) -> None:
        self.place += length
        if self.place > len(self.content):
            raise IndexError("a page's header ends beyond the file")

    def _byte(self) -> int:
        self._pass(1)
        return self.content[self.place - 1]

    def _number(self) -> int:
        value = 0
        for shift in range(0, 7 * LONGEST, 7):
            byte = self._byte()
            value |= (byte & 127) << shift
            if byte < 128:
                return value
        raise ValueError("a number has no end")

    def _signed(self) -> int:
        value = self._number()
        return (value >> 1) ^ -(value & 1)
