"""Linear programs over leaves: what they prove alone is what enumeration, by the model's own predictions, says."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from support.forests import POINTS, factuals, problem_with, searcher, tenths
from support.scorecards import reachable, toy, undesired

from harness.core.classifier import Classifier
from harness.core.inputs import space_inputs
from harness.core.method import Deadline
from harness.core.problem import Problem
from harness.core.space import Feature, Space
from harness.core.target import Label
from methods.ce_ocl import CeOcl
from methods.cells import kernels, leaf_program, search
from methods.cells.leaf_program import LeafSearch

SMALL = Space(
    (
        Feature("a", "integer", scale=(0, 6), bounds=(0, 6)),
        Feature("b", "integer", scale=(0, 4), bounds=(0, 4)),
        Feature("region", "categorical", ("n", "e", "s", "w")),
        Feature("member", "binary", (False, True)),
    )
)
ALL = pd.DataFrame(
    itertools.product(range(7), range(5), ("n", "e", "s", "w"), (False, True)), columns=["a", "b", "region", "member"]
)
SEPARATION = 0.3


def small(seed: int) -> Problem:
    """A forest, or boosting of three classes, of noise on a space of 280 points."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 3 if seed % 2 else 2, len(ALL))
    kinds = (RandomForestClassifier(9, max_depth=5, random_state=seed), GradientBoostingClassifier(n_estimators=6))
    estimator = kinds[seed % 2].fit(SMALL.encode(ALL), labels)
    names = ("no", "yes", "more")[: 3 if seed % 2 else 2]
    return Problem(SMALL, Classifier(estimator, space_inputs(SMALL), names), ALL, labels, Label("yes"))


def asked(
    problem: Problem,
    method: CeOcl,
    row: Mapping[str, Any],
    earlier: Sequence[Mapping[str, Any]] = (),
    upper: float = 9.0,
) -> search.State:
    """What linear programs alone come to, from no incumbent, for points that cost less than ``upper``."""
    cells = searcher(method, problem)
    state = search.State(cells, search.Layout(cells, row, earlier, SEPARATION))
    state.upper[0] = upper
    kernels.begin(state.clauses, state.states, state.nodes, state.counters)
    leaves = LeafSearch(state)
    leaves.run(Deadline.after(60.0))
    assert not leaves.open
    return state


def costs(problem: Problem, method: CeOcl, points: pd.DataFrame, factual: pd.DataFrame) -> np.ndarray:
    """Of all points, infinite where the model refuses them, or where they change too much."""
    value = method.objective(problem).evaluate(problem.space, factual, points)
    count = problem.space.changed(factual, points).sum(axis=1)
    return np.where(problem.valid(points) & (count <= (method.max_changes or math.inf)), value, math.inf)


@pytest.mark.parametrize("method", [CeOcl("l1", 0.0), CeOcl("gower", 0.0, max_changes=1), CeOcl("l2sq", 1.0)])
@pytest.mark.parametrize("seed", range(4))
def test_programs_come_to_the_optimum_of_enumeration(seed: int, method: CeOcl) -> None:
    """However little more the incumbent costs; and to the next best that is apart from it. If nothing costs less than
    a limit, the limit is the bound."""
    problem = small(seed)
    for factual in factuals(problem, 5):
        row, value = factual.to_dict("records")[0], costs(problem, method, ALL, factual)
        state, least = asked(problem, method, row), float(value.min())
        if math.isinf(least):
            assert state.upper[1] == 9.0
            continue
        assert state.upper[0] == pytest.approx(least, abs=1e-9)
        assert least - 1e-8 <= state.upper[1] <= least + 1e-9
        best = state.layout.row(state.best)
        assert problem.valid(SMALL.frame([best]))[0]
        assert asked(problem, method, row, upper=least + 1e-6).upper[0] == pytest.approx(least, abs=1e-9)
        nothing = asked(problem, method, row, upper=least)
        assert nothing.upper[0] == nothing.upper[1] == least
        assert not nothing.counters[kernels.FOUND]
        apart = [
            abs(a - best["a"]) >= SEPARATION * 6 or abs(b - best["b"]) >= SEPARATION * 4 or region != best["region"]
            or member != best["member"]
            for a, b, region, member in ALL.itertuples(index=False)
        ]  # fmt: skip
        second = float(np.where(apart, value, math.inf).min())
        further = asked(problem, method, row, [best])
        assert further.upper[0] == pytest.approx(min(second, 9.0), abs=1e-9)


