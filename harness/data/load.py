"""Raw bytes and a plain description become a Dataset. Knows no configuration framework."""

from __future__ import annotations

import hashlib
import io
import logging
import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any, Literal

import numpy as np
import pandas as pd
from pandas.api.types import is_bool_dtype, is_numeric_dtype

from harness.core.errors import DatasetError, choices
from harness.core.gaps import MISSED
from harness.core.notation import ISO, Notation
from harness.core.python import warn
from harness.core.space import Actionability, Kind, Space
from harness.core.target import Classes, Interval, Label, Target, class_named
from harness.data.clip import Clip, clip_of, clipped
from harness.data.dataset import OPPOSITE, OTHER, Dataset, Reading
from harness.data.description import Description, one_of
from harness.data.discretise import Discretisation
from harness.data.equations import check
from harness.data.features import (
    Filled,
    described,
    distinct,
    feature_entries,
    filled,
    fitting_entry,
    inferred_kind,
    plain_values,
    typed,
)
from harness.data.gaps import NUMERIC, Gaps, advice, advice_of_labels, gaps_of, summary
from harness.data.reader import composed
from harness.data.sources import Source, read_bytes
from harness.data.split import train_and_test

SETTINGS = [field.name for field in fields(Description)]
MANY = 20  # distinct fractional target values above which the target is taken for a number

logger = logging.getLogger(__name__)


def load_dataset(
    name: str,
    sources: Sequence[Mapping[str, Any]],
    target: str,
    *,
    tables: tuple[Sequence[pd.DataFrame], str] | None = None,
    written: Mapping[str, Notation] | None = None,
    **settings: Any,
) -> Dataset:
    """Read, check and split a dataset. Every argument is plain data, as it stands in a YAML file.

    Parameters
    ----------
    name, sources, target
        As in ``harness.data.description.Description``.
    tables
        The files' content and its checksum, where they have been read already; ``sources`` and ``read`` are not used.
    written
        How the numbers of columns are written, where that was found out.
    settings
        The other fields of ``Description``.

    Raises
    ------
    DatasetError
        If the data and the description do not fit.
    """
    for key in settings:
        one_of(key, SETTINGS, f"{name} has no setting")
    about = Description(name, sources, target, **settings)
    parts, sha256 = _read(about) if tables is None else tables
    table = pd.concat(parts, ignore_index=True)
    raw, column, entries, gaps, lost = _selected(about, table)
    raw, clips, of_ends = _within(about, raw, entries, gaps)
    regression = about.task == "regression"
    labels, names = (_numbers(about, raw[column]), ()) if regression else _classes(about, raw[column])
    in_last = raw.index.to_numpy() >= sum(map(len, parts[:-1]))
    train, test = train_and_test(name, about.split, labels, names, in_last, table.loc[raw.index])
    space, frame, fills, notices = _features(about, raw, entries, gaps, train)
    causality = dict(about.causality or {})
    notices += [f"{name}: {notice}" for notice in check(space, causality)]
    for notice in notices:
        warn(logger, notice)
    told = [(w.filler is None, gaps[key].message(w.count, w.filler)) for key, w in fills.items() if w.count]
    for line in filter(None, (summary(name, told, *lost), of_ends)):
        warn(logger, line)
        notices.append(line)
    for feature in space.gaps if any(causality.values()) else ():
        raise DatasetError(
            f"{feature.name} of {name} keeps missing values, and equations need numbers; set "
            f"features.{feature.name}.missing to median, or another filler, or leave 'causality' out."
        )
    dataset = Dataset(name, space, frame, labels, names, about.desired, train, test, sha256, tuple(notices), causality)
    dataset = replace(dataset, reading=_reading(fills, clips, written or {}, column), by_time=_by_time(about))
    if about.published is not None:
        dataset = replace(dataset, published=source_of(name, about.published))
    if about.discretise is not None:
        dataset = _discrete(dataset, Discretisation.read(name, about.discretise))
    desired = parse_target(dataset)
    return replace(dataset, desired=desired.value) if isinstance(desired, Label) else dataset


