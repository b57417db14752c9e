"""The command lines that make tables and figures of stored answers again."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from harness.core.errors import HarnessError
from harness.reports.stored import latest


def asked(program: str, description: str) -> list[Path]:
    """Result folders that a command line names: ``study=NAME``, ``experiment=NAME`` after ``output_dir=``; or paths."""
    parser = argparse.ArgumentParser(prog=f"python -m harness.{program}", description=description)
    parser.add_argument("folder", nargs="+", help="experiment=NAME or study=NAME, or the folder results/NAME")
    home, folders = Path("results"), []
    for argument in parser.parse_args().folder:
        key, _, value = argument.rpartition("=")
        if key == "output_dir":
            home = Path(value)
        else:
            folders += (
                [home / name for name in value.split(",")] if key in {"experiment", "study"} else [Path(argument)]
            )
    return folders


def rebuild(kind: str, write: Callable[[Path, Any], str]) -> None:
    """The command line that makes every ``kind`` (table, figure) of result folders again from their stored runs.

    Exit code 1 where one cannot be made.
    """
    wrong = False
    for folder in asked(f"{kind}s", f"Make {kind}s of stored answers."):
        try:
            name = next((run.meta["config"].get(kind) for run in latest(folder)), None)
            print(write(folder, name))
        except HarnessError as fault:
            print(fault, file=sys.stderr)
            wrong = True
    sys.exit(1 if wrong else 0)
