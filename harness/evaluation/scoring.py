"""Metrics of stored answers: after the checker has spoken, and never with a failure averaged away."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from harness.core.explanation import Status
from harness.core.metric import Metric
from harness.core.problem import Problem
from harness.store.run import StoredRun

GROUP = (
    "group", "size", "covered", "uncoverable", "left", "points", "bound", "gap", "optimal", "changed", "seconds",
    "fit_seconds", "late",
)  # fmt: skip
GROUPED = ("group/points", "group/bound", "group/gap", "group/changed", "group/seconds")  # in the scores of factuals
ROUNDING = 1e-6  # of a bound on a whole number
COUNTS = ("requested", "returned", "valid", "coverage", "solved", "optimal", "gap", "seconds", "fit_seconds", "late")


def score(run: StoredRun, problems: Mapping[Any, Problem], metrics: Sequence[Metric], population: str) -> pd.DataFrame:
    """One row per factual: what was asked and got, and each metric (NaN where it is undefined).

    Parameters
    ----------
    problems
        The problem of each factual, by id.
    population
        Which answers the metrics see: ``valid`` (that the checker found valid), or ``returned`` (all, as some papers
        average them). Metrics that measure validity itself always see all that were returned.
    """
    factuals, _ = run.factuals()
    verdicts = {(v["factual"], v["ce"]): v for v in run.verdicts()}
    by_factual: dict[Any, list[dict[str, Any]]] = {}
    for row in run.rows():
        by_factual.setdefault(row["factual"], []).append(row)
    groups = _groups(run)
    table = []
    for identity, rows in by_factual.items():
        problem, factual = problems[identity], factuals.loc[[identity]]
        returned = [row for row in rows if row["row"] is not None]
        coherent = [row for row in returned if not verdicts[identity, row["ce"]]["incoherent"]]
        valid = [row for row in coherent if verdicts[identity, row["ce"]]["valid"]]
        # Metrics of validity and coherence see every row as it came; all others need values that exist.
        stored = pd.DataFrame([row["row"] for row in returned], columns=problem.space.index, dtype=object)
        frames = {
            "returned": problem.space.frame(row["row"] for row in coherent),
            "valid": problem.space.frame(row["row"] for row in valid),
        }
        line: dict[str, Any] = {"factual": identity, **_counts(rows, len(returned), len(valid))}
        line |= groups.get(identity, {})
        for metric in metrics:
            value = metric(factual, stored if metric.over == "returned" else frames[population], problem)
            line[metric.name] = np.nan if value is None else value
        table.append(line)
    columns = ["factual", *COUNTS, *(GROUPED if groups else ()), *(m.name for m in metrics)]
    return pd.DataFrame(table, columns=columns).set_index("factual")


def group_table(run: StoredRun) -> pd.DataFrame:
    """One row per group: ``size``; ``covered``, ``uncoverable`` and ``left``, of its factuals; ``points`` that serve
    somebody, their proven ``bound``, ``gap``, and whether they are ``optimal`` and hold; the greatest number of
    features ``changed`` by a point; seconds of the group and of the fit, and whether it was ``late``."""
    points: dict[Any, set[Any]] = {}
    for row in run.rows():
        if row["row"] is not None:
            points.setdefault(row["group"], set()).add(row["point"])
    verdicts = {verdict["factual"]: verdict["verdict"] for verdict in run.verdicts()}
    table = []
    for line in run.groups():
        used, bound = len(points.get(line["group"], ())), line["bound"]
        covered = sum(verdicts.get(factual) in {"valid", "late"} for factual in line["factuals"])
        lost = len(line["uncoverable"])
        found = used > 0
        table.append(
            {
                "group": line["group"],
                "size": len(line["factuals"]),
                "covered": covered,
                "uncoverable": lost,
                "left": len(line["factuals"]) - covered - lost,
                "points": used if found or line["status"] == Status.OPTIMAL else np.nan,
                "bound": np.nan if bound is None else bound,
                "gap": np.nan if bound is None or not found else max(used - math.ceil(bound - ROUNDING), 0),
                "optimal": float(line["status"] == Status.OPTIMAL and covered + lost == len(line["factuals"])),
                "changed": max(map(len, line["changed"]), default=0),
                **{name: line[name] for name in ("seconds", "fit_seconds", "late")},
            }
        )
    return pd.DataFrame(table, columns=GROUP).set_index("group")


def _groups(run: StoredRun) -> dict[Any, dict[str, float]]:
    """By factual, the numbers of its group."""
    lines = run.groups()
    table = group_table(run) if lines else pd.DataFrame()
    return {
        factual: {name: table.loc[line["group"], name.partition("/")[2]] for name in GROUPED}
        for line in lines
        for factual in line["factuals"]
    }


def _counts(rows: list[dict[str, Any]], returned: int, valid: int) -> dict[str, Any]:
    gaps = [
        row["objective"] - row["bound"] for row in rows if row["objective"] is not None and row["bound"] is not None
    ]
    return {
        "requested": len(rows),
        "returned": returned,
        "valid": valid,
        "coverage": valid / len(rows),
        "solved": float(valid > 0),
        "optimal": sum(row["status"] == Status.OPTIMAL for row in rows) / len(rows),
        "gap": float(np.mean([max(gap, 0.0) for gap in gaps])) if gaps else np.nan,
        "seconds": float(rows[0]["seconds"]),
        "fit_seconds": float(rows[0]["fit_seconds"]),
        "late": float(any(row["late"] for row in rows)),
    }


def summarise(scores: pd.DataFrame, among: pd.Index | None = None) -> pd.DataFrame:
    """Mean, standard error (``ddof=1``), and the number of factuals behind them, per column of ``score``.

    ``among`` restricts to some factuals, such as those that every method solved.
    """
    if among is not None:
        scores = scores.loc[scores.index.intersection(among)]
    counted = scores.notna().sum()
    error = scores.std(ddof=1) / np.sqrt(counted.where(counted > 1))
    return pd.DataFrame({"mean": scores.mean(), "se": error, "n": counted, "of": len(scores)})


def commonly_solved(tables: Sequence[pd.DataFrame]) -> pd.Index:
    """Factuals for which every method found at least one valid counterfactual."""
    common = tables[0].index
    for table in tables:
        common = common.intersection(table.index[table["solved"] > 0])
    return common


def refusal(run: StoredRun) -> str | None:
    """Why every factual of a run was refused; None where one was not."""
    rows = run.rows()
    whole = bool(rows) and all(row["status"] == Status.UNSUPPORTED for row in rows)
    return str(rows[0]["detail"]) if whole else None


def outcome(run: StoredRun) -> dict[str, Any]:
    """How the run went: rows by status, verdicts by word, distinct reasons of refusal and failure, and whether
    anything was ``timed_beside`` other factuals or runs, which makes its seconds longer."""
    rows = run.rows()
    statuses = pd.Series([row["status"] for row in rows], dtype=object).value_counts().to_dict()
    words = pd.Series([v["verdict"] for v in run.verdicts()], dtype=object).value_counts().to_dict()
    bad = {Status.UNSUPPORTED, Status.FAILED}
    details = dict.fromkeys(row["detail"] for row in rows if row["status"] in bad)
    beside = any(row.get("jobs", 1) * row.get("beside", 1) > 1 for row in rows)
    return {"status": statuses, "verdict": words, "details": list(details), "timed_beside": beside}
