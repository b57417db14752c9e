"""Numbers that lie beyond what a column is taken to say become the nearest that it says."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from harness.core.errors import DatasetError
from harness.core.frames import with_columns
from harness.core.space import Kind


@dataclass(frozen=True)
class Clip:
    """Ends of a feature's numbers; one that is None is none. Special codes and gaps are kept.

    Raises
    ------
    DatasetError
        For ends that are not in order, and for an integer feature's that are not whole.
    """

    feature: str
    kind: Kind
    low: float | None
    high: float | None
    special: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        low, high = (far if end is None else end for end, far in ((self.low, -math.inf), (self.high, math.inf)))
        whole = self.kind is Kind.INTEGER
        if not low < high or (whole and not all(math.isinf(end) or end == round(end) for end in (low, high))):
            raise DatasetError(
                f"clip of {self.feature} is {[self.low, self.high]}; give two {'whole ' * whole}numbers, the smaller "
                f"first."
            )

    def of(self, values: pd.Series) -> pd.Series:
        """The numbers within the ends; whole ones stay so."""
        made = values.where(values.isin(self.special), values.clip(self.low, self.high))
        return made.astype(values.dtype) if self.kind is Kind.INTEGER else made

    def check(self, what: str, numbers: Iterable[float]) -> None:
        """Refuse numbers that would be put to an end; ``what`` they are of the feature.

        Raises
        ------
        DatasetError
            In one sentence.
        """
        given = pd.Series([*numbers], dtype=float)
        for number in given[self.of(given) != given]:
            raise DatasetError(
                f"{what} of {self.feature} has {number:.10g}, beyond its clip {[self.low, self.high]}; give a number "
                f"within it, or another clip."
            )


def clip_of(feature: str, kind: Kind, entry: Mapping[str, Any]) -> Clip:
    """The ends that a feature's attributes give; an infinite one is none."""
    low, high = (None if end is not None and math.isinf(end) else end for end in entry["clip"])
    return Clip(feature, kind, low, high, entry.get("special", ()))


def clipped(what: str, people: pd.DataFrame, clips: Mapping[str, Clip]) -> tuple[pd.DataFrame, str]:
    """People with their numbers within the ends, and how many of each feature were not, in one line; else empty."""
    made = with_columns(people, {feature: clip.of(people[feature]) for feature, clip in clips.items()})
    counts = {name: int((made[name] != people[name])[people[name].notna()].sum()) for name in clips}
    parts = [f"{count:,} of {name}" for name, count in counts.items() if count]
    return made, f"{what}: put to the nearer end of their 'clip': {', '.join(parts)}." if parts else ""
