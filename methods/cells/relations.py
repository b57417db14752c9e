"""Relations between features as boxes of states that the search over cells leaves out."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd

from harness.core.relations import Change, Literal, Relation, Row
from harness.core.space import Feature, Kind, Space
from harness.core.tolerances import DECODING
from methods.cells.records import Box

MOST = 1000  # combinations of values of a clause, each a box at most


def boxed(relation: Relation) -> bool:
    """Whether a relation is boxes of few states: sums of several numbers only of whole ones with few values."""
    return all(_combinations(clause) <= MOST for clause in relation.clauses)


def _combinations(clause: Sequence[Literal]) -> float:
    """How many combinations of values a clause tells apart, at most; inf for sums of continuous numbers."""
    counts: dict[str, float] = {}
    for literal in clause:
        for quantity, _ in literal.terms:
            feature, values = quantity.feature, 3.0
            if not feature.numeric:
                values = len(feature.categories)
            elif len(literal.terms) > 1 and not isinstance(quantity, Change):
                low, high = feature.bounds if feature.kind == Kind.INTEGER else (0.0, math.inf)
                values = high - low + 3
            counts[feature.name] = max(counts.get(feature.name, 1.0), values)
    return math.prod(counts.values())


class RelationBoxes:
    """The relations of a space for one factual, those that are ``boxed``.

    Parameters
    ----------
    factual
        A decoded row.
    """

    def __init__(self, space: Space, factual: pd.DataFrame) -> None:
        self.features = space.features
        self.clauses = [clause for relation in space.relations if boxed(relation) for clause in relation.rows(factual)]

    def cuts(self, feature: Feature, low: float, high: float) -> list[float]:
        """Where states of a number from ``low`` to ``high`` end, for each to keep a literal as a whole or break it."""
        found: list[float] = []
        for row in (row for clause in self.clauses for row in clause if feature in row.numbers):
            if len(row.numbers) + len(row.tables) + len(row.changes) > 1:
                return [float(value) for value in range(math.ceil(low), math.floor(high) + 1)]
            slope = row.numbers[feature]
            end, hair = row.high / slope, 2 * DECODING * feature.range
            if feature.kind is Kind.INTEGER:
                below = (slope > 0) == row.strict
                found.append(math.ceil(end - hair) - 1.0 if below else float(math.floor(end + hair)))
            elif row.strict:
                found.append(end - hair if slope > 0 else end + hair)
            else:
                found.append(end if slope > 0 else float(np.nextafter(end, -math.inf)))
        return found

    def boxes(self, values: Sequence[np.ndarray], own: np.ndarray) -> Iterator[Box]:
        """The states that break a relation.

        Parameters
        ----------
        values
            Of each feature's states: numbers, or codes of categories.
        own
            The factual's state of each feature.
        """
        for clause in self.clauses:
            used = [
                f
                for f, feature in enumerate(self.features)
                if any(feature in part for row in clause for part in (row.numbers, row.changes, row.tables))
            ]
            parts = {f: self._groups(clause, f, values[f], int(own[f])) for f in used}
            yield from self._broken(clause, parts, [len(each) for each in values])

    def _groups(self, clause: Sequence[Row], f: int, values: np.ndarray, own: int) -> tuple[np.ndarray, np.ndarray]:
        """Of each state its group of states that no literal tells apart, and what each group adds to each literal.

        Shapes (states,) and (groups, literals). Groups of an ordered feature are runs of states.
        """
        feature, added = self.features[f], np.zeros((len(values), len(clause)))
        for k, row in enumerate(clause):
            if feature in row.numbers:
                added[:, k] += row.numbers[feature] * values.astype(float)
            if feature in row.changes:
                added[:, k] += row.changes[feature] * (np.arange(len(values)) != own)
            if feature in row.tables:
                added[:, k] += row.tables[feature][values.astype(int)]
            if feature in row.numbers and len(row.numbers) + len(row.tables) + len(row.changes) == 1:
                # Which side it is on is all that matters.
                added[:, k] = np.where(_holds(row, added[:, k]), row.high - 2 * row.unit, row.high + 2 * row.unit)
        if feature.kind is Kind.CATEGORICAL:
            groups, place = np.unique(added, axis=0, return_inverse=True)
            return place.reshape(-1), groups
        starts = np.append(True, (np.diff(added, axis=0) != 0).any(axis=1))
        return np.cumsum(starts) - 1, added[starts]

    def _broken(
        self, clause: Sequence[Row], parts: dict[int, tuple[np.ndarray, np.ndarray]], counts: Sequence[int]
    ) -> Iterator[Box]:
        """The combinations of groups in which no literal of a clause holds."""
        shape = tuple(len(groups) for _, groups in parts.values())
        kept = np.zeros(shape, dtype=bool)
        for k, row in enumerate(clause):
            total = np.zeros(shape)
            for axis, (_, groups) in enumerate(parts.values()):
                total = total + groups[:, k].reshape([-1 if axis == other else 1 for other in range(len(shape))])
            kept |= _holds(row, total)
        for chosen in np.argwhere(~kept):
            low, high = np.zeros(len(counts), np.int64), np.array(counts, dtype=np.int64) - 1
            sets = np.array([np.uint64(2 ** min(count, 64) - 1) for count in counts], dtype=np.uint64)
            for (f, (place, _)), group in zip(parts.items(), chosen, strict=True):
                states = np.flatnonzero(place == group)
                if self.features[f].kind is Kind.CATEGORICAL:
                    sets[f] = np.bitwise_or.reduce(np.uint64(1) << states.astype(np.uint64))
                else:
                    low[f], high[f] = states[0], states[-1]
            yield Box(low, high, sets)


def _holds(row: Row, total: np.ndarray) -> np.ndarray:
    """Whether sums keep a literal."""
    excess, rounding = total - row.high, DECODING * row.unit
    return excess < -rounding if row.strict else excess <= rounding
