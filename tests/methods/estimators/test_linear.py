"""Linear models of every kind are read, in whatever units, and their optima are those of a linear program."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import linprog
from sklearn.linear_model import BayesianRidge, ElasticNet, HuberRegressor, Lasso, LinearRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVR, LinearSVR

from harness.core.errors import UnsupportedError
from harness.core.explanation import Status
from harness.library import Task, explain, pose
from harness.solvers.program import Program
from methods.ce_ocl import CeOcl
from methods.estimators.linear import is_linear
from methods.milp.embed.registry import embed
from methods.robust import Robust

MODELS = (
    LinearRegression(), Ridge(), Lasso(), ElasticNet(), HuberRegressor(max_iter=1000), BayesianRidge(),
    LinearSVR(C=1e3, loss="squared_epsilon_insensitive", dual=False), SVR(kernel="linear"),
)  # fmt: skip
UNITS = np.array([1e-3, 1.0, 40.0])


def table() -> pd.DataFrame:
    """Three numbers of units of their own, and a number far from 0 that depends on all of them."""
    rng = np.random.default_rng(0)
    values = rng.normal(size=(120, 3))
    frame = pd.DataFrame(values * UNITS + [0.0, 5.0, 3000.0], columns=["ratio", "years", "income"])
    return frame.assign(limit=1000.0 + values @ [30.0, -20.0, 45.0] + rng.normal(size=120))


def posed(model: Any, scaled: bool) -> Task:
    frame = table()
    whole = make_pipeline(StandardScaler(), model) if scaled else model
    whole.fit(frame.drop(columns="limit"), frame["limit"])
    return pose(frame, "limit", whole, desired=f">= {np.quantile(whole.predict(frame.drop(columns='limit')), 0.9)}")


@pytest.mark.parametrize("scaled", [False, True], ids=["as they are", "scaled"])
@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_the_nearest_point_of_a_linear_model(model: Any, scaled: bool) -> None:
    """Weights for the independent program are differences of predictions, in ranges of the columns."""
    task = posed(model, scaled)
    assert task.classifier.opaque is None
    person = int(task.classifier.predict(task.factuals).argmin())
    origin = task.factuals.iloc[[person]]
    space = task.dataset.space
    ranges = np.array([feature.range for feature in space.features])
    moved = pd.concat([origin] * 3, ignore_index=True) + np.diag(ranges)
    start, end = float(task.classifier.predict(origin)[0]), task.targets[person].low
    weights = task.classifier.predict(moved) - start
    low, high = ((np.array([f.bounds[k] for f in space.features]) - origin.to_numpy()[0]) / ranges for k in (0, 1))
    found = linprog(
        np.ones(6), [[*-weights, *weights]], [start - end], bounds=[(0, u) for u in (*high.clip(0), *(-low).clip(0))]
    )
    (answer,) = explain(CeOcl(distance="l1", alpha=0.0), task, person).answers
    assert answer.status is Status.OPTIMAL
    assert answer.objective == pytest.approx(found.fun, rel=1e-6)
    (robust,) = explain(Robust(rho=0.01), task, person).answers
    assert robust.status is Status.OPTIMAL
    assert robust.objective > answer.objective


def test_an_svm_that_is_not_linear_is_refused_by_its_kernel() -> None:
    assert not is_linear(SVR())
    with pytest.raises(UnsupportedError, match="SVR with kernel 'rbf' is no linear model; set kernel='linear'"):
        embed(SVR(), Program(), [])
