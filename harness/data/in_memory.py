"""Tables that are in memory already: what is refused, and what is said, before anything is inferred of them."""

from __future__ import annotations

import logging
from collections.abc import Hashable, Mapping
from dataclasses import fields
from typing import Any

import numpy as np
import pandas as pd
from pandas.api.extensions import ExtensionArray
from pandas.api.types import infer_dtype, is_integer_dtype

from harness.core.errors import DatasetError
from harness.core.space import Kind, Space
from harness.data.csv_columns import ID_ROWS, LARGEST, like_an_id
from harness.data.description import Description, one_of
from harness.data.features import EXACT

OF_FILES = ("name", "sources", "tables", "read", "published")
NUMBERS = {"integer", "floating", "mixed-integer-float"}  # of objects
DAYS, TEXTS = "(column - column.min()).dt.days", "column.astype(str)"
OTHERS = {
    "datetime64": ("dates", DAYS), "datetime": ("dates", DAYS), "date": ("dates", "pandas.to_datetime and then days"),
    "timedelta64": ("durations", "column.dt.total_seconds()"), "timedelta": ("durations", "column.dt.total_seconds()"),
    "time": ("times of day", "hours"), "period": ("periods", TEXTS), "interval": ("intervals", TEXTS),
    "decimal": ("decimals", "column.astype(float)"), "bytes": ("bytes", TEXTS),
}  # fmt: skip

logger = logging.getLogger(__name__)


def check_frame(frame: pd.DataFrame, target: Any, features: Any = None, drop: Any = None) -> None:
    """Refuse a frame of other columns than named ones; say what is easily meant otherwise.

    Cells of columns that are dropped, or not among a list of features, may be anything.

    Raises
    ------
    DatasetError
        For names of columns that are no texts, or given twice, and for a target that is no name.
    """
    if target is not None and not isinstance(target, str):
        raise DatasetError(
            f"target is a {type(target).__name__}; give the name of a column of the table, as in "
            "pose(table.assign(**{'label': labels}), 'label', model)."
        )
    if odd := [name for name in frame.columns if not isinstance(name, str)]:
        raise DatasetError(f"the table has a column {odd[0]!r}, which is no text; set table.columns to texts.")
    if not frame.columns.is_unique:
        twice = frame.columns[frame.columns.duplicated()][0]
        raise DatasetError(f"the table has two columns {twice!r}; rename or drop one.")
    kinds: dict[str, str] = {}  # of the cells of columns that are used
    used = [*features, target] if isinstance(features, list) else list(frame.columns)
    used = [name for name in used if name not in drop] if isinstance(drop, list | tuple | pd.Index) else used
    for name in frame.columns:
        if np.iscomplexobj(frame[name]):
            raise DatasetError(f"the table's column {name!r} holds complex numbers; give real ones.")
        if frame[name].dtype == object and not all(isinstance(value, Hashable) for value in frame[name]):
            raise DatasetError(f"the table's column {name!r} holds lists or tables; give a number or text a cell.")
        if name not in used or frame[name].isna().all():
            continue
        levels = frame[name].cat.categories if isinstance(frame[name].dtype, pd.CategoricalDtype) else frame[name]
        kinds[name] = infer_dtype(levels, skipna=True)
        if kinds[name] in OTHERS:
            what, instead = OTHERS[kinds[name]]
            raise DatasetError(
                f"the table's column {name!r} holds {what}; give numbers or texts, as by {instead}, or drop it."
            )
    labels = frame.index.tolist()
    differing = (place for place, label in enumerate(labels) if label is pd.NA or label != place)
    if (place := next(differing, None)) is not None:
        logger.warning(
            "the table: its index is not 0, 1, 2, ...; people are named by their place, so that %r is person %d. With "
            "table.reset_index(drop=True) both are the same.", labels[place], place,
        )  # fmt: skip
    for name in (name for name in kinds if name != target):
        known = frame[name].dropna().unique()
        every = kinds[name] == "string" and len(known) == len(frame) > ID_ROWS
        if every or (is_integer_dtype(frame[name]) and like_an_id(name, np.sort(known), len(frame))):
            logger.warning(
                "the table: column %r has a different %s in every row; if it is an id or a name, leave it out by "
                "drop=[%r], or counterfactuals may change it.", name, "text" if every else "whole number", name,
            )  # fmt: skip
        if frame[name].dtype == object and kinds[name] in NUMBERS:
            logger.warning(
                "the table: column %r holds numbers as objects, and is taken for categories; convert it by "
                "pandas.to_numeric before the model is trained.", name,
            )  # fmt: skip


