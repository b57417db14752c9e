"""The greedy cover of a group, by hand: eight points of three binary features, of which two ones are granted."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from harness.core.classifier import Classifier
from harness.core.explanation import Reason, Status
from harness.core.inputs import space_inputs
from harness.core.method import Deadline
from harness.core.problem import Problem
from harness.core.space import Feature, Space
from harness.core.target import Interval, Label
from methods.group_greedy import GroupGreedy

NAMES = ("a", "b", "c")
WEIGHTS = np.array([1.0, 2.0, 3.0])  # of the score: c raises it most, then b
PASSED = Deadline(-math.inf)


def problem(**actionability: str) -> Problem:
    """Granted where a + 2 b + 3 c is above 2.5: by c alone, or by a and b together."""
    space = Space(tuple(Feature(n, "binary", (0, 1), actionability=actionability.get(n, "free")) for n in NAMES))
    train = space.frame(dict(zip(NAMES, values, strict=True)) for values in product((0, 1), repeat=3))
    model = LogisticRegression().fit(space.encode(train), train["c"])
    model.coef_, model.intercept_ = WEIGHTS[None], np.array([-2.5])
    classifier = Classifier(model, space_inputs(space), ("no", "yes"))
    labels = np.where(classifier.predict(train) == "yes", "yes", "no").astype(object)
    return Problem(space, classifier, train, labels, Label("yes"))


def group(question: Problem, *rows: tuple[int, ...]) -> Any:
    return question.space.frame(dict(zip(NAMES, row, strict=True)) for row in rows)


def soon() -> Deadline:
    return Deadline.after(30)


def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def test_the_feature_that_raises_the_score_most_is_copied_first() -> None:
    """Of the nearest row of the class, and no further one than it takes: c alone."""
    question = problem()
    (answer,) = GroupGreedy().fit(question).explain(group(question, (0, 0, 0)), 1, rng(), soon()).answers
    assert (answer.status, answer.row) == (Status.FOUND, {"a": 0, "b": 0, "c": 1})


@pytest.mark.parametrize(("t_max", "row"), [(1, None), (2, {"a": 1, "b": 1, "c": 0})])
def test_no_more_features_change_than_allowed(t_max: int, row: dict[str, int] | None) -> None:
    """Where c may not change, it takes a and b."""
    question = problem(c="immutable")
    (answer,) = GroupGreedy(t_max).fit(question).explain(group(question, (0, 0, 0)), 1, rng(), soon()).answers
    assert answer.row == row
    if row is None:
        assert (answer.status, answer.reason) == (Status.GAVE_UP, Reason.FINISHED)


def test_out_of_time_is_said() -> None:
    question = problem()
    fitted, people = GroupGreedy().fit(question), group(question, (0, 0, 0))
    (late,) = fitted.explain(people, 1, rng(), PASSED).answers
    assert (late.row, late.status, late.reason) == (None, Status.GAVE_UP, Reason.TIME_LIMIT)
    assert fitted.explain_group(people, rng(), PASSED).points == ()


@pytest.mark.parametrize(("t_max", "sizes"), [(1, [2, 1, 1]), (2, [4])])
def test_one_point_serves_all_that_change_few_enough_together(t_max: int, sizes: list[int]) -> None:
    """(1, 1, 0) serves all by a and b; where only one of them may change, the first two share (0, 0, 1)."""
    question = problem()
    people = group(question, (0, 0, 0), (0, 0, 0), (1, 0, 0), (0, 1, 0))
    people.index = [10, 11, 12, 13]
    found = GroupGreedy(t_max).fit(question).explain_group(people, rng(), soon())
    assert sorted(found.assignment) == [10, 11, 12, 13]
    served = [[factual for factual, point in found.assignment.items() if point == k] for k in range(len(found.points))]
    assert [len(members) for members in served] == sizes
    assert served[0][:2] == [10, 11]
    for point, members, names in zip(found.points, served, found.changed, strict=True):
        assert point.row is not None
        assert point.status is Status.FOUND
        moved = {n for member in members for n in NAMES if people.loc[member, n] != point.row[n]}
        assert set(names) == moved
        assert len(moved) == t_max


def test_whom_nothing_serves_is_left_out() -> None:
    question = problem(a="immutable", b="immutable", c="immutable")
    found = GroupGreedy().fit(question).explain_group(group(question, (0, 0, 0)), rng(), soon())
    assert (found.points, dict(found.assignment)) == ((), {})


@pytest.mark.parametrize("wrong", [{"t_max": 0}, {"neighbours": 0}])
def test_a_wrong_number_is_named(wrong: dict[str, int]) -> None:
    ((name, _),) = wrong.items()
    with pytest.raises(ValueError, match=f"{name} is 0; give a whole number of at least 1"):
        GroupGreedy(**wrong)
    GroupGreedy(**{name: 1})


def test_a_number_is_no_class() -> None:
    question = problem()
    assert GroupGreedy().refuses(question) is None
    wanted = Problem(question.space, question.classifier, question.train, question.labels, Interval(0.0, 1.0))
    assert "follows the score of a class" in str(GroupGreedy().refuses(wanted))


def test_only_the_nearest_rows_are_tried() -> None:
    """The nearest of (0, 0, 0) is the one of c; with one neighbour there is no second answer."""
    question = problem()
    people = group(question, (0, 0, 0))
    one, many = (GroupGreedy(3, k).fit(question).explain(people, 3, rng(), soon()).answers for k in (1, 10))
    assert [answer.row is not None for answer in one] == [True, False, False]
    assert many[0] == one[0]
    assert many[1].row == {"a": 1, "b": 1, "c": 0}


def test_a_score_of_the_first_class_falls() -> None:
    """From (1, 1, 1) to (0, 1, 0) and (1, 0, 0): c is copied first, and from (0, 0, 0) no further than b."""
    question = replace(problem(), target=Label("no"))
    answers = GroupGreedy().fit(question).explain(group(question, (1, 1, 1)), 3, rng(), soon()).answers
    rows = [None if answer.row is None else tuple(answer.row.values()) for answer in answers]
    assert rows == [(0, 1, 0), (1, 0, 0), None]


def test_of_several_classes_the_wanted_ones_score_counts() -> None:
    """Of the classes "no", "maybe" (b) and "yes" (c): towards (0, 1, 1), where b and c tie, b is copied alone."""
    question = problem()
    model = LogisticRegression().fit(question.space.encode(question.train), [0, 1, 2, 0, 1, 2, 0, 1])
    model.coef_, model.intercept_ = np.array([[0.0, 0, 0], [0, 2, 0], [0, 0, 2]]), np.array([0.0, -1, -1])
    three = replace(question, classifier=Classifier(model, space_inputs(question.space), ("no", "maybe", "yes")))
    for wanted, row in (("maybe", (0, 1, 0)), ("yes", (0, 0, 1))):
        asked = replace(three, target=Label(wanted), train=group(question, (0, 1, 1), row))
        answers = GroupGreedy().fit(asked).explain(group(question, (0, 0, 0)), 2, rng(), soon()).answers
        assert [answer.row for answer in answers] == [dict(zip(NAMES, row, strict=True)), None]


def test_what_may_not_change_is_not_copied() -> None:
    """Of the only row of the class all three differ: where c may not change, b and a do."""
    question = problem(c="immutable")
    question = replace(question, train=group(question, (0, 0, 0), (1, 1, 1)), labels=np.array(["no", "yes"], object))
    (answer,) = GroupGreedy().fit(question).explain(group(question, (0, 0, 0)), 1, rng(), soon()).answers
    assert answer.row == {"a": 1, "b": 1, "c": 0}


def test_some_of_a_group_may_be_left_out() -> None:
    """One change, and not of c: it serves (1, 0, 0) and (0, 1, 0) alone."""
    question = problem(c="immutable")
    people = group(question, (0, 0, 0), (1, 0, 0), (0, 1, 0))
    found = GroupGreedy(1).fit(question).explain_group(people, rng(), soon())
    assert sorted(found.assignment) == [1, 2]
    assert [point.row for point in found.points] == [{"a": 1, "b": 1, "c": 0}] * len(found.points)


def coded(first: float, second: float, **actionability: str) -> tuple[Any, Problem]:
    """Two people who differ in a number of which -9 is a code, and what they ask: b alone decides."""
    space = Space(
        (
            Feature("a", "continuous", scale=(-20, 10), bounds=(0, 10), special=(-9,), **actionability),
            Feature("b", "integer", scale=(0, 10), bounds=(0, 10)),
        )
    )
    train = space.frame({"a": a, "b": b} for a in (-9.0, -20.0, 1.0, first, second) for b in (3, 8))
    model = LogisticRegression().fit(space.encode(train), train["b"] > 5)
    classifier = Classifier(model, space_inputs(space), ("no", "yes"))
    people = space.frame([{"a": first, "b": 3}, {"a": second, "b": 3}])
    return people, Problem(space, classifier, train, classifier.predict(train), Label("yes"))


def test_nobody_is_given_a_code() -> None:
    """A point made of one person who has it serves nobody who has another number."""
    people, question = coded(-9.0, -20.0)
    found = GroupGreedy(2).fit(question).explain_group(people, rng(), soon())
    assert sorted(found.assignment) == [0, 1]
    points = question.space.frame([found.points[found.assignment[i]].row for i in (0, 1)])
    for place in (0, 1):
        assert not question.space.violations(people.iloc[[place]], points.iloc[[place]])[0]


def test_changes_are_counted_to_the_last_bit() -> None:
    """As the checker does: who differs by rounding in one number shares no point within one change."""
    people, question = coded(0.3, 0.1 + 0.2, actionability="immutable")
    found = GroupGreedy(1).fit(question).explain_group(people, rng(), soon())
    assert found.changed == (("b",), ("b",))
    rows = people.to_dict("records")
    assert all(found.points[found.assignment[i]].row["a"] == rows[i]["a"] for i in (0, 1))


@pytest.mark.parametrize("t_max", [1, 2, 3])
@pytest.mark.parametrize("seed", range(4))
def test_a_cover_keeps_to_the_limit(t_max: int, seed: int) -> None:
    """Of groups of five features: whoever a point serves changes what is stated and may change, and the first point
    serves at least as many as any other point with the changes of one person."""
    names, draws = "abcde", np.random.default_rng(seed)
    space = Space(tuple(Feature(n, "binary", (0, 1), actionability="immutable" if n == "e" else "free") for n in names))
    train = space.frame(dict(zip(names, values, strict=True)) for values in product((0, 1), repeat=5))
    model = LogisticRegression().fit(space.encode(train), train["a"])
    model.coef_, model.intercept_ = draws.uniform(0.5, 2, (1, 5)), np.array([-3.0])
    classifier = Classifier(model, space_inputs(space), ("no", "yes"))
    labels = classifier.predict(train)
    question = Problem(space, classifier, train, labels, Label("yes"))
    people = train.loc[labels == "no"].sample(7, random_state=seed)
    fitted = GroupGreedy(t_max).fit(question)
    found = fitted.explain_group(people, rng(), soon())
    sizes = []
    for place, (point, changed) in enumerate(zip(found.points, found.changed, strict=True)):
        assert point.row is not None
        assert question.valid(space.frame([point.row]))[0]
        members = [index for index, number in found.assignment.items() if number == place]
        moved = {n for index in members for n in names if people.loc[index, n] != point.row[n]}
        assert moved == set(changed)
        assert "e" not in moved
        assert len(moved) <= t_max
        sizes.append(len(members))
    alone = [fitted.explain(people.loc[[index]], 10, rng(), soon()).answers for index in people.index]
    offered = [answer.row for answers in alone for answer in answers if answer.row is not None]
    reach = {i: [row for row in offered if {n for n in names if people.loc[i, n] != row[n]} <= set("abcd")
                 and sum(people.loc[i, n] != row[n] for n in names) <= t_max] for i in people.index}  # fmt: skip
    assert sorted(found.assignment) == sorted(index for index, rows in reach.items() if rows)
    for row in offered:
        for one in people.index:
            moved = {n for n in names if people.loc[one, n] != row[n]}
            same = [i for i in people.index if {n for n in names if people.loc[i, n] != row[n]} <= moved]
            if len(moved) <= t_max and "e" not in moved:
                assert sizes[0] >= len(same)


def test_it_draws_nothing_and_says_so() -> None:
    question = problem()
    assert GroupGreedy.deterministic
    (answer,) = GroupGreedy().fit(question).explain(group(question, (0, 0, 0)), 1, None, soon()).answers  # type: ignore[arg-type]
    assert answer.row is not None
