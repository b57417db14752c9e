"""The nearest unlike neighbour, against distances worked out by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.tree import DecisionTreeClassifier

from harness.core.classifier import Classifier
from harness.core.explanation import Answer, Reason, Status
from harness.core.inputs import space_inputs
from harness.core.method import Deadline
from harness.core.problem import Problem
from harness.core.space import Feature, Space
from harness.core.target import Label
from methods.nearest import Nearest

SPACE = Space(
    (
        Feature("income", "continuous", scale=(0, 100), bounds=(0, 100)),
        Feature("age", "integer", scale=(20, 60), bounds=(18, 90), actionability="increase"),
        Feature("job", "categorical", ("none", "clerk", "nurse")),
        Feature("sex", "binary", ("f", "m"), actionability="immutable"),
        Feature("grade", "ordinal", ("a", "b", "c", "d"), actionability="conditional", order=("a", "d")),
    )
)
FACTUAL = (40.0, 40, "clerk", "f", "a")
# Granted above an income of 50. Scaled distances from the factual, in sum (Gower: a fifth), and features changed:
WANTED = {
    "far": (100.0, 40, "clerk", "f", "a"),  # 0.6, one feature
    "near": (60.0, 44, "clerk", "f", "a"),  # 0.2 + 0.1, two features
    "middle": (55.0, 52, "clerk", "f", "a"),  # 0.15 + 0.3, two features
    "other sex": (56.0, 40, "clerk", "m", "a"),  # may not change
    "younger": (56.0, 39, "clerk", "f", "a"),  # may not fall
    "between": (57.0, 40, "clerk", "f", "b"),  # a grade that the order leaves out
}
REFUSED = [(0.0, 30, "none", "m", "b"), (20.0, 50, "nurse", "f", "c"), (41.0, 40, "clerk", "f", "a")]


def rows(*values: tuple[Any, ...]) -> pd.DataFrame:
    return SPACE.frame(dict(zip(SPACE.names, row, strict=True)) for row in values)


def problem() -> Problem:
    """Rows of both classes, each wanted one twice."""
    train = rows(*REFUSED, *WANTED.values(), *WANTED.values())
    granted = (train["income"] > 50).to_numpy()
    tree = DecisionTreeClassifier(max_depth=1).fit(SPACE.encode(train), granted)
    classifier = Classifier(tree, space_inputs(SPACE), ("no", "yes"))
    return Problem(SPACE, classifier, train, np.where(granted, "yes", "no").astype(object), Label("yes"))


def ask(distance: str, n: int, *constraints: str) -> tuple[Answer, ...]:
    posed = replace(problem(), space=replace(SPACE, constraints=constraints))
    fitted = Nearest(distance).fit(posed)
    return fitted.explain(rows(FACTUAL), n, np.random.default_rng(0), Deadline.after(10)).answers


def test_rows_are_near_by_costs_of_their_own() -> None:
    """A year costs four times its share of the range: the row 60 away in money alone is nearest."""
    posed = replace(problem(), space=SPACE.replace({"age": {"weight": 4}}))
    answers = Nearest("l1").fit(posed).explain(rows(FACTUAL), 3, np.random.default_rng(0), Deadline.after(10)).answers
    assert [answer.row for answer in answers] == [
        dict(zip(SPACE.names, WANTED[name], strict=True)) for name in ("far", "near", "middle")
    ]
    assert [answer.objective for answer in answers] == pytest.approx([0.6, 0.2 + 4 * 0.1, 0.15 + 4 * 0.3])


@pytest.mark.parametrize(
    ("distance", "names", "values"),
    [
        ("gower", ["near", "middle", "far"], [0.06, 0.09, 0.12]),
        ("l1", ["near", "middle", "far"], [0.3, 0.45, 0.6]),
        ("l0", ["far", "near", "middle"], [1.0, 2.0, 2.0]),
    ],
)
def test_rows_come_by_distance(distance: str, names: list[str], values: list[float]) -> None:
    """The nearest first, each once, of equally near ones the first of the data; what may not change, does not."""
    found = ask(distance, 3)
    assert [answer.row for answer in found] == rows(*(WANTED[name] for name in names)).to_dict("records")
    assert [answer.objective for answer in found] == pytest.approx(values)
    assert {answer.status for answer in found} == {Status.FOUND}
    assert ask(distance, 1) == found[:1]


def test_rows_that_break_a_relation_are_no_answers() -> None:
    """The relations leave the row of an income of 100, at the age of 40."""
    found = ask("gower", 1, "if income increases then age stays", "at most 2 of [income, age, job] change")
    assert found[0].row == rows(WANTED["far"]).to_dict("records")[0]


def test_what_is_not_found_is_given_up() -> None:
    """Three rows may be reached: a fourth answer has no row, and a reason."""
    *found, last = ask("gower", 4)
    assert all(answer.row is not None for answer in found)
    assert (last.row, last.status, last.reason) == (None, Status.GAVE_UP, Reason.FINISHED)
    assert last.detail == "no further training row that the method may give is within the constraints"
    (none,) = ask("gower", 1, "income stays")
    assert none.detail == "no training row that the method may give is within the constraints"


def test_an_unknown_distance_is_named() -> None:
    with pytest.raises(ValueError, match="distance is 'l2'; allowed: gower, l1, l0"):
        Nearest("l2")


def test_a_special_code_may_be_kept_and_not_entered() -> None:
    """A factual with the code has rows with it and without it to go to; one without it has only the latter."""
    space = Space((Feature("income", "continuous", scale=(0, 100)), Feature("delay", "integer", scale=(0, 10),
                   bounds=(0, 10), special=(-1,))))  # fmt: skip
    train = space.frame(dict(zip(space.names, row, strict=True)) for row in [(0.0, 5), (60.0, -1), (90.0, 5)])
    tree = DecisionTreeClassifier(max_depth=1).fit(space.encode(train)[:, :1], [0, 1, 1])
    classifier = Classifier(tree, space_inputs(space)[:1], ("no", "yes"))
    asked = Problem(space, classifier, train, np.array(["no", "yes", "yes"], dtype=object), Label("yes"))

    def incomes(delay: int) -> list[float]:
        factual = space.frame([{"income": 10.0, "delay": delay}])
        answers = Nearest().fit(asked).explain(factual, 2, np.random.default_rng(0), Deadline.after(10)).answers
        return [answer.row["income"] for answer in answers if answer.row is not None]

    assert incomes(-1) == [60.0, 90.0]
    assert incomes(5) == [90.0]


def test_a_code_within_open_bounds_is_not_entered() -> None:
    """Rows are passed over until one is reachable; those that are the factual's own in all else are reached."""
    space = Space((Feature("income", "continuous", scale=(0, 100)), Feature("delay", "integer", scale=(0, 10),
                   bounds=(-5, np.inf), special=(7,))))  # fmt: skip
    train = space.frame({"income": income, "delay": delay} for income, delay in [(0, 5), (60, 7), (70, 5), (80, -5)])
    tree = DecisionTreeClassifier(max_depth=1).fit(space.encode(train)[:, :1], [0, 1, 1, 1])
    classifier = Classifier(tree, space_inputs(space)[:1], ("no", "yes"))
    asked = Problem(space, classifier, train, np.array(["no", "yes", "yes", "yes"], dtype=object), Label("yes"))
    factual = space.frame([{"income": 10.0, "delay": 5}])
    first, second, third = Nearest().fit(asked).explain(factual, 3, np.random.default_rng(0), Deadline.after(9)).answers
    assert (first.row, second.row) == ({"income": 70.0, "delay": 5}, {"income": 80.0, "delay": -5})
    assert third.row is None


def test_it_draws_nothing_and_says_so() -> None:
    assert Nearest.deterministic
    (answer,) = Nearest().fit(problem()).explain(rows(FACTUAL), 1, None, Deadline.after(10)).answers  # type: ignore[arg-type]
    assert answer.row is not None


def test_a_search_of_rows_that_all_break_something_ends_with_its_limit() -> None:
    """And is no search to the end."""
    base = problem()
    space = replace(SPACE, constraints=("income <= age",))
    train = rows(*[(60.0 + k / 100, 41, "clerk", "f", "a") for k in range(2000)])
    asked = Problem(space, base.classifier, train, np.array(["granted"] * 2000, dtype=object), base.target)
    explainer = Nearest().fit(asked)
    (late,) = explainer.explain(rows(FACTUAL), 1, np.random.default_rng(0), Deadline.after(0.0)).answers
    (whole,) = explainer.explain(rows(FACTUAL), 1, np.random.default_rng(0), Deadline.after(30.0)).answers
    assert (late.reason, whole.reason) == (Reason.TIME_LIMIT, Reason.FINISHED)
