"""Raw bytes and a plain description become a Dataset: features, space, labels, split. Knows no config framework."""

from __future__ import annotations

import hashlib
import io
import logging
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal

import numpy as np
import pandas as pd
from pandas.api.types import is_bool_dtype, is_numeric_dtype
from sklearn.model_selection import train_test_split

from harness.core.errors import DatasetError, choices
from harness.core.space import Actionability, Feature, Kind, Space
from harness.core.target import Interval, Label, Target
from harness.data.discretise import Discretisation, Intervals
from harness.data.equations import check
from harness.data.reader import Form
from harness.data.sources import Source, read_bytes

SPLIT = {"test_size": 0.25, "stratify": True, "seed": 0}
OPPOSITE: Literal["opposite"] = "opposite"
MISSING = ("error", "drop", "median", "category")
TASKS = ("classification", "regression")
OF_NUMBERS = ("bounds", "special")
OF_CATEGORIES = ("categories", "order")
ATTRIBUTES = ("kind", "actionability", *OF_NUMBERS, *OF_CATEGORIES)
MISSED = "missing"  # the category of gaps, which no counterfactual enters unless the feature has an empty ``special``
NUMERIC = {Kind.CONTINUOUS, Kind.INTEGER}
FAR = 1000  # training ranges beyond the scale that stand for no bound: more than any distance worth its cost
EXACT = 10**14  # greatest whole number that scaling to [0, 1] and back gives back, whatever the range
MANY = 20  # distinct fractional target values above which nobody can have meant classes

logger = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False)
class Dataset:
    """A table that is ready to train on and to explain.

    Parameters
    ----------
    name
        Name of the dataset.
    space
        Features; their scale and default bounds are those of the training rows.
    frame
        Decoded features of all rows; the index is the 0-based row number of the raw file (of all files in turn).
    labels
        Class names (object) or numbers (float, regression), one a row of ``frame``.
    classes
        Class names, undesired first; empty for regression.
    desired
        What a counterfactual should get: a class name, ``opposite``, or for regression such as ``>= 12``.
    train, test
        Positions (``iloc``) of the training and of the test rows, increasing.
    sha256
        Checksum of the raw content, uncompressed, of all files in turn.
    notices
        What the user should know of the data, one sentence each.
    causality
        Structural equations by endogenous feature, as ``harness.models.equations.equations`` takes them.
    form
        How the user's own file writes its table; files of factuals are read alike.
    reasons
        Why a feature's kind is as it is, by feature, where it was inferred from a user's own file.
    intervals
        By feature, what its numbers were made of by ``discretise``; files of factuals may hold the numbers.
    """

    name: str
    space: Space
    frame: pd.DataFrame
    labels: np.ndarray
    classes: tuple[Any, ...]
    desired: Any
    train: np.ndarray
    test: np.ndarray
    sha256: str
    notices: tuple[str, ...] = ()
    causality: Mapping[str, Mapping[str, Any] | None] = field(default_factory=dict)
    form: Form = field(default_factory=Form)
    reasons: Mapping[str, str] = field(default_factory=dict)
    intervals: Mapping[str, Intervals] = field(default_factory=dict)


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
    _allowed(missing, MISSING, f"'missing' of {name} cannot be")
    _allowed(task, TASKS, f"'task' of {name} cannot be")
    parts, sha256 = _read(name, sources, dict(read or {})) if tables is None else tables
    raw = pd.concat(parts, ignore_index=True)
    column = _label_column(name, target, label, raw.columns)
    for dropped in drop:
        _allowed(dropped, raw.columns, f"{name} has no column to drop named")
    entries = _entries(
        name, [c for c in raw.columns if c not in {column, target, *drop}], features, immutable, overrides
    )

    raw = _rows(name, raw[[*entries, column]], column, missing, empty)
    raw = raw if outliers is None else _inliers(name, raw, column, outliers)
    if task == "regression":
        labels, names = _numbers(name, target, raw[column]), ()
    else:
        labels, names = _classes(name, target, raw[column], label, classes)
    in_last = raw.index.to_numpy() >= sum(map(len, parts[:-1]))
    train, test = _split(name, split, labels, names, in_last)

    data, described, notices = {}, [], []
    for feature, entry in entries.items():
        inferred = _infer(raw[feature], missing)
        kind = Kind(_allowed(entry.get("kind", inferred), Kind, f"the kind of {feature} cannot be"))
        closed = "special" not in entry and kind not in NUMERIC and raw[feature].isna().any()
        entry = _fitting(feature, kind, entry) | ({"special": (MISSED,)} if closed else {})
        filled = _fill(feature, raw[feature], kind, missing, train, entry.get("special", ()))
        data[feature] = values = _typed(feature, filled, kind)
        if (values == values.iloc[0]).all():
            entry = {**entry, "actionability": Actionability.IMMUTABLE}
            notices.append(f"{name}: column {feature!r} is {values.iloc[0]} in every row; it is kept, and immutable.")
            logger.warning(notices[-1])
        described.append(_feature(feature, kind, values, train, entry, unbounded))
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


