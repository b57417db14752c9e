"""The search over cells: masks that name the model's own leaves, an optimum that an independent program confirms."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from omegaconf import OmegaConf
from sklearn.ensemble import ExtraTreesClassifier, GradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from harness.core.classifier import Classifier
from harness.core.errors import UnsupportedError
from harness.core.explanation import Status
from harness.core.inputs import Affine, Indicator, Lookup, space_inputs
from harness.core.method import Deadline
from harness.core.problem import Problem
from harness.core.space import Feature, Kind, Space
from harness.core.target import Label
from harness.data import load_dataset
from harness.evaluation.checker import permitted
from harness.execution import task
from methods.ce_ocl import CeOcl
from methods.ce_ocl.program_engine import Request
from methods.cells import kernels, search
from methods.cells.search import CellSearch, Closest
from methods.estimators.trees import ensemble

SPACE = Space(
    (
        Feature("a", "continuous", scale=(-3.0, 5.0), bounds=(-3.0, 5.0)),
        Feature("b", "continuous", scale=(0.0, 0.7), bounds=(0.0, 0.7)),
        Feature("n", "integer", scale=(0, 30), bounds=(0, 30)),
        Feature("m", "integer", scale=(-4, 5), bounds=(-4, 5)),
        Feature("grade", "ordinal", (1, 2, 3, 4)),
        Feature("region", "categorical", ("n", "e", "s", "w", "x")),
        Feature("member", "binary", (False, True)),
    )
)
ESTIMATORS: dict[str, Any] = {
    "cart": DecisionTreeClassifier(max_depth=7, random_state=0),
    "rf": RandomForestClassifier(10, max_depth=4, random_state=0),
    "extra": ExtraTreesClassifier(12, max_depth=4, random_state=0),
    "gbm": GradientBoostingClassifier(n_estimators=15, max_depth=2, random_state=0),
}


def sample(rows: int, seed: int = 0) -> pd.DataFrame:
    """Random points of the space."""
    rng = np.random.default_rng(seed)
    data: dict[str, Any] = {}
    for feature in SPACE.features:
        if feature.kind is Kind.CONTINUOUS:
            data[feature.name] = rng.uniform(*feature.bounds, rows)
        elif feature.kind is Kind.INTEGER:
            data[feature.name] = rng.integers(int(feature.bounds[0]), int(feature.bounds[1]) + 1, rows)
        else:
            data[feature.name] = [feature.categories[k] for k in rng.integers(0, len(feature.categories), rows)]
    return pd.DataFrame(data)


def merit(frame: pd.DataFrame) -> np.ndarray:
    """What the models learn: every feature matters, and not alone."""
    part = np.sin(2 * frame["a"]) + 2 * frame["b"] * (1 + frame["member"]) + np.cos(frame["n"] / 4)
    part += (frame["grade"] - 2.5) * np.where(frame["region"].isin(["n", "s"]), 0.5, -0.4) - abs(frame["m"]) / 5
    return part.to_numpy(float)


@cache
def problem_with(model: str, target: str = "yes", rows: int = 400) -> Problem:
    train = sample(rows)
    estimator = ESTIMATORS[model].fit(SPACE.encode(train), merit(train) > np.quantile(merit(train), 0.6))
    fitted = Classifier(estimator, space_inputs(SPACE), ("no", "yes"))
    return Problem(SPACE, fitted, train, np.empty(rows, dtype=object), Label(target))


def factuals(problem: Problem, count: int) -> list[pd.DataFrame]:
    """Training rows that the model does not classify as wanted."""
    rejected = problem.train[~problem.valid(problem.train)]
    return [rejected.iloc[[row]] for row in range(min(count, len(rejected)))]


def searcher(method: CeOcl, problem: Problem) -> CellSearch:
    """The search with the method's costs, without the method."""
    coefficients = method.objective(problem).separable(problem.space)
    assert coefficients is not None
    return CellSearch(problem, coefficients, method.weights(problem), method.max_changes or math.inf)


def closest(cells: CellSearch, factual: pd.DataFrame, earlier: Any = (), separation: float = 0.2) -> Closest:
    return cells.closest(factual.to_dict("records")[0], earlier, separation, Deadline.after(60.0))


def cells_of(space: Space, ends: tuple[np.ndarray, ...], frame: pd.DataFrame) -> np.ndarray:
    """The cell of every value, shape (rows, features)."""
    columns = []
    for feature, borders in zip(space.features, ends, strict=True):
        values = frame[feature.name]
        columns.append(np.searchsorted(borders, values.to_numpy(float)) if feature.numeric else feature.codes(values))
    return np.column_stack(columns)


