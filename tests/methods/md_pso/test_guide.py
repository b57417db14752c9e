"""What leads the swarm where a model has no probabilities of its own."""

from __future__ import annotations

import numpy as np
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import VotingClassifier

from methods.md_pso.guide import shares


def test_members_of_a_hard_vote_lead_by_their_weights() -> None:
    """Three parts of the first member's 0.25 and one of the last one's 0.75; a member that is dropped has no weight."""
    members = [("a", DummyClassifier()), ("b", "drop"), ("c", DummyClassifier())]
    vote = VotingClassifier(members, voting="hard", weights=[3, 5, 1]).fit(np.zeros((4, 1)), [0, 0, 0, 1])
    vote.estimators_[1] = DummyClassifier().fit(np.zeros((4, 1)), [0, 1, 1, 1])
    found = shares(vote, np.zeros((1, 1)), 2)
    assert found is not None
    assert np.allclose(found, [[1 - 0.375, 0.375]])
