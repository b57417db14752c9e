"""A random forest that counts votes."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.ensemble import RandomForestClassifier


class VotingForestClassifier(RandomForestClassifier):
    """A random forest of which each tree votes for one class; the class of most votes, of equally many the first.

    It is fitted as scikit-learn's forest, which averages probabilities; then each leaf has probability 1 of the class
    it votes for. What reads a forest's trees thus reads this one.
    """

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> VotingForestClassifier:
        super().fit(X, y, sample_weight)
        for tree in self.estimators_:
            values = tree.tree_.value
            values[:] = np.eye(values.shape[2])[values.argmax(axis=2)]
        return self
