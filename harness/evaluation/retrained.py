"""Validity under changes of the model once more: of the retrained models that a run names, and of changed weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from harness.core.caching import cache
from harness.core.tolerances import VALUE_TIE
from harness.evaluation.checker import ACCEPTED
from harness.evaluation.contest import metrics_of
from harness.evaluation.scoring import stored_problems
from harness.evaluation.study import SCORES, read_scores
from harness.models.files import load
from harness.models.train import Amended
from harness.store.run import StoredRun

FAMILY = "retraining/"
WEIGHED = ("robustness/delta_validity", "robustness/certified_delta")


def faults(run: StoredRun, verdicts: Sequence[Mapping[str, Any]]) -> tuple[list[str], int]:
    """A sentence for each stored number that differs; and how many retrained models are not in the cache."""
    scored, named = run.meta.get("scored") or {}, run.meta.get("retrained") or {}
    if not (run.path / SCORES).is_file() or scored.get("population") != "accepted":
        return [], 0
    weighed = {name: metric for name, metric in metrics_of(run).items() if name in WEIGHED}
    if not named and not weighed:
        return [], 0
    scores, (factuals, targets) = read_scores(run), run.factuals()
    fine = {(v["factual"], v["ce"]) for v in verdicts if v["verdict"] == ACCEPTED}
    answers: dict[Any, list[Mapping[str, Any]]] = {}
    for row in run.rows():
        if (row["factual"], row["ce"]) in fine:
            answers.setdefault(row["factual"], []).append(row["row"])
    space, known = run.space, run.classifier
    frames = {factual: space.frame(rows) for factual, rows in answers.items()}
    problems, values, missing = stored_problems(run), dict[tuple[str, Any], float](), 0
    for factual, frame in frames.items() if weighed else ():
        for name, metric in weighed.items():
            value = metric(factuals.loc[[factual]], frame, problems[factual])
            values[name, factual] = float("nan" if value is None else value)
    settings = run.meta["config"].get("model") or {}
    amended = Amended(settings.get("decimals"), settings.get("decision"))
    for change, names in named.items():
        if FAMILY + change not in scores:  # the metric failed
            continue
        paths = [cache() / "models" / Path(f"{name}.skops").name for name in names]
        if absent := sum(not path.is_file() for path in paths):
            missing += absent
            continue
        own = space, known.classes, known.threshold, factuals
        models = [amended.classifier(load(path), *own) for path in paths]
        for factual, frame in frames.items():
            kept = [targets[factual].holds(model, frame).mean() for model in models]
            values[FAMILY + change, factual] = float(np.mean(kept))
    stored = {place: float(scores.loc[place[1], place[0]]) for place in values if place[0] in scores}
    return [
        f"{name} of factual {factual} is stored as {found:g}; it is {values[name, factual]:g}."
        for (name, factual), found in stored.items()
        if not np.isclose(found, values[name, factual], rtol=0, atol=VALUE_TIE, equal_nan=True)
    ], missing
