"""Packages that bring methods, metrics, datasets and models of their own. Finding them imports nothing of theirs."""

from __future__ import annotations

import ast
import sysconfig
from collections.abc import Iterable, Iterator
from pathlib import Path

from harness.core.packages import places, plugs

CHOICES = ("dataset", "experiment", "method", "metrics", "model")
OURS = {"harness", "methods", "metrics"}
STANDARD = Path(sysconfig.get_path("stdlib"))  # the standard library
LIBRARIES = {"site-packages", "dist-packages"}


def installed() -> Iterator[tuple[str, str]]:
    """What is installed with an entry point of this group: who, in words, and the dotted name of its package."""
    for entry in plugs():
        yield f"the installed package {entry.dist.name if entry.dist else entry.name!r}", entry.value


def misfit(who: str, where: str, folder: Path | None) -> str | None:
    """Why a folder brings no choices, in one sentence, or None where it does."""
    if folder is None or not folder.is_dir():
        return f"{who} names {where}, which is no folder; name one that holds method/NAME.yaml or the like."
    if not any(path for choice in CHOICES for path in folder.glob(f"{choice}/*.yaml")):
        return f"{who} names {where}, which holds no choice; allowed: {', '.join(f'{c}/NAME.yaml' for c in CHOICES)}."
    return None


def hidden(folder: Path, earlier: list[Path]) -> list[str]:
    """Choices of a folder that are never used, since one of the same name is found earlier."""
    names = [path.relative_to(folder).as_posix() for c in CHOICES for path in sorted(folder.glob(f"{c}/**/*.yaml"))]
    return [name for name in names if any((other / name).is_file() for other in earlier)]


def sources(module: Path) -> list[Path]:
    """A module's file and those that it imports, directly or not, from its own package or from uninstalled code.

    Of a script that is what lies beside it.

    Read off the source, imports within functions included. Libraries are left out, and so is this package.
    """
    found: set[Path] = set()
    todo = [module]
    while todo:
        path = todo.pop().resolve()
        if path not in found and path.suffix == ".py" and path.is_file():
            found.add(path)
            todo.extend(_imports(path, module.resolve()))
    return sorted(found)


def libraries(files: Iterable[Path]) -> set[str]:
    """The installed top-level packages that some files import, but for this one."""
    tops = {parts[0] for path in files for level, parts in _imported(path) if not level}
    return {top for top in tops - OURS if any(LIBRARIES.intersection(place.parts) for place in places(top))}


def _imports(path: Path, module: Path) -> Iterator[Path]:
    """Files that the import statements of a file may mean, whether they exist or not."""
    for level, parts in _imported(path):
        yield from _chain(path.parents[level - 1], parts) if level else _absolute(parts, module)


def _imported(path: Path) -> Iterator[tuple[int, list[str]]]:
    """What the import statements of a file name, and how many folders up from the file they begin."""
    try:
        tree = ast.parse(path.read_bytes())
    except SyntaxError:  # of a file that nothing could import either
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((0, alias.name.split(".")) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            parts = node.module.split(".") if node.module else []
            yield from ((node.level, [*parts, alias.name]) for alias in node.names)


def _absolute(parts: list[str], module: Path) -> Iterator[Path]:
    if parts[0] in OURS:
        return
    yield from _chain(module.parent, parts)
    for place in places(parts[0]):
        library = place.is_relative_to(STANDARD) or LIBRARIES.intersection(place.parts)
        if not library or module.is_relative_to(place.resolve()):
            yield from _chain(place, parts[1:]) if place.is_dir() else [place]


def _chain(folder: Path, parts: list[str]) -> Iterator[Path]:
    """The files of each package on the way to a module, and of the module."""
    yield folder / "__init__.py"
    for part in parts:
        yield folder / f"{part}.py"
        folder /= part
        yield folder / "__init__.py"
