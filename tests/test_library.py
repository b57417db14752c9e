"""A table and a fitted pipeline in, explanations and metrics out: without the command line, without tracking."""

from __future__ import annotations

import doctest
import itertools
import math
import os
import random
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from support.pages import PROSE
from support.tables import GRANTED

from harness import library
from harness.core.errors import DatasetError, HarnessError
from harness.core.explanation import Answer, Explanation, Reason, Status
from harness.data import load_csv, load_dataset
from harness.execution.pool import Pool
from harness.execution.task import make_task
from harness.library import explain, explain_group, in_context, measure, pose
from harness.store.rows import answer_row
from methods.ce_ocl import CeOcl
from methods.group_greedy import GroupGreedy
from methods.nearest import Nearest
from methods.robust import Robust
from metrics import _example as loans
from metrics.proximity import l1

ROOT = Path(__file__).parents[1]
EVIL = "<script>alert('x')</script>"
FRAME = pd.read_csv(ROOT / "tests" / "plugin" / "loans_plugin" / "loans.csv", keep_default_na=False)


def fitted(frame: pd.DataFrame = FRAME, model: Any = None) -> Pipeline:
    texts = [name for name in frame.columns[:-1] if not pd.api.types.is_numeric_dtype(frame[name])]
    inputs = make_column_transformer((OneHotEncoder(), texts), remainder=StandardScaler())
    return make_pipeline(inputs, LogisticRegression(C=10) if model is None else model).fit(
        frame.iloc[:, :-1], frame.iloc[:, -1]
    )


@dataclass(frozen=True)
class Given:
    """Answers with what it is told to."""

    answers: tuple[Answer, ...]
    stir: Callable[[], object] = lambda: None

    def refuses(self, problem: Any) -> str | None:
        return None

    def objective(self, problem: Any) -> None:
        return None

    def fit(self, problem: Any) -> Given:
        return self

    def explain(self, factual: Any, n: int, rng: Any, deadline: Any) -> Explanation:
        self.stir()
        assert 0 < deadline.left <= 7
        return Explanation(self.answers)


class Fitting(Given):
    """Does in its fit, too, what it does of each question."""

    def fit(self, problem: Any) -> Given:
        self.stir()
        return self


def test_a_constant_column_that_may_change_is_moved_and_perturbed() -> None:
    """A model that leans on a column which holds one value in this table: that value is the cheapest to move."""
    frame = pd.DataFrame({"a": np.linspace(0, 1, 20), "one": 0.0, "y": ["no", "yes"] * 10})
    model = LogisticRegression().fit(frame[["a", "one"]], frame["y"])
    model.coef_, model.intercept_ = np.array([[1.0, 10.0]]), np.array([-2.0])
    kept = pose(frame, "y", model, desired="yes", features={"a": {}, "one": {}})
    assert explain(CeOcl(), kept, 0).answers[0].status is Status.INFEASIBLE
    posed = pose(
        frame, "y", model, desired="yes", features={"a": {}, "one": {"kind": "continuous", "actionability": "free"}}
    )
    row = explain(CeOcl(), posed, 0).answers[0].row
    assert row is not None
    assert (row["a"], row["one"]) == (0.0, pytest.approx(0.2, abs=1e-6))
    robust = explain(Robust(rho=0.1), posed, 0).answers[0]
    assert robust.row is not None
    assert robust.region is not None
    assert robust.row["one"] == pytest.approx(0.31, abs=1e-5)  # the worst of a box: one by -0.1 and a by -0.1
    assert robust.region["one"] == pytest.approx((0.21, 0.41), abs=1e-5)


@pytest.fixture(scope="module")
def pipeline() -> Pipeline:
    return fitted()


@pytest.fixture(scope="module")
def question(pipeline: Pipeline) -> Any:
    return pose(FRAME, target="approved", model=pipeline, desired="yes", immutable=["sex"])


def rejected(pipeline: Pipeline, frame: pd.DataFrame = FRAME) -> list[int]:
    return np.flatnonzero(pipeline.predict(frame.iloc[:, :-1]) == "no").tolist()


def test_neither_hydra_nor_mlflow_is_imported() -> None:
    code = "import sys, harness.library; print(*(n for n in ('hydra', 'omegaconf', 'mlflow') if n in sys.modules))"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=120)
    assert done.stdout.split() == []


def test_a_page_shows_the_example_that_is_run() -> None:
    """The lines of the module's doctest stand in docs, output included."""
    examples = doctest.DocTestParser().get_examples(library.__doc__ or "")
    assert len(examples) > 10
    for example in examples:
        assert example.source.splitlines()[0] in PROSE
        assert "\n".join(line.rstrip() for line in example.want.splitlines()) in PROSE


