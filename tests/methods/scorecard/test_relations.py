"""Relations between features on scorecards: every combination of values against the program, and what is named."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pytest
from support.scorecards import SPACE, VALUES, Enumeration, ask, toy, undesired

from harness.core.classifier import Classifier
from harness.core.explanation import Reason, Status
from harness.core.problem import Problem
from harness.core.space import Feature, Space
from harness.core.target import Label
from harness.models.card import Bin, Card, Variable
from harness.models.scorecard import ScorecardClassifier
from methods.scorecard import Scorecard
from methods.scorecard.moves import _Axis

# In words, and in Python, of a row and the factual.
RELATED: dict[str, tuple[str, Callable[[dict[str, Any], dict[str, Any]], bool]]] = {
    "line": ("age >= debt + 1", lambda x, _: x["age"] >= x["debt"] + 1),
    "slope": ("0.7 * age + 0.45 * debt <= 5.15", lambda x, _: 0.7 * x["age"] + 0.45 * x["debt"] <= 5.15 + 1e-9),
    "either": (
        "if city in [c, d] then debt <= 2 and age >= 4",
        lambda x, _: x["city"] not in "cd" or (x["debt"] <= 2 and x["age"] >= 4),
    ),
    "linked": ("if city changes then age increases", lambda x, o: x["city"] == o["city"] or x["age"] > o["age"]),
    "few": (
        "at most 1 of [age, debt, city] change",
        lambda x, o: sum(x[name] != o[name] for name in ("age", "debt", "city")) <= 1,
    ),
}
METHODS = {
    "both": (1, Scorecard(max_changes=None)),
    "hierarchy": (1, Scorecard({"proximity": 1, "closeness": 1}, {"proximity": 2, "closeness": 1})),
    "two": (2, Scorecard({"proximity": 1}, max_changes=3)),
}


def related(
    problem: Problem, factual: pd.DataFrame, names: tuple[str, ...], listed: Enumeration, most: int | None
) -> np.ndarray:
    """Which of the listed bins hold values, all of them tried, that keep relations, and of which few enough change."""
    origin, card = factual.iloc[0].to_dict(), problem.classifier.estimator.card_
    rows = SPACE.frame([dict(zip(VALUES, row, strict=True)) for row in product(*VALUES.values())])
    kept = [not faults for faults in SPACE.violations(factual, rows)]
    rules = [RELATED[name][1] for name in names]
    kept &= np.array([all(rule(row, origin) for rule in rules) for row in rows.to_dict("records")])
    kept &= SPACE.changed(factual, rows).sum(axis=1) <= (most or 99)
    possible = {tuple(row) for row in card.bins(rows[kept]).tolist()}
    return np.array([tuple(row) in possible for row in listed.bins.tolist()])


@pytest.mark.parametrize("option", METHODS)
@pytest.mark.parametrize("names", [*((name,) for name in RELATED), ("line", "linked"), ("slope", "either")])
def test_the_best_of_all_values(names: tuple[str, ...], option: str) -> None:
    """The cost is that of the cheapest bins that hold values which keep the relations; these are such values."""
    (n, method), met, lost = METHODS[option], 0, 0
    for seed in range(20):
        if met > 1 and lost:
            break
        plain = toy(seed, Label("yes"))
        if any(len(set(v.values)) < len(v.values) for v in plain.classifier.estimator.card_.variables):
            continue  # a bin of the same value is no move
        problem = replace(plain, space=replace(SPACE, constraints=tuple(RELATED[name][0] for name in names)))
        for factual in undesired(plain, 3):
            if any(relation.broken_by(factual) for relation in problem.space.relations):
                continue
            listed = Enumeration(plain, factual, method.weights)
            kept = related(plain, factual, names, listed, method.max_changes)
            lost += int((listed.valid & ~kept).sum())
            listed.valid &= kept
            expected, found = listed.best(method, n), ask(method, problem, factual, n)
            if expected is None:
                assert found.answers[-1].status is Status.INFEASIBLE
                continue
            met += 1
            assert all(answer.status is Status.OPTIMAL for answer in found.answers)
            rows = SPACE.frame([answer.row for answer in found.answers if answer.row])
            assert problem.valid(rows).all()
            assert not any(problem.space.violations(factual, rows))
            places = plain.classifier.estimator.card_.bins(rows)
            group = [int(np.flatnonzero((listed.bins == row).all(axis=1))[0]) for row in places]
            assert listed.value(group, method.levels[-1]) == pytest.approx(expected[0], abs=1e-6)
    assert met, "the relations leave none of these factuals a counterfactual"
    assert lost, "the relations rule out nothing"


def test_the_relation_that_leaves_nothing_is_named() -> None:
    """Where nothing may change, that is to blame and not the relation that costs nothing."""
    plain = toy(0, Label("yes"))
    texts = ("at most 0 of [age, debt, city, grade] change", "age <= 9")
    problem = replace(plain, space=replace(SPACE, constraints=texts))
    factual = next(f for f in undesired(plain, 5) if ask(Scorecard(), plain, f, 1).answers[0].row is not None)
    found = ask(Scorecard(), problem, factual, 1)
    assert found.answers[0].status is Status.INFEASIBLE
    assert texts[0] in found.conflict
    assert texts[1] not in found.conflict
    assert texts[0] in found.answers[0].detail


def test_values_are_the_nearest_that_a_relation_allows() -> None:
    """Of a bin the value nearest to the factual's, unless a relation asks for one beyond."""
    ages = []
    for seed in range(6):
        plain = toy(seed, Label("yes"))
        problem = replace(plain, space=replace(SPACE, constraints=("if age increases then 2 * age >= 12",)))
        for factual in undesired(plain, 4):
            row = ask(Scorecard(max_changes=None), problem, factual, 1).answers[0].row
            ages += [] if row is None or row["age"] == factual["age"].iloc[0] else [row["age"]]
    assert 6 in ages
    assert min(ages) == 6


