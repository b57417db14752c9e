"""The fewest counterfactuals of a group: against brute force, against each other, and what an answer promises."""

from __future__ import annotations

import itertools
import math
import time
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from support import laws
from support.discrete import EVERY, asked, fewest, grid, keeps_its_promises, negatives, posed, served, weighed
from support.laws import Case

from harness.core.explanation import Status
from harness.core.method import Deadline
from harness.core.problem import Problem
from harness.core.space import Feature, Space
from harness.core.target import Interval, Label
from harness.models.train import train
from harness.solvers.cover import Cover
from harness.solvers.highs import Solution
from harness.solvers.program import Compiled
from methods.column_generation import ColumnGeneration, kernels, programs, search
from methods.column_generation.estimator import encode_model
from methods.column_generation.group import Group, places, words
from methods.column_generation.programs import Pricing
from methods.column_generation.programs import _first as first_columns
from methods.group_greedy import GroupGreedy


def compiled() -> dict[str, set[Any]]:
    """The argument types for which each kernel is compiled."""
    return {name: set(kernel.signatures) for name, kernel in vars(kernels).items() if hasattr(kernel, "signatures")}


@pytest.mark.parametrize("limited", [False, True])
@pytest.mark.parametrize("model", ["linear", "network", "tree"])
def test_kernels_are_compiled_by_the_fit(model: str, limited: bool) -> None:
    """No question, of a group or of one factual, meets argument types that are new: compilation is no search."""
    problem = posed(model, limited)
    explainer: Any = ColumnGeneration(t_max=2).fit(problem)
    before = compiled()
    explainer.explain_group(negatives(problem, 9, 0), np.random.default_rng(0), Deadline.after(600))
    explainer.explain(negatives(problem, 1, 0), 2, np.random.default_rng(0), Deadline.after(600))
    assert compiled() == before
    assert all(before[name] for name in ("search", "attains", "extend", "improve", "listed"))


@EVERY
@pytest.mark.parametrize("limited", [False, True])
@pytest.mark.parametrize("wanted", ["good", "bad"])
def test_the_number_of_points_is_the_least(model: str, limited: bool, wanted: str) -> None:
    """By brute force over all points and groups, for each T, with and without limits on what may change."""
    problem = posed(model, limited, wanted)
    for t_max, seed in ((1, 0), (2, 1), (3, 2)):
        factuals = negatives(problem, 8, seed)
        method = ColumnGeneration(t_max)
        explanation = asked(method, problem, factuals)
        keeps_its_promises(explanation, problem, factuals, method)
        count, left = fewest(served(problem, factuals, t_max, 0.5), len(factuals))
        assert len(explanation.points) == explanation.bound == count
        assert set(explanation.uncoverable) == set(factuals.index[sorted(left)])
        assert explanation.status is (Status.OPTIMAL if count else Status.INFEASIBLE)


@pytest.mark.parametrize("tau", [0.6, 0.9, 0.99])
@pytest.mark.parametrize("model", ["linear", "network", "forest", "boosting"])
def test_a_threshold_binds(model: str, tau: float) -> None:
    """Points reach the probability asked for; whoever cannot is named."""
    problem = posed(model)
    for t_max, seed in ((1, 0), (2, 1), (4, 2)):
        factuals = negatives(problem, 8, seed)
        method = ColumnGeneration(t_max, threshold=tau)
        explanation = asked(method, problem, factuals)
        keeps_its_promises(explanation, problem, factuals, method)
        count, left = fewest(served(problem, factuals, t_max, tau), len(factuals))
        assert len(explanation.points) == explanation.bound == count
        assert set(explanation.uncoverable) == set(factuals.index[sorted(left)])


def test_a_strict_threshold_and_few_changes_bind() -> None:
    """At 1/2 the model hardly matters; at 0.9 more points are needed, and at 0.99 one change serves none."""
    problem = posed("linear")
    factuals = negatives(problem, 12, 1)
    few, many, none = (
        asked(ColumnGeneration(t, threshold=tau), problem, factuals) for t, tau in ((2, 0.5), (2, 0.9), (1, 0.99))
    )
    assert len(few.points) < len(many.points) or many.uncoverable
    assert len(none.uncoverable) > len(few.uncoverable)
    assert (few.status, many.status) == (Status.OPTIMAL, Status.OPTIMAL)


