"""What a sweep ends with: one table on the console, the same in Markdown, and every mean in a CSV."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from harness.core.explanation import Status
from harness.core.metric import Metric
from harness.evaluation import scoring
from harness.evaluation.checker import CLAIM
from harness.reports.markup import DASH, markdown
from harness.reports.stored import columns
from harness.store.rows import write_whole
from harness.store.run import StoredRun

log = logging.getLogger("harness")

NAMES = ("dataset", "model", "method")
OWN = (*NAMES, "coverage", "validity", "optimal", "points", "points_gap", "median_s", "max_s", "fit_s")
GROUPED = {"group/points": "points", "group/gap": "points_gap"}
REFUSED = {str(Status.UNSUPPORTED), str(Status.FAILED)}
BESIDE = "Seconds of {} of {} runs were taken while other factuals or runs went on: they are no fair times."


def write(folder: Path, finished: Sequence[StoredRun]) -> int:
    """Write ``summary.csv`` and ``summary.md``, print the table, and return how much is wrong.

    That is the number of runs with failures or refusals, and of ``disagreements``. A method that answers elsewhere in
    the sweep may refuse all factuals of a run: that is a warning, and not wrong.

    Means run over all factuals for which the metric is defined; ``n`` of ``of`` says how many these are.
    ``mean_common`` runs over the factuals that every method of the same dataset and model solved.
    """
    if not finished:
        return 0
    outcomes = [scoring.outcome(run) for run in finished]
    scores = [pd.read_csv(run.path / "scores.csv", index_col="factual") for run in finished]
    names = [{key: run.meta[key] for key in NAMES} for run in finished]
    shown = columns(finished, "summary", OWN)
    write_whole(folder / "summary.csv", _means(names, scores).to_csv(index=False))
    lines = [named | _line(table, shown) for named, table in zip(names, scores, strict=True)]
    text = pd.DataFrame(lines).round(3)
    beside = sum(outcome["timed_beside"] for outcome in outcomes)
    note = f"\n{BESIDE.format(beside, len(finished))}\n" if beside else ""
    write_whole(folder / "summary.md", markdown(list(text.columns), text.astype(object).fillna(DASH).to_numpy()) + note)
    troubled = _refusals(finished, names, outcomes)
    log.info("\n%s\n%s\n%s", text.to_string(index=False, na_rep=DASH), note, folder / "summary.csv")
    contradictions = disagreements(finished)
    for sentence in contradictions:
        log.error("%s", sentence)
    return troubled + len(contradictions)


def _means(names: Sequence[Mapping[str, str]], scores: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """One row a run and metric: its names, mean, standard error and counts, over all factuals and the common ones."""
    posed = [(named["dataset"], named["model"]) for named in names]
    common_of = {
        those: scoring.commonly_solved([table for table, own in zip(scores, posed, strict=True) if own == those])
        for those in dict.fromkeys(posed)
    }
    parts = []
    for named, table, those in zip(names, scores, posed, strict=True):
        common = common_of[those]
        means = scoring.summarise(table)
        means["mean_common"] = table.loc[table.index.intersection(common)].mean()
        means["n_common"] = len(common)
        means = means.rename_axis("metric").reset_index()
        parts.append(means.assign(**named)[[*NAMES, *means.columns]])
    return pd.concat(parts)


def _refusals(
    finished: Sequence[StoredRun], names: Sequence[Mapping[str, str]], outcomes: Sequence[Mapping[str, Any]]
) -> int:
    """Warn of each run with refusals or failures, and return how many of them are wrong."""
    able = {named["method"] for named, outcome in zip(names, outcomes, strict=True) if set(outcome["status"]) - REFUSED}
    troubled = 0
    for run, named, outcome in zip(finished, names, outcomes, strict=True):
        if refused := REFUSED & set(outcome["status"]):
            troubled += set(outcome["status"]) != {"UNSUPPORTED"} or named["method"] not in able
            first = outcome["details"][0].strip().splitlines()[-1] if outcome["details"] else ""
            log.warning("%s: %s (%s)", run.label, ", ".join(sorted(refused)), first)
    return troubled


def disagreements(finished: Sequence[StoredRun]) -> list[str]:
    """A sentence for each first counterfactual whose proven optimum is not the one that another run has proven.

    Compared are runs of the same configuration, but for the method, whose stored objectives are the same: terms, limits
    and all else that says among which points the optimum is.
    """
    proven: dict[tuple[str, Any], tuple[str, float]] = {}
    sentences = []
    for run in finished:
        meta = run.meta
        posed = json.dumps({**meta["config"], "method": None, "minimised": meta["objective"]}, sort_keys=True)
        for row in run.rows():
            if row["ce"] != 1 or row["status"] != Status.OPTIMAL or row["objective"] is None:  # a group's
                continue
            value = row["objective"]
            other, optimum = proven.setdefault((posed, row["factual"]), (run.label, value))
            if abs(value - optimum) > CLAIM * max(1.0, abs(optimum)):
                claims = f"{run.label} and {other} claim different optima for factual {row['factual']}"
                sentences.append(f"{claims}: {value!r} and {optimum!r}.")
    return sentences


def _line(scores: pd.DataFrame, shown: Mapping[str, Metric]) -> dict[str, float]:
    """The numbers of one run in the printed table."""
    returned = scores["returned"].sum()
    means = {heading: scores[metric.name].mean() for heading, metric in shown.items() if metric.name in scores}
    return {
        "coverage": scores["coverage"].mean(),
        "validity": scores["valid"].sum() / returned if returned else float("nan"),
        "optimal": scores["optimal"].mean(),
        **means,
        **{heading: scores[name].mean() for name, heading in GROUPED.items() if name in scores},
        "median_s": scores["seconds"].median(),
        "max_s": scores["seconds"].max(),
        "fit_s": scores["fit_seconds"].max(),
    }
