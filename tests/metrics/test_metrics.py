"""Metrics against values worked by hand, against what must hold for any answers, and as the configs name them."""

from __future__ import annotations

import doctest
import gc
import sys
import weakref
from dataclasses import replace
from pathlib import Path
from random import Random

import numpy as np
import pandas as pd
import pytest
from hydra.utils import get_object
from hypothesis import given, settings
from hypothesis import strategies as st
from omegaconf import OmegaConf
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from harness.core.asked import Asked
from harness.core.classifier import Classifier
from harness.core.metric import TABLES, Metric
from harness.core.problem import Problem
from harness.core.space import Actionability, Feature, Space
from harness.core.target import Interval, Label, Probability
from harness.evaluation.contest import Contest, Criterion
from harness.models.equations import equations
from harness.models.retraining import CHANGES
from metrics import coverage, plausibility, retraining
from metrics._example import LABELS, SPACE, factual, problem, rows
from metrics._once import once
from metrics.robustness import DRAWS

CONFIGS = sorted(Path(__file__).parents[2].glob("conf/metrics/*.yaml"))
ALL = OmegaConf.load(next(path for path in CONFIGS if path.stem == "all"))
PATHS = [*ALL.names, *ALL.priced]
METRICS = {metric.name: metric for metric in map(get_object, PATHS)}
NEEDS_ANSWERS = sorted(METRICS.keys() - {"coverage/success_rate", "coverage/valid"})
PAIRS = [name for name in METRICS if "diversity" in name]

# Scaled changes of income, age, member, education, job, where MAD is 0.25 for both numbers:
# 0.5 0.25 0 0 0 (valid); 0 0.25 1 0.5 1 (not, and against the direction of age); 0.4 0 0 1 0 (valid).
ANSWERS = rows(
    (80.0, 40, "no", "school", "clerk"),
    (30.0, 20, "yes", "college", "nurse"),
    (70.0, 30, "no", "degree", "clerk"),
)
BY_HAND = {
    "coverage/success_rate": 1,
    "coverage/valid": 2,
    "mothilal/validity": 2 / 3,
    "mothilal/categorical_proximity": 1 - (0 + 1 + 1 / 3) / 3,
    "mothilal/continuous_proximity": -(60 + 10 + 40) / 3,
    "mothilal/sparsity": (3 / 5 + 1 / 5 + 3 / 5) / 3,
    "mothilal/categorical_diversity": (1 + 1 / 3 + 1) / 3,
    "mothilal/continuous_diversity": (70 + 20 + 50) / 3,
    "mothilal/sparsity_diversity": (1 + 3 / 5 + 1) / 3,
    "diversity/pairwise_gower": (3.5 + 1.35 + 3.15) / 5 / 3,
    "pso/proximity_cont": (1.5 + 0.5 + 0.8) / 3,
    "pso/proximity_cat": (0 + 1 + 1 / 3) / 3,
    "pso/proximity": (0.6 + 0.8 + 0.52) / 3,
    "pso/share_changed": (2 / 5 + 4 / 5 + 2 / 5) / 3,
    "pso/diversity": (1.4 + 0.48 + 1.12) / 3,
    "pso/normalised_diversity": 1 / 0.64,
    "pso/normalised_diversity_15": (1.4 / 1.4 + 0.48 / 1.12 + 1.12 / 1.32) / 3,
    "distance/l0": (2 + 4 + 2) / 3,
    "distance/l1": (0.75 + 2.75 + 1.4) / 3,
    "distance/l2": (0.3125**0.5 + 2.3125**0.5 + 1.16**0.5) / 3,
    "distance/linf": (0.5 + 1 + 1) / 3,
    "distance/gower": (0.75 + 2.75 + 1.4) / 15,
    "distance/cost": None,  # no feature has one of its own
    "actionability/violations": 1 / 3,
    "actionability/incoherent": 0,
    "actionability/relations": None,  # there are none
    "causality/residual": None,  # there are no equations
    "plausibility/ynn": 3 / 5,
    "plausibility/knn": (0.374 + 0.45 + 0.33) / 3,
    "plausibility/likelihood": 0,  # of the five features at most three are those of one row, of each row all five
    "robustness/invalidation_rate": 0,  # both valid answers stand at least 4 sigma from the split
    "robustness/region_validity": 1,
    "robustness/certified_radius_linf": (0.3 + 0.2) / 2,  # from the split at 50 to the first float32 beyond it
    "robustness/certified_radius_l2": (0.3 + 0.2) / 2,
    "robustness/delta_validity": None,  # a tree has no weights
    "robustness/certified_delta": None,
}

