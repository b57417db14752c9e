"""The command line: composes configurations, runs cells, sums them up.

Hydra is known here, in ``arguments.py`` and in ``composition.py``.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import hashlib
import json
import logging
import math
import os
import platform
import sys
import time
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import hydra
from hydra.core.config_search_path import ConfigSearchPath
from hydra.core.hydra_config import HydraConfig
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.plugins import Plugins
from hydra.errors import HydraException
from hydra.experimental.callback import Callback
from hydra.plugins.search_path_plugin import SearchPathPlugin
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException
from yaml import YAMLError  # type: ignore[import-untyped]

from harness import composition, plugins
from harness.arguments import plain_names, readable, sentence

if TYPE_CHECKING:
    import pandas as pd

    from harness.core.classifier import Classifier
    from harness.core.equation import Equation
    from harness.core.explanation import Explanation
    from harness.core.metric import Metric
    from harness.core.objective import Objective
    from harness.data import Dataset
    from harness.experiment import Question
    from harness.pool import Pool
    from harness.store.cell import Cell


log = logging.getLogger("harness")

FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS}  # nothing more can be stored
PACKAGE = Path(__file__).parent
CONF = next(folder for folder in (PACKAGE.parent / "conf", PACKAGE / "conf") if (folder / "config.yaml").is_file())
# What answers depend on.
SOURCES = (
    "problem.py", "causality.py", "classifier.py", "pipeline.py", "models.py", "torch_mlp.py", "scorecard.py",
    "program.py", "worker.py", "data",
)  # fmt: skip
COLUMN_TYPES = {"CONTINUOUS": "double", "INTEGER": "long"}  # in MLflow's words; all others are texts
SWEEP, CELLS = "CE_HARNESS_SWEEP", "CE_HARNESS_CELLS"  # how jobs in other processes know their sweep: see composition


def main() -> None:
    """Run the command line. The exit code is 1 where a cell failed or a method refused, 130 after Ctrl-C."""
    _talk()
    os.environ.setdefault("HYDRA_FULL_ERROR", "1")  # errors come here, to be told in one sentence
    if (here := os.getcwd()) not in sys.path:
        sys.path.append(here)  # a module of one's own is found as with python -m, whatever started this
    try:
        sys.argv[1:] = [readable(argument) for argument in _extend(sys.argv[1:])]
        Plugins.instance().register(SearchPath)
        hydra.main(config_path=str(CONF), config_name="config", version_base="1.3")(job)()
    except KeyboardInterrupt:
        log.warning("interrupted: what was answered is kept, and the same command goes on from there")
        sys.exit(130)
    except (HydraException, OmegaConfBaseException, YAMLError) as fault:
        log.error(sentence(fault))
        sys.exit(1)
    sys.exit(1 if Sweep.faults else 0)


@contextlib.contextmanager
def _stopping_where_full() -> Iterator[None]:
    """Where nothing more can be stored, end in one sentence; every factual that is stored stays."""
    try:
        yield
    except OSError as fault:
        if fault.errno not in FULL:
            raise
        where = f" {fault.filename}" if fault.filename else ""
        log.error(
            "nothing more can be written%s (%s): what was answered is kept; make room, and the same command goes on.",
            where,
            fault.strerror,
        )
        raise SystemExit(1) from None


def _talk() -> None:
    """Plain sentences on standard error, in whatever process a job runs."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(message)s"))
    log.handlers, log.propagate = [handler], False
    log.setLevel(logging.INFO)


class SearchPath(SearchPathPlugin):
    """Has Hydra look for choices in installed plug-ins, too, and in the folders of ``hydra.searchpath``."""

    asked: ClassVar[list[str]] = []  # of the command line: file:///path/to/conf, pkg://package.conf, or a plain path

    def manipulate_search_path(self, search_path: ConfigSearchPath) -> None:
        known = [CONF]
        for where in self.asked:
            scheme, _, path = where.rpartition("://")
            named = scheme == "pkg"
            folder = plugins.locate(path.replace("/", ".").strip(".")) if named else Path(path).expanduser()
            if why := plugins.misfit("hydra.searchpath", where, folder):
                raise HydraException(why)
            self._append("hydra.searchpath", folder, search_path, known)
        for who, where in plugins.installed():
            folder = plugins.locate(where)
            if why := plugins.misfit(who, where, folder):
                log.warning("%s", why)  # a run that does not use it goes on
            else:
                self._append(who, folder, search_path, known)

    def _append(self, who: str, folder: Path | None, search_path: ConfigSearchPath, known: list[Path]) -> None:
        assert folder is not None
        for name in plugins.hidden(folder, known):
            log.warning("%s has a %s that is never used, since another comes before it; rename it.", who, name)
        search_path.append(who, f"file://{folder.resolve()}")
        known.append(folder)


