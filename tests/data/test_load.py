"""Raw tables become datasets as described, and every fault of data or description is one clear sentence."""

import re
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml  # type: ignore[import-untyped]
from hydra import compose, initialize_config_dir
from omegaconf import OmegaConf
from support.complete import complete

from harness.core.errors import DatasetError
from harness.core.space import Actionability, Kind
from harness.core.target import Interval, Label
from harness.data import Source, data_folder, load_dataset, parse_target
from harness.data.gaps import Gaps
from harness.data.load import _classes
from harness.data.sources import RAW

CONFIGS = [Path(__file__).parents[2] / "conf" / "dataset" / f"{name}.yaml" for name in complete("dataset")]
ROWS = {
    "adult": 45222,
    "compas": 6172,
    "german_credit": 1000,
    "give_me_some_credit": 149731,
    "heloc": 9871,
    "ionosphere": 351,
    "pima": 768,
    "students": 395,
    "students_grade": 395,
}
TABLE = pd.DataFrame(
    {
        "age": [20, 30, 40, 50, 60, 70, 80, 90],
        "height": [1.5, 1.6, 1.7, 1.8, 1.9, 1.65, 1.75, 1.85],
        "member": [True, False] * 4,
        "flag": [0, 1] * 4,
        "city": ["Bonn ", "Ulm", "Köln", "Ulm", "Bonn", "Köln", "Ulm", "Ulm"],
        "one": ["same"] * 8,
        "y": [0, 0, 1, 1, 0, 1, 0, 1],
    }
)


def described(path: Path) -> dict[str, Any]:
    """The arguments in a YAML file; skips the test if its data are neither packaged nor at hand."""
    with initialize_config_dir(str(path.parents[1]), version_base="1.3"):
        config: Any = OmegaConf.to_container(compose(f"dataset/{path.stem}").dataset)
    for source in config["sources"]:
        where = Source(**source).path
        if not where.is_file():
            pytest.skip(f"{source['file']} is not packaged, and not in CE_HARNESS_DATA ({data_folder()})")
    return config


@pytest.fixture
def load(tmp_path):
    """Load a table, TABLE without its constant column unless given."""

    def loaded(table: pd.DataFrame = TABLE.drop(columns="one"), /, **arguments: Any):
        table.to_csv(tmp_path / "toy.csv", index=False)
        given = {"name": "toy", "sources": [{"file": str(tmp_path / "toy.csv")}], "target": "y", **arguments}
        return load_dataset(**given)

    return loaded


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.stem)
@pytest.mark.every(3)
def test_config(path):
    """Every packaged description fits its data, and what it desires occurs in both splits."""
    dataset = load_dataset(**described(path))
    assert dataset.name == path.stem
    assert len(dataset.frame) == len(dataset.labels) == ROWS.get(path.stem, len(dataset.frame))
    dataset.space.check(dataset.frame)
    wanted = parse_target(dataset)
    assert dataset.desired == "opposite" or wanted == Label(dataset.desired) or isinstance(wanted, Interval)
    for rows in (dataset.train, dataset.test):
        if isinstance(wanted, Interval):
            assert ((dataset.labels[rows] >= wanted.low) & (dataset.labels[rows] <= wanted.high)).any()
        else:
            assert set(dataset.labels[rows]) == set(dataset.classes)
    assert sorted([*dataset.train, *dataset.test]) == list(range(len(dataset.frame)))
    decoded = dataset.space.decode(dataset.space.encode(dataset.frame))
    assert (decoded.dtypes == dataset.frame.dtypes).all()
    assert not dataset.space.incoherent(dataset.frame.head(50))[0]


def test_config_rows_are_known():
    """The table of row counts above names every dataset that is described here."""
    assert set(ROWS) <= {path.stem for path in CONFIGS}


@pytest.mark.parametrize("path", sorted(RAW.glob("*.csv")), ids=lambda path: path.stem)
def test_packaged_files_are_credited(path):
    """Origin and licence of each packaged file are noted."""
    assert f"`{path.name}`" in (RAW / "README.md").read_text()


