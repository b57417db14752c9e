"""What a sweep ends with: its summary, the paper's table and figure, and the address of its runs in MLflow."""

from __future__ import annotations

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
from harness.store.rows import read_lines
from harness.store.run import StoredRun


def _show(config: DictConfig, folder: Path, finished: list[StoredRun]) -> int:
    """Print and write the study's numbers, tables and figure, and show them in MLflow; returns how much is wrong.

    A comparison that has a name gets its report at once: some seconds.
    """
    numbers = Numbers(Study.of(folder).held())
    chosen = any(text.lstrip("+").startswith("method=") for text in config.hydra.overrides.task)
    troubled = summary.write(folder, finished, numbers, chosen or not config.hydra.runtime.choices.get("experiment"))
    writers: dict[str, Callable[..., str]] = {"table": partial(tables.write, numbers=numbers), "figure": figures.write}
    for name in [name for name in writers if name == "table" or config.get(name)]:
        try:
            results.info("%s", writers[name](folder, config.get(name)))
        except HarnessError as fault:
            log.error("%s", fault)
            troubled += 1
    steps = [lambda: log_study(numbers, folder)]
    if numbers.study.name != UNNAMED and len(numbers.study.methods) > 1:
        steps.append(lambda: results.info("%s", page.write(folder, numbers)))
    steps += [lambda: keep(numbers.study, folder), lambda: results.info("%s", tracking.page(folder.name))]
    said = []
    for step in steps:
        try:
            step()
        except HarnessError as fault:  # a server of MLflow that is gone
            said.append(str(fault))
    for sentence in dict.fromkeys(said):
        log.error("%s", sentence)
    return troubled + bool(said)


def sum_up(config: DictConfig, study: str) -> int:
    """Write and print what the jobs of the sweep came to; returns how much is wrong."""
    folder = Path(config.output_dir) / study
    record = folder / "sweeps" / f"{os.environ[SWEEP]}.jsonl"
    if not record.is_file():
        log.error("nothing was run: the sweep names no run; give each of its settings a value.")
        return 1
    lines = list(read_lines(record))
    failed = [line for line in lines if line["state"] == "failed"]
    # One run of all seeds, of what draws nothing.
    cells = dict.fromkeys(line["cell"] for line in lines if line["state"] != "failed")
    finished = [StoredRun(Path(cell)) for cell in cells]
    troubled = _show(config, folder, finished) if finished else 0
    tracking.close()
    faulty = [line for line in lines if line.get("fault")]
    if len(lines) > 1:
        for why in dict.fromkeys(line["message"] for line in failed):
            log.error("%s failed: %s", ", ".join(line["label"] for line in failed if line["message"] == why), why)
        for line in faulty:
            log.error("%s: %s", line["label"], line["fault"])
    return len(failed) + len(faulty) + troubled
