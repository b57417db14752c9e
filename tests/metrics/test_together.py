"""A question's metrics are the same to the last bit, whichever others are measured with it."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hydra.utils import get_object
from omegaconf import OmegaConf
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.svm import LinearSVC

from harness.certificate import Checker
from harness.core.asked import Asked
from harness.core.classifier import Classifier
from harness.core.inputs import space_inputs
from harness.core.metric import metric
from harness.core.objective import displacement
from harness.core.packages import CONF
from harness.core.problem import Problem
from harness.core.space import Actionability, Feature, Kind, Space
from harness.core.target import Label
from harness.library import pose
from metrics import _example as loans
from metrics import robustness

METRICS = [get_object(path) for path in OmegaConf.load(CONF / "metrics" / "all.yaml").names]
# More than seven numbers, whose sum is rounded by the order in which numpy adds them.
SPACE = Space(
    (
        *(Feature(f"x{place}", Kind.CONTINUOUS, scale=(-3, 3), bounds=(-9, 9)) for place in range(9)),
        Feature("age", Kind.INTEGER, scale=(18, 90), bounds=(18, 90), actionability=Actionability.INCREASE),
        Feature("job", Kind.CATEGORICAL, ("none", "clerk", "nurse", "smith")),
        Feature("school", Kind.ORDINAL, ("none", "some", "all"), actionability=Actionability.INCREASE),
        Feature("member", Kind.BINARY, ("no", "yes")),
    )
)
MODELS = {
    "forest": RandomForestClassifier(20, max_depth=5, random_state=0),
    "logistic": LogisticRegression(),
    "network": MLPClassifier((8,), random_state=0, tol=0.01),
}


def drawn(rng: np.random.Generator, size: int) -> pd.DataFrame:
    data: dict[str, Any] = {f"x{place}": rng.normal(size=size) for place in range(9)}
    data |= {"age": rng.integers(18, 90, size)}
    data |= {feature.name: rng.choice(feature.categories, size).astype(object) for feature in SPACE.features[10:]}
    return SPACE.frame(pd.DataFrame(data).to_dict("records"))


@pytest.fixture(scope="module", params=MODELS)
def questions(request: pytest.FixtureRequest) -> Asked:
    """Twenty questions with none to four answers each; answers share most values with their factual."""
    rng = np.random.default_rng(1)
    train = drawn(rng, 300)
    labels = np.where(train["x0"] + train["x1"] + (train["job"] == "nurse") > 0, "yes", "no").astype(object)
    model = MODELS[request.param].fit(SPACE.encode(train), labels == "yes")
    classifier = Classifier(model, space_inputs(SPACE), classes=("no", "yes"))
    factuals, counts = drawn(rng, 20), rng.integers(0, 5, 20)
    answers = factuals.iloc[np.repeat(np.arange(20), counts)].reset_index(drop=True)
    answers = answers.where(rng.random(answers.shape) < 0.5, drawn(rng, len(answers))).astype(answers.dtypes)
    return Asked(Problem(SPACE, classifier, train, labels, Label("yes")), factuals, answers, counts)


@pytest.fixture
def asked(questions: Asked) -> Asked:
    """These, of a problem of which nothing was found yet."""
    return replace(questions, problem=replace(questions.problem))


def shuffled(asked: Asked, order: np.ndarray) -> Asked:
    """The same questions in another order, of a problem of which nothing was found yet."""
    alone = list(asked.alone())
    answers = pd.concat([alone[place][1] for place in order], ignore_index=True)
    return Asked(replace(asked.problem), asked.factuals.iloc[order], answers, asked.counts[order])


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.name)
def test_a_value_does_not_depend_on_other_questions(metric: Any, asked: Asked) -> None:
    """Together, in another order, in halves, and each alone: the same bits."""
    together = metric.measure(asked)
    order = np.random.default_rng(2).permutation(len(asked.counts))
    alone = [metric(factual, answers, replace(asked.problem)) for factual, answers in asked.alone()]
    np.testing.assert_array_equal(together, np.array(alone, dtype=float))
    np.testing.assert_array_equal(together[order], metric.measure(shuffled(asked, order)))
    np.testing.assert_array_equal(together[order[:10]], metric.measure(shuffled(asked, order[:10])))


def test_a_metric_of_one_question_sees_one_at_a_time(asked: Asked) -> None:
    """A function of a factual and its answers, as one's own may be, is called for each question; None becomes NaN."""

    @metric(better="lower", family="own")
    def oldest(factual: pd.DataFrame, answers: pd.DataFrame, problem: Problem) -> float | None:
        assert len(factual) == 1
        assert answers.index.tolist() == list(range(len(answers)))
        return answers["age"].max() - factual["age"].iloc[0] if len(answers) else None

    expected, stop = [], 0
    for age, count in zip(asked.factuals["age"], asked.counts, strict=True):
        ages = asked.answers["age"].tolist()[stop : stop + count]
        expected.append(max(ages) - age if ages else np.nan)
        stop += count
    np.testing.assert_array_equal(oldest.measure(asked), expected)


def test_questions_are_told_apart() -> None:
    """Three questions with two, no and three answers: who starts where, pairs, means and a part of the answers."""
    values = pd.DataFrame({"a": [1.0, 2.0, 3.0, 4.0, 5.0]})
    asked = Asked(loans.problem, pd.DataFrame({"a": [10.0, 20.0, 30.0]}), values, np.array([2, 0, 3]))
    assert asked.origins["a"].tolist() == [10, 10, 30, 30, 30]
    first, second = asked.pairs
    assert list(zip(first["a"], second.answers["a"], strict=True)) == [(1, 2), (3, 4), (3, 5), (4, 5)]
    assert second.origins["a"].tolist() == [10, 30, 30, 30]
    np.testing.assert_array_equal(asked.mean(values["a"].to_numpy()), [1.5, np.nan, 4.0])
    np.testing.assert_array_equal(asked.mean(np.array([[0, 1], [1, 1], [0, 0], [1, 0], [0, 0]])), [0.75, np.nan, 1 / 6])
    part = asked.where([False, True, True, False, True])
    assert (part.answers["a"].tolist(), part.counts.tolist()) == ([2, 3, 5], [1, 0, 2])


