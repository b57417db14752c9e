"""Robust regions where votes tie, and of radii that are none or hardly any."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler

from harness.core.classifier import Classifier
from harness.core.explanation import Status
from harness.core.inputs import space_inputs
from harness.core.problem import Problem
from harness.core.space import Feature, Space
from harness.core.target import Label
from harness.library import explain, pose
from methods.cells.neighbourhood import lay_neighbourhoods
from methods.cells.records import Perturbed
from methods.robust import Robust
from methods.robust.incumbents import Certifier

GRID = list(itertools.product(range(8), range(5)))
WHOLE = {"n": {"kind": "integer"}, "k": {"kind": "integer"}}
PEOPLE = 3


@pytest.mark.parametrize(("rho", "fixed"), [(0.0, ()), (0.3, ("n",))])
def test_two_trees_that_tie_are_asked_about_the_right_leaves(rho: float, fixed: tuple[str, ...]) -> None:
    """Of a whole number that nothing moves no fraction is asked about: it lies in the cell below."""
    optimal = 0
    for seed in (35, 39, 41, 45, 47):
        rng = np.random.default_rng(seed)
        rows = pd.DataFrame({"n": rng.integers(0, 8, 40), "k": rng.integers(0, 5, 40)})
        classes = rng.integers(0, 2, 40)
        model = RandomForestClassifier(2, max_depth=4, random_state=seed, bootstrap=bool(seed % 2)).fit(rows, classes)
        for desired in (0, 1):
            task = pose(rows.assign(y=classes), "y", model, desired=desired, features=WHOLE)
            n, k = (task.dataset.space[name] for name in "nk")
            right = {}
            for a, b in GRID:
                ends = np.linspace(b - rho * k.range * (1 - 1e-9), b + rho * k.range * (1 - 1e-9), 101)
                right[a, b] = bool((model.predict(pd.DataFrame({"n": a, "k": ends})) == desired).all())
            for row in np.flatnonzero(model.predict(rows) != desired)[:PEOPLE]:
                own = rows.iloc[row]
                costs = [abs(a - own["n"]) / n.range + abs(b - own["k"]) / k.range for (a, b) in GRID if right[a, b]]
                answer = explain(Robust(rho=rho, unperturbed=fixed), task, int(row)).answers[0]
                if answer.status is Status.INFEASIBLE:
                    assert not costs
                    continue
                assert answer.row is not None
                assert right[answer.row["n"], answer.row["k"]]
                if answer.status is Status.OPTIMAL:
                    assert answer.objective == pytest.approx(min(costs, default=math.inf))
                    optimal += 1
    assert optimal > 10


def test_a_point_on_a_closed_threshold_is_right_where_nothing_moves() -> None:
    """What is wanted of a number is to be at most the prediction of a row, which is valid itself."""
    rng, rejected = np.random.default_rng(0), 0
    rows = pd.DataFrame({"a": 1e4 + rng.uniform(0, 1, 60), "b": rng.uniform(0, 1, 60)})
    model = Ridge().fit(rows, 2 * rows["a"] - rows["b"])
    said = model.predict(rows)
    for row in np.argsort(said)[:5]:
        task = pose(rows.assign(y=said), "y", model, desired=f"<= {float(said[row])!r}")
        for person in np.flatnonzero(said > said[row])[:4]:
            found = explain(Robust(rho=0.0), task, int(person))
            if found.answers[0].row is not None:
                assert task.problem(int(person)).valid(task.dataset.space.frame([found.answers[0].row]))[0]
                rejected += found.context.verdicts[0] != "accepted"
    assert rejected == 0


def test_a_point_that_is_wrong_is_beyond_a_radius_of_0() -> None:
    rows = pd.DataFrame({"a": np.arange(20.0), "y": np.arange(20) // 10})
    model = RandomForestClassifier(1, random_state=0).fit(rows[["a"]], rows["y"])
    problem = pose(rows, "y", model, desired=1).problem(0)
    objective = Robust(rho=0.0).objective(problem)
    found = objective.exceeded(problem.space, rows[["a"]].iloc[[0]], rows[["a"]].iloc[[3, 15]])
    assert found == [["radius"], []]


@pytest.mark.parametrize("algorithm", ["auto", "adversarial"])
@pytest.mark.parametrize("norm", ["linf", "l2"])
def test_a_linear_model_accepts_every_corner_of_a_region(algorithm: str, norm: str) -> None:
    """Also of numbers that are great beside their range; and the point costs what the dual norm says, or rounding."""
    ranges = [(0.0, 1.0), (0.0, 1e-4), (-5.0, 1e-3), (1e6, 1.0), (16777216.0, 20.0)]
    for seed, (a, b) in enumerate(itertools.product(ranges, repeat=2)):
        rng = np.random.default_rng(seed)
        rows = pd.DataFrame({name: low + size * rng.random(80) for name, (low, size) in zip("ab", (a, b), strict=True)})
        scaled = (rows - rows.min()) / (rows.max() - rows.min())
        classes = (scaled.sum(axis=1) + rng.normal(0, 0.1, 80) > 1.1).astype(int)
        model = make_pipeline(MinMaxScaler(), LogisticRegression(C=100)).fit(rows, classes)
        desired, rho = seed % 2, (0.05, 1e-5)[seed // 2 % 2]
        task = pose(rows.assign(y=classes), "y", model, desired=desired)
        weights, sign = model[-1].coef_[0], 2 * desired - 1
        dual = np.abs(weights).sum() if norm == "linf" else np.linalg.norm(weights)
        for person in np.flatnonzero(model.predict(rows) != desired)[:2]:
            answer = explain(Robust(rho=rho, norm=norm, algorithm=algorithm), task, int(person)).answers[0]
            assert answer.status is Status.OPTIMAL
            corners = pd.DataFrame(itertools.product(*answer.region.values()), columns=list(answer.region))
            assert (model.predict(corners) == desired).all()
            rest, cost = abs(model.decision_function(rows.iloc[[person]])[0]) + rho * dual, 0.0
            for name, weight in sorted(zip("ab", weights, strict=True), key=lambda pair: -abs(pair[1])):
                end = rows[name].max() if sign * weight > 0 else rows[name].min()
                room = abs(end - rows[name].iloc[person]) / (rows[name].max() - rows[name].min())
                step = min(room, rest / abs(weight))
                rest, cost = rest - abs(weight) * step, cost + step
            assert answer.objective == pytest.approx(cost, abs=2e-6)


def test_a_radius_that_falls_short_by_rounding_is_none() -> None:
    """Of a number whose class begins beyond .5: at .75 a region of .25 touches it, a hair farther away it does not."""
    model = LogisticRegression().fit([[0.0], [1.0]], [0, 1])
    model.coef_[:], model.intercept_[:] = 1.0, -0.5
    space = Space((Feature("a", "continuous", scale=(0.0, 1.0), bounds=(0.0, 1.0)),))
    rows = pd.DataFrame({"a": [0.0, 1.0]})
    problem = Problem(space, Classifier(model, space_inputs(space), (0, 1)), rows, np.array([0, 1]), Label(1))
    certifier = Certifier(problem, Robust(rho=0.25))
    assert [certifier.robust({"a": a}, 1.0) for a in (0.75 - 5e-10, 0.75, 0.75 + 5e-10)] == [False, False, True]


@pytest.mark.parametrize("rho", [1e-9, 9e-7, -1.0, math.inf])
def test_radii_of_rounding_are_none(rho: float) -> None:
    with pytest.raises(ValueError, match=r"rho is .*; it must be a finite number of at least 1e-06, .* or 0"):
        Robust(rho=rho)


def test_a_radius_that_is_found_is_at_least_the_least() -> None:
    rows = pd.DataFrame({"a": np.arange(20.0), "y": np.arange(20) // 10})
    model = RandomForestClassifier(1, random_state=0).fit(rows[["a"]], rows["y"])
    problem = pose(rows, "y", model, desired=1).problem(0)
    assert Robust(rho=None, probability=0.9, sigma=1e-12).resolved(problem).radius == pytest.approx(1e-6)


def test_a_state_beside_the_factuals_is_no_change() -> None:
    """Of a person whose interval just meets a threshold: to leave its cell takes less than rounding."""
    number = Perturbed(0.6, 0.0, 1.0, 0.1, -math.inf, math.inf, 1.0, False, 5.0, 1.0, 0.0)
    laid = lay_neighbourhoods(np.array([0.5]), tuple(number))
    gaps = np.abs(laid.values - 0.6)
    near = gaps <= 1e-9
    assert near.sum() == 2
    assert (laid.cost[near] < 1e-8).all()
    assert laid.cost[~near] == pytest.approx(5.0 + gaps[~near])
    assert (~near).any()
