"""Forests of five small trees with two to four classes, by both engines, against every cell there is."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier

from harness.core.classifier import Classifier
from harness.core.explanation import Status
from harness.core.inputs import space_inputs
from harness.core.method import Deadline
from harness.core.problem import Problem
from harness.core.space import Feature, Space
from harness.core.target import Label
from methods.ce_ocl import CeOcl
from methods.ce_ocl.explainer import start

SPACE = Space(
    (
        Feature("x", "continuous", scale=(-3.0, 3.0), bounds=(-3.0, 3.0)),
        Feature("y", "continuous", scale=(0.0, 10.0), bounds=(0.0, 10.0)),
        Feature("n", "integer", scale=(0, 7), bounds=(0, 7)),
        Feature("region", "categorical", ("n", "e", "s")),
        Feature("member", "binary", (False, True)),
    )
)
BESIDE = 1e-6  # of a feature's range: from a threshold to the points that are tried beside it


def rows(count: int, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "x": np.clip(rng.normal(size=count), -3, 3),
            "y": rng.uniform(0, 10, size=count),
            "n": rng.integers(0, 8, size=count),
            "region": rng.choice(["n", "e", "s"], size=count),
            "member": rng.random(count) < 0.5,
        }
    )


def fitted(train: pd.DataFrame, depth: int, classes: int, seed: int) -> Classifier:
    rng = np.random.default_rng(seed)
    inputs = SPACE.encode(train)
    merit = np.sin(3 * inputs @ rng.normal(size=inputs.shape[1])) + 0.5 * rng.normal(size=len(train))
    labels = np.digitize(merit, np.quantile(merit, np.arange(1, classes) / classes))
    forest = RandomForestClassifier(5, max_depth=depth, random_state=seed).fit(inputs, labels)
    return Classifier(forest, space_inputs(SPACE), tuple("wxyz"[:classes]))


def cells(judge: Classifier, factual: pd.DataFrame) -> pd.DataFrame:
    """A point in each cell, as near to the factual as ``BESIDE`` allows: its own values, both sides of thresholds."""
    choices = []
    for feature in SPACE.features:
        own = factual[feature.name].iloc[0]
        if feature.name not in {"x", "y"}:
            choices.append(range(8) if feature.name == "n" else feature.categories)
            continue
        column = [source.feature for source in judge.inputs].index(feature.name)
        low, high = feature.bounds
        ends = {
            low + float(threshold) * (high - low)
            for tree in judge.estimator.estimators_
            for threshold in tree.tree_.threshold[(tree.tree_.feature == column)]
        }
        beside = [end + side * BESIDE * (high - low) for end in ends for side in (-1, 1)]
        choices.append([own, *(value for value in beside if low <= value <= high)])
    return pd.DataFrame(list(itertools.product(*choices)), columns=list(SPACE.names))


@pytest.mark.slow
@pytest.mark.parametrize("seed", [42, 43, 44])
@pytest.mark.parametrize("count", [100, 200, 500])
@pytest.mark.parametrize("classes", [2, 3, 4])
@pytest.mark.parametrize("depth", [2, 3])
def test_every_class_is_reached_as_cheaply_as_any_cell_has_it(depth: int, classes: int, count: int, seed: int) -> None:
    train = rows(count, seed)
    judge = fitted(train, depth, classes, seed)
    predicted = judge.predict(train)
    for place in range(4):
        wanted = judge.classes[place % classes]
        factual = train.loc[predicted != wanted].iloc[[place]]
        points = cells(judge, factual)
        problem = Problem(SPACE, judge, train, np.empty(count, dtype=object), Label(wanted))
        method = CeOcl("l1")
        right = points[problem.valid(points)]
        best = method.objective(problem).evaluate(SPACE, factual, right).min() if len(right) else np.inf
        for engine in ("search", "milp"):
            answer = start(CeOcl("l1", engine=engine), problem).answers(factual, 1, Deadline.after(60.0))[0]
            assert answer.status is (Status.OPTIMAL if len(right) else Status.INFEASIBLE)
            if len(right):
                assert problem.valid(SPACE.frame([answer.row]))[0]
                assert answer.objective == pytest.approx(best, abs=5e-6)
                assert answer.bound <= best + 1e-9
