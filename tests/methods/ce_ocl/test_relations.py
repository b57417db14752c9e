"""Relations between continuous numbers in CE-OCL: against a linear program, a fine grid, and what they rule out."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import linprog
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier
from support import enumeration

from harness.core.classifier import Classifier
from harness.core.conflict import lifted
from harness.core.explanation import Explanation, Status
from harness.core.inputs import space_inputs
from harness.core.method import Deadline
from harness.core.problem import Problem
from harness.core.space import Feature, Space
from harness.core.target import Label
from methods.ce_ocl import CeOcl
from methods.cells.relations import boxed

LOANS = Space(
    (
        Feature("income", "continuous", scale=(0, 200), bounds=(0, 200)),
        Feature("loan", "continuous", scale=(0, 50), bounds=(0, 50)),
        Feature("job", "binary", ("no", "yes")),
    )
)


def loans(estimator: Any, *constraints: str) -> Problem:
    """Granted are those of much income, a large loan, and a job."""
    rng = np.random.default_rng(0)
    values = zip(rng.uniform(0, 200, 300), rng.uniform(0, 50, 300), rng.choice(["no", "yes"], 300), strict=True)
    train = LOANS.frame(dict(zip(LOANS.names, row, strict=True)) for row in values)
    labels = train["income"] + 3 * train["loan"] + 40 * (train["job"] == "yes") > 230
    classifier = Classifier(estimator.fit(LOANS.encode(train), labels), space_inputs(LOANS), ("no", "yes"))
    space = replace(LOANS, constraints=constraints)
    return Problem(space, classifier, train, np.where(labels, "yes", "no").astype(object), Label("yes"))


def person(income: float, loan: float, job: str) -> pd.DataFrame:
    return LOANS.frame([{"income": income, "loan": loan, "job": job}]).set_axis(["new"])


def ask(problem: Problem, factual: pd.DataFrame, **parameters: Any) -> Explanation:
    method = CeOcl(**parameters)
    assert method.refuses(problem) is None
    return method.fit(problem).explain(factual, 1, np.random.default_rng(0), Deadline.after(60))


def test_rows_of_a_linear_model_are_those_of_a_linear_program() -> None:
    """The answer to a linear model under two linear relations is scipy's, and lies on one of them."""
    problem = loans(LogisticRegression(), "income <= 90 + 6 * loan", "income + 2 * loan <= 190", "job stays")
    factual = person(60, 5, "yes")
    found = ask(problem, factual).answers[0]
    weights, constant = problem.classifier.estimator.coef_[0], problem.classifier.estimator.intercept_[0]
    # Variables: income and loan in scaled units, and how far they are from the factual's.
    a, b = 60 / 200, 5 / 50
    rows = [
        [-weights[0], -weights[1], 0, 0],
        [200, -300, 0, 0],
        [200, 100, 0, 0],
        [1, 0, -1, 0],
        [-1, 0, -1, 0],
        [0, 1, 0, -1],
        [0, -1, 0, -1],
    ]
    ends = [constant + weights[2], 90, 190, a, -a, b, -b]
    best = linprog([0, 0, 1, 1], A_ub=rows, b_ub=ends, bounds=[(0, 1), (0, 1), (0, None), (0, None)])
    assert found.status is Status.OPTIMAL
    assert found.row is not None
    assert found.objective == pytest.approx(best.fun, abs=2e-6)
    assert problem.space.violations(factual, problem.space.frame([found.row])) == [[]]
    assert found.row["income"] == pytest.approx(90 + 6 * found.row["loan"], abs=1e-4)


@pytest.mark.parametrize(
    "texts",
    [
        ("loan <= 0.1 * income",),
        ("loan <= 0.1 * income", "if job == yes then income >= 120"),
        ("if loan > 12 then income > 150", "at most 1 of [income, loan] change"),
        ("if loan increases then income increases", "loan + 0.3 * income <= 62"),
        ("if loan changes then job changes",),
    ],
)
def test_no_point_of_a_fine_grid_is_better(texts: tuple[str, ...]) -> None:
    """On a forest nothing on a grid of 200 by 100 by 2 keeps the relations and is cheaper than the optimum."""
    problem = loans(RandomForestClassifier(8, max_depth=4, random_state=0), *texts)
    grid = pd.MultiIndex.from_product([np.linspace(0, 200, 201), np.linspace(0, 50, 101), ["no", "yes"]])
    points = grid.to_frame(index=False, name=list(LOANS.names))
    points = points[problem.valid(points)]
    method = CeOcl()
    for factual in (person(50, 4, "no"), person(90, 9, "yes"), person(70, 2, "no")):
        found = ask(problem, factual).answers[0]
        permitted = points[[not faults for faults in problem.space.violations(factual, points)]]
        values = method.objective(problem).evaluate(problem.space, factual, permitted)
        if found.row is None:
            assert found.status is Status.INFEASIBLE
            assert len(values) == 0
            continue
        answer = problem.space.frame([found.row])
        assert found.status is Status.OPTIMAL
        assert problem.valid(answer).all()
        assert problem.space.violations(factual, answer) == [[]]
        assert found.objective is not None
        assert found.objective <= values.min(initial=np.inf) + 1e-9


