"""Whether the verdicts and scores that are stored with answers follow from them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from harness.core.tolerances import READING, VALUE_TIE
from harness.evaluation import scoring
from harness.evaluation.contest import metrics_of
from harness.evaluation.study import SCORES, read_scores
from harness.store.run import StoredRun

FROM_ROWS = {"distance", "diversity"}  # families of metrics that need no model and no training rows


def misstated(run: StoredRun, verdicts: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Sentences about what is stored with a run and does not follow from its answers.

    Of the scores, counts, seconds, distances and diversities are compared; other metrics are not, as they need the
    training rows, or ask the model so much.

    Parameters
    ----------
    verdicts
        Those that the checker comes to now.
    """
    stored = {(verdict["factual"], verdict["ce"]): verdict["verdict"] for verdict in run.verdicts()}
    now = {(verdict["factual"], verdict["ce"]): verdict["verdict"] for verdict in verdicts}
    if other := [key for key in now.keys() & stored.keys() if now[key] != stored[key]]:
        yield f"{len(other)} stored verdicts are others than the checker's"
    if not (run.path / SCORES).is_file():
        return
    if unjudged := now.keys() - stored.keys():
        yield f"it has scores, and {len(unjudged)} answers without a verdict"
        return
    if unasked := set(run.factuals()[0].index) - {factual for factual, _ in now}:
        yield f"it has scores, and {len(unasked)} people without answers"
        return
    known = [m for m in metrics_of(run).values() if m.family in FROM_ROWS and m.__module__.startswith("metrics.")]
    population = (run.meta.get("scored") or {}).get("population", "accepted")
    counts, scores = scoring.score(run, scoring.stored_problems(run), known, population), read_scores(run)
    shown = [name for name in counts if name in scores]
    if set(counts.index) != set(scores.index):
        yield "its scores are of other questions than its answers"
        return
    ours, theirs = (table.loc[counts.index, shown].to_numpy(float) for table in (counts, scores))
    same = np.isclose(ours, theirs, rtol=READING, atol=VALUE_TIE, equal_nan=True).all(axis=0)
    if not same.all():
        names = ", ".join(name for name, fine in zip(shown, same, strict=True) if not fine)
        yield f"its scores do not follow from its answers: {names}"
