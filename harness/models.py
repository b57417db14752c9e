"""Train, store and load the estimators under explanation."""

from __future__ import annotations

import hashlib
import logging
import os
import tempfile
import warnings
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import sklearn
from sklearn.base import is_classifier, is_regressor

from harness.classifier import Classifier, space_inputs
from harness.errors import HarnessError
from harness.problem import Space

log = logging.getLogger(__name__)


def train(
    estimator: Any,
    space: Space,
    frame: pd.DataFrame,
    labels: np.ndarray,
    classes: tuple[Any, ...],
    threshold: float | None = None,
    cache: Path | None = None,
) -> Classifier:
    """An estimator fitted to the scaled columns of the training rows; taken from ``cache`` where it was fitted before.

    Parameters
    ----------
    estimator
        Unfitted scikit-learn estimator.
    frame, labels
        Decoded training rows and their class names (numbers, for regression).
    classes
        Class names; their positions are the codes that the estimator learns. Empty for regression.
    threshold
        Class 1 iff the score exceeds it; the estimator's own rule where None.

    Raises
    ------
    HarnessError
        If estimator and labels do not fit.
    """
    if why := misfit(estimator, classes):
        raise HarnessError(f"{type(estimator).__name__} {why}.")
    inputs = space.encode(frame)
    targets = _codes(labels, classes) if classes else np.asarray(labels, dtype=float)
    if len(np.unique(targets)) < 2:
        raise HarnessError(
            f"all training rows have the label {labels[0]}; a model needs two. Use a larger split, or stratify it."
        )
    path = None if cache is None else cache / f"{_content(estimator, inputs, targets)}.skops"
    fitted = _cached(path)
    if fitted is None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", category=sklearn.exceptions.ConvergenceWarning)
            fitted = estimator.fit(inputs, targets)
        fitted = getattr(fitted, "best_estimator_", fitted)  # of a search over settings
        if path is not None:
            _keep(fitted, path)
    return Classifier(fitted, space_inputs(space), classes, threshold)


def misfit(estimator: Any, classes: tuple[Any, ...]) -> str | None:
    """Why an estimator cannot learn labels of these classes (of numbers, where empty), or None where it can."""
    if classes and is_regressor(estimator):
        return f"predicts numbers, but the labels are classes ({', '.join(map(str, classes))})"
    if not classes and is_classifier(estimator):
        return "predicts classes, but the labels are numbers"
    return None


def save(estimator: Any, path: Path) -> None:
    """Store a fitted estimator as a skops file, whole or not at all."""
    from skops import io

    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, suffix=".tmp")
    os.close(handle)
    io.dump(estimator, temporary, compression=zipfile.ZIP_DEFLATED, compresslevel=1)
    os.replace(temporary, path)


def load(path: Path) -> Any:
    """Read a skops file, trusting types of scikit-learn, numpy and scipy only.

    Raises
    ------
    HarnessError
        If the file is missing or holds any other type.
    """
    from skops import io

    if not path.is_file():
        raise HarnessError(f"there is no model file {path}; give the path of an existing skops file.")
    try:
        types = io.get_untrusted_types(file=path)
    except Exception as fault:
        raise HarnessError(f"{path} is no skops file ({fault}); save the model with skops.io.dump.") from fault
    strange = [name for name in types if name.split(".")[0] not in {"sklearn", "numpy", "scipy"}]
    if strange:
        raise HarnessError(f"{path} holds types that are not trusted: {', '.join(strange)}; save a scikit-learn model.")
    return io.load(path, trusted=types)


def _codes(labels: np.ndarray, classes: tuple[Any, ...]) -> np.ndarray:
    codes = pd.Index(classes).get_indexer(pd.Index(labels))
    if (codes < 0).any():
        raise HarnessError(f"a training row has the label {labels[codes < 0][0]!r}; allowed: {list(classes)}.")
    return codes


def _content(estimator: Any, inputs: np.ndarray, targets: np.ndarray) -> str:
    """What a fit depends on, as a hash: the data to the bit, the parameters, the library's version."""
    digest = hashlib.sha256()
    digest.update(np.ascontiguousarray(inputs).tobytes())
    digest.update(np.ascontiguousarray(targets).tobytes())
    kind = type(estimator)
    parameters = sorted(estimator.get_params().items())
    digest.update(f"{kind.__module__}.{kind.__qualname__} {parameters!r} {sklearn.__version__}".encode())
    return digest.hexdigest()[:32]


def _cached(path: Path | None) -> Any:
    if path is None or not path.is_file():
        return None
    try:
        return load(path)
    except Exception as fault:
        log.warning("the cached model %s cannot be read (%s); it is trained again.", path, fault)
        return None


def _keep(estimator: Any, path: Path) -> None:
    try:
        save(estimator, path)
    except Exception as fault:
        log.warning("the model cannot be cached in %s (%s); it will be trained again next time.", path.parent, fault)
