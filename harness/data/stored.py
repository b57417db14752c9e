"""Sources of raw bytes that are stored with answers, which may be anybody's."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import yaml  # type: ignore[import-untyped]

from harness.core.errors import DatasetError
from harness.core.packages import conf_folders
from harness.data.load import source_of
from harness.data.sources import RAW, Source, data_folder


@functools.cache
def _named_here() -> frozenset[str]:
    """The sources that the choices of this installation name, as JSON."""
    found = set()

    def look(node: Any) -> None:
        if isinstance(node, dict) and isinstance(node.get("file"), str):
            found.add(json.dumps(node, sort_keys=True))
        for inner in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
            look(inner)

    for path in (path for folder in conf_folders() for path in folder.rglob("*.yaml")):
        look(yaml.safe_load(path.read_text()))
    return frozenset(found)


def stored_source(name: str, entries: Mapping[str, Any], foreign: bool) -> Source:
    """As ``source_of``, of entries that are stored with answers: what no choice of this installation names is never
    downloaded.

    Raises
    ------
    DatasetError
        For such a source of a ``foreign`` archive that is no file of the data folder, or has no sha256.
    """
    source = source_of(name, entries)
    if json.dumps(dict(entries), sort_keys=True) in _named_here():
        return source
    inside = any(source.path.resolve().is_relative_to(folder.resolve()) for folder in (data_folder(), RAW))
    if foreign and not (inside and source.sha256):
        raise DatasetError(
            f"{name} is of {source.file}, which no choice of this installation names; only files of the data folder "
            "with a sha256 are read for an archive."
        )
    return replace(source, urls=())
