"""What is known of a pipeline's inside is what scikit-learn's own steps do, to the last bit."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.compose import ColumnTransformer, make_column_selector, make_column_transformer
from sklearn.decomposition import PCA
from sklearn.ensemble import GradientBoostingClassifier, HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.feature_selection import SelectKBest, VarianceThreshold
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, Ridge, RidgeClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    KBinsDiscretizer,
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    RobustScaler,
    StandardScaler,
)
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier

from harness.core.classifier import Classifier, WrappedModel
from harness.core.errors import HarnessError, UnsupportedError
from harness.core.explanation import Status
from harness.core.inputs import Affine, Chain, Indicator
from harness.core.method import Deadline
from harness.core.problem import Problem
from harness.core.space import Feature, Kind, Space
from harness.core.target import Label
from harness.evaluation.checker import permitted
from harness.models import pipeline
from harness.models.adopt import assemble
from methods.ce_ocl import CeOcl
from methods.estimators.thresholds import last_decoded

SPACE = Space(
    (
        Feature("income", "continuous", scale=(0.0, 100.0), bounds=(0.0, 100.0)),
        Feature("debt", "continuous", scale=(-3e4, 2e-3), bounds=(-3e4, 2e-3)),
        Feature("age", "integer", scale=(18, 80), bounds=(18, 80)),
        Feature("grade", "ordinal", ("low", "mid", "high")),
        Feature("stars", "ordinal", (1, 2, 3, 4, 5)),
        Feature("city", "categorical", ("Bonn", "Köln", "Rom", "Ulm", "Wien")),
        Feature("member", "binary", (False, True)),
        Feature("owner", "binary", ("no", "yes")),
    )
)
NUMBERS, TEXTS = ["income", "debt", "age", "stars"], ["grade", "city", "owner"]


def rows(count: int, seed: int) -> pd.DataFrame:
    """Random points; of the texts some values are rare."""
    rng = np.random.default_rng(seed)
    data: list[dict[str, Any]] = []
    for _ in range(count):
        row: dict[str, Any] = {}
        for feature in SPACE.features:
            if feature.kind is Kind.CONTINUOUS:
                row[feature.name] = float(rng.uniform(*feature.bounds))
            elif feature.kind is Kind.INTEGER:
                row[feature.name] = int(rng.integers(18, 81))
            else:
                share = np.arange(len(feature.categories), 0, -1.0) ** 3
                row[feature.name] = feature.categories[rng.choice(len(share), p=share / share.sum())]
        data.append(row)
    return SPACE.frame(data)


def as_read(frame: pd.DataFrame) -> pd.DataFrame:
    """The frame as pandas reads it from a CSV: its own type of text, true and false as bool."""
    return frame.astype({"member": bool, **dict.fromkeys(TEXTS, "str")})


def gaps(frame: pd.DataFrame) -> pd.DataFrame:
    """The frame with some values missing, as a model's training data may be."""
    holes = np.random.default_rng(9).random(frame.shape) < 0.1
    return frame.mask(holes)


def labels(frame: pd.DataFrame) -> np.ndarray:
    merit = frame["income"] / 50 + frame["age"] / 40 + (frame["city"] == "Ulm") + (frame["grade"] == "high")
    return np.where(merit > np.median(merit), "good", "bad").astype(object)


def plain(**options: Any) -> OneHotEncoder:
    return OneHotEncoder(**{"sparse_output": False, **options})