def test_compas_counts():
    """6,172 defendants, of whom 1,144 were scored High; no names and no dates."""
    raw = pd.read_csv(RAW / "compas.csv")
    assert Counter(raw.score_text == "High") == {False: 5028, True: 1144}
    assert list(raw) == [
        *("age", "sex", "race", "c_charge_degree", "priors_count", "length_of_stay", "two_year_recid", "score_text")
    ]


def test_compas_is_carlas():
    """The packaged rows, with race and score coarsened, are CARLA's rows."""
    path = data_folder() / "compas" / "compas.csv"
    if not path.is_file():
        pytest.skip(f"CARLA's compas/compas.csv is not in CE_HARNESS_DATA ({data_folder()})")
    carla, raw = pd.read_csv(path), pd.read_csv(RAW / "compas.csv")
    raw["race"] = raw["race"].where(raw["race"] == "African-American", "Other")
    raw["score"] = (raw.pop("score_text") != "High").astype(int)
    assert Counter(raw[list(carla)].itertuples(index=False, name=None)) == Counter(
        carla.itertuples(index=False, name=None)
    )


def test_adult_labels_agree():
    """The full stops of adult.test make no classes; the index counts on through the second file."""
    dataset = load_dataset(**described(CONFIGS[0].with_name("adult.yaml")))
    assert Counter(dataset.labels) == {"<=50K": 34014, ">50K": 11208}
    assert dataset.frame.index.max() == 32561 + 16281 - 1


def test_heloc_codes():
    """Rows keep their codes, bounds leave them out, and the rows without a record are gone."""
    dataset = load_dataset(**described(CONFIGS[0].with_name("heloc.yaml")))
    feature = dataset.space["NetFractionInstallBurden"]
    assert (dataset.frame[feature.name] == -8).sum() == 3419
    assert feature.bounds[0] >= 0
    assert feature.special == (-9, -8, -7)


def test_students_are_graded_without_earlier_grades():
    """Both tasks have the same rows and features; 265 pass, with 10 or more."""
    files = [path for path in CONFIGS if path.stem in {"students", "students_grade"}]
    passed, graded = (load_dataset(**described(path)) for path in files)
    pd.testing.assert_frame_equal(passed.frame, graded.frame)
    assert not {"G1", "G2", "G3"} & set(graded.space.names)
    assert Counter(passed.labels) == {"pass": 265, "fail": 130}
    np.testing.assert_array_equal(passed.labels == "pass", graded.labels >= 10)


def test_kinds_are_inferred(load):
    """Whole numbers, fractions, booleans, 0/1 and texts get their kinds; texts lose the blanks around them."""
    dataset = load()
    kinds = {feature.name: feature.kind for feature in dataset.space.features}
    assert kinds == {
        "age": Kind.INTEGER,
        "height": Kind.CONTINUOUS,
        "member": Kind.BINARY,
        "flag": Kind.BINARY,
        "city": Kind.CATEGORICAL,
    }
    assert dataset.space["city"].categories == ("Bonn", "Köln", "Ulm")
    assert dataset.space["member"].categories == (False, True)
    assert dataset.frame.dtypes.astype(str).tolist() == ["int64", "float64", "object", "int64", "object"]
    back = dataset.space.decode(dataset.space.encode(dataset.frame))
    pd.testing.assert_frame_equal(back.set_index(dataset.frame.index), dataset.frame)


def test_scale_is_that_of_training(load):
    """Scale and bounds come from the training rows without special codes; categories from all rows."""
    dataset = load(features={"age": {"special": [20]}, "city": None}, split={"test_size": 0.5, "seed": 1})
    train = dataset.frame["age"].iloc[dataset.train]
    train = train[train != 20]
    assert dataset.space["age"].scale == dataset.space["age"].bounds == (train.min(), train.max())
    assert len(dataset.space["city"].categories) == 3


