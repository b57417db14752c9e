"""MLflow's own page of what was run here: ``python -m harness ui``."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path

from harness.core.errors import HarnessError

# Without MLflow's own jobs a server takes a third of the time and a quarter of the memory.
QUIET = {"MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false", "MLFLOW_DISABLE_TELEMETRY": "true", "PYTHONWARNINGS": "ignore"}


def serve(arguments: Sequence[str]) -> None:
    """Become the server of the store that the environment names, or of ``mlflow.db`` in the working directory.

    Parameters
    ----------
    arguments
        Further ones of ``mlflow ui``, such as ``--port 5001``.

    Raises
    ------
    HarnessError
        Where there is no such store, and where a server has it already.
    """
    store = os.environ.get("MLFLOW_TRACKING_URI") or f"sqlite:///{Path('mlflow.db').resolve()}"
    quiet = ["--workers", "1", "--uvicorn-opts", "--log-level warning --lifespan off"]
    if not {"--help", "--backend-store-uri"} & {argument.partition("=")[0] for argument in arguments}:
        if store.startswith(("http://", "https://")):
            raise HarnessError(f"MLFLOW_TRACKING_URI={store} is a server; open that address.")
        file = store.removeprefix("sqlite:///").partition("?")[0]
        if store.startswith("sqlite:///") and not Path(file).is_file():
            raise HarnessError(f"there is no {file}; run something first, or go where it ran.")
        quiet += ["--backend-store-uri", store, "--registry-store-uri", store]
        print(f"MLflow's page: http://127.0.0.1:{_port(arguments)} in some seconds; Ctrl-C ends it", flush=True)
    command = [sys.executable, "-m", "mlflow", "ui", *quiet, *arguments]
    os.execve(sys.executable, command, {**QUIET, **os.environ})


def _port(arguments: Sequence[str]) -> str:
    """Where MLflow will listen, by its own default or as it is told."""
    joined = " ".join(arguments)
    found = re.search(r"(?:--port|-p)[ =](\d+)", joined)
    return found[1] if found else "5000"
