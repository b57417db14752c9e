"""The command line: composes configurations, runs cells, sums them up. The only file that knows Hydra."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import logging
import math
import os
import platform
import re
import sys
import time
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import hydra
from hydra.core.hydra_config import HydraConfig
from hydra.errors import HydraException, MissingConfigException
from hydra.experimental.callback import Callback
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

if TYPE_CHECKING:
    import pandas as pd

    from harness.answers import Cell
    from harness.causality import Equation
    from harness.classifier import Classifier
    from harness.data import Dataset
    from harness.experiment import Question
    from harness.metric import Metric
    from harness.pool import Pool

log = logging.getLogger("harness")

PACKAGE = Path(__file__).parent
CONF = next(folder for folder in (PACKAGE.parent / "conf", PACKAGE / "conf") if (folder / "config.yaml").is_file())
# What answers depend on.
SOURCES = ("problem.py", "causality.py", "classifier.py", "models.py", "program.py", "worker.py", "data")
SWEEP, CELLS = "CE_HARNESS_SWEEP", "CE_HARNESS_CELLS"  # how jobs in other processes know their sweep


def main() -> None:
    """Run the command line. The exit code is 1 where a cell failed or a method refused, 130 after Ctrl-C."""
    _talk()
    os.environ.setdefault("HYDRA_FULL_ERROR", "1")  # errors come here, to be told in one sentence
    sys.argv[1:] = [_open(argument) for argument in sys.argv[1:]]
    try:
        hydra.main(config_path=str(CONF), config_name="config", version_base="1.3")(job)()
    except KeyboardInterrupt:
        log.warning("interrupted: what was answered is kept, and the same command goes on from there")
        sys.exit(130)
    except (HydraException, OmegaConfBaseException) as fault:
        log.error(_sentence(fault))
        sys.exit(1)
    sys.exit(1 if Sweep.faults else 0)


def _talk() -> None:
    """Plain sentences on standard error, in whatever process a job runs."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(message)s"))
    log.handlers, log.propagate = [handler], False
    log.setLevel(logging.INFO)


def _open(argument: str) -> str:
    """Take an argument that Hydra's grammar would not, as it is meant.

    ``features.NAME.ATTRIBUTE=...`` and ``dataset.causality.NAME...=...`` add to a mapping, without ``++``; what is
    ``desired`` may begin with ``<`` or ``>``, without a second pair of quotes.

    >>> _open("desired=>= 12,<= 3")
    'desired=">= 12","<= 3"'
    """
    if argument.startswith(("desired=", "dataset.desired=")):
        return re.sub(r"(?<=[=,])\s*([<>][^,]*)", r'"\1"', argument)
    return f"++{argument}" if argument.startswith(("features.", "dataset.causality.")) else argument


def _sentence(fault: BaseException) -> str:
    """What was wrong on the command line and what is allowed."""
    from harness.errors import choices

    if isinstance(fault, MissingConfigException) and fault.missing_cfg_file and fault.options:
        group, _, wanted = fault.missing_cfg_file.rpartition("/")
        return f"there is no {group} {wanted!r}; {choices(wanted, fault.options)}"
    cause = fault.__cause__
    if isinstance(cause, OmegaConfBaseException) and isinstance(cause.parent_node, DictConfig) and cause.key:
        level = str(cause.full_key or cause.key).rpartition(".")[0]
        known = [str(key) for key in cause.parent_node if key != "hydra"]
        where = f" in {level}" if level else ""
        return f"there is no setting {cause.key!r}{where}; {choices(cause.key, known)}"
    return " ".join(str(fault).split())


def _experiment(hydra_node: Any) -> str:
    return str(hydra_node.runtime.choices.get("experiment") or "adhoc")