def _extend(arguments: list[str]) -> list[str]:
    """The arguments without ``hydra.searchpath``, which ``SearchPath`` takes over, so that ``--help`` knows it too."""
    rest = []
    for argument in arguments:
        if argument.startswith("hydra.searchpath="):
            value = OverridesParser.create().parse_override(argument).value()
            SearchPath.asked = [str(path) for path in (value if isinstance(value, list) else [value])]
        else:
            rest.append(argument)
    return rest


def _folders() -> list[Path]:
    """Where choices are looked for, in this order: this package's own, then those of plug-ins."""
    if not HydraConfig.initialized():
        return [CONF]
    found = HydraConfig.get().runtime.config_sources
    return [Path(source.path) for source in found if source.schema == "file"]


def _experiment(hydra_node: Any) -> str:
    return str(hydra_node.runtime.choices.get("experiment") or "adhoc")


# Where a job runs in another process, importing this module is all the set-up it gets.
composition.quicken()
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

    def on_job_end(self, config: DictConfig, job_return: Any, **kwargs: Any) -> None:
        job_return.cfg = job_return.hydra_cfg = None  # which the launcher would keep of every cell until the end

    @_stopping_where_full()
    def _start(self, config: DictConfig, jobs: int) -> None:
        from harness.store import mlflow as tracking

        for part in (config.hydra.launcher, config.hydra.sweeper):
            if why := composition.missing(part):
                log.error("%s", why)
                raise SystemExit(1)
        os.environ[SWEEP] = f"{time.strftime('%Y%m%d-%H%M%S')}-{uuid.uuid4().hex[:6]}"
        os.environ[CELLS] = str(jobs)
        tracking.prepare(Path.cwd())
        if _spread(config.hydra.launcher) and os.environ["MLFLOW_TRACKING_URI"].startswith("sqlite:"):
            log.warning(
                "several machines cannot write to one %s: start a server and set MLFLOW_TRACKING_URI to its address.",
                os.environ["MLFLOW_TRACKING_URI"].removeprefix("sqlite:///"),
            )

    @_stopping_where_full()
    def _end(self, config: DictConfig) -> None:
        from harness import figures, summary, tables
        from harness.core.errors import HarnessError
        from harness.store import mlflow as tracking
        from harness.store.cell import Cell

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
        tracking.close()
        if len(lines) > 1:
            for line in failed:
                log.error("%s failed: %s", line["label"], line["message"])
        Sweep.faults = len(failed) + troubled


def _spread(launcher: DictConfig) -> bool:
    """Whether jobs may run on other machines."""
    return bool(OmegaConf.select(launcher, "ray.init.address") or str(launcher._target_).endswith("SlurmLauncher"))


def _count_jobs(config: DictConfig) -> int:
    """How many cells a sweep has: the product of its comma-separated choices."""
    from hydra._internal.core_plugins.basic_sweeper import BasicSweeper

    grid = [f"{key}={value}" for key, value in (config.hydra.sweeper.get("params") or {}).items()]
    parsed = OverridesParser.create().parse_overrides(grid + list(config.hydra.overrides.task))
    try:
        return sum(len(batch) for batch in BasicSweeper.split_arguments(parsed, None))
    except Exception:  # another sweeper decides as it goes
        return 0


@_stopping_where_full()
def job(config: DictConfig) -> float:
    """Run one cell. The number of ``optimise`` is returned, for Hydra's optimising sweepers."""
    from harness.core.errors import HarnessError

    _talk()
    _settle_in(HydraConfig.get().runtime.cwd)
    names = _names(config)
    label = "/".join(names.values())
    experiment = _experiment(HydraConfig.get())
    settings: Any = HydraConfig.get().job
    number = 0 if OmegaConf.is_missing(settings, "num") else settings.num
    record = Path(config.output_dir) / experiment / "sweeps" / f"{os.environ[SWEEP]}.jsonl"
    try:
        cell, state, merit = _run(config, names, experiment, f"[{number + 1}/{os.environ[CELLS]}] {label}")
        _note(record, cell=str(cell.path), label=label, state=state)
        return merit
    except HarnessError as fault:
        _note(record, label=label, state="failed", message=str(fault))
        log.error("%s: %s", label, fault)
    except Exception as fault:
        if isinstance(fault, OSError) and fault.errno in FULL:
            raise
        _note(record, label=label, state="failed", message=f"{type(fault).__name__}: {fault}")
        log.exception("%s: unexpected %s", label, type(fault).__name__)
    return math.nan