answer = st.tuples(
    st.one_of(st.just(30.0), st.floats(-50, 200)),
    st.integers(18, 90),
    st.sampled_from(SPACE["member"].categories),
    st.sampled_from(SPACE["education"].categories),
    st.sampled_from(SPACE["job"].categories),
)
some_answers = st.lists(answer, max_size=5).map(lambda drawn: rows(*drawn))


@pytest.mark.parametrize("name", BY_HAND)
def test_value_by_hand(name: str) -> None:
    """Three answers have the values that pencil and paper give."""
    rounding = 1e-7 if "certified" in name else 1e-12
    assert METRICS[name](factual, ANSWERS, problem) == pytest.approx(BY_HAND[name], abs=rounding)


@pytest.mark.parametrize("name", sorted(METRICS))
def test_numbers_in_an_interval_count_as_a_class(name: str) -> None:
    """A regression model that says 1 for granted and 0 for refused gives the values of that class."""
    granted = (LABELS == "granted").astype(float)
    tree = DecisionTreeRegressor(max_depth=1).fit(SPACE.encode(problem.train), problem.valid(problem.train))
    asked = Problem(SPACE, Classifier(tree, problem.classifier.inputs), problem.train, granted, Interval(0.5, 2.0))
    assert METRICS[name](factual, ANSWERS, asked) == METRICS[name](factual, ANSWERS, problem)


# Pairs of sets of answers, of which the first is better by what the metric is for.
GRANTED_ROW, FAR = (60.0, 30, "no", "school", "clerk"), (500.0, 18, "yes", "degree", "nurse")
LIKE_DATA, UNLIKE = (70.0, 40, "no", "college", "nurse"), (500.0, 90, "no", "school", "none")
NEARER, VARIED = ([GRANTED_ROW], [FAR]), ([GRANTED_ROW, FAR], [GRANTED_ROW, (61.0, 30, "no", "school", "clerk")])
BETTER = {
    "coverage/success_rate": ([GRANTED_ROW], [(40.0, 30, "no", "school", "clerk")]),
    "coverage/valid": ([GRANTED_ROW], [(40.0, 30, "no", "school", "clerk")]),
    "mothilal/validity": ([GRANTED_ROW], [(40.0, 30, "no", "school", "clerk")]),
    **{name: NEARER for name in METRICS if "proximity" in name or name.startswith("distance/l")},
    "distance/gower": NEARER,
    **dict.fromkeys(PAIRS, VARIED),
    "mothilal/sparsity": NEARER,
    "pso/share_changed": NEARER,
    "actionability/violations": NEARER,  # of the far one the age falls, which it may not
    **{name: ([LIKE_DATA], [UNLIKE]) for name in METRICS if name.startswith("plausibility/")},
    **{
        name: ([(90.0, 30, "no", "school", "clerk")], [(50.5, 30, "no", "school", "clerk")])
        for name in METRICS
        if name.startswith("robustness/") and "delta" not in name
    },
}


@pytest.mark.parametrize("name", BETTER)
def test_the_better_answers_have_the_better_value(name: str) -> None:
    """``better`` says on which side the value of a plainly better set of answers lies."""
    best, worst = (METRICS[name](factual, rows(*values), problem) for values in BETTER[name])
    assert best is not None
    assert worst is not None
    assert (best > worst) if METRICS[name].better == "higher" else (best < worst)


SHARES = {  # in [0, 1], radii by their limit; a distance may pass 1, as a point may leave the range of the data
    "coverage/success_rate", "mothilal/validity", "mothilal/categorical_proximity", "mothilal/sparsity",
    "mothilal/categorical_diversity", "mothilal/sparsity_diversity", "pso/proximity_cat", "pso/share_changed",
    "pso/normalised_diversity_15", "plausibility/ynn", "plausibility/likelihood", "robustness/invalidation_rate",
    "robustness/region_validity",
    "robustness/certified_radius_linf", "robustness/certified_radius_l2", "robustness/delta_validity",
    "robustness/certified_delta",
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(METRICS))
def test_a_share_lies_between_0_and_1(name: str) -> None:
    low, high = METRICS[name].range
    assert ((low, high) == (0.0, 1.0)) is (name in SHARES)
    assert (low, high) in ((0.0, 1.0), (0.0, np.inf), (-np.inf, 0.0))


