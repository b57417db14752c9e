"""What people give a notebook by mistake is one sentence; what pandas and NumPy make of the same is taken."""

from __future__ import annotations

import logging
import math
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from pandas.testing import assert_frame_equal
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

from harness.core.errors import DatasetError, HarnessError
from harness.core.method import Explainer, equal
from harness.core.problem import Problem
from harness.data import load_csv, load_dataset
from harness.data.in_memory import check_frame
from harness.execution import clocks
from harness.execution.person import person_of
from harness.execution.task import Task
from harness.library import explain, explain_group, measure, pose
from methods.group_greedy import GroupGreedy
from methods.md_pso import MdPso
from methods.nearest import Nearest
from metrics.proximity import l0, l1

LOANS = Path(__file__).parent / "plugin" / "loans_plugin" / "loans.csv"
FRAME = pd.read_csv(LOANS, keep_default_na=False)
TARGET = "approved"
X = FRAME.drop(columns=TARGET)


@pytest.fixture(scope="module")
def model() -> Pipeline:
    texts = [name for name in X if not pd.api.types.is_numeric_dtype(X[name])]
    inputs = make_column_transformer((OneHotEncoder(), texts), remainder=StandardScaler())
    return make_pipeline(inputs, LogisticRegression(C=10)).fit(X, FRAME[TARGET])


@pytest.fixture(scope="module")
def question(model: Pipeline) -> Task:
    return pose(FRAME, TARGET, model)


@pytest.fixture(scope="module")
def refused(question: Task, model: Pipeline) -> list[int]:
    """People whom the model does not give the class that is wanted for them."""
    return [place for place in range(len(FRAME)) if not question.satisfied(place)]


@pytest.mark.parametrize(
    ("frame", "target", "words"),
    [
        (X, FRAME[TARGET], "target is a Series; give the name of a column"),
        (FRAME.set_axis(range(FRAME.shape[1]), axis=1), TARGET, "a column 0, which is no text"),
        (FRAME.assign(copy=1).rename(columns={"copy": "age"}), TARGET, "two columns 'age'"),
        (pd.concat([FRAME, FRAME[[TARGET]]], axis=1), TARGET, "two columns 'approved'"),
        (FRAME.assign(wave=1j), TARGET, "column 'wave' holds complex numbers"),
        (FRAME.assign(list=[[1]] * len(FRAME)), TARGET, "column 'list' holds lists"),
    ],
)
def test_a_frame_without_names_is_refused(frame: pd.DataFrame, target: Any, words: str, model: Pipeline) -> None:
    with pytest.raises(DatasetError, match=words):
        pose(frame, target, model)


def test_an_index_that_is_no_place_is_said(model: Pipeline, caplog: pytest.LogCaptureFixture) -> None:
    """As after a split: a label names nobody. Nothing is said of an index that counts from 0."""
    with caplog.at_level(logging.WARNING, "harness"):
        pose(FRAME, TARGET, model)
        assert "index" not in caplog.text
        half = FRAME.iloc[20:80]
        assert pose(half, TARGET, model).factuals.index.tolist() == list(range(60))
    assert "its index is not 0, 1, 2, ...; people are named by their place, so that 20 is person 0" in caplog.text
    with caplog.at_level(logging.WARNING, "harness"):
        pose(FRAME.iloc[[0, 1, 3, *range(5, 80)]], TARGET, model)
    assert "so that 3 is person 2." in caplog.text


@pytest.mark.every(1)
@pytest.mark.parametrize(
    ("label", "said"),
    [(0, None), (0.0, None), (pd.NA, "<NA> is person 0"), (5, "5 is person 0"), ("a", "'a' is person 0")],
)
def test_an_index_that_counts_from_0_is_one_of_any_type(
    label: Any, said: str | None, model: Pipeline, caplog: pytest.LogCaptureFixture
) -> None:
    """As of a table that pandas reads with nullable types."""
    kind = {float: "Float64", str: "object"}.get(type(label), "Int64")
    frame = FRAME.set_axis(pd.Index([label, *range(1, len(FRAME))], dtype=kind))
    with caplog.at_level(logging.WARNING, "harness"):
        pose(frame, TARGET, model)
    assert ("its index is not" in caplog.text) == (said is not None)
    assert (said or "") in caplog.text


