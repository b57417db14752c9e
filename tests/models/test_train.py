"""Estimators are trained once, kept by content, and read back as they were."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier
from skops import io
from support.complete import complete

from harness.core.classifier import Classifier
from harness.core.errors import HarnessError
from harness.core.problem import Problem
from harness.models import train as module
from harness.models.best_of import BestOfGridSearchCV
from harness.models.files import load, save
from harness.models.scorecard import ScorecardClassifier
from harness.models.torch_mlp import TorchMLPClassifier
from harness.models.train import Amended, train
from methods.estimators.trees import ensemble

MODELS = complete("model")


def fitted(problem: Problem, cache: Path | None, depth: int = 3) -> Classifier:
    estimator = DecisionTreeClassifier(max_depth=depth, random_state=0)
    return train(estimator, problem.space, problem.train, problem.labels, ("bad", "good"), cache=cache)


class Foreign(LogisticRegression):
    """An estimator of no known library."""


@pytest.mark.parametrize("model", MODELS)
def test_a_stored_model_says_the_same(problem_of: Callable[[str], Problem], tmp_path: Path, model: str) -> None:
    """Predictions, scores and raw values of what was saved and loaded are equal to the last bit."""
    problem = problem_of(model)
    save(problem.classifier.estimator, tmp_path / "estimator.skops")
    loaded = replace(problem.classifier, estimator=load(tmp_path / "estimator.skops"))
    for function in ("predict", "score", "raw"):
        np.testing.assert_array_equal(
            getattr(loaded, function)(problem.train), getattr(problem.classifier, function)(problem.train)
        )


@pytest.mark.parametrize("model", MODELS)
def test_a_model_decides_at_its_threshold(problem_of: Callable[[str], Problem], model: str) -> None:
    """``raw`` beyond ``raw_threshold`` is class 1, a regressor's ``raw`` its number: a method models what is said."""
    problem = problem_of(model)
    raw, predicted = problem.classifier.raw(problem.train), problem.classifier.predict(problem.train)
    if problem.classifier.classes:
        np.testing.assert_array_equal(predicted == "good", raw > problem.classifier.raw_threshold)
    else:
        np.testing.assert_array_equal(predicted, raw)


