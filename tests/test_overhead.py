"""What a sweep of very many small cells costs beside its methods and metrics."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
CELLS = 1000


@pytest.mark.slow
def test_a_thousand_small_cells(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Memory stays: at most 200 MiB more after the last than after the 100th; the console has three lines a cell."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("MLFLOW")}
    environment |= {"CE_HARNESS_CACHE": str(tmp_path / "cache"), "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    settings = ("dataset=pima", "model=lr", "method=nearest", "n_factuals=10", f"seed=range({CELLS})")
    command = [sys.executable, str(ROOT / "tests" / "overhead.py"), "-m", *settings]
    told = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    found = json.loads(told.stdout.splitlines()[-1])
    said = len(told.stderr.splitlines())
    grown = found["mib"][-1] - found["mib"][99]
    with capsys.disabled():
        print(f"\n{CELLS} cells in {found['seconds']:.0f} s, {found['share']:.0%} of it outside methods and metrics")
        print(f"{grown:.0f} MiB more after the last than after the 100th; {said / CELLS:.1f} lines a cell")
    assert found["cells"] == CELLS
    assert grown < 200
    # The table at the end has a line a cell, too.
    assert said <= 3 * CELLS + 20
