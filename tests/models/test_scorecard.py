"""Scorecards as models: their plain form is OptBinning's own score, and what is embedded is that too."""

from __future__ import annotations

import warnings
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd
import pytest
from optbinning import BinningProcess, Scorecard
from scipy.special import expit
from sklearn.linear_model import LinearRegression, LogisticRegression

from harness.core.errors import HarnessError
from harness.core.inputs import Lookup
from harness.core.method import Deadline
from harness.core.problem import Problem
from harness.core.space import Feature, Space
from harness.core.target import Interval, Label
from harness.library import explain, pose
from harness.models.adopt import adopt, from_file
from harness.models.card import Bin, Card, card_of
from harness.models.files import load, save
from harness.models.scorecard import ScorecardClassifier, ScorecardRegressor, read_card
from harness.models.train import train
from harness.store.run import StoredRun
from methods.ce_ocl import CeOcl
from methods.estimators.trees import ensemble

HOMES = ("own", "rent", "free", "boat")
NAMES = ("income", "age", "home", "noise")
SPACE = Space(
    (
        Feature("income", "continuous", scale=(0.0, 10.0), bounds=(0.0, 10.0)),
        Feature("age", "integer", scale=(18, 80), bounds=(18, 80), special=(-9, -8)),
        Feature("home", "categorical", HOMES),
        Feature("noise", "continuous", scale=(0.0, 1.0), bounds=(0.0, 1.0)),
    )
)


@cache
def data(rows: int = 1500) -> tuple[pd.DataFrame, np.ndarray]:
    """Decoded rows, some with special codes, and the number that the outcomes follow."""
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(
        {
            "income": rng.uniform(0, 10, rows),
            "age": rng.integers(18, 81, rows),
            "home": rng.choice(HOMES[:3], rows).astype(object),
            "noise": rng.uniform(size=rows),
        }
    )
    frame.loc[::17, "age"] = -9
    frame.loc[::31, "age"] = -8
    merit = frame["income"] + frame["age"] / 10 + 2 * (frame["home"] == "own") + rng.normal(size=rows)
    return frame, merit.to_numpy()


@cache
def fitted(kind: str, special: str = "list", metric: Any = 0) -> Scorecard:
    """A scorecard of OptBinning's, as a user fits one."""
    frame, merit = data()
    codes = {"list": [-9, -8], "dict": {"no record": -9, "no trade": [-8]}, "none": None}[special]
    process = BinningProcess(list(NAMES), categorical_variables=["home"], special_codes=codes, max_n_prebins=6)
    model, target = (LogisticRegression(), merit > 9) if kind == "binary" else (LinearRegression(), merit)
    made = Scorecard(process, model, scaling_method="min_max", scaling_method_params={"min": 0, "max": 100})
    with warnings.catch_warnings(action="ignore"):
        return made.fit(
            frame, target.astype(int if kind == "binary" else float), metric_special=metric, metric_missing=metric
        )


def edges(card: Card, like: pd.DataFrame) -> pd.DataFrame:
    """Rows at each end of each bin and beside it, special codes, missing values and unseen categories among them."""
    rows = [like.iloc[0].to_dict()]
    for variable in card.variables:
        values = ["nowhere", None, *HOMES]
        if variable.numeric:
            cuts = [*variable.cuts, -9.0, -8.0]
            values = [np.nan, -1e9, 1e9, *cuts, *np.nextafter(cuts, -np.inf), *np.nextafter(cuts, np.inf)]
        rows += [{**rows[0], variable.name: value} for value in values]
    frame = pd.DataFrame(rows)
    return frame.astype({name: object if name == "home" else float for name in frame})


@pytest.mark.parametrize(
    ("kind", "special", "metric"),
    [
        ("binary", "list", 0),
        ("binary", "dict", "empirical"),
        ("binary", "none", 0.3),
        ("continuous", "list", "empirical"),
    ],
)
def test_a_card_is_the_scorecard(kind: str, special: str, metric: Any) -> None:
    """Values, scores and points are OptBinning's, at bin edges too."""
    scorecard = fitted(kind, special, metric)
    card = read_card(scorecard)
    frame = pd.concat([data()[0], edges(card, data()[0])], ignore_index=True)
    bins = card.bins(frame)
    worth = scorecard.binning_process_.transform(frame, metric_special=metric, metric_missing=metric)
    assert (card.values(bins) == worth[list(card.names)].to_numpy()).all()
    own = scorecard.decision_function(frame) if kind == "binary" else scorecard.predict(frame)
    assert np.abs(card.score(bins) - own).max() < 1e-12
    assert np.abs(card.points(bins) - scorecard.score(frame)).max() < 1e-9
    if kind == "binary":
        assert np.abs(expit(card.score(bins)) - scorecard.predict_proba(frame)[:, 1]).max() < 1e-12