def test_numbers_beyond_the_ends_are_put_to_them(load):
    """Codes and gaps stay; scale and bounds are of what is left; a feature's type is kept; one line counts them."""
    table = with_gaps("height").assign(age=[-5, 30, 40, 50, 60, 70, 98, 500])
    ends = {"age": {"clip": [0, 65], "special": [98]}, "height": {"clip": [None, 1.7], "missing": "value"}}
    dataset = load(table, overrides=ends, split="none")
    assert dataset.frame["age"].tolist() == [0, 30, 40, 50, 60, 65, 98, 65]
    assert dataset.frame["age"].dtype == np.int64
    assert dataset.frame["height"].dropna().tolist() == [min(height, 1.7) for height in table["height"].dropna()]
    assert dataset.frame["height"].isna().sum() == 1
    assert dataset.space["age"].scale == dataset.space["age"].bounds == (0, 65)
    higher = int((table["height"] > 1.7).sum())
    assert dataset.notices[-1] == f"toy: put to the nearer end of their 'clip': 3 of age, {higher} of height."
    people = dataset.reading.clipped("they", pd.DataFrame({"age": [99, 98, -1], "height": [1.0, 2.0, np.nan]}))
    assert people["age"].tolist() == [65, 98, 0]
    assert people["height"].tolist()[:2] == [1.0, 1.7]


def test_gaps_are_filled_by_what_is_within_the_ends(load):
    """The mean is not that of outliers; whole numbers may be put to parts where the feature is continuous."""
    table = with_gaps("height").assign(height=[1, 1, 1, 1, 1, np.nan, 1, 9000], age=[1, 2, 3, 4, 5, 6, 7, 8])
    ends = {"height": {"clip": [None, 8], "missing": "mean"}, "age": {"kind": "continuous", "clip": [1.5, np.inf]}}
    dataset = load(table, overrides=ends, split="none")
    assert dataset.frame["height"].loc[5] == dataset.reading.filler("height") == 2
    assert dataset.frame["age"].tolist() == [1.5, 2, 3, 4, 5, 6, 7, 8]


def test_one_value_is_no_outlier(load):
    """A column with a single value takes no row away; one far from all others does."""
    table = with_gaps("height").assign(height=[1, 1, 1, 1, 1, 1, 1, 1], age=[1, 2, 1, 2, 1, 2, 1, 90])
    assert len(load(table, outliers=2.5, split="none").frame) == 7


def test_give_me_some_credit_is_not_measured_by_outliers():
    """Scales of the size of what people have; codes are no counts, and who holds one is left out."""
    path = next(path for path in CONFIGS if path.stem == "give_me_some_credit")
    dataset = load_dataset(**described(path))
    space = dataset.space
    assert {f.name: f.scale[1] - f.scale[0] for f in space.features if f.scale[1] - f.scale[0] > 120} == {
        "MonthlyIncome": 25_000
    }
    assert len(dataset.frame) == 150_000 - 269
    assert dataset.frame.filter(like="Late").to_numpy().max() == 17
    assert dataset.frame.filter(like="PastDue").to_numpy().max() == 13


@pytest.mark.parametrize(
    ("ends", "told"),
    [
        ([5], "clip of age is [5]; give two numbers"),
        ([9, 5], "clip of age is [9, 5]; give two whole"),
        ([5, 5], "clip of age is [5, 5]; give two whole"),
        ([0, 5.5], "clip of age is [0, 5.5]; give two whole"),
        ([None, np.nan], "clip of age is [None, nan]; give two whole"),
        ([0, 50], "missing of age has 60, beyond its clip [0, 50]"),
        ([0, 80], "discretise of age has 85, beyond its clip [0, 80]"),
    ],
)
def test_ends_that_do_not_fit(load, ends, told):
    with pytest.raises(DatasetError, match=re.escape(told)):
        load(overrides={"age": {"clip": ends, "missing": 60}}, discretise={"cuts": {"age": [30, 85]}})


