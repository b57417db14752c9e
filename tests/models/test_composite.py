"""Models made of others: exact methods find what enumeration of all points finds by the model's own predictions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import skops.io
from hydra.utils import instantiate
from omegaconf import OmegaConf
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    StackingClassifier,
    VotingClassifier,
)
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, Perceptron, RidgeClassifierCV, SGDClassifier
from sklearn.model_selection import FixedThresholdClassifier, GridSearchCV, TunedThresholdClassifierCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from support.composites import BOOSTING, FOREST, GRID, PEOPLE, behind, nearest, pure, tree

from harness.core.problem import Problem
from harness.core.target import Label, Probability
from harness.core.wording import PREDICT
from harness.library import explain, pose
from harness.models.train import train
from harness.store.run import StoredRun
from methods.ce_ocl import CeOcl
from methods.md_pso import MdPso
from methods.nearest import Nearest
from methods.robust import Robust

CONF = Path(__file__).parents[2] / "conf" / "model"
STEPS = RandomForestClassifier(2, max_depth=2, random_state=0)
NETWORK = MLPClassifier([5], solver="lbfgs", max_iter=60, random_state=0)
HUBER = SGDClassifier(loss="modified_huber", alpha=0.1, random_state=0)  # whose probabilities lie between 0 and 1, too
READ: dict[str, Callable[[], Any]] = {
    "hinge by gradients": lambda: behind(SGDClassifier(random_state=0)),
    "log loss by gradients": lambda: FixedThresholdClassifier(
        behind(SGDClassifier(loss="log_loss", random_state=0)), threshold=0.7
    ),
    "modified Huber": lambda: behind(HUBER),
    "a threshold of modified Huber": lambda: FixedThresholdClassifier(behind(HUBER), threshold=0.7),
    "a threshold of modified Huber's first class": lambda: FixedThresholdClassifier(
        behind(HUBER), threshold=0.7, pos_label="no"
    ),
    "modified Huber surely": lambda: FixedThresholdClassifier(behind(HUBER), threshold=1.0),
    "perceptron": lambda: behind(Perceptron()),
    "ridge by validation": lambda: behind(RidgeClassifierCV()),
    "discriminant analysis": lambda: behind(LinearDiscriminantAnalysis()),
    "grid search": lambda: GridSearchCV(behind(LogisticRegression()), {"logisticregression__C": [0.1, 1]}, cv=3),
    "search in a pipeline": lambda: behind(GridSearchCV(tree(), {"max_depth": [2, 3]}, cv=3)),
    "fixed threshold": lambda: FixedThresholdClassifier(behind(FOREST), threshold=0.6),
    "fixed threshold at a tie": lambda: FixedThresholdClassifier(behind(tree(2, min_samples_leaf=40)), threshold=0.5),
    "fixed threshold of a decision": lambda: FixedThresholdClassifier(behind(LinearSVC()), threshold=0.4),
    "tuned threshold": lambda: TunedThresholdClassifierCV(behind(LogisticRegression()), cv=3),
    "one against the rest": lambda: OneVsRestClassifier(behind(LogisticRegression())),
    "one forest against the rest": lambda: OneVsRestClassifier(behind(FOREST)),
    "sigmoid of a line": lambda: CalibratedClassifierCV(behind(LogisticRegression()), ensemble=False, cv=3),
    "sigmoid of a machine": lambda: behind(CalibratedClassifierCV(LinearSVC(), ensemble=False, cv=3)),
    "sigmoid of boosting": lambda: CalibratedClassifierCV(behind(BOOSTING), ensemble=False, cv=3),
    "isotonic of a line": lambda: CalibratedClassifierCV(
        behind(LogisticRegression()), method="isotonic", ensemble=False
    ),
    "isotonic of a forest": lambda: behind(CalibratedClassifierCV(FOREST, method="isotonic", ensemble=False, cv=3)),
    "isotonic of a network": lambda: CalibratedClassifierCV(behind(NETWORK), method="isotonic", ensemble=False, cv=3),
    "calibrated afterwards": lambda: CalibratedClassifierCV(
        FrozenEstimator(behind(FOREST).fit(PEOPLE.drop(columns="paid"), PEOPLE["paid"])), cv=2
    ),
    "sigmoid of AdaBoost": lambda: CalibratedClassifierCV(
        behind(AdaBoostClassifier(n_estimators=7, random_state=0)), ensemble=False, cv=3
    ),
    "isotonic of AdaBoost": lambda: CalibratedClassifierCV(
        behind(AdaBoostClassifier(n_estimators=7, random_state=0)), method="isotonic", ensemble=False, cv=3
    ),
    "average of calibrated trees": lambda: CalibratedClassifierCV(behind(tree()), cv=3, method="isotonic"),
    "bagging": lambda: behind(BaggingClassifier(tree(), 5, random_state=0)),
    "bagging of some columns": lambda: behind(
        BaggingClassifier(tree(), 6, max_features=3, bootstrap_features=True, random_state=0)
    ),
    "bagging of forests": lambda: behind(BaggingClassifier(FOREST, 3, random_state=0)),
    "AdaBoost": lambda: behind(AdaBoostClassifier(n_estimators=7, random_state=0)),
    "AdaBoost of deeper trees": lambda: behind(AdaBoostClassifier(tree(2), n_estimators=4, random_state=0)),
    "soft votes": lambda: VotingClassifier(
        [("a", behind(tree())), ("b", behind(FOREST)), ("c", behind(ExtraTreesClassifier(3, max_depth=3)))],
        voting="soft",
        weights=[1, 3, 2],
    ),
    "hard votes": lambda: VotingClassifier([(str(depth), behind(tree(depth))) for depth in (1, 2, 3)]),
    "hard votes that tie": lambda: VotingClassifier([(str(depth), behind(tree(depth))) for depth in (1, 3)]),
    "hard votes with weights": lambda: VotingClassifier(
        [(str(depth), behind(tree(depth))) for depth in (1, 2, 4)], weights=[2, 1, 1]
    ),
    "a threshold of a calibration": lambda: FixedThresholdClassifier(
        CalibratedClassifierCV(behind(FOREST), method="isotonic", ensemble=False, cv=3), threshold=0.4
    ),
    "a threshold of AdaBoost": lambda: FixedThresholdClassifier(
        behind(AdaBoostClassifier(n_estimators=7, random_state=0)), threshold=0.55
    ),
    "a threshold of AdaBoost's decision": lambda: FixedThresholdClassifier(
        behind(AdaBoostClassifier(n_estimators=7, random_state=0)), threshold=0.1, response_method="decision_function"
    ),
    "a threshold of the first class": lambda: FixedThresholdClassifier(behind(FOREST), threshold=0.6, pos_label="no"),
    "a threshold of a line's decision": lambda: FixedThresholdClassifier(
        behind(LogisticRegression()), threshold=-0.3, pos_label="no", response_method="decision_function"
    ),
    "a threshold at ties of votes": lambda: FixedThresholdClassifier(
        VotingClassifier([(str(state), behind(pure(state))) for state in (1, 2)], voting="soft"), threshold=0.5
    ),
    "ties of votes": lambda: VotingClassifier([(str(state), behind(pure(state))) for state in (1, 2)], voting="soft"),
    "a threshold on a step of a calibration": lambda: FixedThresholdClassifier(
        CalibratedClassifierCV(behind(STEPS), method="isotonic", ensemble=False, cv=3), threshold=0.5
    ),
    "isotonic of histogram boosting": lambda: CalibratedClassifierCV(
        behind(HistGradientBoostingClassifier(max_iter=5, max_depth=2)), method="isotonic", ensemble=False, cv=3
    ),
    "temperature of a line": lambda: FixedThresholdClassifier(
        CalibratedClassifierCV(behind(LogisticRegression()), method="temperature", ensemble=False), threshold=0.6
    ),
    "temperature of a forest": lambda: FixedThresholdClassifier(
        CalibratedClassifierCV(behind(FOREST), method="temperature", ensemble=False), threshold=0.6
    ),
    "sigmoid of boosting by another loss": lambda: CalibratedClassifierCV(
        behind(GradientBoostingClassifier(loss="exponential", n_estimators=6)), ensemble=False, cv=3
    ),
    "sigmoid of bagged boosting": lambda: CalibratedClassifierCV(
        behind(BaggingClassifier(BOOSTING, 2, random_state=0)), ensemble=False, cv=3
    ),
    "bagging of pipelines": lambda: behind(
        BaggingClassifier(make_pipeline(StandardScaler(), tree()), 4, max_features=3, random_state=0)
    ),
    "one AdaBoost against the rest": lambda: OneVsRestClassifier(behind(AdaBoostClassifier(n_estimators=5))),
    "one threshold against the rest": lambda: OneVsRestClassifier(
        FixedThresholdClassifier(behind(FOREST), threshold=0.8)
    ),
    "soft votes of thresholds": lambda: VotingClassifier(
        [("a", FixedThresholdClassifier(behind(tree()), threshold=0.8)), ("b", behind(FOREST))], voting="soft"
    ),
    "hard votes of thresholds": lambda: VotingClassifier(
        [
            ("a", FixedThresholdClassifier(behind(tree(2)), threshold=0.7)),
            ("b", CalibratedClassifierCV(behind(tree(1)), ensemble=False, cv=2)),
            ("c", behind(tree(3))),
        ]
    ),
    "average of calibrated thresholds": lambda: CalibratedClassifierCV(
        FixedThresholdClassifier(behind(tree(2)), threshold=0.7), cv=2
    ),
    "a search around votes of a calibration": lambda: GridSearchCV(
        VotingClassifier([("a", CalibratedClassifierCV(behind(tree()), cv=2)), ("b", behind(FOREST))], voting="soft"),
        {"weights": [[1, 2], [2, 1]]},
        cv=2,
    ),
}
UNREAD: dict[str, tuple[Callable[[], Any], str]] = {
    "calibrated lines": (
        lambda: CalibratedClassifierCV(behind(LogisticRegression()), cv=3),
        "an average of calibrated LogisticRegression is no sum of trees",
    ),
    "votes of lines": (
        lambda: VotingClassifier([("a", behind(LogisticRegression())), ("b", behind(tree()))], voting="soft"),
        "the probability of LogisticRegression is no sum of trees",
    ),
    "votes of forests": (
        lambda: VotingClassifier([("a", behind(FOREST)), ("b", behind(tree()))]),
        "a vote of RandomForestClassifier is no sum of trees",
    ),
    "votes of boosting": (
        lambda: VotingClassifier([("a", behind(BOOSTING)), ("b", behind(tree()))], voting="soft"),
        "the probability of GradientBoostingClassifier is no sum of trees",
    ),
    "bagging of AdaBoost": (
        lambda: behind(BaggingClassifier(AdaBoostClassifier(n_estimators=3), 3, random_state=0)),
        "the probability of AdaBoostClassifier is no sum of trees",
    ),
    "stacking": (
        lambda: StackingClassifier([("a", behind(LogisticRegression())), ("b", behind(tree()))]),
        "learns from other models' answers is read by no exact method",
    ),
    "votes of stacking": (
        lambda: VotingClassifier(
            [("a", StackingClassifier([("a", behind(tree()))], cv=2)), ("b", behind(tree()))], voting="soft"
        ),
        "the probability of StackingClassifier is no sum of trees",
    ),
}


def fitted(make: Callable[[], Any]) -> Any:
    return make().fit(PEOPLE.drop(columns="paid"), PEOPLE["paid"])


def asked(model: Any, **settings: Any) -> Any:
    return pose(PEOPLE, "paid", model, desired="yes", **settings)


def refused(model: Any) -> int:
    """The first row of which the model says no."""
    return int(np.flatnonzero(model.predict(PEOPLE.drop(columns="paid")) == "no")[0])


@pytest.mark.parametrize("name", READ)
def test_the_optimum_is_that_of_enumeration(name: str) -> None:
    """By the composite's own predictions of every point; three people each."""
    model = fitted(READ[name])
    task = asked(model)
    said = model.predict(PEOPLE.drop(columns="paid"))
    for row in np.flatnonzero(said == "no")[:3].tolist():
        (answer,) = explain(CeOcl(), task, row).answers
        best = nearest(model, row, lambda frame: model.predict(frame) == "yes")
        assert answer.status.name == "OPTIMAL", answer
        assert answer.objective == pytest.approx(best, abs=1e-9)


