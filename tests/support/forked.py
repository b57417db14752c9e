"""Commands in processes forked from one that has imported everything: a fraction of a second each."""

from __future__ import annotations

import multiprocessing
import os
import runpy
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

_context = multiprocessing.get_context("forkserver")
_context.set_forkserver_preload(["support.preloaded"])


@dataclass(frozen=True)
class Done:
    """What a command came to: its exit code, and all that it printed."""

    exit: int
    text: str


def forked(module: str, arguments: Sequence[str], folder: Path, variables: Mapping[str, str], seconds: float) -> Done:
    """``python -m MODULE ARGUMENTS`` in a folder, with these environment variables, for at most so many seconds."""
    output = folder / f"output-{time.monotonic_ns()}.txt"
    process = _context.Process(target=_run, args=(module, tuple(arguments), folder, dict(variables), output))
    process.start()
    process.join(seconds)
    if process.exitcode is None:
        process.kill()
        process.join()
    text = output.read_text(errors="replace")
    output.unlink()
    return Done(-9 if process.exitcode is None else process.exitcode, text)


def _run(module: str, arguments: Sequence[str], folder: Path, variables: Mapping[str, str], output: Path) -> None:
    target = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(target, 1)
    os.dup2(target, 2)
    os.environ.clear()
    os.environ.update(variables)
    os.chdir(folder)
    sys.argv = [module, *arguments]
    sys.stdout, sys.stderr = (open(number, "w", closefd=False) for number in (1, 2))  # noqa: SIM115
    sys.path[0] = str(folder)
    try:
        runpy.run_module(module, run_name="__main__")
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