def around_thresholds(problem: Problem, ends: tuple[np.ndarray, ...], rows: int) -> pd.DataFrame:
    """Random points, each number as often as not at a threshold or a float64 or float32 neighbour of one."""
    rng = np.random.default_rng(1)
    frame = sample(rows, seed=2)
    for feature, borders in zip(problem.space.features, ends, strict=True):
        if not feature.numeric or not len(borders):
            continue
        near = [borders, borders - 1, borders + 1]
        if feature.kind is Kind.CONTINUOUS:
            near = [borders, *(np.nextafter(borders, side) for side in (-np.inf, np.inf))]
            single = borders.astype(np.float32)
            near += [single, *(np.nextafter(single, np.float32(side)) for side in (-np.inf, np.inf))]
            for column, source in enumerate(problem.classifier.inputs):
                if source.feature == feature.name:
                    trees = ensemble(problem.classifier.estimator).trees
                    cuts = [tree.threshold[(tree.column == column) & (tree.left >= 0)] for tree in trees]
                    near.append(source.shift + np.concatenate(cuts) * source.unit)
        listed = np.concatenate(near).astype(float)
        picked = rng.choice(listed, rows)
        mixed = np.where(rng.random(rows) < 0.7, picked, frame[feature.name].to_numpy(float))
        frame[feature.name] = mixed.astype(int) if feature.kind is Kind.INTEGER else mixed
    return frame


def assert_masks_name_the_leaf(problem: Problem, wanted: int, rows: int = 1500) -> None:
    """The AND of a tree's masks is one bit, another for each leaf; the bits' values add up to the model's output."""
    fitted = problem.classifier
    grid = searcher(CeOcl(), replace(problem, target=Label(fitted.classes[wanted]))).grid
    frame = around_thresholds(problem, grid.ends, rows)
    cells = grid.offset[:-1] + cells_of(problem.space, grid.ends, frame)
    inputs, score = fitted.matrix(frame).astype(np.float32), np.full(rows, grid.base)
    members_of = np.ravel(getattr(fitted.estimator, "estimators_", fitted.estimator))
    for t, tree in enumerate(estimator.tree_ for estimator in members_of):
        members = grid.members[grid.starts[t] : grid.starts[t + 1]]
        bits = np.full(rows, grid.values.shape[1] - 1)
        if len(members):
            masks = grid.upto[t, cells[:, members]] & grid.onwards[t, cells[:, members]]
            unpacked = np.unpackbits(np.bitwise_and.reduce(masks, axis=1).view(np.uint8), axis=1, bitorder="little")
            assert (unpacked.sum(axis=1) == 1).all()
            bits = unpacked.argmax(axis=1)
        leaves = tree.apply(inputs)
        assert len(set(zip(leaves, bits, strict=True))) == len(set(leaves)) == len(set(bits))
        score += grid.values[t, bits]
    expected = (fitted.raw(frame) - fitted.raw_threshold) * (1 if wanted == 1 else -1)
    assert score == pytest.approx(expected, rel=0, abs=1e-12)


@pytest.mark.parametrize("wanted", [0, 1])
@pytest.mark.parametrize("model", ESTIMATORS)
def test_the_masks_of_a_point_leave_the_leaf_that_the_tree_applies(model: str, wanted: int) -> None:
    """At thresholds and their float64 and float32 neighbours too."""
    assert_masks_name_the_leaf(problem_with(model), wanted)


INPUTS = (
    Affine("a", 1.0, -0.3),
    Affine("a", -3.0, 8.0),
    Affine("b", 0.35, 1 / 3),
    Affine("n", 30.0, -7.0),
    Affine("n", 0.1, 1e3),
    Affine("m", 0.0, 1.0),
    Affine("grade", 4.0, -1.5),
    Indicator("region", ("n", "s")),
    Lookup("region", ("n", "e", "s", "w", "x"), (0.3, -1.0, 2.5, 0.3, 0.7)),
    Indicator("member", (True,)),
)


def test_falling_inputs_and_several_inputs_of_a_feature_have_masks() -> None:
    """A negative unit, two maps of one number, pooled and target-encoded categories, numbers as levels."""
    train = sample(600)
    fitted = Classifier(RandomForestClassifier(6, max_depth=8, random_state=0), INPUTS, ("no", "yes"))
    fitted.estimator.fit(fitted.matrix(train), merit(train) > 0.8)
    assert_masks_name_the_leaf(replace(problem_with("rf"), classifier=fitted), 1)


def test_a_tree_may_have_many_leaves_and_another_none_but_its_root() -> None:
    """Leaf masks of several words, and a tree without a split."""
    train, noise = sample(900), np.random.default_rng(7).random(900) < 0.5
    inputs = SPACE.encode(train)
    forest = RandomForestClassifier(3, random_state=0).fit(inputs, noise)
    forest.estimators_[1] = DecisionTreeClassifier().fit(np.zeros_like(inputs), noise)
    assert forest.estimators_[1].tree_.node_count == 1
    problem = replace(problem_with("rf"), classifier=Classifier(forest, space_inputs(SPACE), ("no", "yes")))
    assert searcher(CeOcl(), problem).grid.upto.shape[2] > 2
    for wanted in (0, 1):
        assert_masks_name_the_leaf(problem, wanted)
    assert_same_optimum(CeOcl("l1"), problem, factuals(problem, 1)[0])


def test_what_is_no_sum_of_trees_over_intervals_is_refused() -> None:
    """Another model, an ordinal feature split out of its order, too many categories."""
    train, problem = sample(50), problem_with("rf")
    with pytest.raises(UnsupportedError, match="LogisticRegression"):
        ensemble(LogisticRegression())
    inputs = (Indicator("grade", (2, 3)),)
    tree = DecisionTreeClassifier().fit(inputs[0](train["grade"])[:, None], train["grade"].isin((2, 3)))
    with pytest.raises(UnsupportedError, match="grade is ordinal"):
        searcher(CeOcl(), replace(problem, classifier=Classifier(tree, inputs, ("no", "yes"))))
    crowd = SPACE.replace({"region": {"categories": (*"nesw", *range(61))}})
    with pytest.raises(UnsupportedError, match="65 categories"):
        searcher(CeOcl(), replace(problem, space=crowd))


