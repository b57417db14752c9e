"""What every method answered on every model: the table of an experiment that follows no paper."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from harness.core.metric import Metric
from harness.evaluation import scoring
from harness.reports.markup import DASH, markdown, number
from harness.reports.stored import columns
from harness.store.run import StoredRun

OWN = ("dataset", "model", "method", "refused", "valid", "asked", "seconds", "setup_seconds", "set-up s", "objective")
NOTES = (
    "Valid counterfactuals / asked for, median seconds per factual; – : the method refuses the model.\n"
    "*set-up s*: seconds before the first factual, of the slowest model; *violations*: constraints that a "
    "counterfactual breaks; *certified radius*: of the box around it that stays valid, in shares of each range; "
    "*invalidation rate*: under noise; each the mean of the models' means. *objective*: what is minimised, averaged "
    "over the counterfactuals that all methods which minimise the same have."
)


class Overview:
    """A table a dataset: methods down, models across."""

    title = "Methods by models"

    def build(self, found: Sequence[StoredRun]) -> tuple[str, pd.DataFrame]:
        """Markdown without a heading, and every number, one row a run."""
        metas, shown = [run.meta for run in found], columns(found, "overview", OWN)
        lines = pd.DataFrame([_line(run, meta, shown) for run, meta in zip(found, metas, strict=True)])
        several = len(set(lines["dataset"])) > 1
        blocks = []
        for dataset, block in lines.groupby("dataset", sort=False):
            objectives = _compared([(found[place], metas[place]) for place in block.index])
            blocks.append((f"## {dataset}\n\n" if several else "") + _block(block, [*shown], objectives))
        return "\n".join([*blocks, NOTES]) + "\n", lines


def _line(run: StoredRun, meta: Mapping[str, Any], shown: Mapping[str, Metric]) -> dict[str, Any]:
    scores = pd.read_csv(run.path / "scores.csv", index_col="factual")
    return {
        **{name: meta[name] for name in ("dataset", "model", "method")},
        "refused": scoring.refusal(run) is not None,
        "valid": int(scores["valid"].sum()),
        "asked": int(scores["requested"].sum()),
        "seconds": scores["seconds"].median(),
        "setup_seconds": scores["fit_seconds"].max(),
        **{heading: scores[metric.name].mean() for heading, metric in shown.items() if metric.name in scores},
    }


def _compared(found: Sequence[tuple[StoredRun, Mapping[str, Any]]]) -> dict[str, float]:
    """By method, its mean objective over the counterfactuals that all methods which minimise the same one have."""
    groups: dict[str, dict[str, dict[Any, float]]] = {}
    for run, meta in found:
        if meta["objective"] is None:
            continue
        minimised = json.dumps({**meta["objective"], "domain": None})
        values = groups.setdefault(minimised, {}).setdefault(meta["method"], {})
        values |= {
            (meta["model"], row["factual"], row["ce"]): row["objective"]
            for row in run.rows()
            if row["row"] is not None and row["objective"] is not None
        }
    means: dict[str, float] = {}
    for claims in groups.values():
        common = set.intersection(*map(set, claims.values())) if len(claims) > 1 else set()
        means |= {name: sum(values[key] for key in common) / len(common) for name, values in claims.items() if common}
    return means


def _block(lines: pd.DataFrame, headings: Sequence[str], objectives: Mapping[str, float]) -> str:
    models = list(dict.fromkeys(lines["model"]))
    means = [heading for heading in headings if heading in lines]
    body = []
    for method, block in lines.groupby("method", sort=False):
        texts = {row["model"]: _text(row) for row in block.to_dict("records")}
        took = block.loc[~block["refused"]]
        ends = [number(took["setup_seconds"].max(), 2), *(number(took[name].mean(), 3) for name in means)]
        ends += [f"{objectives[method]:.6g}" if method in objectives else DASH] if objectives else []
        body.append([f"`{method}`", *(texts.get(model, "") for model in models), *ends])
    head = ["method", *models, "set-up s", *means, *(["objective"] if objectives else [])]
    return markdown(head, body)


def _text(row: dict[Any, Any]) -> str:
    return DASH if row["refused"] else f"{row['valid']}/{row['asked']}, {row['seconds']:.2g} s"
