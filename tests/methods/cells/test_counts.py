"""Trees that vote: where outputs are counts, the search knows what ties mean, and never has to ask the model."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier
from sklearn.tree import DecisionTreeClassifier
from support.forests import POINTS, TENTHS, closest, factuals, searcher, tenths

from harness.core.classifier import Classifier
from harness.core.inputs import Affine
from harness.core.problem import Problem
from harness.core.target import Label
from harness.models.votes import VotingForestClassifier
from methods.ce_ocl import CeOcl
from methods.cells import kernels, search
from methods.estimators.raw_target import conditions
from methods.estimators.trees import ensemble

FORESTS: dict[str, Any] = {
    "even": RandomForestClassifier(8, random_state=0),
    "odd": RandomForestClassifier(7, random_state=0),
    "votes": VotingForestClassifier(n_estimators=10, max_depth=2, random_state=0),
    "tree": DecisionTreeClassifier(random_state=0),
    "halves": ExtraTreesClassifier(6, random_state=0),  # leaves of two equal points, of one class or of two
}


def voting(kind: str, classes: int, target: int, threshold: float | None = None) -> Problem:
    """Trees on the points of a cube, of noise, with leaves of one class each or a vote for one."""
    points = pd.concat([POINTS] * (2 if kind == "halves" else 1))
    labels = (points.sum(axis=1).to_numpy() // 4 + np.random.default_rng(5).integers(0, 3, len(points))) % classes
    estimator = FORESTS[kind].fit(points.to_numpy(float), labels)
    names = ("no", "yes", "more")[:classes]
    fitted = Classifier(estimator, tuple(Affine(name) for name in "abc"), names, threshold)
    return Problem(TENTHS, fitted, POINTS, labels[:1000], Label(names[target]))


def cheapest(method: CeOcl, problem: Problem, factual: pd.DataFrame) -> float:
    wanted = POINTS[problem.valid(POINTS)]
    return float(method.objective(problem).evaluate(TENTHS, factual, wanted).min())


CASES = [
    ("even", 2, 0, None), ("even", 2, 1, None), ("odd", 2, 0, None), ("odd", 2, 1, None), ("votes", 2, 0, None),
    ("votes", 2, 1, None), ("tree", 2, 1, None), ("even", 2, 1, 0.375), ("even", 2, 0, 0.375), ("even", 2, 1, 0.3),
    ("even", 2, 0, 0.3), ("votes", 2, 1, 0.3), ("votes", 2, 0, 0.3), ("votes", 2, 1, float(np.nextafter(0.3, 0.0))),
    ("votes", 2, 0, float(np.nextafter(0.3, 1.0))), ("even", 3, 0, None), ("even", 3, 1, None), ("even", 3, 2, None),
    ("votes", 3, 1, None), ("tree", 3, 2, None), ("halves", 2, 0, None), ("halves", 2, 1, None), ("halves", 3, 1, None),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "classes", "target", "threshold"), CASES)
def test_counted_ties_are_decided_as_the_model_does(
    kind: str, classes: int, target: int, threshold: float | None
) -> None:
    """The optimum is that of all points by the model's own predictions, and the search asks it of its answer alone."""
    problem, method = voting(kind, classes, target, threshold), CeOcl("l1", 0.0)
    cells, asked = searcher(method, problem), []
    decide = cells._right
    cells._right = lambda row: bool(asked.append(row)) or decide(row)
    some = factuals(problem, 200)[::10]
    for factual in some:
        found = closest(cells, factual)
        assert found.proven
        assert found.value == pytest.approx(cheapest(method, problem, factual), abs=1e-9)
    assert len(asked) == len(some)


@pytest.mark.parametrize(("kind", "classes", "target", "threshold"), CASES)
def test_the_score_of_every_point_is_on_the_models_side(
    kind: str, classes: int, target: int, threshold: float | None
) -> None:
    """Ties among them: above 0 by more than any rounding where the model says what is wanted, else below."""
    problem = voting(kind, classes, target, threshold)
    raw = np.asarray(ensemble(problem.classifier.estimator).raw(POINTS.to_numpy(float)))
    scores = np.min([raw @ one.weights - one.threshold for one in conditions(problem)], axis=0)
    assert ((scores > 0) == problem.valid(POINTS)).all()
    assert scores[scores < 0].max() < -0.01
    if kind != "halves":  # of which all trees say the same
        assert scores[scores > 0].min() == pytest.approx(1e-8, rel=1e-3)


def test_outputs_that_rounding_moves_are_left_to_the_model() -> None:
    """Tenths, and leaves of many classes' shares, are no counts; nor is a sum of such a forest beside a constant."""
    assert ensemble(tenths("yes").classifier.estimator).counts == 0.0
    shallow = ExtraTreesClassifier(5, max_depth=2, random_state=0).fit(POINTS.to_numpy(float), POINTS["a"] > 4)
    assert ensemble(shallow).counts == 0.0
    counted = ensemble(voting("even", 2, 1).classifier.estimator)
    assert counted.counts == 1 / 8
    moved = {"base": np.array([0.1]), "mean": False, "weight": 0.1, "epsilon": 1e-3}
    assert [replace(counted, **{name: value}).counts for name, value in moved.items()] == [0.0] * 4
    assert ensemble(voting("halves", 2, 1).classifier.estimator).counts == 1 / 12
    (one,) = conditions(tenths("yes"))
    assert one.threshold == 0.5


def test_a_vote_more_is_asked_for_by_linear_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their relaxations know that half of the votes is too few: no whole point of theirs is refused."""
    problem, method = voting("votes", 2, 1), CeOcl("l1", 0.0)
    cells, asked = searcher(method, problem), []
    decide = cells._right
    cells._right = lambda row: bool(asked.append(decide(row))) or asked[-1]
    monkeypatch.setattr(search, "HARD", -1)
    monkeypatch.setattr(search, "EASY", 0)
    monkeypatch.setattr(search, "EFFORT", 0)
    for factual in factuals(problem, 200)[::20]:
        state = search.State(cells, search.Layout(cells, factual.to_dict("records")[0], [], 0.2))
        state.upper[0] = 9.0
        kernels.begin(state.clauses, state.states, state.nodes, state.counters)
        leaves = search.LeafSearch(state)
        leaves.run(search.Deadline.after(60.0))
        assert state.upper[0] == pytest.approx(cheapest(method, problem, factual), abs=1e-9)
        assert not leaves.open
    assert asked
    assert all(asked)