def _reading(
    fills: Mapping[str, Filled], clips: Mapping[str, Clip], written: Mapping[str, Notation], target: str
) -> Reading:
    """How people who come later are read."""
    fillers = {feature: whole.filler for feature, whole in fills.items() if whole.filler is not None}
    of_features = {feature: notation for feature, notation in written.items() if feature != target}
    return Reading(fills=fillers, clips=clips, written=of_features, target=written.get(target, Notation()))


def _by_time(about: Description) -> bool:
    return isinstance(about.split, Mapping) and about.split.get("time") is not None


def _selected(
    about: Description, raw: pd.DataFrame
) -> tuple[pd.DataFrame, str, dict[str, dict[str, Any]], dict[str, Gaps], tuple[dict[str, int], int]]:
    """The rows and columns to keep, the label's column, the attributes of each feature and what becomes of its gaps.

    Last, the gaps by feature for which rows were dropped, and how many rows.
    """
    column = _label_column(about, raw.columns)
    for dropped in about.drop:
        one_of(dropped, raw.columns, f"{about.name} has no column to drop named")
    entries = feature_entries(about, [c for c in raw.columns if c not in {column, about.target, *about.drop}])
    gaps = gaps_of(about.missing, entries)
    raw, lost = _rows(about, raw[[*entries, column]], column, gaps)
    raw = raw if about.outliers is None else _inliers(about.name, raw, column, about.outliers)
    return raw, column, entries, gaps, lost


def _within(
    about: Description, raw: pd.DataFrame, entries: Mapping[str, Mapping[str, Any]], gaps: Mapping[str, Gaps]
) -> tuple[pd.DataFrame, dict[str, Clip], str]:
    """The rows with their numbers within the ends of ``clip``, these ends, and how many were not (empty for none)."""
    clips = {}
    for name, given in entries.items():
        if given.get("clip"):
            kind = _kind(name, raw[name], given, gaps[name])
            clip = clip_of(name, kind, fitting_entry(name, kind, given))
            if is_numeric_dtype(raw[name]) and not is_bool_dtype(raw[name]):  # what is none is refused as such
                clips[name] = clip
    made, line = clipped(about.name, raw, clips)
    return made, clips, line


def _kind(name: str, values: pd.Series, given: Mapping[str, Any], gaps: Gaps) -> Kind:
    return Kind(one_of(given.get("kind", inferred_kind(values, gaps.remedy)), Kind, f"the kind of {name} cannot be"))


def _features(
    about: Description,
    raw: pd.DataFrame,
    entries: Mapping[str, Mapping[str, Any]],
    gaps: Mapping[str, Gaps],
    train: np.ndarray,
) -> tuple[Space, pd.DataFrame, dict[str, Filled], list[str]]:
    """The space, the decoded rows, what filled their gaps by feature, and what a user should know of them."""
    data, features, fills, notices = {}, [], {}, []
    for name, given in entries.items():
        own = gaps[name]
        kind = _kind(name, raw[name], given, own)
        entry = fitting_entry(name, kind, given)
        whole = filled(raw[name], kind, own, train, entry.get("special", ()))
        if whole.filler is not None or whole.count:
            fills[name] = whole
        if kind in NUMERIC:
            entry["missing"] = own.keeps(kind) and (own.own or whole.count > 0)
            entry["may_be_missing"] = given.get("may_be_missing")
        if whole.filler == MISSED and own.levels(kind) and "special" not in given and not given.get("may_be_missing"):
            entry["special"] = (MISSED,)
        values = typed(name, whole.values, kind)
        if (values == values.iloc[0]).all() and "actionability" not in entry:
            entry["actionability"] = Actionability.IMMUTABLE
            notices.append(
                f"{about.name}: column {name!r} is {values.iloc[0]} in every row; it is kept, and immutable unless "
                f"features.{name}.actionability says otherwise."
            )
        data[name] = values
        features.append(described(name, kind, values, train, entry, about.unbounded))
    space = Space(tuple(features), tuple(about.constraints or ()))
    frame = pd.DataFrame(data, index=raw.index).set_axis(space.index, axis=1)
    space.check(frame, about.name)
    return space, frame, fills, notices


