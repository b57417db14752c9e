"""The checker recomputes everything from what is stored, and believes no claim."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harness import check
from harness.core.explanation import Status
from harness.core.method import Deadline
from harness.core.problem import Problem
from harness.core.space import Feature
from harness.evaluation import checker
from harness.store.rows import answer_row
from harness.store.run import StoredRun
from methods.nearest import Nearest

Change = Callable[[dict[str, Any]], None]


@pytest.fixture(params=["lr", "ridge"])
def problem(problem_of: Callable[[str], Problem], request: pytest.FixtureRequest) -> Problem:
    """The small problem with a class and with an interval of numbers as its target."""
    return problem_of(request.param)


@pytest.fixture
def cell(problem: Problem, tmp_path: Path) -> StoredRun:
    """Honest answers of the nearest neighbour to four factuals, two each."""
    method = Nearest()
    cell = StoredRun(tmp_path / "answers" / "toy-lr-nearest")
    factuals = problem.train.loc[~problem.valid(problem.train)].iloc[:4]
    meta = {"dataset": "toy", "model": "lr", "method": "nearest", "n_counterfactuals": 2}
    targets = dict.fromkeys(factuals.index, problem.target)
    cell.start(meta, problem.space, problem.classifier, targets, method.objective(problem), factuals)
    explainer, timing = method.fit(problem), {"seconds": 0.1, "fit_seconds": 0.1, "late": False}
    for index in factuals.index:
        explained = explainer.explain(factuals.loc[[index]], 2, np.random.default_rng(0), Deadline.after(9))
        cell.append(answer_row(index, number + 1, answer, **timing) for number, answer in enumerate(explained.answers))
    return cell


def tamper(cell: StoredRun, change: Change) -> tuple[Any, int]:
    """Change the first stored row that holds a counterfactual, and say which it was."""
    lines = cell.rows()
    row = next(row for row in lines if row["row"] is not None)
    change(row)
    (cell.path / "rows.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return row["factual"], row["ce"]


def verdict_of(cell: StoredRun, change: Change) -> dict[str, Any]:
    which = tamper(cell, change)
    return next(v for v in checker.verdicts(cell) if (v["factual"], v["ce"]) == which)


def test_honest_answers_are_valid(cell: StoredRun) -> None:
    """A verdict a row; ``none`` where there is no counterfactual; the objective is the claimed one."""
    verdicts, rows = checker.verdicts(cell), cell.rows()
    assert [(v["factual"], v["ce"]) for v in verdicts] == [(row["factual"], row["ce"]) for row in rows]
    assert {v["verdict"] for v in verdicts} <= {"accepted", "none"}
    for verdict, row in zip(verdicts, rows, strict=True):
        assert (verdict["verdict"] == "none") == (row["row"] is None)
        if row["row"] is not None:
            assert verdict["objective"] == pytest.approx(row["objective"], abs=1e-12)
    assert any(v["verdict"] == "accepted" for v in verdicts)


def test_the_wrong_class_is_invalid(cell: StoredRun) -> None:
    """The stored model is asked, not the status."""
    frame, _ = cell.factuals()

    def change(row: dict[str, Any]) -> None:
        row["row"] = frame.loc[[row["factual"]]].astype(object).to_dict("records")[0]

    verdict = verdict_of(cell, change)
    assert (verdict["verdict"], verdict["valid"]) == ("invalid", False)


@pytest.mark.parametrize(
    ("name", "value"),
    [("visits", 3.5), ("income", None), ("income", "much"), ("city", "Trier"), ("member", "x"), ("income", True)],
)
def test_a_value_that_does_not_exist_is_incoherent(cell: StoredRun, name: str, value: Any) -> None:
    verdict = verdict_of(cell, lambda row: row["row"].update({name: value}))
    assert (verdict["verdict"], verdict["incoherent"]) == ("incoherent", [name])


def test_a_missing_column_is_incoherent(cell: StoredRun) -> None:
    assert verdict_of(cell, lambda row: row["row"].pop("income"))["incoherent"] == ["income"]


def test_an_immutable_feature_that_changed_is_not_permitted(cell: StoredRun) -> None:
    """The model does not care for ``height`` enough to change its mind, the checker does."""
    verdict = verdict_of(cell, lambda row: row["row"].update(height=row["row"]["height"] + 1e-3))
    assert (verdict["verdict"], verdict["violations"], verdict["valid"]) == ("not permitted", ["height"], True)


def test_an_understated_objective_is_worse_than_claimed(cell: StoredRun) -> None:
    """Beyond 1e-6; a claim that is too high is no fault of the answer."""
    assert verdict_of(cell, lambda row: row.update(objective=row["objective"] + 0.1))["verdict"] == "accepted"
    assert verdict_of(cell, lambda row: row.update(objective=row["objective"] - 0.2))["verdict"] == "worse than claimed"


def test_a_late_answer_is_late(cell: StoredRun) -> None:
    assert verdict_of(cell, lambda row: row.update(late=True))["verdict"] == "late"


def test_exit_codes(cell: StoredRun, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """0 where every counterfactual holds, 1 where one does not, 2 where there is nothing to check."""
    assert check.main([str(tmp_path)]) == 0
    assert "0 of them do not hold" in capsys.readouterr().out
    assert len(cell.verdicts()) == len(cell.rows())
    assert any(row["status"] == Status.FOUND for row in cell.rows())
    tamper(cell, lambda row: row["row"].update(visits=0.5))
    assert check.main([str(tmp_path)]) == 1
    assert "1 of them do not hold" in capsys.readouterr().out
    assert check.main([str(tmp_path / "nowhere")]) == 2
    assert "no stored answers" in capsys.readouterr().err


NUMBER = Feature("x", "continuous", scale=(0, 10), bounds=(0, 10), special=(-9.0, 11.5))
LADDER = Feature("g", "ordinal", ("a", "b", "c", "d"), actionability="conditional", order=("b", "a", "d"))


@pytest.mark.parametrize(
    ("feature", "old", "new", "allowed"),
    [
        (NUMBER, 3.0, 10.0, True),
        (NUMBER, 3.0, 10.0 + 1e-9, True),
        (NUMBER, 3.0, 10.1, False),
        (NUMBER, 12.0, 11.0, True),
        (NUMBER, 12.0, 13.0, False),
        (NUMBER, 12.0, 12.0, True),
        (NUMBER, 12.0, 11.5, False),
        (NUMBER, -9.0, -9.0, True),
        (NUMBER, -9.0, -8.0, False),
        (NUMBER, -9.0, 0.0, True),
        (LADDER, "b", "a", True),
        (LADDER, "a", "b", False),
        (LADDER, "b", "c", False),
        (LADDER, "c", "d", False),
        (LADDER, "c", "c", True),
    ],
)
def test_permitted(feature: Feature, old: Any, new: Any, allowed: bool) -> None:
    """Bounds widen to the factual's own value, special codes are no goal, an order's gaps are not entered or left."""
    assert checker.permitted(feature, old, new) is allowed
