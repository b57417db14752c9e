"""In which notation each column of a CSV writes its numbers or dates; what can be read in two ways is not guessed."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from harness.core.errors import DatasetError
from harness.core.notation import ISO, ORIGIN, Notation
from harness.core.space import Kind
from harness.data.reader import Form

OF_VALUES = (Kind.BINARY, Kind.ORDINAL, Kind.CATEGORICAL)
READING = ("decimal", "thousands", "format")  # attributes of a column that say how it is written
MARKS = tuple(  # decimal mark, and what groups digits; the plainest first
    (decimal, thousands) for thousands in ("", ".", ",", " ", "'") for decimal in (".", ",") if thousands != decimal
)
DATES = (ISO, "%Y/%m/%d", "%Y.%m.%d", "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y", "%m-%d-%Y")
BETWEEN = {".": "points", ",": "commas", " ": "blanks", "'": "apostrophes"}
SHOWN = 40  # characters of a cell in a sentence
LONGEST_UNIT = 12  # characters
UNITS = 5  # different ones above which texts that begin with numbers are codes
_DATE = re.compile(r"\d{4}([-/.])\d{1,2}\1\d{1,2}([T ]\d{2}:\d{2}.*)?|\d{1,2}([-/.])\d{1,2}\3\d{2,4}", re.ASCII)
_CURRENCY = r"(?:[A-Z]{0,2}[$€£¥₹₩₽₺]|EUR|USD|GBP|CHF|JPY|CNY|INR|CAD|AUD|SEK|NOK|DKK|PLN)"
_BLANK = "[ \xa0\u202f\u2009]"
_AT_A_NUMBER = re.compile(
    rf"[-+−]?(?P<before>(?:{_CURRENCY}{_BLANK}*)?)[-+−]?[\d.,](?:[\d.,'’\xa0\u202f\u2009 ]*\d)?[.,]?(?:[eE][-+]?\d+)?"
    rf"(?P<after>(?:{_BLANK}*[^\s\d.,+'’-]\D{{0,{LONGEST_UNIT}}}(?:(?<=[m^])[23])?)?)"
)


@dataclass(frozen=True)
class Reading:
    """How a column may be read.

    Parameters
    ----------
    notation
        The one way; None where its cells are texts.
    others
        Where the marks can be read in two ways, also the second; ``example`` is a cell that tells them apart.
    decides
        Whether the cells themselves say which decimal mark the file has.
    """

    notation: Notation | None = None
    others: tuple[Notation, ...] = ()
    example: str = ""
    decides: bool = False


def looks_like_dates(texts: Sequence[str]) -> bool:
    """Whether more than half of the texts are dates by their look."""
    return 2 * sum(_DATE.fullmatch(text) is not None for text in texts) > len(texts)


def date_formats(texts: Sequence[str]) -> list[Notation]:
    """The notations in which all texts are dates, without those that mean the same; of a year's last digits none.

    Where there is none, the one in which more than half of them are, and two others fewer.
    """
    found: dict[tuple[float, ...], Notation] = {}
    read = {form: [Notation(date=form).parse(text) for text in texts] for form in DATES}
    for form, values in read.items():
        if not any(map(math.isnan, values)):
            found.setdefault(tuple(values), Notation(date=form))
    return list(found.values()) or _most(texts, [Notation(date=form) for form in DATES])


def _most(texts: Sequence[str], notations: Sequence[Notation]) -> list[Notation]:
    """The notation in which more than half of the texts are written, the first of equals; none where none is."""
    counts = [sum(not math.isnan(notation.parse(text)) for text in texts) for notation in notations]
    best = max(counts, default=0)
    return [notations[counts.index(best)]] if 2 * best > len(texts) else []


def reading(texts: Sequence[str], given: Mapping[str, Any], form: Form) -> Reading:
    """How a column of numbers may be read.

    Parameters
    ----------
    texts
        Its different cells that are no missing value.
    given
        What the column's settings say: ``decimal``, ``thousands``.
    form
        What the file's settings say.
    """
    before, after = _units(texts)
    if before is None:
        return Reading()
    decimal, thousands = given.get("decimal", form.decimal), given.get("thousands", form.thousands)
    marks = MARKS if thousands is None else [(mark, thousands) for mark in ".," if mark != thousands]
    found: list[tuple[Notation, list[float]]] = []
    for mark, group in marks:
        if decimal in {None, mark}:
            notation = Notation(mark, group, before=before, after=after)
            values = _values(texts, notation)
            if values is not None:
                found.append((notation, values))
    ways = [pair for place, pair in enumerate(found) if all(pair[1] != other for _, other in found[:place])]
    if not ways:
        tried = [Notation(mark, group, before=before, after=after) for mark, group in marks if decimal in {None, mark}]
        return Reading(next(iter(_most(texts, tried)), None))
    marked = any("." in text or "," in text for text in texts)
    same = len({notation.decimal for notation, _ in found}) == 1
    example = ""
    if len(ways) > 1:
        example = next(text for text, *values in zip(texts, *(v for _, v in ways), strict=True) if len({*values}) > 1)
    return Reading(found[0][0], tuple(notation for notation, _ in ways), example, marked and same and len(ways) == 1)


def _values(texts: Sequence[str], notation: Notation) -> list[float] | None:
    """The numbers of all texts; None where one is none."""
    values = []
    for text in texts:
        values.append(notation.parse(text))
        if math.isnan(values[-1]):
            return None
    return values


def _units(texts: Sequence[str]) -> tuple[str | None, str]:
    """What stands before and behind the number in more than half of the texts, the commoner way of blanks.

    None where there is no such unit.
    """
    found: dict[tuple[str, str], dict[tuple[str, str], int]] = {}  # by unit, how often each way of blanks occurs
    for text in texts:
        if (match := _AT_A_NUMBER.fullmatch(text)) is not None:
            ends = match["before"], match["after"]
            ways = found.setdefault((ends[0].strip(), _one_of_many(ends[1].strip())), {})
            ways[ends] = ways.get(ends, 0) + 1
    most = max(found.values(), key=lambda ways: sum(ways.values()), default={})
    if 2 * sum(most.values()) <= len(texts):
        return None, ""
    return max(most, key=lambda ends: (most[ends], ends[1].endswith("s")))


def _one_of_many(unit: str) -> str:
    return unit.removesuffix("s") if unit.isalpha() and len(unit) > 2 else unit


def notations(
    name: str, texts: Mapping[str, Sequence[str]], entries: Mapping[str, Mapping[str, Any]], form: Form
) -> tuple[dict[str, Notation | None], dict[str, tuple[str, str]], str]:
    """How each column is written.

    Parameters
    ----------
    texts
        The different cells of each column that are no missing value.
    entries
        Attributes of columns as they are set.

    Returns
    -------
    By column its notation, None where its cells are texts; for each column of dates that cannot be read why not, and
    what to set; and the file's decimal mark.

    Raises
    ------
    DatasetError
        For a column that can be read in two ways, and one that is not written as its settings say.
    """
    found: dict[str, Notation | None] = {}
    unread: dict[str, tuple[str, str]] = {}
    numbers: dict[str, Reading] = {}
    for feature, cells in texts.items():
        entry = entries.get(feature, {})
        if entry.get("kind") in OF_VALUES:
            found[feature] = None
        elif "format" in entry:
            found[feature] = stated_dates(name, feature, cells, entry["format"])
        elif looks_like_dates(cells):
            ways = date_formats(cells)
            found[feature] = ways[0] if ways else None
            if len(ways) != 1:
                unread[feature] = _unread(name, feature, cells, ways)
        else:
            numbers[feature] = reading(cells, entry, form)
            if numbers[feature].notation is None and ("decimal" in entry or "thousands" in entry):
                raise DatasetError(
                    f"column {feature!r} of {name} holds {cells[0][:SHOWN]!r}, which is no number as its settings say; "
                    f"correct features.{feature}.decimal and thousands, or set features.{feature}.kind=categorical."
                )
    marks = {each.notation.decimal for each in numbers.values() if each.decides and each.notation is not None}
    usual = form.decimal or (marks.pop() if len(marks) == 1 else None)
    for feature, each in numbers.items():
        found[feature] = _settled(name, feature, each, texts[feature], usual)
    return found, unread, usual or "."


def _unread(name: str, feature: str, cells: Sequence[str], ways: Sequence[Notation]) -> tuple[str, str]:
    """Why a column of dates cannot be read, and what to set."""
    if ways:
        why, formats = "of which day and month cannot be told apart", " or ".join(repr(way.date) for way in ways)
    elif all(re.fullmatch(r"(\d{1,2}\D){2}\d{2}", cell) for cell in cells):
        why, formats = "of years in two digits", "'%d.%m.%y' or the like"
    elif all(re.fullmatch(r"\S+[T ]\d{2}:\d{2}", cell) for cell in cells):
        why, formats = "with the time of the day", "'%Y/%m/%d %H:%M' or the like"
    else:
        why, formats = "not all written in one way", ""
    remedy = f"set features.{feature}.format to {formats}" if formats else "write all of them alike"
    return f"{name}: column {feature!r} holds dates such as {cells[0][:SHOWN]!r}, {why}", f"{remedy} to have days"


def _settled(name: str, feature: str, found: Reading, texts: Sequence[str], usual: str | None) -> Notation | None:
    """The notation of a column; ``usual`` is the decimal mark of the file's other columns, where they agree on one.

    Raises
    ------
    DatasetError
        For a column whose marks can be read in two ways, with the setting that decides.
    """
    if found.notation is None:
        return None
    ways = [notation for notation in found.others if usual in {None, notation.decimal}] or list(found.others)
    if len(ways) > 1:
        one, other = ways[:2]
        text = found.example
        raise DatasetError(
            f"column {feature!r} of {name} can be read in two ways: {text[:SHOWN]!r} is {one.parse(text):.10g} or "
            f"{other.parse(text):.10g}; set features.{feature}.decimal to {one.decimal!r} or {other.decimal!r}."
        )
    notation = ways[0] if len(found.others) > 1 else found.notation
    if len(found.others) == 1 and usual is not None and notation.decimal != usual and notation.thousands != usual:
        plain = replace(notation, decimal=usual)  # of numbers without a decimal mark
        notation = plain if _values(texts, plain) is not None else notation
    return replace(notation, places=_places(texts, notation))


def _places(texts: Sequence[str], notation: Notation) -> int:
    """Decimals that every number has."""
    counts = set()
    for text in texts:
        rest = re.match(r"\d*", text.partition(notation.decimal)[2])
        counts.add(len(rest[0]) if rest is not None and "e" not in text.lower() else 0)
    return counts.pop() if len(counts) == 1 else 0


def stated_dates(name: str, feature: str, texts: Sequence[str], form: str) -> Notation:
    """The notation of dates in a stated format.

    Raises
    ------
    DatasetError
        For the first cell that is no such date.
    """
    notation = Notation(date=form)
    for text in texts:
        if math.isnan(notation.parse(text)):
            raise DatasetError(
                f"column {feature!r} of {name} holds {text[:SHOWN]!r}, which is no date of the format {form}; correct "
                f"features.{feature}.format, or list the column in 'drop'."
            )
    return notation


def is_format(value: Any) -> bool:
    """Whether a value is a format of dates that gives back each date that it writes."""
    if not isinstance(value, str) or not 0 < len(value) <= SHOWN:
        return False
    days = [datetime(year, month, day) for year, month, day in ((1999, 12, 31), (2004, 2, 3), (2021, 10, 4))]
    try:
        return all(datetime.strptime(day.strftime(value), value).date() == day.date() for day in days)
    except (ValueError, UnicodeError):
        return False


def says(notation: Notation, whole: bool = False) -> str:
    """A notation in a few words, of ``whole`` numbers without the decimal mark; nothing for plain numbers.

    >>> says(Notation(",", ".", after=" %"))
    'in %, decimal comma, points between thousands'
    >>> says(Notation(date="%d.%m.%Y"))
    'dates (DD.MM.YYYY), as days since 1970-01-01'
    """
    if form := notation.date:
        for directive, letters in (("%Y", "YYYY"), ("%y", "YY"), ("%m", "MM"), ("%d", "DD")):
            form = form.replace(directive, letters)
        return f"dates ({form}), as days since {ORIGIN}"
    parts = [f"in {(notation.before + notation.after).strip()}"] if notation.before or notation.after else []
    parts += ["decimal comma"] if notation.decimal == "," and not whole else []
    if notation.thousands:
        parts.append(f"{BETWEEN.get(notation.thousands, repr(notation.thousands))} between thousands")
    return ", ".join(parts)


def unlike(texts: Sequence[str]) -> str:
    """Two of a column's numbers that are not written alike; nothing for other texts."""
    matches = [_AT_A_NUMBER.fullmatch(text) for text in texts]
    found: dict[tuple[str, str], str] = {}
    for match in matches:
        if match is None:
            return ""
        found.setdefault((match["before"].strip(), _one_of_many(match["after"].strip())), match[0])
    shown = list(found.values()) if len(found) > 1 else list(texts)
    return " and ".join(f"{text[:SHOWN]!r}" for text in shown[:2]) if len(found) <= UNITS and shown[1:] else ""
