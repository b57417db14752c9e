"""The overnight comparison, on one dataset, and the page about it."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from support.markup import Page
from support.sweep import runner

from harness.store.run import stored_runs

ONE = ("+experiment=benchmark", "dataset=german_credit", "model=cart,lr", "method=ce_ocl,dice_random", "n_factuals=2")


@pytest.mark.slow
def test_one_dataset_of_the_benchmark(tmp_path: Path) -> None:
    """Robustness is measured of every method; asked again, nothing is run; the report ranks by it."""
    run = runner(tmp_path)
    done = run(*ONE)
    assert done.returncode == 0, done.stderr
    found = {cell.label: cell for cell in stored_runs(tmp_path / "results" / "benchmark")}
    assert len(found) == 4
    for cell in found.values():
        scores = pd.read_csv(cell.path / "scores.csv")
        for metric in ("certified_radius_linf", "invalidation_rate"):
            assert scores[f"robustness/{metric}"].between(0, 1).all()
    again = run(*ONE)
    assert again.returncode == 0, again.stderr
    assert again.stderr.count("skipped:") == 4
    page = run("experiment=benchmark", module="harness.report")
    assert page.returncode == 0, page.stderr
    text = (tmp_path / "results" / "benchmark" / "report.html").read_text()
    assert "of the largest box proven valid around each" in text
    for name in ("robustness, lower is better", "certified radius, higher is better"):
        ranked = " ".join(row["methods"] for row in Page(text).table(name, "place").values())
        assert "ce_ocl (rank " in ranked
        assert "dice_random (" in ranked  # with its rank, or among those that answer too few
