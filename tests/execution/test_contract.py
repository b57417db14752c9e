"""What breaks the contract of an explanation, and in which words; each breach is one change of a good answer."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from harness.core.explanation import Answer, Explanation, GroupExplanation, Status
from harness.core.method import refusal
from harness.core.problem import Problem
from harness.execution.contract import breach, group_breach
from harness.execution.messages import ExplainRequest

NOTHING = Answer(Status.GAVE_UP)


@pytest.fixture
def rows(problem: Problem) -> list[dict[str, Any]]:
    """Four rows; the first is the factual."""
    return problem.train.iloc[:4].to_dict("records")


def told(problem: Problem, *rows: dict[str, Any] | None, asked: int = 2) -> str | None:
    """What is wrong with these answers to the first row, of which so many were asked for."""
    answers = tuple(NOTHING if row is None else Answer(Status.FOUND, row) for row in rows)
    return breach(Explanation(answers), problem, ExplainRequest(problem.train.iloc[[0]], asked, (0,), 1.0))


def test_as_many_answers_as_asked_for(problem: Problem, rows: list[dict[str, Any]]) -> None:
    """Neither fewer nor more; those without a row count."""
    assert told(problem, rows[1], rows[2]) is None
    assert told(problem, rows[1], None) is None
    assert told(problem, None, None) is None
    assert told(problem, rows[1]) == "the method was asked for 2 answers and gave 1"
    assert told(problem, *rows[1:]) == "the method was asked for 2 answers and gave 3"


def test_every_row_has_the_columns_and_a_value_in_each(problem: Problem, rows: list[dict[str, Any]]) -> None:
    """Whichever answer it is, also after one without a row."""
    fewer = {name: value for name, value in rows[2].items() if name != "income"}
    for row, words in (
        (fewer, "a row without 'income'"),
        (rows[2] | {"wage": 1.0}, "a row with 'wage', which is no feature"),
        (rows[2] | {"income": float("nan")}, "missing values: income"),
        (rows[2] | {"city": None}, "missing values: city"),
    ):
        for first in (rows[1], None):
            assert words in (told(problem, first, row) or "")
            assert words in (told(problem, row, first) or "")


def test_values_that_no_file_holds_are_named(problem: Problem, rows: list[dict[str, Any]]) -> None:
    """Of a row and of a region; numbers of NumPy are fine."""
    fine = rows[1] | {"income": np.float32(3.0)}
    assert told(problem, fine, rows[2]) is None
    for value in (np.array([0.2]), np.datetime64("2020-01-01"), np.complex128(1)):
        odd_region = Answer(Status.FOUND, fine, region={"income": (0.0, value)})  # type: ignore[dict-item]
        odd_row = Answer(Status.FOUND, {**fine, "income": value}, region={"income": (0.0, 1.0)})
        for answer in (odd_region, odd_row):
            found = breach(Explanation((answer,)), problem, ExplainRequest(problem.train.iloc[[0]], 1, (0,), 1.0))
            assert found is not None
            assert "as income" in found


def test_what_is_no_number_is_named(problem: Problem, rows: list[dict[str, Any]]) -> None:
    """Of what is claimed; NumPy's are numbers, and so is an infinite bound of nothing proven."""
    asked = ExplainRequest(problem.train.iloc[[0]], 1, (0,), 1.0)
    for objective, bound, words in (
        ("0.3", None, "'0.3' as objective; give a number"),
        (0.3, True, "True as bound"),
        (None, [0.3], "[0.3] as bound"),
        (np.float32(0.3), np.int64(0), None),
        (0.3, -math.inf, None),
    ):
        answer = Answer(Status.FOUND, rows[1], objective=objective, bound=bound)  # type: ignore[arg-type]
        found = breach(Explanation((answer,)), problem, asked)
        assert found is None if words is None else words in (found or "")


@pytest.mark.parametrize("name", ["bound", "total_change", "total_change_bound"])
def test_what_is_claimed_of_a_group_is_a_number(problem: Problem, name: str) -> None:
    group = problem.train.iloc[:2].set_axis(range(2))
    for value, fine in ((np.int64(1), True), (None, True), ("1", False)):
        claimed: dict[str, Any] = {name: value}
        found = group_breach(GroupExplanation((), uncoverable=(0,), **claimed), problem, group)
        assert found is None if fine else f"'1' as {name}" in (found or "")


