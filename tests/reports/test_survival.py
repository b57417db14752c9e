"""The figure of validity after another training against distance, on scores worked out by hand."""

from __future__ import annotations

import math
from pathlib import Path

import pandas as pd
import pytest
from hydra import compose, initialize_config_dir
from matplotlib.colors import to_hex
from omegaconf import OmegaConf
from support.complete import CONF
from support.figures import covered
from support.tables import GRANTED, started

from harness.core.errors import HarnessError
from harness.evaluation.study import Study
from harness.reports import figures
from harness.reports.page.charts import look
from harness.reports.stored import latest
from harness.reports.survival import measured
from metrics import _example as loans

NAN = math.nan
KINDS = ("seeds", "bootstrap", "later")
PATHS = ["metrics.proximity.gower", *(f"metrics.retraining.{name}" for name in KINDS)]
# By model and method, a question a column: its distance, the share of other seeds, of bootstrap samples, of later rows.
SCORES = {
    ("tree", "near"): ([0.1, 0.2, 0.3, 0.4], [0.5, 1.0, 0.0, 0.5], [0.25, 0.75, 0.5, 0.5], [NAN] * 4),
    ("tree", "far"): ([0.6, NAN, NAN, NAN], [1.0, NAN, NAN, NAN], [0.9, NAN, NAN, NAN], [NAN] * 4),
    ("tree", "silent"): ([NAN] * 4, [NAN] * 4, [NAN] * 4, [NAN] * 4),
    ("net", "near"): ([0.5] * 4, [0.8] * 4, [0.3] * 4, [0.1] * 4),
    ("forest", "near"): ([0.1] * 10 + [0.7] * 2, [0.5] * 10 + [1.0] * 2, [0.5] * 10 + [1.0] * 2, [NAN] * 12),
    ("forest", "far"): ([0.2] * 10 + [NAN] * 2, [0.4] * 10 + [NAN] * 2, [0.6] * 10 + [NAN] * 2, [NAN] * 12),
    ("forest", "silent"): ([0.05] + [NAN] * 11, [0.9] + [NAN] * 11, [0.9] + [NAN] * 11, [NAN] * 12),
}
# Of the tree the means of the kinds are .5 and .5; then 1 and .9; of the net .8, .3 and .1. Ten people of the forest
# have two answers, one of .5 and .5, the other of .4 and .6.
COLUMNS = ("task", "method", "distance", "kept", "least", "most", "few", "common", "n")
EXPECTED = [
    dict(zip(COLUMNS, row, strict=True))
    for row in (
        ("loans / tree", "near", 0.25, 0.5, 0.5, 0.5, False, False, 4),
        ("loans / tree", "far", 0.6, 0.95, 0.9, 1.0, True, False, 1),
        ("loans / net", "near", 0.5, 0.4, 0.1, 0.8, False, False, 4),
        ("loans / forest", "near", 0.1, 0.5, 0.5, 0.5, False, True, 10),
        ("loans / forest", "far", 0.2, 0.5, 0.4, 0.6, False, True, 10),
        ("loans / forest", "silent", 0.05, 0.9, 0.9, 0.9, True, False, 1),
    )
]
OWN = "each method's own people, 4"
PEOPLE = {"tree": OWN, "net": OWN, "forest": "the 10 people that all answer"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Three methods on a tree and a forest, one of them on a network, too, of people whose scores are those above."""
    for number, ((model, method), columns) in enumerate(SCORES.items()):
        answers = [None if math.isnan(value) else GRANTED for value in columns[0]]
        named = {"model": model, "method": method, "fingerprint": str(number), "paths": PATHS}
        run = started(tmp_path, loans.problem, loans.factual, answers, **named)
        scores = pd.read_csv(run.path / "scores.csv", index_col="factual")
        names = [f"nearest/{name}" for name in ("distance/gower", *(f"retraining/{kind}" for kind in KINDS))]
        scores.assign(**dict(zip(names, columns, strict=True))).to_csv(run.path / "scores.csv")
    return tmp_path


def test_means_are_those_worked_out_by_hand(folder: Path) -> None:
    """Each kind of retraining counts the same, one that is not defined not at all; who answers nothing has no row."""
    found = measured(Study.of(folder)).sort_values("method", ascending=False).to_dict("records")
    by_name = {(row["task"], row["method"]): row for row in found}
    assert by_name.keys() == {(row["task"], row["method"]) for row in EXPECTED}
    for row in EXPECTED:
        assert by_name[row["task"], row["method"]] == pytest.approx(row)


def test_the_figure_shows_them(folder: Path) -> None:
    """A panel a task, a marker at the mean, a line from the worst kind to the best, hollow where few are answered."""
    figure = figures.known()["model_change"][1](latest(folder))
    assert covered(figure) == []
    (title,) = figure.texts
    assert 0 <= title.get_window_extent().x0 < title.get_window_extent().x1 <= figure.bbox.x1
    looks = look(Study.of(folder).methods)
    panels = {axis.get_title(): axis for axis in figure.axes if axis.get_title()}
    assert panels.keys() == {f"loans / {model}\n{people}" for model, people in PEOPLE.items()}
    for task, axis in panels.items():
        expected = {row["method"]: row for row in EXPECTED if row["task"] == task.partition("\n")[0]}
        assert {str(marker.get_label()) for marker in axis.collections} == expected.keys()
        for marker, line in zip(axis.collections, axis.get_lines(), strict=True):
            row = expected[str(marker.get_label())]
            assert marker.get_offsets().tolist() == [pytest.approx([row["distance"], row["kept"]])]
            assert list(line.get_xdata()) == pytest.approx([row["distance"]] * 2)
            assert list(line.get_ydata()) == pytest.approx([row["least"], row["most"]])
            colour = looks[row["method"]]["color"].lower()
            assert to_hex(marker.get_edgecolor()[0]) == colour == to_hex(line.get_color())
            assert to_hex(marker.get_facecolor()[0]) == ("#ffffff" if row["few"] else colour)


def test_a_study_without_such_numbers_is_told_what_to_run(tmp_path: Path) -> None:
    started(tmp_path, loans.problem, loans.factual, [GRANTED], paths=PATHS[:1])
    with pytest.raises(HarnessError, match="again with rescore=true metrics=model_change"):
        figures.write(tmp_path, "model_change")


def test_the_experiment_asks_for_it() -> None:
    OmegaConf.register_new_resolver("study_name", lambda: "adhoc", replace=True)
    with initialize_config_dir(str(CONF), version_base="1.3"):
        assert compose("config", overrides=["+experiment=model_change"]).figure in figures.known()
