"""Whatever point a search starts from, what it proves is the same; by hand, and by all points of a grid."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.tree import DecisionTreeClassifier
from support.networks import random_network

from harness.core.classifier import Classifier
from harness.core.explanation import Status
from harness.core.inputs import space_inputs
from harness.core.method import Deadline
from harness.core.problem import Problem
from harness.core.space import Feature, Kind, Space
from harness.core.target import Label
from harness.solvers.highs import Solution
from methods.ce_ocl import CeOcl
from methods.ce_ocl.one_answer import AGAIN, AnswerSearch
from methods.ce_ocl.program import CounterfactualProgram
from methods.ce_ocl.program_engine import ProgramEngine
from methods.ce_ocl.runs import Runs
from methods.estimators.linear import surely_valid

NAMES = ("a", "b", "c")


def problem(high: float, least: float) -> Problem:
    """Wanted is a + b + c above ``least``; each is from 0 to ``high``, in units of 1."""
    space = Space(tuple(Feature(name, Kind.CONTINUOUS, scale=(0.0, 1.0), bounds=(0.0, high)) for name in NAMES))
    model = LogisticRegression()
    model.classes_, model.n_features_in_ = np.array([0, 1]), 3
    model.coef_, model.intercept_ = np.ones((1, 3)), np.array([-least])
    frame = pd.DataFrame(np.random.default_rng(0).uniform(0, high, (30, 3)), columns=NAMES)
    classifier = Classifier(model, space_inputs(space), ("no", "yes"))
    labels = np.where(frame.sum(axis=1) > least, "yes", "no").astype(object)
    return Problem(space, classifier, frame, labels, Label("yes"))


def start(monkeypatch: pytest.MonkeyPatch, row: tuple[float, float, float]) -> None:
    guess = pd.DataFrame([row], columns=NAMES)
    monkeypatch.setattr(ProgramEngine, "_guesses", lambda engine, factual, deadline: guess)


def test_a_start_that_rounding_decides_is_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """One float above the threshold the sum of other rows beside it may say something else."""
    question, near = problem(0.88, 0.85), float(np.nextafter(0.85, 1.0))
    row = pd.DataFrame([(near, 0.0, 0.0)], columns=NAMES)
    assert question.valid(row)[0]
    assert not surely_valid(question, row)[0]
    start(monkeypatch, (near, 0.0, 0.0))
    factual = pd.DataFrame([(0.0, 0.0, 0.0)], columns=NAMES)
    explainer = CeOcl("l1", 0.1, engine="milp").fit(question)
    (answer,) = explainer.explain(factual, 1, np.random.default_rng(0), Deadline.after(60)).answers
    assert answer.status is Status.OPTIMAL
    assert answer.objective == pytest.approx(0.95, abs=1e-6)
    assert surely_valid(question, question.space.frame([answer.row]))[0]


def test_fewer_changes_that_come_first_are_not_yet_the_best(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of .85 in one number, two or three, squared, at .3 a change: 1.0225, .96125 and 1.14083.

    From three changes, of a distance below the price of one, the fewest are looked for first: one, which .88 as a bound
    makes better than three. Its distance is above that price, so that it says nothing of two.
    """
    question = problem(0.88, 0.85)
    start(monkeypatch, (0.2834, 0.2834, 0.2834))
    factual = pd.DataFrame([(0.0, 0.0, 0.0)], columns=NAMES)
    explainer = CeOcl("l2sq", 0.3, engine="milp").fit(question)
    (answer,) = explainer.explain(factual, 1, np.random.default_rng(0), Deadline.after(60)).answers
    assert answer.status is Status.OPTIMAL
    assert answer.objective == pytest.approx(0.96125, abs=1e-5)


def test_a_point_too_near_to_the_factual_is_no_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """A factual that needs no counterfactual is told, and then the best points that are further than the separation."""
    question = problem(1.0, 0.5)
    start(monkeypatch, (0.31, 0.3, 0.3))
    factual = pd.DataFrame([(0.3, 0.3, 0.3)], columns=NAMES)
    explainer = CeOcl("l2sq", 1e4, diversity="assignments", separation=0.1).fit(question)
    answers = explainer.explain(factual, 3, np.random.default_rng(0), Deadline.after(60)).answers
    assert [answer.objective for answer in answers] == pytest.approx([0.0, 10000.01, 10000.01], abs=1e-6)


