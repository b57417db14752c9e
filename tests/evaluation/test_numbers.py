"""The table of a study's numbers, and of its pairs, from entries made by hand."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from harness.evaluation.numbers import COLUMNS, Numbers, numbers_of
from harness.evaluation.study import Entry, Study
from harness.reports import summary

SETUP = {"n_counterfactuals": 2, "setup": {"seconds": 2.0, "cpu_seconds": 1.5}}


def entry(method: str, seconds: list[float], **changes: Any) -> Entry:
    """An entry that answers its questions within so many seconds, every second of them with a proof."""
    rows = len(seconds)
    table = pd.DataFrame(
        {
            "coverage": 1.0, "filled": 0.5, "returned": 2.0, "valid": 1.0, "optimal": np.arange(rows) % 2,
            "seconds": seconds, "cpu_seconds": np.array(seconds) / 2, "fit_seconds": 0.25,
            "peak_mib": np.array(seconds) * 10,
        }
    )  # fmt: skip
    plain: dict[str, Any] = {
        "dataset": "d", "model": "m", "task": "d / m", "runs": (), "metas": (SETUP,), "refusal": None, "one": False,
        "impossible": 3, "outcomes": ({"verdict": {"accepted": rows, "late": 2, "none": 1}, "reasons": {}},),
    }  # fmt: skip
    return Entry(method=method, table=table, **{**plain, **changes})


@pytest.fixture(scope="module")
def numbers() -> Numbers:
    """Two methods of ten questions, of which one is a second slower, and one that refuses."""
    fast, slow = (entry(name, [more + place for place in range(1, 11)]) for name, more in (("fast", 0), ("slow", 1)))
    return Numbers(Study("s", (fast, slow, entry("none", [], refusal="no")), {}, ()))


def test_every_number_of_an_entry_has_a_row(numbers: Numbers) -> None:
    table = numbers.table()
    assert table.columns.tolist() == list(COLUMNS)
    assert table["method"].unique().tolist() == ["fast", "slow"]
    assert set(table["task"]) == {"d / m"}
    fast = table[table["method"] == "fast"].set_index("number")
    expected = {
        "coverage": 1.0, "filled": 0.5, "validity": 0.5, "optimal": 0.5, "none exists": 3.0, "late": 2.0,
        "invalid": 0.0, "seconds": 5.5, "seconds_p95": 9.55, "cpu_seconds": 2.75,
        "setup_seconds": 2.0, "setup_cpu_seconds": 1.5, "peak_mib": 100.0,
    }  # fmt: skip
    assert fast.loc[list(expected), "value"].to_dict() == pytest.approx(expected)
    assert set(fast["n"]) == {10}
    assert fast.index.is_unique


def test_numbers_of_several_seeds_have_a_spread(monkeypatch: pytest.MonkeyPatch) -> None:
    """But for counts of faults, which are of all seeds together."""
    monkeypatch.setattr(Entry, "seed_spread", lambda self, name: {"coverage": 0.25, "late": 9.0}.get(name, math.nan))
    table = Numbers(Study("s", (entry("m", [1.0, 2.0]),), {}, ())).table().set_index("number")
    assert table["seed_sd"].dropna().to_dict() == {"coverage": 0.25}


def test_the_spread_is_that_of_the_number_beside_it() -> None:
    """Of medians, where seconds are: one question in ten is slow with one seed, and three in eight valid."""
    quick, slow = (entry("m", seconds).table for seconds in ([0.1] * 10, [0.1] * 9 + [5.0]))
    two: dict[str, Any] = {"metas": (SETUP,) * 2, "paces": (1.0, 1.0)}
    both = entry(
        "m", [0.1] * 10, runs=(SimpleNamespace(meta={}, packed=False),) * 2, **two, outcomes=entry("m", []).outcomes * 2
    )
    vars(both)["by_seed"] = [quick.assign(valid=2.0), slow.assign(valid=0.75)]
    table = Numbers(Study("s", (both,), {}, ())).table().set_index("number")["seed_sd"]
    expected = {"seconds": 0.0, "validity": (1 - 0.375) / math.sqrt(2), "setup_seconds": 0.0}
    assert table[list(expected)].to_dict() == pytest.approx(expected)
    assert table["seconds_p95"] > 1
    assert table[["none exists", "late"]].isna().all()


def test_of_a_criterion_methods_are_compared(numbers: Numbers) -> None:
    """By seconds: means of the ten common questions, ranks 0 and 1, and one is best; nothing else is compared."""
    table = numbers.table().set_index(["method", "number"])
    for method, mean, rank in (("fast", 5.5, 0.0), ("slow", 6.5, 1.0)):
        row = table.loc[(method, "seconds")]
        assert row[["common", "common_n", "rank"]].tolist() == pytest.approx([mean, 10, rank])
        assert row["common_low"] < mean < row["common_high"]
        assert row["best"] == (method == "fast")
        assert table.loc[(method, "coverage"), ["common", "rank", "best"]].isna().all()


def test_nine_common_questions_have_no_mean() -> None:
    """Nor has a method that is left out of the common means; ranks they have all the same."""
    pair = tuple(entry(name, [more + place for place in range(1, 10)]) for name, more in (("fast", 0), ("slow", 1)))
    table = Numbers(Study("s", pair, {}, ())).table().set_index(["method", "number"])
    for method, rank in (("fast", 0.0), ("slow", 1.0)):
        row = table.loc[(method, "seconds")]
        assert row[["common_n", "rank"]].tolist() == [9, rank]
        assert row[["common", "common_low", "common_high"]].isna().all()


def test_a_pair_has_a_row(numbers: Numbers) -> None:
    """Ten gaps of a second: by Wilcoxon's signed ranks p is 2 / 2^10; nobody answers what the other does not."""
    (pair,) = numbers.pairs().to_dict("records")
    assert (pair["task"], pair["criterion"], pair["first"], pair["second"]) == ("d / m", "seconds", "fast", "slow")
    assert (pair["n"], pair["difference"], pair["low"], pair["high"]) == (10, -1.0, -1.0, -1.0)
    assert pair["p"] == pytest.approx(2 / 2**10)
    assert (pair["only_first"], pair["only_second"]) == (0, 0)
    assert math.isnan(pair["mcnemar"])


