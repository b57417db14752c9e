"""The Dockerfile: its lines, followed in a clean folder without an engine, run the README's first command."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support.pages import ROOT

LINES = [re.split(r"\s+", line, maxsplit=1) for line in (ROOT / "Dockerfile").read_text().splitlines() if line]
CACHES = ("__pycache__", "*.nbi", "*.nbc")
NARROW = ("model=lr", "method=nearest", "n_factuals=2")


def copied(line: str, work: Path) -> None:
    """What COPY does: files into a folder, or a folder under a new name."""
    *sources, target = line.split()
    for source in (ROOT / name for name in sources):
        if source.is_dir():
            shutil.copytree(source, work / target, ignore=shutil.ignore_patterns(*CACHES))
        else:
            shutil.copy(source, work / target)


def test_each_instruction_is_known() -> None:
    """By ``follow``; the Python is that of the lock file's first choice."""
    assert {name for name, _ in LINES} - {"#"} == {"FROM", "RUN", "WORKDIR", "COPY", "ENTRYPOINT", "CMD"}
    assert dict(LINES)["FROM"] == f"python:{(ROOT / '.python-version').read_text().strip()}-slim"
    sources = [word for name, line in LINES if name == "COPY" for word in line.split()[:-1]]
    assert [source for source in sources if not (ROOT / source).exists()] == []


@pytest.mark.slow
def test_the_lines_lead_to_the_first_command(tmp_path: Path) -> None:
    """In an environment of its own; packages of the system are left to the image."""
    work, home = tmp_path / "work", tmp_path / "home"
    work.mkdir()
    home.mkdir()
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "python"], check=True)
    known = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "UV_", "VIRTUAL_ENV"))}
    kept = {"UV_CACHE_DIR": os.environ.get("UV_CACHE_DIR", str(Path.home() / ".cache" / "uv")), "HOME": str(home)}
    environment = known | kept | {"PATH": f"{tmp_path / 'python' / 'bin'}{os.pathsep}{os.environ['PATH']}"}
    command: list[str] = []
    for name, line in LINES:
        if name == "COPY":
            copied(line, work)
        elif name == "RUN" and not line.startswith("apt-get"):
            subprocess.run(["sh", "-c", line], cwd=work, env=environment, check=True)
        elif name in {"ENTRYPOINT", "CMD"}:
            command += json.loads(line)
    assert command[-1] == "+experiment=compas"
    done = subprocess.run([*command, *NARROW], cwd=work, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert (work / "results" / "compas" / "summary.csv").exists()
