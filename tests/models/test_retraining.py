"""Other trainings of a model: what each is fitted to, against fits by hand; and that the model stays as it is."""

from __future__ import annotations

import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

from harness.core.space import Feature, Kind, Space
from harness.models.retraining import Retraining
from harness.models.train import Training

SPACE = Space((Feature("a", Kind.CONTINUOUS, scale=(0, 1)), Feature("b", Kind.CONTINUOUS, scale=(0, 1))))
DRAWN = np.random.default_rng(0).random((300, 2))
FRAME = pd.DataFrame(DRAWN, columns=SPACE.names)
LABELS = np.where(DRAWN.sum(axis=1) + np.random.default_rng(1).normal(0, 0.4, 300) > 1, "yes", "no").astype(object)
FOREST = RandomForestClassifier(5, max_depth=3, random_state=7)


def training(estimator: Any, **changes: Any) -> Training:
    return Training(
        clone(estimator), **{"space": SPACE, "frame": FRAME, "labels": LABELS, "classes": ("no", "yes")} | changes
    )


def scores(model: Any) -> np.ndarray:
    return model.score(FRAME)


def test_the_model_itself_stays_as_it_is() -> None:
    """However often it is trained again, on whatever rows."""
    own = training(LogisticRegression())
    model = own.done().classifier
    before = scores(model).copy()
    again = Retraining(own, lambda: {"C": [0.01, 1.0]}, (FRAME[:50], LABELS[:50]), later=True)
    found = [again.models(change) for change in ("bootstrap", "leave_out_10", "hyperparameters", "later")]
    assert [len(models) for models in found] == [20, 20, 1, 1]
    assert (scores(model) == before).all()
    every = np.array([scores(other) for models in found for other in models])
    assert len(np.unique(every.round(12), axis=0)) == len(every)  # no two are the same fit
    assert not (every == before).all(axis=1).any()


def test_a_feature_may_be_called_self() -> None:
    """As an argument of pandas' own functions is called."""
    space = Space((replace(SPACE["a"], name="self"), SPACE["b"]))
    own = training(
        DecisionTreeClassifier(max_depth=2, random_state=0), space=space, frame=FRAME.set_axis(space.names, axis=1)
    )
    assert Retraining(own).models("seeds") == ()


def test_rows_left_out_are_as_many_as_said() -> None:
    """1 % of 300 rows are three, 10 % thirty; a bootstrap sample has as many rows, some of them twice. Each row has its
    own label."""
    seen: list[tuple[int, int]] = []
    own = dict(zip(map(tuple, DRAWN), LABELS == "yes", strict=True))

    class Counting(LogisticRegression):  # type: ignore[misc]
        def fit(self, X: np.ndarray, y: np.ndarray) -> Any:
            seen.append((len(X), len(np.unique(X, axis=0))))
            assert (y == [own[tuple(row)] for row in X]).all()
            return super().fit(X, y)

    again = Retraining(training(Counting()))
    for change, rows in (("leave_out_1", 297), ("leave_out_10", 270), ("bootstrap", 300)):
        seen.clear()
        again.models(change)
        assert {count for count, _ in seen} == {rows}
        assert all((distinct < count) == (change == "bootstrap") for count, distinct in seen)


def test_other_seeds_are_fits_by_hand() -> None:
    """With seeds 8 to 27 beside the model's 7; an estimator that has none, or draws nothing by it, has no other."""
    by_hand = [scores(training(clone(FOREST).set_params(random_state=seed)).done().classifier) for seed in range(8, 28)]
    assert np.array_equal([scores(model) for model in Retraining(training(FOREST)).models("seeds")], by_hand)
    assert Retraining(training(LogisticRegression())).models("seeds") == ()
    assert Retraining(training(LinearSVC(dual=False, random_state=7))).models("seeds") == ()
    twice = FRAME.assign(b=FRAME["a"])  # trees that tell all rows apart, by one column or by the other
    assert Retraining(training(DecisionTreeClassifier(random_state=7), frame=twice)).models("seeds")


def test_other_settings_are_those_of_the_grid_but_its_own() -> None:
    """Of a plain estimator, and of the one that a search tunes; none without a grid; 20 of a large one."""
    grid = {"max_depth": [2, 3], "n_estimators": [5, 8]}
    others = Retraining(training(FOREST), lambda: grid).models("hyperparameters")
    shapes = {(model.estimator.max_depth, model.estimator.n_estimators) for model in others}
    assert shapes == {(2, 5), (2, 8), (3, 8)}
    search = GridSearchCV(RandomForestClassifier(random_state=0), grid, cv=3)
    by_hand = clone(search).fit(SPACE.encode(FRAME), LABELS == "yes").best_params_
    others = Retraining(training(search), lambda: grid).models("hyperparameters")
    shapes = {(model.estimator.max_depth, model.estimator.n_estimators) for model in others}
    assert shapes == {(2, 5), (2, 8), (3, 5), (3, 8)} - {(by_hand["max_depth"], by_hand["n_estimators"])}
    steps = GridSearchCV(
        make_pipeline(StandardScaler(), LogisticRegression()), {"logisticregression__C": [1e-4, 1]}, cv=3
    )
    (other,) = Retraining(training(steps), lambda: steps.param_grid).models("hyperparameters")
    chosen = clone(steps).fit(SPACE.encode(FRAME), LABELS == "yes").best_params_["logisticregression__C"]
    assert {1e-4: 1, 1: 1e-4}[chosen] == other.wrapped.model[-1].C
    assert Retraining(training(FOREST)).models("hyperparameters") == ()
    wide = Retraining(training(LogisticRegression()), lambda: {"C": np.logspace(-2, 2, 50).tolist()})
    assert len({model.estimator.C for model in wide.models("hyperparameters")}) == 20


