"""From a configuration to the dataset, the model, the task and the method."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
from hydra import compose, initialize_config_dir
from hydra.core.hydra_config import HydraConfig
from hydra.errors import HydraException, InstantiationException
from hydra.utils import get_class, get_object, instantiate
from omegaconf import DictConfig, OmegaConf
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.model_selection import GridSearchCV

from harness.cli.arguments import plain_names
from harness.cli.composition import referred
from harness.cli.kept_model import of_study
from harness.cli.process import SWEEP, log
from harness.cli.settings import mistyped, validate, whole_limits
from harness.core.caching import cache
from harness.core.classifier import Classifier
from harness.core.equation import Equation
from harness.core.errors import DatasetError, HarnessError, choices
from harness.core.metric import Metric
from harness.core.packages import CONF, conf_folders
from harness.core.problem import Problem
from harness.data import Dataset, load_dataset
from harness.data.csv_load import load_settled
from harness.data.csv_report import introduce
from harness.data.csv_settings import settle, shown_name
from harness.data.description import Description
from harness.data.load import source_of
from harness.data.stored import stored_source
from harness.execution.task import Task, make_task
from harness.models.adopt import doubt, from_file
from harness.models.equations import equations
from harness.models.files import name_of
from harness.models.published import load_published
from harness.models.retraining import Retraining
from harness.models.runtime.source import ModelSource, is_file
from harness.models.train import Amended, Training, misfit
from harness.store.run import StoredRun, method_of

OF_MODELS = {  # settings of a model, by the one that tells how it is made
    "path": ("path", "trust", "threshold", "classes", "columns", "output", "scores", "activation"),
    "family": ("family", "sources", "columns", "scale"),
    "estimator": ("estimator", "threshold", "decimals", "decision", "size"),
}


def _folders() -> list[Path]:
    """Where choices are looked for, in this order: this package's own, then those of plug-ins."""
    if not HydraConfig.initialized():
        return [CONF]
    found = HydraConfig.get().runtime.config_sources
    return [Path(source.path) for source in found if source.schema == "file"]


def build_task(config: DictConfig, names: Mapping[str, str], folder: Path | None) -> tuple[dict[str, Any], Task, Any]:
    """The settings in full, the task and the method. ``folder`` gets a note on a user's own CSV."""
    plain: Any = OmegaConf.to_container(config, resolve=True)
    validate(plain)
    plain |= whole_limits(plain)
    _know_all_of_model(names["model"], config)
    origins = _settle(plain)
    if plain["constraints"]:
        plain["dataset"]["constraints"] = [*(plain["dataset"].get("constraints") or ()), *plain["constraints"]]
        plain["constraints"] = []  # they are in the dataset's now
    _name_learners(plain)
    dataset = _dataset(_key(names["dataset"], plain["dataset"], plain["split"], plain["features"]))
    if folder is not None:
        _introduce(dataset, origins, folder)
    classifier = of_study(_classifier(_key(names["model"], plain["model"]), dataset), dataset, names, plain, folder)
    chosen = [plain[name] for name in ("desired", "factuals", "n_factuals", "factuals_seed", "reference")]
    task = _task(_key(*chosen, _stamp(plain["factuals"])), dataset, classifier)
    method = _instantiate(config.method, f"method {names['method']}")
    if getattr(method, "deterministic", False):
        plain["seed"] = 0  # one run stands for every seed
    return plain, task, method


def _know_all_of_model(name: str, config: DictConfig) -> None:
    """Refuse what a model's settings have beside what is read of them, and what other settings refer to."""
    known = next((keys for kind, keys in OF_MODELS.items() if kind in config.model), ())
    own = [str(key) for key in config.model if not str(key).startswith("_")]
    if known and (odd := [key for key in own if key not in {*known, *referred(OmegaConf.to_yaml(config))}]):
        raise HarnessError(f"model={name} has no setting {odd[0]!r}; {choices(odd[0], known)}")


def ask_again(run: StoredRun) -> tuple[dict[str, Any], Problem, Any]:
    """The settings of a stored run, its problem with its own estimator and equations, and its method.

    Nothing is built that the run alone names, as it may be of anybody's archive.

    Raises
    ------
    HarnessError
        Where its method has other settings than here, and where its data are others, or of sources that no choice of
        this installation names.
    """
    meta = run.meta
    name = method_of(meta)
    search = ",".join(f"file://{folder}" for folder in conf_folders()[1:])
    try:
        with initialize_config_dir(str(CONF), version_base="1.3"):
            config = compose("config", [f"method={name}", f"hydra.searchpath=[{search}]"]).method
    except HydraException:
        config = None
    if config is None or OmegaConf.to_container(config, resolve=True) != meta["config"].get("method"):
        raise HarnessError(f"{run.label} has a method with other settings than this installation's choice of its name.")
    return *posed_again(run), _instantiate(config, f"method {meta['method']}")


