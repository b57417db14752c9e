"""The checker computes validity under retraining again, from stored rows and the models that a run names."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from harness.core.target import Label
from harness.evaluation import retrained
from harness.models.retraining import Retraining
from harness.models.train import Amended, Training
from metrics import robustness
from metrics._example import LABELS, SPACE, TRAIN, answers, factual, linear, problem, rows
from metrics.retraining import bootstrap

TREE = DecisionTreeClassifier(max_depth=1, random_state=0)
SCORED = {"population": "accepted", "metrics": {"names": []}}
POINTS = rows((52.0, 40, "no", "school", "clerk"), (99.0, 30, "no", "degree", "clerk"))


def stored(folder: Path, classifier: Any, people: Any, answers: Any, **meta: Any) -> Any:
    """A run as far as it is read, of triples of a person, a number and a row."""
    return SimpleNamespace(
        path=folder,
        packed=False,
        meta={"scored": SCORED, "config": {"model": {}}, **meta},
        space=SPACE,
        classifier=classifier,
        factuals=lambda: people,
        rows=lambda: [dict(zip(("factual", "ce", "row"), answer, strict=True)) for answer in answers],
    )


def numbered(frame: pd.DataFrame) -> list[tuple[int, int, Any]]:
    """Answers to one person."""
    return [(3, number, row) for number, row in enumerate(frame.to_dict("records"), 1)]


def of_shares(folder: Path, training: Training, **config: Any) -> tuple[Any, float]:
    """A run of one question with two accepted answers, scored by ``retraining/bootstrap``; and that share."""
    again = Retraining(training)
    share = float(np.mean([model.predict(POINTS) == "granted" for model in again.models("bootstrap")]))
    pd.DataFrame({"factual": [3], "retraining/bootstrap": [share]}).to_csv(folder / "scores.csv", index=False)
    people = POINTS.iloc[:1].set_axis([3]), {3: Label("granted")}
    meta = {"retrained": again.names, "config": {"model": config}}
    return stored(folder, training.done().classifier, people, numbered(POINTS), **meta), share


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A run whose models, trained again, do not all say the same."""
    monkeypatch.setenv("CE_HARNESS_CACHE", str(tmp_path))
    training = Training(TREE, SPACE, TRAIN, LABELS, ("refused", "granted"), cache=tmp_path / "models")
    found, share = of_shares(tmp_path, training)
    assert 0 < share < 1
    return found


ACCEPTED = [{"factual": 3, "ce": 1, "verdict": "accepted"}, {"factual": 3, "ce": 2, "verdict": "accepted"}]


def test_stored_numbers_that_hold_are_no_fault(run: Any) -> None:
    assert retrained.faults(run, ACCEPTED) == ([], 0)


def test_a_number_that_differs_is_named(run: Any) -> None:
    """Where the table says something else, or an answer is no longer accepted."""
    (sentence,), _ = retrained.faults(run, ACCEPTED[:1])
    assert "retraining/bootstrap of factual 3 is stored as" in sentence
    table = pd.read_csv(run.path / "scores.csv")
    table.assign(**{"retraining/bootstrap": 1.0}).to_csv(run.path / "scores.csv", index=False)
    (sentence,), _ = retrained.faults(run, ACCEPTED)
    assert "stored as 1; it is 0." in sentence


def test_shares_of_other_answers_are_not_judged(run: Any) -> None:
    """Where metrics saw all that was returned, or none was computed, accepted answers say nothing of the number."""
    run.meta["scored"] = SCORED | {"population": "returned"}
    assert retrained.faults(run, ACCEPTED[:1]) == ([], 0)
    run.meta["scored"] = SCORED
    pd.DataFrame({"factual": [3], "coverage": [1.0]}).to_csv(run.path / "scores.csv", index=False)
    assert retrained.faults(run, ACCEPTED[:1]) == ([], 0)


@pytest.mark.parametrize(("name", "held"), [("delta_validity", 0.5), ("certified_delta", 0.0909 / 2)])
def test_numbers_of_changed_weights_are_computed_again(tmp_path: Path, name: str, held: float) -> None:
    """Of two answers 0.3 and 0.001 above the threshold, whose weights may change by 0.1 and next to nothing."""
    both = answers.iloc[[0, 0]].assign(income=[80.0, 50.001])
    column = f"robustness/{name}"
    scored = SCORED | {"metrics": {"names": [f"metrics.{column.replace('/', '.')}"]}}
    people = factual.set_axis([3]), {3: Label("granted")}
    one = stored(tmp_path, linear.classifier, people, numbered(both), scored=scored)
    for value, wrong in ((getattr(robustness, name)(factual, both, linear), False), (held + 0.1, True)):
        assert wrong or value == pytest.approx(held, abs=1e-3)
        pd.DataFrame({"factual": [3], column: [value]}).to_csv(tmp_path / "scores.csv", index=False)
        sentences, missing = retrained.faults(one, ACCEPTED)
        assert (len(sentences), missing) == (wrong, 0)
        assert all(f"{column} of factual 3 is stored as {value:g}" in sentence for sentence in sentences)


