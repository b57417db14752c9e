"""Small studies, as sweeps store them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from harness.core.explanation import Answer, Status
from harness.core.method import Deadline
from harness.core.problem import Problem
from harness.evaluation import checker, scoring
from harness.store.rows import answer_row
from harness.store.run import StoredRun
from methods.nearest import Nearest
from metrics.proximity import l1


def stored_run(folder: Path, problem: Problem, model: str, method: str, people: int = 2, **config: Any) -> StoredRun:
    """A finished run in the folder of a study, judged and scored: a counterfactual of the first factual, and none of
    the others. ``config``: further settings."""
    run = StoredRun(folder / "answers" / f"toy-{model}-{method}-0123abcd")
    meta = {"dataset": "toy", "model": model, "method": method, "n_counterfactuals": 1, "seed": 0}
    settings = {"model": {"estimator": {"_target_": model}}, "dataset": {"name": "toy"}, "time_limit": 5, **config}
    factuals = problem.train.loc[~problem.valid(problem.train)].iloc[:people]
    targets = dict.fromkeys(factuals.index, problem.target)
    objective = Nearest().objective(problem)
    run.start({**meta, "config": settings}, problem.space, problem.classifier, targets, objective, factuals)
    deadline, rng = Deadline.after(9), np.random.default_rng(0)
    (near,) = Nearest().fit(problem).explain(factuals.iloc[[0]], 1, rng, deadline).answers
    for factual in factuals.index:
        answer = near if factual == factuals.index[0] else Answer(Status.GAVE_UP, detail="naïve; 0 < 1")
        extra = {"trace": [{"seconds": 0.1 + 0.2, "objective": None}], "conflict": []} if answer.row else {}
        run.append([answer_row(factual, 1, answer, seconds=0.1, fit_seconds=0, late=False, **extra)])
    checker.judge(run)
    scores = scoring.score(run, dict.fromkeys(factuals.index, problem), [l1])
    (run.path / "scores.csv").write_text(scores.to_csv())
    run.update(scored={"metrics": {"names": ["metrics.proximity.l1"]}, "population": "accepted"})
    run.finish()
    return run
