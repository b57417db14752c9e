"""Relations between features around robust counterfactuals: at the point, or in its whole region, against grids."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.spatial import cKDTree
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.tree import DecisionTreeClassifier
from support.plane import SPACE, rows

from harness.core.classifier import Classifier
from harness.core.explanation import Answer, Status
from harness.core.inputs import space_inputs
from harness.core.method import Deadline
from harness.core.problem import Problem
from harness.core.target import Label
from methods.robust import Robust

MODELS: dict[str, Any] = {
    "lr": LogisticRegression(C=100),
    "cart": DecisionTreeClassifier(max_depth=3, random_state=0),
    "rf": RandomForestClassifier(3, max_depth=2, random_state=0),
    "mlp": MLPClassifier((5,), max_iter=2000, random_state=0),
}
RHO, STEP = 0.04, 1 / 120
ONES = ((1.0, 1.0), (1.0, 1.0))  # what a scaled unit of each number costs, downwards and upwards
# In words, and of scaled points: how far they are within it, in scaled units of either norm (negative: outside).
RELATIONS: dict[str, tuple[str, Any]] = {
    "line": ("b <= 0.1 * a", lambda x, dual: (1 + x[:, 0] - 2 * x[:, 1]) / dual([1, 2])),
    "either": (
        "if a > 5 then b >= 0.5",
        lambda x, dual: np.maximum(0.5 - x[:, 0], x[:, 1] - 0.75),
    ),
    "unequal": ("a + 5 * b != 6", lambda x, dual: np.abs(10 * x[:, 0] + 10 * x[:, 1] - 11) / dual([10, 10])),
}


@cache
def problem(name: str, relation: str) -> Problem:
    frame, labels = rows()
    classifier = Classifier(MODELS[name].fit(SPACE.encode(frame), labels), space_inputs(SPACE), classes=("no", "yes"))
    space = replace(SPACE, constraints=(RELATIONS[relation][0],))
    return Problem(space, classifier, frame, np.array(["no", "yes"], dtype=object)[labels], Label("yes"))


def answer(question: Problem, place: int = 0, **parameters: Any) -> tuple[np.ndarray, Answer]:
    """A factual that breaks nothing by itself, scaled, and what ``robust`` answers to it."""
    method = Robust(rho=RHO, **parameters)
    assert method.refuses(question) is None
    frame = question.train.loc[~question.valid(question.train)]
    (relation,) = question.space.relations
    frame = frame.loc[[not relation.broken_by(frame.iloc[[k]]) for k in range(len(frame))]].iloc[[place]]
    found = method.fit(question).explain(frame, 1, np.random.default_rng(0), Deadline.after(60))
    return SPACE.encode(frame)[0], found.answers[0]


def by_grid(
    question: Problem, relation: str, norm: str, everywhere: bool, here: np.ndarray, rates: Any = ONES
) -> tuple[float, float]:
    """Bounds of the optimum: the best grid point that could be robust and related, and the best that surely is."""
    p = np.inf if norm == "linf" else 2
    points = np.stack(np.meshgrid(*2 * [np.arange(0, 1 + STEP / 2, STEP)]), axis=-1).reshape(-1, 2)
    around = np.stack(np.meshgrid(*2 * [np.arange(-0.2, 1.2, STEP)]), axis=-1).reshape(-1, 2)
    depth = cKDTree(around[~question.valid(SPACE.decode(around))]).query(points, p=p)[0]
    within = RELATIONS[relation][1](points, lambda v: np.linalg.norm(v, 1 if norm == "linf" else 2))
    near, room = STEP * (1.0 if norm == "linf" else math.sqrt(2)), RHO if everywhere else 0.0
    could = (depth >= RHO - 2 * near) & (within >= room - 2 * near)
    sure = (depth >= RHO + near) & (within >= room + 1e-9)
    moves, (down, up) = points - here, np.asarray(rates)
    cost = (np.where(moves > 0, up, down) * np.abs(moves)).sum(axis=1)
    near = STEP * float(np.maximum(down, up).sum())
    return float(cost[could].min(initial=np.inf)) - near, float(cost[sure].min(initial=np.inf))


@pytest.mark.parametrize("everywhere", [False, True])
@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("norm", ["linf", pytest.param("l2", marks=pytest.mark.slow)])
def test_the_optimum_lies_where_a_grid_says(name: str, relation: str, everywhere: bool, norm: str) -> None:
    """The cost is that of the best robust point of a grid that keeps the relation, by itself or with its region."""
    if norm == "l2" and everywhere and relation == "either":
        return
    question = problem(name, relation)
    for place in (0, 7):
        here, found = answer(question, place, norm=norm, relations_in_region=everywhere)
        low, high = by_grid(question, relation, norm, everywhere, here)
        assert found.status is Status.OPTIMAL
        assert found.row is not None
        assert found.objective is not None
        assert low <= found.objective <= high + 1e-6
        x = SPACE.encode(SPACE.frame([found.row]))
        within = RELATIONS[relation][1](x, lambda v: np.linalg.norm(v, 1 if norm == "linf" else 2))[0]
        assert within >= (RHO if everywhere else 0.0) - 1e-8


@pytest.mark.parametrize("everywhere", [False, True])
@pytest.mark.parametrize("name", MODELS)
def test_relations_and_costs_together(name: str, everywhere: bool) -> None:
    """Where ways cost unequally, and turned the other way: the grid's cheapest point that keeps both."""
    plain, found = problem(name, "line"), []
    for down, up in (((0.4, 3.0), (5.0, 0.7)), ((5.0, 0.7), (0.4, 3.0))):
        prices = {x: {"weight_down": d, "weight_up": u} for x, d, u in zip("ab", down, up, strict=True)}
        question = replace(plain, space=plain.space.replace(prices))
        here, answer_ = answer(question, 7, relations_in_region=everywhere)
        low, high = by_grid(question, "line", "linf", everywhere, here, (down, up))
        assert answer_.status is Status.OPTIMAL
        assert answer_.objective is not None
        assert low <= answer_.objective <= high + 1e-6
        assert answer_.row is not None
        moves = SPACE.encode(SPACE.frame([answer_.row]))[0] - here
        assert answer_.objective == pytest.approx(float((np.where(moves > 0, up, down) * np.abs(moves)).sum()))
        found.append(answer_.objective)
    assert abs(found[0] - found[1]) > 1e-3, "the costs decide nothing"


