"""Settings of a user's CSV, from the command line and the YAML beside the file, checked and merged."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from harness.core.errors import DatasetError, choices
from harness.core.space import Actionability, Kind
from harness.data import gaps
from harness.data.csv_columns import LARGEST, SHOWN
from harness.data.csv_notation import is_format
from harness.data.description import TASKS, one_of
from harness.data.features import OF_COSTS, check_attributes
from harness.data.reader import composed
from harness.data.sidecar import read_sidecar

LINE = "the command line"


def shown_name(path: Any, name: Any = None) -> str:
    """The name of a CSV in tables and folders: its stem, without what means something to a file system.

    >>> shown_name("../my data/Loans 2024.v2.csv")
    'Loans_2024.v2'
    """
    first = path[0] if isinstance(path, list | tuple) and path else path
    text = str(name) if name is not None else re.split(r"[/\\]", str(first or ""))[-1]
    text = text if name is not None else re.sub(r"\.(csv|tsv|txt)$", "", text, flags=re.IGNORECASE)
    safe = re.sub(r"[^\w.-]+", "_", unicodedata.normalize("NFKC", text)).strip("._-")
    return safe[:40].encode()[:80].decode(errors="ignore").strip("._-") or "csv"


def _scalar(value: Any) -> bool:
    if isinstance(value, str):
        return len(value) <= 1000 and not any("\ud800" <= character <= "\udfff" for character in value)
    return isinstance(value, bool | int) or (isinstance(value, float) and not math.isnan(value))


def _list(value: Any) -> bool:
    return isinstance(value, list | tuple) and all(map(_scalar, value))


def _name(value: Any) -> bool:
    return _scalar(value) and bool(str(value))


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= LARGEST


def _written(value: Any) -> bool:
    return _number(value) or (isinstance(value, str) and 0 < len(value) <= SHOWN)


def _end(value: Any) -> bool:
    return value is None or _written(value) or value in (math.inf, -math.inf)


def _mark(value: Any) -> bool:
    return isinstance(value, str) and len(value) == 1 and value not in "\"'\r\n" and not value.isalnum()


Check = tuple[Callable[[Any], bool], str]
_NAMES: Check = (_list, "a list of column names")
_VALUES: Check = (_list, "a list of values")
CHECKS: dict[str, Check] = {
    "path": (lambda value: _scalar(value) or (_list(value) and bool(value)), "the path of a CSV file"),
    "name": (_name, "a text"),
    "sidecar": (lambda value: isinstance(value, bool | str), "the path of a YAML file, or false"),
    "target": (_name, "a column name"),
    "desired": (
        lambda value: _scalar(value) or _list(value),
        "a class, a list of classes, or for numbers such as '>= 12'",
    ),
    "immutable": _NAMES,
    "drop": _NAMES,
    "missing": (gaps.fits, f"one of {', '.join(gaps.REMEDIES)}, or a number to fill in"),
    "features": (lambda value: _list(value) or _features(value), "a mapping by column name, or a list of names"),
    "constraints": (_list, "a list of texts such as 'loan <= 5 * income'"),
    "causality": (lambda value: _causality(value), "a mapping by column name, to a 'formula' or 'parents' and 'learn'"),
    "label": (lambda value: _label(value), "a mapping {column: ..., classes: {CLASS: [VALUES]}}"),
    "classes": _VALUES,
    "task": (lambda value: value in TASKS, f"one of {', '.join(TASKS)}"),
    "empty": (_number, "a number"),
    "outliers": (lambda value: _number(value) and value > 0, "a number above 0"),
    "unbounded": (lambda value: isinstance(value, bool), "true or false"),
    "discretise": (lambda value: isinstance(value, str | Mapping), "quantile, median, levels, or a mapping"),
    "sep": (lambda value: _mark(value) or value in ("tab", "\\t"), "one character, or tab"),
    "decimal": (lambda value: value in (".", ","), "'.' or ','"),
    "thousands": (_mark, "one character that is neither letter nor digit"),
    "encoding": (lambda value: isinstance(value, str) and value.isascii(), "a name such as utf-8 or cp1252"),
    "na": _VALUES,
    "names": _NAMES,
    "max_megabytes": (lambda value: _number(value) and value > 0, "a number above 0"),
    "max_categories": (lambda value: type(value) is int and value > 0, "a whole number above 0"),
}
OF_A_QUESTION = ("actionability", "bounds", "order", "special", "may_be_missing", *OF_COSTS)  # of a dataset's features
PLACE = ("path", "sidecar", "max_megabytes")  # where a CSV lies, and how it is reached
ONLY_LINE = ("path", "name", "sidecar", "max_megabytes", "max_categories")
ATTRIBUTE_CHECKS: dict[str, Check] = {
    "kind": (lambda value: value in list(Kind), f"one of {', '.join(Kind)}"),
    "actionability": (lambda value: value in list(Actionability), f"one of {', '.join(Actionability)}"),
    "bounds": (
        lambda value: isinstance(value, list | tuple) and all(map(_end, value)) and len(value) in (0, 2),
        f"two numbers within ±{LARGEST:g}, as numbers or as the column writes them, null (the data's own) or .inf",
    ),
    "clip": (
        lambda value: isinstance(value, list | tuple) and all(end is None or _written(end) for end in value),
        "two numbers, as numbers or as the column writes them, the smaller first; null for no end",
    ),
    "special": (
        lambda value: isinstance(value, list | tuple) and all(map(_written, value)),
        "a list of numbers, as numbers or as the column writes them",
    ),
    "categories": _VALUES,
    "order": _VALUES,
    "decimal": CHECKS["decimal"],
    "thousands": CHECKS["thousands"],
    "format": (is_format, "a format of dates such as '%d.%m.%Y'"),
    "missing": (_name, gaps.ALLOWED),
    "may_be_missing": (lambda value: isinstance(value, bool), "true or false"),
    **dict.fromkeys(("weight", "weight_up", "weight_down"), (_number, "a number above 0")),
    "percentile": (lambda value: isinstance(value, bool), "true or false"),
    "costs": (
        lambda value: isinstance(value, str | Mapping),
        "the path of a CSV of from,to,cost, or {FROM: {TO: COST}}",
    ),
}


def _features(value: Any) -> bool:
    return isinstance(value, Mapping) and all(entry is None or isinstance(entry, Mapping) for entry in value.values())


def _causality(value: Any) -> bool:
    return isinstance(value, Mapping) and all(
        entry is None
        or (isinstance(entry, Mapping) and all(map(_scalar, entry)) and _text(entry.get("formula")) and _parents(entry))
        for entry in value.values()
    )


def _text(value: Any) -> bool:
    return value is None or (isinstance(value, str | int | float) and len(str(value)) <= 1000)


def _parents(entry: Mapping[str, Any]) -> bool:
    return "parents" not in entry or _list(entry["parents"])


def _label(value: Any) -> bool:
    return (
        isinstance(value, Mapping)
        and all(_scalar(item) for key, item in value.items() if key != "classes")
        and isinstance(classes := value.get("classes", {}), Mapping)
        and all(map(_list, classes.values()))
    )


def _checked(given: Mapping[str, Any], where: str, allowed: Iterable[str]) -> dict[str, Any]:
    """The settings that are set, if all exist and each is of its type."""
    checked: dict[str, Any] = {}
    allowed = list(allowed)
    for key, value in given.items():
        if key not in allowed:
            hint = "; it is set on the command line" if key in ONLY_LINE else ""
            raise DatasetError(f"{where} has no setting {str(key)[:60]!r}{hint}; {choices(key, allowed)}.")
        if value is None:
            continue
        if key in {"immutable", "drop", "names"} and _name(value):
            value = [value]
        fits, what = CHECKS[key]
        if not fits(value):
            raise DatasetError(f"{key} of {where} is {str(value)[:80]!r}; give {what}.")
        checked[key] = value
    entries = checked.get("features")
    for feature, entry in entries.items() if isinstance(entries, Mapping) else ():
        _check_attributes(feature, entry or {}, where)
    return checked


def _check_attributes(feature: str, entry: Mapping[str, Any], where: str) -> None:
    for key, value in entry.items():
        if key not in ATTRIBUTE_CHECKS:
            raise DatasetError(
                f"feature {feature} has no attribute {key!r} in {where}; {choices(key, ATTRIBUTE_CHECKS)}."
            )
        fits, what = ATTRIBUTE_CHECKS[key]
        if value is not None and not fits(value):
            raise DatasetError(f"{key} of {feature} in {where} is {str(value)[:80]!r}; give {what}.")


def without_place(settled: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a CSV but for where it lies and how it is reached, which say nothing of what it holds."""
    return {key: value for key, value in settled.items() if key not in PLACE} if "path" in settled else dict(settled)