STEPS: dict[str, Callable[[], Any]] = {
    "min-max": lambda: make_column_transformer((MinMaxScaler(), NUMBERS), (plain(), TEXTS)),
    "min-max to (-1, 3), others passed on": lambda: ColumnTransformer(
        [("n", MinMaxScaler((-1, 3)), NUMBERS), ("c", plain(), TEXTS)], remainder="passthrough"
    ),
    "standard": lambda: make_column_transformer((StandardScaler(), NUMBERS), (plain(drop="first"), TEXTS)),
    "standard without mean": lambda: make_column_transformer((StandardScaler(with_mean=False), NUMBERS)),
    "standard without deviation": lambda: make_column_transformer((StandardScaler(with_std=False), NUMBERS)),
    "standard without either": lambda: make_column_transformer(
        (StandardScaler(with_std=False, with_mean=False), NUMBERS)
    ),
    "robust": lambda: make_column_transformer((RobustScaler(), NUMBERS), (plain(drop="if_binary"), TEXTS)),
    "robust, centred only": lambda: make_column_transformer((RobustScaler(with_scaling=False), NUMBERS)),
    "largest": lambda: make_column_transformer((MaxAbsScaler(), NUMBERS), (plain(drop=["low", "Rom", "no"]), TEXTS)),
    "by position": lambda: make_column_transformer((MinMaxScaler(), [2, 0]), (plain(), slice(5, 6)), ("drop", [1])),
    "by name's slice": lambda: make_column_transformer((StandardScaler(), slice("income", "age"))),
    "by type": lambda: make_column_transformer(
        (StandardScaler(), make_column_selector(dtype_include=np.number)),
        (OneHotEncoder(), make_column_selector(dtype_exclude=np.number)),
    ),
    "a rest with its own steps": lambda: ColumnTransformer(
        [("c", plain(), [*TEXTS, "member"])], remainder=make_pipeline(MinMaxScaler(), StandardScaler())
    ),
    "sparse, scaled": lambda: make_pipeline(
        make_column_transformer((MinMaxScaler(), NUMBERS), (OneHotEncoder(), TEXTS), sparse_threshold=1.0),
        StandardScaler(with_mean=False),
        MaxAbsScaler(),
    ),
    "dense, scaled": lambda: make_pipeline(
        make_column_transformer((RobustScaler(), NUMBERS), (OneHotEncoder(), TEXTS), sparse_threshold=0.0),
        StandardScaler(),
        MinMaxScaler(),
        MaxAbsScaler(),
    ),
    "clipped": lambda: make_pipeline(
        make_column_transformer((plain(), TEXTS), (OrdinalEncoder(), ["stars"])), MinMaxScaler(clip=True)
    ),
    "rare ones together": lambda: make_column_transformer(
        (plain(min_frequency=0.12), TEXTS), (MinMaxScaler(), ["age"])
    ),
    "few, the first dropped": lambda: make_column_transformer(
        (plain(max_categories=3, drop="first", handle_unknown="infrequent_if_exist"), TEXTS)
    ),
    "ranks": lambda: make_column_transformer(
        (OrdinalEncoder(categories=[["low", "mid", "high"]]), ["grade"]),
        (OrdinalEncoder(), ["city", "stars", "member"]),
    ),
    "rare ranks": lambda: make_pipeline(
        make_column_transformer((OrdinalEncoder(min_frequency=0.12), TEXTS)), StandardScaler()
    ),
    "imputed": lambda: make_column_transformer(
        (make_pipeline(SimpleImputer(strategy="median", add_indicator=True), StandardScaler()), NUMBERS),
        (make_pipeline(SimpleImputer(strategy="most_frequent"), plain(handle_unknown="ignore")), TEXTS),
    ),
    "replaced": lambda: make_column_transformer(
        (make_pipeline(SimpleImputer(missing_values="Ulm", strategy="constant", fill_value="Rom"), plain()), ["city"])
    ),
    "selected": lambda: make_pipeline(
        make_column_transformer((MinMaxScaler(), NUMBERS), (OneHotEncoder(), TEXTS)),
        VarianceThreshold(0.01),
        SelectKBest(k=6),
        "passthrough",
        FunctionTransformer(),
    ),
    "united": lambda: FeatureUnion(
        [
            ("a", make_column_transformer((StandardScaler(), NUMBERS))),
            ("b", make_column_transformer((OneHotEncoder(), TEXTS))),
        ],
        transformer_weights={"a": 0.3},
    ),
    "weighted": lambda: ColumnTransformer(
        [("a", StandardScaler(), NUMBERS), ("b", plain(), TEXTS)], transformer_weights={"a": 0.1, "b": 3.0}
    ),
    "columns of columns": lambda: make_pipeline(
        make_column_transformer((StandardScaler(), NUMBERS), (plain(), TEXTS)).set_output(transform="pandas"),
        make_column_transformer(
            (MinMaxScaler(), ["standardscaler__age", "onehotencoder__city_Ulm"]), remainder="passthrough"
        ),
    ),
}


@cache
def fitted(steps: str) -> Any:
    frame = as_read(rows(150, seed=1))
    return STEPS[steps]().fit(gaps(frame) if steps == "imputed" else frame, labels(frame))