def test_numbers_as_objects_are_said_to_be_categories(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "harness"):
        check_frame(FRAME.assign(age=FRAME["age"].astype(object)), TARGET)
    assert "column 'age' holds numbers as objects" in caplog.text
    assert "column 'job'" not in caplog.text


def test_attributes_may_be_of_numpy_and_pandas(model: Pipeline) -> None:
    """As the table's own least value, quantiles, and an index of columns."""
    least, ends = FRAME["age"].min(), FRAME["income"].quantile([0.0, 1.0])
    given = {"age": {"bounds": (least, 60)}, "income": {"bounds": ends}}
    space = pose(FRAME, TARGET, model, features=given, immutable=pd.Index(["sex"])).dataset.space
    assert space["age"].bounds == (least, 60)
    assert space["income"].bounds == tuple(ends)
    assert str(space["sex"].actionability) == "immutable"
    assert pose(FRAME, TARGET, model, features=X.columns).dataset.space.names == tuple(X)


@pytest.mark.parametrize(
    ("features", "words"),
    [
        ({"age": "increase"}, "attributes of feature age are 'increase'; give them by name"),
        ({"age": 5}, "attributes of feature age are 5"),
    ],
)
def test_attributes_are_given_by_name(features: Any, words: str, model: Pipeline) -> None:
    for table, target in ((FRAME, TARGET), (load_csv(LOANS, TARGET), None)):
        with pytest.raises(DatasetError, match=words):
            pose(table, target, model, features=features)


@pytest.mark.parametrize(
    ("given", "bounds"),
    [([30, 60], (30, 60)), ([None, 60], (None, 60)), ([30, math.inf], (30, math.inf)), ([], (None, None))],
)
def test_bounds_of_what_was_read_are_those_of_a_table(given: Any, bounds: Any, model: Pipeline) -> None:
    """An end that is None is the data's own, an infinite one far beyond them; empty are the data's."""
    age = FRAME["age"]
    low, high = age.min(), age.max()
    far = [low if bounds[0] is None else bounds[0], high if bounds[1] is None else min(bounds[1], 1e6)]
    for table, target in ((FRAME, TARGET), (load_csv(LOANS, TARGET, split="none"), None)):
        found = pose(table, target, model, features={"age": {"bounds": given}}).dataset.space["age"].bounds
        assert found[0] == far[0]
        assert found[1] == far[1] or (far[1] == 1e6 and high + 500 * (high - low) < found[1] < math.inf)


@pytest.mark.parametrize(
    ("features", "words"),
    [
        ({"age": {"bounds": [30]}}, "bounds"),
        ({"age": {"bounds": [60, 30]}}, "bounds"),
        ({"age": {"bounds": ["x", "y"]}}, "bounds"),
        ({"job": {"bounds": [1, 2]}}, "bounds"),
        ({"aeg": {"bounds": [1, 2]}}, "aeg"),
    ],
)
def test_no_bounds_are_one_sentence(features: Any, words: str, model: Pipeline) -> None:
    for table, target in ((FRAME, TARGET), (load_csv(LOANS, TARGET), None)):
        with pytest.raises(DatasetError, match=words):
            pose(table, target, model, features=features)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"causality": ["age"]}, "'causality' of .* is .'age'.; give a mapping from features' names"),
        ({"overrides": 3}, "'overrides' of .* is 3; give a mapping"),
        ({"features": 2.5}, "'features' of .* is 2.5; give names, or a mapping"),
        ({"task": ["regression"]}, "'task' of .* cannot be"),
        ({"classes": 2.5}, "classes is 2.5; give a list of the classes' names"),
        ({"classes": "no"}, "classes is 'no'; give a list"),
        ({"drop": 5}, "'drop' of .* is 5; give a list"),
        ({"drop": pd.Index(["age"])}, "'drop' of .* is Index.*; give a list"),
        ({"label": "age"}, "label"),
        ({"imutable": ["age"]}, "pose has no argument 'imutable'; did you mean 'immutable'\\? Allowed: missing, empty"),
    ],
)
def test_settings_of_another_type_are_one_sentence(given: dict[str, Any], words: str, model: Pipeline) -> None:
    with pytest.raises(HarnessError, match=words):
        pose(FRAME, TARGET, model, **given)


