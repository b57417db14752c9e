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
from harness.evaluation.scoring import COUNTS, summarise
from harness.store import mlflow as tracking
from harness.store.run import StoredRun

COLUMN_TYPES = {"CONTINUOUS": "double", "INTEGER": "long"}  # in MLflow's words; all others are texts


def log_run(stored: StoredRun, scores: pd.DataFrame, plain: Mapping[str, Any]) -> None:
    """Show a stored run in MLflow: means with their standard errors, parameters, and the counterfactuals as a table."""
    logged: dict[str, float] = {}
    for name, row in summarise(scores).iterrows():
        key = f"run/{name}" if name in COUNTS else str(name)
        logged |= {key: row["mean"], f"{key}_se": row["se"]}
    logged["run/median_seconds"] = scores["seconds"].median()
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
        logged,
        answers.astype(object),
        plain,
        tracking.Data(meta["dataset"], meta["data_sha256"], columns, str(plain["factuals"])),
        [stored.path / export.NAME],
    )


def _flat(tree: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in tree.items():
        if isinstance(value, Mapping):
            flat |= _flat(value, f"{prefix}{key}.")
        else:
            flat[f"{prefix}{key}"] = value
    return flat
