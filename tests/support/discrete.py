"""Small discrete problems whose every point can be tried, and what the explanation of a group promises."""

from __future__ import annotations

from functools import cache
from itertools import combinations, product
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

from harness.core.explanation import GroupExplanation
from harness.core.method import Deadline
from harness.core.problem import Problem
from harness.core.space import Feature, Space
from harness.core.target import Label
from harness.models.train import train
from methods.column_generation import ColumnGeneration

FREE = Space(
    (
        Feature("job", "categorical", ("none", "part", "full")),
        Feature("sex", "binary", ("f", "m")),
        Feature("grade", "ordinal", (1, 2, 3)),
        Feature("home", "categorical", ("rent", "own", "kin")),
        Feature("phone", "binary", (0, 1)),
    )
)
LIMITED = FREE.replace(
    {
        "sex": {"actionability": "immutable"},
        "grade": {"actionability": "increase"},
        "home": {"actionability": "conditional", "order": ("rent", "own")},
    }
)
MODELS: dict[str, Any] = {
    "linear": LogisticRegression(),
    "svm": LinearSVC(),
    "network": MLPClassifier((6, 4), max_iter=150, random_state=0),
    "tree": DecisionTreeClassifier(max_depth=4, random_state=0),
    "forest": RandomForestClassifier(5, max_depth=3, random_state=0),
    "boosting": GradientBoostingClassifier(n_estimators=6, max_depth=2, random_state=0),
}
EVERY = pytest.mark.parametrize("model", MODELS)


def grid(space: Space) -> pd.DataFrame:
    """Every point of a space."""
    rows = product(*(feature.categories for feature in space.features))
    return space.frame([dict(zip(space.names, row, strict=True)) for row in rows])


@cache
def posed(model: str, limited: bool = False, wanted: str = "good") -> Problem:
    """A model trained on noisy labels over the small space."""
    space = LIMITED if limited else FREE
    rng = np.random.default_rng(3)
    frame = grid(space).iloc[rng.integers(108, size=300)].reset_index(drop=True)
    merit = 1.2 * (frame["job"] == "full") + 0.6 * frame["grade"] + (frame["home"] == "own") + 0.5 * frame["phone"]
    merit += 0.4 * (frame["sex"] == "m") + rng.normal(0, 0.7, len(frame))
    labels = np.where(merit > np.quantile(merit, 0.6), "good", "bad").astype(object)
    classifier = train(MODELS[model], space, frame, labels, ("bad", "good"))
    return Problem(space, classifier, frame, labels, Label(wanted))


def negatives(problem: Problem, count: int, seed: int) -> pd.DataFrame:
    """Rows that the model does not classify as wanted, some of them equal; ids are letters."""
    points = grid(problem.space)
    rows = points.loc[~problem.valid(points)]
    chosen = rows.iloc[np.random.default_rng(seed).integers(len(rows), size=count)]
    return chosen.set_axis([f"id{place}" for place in range(count)])


def asked(method: ColumnGeneration, problem: Problem, factuals: pd.DataFrame) -> GroupExplanation:
    assert method.refuses(problem) is None
    return method.fit(problem).explain_group(factuals, np.random.default_rng(0), Deadline.after(600))  # type: ignore[attr-defined]


def keeps_its_promises(
    explanation: GroupExplanation, problem: Problem, factuals: pd.DataFrame, method: ColumnGeneration
) -> None:
    """Each factual is served or named, by valid permitted points, within T changes by group, over its union."""
    assert set(explanation.assignment) | set(explanation.uncoverable) == set(factuals.index)
    assert not set(explanation.assignment) & set(explanation.uncoverable)
    assert set(explanation.assignment.values()) == set(range(len(explanation.points)))
    for number, point in enumerate(explanation.points):
        assert point.row is not None
        frame = problem.space.frame([point.row])
        assert problem.valid(frame)[0]
        if method.threshold != 0.5:
            assert problem.classifier.probability(frame, problem.target.value)[0] >= method.threshold  # type: ignore[union-attr]
        union: set[str] = set()
        for member in explanation.members(number):
            factual = factuals.loc[[member]]
            assert problem.space.violations(factual, frame) == [[]]
            union |= {name for name in problem.space.names if factual[name].iloc[0] != point.row[name]}
        assert union == set(explanation.changed[number])
        assert len(union) <= method.t_max
    assert explanation.total_change == counted(explanation, factuals)


def counted(explanation: GroupExplanation, factuals: pd.DataFrame) -> int:
    """The features in which factuals and their points differ, over all that are assigned."""
    total = 0
    for factual, point in explanation.assignment.items():
        row = explanation.points[point].row
        assert row is not None
        total += sum(factuals.loc[factual, name] != value for name, value in row.items())
    return total


def weighed(space: Space, weights: list[float], intercept: float, factuals: list[dict[str, Any]]) -> Any:
    """A linear model with these weights of the columns, and factuals a, b, ..."""
    frame = grid(space)
    labels = np.where(np.arange(len(frame)) % 2, "good", "bad").astype(object)
    classifier = train(LogisticRegression(), space, frame, labels, ("bad", "good"))
    classifier.estimator.coef_[:], classifier.estimator.intercept_[:] = weights, intercept
    rows = space.frame(factuals).set_axis(list("ab")[: len(factuals)])
    return Problem(space, classifier, frame, labels, Label("good")), rows


def served(problem: Problem, factuals: pd.DataFrame, t_max: int, tau: float) -> set[frozenset[int]]:
    """Every set of factuals that some wanted point may serve, by trying all points and all sets of features."""
    points = grid(problem.space)
    points = points.loc[problem.valid(points)]
    if tau != 0.5:
        target = problem.target
        assert isinstance(target, Label)
        points = points.loc[problem.classifier.probability(points, target.value) >= tau]
    found = set()
    features = problem.space.features
    for point in points.to_dict("records"):
        moves = []
        for row in factuals.to_dict("records"):
            differs = frozenset(f.name for f in features if row[f.name] != point[f.name])
            allowed = all(point[f.name] in f.reachable(row[f.name]) for f in features)
            moves.append(differs if allowed else None)
        for changed in combinations(problem.space.names, min(t_max, len(features))):
            found.add(frozenset(i for i, move in enumerate(moves) if move is not None and move <= set(changed)))
    return found


def fewest(sets: set[frozenset[int]], size: int) -> tuple[int, set[int]]:
    """The least number of sets that cover all that can be covered, and what cannot."""
    left = set(range(size)) - set().union(*sets)
    rest = frozenset(range(size)) - left
    largest = [a for a in sets if not any(a < b for b in sets)]
    for count in range(size + 1):
        if any(frozenset().union(*chosen) == rest for chosen in combinations(largest, count)):
            return count, left
    raise AssertionError
