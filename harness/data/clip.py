"""Numbers that lie beyond what a column is taken to say become the nearest that it says."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from harness.core.errors import DatasetError
from harness.core.space import Kind


@dataclass(frozen=True)
class Clip:
    """Ends of a feature's numbers; one that is None is none. Special codes and gaps are kept.

    Raises
    ------
    DatasetError
        For ends in the wrong order, and for an integer feature's that are not whole.
    """

    feature: str
    kind: Kind
    low: float | None
    high: float | None
    special: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        ends = [end for end in (self.low, self.high) if end is not None]
        whole = self.kind is Kind.INTEGER
        if (len(ends) == 2 and not ends[0] < ends[1]) or (whole and any(end != round(end) for end in ends)):
            raise DatasetError(
                f"clip of {self.feature} is {[self.low, self.high]}; give two {'whole ' * whole}numbers, the smaller "
                f"first."
            )

    def of(self, values: pd.Series) -> pd.Series:
        """The numbers within the ends, of the same type."""
        return values.where(values.isin(self.special), values.clip(self.low, self.high)).astype(values.dtype)


def clip_of(feature: str, kind: Kind, entry: Mapping[str, Any]) -> Clip | None:
    """The ends that a feature's attributes give; None where they give none."""
    if "clip" not in entry:
        return None
    low, high = entry["clip"]
    return Clip(feature, kind, low, high, entry.get("special", ()))


def told(name: str, before: pd.DataFrame, after: pd.DataFrame, clips: Iterable[str]) -> str | None:
    """How many numbers of each feature were beyond its ends, in one line; None where none was."""
    counts = {feature: int((after[feature] != before[feature])[before[feature].notna()].sum()) for feature in clips}
    parts = [f"{count:,} of {feature}" for feature, count in counts.items() if count]
    return f"{name}: put to the nearer end of their 'clip': {', '.join(parts)}." if parts else None
