"""A sweep's jobs, composed quickly: Hydra reads every file anew for each, which costs more than a small cell."""

from __future__ import annotations

import contextlib
import copy
import gc
import importlib.util
import os
import re
import warnings
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from hydra._internal.config_loader_impl import ConfigLoaderImpl, get_overrides_dirname
from hydra._internal.config_repository import ConfigRepository
from hydra.core.default_element import ConfigDefault
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.errors import HydraException
from hydra.plugins.sweeper import Sweeper
from omegaconf import DictConfig, OmegaConf, open_dict

from harness.core.errors import choices, short
from harness.core.packages import CONF, conf_folders, install

EXTRAS = {"hydra_ray_launcher": "ray", "hydra_submitit_launcher": "slurm", "hydra_optuna_sweeper": "optuna"}
PASSED = ("CE_HARNESS_", "MLFLOW_TRACKING_")  # variables that a job on another machine is to have, too

_compose = ConfigLoaderImpl.load_sweep_config
_read = ConfigRepository.load_config
_composed: dict[tuple[str, ...], DictConfig] = {}  # by choices


def quicken() -> None:
    """Have every launcher of this process compose jobs by ``load_sweep_config``, of files read by ``load_config``."""
    ConfigRepository.load_config = load_config  # type: ignore[method-assign, assignment]
    Sweeper.validate_batch_is_legal = _compose_every_choice  # type: ignore[method-assign, assignment]
    ConfigLoaderImpl.load_sweep_config = load_sweep_config  # type: ignore[method-assign, assignment]
    gc.set_threshold(20_000, 20, 20)  # copies are many and short-lived: looking for cycles as often as usual costs more
    # Presets of launchers have the names of what they preset, which Hydra takes for an old way of naming a schema.
    warnings.filterwarnings("ignore", r"\s*'hydra/launcher/\w+' is validated against ConfigStore", UserWarning)


def missing(part: DictConfig) -> str | None:
    """What to install for a launcher or sweeper that an extra brings, where it is not there."""
    package = str(part._target_).partition(".")[2].partition(".")[0]
    if package not in EXTRAS or importlib.util.find_spec(f"hydra_plugins.{package}") is not None:
        return None
    return f"{part._target_.rpartition('.')[2]} is not installed; run: {install(EXTRAS[package])}"


def unknown(config: DictConfig, keys: Iterable[str] = ()) -> str | None:
    """That a setting is none, in a sentence: the harness knows no such one, nor does a choice refer to it.

    Parameters
    ----------
    keys
        Further ones than those of ``config``, as in a sweep each run has its own. What begins with ``_`` is a YAML's
        own affair, as an anchor is.
    """
    known = [str(key) for key in OmegaConf.load(CONF / "config.yaml") if key not in {"defaults", "hydra"}]
    groups = [group for group in config.hydra.runtime.choices if "/" not in group]
    odd = [key for key in [*map(str, config), *keys] if key not in {*known, *groups, "hydra"} and key[:1] != "_"]
    words = referred(*_everywhere(config)) if odd else ()
    return next((f"there is no setting {key!r}; {choices(key, known)}" for key in odd if key not in words), None)


def referred(*texts: str) -> set[str]:
    """The words within ``${...}`` of YAMLs."""
    return set(re.findall(r"\w+", " ".join(found for text in texts for found in re.findall(r"\$\{([^\n]*)\}", text))))


def _everywhere(config: DictConfig) -> Iterator[str]:
    """A composed configuration, and every YAML that choices may be of."""
    sources = (source for source in config.hydra.runtime.get("config_sources", ()) if source.schema == "file")
    folders = dict.fromkeys([*conf_folders(), *(Path(source.path) for source in sources)])
    yield OmegaConf.to_yaml(config)
    for folder in folders:
        for path in folder.rglob("*.yaml"):
            with contextlib.suppress(OSError):  # a link to nowhere, as editors make
                yield path.read_text(errors="replace")


def load_config(repository: ConfigRepository, config_path: str) -> Any:
    """A YAML as Hydra reads it, which of some that it cannot read does not say which.

    Raises
    ------
    HydraException
        Of a file that is no text, of one whose list of defaults is none, and of one that has ``???`` in it.
    """
    try:
        loaded = _read(repository, config_path)
    except (ValueError, TypeError, AttributeError, AssertionError) as fault:
        why = f"the YAML {config_path} cannot be read ({short(fault)})"
        remedy = "save it as UTF-8" if isinstance(fault, UnicodeDecodeError) else "'defaults' lists choices, as in conf"
        raise HydraException(f"{why}; {remedy}.") from fault
    listed = () if loaded is None else loaded.defaults_list or ()
    if any(isinstance(default, ConfigDefault) and default.path == "???" for default in listed):
        group = config_path.rpartition("/")[0]
        raise HydraException(f"a list of defaults has {group}/???; give a name in place of '???'.")
    return loaded


def load_sweep_config(loader: ConfigLoaderImpl, master_config: DictConfig, sweep_overrides: list[str]) -> DictConfig:
    """The configuration of a job, as Hydra composes it; its files are read once a combination of choices."""
    parsed = OverridesParser.create().parse_overrides(sweep_overrides)
    if any(override.is_hydra_override() for override in parsed):
        return _compose(loader, master_config, sweep_overrides)
    exists = loader.repository.group_exists
    choices = [o for o in parsed if exists(o.key_or_group) and not isinstance(o.value(), dict)]
    settings = [o for o in parsed if o not in choices]
    key = (*master_config.hydra.overrides.hydra, *(str(override.input_line) for override in choices))
    if key not in _composed:
        _composed[key] = _compose(loader, master_config, [str(o.input_line) for o in choices])
    config: Any = copy.deepcopy(_composed[key])
    ConfigLoaderImpl._apply_overrides_to_config(settings, config)
    config.hydra.overrides.task = list(sweep_overrides)
    naming = config.hydra.job.config.override_dirname
    config.hydra.job.override_dirname = get_overrides_dirname(
        parsed, kv_sep=naming.kv_sep, item_sep=naming.item_sep, exclude_keys=naming.exclude_keys
    )
    with open_dict(config.hydra.job.env_set):
        config.hydra.job.env_set.update({n: value for n, value in os.environ.items() if n.startswith(PASSED)})
    OmegaConf.copy_cache(from_config=master_config, to_config=config)
    return config


def _compose_every_choice(sweeper: Any, batch: Sequence[Sequence[str]]) -> None:
    """Compose, before any job, as few of them as name every choice; Hydra would compose each."""
    groups, seen = sweeper.config.hydra.runtime.choices, set[str]()
    for number, overrides in enumerate(batch):
        chosen = {override for override in overrides if override.partition("=")[0].lstrip("+") in groups}
        if number == 0 or not chosen <= seen:
            sweeper.hydra_context.config_loader.load_sweep_config(sweeper.config, list(overrides))
            seen |= chosen
