"""What processes that the harness starts have in common."""

from __future__ import annotations

import contextlib
import ctypes
import signal


def die_with_parent() -> None:
    """On Linux, have the kernel end this process when its parent ends, however it does."""
    with contextlib.suppress(OSError, AttributeError):
        set_parent_death_signal = 1
        ctypes.CDLL(None).prctl(set_parent_death_signal, signal.SIGKILL)
