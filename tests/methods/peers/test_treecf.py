"""treecf against brute force and the cell search: its exact optimum is ours, its genetic points are valid."""

from __future__ import annotations

import importlib.util
import itertools
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from sklearn.tree import DecisionTreeClassifier

from harness.core.explanation import Answer, Reason, Status
from harness.core.inputs import Affine, Lookup, Step
from harness.core.method import Deadline
from harness.core.problem import Problem
from harness.core.space import Feature, Space
from harness.core.target import Interval, Label
from harness.evaluation.checker import permitted
from harness.library import explain, pose
from harness.models.train import train
from harness.models.votes import VotingForestClassifier
from methods.ce_ocl import CeOcl
from methods.peers.treecf import TreeCf

library = pytest.mark.skipif(importlib.util.find_spec("treecf") is None, reason="uv sync --extra treecf")

SPACE = Space(
    (
        Feature("age", "integer", scale=(20, 27), bounds=(20, 27), actionability="increase"),
        Feature("debt", "integer", scale=(0, 5), bounds=(0, 5), special=(-1,)),
        Feature("member", "binary", ("no", "yes")),
        Feature("grade", "ordinal", ("low", "mid", "high"), actionability="decrease"),
        Feature("stage", "ordinal", ("a", "b", "c"), actionability="conditional", order=("a", "c")),
        Feature("region", "categorical", ("n", "s", "w")),
        Feature("job", "categorical", ("none", "part", "full"), actionability="conditional"),
    )
)
ESTIMATORS = {
    "cart": DecisionTreeClassifier(max_depth=4, random_state=0),
    "rf": RandomForestClassifier(7, max_depth=3, random_state=0),
    "gbm": GradientBoostingClassifier(n_estimators=8, max_depth=2, random_state=0),
}


def points() -> pd.DataFrame:
    """Every point of the space, special codes left out."""
    values = [range(int(f.bounds[0]), int(f.bounds[1]) + 1) if f.numeric else f.categories for f in SPACE.features]
    return SPACE.frame(dict(zip(SPACE.names, row, strict=True)) for row in itertools.product(*values))


def posed(model: str, wanted: str = "good") -> Problem:
    """A problem on a sample of the points, whose labels mix all features, with some noise."""
    rng = np.random.default_rng(3)
    rows = points().sample(300, random_state=1).reset_index(drop=True)
    merit = rows["age"] / 4 - rows["debt"] / 2 + (rows["member"] == "yes") + (rows["region"] == "w")
    merit += 1.0 * (rows["job"] == "full") - 1.0 * (rows["grade"] == "high") + 1.0 * (rows["stage"] == "c")
    merit += rng.normal(0, 0.5, len(rows))
    labels = np.where(merit > merit.median(), "good", "bad").astype(object)
    classifier = train(ESTIMATORS[model], SPACE, rows, labels, ("bad", "good"), None)
    return Problem(SPACE, classifier, rows, labels, Label(wanted))


def asked(method: Any, problem: Problem, factual: pd.DataFrame, count: int = 1, seconds: float = 30.0) -> list[Answer]:
    explanation = method.fit(problem).explain(factual, count, np.random.default_rng(0), Deadline.after(seconds))
    return list(explanation.answers)


def least(problem: Problem, method: TreeCf, factual: pd.DataFrame) -> float:
    """The optimum over all points, or infinity."""
    origin, frame = factual.iloc[0].to_dict(), points()
    for feature in SPACE.features:
        may = [value for value in frame[feature.name].unique() if permitted(feature, origin[feature.name], value)]
        frame = frame.loc[frame[feature.name].isin(may)]
    frame = frame.loc[problem.valid(frame)]
    return float(method.objective(problem).evaluate(SPACE, factual, frame).min(initial=np.inf))


