"""What every method answered on every model: the table of an experiment that follows no paper."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pandas as pd

from harness import scoring
from harness.answers import Cell
from harness.tables import DASH, markdown, number

BROKEN = "actionability/violations"
NOTES = (
    "Valid counterfactuals / asked for, median seconds per factual; – : the method refuses the model.\n"
    "*set-up s*: seconds before the first factual, of the slowest model; *violations*: constraints that a "
    "counterfactual breaks, averaged over all."
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
            blocks.append((f"## {dataset}\n\n" if several else "") + _block(block))
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


def _block(lines: pd.DataFrame) -> str:
    models = list(dict.fromkeys(lines["model"]))
    body = []
    for method, block in lines.groupby("method", sort=False):
        texts = {row["model"]: _text(row) for row in block.to_dict("records")}
        took = block.loc[~block["refused"]]
        ends = (number(took["setup_seconds"].max(), 2), number(took["violations"].mean(), 2))
        body.append([f"`{method}`", *(texts.get(model, "") for model in models), *ends])
    return markdown(["method", *models, "set-up s", "violations"], body)


def _text(row: dict[Any, Any]) -> str:
    return DASH if row["refused"] else f"{row['valid']}/{row['asked']}, {row['seconds']:.2g} s"
