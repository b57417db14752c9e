"""Robust counterfactuals by programs and on networks: against grids, each other and the plain problem."""

from __future__ import annotations

import json
import math
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.spatial import cKDTree
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

from harness.answers import from_plain, to_plain
from harness.certificate import Ball, Checker
from harness.classifier import Classifier, space_inputs
from harness.errors import UnsupportedError
from harness.method import Deadline
from harness.objective import Objective
from harness.problem import Feature, Kind, Label, Problem, Space
from methods.ce_ocl import CeOcl
from methods.perturbation import Outcome, Settings
from methods.robust import Robust
from methods.robust_network import Network
from methods.robust_program import Adversarial, Leaf, Linear

SPACE = Space(
    (
        Feature("a", Kind.CONTINUOUS, scale=(0, 10), bounds=(0, 10)),
        Feature("b", Kind.CONTINUOUS, scale=(-1, 1), bounds=(-1, 1)),
    )
)
MODELS: dict[str, Any] = {
    "lr": LogisticRegression(C=100),
    "svm": LinearSVC(C=10),
    "cart": DecisionTreeClassifier(max_depth=4, random_state=0),
    "rf": RandomForestClassifier(4, max_depth=3, random_state=0),
    "gbm": GradientBoostingClassifier(n_estimators=6, max_depth=2, random_state=0),
    "mlp": MLPClassifier((8,), max_iter=2000, random_state=0),
    "mlp_deep": MLPClassifier((5, 5), max_iter=2000, random_state=1),
}
SOLVERS = {"lr": Linear, "svm": Linear, "mlp": Network, "mlp_deep": Network}
RHO = 0.04
STEP = 1 / 160


@cache
def rows() -> tuple[pd.DataFrame, np.ndarray]:
    points = np.random.default_rng(0).random((200, 2))
    wave = points[:, 1] > 0.5 + 0.25 * np.sin(6 * points[:, 0])
    return SPACE.decode(points), wave.astype(int)


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


def by_grid(name: str, norm: str, distance: str, here: np.ndarray) -> tuple[float, float]:
    """Bounds of the optimum: the best grid point that could be robust, and the best that surely is."""
    points, depth = _depth(name, norm)
    gaps = np.abs(points - here)
    cost = {"l1": gaps.sum(axis=1), "l2sq": (gaps**2).sum(axis=1), "linf": gaps.max(axis=1)}[distance]
    near = STEP * (1.0 if norm == "linf" else math.sqrt(2))
    rounding = {"l1": 2 * STEP, "l2sq": 4 * STEP * float(gaps.max()), "linf": STEP}[distance]
    return float(cost[depth >= RHO - 2 * near].min()) - rounding, float(cost[depth >= RHO + near].min())


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
        assert found.proven
        low, high = by_grid(name, norm, distance, SPACE.encode(factual)[0])
        assert low <= found.value <= high + 1e-6
        judge, ball = Checker(SPACE, question.classifier, question.target), Ball.scaled(SPACE, norm)
        assert judge.certify(found.row, ball, RHO).radius >= RHO - 1e-9
        radius = judge.certify(found.row, ball).radius
        assert judge.certify(found.row, ball, 1.01 * radius).violated <= 1.01 * radius


@pytest.mark.parametrize("norm", ["linf", "l2"])
@pytest.mark.parametrize("name", ["mlp", "mlp_deep"])
def test_algorithms_agree_on_networks(name: str, norm: str) -> None:
    """The search of its own and Algorithm 1 find the same optimum."""
    question = problem(name)
    settings = Settings(rho=RHO, norm=norm)
    for place in (0, 1, 2):
        factual = refused(question, place)
        own, paper = (solved(solver, question, settings, factual) for solver in (Network, Adversarial))
        assert own.proven
        assert paper.proven
        assert own.value == pytest.approx(paper.value, abs=3e-6)


@pytest.mark.parametrize("name", ["lr", "cart", "rf", "mlp"])
def test_without_a_radius_it_is_the_plain_counterfactual(name: str) -> None:
    """At rho = 0 the optimum is that of the plain problem."""
    question = problem(name)
    factual = refused(question)
    found = solved(SOLVERS.get(name, Adversarial), question, Settings(rho=0.0), factual)
    plain = CeOcl().fit(question).explain(factual, 1, np.random.default_rng(0), Deadline.after(60)).answers[0]
    assert found.proven
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
        found = solved(Linear, question, Settings(rho=RHO, norm=norm), refused(question))
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
        assert found.proven
        assert low <= found.value <= high + 1e-6


def test_a_trace_of_what_was_done() -> None:
    """Distances of Algorithm 1 never fall, and its last radius is rho."""
    question = problem("rf")
    found = solved(Adversarial, question, Settings(rho=RHO), refused(question))
    distances = [step["distance"] for step in found.trace]
    assert distances == sorted(distances)
    assert found.trace[-1]["radius"] == RHO
    assert {"iteration", "master_seconds", "adversary_seconds"} <= found.trace[0].keys()


def test_nothing_is_wide_enough() -> None:
    """A radius beyond everything valid is proven impossible."""
    settings = Settings(rho=0.9)
    assert math.isinf(solved(Network, problem("mlp"), settings, refused(problem("mlp"))).bound)
    assert math.isinf(solved(Linear, problem("lr"), settings, refused(problem("lr"))).bound)


def test_what_programs_refuse() -> None:
    with pytest.raises(UnsupportedError, match="clip"):
        Linear(problem("lr"), Settings(clip=True))
    with pytest.raises(UnsupportedError, match="leaf needs trees"):
        Leaf(problem("mlp"), Settings())


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
