"""MLflow's own server on loopback, for tests that ask it."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def served(folder: Path, *arguments: str, module: str = "mlflow") -> Iterator[str]:
    """The address of ``mlflow ARGUMENTS``, or of another module's, started in a folder as the pages say."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", module, *arguments, "--workers", "1", "--port", str(port)]
    environment = {**os.environ, "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false", "MLFLOW_DISABLE_TELEMETRY": "true"}
    with subprocess.Popen(
        command, cwd=folder, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        start_new_session=True,
    ) as process:  # fmt: skip
        address = f"http://127.0.0.1:{port}"
        try:
            for _ in range(120):
                try:
                    urllib.request.urlopen(f"{address}/health", timeout=5).close()
                    break
                except OSError:
                    assert process.poll() is None, "the server ended"
                    time.sleep(1)
            yield address
        finally:
            os.killpg(process.pid, signal.SIGTERM)