@pytest.mark.parametrize("odd", [{1, 2}, object(), pd.Timestamp("2020-01-01"), [b"x"]])
def test_what_cannot_be_stored_is_named(problem: Problem, rows: list[dict[str, Any]], odd: Any) -> None:
    """Beside the answers, too; plain values of NumPy are stored as Python's."""
    one, group = ExplainRequest(problem.train.iloc[[0]], 1, (0,), 1.0), problem.train.iloc[:2].set_axis(range(2))
    for value, fine in (
        (np.float64(0.5), True),
        (np.array(3.0), True),
        ({(1, 2): 3}, True),
        (odd, False),
        ({1: odd}, False),
    ):
        found = Explanation((NOTHING,), trace=({"seen": value},))
        several = GroupExplanation((), uncoverable=(0,), trace=({"seen": value},))
        for wrong in (breach(found, problem, one), group_breach(several, problem, group)):
            assert wrong is None if fine else "a trace that cannot be stored" in (wrong or "")
        wrong = breach(Explanation((NOTHING,), conflict=(value,)), problem, one)
        assert wrong is None if fine else "a conflict that cannot be stored" in (wrong or "")


def test_what_is_no_explanation_is_named(problem: Problem, rows: list[dict[str, Any]]) -> None:
    """A table, nothing, answers by themselves, or a row as pandas has it: what was returned, and what has to be."""
    answer = Answer(Status.FOUND, rows[1])
    for found, words in (
        (problem.train.iloc[:1], "explain returned a value of type DataFrame; return an Explanation"),
        (None, "explain returned None; return an Explanation"),
        ([answer], "a value of type list"),
        (Explanation((answer, rows[1])), "a value of type dict in its Explanation; return an Answer"),  # type: ignore[arg-type]
        (Explanation((answer, Answer(Status.FOUND, problem.train.iloc[1]))), "a value of type Series as the row"),
    ):
        wrong = breach(found, problem, ExplainRequest(problem.train.iloc[[0]], 2, (0,), 1.0))  # type: ignore[arg-type]
        assert wrong is not None
        assert words in wrong
    group = problem.train.iloc[:2]
    for several, words in (
        (None, "explain_group returned None; return a GroupExplanation"),
        (Explanation((answer,)), "explain_group returned a value of type Explanation; return a GroupExplanation"),
        (GroupExplanation((rows[1],)), "a value of type dict in its GroupExplanation; return an Answer"),  # type: ignore[arg-type]
    ):
        wrong = group_breach(several, problem, group)  # type: ignore[arg-type]
        assert wrong is not None
        assert words in wrong


@pytest.mark.parametrize(
    ("objective", "bound"),
    [(None, None), (1.0, None), (None, 1.0), (1.0, 1.0), (1.0, 0.9), (math.nan, math.nan), (1e9, 1e9 - 1.0)],
)
def test_a_proof_has_a_number(
    problem: Problem, rows: list[dict[str, Any]], objective: float | None, bound: float | None
) -> None:
    """An optimum of nothing is none: what is minimised, and that nothing is below it, to a millionth of it."""
    answer = Answer(Status.OPTIMAL, rows[1], objective=objective, bound=bound)
    found = breach(Explanation((answer,)), problem, ExplainRequest(problem.train.iloc[[0]], 1, (0,), 1.0))
    assert (found is None) == (objective is not None and bound in (1.0, 1e9 - 1.0))
    if found is not None:
        assert "OPTIMAL" in found


def test_nothing_is_proven_of_what_is_not_claimed(problem: Problem, rows: list[dict[str, Any]]) -> None:
    """Of a method whose objective is None; one that claims an objective may say all of it."""
    asked = ExplainRequest(problem.train.iloc[[0]], 1, (0,), 1.0)
    for answer, words in (
        (Answer(Status.OPTIMAL, rows[1], objective=0.0, bound=0.0), "the status OPTIMAL and objective 0.0 and bound"),
        (
            Answer(Status.FOUND, rows[1], objective=0.5),
            "objective 0.5, and its objective() returns None; return an Obj",
        ),
        (Answer(Status.GAVE_UP, bound=0.5), "an answer with bound 0.5"),
        (Answer(Status.FOUND, rows[1]), None),
        (NOTHING, None),
    ):
        assert breach(Explanation((answer,)), problem, asked) is None
        found = breach(Explanation((answer,)), problem, asked, claims=False)
        assert found is None if words is None else words in (found or "")


def test_a_status_may_be_its_name(problem: Problem, rows: list[dict[str, Any]]) -> None:
    answer = Answer("FOUND", rows[1])  # type: ignore[arg-type]
    assert answer.status is Status.FOUND
    with pytest.raises(ValueError, match="has the status 'found'; give one of Status: OPTIMAL, FOUND, INFEASIBLE"):
        Answer("found", rows[1])  # type: ignore[arg-type]


