"""A column that gives the target away is named; one that is only a good guess is not."""

from __future__ import annotations

import logging
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.tree import DecisionTreeClassifier

from harness.data.csv_load import load_csv
from harness.library import pose

ROWS = 200
RNG = np.random.default_rng(0)
PAID = np.arange(ROWS) % 3 == 0
FRAME = pd.DataFrame(
    {
        "days_late": np.where(PAID, RNG.integers(0, 5, ROWS), RNG.integers(5, 90, ROWS)),  # known afterwards
        "fee": np.where(PAID, 9, 0) + RNG.integers(0, 3, ROWS),  # the other way round
        "letter": np.where(PAID, "thanks", np.where(RNG.random(ROWS) < 0.5, "first", "second")),
        "income": np.where(PAID, 30, 20) + RNG.integers(0, 15, ROWS),  # a good guess
        "town": RNG.choice([f"town {k}" for k in range(60)], ROWS),  # three rows each: in sample it would tell a lot
        "paid": np.where(PAID, "yes", "no"),
    }
)


def named(frame: pd.DataFrame, path: Path, caplog: pytest.LogCaptureFixture, **settings: object) -> list[str]:
    frame.to_csv(path / "loans.csv", index=False)
    with caplog.at_level(logging.INFO):
        dataset = load_csv(path / "loans.csv", "paid", **settings)
    told = [notice for notice in dataset.notices if "alone tells" in notice]
    assert all(notice in caplog.text for notice in told)
    return [notice.split("'")[1] for notice in told]


def test_what_gives_the_target_away_is_named(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    assert named(FRAME, tmp_path, caplog) == ["days_late", "fee", "letter"]
    assert "column 'days_late' alone tells the classes apart (AUC 1.000)" in caplog.text


def test_above_an_area_of_99_percent_a_column_is_named(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """67 who paid lie below 133 others, but one of them above 44, or 100: areas of 1 - 44 / 8911 and 1 - 100 / 8911."""
    order = np.where(PAID, np.cumsum(PAID) - 1.0, 66.0 + np.cumsum(~PAID))
    frame = pd.DataFrame({"near": order, "far": order, "paid": FRAME["paid"]})
    frame.loc[order == 66, ["near", "far"]] = 66.5 + 44, 66.5 + 100
    assert named(frame, tmp_path, caplog) == ["near"]
    assert "(AUC 0.995)" in caplog.text


def test_in_a_notebook_it_is_named_as_well(caplog: pytest.LogCaptureFixture) -> None:
    """By the same line, whose advice can be followed there; what the model predicts itself gives nothing away."""
    numbers = FRAME.drop(columns=["letter", "town"])
    for given, target, expected in ((numbers, "paid", ["days_late", "fee"]), (numbers.drop(columns="paid"), None, [])):
        caplog.clear()
        model = DecisionTreeClassifier(max_depth=2).fit(numbers[["days_late", "fee", "income"]], FRAME["paid"])
        with caplog.at_level(logging.INFO):
            task = pose(given, target, model, desired="yes")
        told = [notice for notice in task.dataset.notices if "alone tells" in notice]
        assert [notice.split("'")[1] for notice in told] == expected
        assert all(notice in caplog.messages for notice in told)
    model = DecisionTreeClassifier(max_depth=2).fit(numbers[["income"]], FRAME["paid"])
    task = pose(numbers, "paid", model, desired="yes", drop=["days_late", "fee"])
    assert not any("alone tells" in notice for notice in task.dataset.notices)


def test_the_limit_is_an_area_of_99_hundredths(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """10 of 20 are paid: 100 pairs, of which a number that lies too high costs one for each that it passes."""
    for passed, expected in ((0, ["score"]), (1, []), (2, [])):
        paid = np.arange(10.0)
        low = np.concatenate([np.arange(-9.0, 0.0), [passed - 0.5]])
        frame = pd.DataFrame(
            {"score": [*paid, *low], "noise": np.tile([1, 2, 3, 4], 5), "paid": ["yes"] * 10 + ["no"] * 10}
        )
        assert named(frame, tmp_path, caplog) == expected


def test_few_rows_and_numbers_are_left_alone(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    few = pd.concat([FRAME[PAID].head(9), FRAME[~PAID].head(40)])
    assert named(few, tmp_path, caplog) == []
    amounts = FRAME.assign(paid=np.arange(ROWS) * 1.5, copy=np.arange(ROWS) * 3.0)
    assert named(amounts, tmp_path, caplog, task="regression", desired=">= 20") == []


def test_a_class_of_three_is_told_by_what_tells_all(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A number by its order, whatever that of the classes is; one that tells the ends apart only is a good guess."""
    kind = np.arange(ROWS) % 3
    middling = np.where(kind == 0, 0, 10) + RNG.integers(0, 9, ROWS) + RNG.random(ROWS)
    frame = pd.DataFrame(
        {"level": kind * 10 + RNG.random(ROWS) * 9, "ends": middling, "word": np.array(["a", "b", "c"])[kind]}
    )
    assert named(frame.assign(paid=np.array(["y", "z", "x"])[kind]), tmp_path, caplog, desired="x") == ["level", "word"]


def test_codes_and_gaps_tell_without_an_order(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A code in the middle that only one class has, and a number that only the other one has."""
    code = np.where(PAID, 2, np.where(RNG.random(ROWS) < 0.5, 1, 3))
    state = np.where(PAID, np.where(RNG.random(ROWS) < 0.5, np.nan, 2), np.where(RNG.random(ROWS) < 0.5, 1, 3))
    late = np.where(PAID, np.nan, RNG.integers(1, 90, ROWS))
    frame = pd.DataFrame({"code": code, "reminder": late, "state": state, "paid": FRAME["paid"]})
    kept = {name: {"missing": "value"} for name in ("reminder", "state")}
    assert named(frame, tmp_path, caplog, features=kept) == ["code", "reminder", "state"]
