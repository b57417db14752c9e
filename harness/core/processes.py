"""What processes that the harness starts have in common."""

from __future__ import annotations

import contextlib
import ctypes
import signal
import subprocess
import sys
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


def ended_by(code: str, *arguments: str, given: bytes = b"") -> str:
    """The signal by which a fresh process ends that runs some code; empty where it ends by itself, or not in a minute.

    Not a copy of this one: what libraries have threads for would wait for ever in it.

    Parameters
    ----------
    given
        Its standard input.
    """
    command = [sys.executable, "-P", "-c", code, *arguments]
    try:
        ended = subprocess.run(command, input=given, capture_output=True, timeout=60).returncode
    except subprocess.TimeoutExpired:
        return ""
    return signal.Signals(-ended).name if ended < 0 else ""
