"""What every method answered on every model: the table of an experiment that follows no paper."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from harness.evaluation import scoring
from harness.reports.markup import DASH, markdown, number
from harness.store.run import StoredRun

MEANS = {
    "actionability/violations": "violations",
    "robustness/certified_radius_linf": "certified radius",
    "robustness/invalidation_rate": "invalidation rate",
}  # by metric, its column, where it was measured
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
        """Markdown without a heading, and every number, one row a cell."""
        metas = [cell.meta for cell in found]
        lines = pd.DataFrame([_line(cell, meta) for cell, meta in zip(found, metas, strict=True)])
        several = len(set(lines["dataset"])) > 1
        blocks = []
        for dataset, block in lines.groupby("dataset", sort=False):
            objectives = _compared([(found[place], metas[place]) for place in block.index])
            blocks.append((f"## {dataset}\n\n" if several else "") + _block(block, objectives))
        return "\n".join([*blocks, NOTES]) + "\n", lines


def _line(cell: StoredRun, meta: Mapping[str, Any]) -> dict[str, Any]:
    scores = pd.read_csv(cell.path / "scores.csv", index_col="factual")
    return {
        **{name: meta[name] for name in ("dataset", "model", "method")},
        "refused": scoring.refusal(cell) is not None,
        "valid": int(scores["valid"].sum()),
        "asked": int(scores["requested"].sum()),
        "seconds": scores["seconds"].median(),
        "setup_seconds": scores["fit_seconds"].max(),
        **{name: scores[metric].mean() for metric, name in MEANS.items() if metric in scores},
    }


def _compared(found: Sequence[tuple[StoredRun, Mapping[str, Any]]]) -> dict[str, float]:
    """By method, its mean objective over the counterfactuals that all methods which minimise the same one have."""
    groups: dict[str, dict[str, dict[Any, float]]] = {}
    for cell, meta in found:
        if (objective := meta["objective"]) is None:
            continue
        values = groups.setdefault(json.dumps(objective), {}).setdefault(meta["method"], {})
        values |= {
            (meta["model"], row["factual"], row["ce"]): row["objective"]
            for row in cell.rows()
            if row["row"] is not None and row["objective"] is not None
        }
    means: dict[str, float] = {}
    for claims in groups.values():
        common = set.intersection(*map(set, claims.values())) if len(claims) > 1 else set()
        means |= {name: sum(values[key] for key in common) / len(common) for name, values in claims.items() if common}
    return means


def _block(lines: pd.DataFrame, objectives: Mapping[str, float]) -> str:
    models = list(dict.fromkeys(lines["model"]))
    means = [name for name in MEANS.values() if name in lines]
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
