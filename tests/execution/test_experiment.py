"""Which factuals are asked about, with which target, and how their answers are stored."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from harness.core.classifier import Classifier
from harness.core.errors import DatasetError
from harness.core.explanation import Explanation, Reason, Status
from harness.core.problem import Problem
from harness.core.target import Label
from harness.data import Dataset
from harness.execution.experiment import Workers, entropy, run
from harness.execution.pool import Limits, Outcome
from harness.execution.satisfied import WithoutCopies
from harness.execution.task import EXPLAIN, Task, make_task
from harness.store.run import StoredRun
from methods.nearest import Nearest

LIMITS = Limits()


@pytest.fixture(scope="module")
def dataset(problem: Problem) -> Dataset:
    """The small problem's rows: the first 150 to train on, the last 50 to explain."""
    rows = np.arange(len(problem.train))
    return Dataset(
        "toy", problem.space, problem.train, problem.labels, ("bad", "good"), "good", rows[:150], rows[150:], "0" * 64
    )


@pytest.fixture(scope="module")
def classifier(problem: Problem) -> Classifier:
    return problem.classifier


def ids(question: Task) -> list[int]:
    return question.factuals.index.tolist()


def test_factuals_are_undesired_test_rows(dataset: Dataset, classifier: Classifier) -> None:
    """The first of a seeded permutation: fewer are a prefix of more, another seed gives others."""
    question = make_task(dataset, classifier, n_factuals=8)
    assert len(ids(question)) == 8
    assert set(ids(question)) <= set(dataset.frame.index[dataset.test])
    assert set(classifier.predict(question.factuals)) == {"bad"}
    assert ids(make_task(dataset, classifier, n_factuals=5)) == ids(question)[:5]
    assert ids(make_task(dataset, classifier, n_factuals=8)) == ids(question)
    assert ids(make_task(dataset, classifier, n_factuals=8, seed=1)) != ids(question)


def test_all_rows_may_be_explained(dataset: Dataset, classifier: Classifier) -> None:
    question = make_task(dataset, classifier, which="all", n_factuals=1000)
    assert set(ids(question)) == set(np.flatnonzero(classifier.predict(dataset.frame) == "bad"))


def test_methods_see_training_rows_only(dataset: Dataset, classifier: Classifier) -> None:
    """Training rows with their labels; factuals with the same target share one problem."""
    question = make_task(dataset, classifier)
    (problem,) = question.problems.values()
    pd.testing.assert_frame_equal(problem.train, dataset.frame.iloc[:150])
    np.testing.assert_array_equal(problem.labels, dataset.labels[:150])
    assert all(question.problem(index) is problem for index in question.factuals.index)


def test_the_opposite_class_is_each_factuals_own(dataset: Dataset, classifier: Classifier) -> None:
    """One problem a class, and nobody is satisfied."""
    question = make_task(dataset, classifier, desired="opposite", n_factuals=20)
    assert set(question.problems) == {Label("bad"), Label("good")}
    assert not any(question.satisfied(index) for index in question.factuals.index)


def test_rows_may_be_named(dataset: Dataset, classifier: Classifier) -> None:
    """By number, each once, in the order given; also those that are already desired."""
    good = int(np.flatnonzero(classifier.predict(dataset.frame) == "good")[0])
    bad = int(np.flatnonzero(classifier.predict(dataset.frame) == "bad")[0])
    question = make_task(dataset, classifier, which=[good, bad, good])
    assert ids(question) == [good, bad]
    assert [question.satisfied(index) for index in (good, bad)] == [True, False]
    assert ids(make_task(dataset, classifier, which=bad)) == [bad]
    with pytest.raises(DatasetError, match="no row 1000 among the factuals of toy; allowed: 0 to 199"):
        make_task(dataset, classifier, which=[1000])
    with pytest.raises(DatasetError, match="names no row"):
        make_task(dataset, classifier, which=[])


