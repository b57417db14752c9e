"""``python -m harness environments``: those of methods with packages of their own: list, make or remove them."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import yaml  # type: ignore[import-untyped]

from harness.core.errors import HarnessError, choices

MODULE = "methods.foreign.environment"
COMMANDS = ("list", "make", "remove")


def run(arguments: Sequence[str], folders: Sequence[Path]) -> None:
    """Carry out ``list``, ``make NAME ...`` or ``remove NAME ...``; the first where nothing is asked.

    Raises
    ------
    HarnessError
        For another command or name, and where an environment cannot be made.
    """
    command, *names = arguments or ["list"]
    if command not in COMMANDS:
        raise HarnessError(f"'environments {command}' is no command; {choices(command, COMMANDS)}.")
    known = dict(_environments(folders))
    for name in names:
        if name not in known:
            raise HarnessError(f"no method has an environment {name!r}; {choices(name, known)}.")
    if command != "list" and not names:
        raise HarnessError(f"say which to {command}: {', '.join(known)}.")
    for name in names or known:
        if command == "make":
            known[name].make()
        elif command == "remove":
            known[name].remove()
        for line in _lines(name, known[name]):
            print(line, flush=True)


def _lines(name: str, environment: Any) -> list[str]:
    earlier = [f"{name}  of an earlier lock or Python  {_size(folder)}" for folder in environment.earlier]
    python = f"Python {environment.python}" if environment.python else "the harness's Python"
    if environment.lacking is not None:
        return [f"{name}  {python}  not made", *earlier]
    return [f"{name}  {python}  {_size(environment.folder)}", *earlier]


def mebibytes(folder: Path) -> float:
    """What the files below a folder take."""
    return sum(path.lstat().st_size for path in folder.rglob("*")) / 2**20


def _size(folder: Path) -> str:
    return f"{mebibytes(folder):.0f} MiB in {folder} ({shutil.disk_usage(folder).free / 2**30:.0f} GiB free)"


def _environments(folders: Sequence[Path]) -> Iterator[tuple[str, Any]]:
    """The environment of each choice of method that has one, by the name in its YAML."""
    kind = import_module(MODULE).Environment
    for path in [path for folder in folders for path in sorted((folder / "method").glob("*.yaml"))]:
        text = path.read_text(encoding="utf-8")
        settings = yaml.safe_load(text) if "\nenvironment:" in text else None
        if isinstance(settings, dict) and (found := settings.get("environment")):
            name = str(settings.get("name", path.stem))
            yield name, kind.of(name, found)
