"""A small space whose points can all be listed, and what is best among them: the oracle of CE-OCL's constraints.

Numbers are whole, so that a list of points is the whole space. One feature more, ``rate``, is continuous and follows
from the others by a structural equation: it is computed, not listed. Distances from hulls are those of
``harness.core.hull``, which shares no code with the methods.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone, is_regressor
from sklearn.ensemble import GradientBoostingClassifier, GradientBoostingRegressor, RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from harness.core import hull
from harness.core.classifier import Classifier
from harness.core.clusters import clustered
from harness.core.equation import follow
from harness.core.explanation import Answer, Explanation, Status
from harness.core.inputs import space_inputs
from harness.core.method import Deadline
from harness.core.problem import Problem
from harness.core.space import Feature, Kind, Space
from harness.core.target import Classes, Interval, Label, Target
from harness.evaluation.checker import permitted
from harness.models.equations import equations
from methods.ce_ocl import CeOcl
from methods.estimators.raw_target import raw_interval

WITHIN = 1e-6  # what an answer may lie outside a hull, and an objective off the optimum
CLEAR = 2e-6  # a score this near to its threshold says nothing of a program with a margin

MODELS: dict[str, Any] = {
    "lr": LogisticRegression(),
    "cart": DecisionTreeClassifier(max_depth=4, random_state=0),
    "rf": RandomForestClassifier(6, max_depth=3, random_state=0),
    "gbm": GradientBoostingClassifier(n_estimators=6, max_depth=2, random_state=0),
    "mlp": MLPClassifier((6,), max_iter=300, learning_rate_init=0.02, random_state=0),
    "linear": LinearRegression(),
    "cart_regressor": DecisionTreeRegressor(max_depth=4, random_state=0),
    "gbm_regressor": GradientBoostingRegressor(n_estimators=6, max_depth=2, random_state=0),
    "mlp_regressor": MLPRegressor(hidden_layer_sizes=(6,), max_iter=300, learning_rate_init=0.02, random_state=0),
}
FREE = Space(
    (
        Feature("age", "integer", scale=(0, 6), bounds=(0, 6)),
        Feature("debt", "integer", scale=(0, 5), bounds=(0, 5)),
        Feature("member", "binary", (False, True)),
        Feature("grade", "ordinal", ("low", "mid", "high")),
        Feature("region", "categorical", ("n", "s", "w")),
    )
)
KEPT: dict[str, dict[str, dict[str, Any]]] = {
    "free": {},
    "immutable": {"member": {"actionability": "immutable"}, "age": {"actionability": "immutable"}},
    "increase": {"age": {"actionability": "increase", "bounds": (0, 5)}, "grade": {"actionability": "increase"}},
    "decrease": {"debt": {"actionability": "decrease"}, "grade": {"actionability": "decrease"}},
    "conditional": {
        "region": {"actionability": "conditional", "order": ("w", "n", "s")},
        "grade": {"actionability": "conditional", "order": ("low", "high")},
    },
    "coded": {
        "debt": {"bounds": (1, 4), "special": (-2, 9)},
        "region": {"actionability": "conditional", "order": ("s", "w")},
    },
}
VALUES = {
    "age": range(7),
    "debt": range(-2, 10),
    "member": (False, True),
    "grade": ("low", "mid", "high"),
    "region": ("n", "s", "w"),
}
# Relations in words, and in Python, of a row and the factual that keeps them by itself.
RELATED: dict[str, tuple[tuple[str, ...], Callable[[dict[str, Any], dict[str, Any]], bool]]] = {
    "linear": (("age >= debt + 1",), lambda x, _: x["age"] >= x["debt"] + 1),
    "fraction": (("0.7 * age + 0.45 * debt <= 3.1",), lambda x, _: 0.7 * x["age"] + 0.45 * x["debt"] <= 3.1 + 1e-9),
    "implication": (
        ("if grade >= mid and debt > 1 then age >= 3 and region in [n, w]",),
        lambda x, _: not (x["grade"] != "low" and x["debt"] > 1) or (x["age"] >= 3 and x["region"] != "s"),
    ),
    "unequal": (("if region == s then age != 4",), lambda x, _: not (x["region"] == "s" and x["age"] == 4)),
    "cardinality": (
        ("at most 1 of [age, debt, region] change",),
        lambda x, o: sum(x[name] != o[name] for name in ("age", "debt", "region")) <= 1,
    ),
    "linked": (
        ("if grade increases then age increases", "if debt changes then region stays"),
        lambda x, o: (
            not (LEVELS.index(x["grade"]) > LEVELS.index(o["grade"]) and x["age"] <= o["age"])
            and not (x["debt"] != o["debt"] and x["region"] != o["region"])
        ),
    ),
    "forced": (
        ("if member changes then debt changes",),
        lambda x, o: x["member"] == o["member"] or x["debt"] != o["debt"],
    ),
}
LEVELS = ("low", "mid", "high")
PRICED: dict[str, dict[str, dict[str, Any]]] = {
    "sides": {
        "age": {"weight": 0.7, "weight_up": 2.5},
        "debt": {"weight_up": 3, "weight_down": 0.25},
        "member": {"weight_down": 4},
        "grade": {"weight_up": 0.3, "weight_down": 1.9},
    },
    "pairs": {
        "region": {"weight": 0.8, "costs": {"n": {"s": 0.1, "w": 2.5}, "s": {"w": 0.4}, "w": {"n": 3}}},
        "member": {"costs": {False: {True: 0.35}}},
        "debt": {"weight_down": 1.3},
    },
    "shares": {
        "age": {"shares": ((0, 0.05), (1, 0.3), (2, 0.35), (4, 0.4), (5, 0.9), (6, 0.95)), "weight_up": 2},
        "debt": {"shares": ((0, 0.0), (5, 1.0)), "weight": 0.3},
        "grade": {"shares": ((0, 0.2), (1, 0.25), (2, 0.8))},
    },
    "flat": {
        "age": {"shares": ((2, 0.0), (3, 0.6), (5, 1.0))},
        "debt": {"shares": ((0, 0.1), (1, 0.15), (2, 0.5), (3, 0.5), (4, 0.95)), "weight_down": 3},
        "grade": {"shares": ((0, 0.4), (1, 0.4), (2, 0.45))},
    },
    "weights": {"age": {"weight": 3}, "debt": {"weight": 0.4}, "grade": {"weight": 1.7}, "region": {"weight": 0.3}},
}
RATE = Feature("rate", "continuous", scale=(-1.0, 4.0), bounds=(-4.0, 8.0))
LEARNT: dict[str, dict[str, Any]] = {
    "formula": {"formula": "0.37 * age - 0.61 * (region == 's') + 0.2"},
    "tree": {"parents": ["age", "region"], "learn": DecisionTreeRegressor(max_depth=3, random_state=0)},
    "network": {
        "parents": ["age", "region"],
        "learn": MLPRegressor(hidden_layer_sizes=(5,), max_iter=400, learning_rate_init=0.03, random_state=0),
    },
}


def merit(frame: pd.DataFrame) -> np.ndarray:
    """What the models learn: neither linear nor monotone, and no feature idle."""
    grade = frame["grade"].map({"low": 0, "mid": 1, "high": 1.5}).to_numpy(float)
    age, debt = frame["age"].to_numpy(float), frame["debt"].to_numpy(float)
    member, region = frame["member"].to_numpy(bool), frame["region"].to_numpy()
    rate = frame["rate"].to_numpy(float) if "rate" in frame else 0.0
    part = np.sin(age) + age / 4 + grade * (1 + member) - debt / 2 + 0.8 * (region == "s") - 0.5 * (debt < 0)
    return part + rate / 2


@cache
def points() -> pd.DataFrame:
    """Every point of the space, those with a ``debt`` outside its bounds included."""
    return FREE.frame(dict(zip(VALUES, row, strict=True)) for row in itertools.product(*VALUES.values()))


@cache
def rows(causal: bool, count: int = 150) -> pd.DataFrame:
    """Training rows; ``rate`` follows age and region but for some noise."""
    frame = points().sample(count, random_state=0).reset_index(drop=True)
    if causal:
        noise = np.random.default_rng(2).normal(0, 0.3, count)
        frame = frame.assign(rate=0.4 * frame["age"] - 0.7 * (frame["region"] == "s") + noise)
    return frame


@cache
def fitted(model: str, causal: bool = False, classes: tuple[str, ...] = ("no", "yes")) -> Classifier:
    """A model of the rows."""
    frame, estimator = rows(causal), clone(MODELS[model])
    space = Space((*FREE.features, RATE)) if causal else FREE
    noise = np.random.default_rng(1).normal(0, 0.3, len(frame))
    labels = merit(frame) + noise
    if is_regressor(estimator):
        return Classifier(estimator.fit(space.encode(frame), labels), space_inputs(space))
    cuts = 0.55 if len(classes) == 2 else np.arange(1, len(classes)) / len(classes)
    estimator.fit(space.encode(frame), np.digitize(labels, np.atleast_1d(np.quantile(labels, cuts)), right=True))
    return Classifier(estimator, space_inputs(space), classes)


@cache
def learnt(equation: str) -> tuple[Any, ...]:
    return equations(Space((*FREE.features, RATE)), rows(True), {"rate": LEARNT[equation]})


def problem_of(
    model: str,
    kept: str = "free",
    target: Target | None = None,
    equation: str | None = None,
    span: int = 40,
    related: Sequence[str] = (),
    priced: str | None = None,
    classes: tuple[str, ...] = ("no", "yes"),
) -> Problem:
    """A question of the small space; hulls are those of ``span`` rows, some of them wanted."""
    causal = equation is not None
    classifier, train = fitted(model, causal, classes), rows(causal)
    space = Space((*FREE.features, RATE)) if causal else FREE
    high = Interval(low=1.2) if not classifier.classes else Label("yes")
    target = target or high
    # Labels of their own, not those of the model: some rows of the hull are not valid, some valid rows are not in it.
    truth = merit(train) + np.random.default_rng(5).normal(0, 0.8, len(train))
    cuts = [0.6] if len(classes) == 2 else np.quantile(truth, np.arange(1, len(classes)) / len(classes))
    labels = truth if not classifier.classes else np.array(classes, dtype=object)[np.digitize(truth, cuts, right=True)]
    made = learnt(equation) if equation is not None else ()
    plain = Problem(space, classifier, train, labels, target, train.iloc[:span], labels[:span], equations=made)
    constraints = tuple(text for name in related for text in RELATED[name][0])
    space = space.replace(KEPT[kept]).replace({} if priced is None else PRICED[priced])
    return replace(plain, space=replace(space, constraints=constraints))


def factuals(problem: Problem, count: int, seed: int = 0) -> list[pd.DataFrame]:
    """Points that the model puts elsewhere, the last of them with a debt out of its bounds."""
    listed = rows(True, 150) if problem.equations else points()
    candidates = listed[~problem.valid(listed)].sample(frac=1, random_state=seed)
    for relation in problem.space.relations:
        kept = [not relation.broken_by(candidates.iloc[[place]]) for place in range(len(candidates))]
        candidates = candidates[kept]
    special = ~candidates["debt"].between(0, 5)
    order = [*np.flatnonzero(~special)[: count - 1], *np.flatnonzero(special)[:1]]
    return [candidates.iloc[[place]] for place in order]


def listing(problem: Problem, factual: pd.DataFrame) -> pd.DataFrame:
    """Every point that may be answered as far as equations say; ``rate`` follows where there is one."""
    if not problem.equations:
        return points()
    frame = follow(problem.equations, factual, points().assign(rate=float(factual["rate"].iloc[0])))
    near = abs(frame["rate"] - factual["rate"].iloc[0]) <= 1e-9
    return frame.assign(rate=frame["rate"].where(~near, factual["rate"].iloc[0]))


def support(method: CeOcl, problem: Problem) -> np.ndarray:
    """The reference rows of the wanted class in scaled columns."""
    labels, target = np.asarray(problem.reference_labels), problem.target
    if isinstance(target, Interval):
        wanted = (labels >= target.low) & (labels <= target.high)
    elif isinstance(target, Classes):
        wanted = np.isin(labels.astype(str), target.values)
    else:
        wanted = labels == (target.value if isinstance(target, Label) else target.label)
    if method.hull_points != "labelled":
        predicted = problem.valid(problem.reference)
        wanted = predicted if method.hull_points == "predicted" else wanted & predicted
    return np.unique(problem.space.encode(problem.reference[wanted]), axis=0)


def hulls(method: CeOcl, problem: Problem) -> list[np.ndarray]:
    """The points of each hull: all, or those of each cluster."""
    every = support(method, problem)
    of = clustered(every, method.clusters)
    return [every[of == label] for label in np.unique(of)]


_known: dict[tuple[Any, ...], float] = {}


def outside(parts: Sequence[np.ndarray], x: np.ndarray, norm: float) -> float:
    """Distance of a point from the nearest of the hulls, each asked once."""
    found = []
    for part in parts:
        key = (part.tobytes(), x.tobytes(), norm)
        if key not in _known:
            _known[key] = hull.distance(part, x, norm)
        found.append(_known[key])
    return min(found, default=np.inf)


def apart(space: Space, frame: pd.DataFrame, row: Mapping[str, Any], separation: float) -> np.ndarray:
    """Which rows differ from ``row`` in a category, or by ``separation`` in a number."""
    result = np.zeros(len(frame), dtype=bool)
    for feature in space.features:
        if feature.numeric:
            result |= abs(frame[feature.name] - row[feature.name]).to_numpy() / feature.range >= separation - 1e-9
        else:
            result |= (frame[feature.name] != row[feature.name]).to_numpy()
    return result


def untaken(space: Space, factual: pd.DataFrame, frame: pd.DataFrame, row: Mapping[str, Any]) -> np.ndarray:
    """Which rows make none of ``row``'s changes again: a category entered, a number moved to the same side."""
    result = np.ones(len(frame), dtype=bool)
    for feature in space.features:
        old, new = factual[feature.name].iloc[0], row[feature.name]
        if new != old:
            values = frame[feature.name]
            again = np.sign(values - old) == np.sign(new - old) if feature.numeric else values == new
            result &= ~again.to_numpy(bool)
    return result