def test_features_select_and_order(load):
    """Listed features are all there are, in that order; overrides come last, an empty list takes back."""
    dataset = load(
        features={"city": {}, "age": {"bounds": [0, 50], "special": [20], "actionability": "increase"}},
        immutable=["city"],
        overrides={"age": {"actionability": "decrease", "special": []}},
    )
    assert dataset.space.names == ("city", "age")
    assert dataset.space["city"].actionability is Actionability.IMMUTABLE
    age = dataset.space["age"]
    assert (age.bounds, age.special, age.actionability) == ((0, 50), (), Actionability.DECREASE)
    assert load(features=["height", "age"], immutable=["city"]).space.names == ("height", "age")
    assert "age" not in load(drop=["age"]).space.names


def test_codes_match_their_texts(load):
    """Categories and order may be written as texts or numbers; the file's own type is kept."""
    ordinal = {"kind": "ordinal", "categories": ["0", "1", "2"], "actionability": "conditional", "order": ["1", "0"]}
    feature = load(features={"flag": ordinal}).space["flag"]
    assert (feature.categories, feature.order) == ((0, 1, "2"), (1, 0))


def test_constant_column_is_kept(load, caplog):
    """A constant column is kept, immutable, and said."""
    dataset = load(TABLE)
    assert dataset.space["one"].actionability is Actionability.IMMUTABLE
    assert "'one' is same in every row" in dataset.notices[0]
    assert dataset.notices[0] in caplog.text


@pytest.mark.parametrize(("actionability", "reach"), [("free", (2.0, 4.0)), ("increase", (3.0, 4.0))])
def test_a_constant_column_that_is_said_to_change_may(load, actionability, reach):
    """Its range is one unit to either side where no bounds are given, and nothing is said against the setting."""
    table = TABLE.assign(one=3.0)
    dataset = load(table, overrides={"one": {"actionability": actionability}})
    assert dataset.space["one"].actionability == actionability
    assert dataset.space["one"].interval(3.0) == reach
    assert dataset.notices == ()
    bounded = load(table, overrides={"one": {"actionability": actionability, "bounds": [0, 10]}})
    assert bounded.space["one"].bounds == (0.0, 10.0)
    assert load(table, unbounded=True, overrides={"one": {"actionability": "free"}}).space["one"].bounds[1] > 100


def with_gaps(column: str) -> pd.DataFrame:
    """TABLE with a gap in row 5."""
    return TABLE.drop(columns="one").mask(
        (TABLE.index == 5)[:, None] & (TABLE.columns[TABLE.columns != "one"] == column)
    )


def test_missing_dropped(load):
    """Rows with gaps go; the others keep their row numbers."""
    dataset = load(with_gaps("age"), missing="drop")
    assert dataset.frame.index.tolist() == [0, 1, 2, 3, 4, 6, 7]
    assert dataset.frame["age"].dtype == np.int64


def test_missing_median(load):
    """A gap takes the median of the training rows, rounded for integers."""
    dataset = load(with_gaps("age"), missing="median")
    known = dataset.frame["age"].iloc[dataset.train].drop(index=5, errors="ignore")
    assert dataset.frame["age"].loc[5] == np.rint(known.median())


def test_missing_category(load):
    """A gap becomes a category of its own, codes beside it stay whole numbers."""
    assert load(with_gaps("city"), missing="category").space["city"].categories == ("Bonn", "Köln", "Ulm", "missing")
    flag = load(with_gaps("flag"), missing="category", overrides={"flag": {"kind": "categorical"}}).space["flag"]
    assert flag.categories == (0, 1, "missing")
    assert flag.special == ("missing",)  # which no counterfactual enters, unless it may
    assert load(with_gaps("city"), missing="category", overrides={"city": {"special": []}}).space["city"].special == ()


def of(column: str, remedy: object) -> dict[str, object]:
    """The setting of one column's gaps."""
    return {"features": {**dict.fromkeys(TABLE.columns.drop(["y", "one"])), column: {"missing": remedy}}}


