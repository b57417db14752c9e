"""What there is to choose from, and what a sweep would run, before anything runs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from support.sweep import environment_in

from harness.cli.listing import KINDS, described, listed
from harness.core import packages

CONF = Path(__file__).parents[2] / "conf"


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "harness", *arguments]
    return subprocess.run(command, cwd=folder, env=environment_in(folder), capture_output=True, text=True, timeout=120)


@pytest.mark.parametrize("kind", KINDS)
def test_every_choice_has_a_line(kind: str) -> None:
    """Its name, and what it is, in one line."""
    lines = listed(kind, [CONF]).splitlines()
    names = [line.split()[0] for line in lines]
    assert len(set(names)) == len(names) > 4
    assert all(len(line.split()) > 2 for line in lines)
    if kind != "metrics":
        assert set(names) == {path.stem for path in (CONF / KINDS[kind]).glob("*.yaml")}


def test_a_description_is_the_first_sentence(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("# @package _global_\n# One thing: and\n# another. Not this.\nx: 1  # nor this\n")
    assert described(tmp_path / "a.yaml") == "One thing: and another"


def test_lists_and_version_are_printed(tmp_path: Path) -> None:
    """A list that does not exist is one sentence."""
    assert run(tmp_path, "--version").stdout == f"ce-harness {packages.version('ce-harness')}\n"
    assert run(tmp_path, "list", "datasets").stdout.startswith("adult ")
    wrong = run(tmp_path, "list", "method")
    assert (wrong.returncode, wrong.stderr.strip()) == (
        1, "there is no list of 'method'; did you mean 'methods'? Allowed: "
        "datasets, models, methods, metrics, experiments.",
    )  # fmt: skip


def test_a_dry_sweep_runs_nothing(tmp_path: Path) -> None:
    """It prints tasks, methods and the most time: six runs of at most 2 x 7 + 120 seconds."""
    sweep = ("-m", "dataset=pima", "model=lr,rf", "method=nearest,ce_ocl,md_pso", "n_factuals=2", "time_limit=7")
    done = run(tmp_path, *sweep, "dry=true")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[:3] == ["6 runs: 2 tasks x 3 methods", "  pima / lr", "  pima / rf"]
    assert lines[3].split()[:3] == ["nearest", "Nearest", "unlike"]
    assert "at most 13.4 min" in lines[-1]
    assert list(tmp_path.iterdir()) == []
    assert "x seed=0,1" in run(tmp_path, *sweep, "seed=0,1", "dry=true").stdout.splitlines()[0]
