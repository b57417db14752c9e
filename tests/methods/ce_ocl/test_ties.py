"""Scores and numbers that tie exactly, and outputs that are constant, beside what enumeration finds."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from harness.core.explanation import Status
from harness.core.tolerances import OPTIMALITY_GAP
from harness.library import Task, explain, pose
from methods.ce_ocl import CeOcl

pytestmark = pytest.mark.every(1)
GRID = pd.DataFrame(list(itertools.product(range(4), range(-2, 4), range(3))), columns=["f0", "f1", "f2"])
SPANS = np.array([3.0, 5.0, 2.0])
LINE = pd.DataFrame({"f0": range(7)})


def of_points(weights: list[float], intercept: float) -> tuple[Task, np.ndarray]:
    """A linear model with whole weights, as sums of points are, and its scores of all rows of ``GRID``."""
    model = LogisticRegression().fit(GRID, np.arange(len(GRID)) % 2)
    model.coef_[:], model.intercept_[:] = [weights], intercept
    table = GRID.assign(y=model.predict(GRID))
    return pose(table, "y", model, desired=1), GRID.to_numpy() @ np.array(weights) + intercept


@pytest.mark.parametrize(
    ("person", "distance", "nearest"),
    [((2, -2, 2), "l1", 0.2), ((2, -2, 2), "linf", 0.2), ((2, -2, 1), "l1", 8 / 15), ((2, -2, 1), "linf", 1 / 3)],
)
def test_people_whose_score_is_0_have_the_nearest_point(person: tuple[int, ...], distance: str, nearest: float) -> None:
    """At 0 it is still refused, and one step away not: the solver's tolerances see no difference."""
    task, scores = of_points([-2, 1, 2], 2)
    steps = np.abs(GRID.to_numpy() - person) / SPANS
    costs = steps.sum(axis=1) if distance == "l1" else steps.max(axis=1)
    assert costs[scores > 0].min() == pytest.approx(nearest)
    answer = explain(CeOcl(distance=distance, alpha=0), task, dict(zip(GRID, person, strict=True))).answers[0]
    assert answer.objective == pytest.approx(nearest)


def test_sums_of_points_are_always_answered() -> None:
    """Wherever another person is accepted; what is called optimal is."""
    draw, proven = np.random.default_rng(3), 0
    for _ in range(6):
        task, scores = of_points(draw.integers(-3, 4, 3).tolist(), int(draw.integers(-2, 3)))
        if not (scores > 0).any():
            continue
        for row in draw.permutation(np.flatnonzero(scores <= 0))[:4]:
            costs = (np.abs(GRID.to_numpy() - GRID.to_numpy()[row]) / SPANS).sum(axis=1)
            answer = explain(CeOcl(distance="l1", alpha=0), task, GRID.iloc[row].to_dict()).answers[0]
            assert answer.status.found
            assert answer.bound is None or answer.bound <= costs[scores > 0].min() + OPTIMALITY_GAP
            if answer.status is Status.OPTIMAL:
                assert answer.objective == pytest.approx(costs[scores > 0].min())
                proven += 1
    assert proven > 5


@pytest.mark.parametrize(
    ("weights", "intercepts", "desired"),
    [
        ([0, -2, 0], [-1, 2, 0], 2),  # the lead over class 0 is constant; a tie with class 1 has to be passed
        ([-1, -1, -2], [2, 2, -1], 1),  # 1 ties with 0 everywhere, and the first is said
        ([-1, -1, -2], [2, 2, -1], 0),
        ([-2, 1, -2], [1, 2, 2], 0),  # 2 is ahead of 0 everywhere
    ],
)
def test_leads_that_are_constant(weights: list[int], intercepts: list[int], desired: int) -> None:
    model = LinearSVC().fit(LINE, [0, 1, 2, 0, 1, 2, 0])
    model.coef_, model.intercept_ = np.array([weights], dtype=float).T, np.array(intercepts, dtype=float)
    said = model.predict(LINE)
    task = pose(LINE.assign(y=[0, 1, 2, 0, 1, 2, 0]), "y", model, desired=desired)
    for row in np.flatnonzero(said != desired):
        answer = explain(CeOcl(alpha=0), task, {"f0": int(row)}).answers[0]
        if desired in said:
            assert answer.objective == pytest.approx(np.abs(np.flatnonzero(said == desired) - row).min() / 6)
        else:
            assert answer.status is Status.INFEASIBLE


@pytest.mark.parametrize("own", [{}, {"weight_up": 3.0, "weight_down": 1.0}])
@pytest.mark.parametrize("engine", ["auto", "milp"])
@pytest.mark.parametrize(
    ("settings", "cost"),
    [({"distance": "l0"}, 1.0), ({"alpha": 1e4}, 1e4 + 1 / 3), ({"max_changes": 1}, 1 / 3)],
)
def test_a_number_on_a_threshold_passes_it_without_a_change(
    engine: str, settings: dict[str, Any], cost: float, own: dict[str, float]
) -> None:
    """By less than rounding, which nobody counts, whatever a unit costs; the change is that of the other feature."""
    rows = pd.DataFrame(list(itertools.product([0, 1, 2, 3, 4, 5.75], range(4))), columns=["a", "b"])
    wanted = ((rows["a"] > 2.5) & (rows["b"] >= 2)).astype(int)
    shape = {"max_iter": 1, "max_depth": 2, "min_samples_leaf": 1, "learning_rate": 5}
    model = HistGradientBoostingClassifier(**shape).fit(rows, wanted)
    task, person = pose(rows.assign(y=wanted), "y", model, desired=1, features={"a": own}), {"a": 2.5, "b": 1}
    assert model.predict(pd.DataFrame([{**person, "b": 2}])) == 0
    assert model.predict(pd.DataFrame([{"a": np.nextafter(2.5, 3), "b": 2}])) == 1
    answer = explain(CeOcl(**{"distance": "l1", "alpha": 0, **settings}, engine=engine), task, person).answers[0]
    assert (answer.status, answer.objective) == (Status.OPTIMAL, pytest.approx(cost))
    assert answer.row == {"a": pytest.approx(2.5), "b": 2}


@pytest.mark.parametrize("engine", ["auto", "milp"])
def test_a_number_on_a_threshold_passes_it_beside_a_relation(engine: str) -> None:
    """``b`` has to rise with ``c``: two changes, as ``a`` makes none."""
    rng = np.random.default_rng(0)
    rows = pd.DataFrame(rng.choice([0, 1, 2, 3, 5.75], (300, 4)), columns=list("abcd"))
    wanted = ((rows["a"] > 2.5) & (rows["c"] > 1.5)).astype(int)
    shape = {"max_iter": 1, "max_depth": 2, "min_samples_leaf": 1, "learning_rate": 5}
    model = HistGradientBoostingClassifier(**shape).fit(rows, wanted)
    task = pose(rows.assign(y=wanted), "y", model, desired=1, constraints=["b + d >= c"])
    person = {"a": 2.5, "b": 1.0, "c": 0.0, "d": 0.0}
    answer = explain(CeOcl(distance="l1", alpha=0, max_changes=2, engine=engine), task, person).answers[0]
    assert answer.status is Status.OPTIMAL
    assert answer.row == {"a": pytest.approx(2.5), "b": pytest.approx(1.5), "c": pytest.approx(1.5), "d": 0.0}
