"""One direction for a group, against every direction that was drawn and every step along it, one by one."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.tree import DecisionTreeClassifier
from support.smooth import SPACE, problem, refused

from harness.core.classifier import Classifier
from harness.core.explanation import Reason, Status
from harness.core.inputs import space_inputs
from harness.core.method import Deadline
from harness.core.problem import Problem
from harness.core.target import Label
from methods.globe_ce import GlobeCe

FREE = {"a": "free", "b": "free", "c": "free"}


def soon() -> Deadline:
    return Deadline.after(30)


def rng() -> np.random.Generator:
    return np.random.default_rng(5)


def along(question: Problem, factual: pd.DataFrame, direction: np.ndarray, steps: int) -> tuple[int, Any]:
    """The first step at which a person is served, ``steps`` for none, and the row; by hand."""
    low, high = question.space.reach(factual)
    (origin,) = question.space.encode(factual)
    for step in range(steps):
        point = np.clip(origin + (step + 1) / steps * direction, np.minimum(low, origin), np.maximum(high, origin))
        frame = question.space.decode(point, like=factual)
        if question.valid(frame)[0] and not question.space.violations(factual, frame)[0]:
            return step, frame.to_dict("records")[0]
    return steps, None


@pytest.mark.parametrize("changes", [{}, {"a": "increase"}, {"b": "immutable", "c": "immutable"}], ids=str)
@pytest.mark.parametrize("cost", [0.8, 3.0])
@pytest.mark.parametrize("wanted", ["yes", "no"])
def test_the_direction_serves_most_and_each_goes_no_further_than_needed(
    wanted: str, cost: float, changes: dict[str, str]
) -> None:
    """With a cost of 3 several directions serve as many; a relation between features holds."""
    question = problem("relu", wanted)
    kinds = {name: {"actionability": kind} for name, kind in {**FREE, **changes}.items()}
    space = replace(SPACE.replace(kinds), constraints=("at most 2 of [a, b, c] change",))
    question = replace(question, space=space)
    method, people = GlobeCe(draws=12, cost=cost, scalings=8), refused(question).iloc[:6]
    found = method.fit(question).explain_group(people, rng(), soon())
    directions = method.directions(question.space, rng())
    np.testing.assert_allclose(np.abs(directions).sum(axis=1), cost)
    whole = [[along(question, people.iloc[[i]], d, 1)[1] is not None for i in range(6)] for d in directions]
    most = max(map(sum, whole))
    steps = {
        place: [along(question, people.iloc[[i]], directions[place], 8) for i in range(6)]
        for place in range(12)
        if sum(whole[place]) == most
    }
    best = min(steps, key=lambda place: sum(step for step, _ in steps[place]))
    expected = {i: row for i, (_, row) in zip(people.index, steps[best], strict=True) if row is not None}
    assert {i: found.points[place].row for i, place in found.assignment.items()} == expected
    assert len(expected) >= most > 0
    assert list(found.trace[0]["direction"].values()) == directions[best].tolist()
    for place, names in enumerate(found.changed):
        members = [i for i, point in found.assignment.items() if point == place]
        row = found.points[place].row
        assert row is not None
        assert set(names) == {name for i in members for name in SPACE.names if row[name] != people.loc[i, name]}
        assert not set(names) & {name for name, kind in changes.items() if kind == "immutable"}
    assert found.total_change == sum(
        row[name] != people.loc[i, name] for i, row in expected.items() for name in SPACE.names
    )


def test_directions_lead_where_somebody_may_go() -> None:
    """None along what is immutable, one way along what may only rise or fall; the power favours few columns."""
    kinds = {"a": "increase", "b": "decrease", "c": "immutable"}
    space = SPACE.replace({name: {"actionability": kind} for name, kind in kinds.items()})
    drawn = GlobeCe(draws=50).directions(space, rng())
    assert (drawn[:, 0] >= 0).all()
    assert (drawn[:, 1] <= 0).all()
    assert not drawn[:, 2:].any()
    shares = [np.abs(GlobeCe(power=p).directions(SPACE, rng())).max(axis=1).mean() for p in (1.0, 4.0)]
    assert shares[1] > shares[0] + 0.3
    nowhere = SPACE.replace({name: {"actionability": "immutable"} for name in FREE})
    assert not GlobeCe().directions(nowhere, rng()).any()


def test_the_same_point_serves_who_has_it() -> None:
    """Two people who differ in nothing share one; a person alone is a group of one."""
    question, method = problem("lr"), GlobeCe(draws=20)
    one = refused(question).iloc[[0]]
    pair = pd.concat([one, one]).set_axis([3, 4])
    found = method.fit(question).explain_group(pair, rng(), soon())
    assert (len(found.points), dict(found.assignment)) == (1, {3: 0, 4: 0})
    alone = method.fit(question).explain(one, 2, rng(), soon()).answers
    assert [answer.status for answer in alone] == [Status.FOUND, Status.GAVE_UP]
    assert alone[0].row == found.points[0].row


def test_any_classifier_is_taken_and_who_cannot_be_served_is_left_out() -> None:
    """A tree that asks for an a above 5: with a free it is reached, within bounds of 4 it is not."""
    question = problem("lr")
    tree = DecisionTreeClassifier(max_depth=1).fit(SPACE.encode(question.train), question.train["a"] > 5)
    wooden = replace(question, classifier=Classifier(tree, space_inputs(SPACE), ("no", "yes")), target=Label("yes"))
    people = wooden.train.loc[wooden.train["a"] < 3].iloc[:4]
    for bounds, size in (((0, 10), 4), ((0, 4), 0)):
        space = SPACE.replace({"a": {"bounds": bounds}})
        found = GlobeCe(draws=50).fit(replace(wooden, space=space)).explain_group(people, rng(), soon())
        assert len(found.assignment) == size
    assert GlobeCe().refuses(wooden) is None


def test_out_of_time_is_said() -> None:
    question = problem("lr")
    fitted, people = GlobeCe().fit(question), refused(question).iloc[:2]
    (late,) = fitted.explain(people.iloc[[0]], 1, rng(), Deadline(-math.inf)).answers
    assert (late.row, late.status, late.reason) == (None, Status.GAVE_UP, Reason.TIME_LIMIT)
    assert fitted.explain_group(people, rng(), Deadline(-math.inf)).points == ()
    assert fitted.explain_group(people.iloc[:0], rng(), soon()).status is Status.OPTIMAL


@pytest.mark.parametrize("wrong", [{"draws": 0}, {"scalings": 0}, {"cost": 0.0}, {"cost": math.inf}, {"power": -1.0}])
def test_a_wrong_number_is_named(wrong: dict[str, Any]) -> None:
    ((name, value),) = wrong.items()
    with pytest.raises(ValueError, match=f"{name} is {value}"):
        GlobeCe(**wrong)
