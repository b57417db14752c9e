"""One reader of tree ensembles: its sums are the library's own, and every exact method finds the optimum on them."""

from __future__ import annotations

import itertools
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from omegaconf import OmegaConf
from sklearn.base import is_regressor
from sklearn.compose import make_column_transformer
from sklearn.ensemble import (
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder
from sklearn.tree import DecisionTreeClassifier
from support import enumeration

from harness.core.classifier import Classifier
from harness.core.errors import UnsupportedError
from harness.core.explanation import Status
from harness.core.inputs import Affine
from harness.core.method import Deadline
from harness.core.problem import Problem
from harness.core.space import Feature
from harness.data import load_dataset
from harness.execution import task as tasks
from harness.library import explain, pose
from harness.models.train import train
from methods.ce_ocl import CeOcl
from methods.ce_ocl.explainer import start
from methods.ce_ocl.program_engine import ProgramEngine
from methods.cells.search import CellSearch
from methods.estimators import trees
from methods.estimators.fast_predict import fast_decide
from methods.estimators.raw_target import leads
from methods.estimators.thresholds import last_decoded, last_left
from methods.estimators.trees import Ensemble, ensemble, splits_only


def of(package: str, name: str, **settings: Any) -> Any:
    """An estimator of an optional library; the test is skipped where that is not installed."""
    library = pytest.importorskip(package, reason=f"{package} is in the extra {package!r}")
    quiet = {"verbose": -1, "min_child_samples": 3} if package == "lightgbm" else {}
    return getattr(library, name)(**quiet, n_jobs=1, **settings)


SIZE: dict[str, Any] = {"n_estimators": 8, "max_depth": 3, "random_state": 0}
HISTOGRAM: dict[str, Any] = {"max_iter": 8, "max_depth": 3, "random_state": 0, "min_samples_leaf": 5}
BINARY: dict[str, Callable[[], Any]] = {
    "tree": lambda: DecisionTreeClassifier(max_depth=5, random_state=0),
    "forest": lambda: RandomForestClassifier(**SIZE),
    "extra trees": lambda: ExtraTreesClassifier(**SIZE),
    "boosting": lambda: GradientBoostingClassifier(**SIZE),
    "histogram": lambda: HistGradientBoostingClassifier(**HISTOGRAM),
    "xgboost": lambda: of("xgboost", "XGBClassifier", **SIZE),
    "xgboost forest": lambda: of("xgboost", "XGBRFClassifier", **SIZE),
    "xgboost, 200 trees": lambda: of("xgboost", "XGBClassifier", **{**SIZE, "n_estimators": 200}),
    "xgboost, exact cuts": lambda: of("xgboost", "XGBClassifier", tree_method="exact", base_score=0.3, **SIZE),
    "lightgbm": lambda: of("lightgbm", "LGBMClassifier", **SIZE),
    "lightgbm, sigmoid": lambda: of("lightgbm", "LGBMClassifier", sigmoid=1.7, **SIZE),
    "lightgbm, dart": lambda: of("lightgbm", "LGBMClassifier", boosting_type="dart", **SIZE),
}
SEVERAL: dict[str, Callable[[], Any]] = {
    "forest": lambda: RandomForestClassifier(**SIZE),
    "boosting": lambda: GradientBoostingClassifier(**SIZE),
    "histogram": lambda: HistGradientBoostingClassifier(**HISTOGRAM),
    "xgboost": lambda: of("xgboost", "XGBClassifier", **SIZE),
    "lightgbm": lambda: of("lightgbm", "LGBMClassifier", **SIZE),
    "lightgbm, one against all": lambda: of("lightgbm", "LGBMClassifier", objective="multiclassova", **SIZE),
}
NUMBERS: dict[str, Callable[[], Any]] = {
    "forest": lambda: RandomForestRegressor(**SIZE),
    "boosting": lambda: GradientBoostingRegressor(**SIZE),
    "histogram": lambda: HistGradientBoostingRegressor(**HISTOGRAM),
    "xgboost": lambda: of("xgboost", "XGBRegressor", **SIZE),
    "lightgbm": lambda: of("lightgbm", "LGBMRegressor", **SIZE),
}
COLUMNS = 5
TWO_OUTPUTS: dict[str, Callable[[], Any]] = {
    "xgboost": lambda: of("xgboost", "XGBClassifier", objective="multi:softprob", num_class=2, **SIZE),
    "lightgbm": lambda: of("lightgbm", "LGBMClassifier", objective="multiclass", num_class=2, **SIZE),
}


@cache
def rows(count: int = 500) -> tuple[np.ndarray, np.ndarray]:
    """Inputs, two of them whole numbers, and what models learn of them."""
    rng = np.random.default_rng(0)
    inputs = rng.random((count, COLUMNS)) * [1, 1, 3, 1, 1] - [0, 0.5, 0, 0, 0]
    inputs[:, 3], inputs[:, 4] = rng.integers(0, 5, count), rng.integers(0, 2, count)
    return inputs, np.sin(5 * inputs[:, 0]) + inputs[:, 1] * inputs[:, 3] - inputs[:, 4] * inputs[:, 2]


@pytest.mark.parametrize("name", TWO_OUTPUTS)
def test_two_outputs_for_two_classes_are_refused(name: str) -> None:
    """What asks for the one score of two classes finds none."""
    inputs, numbers = rows()
    model = TWO_OUTPUTS[name]().fit(inputs, (numbers > 0).astype(int))
    with pytest.raises(UnsupportedError, match="has two outputs for two classes; train it with its objective for two"):
        ensemble(model)


def emptied(points: np.ndarray) -> np.ndarray:
    """The rows with gaps: some by chance, and of one column where another is large, so that a gap tells something."""
    chance = np.random.default_rng(2).random(points.shape) < [0.2, 0.2, 0.1, 0.2, 0]
    chance[:, 2] |= points[:, 0] > 0.8
    return np.where(chance, np.nan, points)


def learnt(estimator: Any, classes: int, gaps: bool = False) -> Classifier:
    """The estimator behind decoded frames, each input a feature of its own; with ``gaps`` of rows that have some."""
    inputs, merit = rows()
    inputs = emptied(inputs) if gaps else inputs
    cuts = np.quantile(merit, np.arange(1, classes) / classes) if classes else []
    estimator.fit(inputs, np.searchsorted(cuts, merit) if classes else merit)
    return Classifier(estimator, [Affine(f"x{k}") for k in range(COLUMNS)], tuple(range(classes)))


def around_thresholds(model: Ensemble, count: int = 2000) -> np.ndarray:
    """Training rows with values at thresholds, one ulp of float64 or float32 aside, and half a float32 aside."""
    rng = np.random.default_rng(1)
    points = rows()[0][rng.integers(0, len(rows()[0]), count)].copy()
    for column in range(COLUMNS):
        cuts = np.concatenate([tree.threshold[(tree.column == column) & (tree.left >= 0)] for tree in model.trees])
        cuts = cuts[np.abs(cuts) < 1e30]  # beyond all numbers lie splits of gaps alone
        if not len(cuts):
            continue
        single = cuts.astype(np.float32)
        sides = np.float32(-np.inf), np.float32(np.inf)
        beside = [np.nextafter(single, side).astype(float) for side in sides]
        halves = [(single + other) / 2 for other in beside]
        near = [cuts, *(np.nextafter(cuts, side) for side in (-np.inf, np.inf)), single.astype(float), *beside, *halves]
        near += [np.nextafter(half, side) for half in halves for side in (-np.inf, np.inf)]
        picked = rng.random(count) < 0.6
        points[picked, column] = rng.choice(np.concatenate(near), picked.sum())
    return points


def frame_of(points: np.ndarray) -> pd.DataFrame:
    return pd.DataFrame(points, columns=[f"x{k}" for k in range(COLUMNS)])


ALL = [
    pytest.param(make, classes, id=f"{name}-{classes}")
    for kind, classes in ((BINARY, 2), (SEVERAL, 3), (NUMBERS, 0))
    for name, make in kind.items()
]


@pytest.mark.parametrize(("make", "classes"), ALL)
def test_the_sum_is_the_library_s_raw_score(make: Callable[[], Any], classes: int) -> None:
    """At thresholds and beside them too; off by no more than the roundings of sums in the library's own numbers."""
    fitted = learnt(make(), classes)
    assert splits_only(fitted.estimator)
    model = ensemble(fitted.estimator)
    points = around_thresholds(model)
    expected = fitted.raw(frame_of(points)).reshape(len(points), -1)
    assert np.abs(model.raw(points) - expected).max() <= max(model.rounding(0.0), 1e-12)
    assert model.rounding(0.0) < 1e-3


@pytest.mark.parametrize("trained", [False, True], ids=["trained on none", "trained on some"])
@pytest.mark.parametrize(("make", "classes"), [case for case in ALL if not str(case.id).startswith("boosting")])
def test_gaps_go_where_the_library_sends_them(make: Callable[[], Any], classes: int, trained: bool) -> None:
    """Also where another column is at a threshold, and where training saw none of that column."""
    fitted = learnt(make(), classes, trained)
    model = ensemble(fitted.estimator, gaps=True)
    assert model.takes_gaps
    ways = np.concatenate([tree.gap_left[tree.left >= 0] for tree in model.trees if tree.gap_left is not None])
    assert not trained or 0 < ways.mean() < 1
    points = emptied(around_thresholds(model))
    points[:50] = np.nan
    points[50:100, 4] = np.nan
    expected = fitted.raw(frame_of(points)).reshape(len(points), -1)
    assert np.abs(model.raw(points) - expected).max() <= max(model.rounding(0.0), 1e-12)


def zeros() -> tuple[Any, np.ndarray]:
    """LightGBM on tenths, of which it tells those below 0 from 0 itself; and numbers about its ends."""
    rng = np.random.default_rng(0)
    inputs = np.round(rng.normal(size=(400, 2)), 1)
    fitted = of("lightgbm", "LGBMClassifier", n_estimators=5, max_depth=3).fit(inputs, (inputs < 0).any(axis=1))
    near = float(np.float32(1e-35))
    ends = [sign * np.nextafter(near, to) for sign in (-1, 1) for to in (0, near, 1)] + [-near, near, 0.0, -1.0, 1.0]
    return fitted, np.array([(one, other) for one in ends for other in ends])


def test_what_lightgbm_takes_for_zero_is_zero() -> None:
    """All within 1e-35 of it, although its split below zero is at just that."""
    fitted, points = zeros()
    model = ensemble(fitted)
    assert any(-1e-30 < cut < 0 for tree in model.trees for cut in tree.threshold)
    np.testing.assert_allclose(model.raw(points)[:, 0], fitted.predict(points, raw_score=True), atol=1e-12)


def test_a_split_that_is_read_otherwise_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """By what the library says at the ends of leaves."""
    fitted, _ = zeros()
    monkeypatch.setattr(trees, "_cut", lambda threshold: threshold)
    with pytest.raises(UnsupportedError, match="do not add up to its own raw score"):
        ensemble(fitted)


@pytest.mark.parametrize("name", ["histogram", "lightgbm"])
def test_a_split_of_gaps_alone_has_no_threshold(name: str) -> None:
    """However large a number is, it goes with all others; LightGBM's dump calls any threshold beyond 1e300 that."""
    rng = np.random.default_rng(0)
    for size in (1.0, 1e305):
        inputs, gap = rng.normal(size=(300, COLUMNS)), rng.random(300) < 0.4
        inputs[:, 0] *= size
        inputs[gap, 0] = np.nan
        fitted = BINARY[name]().fit(inputs, gap ^ (inputs[:, 1] > 1))
        with pytest.raises(UnsupportedError, match="splits on missing values; train it on rows without any"):
            ensemble(fitted)
        points = np.repeat(inputs[:10], 6, axis=0)
        points[:, 0] = np.tile([-1e306, -2e300, 0.0, 2e300, 1e306, np.nan], 10)
        raw = Classifier(fitted, [Affine(f"x{k}") for k in range(COLUMNS)], (0, 1)).raw(frame_of(points))
        np.testing.assert_allclose(ensemble(fitted, gaps=True).raw(points)[:, 0], raw, atol=1e-12)


@pytest.mark.parametrize("make", BINARY.values(), ids=BINARY)
@pytest.mark.parametrize("threshold", [None, 0.3, 0.97])
def test_raw_thresholds_decide_as_the_model_does(make: Callable[[], Any], threshold: float | None) -> None:
    """Wherever the sum is beyond its rounding; and ``fast_decide`` always."""
    fitted = replace(learnt(make(), 2), threshold=threshold)
    model = ensemble(fitted.estimator)
    points = around_thresholds(model)
    decided = fitted.decide(points)
    score = model.raw(points)[:, 0] - fitted.raw_threshold
    clear = np.abs(score) > max(model.rounding(fitted.raw_threshold), 1e-9)
    assert clear.mean() > 0.9
    np.testing.assert_array_equal(score[clear] > 0, decided[clear] == 1)
    quick = fast_decide(fitted)
    np.testing.assert_array_equal(quick(points), decided)
    np.testing.assert_array_equal([quick(points[[k]])[0] for k in range(50)], decided[:50])


@pytest.mark.parametrize("integer", [True, False])
@pytest.mark.parametrize("unit", [0.37, -7.0])
def test_a_float64_split_is_decided_in_float64(unit: float, integer: bool) -> None:
    """The last decoded value before it goes one way, the next the other."""
    feature, source = Feature("a", "integer" if integer else "continuous"), Affine("a", 1.7, unit)
    for threshold in np.random.default_rng(0).normal(size=200) * 3:
        value = last_decoded(feature, source, float(threshold), single=False)
        following = value + 1 if integer else float(np.nextafter(value, np.inf))
        assert (source.of(value) <= threshold) == (unit > 0)
        assert (source.of(following) <= threshold) == (unit < 0)
        assert last_left(float(threshold), single=False) == threshold


def small(make: Callable[[], Any], kept: str = "free") -> Problem:
    """A model of the space that is enumerated."""
    frame, estimator = enumeration.rows(False), make()
    labels = enumeration.merit(frame) + np.random.default_rng(1).normal(0, 0.3, len(frame))
    base = enumeration.problem_of("gbm_regressor" if is_regressor(estimator) else "gbm", kept)
    inputs = enumeration.FREE.encode(frame)
    estimator.fit(inputs, labels if is_regressor(estimator) else labels > np.quantile(labels, 0.55))
    return replace(base, classifier=replace(base.classifier, estimator=estimator))


EXACT = {"search": CeOcl("l2sq", 0.1), "milp": CeOcl("l2sq", 0.1, engine="milp"), "boxes": CeOcl("l1", hull="hard")}
FAMILIES = ["tree", "extra trees", "histogram", "xgboost", "lightgbm"]


def searched(method: CeOcl, problem: Problem) -> str:
    """Which of the three exact ways the method takes."""
    engine = start(method, problem)
    if not isinstance(engine, ProgramEngine):
        assert isinstance(engine.search, CellSearch)
        return "search"
    return "milp" if engine.boxes is None else "boxes"


@pytest.mark.parametrize("engine", EXACT)
@pytest.mark.parametrize("name", FAMILIES)
def test_answers_are_the_best_of_all_points(name: str, engine: str) -> None:
    """Of every point of a small space; each is predicted as wanted by the estimator itself."""
    problem, method = small(BINARY[name], "increase"), EXACT[engine]
    assert searched(method, problem) == engine
    for factual in enumeration.factuals(problem, 2):
        enumeration.assert_optimal(method, problem, factual, 1 if engine == "boxes" else 2)


@pytest.mark.parametrize("engine", EXACT)
@pytest.mark.parametrize("name", ["histogram", "xgboost", "lightgbm"])
def test_numbers_may_be_wanted_too(name: str, engine: str) -> None:
    problem = small(NUMBERS[name])
    assert searched(EXACT[engine], problem) == engine
    enumeration.assert_optimal(EXACT[engine], problem, enumeration.factuals(problem, 2)[0])


@pytest.mark.parametrize("engine", ["search", "milp"])
@pytest.mark.parametrize("trees", [8, 60])
def test_float32_sums_at_the_threshold_are_the_model_s_to_judge(trees: int, engine: str) -> None:
    """A threshold that is the score of some points: the program's own sum of these is as often above it as below."""
    problem = small(lambda: of("xgboost", "XGBClassifier", **{**SIZE, "n_estimators": trees}))
    points = enumeration.points()
    scores = np.unique(problem.classifier.score(points))
    model, wrong = ensemble(problem.classifier.estimator), 0
    for threshold in scores[np.linspace(0.3 * len(scores), 0.9 * len(scores), 6).astype(int)]:
        fitted = replace(problem.classifier, threshold=float(threshold))
        asked = replace(problem, classifier=fitted)
        score = model.raw(fitted.matrix(points))[:, 0] - fitted.raw_threshold
        wrong += int(((score > 0) != (fitted.codes(points) == 1)).sum())
        for factual in enumeration.factuals(asked, 2):
            enumeration.assert_optimal(EXACT[engine], asked, factual)
    assert wrong


@pytest.mark.parametrize("name", ["histogram", "xgboost", "lightgbm"])
def test_one_of_several_classes_is_reached_by_the_program(name: str) -> None:
    """Proven, right, and no dearer than any point near by that is of the class."""
    fitted = learnt(SEVERAL[name](), 3)
    low, high = leads(fitted, 1e-6)
    assert high <= low <= 1e-6
    frame = enumeration.rows(False)
    merit = enumeration.merit(frame)
    estimator = SEVERAL[name]().fit(enumeration.FREE.encode(frame), np.digitize(merit, np.quantile(merit, [0.4, 0.7])))
    base = enumeration.problem_of("gbm")
    judge = replace(base.classifier, estimator=estimator, classes=("no", "yes", "maybe"))
    problem, method = replace(base, classifier=judge), CeOcl("l1")
    points = enumeration.points()
    raw = judge.raw(points)
    clear = problem.valid(points) & (raw[:, 1] - np.delete(raw, 1, axis=1).max(axis=1) > 1e-5)
    for factual in enumeration.factuals(problem, 3):
        answer = enumeration.ask(method, problem, factual).answers[0]
        assert answer.status is Status.OPTIMAL
        enumeration.assert_holds(method, problem, factual, answer)
        keep = clear & np.array([not faults for faults in problem.space.violations(factual, points)])
        values = method.objective(problem).evaluate(problem.space, factual, points[keep])
        assert answer.objective == pytest.approx(values.min(), abs=1e-6)


@pytest.mark.parametrize("name", BINARY)
def test_averages_and_only_they_tie(name: str) -> None:
    fitted = learnt(BINARY[name](), 2)
    assert ensemble(fitted.estimator).mean == (name in {"tree", "forest", "extra trees"})


NAN = np.where(np.random.default_rng(0).random((500, COLUMNS)) < 0.3, np.nan, rows()[0])
REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "histogram, poisson": (lambda: HistGradientBoostingRegressor(loss="poisson"), "squared_error"),
    "xgboost, dart": (lambda: of("xgboost", "XGBClassifier", booster="dart", **SIZE), "gbtree"),
    "xgboost, linear": (lambda: of("xgboost", "XGBClassifier", booster="gblinear"), "gbtree"),
    "xgboost, poisson": (lambda: of("xgboost", "XGBRegressor", objective="count:poisson", **SIZE), "squarederror"),
    "xgboost, zeros missing": (lambda: of("xgboost", "XGBClassifier", missing=0, **SIZE), "missing=nan"),
    "lightgbm, linear": (lambda: of("lightgbm", "LGBMClassifier", linear_tree=True, **SIZE), "linear_tree=False"),
    "lightgbm, zeros": (lambda: of("lightgbm", "LGBMClassifier", zero_as_missing=True, **SIZE), "zero_as_missing"),
    "lightgbm, poisson": (lambda: of("lightgbm", "LGBMRegressor", objective="poisson", **SIZE), "regression"),
    "lightgbm, root": (lambda: of("lightgbm", "LGBMRegressor", reg_sqrt=True, **SIZE), "regression"),
    "lightgbm, forest": (
        lambda: of("lightgbm", "LGBMClassifier", boosting_type="rf", subsample=0.5, subsample_freq=1, **SIZE),
        "gbdt",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_other_trees_are_refused_in_a_sentence(name: str) -> None:
    """By the reader, and so by every method; the sentence says what to do."""
    make, message = REFUSED[name]
    estimator = make()
    classes = 0 if is_regressor(estimator) else 2
    inputs, merit = rows()
    estimator.fit(inputs, merit - merit.min() + 1 if not classes else merit > 1)
    with pytest.raises(UnsupportedError, match=message) as fault:
        ensemble(estimator)
    assert "\n" not in str(fault.value)
    problem = enumeration.problem_of("gbm" if classes else "gbm_regressor")
    refused = CeOcl().refuses(replace(problem, classifier=replace(problem.classifier, estimator=estimator)))
    assert refused == str(fault.value)


def coded(codes: Sequence[int], count: int = 400) -> tuple[pd.DataFrame, np.ndarray]:
    """Rows of two categories by their codes and a number, and labels that depend on sets of codes."""
    rng = np.random.default_rng(3)
    frame = pd.DataFrame({
        "city": rng.choice(codes, count), "job": rng.choice([0, 1, 2, 3, 4], count), "age": rng.integers(0, 9, count)
    })  # fmt: skip
    merit = frame["city"].isin(codes[::2]) * 1.0 + frame["job"].isin([1, 3]) + frame["age"] / 8
    return frame, (merit + rng.normal(0, 0.3, count) > 1.4).to_numpy()


@pytest.mark.parametrize("codes", [[0, 1, 2, 3, 4, 5], [-7, 1, 2, 3, 10, 11, 40]], ids=str)
def test_sets_of_categories_become_thresholds(codes: list[int]) -> None:
    """Equal sums for every code, those that training never saw among them, in every order of the columns."""
    frame, labels = coded(codes)
    for order in (["city", "job", "age"], ["age", "city", "job"]):
        places = [order.index("city"), order.index("job")]
        estimator = HistGradientBoostingClassifier(categorical_features=places, max_iter=8, min_samples_leaf=5)
        estimator.fit(frame[order].to_numpy(float), labels)
        model = ensemble(estimator)
        assert any(p.nodes["is_categorical"].any() for stage in estimator._predictors for p in stage)
        grid = itertools.product(range(-9, 45), range(-1, 7), range(9))
        points = pd.DataFrame(grid, columns=frame.columns)[order].to_numpy(float)
        np.testing.assert_allclose(model.raw(points)[:, 0], estimator.decision_function(points), atol=1e-12)


@pytest.mark.parametrize("engine", ["search", "milp"])
def test_the_best_answer_of_boosting_with_categories_of_its_own(engine: str) -> None:
    """Against all points, one code of which training did not see."""
    frame, labels = coded(["a", "b", "c", "d", "e", "f"])
    steps = make_column_transformer(
        (OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1), ["city"]), remainder="passthrough"
    )
    boosted = HistGradientBoostingClassifier(categorical_features=[0, 1], max_iter=6, min_samples_leaf=5)
    model = make_pipeline(steps, boosted).fit(frame, np.where(labels, "yes", "no"))
    table = frame.assign(y=np.where(labels, "yes", "no"))
    table.loc[len(table)] = ["new", 2, 4, "no"]
    task = pose(table, "y", model, desired="yes", features={"city": {}, "job": {"kind": "categorical"}, "age": {}})
    (problem,) = task.problems.values()
    space = problem.space
    every = space.frame(
        dict(zip(space.names, row, strict=True))
        for row in itertools.product(*(f.categories or range(9) for f in space.features))
    )
    valid, method = every.loc[problem.valid(every)], CeOcl(engine=engine)
    for place in np.flatnonzero(~problem.valid(task.factuals))[[0, 1, 2, 3, -1]].tolist():
        answer = explain(method, task, place).answers[0]
        values = method.objective(problem).evaluate(space, task.factuals.iloc[[place]], valid)
        assert answer.status is Status.OPTIMAL
        assert answer.objective == pytest.approx(values.min(), abs=1e-6)


def test_categories_that_no_tree_splits_on_are_no_reason_to_refuse() -> None:
    """Declared ones come first in the fitted trees; the columns are put back."""
    inputs = rows()[0].copy()
    inputs[:, 3] = np.arange(len(inputs)) % 3
    estimator = HistGradientBoostingClassifier(categorical_features=[3], max_leaf_nodes=2, max_iter=3)
    estimator.fit(inputs, inputs[:, 2] > 1.2)
    np.testing.assert_allclose(ensemble(estimator).raw(inputs)[:, 0], estimator.decision_function(inputs), atol=1e-12)


@pytest.mark.parametrize("package", ["xgboost", "lightgbm"])
def test_training_rows_with_gaps_and_early_stopping_are_read(package: str) -> None:
    """A decoded row has no gap, so that it does not matter where those would go; rounds after the best are no part."""
    name = {"xgboost": "XGBClassifier", "lightgbm": "LGBMClassifier"}[package]
    inputs, merit = rows()
    points = inputs[:200]
    stop = {"early_stopping_rounds": 2, "n_estimators": 60, "max_depth": 3, "random_state": 0}
    for known in (inputs, NAN):
        estimator = of(package, name, **stop)
        quiet = {"verbose": False} if package == "xgboost" else {}
        estimator.fit(known[:300], merit[:300] > 1, eval_set=[(known[300:], merit[300:] > 1.1)], **quiet)
        model = ensemble(estimator)
        found = {"output_margin": True} if package == "xgboost" else {"raw_score": True}
        gap = np.abs(model.raw(points)[:, 0] - estimator.predict(points, **found)).max()
        assert gap <= max(model.rounding(0.0), 1e-12)


def test_a_library_that_stores_its_trees_otherwise_is_not_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the sum is not the library's own score, nothing is read."""
    fitted = learnt(HistGradientBoostingClassifier(**HISTOGRAM), 2).estimator
    monkeypatch.setattr(fitted, "_baseline_prediction", fitted._baseline_prediction + 0.1)
    monkeypatch.setattr(fitted, "decision_function", lambda points: np.zeros(len(points)))
    with pytest.raises(UnsupportedError, match="do not add up"):
        ensemble(fitted)


def test_optional_libraries_are_not_imported() -> None:
    """Reading any scikit-learn model needs neither."""
    code = (
        "import sys; from sklearn.tree import DecisionTreeClassifier;"
        "from methods.estimators.trees import ensemble; ensemble(DecisionTreeClassifier().fit([[0.], [1.]], [0, 1]));"
        "assert not {'xgboost', 'lightgbm'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], cwd=Path(__file__).parents[3], check=True)


CONF = Path(__file__).parents[3] / "conf"
LARGE: dict[str, Callable[[], Any]] = {
    "histogram": lambda: HistGradientBoostingClassifier(max_iter=40, max_depth=3, random_state=0),
    "xgboost": lambda: of("xgboost", "XGBClassifier", n_estimators=40, max_depth=3, random_state=0),
    "lightgbm": lambda: of("lightgbm", "LGBMClassifier", n_estimators=40, max_depth=3, random_state=0),
}


@pytest.mark.slow
@pytest.mark.parametrize("model", LARGE)
def test_on_real_data_search_and_program_agree(model: str) -> None:
    """Ten factuals: both proven, of the same cost, and predicted as wanted."""
    dataset = load_dataset(**OmegaConf.to_container(OmegaConf.load(CONF / "dataset" / "compas.yaml")))
    frame, labels = dataset.frame.iloc[dataset.train], dataset.labels[dataset.train]
    fitted = train(LARGE[model](), dataset.space, frame, labels, dataset.classes)
    question = tasks.make_task(dataset, fitted)
    (problem,) = question.problems.values()
    explainers = [CeOcl("l2sq", engine=engine).fit(problem) for engine in ("search", "milp")]
    for index in question.factuals.index[:10]:
        factual = question.factuals.loc[[index]]
        found = [e.explain(factual, 1, np.random.default_rng(0), Deadline.after(120.0)).answers[0] for e in explainers]
        assert all(answer.status in {Status.OPTIMAL, Status.INFEASIBLE} for answer in found)
        assert found[0].status is found[1].status
        if found[0].row is not None:
            assert found[0].objective == pytest.approx(found[1].objective, abs=1e-5)
            assert problem.valid(problem.space.frame([answer.row for answer in found])).all()
