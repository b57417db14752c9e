"""Any dataset becomes one whose features are all discrete, row by row the same people."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hydra import compose, initialize_config_dir
from omegaconf import OmegaConf

from harness.cli.arguments import readable
from harness.core.errors import DatasetError
from harness.core.space import Feature, Kind
from harness.data import Dataset, Source, load_csv, load_dataset
from harness.data.csv_factuals import read_factuals
from harness.data.dataset import Reading
from harness.data.discretise import Discretisation, Intervals
from harness.evaluation.checker import permitted

CONF = Path(__file__).parents[2] / "conf"
PIMA = {"sources": [{"file": "packaged/pima.csv"}], "target": "Outcome", "classes": [1, 0], "desired": 0}
DISCRETE = {Kind.BINARY, Kind.CATEGORICAL}


def loaded(dataset: str, **changes: Any) -> Dataset:
    """A choice of ``conf/dataset``; skips where its file is not at hand."""
    with initialize_config_dir(str(CONF), version_base="1.3"):
        config: Any = OmegaConf.to_container(compose("config", overrides=[f"dataset={dataset}"]).dataset)
    if not all(Source(**source).path.is_file() for source in config["sources"]):
        pytest.skip("the file is neither packaged nor in CE_HARNESS_DATA")
    return load_dataset(**{**config, **changes})


def applied(way: Any, values: list[float], **entry: Any) -> tuple[Feature, list[Any]]:
    """A number after ``discretise``: the feature and its values; all rows are training rows."""
    numbers = pd.Series(values)
    scale = (min(values), max(values))
    feature = Feature("x", "integer", scale=scale, bounds=entry.pop("bounds", scale), **entry)
    made, column, _ = Discretisation.read("toy", way).apply(feature, numbers, np.arange(len(values)))
    return made, column.tolist()


@pytest.mark.parametrize(
    ("dataset", "features", "columns"),
    [("compas_binned", 5, 15), ("german_credit_binned", 20, 59), ("students_binned", 30, 85)],
)
def test_columns_are_those_of_the_paper(dataset: str, features: int, columns: int) -> None:
    data = loaded(dataset)
    assert len(data.space.names) == features
    assert len(data.space.columns) == columns
    assert {feature.kind for feature in data.space.features} <= DISCRETE


def test_compas_has_the_published_intervals() -> None:
    """Counted from the file itself."""
    data, raw = loaded("compas_binned"), pd.read_csv(Source(file="packaged/compas.csv").path)
    priors = data.frame["priors_count"].to_numpy()
    for name, low, high in (("0", 0, 0), ("1 to 3", 1, 3), ("4 to 10", 4, 10), (">= 11", 11, 10**6)):
        np.testing.assert_array_equal(priors == name, raw["priors_count"].between(low, high))
    ages = data.frame["age"].value_counts()
    assert ages["<= 24"] == (raw["age"] < 25).sum()
    assert ages[">= 46"] == (raw["age"] > 45).sum()
    np.testing.assert_array_equal(data.labels == "no", raw["two_year_recid"] == 0)


def test_a_median_divides_training_rows() -> None:
    """Above the median or not; where nothing lies above, the greatest number against the rest (num_dependents >= 2)."""
    data = loaded("german_credit_binned", split={"test_size": 0.5})
    raw = pd.read_csv(Source(file="packaged/german_credit.csv").path)
    middle = raw["duration"].iloc[data.train].median()
    above = data.space["duration"].categories[1]
    np.testing.assert_array_equal(data.frame["duration"] == above, raw["duration"] > middle)
    assert data.space["num_dependents"].categories == ("1", ">= 2")


@pytest.mark.parametrize("way", ["quantile", "median", "levels"])
def test_every_row_keeps_its_place(way: str) -> None:
    """Numbers that share an interval lie side by side: no interval reaches into another."""
    plain, data = (load_dataset("pima", **PIMA, discretise=chosen) for chosen in (None, way))
    assert {feature.kind for feature in data.space.features} <= DISCRETE
    np.testing.assert_array_equal(data.labels, plain.labels)
    np.testing.assert_array_equal(data.train, plain.train)
    for feature in data.space.features:
        codes = feature.codes(data.frame[feature.name])
        ends = plain.frame[feature.name].groupby(codes).agg(["min", "max"]).sort_index()
        assert (ends["max"].to_numpy()[:-1] < ends["min"].to_numpy()[1:]).all()
        shares = np.bincount(codes[data.train]) / len(data.train)
        assert len(shares) > 1
        if way == "quantile" and plain.frame[feature.name].nunique() > 200:
            assert shares.max() < 0.3
    encoded = data.space.encode(data.frame)
    np.testing.assert_array_equal(data.space.encode(data.space.decode(encoded)), encoded)


def test_quantiles_are_those_of_training_rows() -> None:
    """What the test rows hold changes no interval."""
    values = pd.Series([1, 2, 3, 4, 5, 6, 7, 8, 900, 1000])
    feature = Feature("x", "integer", scale=(1, 8), bounds=(1, 8))
    made, _, _ = Discretisation("quantile").apply(feature, values, np.arange(8))
    assert made.categories == ("<= 2", "3 to 4", "5 to 6", ">= 7")


@pytest.mark.parametrize(
    ("way", "values", "categories"),
    [
        ("median", [0, 0, 0, 0, 5], ("<= 4", ">= 5")),
        ("quantile", [0, 0, 0, 0, 1], ("0", ">= 1")),
        ("quantile", [-3, -2, -1, 0], ("-3", "-2", "-1", ">= 0")),
        ("levels", [3, 1, 2, 1, 3], (1, 2, 3)),
        ("levels", list(range(30)), ("<= 7", "8 to 14", "15 to 21", ">= 22")),
        ({"cuts": {"x": [2, 10]}}, [0, 1, 2, 9, 10], ("<= 1", "2 to 9", ">= 10")),
        ("median", [4, 4, 4, 4, 4], ("any",)),
    ],
)
def test_intervals_are_named_in_original_units(way: Any, values: list[float], categories: tuple[Any, ...]) -> None:
    made, column = applied(way, values)
    assert made.categories == categories
    assert set(column) == set(categories)


@pytest.mark.parametrize(
    ("actionability", "reached"),
    [("free", "0123"), ("immutable", "2"), ("increase", "23"), ("decrease", "012")],
)
def test_actionability_carries_over(actionability: str, reached: str) -> None:
    """From the third of four intervals, of which one may go where its numbers might."""
    made, column = applied({"default": "quantile"}, [1, 2, 3, 4, 5, 6, 7, 8], actionability=actionability)
    wanted = {made.categories[int(code)] for code in reached}
    assert set(made.reachable(column[4])) == wanted


def test_an_ordinal_feature_keeps_its_direction() -> None:
    feature = Feature("g", "ordinal", ("a", "b", "c"), actionability="decrease")
    made, _, _ = Discretisation().apply(feature, pd.Series(["a", "b", "c"]), np.arange(3))
    assert made.kind is Kind.CATEGORICAL
    assert set(made.reachable("b")) == {"a", "b"}


@pytest.mark.parametrize(
    ("way", "match"),
    [
        ("quantiles", "did you mean 'quantile'"),
        (3, "is '3'"),
        ({"bins": 1}, "whole number from 2"),
        ({"cuts": {"Glucos": [3]}}, "did you mean 'Glucose'"),
        ({"cuts": {"Glucose": [3, 2]}}, "increasing numbers"),
        ({"cuts": {"Glucose": 30}}, "are 30; give a list of increasing numbers"),
        ({"cuts": [30]}, "give a list of numbers by feature"),
        ({"cuts": {"Glucose": "thirds"}}, "cannot be 'thirds'"),
        ({"ways": "median"}, "no entry 'ways'"),
    ],
)
def test_a_wrong_setting_is_named(way: Any, match: str) -> None:
    with pytest.raises(DatasetError, match=match):
        load_dataset("pima", **PIMA, discretise=way)


def test_a_share_of_the_population_is_of_numbers() -> None:
    """Costs by percentiles would be looked up at the places of intervals."""
    with pytest.raises(DatasetError, match="percentile of Glucose measures numbers, which discretise makes intervals"):
        load_dataset("pima", **PIMA, discretise="quantile", overrides={"Glucose": {"percentile": True}})


def test_bounds_within_the_data_are_refused() -> None:
    with pytest.raises(DatasetError, match="bounds within"):
        applied("median", [1, 2, 3, 4, 5], bounds=(2, 4))


@pytest.mark.parametrize(("way", "categories"), [("median", ("-9", "<= 2", ">= 3")), ("levels", (-9, 1, 2, 3, 4))])
def test_a_special_code_is_a_category_that_none_enters(way: str, categories: tuple[Any, ...]) -> None:
    """It cuts no interval; who holds it may leave it; a code that no row holds is no category."""
    values = pd.Series([1, -9, 2, 3, -9, 4, -9])
    feature = Feature("x", "integer", scale=(1, 4), bounds=(1, 4), special=(-9, -8))
    made, column, intervals = Discretisation.read("toy", way).apply(feature, values, np.arange(7))
    assert made.categories == categories
    assert (column == categories[0]).tolist() == (values == -9).tolist()
    assert made.reachable(categories[1]) == categories[1:]
    assert made.reachable(categories[0]) == categories
    assert [permitted(made, categories[1], other) for other in categories] == [False, *[True] * (len(categories) - 1)]
    assert permitted(made, categories[0], categories[1])
    assert intervals is not None
    assert intervals.of([-8])[0] not in made.categories


def test_heloc_has_intervals_and_codes() -> None:
    """Counted from the numbers themselves."""
    plain, data = loaded("heloc"), loaded("heloc", discretise="quantile")
    assert {feature.kind for feature in data.space.features} <= DISCRETE
    for feature in plain.space.features:
        for code in feature.special:
            present = (plain.frame[feature.name] == code).to_numpy()
            np.testing.assert_array_equal(data.frame[feature.name] == str(int(code)), present)
            assert (str(int(code)) in data.space[feature.name].special) == present.any()


def test_equations_need_numbers() -> None:
    features = {"Glucose": {"kind": "continuous"}, "BMI": None}
    causality = {"Glucose": {"formula": "2 * BMI"}}
    with pytest.raises(DatasetError, match="need numbers"):
        load_dataset("pima", **PIMA, features=features, causality=causality, discretise="median")


def test_a_csv_of_ones_own(tmp_path: Path) -> None:
    """Its numbers become intervals; people in another file are given by number, or by interval."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"wage": rng.uniform(0, 9, 80).round(2), "job": ["x", "y"] * 40})
    frame["ok"] = np.where(frame["wage"] > 4, "yes", "no")
    frame.to_csv(tmp_path / "own.csv", index=False)
    data = load_csv(tmp_path / "own.csv", "ok", discretise="quantile")
    wage = data.space["wage"]
    assert [len(wage.categories), wage.kind] == [4, Kind.CATEGORICAL]
    people = tmp_path / "people.csv"
    people.write_text(f'wage,job\n0.1,x\n8.9,y\n"{wage.categories[1]}",x\n')
    assert read_factuals(data, people)["wage"].tolist() == [wage.categories[0], wage.categories[3], wage.categories[1]]
    with pytest.raises(DatasetError, match=r"discretise of the call is '4'"):
        load_csv(tmp_path / "own.csv", "ok", discretise=4)


def test_it_is_set_like_any_other_setting() -> None:
    """Without the plus signs that Hydra wants for what a YAML does not name."""
    assert readable("dataset.discretise=quantile") == "++dataset.discretise=quantile"


def test_what_fills_a_gap_of_a_number_that_was_cut_is_an_interval() -> None:
    cut = Intervals((1, 4), ("0", "1 to 3", ">= 4"))
    reading = Reading(fills={"age": np.float64(3.0), "height": 3.0}, intervals={"age": cut})
    assert (reading.filler("age"), reading.filler("height"), reading.filler("city")) == ("1 to 3", 3.0, None)
