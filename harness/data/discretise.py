"""Numbers become intervals: what makes a dataset whose features are all discrete out of any other."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd

from harness.core.errors import DatasetError, choices
from harness.core.gaps import missing
from harness.core.space import Actionability, Feature, Kind

WAYS = ("quantile", "median", "levels")
SETTINGS = ("default", "bins", "cuts", "one_hot")
LEVELS = 20  # distinct numbers above which ``levels`` takes intervals between quantiles


@dataclass(frozen=True)
class Intervals:
    """Consecutive intervals of a number, and the category that each is.

    Parameters
    ----------
    cuts
        Least number of each interval but the first, increasing.
    categories
        One more than cuts, lowest first; the first holds all that is below ``cuts``, the last has no upper end.
    codes
        The category of each special code, which lies in no interval.
    """

    cuts: tuple[float, ...]
    categories: tuple[Any, ...]
    codes: Mapping[float, Any] = field(default_factory=dict)

    def of(self, numbers: Iterable[float]) -> list[Any]:
        """The category of each number.

        >>> Intervals((1, 4), ("0", "1 to 3", ">= 4")).of([0, 3, 4])
        ['0', '1 to 3', '>= 4']
        >>> Intervals((1, 4), ("0", "1 to 3", ">= 4"), {-8: "-8"}).of([2, -8])
        ['1 to 3', '-8']
        """
        values = np.asarray(numbers, float)
        within = np.searchsorted(self.cuts, values, "right")
        return [
            self.codes[v] if v in self.codes else self.categories[place]
            for v, place in zip(values, within, strict=True)
        ]

    def holding(self, value: Any) -> Any:
        """The category of a number; anything else, a gap too, as it is.

        >>> [Intervals((1, 4), ("0", "1 to 3", ">= 4")).holding(value) for value in (3, "0", None)]
        ['1 to 3', '0', None]
        """
        number = isinstance(value, int | float | np.number) and not missing(value)
        return self.of([float(value)])[0] if number else value


@dataclass(frozen=True)
class Discretisation:
    """How a dataset's numbers become categories.

    Parameters
    ----------
    default
        ``quantile`` (``bins`` intervals that hold about as many training rows each), ``median`` (two intervals) or
        ``levels`` (each number that occurs is a category; between quantiles where more than 20 do).
    bins
        Of ``quantile``.
    cuts
        By feature, the least number of each interval but the first; or one of the three words.
    one_hot
        Features of two intervals that are encoded by two columns instead of one.
    """

    default: str = "median"
    bins: int = 4
    cuts: Mapping[str, Sequence[float] | str] | None = None
    one_hot: Sequence[str] = ()

    @classmethod
    def read(cls, name: str, given: Any) -> Discretisation:
        """The parameters that a dataset's setting ``discretise`` gives: a word, or a mapping of them.

        Raises
        ------
        DatasetError
            For anything else.
        """
        known = {"default": given} if isinstance(given, str) else given
        if not isinstance(known, Mapping):
            raise DatasetError(f"'discretise' of {name} is {str(given)[:80]!r}; {choices(given, WAYS)}, or a mapping.")
        for key in known:
            if key not in SETTINGS:
                raise DatasetError(f"'discretise' of {name} has no entry {key!r}; {choices(key, SETTINGS)}.")
        made = cls(**known)
        if not isinstance(made.cuts or {}, Mapping):
            raise DatasetError(f"'cuts' of 'discretise' of {name} is {made.cuts!r}; give a list of numbers by feature.")
        for way in (made.default, *(cut for cut in (made.cuts or {}).values() if isinstance(cut, str))):
            if way not in WAYS:
                raise DatasetError(f"'discretise' of {name} cannot be {str(way)[:80]!r}; {choices(way, WAYS)}.")
        if isinstance(made.bins, bool) or not isinstance(made.bins, int) or made.bins < 2:
            raise DatasetError(f"'bins' of 'discretise' of {name} is {made.bins!r}; give a whole number from 2.")
        return made

    def check(self, name: str, features: Sequence[Feature]) -> None:
        """Raise ``DatasetError`` for cuts of what is no number of the dataset, or that are none."""
        numbers = [feature.name for feature in features if feature.numeric]
        for key in (*(self.cuts or {}), *self.one_hot):
            if key not in numbers:
                raise DatasetError(f"'discretise' of {name} names {key!r}, no number of it; {choices(key, numbers)}.")
        for key, cut in (self.cuts or {}).items():
            ends = [] if isinstance(cut, str) else [*cut] if isinstance(cut, Sequence) else [cut, cut]
            numeric = all(isinstance(end, int | float) and not isinstance(end, bool) for end in ends)
            if not numeric or ends != sorted(set(ends)):
                raise DatasetError(f"the cuts of {key} in {name} are {cut}; give a list of increasing numbers.")

    def apply(
        self, feature: Feature, values: pd.Series, train: np.ndarray
    ) -> tuple[Feature, pd.Series, Intervals | None]:
        """A feature, its values and the intervals that they are now (None for a feature that was discrete before).

        A special code that occurs is a category of its own, which counterfactuals do not enter.

        Parameters
        ----------
        values
            Decoded, of all rows.
        train
            Positions of the training rows, which quantiles are of.

        Raises
        ------
        DatasetError
            For bounds within the data, which intervals cannot keep counterfactuals in.
        """
        if not feature.numeric:
            return _one_hot(feature), values, None
        low, high = feature.scale
        if feature.bounds[0] > low or feature.bounds[1] < high:
            raise DatasetError(
                f"feature {feature.name} has bounds within the range of the data, which intervals cannot keep to; take "
                f"them away (features.{feature.name}.bounds=[]), or drop the feature."
            )
        way, integer = (self.cuts or {}).get(feature.name, self.default), feature.kind is Kind.INTEGER
        coded = values.isin(feature.special).to_numpy()
        distinct = np.unique(values.to_numpy(float)[~coded])
        if way == "levels" and len(distinct) <= LEVELS:
            ends = tuple(distinct[1:].tolist())
            categories: tuple[Any, ...] = tuple(int(v) if integer else float(v) for v in distinct)
        else:
            known = values.to_numpy(float)[train][~coded[train]]
            cuts = _cuts(known, 2 if way == "median" else self.bins)
            ends = tuple(cuts if isinstance(way, str) else map(float, way))
            categories = _named(ends, integer, float(distinct[0]))
        # Codes are named as the intervals are, by numbers or by text.
        named = str if _type(categories) is object else type(categories[0])
        codes = {code: named(int(code) if integer else code) for code in feature.special}
        intervals = Intervals(ends, categories, codes)
        special = tuple(name for code, name in codes.items() if (values == code).any())
        binary = len(categories) == 2 and not special and feature.name not in self.one_hot
        kind = Kind.BINARY if binary else Kind.CATEGORICAL
        made = _turned(feature.name, kind, categories, feature.actionability, special)
        return made, pd.Series(intervals.of(values), index=values.index, dtype=_type(categories)), intervals


def _type(categories: Sequence[Any]) -> Any:
    return object if any(isinstance(category, str) for category in categories) else type(categories[0])


def _cuts(values: np.ndarray, bins: int) -> list[float]:
    """Least number of each interval above a quantile: distinct, and none empty where two numbers differ.

    >>> _cuts(np.array([1.0, 1.0, 1.0, 2.0]), 2)  # no number is above the quantile but the greatest
    [2.0]
    """
    cuts = []
    for share in np.arange(1, bins) / bins:
        middle = np.quantile(values, share)
        above = values[values > middle] if middle < values.max() else values[values >= middle]
        cuts.append(float(above.min()))
    return sorted({cut for cut in cuts if cut > values.min()})


def _named(cuts: Sequence[float], integer: bool, least: float) -> tuple[str, ...]:
    """Names of intervals in the feature's own unit.

    >>> _named((1.0, 4.0, 11.0), True, 0.0)
    ('0', '1 to 3', '4 to 10', '>= 11')
    >>> _named((0.5, 2.0), False, 0.0)
    ('< 0.5', '0.5 to < 2', '>= 2')
    """
    for digits in (6, 17):
        ends = [f"{cut:.{digits}g}" for cut in cuts]
        if len(set(ends)) == len(ends):
            break
    if not cuts:
        return ("any",)
    if not integer or any(cut != round(cut) for cut in cuts):
        middle = [f"{low} to < {high}" for low, high in pairwise(ends)]
        return (f"< {ends[0]}", *middle, f">= {ends[-1]}")
    tops = [round(cut) - 1 for cut in cuts]
    bottoms = [round(cut) for cut in cuts[:-1]]
    middle = [str(top) if low == top else f"{low} to {top}" for low, top in zip(bottoms, tops[1:], strict=True)]
    return (str(tops[0]) if least == tops[0] else f"<= {tops[0]}", *middle, f">= {round(cuts[-1])}")


def _one_hot(feature: Feature) -> Feature:
    """An ordinal feature as one with a column a category; others as they are."""
    if feature.kind is not Kind.ORDINAL:
        return feature
    made = _turned(feature.name, Kind.CATEGORICAL, feature.categories, feature.actionability)
    return replace(made, order=feature.order) if feature.actionability is Actionability.CONDITIONAL else made


def _turned(
    name: str, kind: Kind, categories: tuple[Any, ...], actionability: Actionability, special: tuple[Any, ...] = ()
) -> Feature:
    """A feature of ordered categories, lowest first, that may go where its numbers might; special codes come first.

    In one direction a code cannot be left, for it has no rank.
    """
    if len(categories) + len(special) == 1:
        return Feature(name, Kind.CATEGORICAL, categories, actionability=Actionability.IMMUTABLE)
    order: tuple[Any, ...] = ()
    if kind is Kind.CATEGORICAL and actionability in {Actionability.INCREASE, Actionability.DECREASE}:
        order = categories if actionability is Actionability.INCREASE else categories[::-1]
        actionability = Actionability.CONDITIONAL
    return Feature(name, kind, special + categories, actionability=actionability, order=order, special=special)