def settings_of(frame: pd.DataFrame, target: str | None, features: Any, settings: Mapping[str, Any]) -> dict[str, Any]:
    """What ``load_dataset`` takes of a table: attributes of features, where the order of ordered categories is one.

    Only levels that occur are ranked. An order is not kept where gaps become a category, which would have no rank.

    Parameters
    ----------
    features
        Attributes by name, which win over what the table says, or a list of names.
    settings
        All else that was given.
    """
    given = {**settings, "overrides" if isinstance(features, Mapping) else "features": features}
    entries = given.get("overrides") or {}
    if not isinstance(entries, Mapping):
        return given  # refused with the other settings
    drop, label = settings.get("drop"), settings.get("label")
    apart = [target, *(drop if isinstance(drop, list | tuple) else ())]
    apart += [label.get("column")] if isinstance(label, Mapping) else []
    names = features if isinstance(features, list) else [name for name in frame.columns if name not in apart]
    found = dict(entries)
    for name in names:
        entry = {} if entries.get(name) is None else entries[name]
        if name not in frame or not isinstance(entry, Mapping) or entry.get("kind", "ordinal") != "ordinal":
            continue
        if entry.get("costs") is not None:
            continue  # which are of pairs of categories without an order
        if levels := _ordered(frame[name], entry.get("missing") or settings.get("missing")):
            found[name] = {"kind": "ordinal", "categories": levels, **entry}
    return {**given, "overrides": found}


def _ordered(column: pd.Series, remedy: Any) -> list[Any]:
    """The levels of an ordered categorical column that occur, the lowest first; none of other columns."""
    if not isinstance(column.dtype, pd.CategoricalDtype) or not column.dtype.ordered:
        return []
    levels: list[Any] = column.cat.remove_unused_categories().cat.categories.tolist()
    return [] if len(levels) < 2 or (column.isna().any() and remedy in ("category", "value")) else levels


def check_person(space: Space, person: pd.DataFrame) -> None:
    """Refuse values that are no feature's, and numbers too large to compute with, with a ``DatasetError``."""
    space.check(person, what="the person")
    for feature in (feature for feature in space.features if feature.numeric):
        value, largest = person[feature.name].iloc[0], EXACT if feature.kind is Kind.INTEGER else LARGEST
        if not pd.isna(value) and abs(value) > largest:
            raise DatasetError(f"{feature.name} of the person is {value}; allowed: numbers within ±{largest:g}.")


def check_settings(settings: Mapping[str, Any]) -> None:
    """Refuse settings that are of files alone, and those that are none, with a ``DatasetError``."""
    allowed = [field.name for field in fields(Description) if field.name not in OF_FILES]
    for name in settings:
        if name in OF_FILES:
            raise DatasetError(f"{name} is a setting of files, and the table is none; leave it out.")
        one_of(name, [*allowed, "threshold"], "pose has no argument")


def plain(value: Any) -> Any:
    """Values of NumPy and pandas as Python's own, within lists and mappings, too.

    >>> plain({"bounds": (np.int64(18), 60), "categories": pd.Index(["a", "b"])})
    {'bounds': [18, 60], 'categories': ['a', 'b']}
    """
    if isinstance(value, Mapping):
        return {name: plain(own) for name, own in value.items()}
    if isinstance(value, np.generic | np.ndarray | pd.Index | pd.Series | ExtensionArray):
        return value.tolist()
    return [plain(own) for own in value] if isinstance(value, list | tuple) else value
