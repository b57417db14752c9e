"""What a sweep ends with: its summary, the paper's table and figure, and the address of its runs in MLflow."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path

from omegaconf import DictConfig

from harness.cli.mlflow_run import log_study
from harness.cli.process import SWEEP, UNNAMED, log, results
from harness.core.errors import HarnessError
from harness.evaluation.numbers import Numbers
from harness.evaluation.study import Study
from harness.reports import figures, summary, tables
from harness.reports.kept import keep
from harness.reports.page import page
from harness.store import mlflow as tracking
from harness.store.run import StoredRun


def _show(config: DictConfig, folder: Path, finished: list[StoredRun]) -> int:
    """Print and write the study's numbers, tables and figure, and show them in MLflow; returns how much is wrong.

    A comparison that has a name gets its report at once: some seconds.
    """
    numbers = Numbers(Study.of(folder))
    troubled = summary.write(folder, finished, numbers)
    writers: dict[str, Callable[..., str]] = {"table": partial(tables.write, numbers=numbers), "figure": figures.write}
    for name in [name for name in writers if name == "table" or config.get(name)]:
        try:
            results.info("%s", writers[name](folder, config.get(name)))
        except HarnessError as fault:
            log.error("%s", fault)
            troubled += 1
    log_study(numbers, folder)
    if numbers.study.name != UNNAMED and len(numbers.study.methods) > 1:
        results.info("%s", page.write(folder, numbers))
    keep(numbers.study, folder)
    return troubled


def sum_up(config: DictConfig, study: str) -> int:
    """Write and print what the jobs of the sweep came to; returns how much is wrong."""
    folder = Path(config.output_dir) / study
    record = folder / "sweeps" / f"{os.environ[SWEEP]}.jsonl"
    if not record.is_file():
        log.error("nothing was run: the sweep names no run; give each of its settings a value.")
        return 1
    lines = [json.loads(line) for line in record.read_text().splitlines()]
    failed = [line for line in lines if line["state"] == "failed"]
    finished = [StoredRun(Path(line["cell"])) for line in lines if line["state"] != "failed"]
    troubled = _show(config, folder, finished) if finished else 0
    if finished:
        results.info("%s", tracking.page(study))
    tracking.close()
    faulty = [line for line in lines if line.get("fault")]
    if len(lines) > 1:
        for line in failed:
            log.error("%s failed: %s", line["label"], line["message"])
        for line in faulty:
            log.error("%s: %s", line["label"], line["fault"])
    return len(failed) + len(faulty) + troubled
