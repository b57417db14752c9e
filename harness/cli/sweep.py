"""What happens before the first job of a sweep and after the last."""

from __future__ import annotations

import os
import re
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import yaml  # type: ignore[import-untyped]
from hydra._internal.core_plugins.basic_sweeper import BasicSweeper
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.experimental.callback import Callback
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from harness.cli import composition, listing
from harness.cli.arguments import sentence
from harness.cli.process import BEGAN, CELLS, LONGEST_WORD, SWEEP, VARIED, log, stopping_where_full, study_name
from harness.cli.slurm import know_jobs_by_their_files
from harness.core.errors import HarnessError

STAMP = "%Y%m%d-%H%M%S"
ONE = ("study", "output_dir", "dry")  # of a command, whose end is summed up once
OURS = {"archives", "figures", "published", "site"}  # folders beside those of studies
SHARED = ("jobs", "population", "optimise", "divide")  # of which stored answers do not depend


@contextmanager
def _heard() -> Iterator[None]:
    """End where something is raised: of a callback Hydra makes a warning of it, and exits with 0."""
    try:
        with stopping_where_full():
            yield
    except OmegaConfBaseException as fault:  # of a value that refers to another
        log.error("%s", sentence(fault))
        raise SystemExit(1) from None
    except HarnessError as fault:  # such as stored answers that are damaged
        log.error("%s", fault)
        raise SystemExit(1) from None
    except Exception as fault:
        log.exception("unexpected %s", type(fault).__name__)
        raise SystemExit(1) from None


class Sweep(Callback):
    """Prepares the store before the first job, and sums up after the last."""

    faults = 0

    def on_run_start(self, config: DictConfig, **kwargs: Any) -> None:
        self._start(config, [[]])

    def on_multirun_start(self, config: DictConfig, **kwargs: Any) -> None:
        self._start(config, _jobs(config))

    def on_run_end(self, config: DictConfig, **kwargs: Any) -> None:
        self._end(config)

    def on_multirun_end(self, config: DictConfig, **kwargs: Any) -> None:
        self._end(config)

    def on_job_end(self, config: DictConfig, job_return: Any, **kwargs: Any) -> None:
        job_return.cfg = job_return.hydra_cfg = None  # which the launcher would keep of every cell until the end

    @_heard()
    def _start(self, config: DictConfig, jobs: list[list[str]]) -> None:
        from harness.store import archive, mlflow  # slow, and of no use to --help

        if why := _refusal(config, jobs):
            log.error("%s", why)
            raise SystemExit(1)
        os.environ[CELLS] = str(len(jobs))
        os.environ[BEGAN] = str(time.time())
        os.environ[VARIED] = ",".join(_varied([_settings(job) for job in jobs]))
        try:
            if config.dry:
                from harness.cli.settings import validate  # slow: pandas, and of no use to --help

                plain: Any = OmegaConf.to_container(config, resolve=True)
                validate(plain)
                print(_plan(config, jobs))
                raise SystemExit(0)
            folder = Path(config.output_dir) / study_name(config.study, config.hydra)
            if (packed := archive.restore(folder)) is not None:
                log.info("%s goes on from the answers in %s.", folder, packed)
            os.environ[SWEEP] = _after_all(folder / "sweeps")
            mlflow.prepare(Path.cwd())
        except HarnessError as fault:
            log.error("%s", fault)
            raise SystemExit(1) from None
        if _of_slurm(config.hydra.launcher):
            know_jobs_by_their_files()
        if _spread(config.hydra.launcher) and os.environ["MLFLOW_TRACKING_URI"].startswith("sqlite:"):
            log.warning(
                "several machines cannot write to one %s: start a server and set MLFLOW_TRACKING_URI to its address.",
                os.environ["MLFLOW_TRACKING_URI"].removeprefix("sqlite:///"),
            )

    @_heard()
    def _end(self, config: DictConfig) -> None:
        from harness.cli.ending import sum_up  # slow: tables, figures, MLflow

        Sweep.faults = sum_up(config, study_name(config.study, config.hydra))


