"""Training and test rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from sklearn.model_selection import train_test_split

from harness.core.errors import DatasetError
from harness.core.numbers import SEEDS, number, whole
from harness.data.csv_notation import date_formats
from harness.data.description import SPLIT, one_of

CLOCKS = ("", " %H:%M", " %H:%M:%S")  # times of day behind a date


def train_and_test(
    name: str,
    split: Mapping[str, Any] | str | None,
    labels: np.ndarray,
    classes: tuple[Any, ...],
    in_last: np.ndarray,
    columns: pd.DataFrame,
) -> tuple[np.ndarray, np.ndarray]:
    """Positions of training and test rows.

    Parameters
    ----------
    in_last
        Which rows are of the last file.
    columns
        All columns of the rows, by one of which they may be split: ``time``.
    """
    rows = np.arange(len(labels))
    if split is None or split == "none":
        return rows, rows
    if split == "files":
        if in_last.all() or not in_last.any():
            raise DatasetError(f"{name} has no two files with rows to split by; 'split' may be none or {SPLIT}.")
        return rows[~in_last], rows[in_last]
    if not isinstance(split, Mapping):
        raise DatasetError(f"'split' is {str(split)[:80]!r}; allowed: none, files, or a mapping such as {SPLIT}.")
    for key in split:
        one_of(key, SPLIT, "'split' has no entry")
    options = {**SPLIT, **split}
    size, stratify, seed = options["test_size"], options["stratify"], options["seed"]
    if not (number(size) and 0 < size < 1):
        raise DatasetError(f"'test_size' of the split is {size!r}; allowed: a share between 0 and 1, such as 0.25.")
    if not (whole(seed) and 0 <= seed < SEEDS):
        raise DatasetError(f"'seed' of the split is {seed!r}; allowed: a whole number from 0, below {SEEDS}.")
    if not isinstance(stratify, bool):
        raise DatasetError(f"'stratify' of the split is {stratify!r}; allowed: true, false.")
    if options["time"] is not None:
        return _by_time(name, columns, str(options["time"]), float(size))
    if stratify:
        for cls in classes:
            if (labels == cls).sum() < 2:
                raise DatasetError(
                    f"{name} has a single row of class {cls!r}, which cannot be in both training and test rows; add "
                    f"rows, or set the split's 'stratify: false'."
                )
    by_class = np.array([classes.index(label) for label in labels]) if stratify and classes else None
    try:
        train, test = train_test_split(rows, test_size=size, stratify=by_class, random_state=seed)
    except ValueError as fault:
        raise DatasetError(
            f"{name} cannot be split by {options} ({str(fault).rstrip('.')}); "
            f"try 'stratify: false' or another 'test_size'."
        ) from fault
    return np.sort(train), np.sort(test)


def _moments(name: str, column: str, texts: pd.Series) -> pd.Series:
    """Texts as moments, by ISO or the one other way in which all of them are written; NaT where there is none.

    Raises
    ------
    DatasetError
        Where they are other moments read in another way, as 03/04/2021 is.
    """
    found = pd.to_datetime(texts, errors="coerce", format="ISO8601")
    if not found.isna().any():
        return found
    ways = date_formats(texts.str.partition(" ")[0].unique().tolist())
    if len(ways) > 1:
        raise DatasetError(
            f"{name} cannot be split by time: {texts.iloc[0]!r} in {column!r} can be read in two ways; write its dates "
            f"as 2021-12-31."
        )
    read = (pd.to_datetime(texts, errors="coerce", format=f"{w.date}{clock}") for w in ways for clock in CLOCKS)
    return next((moments for moments in read if not moments.isna().any()), found)


def _by_time(name: str, columns: pd.DataFrame, column: str, size: float) -> tuple[np.ndarray, np.ndarray]:
    """The earlier rows and the later ones; those of the time at the cut are all earlier."""
    one_of(column, columns.columns, f"{name} has no column to split by time named")
    times = pd.to_numeric(columns[column], errors="coerce")
    if times.isna().any():
        times = _moments(name, column, columns[column].astype(str).str.strip())
    if times.isna().any():
        place = int(np.argmax(times.isna()))
        raise DatasetError(
            f"{name} cannot be split by time: {column!r} of row {columns.index[place]} is "
            f"{str(columns[column].iloc[place])[:40]!r}, neither a number nor a date; name a column that has one in "
            f"every row, or set 'time: null'."
        )
    cut = times.sort_values().iloc[max(0, len(times) - 1 - round(size * len(times)))]
    late = (times > cut).to_numpy()
    if not late.any():
        raise DatasetError(f"{name} cannot be split by time: no row has a {column!r} after {cut}; set 'time: null'.")
    return np.flatnonzero(~late), np.flatnonzero(late)
