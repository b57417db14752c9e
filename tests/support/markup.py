"""The tables of a page, read as a browser would."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import NamedTuple

VOID = {"meta", "br", "img", "link", "path", "use", "rect", "circle"}


class Table(NamedTuple):
    """A table of a page: the nearest heading above it, and its rows by the label of each cell."""

    heading: str
    rows: list[dict[str, str]]


class Page(HTMLParser):
    """What a page has: elements in order, ids, what it loads, headings with their ids, and tables."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.attributes: list[tuple[str, dict[str, str | None]]] = []
        self.headings: list[str] = []
        self.tables: list[Table] = []
        self.columns: list[list[str]] = []
        self.bold: dict[str, list[tuple[str, str, str]]] = {}  # cells of tables by heading: first cell, label, word
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        known = dict(attrs)
        self.attributes.append((tag, known))
        if tag in VOID:
            return
        self.open.append(tag)
        if tag in {"h1", "h2", "h3", "h4"}:
            self.headings.append("")
        elif tag == "table":
            self.tables.append(Table(self.headings[-1].strip(), []))
            self.columns.append([])
        elif tag == "tr" and "tbody" in self.open:
            self.tables[-1].rows.append({})
        elif tag == "th":
            self.columns[-1].append("")
        elif tag == "td":
            label = known["data-label"] or ""
            assert label, "a cell without its heading"
            assert label not in self.tables[-1].rows[-1], f"two cells of a row are {label}"
            self.tables[-1].rows[-1][label] = ""

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] in {"h1", "h2", "h3", "h4"}:
            self.headings[-1] += data
        if "td" in self.open:
            row = self.tables[-1].rows[-1]
            last = next(reversed(row))
            row[last] += data
            if self.open[-1] == "b":
                cell = next(iter(row.values())), last, data.strip()
                self.bold.setdefault(self.tables[-1].heading, []).append(cell)
        elif "th" in self.open:
            self.columns[-1][-1] += data

    def all(self, attribute: str) -> list[str]:
        """An attribute of every element that has it."""
        return [known[attribute] or "" for _, known in self.attributes if attribute in known]

    def table(self, heading: str, label: str) -> dict[str, dict[str, str]]:
        """The rows of the first table below a heading that has a column, by the text of their first cell."""
        found = next(t for t in self.tables if t.heading == heading and any(label in row for row in t.rows))
        return {next(iter(row.values())): row for row in found.rows}
