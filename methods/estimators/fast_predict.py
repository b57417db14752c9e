"""Class codes of few rows, fast: sums of trees are computed here, and the estimator decides where they are close."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from harness.core.classifier import Classifier
from harness.core.errors import UnsupportedError
from harness.core.tolerances import SCORE_TIE
from methods.estimators import walk_kernels
from methods.estimators.trees import ensemble


def fast_decide(classifier: Classifier) -> Callable[[np.ndarray], np.ndarray]:
    """``classifier.decide``, faster on few rows where the estimator is a sum of trees with two classes.

    Its library spends milliseconds on each call before it walks any tree.
    """
    if not classifier.binary:
        return classifier.decide
    try:
        model, threshold = ensemble(classifier.estimator), classifier.raw_threshold
    except UnsupportedError:
        return classifier.decide
    trees, base = tuple(model.flat()), float(model.base[0]) - threshold
    seen, close = np.float32 if model.single else np.float64, max(model.rounding(threshold), SCORE_TIE)

    def decide(matrix: np.ndarray) -> np.ndarray:
        score = np.empty(len(matrix))
        walk_kernels.walk_all(trees, base, np.ascontiguousarray(matrix, dtype=seen), score)
        if (np.abs(score) <= close).any():
            return classifier.decide(matrix)
        return (score > 0).astype(int)

    decide(np.empty((0, len(classifier.inputs))))  # compiles
    return decide
