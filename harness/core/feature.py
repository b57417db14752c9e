"""A feature of the data: its kind, values, bounds and actionability."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from harness.core.costs import UNSTORED, Price, check_cost, pairs
from harness.core.errors import DatasetError, choices
from harness.core.gaps import MISSED, missing
from harness.core.notation import DIGITS, Notation, number, within


class Kind(StrEnum):
    CONTINUOUS = "continuous"
    INTEGER = "integer"
    ORDINAL = "ordinal"
    BINARY = "binary"
    CATEGORICAL = "categorical"


class Actionability(StrEnum):
    FREE = "free"
    IMMUTABLE = "immutable"
    INCREASE = "increase"
    DECREASE = "decrease"
    CONDITIONAL = "conditional"


@dataclass(frozen=True)
class Feature:
    """One original feature of the data.

    Parameters
    ----------
    name
        Column name in every decoded frame.
    kind
        How values are encoded and compared. An ordinal feature is encoded by rank, a binary one by one 0/1 column,
        a categorical one by full one-hot.
    categories
        Values of a binary, ordinal (lowest first) or categorical feature; empty for numbers.
    scale
        Minimum and maximum over the training rows, in original units: the unit of the scaled space. Numbers only.
    bounds
        Least and greatest value a counterfactual may take; a factual outside them may stay where it is.
    actionability
        ``increase`` and ``decrease`` follow the number or the rank; ``conditional`` may only move up ``order``.
    order
        Categories from low to high for ``conditional``; those left out cannot be entered or left.
        Defaults to ``categories``.
    special
        Codes of a numeric feature (such as -8 for "no record") that rows may hold and no counterfactual may move to;
        the categories of such codes, where its numbers were made intervals.
    notation
        How the data write its numbers, where not as ``number`` does.
    missing
        Whether rows may hold no value of it: a state of its own, NaN in frames and in what models see. Numbers only;
        categories have ``MISSED`` for a category. Equal to itself; a change from or to it is one whole unit in every
        distance. Only an immutable gap has to stay: there is no number that a filled one could rise or fall from.
    may_be_missing
        Whether a number may be changed to missing.
    price
        What its changes cost.
    """

    name: str
    kind: Kind
    categories: tuple[Any, ...] = ()
    scale: tuple[float, float] = (0.0, 1.0)
    bounds: tuple[float, float] = (-np.inf, np.inf)
    actionability: Actionability = Actionability.FREE
    order: tuple[Any, ...] = ()
    special: tuple[Any, ...] = ()
    notation: Notation | None = None
    missing: bool = False
    may_be_missing: bool = False
    price: Price = field(default=Price(), metadata=UNSTORED)

    def __post_init__(self) -> None:
        object.__setattr__(self, "kind", _choice(Kind, self.kind, f"kind of {self.name}"))
        object.__setattr__(
            self, "actionability", _choice(Actionability, self.actionability, f"actionability of {self.name}")
        )
        self._check_costs()
        if self.numeric:
            if self.categories:
                raise DatasetError(f"feature {self.name} is {self.kind}, which has no categories; drop them.")
            if not self.bounds[0] <= self.bounds[1]:
                raise DatasetError(f"bounds of {self.name} are {list(self.bounds)}; give the smaller number first.")
            if inside := [code for code in self.special if self.bounds[0] <= code <= self.bounds[1] < np.inf]:
                raise DatasetError(
                    f"special codes {inside} of {self.name} lie within its bounds {list(self.bounds)}, where "
                    f"counterfactuals may go; set narrower 'bounds'."
                )
            if self.actionability is Actionability.CONDITIONAL:
                raise DatasetError(
                    f"feature {self.name} is {self.kind}; 'conditional' needs categories. Use 'increase' or 'decrease'."
                )
            if self.may_be_missing and not self.missing:
                raise DatasetError(
                    f"feature {self.name} may be missing only where missing values are kept; set "
                    f"features.{self.name}.missing=value, or take features.{self.name}.may_be_missing away."
                )
            return
        if self.missing:
            raise DatasetError(f"feature {self.name} is {self.kind}, whose gaps are a category; set missing=category.")
        if not self.categories:
            raise DatasetError(f"feature {self.name} is {self.kind} and needs its categories.")
        if len(set(self.categories)) < len(self.categories):
            raise DatasetError(f"categories of {self.name} repeat: {list(self.categories)}.")
        if self.kind is Kind.BINARY and len(self.categories) > 2:
            raise DatasetError(f"feature {self.name} is binary but has {len(self.categories)} categories.")
        unordered = self.kind is not Kind.ORDINAL and self.actionability in {
            Actionability.INCREASE,
            Actionability.DECREASE,
        }
        if unordered and self.kind is not Kind.BINARY:
            raise DatasetError(
                f"feature {self.name} is {self.kind}: categories without an order cannot '{self.actionability}'. "
                f"Make it ordinal, or use 'conditional' with an order."
            )
        if unknown := set(self.order) - set(self.categories):
            raise DatasetError(
                f"order of {self.name} names {sorted(map(str, unknown))}; allowed: {list(self.categories)}."
            )

    def _check_costs(self) -> None:
        check_cost(self.price.weight, f"weight of {self.name}")
        for name in ("weight_up", "weight_down"):
            if (cost := getattr(self.price, name)) is not None:
                check_cost(cost, f"{name} of {self.name}")
                if self.kind is Kind.CATEGORICAL:
                    raise DatasetError(
                        f"feature {self.name} is categorical, and neither rises nor falls; leave {name} out, or set "
                        f"'costs' of pairs of its categories."
                    )
        given = self.price.costs
        none = given is None or (isinstance(given, Mapping | list | tuple) and not given)  # a table is no truth value
        if not none and self.kind not in {Kind.BINARY, Kind.CATEGORICAL}:
            raise DatasetError(
                f"feature {self.name} is {self.kind}, and 'costs' are of pairs of categories without an order; set "
                f"weight_up and weight_down instead."
            )
        costs = pairs(self.price.costs, self.categories, f"costs of {self.name}")
        object.__setattr__(self, "price", replace(self.price, costs=costs))

    @cached_property
    def rates(self) -> tuple[float, float]:
        """What a scaled unit costs, downwards and upwards; of categories without an order, the same for both."""
        return self.price.rates

    @cached_property
    def extremes(self) -> tuple[float, float]:
        """Between what a scaled unit of any change costs. A number that is past all of a population passes nobody."""
        if self.price.shares and self.numeric:
            values, shares = np.transpose(self.price.shares)
            steepest = float((np.diff(shares) / np.diff(values) * self.range).max(initial=1.0))
            return 0.0, steepest * max(self.rates)
        rates = list(self.rates)
        if self.price.shares or self.price.costs:
            codes = np.arange(len(self.categories))
            steps = np.abs(codes - codes[:, None]) / max(len(codes) - 1, 1)
            apart = steps > 0
            rates += (self.charges[apart] / (steps[apart] if self.kind is Kind.ORDINAL else 1.0)).tolist()
        return min(rates), max(rates)

    @cached_property
    def priced(self) -> bool:
        """Whether it has costs of its own."""
        return not self.price.even or self.price.weight != 1.0

    @cached_property
    def even(self) -> bool:
        """Whether a unit costs the same wherever it leads."""
        return self.price.even

    @property
    def curved(self) -> bool:
        """Whether it is a number of which a unit does not cost the same everywhere."""
        return self.numeric and bool(self.price.shares)

    def share(self, values: np.ndarray) -> np.ndarray:
        """The share of the population below numbers or ranks."""
        return np.interp(values, *np.transpose(self.price.shares))

    @cached_property
    def charges(self) -> np.ndarray:
        """What a change costs from each category to each, in scaled units, shape (categories, categories)."""
        codes = np.arange(len(self.categories))
        steps = (codes - codes[:, None]).astype(float)
        if self.price.shares:
            steps = self.share(codes) - self.share(codes)[:, None]
        elif self.kind is Kind.ORDINAL:
            steps /= max(len(codes) - 1, 1)
        else:
            steps = np.sign(steps)
        charges: np.ndarray = np.abs(steps) * np.where(steps < 0, *self.rates)
        for origin, value, cost in self.price.costs:
            place = self.categories.index(origin), self.categories.index(value)
            charges[place] *= cost
        return charges

    def charged(self, origins: Any, values: Any) -> np.ndarray:
        """What moves of it cost, in scaled units, shape (values,): from one origin, or from one for each value.

        A number that becomes missing, or was, has neither risen nor fallen.
        """
        if not self.numeric:
            charges: np.ndarray = self.charges[self.codes(origins), self.codes(values)]
            return charges
        moves = np.asarray(values, dtype=float) - np.asarray(origins, dtype=float)
        down, up = self.rates
        rates = np.where(moves < 0, down, np.where(moves > 0, up, self.price.weight))
        gaps = self.moved(origins, values)
        if self.price.shares:
            passed = np.abs(self.share(np.asarray(values, float)) - self.share(np.asarray(origins, float)))
            gaps = np.where(np.isnan(moves), gaps, passed)
        return gaps * rates

    @cached_property
    def numeric(self) -> bool:
        """Whether the feature holds numbers: continuous or integer."""
        return self.kind in {Kind.CONTINUOUS, Kind.INTEGER}

    def text(self, value: Any, digits: int = DIGITS) -> str:
        """A value for a reader, written as the data write it, fractions as ``number`` does; a gap as "missing"."""
        if missing(value):
            return MISSED
        if self.notation is None or not isinstance(value, int | float | np.number):
            return number(value, digits)
        return self.notation.text(float(value), digits)

    def written(self, value: Any, digits: int = DIGITS) -> Any:
        """What ``text`` says of a value, as a value again: of a number that is rounded, another one.

        >>> Feature("debt", "continuous").written(0.123456789)
        0.123457
        """
        if not self.numeric or missing(value):
            return value
        read = (self.notation or Notation()).parse(self.text(value, digits))
        return value if math.isnan(read) else read

    def span(self, low: float, high: float) -> str:
        """An interval for a reader, that lies within: of dates the whole days, of fractions those of six digits.

        Nothing where that is a single value, or none.

        >>> Feature("opened", "integer", notation=Notation(date="%d.%m.%Y")).span(0.5, 31.5)
        '02.01.1970 to 01.02.1970'
        >>> Feature("glucose", "continuous").span(157.50000772, 177.40000772)
        '157.501 to 177.4'
        """
        if self.notation is not None and self.notation.date:
            low, high = math.ceil(low), math.floor(high)
        elif low < high:
            low, high = within(low, upwards=True), within(high, upwards=False)
        return f"{self.text(low)} to {self.text(high)}" if low < high else ""

    @property
    def loses(self) -> bool:
        """Whether a number may be changed to missing."""
        return self.may_be_missing and self.actionability is not Actionability.IMMUTABLE

    @property
    def width(self) -> int:
        """Number of encoded columns."""
        return len(self.categories) if self.kind is Kind.CATEGORICAL else 1

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the encoded columns."""
        if self.kind is Kind.CATEGORICAL:
            return tuple(f"{self.name}={value}" for value in self.categories)
        return (self.name,)

    @property
    def steps(self) -> int:
        """From its first category to its last, at least 1: what one is worth is 1 / ``steps`` in scaled units."""
        return max(len(self.categories) - 1, 1)

    @cached_property
    def range(self) -> float:
        """Original units in one scaled unit; 1 where the training rows hold a single value."""
        return (self.scale[1] - self.scale[0]) or 1.0

    @property
    def ladder(self) -> tuple[Any, ...]:
        """Categories in the order that ``conditional`` climbs."""
        return self.order or self.categories

    @property
    def leaves_ranks_out(self) -> bool:
        """Whether the ranks that an ordinal feature can reach may be no interval: by its order, or by special codes."""
        return self.kind is Kind.ORDINAL and (
            self.ladder != self.categories or not set(self.special).isdisjoint(self.categories[1:-1])
        )

    @cached_property
    def dtype(self) -> Any:
        """The type of its column in decoded frames: whole numbers beside gaps are floats."""
        if self.numeric:
            return np.int64 if self.kind is Kind.INTEGER and not self.missing else np.float64
        return take(self.categories, np.arange(0)).dtype

    @cached_property
    def _code(self) -> dict[Any, int]:
        return {category: code for code, category in enumerate(self.categories)}

    def codes(self, values: Iterable[Any]) -> np.ndarray:
        """Position of each value among the categories, -1 where it is none of them, int."""
        code = self._code
        return np.array([code.get(value, -1) for value in values], dtype=int)

    def interval(self, value: float) -> tuple[float, float]:
        """Values, in original units, that a *changed* number may take when the factual holds ``value``.

        The bounds, widened to the factual's own value (unless that is a special code) and cut to the actionable
        side; for an integer feature, integers. An empty interval has its first end above its second. A gap may be
        filled by anything within the bounds, unless it is immutable.

        >>> Feature("age", "integer", scale=(18, 90), bounds=(18, 90), actionability="increase").interval(40)
        (40.0, 90.0)
        """
        low, high = self.bounds
        if missing(value):
            if self.actionability is Actionability.IMMUTABLE:
                return np.inf, -np.inf
            return (np.ceil(low), np.floor(high)) if self.kind is Kind.INTEGER else (low, high)
        if value not in self.special:
            low, high = min(low, value), max(high, value)
        if self.actionability is Actionability.IMMUTABLE:
            low = high = value
        elif self.actionability is Actionability.INCREASE:
            low = max(low, value)
        elif self.actionability is Actionability.DECREASE:
            high = min(high, value)
        if self.kind is Kind.INTEGER:
            low, high = np.ceil(low), np.floor(high)
        return float(low), float(high)

    def moved(self, origins: Any, values: Any) -> np.ndarray:
        """How far a number moved, in scaled units, shape (values,): 1 from or to a gap, 0 from gap to gap.

        From one origin, or from one for each value.
        """
        origins, values = np.asarray(origins, dtype=float), np.asarray(values, dtype=float)
        gaps = np.abs(values - origins) / self.range
        if self.missing:
            gaps[np.isnan(gaps)] = 1.0
            gaps[np.isnan(values) & np.isnan(origins)] = 0.0
        return gaps

    def reachable(self, value: Any) -> tuple[Any, ...]:
        """Categories that a counterfactual may take when the factual holds ``value``, its own included.

        >>> Feature("job", "ordinal", ("none", "part", "full"), actionability="increase").reachable("part")
        ('part', 'full')
        """
        if self.actionability is Actionability.FREE:
            return tuple(c for c in self.categories if c == value or c not in self.special)
        if self.actionability is Actionability.IMMUTABLE:
            return (value,)
        ladder = self.ladder if self.actionability is Actionability.CONDITIONAL else self.categories
        if value not in ladder:
            return (value,)
        rank = ladder.index(value)
        found = ladder[: rank + 1] if self.actionability is Actionability.DECREASE else ladder[rank:]
        return tuple(c for c in found if c == value or c not in self.special)


def _choice(enum: type[StrEnum], value: str, what: str) -> Any:
    try:
        return enum(value)
    except ValueError:
        raise DatasetError(f"{what} is {value!r}; {choices(value, enum)}.") from None


def values_of(factual: pd.DataFrame) -> dict[str, Any]:
    """The values of a one-row decoded frame by feature, as plain Python: in a third of the time of ``to_dict``.

    >>> values_of(pd.DataFrame({"age": [40], "job": ["part"]}))
    {'age': 40, 'job': 'part'}
    """
    return dict(zip(factual.columns, factual.to_numpy(object)[0].tolist(), strict=True))


def take(categories: tuple[Any, ...], codes: np.ndarray) -> pd.Series:
    """Categories by code, numbers as numbers and everything else as objects."""
    values = pd.Series(list(categories), dtype=None if all_numbers(categories) else object)
    return values.take(codes).reset_index(drop=True)


def all_numbers(values: tuple[Any, ...]) -> bool:
    """Whether all values are numbers."""
    return all(isinstance(value, int | float | np.number) and not isinstance(value, bool) for value in values)
