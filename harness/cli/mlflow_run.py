"""One run of MLflow a stored run."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from harness.cli.process import SWEEP
from harness.core.wording import changes
from harness.evaluation import export
from harness.evaluation.numbers import Numbers, numbers_of
from harness.evaluation.study import Entry, Study
from harness.store import mlflow as tracking
from harness.store.mlflow import UNNAMED
from harness.store.run import StoredRun

COLUMN_TYPES = {"CONTINUOUS": "double", "INTEGER": "long"}  # in MLflow's words; all others are texts


def log_run(stored: StoredRun, plain: Mapping[str, Any]) -> None:
    """Show a stored run in MLflow: its numbers, parameters, and the counterfactuals as a table."""
    numbers = Numbers(Study.among("", [stored]))
    (entry,) = numbers.study.entries
    verdicts = {(v["factual"], v["ce"]): v["verdict"] for v in stored.verdicts()}
    known = stored.factuals()[0].to_dict("index")
    answers = pd.DataFrame(
        {
            "factual": row["factual"],
            "ce": row["ce"],
            "status": row["status"],
            "verdict": verdicts[row["factual"], row["ce"]],
            "changes": changes(known[row["factual"]], row["row"] or {}),
            **(row["row"] or {}),
        }
        for row in stored.rows()
    )
    columns = {f.name: COLUMN_TYPES.get(f.kind.name, "string") for f in stored.space.features}
    meta = stored.meta
    names = {key: meta[key] for key in ("dataset", "model", "method")}
    tags = {**names, "sweep": os.environ[SWEEP], "experiment": meta["experiment"], "fingerprint": meta["fingerprint"]}
    hidden = {"dataset", "metrics", "force", "rescore", "output_dir"}
    params = {**names, **_flat({key: value for key, value in plain.items() if key not in hidden})}
    tracking.log_stored(
        meta["experiment"],
        Path.cwd(),
        "/".join(names.values()),
        tags,
        params,
        _logged(numbers, entry),
        answers.astype(object),
        plain,
        tracking.Data(meta["dataset"], meta["data_sha256"], columns, str(plain["factuals"])),
        [stored.path / export.NAME],
    )


def log_study(numbers: Numbers) -> None:
    """Give each run of a study its name in it, and beside its numbers those of the comparison."""
    found = {}
    for entry in numbers.study.entries:
        for meta in entry.metas:
            if meta.get("fingerprint"):
                seed = f", seed {meta['seed']}" if entry.seeds > 1 else ""
                name = f"{entry.task.replace(' / ', '/')}/{entry.method}{seed}"
                own = _logged(numbers, entry) if entry.seeds == 1 else {}
                found[meta["fingerprint"]] = name, own | _standing(numbers, entry)
    tracking.amend(numbers.study.name, found, ("rank/", "common/"))


def _logged(numbers: Numbers, entry: Entry) -> dict[str, float]:
    """An entry's numbers by name; those of the criteria by their names, too, and intervals of both and of coverage."""
    if entry.refusal is not None:
        return {}
    own = numbers_of(entry, list(numbers.metrics))
    own |= {criterion.name: own[criterion.metric] for criterion in numbers.criteria if criterion.metric in own}
    logged = {name.replace(" ", "_"): estimate.value for name, estimate in own.items()}
    for name in ("coverage", *(criterion.name for criterion in numbers.criteria)):
        if name in own:
            logged |= {f"interval/{name}_low": own[name].low, f"interval/{name}_high": own[name].high}
    return {UNNAMED.sub("_", name): value for name, value in logged.items()}


def _standing(numbers: Numbers, entry: Entry) -> dict[str, float]:
    """By criterion, the common mean and the mean normalised rank among the methods of the study."""
    logged = {}
    for criterion in numbers.criteria:
        contest = numbers.contest(entry.task, criterion)
        if contest is None or entry.refusal is not None or entry.method not in contest.values:
            continue
        logged[f"rank/{criterion.name}"] = float(contest.ranks[entry.method].mean())
        mean = contest.common.means.get(entry.method)
        if mean is not None and contest.common.enough:
            logged[f"common/{criterion.name}"] = mean.value
    return {UNNAMED.sub("_", name): value for name, value in logged.items()}


def _flat(tree: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in tree.items():
        if isinstance(value, Mapping):
            flat |= _flat(value, f"{prefix}{key}.")
        else:
            flat[f"{prefix}{key}"] = value
    return flat
