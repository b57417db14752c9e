"""What a method claims to minimise, as data: stored with the answers, evaluated here in numpy."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from harness.errors import choices
from harness.problem import Kind, Space


@dataclass(frozen=True)
class Term:
    """``weight`` times a named distance; ``params`` are plain numbers by feature name, where the name needs them."""

    name: str
    weight: float = 1.0
    params: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.name not in TERMS:
            raise ValueError(f"there is no objective term {self.name!r}; {choices(self.name, TERMS)}.")
        if self.weight < 0:
            raise ValueError(f"the weight of {self.name} is {self.weight}; it must be >= 0.")


@dataclass(frozen=True)
class Objective:
    """A weighted sum of distances between a factual and a counterfactual, in scaled space.

    Parameters
    ----------
    terms
        The weighted distances.
    count
        Unit of ``l0``: ``features``, or ``columns`` as in some papers' tables, where a changed one-hot category
        counts 2.
    categories
        What a changed one-hot category weighs in the other distances: 1, or ``columns`` (each changed column 1).
    """

    terms: tuple[Term, ...]
    count: str = "features"
    categories: str | int = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "terms", tuple(self.terms))
        if self.count not in {"features", "columns"}:
            raise ValueError(f"count is {self.count!r}; allowed: features, columns.")
        if self.categories not in {1, "columns"}:
            raise ValueError(f"categories is {self.categories!r}; allowed: 1, columns.")

    def evaluate(self, space: Space, factual: pd.DataFrame, frame: pd.DataFrame) -> np.ndarray:
        """The objective of each decoded row, shape (rows,)."""
        gaps = displacement(space, factual, frame)
        changed = space.changed(factual, frame)
        total = np.zeros(len(frame))
        for term in self.terms:
            weights = self._weights(space, term)
            total += term.weight * TERMS[term.name](gaps, changed, weights)
        return total

    def separable(self, space: Space) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
        """Coefficients (fixed, linear, quadratic), each of shape (features,), or None where it does not separate.

        The objective is then the sum over changed features of fixed + linear * gap + quadratic * gap**2, with the
        gaps of ``displacement``.
        """
        parts = {"fixed": np.zeros(len(space.names)), "linear": np.zeros(len(space.names))}
        parts["quadratic"] = np.zeros(len(space.names))
        for term in self.terms:
            part = SEPARABLE.get(term.name)
            if part is None:
                return None
            parts[part] += term.weight * self._weights(space, term)
        return parts["fixed"], parts["linear"], parts["quadratic"]

    def _weights(self, space: Space, term: Term) -> np.ndarray:
        """Per feature, what one unit of gap (for ``l0``: a change) weighs in this term."""
        by_column = self.count == "columns" if term.name == "l0" else self.categories == "columns"
        double = [2.0 if by_column and feature.kind is Kind.CATEGORICAL else 1.0 for feature in space.features]
        weights = np.array(double)
        if term.name == "gower":
            weights /= len(space.names)
        if term.name == "mad_l1":
            weights *= [1.0 / term.params[f.name] if f.numeric else 1.0 for f in space.features]
        return weights

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for storage; ``Objective.from_dict`` is its inverse."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Objective:
        return cls(tuple(Term(**term) for term in data["terms"]), data["count"], data["categories"])


def displacement(space: Space, factual: pd.DataFrame, frame: pd.DataFrame) -> np.ndarray:
    """How far each feature moved, in scaled units, shape (rows, features).

    A number by its scaled difference, an ordinal one by ranks over levels - 1, any other changed feature by 1.
    """
    gaps = []
    for feature in space.features:
        origin, values = factual[feature.name].iloc[0], frame[feature.name].to_numpy()
        if feature.numeric:
            gaps.append(np.abs(values.astype(float) - float(origin)) / feature.range)
        elif feature.kind is Kind.ORDINAL:
            ranks = feature.codes(values)
            gaps.append(np.abs(ranks - feature.categories.index(origin)) / max(len(feature.categories) - 1, 1))
        else:
            gaps.append(np.asarray(values != origin, dtype=float))
    return np.column_stack(gaps) if gaps else np.zeros((len(frame), 0))


def mad(space: Space, frame: pd.DataFrame, floor: float = 0.01) -> dict[str, float]:
    """Median absolute deviation from the median of each number, in scaled units, by feature name.

    A MAD of 0 must not divide: values below ``floor`` (a share of the range) are raised to it; with ``floor`` 0, the
    published definition, a MAD of 0 becomes 1.

    >>> from harness.problem import Feature
    >>> mad(Space((Feature("a", "continuous", scale=(0, 10)),)), pd.DataFrame({"a": [0.0, 1.0, 2.0, 10.0]}))
    {'a': 0.1}
    """
    result = {}
    for feature in space.features:
        if feature.numeric:
            values = frame[feature.name].to_numpy(float)
            spread = float(np.median(np.abs(values - np.median(values)))) / feature.range
            result[feature.name] = max(spread, floor) or 1.0
    return result


def _weighted(power: int) -> Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]:
    return lambda gaps, changed, weights: (gaps**power) @ weights


TERMS: dict[str, Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]] = {
    "l0": lambda gaps, changed, weights: changed @ weights,
    "l1": _weighted(1),
    "l2sq": _weighted(2),
    "linf": lambda gaps, changed, weights: (gaps * np.minimum(weights, 1.0)).max(axis=1, initial=0.0),
    "mad_l1": _weighted(1),
    "gower": _weighted(1),
}
SEPARABLE = {"l0": "fixed", "l1": "linear", "mad_l1": "linear", "gower": "linear", "l2sq": "quadratic"}
