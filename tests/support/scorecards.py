"""Random scorecards, over five features and over many, and all counterfactuals of a factual by enumeration."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import combinations, product
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import expit

from harness.core.classifier import Classifier
from harness.core.explanation import Explanation
from harness.core.method import Deadline
from harness.core.problem import Problem
from harness.core.space import Feature, Space
from harness.core.target import Interval, Label, Probability, Target
from harness.models.card import Bin, Card, Variable
from harness.models.scorecard import ScorecardClassifier, ScorecardRegressor
from methods.scorecard import Scorecard

SPACE = Space(
    (
        Feature("age", "integer", scale=(0, 9), bounds=(0, 9), actionability="increase"),
        Feature("debt", "integer", scale=(0, 9), bounds=(0, 9), special=(-1,)),
        Feature("city", "categorical", ("a", "b", "c", "d")),
        Feature("grade", "ordinal", ("low", "middle", "high"), actionability="decrease"),
        Feature("sex", "binary", (0, 1), actionability="immutable"),
    )
)
VALUES: dict[str, tuple[Any, ...]] = {
    "age": tuple(range(10)), "debt": (-1, *range(10)), "city": ("a", "b", "c", "d"), "grade": ("low", "middle", "high"),
    "sex": (0, 1),
}  # fmt: skip
BINS = {
    "age": (Bin("interval", high=2.5), Bin("interval", 2.5, 5.0), Bin("interval", 5.0, 7.2), Bin("interval", 7.2),
            Bin("missing")),
    "debt": (Bin("interval", high=3.0), Bin("interval", 3.0, 6.5), Bin("interval", 6.5), Bin("special", members=(-1,)),
             Bin("missing")),
    "city": (Bin("categories", members=("a",)), Bin("categories", members=("b", "c")),
             Bin("categories", members=("d",)), Bin("missing"), Bin("unknown")),
    "grade": (Bin("categories", members=("low",)), Bin("categories", members=("middle",)),
              Bin("categories", members=("high",)), Bin("missing"), Bin("unknown")),
    "sex": (Bin("categories", members=(0,)), Bin("categories", members=(1,)), Bin("missing"), Bin("unknown")),
}  # fmt: skip


@cache
def toy(seed: int, target: Target) -> Problem:
    """A card of random weights over five features, and rows that it was not fitted to."""
    rng = np.random.default_rng(seed)
    variables = []
    for name, bins in BINS.items():
        values = rng.normal(size=len(bins)).round(2)
        points = rng.normal(size=len(bins))
        variables.append(Variable(name, bins, values, float(rng.normal()), points))
    binary = not isinstance(target, Interval)
    card = Card(tuple(variables), -0.3, binary)
    estimator: Any = ScorecardClassifier() if binary else ScorecardRegressor()
    estimator.card_, estimator.classes_ = card, np.array([0, 1])
    rows = SPACE.frame([{name: rng.choice(np.array(v, dtype=object)) for name, v in VALUES.items()} for _ in range(60)])
    classifier = Classifier(estimator, card.inputs(SPACE), ("no", "yes") if binary else ())
    return Problem(SPACE, classifier, rows, np.zeros(len(rows)), target)


@cache
def wide(size: int, wanted: str = "yes") -> Problem:
    """A card of so many correlated features of two or five bins; it accepts a fifth of the rows."""
    rng = np.random.default_rng(size)
    features, variables = [], []
    for k in range(size):
        codes = tuple(range(5 if k % 3 else 2))
        features.append(Feature(f"x{k}", "categorical" if k % 3 else "binary", codes))
        bins = (*(Bin("categories", members=(code,)) for code in codes), Bin("missing"), Bin("unknown"))
        values = np.append(np.sort(rng.normal(size=len(codes))), [0.0, 0.0])
        variables.append(Variable(f"x{k}", bins, values, abs(rng.normal()) / 2, values))
    space, signals = Space(tuple(features)), rng.normal(size=(300, 4)) @ rng.normal(size=(4, size)) / 2
    signals += rng.normal(size=(300, size))
    codes = [
        np.searchsorted(np.quantile(signals[:, k], np.linspace(0, 1, len(f.categories) + 1)[1:-1]), signals[:, k])
        for k, f in enumerate(features)
    ]
    rows = space.frame(pd.DataFrame(dict(zip(space.names, codes, strict=True))).to_dict("records"))
    card = Card(tuple(variables), 0.0, True)
    middle = float(np.quantile(card.score(card.bins(rows)), 0.8 if wanted == "yes" else 0.2))
    estimator: Any = ScorecardClassifier()
    estimator.card_, estimator.classes_ = Card(tuple(variables), -middle, True), np.array([0, 1])
    classifier = Classifier(estimator, estimator.card_.inputs(space), ("no", "yes"))
    return Problem(space, classifier, rows, np.zeros(len(rows)), Label(wanted))


def refused(problem: Problem, count: int) -> list[pd.DataFrame]:
    """Some of the rows that are not as wanted, from near to far."""
    rows = problem.train.loc[~problem.valid(problem.train)]
    order = np.argsort(np.abs(problem.classifier.raw(rows)))
    return [rows.iloc[[place]] for place in order[np.linspace(0, len(rows) - 1, count).astype(int)]]


def reachable(problem: Problem, factual: pd.DataFrame) -> pd.DataFrame:
    """All rows of the five features that a question about a factual permits."""
    rows = SPACE.frame(dict(zip(SPACE.names, values, strict=True)) for values in product(*VALUES.values()))
    return rows.loc[[not found for found in problem.space.violations(factual, rows)]]


class Enumeration:
    """All counterfactuals of a factual by going through the values of its features, with the parts of the objective."""

    def __init__(self, problem: Problem, factual: pd.DataFrame, weights: str = "range", target: float = 0.0) -> None:
        estimator: Any = problem.classifier.estimator
        card: Card = estimator.card_
        self.problem, train = problem, card.values(card.bins(problem.train))
        covariance, mean = np.cov(train.T), train.mean(axis=0)
        factor = np.linalg.cholesky(np.linalg.inv(covariance))
        unit = np.ptp(train, axis=0)
        if weights == "mad":
            unit = np.maximum(np.median(np.abs(train - np.median(train, axis=0)), axis=0), 0.01 * unit)
        if weights == "optbinning":
            listed = [[b.role != "unknown" for b in v.bins] for v in card.variables]
            unit = np.array([np.ptp(v.contributions[ok]) for v, ok in zip(card.variables, listed, strict=True)])
        origin = factual.iloc[0].to_dict()
        own = card.bins(factual)[0]
        choices: list[list[tuple[int, Any]]] = []
        for f, variable in enumerate(card.variables):
            found = {int(own[f]): origin[variable.name]}
            for value in VALUES[variable.name]:
                changed = SPACE.frame([origin | {variable.name: value}])
                place = variable.bin_of(value)
                if not problem.space.violations(factual, changed)[0] and variable.bins[place].ordinary:
                    found.setdefault(place, value)
            choices.append(list(found.items()))
        combos = list(product(*choices))
        rows = SPACE.frame([{n: value for n, (_, value) in zip(SPACE.names, c, strict=True)} for c in combos])
        bins = np.array([[place for place, _ in combo] for combo in combos])
        values, current = card.values(bins), card.values(own[None])[0]
        self.changed = bins != own
        score = card.score(bins)
        outcome = expit(score) if card.binary else score
        if isinstance(problem.target, Label | Probability):
            label = problem.target.value if isinstance(problem.target, Label) else problem.target.label
            outcome = outcome if label == "yes" else 1 - outcome
        self.parts = {
            "proximity": (np.abs(values - current) / unit).sum(axis=1),
            "closeness": np.abs((values - mean) @ factor).sum(axis=1),
            "outcome": np.abs(outcome - target),
            "changes": self.changed.sum(axis=1).astype(float),
        }
        self.bins, self.valid = bins, problem.valid(rows) & self.changed.any(axis=1)

    def differences(self, one: int, other: int) -> tuple[int, int]:
        """In how many features, and how many bins, two counterfactuals differ, as (10) has it."""
        both = self.changed[one] & self.changed[other]
        same = int((both & (self.bins[one] == self.bins[other])).sum())
        sizes = int(self.changed[one].sum() + self.changed[other].sum())
        return sizes - 2 * int(both.sum()), sizes - 2 * same

    def sets(self, n: int, most: int | None, diversity: Sequence[str]) -> Iterator[tuple[int, ...]]:
        """All sets of n that keep to K, and to (11) and (12)."""
        allowed = self.valid & (self.changed.sum(axis=1) <= (most or 99))
        for group in combinations(np.flatnonzero(allowed).tolist(), n):
            pairs = list(combinations(group, 2))
            if "features" in diversity and any(self.differences(*pair)[0] == 0 for pair in pairs):
                continue
            shared = [((self.bins[a] == self.bins[b]) & self.changed[a] & self.changed[b]).any() for a, b in pairs]
            if "values" in diversity and any(shared):
                continue
            yield group

    def value(self, group: Sequence[int], level: Mapping[str, float]) -> float:
        """What a set costs by one level of objectives."""
        total = sum(w * self.parts[name][list(group)].sum() for name, w in level.items() if name in self.parts)
        for pair in combinations(group, 2):
            features, values = self.differences(*pair)
            total -= level.get("diversity_features", 0.0) * features + level.get("diversity_values", 0.0) * values
        return float(total)

    def best(self, method: Scorecard, n: int) -> tuple[float, list[tuple[int, ...]]] | None:
        """The least cost by the last level, and all sets that have it; None where there is no set."""
        groups = list(self.sets(n, method.max_changes, method.diversity))
        for level in method.levels:
            if not groups:
                return None
            costs = np.array([self.value(group, level) for group in groups])
            least = costs.min()
            kept = costs <= least + method.degradation * abs(least) + 1e-9
            optimal = [g for g, c in zip(groups, costs, strict=True) if c <= least + 1e-9]
            groups = [g for g, ok in zip(groups, kept, strict=True) if ok]
        return float(least), optimal


def ask(method: Scorecard, problem: Problem, factual: pd.DataFrame, n: int = 1) -> Explanation:
    assert method.refuses(problem) is None
    return method.fit(problem).explain(factual, n, np.random.default_rng(0), Deadline.after(60))


def undesired(problem: Problem, count: int) -> Iterator[pd.DataFrame]:
    rows = problem.train.loc[~problem.valid(problem.train)]
    return (rows.iloc[[place]] for place in range(min(count, len(rows))))
