"""A table of loans, pipelines trained on it as users train theirs, and a payload of a pickle."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from harness.core.classifier import Classifier
from harness.core.space import Feature, Space
from harness.models.adopt import from_file

SPACE = Space(
    (
        Feature("age", "integer", scale=(18, 80), bounds=(18, 80)),
        Feature("income", "continuous", scale=(0.0, 9.0), bounds=(0.0, 9.0)),
        Feature("city", "categorical", ("Bonn", "Köln", "Ulm")),
        Feature("member", "binary", (False, True)),
    )
)


def sample(rows: int = 120) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    draws = {
        "age": rng.integers(18, 81, rows).tolist(),
        "income": rng.uniform(0, 9, rows).tolist(),
        "city": rng.choice(["Bonn", "Köln", "Ulm"], rows).tolist(),
        "member": rng.choice([False, True], rows).tolist(),
    }
    return SPACE.frame(pd.DataFrame(draws).astype(object).to_dict("records"))


FRAME = sample()
READ = FRAME.astype({"city": "str", "member": bool})
GOOD = (FRAME["age"] / 20 + FRAME["income"] + 2 * (FRAME["city"] == "Ulm") > 7.5).to_numpy()
LABELS = np.where(GOOD, "good", "bad").astype(object)


def steps() -> Any:
    return make_column_transformer((StandardScaler(), ["age", "income"]), (OneHotEncoder(), ["city", "member"]))


def trained(last: Any = None, labels: np.ndarray = LABELS) -> Pipeline:
    return make_pipeline(steps(), LogisticRegression() if last is None else last).fit(READ, labels)


def read(path: Path, **options: Any) -> Classifier:
    return from_file(path, SPACE, FRAME, ("bad", "good"), name="loans", **options)


class Payload:
    """Creates a folder whenever it is unpickled."""

    def __init__(self, target: Path) -> None:
        self.target = target

    def __reduce__(self) -> tuple[Any, ...]:
        return os.makedirs, (str(self.target), 0o777, True)