@pytest.mark.parametrize(
    ("column", "remedy", "known"),
    [
        ("age", "median", lambda known: np.rint(known.median())),
        ("age", "mean", lambda known: np.rint(known.mean())),
        ("height", "mean", lambda known: known.mean()),
        ("height", "most_frequent", lambda known: min(known.mode())),
        ("height", -3, lambda known: -3),
        ("city", "most_frequent", lambda known: min(known.mode())),
        ("city", "Ulm", lambda known: "Ulm"),
        ("flag", "most_frequent", lambda known: min(known.mode())),
        ("flag", 1, lambda known: 1),
    ],
)
def test_a_column_has_a_remedy_of_its_own(load, column, remedy, known):
    """Its gap takes what the training rows alone say; how many cells were filled is said, and kept for later people."""
    for gap in (1, 5):
        table = TABLE.drop(columns="one").astype({column: object})
        table.loc[gap, column] = np.nan
        table[column] = table[column].infer_objects()
        dataset = load(table, **of(column, remedy))
        train = dataset.frame[column].iloc[dataset.train].drop(index=gap, errors="ignore")
        assert dataset.frame[column].loc[gap] == known(train)
        assert dataset.frame[column].dtype == load(TABLE, split="none").frame[column].dtype
        assert dataset.reading.filler(column) == known(train)
        assert f"missing cells: filled 1 of {column} by " in dataset.notices[-1]


def test_rows_are_dropped_for_the_columns_that_say_so(load):
    """One column costs its rows, another is filled, and a line says how many of each."""
    table = with_gaps("age")
    table.loc[2, "height"] = np.nan
    dataset = load(table, missing="drop", **of("height", "mean"))
    assert dataset.frame.index.tolist() == [0, 1, 2, 3, 4, 6, 7]
    assert "filled 1 of height by its mean" in dataset.notices[-1]
    assert dataset.notices[-1].endswith("dropped 1 row (missing: age 1).")


def test_a_column_without_gaps_fills_those_of_later_people(load):
    """Where a setting of all columns does not fit one, that one has none."""
    reading = load(TABLE.drop(columns="one"), missing="median").reading
    assert reading.filler("height") is not None
    assert reading.filler("city") is None


def test_missing_may_be_entered_where_the_feature_says_so(load):
    """The category of gaps is closed to counterfactuals, unless ``may_be_missing``."""
    open_to = {"city": {"missing": "category", "may_be_missing": True}}
    assert load(with_gaps("city"), overrides=open_to).space["city"].special == ()
    assert load(with_gaps("city"), overrides={"city": {"missing": "category"}}).space["city"].special == ("missing",)


def test_label_from_raw_values(load):
    """Classes are named and ordered by the label; desire is matched by text."""
    dataset = load(target="size", label={"column": "age", "classes": {"old": range(60, 99), "young": range(60)}})
    assert (dataset.classes, "age" in dataset.space.names) == (("old", "young"), False)
    assert load(classes=["1", "0"], desired="0").desired == 0
    assert load(classes=["1", "0"]).classes == load(classes=[1.0, 0.0]).classes == (1, 0)


def test_split(load):
    """No split gives all rows twice; the default is stratified and repeatable; files splits by file."""
    everything = load(split="none")
    assert everything.train.tolist() == everything.test.tolist() == list(range(8))
    first, again = load(), load()
    assert first.test.tolist() == again.test.tolist()
    assert sorted(first.labels[first.test]) == [0, 1]
    file = {"file": str(RAW / "pima.csv")}
    halves = load_dataset("pima", [file, file], "Outcome", split="files")
    assert (len(halves.train), halves.test.min(), len(halves.test)) == (768, 768, 768)


def test_checksum_is_of_the_content(load):
    """The checksum follows the raw bytes and nothing else."""
    assert load().sha256 == load(split="none").sha256 != load(TABLE).sha256


@pytest.mark.parametrize(
    ("cells", "classes", "found"),
    [
        ([1.5, 2.0, 2.0], ["2.0", 1.5], (2.0, 1.5)),
        ([1.5, 2.0, 2.0], [2, "1.5"], (2.0, 1.5)),
        (["1.0", "2.0", "other"], [1.0, "2.0", "other"], ("1.0", "2.0", "other")),
        ([1.0, 0.0, 1.0], ["1", 0], (1, 0)),
        ([1.0, 0.0, 1.0], None, (0, 1)),
    ],
)
def test_classes_are_known_by_text_or_number(cells, classes, found):
    """However they are written in the settings; named as the data have them."""
    about = SimpleNamespace(name="toy", target="y", label=None, classes=classes)
    labels, names = _classes(about, pd.Series(cells, dtype=None if isinstance(cells[0], float) else object))
    assert names == found
    assert set(labels) == set(found)


