"""The points with which a question within a hull begins."""

from __future__ import annotations

import numpy as np

from methods.hull_search.working_set import FEW, MANY, WorkingSets
from methods.milp.hull import Hull, Outside


def test_a_question_begins_with_few_points_of_those_before() -> None:
    """Points stay in the set until they are many; who still has that set keeps it."""
    points = np.random.default_rng(0).random((1000, 3))
    sets, piece = WorkingSets(), Outside(Hull(points, 1), np.arange(3))
    first = sets.of(piece)
    assert first.used <= FEW
    for k in range(MANY):
        if first.used < MANY:
            first.add(k)
    assert first.used == MANY
    assert sets.of(piece) is first
    first.add(999)
    later = sets.of(piece)
    assert later.used <= FEW < MANY < first.used
    assert sets.of(piece) is later
    assert sorted(map(tuple, later.points.T)) == sorted(map(tuple, points))