def loan(age: str = "increase", constraint: str = "age >= debt + 1", space: Space | None = None) -> Problem:
    """Wanted is a debt from 4 to 5 at an age below 9; a loan, of which the card knows nothing, is there beside them."""
    space = space or Space(
        (
            Feature("age", "integer", scale=(0, 8), bounds=(0, 8), actionability=age),
            Feature("debt", "integer", scale=(0, 9), bounds=(0, 9)),
            Feature("loan", "integer", scale=(0, 9), bounds=(0, 9)),
        ),
        (constraint,),
    )
    bins = {
        "age": ((Bin("interval", high=2.0), Bin("interval", 2.0, 4.0), Bin("interval", 4.0)), (0.0, 0.0, 0.0)),
        "debt": ((Bin("interval", high=4.0), Bin("interval", 4.0, 6.0), Bin("interval", 6.0)), (0.0, 1.0, -1.0)),
    }
    variables = tuple(
        Variable(name, (*own, Bin("missing")), np.array([*values, 0.0]), 1.0, np.zeros(4))
        for name, (own, values) in bins.items()
    )
    estimator: Any = ScorecardClassifier()
    estimator.card_, estimator.classes_ = Card(variables, -0.5, True), np.array([0, 1])
    rows = space.frame([{"age": 8, "debt": debt, "loan": 0} for debt in (0, 4, 7)])
    classifier = Classifier(estimator, estimator.card_.inputs(space), ("no", "yes"))
    return Problem(space, classifier, rows, np.zeros(3), Label("yes"))


ASIDE = {
    "within its bin": ({"age": 4}, "age >= debt + 1", {"age": 5, "debt": 4, "loan": 0}),
    "to a bin that is alike": ({"age": 1}, "age >= debt + 1", {"age": 5, "debt": 4, "loan": 0}),
    "of a feature that the card does not use": ({"age": 0}, "loan >= debt", {"age": 0, "debt": 4, "loan": 4}),
}