def _settle_in(folder: str) -> None:
    """Work where the sweep was started, in whatever process, on whatever machine that shares its files."""
    if os.getcwd() != folder:
        os.chdir(folder)
    if folder not in sys.path:
        sys.path.append(folder)


def _note(record: Path, **line: Any) -> None:
    record.parent.mkdir(parents=True, exist_ok=True)
    with record.open("a") as file:
        file.write(json.dumps(line) + "\n")


def _run(config: DictConfig, names: dict[str, str], experiment: str, title: str) -> tuple[Cell, str, float]:
    from harness.core.errors import HarnessError
    from harness.store.cell import Cell

    folder = Path(config.output_dir) / experiment
    plain, question, method = _pose(config, names, folder)
    dataset = question.dataset
    metrics = _metrics(plain["metrics"])
    fingerprint = _fingerprint(plain, dataset, question, method)
    trusted = bool(plain["model"].get("trust"))
    cell = Cell(folder / "answers" / f"{'-'.join(names.values())}-{fingerprint[:8]}", trusted)
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
    scored |= {"divide": plain["divide"]} if plain["group"] else {}
    if state != "skipped" or cell.meta.get("scored") != scored:
        scores = _score(cell, question, metrics, plain)
        cell.update(scored=scored)
    else:
        scores = _scores(cell)
    log.info("%s  %s", title, _line(cell, scores, state))
    if plain["group"] and os.environ[CELLS] == "1":
        from harness import groups

        log.info("\n%s", (cell.path / groups.REPORT).read_text())
    return cell, state, _merit(scores, plain["optimise"])


def _pose(config: DictConfig, names: Mapping[str, str], folder: Path | None) -> tuple[dict[str, Any], Question, Any]:
    """The settings in full, what is asked, and the method; ``folder`` notes that a user's own CSV was introduced."""
    from harness import experiment as experiments

    plain: Any = OmegaConf.to_container(config, resolve=True)
    _validate(plain)
    origins = _settle(plain)
    _name_learners(plain)
    dataset = _dataset(_key(names["dataset"], plain["dataset"], plain["split"], plain["features"]))
    if folder is not None:
        _introduce(dataset, origins, folder)
    classifier = _classifier(_key(names["model"], plain["model"]), dataset)
    question = experiments.pose(
        dataset,
        classifier,
        plain["desired"],
        plain["factuals"],
        plain["n_factuals"],
        plain["seed"] if plain["factuals_seed"] is None else plain["factuals_seed"],
        _equations(dataset),
    )
    question = _referring(question, plain["reference"])
    return plain, question, _instantiate(config.method, f"method {names['method']}")


def _names(config: DictConfig) -> dict[str, str]:
    """What a cell's dataset, model and method are called."""
    from harness.models.files import name_of

    choices = HydraConfig.get().runtime.choices
    names = {group: str(choices[group]) for group in ("dataset", "model", "method")}
    names["dataset"] = _shown(config, names["dataset"])
    if path := OmegaConf.select(config, "model.path"):
        names["model"] = name_of(str(path))
    if variant := config.variant:
        names["method"] += f"-{variant}"
    return names


