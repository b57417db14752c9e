"""Predictions of a swarm's points: which are valid, and how far their scores are from the target."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np
import pandas as pd

from harness.core.classifier import Classifier
from harness.core.errors import UnsupportedError
from harness.core.frames import with_columns
from harness.core.inputs import Affine, Input, by_category
from harness.core.problem import Problem
from harness.core.space import Feature, Kind
from harness.core.target import Classes, Interval, Label, Probability
from methods.md_pso.guide import shares

INVALID = 1e3  # in the cost of an invalid point by Deb's rule, where being valid counts before any cost
ASKED = 300  # training rows on which scores and predictions are compared


class Inputs:
    """How active features become an estimator's inputs.

    Parameters
    ----------
    affine
        Of each affine input of a number: the input, the place among the numbers, and the map.
    mapped
        Other inputs of numbers, likewise.
    tables
        Of each category: its columns, its inputs, and their values by category, shape (categories, inputs).
    """

    def __init__(
        self,
        affine: Sequence[tuple[int, int, Affine]],
        mapped: Sequence[tuple[int, int, Input]],
        tables: Sequence[tuple[slice, list[int], np.ndarray]],
    ) -> None:
        self.mapped, self.tables = mapped, tables
        self.affine_inputs = np.array([i for i, _, _ in affine], dtype=int)
        self.affine_places = np.array([place for _, place, _ in affine], dtype=int)
        self.affine_shift = np.array([source.shift for _, _, source in affine])
        self.affine_unit = np.array([source.unit for _, _, source in affine])

    @classmethod
    def of(cls, classifier: Classifier, features: Sequence[Feature], slices: Sequence[slice]) -> Inputs | None:
        """Those of features with these columns; None where the classifier needs a decoded frame."""
        if classifier.opaque is not None or classifier.cut is not None:
            return None
        affine: list[tuple[int, int, Affine]] = []
        mapped: list[tuple[int, int, Input]] = []
        tables: list[tuple[slice, list[int], np.ndarray]] = []
        inputs: dict[str, list[int]] = {}
        for column, source in enumerate(classifier.inputs):
            inputs.setdefault(source.feature, []).append(column)
        place = 0
        for feature, columns in zip(features, slices, strict=True):
            sources = [(i, classifier.inputs[i]) for i in inputs.get(feature.name, ())]
            if feature.numeric:
                for i, source in sources:
                    if type(source) is Affine:
                        affine.append((i, place, source))
                    else:
                        mapped.append((i, place, source))
                place += 1
            elif sources:
                try:
                    table = np.column_stack([by_category(feature, source) for _, source in sources])
                except UnsupportedError:
                    return None
                tables.append((columns, [i for i, _ in sources], table))
        return cls(affine, mapped, tables)

    def write(self, base: np.ndarray, values: np.ndarray, codes: Callable[[slice], np.ndarray]) -> None:
        """Overwrite the inputs, shape (rows, inputs), by numbers (rows, numbers) and codes by columns."""
        base[:, self.affine_inputs] = (values[:, self.affine_places] - self.affine_shift) / self.affine_unit
        for i, place, source in self.mapped:
            base[:, i] = source(pd.Series(values[:, place]))
        for columns, inputs, table in self.tables:
            base[:, inputs] = table[codes(columns)]


class Oracle:
    """A problem in the columns of a few active features: one prediction of many rows, other features as in the factual.

    Points are rows of the active features' scaled columns, in the order of ``features``.

    Whether a row is valid is read off its score, so that a row costs one prediction; where scores and predicted classes
    disagree on training rows, both are predicted. A hard vote has no score: its members lead to its classes. ``blind``:
    no score leads to a class, as all are 0 or 1.
    """

    def __init__(self, problem: Problem, active: Sequence[str]) -> None:
        space = problem.space
        self.problem, self.classifier = problem, problem.classifier
        self.features = tuple(space[name] for name in active)
        ends = np.cumsum([0, *(feature.width for feature in self.features)])
        self.slices = tuple(slice(int(start), int(end)) for start, end in pairwise(ends))
        where = dict(zip(space.names, space.slices, strict=True))
        self.places = np.array([c for name in active for c in range(where[name].start, where[name].stop)], dtype=int)
        self.numeric = np.array([s.start for f, s in self._each() if f.numeric], dtype=int)
        numbers = [f for f in self.features if f.numeric]
        self.shift = np.array([f.scale[0] for f in numbers])
        self.range = np.array([f.range for f in numbers])
        self.integral = np.array([f.kind is Kind.INTEGER for f in numbers], dtype=bool)
        self.inputs = Inputs.of(self.classifier, self.features, self.slices)
        self.strict = False
        rows = problem.train.iloc[:ASKED]
        scores = self.classifier.score(rows)
        valid, _ = self._judged(scores)
        self.strict = bool((valid != problem.valid(rows)).any())
        self.votes = isinstance(problem.target, Label | Classes) and self._shares(rows) is not None
        self.inputs = None if self.votes else self.inputs  # members are asked about decoded rows
        self.blind = bool(self.classifier.classes) and not self.votes and bool(np.isin(scores, (0, 1)).all())

    def _each(self) -> list[tuple[Feature, slice]]:
        return list(zip(self.features, self.slices, strict=True))

    def values(self, points: np.ndarray) -> np.ndarray:
        """The numbers among the features, in original units, shape (rows, numbers)."""
        values = self.shift + points[:, self.numeric] * self.range
        return np.where(self.integral, np.rint(values), values)

    def codes(self, points: np.ndarray, columns: slice) -> np.ndarray:
        """Category codes of a feature, shape (rows,)."""
        block = points[:, columns]
        feature = self.features[self.slices.index(columns)]
        if feature.kind is Kind.CATEGORICAL:
            return block.argmax(axis=1)
        return np.rint(block[:, 0] * (len(feature.categories) - 1)).astype(int)

    def judge(
        self, points: np.ndarray, values: np.ndarray, base: np.ndarray | pd.DataFrame, strict: bool = False
    ) -> tuple[np.ndarray, ...]:
        """Per row, whether it is valid, bool, and the distance of its score from the target's, at least 0.

        Parameters
        ----------
        values
            As ``values`` gives them.
        base
            The row's factual as the estimator takes it, overwritten; a decoded frame where the classifier is opaque.
        strict
            Whether to predict classes besides scores in any case.
        """
        if isinstance(base, pd.DataFrame):
            names = [f.name for f in self.features if f.numeric]
            types = self.problem.train.dtypes
            changed = {name: values[:, i].astype(types[name]) for i, name in enumerate(names)}
            for feature, columns in self._each():
                if not feature.numeric:
                    levels = pd.Series(list(feature.categories), dtype=types[feature.name])
                    changed[feature.name] = levels.take(self.codes(points, columns)).to_numpy()
            frame = with_columns(base, changed)
            if self.votes:
                return self._voted(frame)
            valid, gap = self._judged(self.classifier.score(frame))
            return (self.problem.valid(frame) if strict or self.strict else valid), gap
        assert self.inputs is not None
        self.inputs.write(base, values, lambda columns: self.codes(points, columns))
        valid, gap = self._judged(self.classifier.grade(base))
        target = self.problem.target
        if (strict or self.strict) and isinstance(target, Label | Classes):
            valid = np.isin(self.classifier.decide(base), self._wanted(target))
        return valid, gap

    def _shares(self, frame: pd.DataFrame) -> np.ndarray | None:
        return shares(*self.classifier.asked(frame), len(self.classifier.classes))

    def _voted(self, frame: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
        """As ``judge``, of a hard vote: invalid points are as far from the target as its members say."""
        assert isinstance(self.problem.target, Label | Classes)
        valid, found = self.problem.valid(frame), self._shares(frame)
        assert found is not None
        codes = self._wanted(self.problem.target)
        lead = found[:, codes].max(axis=1) - np.delete(found, codes, axis=1).max(axis=1)
        return valid, np.where(valid, 0.0, 1.0 - lead)

    def _wanted(self, target: Label | Classes) -> list[int]:
        """The codes of the wanted classes."""
        values = (target.value,) if isinstance(target, Label) else target.values
        return [self.classifier.code(value) for value in values]

    def _judged(self, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Whether scores lie within the target, bool, and their distance from it (4), both of shape (rows,)."""
        target, classifier = self.problem.target, self.classifier
        if isinstance(target, Interval):
            return _within(scores, target.low, target.high)
        if isinstance(target, Probability):
            code = classifier.code(target.label)
            share = scores[:, code] if scores.ndim > 1 else scores if code else 1.0 - scores
            return _within(share, target.low, target.high)
        codes = self._wanted(target)
        if scores.ndim > 1:
            own, others = scores[:, codes].max(axis=1), np.delete(scores, codes, axis=1).max(axis=1)
            return np.isin(scores.argmax(axis=1), codes), np.maximum(others - own, 0.0)
        middle = classifier.threshold
        if middle is None:
            middle = 0.5 if classifier.probabilistic else 0.0
        above = scores > middle
        second = codes == [1]
        return (above if second else ~above), np.maximum(middle - scores if second else scores - middle, 0.0)


def _within(scores: np.ndarray, low: float, high: float) -> tuple[np.ndarray, np.ndarray]:
    gap = np.maximum(np.maximum(low - scores, scores - high), 0.0)
    return gap == 0, gap
