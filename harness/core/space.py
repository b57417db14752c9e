"""Features and the space they span: kinds, bounds, actionability, and our own scaled columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from harness.core.errors import DatasetError, choices
from harness.core.notation import Notation, number
from harness.core.relation_grammar import parse_relation
from harness.core.relations import Relation

SAME = 1e-9  # two scaled values this near are the same value: rounding of one encode / decode, nothing else


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

    def __post_init__(self) -> None:
        object.__setattr__(self, "kind", _choice(Kind, self.kind, f"kind of {self.name}"))
        object.__setattr__(
            self, "actionability", _choice(Actionability, self.actionability, f"actionability of {self.name}")
        )
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
            return
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

    @property
    def numeric(self) -> bool:
        """Whether the feature holds numbers: continuous or integer."""
        return self.kind in {Kind.CONTINUOUS, Kind.INTEGER}

    def text(self, value: Any) -> str:
        """A value for a reader, written as the data write it."""
        if self.notation is None or not isinstance(value, int | float | np.number):
            return number(value)
        return self.notation.text(float(value))

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
    def range(self) -> float:
        """Original units in one scaled unit; 1 where the training rows hold a single value."""
        return (self.scale[1] - self.scale[0]) or 1.0

    @property
    def ladder(self) -> tuple[Any, ...]:
        """Categories in the order that ``conditional`` climbs."""
        return self.order or self.categories

    @cached_property
    def dtype(self) -> Any:
        """The type of its categories in decoded frames."""
        return _take(self.categories, np.arange(0)).dtype

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
        side; for an integer feature, integers. An empty interval has its first end above its second.

        >>> Feature("age", "integer", scale=(18, 90), bounds=(18, 90), actionability="increase").interval(40)
        (40.0, 90.0)
        """
        low, high = self.bounds
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
        return ladder[: rank + 1] if self.actionability is Actionability.DECREASE else ladder[rank:]


def _choice(enum: type[StrEnum], value: str, what: str) -> Any:
    try:
        return enum(value)
    except ValueError:
        raise DatasetError(f"{what} is {value!r}; {choices(value, enum)}.") from None


