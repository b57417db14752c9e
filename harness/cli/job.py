"""One job of a sweep: a dataset, a model and a method are asked, checked, scored and logged."""

from __future__ import annotations

import fcntl
import hashlib
import json
import math
import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pandas as pd
from hydra.core.hydra_config import HydraConfig
from joblib import effective_n_jobs
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from harness.cli import build, kept_model
from harness.cli.arguments import sentence
from harness.cli.build import build_task, names_of
from harness.cli.environment import environment, machine
from harness.cli.fingerprint import fingerprint_of, scoring_code
from harness.cli.mlflow_run import log_run
from harness.cli.process import (
    CELLS,
    FULL,
    SWEEP,
    VARIED,
    log,
    results,
    settle_in,
    stopping_where_full,
    study_name,
    talk,
)
from harness.cli.progress import Progress, say_what_is_left
from harness.core.errors import HarnessError, choices
from harness.core.explanation import Status
from harness.core.method import prepare
from harness.core.metric import Metric
from harness.core.wording import SATISFIED
from harness.core.writing import write_whole
from harness.evaluation import checker, export, scoring
from harness.evaluation.contest import metric_paths, metrics_of
from harness.evaluation.pace import WHOLE, machine_of, machines_of
from harness.evaluation.study import EQUATIONS, SCORES, read_scores
from harness.execution.experiment import Workers, run, run_groups
from harness.execution.pool import Limits, Pool
from harness.execution.task import WHICH, Task
from harness.reports import groups
from harness.reports.markup import digits
from harness.store import mlflow as tracking
from harness.store.rows import read_lines
from harness.store.run import StoredRun

SAID = 100  # characters of why answers failed, in the line of a run
_told = set[str]()  # why methods refuse, of this process: in whole once


@stopping_where_full()
def run_job(config: DictConfig) -> float:
    """Do one run. The number of ``optimise`` is returned, for Hydra's optimising sweepers."""
    talk()
    settle_in(HydraConfig.get().runtime.cwd)
    names = names_of(config)
    label = _label(names)
    study = study_name(config.study, HydraConfig.get())
    settings: Any = HydraConfig.get().job
    number = 0 if OmegaConf.is_missing(settings, "num") else settings.num
    record = Path(config.output_dir) / study / "sweeps" / f"{os.environ[SWEEP]}.jsonl"
    try:
        merit, fault = _run(config, names, record, f"[{number + 1}/{os.environ[CELLS]}] ", label)
        tracking.forget_failed(study, _asked(), label)
        if fault:
            log.error("%s: %s", label, fault)
        say_what_is_left(record)
        return merit
    except (HarnessError, OmegaConfBaseException) as fault:
        why = str(fault) if isinstance(fault, HarnessError) else sentence(fault)
        _fail(record, label, names, study, why)
        log.error("%s: %s", label, why)
    except Exception as fault:
        if isinstance(fault, OSError) and fault.errno in FULL:
            raise
        _fail(record, label, names, study, f"{type(fault).__name__}: {fault}")
        log.exception("%s: unexpected %s", label, type(fault).__name__)
    return math.nan


def _label(names: Mapping[str, str]) -> str:
    """A run's name in the sweep's lines, with what else tells it from the others."""
    varied = [key for key in os.environ.get(VARIED, "").split(",") if key and key not in names]
    given = dict(text.lstrip("+").split("=", 1) for text in HydraConfig.get().overrides.task if "=" in text)
    told = ", ".join(f"{key.removeprefix('method.')}={given[key]}" for key in varied if key in given)
    return "/".join(names.values()) + (f" ({told})" if told else "")


def _note(record: Path, **line: Any) -> None:
    record.parent.mkdir(parents=True, exist_ok=True)
    with record.open("a") as file:
        with suppress(OSError):  # where there are no locks; a server's disk may lose one of two lines at once
            fcntl.flock(file, fcntl.LOCK_EX)
        file.write(json.dumps(line) + "\n")


