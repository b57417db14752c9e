"""Kernels: what is compiled, how often, and what numba's cache keeps of it."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numba.core import config
from numba.core.caching import IndexDataCacheFile

from harness.core import compiling

KERNELS = """
import numpy as np
from harness.core.compiling import njit, njit_no_refcount


@njit_no_refcount
def part(values, k, last):
    return values[len(values) - 1] if last else values[k]


@njit(cache=True)
def both(values):
    return part(values, 0, False) + part(values, len(values), True)


@njit(cache=True)
def third(values):
    return both(values) + both(np.zeros(1))
"""


@pytest.fixture
def kernels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], Any]]:
    """Imports a module of kernels anew, as another process would."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "cache"))
    config.reload_config()  # type: ignore[attr-defined]
    (tmp_path / "some_kernels.py").write_text(KERNELS)

    def fresh() -> Any:
        sys.modules.pop("some_kernels", None)
        importlib.invalidate_caches()
        return importlib.import_module("some_kernels")

    yield fresh
    sys.modules.pop("some_kernels", None)


def test_a_kernel_within_a_kernel_is_no_code_of_its_own(kernels: Callable[[], Any], tmp_path: Path) -> None:
    """One entry in the cache and one way in from Python, of the outermost; constants make no versions of a helper."""
    module, values = kernels(), np.array([1.0, 2.0, 4.0])
    assert module.third(values) == 5.0
    assert module.part.signatures == module.both.signatures == []
    assert len(module.part.helper.overloads) == len(module.both.helper.overloads) == 1
    assert [path.name.partition("-")[0] for path in (tmp_path / "cache").rglob("*.nbc")] == ["some_kernels.third"]


def test_every_kernel_can_be_called_from_python(kernels: Callable[[], Any]) -> None:
    module, values = kernels(), np.array([1.0, 2.0, 4.0])
    assert (module.both(values), module.part(values, 1, False), module.part(values, 1, True)) == (5.0, 2.0, 4.0)
    assert module.part.py_func(values, 1, False) == 2.0


def test_the_next_process_compiles_nothing(kernels: Callable[[], Any], tmp_path: Path) -> None:
    values = np.array([1.0, 2.0, 4.0])
    kernels().third(values)
    asked = "import numpy, some_kernels as k; k.third(numpy.ones(3)); print(k.both.helper.signatures, k.third.stats)"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])}
    done = subprocess.run([sys.executable, "-c", asked], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("[] "), done.stdout
    assert "cache_misses=Counter()" in done.stdout


def test_a_change_of_what_a_kernel_imports_compiles_it_anew(tmp_path: Path) -> None:
    """Another module's constant, and one that a helper's module imports: the next process has the new answer."""
    package = tmp_path / "bench"
    package.mkdir()
    wanted = "from harness.core.compiling import njit\n{}\n\n@njit(cache=True)\ndef {}(x):\n    return {}\n"
    files = {
        "__init__": "",
        "sizes": "WIDTH = 2.0\n",
        "numbers": "SHIFT = 1.0\n",
        "parts": wanted.format("from bench.sizes import (\n    WIDTH,\n)", "part", "WIDTH * x"),
        "whole": wanted.format("from . import numbers\nfrom .parts import part", "whole", "part(x) + numbers.SHIFT"),
    }
    for name, source in files.items():
        (package / f"{name}.py").write_text(source)
    asked = "from bench.whole import whole; print(whole(10.0), whole.stats.cache_hits.total())"
    path = os.pathsep.join([str(tmp_path), *sys.path])
    environment = {**os.environ, "PYTHONPATH": path, "NUMBA_CACHE_DIR": str(tmp_path / "cache")}

    def answer() -> str:
        command = [sys.executable, "-Bc", asked]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout

    assert answer() == "21.0 0\n"
    (package / "numbers.py").write_text("SHIFT = 3.0\n")
    assert answer() == "23.0 0\n"
    (package / "sizes.py").write_text("WIDTH = 7.0\n")
    assert answer() == "73.0 0\n"


def kept_files(folder: Path, stamp: str = "now") -> Any:
    return compiling._Kept(str(folder), "kernel", stamp)


def test_processes_that_write_at_once_lose_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of one kernel, for other types each: every code is found by the types that it is for."""
    read = IndexDataCacheFile._load_index  # type: ignore[attr-defined]

    def slowly(self: Any) -> Any:
        found = read(self)
        time.sleep(0.01)
        return found

    def write(number: int) -> None:
        for turn in range(5):
            kept_files(tmp_path).save((number, turn), f"code {number} {turn}")

    monkeypatch.setattr(IndexDataCacheFile, "_load_index", slowly)
    writers = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    keys = [(number, turn) for number in range(4) for turn in range(5)]
    assert [kept_files(tmp_path).load(key) for key in keys] == [f"code {number} {turn}" for number, turn in keys]


def test_a_process_that_is_killed_while_it_writes_leaves_no_older_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither where the index, nor where the code would have come next."""

    def killed(*given: object) -> None:
        raise KeyboardInterrupt

    for place in ("_save_index", "_save_data"):
        kept_files(tmp_path, "before").save("types", "older code")
        with monkeypatch.context() as patched:
            patched.setattr(IndexDataCacheFile, place, killed)
            with pytest.raises(KeyboardInterrupt):
                kept_files(tmp_path).save("types", "newer code")
        assert kept_files(tmp_path).load("types") is None
    kept_files(tmp_path).save("types", "newer code")
    assert kept_files(tmp_path).load("types") == "newer code"