def test_the_pipeline_itself_confirms_every_answer(question: Any, pipeline: Pipeline) -> None:
    """Predictions and scores are scikit-learn's own of the same rows; what is immutable stays."""
    row = rejected(pipeline)[0]
    explanation = explain(CeOcl(), question, row, n=3)
    rows = pd.DataFrame([answer.row for answer in explanation.answers])
    context = explanation.context
    assert context is not None
    assert pipeline.predict(rows).tolist() == ["yes"] * 3
    scores = [float(pipeline.predict_proba(rows.iloc[[place]])[0, 1]) for place in range(3)]
    assert context.after == tuple(zip(scores, ["yes"] * 3, strict=True))
    assert context.before[0] == pipeline.predict_proba(FRAME.iloc[[row], :-1])[0, 1]
    assert context.verdicts == ("accepted",) * 3
    assert (rows["sex"] == FRAME["sex"][row]).all()
    assert {answer.status for answer in explanation.answers} == {Status.OPTIMAL}


def test_the_closest_is_the_closest(question: Any, pipeline: Pipeline) -> None:
    """No point of a grid that scikit-learn predicts as wanted changes fewer features, or as few for less."""
    row = rejected(pipeline)[0]
    origin, space = FRAME.iloc[row], question.dataset.space
    found = explain(CeOcl(), question, row).answers[0].row
    axes = [range(18, 75), np.linspace(*space["income"].bounds, 200), ["none", "part", "full"], [origin["sex"]]]
    axes = [[*axis, origin[name]] for axis, name in zip(axes, FRAME.columns, strict=False)]
    grid = pd.DataFrame(list(itertools.product(*axes)), columns=FRAME.columns[:-1])
    grid = grid.loc[pipeline.predict(grid) == "yes"]

    def cost(frame: pd.DataFrame) -> np.ndarray:
        changes = sum((frame[name] != origin[name]).astype(float) for name in frame.columns)
        near = sum(np.abs(frame[name] - origin[name]) / space[name].range for name in ("age", "income"))
        return (1e4 * changes + near + (frame["job"] != origin["job"])).to_numpy(float)

    assert cost(pd.DataFrame([found]))[0] <= cost(grid).min() + 1e-6


def test_a_person_may_be_given_in_any_form(question: Any, pipeline: Pipeline) -> None:
    """A row number, values by feature, a Series, a frame of one row: the same values, the same answer."""
    row = rejected(pipeline)[1]
    forms = [row, np.int64(row), FRAME.iloc[row].to_dict(), FRAME.iloc[row, :-1], FRAME.iloc[[row], ::-1]]
    answers = [explain(CeOcl(), question, form).answers[0] for form in forms]
    assert all(answer == answers[0] for answer in answers)


@pytest.mark.parametrize(
    ("person", "words"),
    [
        (999, "no row 999"),
        ({"age": 3}, "no column 'income'"),
        ({"age": 30, "income": 1.0, "job": "chef", "sex": "f"}, "unseen category 'chef'"),
        ({"age": 10**19, "income": 1.0, "job": "none", "sex": "f"}, r"age of the person is 1\d*; allowed: numbers"),
        ({"age": 30, "income": -1e300, "job": "none", "sex": "f"}, "income of the person is -1e.300; allowed: numbers"),
        (FRAME, "120 rows is no person.*several: \\[explain\\(method, question, one\\) for one in \\.\\.\\.\\]"),
        ([2, 4, 5], "\\[2, 4, 5\\] is no person.*; several: "),
        ("me", "'me' is no person"),
        (FRAME.iloc[0].to_numpy(), r"^array\(\[.* is no person; give a row number"),
        ({}, "the person has no column 'age'; its columns are none, and those that it needs age"),
    ],
)
def test_a_wrong_person_is_one_sentence(question: Any, person: Any, words: str) -> None:
    with pytest.raises(DatasetError, match=words) as found:
        explain(Nearest(), question, person)
    assert "\n" not in str(found.value)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"target": "aproved"}, "did you mean 'approved'"),
        ({"desired": "maybe"}, "no class 'maybe'"),
        ({"immutable": ["gender"]}, "no feature 'gender'"),
        ({"frame": FRAME.drop(columns="job")}, "job"),
        ({"model": LogisticRegression()}, "the model"),
        ({"frame": []}, "DataFrame"),
    ],
)
def test_a_wrong_question_is_one_sentence(pipeline: Pipeline, change: dict[str, Any], words: str) -> None:
    with pytest.raises(HarnessError, match=words) as found:
        pose(**{"frame": FRAME, "target": "approved", "model": pipeline, **change})
    assert "\n" not in str(found.value)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"method": "nearest"}, "'nearest' is no method; give one with its parameters"),
        ({"method": Nearest}, "the class Nearest is no method"),
        ({"n": "2"}, "n='2' and time_limit=5.0 do not fit; give at least 1"),
    ],
)
def test_a_wrong_way_to_ask_is_one_sentence(question: Any, change: dict[str, Any], words: str) -> None:
    with pytest.raises(HarnessError, match=words):
        explain(**{"method": Nearest(), "task": question, "person": 0, **change})