def inside(transformer: Any, estimator: Any = None) -> Classifier:
    """Steps and an estimator fitted after them, as a classifier on the estimator's own inputs."""
    frame = as_read(rows(150, seed=1))
    last = (estimator or LogisticRegression()).fit(transformer.transform(frame), labels(frame))
    model = Pipeline([("steps", transformer), ("last", last)])
    found, inputs, faults, opaque = pipeline.describe(model, SPACE, SPACE.names)[:4]
    assert opaque is None
    assert faults == []
    return Classifier(found, inputs, ("bad", "good"), labels=("bad", "good"))


def dense(values: Any) -> np.ndarray:
    return np.asarray(values.toarray() if sparse.issparse(values) else values, dtype=float)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("steps", STEPS)
def test_inputs_are_what_the_steps_give(steps: str) -> None:
    """Equal to the last bit, for whole frames and for single rows."""
    transformer = fitted(steps)
    known, frame = inside(transformer), rows(80, seed=10)
    expected = dense(transformer.transform(as_read(frame)))
    np.testing.assert_array_equal(known.matrix(frame), expected)
    for place in range(5):
        row = frame.iloc[place].to_dict()
        np.testing.assert_array_equal(known.vector(row)[0], expected[place])


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("steps", STEPS)
def test_a_chain_is_the_affine_map_it_says(steps: str) -> None:
    """``shift`` and ``unit`` give what the steps give, up to rounding."""
    frame = rows(30, seed=4)
    for source in inside(fitted(steps)).inputs:
        if isinstance(source, Chain):
            values = frame[source.feature].to_numpy(float)
            stepwise = source(frame[source.feature])
            np.testing.assert_allclose((values - source.shift) / source.unit, stepwise, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("steps", ["min-max", "standard", "dense, scaled", "sparse, scaled"])
@pytest.mark.parametrize("name", ["income", "debt"])
def test_a_threshold_lies_where_the_tree_has_it(steps: str, name: str) -> None:
    """The last float left of a split is left of it by scikit-learn's steps and tree, the next one is right of it."""
    transformer = fitted(steps)
    known = inside(transformer, DecisionTreeClassifier(max_depth=6, random_state=0))
    tree = known.estimator.tree_
    frame, checked = rows(1, seed=3), 0
    for column, source in enumerate(known.inputs):
        if source.feature != name or not isinstance(source, Affine):
            continue
        split = [float(t) for t, c in zip(tree.threshold, tree.feature, strict=True) if c == column]
        for threshold in [*split, *np.linspace(-0.9, 0.9, 15)]:
            end = last_decoded(SPACE[name], source, threshold)
            near = [end]
            for _ in range(3):
                near = [np.nextafter(near[0], -np.inf), *near, np.nextafter(near[-1], np.inf)]
            many = pd.concat([frame] * len(near), ignore_index=True).assign(**{name: near})
            made = dense(transformer.transform(as_read(many)))
            np.testing.assert_array_equal(known.matrix(many), made)
            left = made[:, column].astype(np.float32).astype(float) <= threshold
            assert left.tolist() == [True] * 4 + [False] * 3
            checked += 1
    assert checked >= 15


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_unknown_categories_are_no_category() -> None:
    """A category that training lacked is an input of zeros, of the rare ones' group, or the number set for it."""
    frame = as_read(rows(150, seed=1))
    seen = frame[frame["city"] != "Wien"]
    for encoder in (
        plain(handle_unknown="ignore"),
        plain(handle_unknown="ignore", drop="first"),
        plain(handle_unknown="infrequent_if_exist", min_frequency=20),
        OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-7),
    ):
        steps = make_column_transformer((encoder, ["city"])).fit(seen)
        np.testing.assert_array_equal(inside(steps).matrix(rows(150, seed=1)), dense(steps.transform(frame)))


def test_rare_categories_are_one_indicator() -> None:
    """The group of rare categories is an input of several levels."""
    levels = [source.levels for source in inside(fitted("rare ones together")).inputs if isinstance(source, Indicator)]
    assert any(len(listed) > 1 for listed in levels)


OPAQUE = [
    (PCA(3), "step 'first' (PCA) is neither affine"),
    (PolynomialFeatures(2), "PolynomialFeatures"),
    (FunctionTransformer(np.abs), "runs a function of its own"),
    (KBinsDiscretizer(4), "dataset.discretise=quantile"),
    (SimpleImputer(missing_values=-1), "takes -1 for a missing value, and income may hold that"),
    (MinMaxScaler(clip=True), "clips income, which may be from 0 to 100"),
    (OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1), "features.income.kind=categorical"),
]