def _allowed(value: Any, allowed: Iterable[Any], but: str) -> Any:
    """The value, or an error that begins with ``but`` and ends with what is allowed."""
    allowed = list(allowed)
    if value not in allowed:
        raise DatasetError(f"{but} {value!r}; {choices(value, allowed)}.")
    return value


def _read(name: str, sources: Sequence[Mapping[str, Any]], read: Mapping[str, Any]) -> tuple[list[pd.DataFrame], str]:
    if not sources:
        raise DatasetError(f"{name} has no sources; give at least one with a 'file'.")
    keys = [field.name for field in fields(Source)]
    tables, sha256 = [], hashlib.sha256()
    for source in sources:
        for key in source:
            _allowed(key, keys, f"a source of {name} has no entry")
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
        return str(_allowed(target, columns, f"{name} has no target column"))
    for key in label:
        _allowed(key, ("column", "classes"), f"'label' of {name} has no entry")
    for key in ("column", "classes"):
        if key not in label:
            raise DatasetError(f"'label' of {name} has no {key!r}; it needs 'column' and 'classes'.")
    return str(_allowed(label["column"], columns, f"{name} has no label column"))


def _entries(
    name: str,
    columns: Sequence[str],
    features: Mapping[str, Mapping[str, Any] | None] | Sequence[str] | None,
    immutable: Sequence[str],
    overrides: Mapping[str, Mapping[str, Any] | None] | None,
) -> dict[str, dict[str, Any]]:
    """Attributes of each feature, features in order."""
    chosen = features if isinstance(features, Mapping) else dict.fromkeys(features or columns)
    for feature in chosen:
        _allowed(feature, columns, f"{name} has no feature")
    entries: dict[str, dict[str, Any]] = {feature: {} for feature in chosen}
    for feature in immutable:
        _allowed(feature, columns, f"{name} has no feature")
        if feature in entries:
            entries[feature]["actionability"] = Actionability.IMMUTABLE
    for layer in (chosen, overrides or {}):
        for feature, attributes in layer.items():
            _allowed(feature, entries, f"{name} has no feature")
            for key in attributes or {}:
                _allowed(key, ATTRIBUTES, f"feature {feature} has no attribute")
            entries[feature].update(attributes or {})
    return entries


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
    values = _plain(values)
    present = _sorted(values)
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


