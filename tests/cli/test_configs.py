"""Every choice in ``conf`` says what it is, composes with the others, and builds what it names."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from hydra import compose, initialize_config_dir
from hydra.core.hydra_config import HydraConfig
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.utils import get_object, instantiate
from omegaconf import DictConfig, OmegaConf
from sklearn.base import is_classifier, is_regressor
from support.complete import complete

from harness.cli.build import names_of
from harness.cli.settings import mistyped, validate
from harness.core.metric import Metric
from harness.data import Source, load_dataset

CONF = Path(__file__).parents[2] / "conf"
GROUPS = ("dataset", "model", "method", "metrics", "experiment")


def choices(group: str) -> list[str]:
    return sorted(path.stem for path in (CONF / group).glob("*.yaml"))


EVERY = [(group, choice) for group in GROUPS for choice in choices(group)]


@pytest.fixture(autouse=True)
def hydra() -> Iterator[None]:
    """Compose from ``conf``, with the resolver that the command line registers."""
    OmegaConf.register_new_resolver("study_name", lambda: "adhoc", replace=True)
    with initialize_config_dir(str(CONF), version_base="1.3"):
        yield


@cache
def composed(*overrides: str) -> DictConfig:
    """Not to be written to: it is composed once for all tests."""
    return compose("config", overrides=list(overrides), return_hydra_config=True)


@pytest.mark.parametrize(("group", "choice"), EVERY)
@pytest.mark.every(3)
def test_it_composes(group: str, choice: str) -> None:
    """With the defaults of everything else; interpolations resolve, and its name is the one chosen."""
    config = composed(f"{'+' if group == 'experiment' else ''}{group}={choice}")
    assert config.hydra.runtime.choices[group] == choice
    settings = OmegaConf.masked_copy(config, [key for key in config if key != "hydra"])
    assert OmegaConf.to_container(settings, resolve=True)
    assert "adhoc" in config.hydra.run.dir


@pytest.mark.parametrize("experiment", choices("experiment"))
@pytest.mark.every(2)
def test_its_runs_have_settings_that_fit(experiment: str) -> None:
    """Those of each value of its own settings that it sweeps over; choices of data, models, methods compose above."""
    swept = composed(f"+experiment={experiment}").hydra.sweeper.get("params") or {}
    own = {key: str(values) for key, values in swept.items() if key not in GROUPS and "interval(" not in str(values)}
    each = [f"{key}={value}" for key, values in own.items() for value in swept_over(f"{key}={values}")]
    plain = composed(f"+experiment={experiment}")
    for given in each or [None]:
        config = plain if given is None or "/" in given.partition("=")[0] else with_value(plain, given)
        settings = OmegaConf.masked_copy(config, [key for key in config if key != "hydra"])
        validate({str(key): value for key, value in OmegaConf.to_container(settings, resolve=True).items()})  # type: ignore[union-attr]


def swept_over(override: str) -> list[str]:
    """The values of a sweep's line."""
    (parsed,) = OverridesParser.create().parse_overrides([override])
    return list(parsed.sweep_string_iterator()) if parsed.is_sweep_override() else [override.partition("=")[2]]


def with_value(config: DictConfig, override: str) -> DictConfig:
    """A copy with another value of a setting that it has, as composing with the override makes one."""
    (parsed,) = OverridesParser.create().parse_overrides([override])
    changed = OmegaConf.masked_copy(config, list(config))
    OmegaConf.update(changed, parsed.key_or_group, parsed.value(), merge=True)
    return changed


@pytest.mark.parametrize(
    ("given", "named"),
    [
        (("model=forest",), "forest_100x5"),
        (("model=xgb", "model.size={trees:500,depth:3}"), "xgb_500x3"),
        (("model=rf",), "rf"),
    ],
)
def test_the_name_of_a_model_says_its_size(given: tuple[str, ...], named: str) -> None:
    config = composed(*given)
    try:
        HydraConfig.instance().set_config(config)
        assert names_of(config)["model"] == named
    finally:
        HydraConfig.instance().cfg = None
    if named != "rf":
        trees, depth = map(int, named.partition("_")[2].split("x"))
        assert (config.model.estimator.n_estimators, config.model.estimator.max_depth) == (trees, depth)


