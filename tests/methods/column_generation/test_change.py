"""The second stage: of all covers by as few points, one in which factuals change the fewest features in total."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from time import monotonic, process_time, sleep
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier
from support.discrete import EVERY, asked, counted, grid, keeps_its_promises, negatives, posed

from harness.core.classifier import Classifier
from harness.core.explanation import GroupExplanation, Status
from harness.core.inputs import Lookup
from harness.core.method import Deadline
from harness.core.problem import Problem
from harness.core.space import Feature, Space
from harness.core.target import Label
from methods.column_generation import ColumnGeneration, change, search
from methods.column_generation.estimator import encode_model
from methods.column_generation.group import FOREVER, Group, places
from methods.column_generation.search import maximal

SOLVERS = ("cells", "column_generation", "milp")


def least_of_all(problem: Problem, factuals: pd.DataFrame, t_max: int, tau: float, points: int) -> float:
    """The least total change of all covers by so many points of all factuals that can be served, by trying all.

    Of each set of factuals the least change by one point, over all points and sets of features; from these the least
    of each set by one more point, over all ways to split it.
    """
    assert isinstance(problem.target, Label)
    every = grid(problem.space)
    every = every.loc[problem.valid(every)]
    if tau != 0.5:
        every = every.loc[problem.classifier.probability(every, problem.target.value) >= tau]
    features, rows = problem.space.features, factuals.to_dict("records")
    alone = np.full(1 << len(rows), np.inf)
    for point in every.to_dict("records"):
        moves: dict[int, frozenset[str]] = {
            i: frozenset(f.name for f in features if row[f.name] != point[f.name])
            for i, row in enumerate(rows)
            if all(point[f.name] in f.reachable(row[f.name]) for f in features)
        }
        for changed in combinations(problem.space.names, t_max):
            served = [i for i, move in moves.items() if move <= set(changed)]
            for part in parts(sum(1 << i for i in served)):
                alone[part] = min(alone[part], sum(len(moves[i]) for i in served if part >> i & 1))
    everybody = sum(1 << i for i in range(len(rows)) if np.isfinite(alone[1 << i]))
    best = np.full(1 << len(rows), np.inf)
    best[0] = 0.0
    for _ in range(points):
        before = best.copy()
        for whole in range(1, everybody + 1):
            if whole & ~everybody == 0:
                best[whole] = min([before[whole], *(before[whole ^ part] + alone[part] for part in parts(whole))])
    return float(best[everybody])


def parts(whole: int) -> list[int]:
    """Every subset of a bit set but the empty one."""
    found, part = [], whole
    while part:
        found.append(part)
        part = (part - 1) & whole
    return found


def group_of(problem: Problem, factuals: pd.DataFrame, t_max: int) -> Group:
    group = Group.of(problem, encode_model(problem, 0.5, 1e-4, None), factuals, t_max)
    return group.part(np.flatnonzero(group.coverable() == 1))


def test_a_point_that_took_many_nodes_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no search decides any more, a group has the point by which it was found, or each member its own."""
    problem = posed("forest")
    group = group_of(problem, negatives(problem, 9, 1), 3)
    joined = [places(bits[0], group.size) for bits in maximal(group, Deadline.after(600))]
    wide = next(members for members in joined if len(members) > 1)
    searching = change._Search(group, [], Deadline.after(60))
    monkeypatch.setattr(Group, "_attains", lambda self, *_: (-1, self.codes[0]))
    monkeypatch.setattr(change._Search, "_cheapest", lambda *_: None)
    (column,) = searching._columns_of(wide)
    assert (column.members == wide).all()
    group.points.pop(wide.tobytes())
    alone = searching._columns_of(wide)
    assert [column.members.tolist() for column in alone] == [[place] for place in wide]
    points = [column.point for column in alone]
    assert (group.coded.scores(np.array([*points, column.point])) >= group.coded.threshold).all()


