"""A scorecard as plain data: bins, values, coefficients and points."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from harness.core.classifier import Classifier
from harness.core.errors import UnsupportedError
from harness.core.inputs import Affine, Input, Lookup
from harness.core.space import Feature, Space

ASIDE = ("special", "missing", "unknown")


@dataclass(frozen=True)
class Bin:
    """What a bin of a feature holds, in original units.

    Parameters
    ----------
    role
        ``interval`` or ``categories``; or one that a counterfactual should not be sent to unasked: ``special`` (codes),
        ``missing``, ``unknown`` (categories that no bin lists).
    low, high
        An interval [low, high) of numbers.
    members
        The categories, or the special codes.
    """

    role: str
    low: float = -np.inf
    high: float = np.inf
    members: tuple[Any, ...] = ()

    @property
    def ordinary(self) -> bool:
        """Whether the bin is an interval or a set of categories."""
        return self.role not in ASIDE

    def __str__(self) -> str:
        """The bin to be read.

        >>> str(Bin("interval", 91.5, 95.5)), str(Bin("interval", high=0.5)), str(Bin("categories", members=("a", "b")))
        ('[91.5, 95.5)', '< 0.5', 'a or b')
        """
        if self.role == "interval":
            if np.isinf(self.low):
                return "any number" if np.isinf(self.high) else f"< {self.high:g}"
            return f"≥ {self.low:g}" if np.isinf(self.high) else f"[{self.low:g}, {self.high:g})"
        return " or ".join(map(str, self.members)) or self.role


@dataclass(frozen=True, eq=False)
class Variable:
    """A feature of a scorecard and its bins: those of values first, then special codes, missing and unknown ones.

    Parameters
    ----------
    bins
        Intervals from low to high, or sets of categories.
    values
        What the linear model sees in each bin: weight of evidence, or the mean outcome; shape (bins,).
    coefficient
        Its weight in the linear model.
    points
        What each bin adds to the points, shape (bins,).
    """

    name: str
    bins: tuple[Bin, ...]
    values: np.ndarray
    coefficient: float
    points: np.ndarray

    @property
    def numeric(self) -> bool:
        """Whether the ordinary bins are intervals."""
        return self.bins[0].role == "interval"

    @property
    def cuts(self) -> np.ndarray:
        """The inner ends of the intervals, in order; each belongs to the bin above it."""
        return np.array([b.low for b in self.bins if b.role == "interval"][1:])

    @property
    def contributions(self) -> np.ndarray:
        """What each bin adds to the score, shape (bins,)."""
        return self.coefficient * self.values

    @property
    def listing(self) -> tuple[Any, ...]:
        """The categories that bins list, special codes last: positions among them are their codes; none of numbers."""
        if self.numeric:
            return ()
        return tuple(member for b in self.bins if b.role in {"categories", "special"} for member in b.members)

    def bin_of(self, value: Any) -> int:
        """The position of a value's bin."""
        return int(self.bins_of([value])[0])

    def bins_of(self, values: Iterable[Any]) -> np.ndarray:
        """The position of each value's bin, int, shape (values,)."""
        role = {b.role: place for place, b in enumerate(self.bins) if b.role in {"missing", "unknown"}}
        if self.numeric:
            numbers = np.asarray(values, dtype=float)
            found = np.searchsorted(self.cuts, numbers, side="right")
            found[np.isnan(numbers)] = role["missing"]
            for place, b in enumerate(self.bins):
                if b.role == "special":
                    found[np.isin(numbers, b.members)] = place
            return found
        known = {member: place for place, b in enumerate(self.bins) for member in b.members}
        return np.array([role["missing"] if _absent(v) else known.get(v, role["unknown"]) for v in values], dtype=int)

    def codes_of(self, values: Iterable[Any]) -> np.ndarray:
        """The column of the estimator for decoded values: the numbers, or the categories' codes; float, (values,).

        A category that no bin lists has the code after the last.
        """
        if self.numeric:
            return np.asarray(values, dtype=float)
        code = {member: float(place) for place, member in enumerate(self.listing)}
        return np.array([code.get(value, float(len(code))) for value in values])

    def bins_of_codes(self, column: np.ndarray) -> np.ndarray:
        """The position of the bin of each entry of such a column, int, shape (entries,)."""
        if self.numeric:
            return self.bins_of(column)
        places = np.append(self.bins_of(self.listing), self.bins_of([Nothing])).astype(int)
        return places[np.clip(np.rint(column), 0, len(places) - 1).astype(int)]

    def steps(self) -> tuple[np.ndarray, np.ndarray]:
        """Such a column as a step function: increasing thresholds t, and the bins of (t[k - 1], t[k]].

        Returns
        -------
        The thresholds, float, shape (steps - 1,), and the positions of the bins, int, shape (steps,).
        """
        if self.numeric:
            ends = {float(np.nextafter(cut, -np.inf)) for cut in self.cuts}
            for code in (code for b in self.bins if b.role == "special" for code in b.members):
                ends |= {float(np.nextafter(code, -np.inf)), float(code)}
            thresholds = np.array(sorted(ends))
            last = np.nextafter(thresholds[-1:], np.inf) if len(thresholds) else np.zeros(1)
            places = self.bins_of(np.append(thresholds, last))
            kept = np.flatnonzero(np.diff(places))
            return thresholds[kept], np.append(places[kept], places[-1])
        codes = np.arange(len(self.listing) + 1.0)
        return codes[:-1] + 0.5, self.bins_of_codes(codes)