def posed_again(run: StoredRun) -> tuple[dict[str, Any], Problem]:
    """The settings of a stored run, and its problem with its own estimator and equations, and its data set's rows.

    Raises
    ------
    HarnessError
        Where its data are others than here, or of sources that no choice of this installation names.
    """
    meta = run.meta
    plain = meta["config"]
    validate(plain)
    data = dict(plain["dataset"])
    if sources := data.get("sources"):
        data["sources"] = [asdict(stored_source(run.label, entries, foreign=True)) for entries in sources]
    dataset = _dataset(_key(meta["dataset"], data, plain["split"], plain["features"]))
    if dataset.sha256 != meta["data_sha256"]:
        raise HarnessError(
            f"{run.label} is of other data than {meta['dataset']} here; calibrate, or verify, where both are the same."
        )
    anybody = [int(dataset.frame.index[0])]  # whom the run asks about is stored
    task = _asked(_key(plain["desired"], anybody, 1, 0, plain["reference"]), dataset, run.classifier, run.equations)
    return plain, next(iter(task.problems.values()))


def names_of(config: DictConfig) -> dict[str, str]:
    """The names of a run's dataset, model and method."""
    chosen = HydraConfig.get().runtime.choices
    names = {group: str(chosen[group]) for group in ("dataset", "model", "method")}
    names["dataset"] = _shown(config, names["dataset"])
    if path := OmegaConf.select(config, "model.path"):
        names["model"] = name_of(str(path))
    if size := OmegaConf.select(config, "model.size"):
        names["model"] += "_" + "x".join(map(str, size.values()))
    if variant := config.variant:
        names["method"] += f"-{variant}"
    return names


def _key(*parts: Any) -> str:
    return json.dumps(parts, sort_keys=False)


def _shown(config: DictConfig, choice: str) -> str:
    """The dataset's name: the choice of ``conf/dataset``, or that of the user's own file; and its way to intervals."""
    path = OmegaConf.select(config, "dataset.path")
    name = shown_name(path, OmegaConf.select(config, "dataset.name")) if path else choice
    way = OmegaConf.select(config, "dataset.discretise")
    return f"{name}_{way}" if isinstance(way, str) else name


def _settle(plain: dict[str, Any]) -> dict[str, str]:
    """Put names as they are; and of a user's own CSV what the YAML beside it says, so that all of it is on record.

    Returns where attributes of its features were set.
    """
    plain["features"] = plain_names(plain["features"])
    if "causality" in plain["dataset"]:
        plain["dataset"]["causality"] = plain_names(plain["dataset"]["causality"])
    if "path" not in plain["dataset"]:
        return {}
    plain["dataset"], origins = settle(plain["dataset"], plain["features"], plain["desired"])
    plain["features"] = {}  # they are in the dataset's now
    return origins


def _introduce(dataset: Dataset, origins: Mapping[str, str], folder: Path) -> None:
    """Print what was inferred of a user's own CSV: once a sweep, whatever processes its runs are in."""
    if not dataset.reasons:
        return
    text = introduce(dataset, origins)
    note = folder / "sweeps" / f"{os.environ[SWEEP]}-{hashlib.sha256(text.encode()).hexdigest()[:8]}.txt"
    note.parent.mkdir(parents=True, exist_ok=True)
    with contextlib.suppress(FileExistsError), note.open("x", encoding="utf-8") as file:
        file.write(text)
        log.info("%s", text)


@functools.lru_cache(maxsize=4)
def _dataset(key: str) -> Dataset:
    name, dataset, split, features = json.loads(key)
    if "path" in dataset:
        return load_settled(dataset, split)
    given = {"name": name, **dataset, "split": split, "overrides": features}
    for needed in ("sources", "target"):
        if needed not in given:
            raise DatasetError(f"dataset={name} has no {needed!r}; see conf/dataset for examples.")
    if why := mistyped(Description, given):
        raise DatasetError(f"dataset={name} cannot be read: {why}")
    return load_dataset(**given)


