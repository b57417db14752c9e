"""A CSV of one's own: what is said of it, what is inferred, and what a stranger's file may get wrong."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from omegaconf import OmegaConf
from sklearn.compose import make_column_transformer
from sklearn.pipeline import make_pipeline
from sklearn.tree import DecisionTreeClassifier

from harness.cli.arguments import plain_names, readable
from harness.core.errors import DatasetError
from harness.data import Dataset, load_csv
from harness.data.csv_factuals import read_factuals
from harness.data.csv_load import load_settled
from harness.data.csv_report import introduce
from harness.data.csv_settings import CHECKS, settle, shown_name
from harness.data.sidecar import read_sidecar
from harness.library import explain, pose
from methods.nearest import Nearest

ROWS = 40
TABLE = pd.DataFrame(
    {
        "age": [20 + row for row in range(20)] * 2,
        "income": [100.5 + 3 * row for row in range(ROWS)],
        "sex": ["f", "m"] * (ROWS // 2),
        "job": ["none", "part", "full", "part"] * (ROWS // 4),
        "member": [True, False, False, True] * (ROWS // 4),
        "one": ["same"] * ROWS,
        "approved": ["no"] * 25 + ["yes"] * 15,
    }
)
Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Put a CSV, and perhaps a YAML beside it."""

    def written(content: str | bytes | pd.DataFrame = TABLE, beside: str | bytes | None = None, **options: Any) -> Path:
        path = tmp_path / "loans.csv"
        if isinstance(content, pd.DataFrame):
            content = content.to_csv(index=False, **options)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        if beside is not None:
            path.with_suffix(".yaml").write_bytes(beside.encode() if isinstance(beside, str) else beside)
        return path

    return written


def simple(column: str, values: list[Any], sep: str = ",") -> str:
    """A table of x, a column of texts and a target y."""
    rows = [f"{row % 7}{sep}{value}{sep}{'pq'[row % 2]}" for row, value in enumerate(values)]
    return "\n".join([f"x{sep}{column}{sep}y", *rows]) + "\n"


def refused(path: Path, target: str | None = "y", **settings: Any) -> str:
    with pytest.raises(DatasetError) as error:
        load_csv(path, target, **settings)
    assert len(str(error.value).splitlines()) == 1
    return str(error.value)


def test_every_setting_is_a_line_of_the_choice() -> None:
    """``conf/dataset/csv.yaml`` has each setting that is known, with a comment, and nothing else."""
    path = Path(__file__).parents[2] / "conf" / "dataset" / "csv.yaml"
    assert set(OmegaConf.load(path)) == set(CHECKS)
    assert all("#" in line for line in path.read_text().splitlines())


def test_kinds_are_inferred_with_reasons(write: Write) -> None:
    """As pandas' own types say, and the table has a line a feature."""
    dataset = load_csv(write(), "approved")
    expected = ["integer", "continuous", "binary", "categorical", "binary", "binary"]
    assert [feature.kind for feature in dataset.space.features] == expected
    pd.testing.assert_series_equal(dataset.frame["income"], TABLE["income"])
    assert dataset.frame["member"].tolist() == TABLE["member"].tolist()
    assert dataset.labels.tolist() == TABLE["approved"].tolist()
    assert dataset.reasons["job"] == "3 different texts"
    assert dataset.space["one"].actionability == "immutable"
    text = introduce(dataset, {})
    ages = TABLE["age"].iloc[dataset.train]
    for part in (
        "no (25), yes (15)",
        "desired=no or desired=yes",
        f"{ages.min()} to {ages.max()}",
        "full, none, part",
        "two texts",
    ):
        assert part in text
    assert "constant: immutable" in text


