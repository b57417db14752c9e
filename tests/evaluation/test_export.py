"""counterfactuals.csv: complete, exact, and nothing a spreadsheet would run."""

from __future__ import annotations

import csv
import io
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression

from harness.core import explanation
from harness.core.errors import HarnessError
from harness.core.explanation import Answer, Reason, Status
from harness.core.notation import Notation
from harness.core.problem import Problem
from harness.core.space import Feature, Space
from harness.core.target import Label
from harness.evaluation import checker, export
from harness.models.train import train
from harness.store.rows import answer_row
from harness.store.run import StoredRun

FORMULA = ("=", "+", "-", "@", "\t", "\r")
risky = st.text(alphabet="=+-@\t\r\n,;|' \"aß1", max_size=12)


def begins_a_formula(text: str) -> bool:
    """What a spreadsheet runs, or would after it has cut a tab or a line end off."""
    return text.lstrip(" ").startswith(FORMULA)


@pytest.fixture
def cell(problem: Problem, tmp_path: Path) -> StoredRun:
    """Two factuals, three answers each: full of digits, infeasible, incoherent, given up."""
    rejected = problem.train.loc[~problem.valid(problem.train)].iloc[:2]
    wanted = problem.train.loc[problem.valid(problem.train)].to_dict("records")
    cell = StoredRun(tmp_path / "cell")
    meta = {"dataset": "d", "model": "lr", "method": "m", "n_counterfactuals": 3}
    targets = dict.fromkeys(rejected.index, problem.target)
    cell.start(meta, problem.space, problem.classifier, targets, None, rejected)
    strange = {**wanted[1], "city": "Atlantis"}
    first = [
        Answer(Status.OPTIMAL, wanted[0], objective=0.1 + 0.2, bound=0.3),
        Answer(Status.FOUND, strange),
        Answer(Status.INFEASIBLE, reason=Reason.PROOF),
    ]
    second = [Answer(Status.FOUND, wanted[2], objective=2.0, bound=1.0), *[Answer(Status.GAVE_UP)] * 2]
    for factual, answers in zip(rejected.index, (first, second), strict=True):
        cell.append(answer_row(int(factual), k + 1, a, seconds=0.1, fit_seconds=0.0) for k, a in enumerate(answers))
    checker.judge(cell)
    return cell


def test_every_answer_has_a_row(cell: StoredRun) -> None:
    """After the factual's own as number 0; statuses, verdicts, gap and scores are those of the store and the model."""
    table = export.read(export.write(cell))
    frame, _ = cell.factuals()
    assert table.columns.tolist() == [*export.OURS, *cell.space.names]
    assert table["factual"].tolist() == [index for index in frame.index for _ in range(4)]
    assert table["ce"].tolist() == [0, 1, 2, 3] * 2
    assert table["status"].fillna("").tolist() == ["", "OPTIMAL", "FOUND", "INFEASIBLE", "", "FOUND", *["GAVE_UP"] * 2]
    judged = [verdict["verdict"] for verdict in cell.verdicts()]
    assert table.loc[table["ce"] > 0, "verdict"].tolist() == judged
    assert judged[1:3] == ["incoherent", "none"]
    assert table.loc[1, "gap"] == (0.1 + 0.2) - 0.3
    assert table.loc[5, "gap"] == 1.0
    assert table.loc[2, "city"] == "Atlantis"
    assert table.loc[[2, 3], ["score_after", "predicted_after"]].isna().all(axis=None)
    assert table["score_before"].tolist() == np.repeat(cell.classifier.score(frame), 4).tolist()
    assert table["predicted_before"].tolist() == ["bad"] * 8


