"""A sentence of a paper that numbers can decide."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from harness.core.tolerances import COST_TIE

Numbers = Mapping[str, pd.DataFrame]
HOLDS, FAILS, OPEN = "holds", "does not hold", "not tested enough"


@dataclass(frozen=True)
class Verdict:
    """Whether a claim holds in the settings at hand, how many these are, and the number behind it.

    ``refuted``: by one of them, whatever those say that are lacking. ``fewer``: the number is of settings, too, that do
    not count, as fewer people were asked in them than in the paper.
    """

    holds: bool
    settings: int
    text: str
    refuted: bool = False
    fewer: bool = False


@dataclass(frozen=True)
class Claim:
    """A sentence of a paper that numbers can decide.

    Parameters
    ----------
    sentence
        What the paper claims, as a checkable sentence.
    place
        Where it does.
    settings
        Of how many settings (rows, data sets, steps) it speaks: with fewer it is not decided.
    decide
        The verdict, from the numbers by table.
    instead
        What stands here for that of which the paper speaks, which leaves the claim open; empty where it is the same.
    """

    sentence: str
    place: str
    settings: int
    decide: Callable[[Numbers], Verdict]
    instead: str = ""


def decided(claim: Claim, numbers: Numbers) -> tuple[str, str]:
    """One of the words above, and the number behind it."""
    found = claim.decide(numbers)
    if claim.instead and found.settings:
        return OPEN, f"of {claim.instead}: {found.text}"
    if found.settings < claim.settings and not found.refuted:
        number = f": {found.text}" if found.settings or found.fewer else ""
        return OPEN, f"{found.settings} of {claim.settings} settings{number}"
    return (HOLDS if found.holds else FAILS), found.text


def wide(numbers: Numbers, tables: Sequence[str], measure: str, side: str = "ours", least: int = 0) -> pd.DataFrame:
    """One measure of some tables: a row a setting, a column a method; settings of fewer factuals are left out.

    Parameters
    ----------
    tables
        Names; the keys of all are the same, and the last key is ``method``.
    side
        ``ours`` or ``published``.
    least
        How many factuals have to be asked.
    """
    parts = []
    for name in tables:
        if name not in numbers:
            continue
        frame = numbers[name]
        keys = list(frame.columns[: list(frame.columns).index("measure")])
        rows = frame.loc[frame["measure"] == measure]
        if least:
            rows = rows.loc[rows["factuals"] >= least]
        found = rows.assign(value=rows[side].astype(float)).pivot_table("value", keys[:-1], keys[-1])
        parts.append(pd.concat({name: found}))
    return pd.concat(parts) if parts else pd.DataFrame()


def duel(table: pd.DataFrame, one: str, other: str) -> Verdict:
    """Whether one method has more than another in most of the settings that both have; ties are no wins."""
    if not {one, other} <= set(table):
        return Verdict(False, 0, "")
    rows = table[[one, other]].dropna()
    gaps = rows[one] - rows[other]
    wins, ties = int((gaps > COST_TIE).sum()), int((gaps.abs() <= COST_TIE).sum())
    return Verdict(wins > len(rows) / 2, len(rows), f"better in {wins}, equal in {ties} of {len(rows)} settings")