def test_squares_far_below_the_first_budget_are_posed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """From the farthest of all valid points the nearest is proven still, with a second budget that it set."""
    posed: list[float] = []
    pose = CounterfactualProgram.pose

    def watched(program: CounterfactualProgram, *args: Any, **more: Any) -> None:
        posed.append(float(args[3]))
        pose(program, *args, **more)

    monkeypatch.setattr(CounterfactualProgram, "pose", watched)
    again = 0
    for seed in range(12):
        question, factual, nearest = far_question(seed, monkeypatch)
        posed.clear()
        explainer = CeOcl("l2sq", 0.0, engine="milp").fit(question)
        monkeypatch.setattr(explainer.engine, "few", None)  # what it finds is near already
        (answer,) = explainer.explain(factual, 1, np.random.default_rng(0), Deadline.after(60)).answers
        assert answer.status is Status.OPTIMAL
        assert answer.objective == pytest.approx(nearest, abs=1e-9)
        again += len({budget for budget in posed if np.isfinite(budget)}) > 1
    assert again >= 6


def test_squares_of_cells_are_posed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of trees are constants: a smaller budget sharpens nothing."""
    ends = (0.0, 12.0)
    space = Space(tuple(Feature(name, Kind.INTEGER, scale=ends, bounds=ends) for name in "ab"))
    grid = pd.DataFrame(itertools.product(range(13), repeat=2), columns=["a", "b"])
    points = space.encode(grid)
    model = DecisionTreeClassifier(random_state=0).fit(points, points.sum(axis=1) > 0.8)
    classifier = Classifier(model, space_inputs(space), ("no", "yes"))
    question = Problem(space, classifier, grid, np.full(len(grid), "no", dtype=object), Label("yes"))
    monkeypatch.setattr(ProgramEngine, "_guesses", guessing(grid.iloc[[-1]]))
    far, anew = AnswerSearch._far_below, list[bool]()

    def watched(search: AnswerSearch, budget: float, lexical: bool) -> bool:
        anew.append(search._reached(lexical) < AGAIN * budget)
        return far(search, budget, lexical) and pytest.fail("posed again")

    monkeypatch.setattr(AnswerSearch, "_far_below", watched)
    explainer = CeOcl("l2sq", 0.0, engine="milp").fit(question)
    (answer,) = explainer.explain(grid.iloc[[0]], 1, np.random.default_rng(0), Deadline.after(60)).answers
    good = question.valid(grid)
    assert answer.objective == pytest.approx((points**2).sum(axis=1)[good].min(), abs=1e-9)
    assert any(anew)


@pytest.mark.parametrize("late", [False, True])
def test_a_bound_that_is_known_stays_when_time_is_up(late: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A first solve is cut short at nine tenths of its point; squares posed again, if there is time, find nothing."""
    solve, anew, solved, again = Runs.next, AnswerSearch._anew, list[float](), 0

    def cut(runs: Runs, seconds: float) -> Solution:
        found = solve(runs, seconds)
        runs.confirmed = True  # nothing is claimed
        solved.append(found.objective)
        time.sleep(seconds if late else 0.0)
        return replace(found, bound=0.9 * found.objective) if len(solved) == 1 else Solution(None, np.inf, -np.inf)

    def watched(search: AnswerSearch, count: float, lexical: bool, proof: float) -> Solution:
        nonlocal again
        again += 1
        return anew(search, count, lexical, proof)

    monkeypatch.setattr(Runs, "next", cut)
    monkeypatch.setattr(AnswerSearch, "_anew", watched)
    for seed in range(6):
        question, factual, _ = far_question(seed, monkeypatch)
        solved.clear()
        explainer = CeOcl("l2sq", 0.0, engine="milp").fit(question)
        monkeypatch.setattr(explainer.engine, "few", None)
        deadline = Deadline.after(0.5 if late else 60.0)
        (answer,) = explainer.explain(factual, 1, np.random.default_rng(0), deadline).answers
        assert answer.status is Status.FOUND
        assert answer.bound == pytest.approx(0.9 * solved[0])
        assert len(solved) == (1 if late else 2)
    assert again == (0 if late else 6)


