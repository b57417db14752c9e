"""Figures from stored answers: what they show, and that nothing in them covers anything else."""

from __future__ import annotations

import math
import sys
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hydra import compose, initialize_config_dir
from matplotlib.contour import ContourSet
from matplotlib.image import imread
from omegaconf import OmegaConf
from scipy.spatial import Delaunay
from sklearn.linear_model import LogisticRegression
from support.figures import covered

from harness import figures as command
from harness.core.errors import HarnessError
from harness.core.explanation import Answer, Status
from harness.core.problem import Problem
from harness.core.target import Label
from harness.data import Dataset, load_dataset
from harness.evaluation import scoring
from harness.evaluation.checker import judge
from harness.evaluation.contest import metrics_of
from harness.models.train import train
from harness.reports import drawing, figures, registry
from harness.reports.canvas import blank, legend_below
from harness.reports.comparison import Comparison
from harness.reports.drawing import plane, rescaled
from harness.store.rows import answer_row
from harness.store.run import StoredRun

CONF = Path(__file__).parents[2] / "conf"
TIMING = {"seconds": 0.5, "fit_seconds": 0.1, "late": False}
MACHINE = {"python": "3.11", "cpu": "a processor", "cores": 2, "threads": 1, "packages": {}}
TWO = {"sources": [{"file": "packaged/pima.csv"}], "target": "Outcome", "classes": [1, 0], "desired": 0}
SPLIT = {"test_size": 0.25, "stratify": True, "seed": 0}
RIVALS = {"CE-OCL": "ce_ocl_paper", "DiCE": "dice_genetic"}


def stored(
    folder: Path, data: Dataset, described: dict[str, Any], rows: list[dict[str, Any]], **names: str
) -> StoredRun:
    """A finished cell of one factual, the first predicted as undesired, with these answers."""
    training, labels = data.frame.iloc[data.train], data.labels[data.train]
    classifier = train(LogisticRegression(), data.space, training, labels, data.classes)
    problem = Problem(data.space, classifier, training, labels, Label(data.desired))
    factual = data.frame.loc[~problem.valid(data.frame)].iloc[[0]]
    cell = StoredRun(folder / "answers" / names["method"])
    config = {"dataset": described, "split": SPLIT, "features": {}, "time_limit": 5, "reference": "all"}
    paths = [f"metrics.{name}" for name in METRICS]
    meta = {**names, "n_counterfactuals": len(rows), "seed": 0, "data_sha256": data.sha256, "environment": MACHINE}
    meta |= {"config": {**config, "figure": "small"}, "scored": {"metrics": {"names": paths}}}
    identity = int(factual.index[0])
    cell.start(meta, data.space, classifier, {identity: problem.target}, None, factual)
    origin = factual.to_dict("records")[0]
    answers = [Answer(Status.FOUND, {**origin, **row}) for row in rows]
    cell.append(answer_row(identity, number + 1, answer, **TIMING) for number, answer in enumerate(answers))
    judge(cell)
    scores = scoring.score(cell, {identity: problem}, list(metrics_of(cell).values()))
    scores.to_csv(cell.path / "scores.csv")
    cell.finish()
    return cell


METRICS = (
    "validity.validity",
    "proximity.categorical_proximity",
    "proximity.continuous_proximity",
    "sparsity.sparsity",
    "diversity.categorical_diversity",
    "diversity.continuous_diversity",
    "diversity.sparsity_diversity",
)


@pytest.fixture
def numbers(tmp_path: Path) -> list[StoredRun]:
    """Cells of both methods of Figure 2, on two numbers: one answer each."""
    described = {"name": "two", **TWO, "features": {"Glucose": {"kind": "continuous"}, "BMI": {"kind": "continuous"}}}
    data = load_dataset(**described, split=SPLIT)
    names = {"dataset": "two", "model": "lr"}
    return [
        stored(tmp_path, data, described, [{"Glucose": 60.0 + far}], **names, method=method)
        for method, far in (("ce_ocl_paper", 0.0), ("ce_ocl_tr", 20.0))
    ]