def test_settings_of_some_columns_keep_the_others(pipeline: Pipeline) -> None:
    """A mapping overrides, a list selects; both are the command line's words in Python."""
    question = pose(FRAME, "approved", pipeline, "yes", features={"age": {"actionability": "increase"}})
    space = question.dataset.space
    assert space.names == tuple(FRAME.columns[:-1])
    assert (space["age"].actionability, space["income"].actionability) == ("increase", "free")
    with pytest.raises(HarnessError, match="no feature 'agee'"):
        pose(FRAME, "approved", pipeline, features={"agee": {}})
    with pytest.raises(HarnessError, match="no attribute 'kindd'"):
        pose(FRAME, "approved", pipeline, features={"age": {"kindd": "integer"}})
    assert pose(FRAME, "approved", pipeline, immutable="age").dataset.space["age"].actionability == "immutable"


def test_a_table_without_labels_can_be_asked_about(pipeline: Pipeline) -> None:
    """The answers are those of the labelled table; also where the model says one class of everybody."""
    row, inputs = rejected(pipeline)[0], FRAME.drop(columns="approved")
    expected = explain(CeOcl(), pose(FRAME, "approved", pipeline, "yes", ["sex"]), row, n=2)
    question = pose(inputs, model=pipeline, desired="yes", immutable=["sex"])
    assert explain(CeOcl(), question, row, n=2) == expected
    assert question.dataset.labels.tolist() == pipeline.predict(inputs).tolist()
    alike = inputs.iloc[rejected(pipeline)]
    assert explain(CeOcl(), pose(alike, model=pipeline), 0).answers[0].status is Status.OPTIMAL
    named = pose(alike, model=pipeline, classes=["refused", "granted"], desired="granted")
    assert "the model says refused, wanted is granted" in str(explain(CeOcl(), named, 0))
    with pytest.raises(HarnessError, match="no class 'maybe'"):
        pose(alike, model=pipeline, desired="maybe")
    with pytest.raises(HarnessError, match="give model="):
        pose(inputs)


def test_numbers_without_labels() -> None:
    frame = FRAME.drop(columns="approved").assign(rent=FRAME["income"] / 100 + FRAME["age"])
    pipeline = fitted(frame, RandomForestRegressor(5, max_depth=3, random_state=0))
    question = pose(frame.drop(columns="rent"), model=pipeline, desired=">= 500")
    row = int(np.argmin(pipeline.predict(frame.iloc[:, :-1])))
    (answer,) = explain(CeOcl(), question, row).answers
    assert pipeline.predict(pd.DataFrame([answer.row]))[0] >= 500
    with pytest.raises(HarnessError, match="say by 'desired' which ones are wanted"):
        pose(frame.drop(columns="rent"), model=pipeline)


def test_what_was_read_of_a_csv_is_printed_as_it_was_written(tmp_path: Path) -> None:
    """A dataset in place of a table: its notation, its target, its columns."""
    table = FRAME.assign(income=[f"€ {value:,.2f}" for value in FRAME["income"]])
    table.to_csv(tmp_path / "loans.csv", index=False)
    dataset = load_csv(tmp_path / "loans.csv", "approved", na=[])
    pipeline = fitted(dataset.frame.assign(approved=dataset.labels))
    question = pose(
        dataset, model=pipeline, desired="yes", immutable=["sex", "job"], features={"age": {"bounds": (18, 60)}}
    )
    explanation = explain(CeOcl(max_changes=1), question, rejected(pipeline, FRAME)[0])
    (answer,) = explanation.answers
    assert f"→ € {answer.row['income']:,.2f}" in str(explanation)
    assert question.dataset.space["age"].bounds == (18, 60)
    with pytest.raises(HarnessError, match="all else to load_csv"):
        pose(dataset, "approved", pipeline)


