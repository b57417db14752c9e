"""The settings of a CSV in a small YAML beside it: plain data, of which nothing is resolved, built or executed."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml  # type: ignore[import-untyped]

from harness.core.errors import DatasetError
from harness.data.reader import Form, decoded, read_file

MEGABYTES = 0.25
DEPTH = 12  # of lists and mappings within each other
HINT = "write lines such as 'target: approved'"
_INT = re.compile(r"[-+]?\d{1,30}", re.ASCII)
_FLOAT = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?|[-+]?\.(inf|Inf|INF)", re.ASCII)
_WORDS = {"": None, "~": None, "null": None, "true": True, "false": False}


def read_sidecar(path: Path) -> dict[str, Any]:
    """The mapping in a YAML file; empty for an empty file.

    Plain scalars are null, true, false and numbers; all else (``yes``, ``no``, dates, ``${...}``) is text.

    Raises
    ------
    DatasetError
        If it is no small regular file of YAML that holds one mapping; anchors, aliases and tags are not allowed.
    """
    content, what = read_file(path, MEGABYTES, "nothing here"), path.name
    if not content.strip():
        return {}
    text = decoded(what, content, Form(), [])
    try:
        _allow(what, text)
        node = yaml.compose(text, Loader=yaml.BaseLoader)
    except yaml.YAMLError as fault:
        problem = getattr(fault, "problem", None) or " ".join(str(fault).split())
        mark = getattr(fault, "problem_mark", None)
        where = f", line {mark.line + 1}" if mark else ""
        raise DatasetError(f"{what} is no YAML ({problem}{where}); {HINT}.") from None
    settings = {} if node is None else _built(what, node)
    if settings is None:
        return {}
    if not isinstance(settings, dict):
        raise DatasetError(f"{what} holds no mapping but {str(settings)[:40]!r}; {HINT}.")
    return settings


def _allow(what: str, text: str) -> None:
    """Look at the events alone, before anything is made of them: what could grow or be built is refused."""
    depth = 0
    for event in yaml.parse(text, Loader=yaml.BaseLoader):
        line = event.start_mark.line + 1
        if getattr(event, "anchor", None):
            raise DatasetError(f"{what} has an anchor or alias, {event.anchor[:40]!r}, in line {line}; write it out.")
        if getattr(event, "tag", None):
            raise DatasetError(f"{what} has the tag {event.tag[:60]!r} in line {line}; write values without tags.")
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        if depth > DEPTH:
            raise DatasetError(f"{what} is nested more than {DEPTH} deep in line {line}, which no setting needs.")


def _built(what: str, node: Any) -> Any:
    if isinstance(node, yaml.SequenceNode):
        return [_built(what, item) for item in node.value]
    if isinstance(node, yaml.MappingNode):
        built: dict[str, Any] = {}
        for key, value in node.value:
            line = key.start_mark.line + 1
            if not isinstance(key, yaml.ScalarNode):
                raise DatasetError(f"{what} has a list or a mapping as a key in line {line}; {HINT}.")
            if key.value in built:
                raise DatasetError(f"{what} says {key.value[:60]!r} twice, again in line {line}; say it once.")
            built[key.value] = _built(what, value)
        return built
    return _scalar(node.value) if node.style is None else node.value


def _scalar(text: str) -> Any:
    """A number, true, false or null of an unquoted text, or the text."""
    if _INT.fullmatch(text):
        return int(text)
    if _FLOAT.fullmatch(text):
        return float(text.replace(".inf", "inf").replace(".Inf", "inf").replace(".INF", "inf"))
    return _WORDS.get(text if text in {"", "~"} else text.lower(), text)