@functools.lru_cache(maxsize=16)
def _classifier(key: str, dataset: Dataset) -> Classifier:
    name, model = json.loads(key)
    if "path" in model:
        return _own_model(name, model, dataset)
    if "family" in model:
        return _published(name, model, dataset)
    if "estimator" not in model:
        raise HarnessError("the model's configuration has no 'estimator'; see conf/model for examples.")
    estimator = _instantiate(OmegaConf.create(model["estimator"]), "the model")
    if why := misfit(estimator, dataset.classes):
        fitting = ", ".join(_models(ClassifierMixin if dataset.classes else RegressorMixin))
        raise HarnessError(
            f"model={name} {why} in dataset={dataset.name}; choose one of {fitting}, or another dataset."
        )
    training = Training(
        estimator,
        dataset.space,
        dataset.frame.iloc[dataset.train],
        dataset.labels[dataset.train],
        dataset.classes,
        model.get("threshold"),
        cache() / "models",
        Amended(model.get("decimals"), model.get("decision")),
    )
    try:
        classifier = training.done().classifier
    except (ValueError, TypeError, OverflowError) as fault:  # of a parameter's value
        raise HarnessError(f"model={name} does not fit: {' '.join(str(fault).split())}") from fault
    rest = dataset.test[~np.isin(dataset.test, dataset.train)]
    others = (dataset.frame.iloc[rest], dataset.labels[rest]) if len(rest) else None
    grid = functools.partial(_grid, model["estimator"])  # asked of few runs, and it reads all of conf/model
    return replace(classifier, retraining=Retraining(training, grid, others, dataset.by_time))