LEVELS = pd.CategoricalDtype(["low", "mid", "high", "top"], ordered=True)


def ranked(gaps: bool = False) -> pd.DataFrame:
    """Loans with a column of ordered categories, of which one does not occur."""
    levels = pd.Series(["mid", "low", "high"] * 20 + [None if gaps else "low"] * (len(FRAME) - 60), FRAME.index)
    return FRAME.assign(risk=levels.astype(LEVELS))


@pytest.mark.parametrize(
    ("given", "kind", "categories"),
    [
        ({}, "ordinal", ("low", "mid", "high")),
        ({"features": {"risk": {"actionability": "increase"}}}, "ordinal", ("low", "mid", "high")),
        ({"features": {"risk": {"categories": ["high", "mid", "low"]}}}, "ordinal", ("high", "mid", "low")),
        ({"features": {"risk": {"kind": "categorical"}}}, "categorical", ("high", "low", "mid")),
        ({"features": {"risk": {"costs": {"low": {"mid": 0.5}}}}}, "categorical", ("high", "low", "mid")),
        ({"features": ["age", "risk"]}, "ordinal", ("low", "mid", "high")),
    ],
)
def test_the_order_of_ordered_categories_is_kept(given: Any, kind: str, categories: Any) -> None:
    table = ranked()
    model = LogisticRegression().fit(table[["age"]], table[TARGET])
    feature = pose(table, TARGET, model, **given).dataset.space["risk"]
    assert (str(feature.kind), feature.categories) == (kind, categories)


def test_gaps_of_ordered_categories_have_no_rank() -> None:
    """Where they are to be a category; filled, they have that of what fills them."""
    table = ranked(gaps=True)
    model = LogisticRegression().fit(table[["age"]], table[TARGET])
    kinds = [str(pose(table, TARGET, model, missing=how).dataset.space["risk"].kind) for how in ("category", "drop")]
    assert kinds == ["categorical", "ordinal"]


@pytest.mark.parametrize(
    ("cells", "what"),
    [([f"c{place}" for place in range(len(FRAME))], "text"), (range(7, 7 + len(FRAME)), "whole number")],
)
def test_a_different_cell_in_every_row_is_said(cells: Any, what: str, caplog: pytest.LogCaptureFixture) -> None:
    """As of an id, which a counterfactual would change; not of few rows, which may differ by chance."""
    table = FRAME.assign(client=cells)
    for given, drop in ((table.head(20), None), (table, ["client"])):
        check_frame(given, TARGET, drop=drop)
    assert "every row" not in caplog.text
    check_frame(table, TARGET)
    assert (
        f"column 'client' has a different {what} in every row; if it is an id or a name, leave it out by" in caplog.text
    )
    assert caplog.text.count("every row") == 1


def test_numbers_held_as_texts_are_said_to_be(model: Pipeline) -> None:
    with pytest.raises(DatasetError, match="holds its numbers as texts, objects or dates, such as '"):
        pose(FRAME.assign(age=FRAME["age"].astype(str)), TARGET, model, features={"age": {"kind": "continuous"}})


def test_classes_are_the_same_as_whole_numbers_and_as_floats() -> None:
    """A target of 0.0 and 1.0 is one of 0 and 1."""
    labels = (FRAME[TARGET] == FRAME[TARGET].iloc[0]).astype(float)
    numbers = X[["age", "income"]]
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(numbers, labels)
    assert set(pose(numbers.assign(y=labels), "y", model).dataset.classes) == {0, 1}


def test_a_table_of_too_many_categories_is_refused(model: Pipeline) -> None:
    frame = pd.concat([FRAME] * 50, ignore_index=True)
    with pytest.raises(DatasetError, match="columns when categories are encoded, and 5000 are allowed"):
        pose(frame.assign(number=[f"c{place}" for place in frame.index]), TARGET, model)


