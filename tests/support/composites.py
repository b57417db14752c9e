"""People with 972 points in all, models of them behind an encoding of their own, and optima by enumeration."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier

HOUSING = ("free", "own", "rent")
GRID = pd.DataFrame(
    [(age, debt, housing) for age in range(18) for debt in range(18) for housing in HOUSING],
    columns=["age", "debt", "housing"],
)


def people(seed: int = 0, rows: int = 240) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    frame = GRID.iloc[rng.integers(len(GRID), size=rows)].reset_index(drop=True)
    score = frame["age"] - frame["debt"] + 4 * (frame["housing"] == "own") + rng.normal(0, 4, rows) - 2
    return frame.assign(paid=np.where(score > 0, "yes", "no"))


PEOPLE = people()


def behind(model: Any) -> Any:
    """The model behind an encoding of its own."""
    return make_pipeline(make_column_transformer((OneHotEncoder(), ["housing"]), remainder=StandardScaler()), model)


def tree(depth: int = 3, **settings: Any) -> DecisionTreeClassifier:
    return DecisionTreeClassifier(max_depth=depth, random_state=0, **settings)


def pure(state: int) -> DecisionTreeClassifier:
    """A tree of any size, so that every leaf is of one class and averages tie."""
    return DecisionTreeClassifier(max_features=1, random_state=state)


FOREST = RandomForestClassifier(5, max_depth=3, random_state=0)
BOOSTING = GradientBoostingClassifier(n_estimators=6, max_depth=2, random_state=0)


def nearest(model: Any, row: int, wanted: Callable[[pd.DataFrame], np.ndarray]) -> float:
    """The least distance to a point of the grid that the model itself accepts."""
    person, ranges = PEOPLE.iloc[row], PEOPLE[["age", "debt"]].max() - PEOPLE[["age", "debt"]].min()
    ends = PEOPLE[["age", "debt"]].agg(["min", "max"])
    inside = GRID[
        (GRID[["age", "debt"]] >= ends.loc["min"]).all(axis=1) & (GRID[["age", "debt"]] <= ends.loc["max"]).all(axis=1)
    ]
    away = ((inside[["age", "debt"]] - person[["age", "debt"]].astype(float)).abs() / ranges).sum(axis=1)
    away += inside["housing"] != person["housing"]
    return float(away[wanted(inside)].min())
