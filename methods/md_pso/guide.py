"""What leads a swarm where a model tells nothing but classes: of a vote, what its members say."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import expit
from sklearn.ensemble import VotingClassifier
from sklearn.pipeline import Pipeline

from harness.models.composite import chosen


def shares(model: Any, data: Any, count: int) -> np.ndarray | None:
    """The weighted mean of what the members of a hard vote give each class, shape (rows, classes).

    A member's probabilities, a logistic function of its decision value, or 1 for the class that it says. None of other
    models.
    """
    last = model
    while isinstance(last, Pipeline) or chosen(last) is not last:
        last = last.steps[-1][1] if isinstance(last, Pipeline) else chosen(last)
    if not isinstance(last, VotingClassifier) or last.voting != "hard":
        return None
    while model is not last:
        if isinstance(model, Pipeline):
            data = model[:-1].transform(data) if len(model.steps) > 1 else data
        model = model.steps[-1][1] if isinstance(model, Pipeline) else chosen(model)
    parts = [_share(member, data, count) for member in last.estimators_]
    return np.average(parts, axis=0, weights=last._weights_not_none)


def _share(member: Any, data: Any, count: int) -> np.ndarray:
    """Of one member, which calls the classes 0, 1, ..."""
    if hasattr(member, "predict_proba") and len(member.classes_) == count:
        return np.asarray(member.predict_proba(data))
    if count == 2 and hasattr(member, "decision_function"):
        share = expit(member.decision_function(data))
        return np.column_stack([1.0 - share, share])
    return np.eye(count)[np.asarray(member.predict(data), dtype=int)]