def test_a_person_may_be_a_row_turned_into_a_table(question: Task, refused: list[int]) -> None:
    """Whose columns are objects; and values that are missing, as pandas has them, are gaps and no traceback."""
    person = X.iloc[refused[0]].to_frame().T
    both = [explain(Nearest(), question, one).answers for one in (person, refused[0])]
    assert both[0][0].row == both[1][0].row is not None
    nobody = X.iloc[refused[0]].astype(object)
    nobody["age"] = pd.NA
    with pytest.raises(DatasetError, match="missing"):
        explain(Nearest(), question, nobody)


def test_a_feature_may_be_called_self() -> None:
    """As an argument of pandas' own functions is called."""
    numbers = X[["age", "income"]].rename(columns={"age": "self"})
    table = numbers.assign(**{TARGET: FRAME[TARGET]})
    asked = pose(table, TARGET, LogisticRegression().fit(numbers, FRAME[TARGET]), missing="median")
    place = next(place for place in range(len(table)) if not asked.satisfied(place))
    found = explain(Nearest(), asked, {"self": math.nan, "income": numbers["income"][place]}).to_frame()
    assert found["self"].notna().all()
    assert found.columns[-2:].tolist() == ["self", "income"]


def test_a_feature_called_self_is_clipped_moved_and_measured() -> None:
    """Of an opaque model, which MD-PSO asks with whole tables."""
    numbers = X[["age", "income"]].rename(columns={"age": "self"}).astype(float)
    model = make_pipeline(FunctionTransformer(np.sqrt), LogisticRegression()).fit(numbers, FRAME[TARGET])
    table = numbers.assign(**{TARGET: FRAME[TARGET]})
    asked = pose(table, TARGET, model, features={"self": {"clip": [20, None]}})
    assert asked.dataset.frame["self"].min() == 20
    place = next(place for place in range(len(table)) if not asked.satisfied(place))
    found = explain(MdPso(), asked, place, time_limit=60.0)
    assert found.context.verdicts == ("accepted",)
    assert 0 <= measure(found, "invalidation_rate").iloc[0] <= 1


def test_whole_numbers_stay_whole_in_a_table() -> None:
    """Also where no feature is a text, and others are fractions."""
    numbers = X[["age", "income"]].assign(income=X["income"] + 0.5)
    model = LogisticRegression().fit(numbers, FRAME[TARGET])
    asked = pose(numbers.assign(**{TARGET: FRAME[TARGET]}), TARGET, model)
    place = next(place for place in range(len(numbers)) if not asked.satisfied(place))
    found = explain(Nearest(), asked, place).to_frame()
    assert [found[name].dtype.kind for name in numbers] == ["i", "f"]


def test_what_was_done_to_cells_is_shown(caplog: pytest.LogCaptureFixture) -> None:
    """As warnings, which are shown where nobody set up logging: of the table, and of a later person."""
    numbers = X[["age", "income"]].astype(float)
    numbers.loc[0, "age"] = math.nan
    labels = FRAME[TARGET]
    forest = LogisticRegression().fit(numbers.fillna(40.0), labels)
    with caplog.at_level(logging.WARNING, "harness"):
        asked = pose(numbers.assign(**{TARGET: labels}), TARGET, forest, missing="median")
        assert "the table: missing cells: filled 1 of age by its median" in caplog.text
        explain(Nearest(), asked, {"age": math.nan, "income": numbers["income"][1]})
    assert "the person: missing age filled by the training rows." in caplog.text


def test_what_is_said_of_a_table_names_arguments(caplog: pytest.LogCaptureFixture, model: Pipeline) -> None:
    """In Python, and settings where a command reads the same."""
    table = FRAME.assign(same=1)
    pose(table, TARGET, model)
    assert "immutable unless features={'same': {'actionability': ...}} says otherwise" in caplog.text
    caplog.clear()
    load_dataset("loans", (), TARGET, tables=([table], "0"))
    assert "immutable unless features.same.actionability says otherwise" in caplog.text


def test_a_label_is_never_filled_in(model: Pipeline) -> None:
    """Said where features are filled, with what does both."""
    table = FRAME.astype({TARGET: object})
    table.loc[3, TARGET] = None
    with pytest.raises(DatasetError, match="row 3; a label is never filled in, not by missing='median' either"):
        pose(table, TARGET, model, missing="median")
    table.loc[5, "income"] = math.nan
    posed = pose(table, TARGET, model, missing="drop", features={"income": {"missing": "median"}})
    assert len(posed.factuals) == len(FRAME) - 1


