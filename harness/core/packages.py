"""Where packages lie and which versions are installed; nothing of theirs is imported."""

from __future__ import annotations

import importlib.util
from pathlib import Path


def locate(name: str) -> Path | None:
    """The folder of a package, by its dotted name, or None; only its place is looked up, nothing is imported.

    >>> locate("harness.data.raw").name
    'raw'
    """
    top, *rest = name.split(".")
    folders = (place.joinpath(*rest) for place in places(top) if place.is_dir())
    return next((folder for folder in folders if folder.is_dir()), None)


def places(top: str) -> list[Path]:
    """The folders of a top-level package, or the file of a top-level module."""
    try:
        spec = importlib.util.find_spec(top)
    except (ImportError, AttributeError, ValueError):  # ValueError: no name at all, or a module without a spec
        return []
    if spec is None:
        return []
    places = spec.submodule_search_locations or ([spec.origin] if spec.has_location and spec.origin else [])
    return [Path(place) for place in places]