def test_the_command_line_wins_over_the_yaml_and_that_over_inference(write: Write) -> None:
    """Attribute by attribute; where each was set is reported."""
    beside = """
        target: approved
        desired: yes
        immutable: [sex]
        drop: [one]
        features:
          age: {actionability: increase, bounds: [18, .inf]}
          job: {kind: ordinal, categories: [none, part, full], actionability: increase}
        causality:
          income: {formula: 2 * age}
    """
    path = write(beside=beside)
    dataset = load_csv(path)
    space = dataset.space
    assert (dataset.desired, "one" in space.names) == ("yes", False)
    assert space["sex"].actionability == "immutable"
    assert space["job"].categories == ("none", "part", "full")
    assert space["age"].bounds[0] == 18
    assert dataset.causality == {"income": {"formula": "2 * age"}}
    given = {"path": str(path), "immutable": ["job"], "drop": [], "causality": {"income": None}}
    settled, origins = settle(given, {"age": {"actionability": "decrease"}}, "no")
    dataset = load_settled(settled)
    space = dataset.space
    assert (dataset.desired, "one" in space.names) == ("no", True)
    assert [space[name].actionability for name in ("age", "sex", "job")] == ["decrease", "free", "immutable"]
    assert space["age"].bounds[0] == 18
    assert dataset.causality == {"income": None}
    text = introduce(dataset, origins)
    assert "actionability set on the command line; bounds set in loans.yaml" in text
    assert "kind and categories set in loans.yaml" in text


def test_the_yaml_need_not_select(write: Write) -> None:
    """A mapping of features describes some of them; a list selects."""
    described = load_csv(write(), "approved", features={"age": {"kind": "continuous"}})
    assert len(described.space.features) == 6
    assert load_csv(write(), "approved", features=["sex", "age"]).space.names == ("sex", "age")


@pytest.mark.parametrize(
    ("beside", "parts"),
    [
        ("targt: y", ["loans.yaml has no setting 'targt'", "did you mean 'target'"]),
        ("path: /etc/passwd", ["loans.yaml has no setting 'path'", "set in the call"]),
        ("max_megabytes: 1e9", ["no setting 'max_megabytes'", "set in the call"]),
        ("- a\n- b", ["no mapping"]),
        ("just text", ["no mapping but 'just text'"]),
        ("target: [a", ["no YAML"]),
        ("target: y\ntarget: x", ["'target' twice", "line 2"]),
        ("immutable: {a: 1}", ["immutable of loans.yaml", "list of column names"]),
        ("features: {x: {kindd: integer}}", ["no attribute 'kindd'", "did you mean 'kind'"]),
        ("features: {x: {bounds: [a, b]}}", ["bounds of x holds 'a'", "give a number as its column has"]),
        ("missing: medain", ["missing of loans.yaml is 'medain'", "median"]),
        ("a: &a [1, 1]\nb: [*a, *a]", ["anchor or alias", "line 1"]),
        ("target: !!python/object/apply:os.system [id]", ["the tag", "line 1"]),
        ("target: !!python/name:os.system ''", ["the tag"]),
        ("? [a, b]\n: 1", ["as a key"]),
        ("[" * 40 + "]" * 40, ["nested more than"]),
        ("[" * 5000, ["nested more than"]),
        ("x" * 300_000, ["larger than 0.25 MB"]),
        (b"\x00\x01", ["control character"]),
        ("causality: {x: {parents: [z], learn: {_target_: os.system}}}", ["learnt by", "name of a regression model"]),
        ("target: a\n---\ntarget: b", ["another document"]),
    ],
)
def test_a_hostile_yaml_is_one_sentence(write: Write, beside: str | bytes, parts: list[str]) -> None:
    sentence = refused(write(simple("z", list(range(20))), beside))
    for part in parts:
        assert part in sentence


