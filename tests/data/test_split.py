"""Training and test rows: disjoint, of the size asked for, with the classes in the shares of the whole."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from harness.core.errors import DatasetError
from harness.data.split import train_and_test

CLASSES = ("common", "rare")
LABELS = np.array(["rare"] * 20 + ["common"] * 180, dtype=object)
NOWHERE = np.zeros(len(LABELS), dtype=bool)
DAYS = [f"2024-{1 + place // 20:02d}-{1 + place % 20:02d}" for place in np.random.default_rng(0).permutation(200)]
TIMES = pd.DataFrame({"day": DAYS, "year": [2000 + place % 10 for place in range(200)], "name": ["x"] * 200})


@pytest.mark.parametrize("seed", range(5))
def test_both_parts_have_the_classes_in_equal_shares(seed: int) -> None:
    """A tenth of 200 rows is rare: 5 of the 50 test rows, 15 of the 150 training rows, whatever the seed."""
    train, test = train_and_test("toy", {"seed": seed}, LABELS, CLASSES, NOWHERE, TIMES)
    assert (len(train), len(test)) == (150, 50)
    assert ((LABELS[train] == "rare").sum(), (LABELS[test] == "rare").sum()) == (15, 5)
    assert sorted([*train, *test]) == list(range(200))
    assert (np.diff(train) > 0).all()
    assert (np.diff(test) > 0).all()


def test_shares_are_left_to_chance_where_asked() -> None:
    """Without ``stratify`` some seed puts another number of rare rows into the test rows."""
    rare = set()
    for seed in range(5):
        _, test = train_and_test("toy", {"seed": seed, "stratify": False}, LABELS, CLASSES, NOWHERE, TIMES)
        rare.add(int((LABELS[test] == "rare").sum()))
    assert len(rare) > 1


def test_a_split_by_time_has_the_last_rows_as_test_rows() -> None:
    """A quarter of 200 days; of years with 20 rows each, of which two are whole within a quarter, these two."""
    train, test = train_and_test("toy", {"time": "day"}, LABELS, CLASSES, NOWHERE, TIMES)
    assert len(test) == 50
    assert max(DAYS[place] for place in train) < min(DAYS[place] for place in test)
    train, test = train_and_test("toy", {"time": "year"}, LABELS, CLASSES, NOWHERE, TIMES)
    assert set(TIMES["year"].iloc[test]) == {2008, 2009}
    assert sorted([*train, *test]) == list(range(200))
    single = np.where(np.arange(200) == 0, "rare", "common").astype(object)  # nothing is stratified
    train, test = train_and_test("toy", {"time": "year"}, single, CLASSES, NOWHERE, TIMES)
    assert len(test) == 40


@pytest.mark.parametrize("clock", ["", " 12:30", " 12:30:05"])
def test_dates_are_read_in_one_way_or_none(clock: str) -> None:
    """Day before month, as 24.01.2020 says of all; where nothing tells, they are not guessed."""
    days = [(day, month) for month in range(1, 11) for day in (3, 4, 5, 24)] * 5
    frame = TIMES.assign(day=[f"{day:02d}.{month:02d}.2020{clock}" for day, month in days])
    train, test = train_and_test("toy", {"time": "day"}, LABELS, CLASSES, NOWHERE, frame)
    last, first = max(days[place][::-1] for place in train), min(days[place][::-1] for place in test)
    assert last < first
    frame = TIMES.assign(day=[f"03/{month:02d}/2020{clock}" for _, month in days])
    with pytest.raises(DatasetError, match="can be read in two ways; write its dates as 2021-12-31"):
        train_and_test("toy", {"time": "day"}, LABELS, CLASSES, NOWHERE, frame)


def test_what_is_no_time_is_said() -> None:
    """A column that is not there, words, and a single day."""
    given = LABELS, CLASSES, NOWHERE
    with pytest.raises(DatasetError, match="'month'"):
        train_and_test("toy", {"time": "month"}, *given, TIMES)
    with pytest.raises(DatasetError, match="'name' of row 0 is 'x', neither a number nor a date"):
        train_and_test("toy", {"time": "name"}, *given, TIMES)
    with pytest.raises(DatasetError, match="no row has a 'day' after"):
        train_and_test("toy", {"time": "day"}, *given, TIMES.assign(day="2024-01-01"))