def test_the_interval_of_a_pair_holds_its_difference() -> None:
    """Seconds of 1 to 10 beside twice as many: gaps of -1 to -10, of which the median is -5.5."""
    seconds = [float(place) for place in range(1, 11)]
    entries = (entry("fast", seconds), entry("slow", [2 * each for each in seconds]))
    (pair,) = Numbers(Study("s", entries, {}, ())).pairs().to_dict("records")
    assert pair["difference"] == -5.5
    assert pair["low"] < -5.5 < pair["high"]


def test_a_contest_is_found_by_its_task(numbers: Numbers) -> None:
    (seconds,) = numbers.criteria
    found = numbers.contest("d / m", seconds)
    assert found is not None
    assert found.task == "d / m"
    assert numbers.contest("a / m", seconds) is None
    assert numbers.contest("z / m", seconds) is None


def test_each_time_is_told_under_its_own_name() -> None:
    """Of 1, 2 and 3 s: the median, 95 hundredths of the way, half of it of the processor; of two also of the model."""
    one = entry("m", [1.0, 2.0, 3.0])
    one.table["model_seconds"] = [0.5, math.nan, 0.7]
    told = {"s": 2.0, "s_p95": 2.9, "cpu_s": 1.0, "model_s": 0.6, "setup_s": 2.0}
    line = summary.line_of(one)
    assert {name: line[name] for name in told} == pytest.approx(told)
    assert numbers_of(one, [])["model_seconds"].value == pytest.approx(0.6)
    assert "model_s" not in summary.line_of(entry("m", [1.0]))


def test_what_is_known_of_some_questions_says_of_how_many() -> None:
    """Of a killed worker neither the processor's seconds are known nor its memory."""
    some, all_ = entry("some", [1.0, 2.0, 3.0]), entry("all", [1.0, 2.0, 3.0])
    for name in ("cpu_seconds", "peak_mib"):
        some.table.loc[0, name] = math.nan
    assert {name: numbers_of(some, [])[name].n for name in ("cpu_seconds", "peak_mib", "seconds")} == {
        "cpu_seconds": 2, "peak_mib": 2, "seconds": 3,
    }  # fmt: skip
    alone = summary._alone(Numbers(Study("s", (some, all_), {}, ())), ["d / m"])
    assert alone["cpu_s"].tolist() == ["1.250 (2)", "1.000"]
    assert "model_s" not in alone
