"""``python -m harness info``: versions, folders, extras, caches and compiled kernels of this installation."""

from __future__ import annotations

import os
import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

from harness.cli.environment import PACKAGES, machine
from harness.cli.environments import mebibytes
from harness.core.caching import cache
from harness.core.packages import CONF, NAME, extras, install, installed, places, version
from harness.data.sources import data_folder

KERNELS = "harness.core.compiling"  # the module of kernels, which loads numba


def lines() -> Iterator[str]:
    """A line a fact, under a heading a kind of fact."""
    about = machine()
    yield f"{NAME} {version(NAME)}, Python {about['python']} at {sys.executable}"
    yield f"{about['platform']}; {about['cpu']}, {about['cores']} cores, {about['memory_gib']} GiB"
    yield "\npackages"
    for name in PACKAGES[1:]:
        yield f"  {name:20} {version(name) or 'not installed'}"
    yield "\nextras"
    for extra, names in sorted(extras().items()):
        there = dict(installed(name) for name in names)
        lacking = None in there.values()
        said = ", ".join(f"{name} {number}" for name, number in there.items())
        yield f"  {extra:20} {f'not installed; {install(extra)}' if lacking else said}"
    yield "\nfolders"
    sizes = {folder: mebibytes(folder) for folder in _folders().values() if folder.is_dir()}
    for what, folder in _folders().items():
        within = sum(size for other, size in sizes.items() if folder in other.parents)
        yield f"  {what:20} {folder}: {f'{sizes[folder] - within:.1f} MiB' if folder in sizes else 'not there'}"
    yield "\ncompiled kernels"
    kept = _kept_kernels()
    for package, found in sorted(kept.items()):
        yield f"  {package:26} {len(found)}"
    folders = {Path(kernel.stats.cache_path) for found in kept.values() for kernel in found}
    size = sum(file.stat().st_size for folder in folders for file in folder.glob("*.nb[ci]")) / 2**20
    place = os.environ.get("NUMBA_CACHE_DIR") or "__pycache__ beside the sources"
    yield f"  {sum(map(len, kept.values()))} in all, of today's sources, {size:.1f} MiB in {place};"
    yield "  python -m harness warm compiles those that are missing"


def _folders() -> dict[str, Path]:
    kept = {f"cache: {name}": cache() / name for name in ("models", "archives", "environments")}
    return {"package": Path(__file__).parents[1], "choices": CONF, "data": data_folder(), **kept}


def _kept_kernels() -> dict[str, list[Any]]:
    """The kernels that numba would read from its cache, and not compile again, by the package that they are of."""
    kind, found = import_module(KERNELS).Kernel, defaultdict[str, list[Any]](list)
    for top in ("harness", "methods"):
        for path in sorted(places(top)[0].rglob("*.py")):
            if re.search(r"^@njit", path.read_text(encoding="utf-8"), re.MULTILINE):
                name = ".".join([top, *path.relative_to(places(top)[0]).with_suffix("").parts])
                for kernel in vars(import_module(name)).values():
                    if isinstance(kernel, kind) and kernel.__module__ == name and _kept(kernel):
                        found[name.rpartition(".")[0]].append(kernel)
    return found


def _kept(kernel: object) -> bool:
    """Whether numba would read a kernel from its cache: its index has anything that is not stale."""
    file = getattr(getattr(kernel, "_cache", None), "_cache_file", None)
    return file is not None and bool(file._load_index())
