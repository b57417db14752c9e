"""What follows from cores holds in every set of changes that meets them."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from methods.milp.core_kernels import among, propagate, word

NUMBERS = 7


def words(sets: list[set[int]]) -> np.ndarray:
    return np.array([word(one) for one in sets], dtype=np.uint64)


def flags(some: set[int]) -> np.ndarray:
    return np.isin(np.arange(NUMBERS), list(some))


@pytest.mark.parametrize("seed", range(60))
def test_what_follows_holds_in_all_sets_of_changes(seed: int) -> None:
    rng = np.random.default_rng(seed)
    weights = np.ones(NUMBERS) if seed % 2 else rng.integers(1, 4, NUMBERS).astype(float)
    sets = [set(rng.choice(NUMBERS, rng.integers(1, 5), replace=False).tolist()) for _ in range(rng.integers(1, 9))]
    marks = rng.choice([0, 0, 0, 1, -1], NUMBERS)
    kept, forced, most = set(np.flatnonzero(marks < 0)), set(np.flatnonzero(marks > 0)), float(rng.integers(1, 9))
    possible = [
        set(changed)
        for count in range(NUMBERS + 1)
        for changed in itertools.combinations(range(NUMBERS), count)
        if forced <= set(changed) and not kept & set(changed) and all(one & set(changed) for one in sets)
        if weights[list(changed)].sum() <= most
    ]
    fits, stays, changes = propagate(words(sets), weights, word(kept), word(forced), most)
    if not fits:
        assert not possible
        return
    stays, changes = among(stays, NUMBERS), among(changes, NUMBERS)
    assert stays[list(kept)].all()
    assert changes[list(forced)].all()
    for changed in possible:
        assert changes[~flags(changed)].sum() == 0
        assert stays[flags(changed)].sum() == 0


def test_each_rule_is_applied() -> None:
    """The last number of a core changes; what apart cores ask for leaves no change for others; too much is refused."""
    none, ones = np.uint64(0), np.ones(NUMBERS)
    assert propagate(words([{0, 1}, {2, 3}]), ones, word({0}), none, 9.0) == (True, 1, 2)
    fits, stays, changes = propagate(words([{0, 1}, {2, 3, 4}]), ones, none, none, 2.0)
    assert (fits, stays, changes) == (True, (1 << 5) + (1 << 6), 0)
    assert not propagate(words([{0, 1}, {2, 3}, {4, 5}]), ones, none, none, 2.0)[0]
    assert not propagate(words([{0, 1}]), ones, word({0, 1}), none, 9.0)[0]
    assert not propagate(words([{0}]), ones, none, word({3, 4}), 2.0)[0]
    # The smallest open cores first: {0, 1} and {2, 3} are apart, {1, 2, 4} meets both.
    assert not propagate(words([{1, 2, 4}, {0, 1}, {2, 3}]), ones, none, none, 1.0)[0]
