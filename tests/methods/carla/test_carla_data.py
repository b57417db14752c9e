"""Data of published tables: the rows and values of the files they were made with; numbers without bounds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from support.datasets import dataset_of

from harness.core.errors import DatasetError
from harness.data import data_folder, load_dataset

SHAPES = {
    "compas_carla": (6172, 7, 5028),
    "adult_carla": (48832, 13, 11687),
    "heloc_carla": (9871, 21, 4735),
    "give_me_some_credit_carla": (115527, 10, 107686),
}
CARLA = {  # CARLA's own files
    "compas_carla": "compas/compas.csv",
    "adult_carla": "adult/adult.csv.gz",
    "heloc_carla": "heloc/heloc.csv.gz",
    "give_me_some_credit_carla": "give_me_some_credit/give_me_some_credit.csv.gz",
}
IMMUTABLE = {
    "compas_carla": {"age", "sex", "race"},
    "adult_carla": {"age", "sex", "race"},
    "heloc_carla": set(),
    "give_me_some_credit_carla": {"age"},
}
FAR = 1000.0


@pytest.mark.parametrize("name", CARLA)
def test_carla_data_are_carlas(name: str) -> None:
    """Row by row and in order the values of CARLA's own file; numbers continuous, one 0/1 column a category."""
    data = dataset_of(name)
    rows, features, good = SHAPES[name]
    assert data.frame.shape == (rows, features)
    assert len(data.space.columns) == features
    assert int((data.labels == 1).sum()) == good
    assert (data.classes, data.desired) == ((0, 1), 1)
    assert {f.name for f in data.space.features if f.actionability == "immutable"} == IMMUTABLE[name]
    assert {str(f.kind) for f in data.space.features} <= {"continuous", "binary"}
    path = data_folder() / CARLA[name]
    if not path.is_file():
        pytest.skip(f"{path} is not at hand")
    table = pd.read_csv(path)
    target = next(column for column in table if column not in data.space.names)
    assert (table[target].astype(int).to_numpy() == data.labels.astype(int)).all()
    for feature in data.space.features:
        values = data.frame[feature.name].to_numpy()
        assert (values == (table[feature.name].astype(float) if feature.numeric else table[feature.name])).all()


def test_statlog_heart_is_the_raw_file() -> None:
    """270 patients; the man of the demonstration is row 263, who has no disease."""
    data = dataset_of("heart_statlog")
    assert data.frame.shape == (270, 13)
    assert (data.classes, data.desired) == (("absence", "presence"), "absence")
    assert pd.Series(data.labels).value_counts().to_dict() == {"absence": 150, "presence": 120}
    raw = pd.read_csv(data_folder() / "heart_statlog" / "statlog.csv")
    assert (data.frame.astype(float).to_numpy() == raw[list(data.space.names)].to_numpy(float)).all()
    man = {"age": 49, "sex": 1, "cp": 2, "trestbps": 130, "chol": 266, "fbs": 0, "restecg": 0, "thalach": 171}
    man |= {"exang": 0, "oldpeak": 0.6, "slope": 1, "ca": 0, "thal": 3}
    assert data.frame.loc[263].to_dict() == man
    assert data.labels[263] == "absence"


def test_the_case_study_is_the_papers() -> None:
    """Its person, and a full one-hot: 7 numbers and 54 columns of categories."""
    data = dataset_of("german_credit_plain")
    person = data.frame.loc[775]
    assert [person[name] for name in ("duration", "credit_amount", "age", "housing")] == [24, 1371, 25, "rent"]
    assert len(data.space.columns) == 7 + 54
    fixed = {f.name for f in data.space.features if f.actionability == "immutable"}
    assert fixed == {"residence_since", "existing_credits", "num_dependents"}


def test_without_bounds_numbers_may_go_far() -> None:
    """A thousand training ranges beyond either end; bounds of a feature's own stand, null being the training rows'."""
    own = {"Glucose": {"bounds": [None, np.inf]}, "BMI": {"bounds": [0, 90]}}
    free, mixed = dataset_of("pima_two", unbounded=True), dataset_of("pima_two", unbounded=True, overrides=own)
    for feature in free.space.features:
        low, high = feature.scale
        assert feature.bounds == (low - FAR * (high - low), high + FAR * (high - low))
    glucose, weight = mixed.space["Glucose"], mixed.space["BMI"]
    assert glucose.bounds == (glucose.scale[0], free.space["Glucose"].bounds[1])
    assert weight.bounds == (0, 90)
    assert dataset_of("pima_two").space["BMI"].bounds == dataset_of("pima_two").space["BMI"].scale
    assert dataset_of("pima_two", overrides={"BMI": {"bounds": [None, None]}}).space["BMI"].bounds == weight.scale


def test_outliers_are_dropped(tmp_path: Path) -> None:
    """Rows with a number three standard deviations from its mean, which is taken over the rows without gaps."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"a": rng.normal(size=200), "b": rng.normal(size=200), "y": [0, 1] * 100})
    table.loc[3, "a"] = 9.0
    table.loc[7, "b"] = -9.0
    table.loc[9, "b"] = np.nan
    table.to_csv(tmp_path / "toy.csv", index=False)
    given: dict[str, Any] = {"sources": [{"file": str(tmp_path / "toy.csv")}], "target": "y", "missing": "drop"}
    kept = table.dropna()
    scores = ((kept[["a", "b"]] - kept[["a", "b"]].mean()) / kept[["a", "b"]].std(ddof=0)).abs().max(axis=1)
    expected = list(kept.index[scores < 3])
    assert not {3, 7, 9} & set(expected)
    assert list(load_dataset("toy", outliers=3, **given).frame.index) == expected
    with pytest.raises(DatasetError, match="raise 'outliers'"):
        load_dataset("toy", outliers=0.001, **given)