def test_people_may_come_from_a_file(dataset: Dataset, classifier: Classifier, tmp_path: Path) -> None:
    """Columns in any order, others ignored; values come as the space has them; faults are named."""
    people = dataset.frame.iloc[[7, 9]]
    people.assign(name=["A", "B"])[[*reversed(people.columns), "name"]].to_csv(tmp_path / "people.csv", index=False)
    question = make_task(dataset, classifier, which=str(tmp_path / "people.csv"))
    pd.testing.assert_frame_equal(question.factuals, people.reset_index(drop=True))
    people.drop(columns="age").to_csv(tmp_path / "people.csv", index=False)
    with pytest.raises(DatasetError, match=r"people\.csv has no column 'age'"):
        make_task(dataset, classifier, which=str(tmp_path / "people.csv"))
    people.iloc[:0].to_csv(tmp_path / "people.csv", index=False)
    with pytest.raises(DatasetError, match=r"people\.csv has no rows"):
        make_task(dataset, classifier, which=str(tmp_path / "people.csv"))
    with pytest.raises(DatasetError, match="factuals=tset is no file"):
        make_task(dataset, classifier, which="tset")


def test_nothing_undesired_is_an_error(dataset: Dataset, classifier: Classifier) -> None:
    lenient = Classifier(classifier.estimator, classifier.inputs, classifier.classes, threshold=0.0)
    with pytest.raises(DatasetError, match="already predicts 'good' for every row of factuals=test"):
        make_task(dataset, lenient)


class Recorder:
    """A pool that answers at once, and keeps what it was asked."""

    def __init__(self, setup_seconds: float = 2.0) -> None:
        self.setup = {"setup_seconds": setup_seconds, "setup_cpu_seconds": 1.5}
        self.asked: list[int] = []
        self.methods: list[Any] = []
        self.seeds: dict[int, tuple[int, ...]] = {}

    def explain(
        self, method: Any, problem_of: Any, factuals: pd.DataFrame, count: int, seed: Any, limits: Limits, jobs: int
    ) -> Iterator[Outcome]:
        self.methods.append(method)
        for index in factuals.index:
            self.asked.append(index)
            self.seeds[index] = seed(index)
            explanation = Explanation.none(count, Status.GAVE_UP, Reason.FINISHED)
            found = Explanation(explanation.answers, ("hull",), ({"step": 1},))
            yield Outcome(index, found, seconds=0.5, fit_seconds=0.25, cpu_seconds=0.4, peak_mib=300.0, **self.setup)


def started(question: Task, folder: Path) -> StoredRun:
    cell = StoredRun(folder)
    meta = {"dataset": "toy", "model": "lr", "method": "nearest", "n_counterfactuals": 2}
    cell.start(meta, question.dataset.space, question.classifier, question.targets, None, question.factuals)
    return cell


def asked(
    cell: StoredRun, question: Task, seed: int = 0, setup_seconds: float = 2.0, **settings: str
) -> tuple[Recorder, int]:
    """Run a cell; the pool, and how many factuals the progress bar has seen."""
    pool, progress = Recorder(setup_seconds), []
    run(
        cell,
        question,
        Nearest(),
        2,
        seed,
        Workers(pool, LIMITS),
        progress=progress.append,
        **settings,  # type: ignore[arg-type]
    )
    return pool, sum(progress)


def test_every_factual_gets_its_rows(dataset: Dataset, classifier: Classifier, tmp_path: Path) -> None:
    """Numbered from 1, with times; conflict and trace stand with the first. The cell is done."""
    question = make_task(dataset, classifier, n_factuals=4)
    cell = started(question, tmp_path)
    pool, progress = asked(cell, question)
    assert pool.asked == ids(question)
    assert progress == 4
    assert cell.done
    assert [(row["factual"], row["ce"]) for row in cell.rows()] == [(i, n) for i in ids(question) for n in (1, 2)]
    first, second = cell.rows()[:2]
    assert (first["seconds"], first["cpu_seconds"], first["fit_seconds"]) == (0.5, 0.4, 0.25)
    assert (first["late"], first["jobs"], first["peak_mib"]) == (False, 1, 300.0)
    assert (first["conflict"], first["trace"]) == (["hull"], [{"step": 1}])
    assert "trace" not in second


