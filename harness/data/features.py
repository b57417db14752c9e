"""Columns become features: kind, gaps, types, bounds and categories."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from pandas.api.types import is_bool_dtype, is_numeric_dtype

from harness.core.errors import DatasetError
from harness.core.space import Actionability, Feature, Kind
from harness.core.target import class_named
from harness.data.costs import costed
from harness.data.description import Description, one_of
from harness.data.gaps import NUMERIC, Gaps

OF_NUMBERS = ("bounds", "clip", "special")
OF_CATEGORIES = ("categories", "order")
OF_GAPS = ("missing", "may_be_missing")
OF_COSTS = ("weight", "weight_up", "weight_down", "costs", "percentile")
ENDS = ("bounds", "clip")
ATTRIBUTES = ("kind", "actionability", *OF_NUMBERS, *OF_CATEGORIES, *OF_GAPS, *OF_COSTS)
FAR = 1000  # training ranges beyond the scale that stand for no bound: farther than any counterfactual lies
EXACT = 10**14  # greatest whole number that scaling to [0, 1] and back gives back, whatever the range


@dataclass(frozen=True)
class Filled:
    """A column without gaps, how many cells were filled, and what with; None where nothing is filled in."""

    values: pd.Series
    count: int = 0
    filler: Any = None


def feature_entries(about: Description, columns: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Attributes of each feature, features in order."""
    chosen = about.features if isinstance(about.features, Mapping) else dict.fromkeys(about.features or columns)
    unknown = f"{about.name} has no feature"
    for feature in chosen:
        one_of(feature, columns, unknown)
    entries: dict[str, dict[str, Any]] = {feature: {} for feature in chosen}
    for feature in about.immutable:
        one_of(feature, columns, unknown)
        if feature in entries:
            entries[feature]["actionability"] = Actionability.IMMUTABLE
    for layer in (chosen, about.overrides or {}):
        for feature, attributes in layer.items():
            one_of(feature, entries, unknown)
            check_attributes(feature, attributes)
            for key in attributes or {}:
                one_of(key, ATTRIBUTES, f"feature {feature} has no attribute")
            entries[feature].update(attributes or {})
    return entries


def check_attributes(feature: str, attributes: Any) -> None:
    """Refuse attributes of a feature that are not given by name.

    Raises
    ------
    DatasetError
        In one sentence.
    """
    if not isinstance(attributes, Mapping | None):
        raise DatasetError(
            f"the attributes of feature {feature} are {attributes!r}; give them by name, such as "
            f"features.{feature}.actionability=increase."
        )


def inferred_kind(values: pd.Series, missing: Any) -> Kind:
    """The kind of a column, by its values; ``missing`` is what becomes of its gaps."""
    third = missing in ("category", "value") and values.isna().any()  # "missing" is one
    values = values.dropna()
    if is_bool_dtype(values) or not is_numeric_dtype(values):
        return Kind.BINARY if values.nunique() <= 2 and not third else Kind.CATEGORICAL
    if set(values.unique()) == {0, 1} and not (third and missing == "value"):  # numbers may keep their gaps
        return Kind.CATEGORICAL if third else Kind.BINARY
    return Kind.INTEGER if _whole(values).all() and values.abs().max() <= EXACT else Kind.CONTINUOUS


def filled(values: pd.Series, kind: Kind, gaps: Gaps, train: np.ndarray, special: tuple[float, ...]) -> Filled:
    """The column without gaps.

    Raises
    ------
    DatasetError
        Where ``gaps`` is no remedy for a column of this kind.
    """
    missing = values.isna()
    if not missing.any():
        return Filled(values, filler=_spare(values, kind, gaps, train, special))
    if gaps.keeps(kind):
        return Filled(_check_numbers(gaps.feature, values.dropna(), kind).reindex(values.index), int(missing.sum()))
    known = values[~missing]
    known = _check_numbers(gaps.feature, known, kind) if kind in NUMERIC else plain_values(known).astype(object)
    column = known.reindex(values.index)
    filler = gaps.filler(column, kind, train, special)
    return Filled(column.where(~missing, filler).infer_objects(), int(missing.sum()), filler)