def test_numbers_come_back_to_the_last_bit(cell: StoredRun) -> None:
    """The stored model says of the rows read back what the file says it said, with the same scores."""
    path = export.write(cell)
    table = export.read(path)
    frame, _ = cell.factuals()
    factuals = cell.space.frame(table.loc[table["ce"] == 0, list(cell.space.names)].to_dict("records"))
    pd.testing.assert_frame_equal(factuals, frame.reset_index(drop=True), check_exact=True)
    found = table.loc[table["predicted_after"].notna()]
    answers = cell.space.frame(found[list(cell.space.names)].to_dict("records"))
    assert cell.classifier.predict(answers).tolist() == found["predicted_after"].tolist() == ["good", "good"]
    assert cell.classifier.score(answers).tolist() == found["score_after"].tolist()
    plain = pd.read_csv(path)  # as anybody reads it
    assert (plain["income"].dtype, len(plain)) == (float, 8)
    np.testing.assert_allclose(plain["income"], table["income"], rtol=1e-15)


def test_dates_are_written_as_the_data_write_them(problem: Problem, tmp_path: Path) -> None:
    """And read back as the days that they stand for."""
    space = problem.space.replace({"age": {"notation": Notation(date="%d.%m.%Y")}})
    factual = problem.train.loc[~problem.valid(problem.train)].iloc[:1].assign(age=365)
    cell = StoredRun(tmp_path / "cell")
    meta = {"dataset": "d", "model": "lr", "method": "m", "n_counterfactuals": 1}
    cell.start(meta, space, problem.classifier, dict.fromkeys(factual.index, problem.target), None, factual)
    answer = Answer(Status.FOUND, {**factual.iloc[0].to_dict(), "age": 396})
    cell.append([answer_row(int(factual.index[0]), 1, answer, seconds=0.1, fit_seconds=0.0)])
    checker.judge(cell)
    path = export.write(cell)
    assert pd.read_csv(path)["age"].tolist() == ["01.01.1971", "01.02.1971"]
    assert export.read(path)["age"].tolist() == [365, 396]


@pytest.mark.parametrize(
    ("objective", "bound", "gap"), [(2.0, 0.5, 1.5), (0.5, 2.0, 0.0), (2.0, None, None), (None, 0.5, None)]
)
def test_a_gap_needs_an_objective_and_a_bound(objective: float | None, bound: float | None, gap: float | None) -> None:
    """And is never below 0."""
    assert explanation.gap(objective, bound) == gap


@pytest.mark.parametrize("name", ["=SUM(A1)", "status", "a;=b"])
def test_a_spreadsheet_runs_nothing(tmp_path: Path, name: str) -> None:
    """Not a category, not a column's name, not where it splits by semicolons; the reader gives all of it back."""
    levels = ("=1+1", "@x", "-1", "+2", "\tcmd", "a;=b", 'a,"=c"', "'=d", "007", "plain")
    space = Space((Feature(name, "categorical", levels), Feature("income", "continuous", scale=(-9.0, 9.0))))
    rng = np.random.default_rng(0)
    rows = [{name: level, "income": float(rng.normal())} for level in levels * 5]
    frame = space.frame(rows)
    labels = np.where(frame["income"] > 0, "=yes", "no").astype(object)
    classifier = train(LogisticRegression(), space, frame, labels, ("no", "=yes"))
    rejected = frame.loc[classifier.predict(frame) == "no"]
    cell = StoredRun(tmp_path / "cell")
    cell.start(
        {"n_counterfactuals": 1}, space, classifier, dict.fromkeys(rejected.index, Label("=yes")), None, rejected
    )
    for index, level in zip(rejected.index, levels, strict=False):
        answer = Answer(Status.FOUND, {name: level, "income": 5.0})
        cell.append([answer_row(index, 1, answer, seconds=0.0, fit_seconds=0.0)])
    checker.judge(cell)
    path = export.write(cell)
    text = path.read_text()
    for delimiter in ",;\t|":
        for line in csv.reader(io.StringIO(text), delimiter=delimiter):
            for field in line:
                assert not begins_a_formula(field.strip('"')) or is_number(field), field
    table = export.read(path)
    assert table.columns[-2:].tolist() == [name, "income"]
    asked = rejected.iloc[: len(levels)]
    own = table.loc[table["ce"] == 0].reset_index(drop=True)
    assert own[name].tolist() == asked[name].tolist()
    assert own["income"].tolist() == asked["income"].tolist()
    assert (table["income"].to_numpy() < 0).any()
    predicted = classifier.predict(space.frame([{name: level, "income": 5.0} for level in levels]))
    assert table["predicted_after"].dropna().tolist() == predicted.tolist()[: len(own)]
    assert "=yes" in predicted


