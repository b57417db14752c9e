"""Two CSVs and the pipelines that somebody trained on them, read as users read theirs."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder, OrdinalEncoder, StandardScaler
from skops import io

from harness.core.problem import Problem
from harness.core.target import Label
from harness.data import load_csv
from harness.models.adopt import from_file

GRADES, HOMES = ["low", "mid", "high"], ["own", "rent", "free", "boat"]
SETTINGS: dict[str, dict[str, Any]] = {
    "loans": {"actionability": "increase"},  # of the grade
    "visits": {"actionability": "free"},
}


def table(name: str) -> pd.DataFrame:
    """Numbers, whole numbers, an order, categories of which one is rare, and two classes."""
    rng = np.random.default_rng(len(name))
    frame = pd.DataFrame(
        {
            "income": rng.uniform(0.1, 9, 160).round(3),
            "age": rng.integers(18, 80, 160),
            "grade": rng.choice(GRADES, 160),
            "home": rng.choice(HOMES, 160, p=[0.4, 0.3, 0.27, 0.03]),
            "member": rng.choice(["no", "yes"], 160),
        }
    )
    merit = frame["income"] + frame["age"] / 20 + 2 * (frame["grade"] == "high") + 2 * (frame["home"] == "own")
    merit += frame["member"] == "yes"
    return frame.assign(outcome=np.where(merit > merit.median(), "good", "bad"))


def pipeline(name: str) -> Any:
    """Of the loans a linear model with scaled codes, of the visits a forest on codes of its own."""
    if name == "loans":
        steps = make_column_transformer(
            (make_pipeline(SimpleImputer(), StandardScaler()), ["age", "income"]),
            (OneHotEncoder(drop="first", handle_unknown="ignore"), ["home", "grade"]),
            (OrdinalEncoder(), ["member"]),
            sparse_threshold=0,
        )
        return make_pipeline(steps, StandardScaler(), LogisticRegression())
    steps = make_column_transformer(
        (MinMaxScaler((-1, 1)), ["income"]),
        (OneHotEncoder(drop="if_binary", handle_unknown="infrequent_if_exist", min_frequency=10), ["home", "member"]),
        (OrdinalEncoder(categories=[GRADES]), ["grade"]),
        remainder="passthrough",
    )
    return make_pipeline(steps, RandomForestClassifier(8, max_depth=4, random_state=0))


@cache
def own(name: str) -> tuple[Problem, pd.DataFrame]:
    """The problem of a CSV and a model file, and two factuals of its test rows."""
    frame = table(name)
    with TemporaryDirectory() as folder:
        data_file, model_file = Path(folder) / f"{name}.csv", Path(folder) / f"{name}.skops"
        frame.to_csv(data_file, index=False)
        io.dump(pipeline(name).fit(frame.drop(columns="outcome"), frame["outcome"]), model_file)
        grade = {"kind": "ordinal", "categories": GRADES, **SETTINGS[name]}
        data = load_csv(data_file, "outcome", desired="good", immutable=["member"], features={"grade": grade})
        classifier = from_file(model_file, data.space, data.frame, data.classes, name=name)
    train, rows = data.frame.iloc[data.train], data.frame.iloc[data.test]
    problem = Problem(data.space, classifier, train, data.labels[data.train], Label("good"))
    return problem, rows.loc[~problem.valid(rows)].iloc[:2]