@pytest.mark.parametrize("special", ["list", "dict", "none"])
def test_a_value_lies_in_the_bin_it_is_said_to(special: str) -> None:
    """The intervals, codes and categories of a bin are those of the values found in it."""
    card = read_card(fitted("binary", special))
    frame = edges(card, data()[0])
    for variable in card.variables:
        for value, place in zip(frame[variable.name], variable.bins_of(frame[variable.name]), strict=True):
            found = variable.bins[place]
            if found.role == "interval":
                assert found.low <= value < found.high
                assert not any(value in b.members for b in variable.bins)
            elif found.role in {"categories", "special"}:
                assert value in found.members
            elif found.role == "missing":
                assert value is None or np.isnan(value)
            else:
                assert found.role == "unknown"
                assert value == "nowhere" or value == "boat"


@pytest.mark.parametrize("kind", ["binary", "continuous"])
def test_its_trees_add_up_to_the_score(kind: str) -> None:
    """As an ensemble of one tree a feature, and through the inputs of a classifier: at bin edges too."""
    frame, _ = data()
    classifier = trained(kind).classifier
    card = card_of(classifier)
    assert card is not None
    numbers = edges(card, frame).dropna()
    rows = pd.concat([frame, numbers[numbers["home"] != "nowhere"]], ignore_index=True)
    raw = ensemble(classifier.estimator).raw(classifier.matrix(rows))[:, 0]
    assert np.abs(raw - card.score(card.bins(rows))).max() < 1e-12
    assert np.abs(classifier.raw(rows) - raw).max() < 1e-12


@cache
def trained(kind: str) -> Problem:
    """The problem of a scorecard that the harness trains."""
    frame, merit = data()
    if kind == "continuous":
        classifier = train(ScorecardRegressor(binning={"max_n_prebins": 6}), SPACE, frame, merit, ())
        return Problem(SPACE, classifier, frame, merit, Interval(low=11.0, high=14.0))
    labels = np.where(merit > 9, "good", "bad").astype(object)
    estimator = ScorecardClassifier(binning={"max_n_prebins": 6})
    classifier = train(estimator, SPACE, frame, labels, ("bad", "good"))
    return Problem(SPACE, classifier, frame, labels, Label("good"))


def nearest_values(feature: Feature, found: Bin, value: Any) -> list[Any]:
    """The values of a bin that may be closest to a factual's, within what the feature may take."""
    if found.role == "categories":
        return list(found.members)
    low, high = feature.interval(value)
    if feature.kind == "integer":
        first, last = max(low, np.ceil(found.low)), min(high, np.ceil(found.high) - 1)
    else:
        first, last = max(low, found.low), min(high, np.nextafter(found.high, -np.inf))
    return [] if first > last else [min(max(value, first), last)]


def brute_force(problem: Problem, factual: pd.DataFrame) -> float:
    """The least scaled l1 distance over all choices of bins, each value the closest in its bin."""
    card = card_of(problem.classifier)
    assert card is not None
    origin = factual.iloc[0].to_dict()
    choices = []
    for name in card.names:
        feature = SPACE[name]
        own = [b for b in card[name].bins if b.ordinary]
        values = [v for b in own for v in nearest_values(feature, b, origin[name])]
        unlisted = [c for c in feature.categories if c not in card[name].listing]
        choices.append([origin[name], *values, *unlisted])
    rows = pd.DataFrame([{**origin, **dict(zip(card.names, row, strict=True))} for row in product(*choices)])
    rows = SPACE.frame(rows.astype(object).to_dict("records"))
    rows = rows[problem.valid(rows)]
    gaps = [
        (np.abs(rows[f.name] - origin[f.name]) / f.range if f.numeric else rows[f.name] != origin[f.name]).astype(float)
        for f in SPACE.features
    ]
    return float(np.sum(gaps, axis=0).min())