@dataclass(frozen=True)
class Space:
    """Features and the scaled columns in which distances, sparsity and constraints are stated, whatever the model.

    One column for a continuous or integer feature (min-max over the training rows), an ordinal one (rank over
    levels - 1) or a binary one (0/1), full one-hot for a categorical one.

    ``constraints`` are relations between features that a counterfactual has to keep, in words
    (``harness.core.relation_grammar``).
    """

    features: tuple[Feature, ...]
    constraints: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "features", tuple(self.features))
        names = [feature.name for feature in self.features]
        if len(set(names)) < len(names):
            raise DatasetError(f"feature names repeat: {names}.")
        object.__setattr__(self, "constraints", tuple(map(str, self.relations)))

    @cached_property
    def relations(self) -> tuple[Relation, ...]:
        """The constraints, read; no two the same."""
        features = dict(zip(self.names, self.features, strict=True))
        found = (parse_relation(text, features) for text in self.constraints)
        return tuple({relation.text: relation for relation in found}.values())

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the features, in column order of every decoded frame."""
        return tuple(feature.name for feature in self.features)

    @cached_property
    def index(self) -> pd.Index:
        """The names as the column index of decoded frames: plain objects, which pandas looks up fastest."""
        return pd.Index(self.names, dtype=object)

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """Names of the encoded columns."""
        return tuple(column for feature in self.features for column in feature.columns)

    @cached_property
    def slices(self) -> tuple[slice, ...]:
        """The encoded columns of each feature."""
        ends = np.cumsum([feature.width for feature in self.features])
        return tuple(slice(int(end) - f.width, int(end)) for end, f in zip(ends, self.features, strict=True))

    def __getitem__(self, name: str) -> Feature:
        for feature in self.features:
            if feature.name == name:
                return feature
        raise DatasetError(f"there is no feature {name!r}; {choices(name, self.names)}.")

    def replace(self, changes: Mapping[str, Mapping[str, Any]]) -> Space:
        """A space in which the named features have other attributes.

        Raises
        ------
        DatasetError
            For a feature or attribute that does not exist.
        """
        features = {feature.name: feature for feature in self.features}
        for name, attributes in changes.items():
            feature = self[name]
            allowed = [key for key in feature.__dataclass_fields__ if key != "name"]
            for key in attributes:
                if key not in allowed:
                    raise DatasetError(f"feature {name} has no attribute {key!r}; {choices(key, allowed)}.")
            values: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in attributes.items()}
            features[name] = replace(feature, **values)
        return Space(tuple(features.values()), self.constraints)

    def check(self, frame: pd.DataFrame, what: str = "the data") -> None:
        """Raise ``DatasetError`` unless every row of ``frame`` is a point of this space (bounds aside)."""
        for name in self.names:
            if name not in frame.columns:
                raise DatasetError(f"{what} has no column {name!r}; {choices(name, frame.columns)}.")
        for feature in self.features:
            values = frame[feature.name]
            if values.isna().any():
                row = values.index[values.isna()][0]
                raise DatasetError(
                    f"{what} has a missing value in column {feature.name!r}, row {row}; "
                    f"fill it in, or set the dataset's 'missing' to drop, median or category."
                )
            if not feature.numeric:
                unseen = ~values.isin(feature.categories)
                if unseen.any():
                    raise DatasetError(
                        f"{what} has the unseen category {values[unseen].iloc[0]!r} in column {feature.name!r}, "
                        f"row {values.index[unseen][0]}; allowed: {', '.join(map(str, feature.categories))}."
                    )
            elif not pd.api.types.is_numeric_dtype(values):
                raise DatasetError(
                    f"{what} holds {values.iloc[0]!r} in column {feature.name!r}, which is {feature.kind}; "
                    f"give numbers, or make the feature categorical."
                )
            elif not np.isfinite(values).all():
                raise DatasetError(f"{what} holds an infinite number in column {feature.name!r}; give finite ones.")
            elif feature.kind is Kind.INTEGER and (values % 1 != 0).any():
                broken = values[values % 1 != 0]
                raise DatasetError(
                    f"{what} holds {broken.iloc[0]} in column {feature.name!r}, row {broken.index[0]}, "
                    f"which is integer; give whole numbers, or make the feature continuous."
                )

    def encode(self, frame: pd.DataFrame) -> np.ndarray:
        """Scaled columns, shape (rows, columns), float64, of a decoded frame that ``check`` accepts."""
        encoded = np.zeros((len(frame), len(self.columns)))
        for feature, columns in zip(self.features, self.slices, strict=True):
            values = frame[feature.name]
            if feature.numeric:
                encoded[:, columns.start] = (values.to_numpy(float) - feature.scale[0]) / feature.range
                continue
            codes = feature.codes(values)
            if (codes < 0).any():
                self.check(frame)
            if feature.kind is Kind.CATEGORICAL:
                encoded[np.arange(len(frame)), columns.start + codes] = 1.0
            else:
                encoded[:, columns.start] = codes / max(len(feature.categories) - 1, 1)
        return encoded

    def decode(self, encoded: np.ndarray, like: pd.DataFrame | None = None) -> pd.DataFrame:
        """Original units of scaled rows: integers and categories exactly (nearest), floats within 4 ulp.

        Parameters
        ----------
        encoded
            Shape (rows, columns).
        like
            A one-row frame; a value within ``SAME`` of its own is given back as it stands there, so that an
            unchanged feature is unchanged to the last bit.
        """
        encoded = np.atleast_2d(encoded)
        origin = None if like is None else self.encode(like)[0]
        data: dict[str, Any] = {}
        for feature, columns in zip(self.features, self.slices, strict=True):
            block = encoded[:, columns]
            if feature.numeric:
                values = feature.scale[0] + block[:, 0] * feature.range
                if feature.kind is Kind.INTEGER:
                    values = np.rint(values)
                if origin is not None and like is not None:
                    same = np.abs(block[:, 0] - origin[columns.start]) <= SAME
                    values = np.where(same, float(like[feature.name].iloc[0]), values)
                data[feature.name] = values.astype(np.int64) if feature.kind is Kind.INTEGER else values
            elif feature.kind is Kind.CATEGORICAL:
                data[feature.name] = _take(feature.categories, block.argmax(axis=1))
            else:
                top = len(feature.categories) - 1
                data[feature.name] = _take(feature.categories, np.clip(np.rint(block[:, 0] * top), 0, top).astype(int))
        return pd.DataFrame(data, columns=self.index)

    def frame(self, rows: Iterable[Mapping[str, Any]]) -> pd.DataFrame:
        """Rows of plain values as a decoded frame, with this space's columns and types."""
        rows = list(rows)
        data = {}
        for feature in self.features:
            values = [row[feature.name] for row in rows]
            if feature.kind is Kind.INTEGER:
                data[feature.name] = np.asarray(values, dtype=np.int64)
            elif feature.kind is Kind.CONTINUOUS:
                data[feature.name] = np.asarray(values, dtype=float)
            else:
                data[feature.name] = pd.Series(values, dtype=feature.dtype)
        return pd.DataFrame(data, columns=self.index)

    def reach(self, factual: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
        """Least and greatest scaled value, per column, that a *changed* feature may take from this factual.

        Shapes (columns,) and (columns,). A feature may always stay as it is, also where its own value lies outside
        (a special code). A one-hot column is at most 0 where its category cannot be reached.
        """
        low, high = np.zeros(len(self.columns)), np.ones(len(self.columns))
        for feature, columns in zip(self.features, self.slices, strict=True):
            value = factual[feature.name].iloc[0]
            if feature.numeric:
                ends = np.array(feature.interval(float(value)))
                low[columns.start], high[columns.start] = (ends - feature.scale[0]) / feature.range
                continue
            codes = np.array([feature.categories.index(c) for c in feature.reachable(value)])
            if feature.kind is Kind.CATEGORICAL:
                high[columns] = np.isin(np.arange(feature.width), codes)
            else:
                top = max(len(feature.categories) - 1, 1)
                low[columns.start], high[columns.start] = codes.min() / top, codes.max() / top
        return low, high

    def reached(self, factual: pd.DataFrame, encoded: np.ndarray) -> np.ndarray:
        """Which features of scaled rows hold a value that a *changed* feature may take, bool, shape (rows, features).

        As ``reach``, but without the ranks inside it that an ordinal feature's ``order`` leaves out.
        """
        low, high = self.reach(factual)
        found = []
        for feature, columns in zip(self.features, self.slices, strict=True):
            block = encoded[:, columns]
            within = ((block >= low[columns] - SAME) & (block <= high[columns] + SAME)).all(axis=1)
            if feature.kind is Kind.ORDINAL and feature.actionability is Actionability.CONDITIONAL:
                codes = feature.codes(feature.reachable(factual[feature.name].iloc[0]))
                within &= np.isin(np.rint(block[:, 0] * max(len(feature.categories) - 1, 1)), codes)
            found.append(within)
        return np.column_stack(found)

    def incoherent(self, frame: pd.DataFrame) -> list[list[str]]:
        """Per row, the features whose value is no value of the feature: missing, unknown, fractional."""
        faults: list[list[str]] = [[] for _ in range(len(frame))]
        for feature in self.features:
            for fault, value in zip(faults, frame[feature.name], strict=True):
                if feature.numeric:
                    number = isinstance(value, int | float | np.number) and np.isfinite(value)
                    ok = number and (feature.kind is Kind.CONTINUOUS or float(value).is_integer())
                else:
                    ok = value in feature.categories
                if not ok:
                    fault.append(feature.name)
        return faults

    def violations(self, factual: pd.DataFrame, frame: pd.DataFrame) -> list[list[str]]:
        """Per row, what it breaks, read off the decoded values: actionability and bounds by feature, and relations.

        From one factual, or from one for each row.
        """
        faults = self.breaches(factual, frame)
        for feature in self.features:
            origins = np.broadcast_to(factual[feature.name].to_numpy(), len(frame)).tolist()
            for fault, origin, value in zip(faults, origins, frame[feature.name], strict=True):
                if value == origin:
                    continue
                if feature.numeric:
                    low, high = feature.interval(float(origin))
                    slack = SAME * feature.range
                    ok = low - slack <= value <= high + slack and value not in feature.special
                else:
                    ok = value in feature.reachable(origin)
                if not ok:
                    fault.append(feature.name)
        return faults

    def breaches(self, factual: pd.DataFrame, frame: pd.DataFrame) -> list[list[str]]:
        """Per row, the relations that it breaks, and further than its factual does: one, or one for each row."""
        if self.relations and len(factual) != 1:
            pairs = ((factual.iloc[[place]], frame.iloc[[place]]) for place in range(len(frame)))
            return [self.breaches(origin, row)[0] for origin, row in pairs]
        faults: list[list[str]] = [[] for _ in range(len(frame))]
        for relation in self.relations:
            for place in np.flatnonzero(~relation.kept(factual, frame)):
                faults[place].append(relation.text)
        return faults

    def changed(self, factual: pd.DataFrame, frame: pd.DataFrame) -> np.ndarray:
        """Which features differ, shape (rows, features), bool: from one factual, or from one for each row.

        Numbers are the same up to ``SAME`` of a range.
        """
        differ = np.empty((len(frame), len(self.features)), dtype=bool)
        for feature, column in zip(self.features, differ.T, strict=True):
            origins, values = factual[feature.name].to_numpy(), frame[feature.name].to_numpy()
            if feature.numeric:
                column[:] = np.abs(values.astype(float) - origins.astype(float)) / feature.range > SAME
            else:
                column[:] = values != origins
        return differ


def _take(categories: tuple[Any, ...], codes: np.ndarray) -> pd.Series:
    """Categories by code, numbers as numbers and everything else as objects."""
    values = pd.Series(list(categories), dtype=None if _numbers(categories) else object)
    return values.take(codes).reset_index(drop=True)


def _numbers(values: tuple[Any, ...]) -> bool:
    return all(isinstance(value, int | float | np.number) and not isinstance(value, bool) for value in values)