def _split(
    name: str,
    split: Mapping[str, Any] | str | None,
    labels: np.ndarray,
    classes: tuple[Any, ...],
    in_last: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Positions of training and test rows."""
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
        _allowed(key, SPLIT, "'split' has no entry")
    options = {**SPLIT, **split}
    size, stratify, seed = options["test_size"], options["stratify"], options["seed"]
    if isinstance(size, bool) or not isinstance(size, float | int) or not 0 < size < 1:
        raise DatasetError(f"'test_size' of the split is {size!r}; allowed: a share between 0 and 1, such as 0.25.")
    if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
        raise DatasetError(f"'seed' of the split is {seed!r}; allowed: a whole number from 0.")
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


def _infer(values: pd.Series, missing: str) -> Kind:
    two = Kind.CATEGORICAL if missing == "category" and values.isna().any() else Kind.BINARY  # "missing" is a third
    values = values.dropna()
    if is_bool_dtype(values) or not is_numeric_dtype(values):
        return two if values.nunique() <= 2 else Kind.CATEGORICAL
    if set(values.unique()) == {0, 1}:
        return two
    return Kind.INTEGER if _whole(values).all() and values.abs().max() <= EXACT else Kind.CONTINUOUS


def _fill(
    feature: str, values: pd.Series, kind: Kind, missing: str, train: np.ndarray, special: tuple[float, ...]
) -> pd.Series:
    """The column without gaps."""
    gaps = values.isna()
    if not gaps.any():
        return values
    numeric = kind in NUMERIC
    if missing != ("median" if numeric else "category"):
        raise DatasetError(
            f"column {feature!r} is {kind} and has missing values, for which {missing!r} is no remedy; "
            f"allowed: drop, {'median' if numeric else 'category'}."
        )
    if not numeric:
        return _plain(values.dropna()).astype(object).reindex(values.index, fill_value=MISSED)
    known = values.iloc[train].dropna()
    median = _check_numbers(feature, known[~known.isin(special)], kind).median()
    if np.isnan(median):
        raise DatasetError(f"column {feature!r} has no number in the training rows to take a median of; drop it.")
    return values.fillna(np.rint(median) if kind is Kind.INTEGER else median)


def _typed(feature: str, values: pd.Series, kind: Kind) -> pd.Series:
    """The column in the type of its kind: int64, float64, or plain values of categories."""
    if kind not in NUMERIC:
        return _plain(values)
    return _check_numbers(feature, values, kind).astype(np.int64 if kind is Kind.INTEGER else np.float64)


def _check_numbers(feature: str, values: pd.Series, kind: Kind) -> pd.Series:
    if not is_numeric_dtype(values):
        text = values[pd.to_numeric(values, errors="coerce").isna()]
        raise DatasetError(
            f"column {feature!r} is {kind} but holds {text.iloc[0]!r} in row {text.index[0]}; "
            f"list that in 'na_values' of 'read', or make the feature categorical."
        )
    if kind is Kind.INTEGER and not _whole(values).all():
        odd = values[~_whole(values)]
        raise DatasetError(
            f"column {feature!r} is integer but holds {odd.iloc[0]} in row {odd.index[0]}; make it continuous."
        )
    if kind is Kind.INTEGER and (large := values[values.abs() > EXACT]).size:
        raise DatasetError(
            f"column {feature!r} is integer but holds {large.iloc[0]} in row {large.index[0]}, too large to be exact; "
            f"make it continuous, or drop it."
        )
    return values


def _plain(values: pd.Series) -> pd.Series:
    """Categories as int64, float64 or plain objects: a code 3 that became 3.0 beside a gap is 3 again."""
    if is_bool_dtype(values) or not is_numeric_dtype(values):
        return values.astype(object)
    return values.astype(np.int64 if _whole(values).all() else np.float64)


def _whole(values: pd.Series) -> pd.Series:
    return np.isfinite(values) & (values == np.rint(values))


def _sorted(values: pd.Series) -> tuple[Any, ...]:
    """Distinct values, numbers before texts."""
    return tuple(sorted(values.unique().tolist(), key=lambda value: (isinstance(value, str), value)))


def _fitting(feature: str, kind: Kind, entry: Mapping[str, Any]) -> dict[str, Any]:
    """The entry, lists as tuples, without empty ones (an override's way to take an attribute back)."""
    fitting = {key: value for key, value in entry.items() if key not in {*OF_NUMBERS, *OF_CATEGORIES}}
    allowed = OF_NUMBERS if kind in NUMERIC else OF_CATEGORIES
    for key in [key for key in (*OF_NUMBERS, *OF_CATEGORIES) if entry.get(key)]:
        value = entry[key]
        if key not in allowed:
            raise DatasetError(f"feature {feature} is {kind}, which has no {key}; it may have {' and '.join(allowed)}.")
        ends = value if isinstance(value, list | tuple) else ()
        numbers = all(isinstance(end, int | float) or (key == "bounds" and end is None) for end in ends)
        if not isinstance(value, list | tuple) or (key in OF_NUMBERS and not numbers):
            raise DatasetError(
                f"{key} of {feature} is {value!r}; give a list{' of numbers' if key in OF_NUMBERS else ''}."
            )
        fitting[key] = tuple(value)
    if "bounds" in fitting and len(fitting["bounds"]) != 2:
        raise DatasetError(f"bounds of {feature} are {list(fitting['bounds'])}; give two numbers, the smaller first.")
    return fitting


def _feature(
    feature: str, kind: Kind, values: pd.Series, train: np.ndarray, entry: Mapping[str, Any], unbounded: bool
) -> Feature:
    """Describe a column: its entry, completed from the values."""
    actionability = entry.get("actionability", Actionability.FREE)
    if kind in NUMERIC:
        special = entry.get("special", ())
        seen = values.iloc[train]
        seen = seen[~seen.isin(special)]
        if seen.empty:
            raise DatasetError(f"column {feature!r} holds only special codes in the training rows; list it in 'drop'.")
        scale = (float(seen.min()), float(seen.max()))
        bounds = _bounds(scale, entry.get("bounds", (-np.inf, np.inf) if unbounded else scale))
        return Feature(feature, kind, scale=scale, bounds=bounds, actionability=actionability, special=special)
    present = _sorted(values)
    # a code may be text in YAML and a number in the file, or the other way round
    raw = {str(value): value for value in present}
    categories = tuple(raw.get(str(value), value) for value in entry.get("categories", present))
    order = tuple(raw.get(str(value), value) for value in entry.get("order", ()))
    special = entry.get("special", ())
    return Feature(feature, kind, categories, actionability=actionability, order=order, special=special)


def _bounds(scale: tuple[float, float], wished: Sequence[float | None]) -> tuple[float, float]:
    """Finite bounds: an end that is None is the scale's own, an infinite one lies ``FAR`` ranges beyond the scale."""
    low, high = (own if wish is None else float(wish) for own, wish in zip(scale, wished, strict=True))
    far = FAR * ((scale[1] - scale[0]) or 1.0)
    return scale[0] - far if low == -np.inf else low, scale[1] + far if high == np.inf else high
