"""CE-OCL on published datasets: no answer is invalid, or outside a hull that it was to keep to."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pandas as pd
import pytest
from support.applicants import MODELS
from support.engines import engines, question_of

from harness.core import hull
from harness.core.explanation import Answer
from harness.core.method import Deadline
from harness.core.problem import Problem
from harness.core.space import Kind
from harness.core.target import Label
from harness.evaluation.checker import permitted
from methods.ce_ocl import CeOcl


def verdict(problem: Problem, factual: pd.DataFrame, answer: Answer) -> str:
    """The answer's status; ``invalid`` for a row that the estimator itself or a feature's actionability refuses."""
    if answer.row is None:
        return answer.status.value
    frame = problem.space.frame([answer.row])
    kept = all(permitted(f, factual[f.name].iloc[0], answer.row[f.name]) for f in problem.space.features)
    return answer.status.value if kept and problem.valid(frame).all() else "invalid"


DATASETS = ("compas", "adult", "german_credit", "heloc", "give_me_some_credit")


@pytest.mark.slow
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("name", DATASETS)
def test_no_answer_on_real_data_is_invalid(name: str, model: str) -> None:
    """Every returned row of 30 factuals is predicted as desired and keeps to what may change."""
    question = question_of(name, model)
    (problem,) = question.problems.values()
    for method in (*engines(CeOcl("l1", 1e4), problem), *engines(CeOcl("l1"), problem)):
        explainer = method.fit(problem)
        verdicts: Counter[str] = Counter()
        for index in question.factuals.index:
            factual = question.factuals.loc[[index]]
            explanation = explainer.explain(factual, 2, np.random.default_rng(0), Deadline.after(5))
            verdicts.update(verdict(problem, factual, answer) for answer in explanation.answers)
        assert not verdicts["invalid"], verdicts
        assert verdicts["OPTIMAL"] + verdicts["FOUND"], verdicts


def inside(problem: Problem, points: np.ndarray, row: dict[str, Any]) -> bool:
    """Whether a row is within 1e-6 of a hull, scaled: that of the points of its own categories, a part of it."""
    x = problem.space.encode(problem.space.frame([row]))[0]
    kinds = zip(problem.space.features, problem.space.slices, strict=True)
    whole = [np.arange(x.size)[c] for f, c in kinds if f.kind in {Kind.CATEGORICAL, Kind.BINARY}]
    at = np.concatenate([np.zeros(0, dtype=int), *whole])
    own = points[(points[:, at] == x[at]).all(axis=1)]
    return len(own) > 0 and hull.distance(own, x, 1) <= 1e-6


@pytest.mark.slow
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("name", DATASETS)
def test_no_answer_on_real_data_is_outside_the_hull(name: str, model: str) -> None:
    """Every returned row of 10 factuals is also a convex combination of training rows labelled as desired."""
    question = question_of(name, model, count=10)
    (problem,) = question.problems.values()
    assert isinstance(problem.target, Label)
    labelled = problem.reference[np.asarray(problem.reference_labels) == problem.target.value]
    points = np.unique(problem.space.encode(labelled), axis=0)
    explainer = CeOcl("l1", hull="hard").fit(problem)
    verdicts: Counter[str] = Counter()
    for index in question.factuals.index:
        factual = question.factuals.loc[[index]]
        (answer,) = explainer.explain(factual, 1, np.random.default_rng(0), Deadline.after(10)).answers
        found = verdict(problem, factual, answer)
        verdicts[found if answer.row is None or inside(problem, points, answer.row) else "outside"] += 1
    assert not verdicts["invalid"] + verdicts["outside"], verdicts
