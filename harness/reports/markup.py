"""Tables as Markdown, and numbers as they are printed."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from typing import Any

ARROWS = {"higher": "↑", "lower": "↓"}
DASH = "–"
UNESCAPED = re.compile(r"(?<!\\)\|")  # what ends a cell of a Markdown table


def markdown(head: Sequence[str], body: Iterable[Sequence[Any]], keys: int = 0) -> str:
    """A table in Markdown; the ``keys`` columns from the left, which say what a row is of, are marked ``:---``.

    >>> markdown(["a"], [["b|c"], ["d\\\\|e"]])
    '| a |\\n| --- |\\n| b\\\\|c |\\n| d\\\\|e |\\n'
    """
    lines = [head, [":---"] * keys + ["---"] * (len(head) - keys), *body]
    cells = ([UNESCAPED.sub(r"\|", str(cell)) for cell in line] for line in lines)
    return "\n".join("| " + " | ".join(line) + " |" for line in cells) + "\n"


def number(value: Any, decimals: int, error: Any = math.nan) -> str:
    """A number as tables show it, with its standard error in brackets; a dash for none.

    >>> number(-4844.351, 2, 575.93), number(float("nan"), 2)
    ('-4,844.35 (575.93)', '–')
    """
    if value is None or math.isnan(value):
        return DASH
    text = f"{round(float(value), decimals) + 0.0:,.{decimals}f}"  # NumPy's own rounding has 0.015 as 0.02
    return text if error is None or math.isnan(error) else f"{text} ({error:,.{decimals}f})"
