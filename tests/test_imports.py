"""Who may know whom: ``methods -> harness <- metrics``, and one file for each large library."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FILES = sorted(path for folder in ("harness", "methods", "metrics") for path in (ROOT / folder).rglob("*.py"))


def imported(path: Path) -> Iterator[str]:
    """Every module that a file imports, at whatever depth of the code."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute"
            yield node.module or ""


def users(library: str, among: list[Path] = FILES) -> set[str]:
    """The files that import a library or a part of it."""
    return {
        path.relative_to(ROOT).as_posix()
        for path in among
        if any(name == library or name.startswith(f"{library}.") for name in imported(path))
    }


def inside(folder: str) -> list[Path]:
    return [path for path in FILES if path.relative_to(ROOT).parts[0] == folder]


@pytest.mark.parametrize(
    ("folder", "stranger"),
    [("harness", "methods"), ("harness", "metrics"), ("methods", "metrics"), ("metrics", "methods")],
)
def test_arrows(folder: str, stranger: str) -> None:
    """The harness builds methods and metrics by name, and those two do not know each other."""
    assert inside(folder)
    assert users(stranger, inside(folder)) == set()


@pytest.mark.parametrize("folder", ["methods", "metrics"])
def test_nobody_below_sees_a_configuration(folder: str) -> None:
    """Methods and metrics take plain arguments: neither the command line nor the tracking is theirs."""
    for stranger in (
        "harness.cli.job",
        "harness.store.mlflow",
        "harness.execution.pool",
        "harness.execution.experiment",
    ):
        assert users(stranger, inside(folder)) == set()


@pytest.mark.parametrize(
    ("library", "only"),
    [
        ("hydra", {"harness/run.py", "harness/arguments.py", "harness/composition.py"}),
        ("omegaconf", {"harness/run.py", "harness/arguments.py", "harness/composition.py"}),
        ("mlflow", {"harness/tracking.py"}),
        ("highspy", {"harness/program.py"}),
        ("dice_ml", {"methods/dice.py"}),
        ("nice", {"methods/peers/nice.py"}),
        ("cfnow", {"methods/peers/cfnow.py"}),
        ("treecf", {"methods/peers/treecf.py"}),
    ],
)
def test_one_file_knows_each_library(library: str, only: set[str]) -> None:
    assert users(library) == only


@pytest.mark.parametrize("arguments", [(), ("--help",), ("--cfg", "job"), ("model=lrr",)], ids=" ".join)
def test_the_command_line_starts_light(arguments: tuple[str, ...]) -> None:
    """Help and wrong input need none of the large libraries, so none is loaded."""
    heavy = (
        "pandas", "sklearn", "mlflow", "torch", "pyomo", "matplotlib", "numpy", "dice_ml", "highspy", "scipy", "numba",
    )  # fmt: skip
    start = "try: main()\nexcept SystemExit: pass" if arguments else "pass"
    loaded = f"print('loaded', *(name for name in {heavy} if name in sys.modules))"
    code = f"import sys\nfrom harness.__main__ import main\n{start}\n{loaded}"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", code, *arguments]
    told = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=120)
    assert told.stdout.splitlines()[-1] == "loaded"
