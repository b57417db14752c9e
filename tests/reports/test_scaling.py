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
from harness.core.explanation import Answer, GroupExplanation, Reason, Status
from harness.core.space import Space
from harness.reports import figures, scaling
from harness.reports.scaling import measured, slope, typical
from harness.reports.stored import latest
from harness.store.rows import group_line
from harness.store.run import StoredRun
from metrics import _example as loans

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


def test_on_the_axis_of_features_are_runs_of_the_usual_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of 100 trees of depth 5, of which there are most."""
    for (dataset, trees, depth), columns in {**RUNS, ("debts", 100, 5): RUNS["debts", 10, 5]}.items():
        run_of(tmp_path, dataset, trees, depth, columns)
    fewer = Space(loans.problem.space.features[:2])
    spaces = {"debts": fewer, "loans": loans.problem.space}
    monkeypatch.setattr(StoredRun, "space", property(lambda run: spaces[run.meta["dataset"]]))
    rows = measured(latest(tmp_path)).query("axis == 'features'")
    assert rows[["size", "dataset", "seconds"]].to_numpy().tolist() == [
        [2.0, "debts", 8.0],
        [float(len(loans.problem.space.features)), "loans", 20.0],
    ]


def test_memory_is_not_that_of_another_process(tmp_path: Path) -> None:
    """A worker that only hands the question on says nothing of what the answer took."""
    for trees, seconds in ((10, math.nan), (100, 0.0)):
        cell = run_of(tmp_path, "loans", trees, 5, RUNS["loans", trees, 5])
        scores = pd.read_csv(cell.path / "scores.csv", index_col="factual")
        scores.assign(model_seconds=[seconds, math.nan, seconds]).to_csv(cell.path / "scores.csv")
    memory = measured(latest(tmp_path)).set_index("size")["memory"]
    assert (memory[10.0], math.isnan(memory[100.0])) == (60.0, True)


def test_groups_lie_on_the_axis_of_people(tmp_path: Path) -> None:
    """By the mean size of a run's groups; one line, whatever the variants are named. The second group is left open."""
    for sizes, ends in (((2, 2), (Status.OPTIMAL, Status.FOUND)), ((3,), (Status.OPTIMAL,))):
        people = sum(sizes)
        named = {"model": "lr", "method": f"ours-{people}", "variant": people, "fingerprint": str(people)}
        cell = started(tmp_path, loans.problem, loans.factual, [GRANTED] * people, **named)
        for place, (size, end) in enumerate(zip(sizes, ends, strict=True)):
            factuals = list(range(place * 2, place * 2 + size))
            spent = {"seconds": 4.0 * (place + 1), "fit_seconds": 0.1, "late": False}
            cell.append_group(group_line(place, factuals, None, status=str(end), reason="", detail="", **spent))
    rows = measured(latest(tmp_path))
    assert rows[["axis", "size", "line", "seconds", "proven"]].to_numpy().tolist() == [
        ["people", 2.0, "ours, lr", 6.0, 0.5],
        ["people", 3.0, "ours, lr", 4.0, 1.0],
    ]


def test_that_nobody_of_a_group_has_any_is_a_proof(tmp_path: Path) -> None:
    none = Answer(Status.INFEASIBLE, None, Reason.PROOF)
    for people in (2, 3):
        named = {"model": "lr", "method": f"ours-{people}", "variant": people, "fingerprint": str(people)}
        cell = started(tmp_path, loans.problem, loans.factual, [none] * people, **named)
        factuals = list(range(people))
        explained = GroupExplanation((), uncoverable=tuple(factuals))
        spent = {"seconds": 1.0, "fit_seconds": 0.1, "late": False}
        cell.append_group(group_line(0, factuals, explained, status="INFEASIBLE", **spent))
        cell.put_verdicts([{"factual": each, "ce": 1, "verdict": "none"} for each in factuals])
    assert measured(latest(tmp_path))["proven"].tolist() == [1.0, 1.0]