def is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


@given(risky)
def test_guarding_can_be_undone(text: str) -> None:
    """Whatever the text; and no part of it, however it is split, begins a formula."""
    guarded = export.escape(text)
    assert export.unescape(guarded) == text
    for delimiter in ",;|\n":
        for part in guarded.split(delimiter):
            assert not part.lstrip(" ").startswith(("=", "+", "-", "@"))


def test_an_office_opens_it(cell: StoredRun) -> None:
    """With semicolons and decimal commas the same numbers come back, to the last bit; numbers are not quoted."""
    export.write(cell)
    usual = export.read(cell.path / export.NAME)
    path = export.write(cell, export.Form(";", ","))
    content = path.read_bytes().decode()
    assert content.startswith("\ufeff")
    assert ";0,30000000000000004;0,3;" in content
    pd.testing.assert_frame_equal(export.read(path), usual)
    office = pd.read_csv(path, sep=";", decimal=",", encoding="utf-8-sig")
    assert office["objective"].tolist()[1] == 0.1 + 0.2
    assert len(office) == len(usual)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"sep": "x"}, "export.sep=x does not fit"),
        ({"decimal": ","}, "export.decimal=, does not fit"),
        ({"decimal": ";", "sep": ";"}, "export.decimal=; does not fit"),
        ({"excel": "yes"}, "export.excel=yes does not fit"),
    ],
)
def test_a_form_that_does_not_fit_is_one_sentence(given: dict[str, Any], words: str) -> None:
    with pytest.raises(HarnessError, match=re.escape(words)):
        export.Form(**given)


def test_a_spreadsheet_has_the_same_cells(cell: StoredRun) -> None:
    """Numbers as numbers, to the 16 digits of openpyxl; texts that would run are texts."""
    openpyxl = pytest.importorskip("openpyxl")
    export.write(cell, export.Form(excel=True))
    expected = export.read(cell.path / export.NAME)
    sheet = openpyxl.load_workbook(cell.path / export.SHEET).active
    header, *rows = sheet.iter_rows(values_only=True)
    assert list(header) == list(expected.columns)
    for row, line in zip(rows, expected.to_numpy(object).tolist(), strict=True):
        there = [value for value in row if value is not None]
        line = [str(value) if isinstance(value, bool) else value for value in line if not pd.isna(value)]
        assert there == [pytest.approx(value, 1e-15) if isinstance(value, float) else value for value in line]
    evil = cell.path / "evil.xlsx"
    export.write_sheet(evil, pd.DataFrame({"=1+1": ["=2+2", "@x", 3.5]}))
    cells = [line[0] for line in openpyxl.load_workbook(evil).active.iter_rows()]
    assert [(one.value, one.data_type) for one in cells] == [("'=1+1", "s"), ("'=2+2", "s"), ("'@x", "s"), (3.5, "n")]


def test_without_openpyxl_one_sentence_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(export, "find_spec", lambda name: None)
    with pytest.raises(HarnessError, match="needs openpyxl; install it by `uv sync --extra excel`"):
        export.Form(excel=True)
    with pytest.raises(HarnessError, match=r"t\.xlsx needs openpyxl"):
        export.write_sheet(tmp_path / "t.xlsx", pd.DataFrame({"a": [1]}))


def test_an_earlier_spreadsheet_goes_with_what_it_shows(cell: StoredRun) -> None:
    """Where it is not written again, and where the answers are forgotten."""
    sheet = cell.path / export.SHEET
    for change in (lambda: export.write(cell), cell.reset):
        sheet.write_text("earlier")
        change()
        assert not sheet.exists()