@pytest.mark.parametrize(("group", "choice"), EVERY)
def test_its_first_line_says_what_it_is(group: str, choice: str) -> None:
    lines = (CONF / group / f"{choice}.yaml").read_text().splitlines()
    comments = [line for line in lines if line.startswith("#") and "@package" not in line]
    assert comments
    assert len(comments[0].split()) > 2
    assert all(line.startswith("#") for line in lines[: lines.index(comments[0]) + 1])


@pytest.mark.parametrize("method", choices("method"))
def test_a_method_is_built(method: str) -> None:
    """Of settings of the types that it asks for; it has what the harness asks of a method, and cannot be written to."""
    config = composed(f"method={method}").method
    given: Any = OmegaConf.to_container(config, resolve=True)
    assert mistyped(get_object(given.pop("_target_")), given) is None
    built = instantiate(config, _convert_="all")
    for name in ("refuses", "fit", "objective"):
        assert callable(getattr(built, name))
    assert type(built).__dataclass_params__.frozen


@pytest.mark.parametrize("method", choices("method"))
def test_a_method_has_one_name(method: str) -> None:
    """``dice_genetic`` is a variant of ``methods.dice``: file and YAML begin alike."""
    config = composed(f"method={method}").method
    target = config._target_
    if target == "methods.foreign.method.Foreign":  # the file is its script
        assert config.name == method
        assert Path(config.script).stem.startswith(method)
        assert config.environment.lock == str(Path(config.script).with_name(f"{method}.lock"))
        return
    path = target.rpartition(".")[0]
    module = path.rpartition(".")[2]
    assert path in {
        f"methods.{module}",
        *(f"methods.{package}.{module}" for package in ("peers", "carla", "scorecard", "ce_ocl")),
    }
    assert method == module or method.startswith(f"{module}_")
    assert importlib.import_module(path).__doc__


UNSET = {  # objects that no YAML holds, and what a class inherits and has no use for
    "methods.peers.nice.Nice": {"auto_encoder"},
    "methods.foreign.method.Foreign": {"program"},
    "methods.nearest.Stable": {"delta"},
}


def test_each_parameter_of_a_class_is_a_setting_of_one_of_its_choices() -> None:
    """So that it is shown, and ``method.NAME=VALUE`` reaches it."""
    shown: dict[str, set[str]] = {}
    for method in choices("method"):
        config = composed(f"method={method}").method
        shown.setdefault(config._target_, set()).update(str(key) for key in config)
    for target, settings in shown.items():
        known = settings | UNSET.get(target, set())
        lacking = [field.name for field in fields(get_object(target)) if field.init and field.name not in known]
        assert not lacking, target


@pytest.mark.parametrize("method", choices("method"))
def test_each_parameter_of_a_method_is_explained(method: str) -> None:
    """By a comment on its line, but for the one that the file's first line explains."""
    lines = (CONF / "method" / f"{method}.yaml").read_text().splitlines()
    bare = [line for line in lines if re.match(r"(?!_target_|defaults:)\w", line) and "#" not in line]
    assert bare in ([], [f"search: {method.partition('_')[2]}"])


TUNED = {"md_pso": "md_pso_tuned", "md_pso_pullback": "md_pso_pullback_tuned"}
TUNED_ON = {"compas", "hill_valley", "arrhythmia", "lsvt"}


@pytest.mark.parametrize("method", choices("method"))
def test_only_a_method_called_tuned_has_other_numbers_on_other_data(method: str) -> None:
    """Others name numbers and methods: nothing that they, or what they build upon, are written with is looked up."""
    text = (CONF / "method" / f"{method}.yaml").read_text()
    if method.endswith("_tuned"):
        found = [composed(f"method={method}", f"dataset={dataset}").method for dataset in ("pima", *sorted(TUNED_ON))]
        assert any(one != found[0] for one in found)
    else:
        assert "${" not in text
        assert {*yaml.safe_load(text).get("defaults", ())} <= {"_self_", *choices("method")} - set(TUNED.values())


