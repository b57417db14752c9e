"""Small tree ensembles over numbers, levels and categories, and the search over their cells."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.ensemble import ExtraTreesClassifier, GradientBoostingClassifier, RandomForestClassifier
from sklearn.tree import DecisionTreeClassifier

from harness.core.classifier import Classifier
from harness.core.inputs import Affine, space_inputs
from harness.core.method import Deadline
from harness.core.problem import Problem
from harness.core.space import Feature, Kind, Space
from harness.core.target import Label
from methods.ce_ocl import CeOcl
from methods.cells.closest import Closest
from methods.cells.search import CellSearch
from methods.estimators.trees import ensemble

SPACE = Space(
    (
        Feature("a", "continuous", scale=(-3.0, 5.0), bounds=(-3.0, 5.0)),
        Feature("b", "continuous", scale=(0.0, 0.7), bounds=(0.0, 0.7)),
        Feature("n", "integer", scale=(0, 30), bounds=(0, 30)),
        Feature("m", "integer", scale=(-4, 5), bounds=(-4, 5)),
        Feature("grade", "ordinal", (1, 2, 3, 4)),
        Feature("region", "categorical", ("n", "e", "s", "w", "x")),
        Feature("member", "binary", (False, True)),
    )
)


ESTIMATORS: dict[str, Any] = {
    "cart": DecisionTreeClassifier(max_depth=7, random_state=0),
    "rf": RandomForestClassifier(10, max_depth=4, random_state=0),
    "extra": ExtraTreesClassifier(12, max_depth=4, random_state=0),
    "gbm": GradientBoostingClassifier(n_estimators=15, max_depth=2, random_state=0),
}
THREE: dict[str, Any] = {f"{name}3": ESTIMATORS[name] for name in ("cart", "rf", "gbm")}  # of three classes


def sample(rows: int, seed: int = 0) -> pd.DataFrame:
    """Random points of the space."""
    rng = np.random.default_rng(seed)
    data: dict[str, Any] = {}
    for feature in SPACE.features:
        if feature.kind is Kind.CONTINUOUS:
            data[feature.name] = rng.uniform(*feature.bounds, rows)
        elif feature.kind is Kind.INTEGER:
            data[feature.name] = rng.integers(int(feature.bounds[0]), int(feature.bounds[1]) + 1, rows)
        else:
            data[feature.name] = [feature.categories[k] for k in rng.integers(0, len(feature.categories), rows)]
    return pd.DataFrame(data)


def merit(frame: pd.DataFrame) -> np.ndarray:
    """What the models learn: every feature matters, and not alone."""
    part = np.sin(2 * frame["a"]) + 2 * frame["b"] * (1 + frame["member"]) + np.cos(frame["n"] / 4)
    part += (frame["grade"] - 2.5) * np.where(frame["region"].isin(["n", "s"]), 0.5, -0.4) - abs(frame["m"]) / 5
    return part.to_numpy(float)


@cache
def problem_with(model: str, target: str = "yes", rows: int = 400) -> Problem:
    train, several = sample(rows), model in THREE
    ends = [0.4, 0.7] if several else [0.6]
    labels = (merit(train)[:, None] > np.quantile(merit(train), ends)).sum(axis=1)
    estimator = clone((ESTIMATORS | THREE)[model]).fit(SPACE.encode(train), labels)
    fitted = Classifier(estimator, space_inputs(SPACE), ("no", "yes", "more") if several else ("no", "yes"))
    return Problem(SPACE, fitted, train, np.empty(rows, dtype=object), Label(target))


def factuals(problem: Problem, count: int) -> list[pd.DataFrame]:
    """Training rows that the model does not classify as wanted."""
    rejected = problem.train[~problem.valid(problem.train)]
    return [rejected.iloc[[row]] for row in range(min(count, len(rejected)))]


def searcher(method: CeOcl, problem: Problem) -> CellSearch:
    """The search with the method's costs, without the method."""
    coefficients = method.objective(problem).separable(problem.space)
    assert coefficients is not None
    return CellSearch(problem, coefficients, method.weights(problem), method.max_changes or math.inf)


def closest(cells: CellSearch, factual: pd.DataFrame, earlier: Any = (), separation: float = 0.2) -> Closest:
    return cells.closest(factual.to_dict("records")[0], earlier, separation, Deadline.after(60.0))


def around_thresholds(problem: Problem, ends: tuple[np.ndarray, ...], rows: int) -> pd.DataFrame:
    """Random points, each number as often as not at a threshold or a float64 or float32 neighbour of one."""
    rng = np.random.default_rng(1)
    frame = sample(rows, seed=2)
    for feature, borders in zip(problem.space.features, ends, strict=True):
        if not feature.numeric or not len(borders):
            continue
        near = [borders, borders - 1, borders + 1]
        if feature.kind is Kind.CONTINUOUS:
            near = [borders, *(np.nextafter(borders, side) for side in (-np.inf, np.inf))]
            single = borders.astype(np.float32)
            near += [single, *(np.nextafter(single, np.float32(side)) for side in (-np.inf, np.inf))]
            for column, source in enumerate(problem.classifier.inputs):
                if source.feature == feature.name:
                    trees = ensemble(problem.classifier.estimator).trees
                    cuts = [tree.threshold[(tree.column == column) & (tree.left >= 0)] for tree in trees]
                    near.append(source.shift + np.concatenate(cuts) * source.unit)
        listed = np.concatenate(near).astype(float)
        picked = rng.choice(listed, rows)
        mixed = np.where(rng.random(rows) < 0.7, picked, frame[feature.name].to_numpy(float))
        frame[feature.name] = mixed.astype(int) if feature.kind is Kind.INTEGER else mixed
    return frame


TENTHS = Space(tuple(Feature(name, "integer", scale=(0, 9), bounds=(0, 9)) for name in "abc"))


POINTS = pd.DataFrame(itertools.product(range(10), repeat=3), columns=list("abc"))


@cache
def tenths(target: str) -> Problem:
    """Three trees that say a/10, b/10, c/10: every point has leaves of its own, and a sum of 15 is a tie, rounded."""
    trees = []
    for column in range(3):
        inputs = np.zeros((100, 3))
        inputs[:, column] = np.repeat(np.arange(10), 10)
        trees.append(DecisionTreeClassifier(random_state=0).fit(inputs, np.arange(100) % 10 < inputs[:, column]))
    forest = RandomForestClassifier(3).fit(POINTS.to_numpy(float), POINTS["a"] > 4)
    forest.estimators_ = trees
    fitted = Classifier(forest, tuple(Affine(name) for name in "abc"), ("no", "yes"))
    return Problem(TENTHS, fitted, POINTS, np.empty(1000, dtype=object), Label(target))


def many_leaves() -> Problem:
    """A forest with more leaves than a mask's word has bits, and a tree without a split."""
    train, noise = sample(900), np.random.default_rng(7).random(900) < 0.5
    inputs = SPACE.encode(train)
    forest = RandomForestClassifier(3, random_state=0).fit(inputs, noise)
    forest.estimators_[1] = DecisionTreeClassifier().fit(np.zeros_like(inputs), noise)
    assert forest.estimators_[1].tree_.node_count == 1
    return replace(problem_with("rf"), classifier=Classifier(forest, space_inputs(SPACE), ("no", "yes")))
