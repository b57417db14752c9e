"""What the methods, data sets and models of some studies are: from their YAMLs, docstrings and stored runs."""

from __future__ import annotations

import json
import pkgutil
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from markupsafe import Markup

from harness.core.described import described
from harness.core.packages import CONF
from harness.core.space import Feature
from harness.core.wording import some, target_text
from harness.evaluation.study import Entry, Study, as_text
from harness.reports import departures
from harness.reports.page.elements import Column, table
from harness.reports.stored import predicted, unsized
from harness.store.run import method_of

SETTINGS = (
    Column("setting"), Column("here"), Column("what it is"), Column("library's default"), Column("otherwise in"),
)  # fmt: skip
FEATURES = (Column("feature"), Column("kind"), Column("values"), Column("may"))
MOST = 12  # values of a feature that are listed
WHOLE = 1000  # characters of a sentence


class Method(NamedTuple):
    """A method: its YAML's name and comment, its class's first sentence, settings, refusals, and where it answers."""

    name: str
    text: str
    doc: str
    settings: Markup
    refusals: list[str]
    studies: list[str]


class Data(NamedTuple):
    """A data set, or a model: name, its YAML's comment, what is wanted of which column, features, and who has it."""

    name: str
    text: str
    column: str
    wanted: str
    features: Markup | None
    studies: list[str]


def methods(found: Sequence[Study]) -> list[Method]:
    """Every method of the configuration, by name; then others that the studies have."""
    departed = {(one.method, one.setting): one for one in departures.departures()}
    entries: dict[str, list[tuple[Study, Entry]]] = {}
    for study in found:
        for entry in study.entries:
            entries.setdefault(method_of(entry.metas[0]), []).append((study, entry))
    listed = []
    for path in sorted(departures.METHODS.glob("*.yaml")):
        lines = departures.settings(path)
        rows = []
        for name, line in lines.items():
            if name != "_target_":
                one = departed.get((path.stem, name))
                default = "" if one is None else f"{as_text(one.default)}{'; ' if one.why else ''}{one.why}"
                what, those = line.comment.partition(departures.REASON)[0].strip(), entries.get(path.stem, [])
                rows.append([name, as_text(line.value), what, default, _otherwise(those, name, line.value)])
        doc = _first(pkgutil.resolve_name(lines["_target_"].value).__doc__ or "")
        text = described(path, WHOLE)
        listed.append(Method(path.stem, text, doc, table(SETTINGS, rows), *_asked(entries.get(path.stem, []))))
    known = {method.name for method in listed}
    return listed + [_brought(name, those) for name, those in sorted(entries.items()) if name not in known]


def _brought(name: str, entries: Sequence[tuple[Study, Entry]]) -> Method:
    """A method that is not of the configuration, as its last run was set; nothing of it is imported."""
    given = dict(entries[-1][1].metas[0]["config"].get("method") or {})
    text = f"of a user's own: {given.pop('_target_', 'a class that was not noted')}"
    rows = [[setting, as_text(value), "", "", _otherwise(entries, setting, value)] for setting, value in given.items()]
    return Method(name, text, "", table(SETTINGS, rows), *_asked(entries))


def _otherwise(entries: Sequence[tuple[Study, Entry]], setting: str, here: Any) -> str:
    """The values of a setting in stored runs that are not the one here, each with its studies."""
    found: dict[str, list[str]] = {}
    for study, entry in entries:
        for given in (meta["config"].get("method") or {} for meta in entry.metas):
            if given.get(setting, here) != here and not str(here).startswith("${"):  # which each run has resolved
                found.setdefault(as_text(given[setting]), []).append(study.name)
    return "; ".join(f"{', '.join(dict.fromkeys(those))}: {value}" for value, those in found.items())


def _asked(entries: Sequence[tuple[Study, Entry]]) -> tuple[list[str], list[str]]:
    """What a method refuses in some studies, and why; and the names of the studies that have answers of it."""
    refusals = [f"{study.name}, {e.task}: {e.refusal}" for study, e in entries if e.refusal is not None]
    return refusals, list(dict.fromkeys(study.name for study, e in entries if e.refusal is None))


def _first(doc: str) -> str:
    """The first sentence of a docstring, without references; nothing of one with a formula, which is no text.

    >>> _first("A point within\\n    it [1]_; more. Not this."), _first("Within :math:`\\\\rho`.")
    ('A point within it; more', '')
    """
    text = " ".join(doc.strip().partition("\n\n")[0].split())
    first = re.split(r"(?<=\.)\s(?=[A-Z])", text)[0]
    return "" if ":math:" in first else re.sub(r" \[\d\]_|`", "", first).rstrip(".")


def data(found: Sequence[Study], group: str) -> list[Data]:
    """The data sets (``group`` is ``dataset``) or models (``model``) of some studies, by name."""
    named: dict[str, list[tuple[Study, Entry]]] = {}
    for study in found:
        for entry in study.entries:
            named.setdefault(getattr(entry, group), []).append((study, entry))
    return [_data(name, group, those) for name, those in sorted(named.items())]


def _data(name: str, group: str, those: Sequence[tuple[Study, Entry]]) -> Data:
    metas = [meta for _, entry in those for meta in entry.metas]
    path = CONF / group / f"{unsized(metas[0]) if group == 'model' else name}.yaml"
    text = described(path, WHOLE) if path.is_file() else "of a user's own"
    studies = list(dict.fromkeys(study.name for study, _ in those))
    if group == "model":
        return Data(name, text, "", "", None, studies)
    runs = list({(study.name, e.task): e.runs[0] for study, e in those}.values())  # of a task all ask the same
    wanted = some(dict.fromkeys(target_text(target) for run in runs for target in run.factuals()[1].values()), MOST)
    return Data(name, text, predicted(metas), wanted, _features(those), studies)


def _features(those: Sequence[tuple[Study, Entry]]) -> Markup:
    """What the features of a data set may be; where studies or tasks ask for different things, each time in which."""
    asked: dict[str, list[tuple[Study, Entry]]] = {}
    for study, entry in those:
        asked.setdefault(json.dumps(entry.metas[0]["space"], sort_keys=True), []).append((study, entry))
    tables = []
    for same in asked.values():
        places = some(dict.fromkeys(f"{study.name} ({entry.task})" for study, entry in same), MOST)
        tables += [Markup("<p>In {}:</p>").format(places)] if len(asked) > 1 else []
        space = same[0][1].runs[0].space
        rows = [[f.name, str(f.kind), _values(f), str(f.actionability)] for f in space.features]
        tables.append(table(FEATURES, rows))
    return Markup().join(tables)


def _values(feature: Feature) -> str:
    if feature.numeric:
        return " to ".join(feature.text(end) for end in feature.bounds)
    return some(feature.categories, MOST)
