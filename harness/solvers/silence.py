"""Silence of compiled code, which prints past Python's own streams."""

from __future__ import annotations

import contextlib
import ctypes
import os
import threading
from collections.abc import Iterator

STANDARD_OUTPUT = 1

_lock = threading.Lock()
_open: list[int] = []  # blocks that are open: the process's own standard output, once, as a copy


@contextlib.contextmanager
def silent() -> Iterator[None]:
    """Throw away what is written to the process's standard output meanwhile, by whichever thread.

    What C's own buffer holds is written out before and after, each to where it belongs. Blocks may overlap.
    """
    with _lock:
        _open.append(_turned_off() if not _open else _open[0])
    try:
        yield
    finally:
        with _lock:
            kept = _open.pop()
            if not _open and kept >= 0:
                _flush()
                os.dup2(kept, STANDARD_OUTPUT)
                os.close(kept)


def _turned_off() -> int:
    """A copy of standard output, which goes nowhere from now on; -1 where the process has none."""
    _flush()
    try:
        kept = os.dup(STANDARD_OUTPUT)
    except OSError:
        return -1
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, STANDARD_OUTPUT)
    os.close(nowhere)
    return kept


def _flush() -> None:
    with contextlib.suppress(OSError, AttributeError, TypeError):
        ctypes.CDLL(None).fflush(None)
