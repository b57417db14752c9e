"""Methods of CARLA on COMPAS and on a small space."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from hydra.utils import instantiate
from omegaconf import OmegaConf
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression

from harness.core.explanation import Answer
from harness.core.method import Deadline
from harness.core.problem import Problem
from harness.core.space import Feature, Space
from harness.core.target import Label
from harness.data import load_dataset
from harness.models import train as models

ROOT = Path(__file__).parents[2]
NAMES = ("growing_spheres", "face_knn", "face_epsilon", "actionable_recourse", "feature_tweak", "carla_dice")


def method_of(name: str) -> Any:
    cut = {"fs_size": 5} if name == "actionable_recourse" else {}  # with its own hundred items it takes seconds
    return instantiate(OmegaConf.load(ROOT / "conf" / "method" / f"{name}.yaml"), **cut)


@cache
def compas(kind: str, name: str = "compas") -> tuple[Problem, pd.DataFrame]:
    """COMPAS, a small model of it, and ten rows that are not of the wanted class."""
    config: Any = OmegaConf.to_container(OmegaConf.load(ROOT / "conf" / "dataset" / f"{name}.yaml"))
    data = load_dataset(**config)
    train, labels = data.frame.iloc[data.train], data.labels[data.train]
    estimator = LogisticRegression() if kind == "lr" else RandomForestClassifier(10, max_depth=4, random_state=0)
    classifier = models.train(estimator, data.space, train, labels, data.classes)
    problem = Problem(data.space, classifier, train, labels, Label(config["desired"]))
    rows = data.frame.iloc[data.test]
    return problem, rows.loc[~problem.valid(rows)].iloc[:10]


def ask(method: Any, problem: Problem, factual: pd.DataFrame, n: int = 1, seed: int = 0) -> tuple[Answer, ...]:
    return method.fit(problem).explain(factual, n, np.random.default_rng(seed), Deadline.after(20)).answers


SPACE = Space(
    (
        Feature("age", "continuous", scale=(0.0, 10.0), actionability="immutable"),
        Feature("wage", "integer", scale=(0, 20)),
        Feature("grade", "ordinal", ("low", "middle", "high")),
        Feature("city", "categorical", ("Bonn", "Ulm", "Trier")),
        Feature("member", "binary", (False, True)),
    )
)


def sample(rows: int = 200) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    values = {
        "age": rng.uniform(0, 10, rows).tolist(),
        "wage": rng.integers(0, 21, rows).tolist(),
        "grade": rng.choice(["low", "middle", "high"], rows).tolist(),
        "city": rng.choice(["Bonn", "Ulm", "Trier"], rows).tolist(),
        "member": (rng.random(rows) < 0.5).tolist(),
    }
    return SPACE.frame(pd.DataFrame(values).astype(object).to_dict("records"))