@pytest.mark.parametrize("case", ASIDE)
def test_what_a_relation_needs_changes_at_the_same_score(case: str) -> None:
    """Debt has to be 4 at least, for half of its range of 2; another feature follows it, which is a change as any."""
    origin, constraint, row = ASIDE[case]
    problem = loan(constraint=constraint)
    factual = problem.space.frame([{"debt": 0, "loan": 0, **origin}])
    for method, expected in (
        (Scorecard({"proximity": 1}), 0.5),
        (Scorecard({"proximity": 1, "changes": 0.1}, max_changes=2), 0.7),
    ):
        found = ask(method, problem, factual, 1)
        (answer,) = found.answers
        assert (answer.status, answer.row) == (Status.OPTIMAL, row)
        assert answer.objective == pytest.approx(expected, abs=1e-6)
        claimed = method.objective(problem).evaluate(problem.space, factual, problem.space.frame([row]))
        assert answer.objective == pytest.approx(float(claimed[0]), abs=1e-9)
        assert {change["feature"] for change in found.trace} == {name for name in row if row[name] != factual[name][0]}
    found = ask(Scorecard({"proximity": 1}, max_changes=1), problem, factual, 1)
    assert found.answers[0].status is Status.INFEASIBLE
    assert {"max_changes=1", problem.space.constraints[0]} <= set(found.conflict)


def test_what_may_not_change_follows_no_other() -> None:
    problem = loan(age="immutable")
    factual = problem.space.frame([{"age": 4, "debt": 0, "loan": 0}])
    found = ask(Scorecard({"proximity": 1}), problem, factual, 1)
    assert found.answers[0].status is Status.INFEASIBLE
    assert "immutable age" in found.conflict


def test_changes_for_a_relation_are_no_diversity() -> None:
    """Two that differ in which features are moved: there is one move that is wanted, and another age is none."""
    problem = loan()
    factual = problem.space.frame([{"age": 4, "debt": 0, "loan": 0}])
    answers = ask(Scorecard({"proximity": 1}), problem, factual, 2).answers
    assert [answer.status for answer in answers] == [Status.OPTIMAL, Status.INFEASIBLE]


@pytest.mark.parametrize(("least", "expected"), [(97, Status.FOUND), (98, Status.GAVE_UP)])
def test_of_several_codes_of_one_bin_nothing_is_proven(least: int, expected: Status) -> None:
    """The nearest code of a bin is tried alone, so that another one may keep a relation that this one breaks."""
    feature = Feature("debt", "integer", scale=(0, 98), bounds=(0, 98))
    space = Space((feature,), (f"if debt increases then debt >= {least}",))
    bins = Bin("interval", high=90.0), Bin("interval", 90.0), Bin("special", members=(97, 98)), Bin("missing")
    variables = (Variable("debt", bins, np.array([0.0, 0.0, 1.0, 0.0]), 1.0, np.zeros(4)),)
    estimator: Any = ScorecardClassifier()
    estimator.card_, estimator.classes_ = Card(variables, -0.5, True), np.array([0, 1])
    rows = space.frame([{"debt": debt} for debt in (0, 50, 97)])
    classifier = Classifier(estimator, estimator.card_.inputs(space), ("no", "yes"))
    problem = Problem(space, classifier, rows, np.zeros(3), Label("yes"))
    factual, other = space.frame([{"debt": 50}]), space.frame([{"debt": 98}])
    assert problem.valid(other).all()
    assert not any(space.violations(factual, other))
    (answer,) = ask(Scorecard({"proximity": 1}, special=True), problem, factual, 1).answers
    assert answer.status is expected


def coded(code: int) -> Variable:
    """An income whose code has a bin of its own; wanted is less than 5."""
    bins = (Bin("interval", high=5.0), Bin("interval", 5.0), Bin("special", members=(code,)), Bin("missing"))
    return Variable("income", bins, np.array([1.0, -1.0, -1.0, 0.0]), 1.0, np.zeros(4))


