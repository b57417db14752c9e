"""A task of groups, and a pool that notes what it is asked."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression

from harness.core.explanation import Answer, GroupExplanation, Status
from harness.core.method import Method
from harness.core.problem import Problem
from harness.core.space import Feature, Space
from harness.data import Dataset
from harness.execution.messages import GroupReply
from harness.execution.pool import GroupOutcome, Limits
from harness.execution.task import Task, make_task
from harness.models.train import train
from harness.store.run import StoredRun

CONF = Path(__file__).parents[2] / "conf"
LIMITS = Limits(time=30.0, fit=60.0)
SPACE = Space(
    (
        Feature("sex", "binary", ("f", "m"), actionability="immutable"),
        Feature("job", "categorical", ("none", "part", "full")),
        Feature("town", "categorical", ("Bonn", "Köln", "Ulm", "Trier")),
        Feature("owner", "binary", ("no", "yes"), actionability="increase"),
        Feature("debt", "categorical", ("low", "middle", "high"), actionability="conditional", order=("high", "low")),
        Feature("member", "binary", (0, 1)),
    )
)
POINTS = SPACE.frame(
    dict(zip(SPACE.names, values, strict=True))
    for values in product(*(feature.categories for feature in SPACE.features))
)


@cache
def dataset() -> Dataset:
    """Every point of a small discrete space, once; a fifth of the labels is turned."""
    rng = np.random.default_rng(1)
    merit = (POINTS["job"] == "full") + 0.7 * (POINTS["owner"] == "yes") - 0.8 * (POINTS["debt"] == "high")
    merit = merit + 0.4 * (POINTS["town"] == "Ulm") + 0.3 * (POINTS["member"] == 1) + 0.3 * (POINTS["sex"] == "m")
    good = (merit > 0.9).to_numpy() ^ (rng.random(len(POINTS)) < 0.1)
    rows = np.arange(len(POINTS))
    labels = np.where(good, "good", "bad").astype(object)
    return Dataset("toy", SPACE, POINTS, labels, ("bad", "good"), "good", rows, rows, "0" * 64)


@cache
def question(n_factuals: int = 12) -> Task:
    data = dataset()
    classifier = train(LogisticRegression(), SPACE, data.frame, data.labels, data.classes)
    return make_task(data, classifier, n_factuals=n_factuals)


def problem() -> Problem:
    return next(iter(question().problems.values()))


def started(folder: Path, asked: Task, method: Method, /, **settings: Any) -> StoredRun:
    cell = StoredRun(folder / "cell")
    config = {"method": {"t_max": getattr(method, "t_max", 2)}, "group": True, "seed": 0, **settings}
    meta = {"dataset": "toy", "model": "lr", "method": "m", "n_counterfactuals": 1, "config": config}
    cell.start(meta, SPACE, asked.classifier, asked.targets, None, asked.factuals)
    return cell


class Recorder:
    """A pool that knows one point for everybody, and keeps what it was asked."""

    def __init__(self, found: Callable[[pd.DataFrame], GroupReply]) -> None:
        self.found, self.asked = found, []  # type: ignore[var-annotated]

    def explain_groups(self, method: Any, posed: Any, seed: Any, limits: Any, jobs: int) -> Iterator[GroupOutcome]:
        for name, (_, factuals) in posed.items():
            self.asked.append(name)
            yield GroupOutcome(name, self.found(factuals), seconds=0.5, fit_seconds=0.1)


def at_one(factuals: pd.DataFrame, **changes: Any) -> GroupReply:
    row = POINTS.loc[problem().valid(POINTS)].iloc[0].to_dict()
    point = Answer(Status.FOUND, row)
    found = GroupExplanation((point,), dict.fromkeys(factuals.index, 0), changed=(SPACE.names,), bound=1.0)
    return GroupReply(replace(found, **changes), 0.5)


def _merge(line: dict[str, Any], rows: list[dict[str, Any]]) -> None:
    """Everybody at the first point, whatever has to change."""
    for row in rows:
        row.update(row=line["points"][0], point=0, status="FOUND")
    line["changed"][0] = list(SPACE.names)


BREACHES: dict[str, tuple[str, Callable[[dict[str, Any], list[dict[str, Any]]], None]]] = {
    "too many features": ("beyond its limits", _merge),
    "silent change": ("worse than claimed", lambda line, rows: line["changed"].__setitem__(0, [])),
    "bound above": ("worse than claimed", lambda line, rows: line.update(bound=len(line["points"]) + 1)),
    "proof without bound": ("worse than claimed", lambda line, rows: line.update(status="OPTIMAL")),
    "proof with a gap": (
        "worse than claimed",
        lambda line, rows: line.update(status="OPTIMAL", bound=len(line["points"]) - 1),
    ),
    "more changes than told": ("worse than claimed", lambda line, rows: line.update(total_change=0)),
    "fewer changes than its bound": ("worse than claimed", lambda line, rows: line.update(total_change_bound=1e3)),
    "served, yet uncoverable": (
        "worse than claimed",
        lambda line, rows: line["uncoverable"].append(next(row["factual"] for row in rows if row["row"])),
    ),
}