@EVERY
@pytest.mark.parametrize("limited", [False, True])
@pytest.mark.parametrize("wanted", ["good", "bad"])
def test_the_total_change_is_the_least(model: str, limited: bool, wanted: str) -> None:
    """By brute force over all covers, for each T; some factuals are equal, and each of them counts."""
    problem = posed(model, limited, wanted)
    for t_max, seed in ((1, 0), (2, 1), (3, 2)):
        factuals = negatives(problem, 7, seed)
        method = ColumnGeneration(t_max)
        found = asked(method, problem, factuals)
        keeps_its_promises(found, problem, factuals, method)
        if not found.points:
            continue
        least = least_of_all(problem, factuals, t_max, 0.5, len(found.points))
        assert found.total_change == found.total_change_bound == counted(found, factuals) == least
        assert found.least_change is Status.OPTIMAL


@pytest.mark.parametrize("tau", [0.6, 0.9])
@pytest.mark.parametrize("model", ["linear", "network", "forest"])
def test_the_threshold_binds_the_second_stage(model: str, tau: float) -> None:
    problem = posed(model)
    for t_max, seed in ((2, 3), (4, 4)):
        factuals = negatives(problem, 7, seed)
        found = asked(ColumnGeneration(t_max, threshold=tau), problem, factuals)
        if found.points:
            least = least_of_all(problem, factuals, t_max, tau, len(found.points))
            assert found.total_change == found.total_change_bound == counted(found, factuals) == least


@pytest.mark.parametrize("limited", [False, True])
def test_it_follows_every_solver(limited: bool) -> None:
    """Where the first stages agree on the number of points, the least change by as many is one number."""
    problem = posed("linear", limited)
    factuals = negatives(problem, 6, 4)
    for t_max in (1, 2):
        for solver in SOLVERS:
            found = asked(ColumnGeneration(t_max, solver=solver), problem, factuals)
            least = least_of_all(problem, factuals, t_max, 0.5, len(found.points))
            assert found.total_change == found.total_change_bound == least


