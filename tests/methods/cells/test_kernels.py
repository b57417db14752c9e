"""Kernels of the search over cells against enumeration of all points."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.ensemble import RandomForestClassifier
from support.forests import SPACE, factuals, problem_with, searcher

from harness.core.problem import Problem
from harness.core.space import Feature, Space
from harness.core.target import Label
from harness.core.tolerances import COORDINATE_TIE, COST_TIE, SCORE_TIE
from harness.models.train import train
from harness.solvers.heap import pop, push
from methods.ce_ocl import CeOcl
from methods.cells import kernels, masks, search
from methods.cells.neighbourhood import growth_from, strengthen
from methods.cells.records import Box, Clauses, Intervals, Laid, Node, Numbers, States, Touched

# Positions in a state's arrays: three features, the second without order.
STATES = np.array([4, 3, 4])
OFFSET = np.concatenate([[0], np.cumsum(STATES)])
UNORDERED = np.array([0, 1, 0])
ALL = list(itertools.product(*(range(count) for count in STATES)))

WAYS = {"a": "free", "b": "increase"}


@st.composite
def instances(draw: st.DrawFn) -> tuple[Any, ...]:
    """Costs that grow away from the factual's states, a node, and clauses: boxes of states."""
    steps = st.integers(0, 5).map(float)
    factual_state = np.array([draw(st.integers(0, count - 1)) for count in STATES])
    cost = np.zeros(OFFSET[-1])
    for f, count in enumerate(STATES):
        change_cost = draw(steps)
        for s in range(count):
            cost[OFFSET[f] + s] = change_cost if s != factual_state[f] else 0.0
        for s in () if UNORDERED[f] else (*range(factual_state[f] + 1, count), *range(factual_state[f] - 1, -1, -1)):
            nearer = cost[OFFSET[f] + s + (1 if s < factual_state[f] else -1)]
            cost[OFFSET[f] + s] = (nearer or change_cost) + draw(steps)

    def box() -> Box:
        ends = [sorted((draw(st.integers(0, count - 1)), draw(st.integers(0, count - 1)))) for count in STATES]
        low, high = (np.array([pair[side] for pair in ends]) for side in (0, 1))
        sets = np.where(UNORDERED == 1, [0, draw(st.integers(1, 7)), 0], 0).astype(np.uint64)
        return Box(low, high, sets)

    reach = np.array([0, 7, 0], np.uint64)
    down, up = (np.where(UNORDERED == 1, 0, [draw(st.integers(0, 1)) for _ in STATES]) for _ in range(2))
    first, last = np.maximum(factual_state - down, 0), np.minimum(factual_state + up, np.array(STATES) - 1)
    arrays = UNORDERED, reach, OFFSET, np.zeros(OFFSET[-1], np.int64), cost, factual_state, first, last
    states = States(*arrays, np.ones(3), math.inf)
    return states, box(), entered([box() for _ in range(draw(st.integers(1, 6)))], states)


def entered(boxes: list[Box], states: States) -> Clauses:
    """Boxes as clauses of the kernels."""
    clauses = search._clauses(len(boxes), 3, OFFSET[-1])
    for c, box in enumerate(boxes):
        clauses.low[c], clauses.high[c], clauses.sets[c] = box.low, box.high, box.sets
        kernels.enter(c, clauses, states)
    return clauses


def boxes_of(clauses: Clauses) -> list[Box]:
    return [Box(*parts) for parts in zip(clauses.low, clauses.high, clauses.sets, strict=True)]


def looked_at(box: Box, states: States, unused: float = np.inf) -> Node:
    """A node at its nearest point, with residual costs; those that do not count are ``unused``."""
    right, left = np.full(len(states.cost), unused), np.full(len(states.cost), unused)
    node = Node(box, np.zeros(3, np.int64), right, left, np.zeros(3))
    kernels.nearest(box, states, node.point)
    kernels.residuals(node, states)
    return node


def contains(box: Box, point: tuple[int, ...]) -> bool:
    low, high, sets = box
    return all(int(sets[f]) >> s & 1 if UNORDERED[f] else low[f] <= s <= high[f] for f, s in enumerate(point))


def left_over(node: Box, clauses: Clauses) -> set[tuple[int, ...]]:
    """The points of a node that are in no clause's box."""
    boxes = boxes_of(clauses)
    return {point for point in ALL if contains(node, point) and not any(contains(box, point) for box in boxes)}


