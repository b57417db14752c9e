"""``python -m harness info``: versions, folders, extras, caches and compiled kernels of this installation."""

from __future__ import annotations

import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from importlib import import_module
from importlib.metadata import requires
from pathlib import Path

from harness.cli.environment import PACKAGES, machine
from harness.cli.environments import mebibytes
from harness.cli.process import CONF
from harness.core.caching import cache
from harness.core.packages import install, places, version
from harness.data.sources import data_folder

NAME = "ce-harness"
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
    for extra, names in sorted(_extras().items()):
        found = dict(_installed(name) for name in names)
        lacking = None in found.values()
        said = ", ".join(f"{name} {number}" for name, number in found.items())
        yield f"  {extra:20} {f'not installed; {install(extra)}' if lacking else said}"
    yield "\nfolders"
    for what, folder in _folders().items():
        yield f"  {what:20} {folder}: {f'{mebibytes(folder):.1f} MiB' if folder.is_dir() else 'not there'}"
    yield "\ncompiled kernels"
    counted = _compiled()
    for package, number in sorted(counted.items()):
        yield f"  {package:26} {number}"
    yield f"  {counted.total()} in all, of today's sources; python -m harness warm compiles those that are missing"


def _installed(name: str) -> tuple[str, str | None]:
    """A package and its version; of one without CUDA the whole one that is there instead, as pip brings XGBoost."""
    whole = name.removesuffix("-cpu")
    return (whole, version(whole)) if version(name) is None else (name, version(name))


def _extras() -> dict[str, list[str]]:
    """The packages that each extra asks for, by the metadata of the installation."""
    found = defaultdict(list)
    for line in requires(NAME) or ():
        if extra := re.search(r"""extra == ['"]([\w-]+)['"]""", line):
            found[extra[1]].append(re.split(r"[^\w.-]", line, maxsplit=1)[0])
    return found


def _folders() -> dict[str, Path]:
    kept = {f"cache: {name}": cache() / name for name in ("models", "archives", "environments")}
    return {"package": Path(__file__).parents[1], "choices": CONF, "data": data_folder(), **kept}


def _compiled() -> Counter[str]:
    """How many kernels numba would read from its cache, and not compile again, by the package that they are of."""
    kind, found = import_module(KERNELS).Kernel, Counter[str]()
    for top in ("harness", "methods"):
        for path in sorted(places(top)[0].rglob("*.py")):
            if re.search(r"^@njit", path.read_text(encoding="utf-8"), re.MULTILINE):
                name = ".".join([top, *path.relative_to(places(top)[0]).with_suffix("").parts])
                for kernel in vars(import_module(name)).values():
                    if isinstance(kernel, kind) and kernel.__module__ == name and _kept(kernel):
                        found[name.rpartition(".")[0]] += 1
    return found


def _kept(kernel: object) -> bool:
    """Whether numba's index of a kernel has anything that is not stale."""
    file = getattr(getattr(kernel, "_cache", None), "_cache_file", None)
    return file is not None and bool(file._load_index())
