"""A small problem with a noisy rule behind it, for searches within hulls and around them."""

from __future__ import annotations

import numpy as np
import pandas as pd
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier, RandomForestRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.neural_network import MLPClassifier

from harness.core.classifier import Classifier
from harness.core.inputs import space_inputs
from harness.core.problem import Problem
from harness.core.space import Actionability, Feature, Kind, Space
from harness.core.target import Interval, Label

MODELS = {
    "logistic": LogisticRegression(),
    "forest": RandomForestClassifier(7, max_depth=3, random_state=0),
    "boosting": GradientBoostingClassifier(n_estimators=12, max_depth=2, random_state=0),
    "network": MLPClassifier((8,), solver="lbfgs", max_iter=1000, random_state=0),
    "deep": MLPClassifier((5, 4), solver="lbfgs", max_iter=1000, random_state=1),
}


def make(
    model: object, seed: int, whole: bool = True, actionability: Actionability = Actionability.FREE, rows: int = 60
) -> Problem:
    """A problem of two small integers, an ordinal, a category and one more number; labels follow a noisy rule."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "a": rng.integers(0, 9, rows),
            "b": rng.integers(0, 7, rows),
            "c": rng.integers(0, 5, rows) if whole else np.round(rng.uniform(0, 5, rows), 3),
            "o": pd.Series(rng.choice(["low", "mid", "high"], rows), dtype=object),
            "k": pd.Series(rng.choice(["x", "y"], rows), dtype=object),
        }
    )
    rank = frame["o"].map({"low": 0, "mid": 1, "high": 2})
    signal = frame["a"] + frame["b"] - frame["c"] + 2 * rank + 2 * (frame["k"] == "x") + rng.normal(0, 2, rows)
    labels = np.where(signal > np.median(signal), "yes", "no")
    last = Kind.INTEGER if whole else Kind.CONTINUOUS
    space = Space(
        (
            Feature("a", Kind.INTEGER, scale=(0, 8), bounds=(0, 8), actionability=actionability),
            Feature("b", Kind.INTEGER, scale=(0, 6), bounds=(1, 6), special=(0,)),
            Feature("c", last, scale=(0, 5), bounds=(0, 5)),
            Feature("o", Kind.ORDINAL, ("low", "mid", "high")),
            Feature("k", Kind.CATEGORICAL, ("x", "y")),
        )
    )
    inputs = space_inputs(space)
    regression = isinstance(model, RandomForestRegressor | LinearRegression)
    classes: tuple[str, ...] = () if regression else ("no", "yes")
    bare = Classifier(model, inputs, ())
    matrix = bare.matrix(frame)
    model.fit(matrix, signal.to_numpy() if regression else (labels == "yes").astype(int))  # type: ignore[attr-defined]
    target = Interval(low=float(np.quantile(signal, 0.7))) if regression else Label("yes")
    outcome = signal.to_numpy() if regression else labels
    return Problem(space, Classifier(model, inputs, classes), frame, outcome, target)


def with_codes(model: object, seed: int) -> Problem:
    """A problem of four integers, each a special code, 0, or 4 to 7."""
    rng, names = np.random.default_rng(seed), list("abcd")
    frame = pd.DataFrame({name: np.where(rng.random(60) < 0.4, 0, rng.integers(4, 8, 60)) for name in names})
    signal = frame.to_numpy() @ rng.normal(size=4) + rng.normal(0, 4, 60)
    labels = np.where(signal > np.median(signal), "yes", "no")
    features = [Feature(name, Kind.INTEGER, scale=(0, 7), bounds=(4, 7), special=(0,)) for name in names]
    space = Space(tuple(features))
    inputs = space_inputs(space)
    model.fit(Classifier(model, inputs, ()).matrix(frame), (labels == "yes").astype(int))  # type: ignore[attr-defined]
    return Problem(space, Classifier(model, inputs, ("no", "yes")), frame, labels, Label("yes"))


def factuals(problem: Problem, count: int) -> list[pd.DataFrame]:
    wrong = np.flatnonzero(~problem.valid(problem.train))[:count]
    return [problem.train.iloc[[k]] for k in wrong]
