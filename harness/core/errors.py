"""Errors that a user can mend: one sentence that says what came, what is allowed and what to do."""

from __future__ import annotations

import difflib
import errno
from collections.abc import Iterable, Mapping

FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS}  # nothing more can be stored


class HarnessError(Exception):
    """Base of every error whose message is meant for the user; shown without a traceback."""


class DatasetError(HarnessError):
    """The data, or the description of it, does not fit."""


class UnsupportedError(HarnessError):
    """A model and a method that cannot work together."""


MANY, SHOWN = 100, 10  # names beyond which no list is read, and how many of such are shown


def choices(wanted: object, allowed: Iterable[object]) -> str:
    """Say which names exist, nearest first; of very many the first.

    >>> choices("agee", ["age", "sex"])
    "did you mean 'age'? Allowed: age, sex"
    """
    names = [str(name) for name in allowed]
    near = difflib.get_close_matches(str(wanted), names, n=1)
    listed = ", ".join(names if len(names) <= MANY else [*names[:SHOWN], f"and {len(names) - SHOWN} more"])
    return f"did you mean {near[0]!r}? Allowed: {listed}" if near else f"allowed: {listed}"


def lacking(what: str, name: str, columns: Iterable[object], needed: Iterable[str]) -> str:
    """That rows have not a column that they need.

    >>> lacking("people.csv", "age", ["agee", "sex"], ["age", "sex"])
    "people.csv has no column 'age'; its columns are agee, sex, and those that it needs age, sex."
    """
    own, all_needed = ", ".join(map(str, columns)) or "none", ", ".join(needed)
    return f"{what} has no column {name!r}; its columns are {own}, and those that it needs {all_needed}."


def check_choices(settings: object, allowed: Mapping[str, Iterable[object]]) -> None:
    """Refuse values that attributes must not have.

    Raises
    ------
    ValueError
        For the first attribute whose value is none of those allowed.
    """
    for name, values in allowed.items():
        if (value := getattr(settings, name)) not in values:
            raise ValueError(f"{name} is {value!r}; {choices(value, values)}.")


def short(fault: BaseException) -> str:
    """The first line of an error's message, or the error's type where it has none."""
    lines = str(fault).strip().splitlines()
    return lines[0].strip().rstrip(".")[:200] if lines else type(fault).__name__
