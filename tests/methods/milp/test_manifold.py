"""The data manifold against linear programs and enumeration: what is in a hull, and what is best there."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier
from support import enumeration
from support.enumeration import (
    FREE,
    WITHIN,
    ask,
    assert_holds,
    assert_optimal,
    factuals,
    hulls,
    optimum,
    outside,
    problem_of,
)

from harness.core import hull
from harness.core.classifier import Classifier
from harness.core.clusters import clustered
from harness.core.explanation import Status
from harness.core.inputs import space_inputs
from harness.core.method import Deadline
from harness.core.problem import Problem
from harness.core.space import Feature, Space
from harness.core.target import Label
from harness.models.equations import equations
from methods.ce_ocl import CeOcl
from methods.ce_ocl.program_engine import ProgramEngine
from methods.milp import manifold
from methods.milp.cost import Cost
from methods.milp.hull import Hull, Shares
from methods.milp.manifold import Manifold
from methods.milp.supports import supports
from metrics._example import problem as loans_problem

NORMS = (1, 2, np.inf)
CLASSIFIERS = ("lr", "cart", "rf", "gbm", "mlp")
RNG = np.random.default_rng(0)
CLOUDS = {
    "cloud": RNG.normal(size=(60, 4)),
    "plane": RNG.uniform(size=(40, 2)) @ RNG.normal(size=(2, 4)),  # flat: of two dimensions among four
    "line": np.outer(np.linspace(0, 1, 7), [1.0, -2.0, 0.5, 0.0]) + 0.3,
    "point": np.full((1, 4), 0.4),
    "corners": np.array(list(itertools.product((0.0, 1.0), repeat=4))),
    "simplex": np.eye(4),
    "many": RNG.uniform(size=(3000, 4)) ** 2,
}


def looks(points: np.ndarray) -> np.ndarray:
    """Points inside a hull, on its faces, at its corners, near it and far away."""
    rng = np.random.default_rng(1)
    inside = rng.dirichlet(np.ones(len(points)), 4) @ points
    pair = points[rng.integers(0, len(points), (4, 2))].mean(axis=1)
    shifted = points[rng.integers(0, len(points), 6)] + rng.normal(size=(6, points.shape[1]))
    tiny = points[:2] + 1e-3 * rng.normal(size=(len(points[:2]), points.shape[1]))
    return np.vstack([inside, pair, points[:2], shifted, tiny, np.full((1, points.shape[1]), 30.0)])


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("cloud", CLOUDS)
def test_the_farthest_cut_is_as_far_as_the_hull(cloud: str, norm: float) -> None:
    """One hull asked of many points says the distance of each; no cut leaves out a point of the hull."""
    points = CLOUDS[cloud]
    dual = {1: np.inf, 2: 2, np.inf: 1}[norm]
    asked = Hull(points, norm)
    for x in looks(points):
        cut, beyond = asked.separate(x, 60.0)
        expected = hull.distance(points, x, norm)
        assert max(beyond, 0.0) == pytest.approx(expected, rel=1e-6, abs=2e-7)
        assert asked.distance(x) == pytest.approx(expected, rel=1e-6, abs=2e-7)
        assert cut is not None
        assert (points @ cut.normal).max() <= cut.end + 1e-12
        assert np.linalg.norm(cut.normal, dual) <= 1 + 1e-6
        assert cut.normal @ x - cut.end == pytest.approx(beyond, abs=1e-12)


@pytest.mark.parametrize("norm", NORMS)
def test_known_cuts_are_those_that_a_point_lies_beyond(norm: float) -> None:
    """The worst first; a point of the hull is beyond none."""
    points = CLOUDS["cloud"]
    asked = Hull(points, norm)
    for x in looks(points):
        cut, _ = asked.separate(x, 60.0)
        assert cut is not None
        asked.cuts.append(cut)
    for x in looks(points):
        known = asked.known(x, 0.01)
        beyond = [cut.normal @ x - cut.end for cut in known]
        assert beyond == sorted(beyond, reverse=True)
        assert all(part > 0.01 for part in beyond)
        assert max(beyond, default=0.0) <= hull.distance(points, x, norm) + 1e-6
    for row in points:
        assert asked.known(row, 1e-9) == []


def test_without_time_nothing_is_said_of_a_point() -> None:
    """No cut, and infinitely far: never a wrong one."""
    points = CLOUDS["many"]
    for norm in (1, np.inf):
        cut, beyond = Hull(points, norm).separate(np.full(4, 2.0), 0.0)
        assert cut is None or beyond == pytest.approx(hull.distance(points, np.full(4, 2.0), norm), abs=1e-6)


def gaps_of(space: Space, factual: pd.DataFrame, frame: pd.DataFrame) -> np.ndarray:
    """How far each feature moves, a category by 1."""
    moved = abs(space.encode(frame) - space.encode(factual))
    return np.column_stack([moved[:, columns].max(axis=1) for columns in space.slices])


@pytest.mark.parametrize("clusters", [1, 3])
@pytest.mark.parametrize("kept", enumeration.KEPT)
def test_the_pieces_hold_every_point_of_the_hull_within_reach(kept: str, clusters: int) -> None:
    """Each such point is a row or lies in a piece, and costs and changes no less than the piece says.

    The pieces come in the order of their bounds, and their points lie in the hull.
    """
    problem = problem_of("rf", kept, span=60)
    method = CeOcl("l1", 0.3, hull="hard", clusters=clusters)
    engine = ProgramEngine(method, problem)
    (found,), space = engine.manifolds, problem.space
    parts, checked = hulls(method, problem), 0
    for factual in factuals(problem, 4):
        pieces = list(found.pieces(factual, engine.program.aim.least))
        assert [piece.least for piece in pieces] == sorted(piece.least for piece in pieces)
        frame = enumeration.points()
        frame = frame[[not faults for faults in space.violations(factual, frame)]]
        encoded = space.encode(frame)
        costs, gaps = enumeration.costs(method, problem, factual, frame), gaps_of(space, factual, frame)
        for x, cost, gap in zip(encoded, costs, gaps, strict=True):
            if outside(parts, x, 2) > 2e-7:
                continue
            homes = [piece for piece in pieces if lies_in(piece, space, x)]
            assert homes or (found.points == x).all(axis=1).any()
            assert all(piece.least <= cost + 1e-9 and piece.changes <= (gap > 0).sum() for piece in homes)
            checked += 1
    assert checked


def lies_in(piece: Any, space: Space, x: np.ndarray) -> bool:
    """Whether a scaled point is in a piece: its box, and the hull of its moving columns."""
    for within, feature, columns in zip(piece.box, space.features, space.slices, strict=True):
        block = x[columns]
        if isinstance(within, tuple):
            if not within[0] - 1e-9 <= block[0] <= within[1] + 1e-9:
                return False
        elif (block.argmax() if feature.kind == "categorical" else round(block[0])) != within:
            return False
    points = piece.points if isinstance(piece, Shares) else piece.hull.points
    return len(piece.at) == 0 or hull.distance(points, x[piece.at], 2) <= 2e-7


def test_what_cannot_be_reached_is_named() -> None:
    """The features whose actionability, each by itself, leaves no row of the hull; nothing where some row is left."""
    base = problem_of("lr", span=40)
    rows = base.reference.assign(member=True, grade="high").astype(base.reference.dtypes)
    problem = replace(base, reference=rows)
    factual = problem.train[~problem.train["member"] & (problem.train["grade"] == "low")].iloc[[0]]

    def found(changes: dict[str, dict[str, Any]]) -> str | None:
        asked = replace(problem, space=FREE.replace(changes))
        return ProgramEngine(CeOcl(hull="hard"), asked).manifolds[0].unreachable(factual)

    assert found({}) is None
    assert found({"grade": {"actionability": "increase"}, "debt": {"actionability": "decrease"}}) is None
    member = found({"member": {"actionability": "immutable"}, "age": {"actionability": "increase"}})
    assert member is not None
    assert "member" in member
    assert "age" not in member
    both = found({"member": {"actionability": "immutable"}, "grade": {"actionability": "decrease"}})
    assert both is not None
    assert "grade" in both


HULLS: dict[str, dict[str, Any]] = {
    "hard": {"hull": "hard"},
    "one": {"hull": "hard", "epsilon": 0.137, "hull_norm": 1},
    "two": {"hull": "hard", "epsilon": 0.137, "hull_norm": 2},
    "inf": {"hull": "hard", "epsilon": 0.071, "hull_norm": "inf"},
    "list": {"hull": "hard", "epsilon": [0.0, 0.113, 0.411]},
    "penalised": {"hull": "penalised", "penalty": 0.7},
    "fallback": {"hull": "fallback", "penalty": 0.7},
    "clusters": {"hull": "hard", "clusters": 3},
    "clusters-two": {"hull": "hard", "clusters": 2, "epsilon": 0.137, "hull_norm": 2},
    "clusters-penalised": {"hull": "penalised", "clusters": 2, "penalty": 0.3},
    "predicted": {"hull": "hard", "hull_points": "predicted"},
    "both": {"hull": "hard", "hull_points": "both"},
}


def cases() -> list[Any]:
    """Every hull with every model and actionability; one actionability a pair here, all of them if slow."""
    found = []
    for (m, model), (h, name), (k, kept) in itertools.product(
        enumerate(CLASSIFIERS), enumerate(HULLS), enumerate(enumeration.KEPT)
    ):
        marks = () if k == (m + h) % len(enumeration.KEPT) else pytest.mark.slow
        found.append(pytest.param(model, name, kept, id=f"{model}-{name}-{kept}", marks=marks))
    return found


@pytest.mark.parametrize(("model", "name", "kept"), cases())
def test_the_best_point_of_the_hull_is_found(model: str, name: str, kept: str) -> None:
    """The optimum over all points of the space, or a proof that none of them is left."""
    problem = problem_of(model, kept)
    for factual in factuals(problem, 2):
        assert_optimal(CeOcl("l1", 0.1, **HULLS[name]), problem, factual)


@pytest.mark.parametrize("kept", ["free", "increase", "coded"])
@pytest.mark.parametrize("model", CLASSIFIERS)
def test_cuts_and_shares_and_whole_hulls_agree(model: str, kept: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """By category or as a whole, by the shares of points or by cuts: one optimum."""
    problem = problem_of(model, kept)
    ways: list[Callable[[], None]] = [
        lambda: monkeypatch.setattr(manifold, "SHARED", 1),
        lambda: monkeypatch.setattr(Manifold, "__init__", _whole(Manifold.__init__)),
        lambda: monkeypatch.setattr(manifold, "SHARED", 1000),
    ]
    for way in ways:
        way()
        for factual in factuals(problem, 2):
            assert_optimal(CeOcl("l2sq", 0.1, hull="hard"), problem, factual)


def _whole(start: Callable[..., None]) -> Callable[..., None]:
    """A manifold that is not taken apart by category."""

    def begin(self: Manifold, *arguments: Any) -> None:
        start(self, *arguments)
        self.groups = None

    return begin


@pytest.mark.parametrize("hull_norm", [1, 2, "inf"])
@pytest.mark.parametrize("model", ["lr", "mlp"])
def test_cuts_enlarge_a_hull_as_shares_do(model: str, hull_norm: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the distance from it in each norm; penalties too."""
    monkeypatch.setattr(manifold, "SHARED", 1)
    problem = problem_of(model)
    for factual in factuals(problem, 2):
        assert_optimal(CeOcl("l1", hull="hard", epsilon=0.137, hull_norm=hull_norm), problem, factual)
        assert_optimal(CeOcl("l1", hull="penalised", penalty=0.7, clusters=2), problem, factual)


