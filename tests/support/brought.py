"""Models that people bring of other libraries, and one that is asked about rows with gaps: problems with factuals."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier

from harness.core.classifier import Classifier
from harness.core.problem import Problem
from harness.core.space import Feature, Kind, Space
from harness.core.target import Label
from harness.data.sources import RAW
from harness.library import pose
from harness.models.runtime.source import ModelSource
from harness.models.train import train

FOLDER = Path(__file__).parents[1] / "fixtures" / "exported"
PIMA = pd.read_csv(RAW / "pima.csv")
INPUTS = PIMA.drop(columns="Outcome").to_numpy(float)
BROUGHT = ("torch", "catboost", "gaps")


def table_of(stem: str) -> tuple[pd.DataFrame, dict[str, Any]]:
    """The Pima data with the target that a fixture was trained on by its name, and what is asked of it."""
    if "three" in stem:
        return PIMA.assign(Outcome=np.digitize(PIMA["Age"], (25, 40))), {"desired": "1"}
    if "number" in stem:
        return PIMA.assign(Outcome=PIMA["Glucose"] * 1.0), {"task": "regression", "desired": ">= 120"}
    return PIMA, {"desired": "0"}


def asked(model: Any, stem: str = "", **settings: Any) -> Classifier:
    """A model over that table, as a question has it."""
    frame, given = table_of(stem)
    return pose(frame, "Outcome", ModelSource(model, **settings), **given).classifier


@cache
def brought(kind: str) -> tuple[Problem, pd.DataFrame]:
    """The problem of a model, and two factuals, with gaps if there are any; skips where its library is absent."""
    made: dict[str, Callable[[], Problem]] = {"torch": network, "catboost": symmetric, "gaps": gaps}
    if kind != "gaps":
        pytest.importorskip(kind, reason=f"{kind} is in the extra {kind!r}")
    problem = made[kind]()
    names = [feature.name for feature in problem.space.gaps]
    wrong = ~problem.valid(problem.train) & (problem.train[names].isna().any(axis=1) if names else True)
    return problem, problem.train.loc[wrong].iloc[:2]


def network() -> Problem:
    """A state dict of eight numbers."""
    frame = PIMA.iloc[:160]
    task = pose(frame, "Outcome", FOLDER / "torch_state.pt", desired="0", immutable=["Age"])
    return next(iter(task.problems.values()))


def symmetric() -> Problem:
    """A file of CatBoost of three numbers and a category."""
    pima = PIMA.iloc[:160]
    group = np.where(pima["Age"] > 30, "older", "younger")
    frame = pima.iloc[:, :3].assign(Group=group, Outcome=pima["Outcome"])
    task = pose(frame, "Outcome", FOLDER / "catboost_categories.cbm", desired="0")
    return next(iter(task.problems.values()))


def gaps() -> Problem:
    """Boosting on rows with gaps, of which one feature's may be made."""
    rng = np.random.default_rng(0)
    space = Space(
        (
            Feature("income", Kind.CONTINUOUS, scale=(0, 1), bounds=(0, 1), missing=True),
            Feature("debt", Kind.CONTINUOUS, scale=(0, 1), bounds=(0, 1), missing=True, may_be_missing=True),
            Feature("job", Kind.CATEGORICAL, ("none", "some")),
        )
    )
    numbers = pd.DataFrame(rng.random((120, 2)).round(2), columns=["income", "debt"]).mask(rng.random((120, 2)) < 0.2)
    frame = numbers.assign(job=rng.choice(["none", "some"], 120).astype(object))
    labels = np.where(frame["income"].fillna(0) > frame["debt"].fillna(0.2), "yes", "no").astype(object)
    model = train(HistGradientBoostingClassifier(max_iter=10), space, frame, labels, ("no", "yes"))
    return Problem(space, model, frame, labels, Label("yes"))
