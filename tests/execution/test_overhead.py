"""What a sweep of very many small cells costs beside its methods and metrics."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from harness.core.explanation import Answer, Explanation, Status
from harness.core.problem import Problem
from harness.data import Dataset
from harness.execution.experiment import Workers, run
from harness.execution.pool import Limits, Outcome
from harness.execution.task import make_task
from harness.store.run import StoredRun
from methods.nearest import Nearest

ROOT = Path(__file__).parents[2]
CELLS, FACTUALS = 1000, 10_000


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "count"),
    [
        (("method=nearest", "n_factuals=3"), CELLS),  # as small as can be: what a thousand of them leave behind
        (("method=dice_random",), 30),  # small: 30 factuals, the default, of some hundredths of a second each
    ],
    ids=["memory", "time"],
)
def test_many_small_cells(
    method: tuple[str, ...], count: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """At most 200 MiB more after the last of 1,000 cells than after the 100th, and three lines on the
    console a cell. The share outside methods and metrics is printed, not asserted: it depends on the machine."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("MLFLOW")}
    environment |= {"CE_HARNESS_CACHE": str(tmp_path / "cache"), "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    settings = ("dataset=pima", "model=lr", *method, f"seed=range({count})")
    command = [sys.executable, str(ROOT / "tests" / "support" / "overhead.py"), "-m", *settings]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    found = json.loads(done.stdout.splitlines()[-1])
    lines = len((done.stdout + done.stderr).splitlines())
    grown = found["mib"][-1] - found["mib"][min(99, count // 2)]
    with capsys.disabled():
        print(
            f"\n{count} cells in {found['seconds']:.0f} s; outside methods and metrics: {found['share']:.1%} of these,"
        )
        print(f"{found['cpu_share']:.1%} of the processor's time, {1000 * found['outside']:.0f} ms of it a cell;")
        print(f"{grown:.0f} MiB more in the end, {lines / count:.1f} lines a cell")
    assert found["cells"] == count
    assert grown < 200
    # The table at the end has a line a cell, too.
    assert lines <= 3 * count + 20


class Pool:
    """Answers at once, and looks which of the answers before are stored, and which still held in memory."""

    def __init__(self, rows: Path) -> None:
        self.rows, self.unstored, self.kept = rows, 0, 0

    def explain(self, method: Any, problem_of: Any, factuals: pd.DataFrame, *_: Any) -> Iterator[Outcome]:
        row, given = factuals.iloc[0].to_dict(), []
        for number, index in enumerate(factuals.index):
            if number % 1000 == 1:
                self.unstored += number - self.rows.read_bytes().count(b"\n")
                self.kept = max(self.kept, sum(known() is not None for known in given))
            explanation = Explanation((Answer(Status.FOUND, row),))
            given.append(weakref.ref(explanation))
            yield Outcome(index, explanation, seconds=0.1)


def test_rows_of_ten_thousand_factuals_go_to_disk_as_they_come(problem: Problem, tmp_path: Path) -> None:
    """Before the next factual is asked, the answer to the last is stored, and no longer held in memory."""
    unwanted = problem.train.loc[~problem.valid(problem.train)]
    frame = unwanted.iloc[np.arange(FACTUALS) % len(unwanted)].reset_index(drop=True)
    rows, labels = np.arange(FACTUALS), np.resize(problem.labels, FACTUALS)
    dataset = Dataset("toy", problem.space, frame, labels, ("bad", "good"), "good", rows, rows, "0" * 64)
    question = make_task(dataset, problem.classifier, which="all", n_factuals=FACTUALS)
    cell = StoredRun(tmp_path)
    meta = {"dataset": "toy", "model": "lr", "method": "nearest", "n_counterfactuals": 1}
    cell.start(meta, dataset.space, question.classifier, question.targets, None, question.factuals)
    pool = Pool(tmp_path / "rows.jsonl")
    run(cell, question, Nearest(), 1, 0, Workers(pool, Limits()))  # type: ignore[arg-type]
    assert pool.unstored == 0
    assert pool.kept <= 1  # the last
    assert len(cell.rows()) == FACTUALS
    assert cell.done
