"""The space that features span, and our own scaled columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from harness.core.costs import Price
from harness.core.errors import DatasetError, choices, lacking
from harness.core.feature import Actionability, Feature, Kind, take, values_of
from harness.core.gaps import missing, same
from harness.core.relation_grammar import parse_relation
from harness.core.relations import Relation
from harness.core.tolerances import COORDINATE_TIE

__all__ = ["COORDINATE_TIE", "Actionability", "Feature", "Kind", "Space", "values_of"]


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
        relations = tuple({relation.text: relation for relation in found}.values())
        for relation in relations:
            for name in relation.features:
                if features[name].missing:
                    raise DatasetError(
                        f"relation {relation.text!r} is about {name}, which keeps missing values, and of those it says "
                        f"nothing; set features.{name}.missing to median, or another filler, or drop the relation."
                    )
        return relations

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the features, in column order of every decoded frame."""
        return tuple(feature.name for feature in self.features)

    @cached_property
    def immutable(self) -> frozenset[str]:
        """The names of the features that may not change."""
        return frozenset(f.name for f in self.features if f.actionability is Actionability.IMMUTABLE)

    @cached_property
    def gaps(self) -> tuple[Feature, ...]:
        """The features of which rows may hold no value."""
        return tuple(feature for feature in self.features if feature.missing)

    @cached_property
    def weights(self) -> np.ndarray:
        """What a unit of each feature's change costs where that is the same wherever it leads, shape (features,)."""
        return np.array([feature.price.weight for feature in self.features], dtype=float)

    @cached_property
    def rates(self) -> np.ndarray:
        """``extremes`` of each feature, shape (features, 2)."""
        return np.array([feature.extremes for feature in self.features], dtype=float).reshape(-1, 2)

    @cached_property
    def priced(self) -> bool:
        """Whether changes have costs of their own."""
        return any(feature.priced for feature in self.features)

    @cached_property
    def curved(self) -> tuple[str, ...]:
        """The numbers that are measured by how much of the population they pass."""
        return tuple(feature.name for feature in self.features if feature.curved)

    @cached_property
    def even(self) -> bool:
        """Whether a unit of each feature's change costs the same wherever it leads."""
        return all(feature.even for feature in self.features)

    @cached_property
    def unpriced(self) -> Space:
        """The same features, without costs of their own."""
        if not self.priced:
            return self
        return replace(self, features=tuple(replace(feature, price=Price()) for feature in self.features))

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
            prices = Price.__dataclass_fields__
            allowed = [key for key in (*feature.__dataclass_fields__, *prices) if key not in ("name", "price")]
            for key in attributes:
                if key not in allowed:
                    raise DatasetError(f"feature {name} has no attribute {key!r}; {choices(key, allowed)}.")
            values: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in attributes.items()}
            price = {key: values.pop(key) for key in prices if key in values}
            features[name] = replace(feature, **values, price=replace(feature.price, **price))
        return Space(tuple(features.values()), self.constraints)

    def check(self, frame: pd.DataFrame, what: str = "the data") -> None:
        """Raise ``DatasetError`` unless every row of ``frame`` is a point of this space (bounds aside)."""
        for name in self.names:
            if name not in frame.columns:
                raise DatasetError(lacking(what, name, frame.columns, self.names))
        for feature in self.features:
            values = frame[feature.name]
            if feature.missing:
                values = values.dropna()
                if values.empty:
                    continue
            elif values.isna().any():
                row = values.index[values.isna()][0]
                raise DatasetError(
                    f"{what} has a missing value in column {feature.name!r}, row {row}; "
                    f"fill it in, or set features.{feature.name}.missing, to median say, or dataset.missing for all."
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
        """Scaled columns, shape (rows, columns), float64, of a decoded frame that ``check`` accepts; gaps are NaN."""
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
                encoded[:, columns.start] = codes / feature.steps
        return encoded

    def decode(self, encoded: np.ndarray, like: pd.DataFrame | None = None) -> pd.DataFrame:
        """Original units of scaled rows: integers and categories exactly (nearest), floats within 4 ulp.

        Parameters
        ----------
        encoded
            Shape (rows, columns).
        like
            A one-row frame; a value within ``COORDINATE_TIE`` of its own is given back as it stands there, so that an
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
                    same = np.abs(block[:, 0] - origin[columns.start]) <= COORDINATE_TIE
                    values = np.where(same, float(like[feature.name].iloc[0]), values)
                data[feature.name] = values.astype(feature.dtype)
            elif feature.kind is Kind.CATEGORICAL:
                data[feature.name] = take(feature.categories, block.argmax(axis=1))
            else:
                top = len(feature.categories) - 1
                data[feature.name] = take(feature.categories, np.clip(np.rint(block[:, 0] * top), 0, top).astype(int))
        return pd.DataFrame(data, columns=self.index)

    def frame(self, rows: Iterable[Mapping[str, Any]]) -> pd.DataFrame:
        """Rows of plain values as a decoded frame, with this space's columns and types."""
        rows = list(rows)
        data: dict[str, Any] = {}
        for feature in self.features:
            values = [row[feature.name] for row in rows]
            if feature.numeric:
                data[feature.name] = np.asarray(values, dtype=feature.dtype)
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
                top = feature.steps
                low[columns.start], high[columns.start] = codes.min() / top, codes.max() / top
        return low, high

    def reached(self, factual: pd.DataFrame, encoded: np.ndarray) -> np.ndarray:
        """Which features of scaled rows hold a value that a *changed* feature may take, bool, shape (rows, features).

        As ``reach``, but without special codes, and without ranks inside it that an ordinal's ``order`` leaves out.
        """
        low, high = self.reach(factual)
        found = []
        for feature, columns in zip(self.features, self.slices, strict=True):
            block = encoded[:, columns]
            within = ((block >= low[columns] - COORDINATE_TIE) & (block <= high[columns] + COORDINATE_TIE)).all(axis=1)
            near = min(COORDINATE_TIE, 0.5 / feature.range) if feature.kind is Kind.INTEGER else COORDINATE_TIE
            for code in feature.special if feature.numeric else ():
                within &= np.abs(block[:, 0] - (code - feature.scale[0]) / feature.range) >= near
            if feature.loses:
                within |= np.isnan(block[:, 0])
            if feature.kind is Kind.ORDINAL:
                codes = feature.codes(feature.reachable(factual[feature.name].iloc[0]))
                within &= np.isin(np.rint(block[:, 0] * feature.steps), codes)
            found.append(within)
        return np.column_stack(found)

    def incoherent(self, frame: pd.DataFrame) -> list[list[str]]:
        """Per row, the features whose value is no value of the feature: missing, unknown, fractional."""
        faults: list[list[str]] = [[] for _ in range(len(frame))]
        for feature in self.features:
            for fault, value in zip(faults, frame[feature.name], strict=True):
                if feature.missing and missing(value):
                    continue
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
                if same(value, origin):
                    continue
                if feature.numeric and missing(value):
                    ok = feature.loses
                elif feature.numeric:
                    low, high = feature.interval(origin)
                    slack = COORDINATE_TIE * feature.range
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

        Numbers are the same up to ``COORDINATE_TIE`` of a range.
        """
        differ = np.empty((len(frame), len(self.features)), dtype=bool)
        for feature, column in zip(self.features, differ.T, strict=True):
            origins, values = factual[feature.name].to_numpy(), frame[feature.name].to_numpy()
            if feature.numeric:
                column[:] = feature.moved(origins, values) > COORDINATE_TIE
            else:
                column[:] = values != origins
        return differ