def _absent(value: Any) -> bool:
    return value is None or value is pd.NA or (isinstance(value, float) and np.isnan(value))


@dataclass(frozen=True, eq=False)
class Card:
    r"""A scorecard: the score :math:`\beta_0 + \sum_j \beta_j w_{j b_j}` of the bins :math:`b_j` that a row lies in.

    Parameters
    ----------
    variables
        Features, bins, values :math:`w_{jb}` and coefficients :math:`\beta_j`, in the order of the scorecard's table.
    intercept
        :math:`\beta_0`.
    binary
        Whether the score is the log-odds of class 1; else it is the predicted number.
    points
        Points of every row, before those of its bins.
    """

    variables: tuple[Variable, ...]
    intercept: float
    binary: bool
    base_points: float = 0.0

    @property
    def names(self) -> tuple[str, ...]:
        """The features, in table order."""
        return tuple(variable.name for variable in self.variables)

    def __getitem__(self, name: str) -> Variable:
        return self.variables[self.names.index(name)]

    @property
    def coefficients(self) -> np.ndarray:
        """Shape (features,)."""
        return np.array([variable.coefficient for variable in self.variables])

    def bins(self, frame: pd.DataFrame) -> np.ndarray:
        """The position of the bin that each value lies in, int, shape (rows, features)."""
        return np.column_stack([v.bins_of(frame[v.name].to_numpy()) for v in self.variables])

    def values(self, bins: np.ndarray) -> np.ndarray:
        """What the linear model sees in bins given by position, shape (rows, features)."""
        return np.column_stack([v.values[bins[:, j]] for j, v in enumerate(self.variables)])

    def score(self, bins: np.ndarray) -> np.ndarray:
        """Log-odds of class 1, or the predicted number, of rows given by their bins, shape (rows,)."""
        return self.values(bins) @ self.coefficients + self.intercept

    def points(self, bins: np.ndarray) -> np.ndarray:
        """Points of rows given by their bins, shape (rows,)."""
        return np.sum([v.points[bins[:, j]] for j, v in enumerate(self.variables)], axis=0) + self.base_points

    def inputs(self, space: Space) -> tuple[Input, ...]:
        """The columns of the estimator as maps from decoded features.

        Raises
        ------
        UnsupportedError
            Where numbers meet bins of categories, or text meets intervals.
        """
        return tuple(_input(variable, space[variable.name]) for variable in self.variables)


def _input(variable: Variable, feature: Feature) -> Input:
    if feature.numeric:
        if not variable.numeric:
            raise UnsupportedError(
                f"its scorecard has categories of {feature.name}, which holds numbers here; set "
                f"features.{feature.name}.kind=categorical"
            )
        return Affine(feature.name)
    try:
        codes = variable.codes_of(feature.categories)
    except (TypeError, ValueError):
        raise UnsupportedError(
            f"its scorecard has intervals of {feature.name}, which holds categories here; set "
            f"features.{feature.name}.kind=continuous"
        ) from None
    return Lookup(feature.name, feature.categories, tuple(codes.tolist()))


def card_of(classifier: Classifier) -> Card | None:
    """The scorecard that a classifier is, or None."""
    return getattr(classifier.estimator, "card_", None)


class Nothing:
    """A category that no bin lists."""
