"""Whatever ends a sweep, the same command goes on, and ends where an undisturbed one does."""

from __future__ import annotations

import json
import random
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from mlflow import MlflowClient
from support.faults import ONE, SWEEP, outcome, run
from support.sweep import Run, environment_in, stored

from harness.store.run import StoredRun

__all__ = ["run"]  # the fixture

KILLS = 20
UNLOGGED = "import os; from harness.cli import job, main; job.log_run = lambda *_: os._exit(9); main.main()"


def asked_twice(cell: StoredRun) -> list[Any]:
    """Factuals whose answer was stored in full, was no failure, and was asked for again."""
    tries: Counter[Any] = Counter()
    for line in (cell.path / "rows.jsonl").read_text().splitlines():
        try:
            row = json.loads(line)
        except json.JSONDecodeError:  # torn
            continue
        tries[row["factual"]] += row["ce"] == cell.meta["n_counterfactuals"] and row["status"] != "FAILED"
    return [factual for factual, count in tries.items() if count != 1]


def assert_each_is_logged_once(folder: Path) -> None:
    """One finished MLflow run a cell, of its fingerprint, with its metrics and artifacts."""
    client = MlflowClient(tracking_uri=f"sqlite:///{folder / 'mlflow.db'}")
    experiment = client.get_experiment_by_name("adhoc")
    assert experiment is not None
    runs = client.search_runs([experiment.experiment_id], "tags.fingerprint != ''")
    assert sorted(logged.data.tags["fingerprint"] for logged in runs) == sorted(
        cell.meta["fingerprint"] for cell in stored(folder).values()
    )
    for logged in runs:
        assert logged.info.status == "FINISHED"
        assert "coverage" in logged.data.metrics
        files = {file.path for file in client.list_artifacts(logged.info.run_id)}
        assert {"counterfactuals.json", "counterfactuals.csv", "config.yaml"} <= files


def test_a_full_disk_is_one_sentence(run: Run, tmp_path: Path) -> None:
    """While rows come in; the exit code is 1, and with room again only what lacks is asked."""
    done = run("full", ONE, "full", 14, 0)
    assert done.returncode == 1, done.stderr
    assert "Traceback" not in done.stderr
    (sentence,) = (line for line in done.stderr.splitlines() if "nothing more can be written" in line)
    assert "No space left on device" in sentence
    (cell,) = stored(tmp_path / "full").values()
    before = cell.rows()
    assert 0 < len(before) < 8
    assert not cell.done
    assert run("full", ONE).returncode == 0
    assert len(cell.rows()) == 8
    assert cell.rows()[: len(before)] == before
    assert not asked_twice(cell)
    assert_each_is_logged_once(tmp_path / "full")


def test_a_run_that_ended_before_it_was_logged_is_logged_later(run: Run, tmp_path: Path) -> None:
    """The process ends when all is scored and nothing is in MLflow; no factual is asked again."""
    here = tmp_path / "unlogged"
    here.mkdir()
    ended = subprocess.run([sys.executable, "-c", UNLOGGED, *ONE], cwd=here, env=environment_in(tmp_path))
    (cell,) = stored(here).values()
    before = cell.rows()
    assert (ended.returncode, cell.done, len(before)) == (9, True, 8)
    assert run("unlogged", ONE).returncode == 0
    assert cell.rows() == before
    assert_each_is_logged_once(here)


@pytest.mark.slow
@pytest.mark.parametrize("counts", [(2, 3), (2, 2)], ids=["two runs", "one run"])
def test_two_first_sweeps_at_once_make_one_store(tmp_path: Path, counts: tuple[int, int]) -> None:
    """In a folder with nothing in it; neither warns, and the runs of both are logged, and one of their study.

    Where both are the same run, one asks and the other waits.
    """
    command = [sys.executable, "-m", "harness", *ONE]
    kept: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    where: dict[str, Any] = {"cwd": tmp_path, "env": environment_in(tmp_path)}
    states = []
    both = [subprocess.Popen([*command, f"n_factuals={n}"], **where, **kept) for n in counts]
    for process in both:
        text, _ = process.communicate(timeout=300)
        assert process.returncode == 0, text
        assert not re.search("warning|error|already exists", text, flags=re.IGNORECASE), text
        states += re.findall(r"nearest  (\w+): ", text)
    client = MlflowClient(tracking_uri=f"sqlite:///{tmp_path / 'mlflow.db'}")
    experiment = client.get_experiment_by_name("adhoc")
    assert experiment is not None
    runs = client.search_runs([experiment.experiment_id])
    different = len({*counts})
    assert sorted("fingerprint" in logged.data.tags for logged in runs) == [False, *[True] * different]
    assert sorted(states) == ["done", "done" if different == 2 else "skipped"]
    for cell in stored(tmp_path).values():
        assert len(cell.rows()) == len(cell.factuals()[0]) * cell.meta["n_counterfactuals"]
        assert not asked_twice(cell)


@pytest.mark.slow
@pytest.mark.parametrize("kinds", [("main", "worker"), ("full",)], ids=["kill", "full disk"])
def test_random_faults_leave_no_trace(run: Run, tmp_path: Path, kinds: tuple[str, ...]) -> None:
    """Faults at random points, one after another; every sweep that comes through has the rows of an undisturbed one."""
    assert run("undisturbed", SWEEP).returncode == 0
    expected = outcome(tmp_path / "undisturbed")
    rng = random.Random(0)
    faults, sweeps = 0, 0
    while faults < KILLS:
        sweeps += 1
        folder = f"sweep{sweeps}"
        for last in (False,) * KILLS + (True,):
            kind = rng.choice(kinds)
            delay = rng.choice([0.0, rng.uniform(0.0, 0.1)]) if kind != "full" else 0.0
            fault = () if last or faults >= KILLS else (kind, rng.randint(1, 60), delay)
            done = run(folder, SWEEP, *fault)
            faults += bool(fault) and ("killed" in done.stdout if kind == "worker" else done.returncode != 0)
            assert "Traceback" not in done.stderr, (fault, done.stderr)
            if kind == "full" and fault:
                assert done.returncode == 0 or "nothing more can be written" in done.stderr, (fault, done.stderr)
            if done.returncode == 0:
                break
        assert outcome(tmp_path / folder) == expected
        for cell in stored(tmp_path / folder).values():
            assert not asked_twice(cell)
        assert_each_is_logged_once(tmp_path / folder)


def settled(folder: Path, jobs: int, beside: int) -> dict[str, tuple[list[str], str]]:
    """The ``outcome``, once every row says how it was timed."""
    for cell in stored(folder).values():
        assert {(row["jobs"], row["beside"]) for row in cell.rows()} == {(jobs, beside)}
    return outcome(folder)


@pytest.mark.slow
def test_work_side_by_side_changes_no_answer(run: Run, tmp_path: Path) -> None:
    """Factuals or cells side by side: the rows and metrics of a serial sweep, whose timings alone are unmarked."""
    joblib = ("hydra/launcher=joblib", "hydra.launcher.n_jobs=2")
    found = {
        name: run(name, (*SWEEP, *how)) for name, how in (("serial", ()), ("jobs", ("jobs=2",)), ("cells", joblib))
    }
    assert [each.returncode for each in found.values()] == [0, 0, 0], found
    expected = settled(tmp_path / "serial", 1, 1)
    assert settled(tmp_path / "jobs", 2, 1) == expected
    assert settled(tmp_path / "cells", 1, 2) == expected
    for name, done in found.items():
        assert ("no fair times" in done.stdout) == (name != "serial")
        assert_each_is_logged_once(tmp_path / name)
