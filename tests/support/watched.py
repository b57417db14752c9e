"""Tests run by mutation testing: in a process forked from one that has imported what others wrote, and watched."""

from __future__ import annotations

import contextlib
import json
import os
import resource
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

IMPORTED = [  # before forking: what takes seconds to import, and is nobody's to change
    "dice_ml", "highspy", "hydra.main", "joblib", "matplotlib.pyplot", "mlflow.store.tracking.sqlalchemy_store",
    "numba", "optbinning", "pandas", "psutil", "pyomo.environ", "scikit_posthocs", "scipy.stats", "skops.io",
    "sklearn.ensemble", "sklearn.linear_model", "sklearn.neural_network", "sklearn.pipeline", "sklearn.tree",
]  # fmt: skip
OURS = ("harness", "methods", "metrics", "support")
MEMORY = 8 * 2**30  # bytes that the tests of one fault may take
# A test hangs that takes so many times as long as without a fault, and so many seconds more.
TIMES, PROCESSOR, CLOCK = 20, 60, 300
HANGING = (-signal.SIGPROF, -signal.SIGALRM)  # exit codes of a process with such a test: processor's time, and clock
INFINITE = "ignore:overflow encountered:RuntimeWarning"  # numpy warns where compiled code goes on
NOTES = ".watched.json"

Seconds = dict[str, tuple[float, float]]  # of the processor and the clock, by test


class Watch:
    """A plugin of pytest: the quickest tests first, file by file, and limits; notes seconds and failures.

    Parameters
    ----------
    known
        What tests took without a fault; others have no limit.
    own
        Files whose tests come before all others, in this order.
    """

    def __init__(self, known: Seconds, own: Sequence[str]) -> None:
        self.known, self.own = known, own
        self.seconds: Seconds = {}
        self.failed: list[str] = []

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        whole: Counter[Path] = Counter()
        for item in items:
            whole[item.path] += self._known(item)[1]
        places = {Path.cwd() / file: place for place, file in enumerate(self.own)}
        last = len(places)
        items.sort(key=lambda i: (places.get(i.path, last), whole[i.path], str(i.path), self._known(i)[1]))

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        processor, clock = self._known(item)
        measured = item.nodeid in self.known
        signal.setitimer(signal.ITIMER_PROF, TIMES * processor + PROCESSOR if measured else 0.0)  # 0: never
        signal.setitimer(signal.ITIMER_REAL, TIMES * clock + CLOCK if measured else 0.0)
        before = time.process_time(), time.monotonic()
        result = yield
        self.seconds[item.nodeid] = time.process_time() - before[0], time.monotonic() - before[1]
        return result

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.failed.append(report.nodeid)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.failed.append(report.nodeid)

    def pytest_sessionfinish(self) -> None:
        Path(NOTES).write_text(json.dumps({"seconds": self.seconds, "failed": self.failed}))

    def _known(self, item: pytest.Item) -> tuple[float, float]:
        return self.known.get(item.nodeid, (0.0, 0.0))


def become(folder: str, tests: Sequence[str], own: Sequence[str], known: Seconds, more: Mapping[str, str]) -> None:
    """Become a process that tests a copy of the sources until a test fails, with further environment variables.

    It ends with pytest's exit code, and leaves its notes in the folder.
    """
    os.setsid()
    os.chdir(folder)
    nothing = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nothing, descriptor)
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, resource.getrlimit(resource.RLIMIT_DATA)[1]))
    os.environ.update(more)
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # each of a thousand processes would compile what it imports
    sys.dont_write_bytecode = False
    for name in [name for name in sys.modules if name.partition(".")[0] in OURS]:
        del sys.modules[name]
    root = Path(__file__).parents[2]
    sys.path[:] = [folder, *(path for path in sys.path if path and Path(path) not in (root, root / "tests"))]
    options = ["-x", "-q", "--tb=no", "-p", "no:cacheprovider", "-W", INFINITE, f"--basetemp={folder}/.tmp"]
    code: Any = pytest.main([*options, *tests], plugins=[Watch(known, own)])
    os._exit(int(code))  # tearing down takes seconds
