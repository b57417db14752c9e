"""Covers by few columns, against enumeration and what is known of lines in small geometries."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest
from support.looks import Looks

from harness.core.method import Deadline
from harness.solvers import cover_tree
from harness.solvers.cover_tree import cover_within


def least(rows: int, columns: list[np.ndarray]) -> int:
    """The fewest columns that cover all rows, by all sets of covered rows; more than there are, where none do."""
    masks = [sum(1 << int(row) for row in column) for column in columns]
    met, count = {0}, 0
    while (1 << rows) - 1 not in met:
        count += 1
        if count > len(columns):
            break
        met = {one | mask for one in met for mask in masks}
    return count


def affine(size: int) -> list[tuple[tuple[int, ...], ...]]:
    """Lines of the affine space over three elements: three points that add up to 0."""
    points = list(product(range(3), repeat=size))
    sums = combinations(points, 3)
    return [line for line in sums if all(sum(numbers) % 3 == 0 for numbers in zip(*line, strict=True))]


def projective() -> list[tuple[tuple[int, ...], ...]]:
    """Lines of the projective space of 15 points over two elements."""
    points = [point for point in product(range(2), repeat=4) if any(point)]
    sums = combinations(points, 3)
    return [line for line in sums if all(sum(numbers) % 2 == 0 for numbers in zip(*line, strict=True))]


def test_covers_are_those_of_enumeration() -> None:
    """Of the least size there is one, and of one less there is none; both are proven, and rows that no column has."""
    rng = np.random.default_rng(0)
    impossible = 0
    for _ in range(150):
        rows, count = int(rng.integers(5, 13)), int(rng.integers(8, 40))
        columns = [np.flatnonzero(rng.uniform(size=rows) < rng.choice([0.15, 0.3])) for _ in range(count)]
        fewest = least(rows, columns)
        if fewest > count:
            impossible += 1
            assert cover_within(rows, columns, count, Deadline.after(60)) == (None, True)
            continue
        assert cover_within(rows, columns, fewest - 1, Deadline.after(60)) == (None, True)
        for most in (fewest, fewest + 2):
            cover, proven = cover_within(rows, columns, most, Deadline.after(60))
            assert proven
            assert cover is not None
            assert len(set(cover.tolist())) == len(cover) <= most
            assert set(np.concatenate([columns[place] for place in cover])) == set(range(rows))
    assert 0 < impossible < 75


def test_no_column_of_a_small_cover_is_left_out() -> None:
    """Below a node are all columns of all covers of that size, by all sets of columns; others are not, now and then."""
    rng, left_out = np.random.default_rng(1), 0
    for _ in range(60):
        columns = [np.flatnonzero(rng.uniform(size=9) < 0.3) for _ in range(14)]
        fewest = least(9, columns)
        covers = [
            c for c in combinations(range(14), fewest) if len(np.unique(np.concatenate([columns[k] for k in c]))) == 9
        ]
        relaxation = cover_tree._Relaxation(cover_tree._Node.root(9, columns), fewest, Deadline.after(60))
        relaxation.children(9)
        kept = set(relaxation.node.places.tolist())
        assert {column for cover in covers for column in cover} <= kept
        left_out += len(kept) < 14
    assert left_out > 10


@pytest.mark.parametrize(
    ("lines", "fewest"), [(affine(2), 5), (projective(), 7), pytest.param(affine(3), 18, marks=pytest.mark.slow)]
)
def test_points_that_meet_all_lines_are_as_few_as_known(lines: list[tuple[tuple[int, ...], ...]], fewest: int) -> None:
    """The rest is a largest set without a line: 4 of 9, 8 of 15 and 9 of 27 points; relaxations are a third of them."""
    points = sorted({point for line in lines for point in line})
    columns = [np.array([row for row, line in enumerate(lines) if point in line]) for point in points]
    assert cover_within(len(lines), columns, fewest - 1, Deadline.after(120)) == (None, True)
    cover, proven = cover_within(len(lines), columns, fewest, Deadline.after(120))
    assert proven
    assert cover is not None
    assert len(cover) == fewest


def test_where_every_pair_is_apart_a_column_is_branched_on() -> None:
    """The lines of the plane of order 11: two of 133 meet in one of 133 points, of which a twelfth is taken each."""
    points = [(1, x, y) for x in range(11) for y in range(11)] + [(0, 1, y) for y in range(11)] + [(0, 0, 1)]
    columns = [np.flatnonzero(np.array(points) @ point % 11 == 0) for point in points]
    assert {len(column) for column in columns} == {12}
    cover, proven = cover_within(133, columns, 12, Deadline.after(60))
    assert proven
    assert cover is not None
    assert len(cover) == 12  # those of a line, of which each other line has one
    assert len(set(np.concatenate([columns[point] for point in cover]))) == 133
    assert cover_within(133, columns, 11, Deadline.after(60)) == (None, True)


def test_wherever_time_ends_nothing_false_is_claimed() -> None:
    """At any look at the clock: nothing, or what is so; with more time, more."""
    lines = affine(2)
    points = sorted({point for line in lines for point in line})
    columns = [np.array([row for row, line in enumerate(lines) if point in line]) for point in points]
    told = [cover_within(12, columns, 4, Looks(looks)) for looks in range(0, 200, 5)]
    assert set(told) == {(None, False), (None, True)}
    assert told == sorted(told, key=lambda one: one[1])


def test_without_time_nothing_is_claimed() -> None:
    """Neither a cover nor that there is none."""
    columns = [np.array([row]) for row in range(5)]
    assert cover_within(5, columns, 4, Deadline.after(0.0)) == (None, False)
    assert cover_within(5, columns, 5, Deadline.after(0.0)) == (None, False)
