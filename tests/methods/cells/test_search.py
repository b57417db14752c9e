"""The search over cells: its optima are those that an independent program confirms."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from omegaconf import OmegaConf
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from support.forests import (
    ESTIMATORS,
    POINTS,
    SPACE,
    TENTHS,
    around_thresholds,
    closest,
    factuals,
    many_leaves,
    problem_with,
    searcher,
    tenths,
)
from support.looks import Looks

from harness.core.classifier import Classifier
from harness.core.explanation import Status
from harness.core.inputs import space_inputs
from harness.core.method import Deadline
from harness.core.problem import Problem
from harness.core.space import Feature, Space
from harness.core.target import Label
from harness.data import load_dataset
from harness.evaluation.checker import permitted
from harness.execution.task import make_task
from harness.models.train import train
from methods.ce_ocl import CeOcl
from methods.ce_ocl.cell_engine import CellEngine
from methods.ce_ocl.explainer import start
from methods.ce_ocl.program_engine import Request
from methods.cells import kernels, search
from methods.cells.closest import Closest
from methods.cells.leaf_program import LeafSearch


def assert_same_optimum(method: CeOcl, problem: Problem, factual: pd.DataFrame, n: int = 1) -> list[Closest]:
    """Each answer is permitted, apart from those before it, and as good as the program's; so is a proof of none."""
    space, cells = problem.space, searcher(method, problem)
    program, earlier = start(replace(method, engine="milp"), problem), list[dict[str, Any]]()
    answers = []
    for _ in range(n):
        found = closest(cells, factual, earlier, method.separation)
        reply = program._next(Request(factual, lambda: factual.iloc[:0], Deadline.after(120.0)), earlier)[0]
        answers.append(found)
        assert found.proven
        if found.row is None:
            assert reply.status is Status.INFEASIBLE
            break
        assert reply.status is Status.OPTIMAL
        assert found.value == pytest.approx(reply.objective, rel=0, abs=5e-6)
        row = space.frame([found.row])
        assert problem.valid(row).all()
        assert method.objective(problem).evaluate(space, factual, row)[0] == pytest.approx(found.value, rel=1e-12)
        assert space.changed(factual, row)[0] @ method.weights(problem) <= (method.max_changes or np.inf)
        assert all(permitted(f, factual[f.name].iloc[0], found.row[f.name]) for f in space.features)
        assert all(is_apart(space, found.row, row, method.separation) for row in earlier)
        earlier.append(found.row)
    return answers


def is_apart(space: Space, row: Mapping[str, Any], other: Mapping[str, Any], separation: float) -> bool:
    return any(
        abs(row[f.name] - other[f.name]) >= separation * f.range - 1e-9 if f.numeric else row[f.name] != other[f.name]
        for f in space.features
    )


