"""CE-OCL against brute force: whatever it calls optimal or infeasible is so."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest
from omegaconf import OmegaConf
from sklearn.base import clone
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import (
    ExtraTreesClassifier,
)
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier
from support.applicants import (
    FREE,
    GRID,
    MODELS,
    REGRESSORS,
    SPACES,
    SPLITTING,
    classifier,
    factuals,
    problem_of,
)
from support.complete import CONF
from support.engines import engines
from support.enumeration import apart, ask, merit

from harness.core.classifier import Classifier
from harness.core.explanation import Answer, Status
from harness.core.inputs import Affine, space_inputs
from harness.core.method import Deadline
from harness.core.problem import Problem
from harness.core.space import Feature, Kind, Space
from harness.core.target import Interval, Label, Probability
from harness.data import load_dataset
from harness.evaluation.checker import permitted
from harness.models.train import train
from methods.ce_ocl import CeOcl
from methods.estimators.raw_target import raw_interval
from methods.estimators.thresholds import last_left


def label(method: CeOcl) -> str:
    """A test's name for a method."""
    return f"{method.distance}-{method.alpha:g}"


def best(
    method: CeOcl, problem: Problem, factual: pd.DataFrame, grid: pd.DataFrame, earlier: Sequence[dict[str, Any]] = ()
) -> float:
    """The least objective over all points of a grid that may be answered; infinite where there is none.

    Within the margin of its threshold a score says nothing, but for exact ties of the first class, which trees have.
    """
    space, judge = problem.space, problem.classifier
    keep = problem.valid(grid)
    if not isinstance(problem.target, Label):
        ends = raw_interval(problem)
        raw = judge.raw(grid)
        near = np.minimum(abs(raw - ends.low), abs(raw - ends.high))
        keep &= (near >= 2e-6) | ((near < 1e-12) & hasattr(judge.estimator, "apply"))
    elif judge.binary:
        distance = abs(judge.raw(grid) - judge.raw_threshold)
        tied = (distance < 1e-12) & hasattr(judge.estimator, "apply") & (problem.target == Label("no"))
        keep &= (distance >= 2e-6) | tied
    changes = np.zeros(len(grid))
    for feature in space.features:
        old = factual[feature.name].iloc[0]
        keep &= np.array([permitted(feature, old, new) for new in grid[feature.name]])
        double = method.count == "columns" and feature.kind is Kind.CATEGORICAL
        changes += (1 + double) * (grid[feature.name] != old).to_numpy()
    if method.max_changes is not None:
        keep &= changes <= method.max_changes
    for row in earlier:
        keep &= apart(space, grid, row, method.separation)
    values = method.objective(problem).evaluate(space, factual, grid[keep])
    return float(values.min(initial=np.inf))


def assert_lawful(problem: Problem, factual: pd.DataFrame, answer: Answer) -> None:
    """The model itself says what was wanted of the row, and no feature went where it may not."""
    assert answer.row is not None
    assert problem.valid(problem.space.frame([answer.row])).all()
    for feature in problem.space.features:
        assert permitted(feature, factual[feature.name].iloc[0], answer.row[feature.name])


def assert_optimal(
    method: CeOcl, problem: Problem, factual: pd.DataFrame, grid: pd.DataFrame = GRID, n: int = 1
) -> list[Answer]:
    """Of each engine, every answer is the best that is apart from those before it, or a proof that there is no more."""
    given: list[Answer] = []
    for engine in engines(method, problem):
        answers = ask(engine, problem, factual, n).answers
        assert len(answers) == n
        earlier: list[dict[str, Any]] = []
        for answer in answers:
            expected = best(method, problem, factual, grid, earlier)
            if answer.row is None:
                assert (answer.status, expected) == (Status.INFEASIBLE, np.inf)
                continue
            assert_lawful(problem, factual, answer)
            assert answer.objective == pytest.approx(expected, rel=0, abs=1e-6)
            assert answer.status is Status.OPTIMAL
            assert answer.gap is not None
            assert answer.gap <= 2e-6
            earlier.append(answer.row)
        given += answers
    assert given
    return given


