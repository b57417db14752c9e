"""A study's model is taken where the one trained here is that model, but for the last digits."""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from harness.cli import build
from harness.cli.kept_model import check_same, of_study
from harness.core.classifier import Classifier
from harness.core.errors import HarnessError
from harness.data.csv_load import load_csv
from harness.store.run import StoredRun

NAMES = {"dataset": "loans", "model": "lr", "method": "nearest"}
PLAIN: dict[str, Any] = {
    "dataset": {"target": "paid"}, "split": None, "features": {},
    "model": {"estimator": {"_target_": "sklearn.linear_model.LogisticRegression"}},
}  # fmt: skip


@pytest.fixture
def trained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Any, Classifier, StoredRun]:
    """Data, a model, and a run of a study about that model as another machine trained it."""
    monkeypatch.setenv("CE_HARNESS_CACHE", str(tmp_path / "cache"))
    days = np.arange(200)
    paid = np.where(days * 37 % 200 < 90, "yes", "no")
    pd.DataFrame({"income": days, "age": days * 7 % 50, "paid": paid}).to_csv(tmp_path / "loans.csv", index=False)
    data = load_csv(tmp_path / "loans.csv", "paid")
    classifier = build._classifier(build._key("lr", PLAIN["model"]), data)
    run = StoredRun(tmp_path / "study" / "answers" / "loans-lr-nearest-0")
    store(run, data, elsewhere(classifier, 1e-14))
    return data, classifier, run


def elsewhere(classifier: Classifier, off: float) -> Classifier:
    estimator = copy.deepcopy(classifier.estimator)
    estimator.coef_ = estimator.coef_ * (1 + off)
    return replace(classifier, estimator=estimator)


def store(run: StoredRun, data: Any, classifier: Classifier, **changes: Any) -> None:
    meta = {**NAMES, "data_sha256": data.sha256, "config": PLAIN, "n_counterfactuals": 1, **changes}
    run.start(meta, data.space, classifier, {}, None, data.frame.iloc[:0])


def taken(trained: tuple[Any, Classifier, StoredRun], plain: Mapping[str, Any] = PLAIN) -> bool:
    """Whether the study's model is taken, else it is the own one."""
    data, classifier, run = trained
    of_study.__globals__["_of_study"].cache_clear()
    found = of_study(classifier, data, NAMES, plain, run.path.parents[1])
    own, known = (each.estimator.coef_.tolist() for each in (classifier, run.classifier))
    assert found.estimator.coef_.tolist() in (own, known)
    assert found.retraining is classifier.retraining
    return own != known and found.estimator.coef_.tolist() == known


def test_last_digits_are_the_studys(trained: tuple[Any, Classifier, StoredRun]) -> None:
    assert trained[1].estimator.coef_.tolist() != trained[2].classifier.estimator.coef_.tolist()
    assert taken(trained)


@pytest.mark.parametrize(("off", "same"), [(0.0, True), (1e-14, True), (1e-6, False), (-2.0, False)])
def test_answers_about_another_model_are_not_gone_on_with(
    trained: tuple[Any, Classifier, StoredRun], off: float, same: bool
) -> None:
    data, classifier, run = trained
    store(run, data, elsewhere(classifier, off))
    if same:
        check_same(run, classifier, data)
    else:
        with pytest.raises(HarnessError, match="are about another model"):
            check_same(run, classifier, data)


def test_a_model_whose_scores_are_no_numbers_is_the_same_as_itself(
    trained: tuple[Any, Classifier, StoredRun], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As of naive Bayes on a constant column: for the same rows."""
    data, classifier, run = trained
    known = Classifier.score
    monkeypatch.setattr(Classifier, "score", lambda self, rows: np.where(known(self, rows) > 0.5, math.nan, 1.0))
    store(run, data, classifier)
    check_same(run, classifier, data)
    monkeypatch.setattr(
        Classifier, "score", lambda self, rows: known(self, rows) * (1.0 if self is classifier else math.nan)
    )
    with pytest.raises(HarnessError):
        check_same(run, classifier, data)


@pytest.mark.parametrize("off", [1e-6, -2.0])
def test_another_model_is_not_taken(trained: tuple[Any, Classifier, StoredRun], off: float) -> None:
    """Whether its scores or its classes differ."""
    store(trained[2], trained[0], elsewhere(trained[1], off))
    assert not taken(trained)


@pytest.mark.parametrize("setting", ["dataset", "model", "split", "features"])
def test_that_of_other_settings_is_not_taken(trained: tuple[Any, Classifier, StoredRun], setting: str) -> None:
    assert not taken(trained, {**PLAIN, setting: {**(PLAIN[setting] or {}), "other": 1}})


def test_that_of_other_data_is_not_taken(trained: tuple[Any, Classifier, StoredRun]) -> None:
    trained[2].update(data_sha256="other")
    assert not taken(trained)


def test_that_behind_other_inputs_is_not_taken(trained: tuple[Any, Classifier, StoredRun]) -> None:
    """Though its own answers would be the same."""
    inputs = trained[2].meta["inputs"]
    trained[2].update(inputs=[*reversed(inputs)])
    assert not taken(trained)


def test_one_that_differs_hides_no_other(trained: tuple[Any, Classifier, StoredRun]) -> None:
    store(StoredRun(trained[2].path.with_name("loans-lr-a")), trained[0], elsewhere(trained[1], 0.1))
    assert taken(trained)


def test_one_that_cannot_be_asked_is_passed_over(trained: tuple[Any, Classifier, StoredRun]) -> None:
    """As where another version of scikit-learn fitted it."""
    broken = elsewhere(trained[1], 0.0)
    del broken.estimator.intercept_
    store(StoredRun(trained[2].path.with_name("loans-lr-a")), trained[0], broken)
    assert taken(trained)


def test_damaged_runs_are_passed_over(trained: tuple[Any, Classifier, StoredRun]) -> None:
    """The next one is looked at."""
    for name in ("loans-lr-a", "loans-lr-b"):
        (folder := trained[2].path.with_name(name)).mkdir()
        (folder / "cell.json").write_text("{" if name.endswith("a") else "{}")
    assert taken(trained)


def test_without_a_study_it_is_the_own_one(trained: tuple[Any, Classifier, StoredRun], tmp_path: Path) -> None:
    data, classifier, _ = trained
    for folder in (None, tmp_path / "none"):
        assert of_study(classifier, data, NAMES, PLAIN, folder) is classifier
