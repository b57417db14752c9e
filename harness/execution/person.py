"""Whom a method is asked about in Python: a row of the table, or a person of any kind."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from textwrap import shorten
from typing import Any, TypeAlias

import pandas as pd

from harness.core.errors import DatasetError
from harness.core.frames import with_columns
from harness.core.numbers import whole
from harness.core.problem import Problem
from harness.data import Dataset
from harness.data.csv_factuals import person_read
from harness.data.in_memory import check_person
from harness.execution.task import Task

Person: TypeAlias = int | Mapping[str, Any] | pd.Series | pd.DataFrame

logger = logging.getLogger(__name__)


def person_of(task: Task, person: Person) -> tuple[pd.DataFrame, Problem]:
    """One decoded row with its id, and the problem it poses."""
    space, rows = task.dataset.space, task.factuals
    if whole(person):
        if person not in rows.index:
            first, last = int(rows.index.min()), int(rows.index.max())
            dropped = ", without the rows dropped as incomplete" * (len(rows) <= last - first)
            raise DatasetError(f"there is no row {person} in the table; allowed: {first} to {last}{dropped}.")
        return rows.loc[[int(person)]], task.problem(int(person))
    frame = person if isinstance(person, pd.DataFrame) else None
    if isinstance(person, Mapping | pd.Series):
        frame = pd.Series(person if isinstance(person, pd.Series) else dict(person), dtype=object).to_frame().T
    if frame is None or len(frame) != 1:
        given = f"{len(frame)} rows" if frame is not None else shorten(repr(person), 80)
        many = "; several: [explain(method, question, one) for one in ...]" * (
            isinstance(person, Iterable) and not isinstance(person, str)
        )
        raise DatasetError(f"{given} is no person; give a row number, values by feature, or a frame of one row{many}.")
    if not frame.columns.is_unique:
        raise DatasetError(f"the person has two columns {frame.columns[frame.columns.duplicated()][0]!r}; drop one.")
    frame = pd.DataFrame([person_read(task.dataset, frame.astype(object).iloc[0])])
    frame = _without_gaps(task.dataset, frame)
    check_person(space, frame)
    factual = space.frame(frame[list(space.names)].astype(object).to_dict("records")).set_axis(["new"])
    factual = task.dataset.reading.clipped("the person", factual)
    problems = list(task.problems.values())
    return factual, next((problem for problem in problems if not problem.valid(factual)[0]), problems[0])


def _without_gaps(dataset: Dataset, frame: pd.DataFrame) -> pd.DataFrame:
    """A person with each gap filled as those of the table are."""
    if held := [name for name in dataset.reading.fills if name in frame.columns and frame[name].isna().any()]:
        logger.warning("the person: missing %s filled by the training rows.", ", ".join(held))
    return dataset.reading.cut(with_columns(frame, {name: [dataset.reading.filler(name)] for name in held}))