def _spare(values: pd.Series, kind: Kind, gaps: Gaps, train: np.ndarray, special: tuple[float, ...]) -> Any:
    """What fills the gaps of people who come later, of a column that has none; None where nothing does."""
    unread = kind in NUMERIC and not is_numeric_dtype(values)
    if gaps.remedy in ("error", "drop", "value") or gaps.levels(kind) or unread:
        return None
    try:
        return gaps.filler(values, kind, train, special)
    except DatasetError:
        if gaps.own:
            raise
        return None


def typed(feature: str, values: pd.Series, kind: Kind) -> pd.Series:
    """The column in the type of its kind: int64, float64 (whole numbers beside gaps, too), or plain categories."""
    if kind not in NUMERIC:
        return plain_values(values)
    whole = kind is Kind.INTEGER and not values.isna().any()
    return _check_numbers(feature, values.dropna(), kind).reindex(values.index).astype(np.int64 if whole else float)


def _check_numbers(feature: str, values: pd.Series, kind: Kind) -> pd.Series:
    if not is_numeric_dtype(values):
        if pd.to_numeric(values, errors="coerce").notna().all():
            raise DatasetError(
                f"column {feature!r} is {kind} and holds its numbers as texts, objects or dates, such as "
                f"{values.iloc[0]!r}; convert it, as by pandas.to_numeric, or make the feature categorical."
            )
        text = values[pd.to_numeric(values, errors="coerce").isna()]
        raise DatasetError(
            f"column {feature!r} is {kind} but holds {text.iloc[0]!r} in row {text.index[0]}; "
            f"list that in 'na_values' of 'read', or make the feature categorical."
        )
    if kind is Kind.INTEGER and not _whole(values).all():
        odd = values[~_whole(values)]
        raise DatasetError(
            f"column {feature!r} is integer but holds {odd.iloc[0]} in row {odd.index[0]}; make it continuous."
        )
    if kind is Kind.INTEGER and (large := values[values.abs() > EXACT]).size:
        raise DatasetError(
            f"column {feature!r} is integer but holds {large.iloc[0]} in row {large.index[0]}, too large to be exact; "
            f"make it continuous, or drop it."
        )
    return values


def plain_values(values: pd.Series) -> pd.Series:
    """Categories as int64, float64 or plain objects: a code 3 that became 3.0 beside a gap is 3 again."""
    if is_bool_dtype(values) or not is_numeric_dtype(values):
        return values.astype(object)
    return values.astype(np.int64 if _whole(values).all() else np.float64)


def _whole(values: pd.Series) -> pd.Series:
    return np.isfinite(values) & (values == np.rint(values))


def distinct(values: pd.Series) -> tuple[Any, ...]:
    """Distinct values, numbers before texts."""
    return tuple(sorted(values.unique().tolist(), key=lambda value: (isinstance(value, str), value)))


def fitting_entry(feature: str, kind: Kind, entry: Mapping[str, Any]) -> dict[str, Any]:
    """The entry, lists as tuples, without empty ones (an override's way to take an attribute back)."""
    fitting = {key: value for key, value in entry.items() if key not in {*OF_NUMBERS, *OF_CATEGORIES, *OF_GAPS}}
    allowed = OF_NUMBERS if kind in NUMERIC else OF_CATEGORIES
    for key in [key for key in (*OF_NUMBERS, *OF_CATEGORIES) if entry.get(key)]:
        value = entry[key]
        if key not in allowed:
            raise DatasetError(f"feature {feature} is {kind}, which has no {key}; it may have {' and '.join(allowed)}.")
        ends = value if isinstance(value, list | tuple) else ()
        numbers = all(isinstance(end, int | float) or (key in ENDS and end is None) for end in ends)
        if not isinstance(value, list | tuple) or (key in OF_NUMBERS and not numbers):
            raise DatasetError(
                f"{key} of {feature} is {value!r}; give a list{' of numbers' if key in OF_NUMBERS else ''}."
            )
        fitting[key] = tuple(value)
    for key in ENDS:
        if len(ends := fitting.get(key, (None, None))) != 2:
            verb = "are" if key == "bounds" else "is"
            raise DatasetError(f"{key} of {feature} {verb} {list(ends)}; give two numbers, the smaller first.")
    return fitting