def test_a_table_of_costs_is_a_sentence(model: Pipeline) -> None:
    name = next(name for name in X if not pd.api.types.is_numeric_dtype(X[name]))
    with pytest.raises(DatasetError, match=f"costs of {name} are .*give {{FROM: {{TO: COST}}}}"):
        pose(FRAME, TARGET, model, features={name: {"costs": pd.DataFrame({"a": [1.0]})}})


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Task:
    """About a CSV with points between thousands, decimal commas, a unit and dates."""
    rng = np.random.default_rng(0)
    cells = [f"€ {x:,.2f}".translate(str.maketrans(",.", ".,")) for x in rng.uniform(500, 9000, 60)]
    days = [f"{day:02d}.{month:02d}.2020" for day, month in rng.integers(1, 12, (60, 2))]
    table = pd.DataFrame({"income": cells, "since": days, "member": rng.random(60) < 0.5})
    path = tmp_path_factory.mktemp("written") / "loans.csv"
    table.assign(ok=np.where(rng.random(60) < 0.5, "yes", "no")).to_csv(path, sep=";", index=False)
    dataset = load_csv(path, "ok", missing="median", features={"member": {"missing": "most_frequent"}})
    numbers = dataset.frame.astype(float)
    return pose(
        dataset, model=LogisticRegression().fit(numbers, numbers["income"].lt(5000).map({True: "no", False: "yes"}))
    )


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ({"income": "€ 1.200,50"}, {"income": 1200.5}),
        ({"income": " 1200,50 "}, {"income": 1200.5}),
        ({"since": "02.01.1970"}, {"since": 1}),
        ({"since": "1970-01-02"}, {"since": 1}),
        ({"since": pd.Timestamp("1970-01-02 10:00")}, {"since": 1}),
        ({"member": "TRUE"}, {"member": True}),
        ({"income": "NA", "since": pd.NaT}, {"income": math.nan, "since": math.nan}),
    ],
)
def test_a_person_may_be_written_as_the_file_is(given: dict[str, Any], meant: dict[str, Any], written: Task) -> None:
    """By feature, as a Series and as a frame; columns beside the features, such as a name, are not looked at."""
    person = written.dataset.frame.iloc[0].to_dict() | {"name": "Ada"}
    wanted = person_of(written, person | meant)[0]
    for one in (person | given, pd.Series(person | given), pd.DataFrame([person | given])):
        assert_frame_equal(person_of(written, one)[0], wanted)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"income": "much"}, "the person holds 'much' in column 'income'; give a number such as €"),
        (
            {"since": "31.02.2020"},
            r"the person holds '31.02.2020' in column 'since'; give a date such as \d\d.\d\d.2020",
        ),
        (
            {"member": "perhaps"},
            "the person has the unseen category 'perhaps' in column 'member'; allowed: False, True",
        ),
    ],
)
def test_what_a_person_cannot_be_is_told(given: dict[str, Any], words: str, written: Task) -> None:
    with pytest.raises(DatasetError, match=words):
        explain(Nearest(), written, written.dataset.frame.iloc[0].to_dict() | given)


def test_a_number_is_the_category_that_it_is_written_as() -> None:
    """Of codes that a table holds as texts; and the other way round."""
    coded = FRAME.assign(code=FRAME["age"].astype(str), flag=(FRAME["age"] > 40).astype(int))
    model = LogisticRegression().fit(coded[["age"]], coded[TARGET])
    asked, person = pose(coded, TARGET, model), coded.iloc[0].to_dict()
    for code in (int(person["age"]), float(person["age"]), np.int64(person["age"])):
        assert person_of(asked, person | {"code": code, "flag": "1"})[0][["code", "flag"]].iloc[0].tolist() == [
            person["code"],
            1,
        ]
    with pytest.raises(DatasetError, match="the person has the unseen category '3' in column 'code'; allowed: "):
        person_of(asked, person | {"code": 3})


