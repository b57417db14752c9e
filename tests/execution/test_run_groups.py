"""Groups on the command line, in a process of its own."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.sweep import runner, stored

COMMAND = ("dataset=compas_binned", "n_factuals=12")


@pytest.mark.slow
def test_a_group_is_explained_in_sentences(tmp_path: Path) -> None:
    """Proven, checked, printed as sentences, resumed without a second question; the baseline needs no fewer points."""
    run = runner(tmp_path)
    done = run(*COMMAND, "method=column_generation", "method.t_max=2", "group=true")
    assert done.returncode == 0, done.stderr
    (cell,) = stored(tmp_path).values()
    (line,) = cell.groups()
    assert line["status"] == "OPTIMAL"
    assert {verdict["verdict"] for verdict in cell.verdicts()} == {"accepted"}
    assert f"{len(line['points'])} explanations, proven the fewest" in " ".join(done.stdout.split())
    assert "| race | factuals" in done.stdout
    again = run(*COMMAND, "method=column_generation", "method.t_max=2", "group=true")
    assert "skipped" in again.stderr
    run(*COMMAND, "method=group_greedy", "method.t_max=2", "group=true")
    greedy = stored(tmp_path)["compas_binned/lr/group_greedy"].groups()[0]
    assert len(greedy["points"]) >= len(line["points"])
    assert run("results/adhoc", module="harness.check").returncode == 0


@pytest.mark.slow
def test_groups_by_a_feature_and_methods_that_explain_none(tmp_path: Path) -> None:
    """One group a value; any other method says that it explains no groups, and what to do."""
    run = runner(tmp_path)
    run("-m", *COMMAND, "method=group_greedy,nearest", "group=sex")
    cells = stored(tmp_path)
    assert {line["group"] for line in cells["compas_binned/lr/group_greedy"].groups()} <= {"sex=Male", "sex=Female"}
    refused = cells["compas_binned/lr/nearest"].rows()
    assert {row["status"] for row in refused} == {"UNSUPPORTED"}
    assert "leave 'group' out" in refused[0]["detail"]
    assert run(*COMMAND, "method=group_greedy", "group=sx").returncode == 1


@pytest.mark.slow
def test_other_methods_run_on_intervals(tmp_path: Path) -> None:
    """A dataset made discrete on the command line has a name of its own, and intervals in its answers."""
    run = runner(tmp_path)
    done = run("-m", "dataset=pima", "dataset.discretise=quantile", "n_factuals=3", "method=ce_ocl,nearest")
    assert done.returncode == 0, done.stderr
    for label, cell in stored(tmp_path).items():
        assert label.startswith("pima_quantile/")
        row = next(row["row"] for row in cell.rows() if row["row"] is not None)
        assert all(isinstance(value, str) for value in row.values())
        assert json.dumps(cell.meta["config"]["dataset"]["discretise"]) == '"quantile"'
