"""A forest that counts votes says what its trees say, counted here."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier

from harness.models.votes import VotingForestClassifier


@pytest.mark.parametrize("classes", [2, 3])
def test_the_class_of_most_trees_is_said(classes: int) -> None:
    """The first of classes with equally many, as four trees may have. The trees are those of scikit-learn's forest."""
    rng = np.random.default_rng(classes)
    rows = rng.normal(size=(150, 3))
    labels = np.array(["a", "b", "c"])[(rows.sum(axis=1) + rng.normal(size=150) > 0).astype(int) * (classes - 1)]
    labels[:20] = "b"
    forest = VotingForestClassifier(4, max_depth=3, random_state=0).fit(rows, labels)
    asked = rng.normal(size=(400, 3))
    plain = RandomForestClassifier(4, max_depth=3, random_state=0).fit(rows, labels)
    votes = np.array([tree.predict(asked) for tree in plain.estimators_]).astype(int)  # places in classes_
    counts = np.array([(votes == place).sum(axis=0) for place in range(len(forest.classes_))]).T
    ordered = np.sort(counts, axis=1)
    assert (ordered[:, -1] == ordered[:, -2]).any()
    assert (forest.predict(asked) == forest.classes_[counts.argmax(axis=1)]).all()
    assert forest.predict_proba(asked) == pytest.approx(counts / 4)
