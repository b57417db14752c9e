"""Decoded frames as the ``dice_ml`` library wants them, and back."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from harness.core.problem import Problem
from harness.core.space import Feature, Kind

DECIMALS = 2  # of a continuous number in the library's units
STEPS = 1000  # the library rounds continuous values; at least so many steps span the bulk of the training rows


class Dialect:
    """Decoded frames as the library wants them, and back.

    Columns have names of their own, since the library adds some (``distance``, ``sparsity``) to the frame; equally long
    ones, since it looks for some names as the beginnings of others. Numbers
    come first: the library reads its list of precisions by column. They are rounded to their precision, and are kept
    in float32 by the library. Continuous ones come in units of which that is the second decimal: the library stops to
    move a number back 0.001 before the factual's, whatever its units. Categories are the digits of their codes.
    """

    def __init__(self, problem: Problem) -> None:
        ordered = sorted(problem.space.features, key=lambda feature: not feature.numeric)
        self.space = problem.space
        self.features = {f"x{position:04d}": feature for position, feature in enumerate(ordered)}
        self.precision = {name: _precision(f, problem.train[f.name]) for name, f in self.features.items() if f.numeric}
        self.decimals = {name: DECIMALS if self._continuous(name) else 0 for name in self.precision}  # in its units
        self.values = {name: _objects(f.categories) for name, f in self.features.items() if not f.numeric}
        self.seen = {f.name: set(problem.train[f.name]) for f in ordered if not f.numeric}

    def _continuous(self, name: str) -> bool:
        return self.features[name].kind is Kind.CONTINUOUS

    def units(self, name: str) -> float:
        """How many of the library's units a unit of a number has."""
        return float(10.0 ** (self.precision[name] - self.decimals[name]))

    def _rounded(self, name: str, numbers: Any) -> Any:
        """Decoded numbers in the library's units."""
        return np.round(numbers * self.units(name), self.decimals[name])

    def encode(self, frame: pd.DataFrame) -> pd.DataFrame:
        """The library's columns of a decoded frame, rows numbered from 0."""
        data: dict[str, Any] = {}
        for name, feature in self.features.items():
            column = frame[feature.name]
            if feature.numeric:
                data[name] = self._rounded(name, column.to_numpy())
            else:
                data[name] = pd.Index(feature.categories).get_indexer(column).astype(str)
        return pd.DataFrame(data)

    def decode(self, frame: pd.DataFrame, factual: pd.DataFrame | None = None) -> pd.DataFrame:
        """The inverse of ``encode``.

        A number that rounds as ``factual``'s does is that number. A number that rounding takes out of its interval is
        put back: sampling may pass the end by one step, and rounding by half a step.
        """
        data: dict[str, Any] = {}
        for name, feature in self.features.items():
            column = frame[name].to_numpy()
            if not feature.numeric:
                data[feature.name] = self.values[name][column.astype(int)]
                continue
            precision = self.precision[name]
            numbers = np.round(column.astype(float) / self.units(name), precision)
            if factual is not None:
                origin = float(factual[feature.name].iloc[0])
                slack = 2 * 10.0**-precision if feature.kind is Kind.CONTINUOUS else 0.0
                inside = np.clip(numbers, *feature.interval(origin))
                inside = np.where(np.abs(inside - numbers) <= slack, inside, numbers)
                own = np.round(self._rounded(name, origin) / self.units(name), precision)
                numbers = np.where(numbers == own, origin, inside)
            data[feature.name] = numbers.astype(np.int64) if feature.kind is Kind.INTEGER else numbers
        return pd.DataFrame(data, columns=list(self.space.names))

    def exists(self, frame: pd.DataFrame) -> np.ndarray:
        """Which of the library's rows are points of the space, bounds aside, bool, shape (rows,)."""
        found = np.ones(len(frame), dtype=bool)
        for name, feature in self.features.items():
            values = pd.to_numeric(frame[name], errors="coerce").to_numpy(float)
            found &= np.isfinite(values) if feature.numeric else np.isin(values, range(len(feature.categories)))
        return found

    def unseen(self, factual: pd.DataFrame) -> list[str]:
        """The factual's categories that are in no training row, as "feature = value"."""
        own = {name: factual[name].iloc[0] for name in self.seen}
        return [f"{name} = {value}" for name, value in own.items() if value not in self.seen[name]]

    def permitted(self, factual: pd.DataFrame, only_free: bool = False) -> dict[str, list[Any]]:
        """Range or categories that each feature may take, for those that may change at all.

        With ``only_free``, of other features than numbers only those that may take any category.
        """
        permitted: dict[str, list[Any]] = {}
        for name, feature in self.features.items():
            value = factual[feature.name].iloc[0]
            if feature.numeric:
                low, high = self._range(name, feature, float(value))
                if low < high:
                    permitted[name] = [low, high]
                continue
            reachable = [level for level in feature.reachable(value) if level in self.seen[feature.name]]
            if len(reachable) > 1 and not (only_free and len(reachable) < len(self.seen[feature.name])):
                permitted[name] = [str(feature.categories.index(level)) for level in reachable]
        return permitted

    def _range(self, name: str, feature: Feature, value: float) -> tuple[float, float]:
        """The interval of a number, rounded as the library rounds the numbers that it compares with the ends.

        It draws evenly from all of it, so bounds beyond the training rows would make it useless: they are cut to those.
        """
        low, high = feature.interval(value)
        low, high = max(low, min(feature.scale[0], value)), min(high, max(feature.scale[1], value))
        low, high = (float(self._rounded(name, end)) for end in (low, high))
        if not self._continuous(name):
            return int(low), int(high)  # drawn with randint
        return float(np.float32(low)), float(np.float32(high))


def _precision(feature: Feature, values: pd.Series) -> int:
    """Decimals to which the library rounds a number; negative for hundreds and the like.

    Its own rule, the decimals of the most frequent value, can mean thousands of model calls a feature: numbers are
    moved back step by step. The tails are left out, as one outlier would make the steps too coarse for everyone else.
    """
    if feature.kind is Kind.INTEGER:
        return 0
    low, high = np.quantile(values, [0.05, 0.95])
    return int(np.ceil(np.log10(STEPS / ((high - low) or feature.range))))


def _objects(values: tuple[Any, ...]) -> np.ndarray:
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array
