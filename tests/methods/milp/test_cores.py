"""Cores of a hull: the fewest changes are those of enumeration, by programs of another solver's interface."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import linprog

from harness.core.method import Deadline
from harness.core.space import Feature, Space
from methods.ce_ocl.reach import hull_cores, in_order
from methods.milp.cores import HullCores, hitting
from methods.milp.hull import Hull, Shares

COLUMNS = {0: [0], 1: [1, 2], 2: [3], 3: [4], 7: [5]}


@pytest.mark.parametrize("seed", range(40))
def test_hitting_sets_are_the_lightest(seed: int) -> None:
    rng = np.random.default_rng(seed)
    weights = rng.integers(1, 5, 8).astype(float)
    weights[rng.random(8) < 0.15] = math.inf
    sets = [
        frozenset(rng.choice(8, rng.integers(1, 5), replace=False).tolist()) for _ in range(int(rng.integers(1, 9)))
    ]
    subsets = [set(c) for k in range(9) for c in itertools.combinations(range(8), k)]
    least = min(sum(weights[f] for f in one) for one in subsets if all(one & other for other in sets))
    found, weight = hitting(sets, weights)
    assert weight == least
    if math.isfinite(least):
        assert all(found & one for one in sets)
        assert sum(weights[f] for f in found) == weight
    for known in (least, least - 1.0):  # a bound ends the search at its value, not before
        assert hitting(sets, weights, known)[1] == least


def keeps(points: np.ndarray, x: np.ndarray, kept: list[int]) -> bool:
    """Whether a point of the hull has the factual's values in some columns."""
    if not kept:
        return True
    equal = np.vstack([points[:, kept].T, np.ones(len(points))])
    return bool(linprog(np.zeros(len(points)), A_eq=equal, b_eq=[*x[kept], 1.0], bounds=(0, 1)).status == 0)


@pytest.mark.parametrize("seed", range(25))
def test_the_fewest_changes_are_those_of_all_sets_of_features(seed: int) -> None:
    """Whatever features count, and whichever may not change; the bound never falls, nor lies above the least."""
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(int(rng.integers(2, 14)), 6))
    x = points[0] + rng.normal(scale=1.5, size=6) * (rng.random(6) < 0.7)
    weights = np.ones(8) if seed % 2 else rng.integers(1, 4, 8).astype(float)
    if seed % 3 == 0:
        weights[1] = math.inf
    least = math.inf
    for count in range(len(COLUMNS) + 1):
        for changed in itertools.combinations(COLUMNS, count):
            kept = [k for f, own in COLUMNS.items() if f not in changed for k in own]
            if keeps(points, x, kept):
                least = min(least, float(sum(weights[f] for f in changed)))
    cores, before = HullCores(Hull(points, 1), x, COLUMNS, weights, 2.0), 0.0
    while not cores.closed:
        cores.grow(Deadline.after(60.0))
        assert before <= cores.least <= 2.0 + least
        before = cores.least
    assert cores.least == 2.0 + least
    for core in cores.sets:
        assert not keeps(points, x, [k for f in core for k in COLUMNS[f]])
        for feature in core:
            assert keeps(points, x, [k for f in core - {feature} for k in COLUMNS[f]])


def test_without_time_nothing_is_claimed() -> None:
    cores = HullCores(Hull(np.zeros((3, 6)), 1), np.ones(6), COLUMNS, np.ones(8), 1.0)
    cores.grow(Deadline.after(0.0))
    assert (cores.least, cores.closed, cores.sets) == (1.0, False, [])


SPACE = Space(
    (
        Feature("a", "continuous", scale=(0.0, 1.0), bounds=(0.0, 1.0)),
        Feature("b", "continuous", scale=(0.0, 1.0), bounds=(0.0, 1.0)),
        Feature("c", "continuous", scale=(0.0, 1.0), bounds=(0.0, 1.0), actionability="immutable"),
        Feature("k", "categorical", ("x", "y")),
    )
)
FACTUAL = pd.DataFrame({"a": [0.0], "b": [0.0], "c": [0.0], "k": ["x"]})


@dataclass
class Other:
    """A part that has no cores."""

    least: float
    changes: float = 0.0
    box: Any = None
    asked: list[int] = field(default_factory=list)


def cores_of(weights: np.ndarray) -> Any:
    return hull_cores(SPACE, FACTUAL, weights)


def test_parts_come_by_the_bounds_that_their_cores_raise() -> None:
    """Categories count, and numbers that no point of a part varies; one that an immutable number rules out comes last.
    One part beyond the last that is asked for is made, and no more."""
    near = Shares(
        np.array([[0.5, 0.0], [0.0, 0.5], [0.5, 0.5]]), np.array([0, 1]), [None, None, (0.0, 0.0), 0], 0.1, 0.0
    )
    far = Shares(np.array([[0.5, 0.3], [0.7, 0.5]]), np.array([0, 1]), [None, None, (0.0, 0.0), 1], 10.2, 1.0)
    never = Shares(np.array([[0.5, 0.3], [0.7, 0.5]]), np.array([1, 2]), [(0.0, 0.0), None, None, 0], 0.3, 0.0)
    made = []

    def pieces() -> Any:
        for piece in (near, never, Other(9.0), far, Other(100.0), Other(101.0)):
            made.append(piece)
            yield piece

    weights = np.array([1.0, 1.0, 1.0, 2.0])
    found = []
    for reached in in_order(pieces(), cores_of(weights), 10.0, lambda: math.inf, Deadline.after(60.0)):
        found.append((reached.piece, reached.least, reached.changes))
        if reached.piece is far:
            break
    assert found == [(made[2], 9.0, 0.0), (near, 10.1, 1.0), (far, pytest.approx(40.2 - 0.0), 4.0)]
    assert len(made) == 5
    rest = list(in_order([never], cores_of(weights), 10.0, lambda: math.inf, Deadline.after(60.0)))
    assert [(one.least, one.changes) for one in rest] == [(math.inf, math.inf)]


def test_parts_with_slack_are_left_as_they_are() -> None:
    """A hull that may be left has no cores, nor has one in another norm."""
    points = np.array([[0.5, 0.3], [0.7, 0.5]])
    wide = [Shares(points, np.array([0, 1]), None, 0.0, 0.0, 1, 0.4), Shares(points, np.array([0, 1]), price=3.0)]
    assert [one.cores for one in in_order(wide, cores_of(np.ones(4)), 1.0, lambda: math.inf, Deadline.after(9.0))] == [
        None,
        None,
    ]


def test_a_part_that_costs_enough_is_asked_no_more() -> None:
    """Its first core says that it costs 10 more; what changes besides is not looked for."""
    part = Shares(np.array([[0.5, 0.3], [0.7, 0.5]]), np.array([0, 1]), [None, None, (0.0, 0.0), 0], 0.2, 0.0)
    for enough, least in ((0.1, 0.2), (5.0, 20.2), (math.inf, 20.2)):
        (found,) = in_order([part], cores_of(np.ones(4)), 10.0, lambda limit=enough: limit, Deadline.after(60.0))
        assert found.cores is not None
        assert found.least == least
        assert found.cores.closed == (enough == math.inf)
