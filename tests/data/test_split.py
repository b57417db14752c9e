"""Training and test rows: disjoint, of the size asked for, with the classes in the shares of the whole."""

from __future__ import annotations

import numpy as np
import pytest

from harness.data.split import train_and_test

CLASSES = ("common", "rare")
LABELS = np.array(["rare"] * 20 + ["common"] * 180, dtype=object)
NOWHERE = np.zeros(len(LABELS), dtype=bool)


@pytest.mark.parametrize("seed", range(5))
def test_both_parts_have_the_classes_in_equal_shares(seed: int) -> None:
    """A tenth of 200 rows is rare: 5 of the 50 test rows, 15 of the 150 training rows, whatever the seed."""
    train, test = train_and_test("toy", {"seed": seed}, LABELS, CLASSES, NOWHERE)
    assert (len(train), len(test)) == (150, 50)
    assert ((LABELS[train] == "rare").sum(), (LABELS[test] == "rare").sum()) == (15, 5)
    assert sorted([*train, *test]) == list(range(200))
    assert (np.diff(train) > 0).all()
    assert (np.diff(test) > 0).all()


def test_shares_are_left_to_chance_where_asked() -> None:
    """Without ``stratify`` some seed puts another number of rare rows into the test rows."""
    rare = set()
    for seed in range(5):
        _, test = train_and_test("toy", {"seed": seed, "stratify": False}, LABELS, CLASSES, NOWHERE)
        rare.add(int((LABELS[test] == "rare").sum()))
    assert len(rare) > 1
