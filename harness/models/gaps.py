"""Models and missing values: whether a model takes them, asked of the model itself."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd

from harness.core.classifier import Classifier
from harness.core.errors import HarnessError
from harness.core.frames import with_columns
from harness.core.space import Space


def probes(space: Space, frame: pd.DataFrame) -> pd.DataFrame:
    """The rows, and the first of them once for each feature that may be missing, without it; last, without them all."""
    gaps = [feature.name for feature in space.gaps]
    if not gaps:
        return frame
    lacking = [[name] for name in gaps] + [gaps]
    first = frame.iloc[[0]]
    return pd.concat([frame, *(with_columns(first, dict.fromkeys(names, np.nan)) for names in lacking)])


def refused(kind: str, space: Space) -> HarnessError:
    """That a model takes no missing values, and what to do."""
    name = space.gaps[0].name
    return HarnessError(
        f"{kind} takes no missing values, and {name} keeps them; set features.{name}.missing to median, or another "
        f"filler, or take a model that does: model=hgb, XGBoost, LightGBM, CatBoost, or a pipeline of your own that "
        f"imputes."
    )


def taken(classifier: Classifier, space: Space, frame: pd.DataFrame) -> Classifier:
    """The model, asked about rows with each gap that there may be.

    Raises
    ------
    HarnessError
        Where it fails, or has no finite score of them, and has one of the same row without gaps.
    """
    if not space.gaps:
        return classifier
    names = [feature.name for feature in space.gaps]
    whole = frame.iloc[:1].fillna(dict.fromkeys(names, 0.0))
    if not _scored(classifier, probes(space, frame.iloc[:1]).iloc[1:]) and _scored(classifier, whole):
        model: Any = classifier.estimator if classifier.wrapped is None else classifier.wrapped.model
        library = getattr(getattr(model, "engine", None), "library", None)
        raise refused(f"this {library} model" if library else type(model).__name__, space)
    return classifier


def _scored(classifier: Classifier, rows: pd.DataFrame) -> bool:
    """Whether the model has a finite score of each row."""
    try:
        with warnings.catch_warnings(action="ignore"):
            return bool(np.isfinite(np.asarray(classifier.score(rows), dtype=float)).all())
    except Exception:  # whatever the model's library raises
        return False
