"""Relations between features that a counterfactual has to keep: a normal form, and whether rows keep it.

``harness.core.relation_grammar`` reads them from text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from harness.core.feature import Feature
from harness.core.tolerances import DECODING


@dataclass(frozen=True)
class Number:
    """What a row adds up: a numeric feature's value, or a number for each category of any other.

    Parameters
    ----------
    table
        By category, in the order of ``feature.categories``; empty for a numeric feature.
    """

    feature: Feature
    table: tuple[float, ...] = ()

    def __call__(self, frame: pd.DataFrame) -> np.ndarray:
        """Of decoded rows, float, shape (rows,)."""
        values = frame[self.feature.name]
        return np.asarray(self.table)[self.feature.codes(values)] if self.table else values.to_numpy(float)

    @property
    def range(self) -> float:
        """How far apart two values are at most, on the training rows' scale."""
        return max(self.table) - min(self.table) if self.table else self.feature.range


@dataclass(frozen=True)
class Change:
    """1 where a feature changes, else 0."""

    feature: Feature

    range = 1.0


Quantity = Number | Change


@dataclass(frozen=True)
class Literal:
    r""":math:`\sum_j a_j q_j \le b`, or :math:`<`.

    Parameters
    ----------
    terms
        The quantities :math:`q_j` with their coefficients.
    high
        b, in the data's units.
    strict
        Whether b itself is too much. Numbers within ``DECODING`` of b count as b.
    moved
        Whether b counts from the sum at the factual.
    given
        Whether it comes from the condition of an implication, which no factual relaxes.
    """

    terms: tuple[tuple[Quantity, float], ...]
    high: float = 0.0
    strict: bool = False
    moved: bool = False
    given: bool = False

    @property
    def unit(self) -> float:
        """The range of the sum; 1 where its quantities are constant."""
        return sum(abs(weight) * quantity.range for quantity, weight in self.terms) or 1.0

    @property
    def relative(self) -> bool:
        """Whether it is about how a row differs from the factual."""
        return self.moved or any(isinstance(quantity, Change) for quantity, _ in self.terms)


@dataclass(frozen=True)
class Row:
    r"""A literal for one factual: :math:`\sum_j a_j x_j + \sum_j c_j [x_j \ne \hat x_j] + \sum_l t_l(x_l) \le b`.

    Parameters
    ----------
    numbers
        :math:`a_j` of numeric features.
    changes
        :math:`c_j` of numeric features.
    tables
        :math:`t_l` of all other features, by category.
    high, strict, unit
        As of ``Literal``.
    """

    numbers: Mapping[Feature, float]
    changes: Mapping[Feature, float]
    tables: Mapping[Feature, np.ndarray]
    high: float
    strict: bool
    unit: float
    origin: Mapping[str, Any] = field(repr=False)

    @classmethod
    def of(cls, literal: Literal, factual: pd.DataFrame, relaxed: bool) -> Row:
        """The literal for a factual; where ``relaxed``, and the factual itself breaks it, as far as the factual."""
        numbers: dict[Feature, float] = {}
        changes: dict[Feature, float] = {}
        tables: dict[Feature, np.ndarray] = {}
        origin = {quantity.feature.name: factual[quantity.feature.name].iloc[0] for quantity, _ in literal.terms}
        start = 0.0
        for quantity, weight in literal.terms:
            feature = quantity.feature
            if isinstance(quantity, Number):
                start += weight * float(quantity(factual)[0])
            if feature.numeric:
                kept = numbers if isinstance(quantity, Number) else changes
                kept[feature] = kept.get(feature, 0.0) + weight
                continue
            differs = [float(category != origin[feature.name]) for category in feature.categories]
            table = np.asarray(quantity.table if isinstance(quantity, Number) else differs, dtype=float)
            tables[feature] = tables.get(feature, 0.0) + weight * table
        high = literal.high + (start if literal.moved else 0.0)
        found = cls(numbers, changes, tables, high, literal.strict, literal.unit, origin)
        if relaxed and not found.holds(factual)[0]:
            return cls(numbers, changes, tables, start, False, literal.unit, origin)
        return found

    def excess(self, frame: pd.DataFrame) -> np.ndarray:
        """How far the sum of decoded rows lies above b, shape (rows,)."""
        total = np.full(len(frame), -self.high)
        for feature, slope in self.numbers.items():
            total += slope * frame[feature.name].to_numpy(float)
        for feature, price in self.changes.items():
            moved = np.abs(frame[feature.name].to_numpy(float) - float(self.origin[feature.name]))
            total += price * (moved > DECODING * feature.range)
        for feature, table in self.tables.items():
            total += table[feature.codes(frame[feature.name])]
        return total

    def holds(self, frame: pd.DataFrame) -> np.ndarray:
        """Of decoded rows, bool, shape (rows,)."""
        excess, rounding = self.excess(frame), DECODING * self.unit
        return excess < -rounding if self.strict else excess <= rounding