def _discrete(dataset: Dataset, how: Discretisation) -> Dataset:
    """The same rows, all features discrete."""
    for feature in dataset.space.gaps:
        raise DatasetError(
            f"{feature.name} of {dataset.name} keeps missing values, which lie in no interval; set "
            f"features.{feature.name}.missing to median, or another filler, or leave 'discretise' out."
        )
    if any(entry is not None for entry in dataset.causality.values()):
        raise DatasetError(f"the equations of {dataset.name} need numbers; leave 'causality' or 'discretise' out.")
    how.check(dataset.name, dataset.space.features)
    for name, clip in dataset.reading.clips.items():
        cuts = (how.cuts or {}).get(name, ())
        clip.check("discretise", () if isinstance(cuts, str) else cuts)
    features, data, intervals = [], {}, {}
    for feature in dataset.space.features:
        if feature.numeric and feature.price.shares:
            raise DatasetError(
                f"percentile of {feature.name} measures numbers, which discretise makes intervals; leave one out."
            )
        made, data[feature.name], cut = how.apply(feature, dataset.frame[feature.name], dataset.train)
        features.append(replace(made, price=feature.price))
        if cut is not None:
            intervals[feature.name] = cut
    space = Space(tuple(features), dataset.space.constraints)
    frame = pd.DataFrame(data, index=dataset.frame.index).set_axis(space.index, axis=1)
    return replace(dataset, space=space, frame=frame, reading=replace(dataset.reading, intervals=intervals))


def parse_target(dataset: Dataset, desired: Any = None) -> Target | Literal["opposite", "other"]:
    """What a counterfactual should get, as an object.

    Parameters
    ----------
    dataset
        Gives the classes, and the default of ``desired``.
    desired
        A class name or its text, or a list of some; ``other``: any class but the one that the model says, with two
        classes also called ``opposite``; for regression ``>= 12``, ``<= 3`` or ``10..12``, and
        without an end ``> 12``, ``< 3``, ``10..<12``, ``10<..12`` or ``10<..<12``.

    Raises
    ------
    DatasetError
        For anything else.
    """
    desired = dataset.desired if desired is None else desired
    if not dataset.classes:
        return _interval(dataset.name, str(desired), dataset.reading.target)
    if isinstance(desired, Collection) and not isinstance(desired, str):
        return _several(dataset, list(desired))
    named = class_named(desired, dataset.classes)
    named = class_named(composed(desired), dataset.classes) if named is None else named
    if named is not None:
        return Label(named)
    allowed = [*dataset.classes, *[OPPOSITE] * (len(dataset.classes) == 2), OTHER]
    if desired in {OTHER, OPPOSITE} and desired in allowed:
        return OPPOSITE if len(dataset.classes) == 2 else OTHER
    many = f", as there are {len(dataset.classes)}; name one by 'desired'" if desired == OPPOSITE else ""
    raise DatasetError(f"{dataset.name} has no class {str(desired)!r} to desire{many}; {choices(desired, allowed)}.")


def _several(dataset: Dataset, desired: list[Any]) -> Target:
    """One of several classes, in the order of the dataset's."""
    named = [class_named(each, dataset.classes) for each in desired]
    for each, name in zip(desired, named, strict=True):
        if name is None:
            one_of(str(each), list(map(str, dataset.classes)), f"{dataset.name} has no class to desire named")
    found = tuple(name for name in dataset.classes if name in named)
    if not 0 < len(found) < len(dataset.classes):
        raise DatasetError(
            f"desired of {dataset.name} lists {'every class' if found else 'no class'}; list some of "
            f"{', '.join(map(str, dataset.classes))}, but not all."
        )
    return Label(found[0]) if len(found) == 1 else Classes(found)


