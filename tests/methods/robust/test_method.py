"""Robust counterfactuals by programs and on networks: against grids, each other and the plain problem."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import warnings
from dataclasses import replace
from functools import cache
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.spatial import ConvexHull, cKDTree
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier
from support.plane import SPACE, rows

from harness.certificate import Ball, Checker
from harness.core.classifier import Classifier
from harness.core.costs import population
from harness.core.errors import UnsupportedError
from harness.core.explanation import Reason, Status
from harness.core.inputs import Affine, Indicator, space_inputs
from harness.core.method import Deadline
from harness.core.objective import Objective
from harness.core.problem import Problem
from harness.core.space import Feature, Kind, Space
from harness.core.target import Label
from harness.evaluation.checker import permitted
from harness.store.codec import from_plain
from harness.store.plain import to_plain
from methods.ce_ocl import CeOcl
from methods.cells.grid import WORD as MASK
from methods.estimators.trees import splits_only
from methods.robust import Robust
from methods.robust.adversarial import Adversarial
from methods.robust.cells import RobustCells
from methods.robust.hull import RobustHull
from methods.robust.leaf import Leaf
from methods.robust.linear import LinearCounterpart
from methods.robust.method import WORD, _Explainer
from methods.robust.network import Network, _Search
from methods.robust.outcome import Outcome
from methods.robust.settings import Settings

MODELS: dict[str, Any] = {
    "lr": LogisticRegression(C=100),
    "svm": LinearSVC(C=10),
    "cart": DecisionTreeClassifier(max_depth=4, random_state=0),
    "rf": RandomForestClassifier(4, max_depth=3, random_state=0),
    "gbm": GradientBoostingClassifier(n_estimators=6, max_depth=2, random_state=0),
    "mlp": MLPClassifier((8,), max_iter=2000, random_state=0),
    "mlp_deep": MLPClassifier((5, 5), max_iter=2000, random_state=1),
}
SOLVERS = {"lr": LinearCounterpart, "svm": LinearCounterpart, "mlp": Network, "mlp_deep": Network}
RHO = 0.04
STEP = 1 / 160


@cache
def problem(name: str, wanted: str = "yes") -> Problem:
    frame, labels = rows()
    model = MODELS[name].fit(SPACE.encode(frame), labels)
    classifier = Classifier(model, space_inputs(SPACE), classes=("no", "yes"))
    return Problem(SPACE, classifier, frame, np.array(["no", "yes"], dtype=object)[labels], Label(wanted))


def refused(question: Problem, place: int = 0) -> pd.DataFrame:
    """One of the rows that the model does not put in the wanted class."""
    frame = rows()[0]
    return frame.loc[~question.valid(frame)].iloc[[place]]


@cache
def _depth(name: str, norm: str) -> tuple[np.ndarray, np.ndarray]:
    """A grid, and the distance of each of its points from the nearest invalid one of a wider grid."""
    question = problem(name)
    span = np.arange(0, 1 + STEP / 2, STEP)
    points = np.stack(np.meshgrid(span, span), axis=-1).reshape(-1, 2)
    wider = np.arange(-0.2, 1.2, STEP)
    around = np.stack(np.meshgrid(wider, wider), axis=-1).reshape(-1, 2)
    wrong = around[~question.valid(SPACE.decode(around))]
    return points, cKDTree(wrong).query(points, p=np.inf if norm == "linf" else 2)[0]


def by_grid(
    name: str, norm: str, distance: str, here: np.ndarray, hull: ConvexHull | None = None
) -> tuple[float, float]:
    """Bounds of the optimum: the best grid point that could be robust, and the best that surely is; all in a hull."""
    points, depth = _depth(name, norm)
    out = np.zeros(len(points)) if hull is None else (points @ hull.equations[:, :2].T + hull.equations[:, 2]).max(1)
    gaps = np.abs(points - here)
    cost = {"l1": gaps.sum(axis=1), "l2sq": (gaps**2).sum(axis=1), "linf": gaps.max(axis=1)}[distance]
    near = STEP * (1.0 if norm == "linf" else math.sqrt(2))
    rounding = {"l1": 2 * STEP, "l2sq": 4 * STEP * float(gaps.max()), "linf": STEP}[distance]
    could, sure = (depth >= RHO - 2 * near) & (out <= 2 * STEP), (depth >= RHO + near) & (out <= 0)
    return float(cost[could].min()) - rounding, float(cost[sure].min())


def solved(solver: Any, question: Problem, settings: Settings, factual: pd.DataFrame) -> Outcome:
    return solver(question, settings).solve(factual.to_dict("records")[0], Deadline.after(60))


@pytest.mark.parametrize("norm", ["linf", "l2"])
@pytest.mark.parametrize("name", MODELS)
def test_the_optimum_lies_where_a_grid_says(name: str, norm: str) -> None:
    """The cost is that of the best robust point of a grid, within its step; its region is certified, no more is."""
    question = problem(name)
    factual = refused(question)
    for distance in ("l1", "linf") if norm == "linf" else ("l1",):
        settings = Settings(rho=RHO, norm=norm, distance=distance)
        found = solved(SOLVERS.get(name, Adversarial), question, settings, factual)
        assert found.row is not None
        assert found.proven()
        low, high = by_grid(name, norm, distance, SPACE.encode(factual)[0])
        assert low <= found.value <= high + 1e-6
        judge, ball = Checker(SPACE, question.classifier, question.target), Ball.scaled(SPACE, norm)
        assert judge.certify(found.row, ball, RHO).radius >= RHO - 1e-9
        radius = judge.certify(found.row, ball).radius
        assert judge.certify(found.row, ball, 1.01 * radius).violated <= 1.01 * radius


@pytest.mark.parametrize("name", MODELS)
def test_the_cheapest_region_lies_where_a_grid_says(name: str) -> None:
    """A move of the first number costs thrice, one of the second half as much: as for plain distances."""
    plain = problem(name)
    weights = np.array([3.0, 0.5])
    changes = {f: {"weight": w} for f, w in zip(SPACE.names, weights, strict=True)}
    question, factual = replace(plain, space=SPACE.replace(changes)), refused(plain)
    points, depth = _depth(name, "linf")
    gaps = np.abs(points - SPACE.encode(factual)[0]) * weights
    for distance in ("l1", "linf"):
        found = solved(SOLVERS.get(name, Adversarial), question, Settings(rho=RHO, distance=distance), factual)
        assert found.row is not None
        assert found.proven()
        cost = gaps.sum(axis=1) if distance == "l1" else gaps.max(axis=1)
        low, high = float(cost[depth >= RHO - 2 * STEP].min()), float(cost[depth >= RHO + STEP].min())
        assert low - 3.5 * STEP <= found.value <= high + 1e-6


@pytest.mark.parametrize(("norm", "distance"), [("linf", "l1"), ("linf", "l2sq"), ("linf", "linf"), ("l2", "l1")])
@pytest.mark.parametrize("name", MODELS)
def test_the_least_population_lies_where_a_grid_says(name: str, norm: str, distance: str) -> None:
    """Numbers cost the share of the rows that they pass; the programs' optimum against all points of the grid."""
    plain = problem(name)
    shares = {f: {"shares": population(plain.train[f].to_numpy(float))} for f in SPACE.names}
    question, factual = replace(plain, space=SPACE.replace(shares)), refused(plain)
    algorithm = "adversarial" if splits_only(MODELS[name]) else "auto"
    found = Robust(rho=RHO, norm=norm, distance=distance, algorithm=algorithm)
    outcome = solved(lambda *_: found.start(question), question, found, factual)
    assert outcome.row is not None
    assert outcome.proven()
    points, depth = _depth(name, norm)
    frame, passed = SPACE.decode(points), []
    for f in SPACE.names:  # by hand: the rows below a value, those at it by half
        ranked = np.sort(plain.train[f].to_numpy(float))
        middles = [(np.searchsorted(ranked, v) + np.searchsorted(ranked, v, "right")) / 2 for v in np.unique(ranked)]
        at = np.interp(np.append(frame[f], factual[f]), np.unique(ranked), np.array(middles) / len(ranked))
        passed.append(np.abs(at[:-1] - at[-1]))
    gaps = np.stack(passed, axis=1)
    cost = {"l1": gaps.sum(axis=1), "l2sq": (gaps**2).sum(axis=1), "linf": gaps.max(axis=1)}[distance]
    own = question.space.frame([outcome.row])
    assert Robust(distance=distance).claim(question).evaluate(question.space, factual, own) == pytest.approx(
        outcome.value
    )
    near = STEP * (1.0 if norm == "linf" else math.sqrt(2))
    steepest = max(feature.extremes[1] for feature in question.space.features)
    rounding = steepest * STEP * {"l1": 2.0, "l2sq": 4.0, "linf": 1.0}[distance]
    assert cost[depth >= RHO - 2 * near].min() - rounding <= outcome.value <= cost[depth >= RHO + near].min() + 1e-6