def assert_same_optimum(method: CeOcl, problem: Problem, factual: pd.DataFrame, n: int = 1) -> list[Closest]:
    """Each answer is permitted, apart from those before it, and as good as the program's; so is a proof of none."""
    space, cells = problem.space, searcher(method, problem)
    program, earlier = replace(method, engine="milp").start(problem), list[dict[str, Any]]()
    answers = []
    for _ in range(n):
        found = closest(cells, factual, earlier, method.separation)
        told = program._next(Request(factual, lambda: factual.iloc[:0], Deadline.after(120.0)), earlier)
        answers.append(found)
        assert found.proven
        if found.row is None:
            assert told.status is Status.INFEASIBLE
            break
        assert told.status is Status.OPTIMAL
        assert found.value == pytest.approx(told.objective, rel=0, abs=5e-6)
        row = space.frame([found.row])
        assert problem.valid(row).all()
        assert method.objective(problem).evaluate(space, factual, row)[0] == pytest.approx(found.value, rel=1e-12)
        assert space.changed(factual, row)[0] @ method.weights(problem) <= (method.max_changes or np.inf)
        assert all(permitted(f, factual[f.name].iloc[0], found.row[f.name]) for f in space.features)
        assert all(is_apart(space, found.row, row, method.separation) for row in earlier)
        earlier.append(found.row)
    return answers


def is_apart(space: Space, row: Mapping[str, Any], other: Mapping[str, Any], separation: float) -> bool:
    return any(
        abs(row[f.name] - other[f.name]) >= separation * f.range - 1e-9 if f.numeric else row[f.name] != other[f.name]
        for f in space.features
    )


METHODS = [
    CeOcl("l2sq"),
    CeOcl("mad_l1", 0.1),
    CeOcl("gower", 1e4),
    CeOcl("l2sq", 1e4, count="columns"),
    CeOcl("gower", 0.1, max_changes=2),
    CeOcl("mad_l1", max_changes=3, count="columns"),
]


def title(method: CeOcl) -> str:
    return f"{method.distance}-{method.alpha:g}-{method.max_changes}-{method.count}"


@pytest.mark.parametrize("target", ["no", "yes"])
@pytest.mark.parametrize("method", METHODS, ids=title)
@pytest.mark.parametrize("model", ESTIMATORS)
def test_the_search_finds_the_optimum_of_the_program(model: str, method: CeOcl, target: str) -> None:
    problem = problem_with(model, target)
    assert_same_optimum(method, problem, factuals(problem, 1)[0])


@pytest.mark.parametrize("method", [CeOcl("l2sq", separation=0.3), CeOcl("gower", 1e4, separation=0.1)], ids=title)
@pytest.mark.parametrize("model", ["rf", "gbm"])
def test_further_answers_are_the_optima_of_the_program(model: str, method: CeOcl) -> None:
    problem = problem_with(model)
    assert_same_optimum(method, problem, factuals(problem, 1)[0], n=3)


def test_answers_may_run_out() -> None:
    """Few features may change and answers lie far apart: after some, both engines prove that there is none."""
    kept = {"actionability": "immutable"}
    space = SPACE.replace(dict.fromkeys(("a", "b", "n", "region"), kept))
    problem = replace(problem_with("rf"), space=space)
    ends = [
        assert_same_optimum(CeOcl("l1", separation=1.0), problem, factual, n=12)[-1] for factual in factuals(problem, 4)
    ]
    assert all(end.row is None and end.bound == math.inf for end in ends)


@pytest.mark.parametrize("target", ["good", "bad"])
@pytest.mark.parametrize("model", ["cart", "rf", "gbm"])
def test_every_actionability_is_kept(model: str, target: str, problem_of: Callable[[str], Problem]) -> None:
    """Directions, conditional orders, immutable features, special codes, of every kind; each number may be far out."""
    problem = replace(problem_of(model), target=Label(target))
    codes = problem.train.assign(delay=-1, loans=9, income=-7.0)
    for frame, method in itertools.product((problem.train, codes), (CeOcl("l1", 0.1), CeOcl("gower", 1e4))):
        rejected = frame[~problem.valid(frame)]
        if len(rejected):
            assert_same_optimum(method, problem, rejected.iloc[[0]], n=2)


@pytest.mark.parametrize("method", [CeOcl("l1"), CeOcl("gower", 1e4)], ids=title)
@pytest.mark.parametrize("model", ["rf", "gbm"])
def test_pauses_and_growing_room_change_no_answer(model: str, method: CeOcl, monkeypatch: pytest.MonkeyPatch) -> None:
    """With an effort of 0 the search stops after every node, and looks for incumbents; from room for two it grows."""
    problem = problem_with(model)
    cells = searcher(method, problem)
    for factual in factuals(problem, 2):
        first = closest(cells, factual)
        expected = [first.value, closest(cells, factual, [first.row]).value]
        with monkeypatch.context() as patch:
            patch.setattr(search, "EFFORT", 0)
            for room in (search.NODES, 2):
                patch.setattr(search, "NODES", room)
                patch.setattr(search, "CLAUSES", room)
                found = [closest(cells, factual), closest(cells, factual, [first.row])]
                assert [one.value for one in found] == pytest.approx(expected)
                assert all(one.proven for one in found)