def reachable(space: Space, factual: pd.DataFrame, frame: pd.DataFrame) -> np.ndarray:
    """Which rows each feature may move to by itself."""
    keep = np.ones(len(frame), dtype=bool)
    for feature in space.features:
        old = factual[feature.name].iloc[0]
        known = {new: permitted(feature, old, new) for new in set(frame[feature.name])}
        keep &= frame[feature.name].map(known).to_numpy(bool)
    return keep


def allowed(
    method: CeOcl, problem: Problem, factual: pd.DataFrame, frame: pd.DataFrame, earlier: Sequence[dict[str, Any]] = ()
) -> np.ndarray:
    """Which points may be answered, hulls aside. A score within its margin counts as no answer."""
    space, judge = problem.space, problem.classifier
    keep = problem.valid(frame)
    raw = judge.raw(frame)
    if raw.ndim > 1:  # the greatest output decides, the first of equal ones
        wanted = np.isin(judge.classes, problem.target.values if isinstance(problem.target, Classes) else ["yes"])
        keep &= averaging(judge) | (abs(raw[:, wanted].max(axis=1) - raw[:, ~wanted].max(axis=1)) >= CLEAR)
    elif not averaging(judge):
        ends = raw_interval(problem)
        keep &= np.minimum(abs(raw - ends.low), abs(raw - ends.high)) >= CLEAR
    keep &= reachable(space, factual, frame)
    changes = np.zeros(len(frame))
    for feature in space.features:
        old = factual[feature.name].iloc[0]
        double = method.count == "columns" and feature.kind is Kind.CATEGORICAL
        changes += (1 + double) * (frame[feature.name] != old).to_numpy()
    if method.max_changes is not None:
        keep &= changes <= method.max_changes
    origin = factual.iloc[0].to_dict()
    for texts, rule in RELATED.values():
        if set(texts) <= set(space.constraints):
            assert not any(relation.broken_by(factual) for relation in space.relations), "asks of others"
            keep &= [rule(row, origin) for row in frame.to_dict("records")]
    for row in earlier:
        if method.diversity == "features":
            keep &= untaken(space, factual, frame, row)
        else:
            keep &= apart(space, frame, row, method.separation)
    return keep & (changes > 0)


