"""A tree ensemble on the cells between its thresholds: which cells, and which leaves each of them meets."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from harness.core.classifier import Classifier
from harness.core.errors import UnsupportedError
from harness.core.inputs import Affine, Input, by_category
from harness.core.space import Feature, Kind, Space
from methods.estimators.thresholds import last_decoded, seen
from methods.estimators.trees import TINY, Leaf, ensemble, leaves_of

WORD = 64  # leaves in one word of a leaf mask


@dataclass(frozen=True)
class Grid:
    """Cells per feature, and leaf masks per tree and cell. Everything the search's kernels read, as flat arrays.

    A number's cells are the intervals between its thresholds, in order; any other feature's are its categories. Leaf k
    of a tree is bit k of its masks, leaves in increasing order of value (times ``sign``), so that the best leaf of a
    box is its highest bit.

    Parameters
    ----------
    ends
        Per feature, the last decoded value of each cell but the last one; empty for categories.
    offset
        First cell of each feature in the arrays over all cells, shape (features + 1,).
    split
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
    touch_at, touched
        The entries of ``members`` whose masks tell a cell from the next one, ``touched[touch_at[cell]:touch_at[cell +
        1]]``; two categories are told apart by none but those listed for one of the two.
    base
        Score before any tree, less the threshold: right is base + Σ values > 0.
    trees
        The trees themselves, as ``kernels.walk`` takes them.
    single
        Whether they compare float32 numbers.

    Scores, here and in the searches, count in a unit that makes ``TINY`` of it what the model itself may be off by
    where it adds up: 1 unless that is more than ``TINY``.
    """

    ends: tuple[np.ndarray, ...]
    offset: np.ndarray
    split: np.ndarray
    values: np.ndarray
    upto: np.ndarray
    onwards: np.ndarray
    starts: np.ndarray
    members: np.ndarray
    owner: np.ndarray
    touch_at: np.ndarray
    touched: np.ndarray
    base: float
    trees: tuple[np.ndarray, ...]
    single: bool


def build(space: Space, classifier: Classifier, sign: int, threshold: float) -> Grid:
    """The grid of a tree model: right is a raw output above the threshold (``sign`` 1) or below it (-1).

    Raises
    ------
    UnsupportedError
        For models that are no sum of trees, and for features with more than 64 unordered categories.
    """
    model = ensemble(classifier.estimator)
    if len(model.base) > 1:
        raise UnsupportedError(f"cannot search the cells of a {type(classifier.estimator).__name__} of many outputs.")
    unit = max(model.rounding(threshold) / TINY, 1.0)
    leaves = [leaves_of(tree) for tree in model.trees]
    sources = _sources(space, classifier.inputs)
    ends = tuple(_ends(space, classifier.inputs, place, leaves, model.single) for place in range(len(space.features)))
    counts = [len(e) + 1 if f.numeric else len(f.categories) for f, e in zip(space.features, ends, strict=True)]
    for feature, count in zip(space.features, counts, strict=True):
        if feature.kind is Kind.CATEGORICAL and count > WORD:
            raise UnsupportedError(f"feature {feature.name} has {count} categories; the search takes at most {WORD}.")
    offset = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    words = max(-(-len(members) // WORD) for members in leaves)
    most = max(len(members) for members in leaves)
    values = np.zeros((len(leaves), most))
    upto = np.zeros((len(leaves), int(offset[-1]), words), dtype=np.uint64)
    onwards = np.zeros_like(upto)
    starts: list[int] = [0]
    used: list[int] = []
    for t, (tree, members) in enumerate(zip(model.trees, leaves, strict=True)):
        value = sign * model.weight / unit * tree.value[[leaf.node for leaf in members], 0]
        order = np.argsort(value, kind="stable")
        values[t, : len(order)], values[t, len(order) :] = value[order], value[order[-1]]
        split_on = sorted({sources[column] for leaf in members for column in (*leaf.above, *leaf.at_most)})
        used.extend(split_on)
        starts.append(len(used))
        for bit, leaf in enumerate(members[k] for k in order):
            word, mark = bit // WORD, np.uint64(1) << np.uint64(bit % WORD)
            for place in split_on:
                met = _met(space.features[place], classifier.inputs, sources, place, leaf, ends[place], model.single)
                cells = slice(int(offset[place]), int(offset[place + 1]))
                if space.features[place].kind is Kind.CATEGORICAL:
                    upto[t, cells, word][met] |= mark
                    onwards[t, cells, word][met] |= mark
                elif met.any():
                    first, last = np.flatnonzero(met)[[0, -1]]
                    if not met[first : last + 1].all():
                        raise UnsupportedError(f"{space.features[place].name} is ordinal, and split out of its order.")
                    upto[t, cells, word][first:] |= mark
                    onwards[t, cells, word][: last + 1] |= mark
    owner = np.repeat(np.arange(len(leaves)), np.diff(starts))
    members_of = np.array(used, dtype=np.int64)
    split = np.array([feature.kind is Kind.CATEGORICAL for feature in space.features], dtype=np.int64)
    touch_at, touched = _touches(upto, onwards, offset, split, members_of, owner)
    base = sign * float(model.base[0] - threshold) / unit
    return Grid(
        ends,
        offset,
        split,
        values,
        upto,
        onwards,
        np.array(starts, dtype=np.int64),
        members_of,
        owner,
        touch_at,
        touched,
        base,
        model.flat(sign, unit),
        model.single,
    )


def _touches(
    upto: np.ndarray, onwards: np.ndarray, offset: np.ndarray, split: np.ndarray, members: np.ndarray, owner: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Which trees tell a cell from the one after it, or a category from most others, as ``Grid`` has them."""
    cells, entries = [np.zeros(0, dtype=np.int64)], [np.zeros(0, dtype=np.int64)]
    for k, (f, t) in enumerate(zip(members, owner, strict=True)):
        own = slice(offset[f], offset[f + 1])
        ahead, back = upto[t, own], onwards[t, own]
        if split[f]:
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


