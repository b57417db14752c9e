"""The settings in which methods of other libraries depart from those libraries' defaults, read from their YAMLs."""

from __future__ import annotations

import ast
import pkgutil
import re
from collections.abc import Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

import yaml  # type: ignore[import-untyped]

from harness.core.errors import HarnessError
from harness.core.method import REQUIRED, LibraryDefault
from harness.core.packages import CONF, locate, places
from harness.evaluation.study import as_text
from harness.reports.markup import markdown

METHODS = CONF / "method"
BEGIN, END = "<!-- departures -->", "<!-- /departures -->"
REASON = "departs:"  # in the comment of a line, before the reason
HEAD = ("method", "setting", "default", "here", "why")


class Departure(NamedTuple):
    """A setting of a method that is not the library's own."""

    method: str
    setting: str
    default: Any
    here: Any
    why: str  # empty where the YAML gives no reason


class Line(NamedTuple):
    """A setting in a YAML."""

    value: Any
    comment: str


def departures(folder: Path = METHODS) -> list[Departure]:
    """One for each setting of each YAML, by name, in which a method that runs another library departs from it."""
    found = []
    for path in sorted(folder.glob("*.yaml")):
        lines = settings(path)
        method = wrapper(lines)
        for name, stated in getattr(method, "library_defaults", {}).items():
            here, default = getattr(method, name), library_default(stated)
            if default not in (here, REQUIRED):
                _, _, why = lines.get(name, Line(here, "")).comment.partition(REASON)
                found.append(Departure(path.stem, name, default, here, why.strip()))
    return found


def settings(path: Path) -> dict[str, Line]:
    """The settings of a YAML and of those that it builds upon, each from the line that decides it."""
    text = path.read_text()
    node = yaml.safe_load(text)
    found: dict[str, Line] = {}
    for name in node.pop("defaults", []):
        if name != "_self_" and "/" not in name:  # those of folders hold numbers by dataset
            found |= settings(path.with_name(f"{name}.yaml"))
    comments = dict(re.findall(r"^(\w+):.*?\s#\s*(.*)$", text, flags=re.MULTILINE))
    return found | {name: Line(value, comments.get(name, "")) for name, value in node.items()}


def wrapper(lines: Mapping[str, Line]) -> Any:
    """The method that settings describe where it runs another library, else None."""
    kind = pkgutil.resolve_name(lines["_target_"].value)
    if not hasattr(kind, "library_defaults"):
        return None
    return kind(**{name: line.value for name, line in lines.items() if name != "_target_"})


def library_default(stated: LibraryDefault) -> Any:
    """A library's default: of its source, which is not run, where it is installed; else as the wrapper states it."""
    module, _, rest = stated.place.partition(":")
    address, _, key = rest.partition(":")
    file = _file(module) if key else None
    if file is None:
        return stated.value
    node: Any = ast.parse(file.read_text())
    for name in address.split("."):
        node = next(inner for inner in node.body if name in _names(inner))
    if isinstance(node, ast.FunctionDef):
        arguments = node.args.args
        after = arguments[len(arguments) - len(node.args.defaults) :]
        pairs = zip([*after, *node.args.kwonlyargs], [*node.args.defaults, *node.args.kw_defaults], strict=True)
        return ast.literal_eval(next(value for argument, value in pairs if argument.arg == key and value is not None))
    found = ast.literal_eval(node.value)
    for part in key.split("/"):
        found = found[part]
    return found


def _file(module: str) -> Path | None:
    """The source of a module by its dotted name, None where it is not installed."""
    package, _, last = module.rpartition(".")
    folder = locate(package) if package else next(iter(places(module)), None)
    if folder is None:
        return None
    return folder / (f"{last}.py" if package else "__init__.py")


def _names(node: ast.stmt) -> list[str]:
    """The names that a statement defines."""
    if isinstance(node, ast.Assign):
        return [target.id for target in node.targets if isinstance(target, ast.Name)]
    return [node.name] if isinstance(node, ast.ClassDef | ast.FunctionDef) else []


def table(found: Sequence[Departure]) -> str:
    """Departures in Markdown, a line for all methods that share one."""

    def shared(departure: Departure) -> tuple[str, ...]:
        return departure.setting, as_text(departure.default), as_text(departure.here), departure.why

    body = []
    for rest, group in groupby(sorted(found, key=shared), key=shared):
        body.append([", ".join(f"`{one.method}`" for one in sorted(group)), f"`{rest[0]}`", *rest[1:]])
    return markdown(HEAD, sorted(body))


def renewed(text: str) -> str:
    """A page with the table of today between its two marks."""
    before, _, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not end:
        raise HarnessError(f"the page lacks {BEGIN} and {END}, between which the table belongs; add both.")
    return f"{before}{BEGIN}\n{table(departures())}{END}{after}"
