"""Where packages lie and which versions are installed; nothing of theirs is imported."""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import sys
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, packages_distributions
from importlib.metadata import version as distribution_version
from pathlib import Path

CLONED = (Path(__file__).parents[2] / "uv.lock").exists()  # or installed from a wheel


def install(extra: str) -> str:
    """The command that brings an extra of this package, in a clone or where a wheel was installed."""
    return f"uv sync --extra {extra}" if CLONED else f"pip install 'ce-harness[{extra}]'"


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
    found = spec.submodule_search_locations or ([spec.origin] if spec.has_location and spec.origin else [])
    return [Path(place) for place in found]


def version(name: str) -> str | None:
    """The installed version of a distribution, or of the one that brings a top-level package; None where absent."""
    try:
        return distribution_version(name)
    except PackageNotFoundError:
        if (told := getattr(sys.modules.get(name), "__version__", None)) is not None:
            return str(told)  # of what is imported already
        brought_by = _distributions().get(name) if places(name) else None
        return distribution_version(brought_by[0]) if brought_by else None


@functools.cache
def _distributions() -> Mapping[str, list[str]]:
    """The distributions that bring each top-level package; slow, as it reads what every one of them installed."""
    return packages_distributions()


def digest_of(*places: Path) -> bytes:
    """The sha256 of the Python sources of folders and files: their relative paths and their bytes.

    Raises
    ------
    FileNotFoundError
        For a place that does not exist.
    """
    digest = hashlib.sha256()
    for place in places:
        if not place.exists():
            raise FileNotFoundError(f"there are no sources {place}")
        for path in sorted(place.rglob("*.py")) if place.is_dir() else [place]:
            digest.update(f"{path.relative_to(place.parent).as_posix()}\0".encode())
            digest.update(path.read_bytes())
    return digest.digest()
