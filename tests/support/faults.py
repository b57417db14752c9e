"""Sweeps with a fault put in, run and looked at."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from support import forked
from support.sweep import ROOT, Run, environment_in, stored

PATIENT = ("time_limit=120", "fit_time_limit=600")  # no answer is to depend on the clock
ONE = ("dataset=pima", "model=lr", "method=nearest", "n_factuals=4", "n_counterfactuals=2", *PATIENT)
SWEEP = ("-m", "dataset=pima", "model=lr,svm", "method=nearest,ce_ocl", *ONE[3:])


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Run ``python -m harness`` in a folder of its own, with a fault where one is named."""
    environment = environment_in(tmp_path)

    def run(folder: str, arguments: tuple[str, ...], *fault: Any, **variables: str) -> subprocess.CompletedProcess[str]:
        (tmp_path / folder).mkdir(exist_ok=True)
        if not fault:
            return forked.run("harness", arguments, tmp_path / folder, environment | variables)
        command = [sys.executable, str(ROOT / "tests" / "support" / "fault.py"), *map(str, fault), *arguments]
        return subprocess.run(
            command, cwd=tmp_path / folder, env=environment | variables, capture_output=True, text=True, timeout=600
        )

    return run


def outcome(folder: Path) -> dict[str, tuple[list[str], str]]:
    """By stored run, all but time and memory: its rows, whatever their order, and its scores."""
    found = {}
    for label, run in stored(folder).items():
        assert run.done
        keys = ("factual", "ce", "row", "status", "reason", "objective", "bound")
        rows = sorted(json.dumps([row[key] for key in keys]) for row in run.rows())
        scores = pd.read_csv(run.path / "scores.csv", index_col="factual").sort_index()
        measured = [name for name in scores if "seconds" in name or name == "peak_mib"]
        found[label] = rows, scores.drop(columns=measured).to_csv()
    return found