def explained(arguments: list[str]) -> Iterator[tuple[Explanation, Objective | None]]:
    """Explain each factual that command-line arguments name; nothing is stored, and MLflow is left out.

    Yields
    ------
    The answers with their context, and the objective that the method claims for them.

    Raises
    ------
    HarnessError
        For arguments that do not fit.
    """
    from hydra import compose, initialize_config_dir

    from harness.core.errors import HarnessError
    from harness.experiment import entropy
    from harness.explain import SATISFIED
    from harness.library import in_context
    from harness.pool import Limits
    from harness.worker import refused

    try:
        arguments = [readable(argument) for argument in _extend(arguments)]
        Plugins.instance().register(SearchPath)
        with initialize_config_dir(str(CONF), version_base="1.3"):
            config = compose("config", arguments, return_hydra_config=True)
        HydraConfig.instance().set_config(config)
        settings = OmegaConf.masked_copy(config, [str(key) for key in config if key != "hydra"])
        plain, question, method = _pose(settings, _names(settings), None)
    except (HydraException, OmegaConfBaseException, YAMLError) as fault:
        raise HarnessError(sentence(fault)) from fault
    if plain["group"]:
        raise HarnessError("group does not fit one person's explanation; leave it out.")
    limits = Limits(plain["time_limit"], plain["fit_time_limit"], plain["memory_limit"], plain["threads"])
    count, seed = plain["n_counterfactuals"], entropy(plain["seed"])
    for index in question.factuals.index:
        factual, problem = question.factuals.loc[[index]], question.problem(index)
        if question.satisfied(index):
            found = refused(count, SATISFIED)
        else:
            (outcome,) = _pool().explain(method, question.problem, factual, count, seed, limits)
            found = outcome.explanation
        claim = None if method.refuses(problem) else method.objective(problem)
        yield in_context(found, method, problem, factual), claim


def _answer(
    cell: Cell, question: Question, method: Any, identity: Mapping[str, str], plain: Mapping[str, Any], title: str
) -> None:
    """Ask the method about every factual that the cell lacks."""
    from tqdm import tqdm

    from harness.experiment import run, run_groups
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
        claim = None if plain["group"] or method.refuses(problem) else method.objective(problem)
        if claim is not None and len(question.problems) > 1:
            claim = claim.common()
        cell.start(
            meta, dataset.space, question.classifier, question.targets, claim, question.factuals, problem.equations
        )
    count, seed, jobs = plain["n_counterfactuals"], plain["seed"], plain["jobs"]
    group = plain["group"]
    seconds = plain["group_time_limit" if group else "time_limit"]
    limits = Limits(seconds, plain["fit_time_limit"], plain["memory_limit"], plain["threads"])
    with tqdm(total=len(question.factuals), desc=title, unit="factual", leave=False, disable=None) as bar:
        if group:
            run_groups(cell, question, method, group, seed, limits, _pool(), jobs, bar.update, _beside())
        else:
            run(cell, question, method, count, seed, limits, _pool(), jobs, bar.update, _beside())


