"""What tables and figures read of an experiment's stored answers."""

from __future__ import annotations

import json
import logging
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import pandas as pd

from harness.core.errors import HarnessError
from harness.core.metric import Metric, TableName
from harness.core.space import Space
from harness.core.wording import some
from harness.data import Dataset, load_dataset
from harness.evaluation import scoring
from harness.evaluation.checker import ACCEPTED
from harness.evaluation.contest import metrics_of
from harness.evaluation.study import identity, read_scores
from harness.store.run import StoredRun, stored_runs, sweep_lines

log = logging.getLogger("harness")
NAMED = 3  # runs that are listed before "and 2 more"

# Of a metric's docstring: which way is better stands beside it, and of which answers it is follows.
ELSEWHERE = re.compile(r",? over (?:valid )?answers\b(?! and)|[,;] (?:lower|higher) is better\b|`")

PACKAGE = Path(__file__).parents[1]
_IN_CLONE = PACKAGE.parent / "results" / "published"
PUBLISHED = _IN_CLONE if _IN_CLONE.is_dir() else PACKAGE / "published"  # there in a wheel


def published(file: str, number: int | None = None, **options: Any) -> pd.DataFrame:
    """The numbers in a file of published ones: of a file that holds several tables, those of table ``number``."""
    lines = pd.read_csv(PUBLISHED / file, **options)
    return lines.loc[lines["table"] == number] if number is not None and "table" in lines else lines


def records_of(lines: pd.DataFrame) -> list[dict[str, Any]]:
    """Rows of a frame as mappings by text."""
    return [{str(name): value for name, value in row.items()} for row in lines.to_dict("records")]


def returned(run: StoredRun) -> pd.DataFrame:
    """Scores as the CE-OCL tables have them: over every counterfactual a method returned, invalid ones included.

    Each factual's score is rounded to two decimals before any mean is taken; factuals without an answer are left out.
    """
    return scoring.score(run, scoring.stored_problems(run), list(metrics_of(run).values()), "returned").round(2)


def data_of(run: StoredRun) -> Dataset:
    """The data set that a run was asked of, read again from its files."""
    config = run.meta["config"]
    return _data(json.dumps([config["dataset"], config["split"], config["features"]]))


@lru_cache(maxsize=8)
def _data(settings: str) -> Dataset:
    dataset, split, features = json.loads(settings)
    return load_dataset(**dataset, split=split, overrides=features)


def latest(folder: Path) -> list[StoredRun]:
    """The runs of an experiment that were asked to the end and scored, failures included: of equal names, the one that
    the last sweep made or took over. The log says where others of the name have another seed, or other settings, of an
    experiment that has a paper's table or figure."""
    found = {run.path.name: run for run in stored_runs(folder)}
    labels = {name: run.label for name, run in found.items() if run.scored}
    order = [*found, *(Path(line["cell"]).name for line in sweep_lines(folder) if line["state"] != "failed")]
    last = {labels[name]: found[name] for name in order if name in labels}
    if not last:
        raise HarnessError(f"no cell under {folder} is finished; run its experiment to the end.")
    distinct = {(label, identity(found[name].meta)) for name, label in labels.items()}
    several = [label for label, count in Counter(label for label, _ in distinct).items() if count > 1]
    if several and any(run.meta["config"].get(kind) for run in last.values() for kind in ("table", "figure")):
        log.warning(
            "%s: runs of %s differ in seed or settings; tables and figures of papers show the last. Give each a "
            "study=NAME of its own.",
            *(folder, some(several, NAMED)),
        )
    return list(last.values())


