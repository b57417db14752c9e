"""What happens before the first job of a sweep and after the last."""

from __future__ import annotations

import os
import re
import time
import uuid
from pathlib import Path
from typing import Any

from hydra._internal.core_plugins.basic_sweeper import BasicSweeper
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.experimental.callback import Callback
from omegaconf import DictConfig, OmegaConf

from harness.cli import composition
from harness.cli.process import CELLS, SWEEP, log, stopping_where_full, study_name


class Sweep(Callback):
    """Prepares the store before the first job, and sums up after the last."""

    faults = 0

    def on_run_start(self, config: DictConfig, **kwargs: Any) -> None:
        self._start(config, 1)

    def on_multirun_start(self, config: DictConfig, **kwargs: Any) -> None:
        self._start(config, _count_jobs(config))

    def on_run_end(self, config: DictConfig, **kwargs: Any) -> None:
        self._end(config)

    def on_multirun_end(self, config: DictConfig, **kwargs: Any) -> None:
        self._end(config)

    def on_job_end(self, config: DictConfig, job_return: Any, **kwargs: Any) -> None:
        job_return.cfg = job_return.hydra_cfg = None  # which the launcher would keep of every cell until the end

    @stopping_where_full()
    def _start(self, config: DictConfig, jobs: int) -> None:
        from harness.store import mlflow as tracking  # slow, and of no use to --help

        for part in (config.hydra.launcher, config.hydra.sweeper):
            if why := composition.missing(part):
                log.error("%s", why)
                raise SystemExit(1)
        if not re.fullmatch(r"\w[\w.-]*", name := study_name(config.study, config.hydra)):
            log.error("study=%s does not fit; give a name of letters, digits, '_', '-' and '.'.", name)
            raise SystemExit(1)
        os.environ[SWEEP] = f"{time.strftime('%Y%m%d-%H%M%S')}-{uuid.uuid4().hex[:6]}"
        os.environ[CELLS] = str(jobs)
        tracking.prepare(Path.cwd())
        if _spread(config.hydra.launcher) and os.environ["MLFLOW_TRACKING_URI"].startswith("sqlite:"):
            log.warning(
                "several machines cannot write to one %s: start a server and set MLFLOW_TRACKING_URI to its address.",
                os.environ["MLFLOW_TRACKING_URI"].removeprefix("sqlite:///"),
            )

    @stopping_where_full()
    def _end(self, config: DictConfig) -> None:
        from harness.cli.ending import sum_up  # slow: tables, figures, MLflow

        Sweep.faults = sum_up(config, study_name(config.study, config.hydra))


def _spread(launcher: DictConfig) -> bool:
    """Whether jobs may run on other machines."""
    return bool(OmegaConf.select(launcher, "ray.init.address") or str(launcher._target_).endswith("SlurmLauncher"))


def _count_jobs(config: DictConfig) -> int:
    """How many cells a sweep has: the product of its comma-separated choices."""
    grid = [f"{key}={value}" for key, value in (config.hydra.sweeper.get("params") or {}).items()]
    parsed = OverridesParser.create().parse_overrides(grid + list(config.hydra.overrides.task))
    try:
        return sum(len(batch) for batch in BasicSweeper.split_arguments(parsed, None))
    except Exception:  # another sweeper decides as it goes
        return 0