def _interval(name: str, text: str, written: Notation) -> Interval:
    """An interval from text; an end that is left out gives way to the next number inwards, so that ends are closed.

    Numbers are taken as the target's column has them (``written``), also without its unit, else as plain ones; dates
    also as ISO has them.
    """
    ways = (written, replace(written, before="", after=""), *([Notation(date=ISO)] if written.date else []), Notation())
    kind = "date" if written.date else "number"

    def end(number: str, inwards: float, left_out: bool) -> float:
        value = next((value for way in ways if not math.isnan(value := way.parse(number))), None)
        if value is None:
            raise ValueError(f"{number!r} is no {kind}.")
        return math.nextafter(value, inwards) if left_out else value

    one, two = (written.text(value) for value in (12.0, 13.0))
    try:
        if match := re.fullmatch(r"\s*(>=?|<=?)\s*(\S.*?)\s*", text):
            inwards = math.inf if match[1][0] == ">" else -math.inf
            only = end(match[2], inwards, "=" not in match[1])
            return Interval(low=only) if inwards > 0 else Interval(high=only)
        if match := re.fullmatch(r"\s*(\S.*?)\s*(<?)\.\.(?!\.\d)(<?)\s*(\S.*?)\s*", text):
            return Interval(end(match[1], math.inf, bool(match[2])), end(match[4], -math.inf, bool(match[3])))
        why = ""
    except ValueError as fault:
        why = f" ({str(fault).rstrip('.')})"
    if text == OPPOSITE:  # what stands for none
        raise DatasetError(f"{name} is about a number; say by 'desired' which ones are wanted, such as '>= {one}'.")
    raise DatasetError(
        f"desired of {name} is {text!r}{why}; allowed for {kind}s: '>= {one}', '<= {one}' or '{one}..{two}', "
        f"or without an end '> {one}', '< {one}' or '{one}..<{two}'."
    )


def _read(about: Description) -> tuple[list[pd.DataFrame], str]:
    """The table of each source, and the checksum of all."""
    name, read = about.name, dict(about.read or {})
    if not about.sources:
        raise DatasetError(f"{name} has no sources; give at least one with a 'file'.")
    tables, sha256 = [], hashlib.sha256()
    for source in about.sources:
        content = read_bytes(source_of(name, source))
        sha256.update(content)
        try:
            table = pd.read_csv(io.BytesIO(content), **{"low_memory": False, **read})
        except (TypeError, ValueError) as fault:
            raise DatasetError(
                f"{source['file']} of {name} cannot be read ({str(fault).rstrip('.')}); "
                f"mend 'read', the arguments of pandas.read_csv, which is {read}."
            ) from fault
        tables.append(table.apply(_strip))
    return tables, sha256.hexdigest()


def source_of(name: str, entries: Mapping[str, Any]) -> Source:
    """A source from the entries of a YAML; errors call what it belongs to ``name``."""
    for key in entries:
        one_of(key, [field.name for field in fields(Source)], f"a source of {name} has no entry")
    if "file" not in entries:
        raise DatasetError(f"a source of {name} has no 'file'; give the path of its CSV file.")
    for key, value in entries.items():
        listed = key == "urls" and _is_list(value) and all(isinstance(each, str) for each in value)
        if not (listed or (key != "urls" and isinstance(value, str)) or (value is None and key != "file")):
            fit = "a list of addresses" if key == "urls" else "a text"
            raise DatasetError(f"{key!r} of a source of {name} is {value!r}; give {fit}.")
    return Source(**{key: value for key, value in entries.items() if value is not None})


def _strip(column: pd.Series) -> pd.Series:
    """Texts without blanks around them, as plain objects whatever text type pandas chose."""
    if is_numeric_dtype(column):
        return column
    return column.astype(object).map(lambda value: value.strip() if isinstance(value, str) else value)


def _label_column(about: Description, columns: Iterable[str]) -> str:
    name, label = about.name, about.label
    if label is None:
        return str(one_of(about.target, columns, f"{name} has no target column"))
    for key in label:
        one_of(key, ("column", "classes"), f"'label' of {name} has no entry")
    for key in ("column", "classes"):
        if key not in label:
            raise DatasetError(f"'label' of {name} has no {key!r}; it needs 'column' and 'classes'.")
    meanings = label["classes"]
    if not isinstance(meanings, Mapping) or not all(_is_list(each) for each in meanings.values()):
        raise DatasetError(f"the classes of 'label' of {name} are {meanings!r}; give each a list of raw values.")
    return str(one_of(label["column"], columns, f"{name} has no label column"))


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)


