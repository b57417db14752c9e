"""Sweeps with a fault put in, run and looked at."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from harness.store.run import StoredRun, stored_runs

ROOT = Path(__file__).parents[2]
PATIENT = ("time_limit=120", "fit_time_limit=600")  # no answer is to depend on the clock
ONE = ("dataset=pima", "model=lr", "method=nearest", "n_factuals=4", "n_counterfactuals=2", *PATIENT)
SWEEP = ("-m", "dataset=pima", "model=lr,svm", "method=nearest,ce_ocl", *ONE[3:])
Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Run ``python -m harness`` in a folder of its own, with a fault where one is named."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("MLFLOW")}
    environment |= {"CE_HARNESS_CACHE": str(tmp_path / "cache"), "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}

    def run(folder: str, arguments: tuple[str, ...], *fault: Any, **variables: str) -> subprocess.CompletedProcess[str]:
        (tmp_path / folder).mkdir(exist_ok=True)
        start = [str(ROOT / "tests" / "support" / "fault.py"), *map(str, fault)] if fault else ["-m", "harness"]
        command = [sys.executable, *start, *arguments]
        return subprocess.run(
            command, cwd=tmp_path / folder, env=environment | variables, capture_output=True, text=True, timeout=600
        )

    return run


def stored(folder: Path) -> dict[str, StoredRun]:
    return {cell.label: cell for cell in stored_runs(folder / "results" / "adhoc")}


def outcome(folder: Path) -> dict[str, tuple[list[str], str]]:
    """By cell, all that does not depend on the clock: its rows, whatever their order, and its scores."""
    found = {}
    for label, cell in stored(folder).items():
        assert cell.done
        keys = ("factual", "ce", "row", "status", "reason", "objective", "bound")
        rows = sorted(json.dumps([row[key] for key in keys]) for row in cell.rows())
        scores = pd.read_csv(cell.path / "scores.csv", index_col="factual").sort_index()
        timed = [name for name in scores if "seconds" in name]
        found[label] = rows, scores.drop(columns=timed).to_csv()
    return found
