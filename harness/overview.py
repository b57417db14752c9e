"""What every method answered on every model: the table of an experiment that follows no paper."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from harness import scoring
from harness.answers import Cell
from harness.tables import DASH, markdown, number

BROKEN = "actionability/violations"
NOTES = (
    "Valid counterfactuals / asked for, median seconds per factual; – : the method refuses the model.\n"
    "*set-up s*: seconds before the first factual, of the slowest model; *violations*: constraints that a "
    "counterfactual breaks, averaged over all; *objective*: what is minimised, averaged over the counterfactuals "
    "that all methods which minimise the same have."
)


class Overview:
    """A table a dataset: methods down, models across."""

    title = "Methods by models"

    def build(self, found: Sequence[Cell]) -> tuple[str, pd.DataFrame]:
        """Markdown without a heading, and every number, one row a cell."""
        lines = pd.DataFrame([_line(cell) for cell in found])
        several = len(set(lines["dataset"])) > 1
        blocks = []
        for dataset, block in lines.groupby("dataset", sort=False):
            objectives = _compared([cell for cell in found if cell.meta["dataset"] == dataset])
            blocks.append((f"## {dataset}\n\n" if several else "") + _block(block, objectives))
        return "\n".join([*blocks, NOTES]) + "\n", lines


def _line(cell: Cell) -> dict[str, Any]:
    scores = pd.read_csv(cell.path / "scores.csv", index_col="factual")
    broken = scores[BROKEN] if BROKEN in scores else pd.Series(math.nan, scores.index)
    return {
        **{name: cell.meta[name] for name in ("dataset", "model", "method")},
        "refused": set(scoring.outcome(cell)["status"]) == {"UNSUPPORTED"},
        "valid": int(scores["valid"].sum()),
        "asked": int(scores["requested"].sum()),
        "seconds": scores["seconds"].median(),
        "setup_seconds": scores["fit_seconds"].max(),
        "violations": broken.mean(),
    }


def _compared(found: Sequence[Cell]) -> dict[str, float]:
    """By method, its mean objective over the counterfactuals that all methods which minimise the same one have."""
    groups: dict[str, dict[str, dict[Any, float]]] = {}
    for cell in found:
        if (objective := cell.meta["objective"]) is None:
            continue
        values = groups.setdefault(json.dumps(objective), {}).setdefault(cell.meta["method"], {})
        values |= {
            (cell.meta["model"], row["factual"], row["ce"]): row["objective"]
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
    body = []
    for method, block in lines.groupby("method", sort=False):
        texts = {row["model"]: _text(row) for row in block.to_dict("records")}
        took = block.loc[~block["refused"]]
        ends = [number(took["setup_seconds"].max(), 2), number(took["violations"].mean(), 2)]
        ends += [f"{objectives[method]:.6g}" if method in objectives else DASH] if objectives else []
        body.append([f"`{method}`", *(texts.get(model, "") for model in models), *ends])
    head = ["method", *models, "set-up s", "violations", *(["objective"] if objectives else [])]
    return markdown(head, body)


def _text(row: dict[Any, Any]) -> str:
    return DASH if row["refused"] else f"{row['valid']}/{row['asked']}, {row['seconds']:.2g} s"
