"""A reader of the tables in a file of LaTeX, strict about what an author could not compile."""

from __future__ import annotations

import re
from typing import NamedTuple


class Read(NamedTuple):
    """A table of a file: cells as they stand between the ampersands."""

    caption: str
    label: str
    columns: list[str]
    head: list[str]
    rows: list[list[str]]


def read(text: str) -> list[Read]:
    """The tables of a file, whose braces, dollars, environments and numbers of cells are asserted to fit."""
    assert text.isascii()
    assert text.startswith("% Load \\usepackage{booktabs,graphicx} and \\usepackage{siunitx}")
    body = "\n".join(line for line in text.splitlines() if not line.startswith("%"))
    bare = body.replace("\\\\", "").replace("\\{", "").replace("\\}", "").replace("\\$", "")
    assert bare.count("{") == bare.count("}")
    assert bare.count("$") % 2 == 0
    assert re.findall(r"\\begin\{(\w+)\}", body) == ["table", "tabular"] * body.count(r"\begin{table}")
    found = [_table(part) for part in re.findall(r"\\begin\{table\}(.*?)\\end\{table\}", body, flags=re.DOTALL)]
    assert body.count(r"\end{tabular}") == body.count(r"\end{table}") == len(found)
    assert len({table.label for table in found}) == len(found)
    return found


def _table(text: str) -> Read:
    caption, label = (re.search(rf"\\{name}\{{(.*)\}}$", text, flags=re.MULTILINE) for name in ("caption", "label"))
    spec = re.search(r"\\begin\{tabular\}\{(.*)\}$", text, flags=re.MULTILINE)
    assert caption
    assert label
    assert spec
    columns = re.findall(r"[lr]|S(?:\[table-format=-?\d+\.\d+\])?", spec[1])
    assert "".join(columns) == spec[1]
    assert len(columns) <= 7
    head = re.search(r"\\toprule\n(.*) \\\\\n\\midrule", text)
    body = re.search(r"\\midrule\n(.*)\\bottomrule", text, flags=re.DOTALL)
    assert head
    assert body
    lines = [re.split(r"(?<!\\) ?& ?", line.removesuffix(" \\\\")) for line in [head[1], *body[1].splitlines()]]
    assert {len(line) for line in lines} == {len(columns)}, lines
    for line in lines[1:]:
        for column, cell in zip(columns, line, strict=True):
            known = re.fullmatch(r"(\\bfseries )?-?[\d.]+(e-?\d+)?|\{.+\}|", cell)
            assert not column.startswith("S") or known, cell
            assert column.startswith("S") or "\\bfseries" not in cell
    return Read(caption[1], label[1], columns, lines[0], lines[1:])


def numbers(cell: str) -> list[float]:
    """The numbers of a cell: of a column of numbers its own, else those that siunitx prints."""
    plain = cell.removeprefix("\\bfseries ")
    found = re.findall(r"\\num\{(.*?)\}", cell) or re.findall(r"^-?\d[\d.e-]*$", plain)
    return [float(number) for number in found]