def test_later_rows_alone_train_the_later_model() -> None:
    """None where they have one class only, or there are none."""
    model = training(LogisticRegression())
    later = FRAME[200:], LABELS[200:]
    (found,) = Retraining(model, others=later, later=True).models("later")
    by_hand = LogisticRegression().fit(SPACE.encode(later[0]), later[1] == "yes")
    assert np.allclose(scores(found), by_hand.predict_proba(SPACE.encode(FRAME))[:, 1], atol=1e-12)
    single = LABELS == "no"
    assert Retraining(model, others=(FRAME[single], LABELS[single]), later=True).models("later") == ()
    assert Retraining(model, others=later).models("later") == ()
    assert Retraining(model, later=True).models("later") == ()


@pytest.mark.parametrize(("others", "grows_to"), [(200, 200), (60, 160)])
def test_more_rows_or_fewer_are_fits_by_hand(others: int, grows_to: int) -> None:
    """Of 100 rows and 200 or 60 more: ten models of up to as many others beside them, ten without one row, the same;
    each with another seed. Rows keep their labels."""
    seen: list[tuple[int, frozenset[tuple[float, float]]]] = []
    own = dict(zip(map(tuple, DRAWN), LABELS == "yes", strict=True))

    class Seeing(RandomForestClassifier):  # type: ignore[misc]
        def fit(self, X: np.ndarray, y: np.ndarray) -> Any:
            seen.append((self.random_state, frozenset(map(tuple, X))))
            assert len(X) == len(seen[-1][1])
            assert (y == [own[tuple(row)] for row in X]).all()
            return super().fit(X, y)

    rows = {name: set(map(tuple, part)) for name, part in (("given", DRAWN[:100]), ("rest", DRAWN[100 : 100 + others]))}
    given = training(Seeing(2, random_state=7), frame=FRAME[:100], labels=LABELS[:100])
    rest = FRAME[100 : 100 + others], LABELS[100 : 100 + others]
    assert len(Retraining(given, others=rest).models("more_or_fewer")) == 20
    assert [seed for seed, _ in seen] == list(range(8, 28))
    (grown,), (shrunk,) = ({fitted for _, fitted in part} for part in (seen[:10], seen[10:]))
    assert rows["given"] < grown <= rows["given"] | rows["rest"]
    assert (len(grown), len(shrunk)) == (grows_to, 99)
    assert shrunk < rows["given"]
    assert Retraining(given).models("more_or_fewer") == ()
    assert Retraining(training(LogisticRegression()), others=rest).models("more_or_fewer") == ()


def test_every_sample_has_every_class() -> None:
    """Also a class of two rows among 300."""
    labels = np.where(np.arange(300) < 2, "yes", "no").astype(object)
    again = Retraining(training(LogisticRegression(), labels=labels))
    assert all(len(model.estimator.classes_) == 2 for model in again.models("bootstrap"))


def test_a_methods_process_is_not_told_of_other_trainings() -> None:
    """Nor is a copy of the classifier."""
    own = training(LogisticRegression())
    model = replace(own.done().classifier, retraining=Retraining(own))
    copied = pickle.loads(pickle.dumps(model))
    assert copied.retraining is None
    assert (scores(copied) == scores(model)).all()


def test_models_are_trained_once_and_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process takes the same models from the cache, by the names on record."""
    first = Retraining(training(FOREST, cache=tmp_path))
    made = [scores(model) for model in first.models("bootstrap")]
    assert sorted(first.names["bootstrap"]) == sorted(path.stem for path in tmp_path.iterdir())
    monkeypatch.setattr(RandomForestClassifier, "fit", lambda *given: pytest.fail("fitted again"))
    second = Retraining(training(FOREST, cache=tmp_path))
    assert np.array_equal([scores(model) for model in second.models("bootstrap")], made)
    assert second.names == first.names


def test_of_few_rows_at_least_one_is_left_out() -> None:
    """1 % of 40 rows is none."""
    seen: list[int] = []

    class Counting(LogisticRegression):  # type: ignore[misc]
        def fit(self, X: np.ndarray, y: np.ndarray) -> Any:
            seen.append(len(X))
            return super().fit(X, y)

    Retraining(training(Counting(), frame=FRAME[:40], labels=LABELS[:40])).models("leave_out_1")
    assert set(seen) == {39}


def test_later_rows_of_one_number_train_no_model() -> None:
    space, frame = Space((Feature("a", Kind.CONTINUOUS, scale=(0, 1)),)), pd.DataFrame({"a": np.linspace(0, 1, 40)})
    own = Training(LinearRegression(), space, frame, np.arange(40.0), ())
    assert Retraining(own, others=(frame[30:], np.full(10, 7.0)), later=True).models("later") == ()
    assert len(Retraining(own, others=(frame[30:], np.arange(10.0)), later=True).models("later")) == 1