def _grid(estimator: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The grid within which a configured estimator is tuned: its own, or that of the search over such estimators."""
    if "param_grid" in estimator:
        return estimator["param_grid"]
    for path in _models(GridSearchCV).values():
        search: Any = OmegaConf.to_container(OmegaConf.load(path).estimator, resolve=False)
        if "param_grid" in search and search["estimator"]["_target_"] == estimator["_target_"]:
            return search["param_grid"]
    return None


def _own_model(name: str, model: Mapping[str, Any], dataset: Dataset) -> Classifier:
    """The fitted model of a file."""
    path = model["path"]
    if not isinstance(path, str) or path == "???":
        raise HarnessError(f"model={name} needs a file with a fitted model; set model.path=model.skops.")
    keys = ("columns", "output", "scores", "activation")
    given: dict[str, Any] = {key: model[key] for key in keys if model.get(key) is not None}
    if not is_file(path) and (odd := [key for key in keys[:-1] if key in given]):
        raise HarnessError(f"model.{odd[0]} is for models of other libraries (.onnx, .cbm, .pt); leave it at null.")
    classifier = from_file(
        ModelSource(path, **given) if is_file(path) else path,
        dataset.space,
        dataset.frame,
        dataset.classes,
        name=f"dataset={dataset.name}",
        trust=bool(model.get("trust")),
        threshold=model.get("threshold"),
        names=model.get("classes"),
    )
    if why := doubt(classifier, dataset.frame, dataset.labels):
        log.warning("%s: %s", path, why)
    return classifier


def _published(name: str, model: Mapping[str, Any], dataset: Dataset) -> Classifier:
    """The model that a paper's authors published for a dataset."""
    if dataset.name not in model["sources"]:
        raise HarnessError(
            f"model={name} is not published for dataset={dataset.name}; {choices(dataset.name, model['sources'])}."
        )
    source = source_of(f"model={name}", model["sources"][dataset.name])
    given = {key: model[key].get(dataset.name) for key in ("columns", "scale") if key in model}
    try:
        return load_published(model["family"], source, dataset, **given)
    except DatasetError as fault:
        factuals = dataset.published
        if source.path.is_file() or factuals is None or factuals.path.is_file():
            raise
        raise DatasetError(f"{str(fault)[:-1]}; factuals=published needs {factuals.file} as well.") from None


def _stamp(which: Any) -> tuple[str, int] | None:
    """Where a file with the people to explain lies, and when it changed; None where they are chosen otherwise."""
    file = isinstance(which, str) and os.path.isfile(which)
    return (os.path.abspath(which), os.stat(which).st_mtime_ns) if file else None


@functools.lru_cache(maxsize=2)
def _task(key: str, dataset: Dataset, classifier: Classifier) -> Task:
    """A task that many runs share, and what metrics find of its training rows; of ``key``, what is asked of whom."""
    return _asked(key, dataset, classifier, _equations(dataset))


def _asked(key: str, dataset: Dataset, classifier: Classifier, found: tuple[Equation, ...]) -> Task:
    desired, which, count, seed, reference, *_ = json.loads(key)
    return _referring(make_task(dataset, classifier, desired, which, count, seed, found), reference)


def _referring(task: Task, which: str | int) -> Task:
    """The task with the rows that hulls and neighbours are of: ``train``, ``all``, or the first so many of all."""
    if which == "train":
        return task
    if which != "all" and (isinstance(which, bool) or not isinstance(which, int) or which < 1):
        raise HarnessError(f"reference={which} does not fit; allowed: train, all, or a number of rows of at least 1.")
    data = task.dataset
    rows = slice(None if which == "all" else int(which))
    parts = {"reference": data.frame.iloc[rows], "reference_labels": data.labels[rows]}
    return replace(task, problems={target: replace(p, **parts) for target, p in task.problems.items()})


def _name_learners(plain: dict[str, Any]) -> None:
    """In the dataset's equations, put the estimator of ``conf/model`` for its name, so that all of it is on record."""
    described = plain["dataset"].get("causality") or {}
    if not isinstance(described, Mapping):
        raise HarnessError(f"dataset.causality={described} does not fit; give each feature that follows its equation.")
    for feature, entry in described.items():
        if not isinstance(entry, Mapping) or not isinstance(name := entry.get("learn"), str):
            continue
        if name not in (known := _models(RegressorMixin)):
            raise HarnessError(f"the equation of {feature} cannot be learnt by {name!r}; {choices(name, known)}.")
        chosen = OmegaConf.merge(
            OmegaConf.load(known[name]), {"model_seed": plain["model_seed"], "seed": plain["seed"]}
        )
        entry["learn"] = OmegaConf.to_container(chosen, resolve=True)["estimator"]  # type: ignore[index, call-overload]


@functools.lru_cache(maxsize=4)
def _equations(dataset: Dataset) -> tuple[Equation, ...]:
    described = {
        feature: {**entry, "learn": _instantiate(OmegaConf.create(entry["learn"]), f"the equation of {feature}")}
        if entry and "learn" in entry
        else entry
        for feature, entry in dataset.causality.items()
    }
    return equations(dataset.space, dataset.frame.iloc[dataset.train], described, cache() / "models")


def _models(sort: type) -> dict[str, Path]:
    """The choices of model whose estimator is of a sort, by name, and the file of each; those of plug-ins last."""
    found: dict[str, Path] = {}
    for path in [path for folder in _folders() for path in sorted((folder / "model").glob("*.yaml"))]:
        with contextlib.suppress(Exception):  # a broken choice is an error only where it is chosen
            if issubclass(get_class(OmegaConf.load(path).estimator._target_), sort):
                found.setdefault(path.stem, path)
    return found


def _instantiate(config: Any, what: str) -> Any:
    """What a configuration with ``_target_`` makes; ``what`` begins the sentence where it makes nothing."""
    given: Any = OmegaConf.to_container(config, resolve=True) if OmegaConf.is_config(config) else None
    path = given.pop("_target_", None) if isinstance(given, dict) else None
    if not isinstance(path, str):
        raise HarnessError(f"{what} cannot be set up: its '_target_' must be the dotted name of a class.")
    try:
        if why := mistyped(get_object(path), given):
            raise HarnessError(f"{what} cannot be set up: {why}")
        return instantiate(config, _convert_="all")
    except (ImportError, TypeError, ValueError, InstantiationException) as fault:
        top = path.partition(".")[0]
        if theirs := _namesake(top):
            raise HarnessError(f"{what} cannot be set up: {top} is a package of ours; rename {theirs}.") from fault
        cause = fault.__cause__ if isinstance(fault, InstantiationException) else None
        raise HarnessError(f"{what} cannot be set up: {' '.join(str(cause or fault).splitlines()[:2])}") from fault


def _namesake(top: str) -> str | None:
    """What lies here and is called as one of our packages is, which is imported instead, if anything does."""
    if top not in {"methods", "metrics", "harness"}:
        return None
    ours = Path(__file__).resolve().parents[2] / top
    return next((name for name in (f"{top}.py", top) if Path(name).exists() and Path(name).resolve() != ours), None)


def metrics_of(config: Mapping[str, Any]) -> list[Metric]:
    """The metrics that a configuration names."""
    found = []
    for path in config["names"]:
        try:
            found.append(get_object(path))
        except Exception as fault:
            why = " ".join(str(fault).splitlines()[:2])
            raise HarnessError(
                f"there is no metric {path!r} ({why}); name functions such as metrics.proximity.l1: "
                f"'python -m harness list metrics' names all of them."
            ) from fault
        if not isinstance(found[-1], Metric):
            raise HarnessError(f"{path} is no metric; name a function with the decorator harness.core.metric.metric.")
    return found