@settings(max_examples=300, deadline=None)
@given(instances())
def test_duals_bound_every_point_and_leave_no_negative_residual(instance: tuple[Any, ...]) -> None:
    """No residual gets negative or shrinks with distance, and nothing outside all boxes costs less than the
    bound; nor has such a point a state that ``fix`` drops, where it costs less than the slack above the bound."""
    states, box, clauses = instance
    node, cost = looked_at(box, states), states.cost
    point, right, left, change = node.point, node.right, node.left, node.change
    bound = kernels.nearest(box, states, point)
    for c in range(len(clauses.low)):
        if kernels.inside(c, clauses, states, point) and kernels.live_faces(c, clauses, states, box):
            bound += kernels.raise_dual(c, clauses, states, node)
    assert min(right.min(), left.min(), change.min()) >= 0
    for f in (0, 2):
        onwards = right[OFFSET[f] + point[f] + 1 : OFFSET[f] + box.high[f] + 1]
        back = left[OFFSET[f] + box.low[f] : OFFSET[f] + point[f]]
        assert (np.diff(onwards) >= 0).all()
        assert (np.diff(back) <= 0).all()
    costs = {p: sum(cost[OFFSET[f] + s] for f, s in enumerate(p)) for p in left_over(box, clauses)}
    assert min(costs.values(), default=math.inf) >= bound
    kernels.fix(node, states, 3.0)
    assert all(contains(box, p) for p, cost_at in costs.items() if cost_at < bound + 3.0)


@settings(max_examples=300, deadline=None)
@given(instances(), st.integers(0, 3))
def test_a_node_loses_only_what_a_clause_or_the_bound_on_changes_rules_out(
    instance: tuple[Any, ...], most: int
) -> None:
    states, node, clauses = instance
    expected = left_over(node, clauses)
    possible = kernels.propagate(clauses, len(clauses.low), states, node)
    assert possible or not expected
    if possible:
        assert left_over(node, clauses) == expected
        stays = list(zip(states.first, states.last, strict=True))
        kept = {p for p in expected if sum(not a <= s <= b for s, (a, b) in zip(p, stays, strict=True)) <= most}
        if kernels.limit_changes(node, states._replace(most=float(most))):
            assert kept <= left_over(node, clauses)
        else:
            assert not kept


@settings(max_examples=100, deadline=None)
@given(instances())
def test_states_beside_the_factuals_that_are_no_change_are_not_counted(instance: tuple[Any, ...]) -> None:
    states, _, _ = instance
    for point in itertools.product(*map(range, STATES)):
        moved = [not a <= s <= b for s, a, b in zip(point, states.first, states.last, strict=True)]
        assert kernels.changes_of(np.array(point), states) == sum(moved)