@pytest.mark.parametrize("name", ["isotonic of a forest", "soft votes", "AdaBoost", "sigmoid of a line"])
def test_a_threshold_of_ones_own_is_one_of_the_composite(name: str) -> None:
    model = fitted(READ[name])
    row = refused(model)
    (answer,) = explain(CeOcl(), asked(model, threshold=0.57), row).answers
    best = nearest(model, row, lambda frame: model.predict_proba(frame)[:, 1] > 0.57)
    assert (answer.status.name, answer.objective) == ("OPTIMAL", pytest.approx(best, abs=1e-9))


def test_a_threshold_on_probabilities_of_exactly_1_is_read() -> None:
    """A network so sure that its float64 probabilities are 0 and 1 alone; only above a 1 is there nothing."""
    frame, paid = PEOPLE.drop(columns="paid"), PEOPLE["paid"]
    sure = behind(clone(NETWORK)).fit(frame, paid)
    for weights in (sure[-1].coefs_[-1], sure[-1].intercepts_[-1]):
        weights *= 1e6
    steps = CalibratedClassifierCV(FrozenEstimator(sure), method="isotonic", ensemble=False).fit(frame, paid)
    share = float(steps.calibrated_classifiers_[0].calibrators[0].y_thresholds_[-1])
    model = FixedThresholdClassifier(FrozenEstimator(steps), threshold=share).fit(frame, paid)
    row = refused(model)
    (answer,) = explain(CeOcl(), asked(model), row).answers
    best = nearest(model, row, lambda points: model.predict(points) == "yes")
    assert (answer.status.name, answer.objective) == ("OPTIMAL", pytest.approx(best, abs=1e-9))