def cloud_problem(model: Any, count: int = 200) -> Problem:
    """Two continuous features, a whole number and a category; labels in a band."""
    rng = np.random.default_rng(4)
    space = Space(
        (
            Feature("a", "continuous", scale=(0.0, 4.0), bounds=(0.0, 4.0)),
            Feature("b", "continuous", scale=(-1.0, 1.0), bounds=(-1.0, 1.0)),
            Feature("n", "integer", scale=(0, 9), bounds=(0, 9)),
            Feature("c", "categorical", ("x", "y")),
        )
    )
    frame = pd.DataFrame(
        {
            "a": rng.uniform(0, 4, count), "b": rng.uniform(-1, 1, count), "n": rng.integers(0, 10, count),
            "c": rng.choice(["x", "y"], count).astype(object),
        }
    )  # fmt: skip
    merit = frame["a"] / 2 + frame["b"] + frame["n"] / 9 + 0.3 * (frame["c"] == "y")
    labels = np.where((merit > 1.6) & (abs(frame["a"] - 2 - frame["b"]) < 1), "yes", "no").astype(object)
    fitted = Classifier(model.fit(space.encode(frame), merit > 1.5), space_inputs(space), ("no", "yes"))
    return Problem(space, fitted, frame, labels, Label("yes"))