# Where a job runs in another process, importing this module is all the set-up it gets.
OmegaConf.register_new_resolver("experiment_name", lambda *, _root_: _experiment(_root_.hydra), replace=True)


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

    def _start(self, config: DictConfig, jobs: int) -> None:
        from harness import tracking

        os.environ[SWEEP] = f"{time.strftime('%Y%m%d-%H%M%S')}-{uuid.uuid4().hex[:6]}"
        os.environ[CELLS] = str(jobs)
        tracking.prepare(Path.cwd())

    def _end(self, config: DictConfig) -> None:
        from harness import figures, summary, tables, tracking
        from harness.answers import Cell
        from harness.errors import HarnessError

        folder = Path(config.output_dir) / _experiment(config.hydra)
        record = folder / "sweeps" / f"{os.environ[SWEEP]}.jsonl"
        if not record.is_file():
            return
        lines = [json.loads(line) for line in record.read_text().splitlines()]
        failed = [line for line in lines if line["state"] == "failed"]
        finished = [Cell(Path(line["cell"])) for line in lines if line["state"] != "failed"]
        troubled = summary.write(folder, finished)
        for name, write in (("table", tables.write), ("figure", figures.write)):
            if finished and config.get(name):
                try:
                    log.info("%s", write(folder, config[name]))
                except HarnessError as fault:
                    log.error("%s", fault)
                    troubled += 1
        log.info("%s", tracking.page(_experiment(config.hydra)))
        if len(lines) > 1:
            for line in failed:
                log.error("%s failed: %s", line["label"], line["message"])
        Sweep.faults = len(failed) + troubled


def _count_jobs(config: DictConfig) -> int:
    """How many cells a sweep has: the product of its comma-separated choices."""
    from hydra._internal.core_plugins.basic_sweeper import BasicSweeper
    from hydra.core.override_parser.overrides_parser import OverridesParser

    grid = [f"{key}={value}" for key, value in (config.hydra.sweeper.get("params") or {}).items()]
    parsed = OverridesParser.create().parse_overrides(grid + list(config.hydra.overrides.task))
    try:
        return sum(len(batch) for batch in BasicSweeper.split_arguments(parsed, None))
    except Exception:  # another sweeper decides as it goes
        return 0


def job(config: DictConfig) -> float:
    """Run one cell. The mean of coverage is returned, so that Hydra's optimising sweepers have a number."""
    from harness.errors import HarnessError

    _talk()
    choices = HydraConfig.get().runtime.choices
    names = {group: str(choices[group]) for group in ("dataset", "model", "method")}
    if variant := config.variant:
        names["method"] += f"-{variant}"
    label = "/".join(names.values())
    experiment = _experiment(HydraConfig.get())
    settings: Any = HydraConfig.get().job
    number = 0 if OmegaConf.is_missing(settings, "num") else settings.num
    record = Path(config.output_dir) / experiment / "sweeps" / f"{os.environ[SWEEP]}.jsonl"
    try:
        cell, state, coverage = _run(config, names, experiment, f"[{number + 1}/{os.environ[CELLS]}] {label}")
        _note(record, cell=str(cell.path), label=label, state=state)
        return coverage
    except HarnessError as fault:
        _note(record, label=label, state="failed", message=str(fault))
        log.error("%s: %s", label, fault)
    except Exception as fault:
        _note(record, label=label, state="failed", message=f"{type(fault).__name__}: {fault}")
        log.exception("%s: unexpected %s", label, type(fault).__name__)
    return math.nan


def _note(record: Path, **line: Any) -> None:
    record.parent.mkdir(parents=True, exist_ok=True)
    with record.open("a") as file:
        file.write(json.dumps(line) + "\n")


def _run(config: DictConfig, names: dict[str, str], experiment: str, title: str) -> tuple[Cell, str, float]:
    from harness import experiment as experiments
    from harness.answers import Cell
    from harness.errors import HarnessError

    plain: Any = OmegaConf.to_container(config, resolve=True)
    _validate(plain)
    _name_learners(plain)
    dataset = _dataset(_key(names["dataset"], plain["dataset"], plain["split"], plain["features"]))
    classifier = _classifier(_key(names["model"], plain["model"]), dataset)
    question = experiments.pose(
        dataset,
        classifier,
        plain["desired"],
        plain["factuals"],
        plain["n_factuals"],
        plain["seed"],
        _equations(dataset),
    )
    question = _referring(question, plain["reference"])
    method = _instantiate(config.method, f"method {names['method']}")
    metrics = _metrics(plain["metrics"])
    fingerprint = _fingerprint(plain, dataset, question, method)
    folder = Path(plain["output_dir"]) / experiment
    cell = Cell(folder / "answers" / f"{'-'.join(names.values())}-{fingerprint[:8]}")
    state = "rescored" if plain["rescore"] else "done"
    if plain["rescore"] and not cell.started:
        raise HarnessError(f"there are no stored answers for {title}; run it once without rescore=true.")
    if plain["force"] and not plain["rescore"]:
        cell.reset()
    if cell.done and not plain["rescore"]:
        state = "skipped"
    elif not plain["rescore"]:
        identity = {**names, "experiment": experiment, "fingerprint": fingerprint}
        _answer(cell, question, method, identity, plain, title)
    scored = {"metrics": plain["metrics"], "population": plain["population"]}
    if state != "skipped" or cell.meta.get("scored") != scored:
        _score(cell, question, metrics, plain)
        cell.update(scored=scored)
    scores = _scores(cell)
    log.info("%s  %s", title, _line(scores, state))
    return cell, state, float(scores["coverage"].mean())