@pytest.mark.parametrize("name", UNREAD)
def test_what_cannot_be_read_is_named_and_methods_that_predict_run(name: str) -> None:
    make, why = UNREAD[name]
    model = fitted(make)
    task, row = asked(model), refused(model)
    (exact,) = explain(CeOcl(), task, row).answers
    assert exact.status.name == "UNSUPPORTED"
    assert why in exact.detail
    for method in (Nearest(), MdPso(iterations=20)):
        (found,) = explain(method, task, row, time_limit=60.0).answers
        assert found.status.name == "FOUND"
        assert model.predict(pd.DataFrame([found.row])[["age", "debt", "housing"]])[0] == "yes"


@pytest.mark.parametrize(
    "name",
    ["soft votes", "isotonic of a forest", "sigmoid of a line", "isotonic of a network", "bagging of some columns"],
)
def test_a_region_is_accepted_by_the_composite_itself(name: str) -> None:
    """At 2,000 random points of the region, and certified."""
    model = fitted(READ[name])
    features = {"age": {"kind": "continuous"}, "debt": {"kind": "continuous"}, "housing": {}}
    (answer,) = explain(Robust(rho=0.05), asked(model, features=features), refused(model)).answers
    assert answer.status.name == "OPTIMAL"
    assert answer.row is not None
    assert answer.region is not None
    rng, columns = np.random.default_rng(0), ["age", "debt", "housing"]
    points = {name: rng.uniform(*answer.region[name], 2000) for name in columns if name in answer.region}
    assert len(points) == 2
    frame = pd.DataFrame({**{name: [answer.row[name]] * 2000 for name in columns}, **points})[columns]
    assert (model.predict(frame) == "yes").all()


