"""The figure of how cost grows, on runs whose numbers are worked out by hand."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from support.figures import covered
from support.tables import GRANTED, started

from harness.core.errors import HarnessError
from harness.reports import figures
from harness.reports.scaling import measured, slope, typical
from harness.reports.stored import latest
from harness.store.run import StoredRun
from metrics import _example as loans

FEATURES = len(loans.problem.space.features)
# By dataset, trees and depth: seconds, MiB and whether proven, a question a column.
RUNS = {
    ("loans", 10, 5): ([1.0, 2.0, 9.0], [50.0, 60.0, 55.0], [1.0, 1.0, 0.0]),
    ("loans", 100, 5): ([10.0, 20.0, 90.0], [80.0, 70.0, 60.0], [1.0, 0.0, 0.0]),
    ("loans", 100, 8): ([40.0, 40.0, 40.0], [90.0, 90.0, 90.0], [0.0, 0.0, 0.0]),
    ("debts", 10, 5): ([8.0, 8.0, 8.0], [50.0, 50.0, 50.0], [1.0, 1.0, 1.0]),
    ("debts", 100, 8): ([1.0, 1.0, 1.0], [math.nan] * 3, [1.0, 1.0, 1.0]),
}


def run_of(folder: Path, dataset: str, trees: int, depth: int, columns: Any) -> StoredRun:
    model: Any = {"size": {"trees": trees, "depth": depth}}
    named = {"dataset": dataset, "model": f"forest_{trees}x{depth}", "method": "ours"}
    cell = started(folder, loans.problem, loans.factual, [GRANTED] * 3, **named, fingerprint=f"{trees}{depth}")
    cell.update(config={**cell.meta["config"], "model": model})
    scores = pd.read_csv(cell.path / "scores.csv", index_col="factual")
    scores.assign(**dict(zip(("seconds", "peak_mib", "optimal"), columns, strict=True))).to_csv(
        cell.path / "scores.csv"
    )
    return cell


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for (dataset, trees, depth), columns in RUNS.items():
        run_of(tmp_path, dataset, trees, depth, columns)
    return tmp_path


def test_a_run_lies_where_its_other_size_is_the_usual_one(folder: Path) -> None:
    """Depth 5 is the usual one, as are 100 trees; features do not differ. Seconds are medians, memory is the most."""
    rows = measured(latest(folder)).set_index(["axis", "dataset", "size"]).drop(columns="line").T.to_dict("list")
    assert rows == {
        ("trees", "loans", 10.0): [2.0, 60.0, pytest.approx(2 / 3)],
        ("trees", "loans", 100.0): [20.0, 80.0, pytest.approx(1 / 3)],
        ("trees", "debts", 10.0): [8.0, 50.0, 1.0],
        ("depth", "loans", 5.0): [20.0, 80.0, pytest.approx(1 / 3)],
        ("depth", "loans", 8.0): [40.0, 90.0, 0.0],
        ("depth", "debts", 8.0): [1.0, pytest.approx(math.nan, nan_ok=True), 1.0],
    }


def points(*rows: tuple[str, float, float], axis: str = "trees") -> pd.DataFrame:
    return pd.DataFrame(rows, columns=["dataset", "size", "seconds"]).assign(axis=axis)


def test_a_power_is_that_of_each_dataset_by_itself() -> None:
    """Two that grow with the square, one a thousand times slower and asked at the large sizes alone."""
    grown = points(("a", 1, 0.01), ("a", 10, 1.0), ("a", 100, 100.0), ("b", 100, 5e4), ("b", 1000, 5e6))
    assert slope(grown, "seconds") == pytest.approx(2.0)
    assert slope(grown.assign(axis="features"), "seconds") > 2.5  # one power through all datasets
    assert math.isnan(slope(grown.iloc[:2], "seconds"))
    assert math.isnan(slope(points(("a", 5, 1.0), ("b", 6, 2.0), ("c", 7, 3.0)), "seconds"))
    least = points(("a", 1, 1e-9), ("a", 10, 1e-7), ("a", 100, 1e-4))
    assert slope(least, "seconds") == pytest.approx(0.0)  # as fast as can be told


def test_a_line_is_of_the_datasets_that_have_all_its_sizes() -> None:
    grown = points(("a", 1, 1.0), ("a", 2, 4.0), ("b", 1, 4.0), ("b", 2, 16.0), ("c", 2, 1e6))
    assert typical(grown, "seconds").to_dict() == {1.0: pytest.approx(2.0), 2.0: pytest.approx(8.0)}
    apart = points(("a", 1, 1.0), ("b", 2, 3.0))
    assert typical(apart, "seconds").to_dict() == {1.0: 1.0, 2.0: pytest.approx(3.0)}


def test_the_figure_shows_them(folder: Path) -> None:
    figure = figures.known()["scaling"][1](latest(folder))
    assert covered(figure) == []
    seconds = {axis.get_lines()[0].get_xdata()[1]: axis.get_lines()[0] for axis in figure.axes[:2]}
    assert np.asarray(seconds[100.0].get_ydata()).tolist() == pytest.approx([2.0, 20.0])  # loans alone has both
    assert [text.get_text() for text in figure.axes[0].texts] == ["^1.0"]
    assert [axis.get_xlabel() for axis in figure.axes[-2:]] == ["trees", "depth of the trees"]


def test_where_nothing_grows_it_is_said(tmp_path: Path) -> None:
    cell = run_of(tmp_path, "loans", 10, 5, RUNS["loans", 10, 5])
    with pytest.raises(HarnessError, match="no two runs differ in trees"):
        measured([cell])