def _rows(
    about: Description, raw: pd.DataFrame, column: str, gaps: Mapping[str, Gaps]
) -> tuple[pd.DataFrame, tuple[dict[str, int], int]]:
    """The rows to keep, under their numbers in the raw file; the gaps by column that cost rows, and how many rows."""
    name = about.name
    if about.empty is not None:
        raw = raw[~(raw.drop(columns=column) == about.empty).all(axis=1)]
    held = raw.isna()
    for feature in raw.columns[held.any()]:
        label, row = feature == column, held.index[held[feature]][0]
        if about.missing != "drop" if label else gaps[feature].remedy == "error":  # a label is never filled in
            fit = advice_of_labels(about.missing) if label else advice(feature)
            raise DatasetError(f"{name} has a missing value in column {feature!r}, row {row}; {fit}.")
    costly = [f for f in raw.columns if (about.missing if f == column else gaps[f].remedy) == "drop"]
    lost = {feature: int(held[feature].sum()) for feature in costly if held[feature].any()}
    kept = raw[~held[costly].any(axis=1)]
    if kept.empty:
        raise DatasetError(
            f"{name} has no rows, or none left without missing values; set 'missing', or features.NAME.missing, to "
            f"something else than drop."
        )
    for feature in kept.columns[kept.isna().all()]:
        raise DatasetError(f"column {feature!r} of {name} holds no value at all; list it in 'drop'.")
    return kept, (lost, len(raw) - len(kept))


def _inliers(name: str, raw: pd.DataFrame, column: str, most: float) -> pd.DataFrame:
    """The rows whose numbers all lie within so many standard deviations of their mean."""
    numbers = raw.drop(columns=column).select_dtypes("number")
    numbers = numbers.loc[:, numbers.std(ddof=0) > 0]  # one value lies nowhere
    inside = ~((numbers - numbers.mean()).abs() >= most * numbers.std(ddof=0)).any(axis=1)
    if not inside.any():
        raise DatasetError(f"no row of {name} lies within {most} standard deviations in all columns; raise 'outliers'.")
    return raw[inside]


def _numbers(about: Description, values: pd.Series) -> np.ndarray:
    """Labels for regression, float, shape (rows,)."""
    name, target = about.name, about.target
    if not is_numeric_dtype(values):
        raise DatasetError(
            f"target {target!r} of {name} holds {values.iloc[0]!r}, and regression needs numbers; "
            f"set 'task: classification'."
        )
    if not np.isfinite(values).all():
        raise DatasetError(f"target {target!r} of {name} holds an infinite number; give finite ones.")
    return values.to_numpy(float)


def _classes(about: Description, values: pd.Series) -> tuple[np.ndarray, tuple[Any, ...]]:
    """Class name of each row, and the class names in order."""
    name, target, label, classes = about.name, about.target, about.label, about.classes
    values = plain_values(values)
    present = distinct(values)
    if label is not None:
        meanings = [(value, cls) for cls, listed in label["classes"].items() for value in listed]
    elif classes is not None:
        named = [class_named(value, present) for value in classes]
        meanings = [(v, v if own is None else own) for v, own in zip(classes, named, strict=True)]
    elif values.dtype == float and len(present) > MANY:
        raise DatasetError(
            f"target {target!r} of {name} holds {len(present)} different numbers; "
            f"set 'task: regression', or list the 'classes'."
        )
    else:
        meanings = [(value, value) for value in present]
    known = {str(value): cls for value, cls in meanings}
    if len(known) < len(meanings):
        listed = [str(value) for value, _ in meanings]
        raise DatasetError(f"the classes of {name} list a value of {target!r} twice: {listed}.")
    meant = {value: class_named(value, [given for given, _ in meanings]) for value in present}
    for value, given in meant.items():
        if given is None:
            raise DatasetError(
                f"target {target!r} of {name} holds {value!r}, which no class covers; {choices(value, known)}."
            )
    names = tuple(dict.fromkeys(cls for _, cls in meanings))
    labels = np.empty(len(values), dtype=object)
    labels[:] = [known[str(meant[value])] for value in values.tolist()]
    found = set(labels)
    if len(found) < 2:
        raise DatasetError(
            f"target {target!r} of {name} holds one class only, {labels[0]!r}; give rows of two or more, or another "
            "target."
        )
    for cls in names:
        if cls not in found:
            raise DatasetError(
                f"no row of {name} is of class {cls!r}; the raw values are {', '.join(map(str, present))}."
            )
    return labels, names