def test_errors_name_arguments(pipeline: Pipeline) -> None:
    """Not settings of the command line."""
    constant = FRAME.assign(income=[f"name {place}" for place in range(len(FRAME))])
    with pytest.raises(HarnessError) as found:
        pose(constant.assign(age=np.where(FRAME["age"] > 30, np.inf, 1.0)), "approved", pipeline)
    assert not re.search(r"features\.\w+\.|model\.|dataset=", str(found.value))
    with pytest.raises(
        HarnessError, match=r"name them in the model's order: with classes=\['p', 'q'\] no is p and yes is q"
    ):
        pose(FRAME.replace({"approved": {"no": "p", "yes": "q"}}), "approved", pipeline)


def test_without_a_wish_the_other_class_is_wanted(pipeline: Pipeline) -> None:
    """Of each person, by what the model says of them; a new person included."""
    question = pose(FRAME, "approved", pipeline)
    found = pipeline.predict(FRAME.iloc[:, :-1])
    for person, label in ((int(np.flatnonzero(found == "yes")[0]), "no"), (rejected(pipeline)[0], "yes")):
        for form in (person, FRAME.iloc[person].to_dict()):
            (answer,) = explain(Nearest(), question, form).answers
            assert pipeline.predict(pd.DataFrame([answer.row])).tolist() == [label]


def test_a_number_can_be_wanted() -> None:
    """With a regression pipeline; the answer's prediction is scikit-learn's, and in the interval."""
    frame = FRAME.drop(columns="approved").assign(rent=FRAME["income"] / 100 + FRAME["age"])
    pipeline = fitted(frame, RandomForestRegressor(5, max_depth=3, random_state=0))
    question = pose(frame, "rent", pipeline, desired=">= 500")
    row = int(np.argmin(pipeline.predict(frame.iloc[:, :-1])))
    explanation = explain(CeOcl(), question, row)
    (answer,) = explanation.answers
    predicted = pipeline.predict(pd.DataFrame([answer.row]))[0]
    assert predicted >= 500
    assert f"→ {predicted:.6g}" in str(explanation)
    assert "wanted is at least 500" in str(explanation)


def test_who_is_already_fine_is_told_so(question: Any, pipeline: Pipeline) -> None:
    fine = next(row for row in range(len(FRAME)) if row not in rejected(pipeline))
    explanation = explain(CeOcl(), question, fine, n=2)
    assert [(a.status, a.reason) for a in explanation.answers] == [(Status.UNSUPPORTED, Reason.REFUSED)] * 2
    assert "already says what is wanted" in str(explanation)


def test_the_global_random_state_stays(question: Any, pipeline: Pipeline) -> None:
    """Also where a method seeds it; and the time limit is the method's deadline."""

    def stir() -> None:
        random.seed(1)
        np.random.seed(1)  # noqa: NPY002

    random.seed(5)
    np.random.seed(5)  # noqa: NPY002
    expected = random.random(), np.random.random()  # noqa: NPY002
    random.seed(5)
    np.random.seed(5)  # noqa: NPY002
    explain(Given((Answer(Status.GAVE_UP),), stir), question, rejected(pipeline)[0], time_limit=7)
    assert (random.random(), np.random.random()) == expected  # noqa: NPY002


def test_a_method_draws_by_the_seed_also_from_the_process(question: Any, pipeline: Pipeline) -> None:
    """In a fit, which several questions share, and of each question; whatever was drawn before."""
    drawn: list[tuple[float, float]] = []

    def draw() -> None:
        drawn.append((random.random(), np.random.random()))  # noqa: NPY002

    person, other = rejected(pipeline)[:2]
    for row, seed in ((person, 0), (person, 0), (person, 1), (other, 0)):
        explain(Given((Answer(Status.GAVE_UP),), draw), question, row, seed=seed)
    first, again, later, others = drawn
    assert first == again
    assert len({first, later, others}) == 3
    drawn.clear()
    for seed in (0, 0, 1):
        explain(Fitting((Answer(Status.GAVE_UP),), lambda: draw()), question, person, seed=seed)
    fitted, asked, *again = drawn[:4]
    assert again == [fitted, asked]
    assert drawn[4] not in (fitted, asked)
    assert fitted != asked