def test_the_factual_is_no_answer(problem: Problem, rows: list[dict[str, Any]]) -> None:
    """One feature apart is one."""
    words = "the method handed the factual back as an answer"
    assert told(problem, rows[0], rows[1]) == told(problem, rows[1], rows[0]) == words
    assert told(problem, rows[0] | {"income": rows[0]["income"] + 1.0}, rows[1]) is None


FIRST, SECOND = ("income",), ("city",)


@pytest.mark.parametrize(
    ("points", "assigned", "left", "changed", "words"),
    [
        ((1, 2), {0: 0, 1: 1, 2: 0}, (3,), (FIRST, SECOND), None),
        ((1, 2), {0: 0, 1: 1}, (), (FIRST, SECOND), None),  # somebody may be left open
        ((), {}, (0, 1, 2, 3), (), None),
        ((), {}, (), (), None),
        ((1,), {0: 0, 7: 0}, (), (FIRST,), "assigned ['7'], which are not in the group"),
        ((1,), {0: 0}, (7,), (FIRST,), "assigned ['7'], which are not in the group"),
        ((1,), {0: 0, 1: 0}, (1, 2), (FIRST,), "both explained ['1'] and called them uncoverable"),
        ((1, 2), {0: 0, 1: 0}, (), (FIRST, SECOND), "2 points, of which [1] have no factual"),
        ((1,), {0: 0, 1: 1}, (), (FIRST,), "1 points, of which [1] have no factual"),
        ((1,), {0: 0}, (), (), "1 points and changed features of 0"),
        ((1,), {0: 0.0}, (), (FIRST,), "assigned 0.0, which is no number of a point"),
        ((1,), {0: np.int64(0)}, (), (FIRST,), None),
        ((1,), {0: 0}, (), (FIRST, SECOND), "1 points and changed features of 2"),
        ((1, None), {0: 0, 1: 1}, (), (FIRST, SECOND), "a point without a row"),
        ((None, 1), {0: 0, 1: 1}, (), (FIRST, SECOND), "a point without a row"),
    ],
)
def test_a_group_is_accounted_for(
    problem: Problem,
    rows: list[dict[str, Any]],
    points: tuple[int | None, ...],
    assigned: dict[int, int],
    left: tuple[int, ...],
    changed: tuple[tuple[str, ...], ...],
    words: str | None,
) -> None:
    """Each point serves somebody of the group, nobody is both served and not; changes are told of each point."""
    factuals = problem.train.iloc[:4].set_axis(range(4))
    answers = tuple(NOTHING if place is None else Answer(Status.FOUND, rows[place]) for place in points)
    found = group_breach(GroupExplanation(answers, assigned, changed=changed, uncoverable=left), problem, factuals)
    assert found is None if words is None else words in (found or "")


def test_what_is_stored_of_a_point_is_plain(problem: Problem, rows: list[dict[str, Any]]) -> None:
    group = problem.train.iloc[:1].set_axis(range(1))
    for more in ({"region": {"income": {1, 2}}}, {"detail": ValueError("x")}):
        point = Answer(Status.FOUND, rows[1], **more)  # type: ignore[arg-type]
        found = group_breach(GroupExplanation((point,), {0: 0}, changed=(FIRST,)), problem, group)
        assert "which is no plain value" in (found or "")


def test_the_points_of_a_group_have_the_columns(problem: Problem, rows: list[dict[str, Any]]) -> None:
    factuals: pd.DataFrame = problem.train.iloc[:4].set_axis(range(4))
    answers = Answer(Status.FOUND, rows[1]), Answer(Status.FOUND, rows[2] | {"income": float("nan")})
    found = group_breach(GroupExplanation(answers, {0: 0, 1: 1}, changed=(FIRST, SECOND)), problem, factuals)
    assert found == "the method gave a row with missing values: income"


@pytest.mark.parametrize("found", [True, False, 0, ["no"]])
def test_a_refusal_is_a_sentence_or_none(found: Any, problem: Problem) -> None:
    method: Any = SimpleNamespace(refuses=lambda problem: found)
    with pytest.raises(TypeError, match=r"refuses returned .*; return a sentence that says why, or None"):
        refusal(method, problem)
    for fine in (None, "not for this model"):
        method.refuses = lambda problem, fine=fine: fine
        assert refusal(method, problem) == fine
