"""Tables as Markdown, and numbers as they are printed."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from typing import Any

import pandas as pd

from harness.core.tolerances import VALUE_TIE
from harness.evaluation.export import escape

ARROWS = {"higher": "↑", "lower": "↓"}
DASH = "–"
UNESCAPED = re.compile(r"(?<!\\)\|")  # what ends a cell of a Markdown table
LARGE = 1e6  # from which on numbers have exponents


def markdown(head: Sequence[str], body: Iterable[Sequence[Any]], keys: int = 0) -> str:
    """A table in Markdown; the ``keys`` columns from the left, which say what a row is of, are marked ``:---``.

    >>> markdown(["a"], [["b|c"], ["d\\\\|e"]])
    '| a |\\n| --- |\\n| b\\\\|c |\\n| d\\\\|e |\\n'
    """
    lines = [head, [":---"] * keys + ["---"] * (len(head) - keys), *body]
    cells = ([UNESCAPED.sub(r"\|", str(cell)) for cell in line] for line in lines)
    return "\n".join("| " + " | ".join(line) + " |" for line in cells) + "\n"


def noted(text: str, notes: Iterable[str]) -> str:
    """A text in Markdown, and notes below it as a list.

    >>> noted("| a |\\n", ["A note."])
    '| a |\\n\\n- A note.\\n'
    """
    return f"{text}\n" + "".join(f"- {note}\n" for note in notes)


def number(value: Any, decimals: int, error: Any = math.nan) -> str:
    """A number as tables show it, with its standard error in brackets; a dash for none.

    >>> number(-4844.351, 2, 575.93), number(float("nan"), 2)
    ('-4,844.35 (575.93)', '–')
    """
    if value is None or math.isnan(value):
        return DASH
    text = f"{round(float(value), decimals) + 0.0:,.{decimals}f}"  # NumPy's own rounding has 0.015 as 0.02
    return text if error is None or math.isnan(error) else f"{text} ({error:,.{decimals}f})"


def figure(value: float) -> str:
    """A number of three decimals, and 1 only where it is 1; a dash for none.

    >>> figure(0.1234), figure(-0.0001), figure(0.9996), figure(1.0)
    ('0.123', '0.000', '0.999', '1.000')
    """
    return number(short_of_one(value), 3)


def short_of_one(value: float) -> float:
    """A number that three decimals do not round up to 1."""
    return 0.999 if 0.999 < value < 1 - VALUE_TIE else value


def digits(value: float, most: int = 3) -> str:
    """A number to so many digits, up to a million in full, and 1 only where it is 1; a dash for none.

    >>> [digits(value) for value in (0.12345, 1234.4, 0.9996, -0.0, 2e6, float("nan"))]
    ['0.123', '1234', '0.999', '0', '2e+06', '–']
    >>> digits(120.4, 2)
    '120'
    """
    if math.isnan(value):
        return DASH
    text = f"{value + 0.0:.{most}g}"
    if "e+" in text and abs(value) < LARGE:
        return f"{value:.0f}"
    return f"0.{'9' * most}" if text == "1" and value < 1 - VALUE_TIE else text


def share(value: float) -> str:
    """A share to two decimals, of one that is nearly all or nearly none to three digits; a dash for none.

    >>> share(1.0), share(0.5), share(0.996), share(0.9999), share(0.004), share(0.0)
    ('1.00', '0.50', '0.996', '0.999', '0.004', '0.00')
    """
    text, exact = number(value, 2), digits(value)
    return exact if (text == "1.00" and exact != "1") or (text == "0.00" and value > VALUE_TIE) else text


def csv_of(frame: pd.DataFrame) -> str:
    """A table as a CSV file; texts so that no spreadsheet runs them as a formula.

    >>> csv_of(pd.DataFrame({"method": ["=1+1"], "n": [12]}))
    "method,n\\n'=1+1,12\\n"
    """
    return frame.map(lambda value: escape(value) if isinstance(value, str) else value).to_csv(index=False)