@pytest.mark.parametrize("distance", ["l1", "l2sq", "linf"])
@pytest.mark.parametrize("model", [LogisticRegression(), DecisionTreeClassifier(max_depth=4, random_state=0)], ids=str)
def test_no_point_of_a_fine_grid_in_the_hull_is_better(model: Any, distance: str) -> None:
    """Where numbers are continuous the optimum is that of the grid, but for the grid's step."""
    problem = cloud_problem(model)
    method, space = CeOcl(distance, hull="hard"), problem.space
    (part,) = hulls(method, problem)
    explainer = method.fit(problem)
    for factual in (problem.train[~problem.valid(problem.train)].iloc[[row]] for row in range(2)):
        (answer,) = explainer.explain(factual, 1, np.random.default_rng(0), Deadline.after(60)).answers
        assert answer.status is Status.OPTIMAL
        assert_holds(method, problem, factual, answer)
        axes = (np.linspace(0, 4, 41), np.linspace(-1, 1, 41), range(10), ("x", "y"))
        grid = space.frame([dict(zip(space.names, row, strict=True)) for row in itertools.product(*axes)])
        grid = grid[problem.valid(grid)]
        values = method.objective(problem).evaluate(space, factual, grid)
        encoded, best = space.encode(grid), np.inf
        for place in np.argsort(values):
            if outside([part], encoded[place], 2) <= 1e-7:
                best = float(values[place])
                break
        assert answer.objective is not None
        assert -1e-6 <= best - answer.objective <= 0.1


