"""Commands in processes forked from one that has imported everything: a fraction of a second each."""

from __future__ import annotations

import atexit
import gc
import json
import os
import runpy
import signal
import subprocess
import sys
import traceback
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any

from harness.execution import start, worker

ROOT = Path(__file__).parents[2]
PRINTED = ("output", "errors")
MODULES = (
    "hydra._internal.core_plugins.basic_launcher",
    "mlflow.store.tracking.sqlalchemy_store",
    "harness.check", "harness.figures", "harness.report", "harness.tables",
    "harness.cli.ending", "harness.cli.explained", "harness.cli.job",
    "methods.ce_ocl", "methods.robust", "methods.md_pso", "methods.dice", "methods.nearest", "methods.scorecard",
    "methods.column_generation", "methods.group_greedy", "methods.peers.nice", "methods.peers.cfnow",
    "methods.carla.face", "methods.carla.growing_spheres", "methods.carla.focus", "methods.carla.feature_tweak",
)  # fmt: skip
LONGEST = 600.0  # seconds of a command


@cache
def forker() -> subprocess.Popen[str]:
    """A process that imports once and forks for each command; it ends with this one."""
    variables = {**os.environ, "OMP_NUM_THREADS": "1"}
    pipe = subprocess.PIPE
    process = subprocess.Popen([sys.executable, __file__], cwd=ROOT, env=variables, stdin=pipe, stdout=pipe, text=True)
    atexit.register(process.communicate)
    return process


def run(
    module: str, arguments: Sequence[str], folder: Path, variables: Mapping[str, str]
) -> subprocess.CompletedProcess[str]:
    """``python -m MODULE ARGUMENTS`` in a folder, with these environment variables and no others."""
    process = forker()
    assert process.stdin is not None
    assert process.stdout is not None
    with TemporaryDirectory() as printed:
        process.stdin.write(json.dumps([module, [*arguments], str(folder), {**variables}, printed]) + "\n")
        process.stdin.flush()
        code = int(process.stdout.readline())
        texts = [(Path(printed) / name).read_text(errors="replace") for name in PRINTED]
    return subprocess.CompletedProcess([module, *arguments], code, *texts)


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


class Fork(subprocess.Popen[bytes]):
    """A worker's process, forked from this one, which has imported what the worker would import for seconds."""

    def _execute_child(
        self, args: Sequence[str], executable: Any, first: Any, closing: bool, kept: Sequence[int], folder: Any,
        env: Mapping[str, str], *_: Any,
    ) -> None:  # fmt: skip
        self.pid = os.fork()
        self._child_created = True
        if not self.pid:
            code = 1
            try:
                os.setsid()
                os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
                ends = sorted({2, *kept, os.sysconf("SC_OPEN_MAX")})
                for low, high in pairwise(ends):
                    os.closerange(low + 1, high)
                os.environ.clear()
                os.environ.update(env)
                worker.main([*args[3:]])
                code = 0
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(code)


def become(module: str, arguments: Sequence[str], folder: str, variables: Mapping[str, str], printed: str) -> None:
    """Be the command from here on."""
    signal.setitimer(signal.ITIMER_REAL, LONGEST)  # its signal ends the process
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    for number, name in enumerate(PRINTED, start=1):
        os.dup2(os.open(Path(printed) / name, os.O_WRONLY | os.O_CREAT | os.O_APPEND), number)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(variables)
    sys.argv = [module, *arguments]
    sys.path[0] = os.getcwd()
    sys.path[1:1] = variables.get("PYTHONPATH", "").split(os.pathsep)
    sys.modules.pop(module, None)  # it is run, not imported
    start.subprocess = SimpleNamespace(Popen=Fork, DEVNULL=subprocess.DEVNULL)  # type: ignore[attr-defined]
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
