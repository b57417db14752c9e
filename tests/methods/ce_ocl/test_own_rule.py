"""Optima, bounds and proofs of linear models are about their own rule, score > 0, whatever size the weights are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog
from sklearn.linear_model import LogisticRegression

from harness.core.explanation import Answer, Status
from harness.library import Task, explain, pose
from methods.ce_ocl import CeOcl
from methods.robust import Robust

NAMES = ["a", "b", "c", "d"]
METHODS = (CeOcl(distance="l1"), CeOcl(distance="l1", engine="milp"), CeOcl(distance="l1", hull="hard"))


def table(units: float = 1.0) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    values = rng.uniform(size=(300, 4))
    merit = values @ [1.0, -2.0, 0.5, 1.5] + 0.3 * rng.normal(size=300)
    return pd.DataFrame(values * units, columns=NAMES).assign(
        label=np.where(merit > np.median(merit), "yes", "no").astype(object)
    )


def closest(task: Task, person: int, hull: bool, rho: float = 0.0) -> float:
    """The infimum by an independent linear program over scaled moves; the hull as shares of the rows labelled yes."""
    frame, estimator = task.factuals, task.classifier.estimator
    ranges = np.array([feature.range for feature in task.dataset.space.features])
    rows = frame.to_numpy() / ranges
    origin = rows[person]
    weights = np.ravel(estimator.coef_) * ranges
    unit = np.abs(weights).max()
    missing = -float(estimator.intercept_[0] + weights @ origin - rho * np.abs(weights).sum()) / unit
    low, high = rows.min(axis=0) - origin, rows.max(axis=0) - origin
    cost, bounds = np.ones(8), [(0, end) for end in (*high, *-low)]
    above, most = np.concatenate([-weights, weights])[None] / unit, [-missing]
    if not hull:
        return float(linprog(cost, above, most, bounds=bounds).fun)
    points = rows[np.array(task.dataset.labels == "yes")]
    shares = np.zeros(len(points))
    moves = np.hstack([np.eye(4), -np.eye(4), -points.T])
    sums = np.concatenate([np.zeros(8), np.ones(len(points))])
    found = linprog(
        np.concatenate([cost, shares]), np.hstack([above, shares[None]]), most, np.vstack([moves, sums]),
        np.concatenate([-origin, [1.0]]), bounds + [(0, None)] * len(points),
    )  # fmt: skip
    return float(found.fun)


def judged(task: Task, answer: Answer, person: int, hull: bool, rho: float = 0.0) -> None:
    assert answer.row is not None
    alone = pd.DataFrame([answer.row])
    assert task.classifier.predict(alone)[0] == "yes"
    assert task.classifier.predict(pd.concat([alone, task.factuals[NAMES]], ignore_index=True))[0] == "yes"
    expected = closest(task, person, hull, rho)
    assert answer.status is Status.OPTIMAL
    assert answer.bound is not None
    assert answer.objective is not None
    assert answer.bound <= expected + 1e-9
    assert answer.objective == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("method", METHODS, ids=["auto", "milp", "hull"])
@pytest.mark.parametrize("strength", [1.0, 1e-2, 1e-4, 1e-7, 1e-9])
def test_a_weak_model_has_no_margin(method: CeOcl, strength: float) -> None:
    """C = 1e-9 leaves weights of 1e-7: a margin of 1e-6 would rule every point out."""
    frame = table()
    task = pose(frame, "label", LogisticRegression(C=strength).fit(frame[NAMES], frame["label"]), desired="yes")
    refused = np.flatnonzero(task.classifier.predict(task.factuals) == "no")
    for person in refused[[0, len(refused) // 2]].tolist():
        judged(task, explain(method, task, person).answers[0], person, method.hull == "hard")
        judged(task, explain(Robust(rho=0.02), task, person).answers[0], person, hull=False, rho=0.02)


def scaled(exponents: tuple[int, ...], intercept: float) -> Any:
    """A model with given weights: of alternating sign, each a power of ten."""
    frame = table()
    model = LogisticRegression().fit(frame[NAMES], frame["label"])
    model.coef_ = np.array([[(-1.0) ** k * 10.0**e for k, e in enumerate(exponents)]])
    model.intercept_ = -model.coef_[0] @ frame[NAMES].quantile(intercept).to_numpy()[None].T
    return model


@settings(max_examples=25, deadline=None)
@given(
    st.tuples(*[st.integers(-9, 9)] * 4), st.floats(0.2, 0.8), st.sampled_from([1e-6, 1.0, 1e6]), st.integers(0, 299)
)
@example((-9, -9, -9, -9), 0.5, 1.0, 0)
@example((9, 9, 9, 9), 0.5, 1.0, 1)
@example((-9, 9, 0, 0), 0.5, 1.0, 2)
@example((0, 0, 0, 0), 0.25, 1e-6, 0)
def test_weights_of_any_size(exponents: tuple[int, ...], intercept: float, units: float, start: int) -> None:
    frame = table(units)
    model = scaled(exponents, intercept)
    model.coef_ = model.coef_ / units
    task = pose(frame, "label", model, desired="yes")
    refused = np.flatnonzero(task.classifier.predict(task.factuals) == "no")
    person = int(refused[start % len(refused)])
    judged(task, explain(CeOcl(distance="l1"), task, person).answers[0], person, hull=False)
