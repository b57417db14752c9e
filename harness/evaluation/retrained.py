"""Validity under retraining once more, from stored answers and the retrained models that a run names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from harness.core.caching import cache
from harness.core.classifier import Classifier
from harness.core.tolerances import VALUE_TIE
from harness.evaluation.checker import ACCEPTED
from harness.evaluation.study import SCORES, read_scores
from harness.models.files import load
from harness.models.train import Amended
from harness.store.run import StoredRun

FAMILY = "retraining/"


def faults(run: StoredRun, verdicts: Sequence[Mapping[str, Any]]) -> tuple[list[str], int]:
    """A sentence for each kind of retraining whose stored numbers differ; and how many models are not in the cache."""
    named: Mapping[str, Sequence[str]] = run.meta.get("retrained") or {}
    scored = run.meta.get("scored") or {}
    if not named or not (run.path / SCORES).is_file() or scored.get("population") != "accepted":
        return [], 0
    scores, (factuals, targets) = read_scores(run), run.factuals()
    fine = {(v["factual"], v["ce"]) for v in verdicts if v["verdict"] == ACCEPTED}
    answers: dict[Any, list[Mapping[str, Any]]] = {}
    for row in run.rows():
        if (row["factual"], row["ce"]) in fine:
            answers.setdefault(row["factual"], []).append(row["row"])
    settings = run.meta["config"]["model"]
    amended = Amended(settings.get("decimals"), settings.get("decision"))
    missing, sentences = 0, []
    for change, names in named.items():
        if FAMILY + change not in scores:  # the metric failed
            continue
        paths = [cache() / "models" / f"{name}.skops" for name in names]
        if absent := sum(not path.is_file() for path in paths):
            missing += absent
            continue
        models = [_model(path, amended, run, factuals) for path in paths]
        for factual, rows in answers.items():
            frame, target = run.space.frame(rows), targets[factual]
            value = float(np.mean([target.holds(model, frame).mean() for model in models]))
            stored = float(scores.loc[factual, FAMILY + change])
            if not abs(stored - value) <= VALUE_TIE:
                sentences.append(f"{FAMILY}{change} of factual {factual} is stored as {stored:g}; it is {value:g}.")
    return sentences, missing


def _model(path: Path, amended: Amended, run: StoredRun, frame: pd.DataFrame) -> Classifier:
    known = run.classifier
    return amended.classifier(load(path), run.space, known.classes, known.threshold, frame)