def test_a_yaml_is_data_only(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    """Interpolations, words and times are texts; numbers are numbers."""
    monkeypatch.setenv("SECRET", "told")
    path = write(beside="a: ${oc.env:SECRET}\nb: yes\nc: 12:30\nd: 1e5\ne: '1'\nf: 010\ng: .inf\nh: 2024-01-31\ni: ~\n")
    read = read_sidecar(path.with_suffix(".yaml"))
    expected = ["${oc.env:SECRET}", "yes", "12:30", 1e5, "1", 10, np.inf, "2024-01-31", None]
    assert list(read.values()) == expected
    path = write(beside="target: ${oc.env:SECRET}")
    assert "'${oc.env:SECRET}'" in refused(path, None)


def same(dataset: Dataset, other: Dataset) -> None:
    pd.testing.assert_frame_equal(dataset.frame, other.frame)
    assert dataset.labels.tolist() == other.labels.tolist()


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32", "latin-1", "cp1252"])
@pytest.mark.parametrize("sep", [",", ";", "\t", "|"])
def test_encodings_and_separators_are_found(write: Write, encoding: str, sep: str) -> None:
    """The same table however it is written; other forms than the usual are reported."""
    table = TABLE.assign(job=TABLE["job"].replace("none", 'für, sich; "a"|\tb'))
    usual = load_csv(write(table), "approved")
    dataset = load_csv(write(table.to_csv(index=False, sep=sep, lineterminator="\r\n").encode(encoding)), "approved")
    same(dataset, usual)
    notices = " ".join(dataset.notices)
    assert ("separated" in notices) == (sep != ",")
    assert ("UTF-8" in notices) == (encoding in {"latin-1", "cp1252"})


def test_decimal_commas(write: Write) -> None:
    """Are read where commas do not separate the cells, with groups of digits where those are said."""
    usual = load_csv(write(), "approved")
    same(load_csv(write(sep=";", decimal=","), "approved"), usual)
    grouped = simple("z", ["1.234,5", "2.000,25", "17"] * 8, ";")
    assert "points between thousands" in load_csv(write(grouped), "y").reasons["z"]
    assert load_csv(write(grouped), "y", decimal=",", thousands=".").frame["z"].max() == 2000.25
    mixed = load_csv(write(simple("z", ["1,5", "2,5"] * 10, ";").replace("\n0;", "\n0.5;")), "y")
    assert (mixed.frame["x"].iloc[0], mixed.frame["z"].iloc[0]) == (0.5, 1.5)


@pytest.mark.parametrize(
    ("content", "parts"),
    [
        ("", ["loans.csv is empty"]),
        (" \n\n", ["is empty"]),
        ('""\n""\n', ["is empty"]),
        ("x,y\n", ["no rows, only a header line"]),
        ("y\n1\n2\n", ["one column only, 'y'", "set 'sep'"]),
        ("x,x,y\n1,2,p\n", ["two columns named 'x'"]),
        ("x,,y\n1,2,p\n", ["column 2", "no name"]),
        ("x,y\n1,p\n1,2,p\n", ["3 cells in line 3, more than the 2"]),
        ("x,y\n1,p\n1\n", ["1 cells in line 3, fewer"]),
        ('x,y\n"1,p\n1,q\n', ["never closed"]),
        ('x,y\n"1"2,p\n', ["quotes do not fit"]),
        (b"PK\x03\x04rest", ["spreadsheet or a zip"]),
        (b"\x1f\x8brest", ["gzip"]),
        (b"x,y\n1,\x00\n", ["control character"]),
        (os.urandom(0) + bytes(range(256)), ["NUL bytes"]),
        ("x,y\n" + "a" * 200_000 + ",p\n", ["more than 100,000 characters"]),
        (",".join(f"x{i}" for i in range(6000)) + "\n", ["6000 columns", "5000"]),
        (simple("z", ["1", "2", "inf", "4"]), ["3 numbers, but 'inf' in row 2", "'kind': 'categorical'"]),
        (simple("z", ["1", "1e400", "3"]), ["'z'", "1e400 in row 1", "infinite"]),
        (simple("z", ["1", "abc", "3"]), ["2 numbers, but 'abc' in row 1", "'na'"]),
        (simple("z", ["1", "", "3"]), ["missing value in column 'z', row 1", "median"]),
        (simple("z", ["a", "None", "b"]), ["missing value in column 'z', row 1 ('None'", "na=[]"]),
        (simple("z", ["", "", ""]), ["'z'", "no value at all"]),
        (simple("z", [f"name {i}" for i in range(30)]), ["'z'", "different text in every row", "'drop'"]),
        (simple("z", [f"name {i // 2}" for i in range(600)]), ["300 different texts", "200 are allowed"]),
        ("x,y\n1,p\n2,p\n3,p\n", ["one class only, 'p'"]),
        ("x,y\n1,p\n2,\n3,q\n", ["missing value in column 'y', row 1"]),
        ("x,y\n1,p\n2,q\n3,q\n4,q\n", ["single row of class 'p'", "stratify: false"]),
        ("x,y\n1,p\n2,q\n", ["single row of class"]),
        ("x,y\n" + "".join(f"{i},{'pqr'[i % 3]}\n" for i in range(30)), ["as there are 3", "p, q, r"]),
        ("x,y\n" + "".join(f"{i},{i}\n" for i in range(90)), ["90 different values", "task='regression'"]),
        ("x=a,x,y\n" + "1,a,p\n2,b,q\n3,c,p\n4,a,q\n" * 3, ["named like a category"]),
    ],
)
def test_a_strangers_file_is_one_sentence(write: Write, content: str | bytes, parts: list[str]) -> None:
    sentence = refused(write(content))
    for part in parts:
        assert part in sentence


@pytest.mark.parametrize(
    ("settings", "parts"),
    [
        ({"target": "approvd"}, ["no target column 'approvd'", "did you mean 'approved'"]),
        ({"target": None}, ["needs a target", "loans.yaml"]),
        ({"drop": ["agee"]}, ["'agee'", "did you mean 'age'"]),
        ({"immutable": ["agee"]}, ["'agee'", "did you mean 'age'"]),
        ({"drop": list(TABLE)[:-1]}, ["no column left beside"]),
        ({"desired": "maybe"}, ["'maybe'", "no, yes, opposite"]),
        ({"missing": "medain"}, ["'medain'", "median"]),
        ({"max_megabytes": 0.0001}, ["larger than 0.0001 MB", "'max_megabytes'"]),
        ({"max_categories": 2}, ["3 different texts", "2 are allowed"]),
        ({"encoding": "utf-32"}, ["not in utf-32"]),
        ({"encoding": "rot13"}, ["no encoding 'rot13'"]),
        ({"sep": "ab"}, ["one character"]),
        ({"sep": ";"}, ["one column only"]),
        ({"decimal": ",", "thousands": ","}, ["two different characters"]),
        ({"sidecar": "nothing.yaml"}, ["no file nothing.yaml"]),
        ({"features": {"job": {"kind": "integer"}}}, ["'job'", "is integer", "'none' in row 0"]),
        ({"misssing": "drop"}, ["no setting 'misssing'", "did you mean 'missing'"]),
    ],
)
def test_a_wrong_setting_is_one_sentence(write: Write, settings: dict[str, Any], parts: list[str]) -> None:
    sentence = refused(write(), **{"target": "approved", **settings})
    for part in parts:
        assert part in sentence


def test_only_regular_files_are_read(tmp_path: Path, write: Write) -> None:
    """Links to files are; what may never end is not even opened."""
    link = tmp_path / "zero.csv"
    link.symlink_to("/dev/zero")
    pipe = tmp_path / "pipe.csv"
    os.mkfifo(pipe)
    assert "device or a pipe" in refused(link)
    assert "device or a pipe" in refused(pipe)
    assert "is a folder" in refused(tmp_path)
    assert "there is no file" in refused(tmp_path / "none.csv")
    assert "cannot be read" in refused(Path("a\0b.csv"))
    assert "cannot be read" in refused(Path("x" * 900 + ".csv"))
    good = tmp_path / "link.csv"
    good.symlink_to(write())
    assert load_csv(good, "approved").name == "link"
    write(beside="target: approved")
    (tmp_path / "loans.yaml").unlink()
    (tmp_path / "loans.yaml").symlink_to("/dev/zero")
    assert "device or a pipe" in refused(tmp_path / "loans.csv")


def test_what_is_handled(write: Write) -> None:
    """Quoted newlines, blank lines, a column that counts, separators at the ends, blanks, large and padded numbers."""
    content = ',x,"a\nb",code,big,y,\n' + "".join(
        f'{i}, {i % 3} ,"u\nv{i % 2}",00{i % 9},{10**20 + i % 4 * 10**18},{"pq"[i % 2]},\n\n' for i in range(40)
    )
    dataset = load_csv(write(content), "y")
    assert dataset.space.names == ("x", "a b", "code", "big")
    assert dataset.space["a b"].categories == ("u\nv0", "u\nv1")
    assert [dataset.space[name].kind for name in ("x", "code", "big")] == ["integer", "integer", "continuous"]
    assert "leading zeros" in dataset.reasons["code"]
    assert "beyond" in dataset.reasons["big"]
    assert "counts the rows" in " ".join(dataset.notices)
    codes = load_csv(write(content), "y", features={"code": {"kind": "categorical"}, "big": {"kind": "categorical"}})
    assert codes.space["code"].categories[:2] == ("000", "001")
    assert str(10**20) in codes.space["big"].categories


def test_ids_are_reported(write: Write) -> None:
    """Row numbers and numeric ids by a notice."""
    dataset = load_csv(write(simple("customer_id", [1000 + 17 * i for i in range(40)])), "y")
    assert "'customer_id' holds a different whole number in every row" in " ".join(dataset.notices)
    assert not load_csv(write(simple("z", [1000 + i * i for i in range(40)])), "y").notices


def test_words_for_missing(write: Write) -> None:
    """Are those of pandas unless others are listed; then they are categories."""
    content = simple("z", ["a", "b", "None", "NA"] * 6)
    assert load_csv(write(content), "y", na=[]).space["z"].categories == ("NA", "None", "a", "b")
    assert load_csv(write(content), "y", missing="category").space["z"].categories == ("a", "b", "missing")
    assert len(load_csv(write(content), "y", missing="drop").frame) == 12
    filled = load_csv(write(simple("z", ["1", "3", "?", "3"] * 6)), "y", na=["?"], missing="median")
    assert filled.frame["z"].tolist() == [1, 3, 3, 3] * 6


def test_several_files(tmp_path: Path) -> None:
    """One below the other; the last is the test split of ``split=files``."""
    for name, rows in (("a", TABLE.iloc[:30]), ("b", TABLE.iloc[30:][list(TABLE)[::-1]])):
        rows.to_csv(tmp_path / f"{name}.csv", index=False)
    settled, _ = settle({"path": [str(tmp_path / "a.csv"), str(tmp_path / "b.csv")], "target": "sex"})
    dataset = load_settled(settled, "files")
    assert dataset.test.tolist() == list(range(30, 40))
    assert dataset.frame["income"].tolist() == TABLE["income"].tolist()


def test_numbers_as_target(write: Write) -> None:
    dataset = load_csv(write(), "income", task="regression", desired=">= 150")
    assert (dataset.classes, dataset.labels.tolist()) == ((), TABLE["income"].tolist())
    assert "number" in introduce(dataset, {}) or dataset.desired == ">= 150"


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("loans.csv", "loans"),
        ("../../etc/passwd", "passwd"),
        ("..", "csv"),
        ("/a/.hidden.csv", "hidden"),
        ("C:\\data\\x y.CSV", "x_y"),
        ("größe.csv", "größe"),
        ("a/b/" + "x" * 300 + ".csv", "x" * 40),
        ("日" * 60, "日" * 26),
        ("a\n\0b.csv", "a_b"),
        (["one.csv", "two.csv"], "one"),
        (None, "csv"),
    ],
)
def test_the_shown_name_is_safe(path: Any, name: str) -> None:
    assert shown_name(path) == name


