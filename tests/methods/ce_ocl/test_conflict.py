"""Why CE-OCL has no answer: what is lifted in search of the reason, by which engine, and in what time."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.tree import DecisionTreeClassifier
from support.applicants import FREE, GRID, SPACES, classifier, factuals, problem_of
from support.enumeration import ask

from harness.core.classifier import Classifier
from harness.core.conflict import groups_of, lifted
from harness.core.explanation import Answer, Status
from harness.core.inputs import space_inputs
from harness.core.method import Deadline
from harness.core.problem import Problem
from harness.core.target import Classes
from methods.ce_ocl import CeOcl
from methods.ce_ocl.explainer import CeOclExplainer, start
from methods.cells import search


def ruled(right: np.ndarray, space: Any, estimator: Any = None) -> Problem:
    """A model that says yes to some points of the grid; a tree unless given."""
    estimator = DecisionTreeClassifier(random_state=0) if estimator is None else clone(estimator)
    estimator.fit(FREE.encode(GRID), right.astype(int))
    return problem_of(Classifier(estimator, space_inputs(FREE), ("no", "yes")), "yes", space)


@pytest.mark.every(1)
@pytest.mark.parametrize(
    ("estimator", "method"),
    [
        (DecisionTreeClassifier(random_state=0), CeOcl(engine="search")),
        (DecisionTreeClassifier(random_state=0), CeOcl(engine="milp")),
        (LogisticRegression(C=1000), CeOcl()),
        (DecisionTreeClassifier(random_state=0), CeOcl("linf")),
        (MLPClassifier((3,), max_iter=2000, learning_rate_init=0.02, random_state=0), CeOcl()),
    ],
    ids=["search", "milp", "lr", "linf", "mlp"],
)
@pytest.mark.parametrize(
    ("bounds", "actionability", "low", "wanted"),
    [
        ((0, math.inf), "immutable", 2, lambda age: age >= 6),
        ((-math.inf, math.inf), "immutable", 2, lambda age: age >= 6),
        ((-math.inf, 7), "increase", 5, lambda age: age <= 1),
        ((0, math.inf), "decrease", 2, lambda age: age >= 6),
    ],
    ids=["fixed above 0", "fixed", "rising to 7", "falling above 0"],
)
def test_a_number_without_an_end_is_blamed_as_any_other(
    estimator: Any,
    method: CeOcl,
    bounds: tuple[float, float],
    actionability: str,
    low: int,
    wanted: Callable[[Any], Any],
) -> None:
    """An age that may not move, or not that way, needs no end there until it is lifted: then there is an answer.

    A tree asks for nothing else; other models may be content with a debt far beyond its bounds, too.
    """
    space = FREE.replace({"age": {"bounds": bounds, "actionability": actionability}})
    problem = ruled(wanted(GRID["age"].to_numpy()), space, estimator)
    factual = GRID[(GRID["age"] == low) & (GRID["debt"] == 2)].iloc[[0]]
    explained = ask(method, problem, factual)
    assert explained.answers[0].status is Status.INFEASIBLE
    assert explained.conflict[:1] == (f"{actionability} age",)
    assert not isinstance(estimator, DecisionTreeClassifier) or len(explained.conflict) == 1


def found(engine: Any, factual: Any) -> list[tuple[Any, ...]]:
    return [(answer.status, answer.row, answer.objective) for answer in engine.answers(factual, 2, Deadline.after(60))]


@pytest.mark.parametrize("model", ["cart", "rf", "gbm"])
@pytest.mark.parametrize("name", ["kept", "coded"])
@pytest.mark.parametrize("method", [CeOcl(), CeOcl("l2sq", alpha=0.1, max_changes=2)], ids=["l1", "l2sq"])
def test_cells_that_are_taken_over_answer_as_new_ones(model: str, name: str, method: CeOcl) -> None:
    """Without each group, and all but that: as an engine of the lifted question, and as its program; and back again."""
    space = replace(SPACES[name], constraints=("age + 2 * debt <= 11", "if region changes then age stays"))
    problem = problem_of(classifier(model), "yes", space)
    names = [*groups_of(problem), *space.constraints]
    engine: Any = start(method, problem)
    for factual in factuals(problem, 2):
        before = found(engine, factual)
        for without in (*(frozenset({each}) for each in names), frozenset(names)):
            free = replace(method, max_changes=None)
            with engine.under(free, lifted(problem, without)):
                told = found(engine, factual)
            assert told == found(start(free, lifted(problem, without)), factual)
            program: Any = start(replace(free, engine="milp"), lifted(problem, without))
            (solved,) = program.answers(factual, 1, Deadline.after(60))
            assert (told[0][0], told[0][2]) == (solved.status, pytest.approx(solved.objective, abs=1e-6))
        assert found(engine, factual) == before


@pytest.mark.parametrize("several", [False, True])
def test_no_forest_is_read_twice(several: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading one takes seconds that no deadline interrupts; a question without an answer asks about each group."""
    read: list[Any] = []
    monkeypatch.setattr(search, "build", lambda *asked, build=search.build: read.append(asked) or build(*asked))
    codes = (GRID["grade"] == "high").to_numpy().astype(int)
    codes += codes * (GRID["debt"] > 3).to_numpy()
    forest = RandomForestClassifier(4, random_state=0).fit(FREE.encode(GRID), codes)
    fixed = {"grade": {"actionability": "decrease"}, "age": {"actionability": "immutable"}}
    problem = problem_of(Classifier(forest, space_inputs(FREE), ("no", "yes", "very")), "yes", FREE.replace(fixed))
    if several:
        problem = replace(problem, target=Classes(("yes", "very")))
    explained = ask(CeOcl(max_changes=2), problem, GRID[(GRID["grade"] == "low") & (GRID["debt"] == 2)].iloc[[0]])
    assert explained.conflict == ("decrease grade",)
    assert len(read) == 1 + several


def test_an_engine_that_takes_too_long_to_build_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the manifold another engine is needed: it is not built where there is no time for it."""
    right = (GRID["grade"] == "high").to_numpy()
    problem = ruled(right, FREE.replace({"grade": {"actionability": "decrease"}}))
    factual = GRID[(GRID["grade"] == "low") & (GRID["debt"] == 2)].iloc[[0]]
    explainer = CeOclExplainer(CeOcl(hull="hard", hull_points="predicted"), problem)

    def asked() -> tuple[Answer, tuple[str, ...]]:
        explained = explainer.explain(factual, 1, np.random.default_rng(0), Deadline.after(60))
        return explained.answers[0], explained.conflict

    answer, conflict = asked()
    assert (answer.status, conflict) == (Status.INFEASIBLE, ("decrease grade",))
    explainer.building = 120.0
    monkeypatch.setattr("methods.ce_ocl.explainer.start", lambda *_: pytest.fail("an engine was built"))
    answer, conflict = asked()
    assert answer.status is Status.INFEASIBLE
    assert conflict == ("decrease grade", "data manifold")  # of the manifold it is not known