@pytest.mark.parametrize(("transformer", "sentence"), OPAQUE, ids=lambda value: type(value).__name__)
def test_what_cannot_be_looked_into_is_named(transformer: Any, sentence: str) -> None:
    """The step and the reason; the model's predictions are of use all the same."""
    frame = as_read(rows(150, seed=1))
    model = Pipeline([("first", transformer), ("last", DecisionTreeClassifier())]).fit(
        frame[["income", "debt", "age"]], labels(frame)
    )
    _, inputs, faults, opaque = pipeline.describe(model, SPACE, ("income", "debt", "age"))[:4]
    assert faults == []
    assert inputs == ()
    assert opaque is not None
    assert sentence in opaque


@pytest.mark.parametrize(("ends", "scaled"), [((0.0, 1.0), False), ((-3.0, 0.7), False), ((-3.0, 0.7), True)])
def test_what_only_rounding_takes_beyond_the_clip_is_cut_there(ends: tuple[float, float], scaled: bool) -> None:
    """An end of the data may be computed as 1.0000000000000002, or as -1e-17, which clip=True cuts."""
    cut = 0
    for low, high in itertools.product(range(1, 4), range(6, 80)):
        space = Space((Feature("n", "integer", scale=(low, high), bounds=(low, high)),))
        frame = space.frame([{"n": value} for value in range(low, high + 1)])
        scaler = MinMaxScaler(ends, clip=True)
        steps = make_pipeline(StandardScaler(), scaler) if scaled else scaler
        made = steps.fit_transform(frame)
        model = make_pipeline(steps, LogisticRegression()).fit(frame, frame["n"] > (low + high) / 2)
        _, inputs, _, opaque = pipeline.describe(model, space, space.names)[:4]
        assert opaque is None, (low, high)
        assert (inputs[0](frame["n"]) == made[:, 0]).all()
        assert [inputs[0].of(value) for value in frame["n"]] == made[:, 0].tolist()
        scaler.set_params(clip=False)
        cut += int((steps.transform(frame) != made).any())
    assert cut > 5


SMALL = Space(
    (
        Feature("age", "integer", scale=(0, 6), bounds=(0, 6)),
        Feature("debt", "integer", scale=(0, 5), bounds=(0, 5), actionability="decrease"),
        Feature("member", "binary", (False, True)),
        Feature("grade", "ordinal", ("low", "mid", "high")),
        Feature("region", "categorical", ("n", "s", "w")),
    )
)
ALL = SMALL.frame(
    dict(zip(SMALL.names, values, strict=True))
    for values in itertools.product(range(7), range(6), (False, True), ("low", "mid", "high"), ("n", "s", "w"))
)
LAST: dict[str, Any] = {
    "lr": LogisticRegression(),
    "ridge": RidgeClassifier(),
    "svm": LinearSVC(),
    "cart": DecisionTreeClassifier(max_depth=4, random_state=0),
    "rf": RandomForestClassifier(6, max_depth=3, random_state=0),
    "gbm": GradientBoostingClassifier(n_estimators=6, max_depth=2, random_state=0),
    "hgb": HistGradientBoostingClassifier(max_iter=6, max_depth=2, random_state=0, min_samples_leaf=5),
    "mlp": MLPClassifier((6,), max_iter=2000, learning_rate_init=0.03, random_state=0),
}


@cache
def small(last: str, classes: int = 2, threshold: float | None = None) -> Classifier:
    """A pipeline on the small space, as it is read from a file."""
    frame = ALL.sample(160, random_state=2)
    merit = frame["age"] - frame["debt"] + 2.0 * frame["member"].astype(float) + 3 * (frame["region"] == "w")
    merit += 2 * (frame["grade"] == "high") + np.random.default_rng(0).normal(size=len(frame))
    target = np.digitize(merit, np.quantile(merit, np.linspace(0, 1, classes + 1)[1:-1]))
    steps = make_column_transformer(
        (make_pipeline(SimpleImputer(), StandardScaler()), ["debt", "age"]),
        (OneHotEncoder(drop="first", sparse_output=False), ["region"]),
        (OrdinalEncoder(categories=[["low", "mid", "high"], [False, True]]), ["grade", "member"]),
    )
    read = frame.astype({"member": bool})
    model = make_pipeline(steps, StandardScaler(), clone(LAST[last])).fit(read, np.array(list("abc"))[target])
    names = ("bad", "good", "best")[:classes]
    whole = WrappedModel(model, SMALL.names, ("member",))
    return assemble(whole, SMALL, names, tuple("abc"[:classes]), threshold, ALL)


