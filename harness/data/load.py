"""Raw bytes and a plain description become a Dataset. Knows no configuration framework."""

from __future__ import annotations

import hashlib
import io
import logging
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any, Literal

import numpy as np
import pandas as pd
from pandas.api.types import is_numeric_dtype

from harness.core.errors import DatasetError, choices
from harness.core.space import Actionability, Kind, Space
from harness.core.target import Interval, Label, Target
from harness.data.dataset import OPPOSITE, Dataset
from harness.data.discretise import Discretisation
from harness.data.equations import check
from harness.data.features import (
    MISSED,
    NUMERIC,
    distinct,
    feature_entries,
    filled,
    fitting_entry,
    inferred_kind,
    one_of,
    plain_values,
    typed,
)
from harness.data.sources import Source, read_bytes
from harness.data.split import SPLIT, train_and_test

MISSING = ("error", "drop", "median", "category")
TASKS = ("classification", "regression")
MANY = 20  # distinct fractional target values above which nobody can have meant classes

logger = logging.getLogger(__name__)


def load_dataset(
    name: str,
    sources: Sequence[Mapping[str, Any]],
    target: str,
    *,
    desired: Any = OPPOSITE,
    features: Mapping[str, Mapping[str, Any] | None] | Sequence[str] | None = None,
    immutable: Sequence[str] = (),
    label: Mapping[str, Any] | None = None,
    classes: Sequence[Any] | None = None,
    task: str = "classification",
    missing: str = "error",
    empty: float | None = None,
    outliers: float | None = None,
    unbounded: bool = False,
    drop: Sequence[str] = (),
    read: Mapping[str, Any] | None = None,
    split: Mapping[str, Any] | str | None = SPLIT,
    overrides: Mapping[str, Mapping[str, Any] | None] | None = None,
    causality: Mapping[str, Mapping[str, Any] | None] | None = None,
    tables: tuple[Sequence[pd.DataFrame], str] | None = None,
    discretise: str | Mapping[str, Any] | None = None,
) -> Dataset:
    """Read, check and split a dataset. Every argument is plain data, as it stands in a YAML file.

    Parameters
    ----------
    name
        Name of the dataset.
    sources
        The raw CSV files, one below the other, each as the arguments of ``Source``.
    target
        Name of the label; a column, unless ``label`` says where it comes from.
    desired
        Default of what a counterfactual should get; see ``parse_target``.
    features
        Names, or a mapping from name to attributes, which selects and orders the features; all columns but the label
        unless given. Attributes are ``kind`` (inferred: 0/1, booleans and two texts are binary, whole numbers integer,
        other numbers continuous, more texts categorical), ``categories`` (the sorted values of all rows),
        ``bounds`` (those of the training rows; an end may be null, the training rows' own, or infinite, which 1,000
        training ranges stand for), ``actionability``, ``order`` and ``special``.
    immutable
        Short for ``actionability: immutable`` of these features; those not selected may be among them.
    label
        ``{column, classes}``: the raw column, and a mapping from class name to the raw values it stands for.
    classes
        Raw values of the target, undesired first; sorted unless given. ``label`` gives the order otherwise.
    task
        ``classification`` or ``regression``.
    missing
        ``error``, ``drop`` (the row), ``median`` (of the training rows, rounded for integers; numbers only) or
        ``category`` (a new value "missing"; no numbers).
    empty
        Rows of which every feature holds this code are dropped.
    outliers
        Rows with a number this many standard deviations or more from its mean are dropped, after missing values.
    unbounded
        Numbers without ``bounds`` of their own have none, as in tables of papers that let counterfactuals leave the
        range of the data.
    drop
        Columns that are no features.
    read
        Further arguments of ``pandas.read_csv``.
    split
        ``{test_size, stratify, seed}`` (numbers are never stratified); ``none`` (train = test = all rows); ``files``
        (the last file is the test split).
    overrides
        Feature attributes as in ``features``, applied last.
    causality
        Structural equations by endogenous feature; see ``harness.models.equations.equations``.
    tables
        The files' content and its checksum, where they have been read already; ``sources`` and ``read`` are not used.
    discretise
        Makes every feature discrete: ``quantile``, ``median`` or ``levels``, or a mapping of the parameters of
        ``harness.data.discretise.Discretisation``. Numbers become intervals, ordinal features are one-hot encoded.

    Raises
    ------
    DatasetError
        If the data and the description do not fit.
    """
    one_of(missing, MISSING, f"'missing' of {name} cannot be")
    one_of(task, TASKS, f"'task' of {name} cannot be")
    parts, sha256 = _read(name, sources, dict(read or {})) if tables is None else tables
    raw = pd.concat(parts, ignore_index=True)
    column = _label_column(name, target, label, raw.columns)
    for dropped in drop:
        one_of(dropped, raw.columns, f"{name} has no column to drop named")
    entries = feature_entries(
        name, [c for c in raw.columns if c not in {column, target, *drop}], features, immutable, overrides
    )

    raw = _rows(name, raw[[*entries, column]], column, missing, empty)
    raw = raw if outliers is None else _inliers(name, raw, column, outliers)
    if task == "regression":
        labels, names = _numbers(name, target, raw[column]), ()
    else:
        labels, names = _classes(name, target, raw[column], label, classes)
    in_last = raw.index.to_numpy() >= sum(map(len, parts[:-1]))
    train, test = train_and_test(name, split, labels, names, in_last)

    data, described, notices = {}, [], []
    for feature, entry in entries.items():
        inferred = inferred_kind(raw[feature], missing)
        kind = Kind(one_of(entry.get("kind", inferred), Kind, f"the kind of {feature} cannot be"))
        closed = "special" not in entry and kind not in NUMERIC and raw[feature].isna().any()
        entry = fitting_entry(feature, kind, entry) | ({"special": (MISSED,)} if closed else {})
        filled = filled(feature, raw[feature], kind, missing, train, entry.get("special", ()))
        data[feature] = values = typed(feature, filled, kind)
        if (values == values.iloc[0]).all():
            entry = {**entry, "actionability": Actionability.IMMUTABLE}
            notices.append(f"{name}: column {feature!r} is {values.iloc[0]} in every row; it is kept, and immutable.")
            logger.warning(notices[-1])
        described.append(described(feature, kind, values, train, entry, unbounded))
    space = Space(tuple(described))
    frame = pd.DataFrame(data, index=raw.index).set_axis(space.index, axis=1)
    space.check(frame, name)
    for notice in check(space, causality or {}):
        notices.append(f"{name}: {notice}")
        logger.warning(notices[-1])
    dataset = Dataset(
        name, space, frame, labels, names, desired, train, test, sha256, tuple(notices), dict(causality or {})
    )
    if discretise is not None:
        dataset = _discrete(dataset, Discretisation.read(name, discretise))
    wanted = parse_target(dataset)
    return replace(dataset, desired=wanted.value) if isinstance(wanted, Label) else dataset