@settings(max_examples=300, deadline=None)
@given(instances(), st.integers(1, 130))
def test_the_clauses_that_hold_a_point_are_named(instance: tuple[Any, ...], number: int) -> None:
    """Of any number of clauses, by the table and one by one."""
    states, _, clauses = instance
    boxes = boxes_of(clauses)
    boxes = [boxes[c % len(boxes)] for c in range(number)]
    clauses, found = entered(boxes, states), np.full(3, 2**64 - 1, np.uint64)
    for point in ALL:
        kernels.clauses_around(clauses, number, states, np.array(point), found)
        words = -(-number // 64)
        named = np.unpackbits(found[:words].view(np.uint8), bitorder="little")
        expected = [contains(box, point) for box in boxes]
        assert named[:number].tolist() == expected
        assert not named[number:].any()
        assert [kernels.inside(c, clauses, states, np.array(point)) for c in range(number)] == expected


@settings(max_examples=300, deadline=None)
@given(instances())
def test_faces_without_residual_cost_lead_out_of_all_clauses(instance: tuple[Any, ...]) -> None:
    """The point reached is in the node, in no box, and each of its features has no residual cost."""
    states, box, clauses = instance
    node, trial, used = looked_at(box, states), np.zeros(3, np.int64), len(clauses.low)
    point, right, left, change = node.point, node.right, node.left, node.change
    for c in range(used):
        if kernels.inside(c, clauses, states, point) and kernels.live_faces(c, clauses, states, box):
            kernels.raise_dual(c, clauses, states, node)
    containing = np.zeros(1, np.uint64)
    if not kernels.through_free_faces(clauses, used, states, node, containing, trial):
        return
    assert tuple(trial) in left_over(box, clauses)
    for f in (0, 2):
        assert trial[f] == point[f] or (right if trial[f] > point[f] else left)[OFFSET[f] + trial[f]] <= COST_TIE
    assert trial[1] == point[1] or change[1] <= COST_TIE


@settings(max_examples=300, deadline=None)
@given(instances(), st.integers(0, 5))
def test_the_children_of_a_node_share_out_what_is_outside_a_clause(instance: tuple[Any, ...], chosen: int) -> None:
    """No point is lost or in two of them, and no child's key is above its cheapest point."""
    states, box, clauses = instance
    c = chosen % len(clauses.low)
    node, only = looked_at(box, states, 0.0), Clauses(*(part[[c]] for part in clauses))
    if not kernels.inside(c, clauses, states, node.point):
        return
    nodes, counters = search._nodes(16, 3), np.zeros(16, np.int64)
    kernels.branch(c, clauses, states, node, 0.0, nodes, counters)
    children = [Box(nodes.low[place], nodes.high[place], nodes.sets[place]) for place in range(counters[kernels.TOP])]
    shares = Counter(p for child in children for p in ALL if contains(child, p))
    assert shares == Counter(left_over(box, only))
    for child, key in zip(children, nodes.keys, strict=False):
        assert key <= min(sum(states.cost[OFFSET[f] + s] for f, s in enumerate(p)) for p in ALL if contains(child, p))


def test_no_face_of_a_box_goes_beyond_its_states() -> None:
    """The last of them may have come with the opposite face, and beside them are the cells of the next feature, which
    begin at a high one."""
    rng, grown = np.random.default_rng(0), 0
    space = Space(
        tuple(Feature(n, "continuous", scale=(0, 1), bounds=(0, 1), actionability=way) for n, way in WAYS.items())
    )
    frame = pd.DataFrame(rng.random((200, 2)), columns=list(WAYS))
    labels = np.where(0.1 * frame["a"] + frame["b"] + 0.4 * rng.normal(size=200) > 1.03, "yes", "no").astype(object)
    judge = train(RandomForestClassifier(5, max_depth=2, random_state=0), space, frame, labels, ("no", "yes"))
    problem = Problem(space, judge, frame, labels, Label("yes"))
    cells = searcher(CeOcl("l1"), problem)
    for person, others in (  # the first has a lower face without a state beyond it, the second an upper one
        ((0.3, 0.93), ((0.511, 0.993), (0.081, 0.882), (0.376, 0.941), (0.175, 0.961))),
        ((0.51, 0.93), ((0.98, 0.72), (0.61, 0.81), (0.8, 0.75), (0.87, 0.86))),
    ):
        factual, *earlier = (dict(zip(WAYS, point, strict=True)) for point in (person, *others))
        layout = search.Layout(cells, factual, earlier, 0.02)  # two states in each cell that the earlier answers cut
        counts = np.diff(layout.state_start)
        state = search.State(cells, layout)
        states = state.states
        for seed in rng.integers(0, counts, (100, 2)):
            least, which = kernels.score_point(state.grid, states, seed)
            if least >= -SCORE_TIE:
                continue
            free = np.zeros(len(layout.cost)), np.zeros(len(layout.cost)), np.zeros(2)
            node = Node(Box(np.zeros(2, np.int64), counts - 1, layout.sets), layout.factual_state, *free)
            own = states.cell[states.start[:-1] + seed]
            box = Box(seed.copy(), seed.copy(), layout.sets.copy())
            growth = growth_from(state.grid, own.copy(), own.copy())
            strengthen(state.grid, states, which, node, Touched(states.cell, states.cell), growth, box)
            assert growth.low.tolist() == states.cell[states.start[:-1] + box.low].tolist()
            assert growth.high.tolist() == states.cell[states.start[:-1] + box.high].tolist()
            grown += (growth.low < growth.high).sum()
    assert grown > 20


@pytest.mark.parametrize("same", [False, True])
@pytest.mark.parametrize("model", ["rf3", "rf", "gbm", "gbm3"])  # the first is always asked, and has several sums
def test_a_strengthened_box_is_wrong_throughout(model: str, same: bool) -> None:
    """It holds its seed; with ``same`` all of it has the seed's score."""
    problem = problem_with(model)
    cells = searcher(CeOcl("l1"), problem)
    grid, rng = cells.grid, np.random.default_rng(0)
    for factual in factuals(problem, 3):
        layout = search.Layout(cells, factual.to_dict("records")[0], [], 0.2)
        counts, count = np.diff(layout.state_start), len(layout.factual_state)
        state = search.State(cells, layout)

        def score(point: np.ndarray, state: search.State = state) -> tuple[float, int]:
            return kernels.score_point(state.grid, state.states, point)

        grown = 0
        for seed in rng.integers(0, counts, (40, count)):
            least, which = score(seed)
            if least >= -SCORE_TIE:
                continue
            free = np.zeros(len(layout.cost)), np.zeros(len(layout.cost)), np.zeros(count)
            node = Node(Box(np.zeros(count, np.int64), counts - 1, layout.sets), layout.factual_state, *free)
            if same:
                state._rule_out(layout.cells(seed))
                box = boxes_of(state.clauses)[state.counters[kernels.CLAUSES] - 1]
            else:
                counters = np.zeros(12, np.int64)
                c = kernels.learn(state.grid, state.states, which, node, seed, state.clauses, counters)
                box = boxes_of(state.clauses)[c]
            allowed = [
                [
                    s
                    for s in range(counts[f])
                    if (int(box.sets[f]) >> s & 1 if grid.unordered[f] else box.low[f] <= s <= box.high[f])
                ]
                for f in range(count)
            ]
            assert all(s in choices for s, choices in zip(seed, allowed, strict=True))
            grown += sum(map(len, allowed)) - count
            for _ in range(100):
                value, _ = score(np.array([rng.choice(choices) for choices in allowed]))
                assert value == least if same else value < 0
        assert grown


def greatest(grid: Any, which: int, cells: list[set[int]]) -> float:
    """The greatest value of a sum of trees whose leaves each meet a box, given by its cells of each feature."""
    total = grid.base
    for t in np.flatnonzero(grid.sums == which):
        alive = ~np.zeros(grid.upto.shape[2], np.uint64)
        for f in grid.members[grid.owner == t].tolist():  # which the tree splits on
            begin, held = int(grid.offset[f]), cells[f]
            if grid.unordered[f]:
                alive &= np.bitwise_or.reduce([grid.upto[t, begin + cell] for cell in held])
            else:
                alive &= grid.upto[t, begin + max(held)] & grid.onwards[t, begin + min(held)]
        leaves = [k for k in range(grid.values.shape[1]) if int(alive[k // 64]) >> (k % 64) & 1]
        total += max(grid.values[t, k] for k in leaves)
    return float(total)


@pytest.mark.every(1)
@pytest.mark.parametrize("model", ["rf", "rf3"])
def test_a_strengthened_box_cannot_grow(model: str) -> None:
    """On any side it would meet leaves whose sum is not wrong."""
    problem = problem_with(model)
    cells, rng, looked = searcher(CeOcl("l1"), problem), np.random.default_rng(0), 0
    layout = search.Layout(cells, factuals(problem, 1)[0].to_dict("records")[0], [], 0.2)
    counts, count = np.diff(layout.state_start), len(layout.factual_state)
    state = search.State(cells, layout)
    free = np.zeros(len(layout.cost)), np.zeros(len(layout.cost)), np.zeros(count)
    node = Node(Box(np.zeros(count, np.int64), counts - 1, layout.sets), layout.factual_state, *free)
    for seed in rng.integers(0, counts, (12, count)):
        least, which = kernels.score_point(state.grid, state.states, seed)
        if least >= -SCORE_TIE:
            continue
        c = kernels.learn(state.grid, state.states, which, node, seed, state.clauses, np.zeros(12, np.int64))
        box, unordered = boxes_of(state.clauses)[c], state.grid.unordered
        held = [
            {s for s in range(counts[f]) if int(box.sets[f]) >> s & 1} if unordered[f] else {*range(low, high + 1)}
            for f, (low, high) in enumerate(zip(box.low.tolist(), box.high.tolist(), strict=True))
        ]

        def met(states: list[set[int]]) -> list[set[int]]:
            return [{int(state.states.cell[state.states.start[f] + s]) for s in some} for f, some in enumerate(states)]

        assert greatest(state.grid, which, met(held)) < -SCORE_TIE
        for f in range(count):
            others = set(range(counts[f])) - held[f] if unordered[f] else {min(held[f]) - 1, max(held[f]) + 1}
            for s in others & set(range(counts[f])):
                larger = [*held[:f], held[f] | {s}, *held[f + 1 :]]
                assert greatest(state.grid, which, met(larger)) >= -SCORE_TIE
                looked += 1
    assert looked > 50


@pytest.mark.parametrize("model", ["cart", "rf", "gbm", "rf3", "gbm3"])
def test_a_step_changes_the_score_by_what_it_changes_for_the_model(model: str) -> None:
    """Any feature, to any state, near or far: the model's own score, of several classes the least lead over another."""
    problem = problem_with(model)
    cells = searcher(CeOcl("l1"), problem)
    grid, rng = cells.grid, np.random.default_rng(0)
    layout = search.Layout(cells, factuals(problem, 1)[0].to_dict("records")[0], [], 0.2)
    states, leaves = layout.states(cells.weights, cells.most), kernels.leaves_room(cells._grid)
    point, totals = layout.factual_state.copy(), leaves.totals
    assert len(totals) == len(grid.walks)
    kernels.evaluate(cells._grid, states, point, leaves)
    for _ in range(300):
        f = int(rng.integers(len(point)))
        s = int(rng.integers(layout.state_start[f + 1] - layout.state_start[f]))
        score = kernels.step(cells._grid, states, point, leaves, f, s)
        assert point[f] == s
        assert score == pytest.approx(kernels.score_point(cells._grid, states, point)[0], abs=1e-9)
        raw = problem.classifier.raw(SPACE.frame([layout.row(point)]))[0]
        lead = raw - problem.classifier.raw_threshold if len(totals) == 1 else raw[1] - max(raw[0], raw[2])
        assert score == pytest.approx(lead, abs=1e-9)


@settings(deadline=None)  # the first call compiles
@given(st.integers(1, 2**64 - 1))
def test_the_highest_bit_is_the_bit_length_less_one(word: int) -> None:
    assert masks.highest(np.uint64(word)) == word.bit_length() - 1


@settings(deadline=None)
@given(st.lists(st.floats(0, 1), min_size=1, max_size=40), st.data())
def test_the_heap_gives_nodes_by_key(keys: list[float], data: st.DataObject) -> None:
    """Also where nodes come and go in turn."""
    heap, numbers, size, inside = np.zeros(40, np.int64), np.array(keys), 0, list[float]()
    for place, key in enumerate(keys):
        size = push(heap, numbers, size, place)
        inside.append(key)
        while inside and data.draw(st.booleans()):
            top, size = pop(heap, numbers, size)
            assert keys[top] == min(inside)
            inside.remove(keys[top])
    emptied = []
    while size:
        top, size = pop(heap, numbers, size)
        emptied.append(keys[top])
    assert emptied == sorted(inside)


@settings(deadline=None)
@given(
    st.lists(st.integers(-8, 12), unique=True, max_size=6).map(sorted),
    st.lists(st.integers(-8, 12), max_size=3),
    st.integers(-9, 13),
    st.booleans(),
)
def test_the_states_of_a_number_are_its_cells_at_their_nearest_values(
    ends: list[int], cuts: list[int], value: int, integer: bool
) -> None:
    """In order, one for each cell that the bounds meet, with a cost that grows from 0 at the factual."""
    low, high = -2.0, 6.0
    borders = np.array(ends, dtype=float)
    numbers = Numbers(
        borders,
        np.array([0, len(ends)]),
        np.array([4.0]),
        np.array([integer]),
        *(np.array([c]) for c in (0.5, 1.0, 2.0)),
    )
    intervals = Intervals(
        np.array([float(value)]), np.array([low]), np.array([high]), np.array(cuts, dtype=float),
        np.array([0, len(cuts)]),
    )  # fmt: skip
    laid: Laid = kernels.lay_numbers(tuple(numbers), tuple(intervals))
    cells, values, costs = (part[: laid.start[1]] for part in (laid.cell, laid.values, laid.cost))
    factual_state = laid.factual[0]
    assert values[factual_state] == value
    assert costs[factual_state] == 0
    assert (np.diff(values) > 0).all()
    assert (np.diff(costs[factual_state:]) >= 0).all()
    assert (np.diff(costs[: factual_state + 1]) <= 0).all()
    moved = np.abs(values - value) > 4.0 * COORDINATE_TIE  # by less is no change
    assert (costs[moved] >= 0.5).all()
    assert (costs[~moved] < 1e-8).all()
    assert cells.tolist() == np.searchsorted(borders, values).tolist()
    others = np.delete(values, factual_state)
    assert ((others >= low) & (others <= high)).all()
    bins = np.unique([*ends, *cuts])
    expected = {int(np.searchsorted(bins, v)) for v in (*range(-2, 7), value)}
    if not integer:
        expected |= {int(np.searchsorted(bins, v + 0.5)) for v in range(-2, 6)}
    assert set(np.searchsorted(bins, values).tolist()) == expected