def test_the_answer_lies_in_the_hull_by_a_linear_program() -> None:
    """Of many columns, where tolerances add up."""
    rng = np.random.default_rng(0)
    names = [f"f{i}" for i in range(25)]
    space = Space(tuple(Feature(name, "continuous", scale=(0.0, 1.0), bounds=(0.0, 1.0)) for name in names))
    frame = pd.DataFrame(rng.uniform(size=(600, 25)) @ np.diag(rng.uniform(0.2, 1, 25)), columns=names)
    score = frame.sum(axis=1).to_numpy()
    model = LogisticRegression(C=100).fit(frame.to_numpy(), score > np.median(score))
    labels = np.where(score > np.median(score), "yes", "no").astype(object)
    problem = Problem(space, Classifier(model, space_inputs(space), ("no", "yes")), frame, labels, Label("yes"))
    for method in (CeOcl("l1", hull="hard"), CeOcl("l2sq", hull="hard", epsilon=0.1)):
        explainer = method.fit(problem)
        for factual in (frame[~problem.valid(frame)].iloc[[row]] for row in range(2)):
            (answer,) = explainer.explain(factual, 1, np.random.default_rng(0), Deadline.after(60)).answers
            assert_holds(method, problem, factual, answer)


def test_a_code_outside_the_bounds_is_left_for_a_permitted_value() -> None:
    """Also where the hull reaches from the code to the bounds: between them there is nothing to move to."""
    points = enumeration.points()
    model = LogisticRegression().fit(FREE.encode(points), points["debt"] >= 0)
    space = FREE.replace(enumeration.KEPT["coded"] | {"age": {"actionability": "immutable"}})
    rows = points[points["debt"].isin((-2, 3, 4))].sample(80, random_state=0)
    fitted = Classifier(model, space_inputs(FREE), ("no", "yes"))
    problem = Problem(space, fitted, rows, np.full(80, "yes", dtype=object), Label("yes"))
    coded = points[(points["debt"] == -2) & ~problem.valid(points)]
    for factual in (coded.iloc[[row]] for row in range(0, len(coded), 9)):
        for changes in (None, 1):
            assert_optimal(CeOcl("l1", hull="hard", max_changes=changes), problem, factual)


def test_a_level_that_cannot_be_entered_is_not() -> None:
    """An ordinal feature that climbs an order with a gap: neither a row of the hull nor a guess enters the gap."""
    for model, kind in itertools.product(("rf", "mlp"), ("none", "hard", "penalised")):
        problem = problem_of(model, "conditional")
        for factual in factuals(problem, 5):
            assert_optimal(CeOcl("l1", hull=kind, engine="milp"), problem, factual)


