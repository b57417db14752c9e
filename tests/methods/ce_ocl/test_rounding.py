"""What proves nothing: rounding in the last digit, at ends of numbers and hulls, and a category that comes first."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from harness.core.costs import Price
from harness.core.explanation import Answer, Status
from harness.core.method import Deadline
from harness.core.problem import Problem
from harness.core.space import Feature, Space
from harness.core.target import Label
from harness.models.train import train
from methods.ce_ocl import CeOcl
from methods.milp.number_block import Reach
from methods.robust import Robust


def posed(model: Any, space: Space, rows: list[dict[str, Any]], good: np.ndarray) -> Problem:
    frame, labels = space.frame(rows), np.where(good, "good", "bad").astype(object)
    return Problem(space, train(model, space, frame, labels, ("bad", "good")), frame, labels, Label("good"))


def answers(method: Any, problem: Problem, factual: pd.DataFrame, n: int = 1) -> tuple[Answer, ...]:
    return method.fit(problem).explain(factual, n, np.random.default_rng(0), Deadline.after(20)).answers


@pytest.mark.parametrize(("reach", "own"), [(22, 14), (22, 15), (23, 13), (26, 15), (39, 31), (43, 23), (45, 13)])
def test_the_least_whole_number_is_there_for_the_second_answer(reach: int, own: int) -> None:
    """The only one that is wanted and far enough from the first answer is 0, even if 15 - 15 / 22 * 22 is more."""
    space = Space((Feature("x", "integer", scale=(0, reach), bounds=(0, reach)),))
    numbers = np.repeat(np.arange(reach + 1), 4)
    apart = math.ceil(0.05 * reach)  # two answers differ by 5 % of the range at least
    model = LogisticRegression(C=1e4, max_iter=2000)
    problem = posed(model, space, [{"x": int(x)} for x in numbers], numbers <= apart)
    assert [x for x in range(reach + 1) if problem.valid(space.frame([{"x": x}]))[0]] == [*range(apart + 1)]
    first, second = answers(CeOcl(), problem, space.frame([{"x": own}]), 2)
    assert (first.status, first.row) == (Status.OPTIMAL, {"x": apart})
    assert (second.status, second.row) == (Status.OPTIMAL, {"x": 0})


@pytest.mark.parametrize(("engine", "distance"), [("auto", "l1"), ("milp", "l1"), ("auto", "linf")])
@pytest.mark.parametrize("relation", ["x + y < 1.2", "x + y <= 1.2"])
def test_a_relation_moves_no_number_across_a_split(engine: str, distance: str, relation: str) -> None:
    """Wanted is x > 0.7, so that y has to fall from 0.9 to 0.5, and no leaf is refused for where rounding puts x."""
    ends = {"scale": (0.0, 1.0), "bounds": (0.0, 1.0)}
    space = Space((Feature("x", "continuous", **ends), Feature("y", "continuous", **ends)), (relation,))
    rows = [(0.1, 0.1), (0.4, 0.9), (0.69, 0.5), (0.71, 0.2), (0.8, 0.3), (0.95, 0.1)] * 4
    model = DecisionTreeClassifier(max_depth=1, random_state=0)
    problem = posed(model, space, [{"x": x, "y": y} for x, y in rows], np.array([x > 0.7 for x, _ in rows]))
    (answer,) = answers(CeOcl(engine=engine, distance=distance), problem, space.frame([{"x": 0.2, "y": 0.9}]))
    best = 0.9 if distance == "l1" else 0.5
    assert answer.status in {Status.OPTIMAL, Status.FOUND}
    assert answer.objective == pytest.approx(best, abs=2e-5)
    assert answer.bound is None or answer.bound <= best + 1e-6


@pytest.mark.parametrize("engine", ["auto", "milp"])
@pytest.mark.parametrize("distance", ["l1", "linf"])
@pytest.mark.parametrize("kind", ["free", "immutable"])
def test_a_hull_a_digit_beyond_a_bound_is_within_reach(engine: str, distance: str, kind: str) -> None:
    """x may be .3 at most, and all rows of the wanted class have .1 + .2, which is a digit more."""
    most = 0.1 + 0.2
    features = (
        Feature("x", "continuous", scale=(0.0, 1.0), bounds=(0.0, 0.3)),
        Feature("y", "continuous", scale=(0.0, 1.0), bounds=(0.0, 1.0), actionability=kind),
    )
    space = Space(features)
    rows = [{"x": most, "y": y} for y in (0.5, 0.6, 0.7, 0.9)] * 5 + [
        {"x": 0.1, "y": y} for y in (0.1, 0.2, 0.8, 0.95)
    ] * 5
    problem = posed(LogisticRegression(C=1e4), space, rows, np.arange(40) < 20)
    factual = space.frame([{"x": 0.1, "y": 0.55}])
    (answer,) = answers(CeOcl(engine=engine, distance=distance, hull="hard"), problem, factual)
    assert answer.status is Status.OPTIMAL
    assert answer.objective == pytest.approx(0.2, abs=1e-6)
    reach = Reach.of(features[0], 0.1, (math.inf, math.inf), (most, most))
    assert (reach.rise, reach.must) == (pytest.approx(0.2), True)


@pytest.mark.parametrize("engine", ["search", "milp"])
def test_of_categories_that_will_do_the_cheapest_is_taken(engine: str) -> None:
    """From a, b costs 5 and d costs 1, and both are wanted where x is above .1."""
    costs = Price(costs=(("a", "b", 5.0), ("a", "d", 1.0)))
    kind = Feature("c", "categorical", ("a", "b", "d", "e"), price=costs)
    space = Space((kind, Feature("x", "continuous", scale=(0.0, 1.0), bounds=(0.0, 1.0))))
    rng = np.random.default_rng(0)
    rows = [{"c": str(c), "x": float(x)} for c, x in zip(rng.choice(list("abde"), 200), rng.random(200), strict=True)]
    good = np.array([row["c"] in "bd" and row["x"] > 0.1 for row in rows])
    problem = posed(DecisionTreeClassifier(random_state=0), space, rows, good)
    factual = space.frame([{"c": "a", "x": 0.5}])
    (answer,) = answers(CeOcl(alpha=0, distance="l1", engine=engine), problem, factual)
    assert (answer.status, answer.row, answer.objective) == (Status.OPTIMAL, {"c": "d", "x": 0.5}, 1.0)
    if engine == "search":
        robust = Robust(rho=0.02, norm="linf", algorithm="cells").fit(problem)
        (answer,) = robust.explain(factual, 1, np.random.default_rng(0), Deadline.after(30)).answers
        assert (answer.status, answer.row, answer.objective) == (Status.OPTIMAL, {"c": "d", "x": 0.5}, 1.0)
