"""The bound that adds up what changes gain, against enumeration of a node's points, predicted by the model itself."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from support import scorecards
from support.forests import SPACE, closest, factuals, problem_with, searcher
from support.scorecards import reachable, toy, undesired

from harness.core.target import Label
from harness.core.tolerances import SCORE_TIE
from methods.ce_ocl import CeOcl
from methods.cells import kernels, search
from methods.cells.additive import additive_bound, dual, frontier, shares
from methods.cells.masks import allows
from methods.cells.records import Box, Node

METHOD = CeOcl("l1", 0.1)


def a_node(state: search.State, rng: np.random.Generator) -> tuple[Node, list[tuple[int, ...]]]:
    """Up to four states of each feature, at its nearest point; and all its points."""
    layout, states = state.layout, state.states
    counts = np.diff(layout.state_start)
    low, sets = np.zeros(len(counts), np.int64), layout.sets.copy()
    high, listed = counts - 1, []
    for f, count in enumerate(counts):
        if states.unordered[f]:
            chosen = rng.choice(count, min(3, count), replace=False)
            sets[f] = sum(1 << int(s) for s in chosen)
            listed.append(sorted(map(int, chosen)))
        else:
            low[f] = rng.integers(count)
            high[f] = min(low[f] + rng.integers(4), count - 1)
            listed.append(list(range(low[f], high[f] + 1)))
    box = Box(low, high, sets)
    point = np.zeros(len(counts), np.int64)
    kernels.nearest(box, states, point)
    return Node(box, point, np.empty(0), np.empty(0), np.empty(0)), list(itertools.product(*listed))


@pytest.mark.parametrize("sides", [0.0, 0.3])
@pytest.mark.parametrize("model", ["cart", "rf", "gbm", "rf3", "gbm3"])
def test_no_right_point_costs_less_and_none_within_the_slack_is_dropped(model: str, sides: float) -> None:
    problem, rng = problem_with(model), np.random.default_rng(5)
    cells = searcher(METHOD, problem)
    bounds, costs, fewer, none_left = [], [], 0, 0
    for factual in factuals(problem, 6):
        state = search.State(cells, search.Layout(cells, factual.to_dict("records")[0], [], 0.2))
        room = state.additive
        for _ in range(5):
            node, points = a_node(state, rng)
            score, which = kernels.score_point(state.grid, state.states, node.point)
            if score >= -SCORE_TIE:
                continue
            right = problem.valid(SPACE.frame([state.layout.row(np.array(point)) for point in points]))
            nearest = kernels.cost_of(node.point, state.states)
            beyond = {
                point: kernels.cost_of(np.array(point), state.states) - nearest
                for point, its in zip(points, right, strict=True)
                if its
            }
            least = min(beyond.values(), default=math.inf)
            slack = least + sides if beyond else sides or math.inf
            bound, dropped = additive_bound(state.grid, state.states, node, which, slack, room)
            assert min(bound, slack) <= max(least, 0) + 1e-9  # what costs the slack or more is told no further
            none_left += bound == math.inf
            for point, cost in beyond.items():
                if cost < slack - 1e-9:
                    assert all(allows(node.box, state.states, f, s) for f, s in enumerate(point))
            fewer += dropped
            if beyond and bound < slack:
                bounds.append(bound)
                costs.append(least)
    assert sum(bounds) > 0.15 * sum(costs)
    assert fewer or not sides or model == "cart"
    assert none_left


@pytest.mark.parametrize("model", ["rf", "gbm"])
def test_the_frontier_leaves_out_no_state_that_a_price_makes_best(model: str) -> None:
    problem, rng = problem_with(model), np.random.default_rng(1)
    cells = searcher(METHOD, problem)
    looked = 0
    for factual in factuals(problem, 5):
        state = search.State(cells, search.Layout(cells, factual.to_dict("records")[0], [], 0.2))
        states, room = state.states, state.additive
        node = a_node(state, rng)[0]
        node = node._replace(box=Box(np.zeros_like(node.point), np.diff(states.start) - 1, states.sets))
        kernels.nearest(node.box, states, node.point)
        lacking = shares(state.grid, states, node, 0, math.inf, room)
        room.gain[room.gain > 0] += rng.uniform(0, 0.1, (room.gain > 0).sum())  # what is in no order, too
        most = frontier(states, node, room)
        taken = np.zeros((2, len(node.point)))
        for price in (*rng.uniform(0, 20, 30), 1e9):
            for f, point in enumerate(node.point):
                start, here = states.start[f], states.cost[states.start[f] + point]
                inside = [s for s in range(states.start[f + 1] - start) if allows(node.box, states, f, s)]
                own = [(room.gain[start + s], states.cost[start + s] - here) for s in inside if s != point]
                taken[0, f] = max([0.0, *(price * gain - cost for gain, cost in own if gain > 0)])
                taken[1, f] = max([0.0, *(gain for gain, _ in own)])
                looked += len(own) > 3
            assert dual(price, lacking, room) == pytest.approx(price * lacking - taken[0].sum(), abs=1e-9 * (1 + price))
            assert room.taken == pytest.approx(taken[0])
        assert most == pytest.approx(taken[1].sum())
    assert looked


@pytest.mark.parametrize("method", [CeOcl("l1"), CeOcl("l2sq", 0.1), CeOcl("gower", 1e4)], ids=["l1", "l2sq", "fewest"])
@pytest.mark.parametrize("model", ["cart", "rf", "extra", "gbm", "rf3", "gbm3"])
def test_answers_are_the_same_where_it_is_looked_at_from_the_first_node(
    model: str, method: CeOcl, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem = problem_with(model)
    asked = factuals(problem, 8)
    cells = searcher(method, problem)
    expected = [closest(cells, factual) for factual in asked]
    monkeypatch.setattr(search, "EASY_NODES", -1)
    monkeypatch.setattr(search, "EASY", 1)
    for factual, other in zip(asked, expected, strict=True):
        found = closest(cells, factual)
        assert (found.value, found.bound) == pytest.approx((other.value, other.bound), abs=1e-9)
        further = closest(cells, factual, [found.row])
        assert further.value >= found.value - 1e-9


@pytest.mark.parametrize("wanted", ["yes", "no"])
@pytest.mark.parametrize("seed", range(12))
def test_leaves_that_no_value_reaches_hide_no_others(seed: int, wanted: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a scorecard's bins of missing and unknown values, which stand anywhere among those of the points they give."""
    problem = toy(seed, Label(wanted))
    monkeypatch.setattr(search, "EASY_NODES", -1)
    for method in (CeOcl("l1", 0.0), CeOcl("l2sq", 0.0), CeOcl("gower", 1e4)):
        cells = searcher(method, problem)
        for factual in undesired(problem, 4):
            allowed = reachable(problem, factual)
            allowed = allowed.loc[problem.valid(allowed)]
            best = method.objective(problem).evaluate(problem.space, factual, allowed).min(initial=math.inf)
            assert closest(cells, factual).value == pytest.approx(best, abs=1e-9)