def test_a_false_answer_is_marked(question: Any, pipeline: Pipeline) -> None:
    """As invalid where the model disagrees, as not permitted where it changes what is immutable."""
    row = rejected(pipeline)[0]
    person = FRAME.iloc[row, :-1].to_dict()
    wrong = {**person, "income": person["income"] - 1}
    wanted = explain(CeOcl(), question, row).answers[0].row
    other = {**(wanted or {}), "sex": "m" if person["sex"] == "f" else "f"}
    other["income"] = 150000.0
    explanation = explain(
        Given((Answer(Status.FOUND, wrong), Answer(Status.FOUND, other))), question, row, n=2, time_limit=7
    )
    assert explanation.context is not None
    assert explanation.context.verdicts == ("invalid", "not permitted")
    for shown in (str(explanation), explanation._repr_html_() or ""):
        assert "✗ invalid" in shown
        assert "✗ not permitted" in shown
    changes = sum(other[name] != person[name] for name in person)
    assert measure(explanation, ["l0"]).isna().all()  # neither is accepted
    assert measure(explanation, ["l0"], population="returned").tolist() == [(1 + changes) / 2]
    assert measure(explanation, [l1], population="returned").iloc[0] > 0


def test_a_broken_method_is_an_error(question: Any, pipeline: Pipeline) -> None:
    with pytest.raises(HarnessError, match="asked for 2 answers and gave 1"):
        explain(Given((Answer(Status.GAVE_UP),)), question, rejected(pipeline)[0], n=2, time_limit=7)
    proof = Answer(Status.OPTIMAL, FRAME.iloc[0, :-1].to_dict(), objective=0.0, bound=0.0)
    with pytest.raises(HarnessError, match=r"Given breaks the contract of methods: .* its objective\(\) returns None"):
        explain(Given((proof,)), question, rejected(pipeline)[0], time_limit=7)


def test_metrics_by_name(question: Any, pipeline: Pipeline) -> None:
    """Recomputed from the rows; several explanations make a table; an unknown name is one sentence."""
    people = rejected(pipeline)[:2]
    explanations = [explain(Nearest(), question, row, n=2) for row in people]
    table = measure(explanations, ["l0", "l1"])
    for row, explanation in zip(people, explanations, strict=True):
        changes = [
            sum((answer.row or {})[name] != FRAME[name][row] for name in question.dataset.space.names)
            for answer in explanation.answers
        ]
        assert table["distance/l0"][row] == np.mean(changes)
    with pytest.raises(HarnessError, match="there is no metric 'l3'"):
        measure(explanations[0], ["l3"])
    with pytest.raises(HarnessError, match="there is no metric 'gowr'; did you mean 'gower'"):
        measure(explanations[0], ["gowr"])
    with pytest.raises(HarnessError, match="there is no metric 'distanc/gower'; did you mean 'gower'"):
        measure(explanations[0], ["distanc/gower"])
    with pytest.raises(HarnessError, match="does not know its factual"):
        measure(Explanation((Answer(Status.GAVE_UP),)), ["l1"])