def settle(
    given: Mapping[str, Any], features: Mapping[str, Any] | None = None, desired: Any = None
) -> tuple[dict[str, Any], dict[str, str]]:
    """The settings of a CSV; the command line wins over the YAML beside the file.

    Parameters
    ----------
    given
        ``conf/dataset/csv.yaml`` with what the command line changed; None is not set.
    features
        The command line's attributes by feature, which win over all else.
    desired
        The command line's target, which wins over ``given``'s.

    Returns
    -------
    The settings for ``load_settled``, and where each attribute of a feature was set, by ``feature.attribute``.

    Raises
    ------
    DatasetError
        For unknown settings, those of the wrong type, and without a path or a target.
    """
    known = {key: None if isinstance(value, str) and value == "???" else value for key, value in given.items()}
    known = {key: value if key in PLACE else composed(value) for key, value in known.items()}
    features, desired = composed(features), composed(desired)
    line = _checked({**known, "desired": known.get("desired") if desired is None else desired}, LINE, CHECKS)
    if not line.get("path"):
        raise DatasetError("dataset=csv needs a file: give dataset.path=FILE.csv, and dataset.target=COLUMN.")
    paths = [str(path) for path in (line["path"] if isinstance(line["path"], list | tuple) else [line["path"]])]
    beside, where = _beside(Path(paths[0]).expanduser(), line.get("sidecar"))
    settled: dict[str, Any] = {key: None for key in CHECKS if key != "sidecar"} | beside | line | {"path": paths}
    settled["name"] = shown_name(paths, line.get("name"))
    if settled["target"] is None:
        expected = Path(paths[0]).with_suffix(".yaml").name
        raise DatasetError(
            f"{paths[0]} needs a target: give dataset.target=COLUMN, or a line 'target: COLUMN' in {expected}."
        )
    settled["target"] = str(settled["target"])
    settled["causality"] = {**beside.get("causality", {}), **line.get("causality", {})}
    lists = [layer["features"] for layer in (line, beside) if isinstance(layer.get("features"), list | tuple)]
    settled["select"] = list(map(str, lists[0])) if lists else None
    _check_attributes_of(features or {})
    settled["features"], origins = _attributes(line, beside, where, features)
    del settled["immutable"]
    return settled, origins


