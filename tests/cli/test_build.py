"""Settings that cannot be meant are one sentence before anything runs."""

from __future__ import annotations

import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from omegaconf import OmegaConf

from harness.cli.build import _validate
from harness.cli.composition import _compose_every_choice
from harness.core.errors import HarnessError

CONF = Path(__file__).parents[2] / "conf"


@pytest.mark.parametrize(
    ("key", "value", "allowed"),
    [
        ("n_factuals", 0, "at least 1"),
        ("jobs", "two", "at least 1"),
        ("seed", -1, "at least 0"),
        ("time_limit", 0, "above 0"),
        ("group_time_limit", None, "above 0"),
        ("time_limit", math.nan, "above 0"),
        ("fit_time_limit", math.inf, "above 0"),
        ("memory_limit", -2, "null for none"),
        ("memory_limit", 0.001, "at least 0.05"),
        ("model_seed", 2**32, "below 4294967296"),
        ("population", "all", "accepted, returned"),
        ("group", 3, "the name of a feature"),
        ("factuals_seed", -1, "at least 0"),
    ],
)
def test_a_wrong_setting_is_named(key: str, value: Any, allowed: str) -> None:
    """With what came and what is allowed; the settings as they stand are fine."""
    config = OmegaConf.load(CONF / "config.yaml")
    plain = {name: config[name] for name in config if name not in {"defaults", "hydra"}}
    _validate(plain)
    with pytest.raises(HarnessError, match=f"{key}={value}.*{allowed}"):
        _validate({**plain, key: value})


def test_every_choice_is_composed_before_a_sweep() -> None:
    """Once, and not in each of its combinations with others and with settings."""
    composed: list[list[str]] = []
    hydra = SimpleNamespace(runtime=SimpleNamespace(choices={"model": "lr", "method": "nearest"}))
    loader = SimpleNamespace(load_sweep_config=lambda config, overrides: composed.append(overrides))
    sweeper = SimpleNamespace(config=SimpleNamespace(hydra=hydra), hydra_context=SimpleNamespace(config_loader=loader))
    batch = [[f"model={a}", f"method={b}", f"seed={c}"] for a in "xy" for b in "uv" for c in range(9)]
    _compose_every_choice(sweeper, batch)
    assert composed == [
        ["model=x", "method=u", "seed=0"],
        ["model=x", "method=v", "seed=0"],
        ["model=y", "method=u", "seed=0"],
    ]