def test_networks_lie_on_the_axis_of_units_and_hulls_on_that_of_points(tmp_path: Path) -> None:
    """Whatever other sizes a study has; a hull of the training rows, or of all, has no place on it."""
    for size, columns in RUNS.items():
        run_of(tmp_path, *size, columns)
    for place, (model, reference) in enumerate(
        (({"size": {"units": 20}}, "train"), ({"size": {"units": 50}}, "train"), ({}, 100), ({}, 300), ({}, "all"))
    ):
        shown = "relus_" + str(model["size"]["units"]) if model else "rf"
        named = {"model": shown, "method": f"ours-{reference}", "variant": reference, "fingerprint": f"u{place}"}
        cell = started(tmp_path, loans.problem, loans.factual, [GRANTED] * 2, **named)
        cell.update(config={**cell.meta["config"], "model": model, "reference": reference})
        scores = pd.read_csv(cell.path / "scores.csv", index_col="factual")
        scores.assign(seconds=[place + 1.0, place + 2.0], optimal=[1.0, 0.0]).to_csv(cell.path / "scores.csv")
    rows = measured(latest(tmp_path)).query("axis in ['units', 'points']")
    assert rows[["axis", "size", "line", "seconds", "proven"]].to_numpy().tolist() == [
        ["points", 100.0, "ours, rf", 3.5, 0.5],
        ["points", 300.0, "ours, rf", 4.5, 0.5],
        ["units", 20.0, "ours, relus", 1.5, 0.5],
        ["units", 50.0, "ours, relus", 2.5, 0.5],
    ]


def test_a_proof_that_there_is_none_is_a_proof(tmp_path: Path) -> None:
    """In the seconds that it took, not those of the limit."""
    none = Answer(Status.INFEASIBLE, None, Reason.PROOF)
    for units, answers in ((20, [GRANTED, none, none]), (50, [GRANTED, GRANTED, none])):
        named = {"model": f"relus_{units}", "method": "ours", "fingerprint": str(units)}
        cell = started(tmp_path, loans.problem, loans.factual, answers, **named)
        cell.update(config={**cell.meta["config"], "model": {"size": {"units": units}}})
        rows = cell.rows()
        (cell.path / "rows.jsonl").write_text("")
        cell.append({**row, "seconds": 0.5} for row in rows)
        scores = pd.read_csv(cell.path / "scores.csv", index_col="factual")
        told = {"seconds": [3.0 if answer is GRANTED else 60.0 for answer in answers], "optimal": [1.0, 0.0, 0.0]}
        scores.assign(**told).to_csv(cell.path / "scores.csv")
    rows = measured(latest(tmp_path))
    assert rows[["size", "seconds", "proven"]].to_numpy().tolist() == [
        [20.0, 0.5, 1.0],
        [50.0, 3.0, pytest.approx(2 / 3)],
    ]


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


def test_axes_that_have_no_room_go_below(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With room for one, the second has its three panels, names and lines there."""
    monkeypatch.setattr(scaling, "BESIDE", 1)
    figure = figures.known()["scaling"][1](latest(folder))
    assert covered(figure) == []
    assert [axis.get_xlabel() for axis in figure.axes] == ["", "", "trees", "", "", "depth of the trees"]
    assert [axis.xaxis.get_tick_params()["labelbottom"] for axis in figure.axes] == [False, False, True] * 2
    names = [axis.get_ylabel().split()[0] for axis in figure.axes]
    assert names == ["seconds", "memory", "share"] * 2
    assert [set(axis.get_lines()[0].get_xdata()) for axis in (figure.axes[0], figure.axes[3])] == [{10, 100}, {5, 8}]


def test_where_nothing_grows_it_is_said(tmp_path: Path) -> None:
    cell = run_of(tmp_path, "loans", 10, 5, RUNS["loans", 10, 5])
    with pytest.raises(HarnessError, match="no two runs differ in trees"):
        measured([cell])