@pytest.mark.parametrize("engine", ["search", "milp"])
@pytest.mark.parametrize("kind", ["binary", "continuous"])
def test_ce_ocl_finds_the_best_bins(kind: str, engine: str) -> None:
    """The optimum is that of all choices of bins, for factuals with special codes too."""
    problem = trained(kind)
    frame = problem.train
    refused = frame.loc[~problem.valid(frame)]
    factuals = pd.concat([refused.iloc[:3], refused[refused["age"] < 0].iloc[:2]])
    explainer = CeOcl(alpha=0.0, engine=engine if kind == "binary" else "auto").fit(problem)
    for place in range(len(factuals)):
        factual = factuals.iloc[[place]]
        (answer,) = explainer.explain(factual, 1, np.random.default_rng(0), Deadline.after(30.0)).answers
        assert answer.status == "OPTIMAL"
        assert problem.valid(SPACE.frame([answer.row]))[0]
        assert answer.objective == pytest.approx(brute_force(problem, factual), abs=1e-6)


@pytest.mark.parametrize("kind", ["binary", "continuous"])
def test_a_trained_scorecard_is_stored(kind: str, tmp_path: Path) -> None:
    """The cache and the store of answers give the same model back, without any trust."""
    frame, _ = data()
    problem = trained(kind)
    save(problem.classifier.estimator, tmp_path / "card.skops")
    again = load(tmp_path / "card.skops")
    assert (again.predict(frame) == problem.classifier.estimator.predict(frame)).all()
    cell = StoredRun(tmp_path / "cell")
    cell.start({"n_counterfactuals": 1}, SPACE, problem.classifier, {0: problem.target}, None, frame.iloc[:1])
    assert (cell.classifier.score(frame) == problem.classifier.score(frame)).all()


@pytest.mark.parametrize("suffix", [".joblib", ".pkl"])
def test_a_scorecard_from_a_file(suffix: str, tmp_path: Path) -> None:
    """Somebody's own is read with trust, asked itself, looked into, and found again in the store of answers."""
    frame, _ = data()
    scorecard, path = fitted("binary", "dict"), tmp_path / f"mine{suffix}"
    joblib.dump(scorecard, path) if suffix == ".joblib" else scorecard.save(str(path))
    with pytest.raises(HarnessError, match=r"model\.trust=true"):
        from_file(path, SPACE, frame, ("bad", "good"))
    classifier = from_file(path, SPACE, frame, ("bad", "good"), trust=True, names=("bad", "good"))
    assert classifier.opaque is None
    assert (classifier.score(frame) == scorecard.predict_proba(frame)[:, 1]).all()
    assert np.abs(classifier.raw(frame) - scorecard.decision_function(frame)).max() < 1e-12
    cell = StoredRun(tmp_path / "cell", trust=True)
    cell.start({"n_counterfactuals": 1}, SPACE, classifier, {0: Label("good")}, None, frame.iloc[:1])
    assert (cell.classifier.score(frame) == classifier.score(frame)).all()
    assert card_of(cell.classifier) is not None


def test_a_scorecard_from_a_skops_file(tmp_path: Path) -> None:
    """One that the harness trained is a model file like any other: no trust is needed."""
    frame, _ = data()
    save(trained("binary").classifier.estimator, tmp_path / "card.skops")
    found = from_file(tmp_path / "card.skops", SPACE, frame, ("bad", "good"), names=("bad", "good"))
    assert found.opaque is None
    assert (found.score(frame) == trained("binary").classifier.score(frame)).all()


class Sharper(LogisticRegression):
    """Logistic regression that is surer than it should be."""

    def predict_proba(self, rows: Any) -> np.ndarray:
        odds = super().predict_proba(rows) ** 2
        return odds / odds.sum(axis=1, keepdims=True)