def beside_a_code(code: int, income: Feature, age: Feature, relation: str, origin: int) -> Problem:
    """A card of ``coded``, whose first training row is a person with an income and an age of 1."""
    space = Space((income, age), (relation,))
    ages = Variable("age", (Bin("interval"), Bin("missing")), np.zeros(2), 1.0, np.zeros(2))
    model = ScorecardClassifier()
    model.card_, model.classes_ = Card((coded(code), ages), -0.6, True), np.array([0, 1])
    train = space.frame([{"income": number, "age": 1} for number in (origin, 0, 3, 7)])
    classifier = Classifier(model, model.card_.inputs(space), ("no", "yes"))
    return Problem(space, classifier, train, np.zeros(4), Label("yes"))


@pytest.mark.parametrize("engine", ["search", "milp"])
@pytest.mark.parametrize("kind", ["integer", "continuous"])
@pytest.mark.parametrize("code", [-1, 2, 4, 9])
def test_a_person_at_a_code_moves_to_the_numbers_beside_it(code: int, kind: str, engine: str) -> None:
    """The code lies within the wanted interval, [-1, 5), at its end or amid it, or beyond; it has a bin of its own."""
    income = Feature("income", kind, scale=(0, 9), bounds=(-1, 9))
    age = Feature("age", "integer", scale=(0, 9), bounds=(0, 9))
    problem = beside_a_code(code, income, age, "income <= age + 8", code)
    (answer,) = ask(
        Scorecard({"proximity": 1}, max_changes=1, engine=engine), problem, problem.train.iloc[[0]], 1
    ).answers
    assert answer.status is Status.OPTIMAL or (code == 2 and answer.status is Status.FOUND)  # of one side of it
    assert answer.row is not None
    assert problem.valid(problem.space.frame([answer.row]))[0]
    assert answer.row["income"] != code
    assert answer.reason is not Reason.TIME_LIMIT
    if code < 5:  # a whole number is at least 1 away, any other as near as numbers are
        assert abs(answer.row["income"] - code) <= (1.0 if kind == "integer" else 1e-6)


def test_numbers_on_both_sides_of_a_code_are_listed_but_for_who_stands_there() -> None:
    """Of the interval [-1, 5) the program has one side of the person's own code, so that it proves no absence."""
    for code, others, own in (
        (-1, (0, 4), (0, 4)),
        (2, (-1, 4), (3, 4)),
        (4, (-1, 3), (-1, 3)),
        (9, (-1, 4), (-1, 4)),
    ):
        space = Space((Feature("income", "integer", scale=(0, 9), bounds=(-1, 9)),))
        axis = _Axis(coded(code), space["income"], False, {})
        for value, ends, whole in ((7, others, True), (code, own, code != 2)):
            assert axis.lists(value) is whole
            assert axis.within(0, value, axis.options(value, axis.bin_of(value))[0][1]) == ends


@pytest.mark.parametrize(
    ("relation", "origin", "income"),
    [
        ("if income decreases then income <= 1", 7, 1),
        ("if income changes then income <= age", 9, 1),
        ("income <= age + 8", 7, 4),
        ("income >= age + 5", 7, None),
    ],
)
def test_a_code_amid_an_interval_hides_neither_of_its_sides(relation: str, origin: int, income: int | None) -> None:
    """Code 2 has a bin of its own; the wanted interval is [-1, 5), and who is asked about stands elsewhere."""
    number = Feature("income", "integer", scale=(0, 9), bounds=(-1, 9))
    age = Feature("age", "integer", scale=(0, 9), bounds=(1, 9), actionability="immutable")
    problem = beside_a_code(2, number, age, relation, origin)
    (answer,) = ask(Scorecard({"proximity": 1}, max_changes=None), problem, problem.train.iloc[[0]], 1).answers
    assert answer.status is (Status.INFEASIBLE if income is None else Status.OPTIMAL)
    assert (answer.row or {}).get("income") == income
