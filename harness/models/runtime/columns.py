"""Which inputs the columns of a model are that knows no names: as many as it has, or as the user lists them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from harness.core.errors import UnsupportedError, choices
from harness.core.inputs import Affine, Indicator, Input, Lookup, by_category, space_inputs
from harness.core.space import Feature, Kind, Space

SCALED = "scaled"


def inputs_of(space: Space, width: int | None, given: str | Sequence[Any] | None) -> tuple[Input, ...]:
    """The inputs of a model with so many columns.

    Parameters
    ----------
    width
        None where that is open.
    given
        Names in order: a feature, or ``feature=category`` for a column that is 1 where it holds that and else 0;
        ``scaled``: the columns that the harness trains its own models on. None: every feature as a number, or with a
        column for each category.

    Raises
    ------
    UnsupportedError
        Where they do not fit, without a full stop.
    """
    if given == SCALED:
        found = space_inputs(space)
        if width not in (None, len(found)):
            raise UnsupportedError(_unfit(width, f"the data have {len(found)} scaled ones: {', '.join(space.columns)}"))
        return found
    if given is not None:
        if isinstance(given, str):
            raise UnsupportedError(f"model.columns={given} does not fit; give a list of names, or {SCALED}")
        found = tuple(_named(str(name), space) for name in given)
        if width not in (None, len(found)):
            raise UnsupportedError(_unfit(width, f"model.columns names {len(found)}"))
        return found
    ways = [names for alike in ("all", "ordered", "none") if (names := _names(space, alike)) is not None]
    fits = [names for names in ways if width in (None, len(names))]
    if fits:
        return tuple(_named(name, space) for name in fits[0])
    counts = " or ".join(map(str, sorted({len(names) for names in ways})))
    listed = f"the data have {counts}: {', '.join(ways[-1])}"
    raise UnsupportedError(f"{_unfit(width, listed)}; set model.columns=[...] to those that it takes")


def _unfit(width: int | None, others: str) -> str:
    return f"its input has {width} columns, and {others}"


def number(feature: Feature) -> Input | None:
    """A feature as one number: itself, or its category where that is one, or its rank among two or ordered ones."""
    if feature.numeric:
        return Affine(feature.name)
    try:
        values = tuple(float(value) for value in feature.categories)
    except (TypeError, ValueError):
        if feature.kind is Kind.CATEGORICAL:
            return None
        values = tuple(float(rank) for rank in range(len(feature.categories)))
    if set(values) <= {0.0, 1.0}:
        return Indicator(feature.name, tuple(c for c, v in zip(feature.categories, values, strict=True) if v))
    return Lookup(feature.name, feature.categories, values)


def _names(space: Space, alike: str) -> list[str] | None:
    """The columns, where features are one number each: ``all``, those of two or ordered categories, or ``none`` of two.

    None where that cannot be.
    """
    names: list[str] = []
    for feature in space.features:
        kinds = {"all": (), "ordered": (Kind.CATEGORICAL,), "none": (Kind.CATEGORICAL, Kind.BINARY)}[alike]
        if feature.kind not in kinds:
            if number(feature) is None:
                return None
            names.append(feature.name)
        else:
            names += [f"{feature.name}={value}" for value in feature.categories]
    return names


def _named(name: str, space: Space) -> Input:
    if name in space.names:
        if (found := number(space[name])) is None:
            known = ", ".join(f"{name}={value}" for value in space[name].categories)
            raise UnsupportedError(f"model.columns names {name}, whose categories are texts; name some of {known}")
        return found
    for place in (place for place, sign in enumerate(name) if sign == "="):
        if name[:place] in space.names:
            feature, wanted = space[name[:place]], name[place + 1 :]
            for value in feature.categories:
                if str(value) == wanted:
                    return Indicator(feature.name, (value,))
            raise UnsupportedError(f"{feature.name} has no category {wanted!r}; {choices(wanted, feature.categories)}")
    raise UnsupportedError(f"model.columns names {name!r}, which is no feature; {choices(name, space.names)}")


@dataclass(frozen=True)
class Decoder:
    """From maps of features back to the features; one that no map tells anything of has its first value."""

    features: tuple[Feature, ...]
    inputs: tuple[Input, ...]

    def __call__(self, matrix: np.ndarray) -> pd.DataFrame:
        """A row of features for each row of ``matrix``, shape (rows, inputs)."""
        found: dict[str, Any] = {}
        for feature in self.features:
            own = [place for place, source in enumerate(self.inputs) if source.feature == feature.name]
            if feature.numeric:  # whose only map is the number itself
                found[feature.name] = matrix[:, own[0]] if own else np.full(len(matrix), feature.scale[0])
                continue
            tables = [by_category(feature, self.inputs[place]) for place in own]
            codes = np.zeros(len(matrix), dtype=int)
            if tables:
                away = np.abs(np.column_stack(tables)[None] - matrix[:, None, own]).sum(axis=2)
                codes = away.argmin(axis=1)
            values = np.empty(len(feature.categories), dtype=object)
            values[:] = feature.categories
            found[feature.name] = values[codes]
        return pd.DataFrame(found)