@pytest.mark.parametrize("left_out", ["_price", "_enumerate", "_complete"])
@pytest.mark.parametrize("model", ["linear", "network", "tree"])
def test_each_proof_holds_by_itself(model: str, left_out: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pricing of points and listing of groups are two ways to one number; without a part, no bound is above it."""
    problem = posed(model)
    monkeypatch.setattr(change._Search, left_out, lambda *_: None)
    proven = 0
    for t_max, seed in ((2, 5), (3, 6), (3, 7)):
        factuals = negatives(problem, 8, seed)
        group = group_of(problem, factuals, t_max)
        groups = search.solve(group, 0, Deadline.after(60)).groups
        found = change.least_change(group, groups, Deadline.after(600))
        least = least_of_all(problem, factuals, t_max, 0.5, len(groups))
        assert found.bound <= least <= found.change
        proven += found.bound == found.change
    assert proven == 3 or left_out == "_complete"


@pytest.mark.parametrize(
    ("model", "limited", "seed", "count", "t_max"),
    [
        ("svm", False, 2, 14, 3), ("svm", False, 4, 30, 2), ("svm", False, 5, 30, 2), ("svm", True, 2, 14, 3),
        ("tree", True, 5, 30, 2), ("network", False, 8, 30, 2), ("linear", True, 8, 30, 1),
    ],
)  # fmt: skip
def test_the_two_proofs_agree_on_a_larger_group(
    model: str, limited: bool, seed: int, count: int, t_max: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Too large for brute force; of the first five the relaxation leaves a gap, which is closed by listing."""
    group = group_of(posed(model, limited), negatives(posed(model, limited), count, seed), t_max)
    groups = search.solve(group, 0, Deadline.after(60)).groups
    known = []
    for left_out in ("_price", "_enumerate"):
        with monkeypatch.context() as without:
            without.setattr(change._Search, left_out, lambda *_: None)
            found = change.least_change(group, groups, Deadline.after(600))
        assert found.bound == found.change
        assert sorted(place for column in found.columns for place in column.members) == list(range(group.size))
        assert len(found.columns) <= len(groups)
        known.append(found.change)
    assert known[0] == known[1]


@pytest.mark.parametrize("model", ["linear", "network", "tree"])
@pytest.mark.parametrize("t_max", [1, 2, 3])
def test_the_cheapest_point_of_a_group(model: str, t_max: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """By brute force over points; cut short, its bound is not above the cost, and with nodes enough it is the cost."""
    problem = posed(model)
    points = grid(problem.space)
    points = points.loc[problem.classifier.probability(points, "good") >= 0.75]
    rng = np.random.default_rng(9)
    group = Group.of(problem, encode_model(problem, 0.75, 1e-4, None), negatives(problem, 20, 9), t_max)
    codes = np.column_stack([f.codes(points[f.name]) for f in problem.space.features])
    whole, short = (change._Search(group, [], Deadline.after(60)) for _ in range(2))
    monkeypatch.setattr(short, "nodes", lambda _: 2)
    for _ in range(60):
        members = np.sort(rng.choice(group.size, size=rng.integers(1, 4), replace=False))
        differs = codes[:, None, :] != group.codes[members][None]
        fits = differs.any(axis=1).sum(axis=1) <= t_max
        cost = (differs.sum(axis=2) @ whole.people[members])[fits].min(initial=np.inf)
        found, cut = whole._cheapest(members), short._cheapest(members)
        assert (np.inf if found is None else found.change) == (np.inf if found is None else found.bound) == cost
        if cut is not None:
            assert cut.bound <= cost <= cut.change
        else:
            assert short.unclear or cost == np.inf


def test_without_time_the_first_stage_is_whole() -> None:
    """Time for the second stage, or none, leaves points, their bound and the proof of their number as they are."""
    problem = posed("linear")
    factuals = negatives(problem, 20, 13)
    whole = asked(ColumnGeneration(3), problem, factuals)
    method = ColumnGeneration(3, change_seconds=0.0)
    quick = asked(method, problem, factuals)
    keeps_its_promises(quick, problem, factuals, method)
    assert (len(quick.points), quick.bound, quick.status) == (len(whole.points), whole.bound, whole.status)
    assert quick.total_change is not None
    assert whole.total_change is not None
    assert quick.total_change_bound is not None
    assert quick.total_change_bound <= whole.total_change <= quick.total_change == counted(quick, factuals)
    assert quick.least_change is Status.FOUND or quick.total_change == whole.total_change


@pytest.mark.parametrize("listed_only", [False, True])
@pytest.mark.parametrize("nodes", [1, 10])
def test_few_nodes_make_no_false_proof(nodes: int, listed_only: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Searches that are cut short, and columns that are left out, leave a bound that holds."""
    for name in ("FEW", "MANY", "CALL") if not listed_only else ("POOL",):
        monkeypatch.setattr(change, name, nodes)
    monkeypatch.setattr(change._Search, "nodes", lambda _, count: count)
    if listed_only:
        monkeypatch.setattr(change._Search, "_price", lambda _: None)
    for model, seed in (("linear", 5), ("network", 6), ("forest", 7)):
        problem = posed(model)
        factuals = negatives(problem, 8, seed)
        group = group_of(problem, factuals, 3)
        groups = search.solve(group, 0, Deadline.after(60)).groups
        found = change.least_change(group, groups, Deadline.after(5))
        assert found.bound <= least_of_all(problem, factuals, 3, 0.5, len(groups)) <= found.change


def test_a_point_that_is_left_out_takes_the_bound_along() -> None:
    """Where the model rejects points, those whom they served are left: what is counted is of the others alone."""
    problem = posed("linear")
    factuals = negatives(problem, 10, 12)
    explainer: Any = ColumnGeneration(2, round_weights=0).fit(problem)
    found = explainer.explain_group(factuals, np.random.default_rng(0), Deadline.after(600))
    assert found.total_change == counted(found, factuals)
    if found.undecided:
        assert found.total_change_bound is None
        assert found.least_change is Status.FOUND


def test_what_is_proven_follows_from_the_numbers() -> None:
    found = GroupExplanation((), total_change=3, total_change_bound=3.0)
    assert found.least_change is Status.OPTIMAL
    for less in ({"total_change_bound": 2.0}, {"total_change_bound": None}, {"total_change": None}):
        assert replace(found, **less).least_change is Status.FOUND  # type: ignore[arg-type]


def test_negative_seconds_are_refused() -> None:
    with pytest.raises(ValueError, match="change_seconds is -1"):
        ColumnGeneration(change_seconds=-1)


@EVERY
def test_the_clock_leaves_who_can_be_served_undecided_at_most(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """By all points of the grid: with time each verdict is right, in however many goes; without, right or open."""
    problem = posed(model)
    group = Group.of(problem, encode_model(problem, 0.5, 1e-4, None), negatives(problem, 12, 0), 2)
    points = grid(problem.space)
    good = points.loc[problem.valid(points)]
    codes = np.column_stack([feature.codes(good[feature.name]) for feature in problem.space.features])
    right = [((codes != own).sum(axis=1) <= 2).any() for own in group.codes]
    monkeypatch.setattr("methods.column_generation.group.FIRST", 1)
    for deadline in (FOREVER, Deadline.after(600)):
        assert (group.reached(deadline)[0] == right).all()
    hurried = group.reached(Deadline.after(0))[0]
    assert ((hurried == right) | (hurried == -1)).all()


def test_who_can_be_served_is_found_out_within_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each profile alone would take 2 s, at 100,000 nodes a second; and what is cut by the clock proves nothing."""
    problem = posed("forest")
    group = Group.of(problem, encode_model(problem, 0.5, 1e-4, None), negatives(problem, 10, 0), 2)

    def attains(self: Group, profiles: np.ndarray, extras: int, nodes: int) -> Any:
        sleep(nodes / 100_000)
        return -1, self.codes[0]

    monkeypatch.setattr(Group, "_attains", attains)
    deadline = Deadline.after(0.5)
    assert (group.reached(deadline)[0] == -1).all()
    assert (group.fewest_changes(deadline) == 0).all()
    assert monotonic() < deadline.at + 1.0


def test_a_group_s_answer_keeps_to_its_time() -> None:
    """Of trees a node of whose searches takes long: what is found by then is answered, and no more is claimed."""
    rng = np.random.default_rng(0)
    space = Space(tuple(Feature(f"x{i}", "ordinal", tuple(range(6))) for i in range(14)))
    codes = rng.integers(0, 6, (2000, 14))
    label = np.sin(codes).sum(axis=1) + (codes[:, 0] * codes[:, 1] > 9) + rng.normal(size=2000) > 2.2
    train = space.frame([dict(zip(space.names, row, strict=True)) for row in codes.tolist()])
    levels = tuple(map(float, range(6)))
    inputs = tuple(Lookup(name, tuple(range(6)), levels) for name in space.names)
    forest = RandomForestClassifier(30, max_depth=7, random_state=0).fit(codes.astype(float), label.astype(int))
    names = np.where(label, "good", "bad").astype(object)
    problem = Problem(space, Classifier(forest, inputs, ("bad", "good")), train, names, Label("good"))
    factuals = train.loc[~problem.valid(train)].iloc[:40]
    explainer: Any = ColumnGeneration(5, threshold=0.7).fit(problem)
    began, spent = monotonic(), process_time()
    found = explainer.explain_group(factuals, np.random.default_rng(0), Deadline.after(2.0))
    took = min(monotonic() - began, process_time() - spent)  # of a busy machine, what it had
    assert took <= 2.4
    assert {*found.assignment, *found.uncoverable, *found.undecided} == {*factuals.index}
    assert (problem.classifier.probability(space.frame([a.row for a in found.points]), "good") >= 0.7).all()
