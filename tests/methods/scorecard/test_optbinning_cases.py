"""The cases of OptBinning's own tests and tutorials, by it and by ours: as good a value, or better, in less time."""

from __future__ import annotations

import time
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression

from harness.core.method import Deadline, Explainer
from harness.core.problem import Problem
from harness.core.target import Probability
from harness.data.sources import data_folder
from harness.library import pose
from methods.scorecard import Scorecard
from methods.scorecard.optbinning import OptBinningCounterfactual

BY_RANK = {"proximity": 2, "closeness": 1}
FEATURES, VALUES = ("features",), ("features", "values")
FILE = "age workclass fnlwgt education education-num marital-status occupation relationship race sex capital-gain"
FILE += " capital-loss hours-per-week native-country income"
USED = ["age", "workclass", "education", "marital-status", "occupation", "race", "sex", "hours-per-week"]


@cache
def breast_cancer() -> tuple[Problem, pd.DataFrame]:
    """All thirty features, as in the tests, and the first tumour, which is malignant."""
    data = load_breast_cancer(as_frame=True).frame
    return _posed(data, "target", LogisticRegression(), 0)


@cache
def adult(*fixed: str) -> tuple[Problem, pd.DataFrame]:
    """Eight features, as in the tutorial, and the person of the lowest probability."""
    path = data_folder() / "adult" / "adult.data"
    if not path.is_file():
        pytest.skip("adult.data is not in CE_HARNESS_DATA")
    data = pd.read_csv(path, header=None, names=FILE.split(), skipinitialspace=True)
    income = (data["income"] == ">50K").astype(int)
    return _posed(data[USED].assign(income=income), "income", LogisticRegression(class_weight="balanced"), None, fixed)


def _posed(
    frame: pd.DataFrame, target: str, model: Any, row: int | None, fixed: tuple[str, ...] = ()
) -> tuple[Problem, pd.DataFrame]:
    from optbinning import BinningProcess
    from optbinning import Scorecard as Card

    features = frame.drop(columns=target)
    card = Card(BinningProcess(list(features)), model).fit(features, frame[target])
    if row is None:
        row = int(np.argmin(card.predict_proba(features)[:, 1]))
    problem = pose(frame, target, card, desired=1, immutable=list(fixed)).problem(row)
    return problem, problem.space.frame(features.iloc[[row]].to_dict("records"))


def asked(explainer: Explainer, factual: pd.DataFrame, n: int) -> tuple[list[dict[str, Any]], float, float]:
    """Rows found, the sum of their objectives, and processor seconds."""
    began = time.process_time()
    answers = explainer.explain(factual, n, np.random.default_rng(0), Deadline.after(20)).answers
    seconds = time.process_time() - began
    found = [answer for answer in answers if answer.row is not None]
    return [answer.row for answer in found if answer.row], sum(a.objective or 0.0 for a in found), seconds


CASES: dict[str, tuple[Any, float, int, dict[str, Any]]] = {
    "three changes": (breast_cancer, 0, 1, {"max_changes": 3}),
    "three changes by rank": (breast_cancer, 0, 1, {"max_changes": 3, "priorities": BY_RANK}),
    "four changes": (breast_cancer, 0, 1, {"max_changes": 4}),
    "two at once by rank": (breast_cancer, 0, 2, {"max_changes": 4, "priorities": BY_RANK, "diversity": ()}),
    "at least 0.7 by rank": (breast_cancer, 0.7, 1, {"max_changes": 4, "priorities": BY_RANK}),
    "any changes": (breast_cancer, 0, 1, {"max_changes": None}),
    "any changes, two at once": (breast_cancer, 0, 2, {"max_changes": None, "diversity": FEATURES}),
    "no three": (breast_cancer, 0, 3, {"max_changes": 1, "diversity": FEATURES}),
    "Adult": (adult, 0, 1, {"max_changes": 3}),
    "Adult, some fixed": (lambda: adult("marital-status", "race", "sex"), 0, 1, {"max_changes": 4}),
    "Adult, weighed": (adult, 0, 1, {"max_changes": 4, "objectives": {"proximity": 0.1, "closeness": 0.9}}),
    "Adult by rank": (adult, 0, 1, {"max_changes": 4, "priorities": BY_RANK}),
    "Adult, closeness first": (
        adult, 0, 1, {"max_changes": 4, "priorities": {"proximity": 1, "closeness": 2}, "degradation": 0.001},
    ),
    "Adult, three at once": (adult, 0, 3, {"max_changes": 4, "diversity": FEATURES}),
    "Adult, three of other values": (adult, 0, 3, {"max_changes": 4, "diversity": VALUES}),
    "Adult, two of at least 0.7": (adult, 0.7, 2, {"max_changes": 4, "diversity": FEATURES}),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_no_case_of_its_own_is_better_or_sooner_by_optbinning(case: str) -> None:
    """Its values count where all of its rows are valid; both methods minimise the same, with its weights."""
    make, share, n, settings = CASES[case]
    problem, factual = make()
    if share:
        problem = replace(problem, target=Probability(1, share, 1.0))
    ours, value, seconds = asked(Scorecard(weights="optbinning", **settings).fit(problem), factual, n)
    theirs, other, longer = asked(OptBinningCounterfactual(**settings).fit(problem), factual, n)
    assert seconds <= longer
    assert len(ours) >= len(theirs)
    assert problem.valid(problem.space.frame(ours)).all()
    if len(theirs) == len(ours) and problem.valid(problem.space.frame(theirs)).all():
        assert value <= other + 1e-6


def test_sets_of_other_values_are_found_where_few_choices_are_apart() -> None:
    """Three at once, of any number of changes: none shares a new value with another, and the sum lies above its bound,
    and below that of the dearest."""
    problem, factual = breast_cancer()
    explainer = Scorecard(max_changes=None, diversity=VALUES).fit(problem)
    answers = explainer.explain(factual, 3, np.random.default_rng(0), Deadline.after(12)).answers
    rows = [answer.row or {} for answer in answers]
    assert problem.valid(problem.space.frame(rows)).all()
    own = factual.iloc[0]
    new = [{(name, value) for name, value in row.items() if value != own[name]} for row in rows]
    assert sum(map(len, new)) == len(set().union(*new))
    costs = [answer.objective for answer in answers]
    assert costs[0] == pytest.approx(asked(Scorecard(max_changes=None).fit(problem), factual, 1)[1])
    assert all(answer.bound <= answer.objective for answer in answers)