@pytest.mark.parametrize("method", [CeOcl("l1", 0.0), CeOcl("gower", 0.0, max_changes=2)])
def test_leaves_that_no_value_reaches_hide_no_others(method: CeOcl) -> None:
    """As a scorecard's bins of missing and unknown values, which stand anywhere among those of the points they give."""
    reached = 0
    for seed, wanted in itertools.product(range(4), ("yes", "no")):
        problem = toy(seed, Label(wanted))
        for factual in undesired(problem, 3):
            least = float(costs(problem, method, reachable(problem, factual), factual).min())
            state = asked(problem, method, factual.to_dict("records")[0])
            assert state.upper[0] == pytest.approx(min(least, 9.0), abs=1e-9)
            reached += least < 9.0
    assert reached > 8


def test_for_a_cheaper_incumbent_there_is_a_smaller_program() -> None:
    """Of a point that costs a tenth less than what a program was made for; not once all is proven."""
    problem, method, made = problem_with("rf"), CeOcl("l1", 0.0), 0
    for factual in factuals(problem, 8):
        cells = searcher(method, problem)
        state = search.State(cells, search.Layout(cells, factual.to_dict("records")[0], [], SEPARATION))
        state.upper[0] = 9.0
        kernels.begin(state.clauses, state.states, state.nodes, state.counters)
        leaves = LeafSearch(state)
        columns, rows = leaves.program.size, len(leaves.program.rows)
        leaves.run(Deadline.after(60.0))
        if leaves.upper < 9.0:
            assert leaves.program.size < columns
            assert len(leaves.program.rows) < rows
            assert leaves.upper >= state.upper[0]
            made += 1
        assert not leaves.outdated
    assert made


