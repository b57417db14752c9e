"""How a column writes its numbers: read from a text, and written again alike."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import ROUND_CEILING, ROUND_FLOOR, Context
from functools import lru_cache
from typing import Any

import numpy as np

ORIGIN = date(1970, 1, 1)  # dates are days since then
ISO = "%Y-%m-%d"
DIGITS = 6  # significant ones of a number for a reader
MOST = 17  # significant digits that tell any two doubles apart
_BLANKS = str.maketrans({"\xa0": " ", "\u202f": " ", "\u2009": " ", "’": "'", "−": "-"})
_ISO = re.compile(r"(\d{4}-\d{2}-\d{2})([T ]\d{2}:\d{2}.*)?", re.ASCII)


def number(value: Any, digits: int = DIGITS) -> str:
    """A value as text: numbers to six significant digits, or as many more as it takes up to ``digits``.

    Integers are written in full.

    >>> number(0.123456789), number(0.123456789, 8), number(0.1, 17)
    ('0.123457', '0.12345679', '0.1')
    """
    if isinstance(value, bool) or not isinstance(value, int | float | np.number):
        return str(value)
    real = float(value)
    if real.is_integer() and abs(real) < 1e15:
        return str(int(real))
    texts = (f"{real:.{count}g}" for count in range(DIGITS, digits))
    return next((text for text in texts if float(text) == real), f"{real:.{digits}g}")


def within(value: float, upwards: bool, digits: int = DIGITS) -> float:
    """The nearest number of some significant digits that is not less than a fraction, or not greater.

    >>> within(157.50000772, upwards=True), within(177.40000772, upwards=False), within(65.9, upwards=True)
    (157.501, 177.4, 65.9)
    """
    if not math.isfinite(value) or float(value).is_integer():
        return value
    context = Context(prec=digits, rounding=ROUND_CEILING if upwards else ROUND_FLOOR)
    return float(context.create_decimal(repr(float(value))))


@dataclass(frozen=True)
class Notation:
    """How the numbers of a column are written.

    Parameters
    ----------
    decimal
        The decimal mark.
    thousands
        What may stand between groups of three digits; empty for nothing.
    places
        Decimals that every number has.
    before, after
        What stands at a number, such as ``€ `` and `` %``, with the blank between; texts may lack that blank.
    date
        The format of dates, as ``datetime.strptime`` has it: the numbers are days since ``ORIGIN``. Empty: no dates.
    """

    decimal: str = "."
    thousands: str = ""
    places: int = 0
    before: str = ""
    after: str = ""
    date: str = ""

    def parse(self, text: str) -> float:
        """The number that a text stands for; NaN where it is not written in this notation.

        >>> Notation(",", ".", before="€ ").parse("€ 1.200,50"), Notation(after=" %").parse("13.2%")
        (1200.5, 13.2)
        >>> Notation(date="%d.%m.%Y").parse("02.01.1970")
        1.0
        """
        if self.date:
            return _days(text, self.date)
        match = _pattern(self).fullmatch(text.translate(_BLANKS))
        if match is None or (match["sign"] and match["inner"]):
            return math.nan
        digits = match["number"].replace(self.thousands, "") if self.thousands else match["number"]
        return float(match["sign"] + match["inner"] + digits.replace(self.decimal, "."))

    def text(self, value: float, digits: int = DIGITS) -> str:
        """A number in this notation, as ``number`` has it, or to as many decimals as every number of the column has.

        >>> Notation(",", ".", places=2, before="€ ").text(1187.5), Notation(date="%d.%m.%Y").text(31.0)
        ('€ 1.187,50', '01.02.1970')
        >>> Notation(",", ".", places=2, before="€ ").text(1234567.5), Notation(after=" kg").text(2345678.25)
        ('€ 1.234.567,50', '2345678 kg')
        """
        if self.date:
            try:
                return (ORIGIN + timedelta(days=round(value))).strftime(self.date)
            except (OverflowError, ValueError):  # beyond the years 1 to 9999, as the ends of regions may be
                return f"{number(value)} days"
        size = abs(float(value))
        if size != 0 and not 1e-4 <= size < 1e15:
            body = number(size, digits).replace(".", self.decimal)
        else:
            plain = number(size, digits)
            decimals = max(self.places, 0 if "e" in plain else len(plain.partition(".")[2]))
            whole, _, rest = f"{size:.{decimals}f}".partition(".")
            grouped = f"{int(whole):,}".replace(",", self.thousands)
            body = f"{grouped}{self.decimal}{rest}" if rest else grouped
        return f"{'-' if value < 0 else ''}{self.before}{body}{self.after}"


@lru_cache(maxsize=256)
def _pattern(notation: Notation) -> re.Pattern[str]:
    """The texts in a notation, with ``sign``, ``inner`` (a sign behind what stands before) and ``number``."""
    point, group = re.escape(notation.decimal), re.escape(notation.thousands)
    grouped = rf"[1-9]\d{{0,2}}(?:{group}\d{{3}})+|" if notation.thousands else ""
    body = rf"(?:(?:{grouped}\d+)(?:{point}\d*)?|{point}\d+)(?:[eE][-+]?\d{{1,5}})?"
    before, after = notation.before.strip(), notation.after.strip()
    ahead = rf"\s*{re.escape(before)}\s*" if before else ""
    many = after.isalpha() and len(after) > 2  # 1 year, 2 years
    unit = rf"{re.escape(after.removesuffix('s'))}s?" if many else re.escape(after)
    behind = rf"\s*{unit}" if after else ""
    inner = "[-+]?" if before else ""
    return re.compile(rf"(?P<sign>[-+]?){ahead}(?P<inner>{inner})(?P<number>{body}){behind}", re.ASCII)


def _days(text: str, form: str) -> float:
    """Days from ``ORIGIN`` to a date; of a time of the day that follows an ISO date, nothing."""
    if form == ISO:
        match = _ISO.fullmatch(text)
        text = match[1] if match else text
    try:
        return float((datetime.strptime(text, form).date() - ORIGIN).days)
    except ValueError:
        return math.nan