@pytest.mark.filterwarnings("ignore")  # of pandas, about OptBinning's tables
def test_a_code_on_a_split_is_no_value_of_the_bin_that_begins_there() -> None:
    """OptBinning splits between 3 and 5 at 4, which is a special code: the bin from 4 on has the value of 5."""
    x = np.array([*np.repeat([1.0, 2.0, 3.0, 5.0, 6.0, 7.0], 60), *[4.0] * 200])
    labels = (np.random.default_rng(0).random(len(x)) < np.where(x == 4, 0.5, x / 8)).astype(int)
    frame = pd.DataFrame({"x": x})
    scorecard = Scorecard(BinningProcess(["x"], special_codes=[4.0]), LogisticRegression()).fit(frame, labels)
    splits = scorecard.binning_process_.get_binned_variable("x").splits
    assert 4.0 in splits
    card, asked = read_card(scorecard), pd.DataFrame({"x": np.unique([*x, *splits, 4.5, np.nextafter(4.0, 9)])})
    np.testing.assert_allclose(card.score(card.bins(asked)), scorecard.decision_function(asked), atol=1e-12)


def test_a_model_with_another_link_is_opaque() -> None:
    """What its bins add up to says nothing of its probabilities then; it is asked itself."""
    frame, merit = data()
    scorecard = Scorecard(BinningProcess(list(NAMES), categorical_variables=["home"]), Sharper())
    with warnings.catch_warnings(action="ignore"):
        scorecard.fit(frame, (merit > 9).astype(int))
    found = adopt(scorecard, SPACE, frame, ("bad", "good"), names=("bad", "good"))
    assert found.opaque is not None
    assert (found.score(frame) == scorecard.predict_proba(frame)[:, 1]).all()


def test_bins_and_kinds_have_to_fit() -> None:
    """A scorecard's categories cannot be read off a number; codes that are categories here can lie in intervals."""
    frame, _ = data()
    card = read_card(fitted("binary"))
    text = SPACE.replace({"home": {"kind": "integer", "categories": ()}})
    with pytest.raises(HarnessError, match="kind=categorical"):
        card.inputs(text)
    ages = tuple(sorted(frame["age"].unique().tolist()))
    codes = SPACE.replace({"age": {"kind": "ordinal", "categories": ages, "special": ()}})
    (age,) = (source for source in card.inputs(codes) if source.feature == "age")
    assert isinstance(age, Lookup)
    assert age.values == tuple(map(float, ages))
    with pytest.raises(HarnessError, match="kind=continuous"):
        card.inputs(SPACE.replace({"age": {"kind": "categorical", "categories": ("old", "young"), "special": ()}}))


def test_a_scorecard_needs_two_classes() -> None:
    frame, merit = data()
    with pytest.raises(HarnessError, match="two classes"):
        ScorecardClassifier().fit(frame, np.digitize(merit, [5, 9]))


def test_a_selection_that_leaves_nothing_is_said() -> None:
    frame, merit = data()
    with pytest.raises(HarnessError, match="leaves no feature"):
        ScorecardClassifier(selection={"iv": {"min": 50.0}}).fit(frame, merit > 9)


def test_an_explanation_names_bins_and_points() -> None:
    """Each change: the value, its bin, and the points between the two bins; the points before and after."""
    frame, merit = data()
    scorecard = fitted("binary")
    table = frame.assign(outcome=np.where(merit > 9, 1, 0))
    features = {**dict.fromkeys(NAMES), "age": {"kind": "integer", "special": [-9, -8]}}
    question = pose(table, "outcome", scorecard, desired=1, features=features)
    person = int(np.flatnonzero(scorecard.predict(frame) == 0)[0])
    explanation = explain(CeOcl(alpha=0.0), question, person)
    text, row = str(explanation), explanation.answers[0].row
    card = read_card(scorecard)
    gained = 0.0
    for name in card.names:
        before, after = (card[name].bin_of(value) for value in (frame.loc[person, name], row[name]))
        if before != after:
            points = card[name].points[after] - card[name].points[before]
            assert (
                f" in {card[name].bins[after]}, {points:+.4g} points" in text
                or len(card[name].bins[after].members) == 1
            )
            gained += points
    points = scorecard.score(pd.concat([frame.loc[[person]], pd.DataFrame([row])]))
    assert points[1] - points[0] == pytest.approx(gained)
    assert f"→ {points[1]:.4g}" in text
    assert explanation._repr_html_().count(" points<") == text.count(" points\n") + text.count(" points ")
