"""Where a sweep's time and memory go: ``python tests/support/overhead.py``, then arguments of ``python -m harness``.

The last line on standard output is JSON: ``cells``; wall-clock ``seconds``; the ``share`` of them spent neither in
methods (asking workers) nor in metrics (the checker's verdicts are one); ``cpu_share``, the same of the processor's
time, which a busy machine changes less; ``outside``, such seconds of the processor a cell; and ``mib``, resident in
this process after each cell. What is spent until the first cell has ended is left out.
"""

from __future__ import annotations

import json
import resource
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import psutil

from harness.cli import job, main, sweep
from harness.evaluation import checker, scoring
from harness.execution import pool

inside, scored, mib, marks = [0.0], [0.0], [], []


def timed(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, its seconds added to those inside methods and metrics; ``scored`` are those of this process."""

    def call(*arguments: Any, **named: Any) -> Any:
        start, began = time.perf_counter(), time.process_time()
        try:
            return function(*arguments, **named)
        finally:
            inside[0] += time.perf_counter() - start
            scored[0] += time.process_time() - began

    return call


def mark() -> tuple[float, ...]:
    """Wall clock; processor's time here, and in workers; how much of the first two was inside methods and metrics."""
    workers = resource.getrusage(resource.RUSAGE_CHILDREN)  # that have ended, as those of a cell have with it
    spent = workers.ru_utime + workers.ru_stime
    return time.perf_counter(), time.process_time(), spent, inside[0], scored[0]


def noted(function: Callable[..., None]) -> Callable[..., None]:
    """The function that ends each cell, and a look at the memory."""

    def call(*arguments: Any, **named: Any) -> None:
        function(*arguments, **named)
        mib.append(psutil.Process().memory_info().rss / 2**20)
        if len(mib) == 1:
            marks.append(mark())

    return call


def ended(function: Callable[..., None]) -> Callable[..., None]:
    """The function that sums up the sweep, and a look at the clocks."""

    def call(*arguments: Any, **named: Any) -> None:
        function(*arguments, **named)
        marks.append(mark())

    return call


if __name__ == "__main__":
    for name in ("load", "ask"):
        setattr(pool.Worker, name, timed(getattr(pool.Worker, name)))
    scoring.score, checker.judge = timed(scoring.score), timed(checker.judge)
    job._note = noted(job._note)
    sweep.Sweep._end = ended(sweep.Sweep._end)  # type: ignore[method-assign]
    with suppress(SystemExit):
        main.main()
    wall, here, workers, within, scoring_here = (after - before for before, after in zip(*marks, strict=True))
    outside = here - scoring_here
    found = {"seconds": wall, "share": 1 - within / wall, "cpu_share": outside / (here + workers)}
    print(json.dumps({"cells": len(mib), **found, "outside": outside / (len(mib) - 1), "mib": mib}))
