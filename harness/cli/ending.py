"""What a sweep ends with: its summary, the paper's table and figure, and the address of its runs in MLflow."""

from __future__ import annotations

import json
import os
from pathlib import Path

from omegaconf import DictConfig

from harness.cli.mlflow_run import log_study
from harness.cli.process import SWEEP, log
from harness.core.errors import HarnessError
from harness.evaluation.numbers import Numbers
from harness.evaluation.study import Study
from harness.reports import figures, summary, tables
from harness.store import mlflow as tracking
from harness.store.run import StoredRun


def _summarise(folder: Path, finished: list[StoredRun]) -> int:
    """Print and write the study's numbers, and show them in MLflow."""
    numbers = Numbers(Study.of(folder))
    troubled = summary.write(folder, finished, numbers)
    log_study(numbers)
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
    troubled = _summarise(folder, finished) if finished else 0
    for name, write in (("table", tables.write), ("figure", figures.write)):
        if finished and config.get(name):
            try:
                log.info("%s", write(folder, config[name]))
            except HarnessError as fault:
                log.error("%s", fault)
                troubled += 1
    if finished:
        log.info("%s", tracking.page(study))
    tracking.close()
    if len(lines) > 1:
        for line in failed:
            log.error("%s failed: %s", line["label"], line["message"])
    return len(failed) + troubled