def averaging(judge: Classifier) -> bool:
    """Whether the model averages leaf values, whose ties are exact."""
    return hasattr(judge.estimator, "apply") and not hasattr(judge.estimator, "staged_predict")


def costs(method: CeOcl, problem: Problem, factual: pd.DataFrame, frame: pd.DataFrame) -> np.ndarray:
    """Distance and changes of each point, hulls aside."""
    claim = method.objective(problem)
    return replace(claim, terms=tuple(t for t in claim.terms if t.name != "slack")).evaluate(
        problem.space, factual, frame
    )


def optimum(
    method: CeOcl,
    problem: Problem,
    factual: pd.DataFrame,
    earlier: Sequence[dict[str, Any]] = (),
    parts: Sequence[np.ndarray] | None = None,
) -> float:
    """The least objective over all points of the space that may be answered; infinite where there is none.

    The hulls are ``parts`` where given, else those of the method. Of several enlargements the first with a point.
    """
    frame = listing(problem, factual)
    frame = frame[allowed(method, problem, factual, frame, earlier)]
    values = costs(method, problem, factual, frame)
    if method.hull == "none":
        return float(values.min(initial=np.inf))
    parts = hulls(method, problem) if parts is None else parts
    encoded = problem.space.encode(frame)
    order = np.argsort(values, kind="stable")
    if method.hull != "penalised":
        for most in method.epsilons:
            norm = 2 if most == 0 else float(method.hull_norm)  # a distance of 0 is one in every norm
            for place in order:
                if outside(parts, encoded[place], norm) <= most + 2e-7:
                    return float(values[place])
        if method.hull == "hard":
            return np.inf
    best = np.inf
    for place in order:
        if values[place] >= best:
            break
        best = min(best, values[place] + method.penalty * outside(parts, encoded[place], 1))
    entry = 0.0
    if method.hull == "fallback":
        (term,) = (t for t in method.objective(problem).terms if t.name == "slack")
        entry = method.penalty * term.params["entry"]
    return best + entry