def _fail(record: Path, label: str, names: Mapping[str, str], study: str, why: str) -> None:
    """Note that a run failed, for the end of the sweep and for MLflow's page."""
    _note(record, label=label, state="failed", message=why, asked=_asked())
    tracking.log_failed(study, Path.cwd(), _asked(), label, names, why)


def _asked() -> str:
    """What the command asks of this run, as a hash, however a sweep is narrowed and in whatever order it is written."""
    given = (text for text in HydraConfig.get().overrides.task if not text.startswith(("force=", "rescore=")))
    return hashlib.sha256("\n".join(sorted(given)).encode()).hexdigest()[:32]


def _run(config: DictConfig, names: dict[str, str], record: Path, place: str, label: str) -> tuple[float, str]:
    """Ask and score. Returns the number that a sweep optimises, and what a metric failed of; else empty."""
    title = f"{place}{label}"
    folder = record.parents[1]
    plain, task, method = build_task(config, names, folder)
    if task.dataset.space.priced:
        plain["metrics"]["names"] += plain["metrics"].get("priced", [])
    metrics = build.metrics_of(plain["metrics"])
    if all(feature.actionability == "immutable" for feature in task.dataset.space.features):
        log.warning("%s: every feature of %s is immutable, so there is no counterfactual.", title, task.dataset.name)
    fingerprint = fingerprint_of(plain, task, method)
    trusted = bool(plain["model"].get("trust"))
    stored = StoredRun(folder / "answers" / f"{'-'.join(names.values())}-{fingerprint[:8]}", trusted)
    if plain["rescore"] and not stored.started:
        raise HarnessError(f"there are no stored answers for {title}; run it once without rescore=true.")
    known = list(read_scores(stored)) if (stored.path / SCORES).is_file() else []
    _check_weights(plain["optimise"], [*scoring.columns_of(metrics, grouped=bool(plain["group"])), *known])
    identity = {**names, "experiment": folder.name, "fingerprint": fingerprint}
    with stored.locked():
        state, fault = _brought_up_to_date(stored, task, method, metrics, identity, plain, record, title)
        _note(record, cell=str(stored.path), label=label, state=state, fault=fault, asked=_asked())
    scores = read_scores(stored)
    log.info("%s  %s", title, _line(stored, scores, state, plain["n_factuals"] if plain["factuals"] in WHICH else 0))
    if plain["group"] and os.environ[CELLS] == "1":
        results.info("\n%s", (stored.path / groups.REPORT).read_text())
    return _merit(scores, plain["optimise"]), fault


def _brought_up_to_date(
    stored: StoredRun, task: Task, method: Any, metrics: list[Metric], identity: Mapping[str, Any],
    plain: Mapping[str, Any], record: Path, title: str,
) -> tuple[str, str]:  # fmt: skip
    """Ask, judge, score and log what is not there yet; returns what became of the run, and what a metric failed of."""
    state, cell = "rescored" if plain["rescore"] else "done", str(stored.path)
    if plain["force"] and not plain["rescore"] and cell not in {line.get("cell") for line in read_lines(record)}:
        stored.reset()  # once a sweep, whichever of its seeds comes first
    begun = stored.started
    if stored.done and not plain["rescore"]:
        state = "skipped"
    elif not plain["rescore"]:
        identity = {**identity, "gives": getattr(method, "gives", "several"), "sees": _seen(method, plain)}
        earlier = len(stored.answered()) if begun else 0
        with Progress(record, title, len(task.factuals), earlier) as bar:
            _answer(stored, task, method, identity, plain, bar.update)
    scored = {"metrics": {"names": _names(stored, plain["metrics"]["names"])}, "population": plain["population"]}
    metrics_of(stored)  # imports them
    scored |= {"code": scoring_code(scored["metrics"]["names"])}
    scored |= {"divide": plain["divide"]} if plain["group"] else {}
    fault = None
    if state != "skipped" or stored.meta.get("scored") != scored or not stored.meta.get("logged", True):
        if begun and state != "done":
            kept_model.check_same(stored, task.classifier, task.dataset)
        fault = _score(stored, task, metrics, plain, scored)
    elif identity["fingerprint"] not in tracking.logged(identity["experiment"]):  # of an archive, or logged elsewhere
        log_run(stored, plain)
    return state, "" if fault is None else str(fault)


