"""How kernels are compiled: a kernel that another one calls is compiled as a part of that one, and not by itself, too.

Numba compiles every function to machine code for itself, with ways in from Python and C, and once more within each of
its callers, down to the last helper. Here LLVM sees a helper only within the kernels that Python calls. And numba's
cache looks at a kernel's own file alone; here at those that its helpers and constants come from, too.
"""

from __future__ import annotations

import fcntl
import functools
import gc
import hashlib
import re
from collections.abc import Callable
from contextlib import ExitStack, suppress
from itertools import count
from pathlib import Path
from typing import Any

from numba.core import compiler, config, event, sigutils, types
from numba.core.caching import IndexDataCacheFile
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler_lock import global_compiler_lock
from numba.core.registry import CPUDispatcher

# No way in from C, which nobody takes.
OPTIONS: dict[str, Any] = {"nopython": True, "boundscheck": None, "no_cfunc_wrapper": True}

IMPORT = re.compile(r"^(?:from +([\w.]+) +import +(\([^)]*\)|.*)|import +(.*))", re.MULTILINE)  # not within functions
OURS = dict.fromkeys(("harness", "methods"), Path(__file__).parents[2])  # our packages, and where they lie


@functools.cache
def _read(path: Path, top: str, root: Path) -> tuple[bytes, tuple[Path, ...]]:
    """A module's source, and the files of our package and of that named ``top``, below ``root``, that it imports."""
    source, found = path.read_bytes(), []
    for module, names, plain in IMPORT.findall(source.decode()):
        words = re.findall(r"[\w.]+", names or plain)
        dot = "" if module.endswith(".") else "."
        for name in [module, *(module + dot + word for word in words)] if module else words:
            parts = name.lstrip(".").split(".")
            up = len(name) - len(name.lstrip("."))
            if (folder := path.parents[up - 1] if up else {**OURS, top: root}.get(parts[0])) is not None:
                place = folder.joinpath(*parts)
                found += [file for file in (place.with_suffix(".py"), place / "__init__.py") if file.is_file()]
    return source, tuple(found)


@functools.cache
def _digest(path: Path, top: str, root: Path) -> bytes:
    """A hash of a module's source and of all that it imports, directly or not, as ``_read`` finds it."""
    found: dict[Path, bytes] = {}
    todo = [path] if path.is_file() else []
    while todo:
        if (path := todo.pop()) not in found:
            found[path], imported = _read(path, top, root)
            todo.extend(imported)
    return hashlib.sha256(b"\0".join(found[path] for path in sorted(found))).digest()


class _Flags(compiler.Flags):
    """Numba's flags, by which it finds each function that a kernel uses, and which it writes out whole each time."""

    __slots__ = ()

    def __hash__(self) -> int:
        return hash(frozenset(self._values))  # some values have no hash

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Flags) and self._values == other._values


class _KernelCompiler(compiler.Compiler):
    """Numba's compiler, with flags that are quickly looked up."""

    def __init__(self, typing: Any, target: Any, library: Any, args: Any, result: Any, flags: Any, local: Any) -> None:
        super().__init__(typing, target, library, args, result, _Flags(flags), local)


class _Part(JITCodeLibrary):
    """The code of a helper: typed and lowered, for others to link in; never optimised or loaded by itself."""

    def _optimize_final_module(self) -> None:
        """Left to the kernel that it becomes a part of."""

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True


class _PartCompiler(_KernelCompiler):
    """Numba's compiler, that ends with a ``_Part``."""

    def __init__(self, typing: Any, target: Any, library: Any, args: Any, result: Any, flags: Any, local: Any) -> None:
        flags.no_compile = flags.no_cpython_wrapper = True
        super().__init__(typing, target, library, args, result, flags, local)
        self.state.library = _Part(self.state.targetctx.codegen(), "part")


class _Helper(CPUDispatcher):
    """A function as other kernels call it."""

    def compile(self, sig: Any) -> Any:
        """Type and lower it for some types; returns what numba knows the result by."""
        with global_compiler_lock, self._compiling_counter:
            args, result = sigutils.normalize_signature(sig)
            if (known := self.overloads.get(tuple(args))) is not None:
                return known.entry_point  # type: ignore[attr-defined]
            with event.trigger_event("numba:compile", data={"dispatcher": self, "args": args, "return_type": result}):
                made: Any = self._compiler.compile(args, result)  # type: ignore[attr-defined]
            made = made._replace(entry_point=object())
            made.target_context.insert_user_function(made.entry_point, made.fndesc, [made.library])
            self.overloads[tuple(args)] = made
            return made.entry_point


class _Kept(IndexDataCacheFile):
    """A kernel's files in numba's cache: an index, and a file of code for each of the types that it was compiled for.

    Numba writes the index first and locks nothing. So two processes that compile for other types at once would give
    both codes one name, and one that is killed in between would leave an index that names older code.
    """

    def save(self, key: Any, data: Any) -> None:
        """Write the code, then the index that names it, while no other process does."""
        kept: Any = self
        with ExitStack() as stack:
            with suppress(OSError):  # of file systems without locks, and of folders that others write to
                lock = stack.enter_context(open(Path(kept._cache_path) / "kernels.lock", "w"))
                fcntl.flock(lock, fcntl.LOCK_EX)
            known = kept._load_index()
            name = known.get(key) or next(filter(lambda n: n not in known.values(), map(kept._data_name, count(1))))
            kept._save_data(name, data)
            kept._save_index({**known, key: name})


class Kernel(CPUDispatcher):
    """A compiled function: called from Python it is whole and cached, called from a kernel a part of that one."""

    def __init__(self, function: Callable[..., Any], options: dict[str, Any]) -> None:
        super().__init__(function, targetoptions=options, pipeline_class=_KernelCompiler)
        self.helper = _Helper(function, targetoptions=options, pipeline_class=_PartCompiler)

    def enable_caching(self) -> None:
        """As numba, but what is kept is stale, too, when a module has changed that the kernel's own imports."""
        super().enable_caching()
        function = self.py_func
        file, (top, *rest) = Path(function.__code__.co_filename), function.__module__.split(".")
        kept: Any = self._cache._cache_file  # type: ignore[attr-defined]
        kept.__class__ = _Kept
        root = file.parents[len(rest) + (file.stem == "__init__")]
        kept._source_stamp = kept._source_stamp, _digest(file, top, root)

    def compile(self, sig: Any) -> Any:
        """As numba, but without looking for garbage meanwhile, which takes a tenth of the time."""
        collecting = gc.isenabled()
        gc.disable()
        try:
            return super().compile(sig)
        finally:
            if collecting:
                gc.enable()

    def get_call_template(self, args: Any, kws: Any) -> Any:
        """What a kernel that calls this one is to know of its types; a constant is as any other value of its type."""
        return self.helper.get_call_template(tuple(map(types.unliteral, args)), kws)

    def get_overload(self, sig: Any) -> Any:
        """What a kernel that calls this one calls."""
        return self.helper.get_overload(sig)


def njit(cache: bool = False, **options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Numba's decorator, for a ``Kernel``; plain Python where ``NUMBA_DISABLE_JIT`` is set."""

    def compiled(function: Callable[..., Any]) -> Any:
        if config.DISABLE_JIT:  # type: ignore[attr-defined]
            return function
        kernel = Kernel(function, {**OPTIONS, **options})
        if cache:
            kernel.enable_caching()
        return kernel

    return compiled


# For what allocates nothing: without the counting of references to the arrays that each call is given, which would take
# two thirds of the time.
njit_no_refcount = njit(cache=True, _nrt=False)