def described(
    feature: str, kind: Kind, values: pd.Series, train: np.ndarray, entry: Mapping[str, Any], unbounded: bool
) -> Feature:
    """Describe a column: its entry, completed from the values."""
    found = _described(feature, kind, values, train, entry, unbounded)
    return costed(found, values.iloc[train], {key: entry[key] for key in OF_COSTS if entry.get(key) is not None})


def _described(
    feature: str, kind: Kind, values: pd.Series, train: np.ndarray, entry: Mapping[str, Any], unbounded: bool
) -> Feature:
    actionability = entry.get("actionability", Actionability.FREE)
    if kind in NUMERIC:
        special = entry.get("special", ())
        seen = values.iloc[train].dropna()
        seen = seen[~seen.isin(special)]
        if seen.empty:
            raise DatasetError(
                f"column {feature!r} holds no number but special codes in the training rows; list it in 'drop'."
            )
        scale = (float(seen.min()), float(seen.max()))
        own = scale
        if scale[0] == scale[1] and entry.get("actionability", Actionability.IMMUTABLE) != Actionability.IMMUTABLE:
            own = scale[0] - 1.0, scale[1] + 1.0  # a single value that may change gives no range to keep to
        bounds = _bounds(scale, entry.get("bounds", (-np.inf, np.inf) if unbounded else own))
        found = Feature(feature, kind, scale=scale, bounds=bounds, actionability=actionability, special=special)
        return replace(found, missing=bool(entry.get("missing")), may_be_missing=bool(entry.get("may_be_missing")))
    present = distinct(values)
    directed = actionability in {Actionability.INCREASE, Actionability.DECREASE}
    ranked = kind is Kind.ORDINAL or directed or (actionability == Actionability.CONDITIONAL and not entry.get("order"))
    if ranked and "categories" not in entry:
        check_ranked(feature, present, "categories")
    # a code may be text in YAML and a number in the file, or the other way round; or true, and 1
    texts = {str(value): value for value in present}
    equal = {value: value for value in present}

    def as_held(value: Any) -> Any:
        held = texts[str(value)] if str(value) in texts else equal.get(value, class_named(value, present))
        return value if held is None else held

    categories = tuple(map(as_held, entry.get("categories", present)))
    order = tuple(map(as_held, entry.get("order", ())))
    special = entry.get("special", ())
    return Feature(feature, kind, categories, actionability=actionability, order=order, special=special)


def check_ranked(feature: str, values: Sequence[Any], attribute: str) -> None:
    """Refuse texts as an order unless all are whole numbers of one length: that of the alphabet is seldom meant.

    Raises
    ------
    DatasetError
        That asks for the order as this attribute of the feature.
    """
    codes = len({len(str(value)) for value in values}) == 1 and all(str(value).isdecimal() for value in values)
    if not codes and any(isinstance(value, str) for value in values):
        raise DatasetError(
            f"column {feature!r} is ordered, and how is not known of {', '.join(map(str, values[:5]))}; give "
            f"features.{feature}.{attribute}, the lowest first."
        )


def bounds_of(feature: Feature, given: Any) -> tuple[float, float]:
    """Bounds that are given to a feature of a dataset that was read: an end that is None is the training rows' own, as
    are both where they are empty; an infinite one lies far beyond.

    Raises
    ------
    DatasetError
        For a feature without numbers, and unless they are two numbers, each of which may be None or infinite.
    """
    fitting = fitting_entry(feature.name, feature.kind, {"bounds": given})
    return _bounds(feature.scale, fitting.get("bounds", (None, None)))


def _bounds(scale: tuple[float, float], given: Sequence[float | None]) -> tuple[float, float]:
    """Finite bounds: an end that is None is the scale's own, an infinite one lies ``FAR`` ranges beyond the scale."""
    low, high = (own if end is None else float(end) for own, end in zip(scale, given, strict=True))
    far = FAR * ((scale[1] - scale[0]) or 1.0)
    return scale[0] - far if low == -np.inf else low, scale[1] + far if high == np.inf else high
