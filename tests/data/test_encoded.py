"""Columns that came encoded: found and proposed as relations that can be pasted, and not found where there are none."""

from __future__ import annotations

import logging
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.tree import DecisionTreeClassifier

from harness.data import load_csv
from harness.library import pose

ROWS = 200


def table(**columns: np.ndarray) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame({"income": rng.normal(50, 10, ROWS), **columns, "y": np.resize(["no", "yes"], ROWS)})


def found(path: Path, frame: pd.DataFrame, **settings: object) -> list[str]:
    frame.to_csv(path / "people.csv", index=False)
    notices = load_csv(path / "people.csv", "y", **settings).notices
    return [text.split('constraints=["')[1].split('"]')[0] for text in notices if "constraints=[" in text]


def job(values: np.ndarray, *names: str) -> dict[str, np.ndarray]:
    return {name: (values == place).astype(int) for place, name in enumerate(names)}


JOB = np.random.default_rng(1).integers(0, 3, ROWS)
CHILDREN = np.random.default_rng(2).integers(0, 4, ROWS)


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        (job(JOB, "job_none", "job_part", "job_full"), ["job_none + job_part + job_full == 1"]),
        (job(JOB, "a1", "a2", "a3"), ["a1 + a2 + a3 == 1"]),
        (job(JOB % 2, "female", "male"), ["female + male == 1"]),
        (job(JOB, "job=none", "job=part", "job=full"), ["`job=none` + `job=part` + `job=full` == 1"]),
        (
            {f"children>={k}": (k <= CHILDREN).astype(int) for k in (1, 2, 3)},
            ["`children>=1` >= `children>=2` >= `children>=3`"],
        ),
        (
            {**job(JOB, "a1", "a2", "a3"), **{f"c{k}": (k <= CHILDREN).astype(int) for k in (1, 2)}},
            ["a1 + a2 + a3 == 1", "c1 >= c2"],
        ),
    ],
)
def test_what_was_encoded_is_proposed(tmp_path: Path, columns: dict[str, np.ndarray], expected: list[str]) -> None:
    """One relation for each group; pasted, it is kept, and proposed no more."""
    frame = table(**columns)
    assert found(tmp_path, frame) == expected
    assert found(tmp_path, frame, constraints=expected) == []
    space = load_csv(tmp_path / "people.csv", "y", constraints=expected).space
    rows = load_csv(tmp_path / "people.csv", "y").frame
    assert not any(relation.broken_by(rows.iloc[[place]]) for relation in space.relations for place in range(20))
    assert not load_csv(tmp_path / "people.csv", "y").space.constraints


@pytest.mark.parametrize("target", ["y", None])
def test_a_notebook_shows_the_proposal_without_any_logging_set_up(
    caplog: pytest.LogCaptureFixture, target: str | None
) -> None:
    """As a warning; given what it proposes, it is silent."""
    frame = table(**job(JOB, "a1", "a2", "a3"))
    model = DecisionTreeClassifier(max_depth=1).fit(frame[["income"]], frame["y"])
    given = frame if target else frame.drop(columns="y")
    notices = pose(given, target, model, desired="yes").dataset.notices
    (proposed,) = (record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING)
    assert proposed in notices
    assert proposed.endswith("add 'constraints=[\"a1 + a2 + a3 == 1\"]'.")
    caplog.clear()
    pose(given, target, model, desired="yes", constraints=["a1 + a2 + a3 == 1"])
    assert not caplog.records


def test_what_may_be_chance_is_not_proposed(tmp_path: Path) -> None:
    """Rare columns, one row that breaks it, columns without both values, few rows, independent columns, texts."""
    rng = np.random.default_rng(3)
    rare = np.zeros(ROWS, dtype=int)
    rare[[3, 9]] = 1
    common = 1 - np.eye(ROWS, dtype=int)[7] - np.eye(ROWS, dtype=int)[8]
    assert found(tmp_path, table(x1=common, x2=rare)) == []
    broken = job(JOB, "a1", "a2", "a3")
    broken["a1"][5] = 1 - broken["a1"][5]
    assert found(tmp_path, table(**broken)) == []
    assert found(tmp_path, table(**job(JOB * 0, "a1", "a2"))) == []
    assert found(tmp_path, table(**{f"x{k}": rng.integers(0, 2, ROWS) for k in range(8)})) == []
    assert found(tmp_path, table(**job(JOB, "a1", "a2", "a3")).iloc[:8]) == []
    assert found(tmp_path, table(b=np.where(JOB > 0, "p", "q"), c=np.where(JOB > 0, "q", "p"))) == []