class Elements(HTMLParser):
    """Names of all elements; every one that is opened is closed in order, and none loads anything."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: set[str] = set()
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.open.append(tag)
        self.seen.add(tag)
        assert {name for name, _ in attrs} <= {"style", "scope"}
        assert all("url(" not in (value or "") for _, value in attrs)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def test_what_comes_from_data_is_escaped() -> None:
    """Names of columns, categories and classes that are HTML stay text."""
    frame = FRAME.replace({"job": {"full": EVIL}, "approved": {"yes": EVIL}}).rename(columns={"sex": "<b>sex</b>"})
    pipeline = fitted(frame)
    question = pose(frame, "approved", pipeline, desired=EVIL, immutable=["age", "income"])
    rows = np.flatnonzero(pipeline.predict(frame.iloc[:, :-1]) == "no").tolist()
    shown = [explain(CeOcl(), question, row)._repr_html_() or "" for row in rows[:5]]
    assert any(EVIL.replace("<", "&lt;").replace(">", "&gt;").replace("'", "&#x27;") in html for html in shown)
    for html in shown:
        assert "<script" not in html
        assert "<b>" not in html
        page = Elements()
        page.feed(html)
        page.close()
        assert page.open == []
        assert page.seen <= {"div", "p", "table", "thead", "tbody", "tr", "th", "td", "details", "summary"}


def test_only_changes_are_emphasised(question: Any, pipeline: Pipeline) -> None:
    """From the old value to the new one, with an arrow; an infeasible question names its conflict, and no secret."""
    row = rejected(pipeline)[0]
    explanation = explain(CeOcl(max_changes=1), question, row)
    (answer,) = explanation.answers
    changed = [name for name, value in (answer.row or {}).items() if value != FRAME[name][row]]
    html = explanation._repr_html_() or ""
    assert html.count("font-weight:bold") == len(changed) == 1
    poor = {"age": 18, "income": 100.0, "job": "none", "sex": "f"}
    hard = explain(CeOcl(max_changes=1), pose(FRAME, "approved", pipeline, "yes", ["income", "sex"]), poor)
    assert hard.answers[0].status is Status.INFEASIBLE
    assert hard.conflict
    for shown in (str(hard), hard._repr_html_() or ""):
        assert "cannot hold together" in shown
        assert all(name in shown for name in hard.conflict)


def test_a_method_returns_explanations_without_context() -> None:
    """Printed plainly, compared and stored as ever: the stored row of an answer has not changed."""
    bare = Explanation((Answer(Status.GAVE_UP),))
    assert not hasattr(bare, "_repr_html_")
    assert str(bare) == repr(bare)
    assert "context" not in answer_row(0, 1, bare.answers[0])


def test_an_explanation_as_a_table(question: Any, pipeline: Pipeline, tmp_path: Path) -> None:
    """The factual and each answer, with scikit-learn's scores; the same in a spreadsheet."""
    row = rejected(pipeline)[0]
    explanation = explain(CeOcl(), question, row, n=2)
    frame = explanation.to_frame()
    assert frame.index.tolist() == ["factual", "CE 1", "CE 2"]
    rows = frame[list(FRAME.columns[:-1])]
    assert rows.iloc[0].to_dict() == FRAME.iloc[row, :-1].to_dict()
    assert rows.iloc[1:].to_dict("records") == [answer.row for answer in explanation.answers]
    assert frame["score"].tolist() == pytest.approx(pipeline.predict_proba(rows)[:, 1].tolist())
    assert frame["predicted"].tolist() == ["no", "yes", "yes"]
    assert frame["verdict"].tolist()[1:] == ["accepted", "accepted"]
    openpyxl = pytest.importorskip("openpyxl")
    explanation.to_excel(tmp_path / "person.xlsx")
    header, *lines = openpyxl.load_workbook(tmp_path / "person.xlsx").active.iter_rows(values_only=True)
    assert list(header)[1:] == list(frame.columns)
    assert [line[-len(rows.columns) :] for line in lines] == list(rows.itertuples(index=False, name=None))
    with pytest.raises(HarnessError, match=r"ends in \.xlsx"):
        explanation.to_excel(tmp_path / "person.csv")


def test_a_group_is_served_by_few(question: Any, pipeline: Pipeline) -> None:
    """Each person's counterfactual is one of the set, and the pipeline accepts all of them."""
    people = rejected(pipeline)[:4]
    group = explain_group(GroupGreedy(t_max=4), question, people)
    points = group.to_frame()
    assert points["people"].sum() == len(group.found.assignment) > 1
    assert pipeline.predict(points[list(FRAME.columns[:-1])]).tolist() == ["yes"] * len(points)
    for person, point in group.found.assignment.items():
        explained = group.people[person]
        assert explained.context.verdicts == ("accepted",)
        assert explained.answers[0].row == group.found.points[point].row
        assert explained.context.factual.iloc[0].to_dict() == FRAME.iloc[person, :-1].to_dict()
    assert str(group).startswith("4 people, wanted yes: ")
    assert "1. " in str(group)
    fine = next(row for row in range(len(FRAME)) if row not in rejected(pipeline))
    shown = str(explain_group(GroupGreedy(t_max=4), question, [*people, fine]))
    assert f"Left out, as the model already says what is wanted of them: {fine}." in shown
    assert "Left out" not in str(group)
    fixed = pose(FRAME, "approved", pipeline, "yes", immutable=list(FRAME.columns[:-1]))
    nobody = str(explain_group(GroupGreedy(t_max=4), fixed, [*people, fine]))
    assert nobody.endswith(f".\n\nLeft out, as the model already says what is wanted of them: {fine}.")
    with mock.patch.object(Pool, "explain_groups", autospec=True, side_effect=Pool.explain_groups) as asked:
        explain_group(GroupGreedy(t_max=4), question, people)
    assert [*asked.call_args.args[2]] == ["all"]  # as group=true has it: of the name a generator's seed is made
    for wrong, words in (
        ([fine], "nobody of these"),
        ([], "no people are given"),
        ([9999], "no row 9999"),
        (["me"], "'me' is no row"),
    ):
        with pytest.raises(HarnessError, match=words):
            explain_group(GroupGreedy(t_max=4), question, wrong)
    with pytest.raises(HarnessError, match="want different things"):
        explain_group(GroupGreedy(t_max=4), pose(FRAME, "approved", pipeline), [fine, people[0]])
    assert "explains no groups" in str(explain_group(Nearest(), question, people))
    claimed = replace(group, found=replace(group.found, status=Status.OPTIMAL))
    assert ", proven the fewest." in str(claimed)
    person = group.people[people[0]]
    wrong = replace(person, context=replace(person.context, verdicts=("worse than claimed",)))
    refuted = str(replace(claimed, people={**group.people, people[0]: wrong}))
    assert "proven the fewest" not in refuted
    assert "The checker found worse than claimed: 1." in refuted
    left = {one: point for one, point in group.found.assignment.items() if one not in people[:2]}
    for said, proven in (("none", True), ("worse than claimed", False)):
        second = replace(group.people[people[1]], context=replace(person.context, verdicts=(said,)))
        known = {**group.people, people[0]: second, people[1]: second}
        without = replace(group, people=known, found=replace(group.found, assignment=left, uncoverable=(people[1],)))
        assert f"Without a counterfactual: {people[0]}, {people[1]}." in str(without)
        assert (f"Proven to have none: {people[1]}." in str(without)) == proven
        assert ("The checker found worse than claimed: 2." in str(without)) != proven


