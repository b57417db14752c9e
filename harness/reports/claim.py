"""A sentence of a paper that numbers can decide."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import pandas as pd

Numbers = Mapping[str, pd.DataFrame]
Verdict = tuple[bool | None, str]


@dataclass(frozen=True)
class Claim:
    """A sentence of a paper that numbers can decide.

    Parameters
    ----------
    sentence
        What the paper claims, as a checkable sentence.
    needs
        Names of the tables whose numbers decide it.
    decide
        From the numbers by table: whether it holds (None: they do not decide), and the number behind that.
    """

    sentence: str
    needs: tuple[str, ...]
    decide: Callable[[Numbers], Verdict]


def means(frame: pd.DataFrame, measure: str, method: str) -> pd.Series:
    """Our numbers of one measure and method, by the other keys: for claims that compare methods row by row."""
    keys = [key for key in frame.columns[: list(frame.columns).index("measure")] if key != "method"]
    rows = frame.loc[(frame["measure"] == measure) & (frame["method"] == method)]
    return rows.set_index(keys)["ours"].astype(float)
