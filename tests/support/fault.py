"""``python -m harness`` with one fault put in: ``python tests/support/fault.py KIND AFTER DELAY ...``.

It comes ``DELAY`` seconds after the ``AFTER``-th time that something is written or renamed in the current folder.
``main`` kills this process, ``worker`` the processes that it started, ``full`` has every write fail from then on.
"""

from __future__ import annotations

import errno
import itertools
import os
import signal
import sys
import threading
from collections.abc import Callable
from typing import Any

import psutil

WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT


def target(event: str, arguments: tuple[Any, ...]) -> str | None:
    """The path that is about to be written."""
    if event == "open" and isinstance(arguments[2], int) and arguments[2] & WRITES:
        path = arguments[0]
    elif event == "os.rename":
        path = arguments[1]
    else:
        return None
    if isinstance(path, int):
        return None
    return os.path.abspath(os.fsdecode(path))


def fault(kind: str, after: int, delay: float) -> Callable[[str, tuple[Any, ...]], None]:
    """The audit hook that brings the fault."""
    here = os.getcwd() + os.sep
    written = itertools.count(1)

    def watch(event: str, arguments: tuple[Any, ...]) -> None:
        path = target(event, arguments)
        if path is None or not path.startswith(here):
            return
        number = next(written)
        if kind == "full" and number >= after:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)
        if number == after:
            threading.Timer(delay, strike, [kind]).start() if delay else strike(kind)

    return watch


def strike(kind: str) -> None:
    if kind == "main":
        os.kill(os.getpid(), signal.SIGKILL)
    for child in psutil.Process().children():
        child.kill()
        print("killed", child.pid, flush=True)


if __name__ == "__main__":
    from harness.cli.main import main

    sys.addaudithook(fault(sys.argv[1], int(sys.argv[2]), float(sys.argv[3])))
    del sys.argv[1:4]
    main()
