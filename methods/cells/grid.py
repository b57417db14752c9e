"""A tree ensemble on the cells between its thresholds: which cells, and which leaves each of them meets."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise

import numpy as np

from harness.core.classifier import Classifier
from harness.core.errors import UnsupportedError
from harness.core.inputs import Affine, Input, by_category, owners
from harness.core.space import Feature, Kind, Space
from harness.core.tolerances import SCORE_TIE
from methods.cells.records import GridArrays
from methods.estimators.raw_target import Condition
from methods.estimators.thresholds import as_compared, last_decoded
from methods.estimators.tree_arrays import Leaf, leaves_of
from methods.estimators.trees import Ensemble, ensemble

WORD = 64  # leaves in one word of a leaf mask


@dataclass(frozen=True)
class Grid:
    """Cells per feature, and leaf masks per tree and cell. Everything the search's kernels read, as flat arrays.

    A number's cells are the intervals between its thresholds, in order, and a last one where it is missing, if it may
    be; any other feature's are its categories. A leaf that meets that cell, and not the one before, is listed as two,
    so that each meets cells that follow one another. Leaf k
    of a tree is bit k of its masks, leaves in increasing order of value, so that the best leaf of a box is its highest
    bit. Each sum that has to be above 0 has trees of its own: the model's, with other values.

    Parameters
    ----------
    ends
        Per feature, the last decoded value of each cell but the last one; empty for categories.
    offset
        First cell of each feature in the arrays over all cells, shape (features + 1,).
    unordered
        1 where the feature's cells have no order (one-hot categories), shape (features,).
    values
        Leaf values, shape (trees, leaves), in increasing order; unused ones repeat the last.
    upto, onwards
        Leaves that a box reaching up to (from) a cell meets, shape (trees, cells, words), uint64; without order: the
        leaves that the category meets, twice.
    starts, members
        The features that each tree splits on: ``members[starts[t]:starts[t + 1]]``.
    owner
        The tree of each entry of ``members``.
    border_start, border_entries
        The entries of ``members`` whose masks differ between a cell and the next one:
        ``border_entries[border_start[cell]:border_start[cell + 1]]``. For a category: those whose masks differ from
        most other categories', so that the masks of two categories differ in no entry but those of one of the two.
    base
        What is added to each sum of leaf values; 0 where there are several, each with a tree of a single leaf for it.
    sums
        Which sum each tree is part of, in order, shape (trees,). Right is where each base + Σ values > 0.
    walks
        Each sum's trees themselves and its base, as ``walk_kernels.walk`` takes them.
    single
        Whether they compare float32 numbers.

    Scores, here and in the searches, are in a unit of which ``SCORE_TIE`` is at least the rounding error of the model's
    own summation: 1 unless that error is more than ``SCORE_TIE``.
    """

    ends: tuple[np.ndarray, ...]
    offset: np.ndarray
    unordered: np.ndarray
    values: np.ndarray
    upto: np.ndarray
    onwards: np.ndarray
    starts: np.ndarray
    members: np.ndarray
    owner: np.ndarray
    border_start: np.ndarray
    border_entries: np.ndarray
    base: float
    sums: np.ndarray
    walks: tuple[tuple[tuple[np.ndarray, ...], float], ...]
    single: bool

    def alike(self, cells: np.ndarray) -> list[np.ndarray]:
        """Of each feature the cells, bool, that the leaves at some cells meet: what lies in them is predicted alike."""
        met = [np.ones(stop - start, dtype=bool) for start, stop in pairwise(self.offset.tolist())]
        masks = self.upto & self.onwards
        for t, (start, stop) in enumerate(pairwise(self.starts.tolist())):
            members = self.members[start:stop]
            leaf = np.full(masks.shape[2], ~np.uint64(0))
            for f in members:
                leaf &= masks[t, self.offset[f] + cells[f]]
            for f in members:
                met[f] &= (masks[t, self.offset[f] : self.offset[f + 1]] & leaf).any(axis=1)
        return met

    @property
    def arrays(self) -> GridArrays:
        """The grid as the kernels of the searches take it."""
        return GridArrays(*(getattr(self, name) for name in GridArrays._fields))


def build(space: Space, classifier: Classifier, conditions: Sequence[Condition]) -> Grid:
    """The grid of a tree model: right is where all conditions on its outputs hold.

    Raises
    ------
    UnsupportedError
        For models that are no sum of trees, and for features with more than 64 unordered categories.
    """
    model = _read(space, classifier)
    unit = max(*(condition.rounding / SCORE_TIE for condition in conditions), 1.0)
    cells = _Cells(space, classifier.inputs, [leaves_of(tree) for tree in model.trees], model.single)
    listed = cells.listed
    bases = [float(condition.weights @ model.base - condition.threshold) / unit for condition in conditions]
    sums: list[int] = []
    found: list[np.ndarray] = []
    leaves: list[list[Leaf]] = []
    for number, condition in enumerate(conditions):
        if len(conditions) > 1:
            sums.append(number)
            found.append(np.array([bases[number]]))
            leaves.append([Leaf(0, {}, {})])
        for tree, its in zip(model.trees, listed, strict=True):
            if not condition.weights[list(tree.outputs)].any():
                continue
            value = model.gains(tree, condition.weights / unit)[[leaf.node for leaf in its]]
            order = np.argsort(value, kind="stable")
            sums.append(number)
            found.append(value[order])
            leaves.append([its[k] for k in order])
    values = np.zeros((len(leaves), max(map(len, leaves))))
    for row, value in zip(values, found, strict=True):
        row[: len(value)], row[len(value) :] = value, value[-1]
    splits = [
        sorted({cells.sources[column] for leaf in listed for column in (*leaf.above, *leaf.at_most)})
        for listed in leaves
    ]
    upto, onwards = _masks(cells, leaves, splits)
    starts = np.cumsum([0, *map(len, splits)]).astype(np.int64)
    members = np.array([f for split in splits for f in split], dtype=np.int64)
    owner = np.repeat(np.arange(len(leaves)), np.diff(starts))
    unordered = np.array([feature.kind is Kind.CATEGORICAL for feature in space.features], dtype=np.int64)
    border_start, border_entries = _borders(upto, onwards, cells.offset, unordered, members, owner)
    return Grid(
        cells.ends,
        cells.offset,
        unordered,
        values,
        upto,
        onwards,
        starts,
        members,
        owner,
        border_start,
        border_entries,
        bases[0] if len(conditions) == 1 else 0.0,
        np.array(sums, dtype=np.int64),
        tuple((tuple(model.flat(c.weights / unit)), base) for c, base in zip(conditions, bases, strict=True)),
        model.single,
    )


def _read(space: Space, classifier: Classifier) -> Ensemble:
    """The model as a sum of trees, of which it is known where gaps go if there are any."""
    model = ensemble(classifier.estimator, gaps=bool(space.gaps))
    if space.gaps and not model.takes_gaps:
        raise UnsupportedError(f"{type(classifier.estimator).__name__} does not tell where it sends missing values.")
    return model


@dataclass(frozen=True)
class _Cells:
    """The cells of each feature between the thresholds of some trees, given as their leaves."""

    space: Space
    inputs: Sequence[Input]
    leaves: Sequence[Sequence[Leaf]]
    single: bool
    _values: dict[int, np.ndarray] = field(default_factory=dict)  # by an input, of its categories
    _cell_of: dict[tuple[int, float], int] = field(default_factory=dict)  # by an input and a threshold

    @cached_property
    def sources(self) -> list[int]:
        """The feature that each estimator input is made of, by position."""
        return owners(self.space, self.inputs)

    @cached_property
    def ends(self) -> tuple[np.ndarray, ...]:
        """Per feature, the last decoded value left of each threshold, in order; empty for categories."""
        return tuple(self._ends(feature) for feature in self.space.features)

    def _ends(self, feature: Feature) -> np.ndarray:
        if not feature.numeric:
            return np.zeros(0)
        found = set()
        for column, source in enumerate(self.inputs):
            if source.feature != feature.name:
                continue
            if not isinstance(source, Affine):
                raise UnsupportedError(f"{type(source).__name__} of {feature.name} cannot be searched by cells.")
            thresholds = {
                side[column]
                for listed in self.leaves
                for leaf in listed
                for side in (leaf.above, leaf.at_most)
                if column in side and math.isfinite(side[column])
            }
            found |= {last_decoded(feature, source, threshold, self.single) for threshold in thresholds}
        return np.array(sorted(found))

    @cached_property
    def offset(self) -> np.ndarray:
        """First cell of each feature among all cells, shape (features + 1,)."""
        counts = [self._count(place) for place in range(len(self.ends))]
        for feature, count in zip(self.space.features, counts, strict=True):
            if feature.kind is Kind.CATEGORICAL and count > WORD:
                raise UnsupportedError(
                    f"feature {feature.name} has {count} categories; the search takes at most {WORD}."
                )
        return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)

    def _count(self, place: int) -> int:
        feature = self.space.features[place]
        return len(self.ends[place]) + 1 + feature.missing if feature.numeric else len(feature.categories)

    @cached_property
    def listed(self) -> list[list[Leaf]]:
        """The leaves of each tree, as ``parts``."""
        return [[part for leaf in its for part in self.parts(leaf)] for its in self.leaves]

    def parts(self, leaf: Leaf) -> list[Leaf]:
        """The leaf, or copies of it that together meet the same cells, each of them cells that follow one another."""
        found = [leaf]
        for column in leaf.gaps:
            place = self.sources[column]
            if not self.space.features[place].missing:
                continue
            met = self.meeting(place, leaf)
            if met[-1] and met[:-1].any() and not met[-2]:
                found = [
                    part
                    for whole in found
                    for part in (
                        replace(whole, gaps={**whole.gaps, column: False}),
                        replace(whole, above={**whole.above, column: math.inf}),
                    )
                ]
        return found

    def span(self, place: int, leaf: Leaf) -> tuple[int, int] | None:
        """The first and the last cell of an ordered feature that a leaf meets; None where it meets none.

        Raises
        ------
        UnsupportedError
            Where these do not follow one another.
        """
        feature = self.space.features[place]
        if feature.numeric and not feature.missing:
            first, last = self._between(place, leaf)
            return (first, last) if first <= last else None
        met = np.flatnonzero(self.meeting(place, leaf))
        if len(met) and met[-1] - met[0] >= len(met):
            raise UnsupportedError(
                f"{feature.name} is ordinal, and the model splits it out of its order; make it categorical."
            )
        return (int(met[0]), int(met[-1])) if len(met) else None

    def meeting(self, place: int, leaf: Leaf) -> np.ndarray:
        """Which cells of a feature a leaf meets, bool, shape (cells of the feature,)."""
        feature, count = self.space.features[place], self._count(place)
        columns = [column for column in leaf.gaps if self.sources[column] == place]
        if feature.numeric:
            met = np.zeros(count, dtype=bool)
            first, last = self._between(place, leaf)
            met[first : last + 1] = True
            if feature.missing:
                met[-1] = all(leaf.gaps[column] for column in columns)
            return met
        met = np.ones(count, dtype=bool)
        for column in columns:
            if column not in self._values:
                self._values[column] = as_compared(by_category(feature, self.inputs[column]), self.single)
            values = self._values[column]
            met &= (values > leaf.above.get(column, -math.inf)) & (values <= leaf.at_most.get(column, math.inf))
        return met

    def _between(self, place: int, leaf: Leaf) -> tuple[int, int]:
        """The first and the last interval of a number that a leaf meets; the last comes before where it meets none."""
        first, last = 0, len(self.ends[place])
        for column in leaf.gaps:
            if self.sources[column] != place:
                continue
            source = self.inputs[column]
            assert isinstance(source, Affine)  # or ``ends`` refuses
            rising, above, at_most = (
                source.unit > 0,
                leaf.above.get(column, -math.inf),
                leaf.at_most.get(column, math.inf),
            )
            if above == math.inf:
                return 1, 0
            rising = source.unit > 0
            for threshold, none, beyond in ((above, -math.inf, rising), (at_most, math.inf, not rising)):
                if threshold != none:
                    cell = self._cell(column, threshold)
                    first, last = (max(first, cell + 1), last) if beyond else (first, min(last, cell))
        return first, last

    def _cell(self, column: int, threshold: float) -> int:
        """The last cell on the low side of a threshold."""
        key = column, threshold
        if key not in self._cell_of:
            place, source = self.sources[column], self.inputs[column]
            assert isinstance(source, Affine)
            end = last_decoded(self.space.features[place], source, threshold, self.single)
            self._cell_of[key] = int(np.searchsorted(self.ends[place], end))
        return self._cell_of[key]


def _masks(
    cells: _Cells, leaves: Sequence[Sequence[Leaf]], splits: Sequence[Sequence[int]]
) -> tuple[np.ndarray, np.ndarray]:
    """``upto`` and ``onwards`` of ``Grid``; ``splits`` are the features that each tree splits on."""
    words = max(-(-len(listed) // WORD) for listed in leaves)
    upto = np.zeros((len(leaves), int(cells.offset[-1]), words), dtype=np.uint64)
    onwards = np.zeros_like(upto)
    for t, (listed, split) in enumerate(zip(leaves, splits, strict=True)):
        held = [{cells.sources[column] for column in leaf.gaps} for leaf in listed]
        word, bit = np.divmod(np.arange(len(listed)), WORD)
        mark = np.uint64(1) << bit.astype(np.uint64)
        for place in split:
            own = slice(int(cells.offset[place]), int(cells.offset[place + 1]))
            ahead, back = upto[t, own], onwards[t, own]
            free = np.array([place not in features for features in held])
            everywhere = np.zeros(words, dtype=np.uint64)
            np.bitwise_or.at(everywhere, word[free], mark[free])
            if cells.space.features[place].kind is Kind.CATEGORICAL:
                ahead |= everywhere
                for k in np.flatnonzero(~free).tolist():
                    ahead[cells.meeting(place, listed[k]), word[k]] |= mark[k]
                back[:] = ahead
                continue
            ahead[0] |= everywhere
            back[-1] |= everywhere
            for k in np.flatnonzero(~free).tolist():
                if (span := cells.span(place, listed[k])) is not None:
                    ahead[span[0], word[k]] |= mark[k]
                    back[span[1], word[k]] |= mark[k]
            ahead[:] = np.bitwise_or.accumulate(ahead, axis=0)
            back[::-1] = np.bitwise_or.accumulate(back[::-1], axis=0)
    return upto, onwards


def _borders(
    upto: np.ndarray,
    onwards: np.ndarray,
    offset: np.ndarray,
    unordered: np.ndarray,
    members: np.ndarray,
    owner: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """``border_start`` and ``border_entries`` of ``Grid``."""
    cells, entries = [np.zeros(0, dtype=np.int64)], [np.zeros(0, dtype=np.int64)]
    for k, (f, t) in enumerate(zip(members, owner, strict=True)):
        own = slice(offset[f], offset[f + 1])
        ahead, back = upto[t, own], onwards[t, own]
        if unordered[f]:
            masks, counts = np.unique(ahead, axis=0, return_counts=True)
            differs = ahead != masks[counts.argmax()]
        else:
            differs = (ahead[1:] != ahead[:-1]) | (back[1:] != back[:-1])
        cells.append(offset[f] + np.flatnonzero(differs.any(axis=1)))
        entries.append(np.full(len(cells[-1]), k))
    cell = np.concatenate(cells)
    order = np.argsort(cell, kind="stable")
    counts = np.bincount(cell, minlength=int(offset[-1]))
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64), np.concatenate(entries)[order].astype(np.int64)