@pytest.mark.parametrize("model", [tree(), LogisticRegression()])
def test_a_threshold_that_no_score_reaches_is_named(model: Any) -> None:
    sure = FixedThresholdClassifier(CalibratedClassifierCV(behind(model), ensemble=False), threshold=1.0)
    (answer,) = explain(CeOcl(), asked(fitted(lambda: sure)), 0).answers
    assert answer.detail == f"this model is opaque: the calibration of Pipeline does not rise through 1; {PREDICT}"


@pytest.mark.parametrize("make", [lambda: FOREST, LogisticRegression])
def test_a_threshold_of_0_says_one_class_of_everybody(make: Callable[[], Any]) -> None:
    task = asked(fitted(lambda: FixedThresholdClassifier(behind(make()), threshold=0.0)))
    assert set(task.classifier.predict(GRID)) == {"yes"}
    task = pose(PEOPLE, "paid", task.classifier.wrapped.model, desired="no")
    for method in (Nearest(), CeOcl()):
        (answer,) = explain(method, task, 0).answers
        assert answer.row is None
        assert answer.status.name != "FAILED"


def test_hard_votes_take_no_threshold() -> None:
    model = fitted(READ["hard votes"])
    (answer,) = explain(CeOcl(), asked(model, threshold=0.3), refused(model)).answers
    assert answer.status.name == "UNSUPPORTED"
    assert "hard votes have no score" in answer.detail


