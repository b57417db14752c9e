"""Models made of others, of three classes, and ties of two, against enumeration by their own predictions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import AdaBoostClassifier, BaggingClassifier, RandomForestClassifier, VotingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import FixedThresholdClassifier, GridSearchCV
from sklearn.multiclass import OneVsRestClassifier
from support.composites import BOOSTING, FOREST, GRID, PEOPLE, behind, nearest, pure, tree

from harness.core.wording import PREDICT
from harness.library import explain, pose
from methods.ce_ocl import CeOcl
from methods.column_generation import ColumnGeneration
from methods.nearest import Nearest

FEATURES = ["age", "debt", "housing"]
NAMES = np.array(["late", "never", "paid"])
SAID = NAMES[np.digitize(PEOPLE["age"] - PEOPLE["debt"] + 4 * (PEOPLE["housing"] == "own"), [-3, 4])]
READ: dict[str, Callable[[], Any]] = {
    "soft votes": lambda: VotingClassifier(
        [("a", behind(tree())), ("b", behind(FOREST))], voting="soft", weights=[1, 2]
    ),
    "soft votes that tie": lambda: VotingClassifier(
        [(str(state), behind(pure(state))) for state in range(3)], voting="soft"
    ),
    "hard votes": lambda: VotingClassifier([(str(depth), behind(tree(depth))) for depth in (1, 2, 3)]),
    "bagging": lambda: behind(BaggingClassifier(tree(), 4, max_features=4, max_samples=0.05, random_state=0)),
    "AdaBoost": lambda: behind(AdaBoostClassifier(tree(2), n_estimators=5, random_state=0)),
    "each against the rest": lambda: behind(OneVsRestClassifier(FOREST)),
    "each against the rest, boosted": lambda: OneVsRestClassifier(behind(BOOSTING)),
    "temperature of a forest": lambda: CalibratedClassifierCV(
        behind(FOREST), method="temperature", ensemble=False, cv=3
    ),
    "calibrated trees": lambda: CalibratedClassifierCV(behind(tree()), cv=3),
    "a calibrated tree": lambda: CalibratedClassifierCV(behind(tree(4)), method="isotonic", ensemble=False, cv=3),
    "temperature of trees": lambda: CalibratedClassifierCV(behind(tree()), method="temperature", cv=3),
    "votes of calibrated trees": lambda: VotingClassifier(
        [("a", CalibratedClassifierCV(behind(tree(2)), cv=2)), ("b", behind(FOREST))], voting="soft"
    ),
    "a search around bagging": lambda: GridSearchCV(
        behind(BaggingClassifier(tree(), random_state=0)), {"baggingclassifier__n_estimators": [2, 3]}, cv=2
    ),
}
UNREAD: dict[str, tuple[Callable[[], Any], str]] = {
    "calibrated forests": (
        lambda: CalibratedClassifierCV(behind(FOREST), cv=3),
        "a calibration of RandomForestClassifier with 3 classes is no sum of trees",
    ),
    "lines against the rest": (
        lambda: behind(OneVsRestClassifier(LogisticRegression())),
        "the decision value of LogisticRegression is no sum of trees",
    ),
}


def fitted(make: Callable[[], Any]) -> Any:
    return make().fit(PEOPLE[FEATURES], SAID)


def asked(model: Any, desired: str) -> Any:
    return pose(PEOPLE[FEATURES].assign(said=SAID), "said", model, desired=desired)


@pytest.mark.parametrize("name", READ)
def test_the_optimum_is_that_of_enumeration(name: str) -> None:
    """For each class, two people whom the model gives another one."""
    model = fitted(READ[name])
    said = model.predict(PEOPLE[FEATURES])
    for wanted in NAMES.tolist():
        task = asked(model, wanted)
        for row in np.flatnonzero(said != wanted)[:2].tolist():
            (answer,) = explain(CeOcl(), task, row, time_limit=60.0).answers
            best = nearest(model, row, lambda frame, wanted=wanted: model.predict(frame) == wanted)
            assert answer.status.name == "OPTIMAL", answer
            assert answer.objective == pytest.approx(best, abs=1e-9)


@pytest.mark.parametrize("name", UNREAD)
def test_what_cannot_be_read_is_named_and_methods_that_predict_run(name: str) -> None:
    make, why = UNREAD[name]
    model = fitted(make)
    task, row = asked(model, "paid"), int(np.flatnonzero(model.predict(PEOPLE[FEATURES]) != "paid")[0])
    (exact,) = explain(CeOcl(), task, row).answers
    assert (exact.status.name, exact.detail) == ("UNSUPPORTED", f"this model is opaque: {why}; {PREDICT}")
    (found,) = explain(Nearest(), task, row).answers
    assert found.status.name == "FOUND"
    assert model.predict(pd.DataFrame([found.row])[FEATURES])[0] == "paid"


def test_a_reading_is_right_at_every_point_that_is_no_tie() -> None:
    for name, make in READ.items():
        model = fitted(make)
        classifier = asked(model, "paid").classifier
        raw = classifier.raw(GRID)
        clear = np.diff(np.sort(raw, axis=1)[:, -2:], axis=1)[:, 0] > 1e-9
        assert clear.mean() > 0.5, name
        assert (np.array(classifier.classes)[raw.argmax(axis=1)][clear] == model.predict(GRID)[clear]).all(), name


PAIR = [("a", behind(tree(1))), ("b", behind(pure(2)))]
TIED: dict[str, tuple[str, Callable[[], Any]]] = {
    "a forest": ("no", lambda: behind(RandomForestClassifier(2, random_state=2, max_features=1))),
    "hard votes": ("no", lambda: VotingClassifier(PAIR)),
    "a threshold at ties": (
        "yes",
        lambda: FixedThresholdClassifier(behind(BaggingClassifier(pure(2), 2, random_state=2)), threshold=0.5),
    ),
}


@pytest.mark.parametrize("name", TIED)
def test_ties_serve_a_group_as_the_model_decides_them(name: str) -> None:
    """People for whom one change is enough, by enumeration, and of those first whom nothing but ties serves."""
    wanted, make = TIED[name]
    model = make().fit(PEOPLE[FEATURES], PEOPLE["paid"])
    levels = {"age": {"kind": "ordinal"}, "debt": {"kind": "ordinal"}, "housing": {}}
    task = pose(PEOPLE, "paid", model, desired=wanted, features=levels)
    tied = np.abs(model.predict_proba(GRID)[:, 1] - 0.5) < 1e-9 if hasattr(model, "predict_proba") else None
    if tied is None:
        tied = np.mean([member.predict(GRID) for member in model.estimators_], axis=0) == 0.5
    served = pd.DataFrame({"all": model.predict(GRID) == wanted})
    served["clear"] = served["all"] & ~tied
    by_ties = 0
    for row in np.flatnonzero(model.predict(PEOPLE[FEATURES]) != wanted).tolist():
        near = ((PEOPLE[FEATURES].iloc[row] != GRID).sum(axis=1) == 1).to_numpy()
        enough, clear = served.loc[near].any()
        if (enough and not clear) or row < 5:
            by_ties += int(enough and not clear)
            (answer,) = explain(ColumnGeneration(t_max=1), task, row, time_limit=60.0).answers
            assert answer.status.name == ("OPTIMAL" if enough else "INFEASIBLE")
    assert by_ties > 0
