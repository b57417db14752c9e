"""What is stored with a run and does not follow from its answers, where a file of it cannot show it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from support.tables import GRANTED, TIMING, started

from harness.core.explanation import Answer, GroupExplanation, Reason, Status, closed
from harness.core.wording import SATISFIED
from harness.evaluation.stated import _mistold
from harness.store.rows import group_line
from metrics import _example as loans

VAIN = "1 answers are said to be optimal, and their bounds do not say so"
UNGROUPED = "its people were asked as a group and it has no groups, or the other way round"


@pytest.mark.parametrize(
    ("objective", "bound", "proven"),
    [
        (None, None, False),
        (1.0, None, False),
        (None, 1.0, False),
        (1.0, 1.0, True),
        (1.0, 0.9, False),
        (1.0, 1.1, True),
    ],
)
def test_an_optimum_is_no_more_than_its_bound(objective: float | None, bound: float | None, proven: bool) -> None:
    """Who states neither would be optimal by saying so."""
    assert closed(objective, bound) == proven


def test_a_gap_of_a_millionth_is_none_however_it_is_rounded() -> None:
    """Half of these differences come out above a millionth of the value, by digits that nobody computes exactly."""
    values = np.random.default_rng(0).uniform(1, 9, 1000).tolist()
    assert 100 < sum(value - (value - 1e-6 * value) > 1e-6 * value for value in values) < 900
    assert all(closed(value, value - 1e-6 * value) for value in values)
    assert not any(closed(value, value - 1.0001e-6 * value) for value in values)


@pytest.mark.parametrize("grouped", [False, True])
def test_a_groups_optimum_is_of_its_number_of_points(grouped: bool, tmp_path: Path) -> None:
    """Which is the group's own bound: its people's answers have a distance, and no bound of it."""
    answer = Answer(Status.OPTIMAL, GRANTED, Reason.PROOF, 0.5)
    run = started(tmp_path, loans.problem, loans.factual, [answer], group=grouped)
    if grouped:
        explained = GroupExplanation((Answer(Status.FOUND, GRANTED),), changed=(("income",),), bound=1.0)
        run.append_group(group_line("g", (0,), explained, status="OPTIMAL", seconds=1.0, fit_seconds=0.1, late=False))
    assert (VAIN in _mistold(run)) != grouped
    assert UNGROUPED not in _mistold(run)


@pytest.mark.parametrize("asked", [False, True])
def test_people_have_groups_where_they_were_asked_as_one(asked: bool, tmp_path: Path) -> None:
    """Else a line of a group would take the proofs of its people out of all that is looked at."""
    run = started(tmp_path, loans.problem, loans.factual, [GRANTED], group=asked)
    if not asked:
        explained = GroupExplanation((Answer(Status.FOUND, GRANTED),), changed=(("income",),), bound=1.0)
        run.append_group(group_line("g", (0,), explained, status="OPTIMAL", seconds=1.0, fit_seconds=0.1, late=False))
    assert UNGROUPED in _mistold(run)


def test_who_has_what_is_wanted_is_in_no_group(tmp_path: Path) -> None:
    """A group of people who have it all, or one that was stopped before its answer, has no line."""
    run = started(tmp_path, loans.problem, loans.factual, [None], group=True)
    row = run.rows()[0] | {"status": "UNSUPPORTED", "detail": SATISFIED}
    (run.path / "rows.jsonl").write_text("")
    run.append([row])
    assert UNGROUPED not in _mistold(run)


@pytest.mark.parametrize(("number", "odd"), [(1, False), (2, True), (0, True)])
def test_answers_are_numbered(number: int, odd: bool, tmp_path: Path) -> None:
    """A second answer proves nothing of all points; where it is the only one nobody would look at what it claims."""
    run = started(tmp_path, loans.problem, loans.factual, [GRANTED])
    (row,) = run.rows()
    (run.path / "rows.jsonl").write_text("")
    run.append([row | {"ce": number}])
    assert ("answers to 1 questions are not numbered from 1 to 1" in _mistold(run)) == odd


def test_an_answer_at_its_limit_is_in_time(tmp_path: Path) -> None:
    run = started(tmp_path, loans.problem, loans.factual, [GRANTED], time_limit=TIMING["seconds"])
    assert [said for said in _mistold(run) if "late" in said] == []


@pytest.mark.parametrize("seconds", [float("inf"), -1.0])
def test_seconds_without_end_are_none(seconds: float, tmp_path: Path) -> None:
    run = started(tmp_path, loans.problem, loans.factual, [GRANTED])
    run.append([run.rows()[0] | {"fit_seconds": seconds}])
    assert "1 questions took no time that there is" in _mistold(run)
