"""Commands in processes forked from one that has imported everything: a fraction of a second each."""

from __future__ import annotations

import gc
import json
import os
import runpy
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

MODULES = (
    "hydra._internal.core_plugins.basic_launcher",
    "mlflow.store.tracking.sqlalchemy_store",
    "harness.check", "harness.figures", "harness.report", "harness.tables",
    "harness.cli.ending", "harness.cli.explained", "harness.cli.job",
    "methods.ce_ocl", "methods.robust", "methods.md_pso", "methods.dice", "methods.nearest", "methods.scorecard",
    "methods.column_generation", "methods.group_greedy", "methods.peers.nice", "methods.peers.cfnow",
    "methods.carla.face", "methods.carla.growing_spheres", "methods.carla.focus", "methods.carla.feature_tweak",
)  # fmt: skip
LONGEST = 120.0  # seconds of a command


@dataclass(frozen=True)
class Done:
    """What a command came to: its exit code (negative: the signal that ended it), and all that it printed."""

    exit: int
    text: str


class Forker:
    """A process that imports once and forks for each command; ``with`` ends it."""

    def __init__(self, folder: Path, variables: Mapping[str, str]) -> None:
        self.folder = folder
        command = [sys.executable, __file__]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, cwd=folder, env=variables, stdin=pipe, stdout=pipe, text=True)

    def __enter__(self) -> Forker:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.communicate()

    def run(self, module: str, arguments: Sequence[str], variables: Mapping[str, str]) -> Done:
        """``python -m MODULE ARGUMENTS`` in the folder, with further environment variables."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        output = self.folder / f"output-{time.monotonic_ns()}.txt"
        self.process.stdin.write(json.dumps([module, list(arguments), dict(variables), str(output)]) + "\n")
        self.process.stdin.flush()
        code = int(self.process.stdout.readline())
        text = output.read_text(errors="replace")
        output.unlink()
        return Done(code, text)


def serve() -> None:
    """Read commands from standard input, one JSON line each, and answer each with an exit code."""
    for module in MODULES:
        import_module(module)
    import_module("sqlalchemy.orm").configure_mappers()
    gc.freeze()  # or each child would look through all of it, and copy it
    for line in sys.stdin:
        if child := os.fork():
            status = os.waitpid(child, 0)[1]
            print(os.waitstatus_to_exitcode(status), flush=True)
        else:
            become(*json.loads(line))


def become(module: str, arguments: Sequence[str], variables: Mapping[str, str], output: str) -> None:
    """Be the command from here on."""
    signal.setitimer(signal.ITIMER_REAL, LONGEST)  # its signal ends the process
    file = os.open(output, os.O_WRONLY | os.O_CREAT)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for old, new in ((nothing, 0), (file, 1), (file, 2)):
        os.dup2(old, new)
    os.environ.update(variables)
    sys.argv = [module, *arguments]
    sys.path[0] = os.getcwd()
    code: object = None
    try:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    except SystemExit as end:
        code = end.code
        if isinstance(code, str):
            print(code, file=sys.stderr)
    except BaseException:
        code = 1
        traceback.print_exc()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code if isinstance(code, int) else int(code is not None))  # tearing down what was imported takes seconds


if __name__ == "__main__":
    serve()