def assert_best(known: Classifier, wanted: str, method: CeOcl, count: int = 4) -> None:
    """CE-OCL's answers are the best of all points, and are proven to be."""
    assert known.opaque is None
    problem = Problem(SMALL, known, ALL, known.predict(ALL), Label(wanted))
    valid = problem.valid(ALL)
    predicted = known.wrapped.model.predict(ALL.astype({"member": bool}))  # type: ignore[union-attr]
    if known.threshold is None:
        np.testing.assert_array_equal(valid, predicted == dict(zip(known.classes, known.labels, strict=True))[wanted])
    claim, explainer = method.objective(problem), method.fit(problem)
    for row in np.flatnonzero(~valid)[:: max(1, (~valid).sum() // count)][:count]:
        factual = ALL.iloc[[row]]
        origin = factual.iloc[0].to_dict()
        may = [all(permitted(f, origin[f.name], r[f.name]) for f in SMALL.features) for r in ALL.to_dict("records")]
        some = valid & np.array(may)
        (answer,) = explainer.explain(factual, 1, np.random.default_rng(0), Deadline.after(60)).answers
        if not some.any():
            assert answer.status is Status.INFEASIBLE
            continue
        assert answer.status is Status.OPTIMAL
        best = claim.evaluate(SMALL, factual, ALL[some]).min()
        assert answer.objective == pytest.approx(best, abs=1e-6)
        assert problem.valid(SMALL.frame([answer.row]))[0]  # type: ignore[list-item]


@pytest.mark.parametrize("wanted", ["good", pytest.param("bad", marks=pytest.mark.slow)])
@pytest.mark.parametrize("last", LAST)
def test_the_answer_is_the_best_of_all_points(last: str, wanted: str) -> None:
    """Of a space whose points can be listed, judged by the whole pipeline."""
    assert_best(small(last), wanted, CeOcl())


@pytest.mark.parametrize("last", ["lr", "rf"])
def test_the_answer_is_the_best_at_a_threshold(last: str) -> None:
    assert_best(small(last, threshold=0.7), "good", CeOcl(), count=2)


@pytest.mark.parametrize("last", ["lr", "rf"])
def test_the_answer_is_the_best_of_one_class_of_three(last: str) -> None:
    assert_best(small(last, classes=3), "good", CeOcl(), count=2)


def test_a_model_that_cannot_be_embedded_is_refused() -> None:
    """A pipeline that is known up to its last step, but no program can hold that."""
    frame = ALL.sample(100, random_state=2)
    model = make_pipeline(make_column_transformer((StandardScaler(), ["age", "debt"])), SVC()).fit(
        frame, np.where(frame["age"] > 3, "good", "bad")
    )
    known = assemble(WrappedModel(model, SMALL.names), SMALL, ("bad", "good"), ("bad", "good"), None, ALL)
    assert known.opaque is None
    refusal = CeOcl().refuses(Problem(SMALL, known, ALL, known.predict(ALL), Label("good")))
    assert refusal is not None
    assert "SVC" in refusal


def test_boosting_that_takes_texts_is_of_use_to_who_only_asks() -> None:
    """Its own encoder stands within the estimator: predictions are to be had, and the advice fits a pipeline."""
    frame = as_read(rows(150, seed=1))[["city", "age"]]
    model = HistGradientBoostingClassifier(max_iter=3, categorical_features=["city"]).fit(frame, labels(rows(150, 1)))
    space = Space((SPACE["city"], SPACE["age"]))
    _, inputs, faults, opaque = pipeline.describe(model, space, space.names)[:4]
    assert (inputs, faults) == ((), [])
    assert opaque is not None
    assert "put an OrdinalEncoder before it in a pipeline" in opaque


def test_an_opaque_model_is_refused_with_its_reason() -> None:
    """By the methods that look inside; in every engine."""
    frame = ALL.sample(100, random_state=2)
    steps = make_column_transformer((StandardScaler(), ["age", "debt"]))
    model = make_pipeline(steps, PCA(1), RandomForestClassifier(3)).fit(frame, np.where(frame["age"] > 3, "y", "n"))
    known = assemble(WrappedModel(model, SMALL.names), SMALL, ("bad", "good"), ("n", "y"), None, ALL)
    problem = Problem(SMALL, known, ALL, known.predict(ALL), Label("good"))
    for engine in ("auto", "search", "milp"):
        assert "step 'pca' (PCA)" in (CeOcl(engine=engine).refuses(problem) or "")
    assert set(known.predict(ALL)) == {"bad", "good"}


class Biased(StandardScaler):
    """A scaler that does something else than it says."""

    def transform(self, X: Any, copy: bool | None = None) -> Any:
        return super().transform(X, copy) + 1.0


def test_a_step_that_does_other_than_its_kind_makes_the_model_opaque() -> None:
    """What is known of the steps is compared with what they do, on all rows."""
    frame = ALL.sample(100, random_state=2)
    model = make_pipeline(make_column_transformer((Biased(), ["age", "debt"])), LogisticRegression())
    model.fit(frame, np.where(frame["age"] > 3, "good", "bad"))
    known = assemble(WrappedModel(model, SMALL.names), SMALL, ("bad", "good"), ("bad", "good"), None, ALL)
    assert known.opaque is not None
    assert "other values of age" in known.opaque


def test_what_cannot_be_read_is_listed() -> None:
    """All of it, in one sentence: text for numbers, numbers for text, categories not seen."""
    frame = ALL.sample(100, random_state=2)
    odd = frame.assign(region=1.0, debt="x", grade=frame["grade"].replace("high", "tall"))
    steps = make_column_transformer((StandardScaler(), ["region", "age"]), (plain(), ["debt", "grade"]))
    model = make_pipeline(steps, LogisticRegression()).fit(odd, np.where(frame["age"] > 3, "good", "bad"))
    with pytest.raises(HarnessError) as fault:
        assemble(WrappedModel(model, SMALL.names), SMALL, ("bad", "good"), ("bad", "good"), None, ALL, "loans")
    for part in ("'region' holds text (n, s, w)", "'debt' holds numbers", "'grade' has the categories 'high'"):
        assert part in str(fault.value)


def test_a_regression_model_is_looked_into() -> None:
    """Its prediction is that of its last step on the inputs."""
    frame = as_read(rows(150, seed=1))
    model = make_pipeline(STEPS["standard"](), Ridge()).fit(frame, frame["income"] * 2 + frame["age"])
    known = assemble(WrappedModel(model, SPACE.names, ("member",)), SPACE, (), (), None, rows(50, 5))
    assert known.opaque is None
    np.testing.assert_allclose(known.predict(rows(50, 6)), model.predict(as_read(rows(50, 6))), rtol=1e-12)
    np.testing.assert_allclose(known.raw(rows(50, 6)), known.predict(rows(50, 6)), atol=1e-9)


def test_a_chain_that_is_a_constant_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="multiplied by 0"):
        Chain.of_steps("age", (("*", 0.0), ("+", 1.0)))


def test_a_code_that_a_scaler_clips_is_no_affine_input() -> None:
    """-1 stands for no income at all, and is not among what the scaler was fitted to."""
    model = make_pipeline(MinMaxScaler(clip=True), LogisticRegression()).fit([[0.0], [100.0]], [0, 1])
    for special, read in (((), True), ((-1.0,), False)):
        feature = Feature("income", "continuous", scale=(0, 100), bounds=(0, 100), special=special)
        assert (pipeline.describe(model, Space((feature,)), ["income"]).opaque is None) == read


def test_what_the_largest_value_clips_is_named() -> None:
    """The largest income of training is less than what a person may have."""
    frame = as_read(rows(150, seed=1))
    model = make_pipeline(MaxAbsScaler(clip=True), DecisionTreeClassifier()).fit(frame[["income"]], labels(frame))
    opaque = pipeline.describe(model, SPACE, ("income",))[3]
    assert opaque is not None
    assert "clips income, which may be from 0 to 100" in opaque


def test_a_sparse_union_is_scaled_as_scikit_learn_does() -> None:
    """With one part sparse all of it is, and is multiplied with 1 / scale, to the last bit."""
    union = FeatureUnion(
        [
            ("a", make_column_transformer((MinMaxScaler(), NUMBERS))),
            ("b", make_column_transformer((OneHotEncoder(), TEXTS), sparse_threshold=1.0)),
        ]
    )
    transformer = make_pipeline(union, StandardScaler(with_mean=False)).fit(as_read(rows(150, seed=1)))
    frame = rows(80, seed=10)
    expected = dense(transformer.transform(as_read(frame)))
    np.testing.assert_array_equal(inside(transformer).matrix(frame), expected)
