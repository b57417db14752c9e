"""Stored runs of a small table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd

from harness.core.explanation import Answer, Status
from harness.core.problem import Problem
from harness.evaluation import scoring
from harness.evaluation.checker import judge
from harness.evaluation.contest import metrics_of
from harness.store.rows import answer_row
from harness.store.run import StoredRun
from metrics import _example as loans

TIMING = {"seconds": 0.5, "fit_seconds": 0.1, "late": False}
PATHS = [
    "metrics.validity.validity",
    "metrics.proximity.categorical_proximity",
    "metrics.proximity.continuous_proximity",
    "metrics.sparsity.sparsity",
]
MACHINE = {"python": "3.11", "cpu": "a processor", "cores": 2, "threads": 1, "packages": {"numpy": "2", "torch": None}}
GRANTED, YOUNGER = loans.answers.to_dict("records")  # valid, three features kept; invalid, one kept
MEMBER = {**loans.factual.to_dict("records")[0], "member": "yes"}  # invalid, four of five features kept


def started(folder: Path, problem: Problem, factual: pd.DataFrame, answers: list[Any], **settings: Any) -> StoredRun:
    """A finished, judged and scored cell: one factual an answer, a row of ``factual`` each or all the same; None for
    none, or an answer as a method gives it. ``options`` are those of the method, ``paths`` the metrics."""
    scored = {"metrics": {"names": settings.pop("paths", PATHS)}}
    names = {"dataset": "loans", "model": "tree", "method": "ours"}
    names |= {key: settings.pop(key) for key in names if key in settings}
    cell = StoredRun(folder / "answers" / "-".join([*names.values(), settings.pop("fingerprint", "0")]))
    factuals = (factual if len(factual) > 1 else pd.concat([factual] * len(answers))).set_axis(range(len(answers)))
    targets = dict.fromkeys(factuals.index, problem.target)
    config = {"method": {"margin": 1e-6} | settings.pop("options", {}), "time_limit": 5, **settings}
    meta = {**names, "n_counterfactuals": 1, "seed": 0, "data_sha256": "abc", "environment": MACHINE, "config": config}
    cell.start({**meta, "scored": scored}, problem.space, problem.classifier, targets, None, factuals)
    for index, row in enumerate(answers):
        given = row if isinstance(row, Answer) else None
        answer = given or (Answer(Status.GAVE_UP) if row is None else Answer(Status.FOUND, row))
        cell.append([answer_row(index, 1, answer, **TIMING)])
    judge(cell)
    metrics = list(metrics_of(cell).values())
    scoring.score(cell, dict.fromkeys(factuals.index, problem), metrics).to_csv(cell.path / "scores.csv")
    cell.finish()
    return cell


def cells(text: str) -> list[list[str]]:
    """The rows of the table of a text in Markdown, its head first."""
    lines = [line.strip()[2:-2].split(" | ") for line in text.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line] for line in (lines[0], *lines[2:])]