def test_a_part_of_the_hull_may_hold_nothing_but_a_closed_level() -> None:
    """Rows of one category that all have a level which the factual cannot enter: no answer there, and no crash."""
    base = problem_of("lr", "conditional")
    member = base.reference["member"].to_numpy(bool)
    rows = base.reference.assign(grade=np.where(member, "mid", base.reference["grade"]))
    problem = replace(base, reference=rows, reference_labels=np.full(len(rows), "yes", dtype=object))
    listed = enumeration.points()
    low = listed[(listed["grade"] == "low") & ~problem.valid(listed)]
    for factual in (low.iloc[[row]] for row in range(0, len(low), 60)):
        for alpha in (0.0, 1e4):
            assert_optimal(CeOcl("l1", alpha, hull="hard"), problem, factual)


def lonely(equation: bool = False) -> tuple[Problem, pd.DataFrame]:
    """Sixty rows, each the only one of its category: of all those with one change, the dearest."""
    space = Space(
        (
            Feature("n", "integer", scale=(0, 100), bounds=(0, 200)),
            Feature("m", "integer", scale=(0, 100), bounds=(0, 100)),
            Feature("r", "categorical", tuple(range(60))),
        )
    )
    frame = space.frame([*({"n": 0, "m": 1, "r": r} for r in range(1, 60)), {"n": 200, "m": 0, "r": 0}])
    factual = space.frame([{"n": 0, "m": 0, "r": 0}])
    model = LogisticRegression().fit(np.vstack([space.encode(frame), space.encode(factual)]), [1] * 60 + [0])
    model.coef_[:], model.coef_[0, 2], model.intercept_[:] = 1.0, 0.0, -0.9
    fitted = Classifier(model, space_inputs(space), ("no", "yes"))
    return Problem(space, fitted, frame, np.full(60, "yes", dtype=object), Label("yes")), factual


def test_rows_alone_in_their_category_are_not_forgotten() -> None:
    """However many cheaper ones may not be answered: they change too much, or were answered before."""
    problem, factual = lonely()
    (answer,) = ask(CeOcl("l1", hull="hard", max_changes=1), problem, factual).answers
    assert (answer.status, answer.row) == (Status.OPTIMAL, {"n": 200, "m": 0, "r": 0})
    answers = ask(CeOcl("l1", hull="hard", separation=1.0), problem, factual, n=61).answers
    assert [answer.status for answer in answers] == [Status.OPTIMAL] * 60 + [Status.INFEASIBLE]


def test_a_row_alone_in_its_category_may_keep_an_equation() -> None:
    """Nothing but the row is there of the hull, and it is where the equation puts it."""
    space = Space(
        (
            Feature("cause", "integer", scale=(0, 10), bounds=(0, 10)),
            Feature("effect", "continuous", scale=(0.0, 10.0), bounds=(0.0, 10.0)),
            Feature("group", "categorical", ("n", "s")),
        )
    )
    frame = space.frame([{"cause": 2, "effect": 3.5, "group": g} for g in "ns"])
    model = LogisticRegression().fit(space.encode(frame), [0, 1])
    made = equations(space, frame.assign(effect=[3.5, 4.0]), {"effect": {"formula": "0.3 * cause"}})
    labels = np.array(["no", "yes"], dtype=object)
    problem = Problem(
        space, Classifier(model, space_inputs(space), ("no", "yes")), frame, labels, Label("yes"), equations=made
    )
    (answer,) = ask(CeOcl("l1", hull="hard", causality=True), problem, frame.iloc[[0]]).answers
    assert answer.row == {"cause": 2, "effect": 3.5, "group": "s"}
    assert answer.status is Status.OPTIMAL


@pytest.mark.parametrize("epsilon", [0.0, 0.137, [0.0, 0.137]], ids=str)
def test_a_fallback_claims_what_it_answers(epsilon: Any) -> None:
    """Inside as outside, or such an epsilon is refused."""
    refused = ""
    try:
        method = CeOcl("l1", hull="fallback", epsilon=epsilon)
    except ValueError as refusal:
        refused = str(refusal)
    if refused:
        assert "epsilon" in refused
        return
    problem = problem_of("lr", "immutable")
    for factual in factuals(problem, 6):
        (answer,) = ask(method, problem, factual).answers
        if answer.row is not None:
            assert_holds(method, problem, factual, answer)