def _sources(space: Space, inputs: Sequence[Input]) -> list[int]:
    """The feature that each estimator input is made of, by position."""
    place = {name: index for index, name in enumerate(space.names)}
    return [place[source.feature] for source in inputs]


def _ends(
    space: Space, inputs: Sequence[Input], place: int, leaves: Sequence[Sequence[Leaf]], single: bool
) -> np.ndarray:
    """The last decoded value left of each threshold on a number, in order."""
    feature = space.features[place]
    if not feature.numeric:
        return np.zeros(0)
    found = set()
    for column, source in enumerate(inputs):
        if source.feature != feature.name:
            continue
        if not isinstance(source, Affine):
            raise UnsupportedError(f"{type(source).__name__} of {feature.name} cannot be searched by cells.")
        thresholds = {
            side[column]
            for members in leaves
            for leaf in members
            for side in (leaf.above, leaf.at_most)
            if column in side
        }
        found |= {last_decoded(feature, source, threshold, single) for threshold in thresholds}
    return np.array(sorted(found))


def _met(
    feature: Feature,
    inputs: Sequence[Input],
    sources: Sequence[int],
    place: int,
    leaf: Leaf,
    ends: np.ndarray,
    single: bool,
) -> np.ndarray:
    """Which cells of a feature a leaf meets, bool."""
    count = len(ends) + 1 if feature.numeric else len(feature.categories)
    met = np.ones(count, dtype=bool)
    for column in {*leaf.above, *leaf.at_most}:
        if sources[column] != place:
            continue
        source = inputs[column]
        above, at_most = leaf.above.get(column, -math.inf), leaf.at_most.get(column, math.inf)
        if isinstance(source, Affine) and feature.numeric:
            inside = np.ones(count, dtype=bool)
            rising = source.unit > 0
            if above > -math.inf:
                right = np.arange(count) > np.searchsorted(ends, last_decoded(feature, source, above, single))
                inside &= right if rising else ~right
            if at_most < math.inf:
                right = np.arange(count) > np.searchsorted(ends, last_decoded(feature, source, at_most, single))
                inside &= ~right if rising else right
            met &= inside
        else:
            values = seen(by_category(feature, source), single)
            met &= (values > above) & (values <= at_most)
    return met
