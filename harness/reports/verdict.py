"""What a regenerated number says of the published one."""

from __future__ import annotations

import math
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import pandas as pd

NORMAL = 1.96  # standard errors of a 95 % interval
CLOSE = 0.25  # of the larger number: how far two may be apart that agree within their errors
NEAR = 0.1  # the same where no error is published
ENOUGH = 20  # questions, at most, that agreement takes; as many as the paper asked, where those are fewer
PRINTED = 2  # decimals that a published number has at least: a file does not tell 1 from 1.00

AS_PRINTED, AGREES, UNDECIDED, NOT_RUN = "as printed", "agrees", "undecided", "not run"
NO_ANSWER, UNASKED = "no answer", "not asked here"  # ``why`` has the latter where a row was not run
BETTER, WORSE, DIFFERS = "differs, ours better", "differs, ours worse", "differs"
MARKS = {
    AS_PRINTED: "=", AGREES: "≈", UNDECIDED: "?", BETTER: "▲", WORSE: "▼", DIFFERS: "≠", NO_ANSWER: "✗", NOT_RUN: "–",
}  # fmt: skip


def verdict(row: Mapping[str, Any], asked: int) -> str:
    """One of the words above.

    Two numbers agree where the 95 % interval of their difference holds 0 and it is at most a quarter of the larger (of
    a number without a published error: a tenth, whatever the interval), with as many questions as the paper asked, or
    20. Where the interval holds 0 but one of the others fails, there is one question, or the clock stopped a search of
    ours, it is undecided.

    Parameters
    ----------
    row
        ``published`` and ``ours``; where they are known ``published_se``, ``ours_se``, ``n`` (the questions behind
        ours), ``better`` (``higher`` or ``lower``), ``stopped`` (whether the clock ended ours before its answer was
        final), and ``why`` there is no number.
    asked
        Questions behind the published number.

    >>> verdict({"published": 0.85, "ours": 0.8512}, 30), verdict({"published": 4.0, "ours": 5.0, "better": "lower"}, 1)
    ('as printed', 'differs, ours worse')
    >>> row = {"published": 10.0, "published_se": 1.0, "ours": 12.0, "ours_se": 1.0, "n": 30}
    >>> verdict(row, 30), verdict(row | {"n": 5}, 30), verdict(row | {"ours": 12.9, "ours_se": 2.0}, 30)
    ('agrees', 'undecided', 'agrees')
    >>> verdict(row | {"ours": 14.0, "ours_se": 3.0}, 30), verdict(row | {"ours": 14.0}, 30)
    ('undecided', 'differs')
    >>> verdict(row | {"ours": 10.0, "stopped": True}, 30)
    'undecided'
    """
    published, ours = _number(row["published"]), _number(row["ours"])
    if missing(row["ours"]):
        return NOT_RUN if missing(row.get("why")) or row["why"] == UNASKED else NO_ANSWER
    if published is None or ours is None:
        return AS_PRINTED if str(row["published"]).strip() == str(row["ours"]).strip() else DIFFERS
    if marked(row, "stopped"):
        return UNDECIDED
    if rounds_to(ours, published):
        return AS_PRINTED
    if not missing(row.get("n")) and float(row["n"]) < min(asked, 2):
        return UNDECIDED
    gap = ours - published
    known = not missing(row.get("published_se"))
    errors = [float(row[name]) for name in ("published_se", "ours_se") if not missing(row.get(name))]
    within = abs(gap) <= NORMAL * math.hypot(*errors)
    close = abs(gap) <= (CLOSE if known else NEAR) * max(abs(ours), abs(published))
    if close and (within or not known):
        enough = missing(row.get("n")) or float(row["n"]) >= min(asked, ENOUGH)
        return AGREES if enough else UNDECIDED
    if within:
        return UNDECIDED
    better = row.get("better")
    if better not in ("higher", "lower"):
        return DIFFERS
    return BETTER if (gap > 0) == (better == "higher") else WORSE


def marked(row: Mapping[str, Any], what: str) -> bool:
    """Whether a row has something that is true or false, and it is true; of rows of other tables it is missing."""
    return not missing(row.get(what)) and bool(row[what])


def missing(value: Any) -> bool:
    """Whether there is no number, and no text."""
    return value is None or bool(pd.isna(value)) or str(value).strip() == ""


def rounds_to(ours: float, published: float) -> bool:
    """Whether a number is the published one, to the decimals that this has."""
    decimals = -int(Decimal(repr(published)).as_tuple().exponent) if math.isfinite(published) else 0
    return round(ours, max(decimals, PRINTED)) == published


def _number(value: Any) -> float | None:
    try:
        return float(value)
    except (TypeError, ValueError):
        return None
