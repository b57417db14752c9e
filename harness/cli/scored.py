"""Scores of a stored run computed again, those too that need its training rows, or ask the model."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from harness.cli.build import posed_again
from harness.evaluation import scoring
from harness.evaluation.contest import metrics_of
from harness.evaluation.stated import others, scored_again
from harness.evaluation.study import SCORES
from harness.store.run import StoredRun

TRAINED = "retraining"  # the family of metrics by models that are trained again


def scored(run: StoredRun) -> bool:
    """Whether a run has scores of answers."""
    return scoring.refusal(run) is None and (run.path / SCORES).is_file()


def misscored(run: StoredRun) -> Iterator[str]:
    """A sentence where scores do not follow from the answers of a run that has some, its estimator and its data set.

    Not compared are metrics by models that are trained again, and those of packages.

    Raises
    ------
    HarnessError
        Where its data are others than here.
    """
    known = [m for m in metrics_of(run).values() if m.family != TRAINED and m.__module__.startswith("metrics.")]
    _, posed = posed_again(run)
    targets = run.factuals()[1]
    problems = {target: replace(posed, target=target) for target in set(targets.values())}
    now, stored = scored_again(run, {factual: problems[target] for factual, target in targets.items()}, known)
    if set(now.index) != set(stored.index):
        yield "its scores are of other questions than its answers"
    elif odd := others(now, stored, [name for name in now if name in stored]):
        yield f"its scores do not follow from its answers and the data set's rows: {', '.join(odd)}"