@pytest.mark.parametrize("alpha", [0.0, 1.0])
@pytest.mark.parametrize("apart", [0, 2])
def test_better_incumbents_are_looked_for(alpha: float, apart: int) -> None:
    """Of many features: valid, apart from earlier answers, never dearer than before, and never below the optimum."""
    rng = np.random.default_rng(1)
    space = Space(tuple(Feature(f"x{j}", "continuous", scale=(0, 1), bounds=(0, 1)) for j in range(20)))
    train = pd.DataFrame(rng.uniform(size=(150, 20)), columns=list(space.names))
    forest = RandomForestClassifier(15, max_depth=4, random_state=0).fit(train.to_numpy(), train.sum(axis=1) > 10)
    labels = np.empty(len(train), dtype=object)
    problem = Problem(space, Classifier(forest, space_inputs(space), ("no", "yes")), train, labels, Label("yes"))
    cells, better = searcher(CeOcl("l1", alpha), problem), 0
    for factual in factuals(problem, 5):
        row, earlier = factual.to_dict("records")[0], []
        for _ in range(apart):
            earlier.append(closest(cells, factual, earlier).row)
        state = search._State(cells, search._Layout(cells, row, earlier, 0.2), earlier)
        state.guess()
        values = [float(state.upper[0])]
        for _ in range(10):
            state.improve()
            values.append(float(state.upper[0]))
            found = space.frame([state.layout.row(state.best)])
            assert problem.valid(found)[0]
            for other in earlier:
                assert np.abs(space.encode(found) - space.encode(space.frame([other]))).max() >= 0.2 - 1e-9
        assert (np.diff(values) <= 0).all()
        better += values[-1] < values[0]
        assert values[-1] >= closest(cells, factual, earlier).value - 1e-9
    assert better


class Looks:
    """A deadline that passes at the n-th look."""

    def __init__(self, n: int) -> None:
        self.left = n

    @property
    def passed(self) -> bool:
        self.left -= 1
        return self.left < 0


