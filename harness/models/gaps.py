"""Models and missing values: whether a model takes them, asked of the model itself."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd

from harness.core.classifier import Classifier
from harness.core.errors import HarnessError
from harness.core.space import Space


def probes(space: Space, frame: pd.DataFrame) -> pd.DataFrame:
    """The rows, and the first of them once for each feature that may be missing, without it; last, without them all."""
    gaps = [feature.name for feature in space.gaps]
    if not gaps:
        return frame
    lacking = [[name] for name in gaps] + [gaps]
    first = frame.iloc[[0]]
    return pd.concat([frame, *(first.assign(**dict.fromkeys(names, np.nan)) for names in lacking)])


def refused(kind: str, space: Space) -> HarnessError:
    """That a model takes no missing values, and what to do."""
    name = space.gaps[0].name
    return HarnessError(
        f"{kind} takes no missing values, and {name} keeps them; set features.{name}.missing to median, or another "
        f"filler, or take a model that does: model=hgb, XGBoost, LightGBM, or a pipeline of your own that imputes."
    )


def taken(classifier: Classifier, space: Space, frame: pd.DataFrame) -> Classifier:
    """The model, asked about rows with each gap that there may be.

    Raises
    ------
    HarnessError
        Where it fails, or has no finite score of them.
    """
    if not space.gaps:
        return classifier
    rows = probes(space, frame.iloc[:1]).iloc[1:]
    try:
        with warnings.catch_warnings(action="ignore"):
            scored = bool(np.isfinite(np.asarray(classifier.score(rows), dtype=float)).all())
    except (ValueError, TypeError):
        scored = False
    if not scored:
        model = classifier.estimator if classifier.wrapped is None else classifier.wrapped.model
        raise refused(type(model).__name__, space)
    return classifier
