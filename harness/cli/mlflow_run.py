"""One run of MLflow a stored run."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd
from hydra.core.hydra_config import HydraConfig

from harness.cli.process import SWEEP
from harness.core.explanation import Reason
from harness.core.metric import CRITERIA
from harness.core.wording import changes, number_of, rounded_row
from harness.evaluation import export
from harness.evaluation.contest import SECONDS, Criterion
from harness.evaluation.numbers import Numbers, numbers_of
from harness.evaluation.study import FAULTS, Entry, Study, flat, identity
from harness.reports.markup import digits, share
from harness.store import mlflow as tracking
from harness.store.mlflow import HEADLINES, UNNAMED
from harness.store.run import StoredRun, stored_runs

HIDDEN = {"dataset", "metrics", "force", "rescore", "output_dir", "dry", "export"}  # of settings; config.yaml has them
PARAMETERS = (  # of settings, beside those of method and model; others are tags, so that runs differ from the first on
    "seed", "model_seed", "n_factuals", "n_counterfactuals", "time_limit",
)  # fmt: skip
COLUMN_TYPES = {"CONTINUOUS": "double", "INTEGER": "long"}  # in MLflow's words; all others are texts


def log_run(stored: StoredRun, plain: Mapping[str, Any]) -> None:
    """Show a stored run in MLflow: its numbers, parameters, and the counterfactuals as a table."""
    numbers = Numbers(Study.among("", [stored]))
    (entry,) = numbers.study.entries
    verdicts = {(v["factual"], v["ce"]): v["verdict"] for v in stored.verdicts()}
    known, features = stored.factuals()[0].to_dict("index"), stored.space.features
    heads, rows = export.unused(("factual", "ce", "status", "verdict", "changes"), stored.space.names), []
    for row in stored.rows():
        place, values = (row["factual"], row["ce"]), row["row"] or {}
        moved = changes(features, own := known[row["factual"]], rounded_row(stored.space, own, values))
        told = (*place, row["status"], verdicts[place], moved)
        rows.append({**dict(zip(heads, told, strict=True)), **values})
    answers = pd.DataFrame(rows)
    columns = {f.name: COLUMN_TYPES.get(f.kind.name, "string") for f in features}
    meta = stored.meta
    names = {key: meta[key] for key in ("dataset", "model", "method")}
    tags = {**names, "sweep": os.environ[SWEEP], "experiment": meta["experiment"], "fingerprint": meta["fingerprint"]}
    settings = dict(flat({key: value for key, value in plain.items() if key not in HIDDEN}))
    params = dict(names)
    params |= {key: settings[key] for key in settings if key in PARAMETERS or key.startswith(("method.", "model."))}
    tags["state"] = "answered" if entry.refusal is None else "refused"
    tags |= {f"setting.{key}": str(value) for key, value in settings.items() if key not in params}
    command = shlex.join(["python", "-m", "harness", *HydraConfig.get().overrides.task])
    tags |= {"mlflow.source.name": command, "mlflow.source.type": "LOCAL", "mlflow.note.content": _note(entry)}
    tracking.log_stored(
        meta["experiment"],
        Path.cwd(),
        tracking.Shown("/".join(names.values()), tags, params, _logged(numbers, entry)),
        answers.astype(object),
        plain,
        tracking.Data(meta["dataset"], meta["data_sha256"], columns, str(plain["factuals"])),
        [path for path in (stored.path / export.NAME, stored.path / export.SHEET) if path.is_file()],
    )


def log_study(numbers: Numbers, folder: Path) -> None:
    """Give each run of a study its name in it, and beside its numbers those of the comparison.

    Runs of its folder that others took the place of go to MLflow's trash: they would stand beside these as equals. What
    another process is asking, with other settings, stays.
    """
    found, asked = {}, set()
    for entry in numbers.study.entries:
        for part in entry.of_seeds:
            (meta,) = part.metas
            asked.add(identity(meta))
            if meta.get("fingerprint"):
                seed = f", seed {meta['seed']}" if entry.seeds > 1 else ""
                name = f"{entry.task.replace(' / ', '/')}/{entry.method}{seed}"
                pooled = f" Ranks and common means are of all {entry.seeds} seeds together." if entry.seeds > 1 else ""
                numbers_of_seed = _logged(numbers, part) | _standing(numbers, entry)
                found[meta["fingerprint"]] = name, _note(part) + pooled, numbers_of_seed
    metas = (run.meta for run in stored_runs(folder))
    earlier = {str(meta.get("fingerprint")) for meta in metas if identity(meta) in asked} - {*found}
    tracking.amend(numbers.study.name, found, earlier, ("rank/", "common/", "n/common_"))


def _note(entry: Entry) -> str:
    """A run in a sentence."""
    if entry.refusal is not None:
        return f"**{entry.method}** refuses {entry.task}: {entry.refusal}"
    absent = f", none exists for {entry.impossible}" if entry.impossible else ""
    shares = f"coverage {share(entry.coverage.value)}, validity {share(entry.validity)}"
    text = f"**{entry.method}** on {entry.task}, {number_of(len(entry.table), 'question')}{absent}: {shares}"
    text += f", median {digits(entry.spent())} s."
    return f"{text} It sees what others do not: {', '.join(entry.sees)}." if entry.sees else text


def _logged(numbers: Numbers, entry: Entry) -> dict[str, float]:
    """An entry's numbers by name, intervals and questions of coverage and of criteria, and how missing answers ended.

    The first that one looks for are without a family; the five criteria have both their names and the metrics'.
    """
    if entry.refusal is not None:
        return {}
    own = numbers_of(entry, list(numbers.metrics))
    named = {"coverage": own["coverage"]}
    named |= {_key(criterion): own[criterion.metric] for criterion in numbers.criteria if criterion.metric in own}
    own |= {name: estimate for name, estimate in named.items() if name in CRITERIA}
    logged = {_family(name): estimate.value for name, estimate in own.items()}
    for name, estimate in named.items():
        logged |= {f"interval/{name}_low": estimate.low, f"interval/{name}_high": estimate.high}
        logged[f"n/{name}"] = estimate.n
    logged |= {f"n/{name}": own[name].n for name in ("cpu_seconds", "model_seconds") if name in own}
    ended = entry.counted("ended")
    logged |= {f"ended/{reason}".replace(" ", "_"): float(ended[reason]) for reason in Reason}
    return {UNNAMED.sub("_", name): value for name, value in logged.items()}


def _family(name: str) -> str:
    """A number's name with a family before it, as MLflow groups charts, unless it is among the first ones."""
    family = "" if "/" in name or name in HEADLINES else "faults/" if name in FAULTS else "more/"
    return family + name.replace(" ", "_")


def _key(criterion: Criterion) -> str:
    """A criterion's name; of a further metric its own, as MLflow takes no Δ of a heading."""
    named = criterion.name in (*CRITERIA, SECONDS)
    return criterion.name if named else criterion.metric.replace("/", "_")


def _standing(numbers: Numbers, entry: Entry) -> dict[str, float]:
    """By criterion, common mean, its questions and mean normalised rank among the methods of the study."""
    compared = numbers.compared(entry)
    lines = {_key(c): compared[c.metric] for c in numbers.criteria if c.metric in compared}
    return {
        UNNAMED.sub("_", f"{family}{name}"): float(line[key])
        for name, line in lines.items()
        for key, family in (("rank", "rank/"), ("common", "common/"), ("common_n", "n/common_"))
        if key in line
    }