def test_desired(load):
    """A class by its text, or the opposite one."""
    dataset = load()
    assert parse_target(dataset) == "opposite"
    assert parse_target(dataset, "1") == parse_target(dataset, 1.0) == parse_target(dataset, [1.0]) == Label(1)


@pytest.mark.parametrize(
    ("text", "interval"),
    [
        (">= 12", Interval(12)),
        ("<=-3.5", Interval(high=-3.5)),
        ("10..12", Interval(10, 12)),
        ("-1 .. .5", Interval(-1, 0.5)),
        ("> 12", Interval(np.nextafter(12, 13))),
        ("<0.3", Interval(high=np.nextafter(0.3, 0))),
        ("10..<12", Interval(10, np.nextafter(12, 10))),
        ("-1 <.. .5", Interval(np.nextafter(-1, 0), 0.5)),
    ],
)
def test_desired_of_regression(load, text, interval):
    """Numbers are desired in an interval, with its ends or without."""
    dataset = load(target="height", task="regression", desired=">= 1.7")
    assert parse_target(dataset, text) == interval
    assert (dataset.classes, dataset.labels.dtype) == ((), float)


NUMBERS = pd.DataFrame({"x": range(30), "y": np.linspace(0.5, 9, 30)})

BAD = {
    "no sources": ({"sources": []}, ["toy has no sources", "'file'"]),
    "source without file": ({"sources": [{"sha256": "0"}]}, ["toy has no 'file'"]),
    "source key": ({"sources": [{"file": "x", "sha265": ""}]}, ["'sha265'", "did you mean 'sha256'"]),
    "source of a number": ({"sources": [{"file": 7}]}, ["'file' of a source of toy is 7", "give a text"]),
    "one address": (
        {"sources": [{"file": "x", "urls": "https://x"}]},
        ["'urls' of a source of toy is 'https://x'", "give a list of addresses"],
    ),
    "read argument": ({"read": {"separator": ";"}}, ["separator", "pandas.read_csv"]),
    "target": ({"target": "yy"}, ["target column 'yy'", "did you mean 'y'"]),
    "feature": ({"features": {"agee": {}}}, ["'agee'", "did you mean 'age'"]),
    "override": ({"overrides": {"agee": {"kind": "integer"}}}, ["'agee'", "did you mean 'age'"]),
    "immutable": ({"immutable": ["sex"]}, ["'sex'", "llowed: age"]),
    "drop": ({"drop": ["sex"]}, ["'sex'", "llowed: age"]),
    "label as feature": ({"features": ["age", "y"]}, ["no feature 'y'", "llowed: age"]),
    "attribute": ({"overrides": {"age": {"bound": [0, 1]}}}, ["'bound'", "did you mean 'bounds'"]),
    "kind": ({"overrides": {"age": {"kind": "int"}}}, ["'int'", "continuous, integer"]),
    "actionability": ({"overrides": {"age": {"actionability": "up"}}}, ["'up'", "increase"]),
    "numbers wanted": ({"overrides": {"city": {"kind": "integer"}}}, ["'city'", "'Bonn'", "row 0", "categorical"]),
    "whole numbers wanted": ({"overrides": {"height": {"kind": "integer"}}}, ["'height'", "1.5", "continuous"]),
    "one bound": ({"overrides": {"age": {"bounds": [0]}}}, ["age", "[0]", "two numbers"]),
    "bounds of text": ({"overrides": {"age": {"bounds": ["a", "b"]}}}, ["age", "['a', 'b']", "list of numbers"]),
    "bounds of categories": (
        {"overrides": {"city": {"bounds": [0, 1]}}},
        ["city", "no bounds", "categories and order"],
    ),
    "category not listed": ({"overrides": {"city": {"categories": ["Bonn", "Ulm"]}}}, ["'Köln'", "Bonn, Ulm"]),
    "only codes": ({"overrides": {"flag": {"kind": "integer", "special": [0, 1]}}}, ["'flag'", "special", "'drop'"]),
    "missing": ({"missing": "medain"}, ["'medain'", "did you mean 'median'", "error, drop", "a number to fill in"]),
    "task": ({"task": "ranking"}, ["'ranking'", "classification, regression"]),
    "label without classes": ({"label": {"column": "y"}}, ["no 'classes'", "'column' and 'classes'"]),
    "classes without lists": ({"label": {"column": "y", "classes": {"no": 0}}}, ["{'no': 0}", "a list of raw values"]),
    "label column": ({"label": {"column": "z", "classes": {}}}, ["label column 'z'", "y"]),
    "label key": ({"label": {"column": "y", "class": {}}}, ["'class'", "classes"]),
    "value without class": ({"label": {"column": "y", "classes": {"no": [0]}}}, ["holds 1", "llowed: 0"]),
    "value twice": ({"label": {"column": "y", "classes": {"a": [0, 1], "b": [1]}}}, ["twice", "'1'"]),
    "class without rows": ({"classes": [0, 1, 2]}, ["class 2", "0, 1"]),
    "split name": ({"split": "some"}, ["'some'", "none, files"]),
    "split of one file": ({"split": "files"}, ["no two files", "none"]),
    "split key": ({"split": {"size": 0.2}}, ["'size'", "test_size"]),
    "test size": ({"split": {"test_size": 25}}, ["25", "between 0 and 1"]),
    "seed": ({"split": {"seed": "now"}}, ["'now'", "whole number"]),
    "desired class": ({"desired": "yes"}, ["class 'yes'", "llowed: 0, 1, opposite, other"]),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_description(load, case):
    """The sentence names the offending thing and an allowed one."""
    arguments, parts = BAD[case]
    with pytest.raises(DatasetError) as error:
        load(**arguments)
    for part in parts:
        assert part in str(error.value)
    assert str(error.value).endswith(".")


@pytest.mark.parametrize(
    ("table", "arguments", "parts"),
    [
        (with_gaps("age"), {}, ["'age'", "row 5", "features.age.missing", "median or mean"]),
        (
            with_gaps("y").assign(age=[*range(7), None]),
            {"missing": "median"},
            ["'y'", "row 5", "never filled in", "set missing=drop, and features.NAME.missing=median"],
        ),
        (with_gaps("city"), {"missing": "median"}, ["'city'", "'median'", "features.city.missing to drop", "category"]),
        (with_gaps("age"), {"missing": "category"}, ["'age'", "'category'", "drop, median"]),
        (with_gaps("age"), of("age", "some"), ["missing of age is 'some'", "give a number", "median"]),
        (with_gaps("age"), of("age", 1.5), ["missing of age is 1.5", "whole number"]),
        (with_gaps("city"), of("city", "Born"), ["missing of city is 'Born'", "did you mean 'Bonn'", "category"]),
        (with_gaps("city"), of("city", "category") | {"overrides": {"city": {"kind": "ordinal"}}}, ["ordinal", "city"]),
        (TABLE.assign(age=np.nan), {"missing": "median"}, ["'age'", "no value", "'drop'"]),
        (TABLE.assign(age=np.nan), {"missing": "drop"}, ["no rows", "features.NAME.missing"]),
        (TABLE.assign(y=1), {}, ["one class only, 1", "two"]),
        (TABLE.assign(y=[0] * 7 + [1]), {}, ["stratify: false"]),
        (TABLE.assign(height=[np.inf] + [1.0] * 7), {}, ["infinite", "'height'"]),
        (NUMBERS, {}, ["'y'", "30 different numbers", "task: regression"]),
        (TABLE.assign(y=list("abababab")), {"task": "regression"}, ["'y'", "'a'", "task: classification"]),
        (
            NUMBERS.assign(y=[np.inf, *range(29)]),
            {"task": "regression", "desired": ">= 12"},
            ["'y'", "infinite", "finite ones"],
        ),
        (TABLE, {"target": "city", "split": "none"}, ["no class 'opposite'", "Bonn, Köln, Ulm"]),
        (NUMBERS, {"task": "regression"}, ["'desired'", "'>= 12'"]),
        (NUMBERS, {"task": "regression", "desired": "12..10"}, ["'12..10'", "low <= high"]),
        (NUMBERS, {"task": "regression", "desired": ">= 1.2.3"}, ["'>= 1.2.3'"]),
    ],
)
def test_bad_data(load, table, arguments, parts):
    """The sentence names the column, the value or row, and the remedy."""
    with pytest.raises(DatasetError) as error:
        load(table, **arguments)
    for part in parts:
        assert part in str(error.value)


def test_gaps_kept_as_a_state_of_their_own(load):
    """Numbers keep NaN, codes 0 and 1 too; a category has "missing"; columns without gaps are as they were."""
    table = with_gaps("age")
    table.loc[1, ["flag", "city"]] = np.nan
    dataset = load(table, missing="value", overrides={"age": {"may_be_missing": True}})
    age, flag, city, height = (dataset.space[name] for name in ("age", "flag", "city", "height"))
    assert (age.kind, age.missing, age.may_be_missing) == (Kind.INTEGER, True, True)
    assert (flag.kind, flag.missing, flag.may_be_missing) == (Kind.INTEGER, True, False)
    assert (city.categories[-1], city.special, city.missing) == ("missing", ("missing",), False)
    assert not height.missing
    assert np.isnan(dataset.frame["age"].loc[5])
    assert "age keeps 1; flag keeps 1" in dataset.notices[-1]
    renamed = load(with_gaps("age").rename(columns={"age": "he keeps dogs"}), missing="median")
    assert "missing cells: filled 1 of he keeps dogs by its median" in renamed.notices[-1]
    assert load(overrides={"age": {"missing": "value"}}).space["age"].missing  # it says so itself


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        ({"discretise": "median"}, ["keeps missing values", "features.age.missing", "discretise"]),
        ({"causality": {"height": {"formula": "2 * age"}}}, ["keeps missing values", "causality"]),
        ({"overrides": {"height": {"may_be_missing": True}}}, ["height may be missing only", "missing=value"]),
    ],
)
def test_what_gaps_do_not_fit(load, arguments, parts):
    with pytest.raises(DatasetError) as error:
        load(with_gaps("age"), missing="value", **arguments)
    for part in parts:
        assert part in str(error.value)


