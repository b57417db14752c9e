"""The best of several grid searches, where it is known which that is."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.dummy import DummyClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.tree import DecisionTreeClassifier

from harness.models.best_of import BestOfGridSearchCV

POINTS = np.linspace(0, 1, 60)[:, None]
LABELS = (np.arange(60) % 20 < 10).astype(int)  # six stripes of ten: no tree of depth 1 finds them, one of depth 3 does


def search(estimator: object, **grid: list[object]) -> GridSearchCV:
    return GridSearchCV(estimator, grid, cv=3)


TREE, GUESS = search(DecisionTreeClassifier(random_state=0), max_depth=[1, 5]), search(DummyClassifier())


@pytest.mark.parametrize("searches", [[TREE, GUESS], [GUESS, TREE], [GUESS, TREE, GUESS]])
def test_the_search_with_the_best_validation_is_taken(searches: list[GridSearchCV]) -> None:
    """Wherever it stands among the searches; scores are in their order, and the model decides as the best does."""
    shuffled = np.random.default_rng(0).permutation(60)
    points, labels = POINTS[shuffled], LABELS[shuffled]
    model = BestOfGridSearchCV(searches).fit(points, labels)
    assert isinstance(model.best_estimator_, DecisionTreeClassifier)
    assert model.best_estimator_.max_depth == 5
    assert model.best_score_ == max(model.scores_) > 0.8
    assert [score > 0.8 for score in model.scores_] == [found is TREE for found in searches]
    np.testing.assert_array_equal(model.predict(points), labels)
    np.testing.assert_array_equal(model.predict_proba(points)[:, 1], labels)
    assert model.classes_.tolist() == [0, 1]


def test_of_equally_good_ones_the_first_is_taken() -> None:
    constant, prior = (search(DummyClassifier(strategy=name)) for name in ("most_frequent", "prior"))
    model = BestOfGridSearchCV([constant, prior]).fit(POINTS, LABELS)
    assert model.scores_[0] == model.scores_[1]
    assert model.best_estimator_.strategy == "most_frequent"
