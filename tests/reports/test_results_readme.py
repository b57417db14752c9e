"""results/README.md: it names what is committed there, and every archive is of an experiment that there is."""

from __future__ import annotations

import re
import subprocess
from fnmatch import fnmatch
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HOME = ROOT / "results"


def test_every_file_is_named() -> None:
    listed = subprocess.run(["git", "ls-files", "results"], cwd=ROOT, capture_output=True, text=True)
    if listed.returncode or not listed.stdout:
        pytest.skip("what is committed is known to git alone")
    names = re.findall(r"^\| `([^`]+)`", (HOME / "README.md").read_text(), flags=re.MULTILINE)
    globs = [name.replace("NAME", "*") for name in names if name != "published/*.csv"]
    files = {name.removeprefix("results/") for name in listed.stdout.splitlines()} - {"README.md"}
    assert {file for file in files if not any(fnmatch(file, glob) for glob in globs)} == set()
    assert {name for name in names if name.startswith("published/") and "*" not in name} == {
        file for file in files if file.startswith("published/")
    }


def test_every_archive_is_of_an_experiment() -> None:
    archives = {path.stem for path in HOME.glob("archives/*.ceh")}
    assert archives
    assert archives <= {path.stem for path in (ROOT / "conf" / "experiment").glob("*.yaml")}


def test_every_command_is_there() -> None:
    modules = set(re.findall(r"python -m (harness[.\w]*)", (HOME / "README.md").read_text())) - {"harness"}
    assert modules == {f"harness.{name}" for name in ("archive", "figures", "report", "site", "tables")}
    assert all((ROOT / f"{module.replace('.', '/')}.py").is_file() for module in modules)
