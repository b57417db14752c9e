"""What a sweep ends with: one table on the console, the same in Markdown, and every mean in a CSV."""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from harness.core.explanation import Status
from harness.evaluation import scoring
from harness.evaluation.checker import CLAIM
from harness.store.rows import write_whole
from harness.store.run import StoredRun

log = logging.getLogger("harness")

SHOWN = {
    "distance/l0": "l0", "distance/l1": "l1", "distance/gower": "gower", "actionability/violations": "violations",
    "plausibility/ynn": "ynn", "mothilal/sparsity_diversity": "diversity",
    "group/points": "points", "group/gap": "points_gap",
}  # fmt: skip


# Parameters of methods that say among which points the optimum is.
LIMITING = ("max_changes", "rho", "norm", "unperturbed", "clip", "bounded")

BESIDE = "Seconds of {} of {} cells were taken while other factuals or cells ran: they are no fair times."


def write(folder: Path, finished: Sequence[StoredRun]) -> int:
    """Write ``summary.csv`` and ``summary.md``, print the table, and return how much is wrong.

    That is the number of cells with failures or refusals, and of ``disagreements``. A method that answers elsewhere in
    the sweep may refuse a whole cell: that is told, and not wrong.

    Means run over all factuals for which the metric is defined; ``n`` of ``of`` says how many these are.
    ``mean_common`` runs over the factuals that every method of the same dataset and model solved.
    """
    if not finished:
        return 0
    scores = {cell: pd.read_csv(cell.path / "scores.csv", index_col="factual") for cell in finished}
    metas = {cell: cell.meta for cell in finished}
    outcomes = {cell: scoring.outcome(cell) for cell in finished}
    able = {metas[cell]["method"] for cell in finished if set(outcomes[cell]["status"]) - {"UNSUPPORTED", "FAILED"}}
    posed = {cell: (metas[cell]["dataset"], metas[cell]["model"]) for cell in finished}
    common_of = {
        those: scoring.commonly_solved([scores[cell] for cell in finished if posed[cell] == those])
        for those in dict.fromkeys(posed.values())
    }
    long, table, troubled = [], [], 0
    for cell in finished:
        meta = metas[cell]
        names = {key: meta[key] for key in ("dataset", "model", "method")}
        outcome = outcomes[cell]
        refused = {"UNSUPPORTED", "FAILED"} & set(outcome["status"])
        if refused:
            troubled += set(outcome["status"]) != {"UNSUPPORTED"} or meta["method"] not in able
            first = outcome["details"][0].strip().splitlines()[-1] if outcome["details"] else ""
            log.warning("%s: %s (%s)", cell.label, ", ".join(sorted(refused)), first)
        means = scoring.summarise(scores[cell])
        common = common_of[posed[cell]]
        means["mean_common"] = scores[cell].loc[scores[cell].index.intersection(common)].mean()
        means["n_common"] = len(common)
        means = means.rename_axis("metric").reset_index()
        long.append(means.assign(**names)[[*names, *means.columns]])
        table.append({**names, **_line(scores[cell])})
    write_whole(folder / "summary.csv", pd.concat(long).to_csv(index=False))
    text = pd.DataFrame(table).round(3)
    beside = sum(outcome["timed_beside"] for outcome in outcomes.values())
    note = f"\n{BESIDE.format(beside, len(finished))}\n" if beside else ""
    write_whole(folder / "summary.md", _markdown(text) + note)
    log.info("\n%s\n%s\n%s", text.to_string(index=False, na_rep="–"), note, folder / "summary.csv")
    contradictions = disagreements(finished)
    for sentence in contradictions:
        log.error("%s", sentence)
    return troubled + len(contradictions)


def disagreements(finished: Sequence[StoredRun]) -> list[str]:
    """A sentence for each first counterfactual whose proven optimum is not the one that another cell has proven.

    Compared are cells that were asked the same and claim to minimise the same, but for methods that are allowed a
    different number of changes (``max_changes``): their points are not from the same set.
    """
    proven: dict[tuple[str, Any], tuple[str, float]] = {}
    told = []
    for cell in finished:
        meta = cell.meta
        asked = {
            **meta["config"],
            "method": {key: meta["config"]["method"].get(key) for key in LIMITING},
            "minimised": meta["objective"],
        }
        question = json.dumps(asked, sort_keys=True)
        for row in cell.rows():
            if row["ce"] != 1 or row["status"] != Status.OPTIMAL or row["objective"] is None:  # a group's
                continue
            value = row["objective"]
            other, optimum = proven.setdefault((question, row["factual"]), (cell.label, value))
            if abs(value - optimum) > CLAIM * max(1.0, abs(optimum)):
                claims = f"{cell.label} and {other} claim different optima for factual {row['factual']}"
                told.append(f"{claims}: {value!r} and {optimum!r}.")
    return told


def _line(scores: pd.DataFrame) -> dict[str, float]:
    returned = scores["returned"].sum()
    shown = {short: scores[name].mean() for name, short in SHOWN.items() if name in scores}
    return {
        "coverage": scores["coverage"].mean(),
        "validity": scores["valid"].sum() / returned if returned else float("nan"),
        "optimal": scores["optimal"].mean(),
        **shown,
        "median_s": scores["seconds"].median(),
        "max_s": scores["seconds"].max(),
        "fit_s": scores["fit_seconds"].max(),
    }


def _markdown(table: pd.DataFrame) -> str:
    lines = [list(table.columns), ["---"] * len(table.columns), *table.astype(object).fillna("–").to_numpy().tolist()]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines) + "\n"