@pytest.mark.slow
def test_a_worker_gives_the_same(question: Any, pipeline: Pipeline) -> None:
    """In a process of its own, with the same seed."""
    row = rejected(pipeline)[0]
    assert explain(CeOcl(), question, row, n=2, worker=True) == explain(CeOcl(), question, row, n=2)


def test_without_an_objective_there_is_gowers_distance() -> None:
    """From an income of 30 at an age of 30 to 80 at 40: .5 and .25, over five features."""
    found = Explanation((Answer(Status.FOUND, GRANTED),))
    told = str(in_context(found, None, loans.problem, loans.factual))
    assert [line.split()[2:] for line in told.splitlines() if line.startswith("Gower distance")] == [["0.15"]]


def test_a_second_question_asks_the_model_once(pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch) -> None:
    """For the verdicts on all answers together; scores are for who looks at them, and who is fine is known already."""
    task = pose(FRAME, target="approved", model=pipeline, desired="yes", immutable=["sex"])
    row = rejected(pipeline)[0]
    method = Given(tuple(Answer(Status.FOUND, answer.row) for answer in explain(CeOcl(), task, row, n=3).answers))
    calls: list[tuple[str, int]] = []
    for name in ("predict", "predict_proba"):
        asked = getattr(Pipeline, name)

        def counted(self: Any, rows: Any, name: str = name, asked: Any = asked) -> Any:
            calls.append((name, len(rows)))
            return asked(self, rows)

        monkeypatch.setattr(Pipeline, name, counted)
    explanation = explain(method, task, row, n=3)
    assert calls == [("predict", 3)]
    str(explanation)
    assert len(calls) > 1


@pytest.mark.parametrize("target", [None, "approved"])
def test_a_file_that_is_not_there_is_said_before_anything_else(tmp_path: Path, target: str | None) -> None:
    with pytest.raises(HarnessError, match=r"there is no model file .*nope\.onnx; give the path of an existing one"):
        pose(FRAME, target, tmp_path / "nope.onnx")


def test_equations_of_the_question_are_kept_to() -> None:
    """b is twice a and what is its own, which stays: whoever raises a raises b."""
    rng = np.random.default_rng(0)
    a = rng.normal(size=80)
    frame = pd.DataFrame({"a": a, "b": 2 * a + rng.normal(size=80) / 10})
    frame["t"] = np.where(frame["b"] > 0.5, "yes", "no")
    model = LogisticRegression().fit(frame[["a", "b"]], frame["t"])
    question = pose(frame, "t", model, desired="yes", causality={"b": {"formula": "2 * a"}})
    person = next(row for row in frame.index if not question.satisfied(row))
    (answer,) = explain(CeOcl(causality=True), question, person).answers
    assert answer.row is not None
    own = frame.loc[person, "b"] - 2 * frame.loc[person, "a"]
    assert answer.row["b"] - 2 * answer.row["a"] == pytest.approx(own, abs=1e-6)
    assert answer.row["a"] > frame.loc[person, "a"]
    found = []
    for learner in ("ridge", Ridge(solver="cholesky")):
        learnt = pose(frame, "t", model, desired="yes", causality={"b": {"parents": ["a"], "learn": learner}})
        (problem,) = learnt.problems.values()
        found.append(problem.equations[0].model.estimator.coef_.tolist())
    assert found[0] == found[1]
    with pytest.raises(DatasetError, match="no equation can be learnt by 'ridges'"):
        pose(frame, "t", model, desired="yes", causality={"b": {"parents": ["a"], "learn": "ridges"}})