@pytest.mark.parametrize("most", [50, 0])
@pytest.mark.parametrize("target", ["no", "yes"])
def test_the_model_itself_decides_ties(target: str, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 55 points of the score 1.5, rounding decides on which side they are: programs meet them and go on, or leave
    what is behind them open, and say so by the bound."""
    monkeypatch.setattr(leaf_program, "MET", most)
    problem, method = tenths(target), CeOcl("l1", 0.0)
    for factual in factuals(problem, 300)[::60]:
        least = float(costs(problem, method, POINTS, factual).min())
        state = asked(problem, method, factual.to_dict("records")[0])
        assert state.upper[0] == pytest.approx(least, abs=1e-9) or not most
        assert state.upper[1] <= least + 1e-9


def test_time_that_is_over_leaves_a_bound_that_holds() -> None:
    """One node at a time: the bound never falls, and never lies above the optimum."""
    problem, method = problem_with("rf"), CeOcl("l1", 0.0)
    (factual,) = factuals(problem, 1)
    cells = searcher(method, problem)
    optimum = cells.closest(factual.to_dict("records")[0], [], SEPARATION, Deadline.after(60.0)).value
    state = search.State(cells, search.Layout(cells, factual.to_dict("records")[0], [], SEPARATION))
    state.upper[0] = optimum + 1.0
    leaves, before, looked = LeafSearch(state), 0.0, 0
    while leaves.open:
        place = int(np.argmin([node.bound for node in leaves.open]))
        assert leaves.look(leaves.open.pop(place), Deadline.after(60.0))
        assert before - 1e-9 <= max(leaves.bound, 0.0) <= optimum + 1e-9
        before, looked = max(leaves.bound, 0.0), looked + 1
    assert looked > 3
    assert state.upper[0] == pytest.approx(optimum, abs=1e-9)


def test_a_hard_question_goes_over_to_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    """From a sum of work on, if the relaxation says more than the search; the answer is the same, programs end it."""
    problem, method = problem_with("rf"), CeOcl("l1", 0.0)
    (factual,) = factuals(problem, 1)
    row = factual.to_dict("records")[0]
    plain = searcher(method, problem).closest(row, [], SEPARATION, Deadline.after(60.0))
    ended = []
    monkeypatch.setattr(search, "HARD", -1)
    monkeypatch.setattr(search, "EASY", 0)
    run = LeafSearch.run

    def watched(self: LeafSearch, deadline: Deadline) -> None:
        run(self, deadline)
        ended.append(not self.open)

    monkeypatch.setattr(LeafSearch, "run", watched)
    monkeypatch.setattr(LeafSearch, "promises", lambda self, deadline: True)
    found = searcher(method, problem).closest(row, [], SEPARATION, Deadline.after(60.0))
    assert ended == [True]
    assert found.proven
    assert found.value == pytest.approx(plain.value, abs=1e-9)


def test_programs_that_are_not_done_prove_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The search goes on behind them, also where they lower the incumbent."""
    problem, method = problem_with("rf"), CeOcl("l1", 0.0)
    monkeypatch.setattr(search, "HARD", -1)
    monkeypatch.setattr(search, "EASY", 0)
    monkeypatch.setattr(LeafSearch, "promises", lambda self, deadline: True)
    left = []
    run = LeafSearch.run

    def ended(self: LeafSearch, deadline: Deadline) -> None:
        run(self, Deadline.after(0.0))
        left.append(len(self.open))

    for factual in factuals(problem, 6):
        row = factual.to_dict("records")[0]
        with monkeypatch.context() as patched:
            patched.setattr(search, "HARD", math.inf)
            plain = searcher(method, problem).closest(row, [], SEPARATION, Deadline.after(60.0))
        with monkeypatch.context() as patched:
            patched.setattr(LeafSearch, "run", ended)
            found = searcher(method, problem).closest(row, [], SEPARATION, Deadline.after(60.0))
        assert found.proven
        assert found.value == pytest.approx(plain.value, abs=1e-9)
    assert left
    assert all(left)


def test_programs_are_left_alone_where_the_search_knows_more() -> None:
    problem, method = problem_with("rf"), CeOcl("l1", 0.0)
    (factual,) = factuals(problem, 1)
    cells = searcher(method, problem)
    state = search.State(cells, search.Layout(cells, factual.to_dict("records")[0], [], SEPARATION))
    state.guess()
    leaves = LeafSearch(state)
    assert leaves.promises(Deadline.after(60.0))
    relaxed = leaves.lp.prove(leaves.program.cost, 60.0).bound + leaves.constant
    for known, more in ((relaxed - 1e-6, True), (relaxed + 1e-6, False)):
        state.upper[1] = known
        assert leaves.promises(Deadline.after(60.0)) is more


def test_a_column_is_fixed_only_where_it_costs_as_much_as_the_incumbent() -> None:
    """Put to its other end, each of them makes a relaxation that costs so much."""
    problem, method, fixed = problem_with("rf"), CeOcl("l1", 0.0), 0
    for factual in factuals(problem, 8):
        cells = searcher(method, problem)
        row = factual.to_dict("records")[0]
        state = search.State(cells, search.Layout(cells, row, [], SEPARATION))
        state.upper[0] = cells.closest(row, [], SEPARATION, Deadline.after(60.0)).value + 0.01
        leaves, lasting = LeafSearch(state), Deadline.after(60.0)
        (root,) = leaves.open
        bound, x, slope = leaves._solve(root, lasting) or (0.0, None, np.empty(0))
        assert x is not None
        low, high = leaves._fixed(root, bound, slope)
        for column in np.flatnonzero(low == high):
            end = 1.0 - low[column]
            ends = np.zeros(len(low)), np.ones(len(low))
            ends[0][column] = ends[1][column] = end
            other, _, _ = leaves._solve(leaf_program.Node(*ends, 0.0), lasting) or (0.0, None, None)
            assert other >= leaves.cutoff - 1e-7
            fixed += 1
    assert fixed > 20
