"""Tables as Markdown and LaTeX, and numbers as they are printed."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from typing import Any

ARROWS = {"higher": "↑", "lower": "↓"}
DASH = "–"
UNESCAPED = re.compile(r"(?<!\\)\|")  # what ends a cell of a Markdown table


def markdown(head: Sequence[str], body: Iterable[Sequence[Any]]) -> str:
    """A table in Markdown."""
    lines = [head, ["---"] * len(head), *body]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines) + "\n"


def latex(text: str) -> str:
    r"""The tables of a Markdown text, for LaTeX with the package booktabs; sentences become comments.

    >>> print(latex("| a | b_c ↑ |\n| --- | --- |\n| **1** | 50% |\n\n- A note."), end="")
    \begin{tabular}{ll}
    \toprule
    a & b\_c $\uparrow$ \\
    \midrule
    \textbf{1} & 50\% \\
    \bottomrule
    \end{tabular}
    % A note.
    """
    out: list[str] = []
    rows: list[str] = []
    for line in [*text.splitlines(), ""]:
        if line.startswith("|"):
            rows.append(line)
            continue
        if rows:
            head, _, *body = ([_tex(cell.strip()) for cell in UNESCAPED.split(row.strip()[1:-1])] for row in rows)
            lines = [" & ".join(cells) + r" \\" for cells in (head, *body)]
            out += [rf"\begin{{tabular}}{{{'l' * len(head)}}}", r"\toprule", lines[0], r"\midrule", *lines[1:]]
            out += [r"\bottomrule", r"\end{tabular}"]
            rows = []
        if line.strip():
            out.append(f"% {line.lstrip('-# ')}")
    return "\n".join(out) + "\n"


def _tex(text: str) -> str:
    for sign in "&%$#_{}":
        text = text.replace(sign, f"\\{sign}")
    for sign, command in {
        "↑": r"$\uparrow$",
        "↓": r"$\downarrow$",
        DASH: "--",
        "≤": r"$\le$",
        "≥": r"$\ge$",
        r"\|": r"$|$",
    }.items():
        text = text.replace(sign, command)
    return re.sub(r"\*\*(.+?)\*\*", r"\\textbf{\1}", text)


def number(value: Any, decimals: int, error: Any = math.nan) -> str:
    """A number as tables show it, with its standard error in brackets; a dash for none.

    >>> number(-4844.351, 2, 575.93), number(float("nan"), 2)
    ('-4,844.35 (575.93)', '–')
    """
    if value is None or math.isnan(value):
        return DASH
    text = f"{round(value, decimals) + 0.0:,.{decimals}f}"
    return text if error is None or math.isnan(error) else f"{text} ({error:,.{decimals}f})"