def test_of_faults_fewer_are_better() -> None:
    faults = {"actionability/incoherent", "actionability/relations", "causality/residual"}
    undefined = {"distance/cost", "robustness/delta_validity", "robustness/certified_delta"}  # in the example
    assert METRICS.keys() - BETTER.keys() - undefined == faults
    assert {METRICS[name].better for name in faults} == {"lower"}


def test_tables_have_a_column_for_each_criterion() -> None:
    """From left to right; also for broken constraints, and but for the printed summary the radius of a box."""
    shown = sorted((metric for metric in METRICS.values() if metric.shown), key=lambda metric: metric.place)
    assert [metric.column for metric in shown] == [
        "cost", "proximity", "sparsity", "plausibility", "robustness", "diversity", "violations", "certified radius",
        "Δ-validity", "certified Δ",
    ]  # fmt: skip
    assert {metric.shown for metric in shown[:7]} == {TABLES}
    assert [metric.shown for metric in shown[7:]] == [("overview", "report"), ("report",), ("report",)]


def test_breaches_of_relations_by_hand() -> None:
    """The second answer studied and grew younger; the third studied, did not grow older, and earns above 2 * age."""
    told = ("if education increases then age increases", "income <= 2 * age")
    related = replace(problem, space=replace(SPACE, constraints=told))
    # Incomes 80, 30, 70 at ages 40, 20, 30: the first keeps to both, the second breaks one, the third both.
    assert METRICS["actionability/relations"](factual, ANSWERS, related) == pytest.approx((0 + 1 + 2) / 3)


def outlier_factor(data: np.ndarray, query: np.ndarray, k: int) -> float:
    """By its definition: the mean reachability density of a point's ``k`` neighbours over the point's own."""
    between, away = np.linalg.norm(data[:, None] - data[None], axis=2), np.linalg.norm(data - query, axis=1)
    near = between.argsort(axis=1)[:, 1 : k + 1]  # the first is the row itself
    reach = np.sort(between, axis=1)[:, k]
    density = 1 / np.array([np.maximum(between[i], reach)[near[i]].mean() for i in range(len(data))])
    nearest = np.argsort(away)[:k]
    return density[nearest].mean() * np.maximum(away, reach)[nearest].mean()


def test_lof_follows_its_definition() -> None:
    """Of fewer than 20 rows all the others are neighbours; of 30 those 20 that are nearest."""
    few = SPACE.encode(problem.train)[LABELS == "granted"]
    expected = outlier_factor(few, SPACE.encode(ANSWERS)[0], len(few) - 1)
    assert plausibility.lof(factual, ANSWERS.iloc[:1], problem) == pytest.approx(expected, rel=1e-6)
    incomes = np.random.default_rng(0).uniform(50, 100, 30)
    train = rows(*((income, 20 + place, "no", "school", "clerk") for place, income in enumerate(incomes)))
    many = replace_data(problem, train, np.full(30, "granted", dtype=object))
    expected = outlier_factor(SPACE.encode(train), SPACE.encode(ANSWERS)[0], 20)
    assert plausibility.lof(factual, ANSWERS.iloc[:1], many) == pytest.approx(expected, rel=1e-6)


def test_lof_of_a_gap_is_that_of_the_median() -> None:
    """Of wages of 0, 1, 8 and none, in tenths: the gap lies at .1, and by one unit apart in a column of its own."""
    space = Space((Feature("wage", "continuous", scale=(0.0, 10.0), missing=True),))
    train = space.frame({"wage": wage} for wage in (0.0, 1.0, 8.0, np.nan))
    asked = Problem(space, problem.classifier, train, np.full(4, "granted", dtype=object), Label("granted"))
    filled = np.array([[0.0, 0.0], [0.1, 0.0], [0.8, 0.0], [0.1, 1.0]])
    expected = outlier_factor(filled, filled[3], 3)
    assert plausibility.lof(train.iloc[[0]], train.iloc[[3]], asked) == pytest.approx(expected, rel=1e-6)


def test_lof_is_bounded_by_distinct_rows() -> None:
    """Copies of a training row change no density."""
    copies = np.r_[np.arange(8), np.full(30, 6)]
    repeated = replace_data(problem, problem.train.iloc[copies].reset_index(drop=True), LABELS[copies])
    assert plausibility.lof(factual, ANSWERS, repeated) == plausibility.lof(factual, ANSWERS, problem)


