"""Columns as papers publish them, scaled and one-hot, and the factuals of a paper among the rows of a dataset."""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping

import numpy as np
import pandas as pd

from harness.core.errors import DatasetError, choices
from harness.core.inputs import Affine, Indicator, Input, Lookup
from harness.core.space import Kind
from harness.core.tolerances import FILE_TIE
from harness.data.dataset import Dataset
from harness.data.sources import read_bytes

Scale = Mapping[str, tuple[float, float]]


def inputs_of(columns: Iterable[str], dataset: Dataset, scale: Scale | None = None) -> dict[str, Input]:
    """Published columns as maps of a dataset's features, in the order of the features.

    Parameters
    ----------
    columns
        A number's name, for its value from 0 to 1; ``feature_category``, 1 where the feature holds the category.
    scale
        By number, the values that 0 and 1 stand for; the least and the greatest of all rows where it is not given.

    Raises
    ------
    DatasetError
        For a column that is neither.
    """
    known, columns = _columns(dataset, scale or {}), list(columns)
    for column in columns:
        if column not in known:
            raise DatasetError(f"{dataset.name} has no column {column!r}, as published; {choices(column, known)}.")
    return {column: source for column, source in known.items() if column in columns}


def published_name(source: Input) -> str:
    """The published name of an input, as ``inputs_of`` makes it."""
    return f"{source.feature}_{source.levels[-1]}" if isinstance(source, Indicator | Lookup) else source.feature


def _columns(dataset: Dataset, scale: Scale) -> dict[str, Input]:
    """Every column that may be published of a dataset, by name."""
    known: dict[str, Input] = {}
    for feature in dataset.space.features:
        if feature.numeric:
            values = dataset.frame[feature.name]
            low, high = scale.get(feature.name) or (float(values.min()), float(values.max()))
            known[feature.name] = Affine(feature.name, low, (high - low) or 1.0)
        for category in feature.categories:
            known[f"{feature.name}_{category}"] = Indicator(feature.name, (category,))
        if feature.kind is Kind.BINARY and len(feature.categories) == 2:  # as the space's own column has it
            second = Lookup(feature.name, feature.categories, (0.0, 1.0))
            known[f"{feature.name}_{feature.categories[1]}"] = second
    return known


def published_factuals(dataset: Dataset) -> pd.DataFrame:
    """The rows of a dataset that a paper explained, in the paper's order; of rows that are alike, one each.

    Raises
    ------
    DatasetError
        For a dataset without published factuals, for a file that lacks a feature, and for a factual that is no row.
    """
    if dataset.published is None:
        raise DatasetError(
            f"no factuals are published for {dataset.name}; allowed: test, test_then_train, all, row numbers, or a CSV "
            f"file."
        )
    table = pd.read_csv(io.BytesIO(read_bytes(dataset.published)))
    columns = {name: source for name, source in _columns(dataset, {}).items() if name in table}
    if lacking := set(dataset.space.names) - {source.feature for source in columns.values()}:
        raise DatasetError(
            f"the published factuals of {dataset.name} have no {', '.join(sorted(lacking))} as it is here; leave the "
            f"dataset's features and kinds as they are."
        )
    rows = np.column_stack([source(dataset.frame[source.feature]) for source in columns.values()])
    places: list[int] = []
    for number, factual in enumerate(table[list(columns)].to_numpy(float)):
        away = np.abs(rows - factual).max(axis=1)
        away[places] = np.inf
        place = int(away.argmin())
        if away[place] > FILE_TIE:
            raise DatasetError(f"row {number} of {dataset.published.file} is no row of {dataset.name}.")
        places.append(place)
    return dataset.frame.iloc[places]
