"""Proofs by programs, checked by hand: of what a solver hardly tells apart, and of what lies far from the factual."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from harness.core.classifier import Classifier
from harness.core.explanation import Answer, Status
from harness.core.inputs import Affine, space_inputs
from harness.core.method import Deadline
from harness.core.problem import Problem
from harness.core.space import Actionability, Feature, Kind, Space
from harness.core.target import Label
from methods.robust import Robust

RHO = 0.05


def asked(
    space: Space, estimator: Any, inputs: Any, train: list[tuple[float, ...]], here: tuple[float, ...], **settings: Any
) -> Answer:
    """What the method answers to one point; rows that are robust are where it starts from."""
    rows = space.frame([dict(zip(space.names, row, strict=True)) for row in train])
    factual = space.frame([dict(zip(space.names, here, strict=True))]).set_axis(["new"])
    judge = Classifier(estimator, inputs, ("no", "yes"))
    question = Problem(space, judge, rows, np.empty(len(rows), dtype=object), Label("yes"))
    method = Robust(rho=RHO, **settings)
    assert method.refuses(question) is None
    return method.fit(question).explain(factual, 1, np.random.default_rng(0), Deadline.after(60)).answers[0]


@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize("sign", [1.0, -1.0], ids=["rising", "falling"])
def test_where_a_whole_number_just_falls_short_the_next_one_is_the_optimum(sign: float, known: bool) -> None:
    """Beyond 4.5, what is within 0.5 of 5 is accepted but for a last bit, which a solver does not see: 6 is nearest."""
    space = Space(
        (
            Feature("x", Kind.INTEGER, scale=(0, 10), bounds=(0, 10)),
            Feature("y", Kind.CONTINUOUS, scale=(0, 1), bounds=(0, 1)),
        )
    )
    stump = DecisionTreeClassifier().fit(sign * np.array([[0.4, 0.0], [0.5, 0.0]]), [0, 1])
    assert stump.predict(sign * np.array([[0.45, 0.0], [0.4501, 0.0], [0.55, 0.0]])).tolist() == [0, 1, 1]
    train = [(0, 0.0), (10, 1.0)] if known else [(0, 0.0)]
    inputs = (Affine("x", 0.0, sign * 10.0), Affine("y"))
    answer = asked(space, stump, inputs, train, (0, 0.0), algorithm="adversarial")
    assert answer.status is Status.OPTIMAL
    assert answer.row == {"x": 6, "y": 0.0}
    assert answer.objective == pytest.approx(0.6)


@pytest.mark.parametrize("seed", range(5))
def test_whole_numbers_against_all_of_them(seed: int) -> None:
    """Thresholds lie half way between whole numbers, where regions of half a unit end: all pairs are tried."""
    space = Space(tuple(Feature(name, Kind.INTEGER, scale=(0, 10), bounds=(0, 10)) for name in "ab"))
    rng = np.random.default_rng(seed)
    points = np.array(list(itertools.product(range(11), repeat=2)), dtype=float)
    wave = points[:, 1] > 5 + 3 * np.sin(points[:, 0] + seed) + rng.normal(size=len(points))
    tree = DecisionTreeClassifier(max_depth=3, random_state=0).fit(points / 10, wave.astype(int))
    around = np.array(list(itertools.product(np.linspace(-0.5, 0.5, 11), repeat=2)))
    robust = np.array([tree.predict((point + around) / 10).all() for point in points])
    for here in ((0, 0), (5, 2), (10, 1)):
        if tree.predict(np.array([here]) / 10)[0]:
            continue
        best = float((np.abs(points - here).sum(axis=1) / 10)[robust].min(initial=math.inf))
        answer = asked(space, tree, space_inputs(space), [(0, 0), (10, 10)], here, algorithm="adversarial")
        if answer.status is Status.INFEASIBLE:
            assert math.isinf(best)
            continue
        assert answer.bound is not None
        assert answer.bound <= best + 1e-6
        if answer.status is Status.OPTIMAL:
            assert answer.objective == pytest.approx(best, abs=1e-6)


@pytest.mark.parametrize("most", [1, 2])
def test_a_number_that_has_to_move_by_a_last_bit_is_a_change(most: int) -> None:
    """What is within 0.5 of 5 is accepted but for a last bit, so that the factual's own 5 has to change, too."""
    space = Space(tuple(Feature(name, Kind.CONTINUOUS, scale=(0, 10), bounds=(0, 10)) for name in "ab"))
    points = np.array([[0.4, 0.4], [0.4, 0.5], [0.5, 0.4], [0.5, 0.5]])
    tree = DecisionTreeClassifier(random_state=0).fit(points, [0, 0, 0, 1])
    assert tree.predict([[0.6, 0.45], [0.6, 0.4501]]).tolist() == [0, 1]
    train = [(0.0, 5.0), (10.0, 10.0)]
    answer = asked(space, tree, space_inputs(space), train, (0.0, 5.0), algorithm="adversarial", max_changes=most)
    if most == 1:
        assert answer.status is Status.INFEASIBLE
        return
    assert answer.status is Status.OPTIMAL
    assert answer.objective == pytest.approx(0.5, abs=1e-6)


ENDLESS = Space(
    (
        Feature("a", Kind.CONTINUOUS, scale=(0, 1), bounds=(-math.inf, math.inf)),
        Feature("b", Kind.CONTINUOUS, scale=(0, 1), bounds=(0, 1)),
    )
)


