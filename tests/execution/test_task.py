"""Which rows are factuals, and whom the target holds for already, on eight rows of one number."""

from __future__ import annotations

import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression, Ridge

from harness.core.classifier import Classifier
from harness.core.equation import Equation, Formula
from harness.core.errors import DatasetError
from harness.core.inputs import Affine, space_inputs
from harness.core.problem import Problem
from harness.core.space import Feature, Space
from harness.core.target import Interval, Label, Probability
from harness.data import Dataset
from harness.execution import task as tasks
from harness.execution.task import Task, make_task

SPACE = Space((Feature("x", "continuous", scale=(0, 10), bounds=(0, 10)),))
VALUES = [1.0, 8.0, 2.0, 9.0, 3.0, 7.0, 4.0, 6.0]  # wanted above 5: the rows at odd places
FRAME = SPACE.frame({"x": value} for value in VALUES).set_axis(range(10, 18))
ROWS = np.arange(8)


def dataset(**changes: Any) -> Dataset:
    """Tested are the last five rows."""
    labels = np.array(["bad", "good"] * 4, dtype=object)
    made = Dataset("toy", SPACE, FRAME, labels, ("bad", "good"), "good", ROWS[:3], ROWS[3:], "0" * 64)
    return replace(made, **changes)


def classifier(*classes: str) -> Classifier:
    codes = ROWS % 2 if len(classes) < 3 else np.digitize(VALUES, [3.5, 6.5])
    model = LogisticRegression(C=100).fit(SPACE.encode(FRAME), codes)
    return Classifier(model, space_inputs(SPACE), classes or ("bad", "good"))


def picked(which: Any, count: int = 30, desired: Any = None, seed: int = 0) -> list[int]:
    task = make_task(dataset(), classifier(), desired, which, count, seed)
    return [int(index) for index in task.factuals.index]


def test_rows_are_picked_from_where_it_is_said() -> None:
    """Of the undesired rows 10, 12, 14 and 16 the last two are tested; training rows come after all of these."""
    assert set(picked("test")) == {14, 16}
    assert picked("test", 1) == picked("test")[:1]
    assert set(picked("all")) == {10, 12, 14, 16}
    both = picked("test_then_train")
    assert both[:2] == picked("test")
    assert set(both[2:]) == {10, 12}
    assert picked("test_then_train", 3) == both[:3]
    assert set(picked("test", desired="bad")) == {13, 15, 17}


def test_the_first_test_rows_are_those_of_the_permutation() -> None:
    """Of seed and stream 0, the generator of the factuals; the methods' numbers are of stream 1."""
    for seed in range(4):
        order = np.random.default_rng(np.random.SeedSequence([seed, 0])).permutation(8)
        assert picked("all", seed=seed) == [10 + int(row) for row in order if row % 2 == 0]
    assert (tasks.PICK, tasks.EXPLAIN) == (0, 1)


def test_rows_by_number_are_taken_as_they_are() -> None:
    assert picked(13) == [13]
    assert picked([16, 13, 16]) == picked((16, 13)) == [16, 13]
    for wrong in (9, 18, [10, 99]):
        with pytest.raises(DatasetError, match=r"there is no row \d+ among the factuals of toy; allowed: 10 to 17"):
            picked(wrong)


@pytest.mark.parametrize(
    ("which", "words"),
    [
        (None, "factuals=null does not fit"),
        (True, "factuals=True does not fit"),
        (1.5, "factuals=1.5 does not fit"),
        ([], "names no row"),
        ("tset", "factuals=tset is no file"),
        ("published", "no factuals are published for toy"),
    ],
)
def test_what_names_no_rows_is_an_error(which: Any, words: str) -> None:
    with pytest.raises(DatasetError, match=words):
        picked(which)


def test_published_factuals_are_the_first_of_their_file(monkeypatch: pytest.MonkeyPatch) -> None:
    """Desired ones, too: the paper explained them."""
    monkeypatch.setattr(tasks, "published_factuals", lambda data: data.frame.iloc[[3, 2, 4]])
    assert picked("published") == [13, 12, 14]
    assert picked("published", 2) == [13, 12]


