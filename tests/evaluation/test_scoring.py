"""Scores of stored answers count what is missing, invalid or does not exist."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from harness.core.explanation import Answer, Reason, Status
from harness.core.problem import Problem
from harness.evaluation import checker, scoring
from harness.store.rows import answer_row
from harness.store.run import StoredRun
from methods.nearest import Nearest
from metrics.actionability import incoherent
from metrics.proximity import l0
from metrics.validity import validity

TIMING = {"seconds": 0.5, "fit_seconds": 0.1, "late": False}


@pytest.fixture
def cell(problem: Problem, tmp_path: Path) -> StoredRun:
    """One factual asked for four: a valid answer, an invalid one, one that does not exist, one missing."""
    undesired = problem.train.loc[~problem.valid(problem.train)]
    factual = undesired.iloc[[0]]
    row = Nearest().fit(problem).explain(factual, 1, None, None).answers[0].row  # type: ignore[arg-type]
    wrong = undesired.loc[problem.space.changed(factual, undesired).any(axis=1)].iloc[[0]].to_dict("records")[0]
    answers = [Answer(Status.FOUND, row), Answer(Status.FOUND, wrong), Answer(Status.FOUND, {**row, "visits": 0.5})]
    answers.append(Answer(Status.GAVE_UP, reason=Reason.TIME_LIMIT))
    made = StoredRun(tmp_path / "toy")
    meta = {"dataset": "toy", "model": "lr", "method": "nearest", "n_counterfactuals": 4}
    target = {factual.index[0]: problem.target}
    made.start(meta, problem.space, problem.classifier, target, None, factual)
    made.append(answer_row(int(factual.index[0]), k + 1, answer, **TIMING) for k, answer in enumerate(answers))
    checker.judge(made)
    return made


def scored(cell: StoredRun, problem: Problem, population: str) -> pd.Series:
    return scoring.score(cell, {cell.rows()[0]["factual"]: problem}, [validity, incoherent, l0], population).iloc[0]


def test_nothing_is_averaged_away(cell: StoredRun, problem: Problem) -> None:
    """One of four asked for is valid, one of three returned; the one that does not exist is counted as such."""
    scores = scored(cell, problem, "accepted")
    counts = ["requested", "returned", "valid", "accepted", "coverage", "filled"]
    assert scores[counts].tolist() == [4, 3, 1, 1, 1, 0.25]
    assert scores["mothilal/validity"] == pytest.approx(1 / 3)
    assert scores["actionability/incoherent"] == pytest.approx(1 / 3)


def test_the_population_says_which_answers_distances_see(cell: StoredRun, problem: Problem) -> None:
    """The valid ones, or all that were returned and exist."""
    factual, _ = cell.factuals()
    rows = problem.space.frame(row["row"] for row in cell.rows()[:2])
    changed = problem.space.changed(factual, rows).sum(axis=1)
    assert scored(cell, problem, "accepted")["distance/l0"] == changed[0]
    assert scored(cell, problem, "returned")["distance/l0"] == changed.mean()