def test_each_answer_is_held_against_what_was_wanted_for_its_person(tmp_path: Path) -> None:
    """One far above the threshold and one far below, each as wanted: neither is lost by a small change of weights."""
    both = answers.iloc[[0, 0]].assign(income=[80.0, 20.0]).set_axis([3, 4])
    name = "robustness/delta_validity"
    scored = SCORED | {"metrics": {"names": ["metrics.robustness.delta_validity"]}}
    people = both, {3: Label("granted"), 4: Label("refused")}
    given = [(k, 1, row) for k, row in both.to_dict("index").items()]
    run = stored(tmp_path, linear.classifier, people, given, scored=scored)
    pd.DataFrame({"factual": [3, 4], name: [1.0, 1.0]}).to_csv(tmp_path / "scores.csv", index=False)
    accepted = [{"factual": k, "ce": 1, "verdict": "accepted"} for k in both.index]
    assert retrained.faults(run, accepted) == ([], 0)


def test_retrained_models_are_asked_for_what_was_wanted_for_each_person(run: Any) -> None:
    """Two people get the same row: for one counts the share of models that grant it, for the other the rest of 1."""
    again = Retraining(Training(TREE, SPACE, TRAIN, LABELS, ("refused", "granted"), cache=run.path / "models"))
    share = np.mean([model.predict(POINTS.iloc[[1]]) == "granted" for model in again.models("bootstrap")])
    assert share > 0.5  # an income of 99: nearly all do
    row, people = POINTS.to_dict("records")[1], {3: Label("granted"), 4: Label("refused")}
    run.factuals = lambda: (POINTS.iloc[[1, 1]].set_axis(list(people)), people)
    run.rows = lambda: [{"factual": person, "ce": 1, "row": row} for person in people]
    shares = pd.DataFrame({"factual": list(people), "retraining/bootstrap": [share, 1 - share]})
    shares.to_csv(run.path / "scores.csv", index=False)
    accepted = [{"factual": person, "ce": 1, "verdict": "accepted"} for person in people]
    assert retrained.faults(run, accepted) == ([], 0)


def test_models_that_are_not_there_are_counted(run: Any) -> None:
    (run.path / "models" / f"{run.meta['retrained']['bootstrap'][0]}.skops").unlink()
    assert retrained.faults(run, ACCEPTED) == ([], 1)


def test_the_metric_says_the_same(run: Any) -> None:
    """It takes the models of the process, the checker those of the cache."""
    training = Training(TREE, SPACE, TRAIN, LABELS, ("refused", "granted"))
    own = replace(training.done().classifier, retraining=Retraining(training))
    valid = POINTS[own.predict(POINTS) == "granted"]
    assert len(valid) == 2
    known = pd.read_csv(run.path / "scores.csv")["retraining/bootstrap"][0]
    assert bootstrap(factual, POINTS, replace(problem, classifier=own)) == pytest.approx(known)


AMENDED = [
    (GradientBoostingClassifier(n_estimators=3, max_depth=1, random_state=0), {"decision": "sum_of_trees"}),
    (LogisticRegression(C=0.1), {"decimals": 0}),
]


@pytest.mark.parametrize(("estimator", "settings"), AMENDED)
def test_retrained_models_are_amended_as_the_runs_own(
    estimator: Any, settings: dict[str, Any], tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their weights rounded, or class 1 by the sum of trees; as they were fitted they say another share."""
    monkeypatch.setenv("CE_HARNESS_CACHE", str(tmp_path))
    plain = Training(estimator, SPACE, TRAIN, LABELS, ("refused", "granted"), cache=tmp_path / "models")
    run, share = of_shares(tmp_path, replace(plain, amended=Amended(**settings)), **settings)
    models = Retraining(plain).models("bootstrap")
    assert share != np.mean([model.predict(POINTS) == "granted" for model in models])
    assert retrained.faults(run, ACCEPTED) == ([], 0)