def _answer(
    cell: Cell, question: Question, method: Any, identity: Mapping[str, str], plain: Mapping[str, Any], title: str
) -> None:
    """Ask the method about every factual that the cell lacks."""
    from tqdm import tqdm

    from harness.experiment import run
    from harness.pool import Limits

    if not cell.started:
        dataset = question.dataset
        meta = {
            **identity,
            "n_counterfactuals": plain["n_counterfactuals"],
            "seed": plain["seed"],
            "data_sha256": dataset.sha256,
            "notices": dataset.notices,
            "config": plain,
            "environment": _environment(plain),
        }
        problem = next(iter(question.problems.values()))
        claim = None if method.refuses(problem) else method.objective(problem)
        if claim is not None and len(question.problems) > 1:
            claim = claim.common()
        cell.start(
            meta, dataset.space, question.classifier, question.targets, claim, question.factuals, problem.equations
        )
    count, seed, jobs = plain["n_counterfactuals"], plain["seed"], plain["jobs"]
    limits = Limits(plain["time_limit"], plain["fit_time_limit"], plain["memory_limit"], plain["threads"])
    with tqdm(total=len(question.factuals), desc=title, unit="factual", leave=False, disable=None) as bar:
        run(cell, question, method, count, seed, limits, _pool(), jobs, bar.update)


def _score(cell: Cell, question: Question, metrics: list[Metric], plain: Mapping[str, Any]) -> None:
    """Judge the stored answers, compute the metrics, and show them in MLflow."""
    from harness import check, scoring

    check.judge(cell)
    problems = {index: question.problem(index) for index in question.factuals.index}
    scores = scoring.score(cell, problems, metrics, plain["population"])
    scores.to_csv(cell.path / "scores.csv")
    _track(cell, scores, plain)


def _scores(cell: Cell) -> pd.DataFrame:
    import pandas as pd

    return pd.read_csv(cell.path / "scores.csv", index_col="factual")


def _line(scores: pd.DataFrame, state: str) -> str:
    returned = scores["returned"].sum()
    validity = f"{scores['valid'].sum() / returned:.2f}" if returned else "–"
    return (
        f"{state}: {len(scores)} factuals, coverage {scores['coverage'].mean():.2f}, validity {validity}, "
        f"median {scores['seconds'].median():.3f} s"
    )


def _track(cell: Cell, scores: pd.DataFrame, plain: Mapping[str, Any]) -> None:
    import pandas as pd

    from harness import tracking
    from harness.scoring import COUNTS, summarise

    logged: dict[str, float] = {}
    for name, row in summarise(scores).iterrows():
        key = f"run/{name}" if name in COUNTS else str(name)
        logged |= {key: row["mean"], f"{key}_se": row["se"]}
    logged["run/median_seconds"] = scores["seconds"].median()
    verdicts = {(v["factual"], v["ce"]): v["verdict"] for v in cell.verdicts()}
    answers = pd.DataFrame(
        {
            "factual": row["factual"],
            "ce": row["ce"],
            "status": row["status"],
            "verdict": verdicts[row["factual"], row["ce"]],
            **(row["row"] or {}),
        }
        for row in cell.rows()
    )
    meta = cell.meta
    names = {key: meta[key] for key in ("dataset", "model", "method")}
    tags = {**names, "sweep": os.environ[SWEEP], "experiment": meta["experiment"], "fingerprint": meta["fingerprint"]}
    hidden = {"dataset", "metrics", "force", "rescore", "output_dir"}
    params = {**names, **_flat({key: value for key, value in plain.items() if key not in hidden})}
    tracking.log_cell(
        meta["experiment"], Path.cwd(), "/".join(names.values()), tags, params, logged, answers.astype(object), plain
    )


