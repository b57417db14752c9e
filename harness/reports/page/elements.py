"""Parts of the page as HTML: tables whose cells know their headings, names in a method's look, and Markdown."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from markupsafe import Markup, escape

from harness.evaluation.statistics import Estimate
from harness.reports.canvas import outline
from harness.reports.markup import UNESCAPED, digits
from harness.reports.page.charts import look

MANY = 12  # columns of a table that is set smaller
PICTURE = re.compile(r"!\[([^]]*)\]\((figures/[\w.-]+)\)")  # of the folder ``figures``, with its words
STROKES = {"-": "none", "--": "5 2", ":": "1.5 2", "-.": "5 2 1.5 2"}  # of lines, by Matplotlib's name


class Column(NamedTuple):
    """A column of a table on the page.

    Parameters
    ----------
    heading
        Above the column.
    number
        Whether it is set flush right.
    label
        Beside each cell where the page is too narrow for columns; by default the heading.
    note
        Below the heading.
    """

    heading: str
    number: bool = False
    label: str = ""
    note: str = ""


def table(columns: Sequence[Column], rows: Iterable[Sequence[str]]) -> Markup:
    """A table; where the page is narrow, each row becomes a block of labelled cells.

    Texts are escaped, those that are ``Markup`` stay as they are.
    """
    shapes = [Markup(' class="n"') if column.number else Markup("") for column in columns]
    labels = [column.label or column.heading for column in columns]
    heads = [
        Markup('<th scope="col"{}>{}{}</th>').format(
            shape, column.heading, Markup("<br><small>{}</small>").format(column.note) if column.note else ""
        )
        for column, shape in zip(columns, shapes, strict=True)
    ]
    lines = (
        Markup("").join(
            Markup('<td{} data-label="{}">{}</td>').format(shape, label, _cell(text))
            for shape, label, text in zip(shapes, labels, row, strict=True)
        )
        for row in rows
    )
    body = Markup("\n").join(Markup("<tr>{}</tr>").format(line) for line in lines)
    head = Markup("").join(heads)
    shape = "wide many" if len(columns) >= MANY else "wide"
    text = '<div class="{}"><table><thead><tr>{}</tr></thead><tbody>{}</tbody></table></div>'
    return Markup(text).format(shape, head, body)


def _cell(text: str) -> Markup:
    """One element, as a stacked row sets each cell's label and this side by side; nothing of an empty cell."""
    return Markup("<span>{}</span>").format(text) if text else Markup("")


class Names:
    """Methods by name, each with a sample of its line and marker in every figure."""

    def __init__(self, methods: Sequence[str]) -> None:
        self.looks = look(methods)
        self._places = {name: place for place, name in enumerate(methods)}

    def __call__(self, method: str) -> Markup:
        """A method's name after its sample; a name that is no method's as it is."""
        if method not in self._places:
            return escape(method)
        sample = '<svg class="look" viewBox="0 0 26 10" aria-hidden="true"><use href="#look-{}"/></svg>{}'
        return Markup(sample).format(self._places[method], method)

    @property
    def samples(self) -> Markup:
        """What the samples on a page refer to; not seen itself."""
        symbols = Markup("").join(self._sample(method) for method in self._places)
        return Markup('<svg class="samples" aria-hidden="true"><defs>{}</defs></svg>').format(symbols)

    def marker(self, method: str, width: float = 1.0, x: float = 0.0, y: float = 0.0) -> str:
        """Its marker as a path of SVG, about so wide, around a point."""
        polygons = (width * polygon + (x, y) for polygon in outline(self.looks[method]["marker"]))
        return " ".join("M" + " L".join(f"{x:.2f},{y:.2f}" for x, y in polygon) + "Z" for polygon in polygons)

    def _sample(self, method: str) -> Markup:
        colour, dash = self.looks[method]["color"], STROKES[self.looks[method]["linestyle"]]
        line = Markup('<path d="M0,5 H26" stroke="{}" stroke-width="1.6" stroke-dasharray="{}"/>').format(colour, dash)
        mark = Markup('<path d="{}" fill="{}"/>').format(self.marker(method, 8, 13, 5), colour)
        return Markup('<g id="look-{}">{}{}</g>').format(self._places[method], line, mark)


def markdown(text: str, names: Names) -> Markup:
    """Markdown as ``harness.tables`` writes it: headings, paragraphs, tables, code, bold and italics."""
    out: list[Markup] = []
    for block in filter(None, re.split(r"\n\s*\n", text.strip())):
        lines = block.splitlines()
        if lines[0].startswith("|"):
            head = _split(lines[0])
            rows = ([_inlined(cell, names) for cell in _split(line, len(head))] for line in lines[2:])
            out.append(table([Column(re.sub(r"[*`]", "", cell)) for cell in head], rows))
        elif lines[0].startswith("#"):
            out.append(Markup("<h4>{}</h4>").format(_inlined(lines[0].lstrip("# "), names)))
        else:
            out += (Markup('<p class="note">{}</p>').format(_inlined(line.removeprefix("- "), names)) for line in lines)
    return Markup("").join(out)


def _split(line: str, most: int = 0) -> list[str]:
    """The cells of a row, the last of ``most`` with whatever follows it."""
    return [cell.strip().replace("\\|", "|") for cell in UNESCAPED.split(line.strip()[1:-1], max(most - 1, 0))]


def _inlined(text: str, names: Names) -> Markup:
    """Code, bold, italics and pictures of the folder ``figures`` alone; code that is a method's name, in its look."""

    def code(found: re.Match[str]) -> str:
        word = Markup(found[1]).unescape()
        return str(names(word)) if word in names.looks else f"<code>{found[1]}</code>"

    bold = re.sub(r"\*\*(.+?)\*\*", r"<b>\1</b>", re.sub(r"`(.+?)`", code, str(escape(text))))
    pictured = PICTURE.sub(r'<img src="\2" alt="\1" loading="lazy">', bold)
    return Markup(re.sub(r"\*(.+?)\*", r"<i>\1</i>", pictured))


def count(value: float) -> str:
    """A number of three digits, a whole one in full; a dash for none.

    >>> count(0.12345), count(1234.0), count(float("nan"))
    ('0.123', '1234', '–')
    """
    return f"{value:.0f}" if float(value).is_integer() else digits(value)


def interval(estimate: Estimate) -> Markup:
    """A number with its interval, ``0.93 (0.80 to 0.98)``, which breaks into two lines before the brackets alone."""
    if math.isnan(estimate.low):
        return Markup(digits(estimate.value))
    text = f"({digits(estimate.low)} to {digits(estimate.high)})"
    return Markup('{} <span class="ci">{}</span>').format(digits(estimate.value), text)
