"""Maps from decoded features to the columns of an estimator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from operator import add, mul, sub, truediv
from typing import Any

import numpy as np
import pandas as pd

from harness.core.errors import UnsupportedError
from harness.core.space import Feature, Kind, Space
from harness.core.tolerances import DECODING


@dataclass(frozen=True)
class Affine:
    """Input = (value - shift) / unit of a numeric feature."""

    feature: str
    shift: float = 0.0
    unit: float = 1.0

    def __call__(self, values: pd.Series) -> np.ndarray:
        return (values.to_numpy(float) - self.shift) / self.unit

    def of(self, value: Any) -> float:
        return (float(value) - self.shift) / self.unit


def beyond_by_rounding(end: float) -> float:
    """How far beyond an end of a clipped interval rounding may take a number."""
    return DECODING * max(1.0, abs(end))


def _at_most(value: Any, end: float) -> Any:
    """A number, or an array of them, cut to ``end`` where rounding took it beyond; what is farther stays as it is."""
    beyond = (value > end) & (value <= end + beyond_by_rounding(end))
    return np.where(beyond, end, value) if np.ndim(value) else (end if beyond else value)


def _at_least(value: Any, end: float) -> Any:
    """As ``_at_most``, from below."""
    return -_at_most(-value, -end)


CUTS = ("min", "max")  # they change a number by its rounding only
OPERATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "+": add,
    "-": sub,
    "*": mul,
    "/": truediv,
    "min": _at_most,
    "max": _at_least,
}


@dataclass(frozen=True)
class Chain(Affine):
    """An affine input computed in ``steps``, as the scalers of a pipeline do it: equal to theirs to the last bit.

    ``shift`` and ``unit`` are those of the chain as one, rounded once. Each step is an operation and its number.

    >>> Chain.of_steps("age", (("*", 0.1), ("+", -2.0))).of(30) == 30 * 0.1 - 2.0
    True
    """

    steps: tuple[tuple[str, float], ...] = ()

    @classmethod
    def of_steps(cls, feature: str, steps: tuple[tuple[str, float], ...]) -> Chain:
        """The chain, its ``shift`` and ``unit`` worked out exactly; UnsupportedError where it is a constant."""
        rate, offset = Fraction(1), Fraction(0)
        for sign, number in steps:
            if sign in CUTS:
                continue
            exact = Fraction(number)
            if sign in "*/":
                rate, offset = (OPERATIONS[sign](part, exact) for part in (rate, offset))
            else:
                offset = OPERATIONS[sign](offset, exact)
        if not rate:
            raise UnsupportedError(f"{feature} is multiplied by 0.")
        return cls(feature, float(-offset / rate), float(1 / rate), steps)

    def __call__(self, values: pd.Series) -> np.ndarray:
        return run_steps(values.to_numpy(float), self.steps)

    def of(self, value: Any) -> float:
        return run_steps(float(value), self.steps)


def run_steps(value: Any, steps: tuple[tuple[str, float], ...]) -> Any:
    """A number, or an array of them, after one operation upon another."""
    for sign, number in steps:
        value = OPERATIONS[sign](value, number)
    return value


@dataclass(frozen=True)
class Indicator:
    """Input = 1 where the feature holds one of ``levels``, else 0."""

    feature: str
    levels: tuple[Any, ...]

    def __call__(self, values: pd.Series) -> np.ndarray:
        return values.isin(self.levels).to_numpy(float)

    def of(self, value: Any) -> float:
        return float(value in self.levels)

    def table(self, categories: tuple[Any, ...]) -> np.ndarray:
        """The input for each category."""
        return np.array([float(value in self.levels) for value in categories])


@dataclass(frozen=True)
class Lookup:
    """Input = the number listed for the feature's category: ranks, means, weights of evidence."""

    feature: str
    levels: tuple[Any, ...]
    values: tuple[float, ...]

    @cached_property
    def _listed(self) -> dict[Any, float]:
        return dict(zip(self.levels, self.values, strict=True))

    def __call__(self, values: pd.Series) -> np.ndarray:
        return self.table(tuple(values))

    def of(self, value: Any) -> float:
        return self._listed[value]

    def table(self, categories: tuple[Any, ...]) -> np.ndarray:
        """The input for each category."""
        listed = self._listed
        return np.array([listed[value] for value in categories], dtype=float)


@dataclass(frozen=True)
class Step:
    """Input = ``values[k]`` where k of the increasing ``cuts`` are <= the value of a numeric feature."""

    feature: str
    cuts: tuple[float, ...]
    values: tuple[float, ...]

    def __call__(self, values: pd.Series) -> np.ndarray:
        return np.asarray(self.values)[np.searchsorted(self.cuts, values.to_numpy(float), side="right")]

    def of(self, value: Any) -> float:
        return self.values[int(np.searchsorted(self.cuts, float(value), side="right"))]


Input = Affine | Indicator | Lookup | Step


def by_category(feature: Feature, source: Input) -> np.ndarray:
    """An input for each category of its feature, shape (categories,).

    Raises
    ------
    UnsupportedError
        For an input that is no function of a category.
    """
    if isinstance(source, Affine):
        return (np.array(feature.categories, dtype=float) - source.shift) / source.unit
    if isinstance(source, Step):
        raise UnsupportedError(f"{type(source).__name__} of {feature.name}, a category, cannot be embedded.")
    return source.table(feature.categories)


def owners(space: Space, inputs: Sequence[Input]) -> list[int]:
    """The feature that each input is made of, by position."""
    place = {name: index for index, name in enumerate(space.names)}
    return [place[source.feature] for source in inputs]


def space_inputs(space: Space) -> tuple[Input, ...]:
    """The scaled columns of a space as inputs: what this harness trains its own models on."""
    inputs: list[Input] = []
    for feature in space.features:
        if feature.numeric:
            inputs.append(Affine(feature.name, feature.scale[0], feature.range))
        elif feature.kind is Kind.CATEGORICAL:
            inputs.extend(Indicator(feature.name, (value,)) for value in feature.categories)
        else:
            top = feature.steps
            ranks = tuple(rank / top for rank in range(len(feature.categories)))
            inputs.append(Lookup(feature.name, feature.categories, ranks))
    return tuple(inputs)