@pytest.mark.parametrize("dataset", choices("dataset"))
def test_a_dataset_changes_no_method(dataset: str) -> None:
    assert composed(f"dataset={dataset}").method == composed().method


@pytest.mark.parametrize("dataset", complete("dataset"))
@pytest.mark.parametrize("method", TUNED)
@pytest.mark.every(3)
def test_a_tuned_method_is_the_plain_one_where_nothing_is_tuned(method: str, dataset: str) -> None:
    plain, tuned = (composed(f"method={name}", f"dataset={dataset}").method for name in (method, TUNED[method]))
    assert (plain == tuned) == (dataset not in TUNED_ON)


@pytest.mark.parametrize("model", complete("model"))
def test_a_model_is_built(model: str) -> None:
    """It is an estimator whose randomness, if any, is the model's seed."""
    config = composed(f"model={model}", "model_seed=17").model
    estimator = instantiate(config.estimator, _convert_="all")
    assert is_classifier(estimator) or is_regressor(estimator)
    if "random_state" in config.estimator:
        assert estimator.random_state == 17
    assert ("threshold" in config) == is_classifier(estimator)


@pytest.mark.parametrize("metrics", choices("metrics"))
def test_metrics_are_found(metrics: str) -> None:
    """Each name is a metric, none twice, and no two are logged under the same name."""
    names = list(composed(f"metrics={metrics}").metrics.names)
    found = [get_object(name) for name in names]
    assert all(isinstance(metric, Metric) for metric in found)
    assert len({metric.name for metric in found}) == len(names)


@pytest.mark.parametrize("dataset", complete("dataset"))
def test_a_dataset_is_loaded(dataset: str) -> None:
    """Where its file is packaged or at hand."""
    config: Any = OmegaConf.to_container(composed(f"dataset={dataset}").dataset)
    assert config["name"] == dataset
    if not all(Source(**source).path.is_file() for source in config["sources"]):
        pytest.skip("the file is neither packaged nor in CE_HARNESS_DATA")
    assert load_dataset(**config).name == dataset


@pytest.mark.parametrize("experiment", choices("experiment"))
def test_an_experiment_names_what_exists(experiment: str) -> None:
    """Each choice of its grid is a file."""
    config = composed(f"+experiment={experiment}")
    for key, value in (config.hydra.sweeper.params or {}).items():
        if key in GROUPS:
            for choice in str(value).split(","):
                assert choice.strip() in choices(key)


@pytest.mark.parametrize("experiment", choices("experiment"))
def test_an_experiment_asks_about_rows_that_exist(experiment: str) -> None:
    """Of the packaged data; rows that lack a value may have been left out."""
    config = composed(f"+experiment={experiment}")
    named = str((config.hydra.sweeper.get("params") or {}).get("dataset", config.hydra.runtime.choices.dataset))
    asked = config.factuals if OmegaConf.is_list(config.factuals) else [config.factuals]
    rows = {row for row in asked if isinstance(row, int)}
    for name in named.split(",") if rows else ():
        entry = OmegaConf.to_container(composed(f"dataset={name}").dataset, resolve=True)
        if all(source["file"].startswith("packaged/") for source in entry["sources"]):  # type: ignore[index, call-overload]
            assert rows <= set(load_dataset(**entry, split="none").frame.index), name  # type: ignore[arg-type]


def test_each_setting_is_explained() -> None:
    """Every top-level key of ``config.yaml`` has a comment on its line."""
    text = (CONF / "config.yaml").read_text()
    settings = [key for key in yaml.safe_load(text) if key not in {"defaults", "hydra"}]
    bare = [key for key in settings if not re.search(rf"^{key}:.*#\s*\w", text, flags=re.MULTILINE)]
    assert bare == []