def ask(method: CeOcl, problem: Problem, factual: pd.DataFrame, n: int = 1, seconds: float = 60.0) -> Explanation:
    """What the method answers."""
    assert method.refuses(problem) is None
    return method.fit(problem).explain(factual, n, np.random.default_rng(0), Deadline.after(seconds))


def assert_holds(
    method: CeOcl,
    problem: Problem,
    factual: pd.DataFrame,
    answer: Answer,
    parts: Sequence[np.ndarray] | None = None,
) -> None:
    """A point keeps every constraint by itself, and its objective is the one that the method published."""
    assert answer.row is not None
    space, frame = problem.space, problem.space.frame([answer.row])
    assert problem.valid(frame).all()
    for feature in space.features:
        assert permitted(feature, factual[feature.name].iloc[0], answer.row[feature.name]), feature.name
    changes = space.changed(factual, frame)[0] @ method.weights(problem)
    assert 0 < changes <= (method.max_changes or np.inf)
    if method.hull == "hard":
        parts = hulls(method, problem) if parts is None else parts
        assert outside(parts, space.encode(frame)[0], float(method.hull_norm)) <= max(method.epsilons) + WITHIN
    if method.causality:
        for equation in problem.equations:
            assert abs(equation.residual(space, factual, frame)[0]) <= WITHIN
    claim = method.objective(problem)
    assert claim.exceeded(space, factual, frame) == [[]]
    assert answer.objective is not None
    claimed = claim.evaluate(space, factual, frame)[0]
    assert abs(answer.objective - claimed) <= WITHIN * max(1.0, abs(claimed)), "the claim"
    if answer.bound is not None:
        assert answer.bound <= answer.objective + 1e-9 * max(1.0, abs(answer.objective))


def assert_optimal(
    method: CeOcl, problem: Problem, factual: pd.DataFrame, n: int = 1, found: Explanation | None = None
) -> list[Answer]:
    """Every answer is the best apart from those before it, or a proof that there is none; returns the answers."""
    answers = (found or ask(method, problem, factual, n)).answers
    assert len(answers) == n
    earlier: list[dict[str, Any]] = []
    for answer in answers:
        expected = optimum(method, problem, factual, earlier)
        if answer.row is None:
            assert (answer.status, expected) == (Status.INFEASIBLE, np.inf)
            continue
        assert_holds(method, problem, factual, answer)
        assert answer.status is Status.OPTIMAL
        assert answer.objective is not None
        # With alpha at 1e4 the sum is still exact to 1e-6: changes are whole, distances below 100.
        assert abs(answer.objective - expected) <= WITHIN * max(1.0, abs(expected) / 1e4), (answer.objective, expected)
        earlier.append(answer.row)
    return list(answers)