def _attributes(
    line: Mapping[str, Any], beside: Mapping[str, Any], where: str, features: Mapping[str, Any] | None
) -> tuple[dict[str, dict[str, Any]], dict[str, str]]:
    """Attributes by feature, and where each was set; what is set later wins, null takes an attribute back."""
    layers: list[tuple[str, Any]] = [
        (where, {} if "immutable" in line else _immutable(beside)),
        (where, beside.get("features")),
        (LINE, _immutable(line)),
        (LINE, line.get("features")),
        (LINE, features),
    ]
    entries: dict[str, dict[str, Any]] = {}
    origins: dict[str, str] = {}
    for source, layer in layers:
        for feature, entry in layer.items() if isinstance(layer, Mapping) else ():
            for key, value in (entry or {}).items():
                entries.setdefault(str(feature), {})[key] = value
                origins[f"{feature}.{key}"] = source
    return {
        feature: {key: value for key, value in entry.items() if value is not None} for feature, entry in entries.items()
    }, origins


def _check_attributes_of(features: Mapping[str, Any]) -> None:
    if not isinstance(features, Mapping):
        raise DatasetError(f"features on {LINE} is {str(features)[:80]!r}; give features.NAME.kind=... and the like.")
    for feature, entry in features.items():
        check_attributes(feature, entry)
        _check_attributes(feature, entry or {}, LINE)


def check_asked(feature: str, entry: Mapping[str, Any] | None) -> None:
    """Refuse attributes that a dataset's features have since it was read.

    Raises
    ------
    DatasetError
        For such an attribute, one that does not exist, and attributes without names.
    """
    check_attributes(feature, entry)
    for key in entry or ():
        if one_of(key, list(ATTRIBUTE_CHECKS), f"feature {feature} has no attribute") not in OF_A_QUESTION:
            given = f"give it to load_csv, and here {', '.join(OF_A_QUESTION)}"
            raise DatasetError(f"{key} of {feature} is settled where the data are read; {given}.")


def _immutable(given: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    return {str(name): {"actionability": str(Actionability.IMMUTABLE)} for name in given.get("immutable", ())}


def _beside(path: Path, sidecar: Any) -> tuple[dict[str, Any], str]:
    """The settings in the YAML beside a CSV, and the YAML's name."""
    file = Path(sidecar).expanduser() if isinstance(sidecar, str) else path.with_suffix(".yaml")
    if sidecar is False or (not isinstance(sidecar, str) and not _exists(file)):
        return {}, file.name
    beside = _checked(read_sidecar(file), file.name, [key for key in CHECKS if key not in ONLY_LINE])
    for feature, entry in beside.get("causality", {}).items():
        if entry and not isinstance(entry.get("learn", ""), str):
            raise DatasetError(
                f"the equation of {feature} in {file.name} is to be learnt by {str(entry['learn'])[:60]!r}; give the "
                f"name of a regression model, such as ridge."
            )
    return beside, file.name


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):  # the CSV's own path is at fault; reading it reports that
        return False