def _discrete(dataset: Dataset, how: Discretisation) -> Dataset:
    """The same rows, all features discrete."""
    if any(entry is not None for entry in dataset.causality.values()):
        raise DatasetError(f"the equations of {dataset.name} need numbers; leave 'causality' or 'discretise' out.")
    how.check(dataset.name, dataset.space.features)
    described, data, intervals = [], {}, {}
    for feature in dataset.space.features:
        made, data[feature.name], cut = how.apply(feature, dataset.frame[feature.name], dataset.train)
        described.append(made)
        if cut is not None:
            intervals[feature.name] = cut
    space = Space(tuple(described))
    frame = pd.DataFrame(data, index=dataset.frame.index).set_axis(space.index, axis=1)
    return replace(dataset, space=space, frame=frame, intervals=intervals)


def parse_target(dataset: Dataset, desired: Any = None) -> Target | Literal["opposite"]:
    """What a counterfactual should get, as an object.

    Parameters
    ----------
    dataset
        Gives the classes, and the default of ``desired``.
    desired
        A class name or its text; ``opposite`` with two classes; for regression ``>= 12``, ``<= 3`` or ``10..12``.

    Raises
    ------
    DatasetError
        For anything else.
    """
    desired = dataset.desired if desired is None else desired
    if not dataset.classes:
        return _interval(dataset.name, str(desired))
    for name in dataset.classes:
        if str(name) == str(desired):
            return Label(name)
    allowed = [*dataset.classes, OPPOSITE] if len(dataset.classes) == 2 else list(dataset.classes)
    if desired == OPPOSITE and OPPOSITE in allowed:
        return OPPOSITE
    many = f", as there are {len(dataset.classes)}; name one by 'desired'" if desired == OPPOSITE else ""
    raise DatasetError(f"{dataset.name} has no class {str(desired)!r} to desire{many}; {choices(desired, allowed)}.")


def _interval(name: str, text: str) -> Interval:
    number = r"([-+]?[\d.]+(?:e[-+]?\d+)?)"
    try:
        if match := re.fullmatch(rf"\s*(>=|<=)\s*{number}\s*", text):
            end = float(match[2])
            return Interval(low=end) if match[1] == ">=" else Interval(high=end)
        if match := re.fullmatch(rf"\s*{number}\s*\.\.\s*{number}\s*", text):
            return Interval(float(match[1]), float(match[2]))
    except ValueError as fault:
        raise DatasetError(f"desired of {name} is {text!r}: {fault}") from fault
    raise DatasetError(f"desired of {name} is {text!r}; allowed for numbers: '>= 12', '<= 3' or '10..12'.")


def _read(name: str, sources: Sequence[Mapping[str, Any]], read: Mapping[str, Any]) -> tuple[list[pd.DataFrame], str]:
    if not sources:
        raise DatasetError(f"{name} has no sources; give at least one with a 'file'.")
    keys = [field.name for field in fields(Source)]
    tables, sha256 = [], hashlib.sha256()
    for source in sources:
        for key in source:
            one_of(key, keys, f"a source of {name} has no entry")
        if "file" not in source:
            raise DatasetError(f"a source of {name} has no 'file'; give the path of its CSV file.")
        content = read_bytes(Source(**source))
        sha256.update(content)
        try:
            table = pd.read_csv(io.BytesIO(content), **{"low_memory": False, **read})
        except (TypeError, ValueError) as fault:
            raise DatasetError(
                f"{source['file']} of {name} cannot be read ({str(fault).rstrip('.')}); "
                f"mend 'read', the arguments of pandas.read_csv, which is {dict(read)}."
            ) from fault
        tables.append(table.apply(_strip))
    return tables, sha256.hexdigest()


