"""Where packages lie and which versions are installed; nothing of theirs is imported."""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Collection, Mapping
from importlib.metadata import EntryPoint, PackageNotFoundError, entry_points, packages_distributions, requires
from importlib.metadata import version as distribution_version
from pathlib import Path

NAME = "ce-harness"
PLUGS = "ce_harness.conf"  # the group of entry points that name packages which hold method/mine.yaml and the like
CODE = ("harness", "methods", "metrics", "conf")  # folders of a clone that results are made by
OLD_PINS = {"nice": "nicex==0.2.3"}  # packages whose own pins pyproject.toml replaces for uv, and pip is not to keep
CLONED = (Path(__file__).parents[2] / "uv.lock").exists()  # or installed from a wheel
CONF = next(folder / "conf" for folder in Path(__file__).parents[1:3] if (folder / "conf" / "config.yaml").is_file())


def install(extra: str) -> str:
    """The command that brings an extra of this package, in a clone or where a wheel was installed."""
    if CLONED:
        return f"uv sync --extra {extra}"
    return f"pip install --no-deps {OLD_PINS[extra]}" if extra in OLD_PINS else f"pip install 'ce-harness[{extra}]'"


def extras() -> Mapping[str, list[str]]:
    """The packages that each extra asks for, by the metadata of the installation."""
    found = defaultdict(list)
    try:
        lines = requires(NAME) or ()
    except PackageNotFoundError:  # a clone that is on the path alone
        lines = ()
    for line in lines:
        if extra := re.search(r"""extra == ['"]([\w-]+)['"]""", line):
            found[extra[1]].append(re.split(r"[^\w.-]", line, maxsplit=1)[0])
    return found


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


def brought(names: Collection[str]) -> dict[str, str]:
    """The distributions that bring some top-level packages, and their versions."""
    found = {each for name in names for each in _distributions().get(name, ())} if names else set()
    return {each: distribution_version(each) for each in found}


def plugs() -> list[EntryPoint]:
    """What is installed with choices of its own: each value is the dotted name of a package."""
    return sorted(entry_points(group=PLUGS), key=lambda entry: entry.name)


def plugged() -> set[str]:
    """The top-level packages that bring choices of their own."""
    return {entry.value.partition(".")[0] for entry in plugs()}


def conf_folders() -> list[Path]:
    """The folders of choices: this package's own, then those of packages that bring some."""
    found = (locate(entry.value) for entry in plugs())
    return [CONF, *(folder for folder in found if folder is not None)]


def installed(name: str) -> tuple[str, str | None]:
    """A package and its version; of one without CUDA the whole one that is there instead, as pip brings XGBoost."""
    whole = name.removesuffix("-cpu")
    return (whole, version(whole)) if version(name) is None else (name, version(name))


@functools.cache
def commit() -> str | None:
    """The commit of the clone that runs, then ``-dirty`` where its code differs; None where git knows of none.

    Installed, the package may lie in another's clone.
    """
    root = Path(__file__).resolve().parents[2]

    def git(*words: str) -> str:
        command = ["git", "-C", str(root), *words]
        return subprocess.run(command, capture_output=True, text=True, timeout=10, check=True).stdout.strip()

    try:
        top, head = git("rev-parse", "--show-toplevel", "HEAD").split("\n")
        if Path(top).resolve() == root:
            return head + ("-dirty" if git("diff", "HEAD", "--name-only", "--", *CODE) else "")
    except (OSError, subprocess.SubprocessError):
        pass
    return None


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
