"""The best of several kinds of models, by validation."""

from __future__ import annotations

import logging
from collections.abc import Sequence

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.model_selection import GridSearchCV

log = logging.getLogger(__name__)


class BestOfGridSearchCV(ClassifierMixin, BaseEstimator):
    """Several grid searches, each over settings of one kind of estimator; the best of their best is the model.

    Parameters
    ----------
    searches
        Unfitted, with the same folds and the same score. Of equally good ones the first is taken.

    Attributes
    ----------
    best_estimator_, best_score_
        Fitted to all rows, and its mean score over the folds.
    scores_
        The best mean score of each search.
    """

    def __init__(self, searches: Sequence[GridSearchCV]) -> None:
        self.searches = searches

    def fit(self, X: np.ndarray, y: np.ndarray) -> BestOfGridSearchCV:
        """Search all, on rows of shape (rows, inputs) with one label each."""
        found = [clone(search).fit(X, y) for search in self.searches]
        self.scores_ = [float(search.best_score_) for search in found]
        best = found[int(np.argmax(self.scores_))]
        self.best_estimator_, self.best_score_ = best.best_estimator_, best.best_score_
        self.classes_ = best.classes_
        scores = (f"{type(s.estimator).__name__} {score:.3f}" for s, score in zip(found, self.scores_, strict=True))
        log.info("by validation: %s; taken: %r", ", ".join(scores), self.best_estimator_)
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        return self.best_estimator_.predict(X)

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        return self.best_estimator_.predict_proba(X)
