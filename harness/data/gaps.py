"""What becomes of missing cells: rows dropped, cells filled by what the training rows hold, or a state of their own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from harness.core.errors import DatasetError, choices
from harness.core.gaps import MISSED
from harness.core.numbers import number
from harness.core.space import Kind

NUMERIC = {Kind.CONTINUOUS, Kind.INTEGER}
OF_NUMBERS = ("median", "mean")
REMEDIES = ("error", "drop", *OF_NUMBERS, "most_frequent", "category", "value")
ALLOWED = f"{', '.join(REMEDIES)}, or what to fill in"


def fits(remedy: Any) -> bool:
    """Whether something may be the remedy of all columns: a word, or a number to fill in."""
    return number(remedy) or remedy in REMEDIES


def advice(feature: str) -> str:
    """What to set for a column that holds missing values."""
    return (
        f"set features.{feature}.missing, or dataset.missing for all columns, to drop (the rows), median or mean (of "
        f"numbers), most_frequent, category (of texts), value (a state of its own), or what to fill in"
    )


def advice_of_labels(missing: Any) -> str:
    """What to set where labels are missing: features may still be filled, each by an attribute of its own."""
    if missing == "error":
        return "set 'missing' to drop"
    return (
        f"a label is never filled in, not by missing={missing} either: set missing=drop, and "
        f"features.NAME.missing={missing} for features to fill"
    )


@dataclass(frozen=True)
class Gaps:
    """What becomes of the missing cells of one column.

    Parameters
    ----------
    feature
        Its name.
    remedy
        One of ``REMEDIES``, or the number or category that is filled in.
    own
        Whether that was said of this column, not of all.
    """

    feature: str
    remedy: Any
    own: bool = False

    def keeps(self, kind: Kind) -> bool:
        """Whether they stay missing: of numbers only, for categories have "missing" for a category."""
        return self.remedy == "value" and kind in NUMERIC

    def levels(self, kind: Kind) -> bool:
        """Whether they become the category "missing"."""
        return self.remedy in ("category", "value") and kind not in NUMERIC

    def filler(self, values: pd.Series, kind: Kind, train: np.ndarray, special: Sequence[float]) -> Any:
        """What is filled in, of the training rows alone.

        Raises
        ------
        DatasetError
            For a remedy that does not fit the column, and one that finds nothing in the training rows.
        """
        numeric = kind in NUMERIC
        if self.levels(kind):
            if kind is Kind.ORDINAL:
                raise self._misfit(kind, "drop, most_frequent, or a category")
            return MISSED
        if not numeric and self.remedy in OF_NUMBERS:
            raise self._misfit(kind, "drop, most_frequent, category, or a category to fill in")
        if numeric and self.remedy == "category":
            raise self._misfit(kind, "drop, median, mean, most_frequent, value, or a number to fill in")
        if self.remedy not in REMEDIES:
            return self._given(values.dropna(), numeric, kind)
        known = values.iloc[train].dropna()
        known = known[~known.isin(special)]
        if known.empty:
            raise DatasetError(
                f"column {self.feature!r} holds no value in the training rows to take the {self.remedy} of; list it "
                f"in 'drop', or set features.{self.feature}.missing to what to fill in."
            )
        if not numeric or self.remedy == "most_frequent":
            return known.mode().iloc[0]  # the least of several
        found = float(known.median() if self.remedy == "median" else known.mean())
        return np.rint(found) if kind is Kind.INTEGER else found

    def _misfit(self, kind: Kind, allowed: str) -> DatasetError:
        return DatasetError(
            f"column {self.feature!r} is {kind} and has missing values, for which {self.remedy!r} is no remedy; set "
            f"features.{self.feature}.missing to {allowed}."
        )

    def _given(self, known: pd.Series, numeric: bool, kind: Kind) -> Any:
        """The number or category that is to be filled in, as the column would hold it."""
        if not numeric:
            by_text = {str(value): value for value in sorted(known.unique().tolist(), key=str)}
            if str(self.remedy) in by_text:
                return by_text[str(self.remedy)]
            allowed = choices(str(self.remedy), [*by_text, "drop", "most_frequent", "category"])
            raise DatasetError(
                f"missing of {self.feature} is {self.remedy!r}, which is none of its categories; {allowed}."
            )
        if not isinstance(self.remedy, int | float) or isinstance(self.remedy, bool):
            words = [word for word in REMEDIES if word != "category"]
            raise DatasetError(
                f"missing of {self.feature} is {self.remedy!r}, and the column is {kind}; give a number; "
                f"{choices(str(self.remedy), words)}."
            )
        if kind is Kind.INTEGER and not float(self.remedy).is_integer():
            raise DatasetError(
                f"missing of {self.feature} is {self.remedy}, and the column is integer; give a whole number."
            )
        return float(self.remedy)

    def message(self, count: int, filler: Any) -> str:
        """What became of so many missing cells, in a few words."""
        if filler is None:
            return f"{self.feature} keeps {count:,}"
        how = f"its {self.remedy.replace('_', ' ')} " if self.remedy in (*OF_NUMBERS, "most_frequent") else ""
        return filled_message(self.feature, count, filler, how)


def filled_message(feature: str, count: int, filler: Any, how: str = "") -> str:
    """That so many missing cells of a feature were filled, and what with."""
    numeric = isinstance(filler, int | float | np.number) and not isinstance(filler, bool)
    return f"{count:,} of {feature} by {how}{f'{float(filler):.10g}' if numeric else filler}"


def gaps_of(missing: Any, entries: Mapping[str, Mapping[str, Any]]) -> dict[str, Gaps]:
    """What becomes of missing cells, by feature: ``missing`` where the feature's own attribute says nothing else."""
    own = {feature: entry.get("missing") for feature, entry in entries.items()}
    return {
        feature: Gaps(feature, missing) if remedy is None else Gaps(feature, remedy, own=True)
        for feature, remedy in own.items()
    }


def summary(name: str, told: Sequence[tuple[bool, str]], dropped: Mapping[str, int], rows: int) -> str | None:
    """What became of missing cells in one line, from whether a feature keeps them, and in which words; None of none."""
    filled = [text for kept, text in told if not kept]
    parts = [f"filled {', '.join(filled)} (by the training rows)"] if filled else []
    parts += [text for kept, text in told if kept]
    if rows:
        columns = ", ".join(f"{feature} {count:,}" for feature, count in dropped.items())
        parts.append(f"dropped {rows:,} row{'s' * (rows > 1)} (missing: {columns})")
    return f"{name}: missing cells: {'; '.join(parts)}." if parts else None
