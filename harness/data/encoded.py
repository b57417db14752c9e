"""Columns of 0 and 1 that are one feature, encoded before the table was written: proposed as relations."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import groupby, pairwise

import numpy as np

from harness.core.relation_grammar import quoted
from harness.data.dataset import Dataset

CHANCE = 1e-6  # a pattern that independent columns show more likely than this is none
SUPPORT = 2  # rows of either value that each column has at least
STEM = re.compile(r"^(.*?)(?:[\s_.:=<>]+\S*|\d+)$")  # what a name has before its last separator or number


def encoded(dataset: Dataset) -> Iterator[str]:
    """A sentence for each group of columns of which exactly one is 1 in every row, or that are ordered like steps.

    It ends in the relation that keeps them so, to be pasted.
    """
    names, columns = _candidates(dataset)
    if not names:
        return
    known = [frozenset(relation.features) for relation in dataset.space.relations]
    taken: set[str] = set()
    for group in _one_hot(names, columns):
        taken |= set(group)
        if frozenset(group) not in known:
            text = " + ".join(map(quoted, group)) + " == 1"
            yield _sentence(dataset.name, group, "exactly one of them is 1 in every row, as of one category", text)
    rest = [place for place, name in enumerate(names) if name not in taken]
    for group in _thermometers([names[place] for place in rest], columns[:, rest]):
        if frozenset(group) not in known:
            text = " >= ".join(map(quoted, group))
            yield _sentence(dataset.name, group, "no later one is 1 without those before it, as of steps", text)


def _sentence(name: str, group: Sequence[str], why: str, text: str) -> str:
    return (
        f"{name}: of columns {', '.join(group)} {why}; for counterfactuals to keep that, add "
        f"'constraints=[\"{text}\"]'."
    )


def _candidates(dataset: Dataset) -> tuple[list[str], np.ndarray]:
    """The columns of 0 and 1 with rows of both, in the table's order: names, and values of shape (rows, columns)."""
    names, columns = list[str](), list[np.ndarray]()
    for feature in dataset.space.features:
        values = dataset.frame[feature.name]
        if feature.missing or "`" in feature.name or values.dtype == bool or not set(values.unique()) <= {0, 1}:
            continue
        ones = values.to_numpy(float)
        if any(isinstance(value, bool) for value in feature.categories):
            continue
        if min(ones.sum(), len(ones) - ones.sum()) >= SUPPORT:
            names.append(feature.name)
            columns.append(ones)
    return names, np.column_stack(columns) if columns else np.zeros((0, 0))


def _stem(name: str) -> str:
    found = STEM.match(name)
    return found[1] if found else name


def _one_hot(names: Sequence[str], columns: np.ndarray) -> Iterator[list[str]]:
    """Groups that sum to 1 in every row: of one stem, or else the first columns in a row that do."""
    left = list(range(len(names)))
    for _, group in groupby(sorted(left, key=lambda place: _stem(names[place])), key=lambda place: _stem(names[place])):
        places = sorted(group)
        if len(places) > 1 and _sums_to_one(columns[:, places]):
            left = [place for place in left if place not in places]
            yield [names[place] for place in places]
    start = 0
    while start < len(left):
        end = start + 1
        while end < len(left) and (columns[:, left[start:end]].sum(axis=1) <= 1).all():
            end += 1
            if _sums_to_one(columns[:, left[start:end]]):
                yield [names[place] for place in left[start:end]]
                start = end - 1
                break
        start += 1


def _sums_to_one(columns: np.ndarray) -> bool:
    """Whether exactly one column is 1 in every row, and hardly ever would be if they were independent."""
    if not (columns.sum(axis=1) == 1).all():
        return False
    share = columns.mean(axis=0)
    alone = float(np.prod(1 - share) * (share / (1 - share)).sum())
    return len(columns) * np.log(min(alone, 1.0)) < np.log(CHANCE)


def _thermometers(names: Sequence[str], columns: np.ndarray) -> Iterator[list[str]]:
    """Groups of one stem whose columns, the most frequent first, are each 1 only where the one before it is."""
    stems = [_stem(name) for name in names]
    for stem in dict.fromkeys(stems):
        places = sorted((p for p, other in enumerate(stems) if other == stem), key=lambda p: -columns[:, p].sum())
        if len(places) > 1 and all(_implies(columns[:, b], columns[:, a]) for a, b in pairwise(places)):
            yield [names[place] for place in places]


def _implies(one: np.ndarray, other: np.ndarray) -> bool:
    """Whether a column is 1 only where another is, which is 1 elsewhere too, and hardly ever by chance."""
    if (one > other).any() or (one == other).all():
        return False
    return float(one.sum()) * np.log(other.mean()) < np.log(CHANCE)