def test_blanks_at_a_category_are_none_of_a_persons_business() -> None:
    """As of a database's columns of fixed width, of which a person's text has lost them."""
    table = FRAME.assign(job=FRAME["job"] + " ")
    model = LogisticRegression().fit(table[["age"]], table[TARGET])
    person = FRAME.iloc[0].to_dict()
    assert person_of(pose(table, TARGET, model), person)[0]["job"].item() == person["job"] + " "


def test_a_person_has_each_column_once(question: Task) -> None:
    twice = pd.concat([X.iloc[[0]], X.iloc[[0]][["age"]]], axis=1)
    for person in (twice, twice.iloc[0]):
        with pytest.raises(DatasetError, match="the person has two columns 'age'; drop one"):
            explain(Nearest(), question, person)


def test_a_value_that_pandas_calls_missing_is_a_gap() -> None:
    """Of a model that takes gaps as they are."""
    numbers = X[["age", "income"]].astype(float)
    numbers.loc[0, "age"] = math.nan
    model = HistGradientBoostingClassifier(max_iter=5).fit(numbers, FRAME[TARGET])
    asked = pose(numbers.assign(**{TARGET: FRAME[TARGET]}), TARGET, model, missing="value")
    person = numbers.iloc[1].astype(object)
    answers = []
    for gap in (math.nan, pd.NA):
        person["age"] = gap
        answers.append(explain(Nearest(), asked, person).answers[0].row)
    assert answers[0] == answers[1]


@pytest.mark.parametrize("ask", [explain, explain_group])
@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"time_limit": None}, "time_limit=None do not fit"),
        ({"time_limit": "5"}, "time_limit='5' do not fit"),
        ({"time_limit": math.inf}, "time_limit='inf' do not fit"),
        ({"time_limit": math.nan}, "time_limit='nan' do not fit"),
        ({"time_limit": 0}, "time_limit=0 do not fit; give at least 1, and seconds above 0, at most 1,000,000"),
        ({"time_limit": 1_000_001}, "time_limit=1000001 do not fit"),
        ({"seed": -1}, "seed=-1 does not fit; give a whole number of at least 0"),
        ({"seed": None}, "seed=None does not fit"),
        ({"seed": 0.5}, "seed=0.5 does not fit"),
        ({"seed": 2**32}, "seed=4294967296 does not fit"),
        ({"task": FRAME}, "the question is a DataFrame"),
        ({"method": "nearest"}, "'nearest' is no method"),
        ({"method": GroupGreedy}, "the class GroupGreedy is no method"),
    ],
)
def test_what_is_no_question_and_no_number_is_refused(
    ask: Callable[..., Any], change: dict[str, Any], words: str, question: Task, refused: list[int]
) -> None:
    given = (Nearest(), refused[0]) if ask is explain else (GroupGreedy(), refused[:2])
    asked = {"method": given[0], "task": question, "people" if ask is explain_group else "person": given[1], **change}
    with pytest.raises(HarnessError, match=words):
        ask(**asked)


def test_true_is_no_number_of_counterfactuals(question: Task) -> None:
    with pytest.raises(HarnessError, match="n=True and"):
        explain(Nearest(), question, 0, n=True)


@pytest.mark.parametrize(("people", "words"), [("me", "'me' is no row"), ([{"age": 3}], "is no row of the table")])
def test_people_of_a_group_are_rows(people: Any, words: str, question: Task) -> None:
    with pytest.raises(DatasetError, match=words):
        explain_group(GroupGreedy(), question, people)


def test_one_person_is_a_group(question: Task, refused: list[int]) -> None:
    """With metrics for each of its people, as of answers that were asked for one by one."""
    alone = explain_group(GroupGreedy(), question, refused[0])  # type: ignore[arg-type]
    assert list(alone.people) == refused[:1]
    table = measure(alone, l1)
    assert table.columns.tolist() == ["distance/l1"]
    assert table.index.tolist() == refused[:1]
    assert measure(explain(Nearest(), question, refused[0]), [l1, "l0"]).index.tolist() == [l1.name, l0.name]


def test_a_function_is_no_metric(question: Task, refused: list[int]) -> None:
    found = explain(Nearest(), question, refused[0])
    with pytest.raises(HarnessError, match="max is no metric; declare it with @metric"):
        measure(found, [max])  # type: ignore[list-item]