@pytest.mark.parametrize("model", ["linear", "svm", "forest", pytest.param("network", marks=pytest.mark.slow)])
@pytest.mark.parametrize("limited", [False, True])
def test_solvers_agree(model: str, limited: bool) -> None:
    """The paper's program and its column generation find as many points, and no bound exceeds that."""
    problem = posed(model, limited)
    factuals = negatives(problem, 5, 4)
    for t_max in (1, 2):
        ours = asked(ColumnGeneration(t_max), problem, factuals)
        for solver in ("column_generation", "milp", "milp_paper"):
            method = ColumnGeneration(t_max, solver=solver)
            theirs = asked(method, problem, factuals)
            keeps_its_promises(theirs, problem, factuals, method)
            assert theirs.bound is not None
            assert theirs.bound <= len(ours.points) <= len(theirs.points)
            assert theirs.uncoverable == ours.uncoverable
            if theirs.status is Status.OPTIMAL:
                assert len(theirs.points) == len(ours.points)
            if solver == "milp":
                assert theirs.status is ours.status


def test_the_printed_program_has_nothing_added(monkeypatch: pytest.MonkeyPatch) -> None:
    """No rows on instances that share no point, as they would be among those added."""
    posed_with, own = [], programs._one_point

    def noted(group: Group, cliques: list[np.ndarray], added: bool) -> Any:
        posed_with.append((len(cliques) > 0, added))
        return own(group, cliques, added)

    monkeypatch.setattr(programs, "_one_point", noted)
    problem = posed("linear")
    asked(ColumnGeneration(2, solver="milp_paper"), problem, negatives(problem, 5, 4))
    assert posed_with == [(False, False)]