def test_a_file_is_read_from_the_home_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    FRAME.iloc[[4, 2]].to_csv(tmp_path / "people.csv", index=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    task = make_task(dataset(), classifier(), which="~/people.csv")
    assert task.factuals["x"].tolist() == [3.0, 2.0]


def test_the_opposite_is_each_ones_other_class() -> None:
    """Also of the first rows, whatever they are predicted as; not with three classes."""
    task = make_task(dataset(), classifier(), "opposite", "test", 4)
    order = np.random.default_rng(np.random.SeedSequence([0, 0])).permutation(ROWS[3:])
    assert task.factuals.index.tolist() == [10 + row for row in order[:4]]
    assert task.targets == {10 + row: Label("bad" if row % 2 else "good") for row in order[:4]}
    assert set(task.problems) == set(task.targets.values())
    with pytest.raises(DatasetError, match="desired=opposite needs two classes; choose one of: low, mid, top"):
        make_task(dataset(desired="opposite"), classifier("low", "mid", "top"))


def test_nobody_left_to_explain_is_an_error() -> None:
    """It names what is wanted: by the user, or by the dataset."""
    for desired, shown in ((None, "good"), ("bad", "bad")):
        content = dataset(test=ROWS[1::2] if shown == "good" else ROWS[::2])
        with pytest.raises(DatasetError, match=f"already predicts '{shown}' for every row of factuals=test"):
            make_task(content, classifier(), desired)


def test_equations_are_those_of_the_dataset() -> None:
    """By feature; a feature that is stated to have none needs none."""
    own = Equation("x", Classifier(Formula((1.0,)), (Affine("x"),)))
    for causality, equations in (({"x": {"formula": "1"}}, (own,)), ({"x": None}, ()), ({}, ())):
        task = make_task(dataset(causality=causality), classifier(), equations=equations)
        assert all(problem.equations == equations for problem in task.problems.values())
    for causality, equations in (({"x": {"formula": "1"}}, ()), ({"x": None}, (own,)), ({}, (own,))):
        with pytest.raises(DatasetError, match="toy and the equations do not agree on x"):
            make_task(dataset(causality=causality), classifier(), equations=equations)


def mixed() -> Task:
    """Each row with one of three targets, of which eight rows share two; the last holds for no one."""
    known = classifier()
    targets = [Label("good"), Label("bad"), Probability("good", 0.0, 0.0)]
    problems = {target: Problem(SPACE, known, FRAME, np.array([]), target) for target in targets}
    return Task(
        dataset(), known, FRAME, dict(zip(FRAME.index, [targets[i // 3] for i in range(8)], strict=True)), problems
    )


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 8, 100])
def test_whom_the_target_holds_for_is_asked_in_blocks(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows 10 to 12 want "good", and 11 has it; 13 to 15 want "bad", and 14 has it. Each block is asked about once."""
    monkeypatch.setattr(tasks, "BLOCK", size)
    asked: list[list[int]] = []
    content = Task.content
    monkeypatch.setattr(Task, "content", lambda self, rows: asked.append(rows.index.tolist()) or content(self, rows))
    task = mixed()
    for _ in range(2):
        assert [index for index in reversed(task.factuals.index) if task.satisfied(index)] == [14, 11]
    assert sorted(asked) == [list(range(10 + start, min(10 + start + size, 18))) for start in range(0, 8, size)]


def test_the_content_are_those_of_their_own_target() -> None:
    """Of some factuals, in their order; a problem is that of the factual's target."""
    task = mixed()
    assert task.content(FRAME.iloc[[4, 3, 1, 0, 7]]).tolist() == [True, False, True, False, False]
    assert task.content(FRAME.iloc[:0]).tolist() == []
    assert [task.problem(index).target for index in (10, 14, 17)] == list(task.problems)


def test_a_number_may_be_wanted() -> None:
    """Above 5, of a regression: the rows below it are asked about."""
    values = pd.Series(VALUES).to_numpy()
    model = Ridge(1e-9).fit(SPACE.encode(FRAME), values)
    numeric = dataset(labels=values, classes=(), desired=">= 5")
    task = make_task(numeric, Classifier(model, space_inputs(SPACE)), which="all")
    assert set(task.factuals["x"]) == {1.0, 2.0, 3.0, 4.0}
    assert set(task.targets.values()) == {Interval(5.0, np.inf)}


def test_a_problem_is_sent_as_it_was_made(problem: Problem) -> None:
    """Without what was computed of it here: each process begins with the same."""
    rows = problem.encoded
    sent = pickle.loads(pickle.dumps(problem))
    assert "encoded" in vars(problem)
    assert "encoded" not in vars(sent)
    np.testing.assert_array_equal(sent.encoded, rows)
