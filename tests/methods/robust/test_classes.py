"""Regions of one class of three: against a grid of the model's own predictions, and the checker's own algorithms."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np
import pytest
from scipy.spatial import cKDTree
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.tree import DecisionTreeClassifier
from support.plane import SPACE, rows

from harness.core.classifier import Classifier
from harness.core.explanation import Answer, Status
from harness.core.inputs import space_inputs
from harness.core.method import Deadline
from harness.core.problem import Problem
from harness.core.target import Classes, Label
from harness.evaluation.regions import HOLDS, verdict
from methods.robust import Robust

MODELS: dict[str, Any] = {
    "lr": LogisticRegression(C=50),
    "cart": DecisionTreeClassifier(max_depth=4, random_state=0),
    "rf": RandomForestClassifier(4, max_depth=3, random_state=0),
    "gbm": GradientBoostingClassifier(n_estimators=4, max_depth=2, learning_rate=0.5, random_state=0),
    "mlp": MLPClassifier((3,), max_iter=3000, random_state=1),
}
RHO, STEP = 0.04, 1 / 120


@cache
def problem(name: str, target: Label | Classes) -> Problem:
    """Three regions of a plane that meet in a point: each class has two neighbours."""
    frame, _ = rows()
    x = SPACE.encode(frame)
    labels = np.where(x[:, 1] > 0.35 + 0.4 * np.abs(x[:, 0] - 0.5), 2, (x[:, 0] > 0.45).astype(int))
    classifier = Classifier(MODELS[name].fit(x, labels), space_inputs(SPACE), classes=("a", "b", "c"))
    return Problem(SPACE, classifier, frame, np.array(["a", "b", "c"], dtype=object)[labels], target)


def by_grid(question: Problem, norm: str, here: np.ndarray) -> tuple[float, float]:
    """Bounds of the optimum: the best grid point that could be robust, and the best that surely is."""
    p = np.inf if norm == "linf" else 2
    points = np.stack(np.meshgrid(*2 * [np.arange(0, 1 + STEP / 2, STEP)]), axis=-1).reshape(-1, 2)
    around = np.stack(np.meshgrid(*2 * [np.arange(-0.2, 1.2, STEP)]), axis=-1).reshape(-1, 2)
    depth = cKDTree(around[~question.valid(SPACE.decode(around))]).query(points, p=p)[0]
    near = STEP * (1.0 if norm == "linf" else math.sqrt(2))
    cost = np.abs(points - here).sum(axis=1)
    least = cost[depth >= RHO - 2 * near].min(initial=np.inf) - 2 * STEP
    return float(least), float(cost[depth >= RHO + near].min(initial=np.inf))


def assert_proven(answer: Answer, question: Problem, least: float, sure: float) -> None:
    """Optimal, within what a grid says of the optimum, and confirmed by the checker."""
    assert answer.status is Status.OPTIMAL
    assert answer.objective is not None
    assert least <= answer.objective <= sure + 1e-6
    assert answer.row is not None
    assert answer.region is not None
    assert verdict(SPACE, question.classifier, question.target, answer.row, answer.region) == HOLDS


@pytest.mark.parametrize("wanted", ["a", "b", "c"])
@pytest.mark.parametrize("norm", ["linf", pytest.param("l2", marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", MODELS)
def test_the_whole_region_is_of_the_wanted_class(name: str, norm: str, wanted: str) -> None:
    """Proven, as near as the grid says, and confirmed by the checker, which looks for each other class by itself.

    The network never says "a", and that there is no region is proven, too.
    """
    question, method = problem(name, Label(wanted)), Robust(rho=RHO, norm=norm)
    assert method.refuses(question) is None
    factual = question.train.loc[~question.valid(question.train)].iloc[[3]]
    answer = method.fit(question).explain(factual, 1, np.random.default_rng(0), Deadline.after(60)).answers[0]
    least, sure = by_grid(question, norm, SPACE.encode(factual)[0])
    if (name, wanted) == ("mlp", "a"):
        assert (answer.status, least) == (Status.INFEASIBLE, np.inf)
        return
    assert_proven(answer, question, least, sure)


@pytest.mark.parametrize(
    ("name", "norm", "wanted", "here"),
    [
        ("cart", "linf", "ab", (0.45, 0.6)),
        ("cart", "l2", "ab", (0.45, 0.6)),
        ("rf", "linf", "ac", (0.52, 0.4)),
        ("gbm", "linf", "ac", (0.5, 0.2)),
    ],
)
def test_a_region_may_be_of_one_wanted_class_here_and_another_there(
    name: str, norm: str, wanted: str, here: tuple[float, float]
) -> None:
    """Of two classes all points are of one or the other: as near as the grid says, nearer than of either alone."""
    question, method = problem(name, Classes(tuple(wanted))), Robust(rho=RHO, norm=norm)
    assert method.refuses(question) is None
    factual = SPACE.decode(np.array([here])).set_axis(["new"])  # before where the two meet
    assert not question.valid(factual)[0]
    answer, *alone = (
        method.fit(asked).explain(factual, 1, np.random.default_rng(0), Deadline.after(60)).answers[0]
        for asked in (question, *(problem(name, Label(one)) for one in wanted))
    )
    least, sure = by_grid(question, norm, SPACE.encode(factual)[0])
    assert_proven(answer, question, least, sure)
    assert answer.objective < min(one.objective for one in alone if one.objective is not None) - 1e-3


@pytest.mark.parametrize(
    ("name", "target", "parameters", "words"),
    [
        ("lr", Classes(("a", "c")), {}, "is certified of trees alone; set 'desired' to a class"),
        ("mlp", Classes(("a", "c")), {}, "is certified of trees alone; set 'desired' to a class"),
        ("rf", Label("a"), {"algorithm": "cells"}, "the cell search takes two classes"),
        ("rf", Label("a"), {"clip": True}, "the cell search takes two classes"),
        ("mlp", Label("a"), {"algorithm": "network"}, "algorithm=network takes two classes; set algorithm=auto"),
    ],
)
def test_what_takes_two_classes_says_so(
    name: str, target: Label | Classes, parameters: dict[str, Any], words: str
) -> None:
    why = Robust(rho=RHO, **parameters).refuses(problem(name, target))
    assert why is not None
    assert words in why
