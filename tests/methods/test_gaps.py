"""A law of every method: a person with gaps is explained within the rules of gaps, or refused with what to set."""

from functools import cache

import numpy as np
import pandas as pd
import pytest
from hydra.utils import instantiate
from sklearn.ensemble import HistGradientBoostingClassifier
from support.complete import complete, settings

from harness.core.method import Deadline, refusal
from harness.core.problem import Problem
from harness.core.space import Feature, Kind, Space
from harness.core.target import Label
from harness.evaluation import checker
from harness.models.train import train


@cache
def problem() -> Problem:
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


@pytest.mark.parametrize("name", complete("method"))
def test_gaps_are_kept_to_or_refused(name: str) -> None:
    posed = problem()
    method = instantiate(settings("method", name))
    if why := refusal(method, posed):
        assert "features.income.missing to" in why or "has no weights" in why
        return
    explainer, claim = method.fit(posed), method.objective(posed)
    gaps = posed.train[["income", "debt"]].isna().any(axis=1)
    people = posed.train.loc[gaps & ~posed.valid(posed.train)]
    for index in people.index[:4]:
        factual = posed.train.loc[[index]]
        answer = explainer.explain(factual, 1, np.random.default_rng(0), Deadline.after(20)).answers[0]
        row = {"row": answer.row, "objective": answer.objective}
        verdict = checker.examine(row, factual, posed.space, posed.classifier, posed.target, claim)
        assert verdict["verdict"] == checker.ACCEPTED
