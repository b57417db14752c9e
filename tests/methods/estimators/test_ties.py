"""Forests whose means come to a threshold, or within rounding of it: no point that the model accepts is excluded."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.tree import DecisionTreeClassifier

from harness.core.classifier import Classifier
from harness.core.explanation import Status
from harness.core.inputs import Affine
from harness.core.method import Deadline, Method
from harness.core.problem import Problem
from harness.core.space import Feature, Kind, Space
from harness.core.target import Label
from methods.ce_ocl import CeOcl
from methods.robust import Robust

SPACE = Space((Feature("x", Kind.CONTINUOUS, scale=(0, 1), bounds=(0, 1)),))


def stump(split: float, share: float = 1.0, third: bool = False) -> DecisionTreeClassifier:
    """Class 0 left of a split, where wanted with a tenth of class 2; on the right a share, in tenths, of class 1."""
    rows = np.repeat([split - 0.1, split + 0.1], 10).reshape(-1, 1)
    labels = [2 * third] + [0] * 9 + [1] * round(10 * share) + [0] * round(10 - 10 * share)
    return DecisionTreeClassifier(max_depth=1, random_state=0).fit(rows, labels)


def forest(*trees: DecisionTreeClassifier) -> RandomForestClassifier:
    made = RandomForestClassifier(len(trees))
    made.estimators_, made.classes_ = list(trees), trees[0].classes_
    made.n_classes_, made.n_outputs_, made.n_features_in_ = len(trees[0].classes_), 1, 1
    return made


@pytest.mark.parametrize(
    ("trees", "threshold", "first"),
    [
        ([stump(0.2), stump(0.5), stump(0.8)], 0.3333333, 0.2),  # below a third, which is class 1
        ([stump(0.2), stump(0.5), stump(0.8)], 1 / 3, 0.5),  # a third is not above it
        ([stump(0.3), stump(0.7)], float(np.nextafter(0.5, 0.0)), 0.3),
        ([stump(0.5, 0.4), stump(0.5, 0.3), stump(0.5, 0.3), stump(0.5)], None, 0.5),  # a half, as sklearn adds it up
    ],
)
@pytest.mark.parametrize(
    ("method", "margin"),
    [(CeOcl(distance="linf"), 0.0), (CeOcl(engine="milp"), 0.0), (Robust(rho=0.05, algorithm="adversarial"), 0.05)],
    ids=["linf", "milp", "robust"],
)
def test_a_mean_at_the_threshold_counts_as_the_model_has_it(
    trees: list[DecisionTreeClassifier], threshold: float | None, first: float, method: Method, margin: float
) -> None:
    rows, factual = SPACE.frame([{"x": 0.0}, {"x": 0.05}]), SPACE.frame([{"x": 0.0}]).set_axis([7])
    classifier = Classifier(forest(*trees), (Affine("x"),), ("no", "yes"), threshold)
    assert classifier.predict(SPACE.frame([{"x": first - 0.01}, {"x": first + 0.01}])).tolist() == ["no", "yes"]
    problem = Problem(SPACE, classifier, rows, np.array(["no", "no"], dtype=object), Label("yes"))
    answer = method.fit(problem).explain(factual, 1, np.random.default_rng(0), Deadline.after(30)).answers[0]
    assert answer.status is Status.OPTIMAL
    assert answer.objective == pytest.approx(first + margin, abs=1e-5)


@pytest.mark.parametrize(
    ("method", "margin"),
    [(CeOcl(distance="linf"), 0.0), (Robust(rho=0.05, algorithm="adversarial"), 0.05)],
    ids=["linf", "robust"],
)
def test_one_of_three_classes_leads_as_the_model_adds_up(method: Method, margin: float) -> None:
    """Classes 0 and 1 have two votes each, of which sklearn rounds those of class 0 down."""
    trees = [stump(0.5, share, third=True) for share in (0.4, 0.3, 0.3, 1.0)]
    classifier = Classifier(forest(*trees), (Affine("x"),), ("a", "b", "c"))
    assert classifier.predict(SPACE.frame([{"x": 0.49}, {"x": 0.51}])).tolist() == ["a", "b"]
    rows, factual = SPACE.frame([{"x": 0.0}, {"x": 0.05}]), SPACE.frame([{"x": 0.0}]).set_axis([7])
    problem = Problem(SPACE, classifier, rows, np.array(["a", "a"], dtype=object), Label("b"))
    answer = method.fit(problem).explain(factual, 1, np.random.default_rng(0), Deadline.after(30)).answers[0]
    assert answer.status is Status.OPTIMAL
    assert answer.objective == pytest.approx(0.5 + margin, abs=1e-5)