@dataclass(frozen=True)
class Relation:
    """What every counterfactual has to keep: of each clause at least one literal.

    Parameters
    ----------
    text
        As it was written, blanks set anew.
    clauses
        All of them have to hold.
    features
        The names of the features that it relates, those whose terms cancel out included.
    """

    text: str
    clauses: tuple[tuple[Literal, ...], ...]
    features: tuple[str, ...]

    def __str__(self) -> str:
        return self.text

    def broken_by(self, frame: pd.DataFrame) -> np.ndarray:
        """Which decoded rows break it by themselves, bool, shape (rows,); one about changes none does."""
        broken = np.zeros(len(frame), dtype=bool)
        for clause in self.clauses if len(frame) else ():
            if not any(literal.relative for literal in clause):
                held = [Row.of(literal, frame.iloc[[0]], relaxed=False).holds(frame) for literal in clause]
                broken |= ~np.any(held, axis=0)
        return broken

    def rows(self, factual: pd.DataFrame) -> list[list[Row]]:
        """The clauses for a one-row factual, none of which it breaks by itself.

        What a clause that the factual breaks asks for is relaxed to what the factual has: its literals, in an
        implication those of the conclusion.
        """
        found = []
        for clause in self.clauses:
            rows = [Row.of(literal, factual, relaxed=False) for literal in clause]
            absolute = not any(literal.relative for literal in clause)
            if absolute and not any(row.holds(factual)[0] for row in rows):
                rows = [Row.of(literal, factual, relaxed=not literal.given) for literal in clause]
            found.append(rows)
        return found

    def kept(self, factual: pd.DataFrame, frame: pd.DataFrame) -> np.ndarray:
        """Which decoded rows keep it, or break it no further than the factual does, bool, shape (rows,)."""
        return all_kept(self.rows(factual), frame)


def clauses_of(relations: Sequence[Relation], factual: pd.DataFrame) -> list[list[Row]]:
    """The clauses of all relations for a one-row factual, as ``Relation.rows`` has them."""
    return [clause for relation in relations for clause in relation.rows(factual)]


def all_kept(clauses: Sequence[Sequence[Row]], frame: pd.DataFrame) -> np.ndarray:
    """Which decoded rows keep all clauses, of each at least one literal; bool, shape (rows,)."""
    found = np.ones(len(frame), dtype=bool)
    for clause in clauses:
        found &= np.any([row.holds(frame) for row in clause], axis=0)
    return found


def refusal(relations: Sequence[Relation], method: str) -> str | None:
    """Why a method whose proofs know of no relations takes no problem that has some; None where there are none."""
    if not relations:
        return None
    shown = ", ".join(repr(relation.text) for relation in relations)
    return f"{method} keeps no relations between features, and its proofs would be wrong; ask ce_ocl, or drop {shown}."
