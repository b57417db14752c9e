"""The store of answers: what was written comes back, whatever tore the file."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.core.errors import HarnessError
from harness.core.explanation import Answer, Reason, Status
from harness.core.inputs import Affine, Indicator, Lookup, Step
from harness.core.objective import Objective, Term
from harness.core.problem import Problem
from harness.core.space import Feature, Space
from harness.core.target import Interval, Label, Probability
from harness.store.codec import from_plain
from harness.store.plain import to_plain
from harness.store.rows import SCHEMA, answer_row
from harness.store.run import StoredRun, stored_runs
from methods.foreign.environment import Environment
from methods.foreign.process import FarSide

TIMING = {"seconds": 0.1, "fit_seconds": 0.2, "late": False}


@pytest.fixture(params=["lr", "ridge"])
def problem(problem_of: Callable[[str], Problem], request: pytest.FixtureRequest) -> Problem:
    """The small problem with a class and with an interval of numbers as its target."""
    return problem_of(request.param)


@pytest.fixture
def cell(problem: Problem, tmp_path: Path) -> StoredRun:
    """A cell that asks for two counterfactuals of each of three factuals."""
    cell = StoredRun(tmp_path / "answers" / "toy-lr-nearest")
    meta = {"dataset": "toy", "model": "lr", "method": "nearest", "n_counterfactuals": 2}
    factuals = problem.train.iloc[:3]
    targets = dict.fromkeys(factuals.index, problem.target)
    cell.start(meta, problem.space, problem.classifier, targets, Objective((Term("gower"),)), factuals)
    return cell


def rows(factual: Any, *answers: Answer) -> list[dict[str, Any]]:
    return [answer_row(factual, number + 1, answer, **TIMING) for number, answer in enumerate(answers)]


def found(problem: Problem, row: int) -> Answer:
    return Answer(Status.FOUND, problem.train.iloc[row].to_dict(), objective=0.5)


NOTHING = Answer(Status.GAVE_UP)


def test_a_question_comes_back_as_it_was_put(cell: StoredRun, problem: Problem) -> None:
    """Space, objective, targets, factuals and model, to the last bit."""
    assert cell.space == problem.space
    assert cell.objective == Objective((Term("gower"),))
    frame, targets = cell.factuals()
    pd.testing.assert_frame_equal(frame, problem.train.iloc[:3], check_exact=True)
    assert targets == dict.fromkeys(frame.index, problem.target)
    np.testing.assert_array_equal(cell.classifier.score(frame), problem.classifier.score(frame))
    assert cell.classifier.inputs == problem.classifier.inputs
    assert cell.label == "toy/lr/nearest"


def test_a_row_comes_back_as_it_was_answered(cell: StoredRun, problem: Problem) -> None:
    cell.append(rows(0, found(problem, 5), NOTHING))
    first, second = cell.rows()
    assert cell.space.frame([first["row"]]).equals(problem.train.iloc[[5]].reset_index(drop=True))
    assert (first["status"], first["objective"], first["ce"], first["schema"]) == ("FOUND", 0.5, 1, SCHEMA)
    assert (second["status"], second["row"], second["ce"]) == ("GAVE_UP", None, 2)


@pytest.mark.parametrize("torn", [1, 20, 100])
def test_a_torn_last_line_is_dropped(cell: StoredRun, problem: Problem, torn: int) -> None:
    """With it goes its factual, which is asked again; what is appended next starts a line of its own."""
    cell.append(rows(0, NOTHING, NOTHING))
    cell.append(rows(1, NOTHING, NOTHING))
    path = cell.path / "rows.jsonl"
    path.write_bytes(path.read_bytes()[:-torn])
    if torn > 1:
        assert cell.answered() == {0}
        cell.append(rows(1, found(problem, 5), NOTHING))
        assert [row["status"] for row in cell.rows() if row["factual"] == 1] == ["FOUND", "GAVE_UP"]
    cell.append(rows(2, NOTHING, NOTHING))
    assert cell.answered() == {0, 1, 2}
    assert len(cell.rows()) == 6


def test_a_factual_without_all_its_rows_is_not_answered(cell: StoredRun) -> None:
    cell.append(rows(0, NOTHING))
    assert cell.rows() == []
    assert cell.answered() == set()


def test_who_lacked_an_environment_is_asked_again(
    cell: StoredRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may be there tomorrow; what a method refuses for good it is not asked again."""
    monkeypatch.setenv("CE_HARNESS_CACHE", str(tmp_path / "empty"))
    lacking = str(Environment("pertcf", "methods/foreign/pertcf/pertcf.lock").lacking)
    refused = Answer(Status.UNSUPPORTED, reason=Reason.REFUSED, detail="it takes no forests")
    cell.append(rows(0, refused, refused))
    cell.append(rows(1, *[replace(refused, detail=lacking)] * 2))
    assert cell.answered() == {0}


def test_who_lacked_a_program_is_asked_again(cell: StoredRun) -> None:
    """It may be installed tomorrow."""
    with pytest.raises(HarnessError, match="install it, or mend 'program'") as lacking:
        FarSide(["no-such-program"], {})
    refused = Answer(Status.UNSUPPORTED, reason=Reason.REFUSED, detail=str(lacking.value))
    cell.append(rows(0, refused, refused))
    assert cell.answered() == set()