def questions() -> list[Any]:
    """Every model with every distance; each pair meets one weight, bound and space here, and all of them if slow."""
    cases = []
    for m, model in enumerate(MODELS):
        for d, distance in enumerate(("l0", "l1", "mad_l1", "gower", "l2sq")):
            for choice in itertools.product(range(3), repeat=3):
                alpha, changes, space = (0.0, 0.3, 1e4)[choice[0]], (None, 1, 2)[choice[1]], list(SPACES)[choice[2]]
                quick = choice == ((m + d) % 3, (m + 2 * d + m // 3) % 3, (2 * m + d + m // 3) % 3)
                method = CeOcl(distance, alpha, changes)
                name = f"{model}-{distance}-{alpha:g}-{changes}-{space}"
                marks = () if quick else pytest.mark.slow
                cases.append(pytest.param(model, method, SPACES[space], id=name, marks=marks))
    return cases


@pytest.mark.parametrize("target", ["no", "yes"])
@pytest.mark.parametrize(("model", "method", "space"), questions())
def test_the_answer_is_the_optimum(model: str, method: CeOcl, space: Space, target: str) -> None:
    """Its objective is the least over the whole grid; without a point in the grid it is a proof of that."""
    problem = problem_of(classifier(model), target, space)
    for factual in factuals(problem, 3):
        assert_optimal(method, problem, factual)


@pytest.mark.parametrize(
    "method", [CeOcl("l1", 0.3, separation=0.3), CeOcl("gower", 1e4, 2, separation=0.5)], ids=label
)
@pytest.mark.parametrize("model", MODELS)
def test_each_further_answer_is_the_best_apart_from_those_before(model: str, method: CeOcl) -> None:
    """Another category, or ``separation`` in some number."""
    problem = problem_of(classifier(model), "yes", SPACES["coded"])
    for factual in factuals(problem, 3):
        assert_optimal(method, problem, factual, n=3)


@pytest.mark.parametrize(
    "target", [Probability("yes", 0.7), Probability("no", 0.6), Probability("yes", 0.35, 0.65)], ids=repr
)
@pytest.mark.parametrize("model", ["lr", "cart", "rf", "gbm", "mlp"])
def test_a_probability_may_be_wanted(model: str, target: Probability) -> None:
    """At least, at most, or within: the optimum over the whole grid."""
    problem = replace(problem_of(classifier(model), "yes"), target=target)
    for factual in factuals(problem, 3):
        assert_optimal(CeOcl("l1", 0.3), problem, factual)


@cache
def regressor(model: str) -> Classifier:
    frame = GRID.sample(300, random_state=0)
    return Classifier(clone(REGRESSORS[model]).fit(FREE.encode(frame), merit(frame)), space_inputs(FREE))


@pytest.mark.parametrize("target", [Interval(low=2.5), Interval(high=0.5), Interval(1.0, 1.5)], ids=repr)
@pytest.mark.parametrize("model", ["linear", "cart", "rf", "gbm", "mlp"])
def test_a_number_may_be_wanted(model: str, target: Interval) -> None:
    """Of a regression model, one end or both: the optimum over the whole grid."""
    problem = replace(problem_of(regressor(model), "yes"), target=target)
    for factual in factuals(problem, 3):
        for distance in ("l1", "l2sq"):
            assert_optimal(CeOcl(distance, 0.3), problem, factual)


def test_the_published_case_is_met() -> None:
    """German credit, squared distance, a linear support vector machine: the published optima, for a margin of 0.

    The three numbers that the published model keeps whole cannot move in its scaled space; with one changed column the
    score is reached by ``duration`` alone. The margin moves the optimum in proportion to the square of the score.
    """
    settings: Any = OmegaConf.to_container(OmegaConf.load(CONF / "dataset" / "german_credit.yaml"))
    settings |= {"split": {"test_size": 0.2, "stratify": True, "seed": 0}, "immutable": []}
    plain = load_dataset(**settings).space
    whole = ("residence_since", "existing_credits", "num_dependents")
    free = {
        f.name: {
            "kind": "continuous",
            "bounds": [-1e5, 1e5],
            "actionability": "immutable" if f.name in whole else "free",
        }
        if f.numeric
        else {"kind": "categorical", "categories": list(f.categories), "actionability": "free"}
        for f in plain.features
    }
    data = load_dataset(**settings, overrides=free)
    frame, labels = data.frame.iloc[data.train], data.labels[data.train]
    svm = train(LinearSVC(C=0.1, dual=False), data.space, frame, labels, data.classes)
    problem, factual = Problem(data.space, svm, frame, labels, Label("good")), data.frame.loc[[775]]
    assert float(svm.raw(factual)[0]) == pytest.approx(-0.1340203090, abs=1e-9)
    for method, published in (
        (CeOcl("l2sq"), 0.0327646192370),
        (CeOcl("l2sq", 1e4, count="columns"), 0.0616042007874),
    ):
        answer = ask(method, problem, factual).answers[0]
        assert answer.status is Status.OPTIMAL
        assert answer.objective is not None
        changes = method.alpha * (answer.objective > 1)
        assert answer.objective - changes == pytest.approx(published, abs=2e-8)


@pytest.mark.parametrize("model", ["lr", "rf", "mlp"])
def test_a_category_may_count_two(model: str) -> None:
    """With ``count=columns``, in the weight of changes as in their bound."""
    problem = problem_of(classifier(model), "yes")
    for method in (
        CeOcl("l1", 1e4, count="columns"),
        CeOcl("gower", 0.3, 1, count="columns"),
        CeOcl("l0", 0, 2, "columns"),
    ):
        for factual in factuals(problem, 3):
            assert_optimal(method, problem, factual)


@pytest.mark.parametrize("target", ["no", "yes"])
@pytest.mark.parametrize("threshold", [0.3, 0.9])
@pytest.mark.parametrize("model", ["lr", "cart", "rf", "gbm", "mlp"])
def test_a_threshold_of_the_classifier_is_kept(model: str, threshold: float, target: str) -> None:
    problem = problem_of(classifier(model, threshold=threshold), target)
    for factual in factuals(problem, 3):
        assert_optimal(CeOcl("l1", 0.3), problem, factual)


@pytest.mark.parametrize("model", MODELS)
def test_one_class_of_three_can_be_wanted(model: str) -> None:
    """Each class in turn."""
    for target in ("no", "yes", "very"):
        problem = problem_of(classifier(model, classes=3), target, SPACES["kept"])
        for factual in factuals(problem, 2):
            assert_optimal(CeOcl("l1", 0.3), problem, factual)


@pytest.mark.parametrize(
    ("target", "threshold"), [("no", None), ("yes", None), ("no", 0.5), ("no", 0.25), ("yes", 0.25)]
)
def test_a_tie_is_of_the_class_that_the_forest_says(target: str, threshold: float | None) -> None:
    """Pure leaves of four trees tie at many points; a tie is of the first class, and as good an answer as any."""
    frame = GRID.sample(150, random_state=0)
    forest = ExtraTreesClassifier(4, random_state=0).fit(FREE.encode(frame), merit(frame) > 1)
    problem = problem_of(Classifier(forest, space_inputs(FREE), ("no", "yes"), threshold), target)
    ties = problem.classifier.score(GRID) == (threshold or 0.5)
    assert ties.sum() > 20
    assert set(problem.classifier.predict(GRID[ties])) == {"no"}
    tied = 0
    for factual in factuals(problem, 8):
        rows = [answer.row for answer in assert_optimal(CeOcl("l1"), problem, factual) if answer.row is not None]
        tied += (problem.classifier.score(FREE.frame(rows)) == (threshold or 0.5)).sum()
    assert bool(tied) == (target == "no")


REAL = Space(
    (
        Feature("a", "continuous", scale=(-3.0, 5.0), bounds=(-2.5, 5.0)),
        Feature("b", "continuous", scale=(0.0, 0.7), bounds=(0.0, 0.7), actionability="increase"),
        Feature("c", "binary", (0, 1)),
    )
)


def reals(rows: int) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    columns = {"a": rng.uniform(-3, 5, rows), "b": rng.uniform(0, 0.7, rows), "c": rng.integers(0, 2, rows)}
    return pd.DataFrame(columns)


def edges(trees: Sequence[Any], column: int, source: Affine) -> list[float]:
    """Every decoded value next to a threshold, found by bisection on what a split does."""
    found = []
    for threshold in {t for tree in trees for t in tree.threshold[tree.feature == column]}:
        left, right = source.shift - 100 * source.unit, source.shift + 100 * source.unit
        while np.nextafter(left, right) < right:
            middle = (left + right) / 2
            goes_left = np.float32(source(pd.Series([middle]))).astype(float)[0] <= threshold
            left, right = (middle, right) if goes_left else (left, middle)
        found += [left, right]
    return found


@pytest.mark.parametrize("target", ["no", "yes"])
@pytest.mark.parametrize("method", [CeOcl("l1"), CeOcl("l2sq", 1e4), CeOcl("l0"), CeOcl("gower", 0.1)], ids=label)
@pytest.mark.parametrize("model", SPLITTING)
def test_real_numbers_stop_right_behind_the_threshold(model: str, method: CeOcl, target: str) -> None:
    """The optimum over all cells, each at its float64 nearest to the factual; the very float is valid."""
    train = reals(300)
    estimator = clone(MODELS[model]).fit(REAL.encode(train), np.sin(2 * train["a"]) + 3 * train["b"] + train["c"] > 1.4)
    problem = problem_of(Classifier(estimator, space_inputs(REAL), ("no", "yes")), target, REAL)
    problem = replace(problem, train=train, reference=train)
    trees = [tree.tree_ for tree in np.ravel(getattr(estimator, "estimators_", estimator))]
    corners = [edges(trees, column, problem.classifier.inputs[column]) for column in (0, 1)]
    for factual in (train[~problem.valid(train)].iloc[[row]] for row in range(3)):
        values = [sorted({*corner, factual[name].iloc[0]}) for name, corner in zip("ab", corners, strict=True)]
        grid = pd.DataFrame(itertools.product(*values, (0, 1)), columns=["a", "b", "c"])
        assert_optimal(method, problem, factual, grid)


@pytest.mark.parametrize("model", ["lr", "svm", "mlp"])
def test_real_numbers_are_best_for_continuous_models(model: str) -> None:
    """No point of a fine grid is better, and the optimum is no worse than that grid by more than its step."""
    train = reals(300)
    estimator = clone(MODELS[model]).fit(REAL.encode(train), train["a"] + 3 * train["b"] + train["c"] > 3)
    problem = problem_of(Classifier(estimator, space_inputs(REAL), ("no", "yes")), "yes", REAL)
    problem = replace(problem, train=train, reference=train)
    for factual in (train[~problem.valid(train)].iloc[[row]] for row in range(4)):
        values = [np.linspace(-3, 5, 161), np.linspace(0, 0.7, 141)]
        values = [np.append(column, factual[name].iloc[0]) for name, column in zip("ab", values, strict=True)]
        grid = pd.DataFrame(itertools.product(*values, (0, 1)), columns=["a", "b", "c"])
        (answer,) = ask(CeOcl("l1", 0.1), problem, factual).answers
        assert_lawful(problem, factual, answer)
        assert answer.status is Status.OPTIMAL
        assert answer.objective is not None
        assert 0 <= best(CeOcl("l1", 0.1), problem, factual, grid) - answer.objective + 1e-6 <= 0.02


def test_what_the_model_does_not_see_cannot_help() -> None:
    """A model of an immutable feature alone: proven infeasible, for each answer asked, with a reason."""
    fitted = LogisticRegression().fit(np.array([[0.0], [1.0]]), [0, 1])
    space = FREE.replace({"member": {"actionability": "immutable"}})
    problem = problem_of(Classifier(fitted, space_inputs(FREE)[2:3], ("no", "yes")), "yes", space)
    answers = ask(CeOcl(), problem, factuals(problem, 2)[0], n=2).answers
    assert [answer.status for answer in answers] == [Status.INFEASIBLE] * 2
    assert "classified as wanted" in answers[0].detail


def test_a_constant_model_is_infeasible() -> None:
    """Without a weight that is not 0 there is nothing to change."""
    fitted = LogisticRegression(C=1e-9, l1_ratio=1.0, solver="liblinear").fit(FREE.encode(GRID), merit(GRID) > 2)
    assert not fitted.coef_.any()
    problem = problem_of(Classifier(fitted, space_inputs(FREE), ("no", "yes")), "yes")
    factual = GRID.iloc[[0]]
    assert not problem.valid(factual)[0]
    assert ask(CeOcl(), problem, factual).answers[0].status is Status.INFEASIBLE


@pytest.mark.parametrize("method", [CeOcl("l1"), CeOcl("l1", 1e4)], ids=label)
@pytest.mark.parametrize("model", MODELS)
def test_without_time_the_answers_are_honest(model: str, method: CeOcl) -> None:
    """As many as asked; a point is valid, its bound does not exceed the optimum, and nothing false is called proven."""
    problem = problem_of(classifier(model), "yes", SPACES["coded"])
    for engine, factual in itertools.product(engines(method, problem), factuals(problem, 3)):
        answers = ask(engine, problem, factual, n=3, seconds=0.0).answers
        assert len(answers) == 3
        first, optimum = answers[0], best(method, problem, factual, GRID)
        if first.row is None:
            assert first.status is Status.GAVE_UP or optimum == np.inf
            continue
        assert_lawful(problem, factual, first)
        assert first.objective is not None
        assert first.objective >= optimum - 1e-6
        assert first.bound is None or first.bound <= optimum + 1e-6
        assert (first.status is Status.OPTIMAL) <= (first.objective <= optimum + 1e-6)


@pytest.mark.parametrize("model", ["cart", "rf", "mlp"])
def test_a_first_guess_leaves_a_special_code_for_a_permitted_value(model: str) -> None:
    """It does not stop between the code and the bounds, where the model may like it as well."""
    problem = problem_of(classifier(model), "yes", SPACES["coded"])
    coded, explainer = GRID[GRID["debt"].isin((-2, 9)) & ~problem.valid(GRID)], CeOcl("l1", engine="milp").fit(problem)
    moved = 0
    for factual in (coded.iloc[[row]] for row in range(0, len(coded), 5)):
        (answer,) = explainer.explain(factual, 1, np.random.default_rng(0), Deadline.after(0.0)).answers
        if answer.row is not None:
            assert_lawful(problem, factual, answer)
            moved += answer.row["debt"] not in {-2, 9}
    assert moved


RIGHT = float(np.nextafter(last_left(6.5), np.inf))  # the first number that a tree sends to the right at 6.5: 6.5000002


@pytest.mark.parametrize(
    ("bounds", "kept", "here", "wanted", "expected"),
    [
        ((0.0, 6.5), "free", 1.0, "yes", None),  # the right begins beyond the bound
        ((0.0, RIGHT), "free", 1.0, "yes", RIGHT),
        ((0.0, 10.0), "increase", RIGHT, "no", None),  # the left ends before what may not fall
        ((0.0, 10.0), "immutable", RIGHT, "no", None),
    ],
)
def test_a_program_takes_no_number_beyond_what_is_permitted(
    bounds: tuple[float, float], kept: str, here: float, wanted: str, expected: float | None
) -> None:
    """Not by the little that its solver may miss a bound by either: a tree's side that begins there is out of reach."""
    tree = DecisionTreeClassifier().fit([[6.0], [7.0]], [0, 1])
    assert tree.tree_.threshold[0] == 6.5
    assert tree.predict([[RIGHT], [np.nextafter(RIGHT, 0.0)]]).tolist() == [1, 0]
    space = Space((Feature("x", Kind.CONTINUOUS, scale=(0, 10), bounds=bounds, actionability=kept),))
    judge = Classifier(tree, (Affine("x"),), ("no", "yes"))
    rows, said = space.frame([{"x": 6.0}, {"x": 7.0}]), np.array(["no", "yes"], dtype=object)
    # The greatest move is no sum of features: the program sees the number itself, and not the tree's cells alone.
    answer = ask(CeOcl("linf"), Problem(space, judge, rows, said, Label(wanted)), space.frame([{"x": here}])).answers[0]
    if expected is None:
        assert answer.status is Status.INFEASIBLE
        return
    assert answer.status is Status.OPTIMAL
    assert answer.row == {"x": expected}


def test_an_unproven_answer_of_the_program_claims_no_more_than_its_bound() -> None:
    """After a moment the first guess is FOUND: its bound, if there is one, lies below what the search proves later."""
    problem = problem_of(classifier("mlp"), "yes")
    method = CeOcl("l1", engine="milp")
    explainer, unproven = method.fit(problem), 0
    for factual in factuals(problem, 4):
        (answer,) = explainer.explain(factual, 1, np.random.default_rng(0), Deadline.after(0.0)).answers
        if answer.row is None or answer.status is Status.OPTIMAL:
            continue
        optimum = ask(method, problem, factual).answers[0].objective
        assert answer.status is Status.FOUND
        assert answer.objective >= optimum - 1e-6
        assert answer.bound is None or answer.bound <= optimum + 1e-6
        unproven += answer.objective > optimum + 1e-6
    assert unproven


def test_explaining_leaves_nothing_behind() -> None:
    """A factual gets the same answers after others as it gets alone."""
    for model in ("rf", "mlp"):
        problem = problem_of(classifier(model), "yes", SPACES["coded"])
        for method in engines(CeOcl("l1", 0.3), problem):
            explainer = method.fit(problem)
            for factual in factuals(problem, 4):
                used = explainer.explain(factual, 2, np.random.default_rng(0), Deadline.after(60))
                fresh = ask(method, problem, factual, n=2)
                assert [a.objective for a in used.answers] == pytest.approx([a.objective for a in fresh.answers])


def test_refusals_have_a_reason() -> None:
    """A sentence that says what is known or what to set."""
    fitted = classifier("lr")
    problem = problem_of(fitted, "yes")
    assert CeOcl().refuses(problem) is None
    assert "engine=search" in str(CeOcl(engine="search").refuses(problem))
    assert "needs a regression model" in str(CeOcl().refuses(replace(problem, target=Interval(low=1))))
    several = replace(problem_of(classifier("lr", 3), "yes"), target=Probability("yes", 0.8))
    assert "one of several classes" in str(CeOcl().refuses(several))
    unknown = (KNeighborsClassifier(), DummyClassifier())
    for estimator in unknown:
        other = Classifier(estimator.fit(FREE.encode(GRID), merit(GRID) > 2), fitted.inputs, fitted.classes)
        reason = str(CeOcl().refuses(replace(problem, classifier=other)))
        assert type(estimator).__name__ in reason
        assert "read are linear models, networks of ReLUs, and trees and sums of them" in reason
        assert "nearest, md_pso" in reason


@pytest.mark.parametrize("engine", ["milp", "search"])
@pytest.mark.parametrize(
    ("fixed", "changes", "conflict"),
    [
        ({"member": "immutable"}, None, ("immutable member",)),
        ({"member": "immutable", "grade": "decrease"}, None, ("decrease grade",)),
        ({}, 1, ("max_changes=1",)),
        ({"age": "immutable", "debt": "decrease"}, 1, ("max_changes=1",)),
        ({"age": "immutable", "member": "immutable"}, 1, ("max_changes=1",)),
    ],
    ids=str,
)
def test_an_impossible_question_names_what_conflicts(
    engine: str, fixed: dict[str, str], changes: int | None, conflict: tuple[str, ...]
) -> None:
    """A tree that says yes to members of the highest grade only, asked of one who is neither.

    What the filter names is enough by itself, and without any one of its groups there is an answer.
    """
    deserving = ((GRID["member"].to_numpy(bool)) & (GRID["grade"] == "high")).to_numpy(int)
    tree = DecisionTreeClassifier(random_state=0).fit(FREE.encode(GRID), deserving)
    space = FREE.replace({name: {"actionability": kind} for name, kind in fixed.items()})
    problem = problem_of(Classifier(tree, space_inputs(FREE), ("no", "yes")), "yes", space)
    factual = GRID[(~GRID["member"].to_numpy(bool)) & (GRID["grade"] == "low").to_numpy() & (GRID["debt"] == 2)].iloc[
        [0]
    ]
    explained = ask(CeOcl(max_changes=changes, engine=engine), problem, factual, n=2)
    assert [answer.status for answer in explained.answers] == [Status.INFEASIBLE] * 2
    assert explained.conflict == conflict
    words = ", ".join(conflict) if len(conflict) > 1 else f"{conflict[0]} and the model"
    assert explained.answers[0].detail.endswith(f"these cannot hold together: {words}")


def test_a_possible_question_has_no_conflict() -> None:
    problem = problem_of(classifier("rf"), "yes")
    assert ask(CeOcl(), problem, factuals(problem, 1)[0]).conflict == ()