ODD = ["a.b", "a=b", "{x}", "=SUM(A1)", "größe", "two words", "kind", "x.kind", "1st", "a,b", "utf8_hex_61"]


@pytest.mark.parametrize("name", ODD)
def test_any_name_can_be_set_on_the_command_line(name: str) -> None:
    """Hydra itself reads what ``readable`` makes of it."""
    from hydra.core.override_parser.overrides_parser import OverridesParser

    argument = readable(f"features.{name}.actionability=increase")
    override = OverridesParser.create().parse_override(argument)
    assert override.value() == "increase"
    place, written, attribute = override.key_or_group.split(".")
    assert (place, attribute) == ("features", "actionability")
    assert list(plain_names({written: {}})) == [name]
    assert readable("features.hours-per-week.kind=integer") == "++features.hours-per-week.kind=integer"


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        ("dataset.path=/tmp/größe (1).csv", "/tmp/größe (1).csv"),
        ("dataset.path=~/a=b.csv", "~/a=b.csv"),
        ("dataset.path=Bob's.csv", "Bob's.csv"),
        ("dataset.target={x}", "{x}"),
        ("dataset.sep=;", ";"),
        ("dataset.decimal=,", ","),
        ("dataset.immutable=[größe, a=b,c]", ["größe", "a=b", "c"]),
        ("dataset.drop=[a,b]", ["a", "b"]),
        ("desired=größer", "größer"),
        ("factuals=#people.csv", "#people.csv"),
        ("dataset.na=[]", []),
    ],
)
def test_values_need_no_second_quotes(argument: str, value: Any) -> None:
    from hydra.core.override_parser.overrides_parser import OverridesParser

    assert OverridesParser.create().parse_override(readable(argument)).value() == value


