"""Intervals of mean ranks: which questions are drawn together, and which apart."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from harness.core.tolerances import VALUE_TIE
from harness.evaluation import statistics
from harness.evaluation.contest import Contest, Criterion, rank_estimates, standing

CRITERION = Criterion("proximity", "gower", "lower")
VALUES = pd.DataFrame({"a": [1.0, 2, 3, 4, 5, 6, 7, 8], "b": [2.0, 1, 4, 3, 6, 7, 8, 9]})  # a is nearer in 6 of 8


def estimates(**tasks: pd.DataFrame) -> dict[str, statistics.Estimate]:
    """Of tasks whose data set is the first letter of their name."""
    methods = list(dict.fromkeys(name for values in tasks.values() for name in values))
    found = [Contest(task, CRITERION, values, values.notna()) for task, values in tasks.items()]
    entries = [
        SimpleNamespace(
            task=task, dataset=task[0], method=method, refusal=None, coverage=SimpleNamespace(value=1.0), table=values
        )
        for task, values in tasks.items()
        for method in values
    ]
    study: Any = SimpleNamespace(
        entries=entries,
        methods=methods,
        tasks=list(tasks),
        asked=list(tasks),
        of_task=lambda task: [entry for entry in entries if entry.task == task],
    )
    return rank_estimates(study, standing(study, CRITERION, found), found)


def test_of_one_task_it_is_the_interval_of_a_mean() -> None:
    found = estimates(x=VALUES)
    for method, ranks in {"a": [0.0, 1, 0, 1, 0, 0, 0, 0], "b": [1.0, 0, 1, 0, 1, 1, 1, 1]}.items():
        assert found[method] == statistics.mean(np.array(ranks))
    assert found["a"].value == 0.25


def test_a_question_of_two_models_is_drawn_once_for_both() -> None:
    """Two models that say the same of the same people tell no more than one."""
    assert estimates(x1=VALUES, x2=VALUES) == estimates(x=VALUES)


def test_people_of_other_data_sets_are_drawn_apart() -> None:
    """The spread of a mean of two falls by the root of 2, and is that of draws which know nothing of each other."""
    one, two = estimates(x=VALUES)["a"], estimates(x=VALUES, y=VALUES)["a"]
    assert two.n == 16
    assert two.value == one.value
    ranks = np.array([0.0, 1, 0, 1, 0, 0, 0, 0])
    rng = np.random.default_rng(5)
    means = [np.mean([rng.choice(ranks, 8).mean(), rng.choice(ranks, 8).mean()]) for _ in range(4000)]
    assert (two.low, two.high) == pytest.approx(tuple(np.quantile(means, [0.025, 0.975])), abs=0.0626)  # a question
    assert two.high - two.low < one.high - one.low - VALUE_TIE


def test_who_refuses_a_data_set_is_ranked_by_the_others() -> None:
    found = estimates(x=VALUES.assign(c=math.nan), y=VALUES)
    assert found["c"] == statistics.Estimate(1.0, 1.0, 1.0, 8)


def test_one_question_has_no_spread() -> None:
    found = estimates(x=VALUES.iloc[:1], y=VALUES)["a"]
    assert (math.isnan(found.low), math.isnan(found.high), found.n) == (True, True, 9)


def test_models_of_a_data_set_are_averaged() -> None:
    """The second swaps the two methods: a rank there is 1 less that of the first, and their mean a half, always."""
    swapped = VALUES.rename(columns={"a": "b", "b": "a"})[["a", "b"]]
    assert estimates(x1=VALUES, x2=swapped)["a"] == statistics.Estimate(0.5, 0.5, 0.5, 8)


def test_data_sets_are_averaged() -> None:
    """Nearer for all people of two data sets, farther for all of the third: a third, whoever is drawn."""
    nearer, farther = VALUES.assign(b=10.0), VALUES.assign(b=-1.0)
    found = estimates(x=nearer, y=nearer, z=farther)["a"]
    assert (found.value, found.low, found.high) == pytest.approx((1 / 3, 1 / 3, 1 / 3))
    assert found.n == 24


def test_a_mean_is_of_the_people_whom_a_model_was_asked_about() -> None:
    """Of eight people each model has four, and all are farther: a rank of 1, whoever is drawn."""
    farther = VALUES.assign(b=10.0)
    found = estimates(x1=farther.iloc[:4], x2=farther.iloc[4:])["b"]
    assert found == statistics.Estimate(1.0, 1.0, 1.0, 8)
