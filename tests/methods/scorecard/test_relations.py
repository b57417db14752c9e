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

from harness.core.explanation import Status
from harness.core.problem import Problem
from harness.core.target import Label
from methods.scorecard import Scorecard

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


def related(problem: Problem, factual: pd.DataFrame, names: tuple[str, ...], listed: Enumeration) -> np.ndarray:
    """Which of the listed bins hold values, all of them tried, that keep relations; who keeps a bin keeps its value."""
    origin, card = factual.iloc[0].to_dict(), problem.classifier.estimator.card_
    own = card.bins(factual)[0]
    choices = []
    for name, place, variable in zip(VALUES, own, card.variables, strict=True):
        others = [value for value in VALUES[name] if variable.bin_of(value) != place]
        choices.append([origin[name], *others])
    rows = SPACE.frame([dict(zip(VALUES, row, strict=True)) for row in product(*choices)])
    kept = [not faults for faults in SPACE.violations(factual, rows)]
    rules = [RELATED[name][1] for name in names]
    kept &= np.array([all(rule(row, origin) for rule in rules) for row in rows.to_dict("records")])
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
            kept = related(plain, factual, names, listed)
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