def _seen(method: Any, plain: Mapping[str, Any]) -> list[str]:
    """What a method sees that others do not: settings, or in words."""
    beyond = plain["reference"] != "train" and getattr(method, "sees_reference", False)
    rows = [f"reference={plain['reference']}"] if beyond else []
    return [*rows, *[EQUATIONS] * getattr(method, "sees_equations", False)]


def _names(stored: StoredRun, wanted: Sequence[str]) -> list[str]:
    """The metrics that a run is to have: those that it was scored by, and those that are wanted now."""
    return list(dict.fromkeys([*metric_paths(stored), *wanted]))


def _answer(
    stored: StoredRun,
    task: Task,
    method: Any,
    identity: Mapping[str, Any],
    plain: Mapping[str, Any],
    progress: Callable[[int], None],
) -> None:
    """Ask the method about every factual that has none stored yet."""
    if not stored.started:
        dataset = task.dataset
        meta = {
            **identity,
            "n_counterfactuals": plain["n_counterfactuals"],
            "seed": plain["seed"],
            "data_sha256": dataset.sha256,
            "notices": dataset.notices,
            "config": plain,
            "environment": environment(plain),
        }
        equations = next(iter(task.problems.values())).equations
        stored.start(meta, dataset.space, task.classifier, task.targets, None, task.factuals, equations)
    else:
        kept_model.check_same(stored, task.classifier, task.dataset)
        _go_on_here(stored)
    count, seed, group = plain["n_counterfactuals"], plain["seed"], plain["group"]
    seconds = plain["group_time_limit" if group else "time_limit"]
    limits = Limits(seconds, plain["fit_time_limit"], plain["memory_limit"], plain["threads"])
    workers = Workers(Pool(plain["first_use"]), limits, plain["jobs"], _beside())
    prepare(method)
    if group:
        run_groups(stored, task, method, group, seed, workers, progress)
    else:
        run(stored, task, method, count, seed, workers, progress, plain["satisfied"])


def _go_on_here(stored: StoredRun) -> None:
    """Note that a run which was begun on another machine is of this one, too: its seconds are of neither alone."""
    if (here := machine_of({"environment": machine()})) not in machines_of(stored.meta):
        stored.update(also_on=[*stored.meta.get("also_on", ()), here])