def test_what_cannot_be_sent_to_a_process_is_said(refused: list[int]) -> None:
    """A model with a function that has no name elsewhere."""
    doubled = FunctionTransformer(lambda frame: 2 * frame, feature_names_out="one-to-one")
    numbers = X[["age", "income"]]
    model = make_pipeline(doubled, LogisticRegression()).fit(numbers, FRAME[TARGET])
    asked = pose(numbers.assign(**{TARGET: FRAME[TARGET]}), TARGET, model)
    person = next(place for place in range(len(FRAME)) if not asked.satisfied(place))
    with pytest.raises(HarnessError, match="cannot be sent to a process of its own"):
        explain(Nearest(), asked, person, worker=True)


@pytest.mark.parametrize("setting", ["name", "sources", "tables", "read", "published"])
def test_settings_of_files_are_refused(setting: str, model: Pipeline) -> None:
    with pytest.raises(DatasetError, match=f"{setting} is a setting of files"):
        pose(FRAME, TARGET, model, **{setting: ["x"]})


def test_a_classifier_fits_the_table_or_says_what_does_not(question: Task) -> None:
    classifier = question.classifier
    assert pose(FRAME, TARGET, classifier).classifier is classifier
    more = replace(classifier, classes=(*classifier.classes, "perhaps"))
    assert pose(FRAME, TARGET, more).classifier is more  # of which nobody is here
    with pytest.raises(HarnessError, match="the table has no column 'age'"):
        pose(FRAME.drop(columns="age"), TARGET, classifier)
    renamed = FRAME.assign(**{TARGET: FRAME[TARGET].map(lambda says: f"{says}!")})
    with pytest.raises(HarnessError, match="the Classifier says 'no', 'yes', and the target's column 'no!', 'yes!'"):
        pose(renamed, TARGET, classifier)


class Own(ClassifierMixin, BaseEstimator):
    """A model of somebody's own."""

    def __init__(
        self, predicted: Any = ("no", "yes"), probabilities: Callable[[np.ndarray], Any] | None = None
    ) -> None:
        self.predicted, self.probabilities = predicted, probabilities

    def fit(self, people: pd.DataFrame, says: Any) -> Own:
        self.classes_ = np.unique(says)
        return self

    def predict(self, people: pd.DataFrame) -> np.ndarray:
        return np.array(self.predicted)[(people["age"] > 40).astype(int)]

    def predict_proba(self, people: pd.DataFrame) -> Any:
        sure = np.where(people["age"] > 40, 0.9, 0.2)
        return (self.probabilities or list)(np.column_stack([1 - sure, sure]))


def test_probabilities_may_be_a_list_or_a_frame() -> None:
    for form in (list, pd.DataFrame, np.ndarray.tolist):
        asked = pose(FRAME, TARGET, Own(probabilities=form).fit(X, FRAME[TARGET]), desired="yes")
        place = next(place for place in range(len(FRAME)) if not asked.satisfied(place))
        assert explain(Nearest(), asked, place).to_frame()["score"].tolist() == [0.2, 0.9]


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (Own((0, 1)), "rows fails: predict gives [01], and classes_ are 'no', 'yes'\\.$"),
        (
            Own(probabilities=lambda found: found[:, 1]),
            r"rows fails: predict_proba gives the shape \(\d+,\), and not a",
        ),
    ],
)
def test_what_a_model_of_ones_own_does_wrong_is_told(model: Own, words: str) -> None:
    with pytest.raises(HarnessError, match=words):
        pose(FRAME, TARGET, model.fit(X, FRAME[TARGET]), desired="yes")


def test_a_target_of_one_column_is_not_several() -> None:
    """As of frame[["income"]]."""
    numbers = FRAME[["age", "income"]]
    with pytest.raises(HarnessError, match="it predicts a column of its own; train it on y, a Series"):
        pose(numbers, "income", LinearRegression().fit(numbers[["age"]], numbers[["income"]]), desired=">= 3")


@dataclass(frozen=True)
class Slow(Nearest):
    def fit(self, problem: Problem) -> Explainer:
        time.sleep(0.7)
        return super().fit(problem)