@pytest.mark.parametrize("hull", ["none", "penalised", "fallback"])
@pytest.mark.parametrize("engine", ["auto", "milp"])
def test_a_valid_factual_may_stay(engine: str, hull: str) -> None:
    """Where that is cheapest, as of all points of a grid, and outside the hull of four of them with its price."""
    ends = (0.0, 4.0)
    space = Space(tuple(Feature(name, Kind.INTEGER, scale=ends, bounds=ends) for name in "ab"))
    grid = pd.DataFrame(itertools.product(range(5), repeat=2), columns=["a", "b"])
    stayed = 0
    for seed, alpha in itertools.product(range(6), (0.0, 0.1, 1e4)):
        question = network_on(space, grid, seed)
        valid = question.valid(grid)
        rng = np.random.default_rng(seed)
        points = grid.iloc[rng.choice(len(grid), 4, replace=False)].reset_index(drop=True)
        question = Problem(space, question.classifier, points, np.full(4, "yes", dtype=object), Label("yes"))
        factual = grid.iloc[[rng.choice(np.flatnonzero(valid))]].reset_index(drop=True)
        method = CeOcl("l2sq", alpha, hull=hull, penalty=1.0, engine=engine)
        each = pd.concat([factual] * len(grid), ignore_index=True)
        least = method.objective(question).evaluate(space, each, grid)[valid].min()
        (answer,) = method.fit(question).explain(factual, 1, np.random.default_rng(0), Deadline.after(60)).answers
        assert answer.status is Status.OPTIMAL
        assert answer.objective == pytest.approx(least, abs=1e-6)
        stayed += answer.row == factual.to_dict("records")[0]
    assert stayed >= 6


@pytest.mark.parametrize("hull", ["hard", "fallback"])
@pytest.mark.parametrize("engine", ["auto", "milp"])
def test_a_valid_factual_may_be_the_only_row_of_its_category(engine: str, hull: str) -> None:
    """To stay is within the hull and costs nothing; the other category is a unit away."""
    space = Space(
        (
            Feature("n", Kind.INTEGER, scale=(0.0, 4.0), bounds=(0.0, 4.0)),
            Feature("group", Kind.CATEGORICAL, ("east", "west")),
        )
    )
    rows = space.frame([{"n": 3, "group": "east"}, *({"n": n, "group": "west"} for n in range(5))])
    model = LogisticRegression().fit(space.encode(rows), [0, 1, 1, 1, 1, 1])
    model.coef_[:], model.intercept_[:] = 0.0, 1.0
    classifier = Classifier(model, space_inputs(space), ("no", "yes"))
    question = Problem(space, classifier, rows, np.full(6, "yes", dtype=object), Label("yes"))
    method = CeOcl("l1", 0.0, hull=hull, engine=engine)
    (answer,) = method.fit(question).explain(rows.iloc[[0]], 1, np.random.default_rng(0), Deadline.after(60)).answers
    assert (answer.status, answer.objective) == (Status.OPTIMAL, 0.0)
    assert answer.row == {"n": 3, "group": "east"}


def far_question(seed: int, monkeypatch: pytest.MonkeyPatch) -> tuple[Problem, pd.DataFrame, float]:
    """A network on a grid, a factual, and the least squared distance; searches start from the farthest valid point."""
    ends = (0.0, 400.0)
    space = Space(tuple(Feature(name, Kind.INTEGER, scale=ends, bounds=ends) for name in "ab"))
    grid = pd.DataFrame(itertools.product(range(401), repeat=2), columns=["a", "b"])
    question = network_on(space, grid, seed)
    good = question.valid(grid)
    factual = grid.iloc[[int(np.random.default_rng(seed).choice(np.flatnonzero(~good)))]].reset_index(drop=True)
    away = (((grid - factual.iloc[0]) / 400.0) ** 2).sum(axis=1)
    monkeypatch.setattr(ProgramEngine, "_guesses", guessing(grid.loc[[away[good].idxmax()]]))
    return question, factual, float(away[good].min())


def guessing(frame: pd.DataFrame) -> Callable[[Any, Any, Any], pd.DataFrame]:
    return lambda engine, factual, deadline: frame


def network_on(space: Space, grid: pd.DataFrame, seed: int) -> Problem:
    """A network of six ReLUs with random weights; a third of the grid is wanted."""
    rng, points = np.random.default_rng(seed), space.encode(grid)
    model = MLPClassifier((6,), max_iter=1, random_state=0)
    random_network(model, points, np.arange(len(grid)) % 2, np.random.default_rng(0))
    model.coefs_ = [rng.normal(scale=3.0, size=(2, 6)), rng.normal(size=(6, 1))]
    model.intercepts_ = [rng.normal(size=6), np.zeros(1)]
    hidden = np.maximum(points @ model.coefs_[0] + model.intercepts_[0], 0.0)
    model.intercepts_[1] = -np.quantile(hidden @ model.coefs_[1], [2 / 3]) - 1e-4  # on no point of the grid
    classifier = Classifier(model, space_inputs(space), ("no", "yes"))
    return Problem(space, classifier, grid, np.full(len(grid), "no", dtype=object), Label("yes"))
