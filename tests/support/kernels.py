"""The kernels of this process: what they are compiled or loaded for, and how to forget that."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from harness.core.compiling import Kernel


def kernels() -> Iterator[tuple[str, Kernel]]:
    """All of the modules that are imported, by name."""
    for name, module in sorted(sys.modules.items()):
        if name.startswith(("harness.", "methods.")):
            for value in list(vars(module).values()):
                if isinstance(value, Kernel) and value.py_func.__module__ == name:
                    yield f"{name}.{value.py_func.__name__}", value


def signatures() -> set[tuple[str, str]]:
    """For what types each kernel is there, by name."""
    return {(name, str(types)) for name, kernel in kernels() for types in kernel.signatures}


def forget() -> None:
    """Have every kernel loaded from numba's cache, or compiled, when it is called next."""
    for _, kernel in kernels():
        kernel._make_finalizer()()
        kernel._reset_overloads()
