"""Settings that cannot be meant are one sentence before anything runs."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.errors import HydraException
from omegaconf import OmegaConf
from sklearn.model_selection import ParameterGrid

from harness.cli import build
from harness.cli.arguments import plain_names, readable
from harness.cli.composition import _compose_every_choice
from harness.cli.settings import mistyped, validate, whole_limits
from harness.core.errors import HarnessError
from harness.data.csv_load import load_csv
from harness.data.csv_notation import READING
from harness.data.features import ATTRIBUTES

CONF = Path(__file__).parents[2] / "conf"
LINEAR = {"estimator": {"_target_": "sklearn.linear_model.LogisticRegression"}}


def test_rows_split_by_time_train_the_later_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The test rows, which are the last; where rows are split otherwise there are no later ones."""
    monkeypatch.setenv("CE_HARNESS_CACHE", str(tmp_path))
    day, paid = np.arange(40), np.where(np.arange(40) % 3, "yes", "no")
    pd.DataFrame({"day": day[::-1], "income": day % 7, "paid": paid}).to_csv(tmp_path / "loans.csv", index=False)
    made = load_csv(tmp_path / "loans.csv", "paid", split={"time": "day"})
    assert made.frame["day"].iloc[made.test].tolist() == list(range(39, 29, -1))
    retraining: Any = build._classifier(build._key("lr", LINEAR), made).retraining
    assert retraining.others[0].equals(made.frame.iloc[made.test])
    assert (retraining.others[1] == made.labels[made.test]).all()
    assert len(retraining.models("later")) == 1
    assert [setting["C"] for setting in ParameterGrid(retraining.grid())] == [0.01, 0.1, 1.0, 10.0]  # of lr_tuned
    otherwise: Any = build._classifier(build._key("lr", LINEAR), load_csv(tmp_path / "loans.csv", "paid")).retraining
    assert otherwise.models("later") == ()
    whole: Any = build._classifier(build._key("lr", LINEAR), load_csv(tmp_path / "loans.csv", "paid", split="none"))
    assert whole.retraining.others is None


def test_a_task_is_that_of_the_people_as_their_file_has_them_now(tmp_path: Path) -> None:
    """A file that was written again is another choice; of names and row numbers, however many, there is no file."""
    for which in ("test", 3, list(range(500)), "x" * 5000, str(tmp_path)):
        assert build._stamp(which) is None
    file = tmp_path / "people.csv"
    file.write_text("age\n3\n")
    os.utime(file, ns=(1, 1))
    first = build._stamp(str(file))
    os.utime(file, ns=(2, 2))
    assert first == (str(file), 1)
    assert build._stamp(str(file)) == (str(file), 2)


@pytest.mark.parametrize("attribute", [*ATTRIBUTES, *READING])
def test_each_attribute_can_be_set_of_a_column_of_any_name(attribute: str) -> None:
    """A name with a letter, or blanks, that Hydra's grammar has no room for comes back as it was."""
    for name in ("eröffnet", "monthly income (in €)"):
        argument = readable(f"features.{name}.{attribute}=%d/%m/%Y")
        (override,) = OverridesParser.create().parse_overrides([argument])
        key = override.key_or_group.split(".")
        assert plain_names({key[1]: {key[2]: override.value()}}) == {name: {attribute: "%d/%m/%Y"}}


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
        ("memory_limit", -2, "null for no limit"),
        ("memory_limit", 0.001, "from 0.05"),
        ("model_seed", 2**32, "below 4294967296"),
        ("population", "all", "accepted, returned"),
        ("satisfied", "skip", "leave_out, ask"),
        ("group", 3, "the name of a feature"),
        ("factuals_seed", -1, "at least 0"),
        ("variant", "x" * 101, "at most 100 bytes"),
    ],
)
def test_a_wrong_setting_is_named(key: str, value: Any, allowed: str) -> None:
    """With what came and what is allowed; the settings as they stand are fine."""
    config = OmegaConf.load(CONF / "config.yaml")
    settings: Any = OmegaConf.to_container(OmegaConf.masked_copy(config, [k for k in config if k != "hydra"]))
    plain = {**settings, "metrics": {"names": ["metrics.proximity.l1"]}}
    validate(plain)
    shown = "null" if value is None else value
    with pytest.raises(HarnessError, match=f"{key}={shown} .*{allowed}"):
        validate({**plain, key: value})


def test_limits_are_the_same_however_they_are_written() -> None:
    given = {"time_limit": 5.0, "fit_time_limit": 0.5, "group_time_limit": 7, "memory_limit": None}
    assert repr(whole_limits(given)) == "{'time_limit': 5, 'group_time_limit': 7}"


@dataclass(frozen=True)
class Swarm:
    box: float | None = 0.5
    particles: int = 50
    pull: bool = False
    pick: str = "best"
    either: int | Sequence[float] = 1
    weights: Mapping[str, float] | None = None
    sloppy: float = None  # type: ignore[assignment]
    anything: Any = None
    elsewhere: OnlyForTypeCheckers = None  # type: ignore[name-defined]  # noqa: F821


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"box": "wide"}, "box is 'wide'; give a number or null."),
        ({"box": math.nan}, "box is nan; give a number or null."),
        ({"box": True}, "box is True; give a number or null."),
        ({"particles": 2.5}, "particles is 2.5; give a whole number."),
        ({"particles": None}, "particles is null; give a whole number."),
        ({"pull": "maybe"}, "pull is 'maybe'; give true or false."),
        ({"pick": 3}, "pick is 3; give a word."),
        ({"either": [1, "x"]}, "either is [1, 'x']; give a whole number or a list."),
        ({"weights": {"a": "x"}}, "weights is {'a': 'x'}; give a mapping or null."),
    ],
)
def test_a_value_of_the_wrong_type_is_named(given: dict[str, Any], words: str) -> None:
    assert mistyped(Swarm, given) == words


@pytest.mark.parametrize("suffix", [".py", ""])
def test_a_module_named_as_a_package_of_ours_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str
) -> None:
    """A file, or a folder of modules; the package itself, in a clone, is none of them."""
    mine = OmegaConf.create({"_target_": ".".join(("metrics", "mine", "Mine"))})
    with pytest.raises(HarnessError, match=r"mine cannot be set up: (?!.*package of ours)"):
        build._instantiate(mine, "mine")
    theirs = (tmp_path / "metrics").with_suffix(suffix)
    theirs.touch() if suffix else theirs.mkdir()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(HarnessError, match=rf"cannot be set up: metrics is a package of ours; rename {theirs.name}\."):
        build._instantiate(mine, "mine")


def test_what_fits_or_cannot_be_judged_is_taken() -> None:
    """A whole number is a number, a default fits whatever its annotation, and what has none is not looked at."""
    given = {"box": 1, "particles": 3, "pull": True, "either": [0.5, 2], "weights": {"a": 1}, "sloppy": None}
    assert mistyped(Swarm, given | {"anything": object(), "elsewhere": 7, "unknown": 7}) is None
    assert mistyped(len, {"obj": 3}) is None


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


@pytest.mark.parametrize(
    ("argument", "said"),
    [
        ("@ydra.search=null", "names no setting"), ("+@x=|", "names no setting"), ("=1", "names no setting"),
        ("+experiment=null", "is no choice"), ("x@y=null", "is no choice"), ("model=-inf", "is no choice"),
    ],
)  # fmt: skip
def test_what_names_or_chooses_nothing_is_refused(argument: str, said: str) -> None:
    """Hydra would end in an error of its own code."""
    with pytest.raises(HydraException, match=re.escape(f"{argument} {said}")):
        readable(argument)