def provenance(found: Sequence[StoredRun]) -> str:
    """One line that says what was run: data, versions, seed, limits, machine."""
    metas = [run.meta for run in found]
    configs = [meta["config"] for meta in metas]
    environments = [env for meta in metas if (env := meta.get("environment"))]
    packages = {f"{name} {version}" for env in environments for name, version in env["packages"].items() if version}

    def each(texts: Iterable[Any]) -> str:
        return ", ".join(dict.fromkeys(map(str, texts)))

    parts = {
        "data (sha256)": each(f"{meta['dataset']} {meta['data_sha256']}" for meta in metas),
        "seed": each(meta["seed"] for meta in metas),
        "seconds per factual": each(config["time_limit"] for config in configs if not config.get("group")),
        "seconds per group": each(config["group_time_limit"] for config in configs if config.get("group")),
        "python": each(env["python"] for env in environments),
        "packages": each(sorted(packages)),
        "code": each(env["commit"] for env in environments if env.get("commit")),
        "machine": each(f"{env['cpu']}, {env['cores']} cores, {env['threads']} thread(s)" for env in environments),
    }
    return "Run: " + "; ".join(f"{name} {text}" for name, text in parts.items() if text) + "."


def predicted(metas: Iterable[Mapping[str, Any]]) -> str:
    """The name of the column that runs are about; empty where it has none."""
    names = (meta["config"].get("dataset", {}).get("target") for meta in metas)
    return next((name for name in names if isinstance(name, str)), "")


def unsized(meta: Mapping[str, Any]) -> str:
    """The name of a run's model without its size, which follows that of its YAML."""
    size = meta["config"].get("model", {}).get("size") or {}
    return meta["model"].removesuffix("_" + "x".join(map(str, size.values())))


def taken(
    space: Space, factuals: pd.DataFrame, rows: Iterable[Mapping[str, Any]], verdicts: Iterable[Mapping[str, Any]]
) -> dict[Any, int]:
    """By factual, the number of the answer that a person would take: the nearest accepted one, or else the first."""
    points = {(row["factual"], row["ce"]): row["row"] for row in rows}
    accepted: dict[Any, list[int]] = {}
    for verdict in verdicts:
        if verdict["verdict"] == ACCEPTED and (verdict["factual"], verdict["ce"]) in points:
            accepted.setdefault(verdict["factual"], []).append(verdict["ce"])
    found = {factual: 1 for factual, _ in points} | {factual: places[0] for factual, places in accepted.items()}
    for factual, places in ((factual, places) for factual, places in accepted.items() if len(places) > 1):
        answers = space.frame(points[factual, place] for place in places)
        found[factual] = places[int(scoring.GOWER.evaluate(space, factuals.loc[[factual]], answers).argmin())]
    return found


def setting(meta: Mapping[str, Any], key: str) -> Any:
    """What names a run, or a setting of its experiment."""
    return meta[key] if key in meta else meta["config"].get(key)


def headings(metrics: Iterable[Metric], table: TableName, own: Iterable[str] = ()) -> dict[str, Metric]:
    """The metrics that a table shows, by heading, from left to right.

    Where a heading is taken, by an earlier metric or one of the table's ``own`` columns, it is the metric's full name.
    """
    taken, headed = set(own), {}
    for metric in sorted(metrics, key=lambda metric: metric.place):
        if table in metric.shown:
            heading = metric.name if metric.column in taken else metric.column
            headed[heading] = metric
            taken.add(heading)
    return headed


def measured(metric: Metric) -> str:
    """What a metric is of, by the first line of its docstring, without which way is better, and of which answers."""
    return ELSEWHERE.sub("", (metric.__doc__ or metric.name).strip().splitlines()[0].rstrip("."))


def means_of(run: StoredRun, published: pd.DataFrame) -> dict[str, dict[str, float]]:
    """Per metric, the entries of a line that come from a run."""
    scores = read_scores(run)
    ours = scoring.summarise(published)
    accepted = scoring.summarise(scores).reindex(ours.index)
    common = {"filled": scores["filled"].mean(), "factuals": len(scores)}
    return {
        str(name): {
            **{"ours": ours["mean"][name], "ours_se": ours["se"][name], "n": ours["n"][name]},
            **{f"accepted{end}": accepted[column][name] for end, column in (("", "mean"), ("_se", "se"), ("_n", "n"))},
            **common,
        }
        for name in ours.index
    }