def _strip(column: pd.Series) -> pd.Series:
    """Texts without blanks around them, as plain objects whatever text type pandas chose."""
    if is_numeric_dtype(column):
        return column
    return column.astype(object).map(lambda value: value.strip() if isinstance(value, str) else value)


def _label_column(name: str, target: str, label: Mapping[str, Any] | None, columns: Iterable[str]) -> str:
    if label is None:
        return str(one_of(target, columns, f"{name} has no target column"))
    for key in label:
        one_of(key, ("column", "classes"), f"'label' of {name} has no entry")
    for key in ("column", "classes"):
        if key not in label:
            raise DatasetError(f"'label' of {name} has no {key!r}; it needs 'column' and 'classes'.")
    return str(one_of(label["column"], columns, f"{name} has no label column"))


def _rows(name: str, raw: pd.DataFrame, column: str, missing: str, empty: float | None) -> pd.DataFrame:
    """The rows to keep, under their numbers in the raw file."""
    if empty is not None:
        raw = raw[~(raw.drop(columns=column) == empty).all(axis=1)]
    gaps = raw.isna()
    if missing == "drop":
        raw = raw[~gaps.any(axis=1)]
    else:
        full = raw.columns if missing == "error" else [column]  # a label is never filled in
        for gap in gaps[full].columns[gaps[full].any()]:
            fit = "drop" if gap == column else "drop, median or category"
            raise DatasetError(
                f"{name} has a missing value in column {gap!r}, row {gaps.index[gaps[gap]][0]}; set 'missing' to {fit}."
            )
    if raw.empty:
        raise DatasetError(
            f"{name} has no rows, or none left without missing values; 'missing' may be median or category."
        )
    for feature in raw.columns[raw.isna().all()]:
        raise DatasetError(f"column {feature!r} of {name} holds no value at all; list it in 'drop'.")
    return raw


def _inliers(name: str, raw: pd.DataFrame, column: str, most: float) -> pd.DataFrame:
    """The rows whose numbers all lie within so many standard deviations of their mean."""
    numbers = raw.drop(columns=column).select_dtypes("number")
    inside = ~((numbers - numbers.mean()).abs() >= most * numbers.std(ddof=0)).any(axis=1)
    if not inside.any():
        raise DatasetError(f"no row of {name} lies within {most} standard deviations in all columns; raise 'outliers'.")
    return raw[inside]


def _numbers(name: str, target: str, values: pd.Series) -> np.ndarray:
    """Labels for regression."""
    if not is_numeric_dtype(values):
        raise DatasetError(
            f"target {target!r} of {name} holds {values.iloc[0]!r}, and regression needs numbers; "
            f"set 'task: classification'."
        )
    if not np.isfinite(values).all():
        raise DatasetError(f"target {target!r} of {name} holds an infinite number; give finite ones.")
    return values.to_numpy(float)


def _classes(
    name: str,
    target: str,
    values: pd.Series,
    label: Mapping[str, Any] | None,
    classes: Sequence[Any] | None,
) -> tuple[np.ndarray, tuple[Any, ...]]:
    """Class name of each row, and the class names in order."""
    values = plain_values(values)
    present = distinct(values)
    if label is not None:
        meanings = [(str(value), cls) for cls, listed in label["classes"].items() for value in listed]
    elif classes is not None:
        raw = {str(value): value for value in present}
        meanings = [(str(value), raw.get(str(value), value)) for value in classes]
    elif values.dtype == float and len(present) > MANY:
        raise DatasetError(
            f"target {target!r} of {name} holds {len(present)} different numbers; "
            f"set 'task: regression', or list the 'classes'."
        )
    else:
        meanings = [(str(value), value) for value in present]
    known = dict(meanings)
    if len(known) < len(meanings):
        raise DatasetError(f"the classes of {name} list a value of {target!r} twice: {[text for text, _ in meanings]}.")
    for value in present:
        if str(value) not in known:
            raise DatasetError(
                f"target {target!r} of {name} holds {value!r}, which no class covers; {choices(value, known)}."
            )
    names = tuple(dict.fromkeys(cls for _, cls in meanings))
    labels = np.empty(len(values), dtype=object)
    labels[:] = [known[str(value)] for value in values.tolist()]
    held = set(labels)
    if len(held) < 2:
        raise DatasetError(f"target {target!r} of {name} holds one class only, {labels[0]!r}; two or more are needed.")
    for cls in names:
        if cls not in held:
            raise DatasetError(
                f"no row of {name} is of class {cls!r}; the raw values are {', '.join(map(str, present))}."
            )
    return labels, names