def test_measures_run_from_worst_to_best() -> None:
    """Shares as they are; other numbers between the ends of published and ours; what was not run is missing."""
    table = Comparison("", "", {"dataset": "dataset", "method": "method"}, {"near": "a/near", "share": "a/share"})
    rows = [("x", -10.0, -30.0, 0.5, 0.25), ("y", -20.0, math.nan, 0.9, math.nan), ("z", -50.0, -40.0, 0.1, 1.0)]
    lines = pd.DataFrame(
        [
            {"dataset": "d", "method": method, "measure": measure, "better": better, "published": p, "ours": o}
            for method, near, our_near, share, our_share in rows
            for measure, better, p, o in (("near", "higher", near, our_near), ("share", "lower", share, our_share))
        ]
    )
    panels = rescaled(table, pd.concat([lines, lines.assign(dataset="other", ours=9.0)]), {"dataset": "d"})
    np.testing.assert_allclose(panels["published"]["near"], [1.0, 0.75, 0.0])
    np.testing.assert_allclose(panels["ours"]["near"], [0.5, math.nan, 0.25])
    np.testing.assert_allclose(panels["published"]["share"], [0.5, 0.1, 0.9])
    np.testing.assert_allclose(panels["ours"]["share"], [0.75, math.nan, 0.0])


@pytest.mark.parametrize("name", ["ce_ocl_figure1_left", "ce_ocl_figure1_right"])
def test_bars_are_the_scores(name: str, tmp_path: Path) -> None:
    """One bar a method and measure in both panels, as high as ``rescaled`` says; no two texts on each other."""
    draw = figures.known()[name][1]
    assert isinstance(draw, partial)
    table = registry.known()[draw.keywords["table"]]
    assert isinstance(table, Comparison)
    described = {"name": "compas_carla", **TWO, "features": {"Glucose": None, "BMI": None, "Age": None}}
    model = table.fixed.get("model", "lr_tuned")
    data = load_dataset(**described, split=SPLIT)
    found = [
        stored(tmp_path, data, described, rows, dataset="compas_carla", model=model, method=method)
        for method, rows in (
            ("ce_ocl_paper", [{"Glucose": 60}, {"Glucose": 61}]),
            ("dice_genetic", [{"Glucose": 70, "Age": 30}, {"BMI": 10.0}]),
        )
    ]
    figure = draw(found)
    panels = rescaled(table, table.compare(found), draw.keywords["where"])
    assert panels["ours"].loc["CE-OCL"].notna().sum() >= 3
    assert panels["ours"].drop(index=list(RIVALS)).isna().all(axis=None)
    assert len(figure.axes) == 2
    for axis, (title, scaled) in zip(figure.axes, panels.items(), strict=True):
        assert axis.get_title(loc="left") == title
        heights = np.array([[bar.get_height() for bar in container] for container in axis.containers])
        np.testing.assert_allclose(heights, scaled.fillna(0.0).to_numpy())
        middles = np.array([[bar.get_x() + bar.get_width() / 2 for bar in container] for container in axis.containers])
        np.testing.assert_allclose(middles.mean(axis=0), np.arange(len(scaled.columns)), atol=1e-9)  # about its name
        assert (np.diff(middles, axis=0) > 0).all()
    assert covered(figure) == []


def test_the_plane_shows_what_was_answered(numbers: list[StoredRun]) -> None:
    """Both methods on the same axes; the shaded side is the model's, the hull holds all rows of the wanted class."""
    titles = {"ce_ocl_paper": "left", "ce_ocl_tr": "right"}
    figure = plane(numbers, titles, "a title")
    assert [axis.get_title() for axis in figure.axes] == ["left", "right"]
    assert covered(figure) == []
    data = load_dataset(**numbers[0].meta["config"]["dataset"], split=SPLIT)
    wanted = data.frame[data.labels == 0].to_numpy(float)
    points = pd.concat([data.frame.iloc[data.train], *(cell.factuals()[0] for cell in numbers)])
    points = pd.concat([points, *(pd.DataFrame([row["row"] for row in cell.rows()]) for cell in numbers)])
    ends = points[["Glucose", "BMI"]].agg(["min", "max"]).to_numpy(float)
    room = 0.05 * (ends[1] - ends[0])
    for axis in figure.axes:  # a twentieth of the room around all points of both
        np.testing.assert_allclose(
            [*axis.get_xlim(), *axis.get_ylim()], np.ravel([ends[0] - room, ends[1] + room], "F")
        )
    for axis, cell in zip(figure.axes, numbers, strict=True):
        drawn = {collection.get_label(): collection.get_offsets() for collection in axis.collections}
        factual, _ = cell.factuals()
        np.testing.assert_array_equal(drawn["factual"], factual.to_numpy(float))
        np.testing.assert_array_equal(drawn["counterfactual"], [list(row["row"].values()) for row in cell.rows()])
        (shaded,) = [part for part in axis.collections if isinstance(part, ContourSet) and part.filled]
        places = (drawn["factual"][0], drawn["counterfactual"][0])  # not as wanted, and as wanted
        assert [any(path.contains_point(place) for path in shaded.get_paths()) for place in places] == [False, True]
        (hull,) = [line for line in axis.lines if line.get_label() == "hull of the desired class"]
        corners = np.column_stack(hull.get_data())
        assert (corners[0] == corners[-1]).all()
        assert {tuple(corner) for corner in corners} <= {tuple(row) for row in wanted}
        middle = corners.mean(axis=0)
        assert (Delaunay(corners[:-1]).find_simplex(middle + (wanted - middle) * 0.999999) >= 0).all()