def _after_all(sweeps: Path) -> str:
    """The name of a new sweep: the time, and after those of all others there, whatever the clock said then."""
    now = datetime.now(UTC)
    stamps = [path.stem[:15] for path in sweeps.glob("*.jsonl") if re.fullmatch(r"\d{8}-\d{6}-.*", path.stem)]
    if stamps:
        now = max(now, datetime.strptime(max(stamps), STAMP).replace(tzinfo=UTC) + timedelta(seconds=1))
    return f"{now.strftime(STAMP)}-{uuid.uuid4().hex[:6]}"


def _refusal(config: DictConfig, jobs: list[list[str]]) -> str | None:
    """Why a sweep cannot begin, or None where it can."""
    for part in (config.hydra.launcher, config.hydra.sweeper):
        if why := composition.missing(part):
            return why
    name = study_name(config.study, config.hydra)
    if not re.fullmatch(r"\w[\w.-]*", name) or len(name.encode()) > LONGEST_WORD:
        return (
            f"study={name} does not fit; give a name of letters, digits, '_', '-' and '.', of at most {LONGEST_WORD} "
            "bytes."
        )
    if name in OURS:
        return f"study={name} does not fit, as what is made of all studies goes to a folder of this name; give another."
    if not isinstance(config.output_dir, str) or not config.output_dir.strip():
        return f"output_dir={config.output_dir or ''} does not fit; give the name of a folder."
    if not isinstance(config.dry, bool):
        return f"dry={config.dry} does not fit; give true or false."
    given = OverridesParser.create().parse_overrides(list(config.hydra.overrides.task))
    added = [override.key_or_group for override in given if override.is_add() or override.is_force_add()]
    if why := composition.unknown(config, [key for key in added if not re.search(r"[./]", key)]):
        return why
    for key in (*SHARED, *ONE):
        if len({override for job in jobs for override in job if override.lstrip("+").startswith(f"{key}=")}) > 1:
            same = f"{key} names several values, but "
            if key in ONE:
                return same + "a command has one; give a command for each."
            return same + "runs that differ in it alone are one run; give each a study=NAME."
    return None


def _spread(launcher: DictConfig) -> bool:
    """Whether jobs may run on other machines."""
    return bool(OmegaConf.select(launcher, "ray.init.address")) or _of_slurm(launcher)


def _of_slurm(launcher: DictConfig) -> bool:
    return str(launcher._target_).endswith("SlurmLauncher")


def _jobs(config: DictConfig) -> list[list[str]]:
    """The overrides of each run: the product of the sweep's comma-separated choices; none where they are not known."""
    grid = [f"{key}={value}" for key, value in (config.hydra.sweeper.get("params") or {}).items()]
    try:
        parsed = OverridesParser.create().parse_overrides(grid + list(config.hydra.overrides.task))
        return [job for batch in BasicSweeper.split_arguments(parsed, None) for job in batch]
    except Exception:  # another sweeper decides as it goes, and Hydra says what is no choice
        return []


def _settings(job: Sequence[str]) -> dict[str, str]:
    """What the overrides of a run set, as texts by name."""
    return dict(override.lstrip("+").split("=", 1) for override in job if "=" in override)


def _varied(jobs: Sequence[Mapping[str, str]]) -> list[str]:
    """The settings in which runs differ."""
    keys = dict.fromkeys(key for job in jobs for key in job)
    return [key for key in keys if len({job.get(key) for job in jobs}) > 1]


def _value(text: str) -> Any:
    """What an override sets: a number, a list; a text where YAML has no such thing."""
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError:
        return text


def _plan(config: DictConfig, jobs: list[list[str]]) -> str:
    """What would run, for ``dry=true``."""
    chosen = {key: str(config.hydra.runtime.choices[key]) for key in ("dataset", "model", "method")}
    known = [chosen | _settings(job) for job in jobs or [[]]]
    known = [job | {key: job[key].strip("'\"").removesuffix(".yaml") for key in chosen} for job in known]
    varied = _varied(known)
    runs = [{key: job.get(key, "") for key in dict.fromkeys([*chosen, *varied])} for job in known]
    asked = ("factuals", "n_factuals", "time_limit", "fit_time_limit", "group", "group_time_limit")
    plain: Any = OmegaConf.to_container(config, resolve=True)
    limits = [{key: _value(job[key]) if key in job else plain[key] for key in asked} for job in known]
    folders = [Path(source.path) for source in config.hydra.runtime.config_sources if source.schema == "file"]
    return listing.plan(runs, limits, folders)