@pytest.mark.parametrize("without", [False, True])
@pytest.mark.parametrize("limited", [False, True])
def test_the_program_is_exact(limited: bool, without: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the rows on instances that share no point, and without, where all is left to the program itself."""
    if without:
        monkeypatch.setattr(programs, "_cliques", lambda _: [])
    for model, t_max, count, seed in (("linear", 1, 8, 0), ("linear", 2, 7, 1), ("linear", 3, 9, 2), ("svm", 2, 8, 8)):
        problem = posed(model, limited)
        factuals = negatives(problem, count, seed)
        group = Group.of(problem, encode_model(problem, 0.5, 1e-4, None), factuals, t_max)
        group = group.part(np.flatnonzero(group.coverable() == 1))
        found = programs.solve_at_once(group, 0, Deadline.after(600))
        least, _ = fewest(served(problem, factuals, t_max, 0.5), len(factuals))
        assert (len(found.groups), found.bound) == (least, least)


@pytest.mark.parametrize(
    ("model", "without"), [("linear", False), ("network", False), ("boosting", False), ("linear", True), ("svm", True)]
)
def test_a_program_that_starts_from_single_points_finds_the_fewest(
    model: str, without: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Many points to save, so that every row against symmetry is met; nothing that serves is cut off."""
    monkeypatch.setattr(programs, "greedy", lambda size, _: [np.array([place]) for place in range(size)])
    if without:
        monkeypatch.setattr(programs, "_cliques", lambda _: [])
    problem = posed(model)
    for t_max, seed in ((2, 0), (3, 1)):
        factuals = negatives(problem, 6, seed)
        group = Group.of(problem, encode_model(problem, 0.5, 1e-4, None), factuals, t_max)
        group = group.part(np.flatnonzero(group.coverable() == 1))
        found = programs.solve_at_once(group, 0, Deadline.after(600))
        least, _ = fewest(served(problem, factuals, t_max, 0.5), len(factuals))
        assert (len(found.groups), found.bound) == (least, least)


@pytest.mark.parametrize("limited", [False, True])
def test_cliques_are_of_those_who_share_no_point(limited: bool) -> None:
    """By brute force over points; every such pair is in a clique."""
    problem = posed("linear", limited)
    factuals = negatives(problem, 12, 3).drop_duplicates()
    sets = served(problem, factuals, 2, 0.5)
    group = Group.of(problem, encode_model(problem, 0.5, 1e-4, None), factuals, 2)
    place = {ids[0]: number for number, ids in enumerate(group.members)}
    together = {(place[factuals.index[i]], place[factuals.index[j]]) for each in sets for i in each for j in each}
    apart = programs._apart(group, Deadline.after(60))
    n = group.size
    assert {(i, j) for i in range(n) for j in range(n) if not apart[i, j]} - {(i, i) for i in range(n)} == {
        pair for pair in together if pair[0] != pair[1]
    }
    cliques = [set(clique.tolist()) for clique in programs._cliques(apart)]
    assert all(apart[i, j] for clique in cliques for i in clique for j in clique if i != j)
    assert all(any({i, j} <= clique for clique in cliques) for i, j in np.argwhere(apart).tolist())


@pytest.mark.parametrize("model", ["linear", "network", "boosting"])
@pytest.mark.parametrize("limited", [False, True])
def test_pricing_is_exact(model: str, limited: bool) -> None:
    """For random duals the search finds a group as heavy as the pricing program does."""
    problem = posed(model, limited)
    rng = np.random.default_rng(5)
    coded = encode_model(problem, 0.5, 1e-4, None)
    for t_max in (1, 2, 3):
        group = Group.of(problem, coded, negatives(problem, 14, t_max), t_max)
        group = group.part(np.flatnonzero(group.coverable() == 1))
        pricing = Pricing(group)
        for _ in range(3):
            weight = rng.uniform(size=group.size) * (rng.random(group.size) < 0.8)
            groups, heavy, after = group.search(weight, 0, 0.0, False, 1000, 10**6)
            assert after == group.size
            weights = [weight[places(bits, group.size)].sum() for bits in groups]
            np.testing.assert_allclose(weights, heavy)
            met, bound, _ = pricing.solve(weight, 60.0)
            assert heavy.max() == pytest.approx(weight[met[-1]].sum(), abs=1e-6)
            assert heavy.max() <= bound + 1e-6


def test_all_programs_that_widen_a_group_share_one_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each has what those before it left."""
    problem = posed("linear")
    group = Group.of(problem, encode_model(problem, 0.5, 1e-4, None), negatives(problem, 14, 2), 2)
    pricing = Pricing(group.part(np.flatnonzero(group.coverable() == 1)))
    given, solve = list[float](), pricing.compiled.solve

    def slow(objective: Any, seconds: float, **more: Any) -> Any:
        given.append(seconds)
        time.sleep(0.1)
        return solve(objective, seconds, **more)

    monkeypatch.setattr(pricing.compiled, "solve", slow)
    assert pricing.wider(np.array([0]), Deadline.after(30.0))
    assert len(given) > 1
    assert all(after < before - 0.1 for before, after in itertools.pairwise(given))


@EVERY
@pytest.mark.parametrize("limited", [False, True])
def test_a_listing_holds_every_maximal_group_once(model: str, limited: bool) -> None:
    """Those of at least the weight asked for, by brute force."""
    problem = posed(model, limited)
    rng = np.random.default_rng(6)
    for t_max in (1, 2, 3):
        factuals = negatives(problem, 12, t_max).drop_duplicates()
        sets = served(problem, factuals, t_max, 0.5)
        group = Group.of(problem, encode_model(problem, 0.5, 1e-4, None), factuals, t_max)
        place = {ids[0]: number for number, ids in enumerate(group.members)}
        largest = {frozenset(place[factuals.index[i]] for i in a) for a in sets if a and not any(a < b for b in sets)}
        kept = np.flatnonzero(group.coverable() == 1)
        assert set(kept.tolist()) == set().union(*largest)
        weight, part = rng.uniform(size=group.size), group.part(kept)
        for least in (0.0, 0.5, 1.0):
            groups, _, after = part.search(weight[kept], 0, least, True, 1000, 10**6)
            assert after == part.size
            found = [frozenset(kept[places(bits, part.size)].tolist()) for bits in groups]
            assert len(set(found)) == len(found)
            assert set(found) == {a for a in largest if weight[sorted(a)].sum() >= least}


@pytest.mark.parametrize("model", ["linear", "network"])
def test_the_certificate_holds(model: str) -> None:
    """The bound of the relaxation is that of the linear program over all maximal groups."""
    problem = posed(model)
    group = Group.of(problem, encode_model(problem, 0.5, 1e-4, None), negatives(problem, 40, 7), 2)
    searching = search._Search(group, 0, Deadline.after(60))
    searching._start()
    assert searching._price()
    listed, _, _ = group.search(np.ones(group.size), 0, 0.0, True, 10**5, 10**7)
    cover = Cover(group.size)
    cover.add([places(bits, group.size) for bits in listed])
    relaxed = cover.relax(60.0)
    assert relaxed is not None
    assert searching.bound == pytest.approx(relaxed[0], abs=1e-4)
    assert relaxed[1].sum() == pytest.approx(relaxed[0])
    whole = Cover.solve(group.size, cover.columns, 60.0)
    assert search.solve(group, 0, Deadline.after(60)).bound == round(whole.objective)


@pytest.mark.parametrize("model", ["linear", "network"])
def test_a_gap_is_closed_among_all_groups(model: str) -> None:
    """By the search alone, from a group a factual or one too many; the proof is that of the set cover program."""
    problem = posed(model)
    group = Group.of(problem, encode_model(problem, 0.5, 1e-4, None), negatives(problem, 40, 7), 2)
    listed, _, _ = group.search(np.ones(group.size), 0, 0.0, True, 10**5, 10**7)
    columns = [places(bits, group.size) for bits in listed]
    solution = Cover.solve(group.size, columns, 60.0)
    assert solution.x is not None
    optimum = [columns[place] for place in np.flatnonzero(solution.x > 0.5)]
    for begun in ([np.array([place]) for place in range(group.size)], [*optimum, columns[0]]):
        searching = search._Search(group, 0, Deadline.after(60))
        searching.best = begun
        while len(searching.best) > searching.least:
            before = len(searching.best), searching.least
            assert searching._settle(columns)
            assert (len(searching.best), searching.least) != before
            assert set(np.concatenate(searching.best)) == set(range(group.size))
        assert len(searching.best) == searching.least == len(optimum)


def test_local_search_keeps_a_cover() -> None:
    """And does not make it larger; on set covers with a known optimum it mostly reaches that."""
    rng = np.random.default_rng(8)
    reached = 0
    for _ in range(10):
        columns = [np.flatnonzero(rng.random(25) < 0.15) for _ in range(60)]
        columns = [c for c in columns if len(c)] + [np.array([i]) for i in range(25)]
        best = Cover.solve(25, columns, 60.0)
        rows = np.concatenate(columns)
        starts = np.concatenate([[0], np.cumsum([len(c) for c in columns])])
        owners = np.repeat(np.arange(len(columns)), np.diff(starts))
        order = np.argsort(rows, kind="stable")
        row_starts = np.searchsorted(rows[order], np.arange(26))
        whole = np.ones(len(columns), dtype=bool)
        chosen = kernels.improve((rows, starts, owners[order], row_starts), whole, 2000, 0)
        assert set(np.concatenate([columns[c] for c in np.flatnonzero(chosen)])) == set(range(25))
        reached += chosen.sum() == round(best.objective)
        assert chosen.sum() >= round(best.objective)
    assert reached >= 8


def test_more_than_one_word_of_instances_and_features() -> None:
    """150 instances over 70 binary features, of which the first 60 are constant."""
    rng = np.random.default_rng(9)
    space = Space(tuple(Feature(f"x{j}", "binary", (0, 1)) for j in range(70)))
    rows = np.zeros((300, 70), dtype=int)
    rows[:, 60:] = rng.random((300, 10)) < 0.5
    frame = space.frame([dict(zip(space.names, row.tolist(), strict=True)) for row in rows])
    labels = np.where(rows[:, 60:].sum(axis=1) + rng.normal(size=300) > 5, "good", "bad").astype(object)
    classifier = train(LogisticRegression(), space, frame, labels, ("bad", "good"))
    problem = Problem(space, classifier, frame, labels, Label("good"))
    factuals = frame.loc[~problem.valid(frame)].iloc[:150]
    explanation = asked(ColumnGeneration(3), problem, factuals)
    keeps_its_promises(explanation, problem, factuals, ColumnGeneration(3))
    assert explanation.status is Status.OPTIMAL
    group = Group.of(problem, encode_model(problem, 0.5, 1e-4, None), factuals, 3)
    group = group.part(np.flatnonzero(group.coverable() == 1))
    listed, _, _ = group.search(np.ones(group.size), 0, 0.0, True, 10**5, 10**7)
    columns = [places(bits, group.size) for bits in listed]
    assert len(explanation.points) == round(Cover.solve(group.size, columns, 60.0).objective)


def test_bit_sets_hold_what_they_are_given() -> None:
    rng = np.random.default_rng(10)
    for size in (1, 63, 64, 65, 200):
        mask = rng.random(size) < 0.5
        assert np.array_equal(places(words(mask), size), np.flatnonzero(mask))


@EVERY
def test_one_factual_gets_points_by_number_of_changes(model: str) -> None:
    """A group of one; further points differ, and when none is left that is said."""
    problem = posed(model)
    explainer = ColumnGeneration(2).fit(problem)
    points = grid(problem.space)
    points = points.loc[problem.valid(points)]
    for place in range(3):
        factual = negatives(problem, 3, 11).iloc[[place]]
        changes = problem.space.changed(factual, points).sum(axis=1)
        few = np.sort(changes[changes <= 2])
        explanation = explainer.explain(factual, len(few) + 1, np.random.default_rng(0), Deadline.after(60))
        rows = [answer.row for answer in explanation.answers if answer.row is not None]
        found = problem.space.changed(factual, problem.space.frame(rows)).sum(axis=1) if rows else np.zeros(0)
        assert found.tolist() == few.tolist()
        assert explanation.answers[-1].status is Status.INFEASIBLE
        assert problem.valid(problem.space.frame(rows)).all() if rows else True


def test_of_as_many_changes_the_most_certain_point_comes_first() -> None:
    """From a score of -1.5: b alone leads to 1.5 and a to 0.5; then pairs to 3.5, 2.5 and 1.5."""
    space = Space(tuple(Feature(name, "binary", (0, 1)) for name in "abc"))
    problem, factuals = weighed(space, [2.0, 3.0, 1.0], -1.5, [dict.fromkeys("abc", 0)])
    explainer: Any = ColumnGeneration(2).fit(problem)
    found = explainer.explain(factuals, 5, np.random.default_rng(0), Deadline.after(60))
    changed = ["".join(name for name, value in (answer.row or {}).items() if value) for answer in found.answers]
    assert changed == ["b", "a", "ab", "bc", "ac"]


@pytest.mark.parametrize(
    "model", ["linear", *(pytest.param(m, marks=pytest.mark.slow) for m in ("network", "boosting"))]
)
def test_laws_of_methods_on_discrete_features(model: str) -> None:
    """The contract's own small problem holds numbers, before which this method refuses."""
    problem = posed(model, limited=True)
    laws.judge(Case(ColumnGeneration(2), problem, negatives(problem, 3, 14)), *laws.ALL)


@pytest.mark.parametrize("solver", ["cells", "column_generation", "milp"])
def test_more_changes_than_features_are_as_many_as_features(solver: str) -> None:
    """One of five may not change, in which people differ."""
    problem = posed("linear", limited=True)
    factuals = negatives(problem, 10, 3)
    assert factuals["sex"].nunique() == 2
    all_, more, most = (asked(ColumnGeneration(t, solver=solver), problem, factuals) for t in (5, 6, 8))
    assert all_.status is Status.OPTIMAL
    for found in (more, most):
        assert (found.status, len(found.points), found.bound) == (Status.OPTIMAL, len(all_.points), all_.bound)
        keeps_its_promises(found, problem, factuals, ColumnGeneration(5, solver=solver))


def test_rounded_weights_prove_nobody_uncoverable() -> None:
    """A weight of .04 is none without decimals; one change is enough for the model itself."""
    space = Space((Feature("x", "binary", (0, 1)), Feature("y", "binary", (0, 1))))
    frame = space.frame([{"x": x, "y": y} for x in (0, 1) for y in (0, 1)] * 5)
    labels = np.where(frame["x"] == 1, "good", "bad").astype(object)
    classifier = train(LogisticRegression(), space, frame, labels, ("bad", "good"))
    classifier.estimator.coef_, classifier.estimator.intercept_ = np.array([[0.04, 0.0]]), np.array([-0.02])
    problem = Problem(space, classifier, frame, labels, Label("good"))
    assert problem.valid(space.frame([{"x": 1, "y": 0}]))[0]
    found = asked(ColumnGeneration(2, round_weights=1), problem, space.frame([{"x": 0, "y": 0}]))
    assert (found.status, found.uncoverable, len(found.undecided)) == (Status.GAVE_UP, (), 1)


def test_group_greedy_serves_nobody_against_a_relation() -> None:
    """x has to rise by three; who has no y may not be given that of another, beside it."""
    features = Feature("x", "ordinal", (0, 1, 2, 3)), Feature("y", "binary", (0, 1)), Feature("z", "binary", (0, 1))
    space = Space(features, ("at most 1 of [x, y] change",))
    frame = space.frame([{"x": x, "y": y, "z": 0} for x in range(4) for y in (0, 1)] * 4)
    labels = np.where(frame["x"] == 3, "good", "bad").astype(object)
    problem = Problem(space, train(LogisticRegression(C=1e4), space, frame, labels, ("bad", "good")), frame, labels,
                      Label("good"))  # fmt: skip
    people = space.frame([{"x": 0, "y": 0, "z": 0}, {"x": 0, "y": 1, "z": 0}])
    found = asked(GroupGreedy(3), problem, people)
    assert set(found.assignment) == set(people.index)
    for person, point in found.assignment.items():
        assert space.violations(people.loc[[person]], space.frame([found.points[point].row])) == [[]]


def test_rounded_weights_are_repaired_by_the_model() -> None:
    """Weights without decimals: what the model itself refuses is not given, and nothing is called optimal for it."""
    problem = posed("linear")
    factuals = negatives(problem, 10, 12)
    for decimals in (0, 1, 4):
        method = ColumnGeneration(2, round_weights=decimals)
        explanation = asked(method, problem, factuals)
        for point in explanation.points:
            assert point.row is not None
            assert problem.valid(problem.space.frame([point.row]))[0]
        named = {*explanation.assignment, *explanation.uncoverable, *explanation.undecided}
        assert named == set(factuals.index)


@pytest.mark.parametrize("model", ["linear", "network"])
def test_few_nodes_a_call_lose_no_proof(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where one profile alone takes more nodes than a call may, they are granted; without time, no proof is claimed."""
    problem = posed(model)
    factuals = negatives(problem, 40, 7)
    known = asked(ColumnGeneration(2), problem, factuals)
    monkeypatch.setattr("methods.column_generation.group.FIRST", 1)
    explainer: Any = ColumnGeneration(2).fit(problem)
    found = explainer.explain_group(factuals, np.random.default_rng(0), Deadline.after(600))
    assert (found.status, found.bound) == (known.status, known.bound) == (Status.OPTIMAL, len(found.points))


@pytest.mark.parametrize("solver", ["cells", "column_generation", "milp"])
def test_an_output_that_is_the_margin_is_enough(solver: str) -> None:
    """Of rounded weights, whose sum is 1e-4 but for its own rounding."""
    assert 0.2998 + 0.0002 - 0.2999 < 1e-4
    space = Space((Feature("x", "binary", (0, 1)), Feature("y", "binary", (0, 1))))
    problem, factuals = weighed(space, [0.2998, 0.0002], -0.2999, [{"x": 0, "y": 0}])
    found = asked(ColumnGeneration(2, solver=solver, round_weights=4), problem, factuals)
    assert (found.status, len(found.points)) == (Status.OPTIMAL, 1)


@pytest.mark.parametrize("solver", ["cells", "column_generation", "milp"])
def test_what_only_a_tolerance_accepts_is_no_answer(solver: str) -> None:
    """The one point that serves both falls short of the threshold by less than a solver sees."""
    space = Space((Feature("x", "binary", (0, 1)), Feature("y", "categorical", ("p", "q", "r"))))
    problem, factuals = weighed(space, [1.0, 0.0, 0.0, 0.5 - 5e-9], -0.5, [{"x": 0, "y": "p"}, {"x": 0, "y": "q"}])
    method = ColumnGeneration(1, solver=solver)
    found = asked(method, problem, factuals)
    keeps_its_promises(found, problem, factuals, method)
    assert len(found.points) == 2


@pytest.mark.parametrize("method", [ColumnGeneration(), GroupGreedy()], ids=lambda method: type(method).__name__)
def test_nobody_needs_no_point(method: Any) -> None:
    """A group without members is served by no points, and by no fewer."""
    problem = posed("linear")
    found = asked(method, problem, negatives(problem, 1, 0).iloc[:0])
    assert (found.status, found.points, found.bound, found.assignment) == (Status.OPTIMAL, (), 0.0, {})


def test_the_program_starts_with_maximal_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where its solver finds nothing in time, its cover is the greedy one by them, not by each profile's own point."""
    problem = posed("linear")
    monkeypatch.setattr(Compiled, "solve", lambda *_, **__: Solution(None, math.inf, -math.inf))
    fewer = 0
    for seed in range(6):
        factuals = negatives(problem, 12, seed)
        method = ColumnGeneration(2, solver="milp")
        found = asked(method, problem, factuals)
        keeps_its_promises(found, problem, factuals, method)
        group = Group.of(problem, encode_model(problem, 0.5, 1e-4, None), factuals, 2)
        group = group.part(np.flatnonzero(group.coverable() == 1))
        own = len(search.greedy(group.size, first_columns(group, Deadline.after(600))))
        assert len(found.points) <= own
        fewer += int(len(found.points) < own)
    assert fewer


def test_a_past_deadline_leaves_a_valid_answer() -> None:
    problem = posed("linear")
    factuals = negatives(problem, 20, 13)
    for solver in ("cells", "column_generation", "milp"):
        method = ColumnGeneration(2, solver=solver)
        explainer = method.fit(problem)
        explanation = explainer.explain_group(factuals, np.random.default_rng(0), Deadline.after(-1.0))  # type: ignore[attr-defined]
        keeps_its_promises(explanation, problem, factuals, method)
        assert explanation.bound is not None
        assert explanation.bound <= len(asked(ColumnGeneration(2), problem, factuals).points)


def test_what_is_refused_says_what_to_do(problem: Problem) -> None:
    """Numbers, probabilities of a model without any, parameters out of range."""
    assert "dataset.discretise" in str(ColumnGeneration().refuses(problem))
    assert "threshold" in str(ColumnGeneration(threshold=0.9).refuses(posed("svm")))
    few = posed("linear")
    assert "desired" in str(ColumnGeneration().refuses(replace(few, target=Interval(0.0, 1.0))))
    for wrong in ({"t_max": 0}, {"threshold": 0.2}, {"solver": "magic"}, {"round_weights": -1}, {"margin": 0.0}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            ColumnGeneration(**wrong)  # type: ignore[arg-type]