@pytest.fixture(params=["cells", "leaves"])
def by(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Twice: by the search over cells, and with linear programs over leaves put before it."""
    if request.param == "cells":
        return
    finish = search.CellSearch.finish

    def programs_first(cells: search.CellSearch, state: search.State, deadline: Deadline) -> Closest:
        state.guess()
        ended = cells._relax(state, deadline) == kernels.DONE
        found = state.result(done=True)
        return found if ended and found.row and cells._right(found.row) else finish(cells, state, deadline)

    monkeypatch.setattr(search.CellSearch, "finish", programs_first)
    monkeypatch.setattr(LeafSearch, "promises", lambda self, deadline: True)


METHODS = [
    CeOcl("l2sq"),
    CeOcl("mad_l1", 0.1),
    CeOcl("gower", 1e4),
    CeOcl("l2sq", 1e4, count="columns"),
    CeOcl("gower", 0.1, max_changes=2),
    CeOcl("mad_l1", max_changes=3, count="columns"),
]


def title(method: CeOcl) -> str:
    return f"{method.distance}-{method.alpha:g}-{method.max_changes}-{method.count}"


@pytest.mark.usefixtures("by")
@pytest.mark.parametrize("target", ["no", "yes"])
@pytest.mark.parametrize("method", METHODS, ids=title)
@pytest.mark.parametrize("model", ESTIMATORS)
def test_the_search_finds_the_optimum_of_the_program(model: str, method: CeOcl, target: str) -> None:
    problem = problem_with(model, target)
    assert_same_optimum(method, problem, factuals(problem, 1)[0])


@pytest.mark.usefixtures("by")
@pytest.mark.parametrize("method", [CeOcl("l2sq", separation=0.3), CeOcl("gower", 1e4, separation=0.1)], ids=title)
@pytest.mark.parametrize("model", ["rf", "gbm"])
def test_further_answers_are_the_optima_of_the_program(model: str, method: CeOcl) -> None:
    problem = problem_with(model)
    assert_same_optimum(method, problem, factuals(problem, 1)[0], n=3)


def test_the_optimum_of_trees_with_many_leaves_and_of_one_with_none() -> None:
    problem = many_leaves()
    assert_same_optimum(CeOcl("l1"), problem, factuals(problem, 1)[0])


@pytest.mark.usefixtures("by")
def test_answers_may_run_out() -> None:
    """Few features may change and answers lie far apart: after some, both engines prove that there is none."""
    kept = {"actionability": "immutable"}
    space = SPACE.replace(dict.fromkeys(("a", "b", "n", "region"), kept))
    problem = replace(problem_with("rf"), space=space)
    ends = [
        assert_same_optimum(CeOcl("l1", separation=1.0), problem, factual, n=12)[-1] for factual in factuals(problem, 4)
    ]
    assert all(end.row is None and end.bound == math.inf for end in ends)


@pytest.mark.usefixtures("by")
@pytest.mark.parametrize("target", ["good", "bad"])
@pytest.mark.parametrize("model", ["cart", "rf", "gbm"])
def test_every_actionability_is_kept(model: str, target: str, problem_of: Callable[[str], Problem]) -> None:
    """Directions, conditional orders, immutable features, special codes, of every kind; each number may be far out."""
    problem = replace(problem_of(model), target=Label(target))
    codes = problem.train.assign(delay=-1, loans=9, income=-7.0)
    for frame, method in itertools.product((problem.train, codes), (CeOcl("l1", 0.1), CeOcl("gower", 1e4))):
        rejected = frame[~problem.valid(frame)]
        if len(rejected):
            assert_same_optimum(method, problem, rejected.iloc[[0]], n=2)


@pytest.mark.parametrize("method", [CeOcl("l1"), CeOcl("gower", 1e4)], ids=title)
@pytest.mark.parametrize("model", ["rf", "gbm"])
def test_pauses_and_growing_room_change_no_answer(model: str, method: CeOcl, monkeypatch: pytest.MonkeyPatch) -> None:
    """With an effort of 0 the search stops after every node, and looks for incumbents; from room for two it grows."""
    problem = problem_with(model)
    cells = searcher(method, problem)
    for factual in factuals(problem, 2):
        first = closest(cells, factual)
        expected = [first.value, closest(cells, factual, [first.row]).value]
        with monkeypatch.context() as patch:
            patch.setattr(search, "EFFORT", 0)
            for room in (search.NODES, 2):
                patch.setattr(search, "NODES", room)
                patch.setattr(search, "CLAUSES", room)
                found = [closest(cells, factual), closest(cells, factual, [first.row])]
                assert [one.value for one in found] == pytest.approx(expected)
                assert all(one.proven for one in found)


@pytest.mark.parametrize("alpha", [0.0, 1.0])
@pytest.mark.parametrize("apart", [0, 2])
def test_better_incumbents_are_looked_for(alpha: float, apart: int) -> None:
    """Of many features: valid, apart from earlier answers, never dearer than before, and never below the optimum."""
    rng = np.random.default_rng(1)
    space = Space(tuple(Feature(f"x{j}", "continuous", scale=(0, 1), bounds=(0, 1)) for j in range(20)))
    train = pd.DataFrame(rng.uniform(size=(150, 20)), columns=list(space.names))
    forest = RandomForestClassifier(15, max_depth=4, random_state=0).fit(train.to_numpy(), train.sum(axis=1) > 10)
    labels = np.empty(len(train), dtype=object)
    problem = Problem(space, Classifier(forest, space_inputs(space), ("no", "yes")), train, labels, Label("yes"))
    cells, better = searcher(CeOcl("l1", alpha), problem), 0
    for factual in factuals(problem, 5):
        row, earlier = factual.to_dict("records")[0], []
        for _ in range(apart):
            earlier.append(closest(cells, factual, earlier).row)
        state = search.State(cells, search.Layout(cells, row, earlier, 0.2), earlier)
        state.guess()
        values = [float(state.upper[0])]
        for _ in range(10):
            state.improve()
            values.append(float(state.upper[0]))
            found = space.frame([state.layout.row(state.best)])
            assert problem.valid(found)[0]
            for other in earlier:
                assert np.abs(space.encode(found) - space.encode(space.frame([other]))).max() >= 0.2 - 1e-9
        assert (np.diff(values) <= 0).all()
        better += values[-1] < values[0]
        assert values[-1] >= closest(cells, factual, earlier).value - 1e-9
    assert better


@pytest.mark.parametrize("model", ["rf", "extra", "gbm"])
def test_a_search_cut_short_is_honest(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wherever it stops, the optimum lies between bound and value, and only a finished proof is called one."""
    monkeypatch.setattr(search, "EFFORT", 0)
    problem = problem_with(model)
    cells = searcher(CeOcl("l2sq", 0.1), problem)
    unproven = 0
    for factual in factuals(problem, 3):
        optimum = closest(cells, factual).value
        bounds, values = [], []
        for looks in (0, 1, 2, 4, 8, 16, 32, 10**6):
            found = cells.closest(factual.to_dict("records")[0], [], 0.2, Looks(looks))
            bounds.append(found.bound)
            values.append(found.value)
            assert found.bound <= optimum + 1e-9 <= found.value + 2e-9
            assert (found.row is None) == (found.value == math.inf)
            assert not found.proven or found.value == pytest.approx(optimum, rel=0, abs=1e-9)
            assert found.row is None or problem.valid(SPACE.frame([found.row])).all()
            unproven += not found.proven
        assert found.proven
        assert bounds == sorted(bounds)
        assert values == sorted(values, reverse=True)
    assert unproven


@pytest.mark.parametrize("model", ["rf", "gbm"])
def test_an_unproven_answer_claims_no_more_than_its_bound(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a search cut short: FOUND, with its own value, and a bound that does not lie above the optimum."""
    monkeypatch.setattr(search, "EFFORT", 0)
    method, problem = CeOcl("l2sq", 0.1), problem_with(model)
    engine, below = CellEngine(method, problem), 0
    for factual in factuals(problem, 3):
        optimum = closest(searcher(method, problem), factual).value
        for looks in (0, 4, 16, 10**6):
            (answer,) = engine.answers(factual, 1, Looks(looks))
            if answer.row is None:
                assert answer.status is Status.GAVE_UP
                continue
            cost = method.objective(problem).evaluate(SPACE, factual, SPACE.frame([answer.row]))[0]
            assert answer.objective == pytest.approx(cost)
            assert answer.bound <= optimum + 1e-9
            assert (answer.status is Status.OPTIMAL) == (answer.bound == answer.objective)
            below += answer.bound < answer.objective
    assert below


def ranked(method: CeOcl, problem: Problem, factual: pd.DataFrame) -> pd.Series:
    """The objective of every wanted point, in increasing order."""
    wanted = POINTS[problem.valid(POINTS)]
    return pd.Series(method.objective(problem).evaluate(TENTHS, factual, wanted), wanted.index).sort_values()


@pytest.mark.parametrize("target", ["no", "yes"])
def test_the_model_itself_decides_ties(target: str) -> None:
    """Sums that tie but for rounding are of either class; the answer is the best point of those the model wants."""
    problem = tenths(target)
    ties = POINTS[POINTS.sum(axis=1) == 15]
    assert 0 < problem.valid(ties).sum() < len(ties)
    counted: Counter[bool] = Counter()
    for method in (CeOcl("l1"), CeOcl("l2sq", 0.1), CeOcl("l2sq", 1e4)):
        cells = searcher(method, problem)
        decide = cells._right
        cells._right = lambda row, decide=decide: bool(counted.update([right := decide(row)]) or right)
        for factual in factuals(problem, 400)[::20]:
            found = closest(cells, factual)
            assert found.proven
            assert found.value == pytest.approx(ranked(method, problem, factual).iloc[0], abs=1e-9)
            assert problem.valid(TENTHS.frame([found.row])).all()
    assert min(counted[True], counted[False]) > 1


@pytest.mark.parametrize("refused", [1, 3, 30])
def test_a_refused_optimum_gives_way_to_the_next_best_leaves(refused: int) -> None:
    """However clear the score: what the model says of the point counts."""
    method, problem = CeOcl("l2sq", 0.01), tenths("yes")
    cells = searcher(method, problem)
    decide = cells._right
    for factual in factuals(problem, 400)[::50]:
        order = ranked(method, problem, factual)
        banned = set(POINTS.loc[order.index[:refused]].itertuples(index=False, name=None))
        cells._right = lambda row, banned=banned: decide(row) and tuple(row.values()) not in banned
        found = closest(cells, factual)
        assert found.proven
        assert found.value == pytest.approx(order.iloc[refused], abs=1e-9)


def test_where_the_model_refuses_every_point_there_is_none() -> None:
    problem = tenths("yes")
    cells = searcher(CeOcl("l2sq", max_changes=1), problem)
    factual = POINTS.query("a == 5 and b == 4 and c == 5")
    assert closest(cells, factual).row is not None
    cells._right = lambda row: False
    assert closest(cells, factual) == Closest(None, math.inf, math.inf)


@pytest.mark.parametrize("reply", [False, True])
def test_questions_to_the_model_do_not_outlive_the_deadline(reply: bool) -> None:
    """Each of many ties is asked about, but none but one after the deadline."""
    problem = tenths("yes")
    cells = searcher(CeOcl("l1"), problem)
    asked: list[Any] = []
    cells._right = lambda row: bool(asked.append(row)) or reply
    for factual in factuals(problem, 400)[::20]:
        asked.clear()
        found = cells.closest(factual.to_dict("records")[0], [], 0.2, Deadline.after(0.0))
        assert len(asked) <= 2
        assert found.row is None or reply


@pytest.mark.parametrize("most", [None, 2])
@pytest.mark.parametrize("alpha", [0.0, 1e4])
@pytest.mark.parametrize("model", ["cart", "rf", "extra", "gbm"])
def test_a_first_guess_is_right_permitted_and_costs_what_it_claims(model: str, alpha: float, most: int | None) -> None:
    """Apart from an earlier answer too; mostly it finds something, and never less than the optimum."""
    problem = problem_with(model)
    method = CeOcl("l2sq", alpha, most)
    cells, found = searcher(method, problem), 0
    for factual in factuals(problem, 10):
        earlier = [closest(cells, factual).row]
        layout = search.Layout(cells, factual.to_dict("records")[0], earlier, 0.2)
        state = search.State(cells, layout)
        state.guess()
        if not state.counters[kernels.FOUND]:
            continue
        found += 1
        guessed = state.result(done=False)
        row = SPACE.frame([guessed.row])
        assert problem.valid(row).all()
        assert method.objective(problem).evaluate(SPACE, factual, row)[0] == pytest.approx(guessed.value, rel=1e-12)
        assert SPACE.changed(factual, row)[0].sum() <= (most or np.inf)
        assert all(permitted(f, factual[f.name].iloc[0], guessed.row[f.name]) for f in SPACE.features)
        assert is_apart(SPACE, guessed.row, earlier[0], 0.2)
        assert guessed.value >= closest(cells, factual, earlier).value - 1e-9
    assert found > 5


@pytest.mark.parametrize("wanted", ["no", "yes"])
@pytest.mark.parametrize("model", ESTIMATORS)
def test_the_search_decides_as_the_model_predicts(model: str, wanted: str) -> None:
    """At thresholds and their neighbours, and on ties."""
    problem = problem_with(model, wanted)
    cells = searcher(CeOcl(), problem)
    frame = around_thresholds(problem, cells.grid.ends, 300)
    assert [cells._right(row) for row in frame.to_dict("records")] == problem.valid(frame).tolist()
    ties = tenths(wanted)
    cells = searcher(CeOcl(), ties)
    near = POINTS[POINTS.sum(axis=1).between(14, 16)]
    assert [cells._right(row) for row in near.to_dict("records")] == ties.valid(near).tolist()


CONF = Path(__file__).parents[3] / "conf"


LARGE = {
    "rf": RandomForestClassifier(100, max_depth=5, random_state=0),
    "gbm": GradientBoostingClassifier(n_estimators=100, max_depth=3, random_state=0),
}


@pytest.mark.slow
@pytest.mark.parametrize("alpha", [0.0, 1e4])
@pytest.mark.parametrize("model", LARGE)
@pytest.mark.parametrize("name", ["compas", "german_credit"])
def test_large_ensembles_on_real_data_have_the_optimum_of_the_program(name: str, model: str, alpha: float) -> None:
    """Ten factuals: proven and valid, between the program's bound and value, and equal where that is proven too."""
    dataset = load_dataset(**OmegaConf.to_container(OmegaConf.load(CONF / "dataset" / f"{name}.yaml")))
    frame, labels = dataset.frame.iloc[dataset.train], dataset.labels[dataset.train]
    fitted = train(LARGE[model], dataset.space, frame, labels, dataset.classes)
    asked = make_task(dataset, fitted)
    (problem,) = asked.problems.values()
    method = CeOcl("l2sq", alpha)
    cells, program = searcher(method, problem), replace(method, engine="milp").fit(problem)
    for index in asked.factuals.index[:10]:
        factual = asked.factuals.loc[[index]]
        found = closest(cells, factual)
        (reply,) = program.explain(factual, 1, np.random.default_rng(0), Deadline.after(120.0)).answers
        assert found.proven
        if found.row is None:
            assert reply.row is None
            continue
        assert problem.valid(problem.space.frame([found.row])).all()
        assert all(permitted(f, factual[f.name].iloc[0], found.row[f.name]) for f in problem.space.features)
        assert reply.bound is None or reply.bound <= found.value + 1e-5
        assert reply.objective is None or found.value <= reply.objective + 1e-5