def _beside() -> int:
    """How many runs the launcher has at once on this machine; the most it may, where it does not say."""
    launcher = HydraConfig.get().launcher
    runs = int(os.environ[CELLS]) or math.inf  # 0: it is not known how many there will be
    if (wanted := OmegaConf.select(launcher, "n_jobs")) is not None:
        return int(min(effective_n_jobs(wanted), runs))
    kept = OmegaConf.select(launcher, "ray.remote.num_cpus") or OmegaConf.select(launcher, "cpus_per_task")
    return 1 if kept is None else int(max(1, min((os.cpu_count() or 1) // kept, runs)))


def _score(
    stored: StoredRun, task: Task, metrics: list[Metric], plain: Mapping[str, Any], scored: Mapping[str, Any]
) -> scoring.MetricError | None:
    """Judge the stored answers, write them as a CSV, compute the metrics, and show all of it in MLflow.

    Earlier metrics stay. One that fails is returned, and costs its column alone: there stays the earlier one, if it is
    of the same population and code.
    """
    before = read_scores(stored) if (stored.path / SCORES).is_file() else pd.DataFrame()
    earlier, known = metrics_of(stored), stored.meta.get("scored") or {}
    unfinished = {**known, "metrics": {"names": [*metric_paths(stored)]}, "unfinished": True}
    stored.update(scored=unfinished)  # until all that follows is there again, whatever ends this process
    checker.judge(stored)
    export.write(stored, export.Form(**plain["export"]))
    if plain["group"]:
        groups.write(stored, plain["divide"])
    problems = {index: task.problem(index) for index in task.factuals.index}
    wanted = list({metric.name: metric for metric in (*earlier.values(), *metrics)}.values())
    fault = None
    try:
        scores = scoring.score(stored, problems, wanted, plain["population"])
    except scoring.MetricError as failed:
        scores, fault = failed.scores, failed
    broken = set() if fault is None or known.get("code") == scored["code"] else set(fault.names)
    same = known.get("population") == plain["population"]
    kept = [name for name in before if same and "/" in name and name not in {*scores, *broken}]
    scores = scores.join(before[kept]) if kept else scores
    write_whole(stored.path / SCORES, scores.to_csv())
    failing = set() if fault is None else set(fault.names) - {*scores}  # of which there is no earlier column either
    paths = dict(zip(plain["metrics"]["names"], metrics, strict=True))
    names = [path for path in scored["metrics"]["names"] if path not in paths or paths[path].name not in failing]
    retraining = task.classifier.retraining
    named = {"retrained": dict(retraining.names)} if retraining is not None and retraining.names else {}
    stored.update(scored={**scored, "metrics": {"names": names}}, logged=False, **named)
    log_run(stored, plain)
    stored.update(logged=True)
    return fault


def _check_weights(weights: Iterable[str], known: Sequence[str]) -> None:
    """Refuse a weight of a score that a run has not."""
    for name in weights:
        if name not in known:
            raise HarnessError(f"optimise has {name!r}, which is no score of this run; {choices(name, known)}.")


def _merit(scores: pd.DataFrame, weights: Mapping[str, float]) -> float:
    """The weighted sum of means. NaN without questions.

    Where no answer could be scored by a metric: 0 of one whose weight is positive, and -inf in all of one whose weight
    is negative, or finding nothing would be best. Questions of which it is proven that no counterfactual exists are
    left out.
    """
    scores = scores[~(scores["impossible"] > 0)]
    if scores.empty:
        return math.nan
    means = scores.mean(numeric_only=True)
    _check_weights(weights, list(means.index))
    lacking = {name for name in weights if math.isnan(means[name])}
    if any(weights[name] < 0 for name in lacking):
        return -math.inf
    return float(sum(weight * means[name] for name, weight in weights.items() if name not in lacking))


def _line(stored: StoredRun, scores: pd.DataFrame, state: str, wanted: int) -> str:
    """How a run went. ``wanted``: how many factuals the settings ask for; there may be fewer."""
    returned = scores["returned"].sum()
    if not returned and (why := scoring.refusal(stored)) is not None:
        brief = why.partition("; ")[0] if why in _told else why
        _told.add(why)
        return f"{state}: UNSUPPORTED, {brief}"
    validity = f"{scores['valid'].sum() / returned:.2f}" if returned else "–"
    asked = f" (asked for {wanted}, there are {len(scores)})" if len(scores) < wanted else ""
    absent = scores["impossible"] > 0
    asked += f", none exists for {absent.sum()}" if absent.any() else ""
    rows = stored.rows()
    if alone := {row["factual"] for row in rows if scoring.left_out(row)}:
        asked += f", {len(alone)} left out ({SATISFIED})"
    text, scores = f"{state}: {len(scores)} factuals{asked}", scores[~absent]
    if scores.empty:
        return text
    text += f", coverage {scores['coverage'].mean():.2f}, validity {validity}, "
    share = math.nan if state == "skipped" else scoring.processor_share(rows)
    slow = [f"with {share:.0%} of a processor (something else took it, or the method waited)"] if share < WHOLE else []
    if "group/points" not in scores:
        failed = Counter(scoring.reason(row) for row in rows if row["status"] == Status.FAILED)
        said = [f"{failed.total()} answers failed: {why[:SAID]}" for why, _ in failed.most_common(1)]
        return ", ".join([f"{text}median {digits(scores['seconds'].median(), 2)} s", *slow, *said])
    groups = scoring.group_table(stored)
    points, gap = groups["points"].mean(), groups["gap"].mean()
    proof = "no bound" if math.isnan(gap) else f"gap {gap:g}"
    return ", ".join([f"{text}{points:g} points a group, {proof}, {groups['seconds'].mean():.3f} s a group", *slow])