def test_a_relation_that_leaves_no_region_is_named() -> None:
    """A box of 0.04 to either side is wider than the strip that two relations leave; without one of them it fits."""
    texts = ("b <= 0.1 * a", "b >= 0.1 * a - 0.05", "a + b >= 0")
    plain = problem("lr", "line")
    question = replace(plain, space=replace(plain.space, constraints=texts))
    factual = SPACE.frame([{"a": 2.0, "b": 0.17}]).set_axis(["new"])
    assert not plain.valid(factual)[0]
    method = Robust(rho=RHO, relations_in_region=True)
    found = method.fit(question).explain(factual, 1, np.random.default_rng(0), Deadline.after(60))
    assert found.answers[0].status is Status.INFEASIBLE
    assert found.conflict == texts[:2]
    assert texts[0] in found.answers[0].detail
    assert ask_at_point(question, factual).status is Status.OPTIMAL


def ask_at_point(question: Problem, factual: pd.DataFrame) -> Answer:
    return Robust(rho=RHO).fit(question).explain(factual, 1, np.random.default_rng(0), Deadline.after(60)).answers[0]


def test_parts_of_a_relation_that_may_hold_in_turn_are_refused() -> None:
    """In a ball, or where both parts name a number, one of them may hold here and the other there."""
    method = Robust(rho=RHO, norm="l2", relations_in_region=True)
    assert "which part of 'if a > 5 then b >= 0.5' holds" in str(method.refuses(problem("lr", "either")))
    assert replace(method, unperturbed=("b",)).refuses(problem("lr", "either")) is None
    shared = replace(problem("lr", "line").space, constraints=("if a > 5 then a + b >= 7",))
    question = replace(problem("lr", "line"), space=shared)
    assert "set relations_in_region=false" in str(replace(method, norm="linf").refuses(question))
    assert Robust(rho=RHO).refuses(question) is None
    assert "keeps no relations" in str(Robust(rho=RHO, algorithm="cells").refuses(problem("cart", "line")))