@library
@pytest.mark.parametrize("alpha", [0.0, 0.3, 10000.0])
@pytest.mark.parametrize("wanted", ["good", "bad"])
@pytest.mark.parametrize("model", ESTIMATORS)
def test_the_optimum_is_that_of_brute_force(model: str, wanted: str, alpha: float) -> None:
    problem, method = posed(model, wanted), TreeCf(alpha)
    assert method.refuses(problem) is None
    rows = problem.train.loc[(problem.train["stage"] != "a") & ~problem.valid(problem.train)]
    for number in range(4):
        factual = rows.iloc[[number]]
        (answer,) = asked(method, problem, factual)
        optimum = least(problem, method, factual)
        if answer.status is Status.INFEASIBLE:
            assert optimum == np.inf
            continue
        assert answer.status is Status.OPTIMAL
        assert answer.objective == pytest.approx(optimum, abs=1e-9)
        assert answer.row is not None
        assert problem.valid(SPACE.frame([answer.row]))[0]


@library
def test_boosting_whose_score_is_at_the_threshold_says_1() -> None:
    """Of a leaf where as many are of either class, with no start value: it is 0; one above it is needed nowhere."""
    rows = pd.DataFrame({"a": np.repeat([0.0, 1.0], 10), "y": [0] * 10 + [0, 1] * 5})
    model = GradientBoostingClassifier(init="zero", n_estimators=1, max_depth=1).fit(rows[["a"]], rows["y"])
    assert model.decision_function(pd.DataFrame({"a": [1.0]}))[0] == 0.0
    for wanted, person, end in ((1, 0, 1.0), (0, 10, 0.0)):
        answer = explain(TreeCf(0.0), pose(rows, "y", model, desired=wanted), person).answers[0]
        assert (answer.status, answer.objective) == (Status.OPTIMAL, 1.0)
        assert answer.row == {"a": end}


@library
@pytest.mark.parametrize("alpha", [0.0, 10000.0])
@pytest.mark.parametrize("model", ["cart", "gbm", "rf"])
def test_the_optimum_is_that_of_the_search(problem_of: Any, model: str, alpha: float) -> None:
    """With continuous features too, at the very sides of their splits."""
    problem = problem_of(model)
    rows = problem.train.loc[~problem.valid(problem.train) & (problem.train["stage"] != "a")]
    rows = rows.loc[rows["delay"] != -1]
    optimal = 0
    for number in range(8):
        (theirs,), (ours,) = (asked(m(alpha=alpha), problem, rows.iloc[[number]]) for m in (TreeCf, CeOcl))
        assert theirs.status is ours.status
        assert theirs.objective == (None if ours.objective is None else pytest.approx(ours.objective, abs=1e-6))
        optimal += theirs.status is Status.OPTIMAL
    assert optimal


@library
@pytest.mark.parametrize("model", ESTIMATORS)
def test_the_genetic_backend_finds_points_without_proof(model: str) -> None:
    """Valid and permitted for the estimator itself, never better than brute force, and its objective is the row's."""
    problem, method = posed(model), TreeCf(0.3, "genetic")
    rows = problem.train.loc[(problem.train["stage"] != "a") & ~problem.valid(problem.train)]
    found = 0
    for number in range(4):
        factual = rows.iloc[[number]]
        (answer,) = asked(method, problem, factual)
        assert answer.status in {Status.FOUND, Status.GAVE_UP}
        assert answer.bound is None
        if answer.row is not None:
            frame = SPACE.frame([answer.row])
            assert problem.valid(frame)[0]
            assert SPACE.violations(factual, frame) == [[]]
            assert answer.objective == pytest.approx(method.objective(problem).evaluate(SPACE, factual, frame)[0])
            assert answer.objective >= least(problem, method, factual) - 1e-9
            found += 1
    assert found


@library
@pytest.mark.parametrize(("name", "value"), [("debt", -1), ("stage", "a")])
def test_what_is_no_range_stays(name: str, value: Any) -> None:
    """A special code, and levels that a conditional order leaves out: the rest is searched, without a claim."""
    problem, method = posed("cart"), TreeCf()
    rows = problem.train.loc[problem.train["stage"] != "a"].assign(**{name: value})
    rows, statuses = rows.loc[~problem.valid(rows)], set()
    space = problem.space.replace({name: {"actionability": "immutable", "order": ()}})
    for place in range(6):
        factual = rows.iloc[[place]]
        (answer,) = asked(method, problem, factual)
        (fixed,) = asked(CeOcl(alpha=0.0), replace(problem, space=space), factual)
        statuses.add(answer.status)
        if answer.row is None:
            assert (answer.status, fixed.status) == (Status.GAVE_UP, Status.INFEASIBLE)
            continue
        assert (answer.status, answer.bound, answer.row[name]) == (Status.FOUND, None, value)
        assert answer.objective == pytest.approx(fixed.objective)
        assert f"{name} are none: kept as they are" in answer.detail
    assert Status.FOUND in statuses