def score(end: float) -> LogisticRegression:
    """a + 6 b - end."""
    model = LogisticRegression().fit([[0.0, 0.0], [1.0, 1.0]], [0, 1])
    model.coef_, model.intercept_ = np.array([[1.0, 6.0]]), np.array([-end])
    return model


def steps() -> DecisionTreeClassifier:
    """Yes above a = 11.5, and above a = 5.5 where b is above 0.5."""
    points = np.array(list(itertools.product((5.0, 6.0, 11.0, 12.0), (0.0, 1.0))))
    labels = (points[:, 0] > 11.5) | ((points[:, 0] > 5.5) & (points[:, 1] > 0.5))
    tree = DecisionTreeClassifier(random_state=0).fit(points, labels.astype(int))
    assert set(tree.tree_.threshold[tree.tree_.children_left >= 0]) == {0.5, 5.5, 11.5}
    return tree


@pytest.mark.parametrize("known", [[], [(6.0, 1.0)]], ids=["unknown", "known"])
@pytest.mark.parametrize(
    ("model", "algorithm", "expected"),
    [(score(11.5), "auto", 111.85), (score(11.5), "adversarial", 111.85), (steps(), "adversarial", 111.55)],
    ids=["linear", "linear, adversarial", "tree, adversarial"],
)
def test_one_far_change_is_cheaper_than_two_near_ones(
    model: Any, algorithm: str, expected: float, known: list[tuple[float, ...]]
) -> None:
    """A change costs 100, a unit 1: a alone goes beyond ten ranges, where with b it would not have to."""
    train = [(0.0, 0.0), *known]
    answer = asked(ENDLESS, model, space_inputs(ENDLESS), train, (0.0, 0.0), algorithm=algorithm, alpha=100.0)
    assert answer.status is Status.OPTIMAL
    assert answer.objective == pytest.approx(expected, abs=2e-4)
    assert answer.row is not None
    assert answer.row["b"] == 0.0


@pytest.mark.parametrize(("alpha", "optimum"), [(0.0, 24.35 + 1.0), (100.0, 100.0 + 30.35)])
@pytest.mark.parametrize("algorithm", ["auto", "adversarial"])
def test_what_lies_beyond_ten_ranges_is_ruled_out_by_no_proof(algorithm: str, alpha: float, optimum: float) -> None:
    """Nothing nearer is robust: not proven impossible, and once a robust point is known, followed to the optimum."""
    inputs, settings = space_inputs(ENDLESS), {"algorithm": algorithm, "alpha": alpha}
    lost = asked(ENDLESS, score(30.0), inputs, [(0.0, 0.0)], (0.0, 0.0), **settings)
    assert lost.status is Status.GAVE_UP
    assert lost.bound == pytest.approx(10.0 + alpha)
    found = asked(ENDLESS, score(30.0), inputs, [(0.0, 0.0), (40.0, 0.0)], (0.0, 0.0), **settings)
    assert found.status is Status.OPTIMAL
    assert found.objective == pytest.approx(optimum, abs=2e-4)


def test_what_cannot_go_far_leaves_no_proof_open() -> None:
    """An immutable number without bounds: nothing lies beyond ten ranges of it, so nothing is left to look at."""
    space = Space(
        (
            Feature("age", Kind.CONTINUOUS, scale=(0, 1), bounds=(-1000, 1000), actionability=Actionability.IMMUTABLE),
            Feature("b", Kind.CONTINUOUS, scale=(0, 1), bounds=(0, 1)),
        )
    )
    estimator = LogisticRegression()
    estimator.coef_, estimator.intercept_ = np.array([[1.0, 1.0]]), np.array([-5.0])
    estimator.classes_, estimator.n_features_in_ = np.array([0, 1]), 2
    for algorithm in ("auto", "adversarial"):
        answer = asked(space, estimator, space_inputs(space), [(0.0, 0.0)], (0.5, 0.0), algorithm=algorithm)
        assert answer.status is Status.INFEASIBLE


def test_a_point_moved_out_of_its_leaf_rules_out_no_other() -> None:
    """Two thresholds lie exactly a move apart: where 3.5 comes to lie a last bit above it, its leaf is not the one to
    leave out. Of b at most 5 too little is accepted; above it a at most 4.5 (0.265 away), or above 5.5 (0.285)."""
    numbers = (Feature(name, Kind.CONTINUOUS, scale=(0, 20), bounds=(0, 20)) for name in "ab")
    below = {1: 0, 3.875: 0, 3.925: 1, 3.9375: 1, 4.0625: 0, 8: 0, 12: 0, 18: 0}
    above = {1: 1, 4.25: 1, 4.75: 0, 5.25: 0, 5.75: 1, 12: 1, 18: 1}
    rows = [(a, 4.5) for a in below] + [(a, 5.5) for a in above]
    tree = DecisionTreeClassifier(random_state=0).fit(rows, [*below.values(), *above.values()])
    assert {4.5, 5.0, 5.5} < {*tree.tree_.threshold}
    inputs = (Affine("a"), Affine("b"))
    answer = asked(Space(tuple(numbers)), tree, inputs, [(20, 20)], (4.8, 2.0), algorithm="adversarial")
    assert answer.status is Status.OPTIMAL
    assert answer.objective == pytest.approx(0.265, abs=1e-5)
