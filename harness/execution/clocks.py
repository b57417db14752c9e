"""Clocks of a process: processor seconds, those that numba spends on compiling, and its greatest memory; who waits."""

from __future__ import annotations

import importlib.util
import resource
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

EVENTS = "numba.core.event"  # the module in which numba says when it compiles
OURS = "harness.core.compiling"  # the module of the class of our kernels
SILENT = 5.0  # seconds after which whoever waits is told that there is something to wait for
ABOUT = 30  # seconds that a method's kernels take at their first use on a machine

_said: list[str] = []


def processor_seconds() -> float:
    """User and system seconds of this process so far, and of its children that have ended and been waited for."""
    spent = [resource.getrusage(whose) for whose in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in spent)


def forget_peak() -> None:
    """Begin anew to note this process's greatest memory, where the system can."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def peak_mib() -> float:
    """The most resident memory of this process, in MiB: since ``forget_peak`` on Linux, elsewhere since its start."""
    with suppress(OSError, StopIteration):
        lines = Path("/proc/self/status").read_text().splitlines()
        return float(next(line.split()[1] for line in lines if line.startswith("VmHWM"))) / 1024
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most / (1024**2 if sys.platform == "darwin" else 1024)


def say_compiling(ours: bool) -> None:
    """Say once, on the terminal, that what goes on is no search; of kernels that are ours."""
    if ours and not _said:
        _said.append(f"compiling the exact search once (about {ABOUT} s)")
        print(_said[0], file=sys.stderr, flush=True)


@contextmanager
def told(what: str) -> Iterator[None]:
    """Say on the terminal, after some seconds and then ever more seldom, what goes on within and for how long."""
    done = threading.Event()

    def say() -> None:
        spent, wait = 0.0, SILENT
        while not done.wait(wait):
            spent += wait
            print(f"{what}: {spent:g} s so far", file=sys.stderr, flush=True)
            wait = spent

    thread = threading.Thread(target=say, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


class CompileClock(MetaPathFinder):
    """Seconds that numba has compiled for in this process; reading a kernel from a cache is none of it.

    Methods import numba where they need it, often inside ``fit``, and it is slow: so it is not imported here. As a
    finder of modules, the clock notices when somebody else imports it, and listens from then on.

    Parameters
    ----------
    told
        Called when a kernel that no other one is compiled for begins to be compiled, with whether it is one of ours and
        None, and when it has been, with the seconds that took.
    """

    def __init__(self, told: Callable[[bool, float | None], object] = lambda ours, seconds: None) -> None:
        self._listener: Any = None
        self._told = told
        if EVENTS in sys.modules:
            self._listen(sys.modules[EVENTS])
        else:
            sys.meta_path.insert(0, self)

    @property
    def seconds(self) -> float:
        """All of them so far."""
        return self._listener.duration if self._listener is not None and self._listener.done else 0.0

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        """The module of numba's events as the other finders have it, but to be listened to; None for any other."""
        if name != EVENTS:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def execute_and_listen(module: ModuleType) -> None:
                execute(module)
                self._listen(module)

            spec.loader.exec_module = execute_and_listen  # type: ignore[method-assign]
        return spec

    def _listen(self, events: Any) -> None:
        told, depth, before = self._told, 0, 0.0

        class Listener(events.TimingListener):
            def on_start(self, event: Any) -> None:
                nonlocal depth
                if not depth:
                    told(_is_ours(event), None)
                depth += 1
                super().on_start(event)

            def on_end(self, event: Any) -> None:
                nonlocal depth, before
                super().on_end(event)
                depth -= 1
                if not depth:
                    told(_is_ours(event), self.duration - before)
                    before = self.duration

        self._listener = Listener()
        events.register("numba:compile", self._listener)


def _is_ours(event: Any) -> bool:
    return type(event.data["dispatcher"]).__module__ == OURS