@library
def test_a_factual_may_stay_out_of_bounds() -> None:
    """What a factual has outside the bounds widens them."""
    problem = posed("gbm")
    row = problem.train.loc[~problem.valid(problem.train) & (problem.train["stage"] != "a")].iloc[[0]]
    outside = row.assign(age=29)
    method = TreeCf(10000.0)
    (theirs,), (ours,) = (asked(m, problem, outside) for m in (method, CeOcl(alpha=10000.0)))
    assert theirs.status is Status.OPTIMAL
    assert theirs.objective == pytest.approx(ours.objective)


@library
def test_a_point_of_another_class_is_handed_back_unproven() -> None:
    """As the library found it, whatever it states of it; the factual itself is no counterfactual."""
    problem, method = posed("gbm"), TreeCf(0.3)
    explainer, rows = method.fit(problem), problem.train.loc[~problem.valid(problem.train)]
    factual, other = rows.iloc[[0]], rows.iloc[[1]]
    origin = factual.iloc[0].to_dict()
    for row in (other, factual):
        place = np.array([axis.place(row.iloc[0][axis.name]) for axis in explainer.axes])
        found: Any = SimpleNamespace(x_cf=place, proof="optimal", distance=0.0, n_changed=0)
        answer = explainer._answer(factual, origin, found, Reason.TIME_LIMIT)
        if row is other:
            assert (answer.status, answer.row, answer.bound) == (Status.FOUND, other.iloc[0].to_dict(), None)
            assert answer.objective == pytest.approx(method.objective(problem).evaluate(SPACE, factual, other)[0])
            assert "threshold" in answer.detail
        else:
            assert answer.status is Status.GAVE_UP


@library
def test_there_is_one_counterfactual() -> None:
    problem = posed("gbm")
    rows = problem.train.loc[~problem.valid(problem.train) & (problem.train["stage"] != "a")]
    first, second = asked(TreeCf(), problem, rows.iloc[[0]], count=2)
    assert first.status is Status.OPTIMAL
    assert second.status is Status.GAVE_UP
    assert second.detail


@library
def test_refusals(problem_of: Any) -> None:
    """Targets, models and inputs that do not fit the library, each in a sentence with the culprit."""
    problem, method = posed("cart"), TreeCf()
    interval = replace(problem, target=Interval(0.0, 1.0))
    inputs = problem.classifier.inputs
    binned = (Step("age", (23.0,), (0.0, 1.0)), *inputs[1:])
    falling = (Affine("age", 0.0, -1.0), *inputs[1:])
    shuffled = tuple(
        Lookup("grade", ("low", "mid", "high"), (0.0, 1.0, 0.5)) if i == 3 else s for i, s in enumerate(inputs)
    )
    cases = [(interval, "one wanted class only"), (problem_of("lr"), "LogisticRegression")]
    cases += [
        (replace(problem, classifier=replace(problem.classifier, inputs=changed)), name)
        for changed, name in ((binned, "age"), (falling, "age"), (shuffled, "grade"))
    ]
    for asked_of, culprit in cases:
        assert culprit in str(method.refuses(asked_of))


def test_a_missing_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the command that installs it, whatever the problem."""
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert "uv sync --extra treecf" in str(TreeCf().refuses(posed("cart")))


@library
def test_trees_that_vote_are_refused() -> None:
    """The library reads a forest's averages, whatever class of ours the forest is of."""
    problem = posed("cart")
    voting = replace(problem, classifier=replace(problem.classifier, estimator=VotingForestClassifier(3)))
    assert "not VotingForestClassifier" in str(TreeCf().refuses(voting))


def test_alpha_is_not_negative() -> None:
    with pytest.raises(ValueError, match="alpha"):
        TreeCf(-1.0)


def test_a_backend_is_one_of_two() -> None:
    with pytest.raises(ValueError, match="backend"):
        TreeCf(backend="python")