def test_lof_samples_large_data_reproducibly(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond the row limit a sample stands in, the same for every problem on the same data."""
    whole = plausibility.lof(factual, ANSWERS, problem)
    monkeypatch.setattr(plausibility, "LOF_ROWS", 4)
    first, again = replace_data(problem, problem.train, LABELS), replace_data(problem, problem.train, LABELS)
    value = plausibility.lof(factual, ANSWERS, first)
    assert value == plausibility.lof(factual, ANSWERS, again)
    assert value != whole


def test_ynn_follows_the_model_and_knn_the_labels() -> None:
    """Relabelling the training rows moves the neighbours of the desired class, not the model's verdict on them."""
    relabelled = replace_data(problem, problem.train, np.where(np.arange(8) == 6, "granted", "refused").astype(object))
    assert plausibility.ynn(factual, ANSWERS, relabelled) == plausibility.ynn(factual, ANSWERS, problem)
    assert plausibility.knn(factual, ANSWERS, relabelled) == pytest.approx((1.125 + 3.375 + 0.225) / 5 / 3)


def test_plausibility_without_desired_rows_is_undefined() -> None:
    """With no training row of the desired class there is no distance to it."""
    none = replace_data(problem, problem.train, np.full(8, "refused", dtype=object))
    assert plausibility.knn(factual, ANSWERS, none) is None
    assert plausibility.lof(factual, ANSWERS, none) is None
    assert plausibility.likelihood(factual, ANSWERS, none) is None


@pytest.mark.parametrize(
    ("target", "labels", "expected"),
    [
        (Label("b"), ["a", "b"], [False, True]),
        (Probability("a", 0.7), ["a", "b"], [True, False]),
        (Probability("a", 0.2, 0.3), ["a", "b"], [True, False]),
        (Probability("a", 0.0, 0.3), ["a", "b"], [False, True]),
        (Interval(2.0, 3.0), [2.0, 3.5], [True, False]),
    ],
    ids=["label", "probability", "between", "improbable", "interval"],
)
def test_desired_rows_of_each_target(target: Label, labels: list, expected: list[bool]) -> None:
    """The wanted label, that of the wanted probability (none of what is to be improbable), a number in the interval."""
    asked = Problem(SPACE, problem.classifier, problem.train.iloc[:2], np.array(labels), target)
    assert plausibility._labelled_desired(asked).tolist() == expected


def test_invalidation_rate_is_the_normal_tail() -> None:
    """An answer one sigma above the split fails as often as a normal draw falls below -1."""
    near = ANSWERS.iloc[:1].assign(income=55.0)
    rate = METRICS["robustness/invalidation_rate"](factual, near, problem)
    assert rate == pytest.approx(0.1587, abs=4 * (0.1587 * 0.8413 / DRAWS) ** 0.5)


def test_invalidation_rate_leaves_immutable_features_alone() -> None:
    """Noise on features that the model does not use never invalidates; with nothing to move there is no rate."""
    near = ANSWERS.iloc[:1].assign(income=55.0)
    rate = METRICS["robustness/invalidation_rate"]
    fixed = {"actionability": Actionability.IMMUTABLE}
    assert rate(factual, near, replace(problem, space=SPACE.replace({"income": fixed}))) == 0
    assert rate(factual, near, replace(problem, space=SPACE.replace({"income": fixed, "age": fixed}))) is None
    assert rate(factual, ANSWERS.iloc[[1]], problem) is None  # no valid answer


@pytest.mark.parametrize("name", NEEDS_ANSWERS)
def test_no_answers_no_value(name: str) -> None:
    """An average over nothing is undefined."""
    assert METRICS[name](factual, ANSWERS.iloc[:0], problem) is None


def test_what_does_not_exist_is_not_valid() -> None:
    """One of two, or all: they count as answers that are not."""
    unborn = ANSWERS.iloc[:1].assign(job="pirate")
    assert METRICS["mothilal/validity"](factual, unborn, problem) == 0.0
    assert METRICS["mothilal/validity"](factual, pd.concat([ANSWERS.iloc[:1], unborn]), problem) == 0.5


def test_one_row_answers_two_questions_twice() -> None:
    """Rows are counted once a question."""
    asked = Asked(problem, pd.concat([factual] * 2), pd.concat([ANSWERS.iloc[:1]] * 2), np.array([1, 1]))
    assert coverage.valid.measure(asked).tolist() == [METRICS["coverage/valid"](factual, ANSWERS.iloc[:1], problem)] * 2


def test_no_answers_no_success() -> None:
    """Coverage is defined without answers: 0."""
    for name in ("coverage/success_rate", "coverage/valid"):
        assert METRICS[name](factual, ANSWERS.iloc[:0], problem) == 0


@pytest.mark.parametrize("name", PAIRS)
def test_one_answer_no_diversity(name: str) -> None:
    """Diversity needs two answers."""
    assert METRICS[name](factual, ANSWERS.iloc[:1], problem) is None


@pytest.mark.parametrize("kept", [SPACE.names[:2], SPACE.names[2:]], ids=["numbers", "categories"])
def test_a_space_of_one_sort_of_feature(kept: tuple[str, ...]) -> None:
    """A metric of features that the space lacks is undefined, and the others take the features there are."""
    part = replace(problem, space=Space(tuple(SPACE[name] for name in kept)))
    lacking = ("categorical", "_cat") if "income" in kept else ("continuous", "_cont")
    for name in [name for name in METRICS if name.startswith(("mothilal", "pso", "distance"))]:
        value = METRICS[name](factual, ANSWERS, part)
        assert (value is None) == any(part in name for part in (*lacking, "distance/cost")), name


def test_answers_at_the_factual() -> None:
    """The factual itself is at distance 0, keeps every feature and differs from no copy of itself."""
    same = pd.concat([factual, factual], ignore_index=True)
    values = {name: metric(factual, same, problem) for name, metric in METRICS.items()}
    for name in ("l0", "l1", "l2", "linf", "gower"):
        assert values[f"distance/{name}"] == 0
    for name in ("proximity_cont", "proximity_cat", "proximity", "share_changed", "diversity"):
        assert values[f"pso/{name}"] == 0
    for name in ("continuous_proximity", "categorical_diversity", "continuous_diversity", "sparsity_diversity"):
        assert values[f"mothilal/{name}"] == 0
    assert values["mothilal/sparsity"] == values["mothilal/categorical_proximity"] == 1
    assert values["actionability/violations"] == values["mothilal/validity"] == values["coverage/success_rate"] == 0
    assert values["pso/normalised_diversity"] is values["pso/normalised_diversity_15"] is None  # 0 / 0


@given(some_answers)
@settings(max_examples=60, deadline=None)
def test_values_stay_in_range(answers: pd.DataFrame) -> None:
    """Every value lies in the range that its metric declares."""
    for name, metric in METRICS.items():
        value = metric(factual, answers, problem)
        assert value is None or metric.range[0] <= value <= metric.range[1], name


@given(some_answers, st.randoms(use_true_random=False))
@settings(max_examples=30, deadline=None)
def test_order_of_answers_does_not_matter(answers: pd.DataFrame, random: Random) -> None:
    """A set of answers has one value, in whatever order they come."""
    order = random.sample(range(len(answers)), len(answers))
    for name, metric in METRICS.items():
        value = metric(factual, answers, problem)
        assert metric(factual, answers.iloc[order], problem) == (value if value is None else pytest.approx(value)), name


@given(some_answers)
@settings(max_examples=20, deadline=None)
def test_inputs_are_left_alone(answers: pd.DataFrame) -> None:
    """No metric changes the factual, the answers or the training data."""
    given_ = [frame.copy(deep=True) for frame in (factual, answers, problem.train)]
    labels, encoded = problem.labels.copy(), problem.encoded.copy()
    for metric in METRICS.values():
        metric(factual, answers, problem)
    for before, after in zip(given_, (factual, answers, problem.train), strict=True):
        pd.testing.assert_frame_equal(before, after)
    assert (labels == problem.labels).all()
    assert (encoded == problem.encoded).all()


def test_work_per_problem_is_done_once_and_dies_with_it() -> None:
    """What is kept for a problem is built once, apart from other problems', and freed with the problem."""
    kept_once = once(lambda asked: np.zeros(len(asked.train)))
    first, second = replace_data(problem, problem.train, LABELS), replace_data(problem, problem.train, LABELS)
    assert kept_once(first) is kept_once(first)
    assert kept_once(first) is not kept_once(second)
    kept = weakref.ref(kept_once(first))
    del first
    gc.collect()
    assert kept() is None


@pytest.mark.parametrize("config", CONFIGS, ids=lambda path: path.stem)
def test_config_names_documented_metrics(config: Path) -> None:
    """Each dotted path is a metric, once, under its own name, whose docstring holds an example that doctest finds."""
    names = OmegaConf.load(config).names
    assert len(set(names)) == len(names)
    for path in names:
        metric = get_object(path)
        assert isinstance(metric, Metric)
        module, _, attribute = path.rpartition(".")
        assert metric.name.split("/")[1] == attribute
        found = {test.name: test for test in doctest.DocTestFinder().find(sys.modules[module])}
        assert found[path].examples, path


def test_config_all_leaves_none_out() -> None:
    """Every metric is in ``all``, or of retraining in ``model_change`` or ``proplace``; none share a name."""
    modules = [sys.modules[name] for name in sorted({path.rpartition(".")[0] for path in PATHS})]
    defined = {
        f"{module.__name__}.{name}"
        for module in modules
        for name, value in vars(module).items()
        if isinstance(value, Metric)
    }
    assert defined == set(PATHS)
    assert len(METRICS) == len(PATHS)
    files = {path.stem for path in Path(plausibility.__file__).parent.glob("[!_]*.py")}
    assert files == {module.__name__.split(".")[1] for module in modules} | {"retraining"}
    again = {f"{retraining.__name__}.{name}" for name, value in vars(retraining).items() if isinstance(value, Metric)}
    changes = [OmegaConf.load(path).names for path in CONFIGS if path.stem in {"model_change", "proplace"}]
    assert again == {name for names in changes for name in names if name.startswith(retraining.__name__)}


class _One:
    """A single other model for one change, which grants incomes below 10 alone; none for any other change."""

    def __init__(self, change: str) -> None:
        tree = DecisionTreeClassifier(max_depth=1).fit(SPACE.encode(problem.train), np.arange(8) < 1)
        self.change, self.other = change, replace(problem.classifier, estimator=tree)

    def models(self, change: str) -> tuple[Classifier, ...]:
        return (self.other,) if change == self.change else ()


@pytest.mark.parametrize("change", CHANGES)
def test_each_change_of_training_has_its_own_metric(change: str) -> None:
    """It asks for the models of the change that it is named by; without an answer that is valid there is no share."""
    asked = replace(problem, classifier=replace(problem.classifier, retraining=_One(change)))
    shares = {name: getattr(retraining, name)(factual, ANSWERS, asked) for name in CHANGES}
    assert shares == {name: 0.0 if name == change else None for name in CHANGES}
    assert getattr(retraining, change)(factual, ANSWERS.iloc[:0], asked) is None
    assert getattr(retraining, change)(factual, ANSWERS.iloc[[1]], asked) is None  # not valid
    assert getattr(retraining, change)(factual, ANSWERS, problem) is None  # it is not known how it was trained


@pytest.mark.parametrize("change", CHANGES)
def test_who_stays_valid_for_more_models_is_first(change: str) -> None:
    """For all of them against half of them, in each of twelve questions."""
    values = pd.DataFrame({"a": [1.0] * 12, "b": [0.5] * 12})
    criterion = Criterion(change, f"retraining/{change}", getattr(retraining, change).better)
    assert Contest("d / m", criterion, values, values.notna()).places == {"a": 1, "b": 2}


def test_residuals_of_several_equations_are_summed() -> None:
    """Ten years more imply an income of 50 and a rent of 30: 80 and 20 are .3 above and .1 below, .4 together."""
    space = Space(tuple(Feature(name, "continuous", scale=(0.0, 100.0)) for name in ("income", "rent", "age")))
    both = space.frame([{"income": 30, "rent": 20, "age": 30}, {"income": 80, "rent": 20, "age": 40}])
    told = equations(space, both, {"income": {"formula": "2 * age"}, "rent": {"formula": "age"}})
    asked = replace(problem, space=space, train=both, equations=told)
    assert METRICS["causality/residual"](both.iloc[[0]], both.iloc[[1]], asked) == pytest.approx(0.4)


def test_each_metric_has_a_value_by_hand() -> None:
    """Every metric is checked by hand; the outlier factor in a test of its own."""
    assert BY_HAND.keys() | {"plausibility/lof"} == METRICS.keys()


def replace_data(asked: Problem, train: pd.DataFrame, labels: np.ndarray) -> Problem:
    """The same question over other training rows."""
    return Problem(asked.space, asked.classifier, train, labels, asked.target)