PEOPLE = TABLE.iloc[[3, 7]]


def test_people_are_read_as_the_data_were(write: Write, tmp_path: Path) -> None:
    """Columns in any order, others ignored, in the data's own form; what comes is what the data hold."""
    dataset = load_csv(write(sep=";", decimal=","), "approved")
    people = tmp_path / "people.csv"
    PEOPLE.assign(name=["A", "B"])[["name", *reversed(TABLE.columns)]].to_csv(people, index=False, sep=";", decimal=",")
    expected = dataset.frame.loc[[3, 7]].reset_index(drop=True)
    pd.testing.assert_frame_equal(read_factuals(dataset, people), expected)
    PEOPLE.to_csv(people, index=False, encoding="utf-16")
    pd.testing.assert_frame_equal(read_factuals(dataset, people), expected)


def test_gaps_of_people_are_filled_by_the_training_rows(write: Write, tmp_path: Path) -> None:
    """A person's gap takes what gaps of the data take, also where the data have none; not what other people hold."""
    dataset = load_csv(write(), "approved", missing="median", features={"job": {"missing": "most_frequent"}})
    train = dataset.frame.iloc[dataset.train]
    PEOPLE.astype(object).assign(age=[None, 99], job=None).to_csv(tmp_path / "people.csv", index=False)
    people = read_factuals(dataset, tmp_path / "people.csv")
    assert people["age"].tolist() == [np.rint(train["age"].median()), 99]
    assert people["job"].tolist() == [train["job"].mode()[0]] * 2