def test_probabilities_of_a_composite_are_not_read() -> None:
    (problem,) = asked(fitted(READ["sigmoid of a line"])).problems.values()
    why = CeOcl().refuses(replace(problem, target=Probability("yes", 0.7, 1.0)))
    assert why == "probabilities of a model made of others are not read; set 'desired' to a class."


@pytest.mark.parametrize("name", ["isotonic of a forest", "hard votes", "soft votes", "tuned threshold"])
def test_a_stored_composite_reads_the_same(name: str, tmp_path: Path) -> None:
    """From a file, and once more from the folder of a run."""
    model = fitted(READ[name])
    skops.io.dump(model, tmp_path / "model.skops")
    loaded = skops.io.load(
        tmp_path / "model.skops", trusted=skops.io.get_untrusted_types(file=tmp_path / "model.skops")
    )
    row = refused(model)
    one, other = (explain(CeOcl(), asked(own), row).answers[0] for own in (model, loaded))
    assert (one.objective, one.row) == (other.objective, other.row)


@pytest.mark.parametrize("name", ["ada", "calibrated", "tuned_threshold", "voting"])
def test_a_model_of_a_yaml_is_read_and_once_more_from_the_folder_of_a_run(name: str, tmp_path: Path) -> None:
    """Trained on a space's columns, it is the model that exact methods enumerate, and stays it on disk."""
    config = OmegaConf.load(CONF / f"{name}.yaml")
    config.model_seed = 0
    space = asked(fitted(READ["grid search"])).dataset.space
    frame, labels = PEOPLE.drop(columns="paid"), PEOPLE["paid"].to_numpy(object)
    classifier = train(instantiate(config.estimator, _convert_="all"), space, frame, labels, ("no", "yes"))
    problem = Problem(space, classifier, frame, labels, Label("yes"))
    assert CeOcl().refuses(problem) is None
    clear = np.abs(classifier.raw(GRID).ravel() - classifier.raw_threshold) > 1e-9
    said = np.where(classifier.raw(GRID).ravel() > classifier.raw_threshold, "yes", "no")
    assert (said == classifier.predict(GRID))[clear].all()
    run = StoredRun(tmp_path)
    run.start({"n_counterfactuals": 1}, space, classifier, {0: Label("yes")}, None, frame.iloc[:1])
    again = run.classifier
    assert (again.predict(GRID) == classifier.predict(GRID)).all()
    assert (again.raw(GRID) == classifier.raw(GRID)).all()
    assert again.raw_threshold == classifier.raw_threshold