def test_no_way_into_the_hull_is_reported() -> None:
    """Infeasible, with the features to blame and the conflict that holds the data manifold."""
    base = problem_of("lr", span=40)
    rows = base.reference.assign(member=True).astype(base.reference.dtypes)
    labels = np.full(len(rows), "yes", dtype=object)
    space = FREE.replace({"member": {"actionability": "immutable"}})
    problem = replace(base, space=space, reference=rows, reference_labels=labels)
    factual = next(f for f in factuals(problem, 20) if not f["member"].iloc[0])
    explained = ask(CeOcl(hull="hard"), problem, factual, n=2)
    assert [answer.status for answer in explained.answers] == [Status.INFEASIBLE] * 2
    assert optimum(CeOcl(hull="hard"), problem, factual) == np.inf
    assert "member" in explained.answers[0].detail
    assert "data manifold" in explained.conflict
    assert set(explained.conflict) <= {"immutable member", "data manifold"}
    # Enlarged it is out of reach as well, and with a list every enlargement is.
    for method in (CeOcl(hull="hard", epsilon=0.1), CeOcl(hull="hard", epsilon=[0.0, 0.1])):
        answers = ask(method, problem, factual)
        assert answers.answers[0].status is Status.INFEASIBLE
        assert "data manifold" in answers.conflict
    (soft,) = ask(CeOcl(hull="fallback"), problem, factual).answers
    assert_holds(CeOcl(hull="fallback"), problem, factual, soft)


def test_a_hull_without_points_is_infeasible() -> None:
    """No reference row is labelled as wanted."""
    base = problem_of("lr")
    problem = replace(base, reference_labels=np.full(len(base.reference), "no", dtype=object))
    for method in (CeOcl(hull="hard"), CeOcl(hull="hard", epsilon=0.1), CeOcl(hull="hard", clusters=2)):
        assert ask(method, problem, factuals(problem, 1)[0]).answers[0].status is Status.INFEASIBLE


@pytest.mark.parametrize("seconds", [0.0, 0.02, 0.1])
@pytest.mark.parametrize("name", ["hard", "two", "inf", "penalised", "clusters"])
@pytest.mark.parametrize("model", ["lr", "rf", "mlp"])
def test_with_little_time_the_answers_are_honest(model: str, name: str, seconds: float) -> None:
    """No point outside, nothing false called proven, no bound above the optimum; as many answers as asked."""
    problem, method = problem_of(model, "increase"), CeOcl("l1", 0.1, **HULLS[name])
    explainer = method.fit(problem)
    for factual in factuals(problem, 3):
        explained = explainer.explain(factual, 2, np.random.default_rng(0), Deadline.after(seconds))
        assert len(explained.answers) == 2
        first, best = explained.answers[0], optimum(method, problem, factual)
        for answer in explained.answers:
            if answer.row is not None:
                assert_holds(method, problem, factual, answer)
        if first.row is None:
            assert first.status is Status.GAVE_UP or best == np.inf
            continue
        assert first.objective is not None
        assert first.objective >= best - WITHIN
        assert first.bound is None or first.bound <= best + WITHIN
        assert (first.status is Status.OPTIMAL) <= (first.objective <= best + WITHIN)


def test_clusters_are_those_of_k_means() -> None:
    """As many labels as asked where there are as many points; one without clustering."""
    points = CLOUDS["cloud"]
    assert set(clustered(points, 1)) == {0}
    assert set(clustered(points, 4)) == {0, 1, 2, 3}
    assert list(clustered(points[:3], 5)) == [0, 1, 2]


def test_rows_of_a_hull_are_labelled_and_predicted() -> None:
    """Of ``both`` each is as wanted by its label and by the model; the labels here are turned for every other row."""
    labels = loans_problem.reference_labels.copy()
    labels[::2] = np.where(labels[::2] == "granted", "refused", "granted")
    posed = replace(loans_problem, reference=loans_problem.reference, reference_labels=labels)
    labelled, predicted = labels == "granted", loans_problem.valid(loans_problem.reference)
    assert (labelled != predicted).any()
    expected = {"labelled": labelled, "predicted": predicted, "both": labelled & predicted}
    for which, rows in expected.items():
        assert supports(posed, which).tolist() == rows.tolist()


def test_a_budget_is_less_what_any_change_costs() -> None:
    """Of 5, where a change alone costs 2 and a unit 1, the gap is at most 3."""
    assert Cost(2.0, 1.0, 0.0, budget=5.0).radius == 3.0
    assert Cost(6.0, 1.0, 0.0, budget=5.0).radius == 0.0
