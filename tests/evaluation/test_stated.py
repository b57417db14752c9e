"""What is stored with a run and does not follow from its answers, where a file of it cannot show it."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.tables import GRANTED, TIMING, started

from harness.core.explanation import Answer, GroupExplanation, Reason, Status
from harness.evaluation.stated import _closed, _mistold
from harness.store.rows import group_line
from metrics import _example as loans

VAIN = "1 answers are said to be optimal, and their bounds do not say so"


@pytest.mark.parametrize(
    ("objective", "bound", "closed"),
    [(None, None, True), (1.0, None, False), (None, 1.0, False), (1.0, 1.0, True), (1.0, 0.9, False), (1.0, 1.1, True)],
)
def test_an_optimum_is_no_more_than_its_bound(objective: float | None, bound: float | None, closed: bool) -> None:
    """An answer that states neither claims nothing of them."""
    assert _closed({"objective": objective, "bound": bound}) == closed


@pytest.mark.parametrize("grouped", [False, True])
def test_a_groups_optimum_is_of_its_number_of_points(grouped: bool, tmp_path: Path) -> None:
    """Which is the group's own bound: its people's answers have a distance, and no bound of it."""
    run = started(tmp_path, loans.problem, loans.factual, [Answer(Status.OPTIMAL, GRANTED, Reason.PROOF, 0.5)])
    if grouped:
        explained = GroupExplanation((Answer(Status.FOUND, GRANTED),), changed=(("income",),), bound=1.0)
        run.append_group(group_line("g", (0,), explained, status="OPTIMAL", seconds=1.0, fit_seconds=0.1, late=False))
    assert (VAIN in _mistold(run)) != grouped


def test_an_answer_at_its_limit_is_in_time(tmp_path: Path) -> None:
    run = started(tmp_path, loans.problem, loans.factual, [GRANTED], time_limit=TIMING["seconds"])
    assert [said for said in _mistold(run) if "late" in said] == []


@pytest.mark.parametrize("seconds", [float("inf"), -1.0])
def test_seconds_without_end_are_none(seconds: float, tmp_path: Path) -> None:
    run = started(tmp_path, loans.problem, loans.factual, [GRANTED])
    run.append([run.rows()[0] | {"fit_seconds": seconds}])
    assert "1 questions took no time that there is" in _mistold(run)