def _beside() -> int:
    """How many cells the launcher runs at once on this machine; at most, where it does not say."""
    from joblib import effective_n_jobs

    launcher = HydraConfig.get().launcher
    cells = int(os.environ[CELLS]) or math.inf  # 0: it is not known how many there will be
    if (wanted := OmegaConf.select(launcher, "n_jobs")) is not None:
        return int(min(effective_n_jobs(wanted), cells))
    kept = OmegaConf.select(launcher, "ray.remote.num_cpus") or OmegaConf.select(launcher, "cpus_per_task")
    return 1 if kept is None else int(max(1, min((os.cpu_count() or 1) // kept, cells)))


def _score(cell: Cell, question: Question, metrics: list[Metric], plain: Mapping[str, Any]) -> pd.DataFrame:
    """Judge the stored answers, write them as a CSV, compute the metrics, and show all of it in MLflow."""
    from harness import check, export, groups, scoring
    from harness.store.rows import write_whole

    cell.update(scored=None)  # until all that follows is there again, whatever ends this process
    check.judge(cell)
    export.write(cell)
    if plain["group"]:
        groups.write(cell, plain["divide"])
    problems = {index: question.problem(index) for index in question.factuals.index}
    scores = scoring.score(cell, problems, metrics, plain["population"])
    write_whole(cell.path / "scores.csv", scores.to_csv())
    _track(cell, scores, plain)
    return scores


def _scores(cell: Cell) -> pd.DataFrame:
    import pandas as pd

    return pd.read_csv(cell.path / "scores.csv", index_col="factual")


def _merit(scores: pd.DataFrame, weights: Mapping[str, float]) -> float:
    """The weighted sum of means; one of a metric that no answer could be scored by counts 0."""
    from harness.core.errors import HarnessError, choices

    means = scores.mean(numeric_only=True)
    for name in weights:
        if name not in means:
            raise HarnessError(f"optimise has {name!r}, which is no score of this run; {choices(name, means.index)}.")
    return float(sum(weight * means[name] for name, weight in weights.items() if not math.isnan(means[name])))


def _line(cell: Cell, scores: pd.DataFrame, state: str) -> str:
    from harness import scoring

    returned = scores["returned"].sum()
    if not returned and (why := scoring.refusal(cell)) is not None:
        return f"{state}: UNSUPPORTED, {why}"
    validity = f"{scores['valid'].sum() / returned:.2f}" if returned else "–"
    said = f"{state}: {len(scores)} factuals, coverage {scores['coverage'].mean():.2f}, validity {validity}, "
    if "group/points" not in scores:
        return f"{said}median {scores['seconds'].median():.3f} s"
    points, gap = scores["group/points"].mean(), scores["group/gap"].mean()
    proof = "no bound" if math.isnan(gap) else f"gap {gap:g}"
    return f"{said}{points:g} points a group, {proof}, {scores['group/seconds'].mean():.3f} s a group"


def _track(cell: Cell, scores: pd.DataFrame, plain: Mapping[str, Any]) -> None:
    import pandas as pd

    from harness import export
    from harness.explain import changes
    from harness.scoring import COUNTS, summarise
    from harness.store import mlflow as tracking

    logged: dict[str, float] = {}
    for name, row in summarise(scores).iterrows():
        key = f"run/{name}" if name in COUNTS else str(name)
        logged |= {key: row["mean"], f"{key}_se": row["se"]}
    logged["run/median_seconds"] = scores["seconds"].median()
    verdicts = {(v["factual"], v["ce"]): v["verdict"] for v in cell.verdicts()}
    known = cell.factuals()[0].to_dict("index")
    answers = pd.DataFrame(
        {
            "factual": row["factual"],
            "ce": row["ce"],
            "status": row["status"],
            "verdict": verdicts[row["factual"], row["ce"]],
            "changes": changes(known[row["factual"]], row["row"] or {}),
            **(row["row"] or {}),
        }
        for row in cell.rows()
    )
    columns = {f.name: COLUMN_TYPES.get(f.kind.name, "string") for f in cell.space.features}
    meta = cell.meta
    names = {key: meta[key] for key in ("dataset", "model", "method")}
    tags = {**names, "sweep": os.environ[SWEEP], "experiment": meta["experiment"], "fingerprint": meta["fingerprint"]}
    hidden = {"dataset", "metrics", "force", "rescore", "output_dir"}
    params = {**names, **_flat({key: value for key, value in plain.items() if key not in hidden})}
    tracking.log_cell(
        meta["experiment"],
        Path.cwd(),
        "/".join(names.values()),
        tags,
        params,
        logged,
        answers.astype(object),
        plain,
        tracking.Data(meta["dataset"], meta["data_sha256"], columns, str(plain["factuals"])),
        [cell.path / export.NAME],
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
    from harness.core.errors import HarnessError

    for key in ("n_factuals", "n_counterfactuals", "jobs", "threads"):
        if not isinstance(plain[key], int) or plain[key] < 1:
            raise HarnessError(f"{key}={plain[key]} does not fit; give a whole number of at least 1.")
    if not isinstance(plain["seed"], int) or plain["seed"] < 0:
        raise HarnessError(f"seed={plain['seed']} does not fit; give a whole number of at least 0.")
    limit = plain["memory_limit"]
    if limit is not None and (not isinstance(limit, int | float) or limit <= 0):
        raise HarnessError(f"memory_limit={limit} does not fit; give a number of gibibytes above 0, or null for none.")
    picked = plain["factuals_seed"]
    if picked is not None and (not isinstance(picked, int) or picked < 0):
        raise HarnessError(f"factuals_seed={picked} does not fit; give a whole number from 0, or null.")
    if plain["group"] is not None and not isinstance(plain["group"], bool | str):
        raise HarnessError(f"group={plain['group']} does not fit; give true, the name of a feature, or null for none.")
    if plain["group"] and plain["n_counterfactuals"] != 1:
        raise HarnessError("a factual of a group has one counterfactual; leave n_counterfactuals at 1, or group out.")
    for key in ("time_limit", "fit_time_limit", "group_time_limit"):
        if not isinstance(plain[key], int | float) or plain[key] <= 0:
            raise HarnessError(f"{key}={plain[key]} does not fit; give a number of seconds above 0.")
    weights = plain["optimise"]
    if not isinstance(weights, Mapping) or not all(isinstance(w, int | float) for w in weights.values()):
        raise HarnessError(f"optimise={weights} does not fit; give a number to each score, such as {{coverage: 1}}.")
    if plain["population"] not in {"valid", "returned"}:
        raise HarnessError(f"population={plain['population']} does not exist; allowed: valid, returned.")


def _key(*parts: Any) -> str:
    return json.dumps(parts, sort_keys=False)


def _shown(config: DictConfig, choice: str) -> str:
    """The dataset's name: the choice of ``conf/dataset``, or that of the user's own file; and its way to intervals."""
    from harness.data.own import shown_name

    path = OmegaConf.select(config, "dataset.path")
    name = shown_name(path, OmegaConf.select(config, "dataset.name")) if path else choice
    way = OmegaConf.select(config, "dataset.discretise")
    return f"{name}_{way}" if isinstance(way, str) else name


def _settle(plain: dict[str, Any]) -> dict[str, str]:
    """Put names as they are; and of a user's own CSV what the YAML beside it says, so that all of it is on record.

    Returns where attributes of its features were set.
    """
    from harness.data.own import settle

    plain["features"] = plain_names(plain["features"])
    if "causality" in plain["dataset"]:
        plain["dataset"]["causality"] = plain_names(plain["dataset"]["causality"])
    if "path" not in plain["dataset"]:
        return {}
    plain["dataset"], origins = settle(plain["dataset"], plain["features"], plain["desired"])
    plain["features"] = {}  # they are in the dataset's now
    return origins


def _introduce(dataset: Dataset, origins: Mapping[str, str], folder: Path) -> None:
    """Tell what was inferred of a user's own CSV: once a sweep, whatever processes its cells run in."""
    from harness.data.own import introduce

    if not dataset.reasons:
        return
    text = introduce(dataset, origins)
    told = folder / "sweeps" / f"{os.environ[SWEEP]}-{hashlib.sha256(text.encode()).hexdigest()[:8]}.txt"
    told.parent.mkdir(parents=True, exist_ok=True)
    with contextlib.suppress(FileExistsError), told.open("x", encoding="utf-8") as file:
        file.write(text)
        log.info("%s", text)


@functools.lru_cache(maxsize=4)
def _dataset(key: str) -> Dataset:
    from harness.data import load_dataset
    from harness.data.own import load_settled

    name, dataset, split, features = json.loads(key)
    if "path" in dataset:
        return load_settled(dataset, split)
    return load_dataset(**{"name": name, **dataset}, split=split, overrides=features)


@functools.lru_cache(maxsize=16)
def _classifier(key: str, dataset: Dataset) -> Classifier:
    from sklearn.base import ClassifierMixin, RegressorMixin

    from harness.core.errors import HarnessError
    from harness.models import files as models

    name, model = json.loads(key)
    if "path" in model:
        return _own_model(name, model, dataset)
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
        estimator,
        dataset.space,
        train,
        labels,
        dataset.classes,
        model.get("threshold"),
        _cache() / "models",
        model.get("decimals"),
    )


def _own_model(name: str, model: Mapping[str, Any], dataset: Dataset) -> Classifier:
    """The fitted model of a file."""
    from harness.core.errors import HarnessError
    from harness.models import files as models

    if model["path"] in {None, "???"}:
        raise HarnessError(f"model={name} needs a file with a fitted model; set model.path=model.skops.")
    return models.from_file(
        model["path"],
        dataset.space,
        dataset.frame,
        dataset.classes,
        name=f"dataset={dataset.name}",
        trust=bool(model.get("trust")),
        threshold=model.get("threshold"),
        names=model.get("classes"),
    )


def _referring(question: Question, which: str | int) -> Question:
    """The question with the rows that hulls and neighbours are of: ``train``, ``all``, or the first so many of all."""
    from dataclasses import replace

    from harness.core.errors import HarnessError

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

    from harness.core.errors import HarnessError, choices

    for feature, entry in (plain["dataset"].get("causality") or {}).items():
        if not isinstance(entry, Mapping) or not isinstance(name := entry.get("learn"), str):
            continue
        if name not in (known := _models(RegressorMixin)):
            raise HarnessError(f"the equation of {feature} cannot be learnt by {name!r}; {choices(name, known)}.")
        chosen = OmegaConf.merge(OmegaConf.load(known[name]), {"seed": plain["seed"]})
        entry["learn"] = OmegaConf.to_container(chosen, resolve=True)["estimator"]  # type: ignore[index, call-overload]


@functools.lru_cache(maxsize=4)
def _equations(dataset: Dataset) -> tuple[Equation, ...]:
    from harness.models.equations import equations

    described = {
        feature: {**entry, "learn": _instantiate(OmegaConf.create(entry["learn"]), f"the equation of {feature}")}
        if entry and "learn" in entry
        else entry
        for feature, entry in dataset.causality.items()
    }
    return equations(dataset.space, dataset.frame.iloc[dataset.train], described, _cache() / "models")


def _models(sort: type) -> dict[str, Path]:
    """The choices of model whose estimator is of a sort, by name, and the file of each; those of plug-ins last."""
    from hydra.utils import get_class

    found: dict[str, Path] = {}
    for path in [path for folder in _folders() for path in sorted((folder / "model").glob("*.yaml"))]:
        with contextlib.suppress(Exception):  # a broken choice is told when it is chosen
            if issubclass(get_class(OmegaConf.load(path).estimator._target_), sort):
                found.setdefault(path.stem, path)
    return found


def _cache() -> Path:
    """Where trained models are kept between runs."""
    import pooch

    return Path(os.environ.get("CE_HARNESS_CACHE") or pooch.os_cache("ce-harness"))


def _instantiate(config: DictConfig, what: str) -> Any:
    from hydra.errors import InstantiationException
    from hydra.utils import instantiate

    from harness.core.errors import HarnessError

    try:
        return instantiate(config, _convert_="all")
    except InstantiationException as fault:
        cause = fault.__cause__ or fault
        raise HarnessError(f"{what} cannot be set up: {' '.join(str(cause).splitlines()[:2])}") from fault


def _metrics(config: Mapping[str, Any]) -> list[Metric]:
    from hydra.utils import get_object

    from harness.core.errors import HarnessError

    found = []
    for path in config["names"]:
        try:
            found.append(get_object(path))
        except Exception as fault:
            why = " ".join(str(fault).splitlines()[:2])
            raise HarnessError(
                f"there is no metric {path!r} ({why}); name functions such as metrics.proximity.l1."
            ) from fault
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
    if (whole := question.classifier.whole) is not None:  # wherever the file lies
        asked["model"] = {**asked["model"], "path": whole.sha256}
    asked["reference"] = plain["reference"]
    if plain["group"]:
        asked |= {key: plain[key] for key in ("group", "group_time_limit")}
    asked["factuals"] = [str(index) for index in question.factuals.index]
    asked["rows"] = hashlib.sha256(question.factuals.to_csv().encode()).hexdigest()
    asked["targets"] = [repr(question.targets[index]) for index in question.factuals.index]
    asked["data"] = dataset.sha256
    digest = hashlib.sha256(json.dumps(asked, sort_keys=True, default=str).encode())
    digest.update(_source_digest(sys.modules[type(method).__module__].__file__ or ""))
    return digest.hexdigest()


@functools.lru_cache(maxsize=8)
def _source_digest(module: str) -> bytes:
    """A hash of the code that answers depend on: the methods, and the harness's part in asking."""
    digest = hashlib.sha256()
    folders = [PACKAGE / name for name in SOURCES] + [PACKAGE.parent / "methods"]
    for root in folders:
        for path in sorted(root.rglob("*.py")) if root.is_dir() else [root] if root.is_file() else []:
            digest.update(path.read_bytes())
    for path in plugins.sources(Path(module)):
        digest.update(path.read_bytes())
    return digest.digest()


def _environment(plain: Mapping[str, Any]) -> dict[str, Any]:
    """What a reader needs to judge a timing and to repeat a run."""
    import psutil

    return {**_machine(), "threads": plain["threads"], "jobs": plain["jobs"], "load": psutil.getloadavg()[0]}


@functools.cache
def _machine() -> dict[str, Any]:
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
        "optbinning",
        "torch",
        "numba",
    )
    return {
        "python": platform.python_version(),
        "platform": platform.platform(),
        "cpu": _cpu(),
        "cores": psutil.cpu_count(),
        "memory_gib": round(psutil.virtual_memory().total / 2**30, 1),
        "packages": {package: installed(package) for package in packages},
    }


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor()