def test_who_breaks_a_relation_breaks_it_no_further() -> None:
    """A loan of a third of the income, where a tenth is allowed, may only come nearer to it."""
    problem = loans(LogisticRegression(), "loan <= 0.1 * income")
    factual = person(60, 20, "no")
    row = ask(problem, factual).answers[0].row
    assert row is not None
    assert row["loan"] - 0.1 * row["income"] <= 14 + 1e-7
    assert problem.space.breaches(factual, problem.space.frame([row])) == [[]]


@pytest.mark.parametrize("estimator", [LogisticRegression(), RandomForestClassifier(8, max_depth=4, random_state=0)])
def test_the_relation_that_leaves_nothing_is_named(estimator: Any) -> None:
    """Of three relations one rules out what the model wants: it is named, and no relation that can be spared."""
    texts = "loan <= income", "income + 3 * loan <= 100", "if job changes then loan stays"
    factual, problem = person(50, 4, "no"), loans(estimator, *texts)
    found = ask(problem, factual)
    assert found.answers[0].status is Status.INFEASIBLE
    assert "income + 3 * loan <= 100" in found.conflict
    assert "loan <= income" not in found.conflict
    for spared in found.conflict:
        kept = {*found.conflict} - {spared}
        rest = lifted(problem, frozenset({"bounds", *texts} - kept))
        assert ask(rest, factual).answers[0].status is Status.OPTIMAL


@pytest.mark.parametrize("model", ["lr", "rf", "mlp"])
def test_several_answers_keep_every_relation(model: str) -> None:
    """Three separated answers, each the best of those left, under three relations at once and a hull."""
    problem = enumeration.problem_of(model, related=("linear", "implication", "linked"))
    for factual in enumeration.factuals(problem, 2):
        enumeration.assert_optimal(CeOcl(separation=0.2), problem, factual, n=3)
        enumeration.assert_optimal(CeOcl(hull="hard", epsilon=0.2, hull_norm="inf"), problem, factual, n=2)


@pytest.mark.parametrize("related", enumeration.RELATED)
@pytest.mark.parametrize("engine", ["search", "milp"])
def test_both_engines_find_the_optimum(related: str, engine: str) -> None:
    """On a forest the search over cells and the program come to the best of all points, also to the second best."""
    problem = enumeration.problem_of("rf", related=(related,))
    for factual in enumeration.factuals(problem, 2):
        enumeration.assert_optimal(CeOcl(engine=engine), problem, factual, n=2)


@pytest.mark.parametrize(
    "texts",
    [
        ("if job == yes then income >= 120", "if loan > 12 then income > 150"),
        ("if income increases then loan decreases", "at most 1 of [job, loan] change"),
        ("if loan changes then job changes", "income != 130", "loan < 41.5"),
    ],
)
def test_the_cells_end_where_relations_do(texts: tuple[str, ...]) -> None:
    """Bounds of single continuous numbers, none of them a threshold of the forest, are kept by both engines alike."""
    problem = loans(RandomForestClassifier(8, max_depth=4, random_state=0), *texts)
    for factual in (person(50, 4, "no"), person(90, 9, "yes"), person(125, 14, "no"), person(20, 45, "yes")):
        if problem.valid(factual)[0]:
            continue
        (search,), (program,) = (ask(problem, factual, engine=engine).answers for engine in ("search", "milp"))
        assert search.status in {Status.OPTIMAL, Status.INFEASIBLE}
        assert (search.row is None) == (program.row is None)
        if search.row is not None:
            assert search.objective == pytest.approx(program.objective, abs=5e-6)
            assert problem.space.violations(factual, problem.space.frame([search.row])) == [[]]


SUMS = [
    ("loan <= 0.1 * income",),
    ("income <= 90 + 6 * loan", "income + 2 * loan <= 190"),
    ("if loan > 12 then income > 150 + loan", "loan + income < 170"),
    ("income == 3 * loan + 20", "if job changes then loan stays"),
    ("loan + income != 130", "if loan increases then income increases"),
]


