"""Where a sweep's time and memory go: ``python tests/overhead.py``, followed by the arguments of ``python -m harness``.

The last line on standard output is JSON: ``cells``; wall-clock ``seconds``; the ``share`` of them spent neither in
methods (asking workers) nor in metrics; and ``mib``, resident in this process after each cell.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import psutil

from harness import pool, run, scoring

inside, mib = [0.0], []


def timed(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, its seconds added to those inside methods and metrics."""

    def call(*arguments: Any, **named: Any) -> Any:
        start = time.perf_counter()
        try:
            return function(*arguments, **named)
        finally:
            inside[0] += time.perf_counter() - start

    return call


def noted(function: Callable[..., None]) -> Callable[..., None]:
    """The function that ends each cell, and a look at the memory."""

    def call(*arguments: Any, **named: Any) -> None:
        function(*arguments, **named)
        mib.append(psutil.Process().memory_info().rss / 2**20)

    return call


if __name__ == "__main__":
    for name in ("load", "ask"):
        setattr(pool.Worker, name, timed(getattr(pool.Worker, name)))
    scoring.score = timed(scoring.score)
    run._note = noted(run._note)
    began = time.perf_counter()
    with suppress(SystemExit):
        run.main()
    seconds = time.perf_counter() - began
    print(json.dumps({"cells": len(mib), "seconds": seconds, "share": 1 - inside[0] / seconds, "mib": mib}))
