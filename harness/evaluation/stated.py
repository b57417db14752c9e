"""Whether the verdicts and scores that are stored with answers follow from them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from harness.core.tolerances import READING
from harness.evaluation import scoring
from harness.evaluation.study import SCORES, read_scores
from harness.store.run import StoredRun


def misstated(run: StoredRun, verdicts: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Sentences about what is stored with a run and does not follow from its answers.

    The counts and seconds of the scores are compared; metrics are not, as some need the training rows.

    Parameters
    ----------
    verdicts
        Those that the checker comes to now.
    """
    stored = {(verdict["factual"], verdict["ce"]): verdict["verdict"] for verdict in run.verdicts()}
    now = {(verdict["factual"], verdict["ce"]): verdict["verdict"] for verdict in verdicts}
    if other := [key for key in now.keys() & stored.keys() if now[key] != stored[key]]:
        yield f"{len(other)} stored verdicts are others than the checker's"
    if not (run.path / SCORES).is_file() or now.keys() - stored.keys():
        return
    counts, scores = scoring.score(run, scoring.stored_problems(run), []), read_scores(run)
    shown = [name for name in counts if name in scores]
    if set(counts.index) != set(scores.index):
        yield "its scores are of other questions than its answers"
        return
    ours, theirs = (table.loc[counts.index, shown].to_numpy(float) for table in (counts, scores))
    same = np.isclose(ours, theirs, rtol=READING, atol=0.0, equal_nan=True).all(axis=0)
    if not same.all():
        names = ", ".join(name for name, fine in zip(shown, same, strict=True) if not fine)
        yield f"its scores do not follow from its answers: {names}"
