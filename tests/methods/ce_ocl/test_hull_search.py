"""The search over boxes in a hull, against enumeration and the mixed-integer program."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import (
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.linear_model import LinearRegression, LogisticRegression
from support.looks import Looks
from support.noisy_rule import MODELS, factuals, make, with_codes

from harness.core.explanation import Status
from harness.core.hull import distance
from harness.core.method import Deadline
from harness.core.objective import Objective, Term
from harness.core.problem import Problem
from harness.core.space import Actionability
from harness.core.target import Interval
from methods.ce_ocl import CeOcl
from methods.ce_ocl.program_engine import ProgramEngine
from methods.hull_search.bounds import BoxProgram, Costs
from methods.hull_search.models import searchable
from methods.hull_search.search import BoxSearch
from methods.milp.distance import Separable
from methods.milp.hull import Outside, Shares


def searched(
    problem: Problem,
    factual: pd.DataFrame,
    alpha: float = 0.0,
    most: float | None = None,
    deadline: Deadline | None = None,
) -> tuple[dict | None, float, float]:
    """The best over all pieces, as a search would go through them, with no incumbent to start from."""
    method = CeOcl(alpha=alpha, hull="hard", max_changes=None if most is None else int(most), engine="milp")
    engine = ProgramEngine(method, problem)
    assert isinstance(engine.program.aim.distance, Separable)
    search = BoxSearch(problem, engine.program.aim.distance, alpha, engine.program.aim.weights, most, method.margin)
    best, value, bound = None, math.inf, math.inf
    frame = problem.space.decode(engine.rows, like=factual)
    frame = frame.loc[[not faults for faults in problem.space.violations(factual, frame)]]
    if len(frame):
        values = engine.program.aim.claim.evaluate(problem.space, factual, frame)
        changes = problem.space.changed(factual, frame) @ engine.program.aim.weights
        for place in range(len(frame)):
            if values[place] < value and 0 < changes[place] <= (most or math.inf):
                best, value = frame.iloc[[place]].to_dict("records")[0], float(values[place])
    deadline = deadline or Deadline.after(30.0)
    lexical = engine.program.lexical(factual, engine.manifolds[0])
    for piece in engine.manifolds[0].pieces(factual, engine.program.aim.least):
        if piece.least >= value:
            bound = min(bound, value)
            break
        assert isinstance(piece, Shares | Outside)
        fewest = search.fewest(factual, piece) if lexical and alpha else None
        row, value, below = search.closest(factual, piece, value, deadline, fewest)
        best, bound = (best if row is None else row), min(bound, below)
    return best, value, min(bound, value)


def valid_in_hull(problem: Problem, factual: pd.DataFrame) -> pd.DataFrame:
    """All whole points within reach that the model accepts and the hull holds."""
    frame = within_reach(problem, factual)
    space = problem.space
    points = np.unique(space.encode(problem.reference.loc[np.asarray(problem.reference_labels) == "yes"]), axis=0)
    held = [distance(points, row) <= 1e-7 for row in space.encode(frame)]
    return frame.loc[held]


def within_reach(problem: Problem, factual: pd.DataFrame) -> pd.DataFrame:
    """All whole points within reach that the model accepts."""
    space = problem.space
    values = []
    for feature in space.features:
        own = factual[feature.name].iloc[0]
        if not feature.numeric:
            values.append(feature.reachable(own))
            continue
        low, high = feature.interval(float(own))
        values.append(tuple(sorted({int(own), *range(int(low), int(high) + 1)})))
    frame = space.frame([dict(zip(space.names, point, strict=True)) for point in itertools.product(*values)])
    return frame.loc[problem.valid(frame)].reset_index(drop=True)


def enumerated(problem: Problem, factual: pd.DataFrame, alpha: float, most: float | None = None) -> float:
    """The least objective of all whole points within reach that the model accepts and the hull holds."""
    space, frame = problem.space, within_reach(problem, factual)
    terms = (Term("l1"), Term("l0", alpha)) if alpha else (Term("l1"),)
    cost = Objective(terms).evaluate(space, factual, frame)
    changed = space.changed(factual, frame).sum(axis=1)
    labelled = np.asarray(problem.reference_labels) == "yes"
    points = np.unique(space.encode(problem.reference.loc[labelled]), axis=0)
    encoded = space.encode(frame)
    for place in np.argsort(cost, kind="stable"):
        if changed[place] and (most is None or changed[place] <= most) and distance(points, encoded[place]) <= 1e-7:
            return float(cost[place])
    return math.inf


@pytest.mark.parametrize("alpha", [0.0, 0.05, 10000.0])
@pytest.mark.parametrize("name", MODELS)
def test_the_optimum_is_that_of_enumeration(name: str, alpha: float) -> None:
    """On whole numbers, nothing in the hull is closer than what the search finds, and what it finds is there."""
    problem = make(MODELS[name], seed=1)
    for factual in factuals(problem, 4):
        row, value, bound = searched(problem, factual, alpha)
        expected = enumerated(problem, factual, alpha)
        if row is None:
            assert expected == bound == math.inf
            continue
        assert value == pytest.approx(expected, abs=1e-7)
        assert value - 1e-6 <= bound <= value + 1e-12
        assert problem.valid(problem.space.frame([row]))[0]


@pytest.mark.parametrize("name", ["logistic", "forest"])
def test_bounds_on_changes_are_kept(name: str) -> None:
    """With at most two changes the search and the enumeration agree, on infeasibility too."""
    problem = make(MODELS[name], seed=2, actionability=Actionability.INCREASE)
    for factual in factuals(problem, 4):
        _, value, _ = searched(problem, factual, 0.0, most=2)
        assert value == pytest.approx(enumerated(problem, factual, 0.0, most=2), abs=1e-7)


CODED = {
    "logistic": LogisticRegression(),
    "extra": ExtraTreesClassifier(9, max_depth=4, random_state=0),
    "boosting": GradientBoostingClassifier(n_estimators=20, max_depth=2, random_state=0, max_features=2),
    "network": MODELS["network"],
}


@pytest.mark.parametrize("alpha", [0.0, 0.05])
@pytest.mark.parametrize("seed", [2, 6])
@pytest.mark.parametrize("name", CODED)
def test_between_a_special_code_and_the_bounds_there_is_nothing(name: str, seed: int, alpha: float) -> None:
    """Boxes that lie there hold no point, whatever the model says of them."""
    problem, found = with_codes(CODED[name], seed), 0
    for factual in [each for each in factuals(problem, 60) if (each.iloc[0] == 0).any()][:12]:
        row, value, bound = searched(problem, factual, alpha)
        assert value == pytest.approx(enumerated(problem, factual, alpha), abs=1e-7)
        assert bound >= value - 1e-6 or (bound, value) == (math.inf, math.inf)
        if row is not None:
            assert not any(problem.space.violations(factual, problem.space.frame([row])))
            found += 1
    assert found


@pytest.mark.parametrize("alpha", [0.0, 0.05, 10000.0])
@pytest.mark.parametrize("name", MODELS)
def test_the_optimum_is_that_of_the_program(name: str, alpha: float) -> None:
    """With a continuous number, search and mixed-integer program agree on the optimum."""
    problem = make(MODELS[name], seed=3, whole=False)
    method = CeOcl(alpha=alpha, hull="hard", engine="milp")
    explainer = method.fit(problem)
    for factual in factuals(problem, 4):
        answer = explainer.explain(factual, 1, np.random.default_rng(0), Deadline.after(30)).answers[0]
        row, value, _ = searched(problem, factual, alpha)
        assert (row is None) == (answer.row is None)
        if row is not None and answer.objective is not None:
            assert value <= answer.objective + 2e-6
            assert answer.status is not Status.OPTIMAL or value >= answer.objective - 2e-6
            assert not problem.space.violations(factual, problem.space.frame([row]))[0]


@pytest.mark.parametrize("model", [RandomForestRegressor(5, max_depth=3, random_state=0), LinearRegression()])
def test_regression_is_taken(model: object) -> None:
    """A target on a regression model's number is met, at the program's optimum."""
    problem = make(model, seed=4)
    explainer = CeOcl(hull="hard", engine="milp", alpha=0.0).fit(problem)
    for factual in factuals(problem, 3):
        answer = explainer.explain(factual, 1, np.random.default_rng(0), Deadline.after(30)).answers[0]
        _, value, _ = searched(problem, factual)
        assert value == pytest.approx(math.inf if answer.objective is None else answer.objective, abs=2e-6)


def test_many_points_enter_as_they_are_needed() -> None:
    """A hull of far more points than the program starts with has the optimum of the enumeration."""
    problem = make(RandomForestClassifier(7, max_depth=4, random_state=0), seed=5, rows=4000)
    manifold = ProgramEngine(CeOcl(hull="hard", alpha=0.0, engine="milp"), problem).manifolds[0]
    assert max(len(members) for members in manifold.groups.members) > 100
    for factual in factuals(problem, 2):
        assert searched(problem, factual)[1] == pytest.approx(enumerated(problem, factual, 0.0), abs=1e-7)


@pytest.mark.parametrize("alpha", [pytest.param(0.0, marks=pytest.mark.slow), 10000.0])
@pytest.mark.parametrize("model", [pytest.param("boosting", marks=pytest.mark.slow), "deep"])
def test_a_deadline_leaves_an_honest_bound(model: str, alpha: float) -> None:
    """Out of time, the bound is at most the optimum."""
    problem = make(MODELS[model], seed=6)
    for factual in factuals(problem, 4):
        _, optimum, _ = searched(problem, factual, alpha)
        for looks in range(0, 200, 3):
            _, value, bound = searched(problem, factual, alpha, deadline=Looks(looks))
            assert bound <= optimum + 1e-9
            assert value >= optimum - 1e-9


@pytest.mark.parametrize("model", MODELS)
def test_the_fewest_changes_are_found_whatever_the_distance(model: str) -> None:
    """As enumerated; the squares of gaps tell equals apart only."""
    problem = make(MODELS[model], seed=8)
    ones = np.ones(5)
    for factual in factuals(problem, 4):
        engine = ProgramEngine(CeOcl(hull="hard", engine="milp"), problem)
        search = BoxSearch(problem, Separable(0 * ones, 0 * ones, ones), 1e4, ones, None, 1e-6)
        least = math.inf
        for piece in engine.manifolds[0].pieces(factual, engine.program.aim.least):
            assert isinstance(piece, Shares | Outside)
            row, value, bound = search.closest(
                factual, piece, 1e4 * least, Deadline.after(30), search.fewest(factual, piece)
            )
            if row is not None:
                changes = float(problem.space.changed(factual, problem.space.frame([row])).sum())
                assert changes == bound // 1e4 == value // 1e4 < least
                least = changes
        assert least == enumerated(problem, factual, 1e4) // 1e4 or (least, least) == (math.inf, math.inf)


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2))])
@pytest.mark.parametrize("model", [m if m == "network" else pytest.param(m, marks=pytest.mark.slow) for m in MODELS])
def test_no_valid_point_of_a_part_keeps_a_core(model: str, seed: int) -> None:
    """Nor changes fewer numbers than are found."""
    problem = make(MODELS[model], seed=seed)
    space, kept = problem.space, 0
    for factual in factuals(problem, 3):
        engine = ProgramEngine(CeOcl(hull="hard", engine="milp"), problem)
        ones = np.ones(5)
        search = BoxSearch(problem, Separable(0 * ones, ones, 0 * ones), 1e4, ones, None, 1e-6)
        frame = valid_in_hull(problem, factual)
        for piece in engine.manifolds[0].pieces(factual, engine.program.aim.least):
            assert isinstance(piece, Shares | Outside)
            fewest = search.fewest(factual, piece)
            fewest.settle(math.inf, Deadline.after(60.0))
            names = [space.names[j] for j in fewest.part.numbers.place]
            still = [name for name in space.names if name not in names]
            own = frame[still].eq([fewest.part.still.row[name] for name in still]).all(axis=1)
            here = frame.loc[own]
            changed = space.changed(factual, here)
            moved = changed[:, fewest.part.numbers.place]
            for core in fewest.sets:
                assert moved[:, list(core)].any(axis=1).all()
                kept += len(names) - len(core)
            assert fewest.least == min(changed.sum(axis=1), default=math.inf)
            assert (fewest.row is None) == here.empty
    assert kept > 0


@pytest.mark.parametrize("model", ["forest", "boosting", "deep"])
def test_whenever_time_ends_no_part_is_said_to_need_more_changes_than_it_does(model: str) -> None:
    """A search that is broken off tells no core."""
    problem, ones = make(MODELS[model], seed=0), np.ones(5)
    engine = ProgramEngine(CeOcl(hull="hard", engine="milp"), problem)
    search = BoxSearch(problem, Separable(0 * ones, ones, 0 * ones), 1e4, ones, None, 1e-6)
    for factual in factuals(problem, 3):
        for piece in engine.manifolds[0].pieces(factual, engine.program.aim.least):
            assert isinstance(piece, Shares | Outside)
            whole = search.fewest(factual, piece)
            whole.settle(math.inf, Deadline.after(60.0))
            looks, settled = 0, False
            while not settled:
                fewest = search.fewest(factual, piece)
                fewest.settle(math.inf, Looks(looks))
                assert fewest.least <= whole.least
                looks, settled = looks + 1, fewest.settled(math.inf)


def test_a_part_without_a_point_holds_nothing() -> None:
    """Whatever the search over its box would find."""
    problem, ones = make(MODELS["logistic"], seed=0), np.ones(5)
    engine = ProgramEngine(CeOcl(hull="hard", engine="milp"), problem)
    search = BoxSearch(problem, Separable(0 * ones, ones, 0 * ones), 1e4, ones, None, 1e-6)
    (factual,) = factuals(problem, 1)
    for piece in engine.manifolds[0].pieces(factual, engine.program.aim.least):
        assert isinstance(piece, Shares | Outside)
        fewest = search.fewest(factual, piece)
        fewest.least = math.inf
        found = search.closest(factual, piece, math.inf, Deadline.after(30.0), fewest)
        assert found == (None, math.inf, math.inf)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("model", ["forest", "network"])
def test_no_point_of_too_many_changes_is_kept(model: str, seed: int) -> None:
    """Whenever time ends; a valid point that is met on the way and changes too much is no answer."""
    problem = make(MODELS[model], seed=seed)
    ones, most = np.ones(5), 2.0
    for factual in factuals(problem, 3):
        engine = ProgramEngine(CeOcl(hull="hard", engine="milp"), problem)
        search = BoxSearch(problem, Separable(0 * ones, ones, 0 * ones), 1e4, ones, most, 1e-6)
        for piece in engine.manifolds[0].pieces(factual, engine.program.aim.least):
            assert isinstance(piece, Shares | Outside)
            fewest = search.fewest(factual, piece)
            fewest._descend(most + 1.0, Deadline.after(30.0))
            assert fewest.row is None or fewest.part.changes(fewest.row) <= most


def test_rows_of_another_box_are_asked_no_more() -> None:
    """A box with fewer rows has the bound that it has in a program of its own."""
    problem = make(MODELS["network"], seed=0)
    ones = np.ones(5)
    search = BoxSearch(problem, Separable(0 * ones, ones, 0 * ones), 0.0, ones, None, 1e-6)
    factual = factuals(problem, 1)[0]
    engine = ProgramEngine(CeOcl(hull="hard", engine="milp"), problem)
    piece = next(iter(engine.manifolds[0].pieces(factual, engine.program.aim.least)))
    assert isinstance(piece, Shares | Outside)
    part = search.fewest(factual, piece).part
    none, low, high = np.zeros(len(part.origin), dtype=bool), part.numbers.low, part.numbers.high

    def bound(program: BoxProgram, *rows: tuple[np.ndarray, float]) -> float:
        constant = program.prepare(low, high, none)
        assert program.cut(rows)
        return constant + program.solve(program.first_basis(), math.inf).bound

    def program() -> BoxProgram:
        return BoxProgram(part, Costs.of(part, search.distance, math.inf), 3)

    step = np.eye(len(part.origin))[0], 0.4
    again = program()
    assert bound(again, step) > bound(again) + 0.1
    assert bound(again) == pytest.approx(bound(program()), abs=1e-9)


def test_two_ends_of_trees_are_left_to_the_program() -> None:
    """The search says what it does not take."""
    problem = make(RandomForestRegressor(3, random_state=0), seed=7)
    assert searchable(problem)
    both = Problem(problem.space, problem.classifier, problem.train, problem.labels, Interval(0.0, 5.0))
    assert not searchable(both)


def test_a_pool_without_an_answer_states_the_reason_once() -> None:
    """Why nothing within the hull can be reached stands once in the detail."""
    problem = make(MODELS["logistic"], seed=3)
    explainer = CeOcl(hull="hard", diversity="pool", max_changes=1, clusters=2).fit(problem)
    answer = explainer.explain(factuals(problem, 1)[0], 3, np.random.default_rng(0), Deadline.after(30)).answers[0]
    assert answer.status is Status.INFEASIBLE
    assert answer.detail.count("no part of the data manifold") == 1
