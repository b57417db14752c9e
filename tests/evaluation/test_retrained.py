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


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A run of one question with two accepted answers, scored by ``retraining/bootstrap``."""
    monkeypatch.setenv("CE_HARNESS_CACHE", str(tmp_path))
    training = Training(TREE, SPACE, TRAIN, LABELS, ("refused", "granted"), cache=tmp_path / "models")
    again = Retraining(training)
    share = np.mean([model.predict(POINTS) == "granted" for model in again.models("bootstrap")])
    assert 0 < share < 1
    pd.DataFrame({"factual": [3], "retraining/bootstrap": [share]}).to_csv(tmp_path / "scores.csv", index=False)
    return SimpleNamespace(
        path=tmp_path,
        packed=False,
        meta={"retrained": again.names, "scored": SCORED, "config": {"model": {}}},
        space=SPACE,
        classifier=training.done().classifier,
        factuals=lambda: (POINTS.iloc[:1].set_axis([3]), {3: Label("granted")}),
        rows=lambda: [{"factual": 3, "ce": k + 1, "row": row} for k, row in enumerate(POINTS.to_dict("records"))],
    )


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
    one = SimpleNamespace(
        path=tmp_path,
        packed=False,
        meta={"scored": SCORED | {"metrics": {"names": [f"metrics.{column.replace('/', '.')}"]}}, "config": {}},
        space=SPACE,
        classifier=linear.classifier,
        factuals=lambda: (factual.set_axis([3]), {3: Label("granted")}),
        rows=lambda: [{"factual": 3, "ce": k + 1, "row": row} for k, row in enumerate(both.to_dict("records"))],
    )
    for stored, wrong in ((getattr(robustness, name)(factual, both, linear), False), (held + 0.1, True)):
        assert wrong or stored == pytest.approx(held, abs=1e-3)
        pd.DataFrame({"factual": [3], column: [stored]}).to_csv(tmp_path / "scores.csv", index=False)
        sentences, missing = retrained.faults(one, ACCEPTED)  # type: ignore[arg-type]
        assert (len(sentences), missing) == (wrong, 0)
        assert all(f"{column} of factual 3 is stored as {stored:g}" in sentence for sentence in sentences)


def test_each_answer_is_held_against_what_was_wanted_for_its_person(tmp_path: Path) -> None:
    """One far above the threshold and one far below, each as wanted: neither is lost by a small change of weights."""
    both = answers.iloc[[0, 0]].assign(income=[80.0, 20.0]).set_axis([3, 4])
    name = "robustness/delta_validity"
    run = SimpleNamespace(
        path=tmp_path,
        packed=False,
        meta={"scored": SCORED | {"metrics": {"names": ["metrics.robustness.delta_validity"]}}, "config": {}},
        space=SPACE,
        classifier=linear.classifier,
        factuals=lambda: (both, {3: Label("granted"), 4: Label("refused")}),
        rows=lambda: [{"factual": k, "ce": 1, "row": row} for k, row in both.to_dict("index").items()],
    )
    pd.DataFrame({"factual": [3, 4], name: [1.0, 1.0]}).to_csv(tmp_path / "scores.csv", index=False)
    accepted = [{"factual": k, "ce": 1, "verdict": "accepted"} for k in both.index]
    assert retrained.faults(run, accepted) == ([], 0)  # type: ignore[arg-type]


def test_retrained_models_are_asked_for_what_was_wanted_for_each_person(run: Any) -> None:
    """Two people get the same row: for one counts the share of models that grant it, for the other the rest of 1."""
    again = Retraining(Training(TREE, SPACE, TRAIN, LABELS, ("refused", "granted"), cache=run.path / "models"))
    share = np.mean([model.predict(POINTS.iloc[[1]]) == "granted" for model in again.models("bootstrap")])
    assert share > 0.5  # an income of 99: nearly all do
    row, people = POINTS.to_dict("records")[1], {3: Label("granted"), 4: Label("refused")}
    run.factuals = lambda: (POINTS.iloc[[1, 1]].set_axis(list(people)), people)
    run.rows = lambda: [{"factual": person, "ce": 1, "row": row} for person in people]
    stored = pd.DataFrame({"factual": list(people), "retraining/bootstrap": [share, 1 - share]})
    stored.to_csv(run.path / "scores.csv", index=False)
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
    stored = pd.read_csv(run.path / "scores.csv")["retraining/bootstrap"][0]
    assert bootstrap(factual, POINTS, replace(problem, classifier=own)) == pytest.approx(stored)


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
    training = replace(plain, amended=Amended(**settings))
    again = Retraining(training)
    share, other = (
        np.mean([model.predict(POINTS) == "granted" for model in each.models("bootstrap")])
        for each in (again, Retraining(plain))
    )
    assert share != other
    pd.DataFrame({"factual": [3], "retraining/bootstrap": [share]}).to_csv(tmp_path / "scores.csv", index=False)
    run: Any = SimpleNamespace(
        path=tmp_path,
        packed=False,
        meta={"retrained": again.names, "scored": SCORED, "config": {"model": settings}},
        space=SPACE,
        classifier=training.done().classifier,
        factuals=lambda: (POINTS.iloc[:1].set_axis([3]), {3: Label("granted")}),
        rows=lambda: [{"factual": 3, "ce": k + 1, "row": row} for k, row in enumerate(POINTS.to_dict("records"))],
    )
    assert retrained.faults(run, ACCEPTED) == ([], 0)