def test_the_last_try_counts(cell: StoredRun, problem: Problem) -> None:
    """A failed factual is tried again, and only what came last is read."""
    failed = Answer(Status.FAILED, reason=Reason.CRASH)
    cell.append(rows(0, failed, failed))
    assert cell.answered() == set()
    cell.append(rows(0, found(problem, 4), NOTHING))
    assert cell.answered() == {0}
    assert [row["status"] for row in cell.rows()] == ["FOUND", "GAVE_UP"]


@pytest.mark.parametrize(
    ("answer", "settled"),
    [
        (NOTHING, True),
        (Answer(Status.INFEASIBLE, reason=Reason.PROOF), True),
        (Answer(Status.GAVE_UP, reason=Reason.TIME_LIMIT), True),
        (Answer(Status.UNSUPPORTED, reason=Reason.REFUSED), True),
        (Answer(Status.FAILED, reason=Reason.CRASH), False),
    ],
)
def test_what_is_tried_again(cell: StoredRun, answer: Answer, settled: bool) -> None:
    """Faults; a limit that was reached is an answer."""
    cell.append(rows(0, answer, answer))
    assert cell.answered() == ({0} if settled else set())


def test_who_has_a_first_answer_is_tried_again_where_a_later_one_failed(cell: StoredRun, problem: Problem) -> None:
    cell.append(rows(0, found(problem, 4), Answer(Status.FAILED, reason=Reason.CRASH)))
    cell.append(rows(1, found(problem, 5), NOTHING))
    assert cell.answered() == {1}


def test_forgetting_answers_forgets_the_question_too(cell: StoredRun) -> None:
    cell.append(rows(0, NOTHING, NOTHING))
    cell.put_verdicts([{"factual": 0, "ce": 1, "verdict": "none"}])
    cell.finish()
    assert cell.done
    cell.reset()
    assert not cell.started
    assert not cell.done
    assert not cell.verdicts()
    assert not (cell.path / "rows.jsonl").exists()


@pytest.mark.parametrize("version", [1, 2, 99])
@pytest.mark.parametrize("file", ["cell.json", "rows.jsonl"])
def test_answers_of_another_version_are_named(cell: StoredRun, file: str, version: int) -> None:
    """In one sentence, instead of being misread."""
    cell.append(rows(0, NOTHING, NOTHING))
    path = cell.path / file
    path.write_text(path.read_text().replace(f'"schema": {SCHEMA}', f'"schema": {version}'))
    with pytest.raises(HarnessError, match=rf"{file} is in version {version} .* reads version {SCHEMA}; install"):
        cell.rows()


def test_cells_are_found_below_a_folder(cell: StoredRun, tmp_path: Path) -> None:
    """And a folder without any is an error that names it."""
    assert [each.path for each in stored_runs(tmp_path)] == [cell.path]
    with pytest.raises(HarnessError, match=r"no stored answers under .*empty"):
        stored_runs(tmp_path / "empty")
    with pytest.raises(HarnessError, match="holds no stored answers"):
        _ = StoredRun(tmp_path / "empty").meta


NAMES = st.text(min_size=1, max_size=5)
NUMBERS = st.floats(allow_nan=False)
LEVELS = st.lists(st.text(max_size=3) | st.integers() | st.floats(0.25, 0.75), min_size=1, unique=True).map(tuple)
PARTS = st.one_of(
    st.builds(Affine, NAMES, NUMBERS, NUMBERS),
    st.builds(Indicator, NAMES, LEVELS),
    st.builds(Lookup, NAMES, LEVELS, st.lists(NUMBERS).map(tuple)),
    st.builds(Step, NAMES, st.lists(NUMBERS).map(tuple), st.lists(NUMBERS).map(tuple)),
    st.builds(Label, st.text() | st.integers() | st.booleans()),
    st.builds(Interval, st.floats(max_value=0.0), st.floats(min_value=0.0)),
    st.builds(Probability, NAMES, st.floats(0, 0.5), st.floats(0.5, 1)),
    st.builds(
        Objective,
        st.lists(st.builds(Term, st.just("mad_l1"), st.floats(0, 9), st.dictionaries(NAMES, NUMBERS))).map(tuple),
        st.sampled_from(["features", "columns"]),
        st.sampled_from([1, "columns"]),
    ),
    st.builds(Space, st.lists(st.builds(Feature, NAMES, st.just("categorical"), LEVELS), max_size=1)),
    st.builds(Space, st.lists(st.builds(Feature, NAMES, st.just("integer"), special=st.just((-9.0,))), max_size=1)),
    NUMBERS,
    st.none(),
    st.lists(NUMBERS).map(tuple),
)


@given(PARTS | st.dictionaries(NAMES, PARTS) | st.lists(PARTS).map(tuple))
def test_plain_data_and_back(value: Any) -> None:
    """Every type of a question survives the way through JSON, infinities and all."""
    assert from_plain(json.loads(json.dumps(to_plain(value)))) == value


def test_numpy_becomes_plain() -> None:
    """Numbers and arrays of numpy are stored as Python's."""
    plain = to_plain({"n": np.int64(3), "x": np.float64(0.1), "b": np.bool_(True), "a": np.arange(2)})
    assert plain == {"n": 3, "x": 0.1, "b": True, "a": [0, 1]}
    assert [type(value) for value in plain.values()] == [int, float, bool, list]