def _flat(tree: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in tree.items():
        if isinstance(value, Mapping):
            flat |= _flat(value, f"{prefix}{key}.")
        else:
            flat[f"{prefix}{key}"] = value
    return flat


def _validate(plain: Mapping[str, Any]) -> None:
    """Settings that would fail late or silently: say so at once."""
    from harness.errors import HarnessError

    for key in ("n_factuals", "n_counterfactuals", "jobs", "threads"):
        if not isinstance(plain[key], int) or plain[key] < 1:
            raise HarnessError(f"{key}={plain[key]} does not fit; give a whole number of at least 1.")
    if not isinstance(plain["seed"], int) or plain["seed"] < 0:
        raise HarnessError(f"seed={plain['seed']} does not fit; give a whole number of at least 0.")
    limit = plain["memory_limit"]
    if limit is not None and (not isinstance(limit, int | float) or limit <= 0):
        raise HarnessError(f"memory_limit={limit} does not fit; give a number of gibibytes above 0, or null for none.")
    if plain["group"] is not None:
        raise HarnessError(
            f"group={plain['group']} needs a method that explains groups, and none here does; leave it out."
        )
    for key in ("time_limit", "fit_time_limit", "group_time_limit"):
        if not isinstance(plain[key], int | float) or plain[key] <= 0:
            raise HarnessError(f"{key}={plain[key]} does not fit; give a number of seconds above 0.")
    if plain["population"] not in {"valid", "returned"}:
        raise HarnessError(f"population={plain['population']} does not exist; allowed: valid, returned.")


def _key(*parts: Any) -> str:
    return json.dumps(parts, sort_keys=False)


@functools.lru_cache(maxsize=4)
def _dataset(key: str) -> Dataset:
    from harness.data import load_dataset

    name, dataset, split, features = json.loads(key)
    return load_dataset(**{"name": name, **dataset}, split=split, overrides=features)


@functools.lru_cache(maxsize=16)
def _classifier(key: str, dataset: Dataset) -> Classifier:
    from sklearn.base import ClassifierMixin, RegressorMixin

    from harness import models
    from harness.errors import HarnessError

    name, model = json.loads(key)
    if "estimator" not in model:
        raise HarnessError("the model's configuration has no 'estimator'; see conf/model for examples.")
    estimator = _instantiate(OmegaConf.create(model["estimator"]), "the model")
    if why := models.misfit(estimator, dataset.classes):
        fitting = ", ".join(_models(ClassifierMixin if dataset.classes else RegressorMixin))
        raise HarnessError(
            f"model={name} {why} in dataset={dataset.name}; choose one of {fitting}, or another dataset."
        )
    train = dataset.frame.iloc[dataset.train]
    labels = dataset.labels[dataset.train]
    return models.train(
        estimator, dataset.space, train, labels, dataset.classes, model.get("threshold"), _cache() / "models"
    )


def _referring(question: Question, which: str | int) -> Question:
    """The question with the rows that hulls and neighbours are of: ``train``, ``all``, or the first so many of all."""
    from dataclasses import replace

    from harness.errors import HarnessError

    if which == "train":
        return question
    if which != "all" and (not isinstance(which, int) or which < 1):
        raise HarnessError(f"reference={which} does not fit; allowed: train, all, or a number of rows of at least 1.")
    data = question.dataset
    rows = slice(None if which == "all" else int(which))
    parts = {"reference": data.frame.iloc[rows], "reference_labels": data.labels[rows]}
    return replace(question, problems={target: replace(p, **parts) for target, p in question.problems.items()})


def _name_learners(plain: dict[str, Any]) -> None:
    """In the dataset's equations, put the estimator of ``conf/model`` for its name, so that all of it is on record."""
    from sklearn.base import RegressorMixin

    from harness.errors import HarnessError, choices

    for feature, entry in (plain["dataset"].get("causality") or {}).items():
        if not isinstance(entry, Mapping) or not isinstance(name := entry.get("learn"), str):
            continue
        if name not in (known := _models(RegressorMixin)):
            raise HarnessError(f"the equation of {feature} cannot be learnt by {name!r}; {choices(name, known)}.")
        chosen = OmegaConf.merge(OmegaConf.load(CONF / "model" / f"{name}.yaml"), {"seed": plain["seed"]})
        entry["learn"] = OmegaConf.to_container(chosen, resolve=True)["estimator"]  # type: ignore[index, call-overload]


@functools.lru_cache(maxsize=4)
def _equations(dataset: Dataset) -> tuple[Equation, ...]:
    from harness.causality import equations

    described = {
        feature: {**entry, "learn": _instantiate(OmegaConf.create(entry["learn"]), f"the equation of {feature}")}
        if entry and "learn" in entry
        else entry
        for feature, entry in dataset.causality.items()
    }
    return equations(dataset.space, dataset.frame.iloc[dataset.train], described, _cache() / "models")


def _models(sort: type) -> list[str]:
    """The choices of model whose estimator is of a sort."""
    from hydra.utils import get_class

    found = []
    for path in sorted((CONF / "model").glob("*.yaml")):
        with contextlib.suppress(Exception):  # a broken choice is told when it is chosen
            if issubclass(get_class(OmegaConf.load(path).estimator._target_), sort):
                found.append(path.stem)
    return found


def _cache() -> Path:
    """Where trained models are kept between runs."""
    import pooch

    return Path(os.environ.get("CE_HARNESS_CACHE") or pooch.os_cache("ce-harness"))


def _instantiate(config: DictConfig, what: str) -> Any:
    from hydra.errors import InstantiationException
    from hydra.utils import instantiate

    from harness.errors import HarnessError

    try:
        return instantiate(config, _convert_="all")
    except InstantiationException as fault:
        cause = fault.__cause__ or fault
        raise HarnessError(f"{what} cannot be set up: {str(cause).splitlines()[0]}") from fault


def _metrics(config: Mapping[str, Any]) -> list[Metric]:
    from hydra.utils import get_object

    from harness.errors import HarnessError

    found = []
    for path in config["names"]:
        try:
            found.append(get_object(path))
        except Exception as fault:
            raise HarnessError(f"there is no metric {path!r}; name functions such as metrics.proximity.l1.") from fault
    return found


@functools.lru_cache(maxsize=1)
def _pool() -> Pool:
    from harness.pool import Pool

    return Pool()


def _fingerprint(plain: Mapping[str, Any], dataset: Dataset, question: Question, method: Any) -> str:
    """A hash of all that stored answers depend on, and of nothing else."""
    asked = {
        key: plain[key]
        for key in (
            "dataset",
            "model",
            "method",
            "split",
            "features",
            "n_counterfactuals",
            "seed",
            "time_limit",
            "fit_time_limit",
            "memory_limit",
            "threads",
        )
    }
    asked["reference"] = plain["reference"]
    asked["factuals"] = [str(index) for index in question.factuals.index]
    asked["targets"] = [repr(question.targets[index]) for index in question.factuals.index]
    asked["data"] = dataset.sha256
    digest = hashlib.sha256(json.dumps(asked, sort_keys=True, default=str).encode())
    digest.update(_source_digest(sys.modules[type(method).__module__].__file__ or ""))
    return digest.hexdigest()


@functools.lru_cache(maxsize=8)
def _source_digest(module: str) -> bytes:
    """A hash of the code that answers depend on: the methods, and the harness's part in asking."""
    digest = hashlib.sha256()
    folders = [PACKAGE / name for name in SOURCES] + [PACKAGE.parent / "methods", Path(module)]
    for root in folders:
        for path in sorted(root.rglob("*.py")) if root.is_dir() else [root] if root.is_file() else []:
            digest.update(path.read_bytes())
    return digest.digest()


def _environment(plain: Mapping[str, Any]) -> dict[str, Any]:
    """What a reader needs to judge a timing and to repeat a run."""
    from importlib.metadata import PackageNotFoundError, version

    import psutil

    def installed(package: str) -> str | None:
        try:
            return version(package)
        except PackageNotFoundError:
            return None

    packages = (
        "ce-harness",
        "numpy",
        "pandas",
        "scikit-learn",
        "pyomo",
        "highspy",
        "dice-ml",
        "carla-recourse",
        "numba",
    )
    return {
        "python": platform.python_version(),
        "platform": platform.platform(),
        "cpu": _cpu(),
        "cores": psutil.cpu_count(),
        "memory_gib": round(psutil.virtual_memory().total / 2**30, 1),
        "threads": plain["threads"],
        "jobs": plain["jobs"],
        "load": psutil.getloadavg()[0],
        "packages": {package: installed(package) for package in packages},
    }


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor()