@pytest.mark.parametrize("texts", SUMS)
@pytest.mark.parametrize("parameters", [{}, {"alpha": 0.3, "max_changes": 2}, {"distance": "l2sq"}, {"max_changes": 1}])
def test_sums_of_continuous_numbers_are_kept_by_both_engines(
    texts: tuple[str, ...], parameters: dict[str, Any]
) -> None:
    """The search over cells and the program come to the same optimum, or to the same proof that there is none."""
    problem = loans(DecisionTreeClassifier(max_depth=4, random_state=0), *texts)
    for factual in (person(50, 4, "no"), person(90, 9, "yes")):
        (search,), (program,) = (
            ask(problem, factual, engine=engine, **parameters).answers for engine in ("search", "milp")
        )
        assert search.status is program.status
        assert search.status in {Status.OPTIMAL, Status.INFEASIBLE}
        if search.row is not None:
            assert search.objective == pytest.approx(program.objective, abs=3e-6)
            found = problem.space.frame([search.row])
            assert problem.space.violations(factual, found) == [[]]
            assert LOANS.changed(factual, found).sum() <= parameters.get("max_changes", 3)


def test_no_cheaper_values_are_left_out_with_others() -> None:
    """Boxes of states that are left out around one point hold no better one: it is not the first that is found."""
    rng = np.random.default_rng(48)
    features = (Feature(name, "continuous", scale=(0, 1), bounds=(0, 1)) for name in "xyz")
    space = Space(tuple(features), ("x + 0.72 * y + 0.45 * z <= 0.39",))
    train = space.frame(dict(zip("xyz", row, strict=True)) for row in rng.random((200, 3)))
    slopes = rng.uniform(-1, 1, 2)
    good = (train["x"] + train[["y", "z"]] @ slopes + 0.3 * np.sin(9 * train["y"]) > 0.6).to_numpy()
    forest = RandomForestClassifier(3, max_depth=4, random_state=48).fit(space.encode(train), good)
    classifier = Classifier(forest, space_inputs(space), ("no", "yes"))
    problem = Problem(space, classifier, train, np.where(good, "yes", "no").astype(object), Label("yes"))
    (search,), (program,) = (ask(problem, train.iloc[[3]], engine=engine).answers for engine in ("search", "milp"))
    assert search.objective == pytest.approx(program.objective, abs=3e-6)


@pytest.mark.parametrize(
    "texts",
    [
        ("at most 2 of [age, debt, member, grade, region] change",),
        ("age >= debt + 1", "0.7 * age + 0.45 * debt <= 3.1"),
        ("if grade >= mid and debt > 1 then age >= 3 and region in [n, w]",),
    ],
)
def test_relations_by_boxes_and_by_sums_leave_the_same(texts: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    """Relations of few values are left out as boxes of states; settled like sums of many, the optimum is the same."""
    problem = enumeration.problem_of("rf")
    problem = replace(problem, space=replace(problem.space, constraints=texts))
    method, asked = CeOcl(engine="search"), enumeration.factuals(problem, 4)
    by_boxes = [[a.objective for a in enumeration.ask(method, problem, factual, 3).answers] for factual in asked]
    monkeypatch.setattr("methods.cells.relations.MOST", 1)
    assert not any(boxed(relation) for relation in problem.space.relations)
    by_sums = [[a.objective for a in enumeration.ask(method, problem, factual, 3).answers] for factual in asked]
    assert any(value is not None for values in by_boxes for value in values)
    for one, other in zip(by_boxes, by_sums, strict=True):
        assert one == pytest.approx(other, abs=1e-6)


@pytest.mark.parametrize(
    ("then", "age"),
    [
        ("age >= 44", 44),
        ("age > 44", 45),
        ("age <= 30", 30),
        ("age < 30", 29),
        ("age increases", 41),
        ("age != 40", 39),
    ],
)
def test_whole_numbers_stop_at_their_bound(then: str, age: int) -> None:
    """A model that does not look at age has it moved just as far as a relation asks, by both engines."""
    space = Space(
        (
            Feature("income", "continuous", scale=(0, 100), bounds=(0, 100)),
            Feature("age", "integer", scale=(20, 60), bounds=(18, 90)),
        ),
        (f"if income increases then {then}",),
    )
    train = space.frame({"income": float(income), "age": 20 + income % 41} for income in range(100))
    granted = (train["income"] > 50).to_numpy()
    classifier = Classifier(
        RandomForestClassifier(1, max_depth=1, max_features=None, bootstrap=False).fit(space.encode(train), granted),
        space_inputs(space),
        ("no", "yes"),
    )
    labels = np.where(granted, "yes", "no").astype(object)
    problem = Problem(space, classifier, train, labels, Label("yes"))
    factual = space.frame([{"income": 20.0, "age": 40}]).set_axis(["new"])
    for engine in ("search", "milp"):
        answer = ask(problem, factual, engine=engine).answers[0]
        assert answer.status is Status.OPTIMAL
        assert answer.row is not None
        assert abs(answer.row["age"] - 40) == abs(age - 40)