def test_a_question_has_the_training_rows_that_the_command_line_has(tmp_path: Path) -> None:
    """Of a file that was read, three in four; of a table all, or those of ``split``. Everybody can be asked about."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.normal(size=60), "b": rng.normal(size=60)})
    frame["t"] = np.where(frame["a"] > 0, "yes", "no")
    frame.to_csv(tmp_path / "some.csv", index=False)
    model = LogisticRegression().fit(frame[["a", "b"]], frame["t"])
    data = load_csv(tmp_path / "some.csv", "t", desired="yes")
    asked, split = pose(data, model=model), pose(frame, "t", model, desired="yes", split={"test_size": 0.5})
    whole = pose(frame, "t", model, desired="yes")
    task = make_task(data, asked.classifier, which="all", n_factuals=20)
    for question, rows in ((asked, 45), (split, 30), (whole, 60)):
        (problem,) = question.problems.values()
        assert (len(problem.train), len(problem.labels), len(question.factuals)) == (rows, rows, 60)
    (problem,), (known,) = asked.problems.values(), task.problems.values()
    pd.testing.assert_frame_equal(problem.train, known.train)


def test_a_person_in_numbers_is_put_into_intervals() -> None:
    """As a file of people is."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.normal(size=60), "b": rng.normal(size=60)})
    frame["t"] = np.where(frame["a"] > 0, "yes", "no")
    data = load_dataset("the table", (), "t", tables=([frame], ""), discretise="quantile", split="none")
    model = OneHotEncoder().fit(data.frame)
    forest = make_pipeline(model, LogisticRegression()).fit(data.frame, data.labels)
    question = pose(frame, "t", forest, desired="yes", discretise="quantile")
    person = next(row for row in frame.index if not question.satisfied(row))
    values = frame.loc[person, ["a", "b"]].to_dict()
    given = [explain(Nearest(), question, one).context.factual.iloc[0].to_dict() for one in (person, values)]
    assert given[0] == given[1]
    with pytest.raises(DatasetError, match="missing"):
        explain(Nearest(), question, values | {"a": math.nan})


def test_which_answers_still_break_what_the_person_breaks(pipeline: Pipeline) -> None:
    """Of two the first keeps the income that is too low, the second raises it."""
    question = pose(FRAME, "approved", pipeline, "yes", constraints=["income >= 20000"])
    low = next(place for place in rejected(pipeline) if FRAME["income"][place] < 20_000)
    row = FRAME.drop(columns="approved").iloc[low].to_dict()
    older, richer = row | {"age": row["age"] + 1}, row | {"income": 50_000.0}
    told = "The factual itself breaks income >= 20000{}; counterfactuals may not break it further."
    for rows, still in (
        ((older, richer), ", and so does CE 1"),
        ((richer,), ""),
        ((older, older | {"age": 40}), ", and so do CE 1, CE 2"),
    ):
        answers = tuple(Answer(Status.FOUND, row) for row in rows)
        shown = " ".join(str(explain(Given(answers), question, low, n=len(rows))).split())
        assert told.format(still) in shown


def test_who_lies_beyond_a_bound_is_told_so(pipeline: Pipeline) -> None:
    """As are answers that stay beyond it, and values that do not exist; within the bounds nothing is said."""
    low = int(rejected(pipeline)[0])
    row = FRAME.drop(columns="approved").iloc[low].to_dict()
    end = row["age"] - 5
    for bounds, age, said in (
        ([0, 200], np.int64(row["age"] + 1), ""),  # a number of NumPy is one
        ([0, end], row["age"] - 1, f"beyond the bounds of age, 0 to {end}, and so does CE 1."),
        ([0, end], end, f"beyond the bounds of age, 0 to {end}."),
        ([0, 200], row["age"] + 0.5, f"CE 1: {row['age'] + 0.5} is no value of age."),
        ([0, 200], row["age"] + 1, ""),
    ):
        question = pose(FRAME, "approved", pipeline, "yes", features={"age": {"bounds": bounds}})
        shown = str(explain(Given((Answer(Status.FOUND, row | {"age": age}),)), question, low))
        assert (said or "checked") in " ".join(shown.split())
        assert ("beyond the bounds" in shown, "is no value" in shown) == ("bounds" in said, "no value" in said)