def test_numbers_of_people_are_put_to_the_ends_of_the_data(write: Write, tmp_path: Path) -> None:
    """Also those of a person who is given by values; intervals take what lies beyond by themselves."""
    settings: dict[str, Any] = {"features": {"age": {"clip": [None, 40]}}}
    dataset = load_csv(write(), "approved", **settings)
    PEOPLE.assign(age=[35, 99]).to_csv(tmp_path / "people.csv", index=False)
    assert read_factuals(dataset, tmp_path / "people.csv")["age"].tolist() == [35, 40]
    model = make_pipeline(make_column_transformer(("passthrough", ["income"])), DecisionTreeClassifier())
    task = pose(dataset, model=model.fit(dataset.frame, dataset.labels))
    person = {**PEOPLE.drop(columns="approved").iloc[0].to_dict(), "age": 99}
    assert explain(Nearest(), task, person).context.factual["age"].tolist() == [40]
    cut = load_csv(write(), "approved", discretise="median", **settings)
    assert read_factuals(cut, tmp_path / "people.csv")["age"].iloc[1] == cut.space["age"].categories[-1]


@pytest.mark.parametrize(
    ("change", "parts"),
    [
        ({"age": ["x", 30]}, ["holds 'x' in column 'age', row 0"]),
        ({"age": [30, 30.5]}, ["30.5", "'age', row 1", "integer"]),
        ({"income": [1, np.inf]}, ["'inf'", "'income', row 1"]),
        ({"income": ["1e400", 1]}, ["1e400", "'income', row 0"]),
        ({"job": ["part", "boss"]}, ["unseen category 'boss' in column 'job', row 1", "full, none, part"]),
        ({"job": ["part", None]}, ["missing value in column 'job', row 1"]),
        ({"age": [None, 30]}, ["missing value in column 'age', row 0", "features.age.missing"]),
    ],
)
def test_faults_of_people_name_row_and_column(
    write: Write, tmp_path: Path, change: dict[str, Any], parts: list[str]
) -> None:
    dataset = load_csv(write(), "approved")
    PEOPLE.astype(object).assign(**change).to_csv(tmp_path / "people.csv", index=False)
    with pytest.raises(DatasetError) as error:
        read_factuals(dataset, tmp_path / "people.csv")
    for part in ("people.csv", *parts):
        assert part in str(error.value)