@pytest.mark.parametrize(("remedy", "filler"), [("median", 3.0), ("mean", 3.0), ("most_frequent", 3)])
def test_special_codes_fill_no_gap(remedy: str, filler: float) -> None:
    """Of -9, -9, -9, -9, 3, 3 in training."""
    values = pd.Series([-9, -9, -9, -9, 3, 3, None, 8], dtype=float)
    assert Gaps("height", remedy).filler(values, Kind.CONTINUOUS, np.arange(7), (-9.0,)) == filler


@pytest.mark.parametrize("words", [("no", "yes"), ("Off", "On"), ("NO", "YES")])
def test_words_that_yaml_takes_for_booleans_are_classes_and_categories(words: tuple[str, str]) -> None:
    """Where they stand without quotes; true and false themselves are no other class."""
    low, high = words
    table = pd.DataFrame({"age": range(40), "car": [low, high] * 20, "ok": [low] * 20 + [high] * 20})
    text = f"{{classes: [{low}, {high}], desired: {high}, features: {{age: , car: {{categories: [{high}, {low}]}}}}}}"
    given = yaml.safe_load(text)
    assert given["classes"] == [False, True]
    dataset = load_dataset("loans", (), "ok", **given, tables=([table], "0"))
    assert (dataset.classes, dataset.desired) == (words, high)
    assert dataset.space["car"].categories == (high, low)
    with pytest.raises(DatasetError, match="has no class 'False' to desire"):
        load_dataset("loans", (), "ok", desired=False, tables=([table.replace(low, "never")], "0"))
