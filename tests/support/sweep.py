"""Sweeps as a user starts them, and what they leave behind."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

from support import forked

from harness.store.run import StoredRun, stored_runs

ROOT = Path(__file__).parents[2]
Run = Callable[..., subprocess.CompletedProcess[str]]


def environment_in(folder: Path) -> dict[str, str]:
    """The variables of a sweep whose cache is in a folder."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith("MLFLOW")}
    return kept | {"CE_HARNESS_CACHE": str(folder / "cache"), "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}


def runner(folder: Path) -> Run:
    """Run ``python -m harness`` in a folder that holds everything it writes; ``variables`` are added."""
    environment = environment_in(folder)

    def run(*arguments: str, module: str = "harness", **variables: str) -> subprocess.CompletedProcess[str]:
        return forked.run(module, arguments, folder, environment | variables)

    return run


def stored(folder: Path) -> dict[str, StoredRun]:
    """The stored runs of an experiment without a name, by label."""
    return {run.label: run for run in stored_runs(folder / "results" / "adhoc")}