@pytest.mark.parametrize("form", ["%Y-%m-%d %H:%M", "%Y-%m-%dT%H:%M:%S", "%d.%m.%Y %H:%M"])
def test_rows_are_split_by_the_time_of_the_day(write: Write, form: str) -> None:
    """As a notebook splits them: not by days alone, of which there are two here."""
    moments = pd.date_range("2024-01-01", periods=ROWS, freq=f"{48 * 60 // ROWS}min")
    order = np.random.default_rng(0).permutation(ROWS)
    dated = TABLE.assign(asked=[moments[row].strftime(form) for row in order])
    made = load_csv(write(dated), target="approved", drop=["asked"], split={"time": "asked", "test_size": 0.25})
    assert sorted(made.test) == sorted(np.flatnonzero(order >= ROWS - ROWS // 4))


@pytest.mark.parametrize("form", ["{},00", "{}.000", "{} h"])
def test_rows_are_split_by_numbers_as_their_column_writes_them(write: Write, form: str) -> None:
    """With a decimal comma, points between thousands, or a unit."""
    order = np.random.default_rng(0).permutation(ROWS)
    timed = TABLE.assign(asked=[form.format(100 + 7 * row) for row in order])
    settings = {"drop": ["asked"], "features": {"asked": {"thousands": "."}} if ".0" in form else None}
    made = load_csv(write(timed), target="approved", split={"time": "asked", "test_size": 0.25}, **settings)
    assert sorted(made.test) == sorted(np.flatnonzero(order >= ROWS - ROWS // 4))


def test_rows_are_split_by_a_date_that_is_no_feature(write: Write) -> None:
    """In the column's own notation, by which the second of the month comes first; what is no date is one sentence."""
    days = [f"{1 + row % 28:02d}.{1 + row // 28:02d}.2024" for row in range(ROWS)]  # 01.01. to 28.01., 01.02. to 12.02.
    dated = TABLE.assign(asked=[days[row] for row in np.random.default_rng(0).permutation(ROWS)])
    settings = {"target": "approved", "drop": ["asked"], "split": {"time": "asked"}}
    made = load_csv(write(dated), **settings)
    assert "asked" not in made.space.names
    assert made.by_time
    assert sorted(dated["asked"].iloc[made.test]) == sorted(days[-10:])
    with pytest.raises(DatasetError, match=r"'asked' holds dates such as .*, or split.time=None"):
        load_csv(write(dated.assign(asked=[f"{1 + row % 12}/{1 + row % 10}/2024" for row in range(ROWS)])), **settings)


def test_codes_that_are_equal_as_numbers_stay_apart(write: Write) -> None:
    """1.1 and 1.10 are two products; whole codes, each written in one way, are numbers still."""
    path = write(simple("code", ["1.1", "1.10", "2.10", "1.1"] * 10))
    values = load_csv(path, "y", features={"code": {"kind": "categorical"}}).space["code"].categories
    assert values == ("1.1", "1.10", "2.10")
    path = write(simple("code", ["1", "10", "2", "3", "3.0"] * 8))  # as pandas writes 3 beside a gap
    assert load_csv(path, "y", features={"code": {"kind": "categorical"}}).space["code"].categories == (1, 2, 3, 10)


def test_a_category_that_equals_a_cell_is_the_cell(write: Write) -> None:
    """True and 1.0 are 1: what is decoded is what the file holds."""
    path = write(simple("owner", [1, 0] * 20))
    for given in ([False, True], [0.0, 1.0], ["0", "1"]):
        owner = {"kind": "ordinal", "categories": given, "actionability": "conditional", "order": given}
        feature = load_csv(path, "y", features={"owner": owner}).space["owner"]
        held = (*feature.categories, *feature.order)
        assert held == (0, 1, 0, 1)
        assert {type(value) for value in held} == {int}


@pytest.mark.parametrize("entry", [{"kind": "ordinal"}, {"kind": "categorical", "actionability": "conditional"}])
def test_texts_have_no_order_of_their_own(entry: dict[str, Any], write: Write) -> None:
    """Alphabetical they would go from full over none to part; numbers have theirs."""
    said = refused(write(), "approved", features={"job": entry})
    assert "column 'job' is ordered, and how is not known of full, none, part; give features=" in said
    ranked = {**entry, "categories": ["none", "part", "full"]}
    assert load_csv(write(), "approved", features={"job": ranked}).space["job"].categories == ("none", "part", "full")
    padded = write(simple("grade", ["01", "10", "02", "02"] * 10))
    ordered = load_csv(padded, "y", features={"grade": {"kind": "ordinal"}}).space["grade"].categories
    assert ordered == ("01", "02", "10")
    grades = write(simple("grade", [3, 1, 2, 2] * 10))
    assert load_csv(grades, "y", features={"grade": {"kind": "ordinal"}}).space["grade"].categories == (1, 2, 3)


def test_two_texts_have_no_direction_of_their_own(write: Write) -> None:
    path = write(simple("owner", ["yes", "no"] * 20))
    said = refused(path, "y", features={"owner": {"actionability": "increase"}})
    assert "give features={'owner': {'categories': ...}}, the lowest first" in said
    down = load_csv(path, "y", features={"owner": {"actionability": "decrease", "categories": ["yes", "no"]}})
    assert down.space["owner"].reachable("no") == ("yes", "no")


def test_a_question_about_read_data_gives_the_order_of_texts(write: Write) -> None:
    data = load_csv(write(), "approved")
    model = make_pipeline(make_column_transformer(("passthrough", ["income"])), DecisionTreeClassifier())
    model.fit(TABLE.drop(columns="approved"), TABLE["approved"])
    with pytest.raises(DatasetError, match=r"'job': \{'order': \.\.\.\}\}, the lowest first"):
        pose(data, model=model, features={"job": {"actionability": "conditional"}})
    asked = {"actionability": "conditional", "order": ["none", "part", "full"]}
    assert pose(data, model=model, features={"job": asked}).dataset.space["job"].reachable("part") == ("part", "full")


def test_days_in_one_number_are_said_to_be_days(write: Write) -> None:
    days = [f"2023{month:02d}{day}" for month in range(1, 13) for day in (10, 28)]
    data = load_csv(write(simple("opened", days)), "y")
    assert "set features.opened.format='%Y%m%d'" in " ".join(data.notices)
    other = load_csv(write(simple("opened", [*days[:-1], "20231387"])), "y")
    assert "format=" not in " ".join(other.notices)


def test_several_files_are_one_table(write: Write, tmp_path: Path) -> None:
    first = write(simple("a", [1, 2, 3, 4] * 5))
    second = first.rename(tmp_path / "second.csv")
    first = write(simple("a", [5, 6, 7, 8] * 5))
    assert len(load_csv([first, str(second)], "y").frame) == 40
