"""What processes that the harness starts have in common."""

from __future__ import annotations

import contextlib
import ctypes
import signal
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
