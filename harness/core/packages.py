"""Where packages lie and which versions are installed; nothing of theirs is imported."""

from __future__ import annotations

import hashlib
import importlib.util
from functools import lru_cache
from importlib import metadata
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


@lru_cache
def version(name: str) -> str | None:
    """The installed version of a distribution, or of the one that an import name belongs to; None if there is none.

    >>> version("sklearn") == version("scikit-learn")
    True
    """
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        owners = metadata.packages_distributions().get(name)
        return metadata.version(owners[0]) if owners else None


def digest_of(*folders: Path) -> bytes:
    """The sha256 over the sorted relative paths and the bytes of all Python files below folders.

    Raises
    ------
    FileNotFoundError
        For a folder that does not exist.
    """
    digest = hashlib.sha256()
    for folder in folders:
        if not folder.is_dir():
            raise FileNotFoundError(f"there is no folder {folder}")
        for path in sorted(folder.rglob("*.py")):
            digest.update(f"{path.relative_to(folder).as_posix()}\0".encode())
            digest.update(path.read_bytes())
    return digest.digest()
