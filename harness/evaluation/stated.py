"""Whether the verdicts and scores that are stored with answers follow from them."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from harness.core.explanation import Status, closed
from harness.core.gaps import same_row
from harness.core.metric import Metric
from harness.core.problem import Problem
from harness.core.tolerances import CLAIM, READING, VALUE_TIE
from harness.evaluation import scoring
from harness.evaluation.contest import metric_paths, metrics_of
from harness.evaluation.lookup import packaged
from harness.evaluation.proofs import satisfied
from harness.evaluation.study import SCORES, read_scores
from harness.store.plain import to_plain
from harness.store.run import StoredRun

FROM_ROWS = {"distance", "diversity"}  # families of metrics that need no model and no training rows
FOUND = {status for status in Status if status.found}  # of rows with a counterfactual
TIMES = ("seconds", "cpu_seconds", "model_seconds", "fit_seconds")  # of a row
SAID = ("verdict", "valid", "incoherent", "violations", "limits", "region")  # of a verdict


def misstated(run: StoredRun, verdicts: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Sentences about what is stored with a run and does not follow from its answers.

    Of the scores, counts, seconds, distances and diversities are compared; other metrics are not, as they need the
    training rows, or ask the model so much.

    Parameters
    ----------
    verdicts
        Those that the checker comes to now.
    """
    kept = run.verdicts()
    stored = {(verdict["factual"], verdict["ce"]): verdict for verdict in kept}
    plain = json.loads(json.dumps(to_plain(list(verdicts))))
    now = {(verdict["factual"], verdict["ce"]): verdict for verdict in plain}
    other = [key for key in now.keys() & stored.keys() if not _alike(now[key], stored[key])]
    surplus = len(kept) - len(now.keys() & stored.keys())
    if other or surplus:
        yield f"{len(other) + surplus} stored verdicts are others than the checker's"
    yield from _mistold(run)
    if not (run.path / SCORES).is_file():
        return
    if unjudged := now.keys() - stored.keys():
        yield f"it has scores, and {len(unjudged)} answers without a verdict"
        return
    if unasked := set(run.factuals()[0].index) - {factual for factual, _ in now}:
        yield f"it has scores, and {len(unasked)} people without answers"
        return
    known = [m for m in metrics_of(run).values() if m.family in FROM_ROWS and m.__module__.startswith("metrics.")]
    counts, scores = scored_again(run, scoring.stored_problems(run), known)
    named = {name.removeprefix(scoring.NEAREST) for name in metrics_of(run)}
    columns = {name.removeprefix(scoring.NEAREST) for name in scores} - {*scoring.COUNTS, *scoring.GROUPED}
    if unnamed := sorted((columns - named) & (packaged().keys() if len(named) < len(metric_paths(run)) else columns)):
        yield f"its scores have columns of metrics that it does not name: {', '.join(unnamed)}"
    columns = {metric.name for metric in known} | {scoring.NEAREST + m.name for m in known if m.over != "returned"}
    if lost := sorted(columns - {*scores}):
        yield f"its scores have no columns {', '.join(lost)}, of metrics that it names"
    if lost := [name for name in scoring.COUNTS if name not in scores and name != "peak_mib"]:  # where it was noted
        yield f"its scores have no columns {', '.join(lost)}"
    shown = [name for name in counts if name in scores]
    if set(counts.index) != set(scores.index):
        yield "its scores are of other questions than its answers"
        return
    if odd := others(counts, scores, shown):
        yield f"its scores do not follow from its answers: {', '.join(odd)}"


def scored_again(
    run: StoredRun, problems: Mapping[Any, Problem], metrics: Sequence[Metric]
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The counts of a run and some of its metrics, over the answers that it was scored by; and all that is stored."""
    population = (run.meta.get("scored") or {}).get("population") or "accepted"
    return scoring.score(run, problems, metrics, population), read_scores(run)


def others(now: pd.DataFrame, stored: pd.DataFrame, names: Sequence[str]) -> list[str]:
    """Which columns of two tables with the same questions differ."""
    ours, theirs = (table.loc[now.index, list(names)].to_numpy(float) for table in (now, stored))
    equal = np.isclose(ours, theirs, rtol=READING, atol=VALUE_TIE, equal_nan=True).all(axis=0)
    return [name for name, fine in zip(names, equal, strict=True) if not fine]


def _stated(verdict: Mapping[str, Any]) -> dict[str, Any]:
    """What a verdict says, but for its objective."""
    return {name: verdict.get(name) or None for name in SAID}


def _alike(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether two verdicts say the same, their objectives to a millionth."""
    if _stated(one) != _stated(other):
        return False
    value, known = (verdict.get("objective") for verdict in (one, other))
    if value is None or known is None:
        return value is known
    return bool(np.isclose(value, known, rtol=CLAIM, atol=VALUE_TIE, equal_nan=True))


def _mistold(run: StoredRun) -> Iterator[str]:
    """Sentences about rows that say what their values, seconds and bounds, or the model, do not."""
    rows, limit, (frame, _) = run.rows(), scoring.limit_of(run.meta), run.factuals()
    numbers: dict[Any, list[int]] = {}
    for row in rows:
        numbers.setdefault(row["factual"], []).append(row["ce"])
    asked_for = list(range(1, run.meta["n_counterfactuals"] + 1))
    if misnumbered := [factual for factual, given in numbers.items() if sorted(given) != asked_for]:
        yield f"answers to {len(misnumbered)} questions are not numbered from 1 to {len(asked_for)}"
    if math.isnan(limit):
        yield "its limit of time is not on record"
    elif timed := {row["factual"] for row in rows if row["late"] != (row["seconds"] > limit)}:
        yield f"{len(timed)} questions are late by their seconds, or are not, and it says otherwise"
    if odd := {row["factual"] for row in rows if not all(0.0 <= (row.get(name) or 0.0) < math.inf for name in TIMES)}:
        yield f"{len(odd)} questions took no time that there is"
    out = {row["factual"] for row in rows if scoring.left_out(row)}
    fine, grouped = satisfied(run), bool(run.groups())
    asked = [row for row in rows if not scoring.left_out(row)]
    if (asked or grouped) and grouped != bool(run.meta["config"].get("group")):
        yield "its people were asked as a group and it has no groups, or the other way round"
    if wrong := out - fine:
        yield f"{len(wrong)} people are left out as having what is wanted, of whom the model says otherwise"
    left_out = grouped or run.meta["config"].get("satisfied") != "ask"
    if wrong := {row["factual"] for row in rows if left_out} & fine - out:
        yield f"{len(wrong)} people have what is wanted, and are not left out"
    if torn := [row for row in rows if (row["status"] in FOUND) != (row["row"] is not None)]:
        yield f"{len(torn)} answers have a counterfactual and are said to have none, or the other way round"
    optimal = [row for row in rows if row["status"] == Status.OPTIMAL and not grouped]
    if vain := [row for row in optimal if not closed(row["objective"], row["bound"])]:
        yield f"{len(vain)} answers are said to be optimal, and their bounds do not say so"
    origins = dict(zip(frame.index, frame.to_dict("records"), strict=True))
    if copies := [row for row in rows if row["row"] and same_row(row["row"], origins[row["factual"]])]:
        yield f"{len(copies)} answers are the person asked about"