def test_who_waits_for_a_fit_is_told(
    question: Task, refused: list[int], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Ever more seldom, and of the next person, who needs no fit, nothing."""
    monkeypatch.setattr(clocks, "SILENT", 0.2)
    explain(Slow(), question, refused[0])
    said = "fitting Slow, once for all people: {} s so far"
    lines = [line for line in capsys.readouterr().err.splitlines() if "Slow" in line]
    assert lines[:2] == [said.format(0.2), said.format(0.4)]
    explain(Slow(), question, refused[1])
    assert "Slow" not in capsys.readouterr().err


@dataclass(frozen=True)
class Weighted(Nearest):
    weights: Any = None


def test_methods_of_arrays_are_asked_again(question: Task, refused: list[int]) -> None:
    """Two that are equal but for being two compare by element."""
    found = [explain(Weighted(weights=np.ones(3)), question, refused[0]) for _ in range(2)]
    assert found[0].answers == found[1].answers
    ones, zeros = Weighted(weights=np.ones(3)), Weighted(weights=np.zeros(3))
    assert (equal(ones, ones), equal(ones, zeros)) == (True, False)


def test_measure_says_of_what_it_is_not_of() -> None:
    with pytest.raises(HarnessError, match="measure what harness"):
        measure(3, "l1")
    with pytest.raises(HarnessError, match="does not exist; allowed: accepted"):
        measure([], "l1", population=["accepted"])


DAY = pd.to_datetime(["2024-01-01", "2024-02-01"])


@pytest.mark.parametrize(
    ("cells", "said"),
    [
        (DAY, "holds dates; give numbers or texts, as by (column - column.min()).dt.days, or drop it."),
        (DAY.tz_localize("UTC"), "holds dates"),
        ([day.date() for day in DAY], "holds dates"),
        (DAY - DAY[0], "holds durations; give numbers or texts, as by column.dt.total_seconds()"),
        (pd.period_range("2024-01", periods=2, freq="M"), "holds periods"),
        (pd.cut([1, 9], 2), "holds intervals; give numbers or texts, as by column.astype(str)"),
        (pd.Categorical(DAY), "holds dates"),
        ([Decimal("1.5"), Decimal(2)], "holds decimals; give numbers or texts, as by column.astype(float)"),
        ([b"a", b"b"], "holds bytes"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_is_neither_number_nor_text_is_refused(cells: Any, said: str) -> None:
    """A method would give it back, and be blamed for what is no plain value."""
    table = pd.DataFrame({"age": range(20), "when": pd.Series(list(cells) * 10), "y": [0, 1] * 10})
    if isinstance(cells, pd.Categorical):
        table["when"] = pd.Categorical.from_codes([0, 1] * 10, dtype=cells.dtype)
    with pytest.raises(DatasetError, match=re.escape(f"the table's column 'when' {said}")):
        check_frame(table, "y")


def test_columns_that_nobody_uses_may_hold_anything(model: Pipeline) -> None:
    """Dropped, as after a split by them, not among the features, or empty."""
    when = pd.Series(pd.date_range("2024-01-01", periods=len(FRAME)), FRAME.index)
    dated = FRAME.assign(when=when)
    for given in ({"drop": ["when"]}, {"features": list(X.columns)}, {"drop": ["when"], "split": {"time": "when"}}):
        assert "when" not in pose(dated, TARGET, model, **given).dataset.space.names
    check_frame(FRAME.assign(when=pd.Series(pd.NaT, FRAME.index)), TARGET)
    with pytest.raises(DatasetError, match="the table's column 'when' holds dates"):
        pose(dated, TARGET, model)


def test_rows_that_there_are_not_are_told_as_they_are(question: Task, model: Pipeline) -> None:
    """All of them, or all but those that were dropped."""
    with pytest.raises(DatasetError, match=rf"allowed: 0 to {len(FRAME) - 1}\.$"):
        explain(Nearest(), question, 99_999)
    gaps = FRAME.assign(income=FRAME["income"].astype(float).where(FRAME.index != 5))
    dropped = pose(gaps, TARGET, model, missing="drop")
    with pytest.raises(DatasetError, match="without the rows dropped as incomplete"):
        explain(Nearest(), dropped, 5)