def test_each_row_has_an_origin_of_its_own(asked: Asked) -> None:
    """Distances, changes and broken constraints of rows beside their origins are those of each pair of rows alone."""
    origins, answers = asked.origins, asked.answers
    pairs = [(origins.iloc[[place]], answers.iloc[[place]]) for place in range(len(answers))]
    for measure in (displacement, Space.changed):
        np.testing.assert_array_equal(measure(SPACE, origins, answers), np.vstack([measure(SPACE, *p) for p in pairs]))
    assert SPACE.violations(origins, answers) == [SPACE.violations(*pair)[0] for pair in pairs]


def test_models_are_asked_about_many_rows_at_once(asked: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    """Noisy copies of several questions' answers go to the model together, those of valid answers alone."""
    valid = int(asked.problem.valid(asked.answers).sum())
    calls: list[int] = []
    holds = Label.holds
    monkeypatch.setattr(Label, "holds", lambda self, c, frame: calls.append(len(frame)) or holds(self, c, frame))
    robustness.invalidation_rate.measure(asked)
    assert sum(calls[1:]) == valid * robustness.DRAWS
    assert len(calls) == 1 + -(-valid // robustness.BLOCK)


@pytest.mark.parametrize("measured", ["invalidation_rate", "region_validity", "certified_radius_linf"])
def test_what_was_found_of_an_answer_is_kept(measured: str, asked: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    """The nearest answers are among all, and methods often give the same: the model is asked once, certified once."""
    calls: list[int] = []
    holds, certify = Label.holds, Checker.certify
    monkeypatch.setattr(Label, "holds", lambda own, c, frame: calls.append(len(frame)) or holds(own, c, frame))
    monkeypatch.setattr(Checker, "certify", lambda own, *a, **b: calls.append(1000) or certify(own, *a, **b))
    metric = getattr(robustness, measured)
    first = metric.measure(asked)
    assert sum(calls) > 1000
    calls.clear()
    half = asked.where(np.arange(len(asked.answers)) % 2 == 0)
    expected = metric.measure(replace(half, problem=replace(asked.problem)))
    calls.clear()
    np.testing.assert_array_equal(metric.measure(asked), first)
    np.testing.assert_array_equal(metric.measure(half), expected)
    assert calls == [len(asked.answers), len(half.answers)]


def test_what_one_metric_found_is_not_taken_for_another_s() -> None:
    """Of a box whose radius is twice the way to the split three quarters stay; .1 above a line of two slopes of 1 a box
    has a radius of .1 / 2, a ball one of .1 / √2."""
    near, asked = loans.answers.iloc[:1].assign(income=52.5), replace(loans.problem)
    robustness.invalidation_rate(loans.factual, near, asked)
    share = robustness.region_validity(loans.factual, near, asked)
    assert share == robustness.region_validity(loans.factual, near, replace(asked)) == pytest.approx(0.75, abs=0.055)
    line = LinearSVC().fit(loans.SPACE.encode(loans.TRAIN), loans.LABELS == "granted")
    line.coef_, line.intercept_ = np.array([[1.0, 1.0, 0, 0, 0, 0, 0]]), np.array([-1.0])
    asked = replace(asked, classifier=replace(asked.classifier, estimator=line))
    above = near.assign(income=60.0)  # and an age of 40: .6 + .5
    assert robustness.certified_radius_linf(loans.factual, above, asked) == pytest.approx(0.1 / 2, abs=1e-6)
    assert robustness.certified_radius_l2(loans.factual, above, asked) == pytest.approx(0.1 / 2**0.5, abs=1e-6)


@pytest.mark.parametrize(
    "measured", ["invalidation_rate", "region_validity", "certified_radius_linf", "certified_radius_l2"]
)
def test_where_no_number_moves_nothing_is_said_of_noise(measured: str) -> None:
    settled = {f.name: {"actionability": Actionability.IMMUTABLE} for f in loans.SPACE.features if f.numeric}
    still = replace(loans.problem, space=loans.SPACE.replace(settled))
    assert getattr(robustness, measured)(loans.factual, loans.answers, still) is None


@pytest.mark.parametrize("measured", ["invalidation_rate", "region_validity"])
def test_noise_that_a_model_does_not_take_leaves_a_metric_undefined(measured: str) -> None:
    """As of the logarithm of a debt below -1; not of the answers that the model is asked about with it."""
    debts = pd.DataFrame({"debt": np.arange(101.0)})
    model = make_pipeline(FunctionTransformer(np.log1p), LogisticRegression(C=100.0))
    model.fit(debts, np.where(debts["debt"] < 80, "granted", "refused"))
    asked = pose(debts, model=model, desired="granted")
    answers = asked.dataset.frame.iloc[[0, 50, 1]]
    many = Asked(next(iter(asked.problems.values())), asked.dataset.frame.iloc[[90, 91, 92]], answers, np.ones(3, int))
    with warnings.catch_warnings(action="error"):
        found = getattr(robustness, measured).measure(many)
    assert np.isnan(found).tolist() == [True, False, True]
    assert found[1] == (0.0 if measured == "invalidation_rate" else 1.0)
