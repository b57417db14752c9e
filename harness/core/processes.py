"""What processes that the harness starts have in common."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
import time
import warnings
from collections.abc import Callable


def die_with_parent() -> None:
    """On Linux, have the kernel end this process when its parent ends, however it does."""
    with contextlib.suppress(OSError, AttributeError):
        set_parent_death_signal = 1
        ctypes.CDLL(None).prctl(set_parent_death_signal, signal.SIGKILL)


def be_command(main: Callable[[], int | None]) -> None:
    """Be a command and end: with the code that ``main`` gives, and with 130 and a word after Ctrl-C.

    What ends it by SIGTERM leaves no temporary folder behind, either.
    """
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        sys.exit(128 + signal.SIGINT)


def killed_by(act: Callable[[], object], seconds: float = 30.0) -> str | None:
    """By which signal a copy of this process ends that does something; None where it ends by itself, or takes longer.

    Always None on other systems than Linux, where a copy may not do what this process could.
    """
    if sys.platform != "linux":
        return None
    with warnings.catch_warnings(action="ignore"):  # of threads, which the copy has not
        child = os.fork()
    if not child:
        with contextlib.suppress(BaseException):
            quiet = os.open(os.devnull, os.O_WRONLY)
            os.dup2(quiet, 1)
            os.dup2(quiet, 2)
            act()
        os._exit(0)
    end, pause = time.monotonic() + seconds, 0.0005
    while not (ended := os.waitpid(child, os.WNOHANG))[0]:
        if time.monotonic() > end:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return None
        time.sleep(pause)
        pause = min(2 * pause, 0.05)
    code = os.waitstatus_to_exitcode(ended[1])
    return signal.Signals(-code).name if code < 0 else None