@pytest.mark.parametrize("model", ["rf", "extra", "gbm"])
def test_a_search_cut_short_is_honest(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wherever it stops, the optimum lies between bound and value, and only a finished proof is called one."""
    monkeypatch.setattr(search, "EFFORT", 0)
    problem = problem_with(model)
    cells = searcher(CeOcl("l2sq", 0.1), problem)
    unproven = 0
    for factual in factuals(problem, 3):
        optimum = closest(cells, factual).value
        bounds, values = [], []
        for looks in (0, 1, 2, 4, 8, 16, 32, 10**6):
            found = cells.closest(factual.to_dict("records")[0], [], 0.2, Looks(looks))
            bounds.append(found.bound)
            values.append(found.value)
            assert found.bound <= optimum + 1e-9 <= found.value + 2e-9
            assert (found.row is None) == (found.value == math.inf)
            assert not found.proven or found.value == pytest.approx(optimum, rel=0, abs=1e-9)
            assert found.row is None or problem.valid(SPACE.frame([found.row])).all()
            unproven += not found.proven
        assert found.proven
        assert bounds == sorted(bounds)
        assert values == sorted(values, reverse=True)
    assert unproven


TENTHS = Space(tuple(Feature(name, "integer", scale=(0, 9), bounds=(0, 9)) for name in "abc"))
POINTS = pd.DataFrame(itertools.product(range(10), repeat=3), columns=list("abc"))


@cache
def tenths(target: str) -> Problem:
    """Three trees that say a/10, b/10, c/10: every point has leaves of its own, and a sum of 15 is a tie, rounded."""
    trees = []
    for column in range(3):
        inputs = np.zeros((100, 3))
        inputs[:, column] = np.repeat(np.arange(10), 10)
        trees.append(DecisionTreeClassifier(random_state=0).fit(inputs, np.arange(100) % 10 < inputs[:, column]))
    forest = RandomForestClassifier(3).fit(POINTS.to_numpy(float), POINTS["a"] > 4)
    forest.estimators_ = trees
    fitted = Classifier(forest, tuple(Affine(name) for name in "abc"), ("no", "yes"))
    return Problem(TENTHS, fitted, POINTS, np.empty(1000, dtype=object), Label(target))


def ranked(method: CeOcl, problem: Problem, factual: pd.DataFrame) -> pd.Series:
    """The objective of every wanted point, in increasing order."""
    wanted = POINTS[problem.valid(POINTS)]
    return pd.Series(method.objective(problem).evaluate(TENTHS, factual, wanted), wanted.index).sort_values()


@pytest.mark.parametrize("target", ["no", "yes"])
def test_the_model_itself_decides_ties(target: str) -> None:
    """Sums that tie but for rounding are of either class; the answer is the best point of those the model wants."""
    problem = tenths(target)
    ties = POINTS[POINTS.sum(axis=1) == 15]
    assert 0 < problem.valid(ties).sum() < len(ties)
    heard: Counter[bool] = Counter()
    for method in (CeOcl("l1"), CeOcl("l2sq", 0.1), CeOcl("l2sq", 1e4)):
        cells = searcher(method, problem)
        judge = cells._right
        cells._right = lambda row, judge=judge: bool(heard.update([said := judge(row)]) or said)
        for factual in factuals(problem, 400)[::20]:
            found = closest(cells, factual)
            assert found.proven
            assert found.value == pytest.approx(ranked(method, problem, factual).iloc[0], abs=1e-9)
            assert problem.valid(TENTHS.frame([found.row])).all()
    assert min(heard[True], heard[False]) > 1


@pytest.mark.parametrize("refused", [1, 3, 30])
def test_a_refused_optimum_gives_way_to_the_next_best_leaves(refused: int) -> None:
    """However clear the score: what the model says of the point counts."""
    method, problem = CeOcl("l2sq", 0.01), tenths("yes")
    cells = searcher(method, problem)
    judge = cells._right
    for factual in factuals(problem, 400)[::50]:
        order = ranked(method, problem, factual)
        banned = set(POINTS.loc[order.index[:refused]].itertuples(index=False, name=None))
        cells._right = lambda row, banned=banned: judge(row) and tuple(row.values()) not in banned
        found = closest(cells, factual)
        assert found.proven
        assert found.value == pytest.approx(order.iloc[refused], abs=1e-9)


def test_where_the_model_refuses_every_point_there_is_none() -> None:
    problem = tenths("yes")
    cells = searcher(CeOcl("l2sq", max_changes=1), problem)
    factual = POINTS.query("a == 5 and b == 4 and c == 5")
    assert closest(cells, factual).row is not None
    cells._right = lambda row: False
    assert closest(cells, factual) == Closest(None, math.inf, math.inf)


@pytest.mark.parametrize("told", [False, True])
def test_questions_to_the_model_do_not_outlive_the_deadline(told: bool) -> None:
    """Each of many ties is asked about, but none but one after the deadline."""
    problem = tenths("yes")
    cells = searcher(CeOcl("l1"), problem)
    asked: list[Any] = []
    cells._right = lambda row: bool(asked.append(row)) or told
    for factual in factuals(problem, 400)[::20]:
        asked.clear()
        found = cells.closest(factual.to_dict("records")[0], [], 0.2, Deadline.after(0.0))
        assert len(asked) <= 2
        assert found.row is None or told


# Positions in a state's arrays: three features, the second without order.
STATES = np.array([4, 3, 4])
OFFSET = np.concatenate([[0], np.cumsum(STATES)])
KINDS = np.array([0, 1, 0])
ALL = list(itertools.product(*(range(count) for count in STATES)))


@st.composite
def boards(draw: st.DrawFn) -> tuple[Any, ...]:
    """Costs that grow away from a home, a node, and clauses: boxes of states."""
    steps = st.integers(0, 5).map(float)
    home = np.array([draw(st.integers(0, count - 1)) for count in STATES])
    cost = np.zeros(OFFSET[-1])
    for f, count in enumerate(STATES):
        toll = draw(steps)
        for s in range(count):
            cost[OFFSET[f] + s] = toll if s != home[f] else 0.0
        for s in () if KINDS[f] else (*range(home[f] + 1, count), *range(home[f] - 1, -1, -1)):
            nearer = cost[OFFSET[f] + s + (1 if s < home[f] else -1)]
            cost[OFFSET[f] + s] = (nearer or toll) + draw(steps)

    def box() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        ends = [sorted((draw(st.integers(0, count - 1)), draw(st.integers(0, count - 1)))) for count in STATES]
        low, high = (np.array([pair[side] for pair in ends]) for side in (0, 1))
        sets = np.where(KINDS == 1, [0, draw(st.integers(1, 7)), 0], 0).astype(np.uint64)
        return low, high, sets

    return home, cost, box(), entered([box() for _ in range(draw(st.integers(1, 6)))])


def entered(boxes: list[tuple[np.ndarray, ...]]) -> tuple[np.ndarray, ...]:
    """Boxes as clauses of the kernels."""
    clauses = search._clauses(len(boxes), 3, OFFSET[-1])
    for c, box in enumerate(boxes):
        for target, part in zip(clauses, box, strict=False):
            target[c] = part
        kernels.enter(c, clauses, KINDS, OFFSET)
    return clauses


def held(box: tuple[np.ndarray, ...], point: tuple[int, ...]) -> bool:
    low, high, sets = box
    return all(int(sets[f]) >> s & 1 if KINDS[f] else low[f] <= s <= high[f] for f, s in enumerate(point))


def left_over(node: tuple[np.ndarray, ...], clauses: tuple[np.ndarray, ...]) -> set[tuple[int, ...]]:
    """The points of a node that are in no clause's box."""
    boxes = list(zip(*clauses[:3], strict=True))
    return {point for point in ALL if held(node, point) and not any(held(box, point) for box in boxes)}


@settings(max_examples=300, deadline=None)
@given(boards())
def test_paid_duals_bound_every_point_and_leave_no_debt(board: tuple[Any, ...]) -> None:
    """No residual gets negative or shrinks with distance, and nothing outside all boxes costs less than what is paid;
    nor has such a point a state that ``fix`` drops, where it costs less than the slack above the bound."""
    home, cost, node, clauses = board
    point = np.zeros(3, np.int64)
    bound = kernels.nearest(node, KINDS, home, cost, OFFSET, point)
    residual = (np.full(len(cost), np.inf), np.full(len(cost), np.inf), np.zeros(3))
    kernels.residuals(node, KINDS, cost, OFFSET, home, point, residual)
    for c in range(len(clauses[0])):
        if kernels.inside(c, clauses, KINDS, point) and kernels.live_faces(c, clauses, KINDS, node):
            bound += kernels.pay(c, clauses, KINDS, node, residual, point, OFFSET)
    right, left, change = residual
    assert min(right.min(), left.min(), change.min()) >= 0
    for f in (0, 2):
        onwards = right[OFFSET[f] + point[f] + 1 : OFFSET[f] + node[1][f] + 1]
        back = left[OFFSET[f] + node[0][f] : OFFSET[f] + point[f]]
        assert (np.diff(onwards) >= 0).all()
        assert (np.diff(back) <= 0).all()
    prices = {p: sum(cost[OFFSET[f] + s] for f, s in enumerate(p)) for p in left_over(node, clauses)}
    assert min(prices.values(), default=math.inf) >= bound
    kernels.fix(node, KINDS, OFFSET, point, residual, 3.0)
    assert all(held(node, p) for p, price in prices.items() if price < bound + 3.0)


@settings(max_examples=300, deadline=None)
@given(boards(), st.integers(0, 3))
def test_a_node_loses_only_what_a_clause_or_the_bound_on_changes_rules_out(board: tuple[Any, ...], most: int) -> None:
    home, _, node, clauses = board
    expected = left_over(node, clauses)
    possible = kernels.propagate(clauses, len(clauses[0]), KINDS, OFFSET, *node)
    assert possible or not expected
    if possible:
        assert left_over(node, clauses) == expected
        kept = {p for p in expected if sum(s != own for s, own in zip(p, home, strict=True)) <= most}
        if kernels.limit_changes(node, KINDS, home, np.ones(3), float(most)):
            assert kept <= left_over(node, clauses)
        else:
            assert not kept


@settings(max_examples=300, deadline=None)
@given(boards(), st.integers(1, 130))
def test_the_clauses_that_hold_a_point_are_named(board: tuple[Any, ...], number: int) -> None:
    """Of any number of clauses, by the table and one by one."""
    boxes = list(zip(*board[3][:3], strict=True))
    boxes = [boxes[c % len(boxes)] for c in range(number)]
    clauses, found = entered(boxes), np.full(3, 2**64 - 1, np.uint64)
    for point in ALL:
        kernels.around(clauses, number, KINDS, OFFSET, np.array(point), found)
        words = -(-number // 64)
        named = np.unpackbits(found[:words].view(np.uint8), bitorder="little")
        expected = [held(box, point) for box in boxes]
        assert named[:number].tolist() == expected
        assert not named[number:].any()
        assert [kernels.inside(c, clauses, KINDS, np.array(point)) for c in range(number)] == expected


@settings(max_examples=300, deadline=None)
@given(boards())
def test_what_is_paid_for_leads_out_of_all_clauses(board: tuple[Any, ...]) -> None:
    """The point reached is in the node, in no box, and each of its features has no residual cost."""
    home, cost, node, clauses = board
    point, trial, used = np.zeros(3, np.int64), np.zeros(3, np.int64), len(clauses[0])
    kernels.nearest(node, KINDS, home, cost, OFFSET, point)
    residual = (np.full(len(cost), np.inf), np.full(len(cost), np.inf), np.zeros(3))
    kernels.residuals(node, KINDS, cost, OFFSET, home, point, residual)
    for c in range(used):
        if kernels.inside(c, clauses, KINDS, point) and kernels.live_faces(c, clauses, KINDS, node):
            kernels.pay(c, clauses, KINDS, node, residual, point, OFFSET)
    held_by = np.zeros(1, np.uint64)
    if not kernels.through_free_faces(clauses, used, KINDS, node, residual, OFFSET, point, held_by, trial):
        return
    assert tuple(trial) in left_over(node, clauses)
    right, left, change = residual
    for f in (0, 2):
        assert trial[f] == point[f] or (right if trial[f] > point[f] else left)[OFFSET[f] + trial[f]] <= kernels.CLOSE
    assert trial[1] == point[1] or change[1] <= kernels.CLOSE


@settings(max_examples=300, deadline=None)
@given(boards(), st.integers(0, 5))
def test_the_children_of_a_node_share_out_what_is_outside_a_clause(board: tuple[Any, ...], chosen: int) -> None:
    """No point is lost or in two of them, and no child's key is above its cheapest point."""
    home, cost, node, clauses = board
    c = chosen % len(clauses[0])
    point, box = np.zeros(3, np.int64), tuple(part[[c]] for part in clauses[:3])
    kernels.nearest(node, KINDS, home, cost, OFFSET, point)
    if not kernels.inside(c, clauses, KINDS, point):
        return
    residual = (np.zeros(len(cost)), np.zeros(len(cost)), np.zeros(3))
    kernels.residuals(node, KINDS, cost, OFFSET, home, point, residual)
    nodes, counters = search._nodes(16, 3), np.zeros(16, np.int64)
    kernels.branch(c, clauses, KINDS, node, residual, OFFSET, home, cost, point, 0.0, nodes, counters)
    children = [tuple(part[place] for part in nodes[:3]) for place in range(counters[kernels.TOP])]
    shares = Counter(p for child in children for p in ALL if held(child, p))
    assert shares == Counter(left_over(node, box))
    for child, key in zip(children, nodes[3], strict=False):
        assert key <= min(sum(cost[OFFSET[f] + s] for f, s in enumerate(p)) for p in ALL if held(child, p))


@pytest.mark.parametrize("same", [False, True])
@pytest.mark.parametrize("model", ["rf", "gbm"])
def test_a_strengthened_box_is_wrong_throughout(model: str, same: bool) -> None:
    """It holds its seed; with ``same`` all of it has the seed's score. It does not grow further on any side."""
    problem = problem_with(model)
    cells = searcher(CeOcl("l1"), problem)
    grid, rng = cells.grid, np.random.default_rng(0)
    for factual in factuals(problem, 3):
        layout = search._Layout(cells, factual.to_dict("records")[0], [], 0.2)
        states, count = np.diff(layout.soff), len(layout.home)
        free = (np.zeros(len(layout.cost)), np.zeros(len(layout.cost)), np.zeros(count))
        node = (layout.low, layout.high, layout.sets)

        def score(point: np.ndarray, layout: search._Layout = layout) -> float:
            return kernels.score_point(cells._grid, grid.base, grid.split, layout.cell_of, layout.soff, point)

        grown = 0
        for seed in rng.integers(0, states, (40, count)):
            if score(seed) >= -kernels.TINY:
                continue
            low, high, sets = np.zeros(count, np.int64), np.zeros(count, np.int64), np.zeros(count, np.uint64)
            kernels.strengthen(
                cells._grid, grid.base, same, grid.split, layout.cell_of, layout.soff, node, free, layout.home, seed,
                low, high, sets,
            )  # fmt: skip
            allowed = [
                [s for s in range(states[f]) if (int(sets[f]) >> s & 1 if grid.split[f] else low[f] <= s <= high[f])]
                for f in range(count)
            ]
            assert all(s in choices for s, choices in zip(seed, allowed, strict=True))
            grown += sum(map(len, allowed)) - count
            for _ in range(100):
                value = score(np.array([rng.choice(choices) for choices in allowed]))
                assert value == score(seed) if same else value < 0
        assert grown


@pytest.mark.parametrize("model", ["cart", "rf", "gbm"])
def test_a_step_changes_the_score_by_what_it_changes_for_the_model(model: str) -> None:
    """Any feature, to any state, near or far: sums of changes stay the model's own score."""
    problem = problem_with(model)
    cells = searcher(CeOcl("l1"), problem)
    grid, rng = cells.grid, np.random.default_rng(0)
    layout = search._Layout(cells, factuals(problem, 1)[0].to_dict("records")[0], [], 0.2)
    place = (cells._grid, grid.base, grid.split, layout.cell_of, layout.soff)
    masks = np.zeros((len(grid.members), grid.upto.shape[2]), np.uint64)
    worth, point = np.zeros(len(grid.values)), layout.home.copy()
    score = kernels.stand(cells._grid, grid.base, layout.cell_of, layout.soff, point, masks, worth)
    for _ in range(300):
        f = int(rng.integers(len(point)))
        s = int(rng.integers(layout.soff[f + 1] - layout.soff[f]))
        score += kernels.step(cells._grid, grid.split, layout.cell_of, layout.soff, point, masks, worth, f, s)
        assert point[f] == s
        assert score == pytest.approx(kernels.score_point(*place, point), abs=1e-9)
        raw = problem.classifier.raw(SPACE.frame([layout.row(point)]))[0] - problem.classifier.raw_threshold
        assert score == pytest.approx(raw, abs=1e-9)


@pytest.mark.parametrize("most", [None, 2])
@pytest.mark.parametrize("alpha", [0.0, 1e4])
@pytest.mark.parametrize("model", ["cart", "rf", "extra", "gbm"])
def test_a_first_guess_is_right_permitted_and_costs_what_it_claims(model: str, alpha: float, most: int | None) -> None:
    """Apart from an earlier answer too; mostly it finds something, and never less than the optimum."""
    problem = problem_with(model)
    method = CeOcl("l2sq", alpha, most)
    cells, found = searcher(method, problem), 0
    for factual in factuals(problem, 10):
        earlier = [closest(cells, factual).row]
        layout = search._Layout(cells, factual.to_dict("records")[0], earlier, 0.2)
        state = search._State(cells, layout)
        state.guess()
        if not state.counters[kernels.FOUND]:
            continue
        found += 1
        guessed = state.result(done=False)
        row = SPACE.frame([guessed.row])
        assert problem.valid(row).all()
        assert method.objective(problem).evaluate(SPACE, factual, row)[0] == pytest.approx(guessed.value, rel=1e-12)
        assert SPACE.changed(factual, row)[0].sum() <= (most or np.inf)
        assert all(permitted(f, factual[f.name].iloc[0], guessed.row[f.name]) for f in SPACE.features)
        assert is_apart(SPACE, guessed.row, earlier[0], 0.2)
        assert guessed.value >= closest(cells, factual, earlier).value - 1e-9
    assert found > 5


@pytest.mark.parametrize("wanted", ["no", "yes"])
@pytest.mark.parametrize("model", ESTIMATORS)
def test_the_judge_says_what_the_model_predicts(model: str, wanted: str) -> None:
    """At thresholds and their neighbours, and on ties."""
    problem = problem_with(model, wanted)
    cells = searcher(CeOcl(), problem)
    frame = around_thresholds(problem, cells.grid.ends, 300)
    assert [cells._right(row) for row in frame.to_dict("records")] == problem.valid(frame).tolist()
    ties = tenths(wanted)
    cells = searcher(CeOcl(), ties)
    near = POINTS[POINTS.sum(axis=1).between(14, 16)]
    assert [cells._right(row) for row in near.to_dict("records")] == ties.valid(near).tolist()


@given(st.integers(1, 2**64 - 1))
def test_the_highest_bit_is_the_bit_length_less_one(word: int) -> None:
    assert kernels.highest(np.uint64(word)) == word.bit_length() - 1


@given(st.lists(st.floats(0, 1), min_size=1, max_size=40), st.data())
def test_the_heap_gives_nodes_by_key(keys: list[float], data: st.DataObject) -> None:
    """Also where nodes come and go in turn."""
    heap, numbers, size, inside = np.zeros(40, np.int64), np.array(keys), 0, list[float]()
    for place, key in enumerate(keys):
        size = kernels.push(heap, numbers, size, place)
        inside.append(key)
        while inside and data.draw(st.booleans()):
            top, size = kernels.pop(heap, numbers, size)
            assert keys[top] == min(inside)
            inside.remove(keys[top])
    emptied = []
    while size:
        top, size = kernels.pop(heap, numbers, size)
        emptied.append(keys[top])
    assert emptied == sorted(inside)


@given(
    st.lists(st.integers(-8, 12), unique=True, max_size=6).map(sorted),
    st.lists(st.integers(-8, 12), max_size=3),
    st.integers(-9, 13),
    st.booleans(),
)
def test_the_states_of_a_number_are_its_cells_at_their_nearest_values(
    ends: list[int], cuts: list[int], value: int, whole: bool
) -> None:
    """In order, one for each cell that the bounds meet, with a cost that grows with distance and is 0 at home."""
    low, high = -2.0, 6.0
    borders = np.array(ends, dtype=float)
    cells, values, costs, home = kernels.lay_number(
        borders, np.array(cuts, dtype=float), float(value), low, high, 4.0, whole, 0.5, 1.0, 2.0
    )
    assert values[home] == value
    assert costs[home] == 0
    assert (np.diff(values) > 0).all()
    assert (np.diff(costs[home:]) >= 0).all()
    assert (np.diff(costs[: home + 1]) <= 0).all()
    assert (np.delete(costs, home) >= 0.5).all()
    assert cells.tolist() == np.searchsorted(borders, values).tolist()
    others = np.delete(values, home)
    assert ((others >= low) & (others <= high)).all()
    bins = np.unique([*ends, *cuts])
    expected = {int(np.searchsorted(bins, v)) for v in (*range(-2, 7), value)}
    if not whole:
        expected |= {int(np.searchsorted(bins, v + 0.5)) for v in range(-2, 6)}
    assert set(np.searchsorted(bins, values).tolist()) == expected


CONF = Path(__file__).parents[3] / "conf"
LARGE = {
    "rf": RandomForestClassifier(100, max_depth=5, random_state=0),
    "gbm": GradientBoostingClassifier(n_estimators=100, max_depth=3, random_state=0),
}


@pytest.mark.slow
@pytest.mark.parametrize("alpha", [0.0, 1e4])
@pytest.mark.parametrize("model", LARGE)
@pytest.mark.parametrize("name", ["compas", "german_credit"])
def test_large_ensembles_on_real_data_have_the_optimum_of_the_program(name: str, model: str, alpha: float) -> None:
    """Ten factuals: proven and valid, between the program's bound and value, and equal where that is proven too."""
    dataset = load_dataset(**OmegaConf.to_container(OmegaConf.load(CONF / "dataset" / f"{name}.yaml")))
    train, labels = dataset.frame.iloc[dataset.train], dataset.labels[dataset.train]
    fitted = train(LARGE[model], dataset.space, train, labels, dataset.classes)
    question = task.make_task(dataset, fitted)
    (problem,) = question.problems.values()
    method = CeOcl("l2sq", alpha)
    cells, program = searcher(method, problem), replace(method, engine="milp").fit(problem)
    for index in question.factuals.index[:10]:
        factual = question.factuals.loc[[index]]
        found = closest(cells, factual)
        (told,) = program.explain(factual, 1, np.random.default_rng(0), Deadline.after(120.0)).answers
        assert found.proven
        if found.row is None:
            assert told.row is None
            continue
        assert problem.valid(problem.space.frame([found.row])).all()
        assert all(permitted(f, factual[f.name].iloc[0], found.row[f.name]) for f in problem.space.features)
        assert told.bound is None or told.bound <= found.value + 1e-5
        assert told.objective is None or found.value <= told.objective + 1e-5
