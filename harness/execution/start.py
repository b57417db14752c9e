"""Starts a worker's process. Little is imported here, so that it may begin before all that takes long to import."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import NamedTuple

THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


class Started(NamedTuple):
    """A worker's process, this end of the connection to it, and when it was started, by ``time.perf_counter``."""

    process: subprocess.Popen[bytes]
    connection: Connection
    at: float


def start(threads: int, kernels: str | None = None, modules: Sequence[str] = ()) -> Started:
    """Start a worker; it ends with this process, or with this end of the connection.

    Parameters
    ----------
    threads
        Of BLAS and its like.
    kernels
        The folder of numba's compiled kernels; where numba keeps them unless given.
    modules
        What it imports before anything is asked.
    """
    at = time.perf_counter()
    ours, theirs = Pipe()
    environment = {**os.environ, **dict.fromkeys(THREAD_VARIABLES, str(threads)), "PYTHONHASHSEED": "0"}
    environment |= {} if kernels is None else {"NUMBA_CACHE_DIR": kernels}
    environment["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
    process = subprocess.Popen(
        [sys.executable, "-m", "harness.execution.worker", str(theirs.fileno()), *modules],
        pass_fds=[theirs.fileno()],
        env=environment,
        stdin=subprocess.DEVNULL,
        start_new_session=True,
    )
    theirs.close()
    return Started(process, ours, at)