def test_only_missing_factuals_are_asked(dataset: Dataset, classifier: Classifier, tmp_path: Path) -> None:
    """What is answered stays, and counts as progress; so does the set-up that was measured first."""
    question = make_task(dataset, classifier, n_factuals=4)
    cell = started(question, tmp_path)
    asked(cell, question)
    rows = cell.path / "rows.jsonl"
    rows.write_text("".join(rows.read_text().splitlines(keepends=True)[:4]))
    pool, progress = asked(cell, question, setup_seconds=9.0)
    assert cell.meta["setup"] == {"seconds": 2.0, "cpu_seconds": 1.5}
    assert pool.asked == ids(question)[2:]
    assert progress == 4
    assert len(cell.rows()) == 8


def test_a_satisfied_factual_is_not_asked(dataset: Dataset, classifier: Classifier, tmp_path: Path) -> None:
    """Its rows are UNSUPPORTED, refused, and say why."""
    predicted = classifier.predict(dataset.frame)
    good, bad = (int(np.flatnonzero(predicted == label)[0]) for label in ("good", "bad"))
    question = make_task(dataset, classifier, which=[good, bad])
    cell = started(question, tmp_path)
    pool, _ = asked(cell, question)
    assert pool.asked == [bad]
    assert cell.meta["setup"]["seconds"] == 2.0
    refused = [row for row in cell.rows() if row["factual"] == good]
    assert [(row["status"], row["reason"]) for row in refused] == [("UNSUPPORTED", "refused")] * 2
    assert "already" in refused[0]["detail"]
    spent = ("seconds", "fit_seconds", "compile_seconds", "late")
    assert [[row[name] for name in spent] for row in refused] == [[0.0, 0.0, 0.0, False]] * 2


def test_a_satisfied_factual_is_asked_on_request(dataset: Dataset, classifier: Classifier, tmp_path: Path) -> None:
    """Of a method that is told which these are."""
    predicted = classifier.predict(dataset.frame)
    good, bad = (int(np.flatnonzero(predicted == label)[0]) for label in ("good", "bad"))
    question = make_task(dataset, classifier, which=[good, bad])
    cell = started(question, tmp_path)
    pool, progress = asked(cell, question, satisfied="ask")
    assert (pool.asked, progress) == ([good, bad], 2)
    assert pool.methods == [WithoutCopies(Nearest(), frozenset({good}))]
    assert {row["status"] for row in cell.rows()} == {"GAVE_UP"}
    unasked = started(question, tmp_path / "other")
    assert asked(unasked, question)[0].methods == [Nearest()]


def test_a_factuals_randomness_is_its_own(dataset: Dataset, classifier: Classifier, tmp_path: Path) -> None:
    """It depends on the seed and the factual, not on the company it is asked in."""
    many, few = (make_task(dataset, classifier, n_factuals=n) for n in (6, 2))
    together = asked(started(many, tmp_path / "many"), many)[0].seeds
    alone = asked(started(few, tmp_path / "few"), few)[0].seeds
    other = asked(started(few, tmp_path / "other"), few, seed=1)[0].seeds
    assert alone.items() <= together.items()
    assert len(set(together.values())) == 6
    assert not set(other.values()) & set(together.values())


@pytest.mark.parametrize(
    ("factual", "number"),
    [(7, 7), (np.int64(123456789), 123456789), ("123456789", 0xCBF43926)],
)
def test_a_name_has_randomness_of_its_own_too(factual: Any, number: int) -> None:
    """Numbers as they are; of text its CRC-32, whose value of these nine digits is the standard's."""
    assert entropy(5)(factual) == (5, EXPLAIN, number)


@pytest.mark.parametrize(("bound", "units"), [(10.0, True), (0.5, False)])
def test_a_relation_that_no_row_keeps_is_asked_for_its_units(
    bound: float, units: bool, dataset: Dataset, classifier: Classifier, caplog: pytest.LogCaptureFixture
) -> None:
    """In parts of the range of incomes: ten of them nobody has, half of it some do."""
    low, high = dataset.space["income"].scale
    space = replace(dataset.space, constraints=(f"income >= {low + bound * (high - low)}",))
    logging.getLogger("harness").propagate = True
    with caplog.at_level(logging.WARNING, "harness"):
        make_task(replace(dataset, space=space), classifier, n_factuals=20)
    (said,) = [record.getMessage() for record in caplog.records if "may not break it further" in record.getMessage()]
    assert said.endswith(", which no row of the table keeps: is it in other units?") is units