def test_a_second_training_is_a_look_in_the_cache(
    problem: Problem, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Equal data and parameters give the stored model, without a fit."""
    first = fitted(problem, tmp_path)
    assert len(list(tmp_path.iterdir())) == 1
    monkeypatch.setattr(DecisionTreeClassifier, "fit", None)
    second = fitted(problem, tmp_path)
    np.testing.assert_array_equal(second.score(problem.train), first.score(problem.train))


def test_other_parameters_are_another_model(problem: Problem, tmp_path: Path) -> None:
    fitted(problem, tmp_path)
    assert fitted(problem, tmp_path, depth=1).estimator.get_depth() == 1
    assert len(list(tmp_path.iterdir())) == 2


class Extended(LogisticRegression):
    """An estimator whose fit depends on more than scikit-learn."""

    fitted_by = ("solver",)


@pytest.mark.parametrize(
    ("estimator", "library"),
    [
        (LogisticRegression(), "sklearn"),
        (make_pipeline(StandardScaler(), Extended()), "solver"),
        (ScorecardClassifier(), "optbinning"),
        (TorchMLPClassifier(), "torch"),
        (BestOfGridSearchCV([GridSearchCV(TorchMLPClassifier(), {})]), "torch"),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_another_version_of_a_library_is_another_model(
    monkeypatch: pytest.MonkeyPatch, estimator: Any, library: str
) -> None:
    """Of whichever library takes part in the fit; not of any other."""
    data = np.zeros((2, 1)), np.arange(2)

    def key(**changed: str) -> str:
        monkeypatch.setattr(module, "version", lambda name: changed.get(name, "1.0"))
        return module._content(estimator, *data, None)

    assert key() == key(other="2.0")
    assert key() != key(**{library: "2.0"})


def test_our_own_estimators_depend_on_our_sources(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of libraries do not."""
    data = np.zeros((2, 1)), np.arange(2)

    def keys(digest: bytes) -> list[str]:
        monkeypatch.setattr(module, "digest_of", lambda *folders: digest)
        return [module._content(estimator, *data, None) for estimator in (TorchMLPClassifier(), LogisticRegression())]

    (own, library), (changed, same) = keys(b"1"), keys(b"2")
    assert own != changed
    assert library == same


@pytest.mark.parametrize("content", [b"", b"not a model at all"])
def test_a_broken_cache_is_trained_over(
    problem: Problem, tmp_path: Path, caplog: pytest.LogCaptureFixture, content: bytes
) -> None:
    """The file is named in a warning, and replaced by a good one."""
    first = fitted(problem, tmp_path)
    (path,) = tmp_path.iterdir()
    path.write_bytes(content)
    with caplog.at_level(logging.WARNING):
        second = fitted(problem, tmp_path)
    assert str(path) in caplog.text
    assert "trained again" in caplog.text
    np.testing.assert_array_equal(second.score(problem.train), first.score(problem.train))
    assert isinstance(load(path), DecisionTreeClassifier)


def test_a_cache_that_cannot_be_written_is_no_fault(
    problem: Problem, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("in the way")
    with caplog.at_level(logging.WARNING):
        assert fitted(problem, tmp_path / "file").binary
    assert "cannot be cached" in caplog.text


def test_strange_types_are_not_loaded(tmp_path: Path) -> None:
    """A file may hold scikit-learn, numpy and scipy; anything else is named and refused."""
    io.dump(Foreign().fit([[0.0], [1.0]], [0, 1]), tmp_path / "foreign.skops")
    with pytest.raises(HarnessError, match=r"types that are not trusted: .*Foreign"):
        load(tmp_path / "foreign.skops")


def test_a_missing_model_is_named(tmp_path: Path) -> None:
    with pytest.raises(HarnessError, match=r"no model file .*none\.skops"):
        load(tmp_path / "none.skops")


@pytest.mark.parametrize(
    ("estimator", "classes", "sentence"),
    [
        (Ridge(), ("bad", "good"), r"Ridge predicts numbers, but the labels are classes \(bad, good\)"),
        (LogisticRegression(), (), "LogisticRegression predicts classes, but the labels are numbers"),
    ],
)
def test_model_and_labels_must_be_of_one_sort(
    problem: Problem, estimator: Any, classes: tuple[str, ...], sentence: str
) -> None:
    """Numbers are not learnt as classes, nor classes as numbers; it is said before anything is fitted."""
    labels = problem.labels if classes else np.arange(len(problem.train), dtype=float)
    with pytest.raises(HarnessError, match=sentence):
        train(estimator, problem.space, problem.train, labels, classes)
    assert not hasattr(estimator, "n_features_in_")


def test_labels_must_be_two_known_classes(problem: Problem) -> None:
    """One class alone, or one that is not listed, cannot be trained on."""
    estimator, rows = LogisticRegression(), len(problem.train)
    with pytest.raises(HarnessError, match="all training rows have the label bad"):
        train(estimator, problem.space, problem.train, np.full(rows, "bad", object), ("bad", "good"))
    with pytest.raises(HarnessError, match="label 'ugly'"):
        train(estimator, problem.space, problem.train, np.full(rows, "ugly", object), ("bad", "good"))


@pytest.mark.parametrize(("rate", "trees"), [(0.3, 2), (0.1, 5)])
def test_boosting_may_decide_by_the_sum_of_its_trees(problem: Problem, tmp_path: Path, rate: float, trees: int) -> None:
    """Class 1 where the trees' outputs, added up here one by one, come to 0.5; the start value of the fit is left out,
    and what is cached is the fit itself."""
    estimator = GradientBoostingClassifier(n_estimators=trees, max_depth=2, learning_rate=rate, random_state=0)
    asked = (problem.space, problem.train, problem.labels, ("bad", "good"), None, tmp_path)
    own = train(estimator, *asked)
    found = train(estimator, *asked, amended=Amended(decision="sum_of_trees"))
    x = own.matrix(problem.train)
    total = rate * sum(tree.predict(x) for tree in own.estimator.estimators_[:, 0])
    assert ((total >= 0.5) != (own.predict(problem.train) == "good")).any()  # the rules differ here
    np.testing.assert_array_equal(found.predict(problem.train), np.where(total >= 0.5, "good", "bad"))
    np.testing.assert_allclose(found.estimator.decision_function(x), total - 0.5, atol=1e-12)
    np.testing.assert_allclose(ensemble(found.estimator).raw(x)[:, 0], total - 0.5, atol=1e-9)


@pytest.mark.parametrize(
    ("estimator", "decision", "sentence"),
    [
        (LogisticRegression(), "sum_of_trees", "is for GradientBoostingClassifier on two classes, and this is Log"),
        (
            GradientBoostingClassifier(n_estimators=2),
            "sum",
            "decision=sum does not exist; set model.decision=sum_of",
        ),
    ],
)
def test_another_decision_is_refused(problem: Problem, estimator: Any, decision: str, sentence: str) -> None:
    with pytest.raises(HarnessError, match=sentence):
        train(
            estimator, problem.space, problem.train, problem.labels, ("bad", "good"), amended=Amended(decision=decision)
        )