def test_a_plane_needs_two_numbers(tmp_path: Path) -> None:
    described = {"name": "three", **TWO, "features": {"Glucose": None, "BMI": None, "Age": None}}
    data = load_dataset(**described, split=SPLIT)
    cell = stored(tmp_path, data, described, [{"Age": 30}], dataset="three", model="lr", method="ce_ocl_paper")
    with pytest.raises(HarnessError, match="Glucose, BMI, Age; a plane has two numbers"):
        plane([cell], {"ce_ocl_paper": ""}, "")
    with pytest.raises(HarnessError, match="none of ce_ocl_tr has finished"):
        plane([cell], {"ce_ocl_tr": ""}, "")


def test_figures_are_written(
    numbers: list[StoredRun], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As PNG and as SVG, by the end of a sweep and by the command line; not blank."""
    known = {**figures.known(), "small": ("picture", figures.known()["ce_ocl_figure2"][1])}
    monkeypatch.setattr(figures, "known", lambda: known)
    monkeypatch.setattr(sys, "argv", ["figures", str(tmp_path)])
    with pytest.raises(SystemExit) as ended:
        command.main()
    assert ended.value.code == 0
    assert str(tmp_path / "picture") in capsys.readouterr().out
    assert imread(tmp_path / "picture.png")[..., :3].std() > 0.05
    assert "<svg" in (tmp_path / "picture.svg").read_text()
    with pytest.raises(HarnessError, match="no figure 'smal'; did you mean 'small'"):
        figures.write(tmp_path, "smal")


@pytest.mark.parametrize(
    ("experiment", "figure"),
    [
        ("ce_ocl_table2", "ce_ocl_figure1_left"),
        ("ce_ocl_table3", "ce_ocl_figure1_right"),
        ("ce_ocl_figure2", "ce_ocl_figure2"),
    ],
)
def test_an_experiment_names_its_figure(experiment: str, figure: str) -> None:
    OmegaConf.register_new_resolver("study_name", lambda: "adhoc", replace=True)
    with initialize_config_dir(str(CONF), version_base="1.3"):
        assert compose("config", overrides=[f"+experiment={experiment}"]).figure == figure
    assert figure in figures.known()


def test_the_palette_is_not_told_by_colour_alone() -> None:
    """Every method of a table has a colour and a hatch of its own."""
    most = max(
        len(table.ours["method"]) for table in registry.known().values() if isinstance(table, Comparison) and table.ours
    )
    assert len(set(drawing.COLOURS)) >= most
    assert len(set(drawing.HATCHES)) >= most


def test_a_legend_has_the_look_of_the_first_panel_that_has_a_line() -> None:
    """In a later one it may be without, as where points are not joined."""
    figure = blank(4, 3)
    axes = figure.subplots(1, 2)
    axes[0].plot([0, 1], [0, 1], label="a", linestyle="-")
    axes[1].plot([0, 1], [0, 1], label="a", linestyle="none", marker="o")
    axes[1].plot([0, 1], [0, 1], label="b", linestyle="--")
    legend_below(figure, axes)
    (legend,) = figure.legends
    shown = {text.get_text(): line for text, line in zip(legend.get_texts(), legend.get_lines(), strict=True)}
    assert {name: line.get_linestyle() for name, line in shown.items()} == {"a": "-", "b": "--"}