def test_bounds_of_scorecards_count_every_state_in_full() -> None:
    """One tree a feature: what a state gains is the difference of its bins' points."""
    looked = 0
    for seed in range(6):
        problem = toy(seed, Label("yes"))
        cells = searcher(METHOD, problem)
        estimator: Any = problem.classifier.estimator
        for factual in undesired(problem, 3):
            state = search.State(cells, search.Layout(cells, factual.to_dict("records")[0], [], 0.2))
            states, room, layout = state.states, state.additive, state.layout
            box = Box(np.zeros_like(states.factual), np.diff(states.start) - 1, states.sets)
            node = Node(box, states.factual.copy(), np.empty(0), np.empty(0), np.empty(0))
            shares(state.grid, states, node, 0, math.inf, room)
            for f in range(len(node.point)):
                points = np.tile(node.point, (states.start[f + 1] - states.start[f], 1))
                points[:, f] = np.arange(len(points))
                moved = scorecards.SPACE.frame([layout.row(point) for point in points])
                gains = np.subtract(estimator.card_.score(estimator.card_.bins(moved)), problem.classifier.raw(factual))
                for s in (s for s in range(len(points)) if allows(box, states, f, s)):
                    assert room.gain[states.start[f] + s] >= gains[s] - 1e-9
                    looked += gains[s] > 0
    assert looked > 50