@pytest.mark.parametrize("norm", ["linf", "l2"])
@pytest.mark.parametrize("name", ["mlp", "mlp_deep"])
def test_algorithms_agree_on_networks(name: str, norm: str) -> None:
    """The search of its own and Algorithm 1 find the same optimum."""
    question = problem(name)
    settings = Settings(rho=RHO, norm=norm)
    for place in (0, 1, 2):
        factual = refused(question, place)
        own, paper = (solved(solver, question, settings, factual) for solver in (Network, Adversarial))
        assert own.proven()
        assert paper.proven()
        assert own.value == pytest.approx(paper.value, abs=3e-6)


@pytest.mark.parametrize("norm", ["linf", pytest.param("l2", marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", ["rf", *(pytest.param(name, marks=pytest.mark.slow) for name in ("cart", "gbm"))])
def test_algorithms_agree_on_trees(name: str, norm: str) -> None:
    """The search over cells and Algorithm 1 find the same optimum, and no value of a master lies above it."""
    question, settings = problem(name), Settings(rho=RHO, norm=norm)
    for place in (0, 1):
        factual = refused(question, place)
        cells, paper = (solved(solver, question, settings, factual) for solver in (RobustCells, Adversarial))
        assert cells.proven()
        assert paper.proven()
        assert cells.value == pytest.approx(paper.value, abs=2e-6)
        assert max(step["distance"] for step in paper.trace) <= cells.value + 1e-6


def interval_of(low: float, high: float, classes: tuple[int, ...] = (0, 1, 0)) -> Problem:
    """A tree over one number that says yes between two thresholds."""
    space = Space((Feature("a", Kind.CONTINUOUS, scale=(0, 1), bounds=(0, 1)),))
    frame = pd.DataFrame({"a": [low - 0.1, low + 0.1, high - 0.1, high + 0.1]})
    tree = DecisionTreeClassifier().fit(frame.to_numpy(), [classes[0], classes[1], classes[1], classes[2]])
    classifier = Classifier(tree, space_inputs(space), classes=("no", "yes"))
    return Problem(space, classifier, frame, np.empty(4, dtype=object), Label("yes"))


def test_a_bound_counts_the_narrowest_regions() -> None:
    """A region that fits in with half a millionth to spare, less than a solver's margins, is found and bounded."""
    question = interval_of(0.3, 0.5)
    first, last = np.sort(question.classifier.estimator.tree_.threshold[[0, 2]])
    settings = Settings(rho=(last - first) / 2 - 2.5e-7)
    factual = question.space.frame([{"a": 0.05}])
    for solver in (RobustCells, Adversarial):
        found = solved(solver, question, settings, factual)
        assert found.proven()
        assert found.value == pytest.approx(first + settings.radius - 0.05, abs=3e-7)


def test_ties_that_are_right_end_the_search() -> None:
    """A forest whose fractions tie predicts the first class, so that the adversary has nothing to find there."""
    points = np.array([[0.0], [1.0], [2.0], [3.0]])
    forest = RandomForestClassifier(2, max_depth=1).fit(points, [0, 0, 1, 1])
    forest.estimators_ = [DecisionTreeClassifier(max_depth=1).fit(points, y) for y in ([0, 0, 1, 1], [0, 1, 1, 1])]
    space = Space((Feature("a", Kind.CONTINUOUS, scale=(0, 1), bounds=(0, 3)),))
    classifier = Classifier(forest, space_inputs(space), classes=("no", "yes"))
    question = Problem(space, classifier, space.decode(points), np.empty(4, dtype=object), Label("no"))
    for rho in (0.3, 0.6):  # wider than the tie, which is 1 wide, and narrower
        for solver in (RobustCells, Adversarial):
            found = solved(solver, question, Settings(rho=rho), space.frame([{"a": 3.0}]))
            assert found.proven()
            assert found.value == pytest.approx(1.5 + rho, abs=1e-6)


@pytest.mark.parametrize("norm", ["linf", "l2"])
@pytest.mark.parametrize("name", ["mlp", "mlp_deep"])
def test_the_adversary_of_networks_knows_the_certified_radius(name: str, norm: str) -> None:
    """It finds nothing just within the radius that the checker certifies, and a wrong point just beyond."""
    question = problem(name)
    judge, ball = Checker(SPACE, question.classifier, question.target), Ball.scaled(SPACE, norm)
    right = rows()[0].loc[question.valid(rows()[0])]
    for place in range(0, 30, 3):
        row = right.iloc[[place]]
        radius = judge.certify(row.iloc[0].to_dict(), ball).radius
        for share in (1 - 1e-5, 1 + 1e-5):
            search = _Search(Network(question, Settings(rho=share * radius, norm=norm)), row.iloc[0].to_dict(),
                             Deadline.after(60))  # fmt: skip
            point = SPACE.encode(row)[0]
            move = search.violation(search.slice((), 0), point, 1e-6)
            assert move is not None
            assert bool(len(move)) == (share > 1)
            if len(move):
                assert np.linalg.norm(move, np.inf if norm == "linf" else 2) <= share * radius * (1 + 1e-9)
                assert question.classifier.raw(SPACE.decode(point + move))[0] <= 5e-7


@pytest.mark.parametrize("name", ["lr", "svm", "cart", "rf", "gbm", "mlp"])
def test_without_a_radius_it_is_the_plain_counterfactual(name: str) -> None:
    """At rho = 0 the optimum is that of the plain problem."""
    question = problem(name)
    factual = refused(question)
    found = solved(SOLVERS.get(name, Adversarial), question, Settings(rho=0.0), factual)
    plain = CeOcl().fit(question).explain(factual, 1, np.random.default_rng(0), Deadline.after(60)).answers[0]
    assert found.proven()
    assert found.value == pytest.approx(plain.objective, abs=1e-5)


@pytest.mark.parametrize("name", ["cart", "rf", "gbm"])
def test_one_leaf_is_an_upper_bound(name: str) -> None:
    """(36)-(39) never beat Algorithm 1, and are certified where they answer."""
    question = problem(name)
    factual = refused(question)
    leaf = solved(Leaf, question, Settings(rho=RHO), factual)
    best = solved(Adversarial, question, Settings(rho=RHO), factual)
    assert leaf.value >= best.value - 2e-6
    assert leaf.row is not None
    assert leaf.radius >= RHO


def test_the_dual_norm() -> None:
    """(75): the score at the optimum is what the worst perturbation takes."""
    question = problem("lr")
    weights = question.classifier.estimator.coef_[0]
    for norm, dual in (("linf", np.abs(weights).sum()), ("l2", np.linalg.norm(weights))):
        found = solved(LinearCounterpart, question, Settings(rho=RHO, norm=norm), refused(question))
        assert found.row is not None
        score = question.classifier.raw(SPACE.frame([found.row]))[0]
        assert score == pytest.approx(RHO * dual, abs=1e-5)


def test_squares() -> None:
    """The squared distance is minimised by programs, also on networks."""
    for name in ("lr", "mlp"):
        question = problem(name)
        factual = refused(question)
        found = solved(SOLVERS[name], question, Settings(rho=RHO, distance="l2sq"), factual)
        low, high = by_grid(name, "linf", "l2sq", SPACE.encode(factual)[0])
        assert found.proven()
        assert low <= found.value <= high + 1e-6


def test_a_trace_of_what_was_done() -> None:
    """Distances of Algorithm 1 never fall, and its last radius is rho."""
    question = problem("rf")
    found = solved(Adversarial, question, Settings(rho=RHO), refused(question))
    distances = [step["distance"] for step in found.trace]
    assert distances == sorted(distances)
    assert found.trace[-1]["radius"] == RHO
    assert {"iteration", "master_seconds", "adversary_seconds"} <= found.trace[0].keys()


def halted(monkeypatch: pytest.MonkeyPatch, name: str, incumbents: bool) -> tuple[Problem, Any, pd.DataFrame]:
    """Algorithm 1 that stops after its first point, with or without ways to an incumbent."""
    question = problem(name)
    explainer = Robust(rho=RHO, algorithm="adversarial").fit(question)
    monkeypatch.setattr(explainer.solver.adversary, "worst", lambda row, deadline: None)
    monkeypatch.setattr(explainer.solver.first_guess, "rows", rows()[0].iloc[:0])
    if not incumbents:
        monkeypatch.setattr(explainer.solver, "_repaired", lambda *_: None)
    factual = refused(question)
    return question, explainer.explain(factual, 1, np.random.default_rng(0), Deadline.after(60)), factual


@pytest.mark.parametrize("name", ["rf", "mlp"])
def test_an_interrupted_run_gives_its_best_certified_point(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """A point beyond the first one of the master, certified, with a bound below the optimum."""
    question, explanation, factual = halted(monkeypatch, name, incumbents=True)
    best = solved(SOLVERS.get(name, RobustCells), question, Settings(rho=RHO), factual).value
    (answer,) = explanation.answers
    assert answer.status is Status.FOUND
    assert answer.bound <= best + 1e-6
    assert best - 1e-6 <= answer.objective
    judge = Checker(SPACE, question.classifier, question.target)
    assert judge.certify(answer.row, Ball.scaled(SPACE, "linf"), RHO).radius >= RHO - 1e-9


def test_an_interrupted_run_without_a_region_says_how_far_it_came(monkeypatch: pytest.MonkeyPatch) -> None:
    """No row is passed off as robust; the bound stands, and the trace has the point with what it is certified for."""
    question, explanation, factual = halted(monkeypatch, "rf", incumbents=False)
    best = solved(RobustCells, question, Settings(rho=RHO), factual).value
    (answer,) = explanation.answers
    assert (answer.status, answer.row, answer.reason) == (Status.GAVE_UP, None, Reason.FINISHED)
    assert 0 < answer.bound <= best + 1e-6
    (step,) = explanation.trace
    assert step["radius"] < RHO
    judge = Checker(SPACE, question.classifier, question.target)
    assert judge.certify(step["row"], Ball.scaled(SPACE, "linf"), RHO).radius == pytest.approx(step["radius"])


MIXED = Space((*SPACE.features, Feature("c", Kind.CATEGORICAL, ("u", "v", "w"))))
LINE = np.linspace(-1, 1, 241)  # moves of one number


@cache
def mixed(name: str) -> Problem:
    """The plane with a category, where ``a`` may only rise."""
    frame, labels = rows()
    frame = frame.assign(c=[("u", "v", "w")[k % 3] for k in range(len(frame))])
    estimator = MODELS[name].__class__(**MODELS[name].get_params())
    estimator.fit(MIXED.encode(frame), labels ^ (frame["c"] == "w"))
    classifier = Classifier(estimator, space_inputs(MIXED), classes=("no", "yes"))
    space = MIXED.replace({"a": {"actionability": "increase"}})
    return Problem(space, classifier, frame, np.array(["no", "yes"], dtype=object)[labels], Label("yes"))


@pytest.mark.parametrize("distance", ["l1", "linf"])
@pytest.mark.parametrize("name", ["mlp", "mlp_deep"])
def test_networks_with_categories(name: str, distance: str) -> None:
    """The search opens the categories that pay, and agrees with Algorithm 1 on the optimum."""
    question = mixed(name)
    fixed = replace(question, space=question.space.replace({"b": {"actionability": "immutable"}}))
    switched, frame = 0, question.train.loc[~question.valid(question.train)]
    for asked in (question, fixed):
        settings = Settings(rho=RHO, distance=distance)
        assert Network(asked, settings).own
        for place in range(4):
            factual = frame.iloc[[place]]
            own, paper = (solved(solver, asked, settings, factual) for solver in (Network, Adversarial))
            assert own.value == pytest.approx(paper.value, abs=3e-6)
            assert own.proven() == paper.proven()
            if own.row is not None:
                switched += own.row["c"] != factual["c"].iloc[0]
    assert switched


@pytest.mark.parametrize("norm", ["linf", "l2"])
@pytest.mark.parametrize("name", ["lr", "svm", "cart", "rf", "gbm", "mlp"])
def test_one_permitted_change(name: str, norm: str) -> None:
    """With one change allowed, no value of any feature on a fine grid is robust and cheaper than the optimum."""
    question, method = mixed(name), Robust(rho=0.02, norm=norm, max_changes=1)
    judge = Checker(question.space, question.classifier, question.target)
    ball, explainer, met = Ball.scaled(question.space, norm), method.fit(question), 0
    frame = question.train.loc[~question.valid(question.train)]
    for place in (0, 1, 2):
        factual = frame.iloc[[place]]
        origin = factual.iloc[0].to_dict()
        trials = [(1.0, {**origin, "c": level}) for level in "uvw" if level != origin["c"]]
        for feature in SPACE.features:
            trials += [(abs(far), {**origin, feature.name: origin[feature.name] + far * feature.range}) for far in LINE]
        best = math.inf
        for cost, row in sorted(trials, key=lambda trial: trial[0]):
            allowed = all(permitted(f, origin[f.name], row[f.name]) for f in question.space.features)
            if allowed and judge.certify(row, ball, 0.02).radius >= 0.02 * (1 - 1e-9):
                best = cost
                break
        (answer,) = explainer.explain(factual, 1, np.random.default_rng(0), Deadline.after(60)).answers
        assert answer.status in {Status.OPTIMAL, Status.INFEASIBLE}
        if answer.row is None:
            assert math.isinf(best)
            continue
        met += 1
        assert answer.objective <= best + 1e-6
        assert all(permitted(f, origin[f.name], answer.row[f.name]) for f in question.space.features)
        assert sum(answer.row[name] != origin[name] for name in origin) == 1
        assert judge.certify(answer.row, ball, 0.02).radius >= 0.02 - 1e-9
    assert met


@pytest.mark.parametrize("kind", [{}, {"hull_norm": 2, "epsilon": 0.01}], ids=["shares", "cuts"])
@pytest.mark.parametrize("name", ["lr", "svm", "cart", "rf", "mlp"])
def test_within_the_data_manifold(name: str, kind: dict[str, Any]) -> None:
    """The best robust point of the hull of some rows, as a grid says; Algorithm 1 takes hulls that are enlarged."""
    question = problem(name)
    frame, labels = rows()
    span = np.flatnonzero(labels)[::9]
    question = replace(question, reference=frame.iloc[span], reference_labels=question.labels[span])
    method = Robust(rho=RHO, hull="hard", **kind)
    solver = method.start(question)
    searched = name in {"cart", "rf"} and not kind
    assert isinstance(solver, LinearCounterpart if name in {"lr", "svm"} else RobustHull if searched else Adversarial)
    hull = ConvexHull(SPACE.encode(question.reference))
    for place in (0, 3):
        factual = refused(question, place)
        found = solver.solve(factual.to_dict("records")[0], Deadline.after(60))
        assert found.row is not None
        assert found.proven()
        low, high = by_grid(name, "linf", "l1", SPACE.encode(factual)[0], hull)
        assert low - kind.get("epsilon", 0.0) * 2 <= found.value <= high + 1e-6
        point = SPACE.encode(SPACE.frame([found.row]))[0]
        off = (hull.equations[:, :2] @ point + hull.equations[:, 2]).max()
        assert off <= kind.get("epsilon", 0.0) + 1e-6
        assert method.objective(question).exceeded(SPACE, factual, SPACE.frame([found.row])) == [[]]


def test_nothing_is_wide_enough() -> None:
    """A radius beyond everything valid is proven impossible."""
    settings = Settings(rho=0.9)
    assert math.isinf(solved(Network, problem("mlp"), settings, refused(problem("mlp"))).bound)
    assert math.isinf(solved(LinearCounterpart, problem("lr"), settings, refused(problem("lr"))).bound)


@pytest.mark.parametrize(
    ("name", "settings", "why"),
    [
        ("lr", {"clip": True}, "clip=true needs trees"),
        ("cart", {"clip": True, "algorithm": "leaf"}, "clip=true is for the search over cells; set algorithm=cells"),
        ("mlp", {"algorithm": "leaf"}, "leaf needs trees"),
    ],
)
def test_what_programs_refuse(name: str, settings: dict[str, Any], why: str) -> None:
    """Before they are made."""
    with pytest.raises(UnsupportedError, match=why):
        Robust(rho=RHO, **settings).start(problem(name))


SETTINGS: list[dict[str, Any]] = [
    {}, {"clip": True}, {"distance": "linf"}, {"hull": "hard"}, {"unperturbed": ("z",)}, {"norm": "l2"},
]  # fmt: skip
ALGORITHMS = ("auto", "cells", "adversarial", "leaf", "network")


@pytest.mark.parametrize(
    ("algorithm", "settings"),
    [
        pytest.param(*pair, marks=[pytest.mark.slow] * (pair[0] in ("auto", "cells") and "norm" in pair[1]))  # 17 s
        for pair in product(ALGORITHMS, SETTINGS)
    ],
    ids=str,
)
def test_a_refusal_foresees_what_would_fail(algorithm: str, settings: dict[str, Any]) -> None:
    """For each family of models, a method refuses exactly where it could not be built."""
    for name in ("lr", "rf", "mlp"):
        method, question = Robust(algorithm=algorithm, **settings), problem(name)
        message = method.refuses(question)
        if message is None:
            method.start(question)
        else:
            assert message[-1] == "."
            with pytest.raises(UnsupportedError) as raised:
                method.fit(question)
            assert str(raised.value) == message


def test_categories_that_cells_cannot_hold_go_to_programs() -> None:
    """More categories than a mask has bits, or levels split out of their order: ``auto`` takes Algorithm 1."""
    assert WORD == MASK
    level = Feature("l", Kind.ORDINAL, (1, 2, 3))
    space = Space((SPACE.features[0], level))
    frame = pd.DataFrame({"a": [1.0, 2.0, 3.0, 4.0] * 3, "l": [1, 2, 3, 2] * 3})
    tree = DecisionTreeClassifier().fit((frame["l"] == 2).to_numpy()[:, None], frame["l"] == 2)
    classifier = Classifier(tree, (Indicator("l", (2,)),), classes=("no", "yes"))
    question = Problem(space, classifier, frame, np.empty(12, dtype=object), Label("no"))
    refusal = str(Robust(algorithm="cells").refuses(question))
    assert "l has an input that is not monotone" in refusal
    assert refusal.endswith("set features.l.kind=categorical, or algorithm=auto.")
    found = Robust().start(question)
    assert isinstance(found, Adversarial)
    assert found.solve({"a": 2.0, "l": 2}, Deadline.after(60)).value == 0.5


@pytest.mark.parametrize(("settings", "mended"), [
    ({"distance": "linf"}, {"distance": "l1"}), ({"hull": "hard"}, {"hull": "none"}), ({}, {}),
    ({"norm": "l2"}, {"norm": "linf"}),
], ids=str)  # fmt: skip
def test_advice_on_clipping_is_not_circular(settings: dict[str, Any], mended: dict[str, Any]) -> None:
    """Whatever the algorithm, what cannot be clipped says what to set, and setting that helps."""
    level = Feature("l", Kind.ORDINAL, (1, 2, 3))
    frame = pd.DataFrame({"a": [1.0, 2.0, 3.0, 4.0] * 3, "l": [1, 2, 3, 2] * 3})
    tree = DecisionTreeClassifier().fit((frame["l"] == 2).to_numpy()[:, None], frame["l"] == 2)

    def question(level: Feature, source: Any) -> Problem:
        classifier = Classifier(tree, (source,), classes=("no", "yes"))
        return Problem(Space((SPACE.features[0], level)), classifier, frame, np.empty(12, dtype=object), Label("no"))

    source = Affine("l", 1.0, 2.0) if settings else Indicator("l", (2,))
    refusals = {
        str(Robust(algorithm=algorithm, clip=True, **settings).refuses(question(level, source)))
        for algorithm in ("auto", "cells")
    }
    assert len(refusals) == 1
    refusal = refusals.pop()
    assert "algorithm" not in refusal
    assert all(f"{key}={value}" in refusal or f"use {value}" in refusal for key, value in mended.items())
    if not settings:
        assert "set features.l.kind=categorical, or leave clip unset." in refusal
        level = replace(level, kind=Kind.CATEGORICAL)
    assert Robust(clip=True, **mended).refuses(question(level, source)) is None


def printed(estimator: str, end: str) -> str:
    """What a process of its own prints that asks a question of a fitted model, and then goes on as ``end`` says."""
    program = (
        "import sys\n"
        "import numpy as np\n"
        "from support.plane import SPACE, rows\n"
        "from sklearn.linear_model import LogisticRegression\n"
        "from sklearn.tree import DecisionTreeClassifier\n"
        "from harness.core.classifier import Classifier\n"
        "from harness.core.inputs import space_inputs\n"
        "from harness.core.method import Deadline\n"
        "from harness.core.problem import Problem\n"
        "from harness.core.target import Label\n"
        "from methods.robust.method import Robust\n"
        "frame, labels = rows()\n"
        f"model = {estimator}.fit(SPACE.encode(frame), labels)\n"
        "classifier = Classifier(model, space_inputs(SPACE), classes=('no', 'yes'))\n"
        f"question = Problem(SPACE, classifier, frame, labels, Label('yes'))\n{end}"
    )
    tests = Path(__file__).parents[2]
    environment = {**os.environ, "PYTHONPATH": f"{tests}{os.pathsep}{tests.parent}"}
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True, timeout=120
    )
    return done.stdout.strip()


def test_a_refusal_loads_nothing_large() -> None:
    """Neither the solver nor compiled code is needed to say whether a question fits."""
    end = "assert Robust().refuses(question) is None\nprint(*({'numba', 'pyomo', 'highspy'} & set(sys.modules)))"
    assert printed("DecisionTreeClassifier(max_depth=2)", end) == ""


def test_a_first_question_has_its_libraries() -> None:
    """Pyomo takes a quarter of a second to import, ten times what a question of a linear model takes: fitting does."""
    end = (
        "explainer, known = Robust(rho=0.01).fit(question), set(sys.modules)\n"
        "factual = frame.loc[~question.valid(frame)].iloc[[0]]\n"
        "answer = explainer.explain(factual, 1, np.random.default_rng(0), Deadline.after(60)).answers[0]\n"
        "print(answer.status.value, *sorted({name.partition('.')[0] for name in set(sys.modules) - known}))"
    )
    status, *imported = printed("LogisticRegression()", end).split()
    assert status == "OPTIMAL"
    assert "pyomo" not in imported


def test_what_is_stored_with_answers_is_plain() -> None:
    """The objective and its limits, as JSON and without arrays; what it evaluates to is the same."""
    question = problem("cart")
    objective, arrays = Robust(alpha=0.1, max_changes=1).objective(question), dict[str, np.ndarray]()
    again = from_plain(json.loads(json.dumps(to_plain(objective.stored(), arrays))))
    assert type(again) is Objective
    assert not arrays
    factual, others = question.train.iloc[[0]], question.train.iloc[1:9]
    np.testing.assert_array_equal(again.evaluate(SPACE, factual, others), objective.evaluate(SPACE, factual, others))
    assert again.exceeded(SPACE, factual, others) == [["l0"]] * 8


def test_a_gap_is_none_by_the_distance() -> None:
    """A dear change hides no gap: 2e4 for two of them, .3 for the distance, of which .01 is not proven."""
    row, origin = {"a": 1.0, "b": "x", "c": 2}, {"a": 0.0, "b": "y", "c": 2}
    outcome = Outcome(row, 20000.3, 20000.29)
    assert outcome.proven()
    assert outcome.proven(1e4, row)
    assert not outcome.proven(1e4, origin)
    assert Outcome(row, 20000.3, 20000.3 - 5e-7).proven(1e4, origin)
    method: Any = SimpleNamespace(alpha=1e4)
    explainer: Any = SimpleNamespace(method=method, perturbation=SimpleNamespace(region=lambda row: None))
    assert _Explainer._answer(explainer, outcome, origin, Reason.FINISHED).status is Status.FOUND
    method.alpha = 0.0
    assert _Explainer._answer(explainer, outcome, origin, Reason.FINISHED).status is Status.OPTIMAL


@pytest.mark.parametrize("name", ["lr", "mlp", "rf"])
def test_codes_of_a_number_without_an_upper_bound_are_taken_by_the_cells_alone(name: str) -> None:
    """Bounds around a person would hold the code, and be refused in the middle of a question."""
    columns = pd.DataFrame({"a": [-9.0, *np.linspace(0, 1, 39)], "b": np.linspace(1, 0, 40)})
    space = Space(
        (
            Feature("a", "continuous", scale=(0, 1), special=(-9.0,)),
            Feature("b", "continuous", scale=(0, 1), bounds=(0, 1)),
        )
    )
    model = {
        "lr": LogisticRegression(),
        "mlp": MLPClassifier((3,), max_iter=20, random_state=0),
        "rf": DecisionTreeClassifier(max_depth=2),
    }
    labels = np.where(columns["a"] > 0.5, "yes", "no").astype(object)
    with warnings.catch_warnings(action="ignore"):
        fitted = model[name].fit(space.encode(columns), labels == "yes")
    question = Problem(space, Classifier(fitted, space_inputs(space), ("no", "yes")), columns, labels, Label("yes"))
    method = Robust(rho=0.01)
    if name != "rf":
        assert "a has the special code -9 and no upper bound" in (method.refuses(question) or "")
        return
    assert method.refuses(question) is None
    (answer,) = (
        method.fit(question).explain(columns.iloc[[0]], 1, np.random.default_rng(0), Deadline.after(20.0)).answers
    )
    assert answer.status is Status.OPTIMAL


def test_a_code_at_the_lower_bound_of_a_number_without_an_upper_one_is_among_what_it_may_be() -> None:
    """As one above it: a line through the numbers from 0 on would go through a code of 0."""
    columns = pd.DataFrame({"a": np.linspace(0, 1, 40), "b": np.linspace(1, 0, 40)})
    labels = np.where(columns["a"] > 0.5, "yes", "no").astype(object)
    for code, refused in ((0.0, True), (2.0, True), (-1.0, False)):
        space = Space(
            (
                Feature("a", "continuous", scale=(0, 1), bounds=(0, math.inf), special=(code,)),
                Feature("b", "continuous", scale=(0, 1), bounds=(0, 1)),
            )
        )
        fitted = LogisticRegression().fit(space.encode(columns), labels == "yes")
        question = Problem(space, Classifier(fitted, space_inputs(space), ("no", "yes")), columns, labels, Label("yes"))
        told = f"a has the special code {code:g} and no upper bound"
        assert (told in (Robust(rho=0.01).refuses(question) or "")) is refused
