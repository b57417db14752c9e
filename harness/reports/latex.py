"""Tables for a paper: LaTeX with booktabs and siunitx, of cells as tables of Markdown have them."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from harness.reports.markup import DASH, UNESCAPED

WIDEST, LONGEST = 7, 48  # columns and rows of a table that fits a page
PREAMBLE = r"% Load \usepackage{booktabs,graphicx} and \usepackage{siunitx} (version 3 or later)."
FITTED = r"\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%"  # as wide as a column at most
SMALL = r"\small\setlength{\tabcolsep}{3pt}\smallskip"
BOLD = r"\sisetup{reset-text-series=false, text-series-to-math=true}"  # or bold numbers come out light
SIGNS = {
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
    **{"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "`": r"\textasciigrave{}"},
    **{"<": "$<$", ">": "$>$", "|": "$|$", "·": r"$\cdot$", "×": r"$\times$", "−": "$-$", "±": r"$\pm$"},
    **{"≤": r"$\le$", "≥": r"$\ge$", "≠": r"$\ne$", "≈": r"$\approx$", "∞": r"$\infty$", "√": r"$\surd$"},
    **{"↑": r"$\uparrow$", "↓": r"$\downarrow$", "→": r"$\to$", "²": "$^2$", "³": "$^3$", "°": r"$^\circ$"},
    **{DASH: "--", "—": "---", "…": r"\dots{}", "‘": "'", "’": "'", "“": "''", "”": "''", "\u00a0": "~", "⁄": "/"},
    **{"ß": r"\ss{}", "ø": r"\o{}", "Ø": r"\O{}", "ł": r"\l{}", "Ł": r"\L{}", "æ": r"\ae{}", "å": r"\aa{}"},
}
WORDS = {"<=": r"$\le$", ">=": r"$\ge$", r"\|S\|": "$|S|$", r"\|": "$|$", "T_max": r"$T_{\max}$", "y*": "$y^*$"}
ACCENTS = {"GRAVE": "`", "ACUTE": "'", "CIRCUMFLEX": "^", "TILDE": "~", "DIAERESIS": '"', "CARON": "v", "CEDILLA": "c"}
GREEK = re.compile(
    r"GREEK (?:SMALL LETTER (?!OMICRON)(\w+)"
    r"|CAPITAL LETTER (GAMMA|DELTA|THETA|LAMDA|XI|PI|SIGMA|UPSILON|PHI|PSI|OMEGA))"
)
INLINE = re.compile(
    r"`(?P<code>[^`]*)`|\*\*(?P<bold>.+?)\*\*|(?<![\w*])\*(?P<stress>\w[^*]*?)\*(?!\w)|(?P<minus>(?<![\w.])-(?=\d))"
    + "|(?P<word>"
    + "|".join(map(re.escape, WORDS))
    + ")|(?P<sign>.)",
    flags=re.DOTALL,
)
_NUMBER = r"[-−]?\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?"
CELL = re.compile(
    rf"(?P<bold>\*\*)?(?P<value>{_NUMBER})(?: \((?P<error>{_NUMBER})\))?"
    rf"(?: \[(?P<low>{_NUMBER}), (?P<high>{_NUMBER})\])?(?(bold)\*\*)"
)


@dataclass(frozen=True)
class Tabular:
    """A table whose cells, head and caption are Markdown.

    Parameters
    ----------
    keys
        How many columns, from the left, say what a row is of: each part of a table that is split has them.
    """

    caption: str
    head: Sequence[str]
    body: Sequence[Sequence[str]]
    keys: int = 1


def document(name: str, tables: Sequence[Tabular], notes: Sequence[str]) -> str:
    """Tables of at most ``WIDEST`` columns and about ``LONGEST`` rows, wider and longer ones in parts; then notes.

    Labels are ``tab:name``, numbered where there are several. Notes are comments.
    """
    parts = [part for table in tables for part in _parts(table)]
    slug = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
    labels = [f"tab:{slug}-{place + 1}" if len(parts) > 1 else f"tab:{slug}" for place in range(len(parts))]
    pieces = [PREAMBLE, *(_table(part, label) for part, label in zip(parts, labels, strict=True))]
    return "\n".join([*pieces, *(f"% {tex(note)}" for note in notes)]) + "\n"


def of_markdown(title: str, text: str) -> tuple[list[Tabular], list[str]]:
    """The tables of a Markdown text, each under the title and its last heading, and the text's other lines.

    >>> (table,), notes = of_markdown("T", "## A\\n\\n| a | b |\\n| :--- | --- |\\n| c | 1 |\\n\\n- A note.")
    >>> table.caption, table.keys, table.body, notes
    ('T: A', 1, [['c', '1']], ['A note.'])
    """
    tables, notes, rows, heading = [], [], [], ""
    for line in [*text.splitlines(), ""]:
        if line.startswith("|"):
            rows.append([cell.strip() for cell in UNESCAPED.split(line.strip()[1:-1])])
            continue
        if rows:
            head, lines, *body = rows
            keys = max(sum(mark.startswith(":") for mark in lines), 1)
            tables.append(Tabular(f"{title}: {heading}" if heading else title, head, body, keys))
            rows = []
        if line.startswith("#"):
            heading = line.lstrip("# ")
        elif line.strip():
            notes.append(line.removeprefix("- "))
    return tables, notes


def tex(text: str) -> str:
    r"""A line of Markdown for LaTeX, in ASCII.

    >>> print(tex("`a_b` of Röber, ρ ≤ 5 %: **best** of *all*, x² − 1"))
    \texttt{a\_b} of R\"{o}ber, $\rho$ $\le$ 5 \%: \textbf{best} of \emph{all}, x$^2$ $-$ 1
    """
    return INLINE.sub(_inline, text)


def _inline(found: re.Match[str]) -> str:
    text = found[0]
    match found.lastgroup:
        case "code":
            return rf"\texttt{{{''.join(map(_sign, found['code']))}}}"
        case "bold":
            return rf"\textbf{{{tex(found['bold'])}}}"
        case "stress":
            return rf"\emph{{{tex(found['stress'])}}}"
        case "minus":
            return "$-$"
        case "word":
            return WORDS[text]
    return _sign(text)


def _sign(sign: str) -> str:
    """A character: as it is in ASCII, else its command; its code point where it has none."""
    if sign in SIGNS or sign.isascii():
        return SIGNS.get(sign, sign)
    if greek := GREEK.fullmatch(unicodedata.name(sign, "")):
        small, capital = (name and name.replace("LAMDA", "LAMBDA").lower() for name in greek.groups())
        return rf"$\{small or capital.capitalize()}$"
    base, *marks = list(unicodedata.normalize("NFKD", sign))
    kind = unicodedata.name(marks[0], "").removeprefix("COMBINING ").partition(" ")[0] if marks else ""
    if base.isascii() and kind in ACCENTS:
        return rf"\{ACCENTS[kind]}{{{base}}}"
    plain = "".join(_sign(part) for part in (base, *marks) if part.isascii() or part in SIGNS)
    return plain or f"U+{ord(sign):04X}"


def _parts(table: Tabular) -> Iterator[Tabular]:
    """A table in parts that fit a page: columns, then rows, which begin where the first column is not blank."""
    keys = min(table.keys, WIDEST - 1)
    places = range(keys, len(table.head))
    width = WIDEST - keys
    chunks = [list(places[start : start + width]) for start in range(0, len(places), width)] or [[]]
    starts = [0]
    for last, place in pairwise([*(p for p, row in enumerate(table.body) if row[0]), len(table.body)]):
        if place - starts[-1] > LONGEST and last > starts[-1]:
            starts.append(last)
    pieces = [(columns, rows) for columns in chunks for rows in pairwise([*starts, len(table.body)])]
    for count, (columns, (start, end)) in enumerate(pieces):
        kept = [*range(keys), *columns]
        part = f" (part {count + 1} of {len(pieces)})" if len(pieces) > 1 else ""
        body = [[row[place] for place in kept] for row in table.body[start:end]]
        yield Tabular(f"{table.caption}{part}", [table.head[place] for place in kept], body, keys)


def _table(table: Tabular, label: str) -> str:
    columns = [_column(list(cells)) for cells in zip(*table.body, strict=True)] or [("l", [])] * len(table.head)
    head = " & ".join(
        f"{{{tex(text)}}}" if spec.startswith("S") and text else tex(text)
        for text, (spec, _) in zip(table.head, columns, strict=True)
    )
    rows = zip(*(cells for _, cells in columns), strict=True)
    bold = any("bf" in cell for _, cells in columns for cell in cells)
    lines = [
        *(r"\begin{table}", r"\centering", rf"\caption{{{tex(table.caption)}}}", rf"\label{{{label}}}", SMALL),
        *([BOLD] if bold else []),
        *(FITTED, rf"\begin{{tabular}}{{{''.join(spec for spec, _ in columns)}}}"),
        *(r"\toprule", rf"{head} \\", r"\midrule"),
        *(("{}" if row[0].startswith(("[", "*")) else "") + " & ".join(row) + r" \\" for row in rows),
        *(r"\bottomrule", r"\end{tabular}}", r"\end{table}"),
    ]
    return "\n".join(lines)


def _column(cells: Sequence[str]) -> tuple[str, list[str]]:
    """A column's specification, and its cells: aligned at the decimal point where they are plain numbers."""
    found = [CELL.fullmatch(cell) for cell in cells]
    numbers = [match for match in found if match]
    if not numbers:
        return "l", [tex(cell) for cell in cells]
    signed = any(cell.startswith("+") for cell in cells)  # siunitx would drop the sign
    if signed or any(match["error"] or match["low"] for match in numbers):
        return "r", [_numbers(match) if match else tex(cell) for match, cell in zip(found, cells, strict=True)]
    values = [_plain(match["value"]) for match in numbers]
    wide = max(len(value.lstrip("-").partition(".")[0]) for value in values)
    deep = max(len(value.partition(".")[2]) for value in values)
    sign = "-" if any(value.startswith("-") for value in values) else ""
    form = "" if any("e" in value for value in values) else f"[table-format={sign}{wide}.{deep}]"
    shown = [
        (r"\bfseries " if match["bold"] else "") + _plain(match["value"])
        if match
        else f"{{{tex(cell)}}}"
        if cell
        else ""
        for match, cell in zip(found, cells, strict=True)
    ]
    return f"S{form}", shown


def _plain(value: str) -> str:
    return value.replace(",", "").replace("−", "-")


def _numbers(match: re.Match[str]) -> str:
    value, error, low, high = (
        rf"\num{{{_plain(match[name])}}}" if match[name] else "" for name in ("value", "error", "low", "high")
    )
    text = value + (f" ({error})" if error else "") + (f" [{low}, {high}]" if low else "")
    return rf"\textbf{{{text}}}" if match["bold"] else text
