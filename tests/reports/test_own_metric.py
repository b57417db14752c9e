"""A metric of a user's own is shown wherever ours are, with nothing edited but its own module."""

from __future__ import annotations

import csv
import sqlite3
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest
from support.sweep import runner
from support.tables import GRANTED, started

from harness.core.metric import Metric, metric
from harness.core.problem import Problem
from harness.evaluation.contest import criteria_of, metrics_of
from harness.reports import stored
from metrics import _example as loans
from metrics.proximity import l0

MODULE = '''
from harness.core.metric import metric


@metric(better="lower", family="own", heading="extra glucose", unit="mg")
def glucose(factual, answers, problem):
    """Mean rise of glucose that the counterfactuals ask for."""
    return 1.25  # with and without an answer, so that the test knows every mean
'''
COLUMN, NAME = "extra glucose (mg)", "own/glucose"


def test_a_metric_of_ones_own_is_in_every_table(tmp_path: Path) -> None:
    """The printed table, summary.csv, table.md, table.tex, report.html and the runs in MLflow."""
    (tmp_path / "mine.py").write_text(MODULE)
    run, results = runner(tmp_path), tmp_path / "results" / "adhoc"
    names = "metrics.names=[metrics.proximity.l0,mine.glucose]"
    sweep = run("-m", "dataset=pima", "model=lr", "method=nearest,ce_ocl", "n_factuals=2", names)
    assert sweep.returncode == 0, sweep.stderr
    head = next(line for line in sweep.stdout.splitlines() if COLUMN in line)
    assert head.split()[:8] == ["task", "method", "asked", "coverage", "validity", "optimal", "s", "s_p95"]
    with (results / "summary.csv").open() as file:
        assert {row["value"] for row in csv.DictReader(file) if row["number"] == NAME} == {"1.25"}
    for module in ("harness.tables", "harness.report"):
        done = run("experiment=adhoc", module=module)
        assert done.returncode == 0, done.stderr
    for file in ("summary.md", "table.md", "table.tex", "report.html"):
        text = (results / file).read_text()
        assert COLUMN in text, file
        assert "1.25" in text, file
    assert "Mean rise of glucose that the counterfactuals ask for" in (results / "report.html").read_text()
    with sqlite3.connect(tmp_path / "mlflow.db") as store:
        assert store.execute("SELECT value FROM latest_metrics WHERE key = ?", (NAME,)).fetchall() == [(1.25,)] * 2


@pytest.mark.parametrize(
    ("declared", "headings"),
    [
        ({}, ["sparsity", "zero"]),
        ({"heading": "wait", "unit": "days"}, ["sparsity", "wait (days)"]),
        ({"place": 0}, ["zero", "sparsity"]),
        ({"shown": ("report",)}, ["sparsity"]),
        ({"shown": False}, ["sparsity"]),
        ({"heading": "sparsity"}, ["sparsity", "own/zero"]),
        ({"heading": "coverage"}, ["sparsity", "own/zero"]),
    ],
    ids=str,
)
def test_headings(declared: dict[str, Any], headings: list[str]) -> None:
    """In the order of places; a heading that another column has gives way to the metric's full name."""
    zero = _zero(better="lower", family="own", **declared)
    assert list(stored.headings([zero, l0], "summary", ["coverage"])) == headings


def test_a_criterion_of_ones_own_takes_nobodys_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """Headed as one of the five, or as the clock, it is compared under its full name; the five keep theirs."""
    own = [
        _zero(better="higher", family="own", heading=heading)
        for heading in ("sparsity", "seconds", "diversity", "zero")
    ]
    own.append(_zero(better="higher", family="own", heading="back", over="returned"))  # which has no nearest
    monkeypatch.setattr(
        "harness.evaluation.contest.metrics_of", lambda run: {m.heading or m.name: m for m in [l0, *own]}
    )
    found = [(criterion.name, criterion.metric, criterion.better) for criterion in criteria_of([SimpleNamespace()])]  # type: ignore[list-item]
    assert found[:2] == [("sparsity", "distance/l0", "lower"), ("seconds", "seconds", "lower")]
    assert [name for name, _, _ in found[2:]] == ["own/zero"] * 3 + ["zero"]


def test_a_metric_that_is_gone_costs_its_column_alone(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """What was scored by a module that is no longer there is shown without it, and a warning says why."""
    made = started(tmp_path, loans.problem, loans.factual, [GRANTED])
    made.update(scored={"metrics": {"names": ["metrics.proximity.l0", "nowhere.patience"]}})
    assert list(stored.headings(metrics_of(made).values(), "summary")) == ["sparsity"]
    assert "nowhere.patience" in caplog.text


def test_tables_that_do_not_exist_are_refused() -> None:
    with pytest.raises(ValueError, match=r"shown names everywhere; allowed: summary, overview, report\."):
        _zero(better="lower", family="own", shown=("everywhere",))


def _zero(**declared: Any) -> Metric:
    def zero(factual: pd.DataFrame, answers: pd.DataFrame, problem: Problem) -> float:
        return 0.0

    return metric(**declared)(zero)
