"""What is charged to whom: set-up from the start of a fresh process, and processor seconds beside wall seconds."""

from __future__ import annotations

import importlib
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from harness.core.explanation import Explanation
from harness.core.method import Deadline, Explainer
from harness.core.problem import Problem
from harness.execution import clocks
from harness.execution.pool import Limits, Outcome, Pool
from methods.nearest import Nearest

LIMITS = Limits(time=30.0, fit=120.0)
BUSY = "import time\nwhile time.process_time() < 0.6: pass"
SLOW = """
import time
from dataclasses import dataclass
from methods.nearest import Nearest

time.sleep(0.5)


@dataclass(frozen=True)
class Slow(Nearest):
    def refuses(self, problem):
        return "too slow" if self.distance == "l0" else None

    def fit(self, problem):
        time.sleep(0.5)
        if self.distance == "l1":
            raise LookupError
        return super().fit(problem)
"""
# Notes every fit beside itself: its wall-clock seconds. The kernel is only imported, and only compiled, in ``fit``.
COMPILING = """
import time
from dataclasses import dataclass
from pathlib import Path
from methods.nearest import Nearest


@dataclass(frozen=True)
class Compiling(Nearest):
    def fit(self, problem):
        start = time.perf_counter()
        from {name}_kernel import total

        total(10)
        with Path(__file__).with_suffix(".txt").open("a") as notes:
            notes.write(f"{{time.perf_counter() - start}}\\n")
        return super().fit(problem)
"""
# Half a second of compiling, at least.
KERNEL = """
import numpy as np
from numba import njit


@njit(cache={cache})
def total(n):
    return np.sort(np.arange(n) % 3)[:2].sum() + np.median(np.arange(n))
"""


@dataclass(frozen=True)
class Spending(Nearest):
    """Spends time on each question, one way or another."""

    way: str = "sleep"

    def fit(self, problem: Problem) -> Explainer:
        return _Spending(super().fit(problem), WAYS[self.way])


@dataclass
class _Spending:
    explainer: Explainer
    spend: Callable[[], object]

    def explain(self, factual: pd.DataFrame, n: int, rng: np.random.Generator, deadline: Deadline) -> Explanation:
        self.spend()
        return self.explainer.explain(factual, n, rng, deadline)


def _busy() -> None:
    end = time.process_time() + 0.6
    while time.process_time() < end:
        pass


WAYS: dict[str, Callable[[], object]] = {
    "sleep": lambda: time.sleep(0.6),
    "busy": _busy,
    "child": lambda: subprocess.run([sys.executable, "-c", BUSY], check=True),
}


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str, str], Any]]:
    """Writes a module that workers can import, too, and imports it."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "kernels"))
    written = []

    def write(name: str, source: str) -> Any:
        (tmp_path / f"{name}.py").write_text(source)
        importlib.invalidate_caches()
        written.append(name)
        return importlib.import_module(name)

    yield write
    for name in written:
        del sys.modules[name]


def asked(method: Any, problem: Problem, jobs: int = 1, first_use: bool = False) -> list[Outcome]:
    factuals = problem.train.loc[~problem.valid(problem.train)].iloc[:2]
    return list(Pool(first_use).explain(method, lambda _: problem, factuals, 1, lambda _: (0,), LIMITS, jobs))


def setup(outcomes: list[Outcome]) -> tuple[float, float]:
    """The set-up of a run, which every outcome states: wall-clock and processor seconds."""
    ((wall, processor),) = {(outcome.setup_seconds, outcome.setup_cpu_seconds) for outcome in outcomes}
    assert wall is not None
    assert processor is not None
    return wall, processor


def test_set_up_counts_imports_whoever_came_first(problem: Problem, module: Callable[[str, str], Any]) -> None:
    """Half a second of import and half of fit: both are set-up, one alone is the fit's."""
    slow = module("slow_method", SLOW).Slow()
    runs = [asked(method, problem) for method in (slow, Nearest(), slow)]
    first, nearest, second = (setup(run) for run in runs)
    for run, (wall, processor) in ((runs[0], first), (runs[2], second)):
        assert wall > 1.0 + processor / 2  # asleep for 1 s, and busy besides, perhaps with two threads
        assert all(0.5 <= outcome.fit_seconds < 1.0 for outcome in run)
    for processor in (nearest[1], second[1]):  # less than wall-clock seconds, these depend on what else goes on
        assert 0.5 < processor / first[1] < 2.0


@pytest.mark.parametrize("distance", ["l0", "l1"], ids=["refused", "failed"])
def test_set_up_is_known_of_a_run_that_is_not_asked(
    problem: Problem, module: Callable[[str, str], Any], distance: str
) -> None:
    assert setup(asked(module("slow_method", SLOW).Slow(distance), problem))[0] > 0.5


def test_set_up_is_the_first_workers(problem: Problem, module: Callable[[str, str], Any]) -> None:
    """Of two at once: both outcomes state one measurement, and each its own worker's fit."""
    outcomes = asked(module("slow_method", SLOW).Slow(), problem, jobs=2)
    setup(outcomes)
    assert len({outcome.fit_seconds for outcome in outcomes}) == 2


@pytest.mark.parametrize(("way", "least", "most"), [("sleep", 0.0, 0.3), ("busy", 0.6, 0.9), ("child", 0.6, 1.2)])
def test_processor_seconds_of_a_question(problem: Problem, way: str, least: float, most: float) -> None:
    """A busy loop's, not a sleep's; a child's are its parent's once it has ended."""
    for outcome in asked(Spending(way=way), problem):
        assert outcome.seconds >= 0.6
        assert outcome.cpu_seconds is not None
        assert least <= outcome.cpu_seconds < most


@pytest.fixture
def compiled_code(monkeypatch: pytest.MonkeyPatch) -> None:
    """Processes compile, also where the tests themselves run without."""
    monkeypatch.delenv("NUMBA_DISABLE_JIT", raising=False)


@pytest.mark.usefixtures("compiled_code")
@pytest.mark.parametrize(
    ("cache", "first_use", "fits", "compiled"),
    [
        pytest.param(True, False, [2, 1], [False, False], id="cached"),
        pytest.param(False, False, [2, 2], [True, True], id="never cached", marks=pytest.mark.slow),
        pytest.param(True, True, [1, 1], [True, True], id="first use", marks=pytest.mark.slow),
    ],
)
def test_a_set_up_that_compiled_is_measured_again(
    problem: Problem,
    module: Callable[[str, str], Any],
    tmp_path: Path,
    cache: bool,
    first_use: bool,
    fits: list[int],
    compiled: list[bool],
) -> None:
    """Once, in a process that finds the kernel in numba's cache if there is one; of first use, never."""
    name = f"compiling_{cache}_{first_use}"
    (tmp_path / f"{name}_kernel.py").write_text(KERNEL.format(cache=cache))
    method = module(name, COMPILING.format(name=name)).Compiling()
    notes = tmp_path / f"{name}.txt"
    for run in (0, 1):
        outcomes = asked(method, problem, first_use=first_use)
        took = [float(line) for line in notes.read_text().splitlines()]
        assert len(took) == sum(fits[: run + 1])
        for outcome in outcomes:
            assert (outcome.compile_seconds > 0) == compiled[run]
            apart = took[-1] - outcome.fit_seconds  # less by what the fit does beside, which a busy machine draws out
            assert apart == pytest.approx(outcome.compile_seconds, rel=0.5, abs=0.1 if compiled[run] else 0.5)
            assert outcome.setup_seconds is not None
            assert outcome.setup_seconds > took[-1]
    assert (tmp_path / "kernels").exists() == (cache and not first_use)


@pytest.mark.slow
@pytest.mark.usefixtures("compiled_code")
def test_what_one_fit_compiled_is_not_the_next_ones(
    problem: Problem, module: Callable[[str, str], Any], tmp_path: Path
) -> None:
    """Two problems, fitted one after the other by one worker, which compiles for the first alone."""
    (tmp_path / "twice_kernel.py").write_text(KERNEL.format(cache=False))
    method = module("twice", COMPILING.format(name="twice")).Compiling()
    factuals = problem.train.loc[~problem.valid(problem.train)].iloc[:2]
    posed = dict(zip(factuals.index, (problem, replace(problem)), strict=True))
    first, second = Pool(first_use=True).explain(method, posed.__getitem__, factuals, 1, lambda _: (0,), LIMITS)
    assert first.compile_seconds > 0.1
    assert second.compile_seconds == 0.0
    assert second.fit_seconds < first.compile_seconds


@pytest.mark.usefixtures("compiled_code")
def test_nothing_compiled_takes_no_time() -> None:
    clock = clocks.CompileClock()
    try:
        assert clock.seconds == 0.0
    finally:
        if clock in sys.meta_path:
            sys.meta_path.remove(clock)


def test_compiling_is_noticed_whoever_imports_numba() -> None:
    """Before the clock is there, or after; what comes from the cache of this process is none of it."""
    kernel = "from numba import njit\nkernel = njit(lambda n: n + 1)\nkernel(1)\n"
    clock = "from harness.execution.clocks import CompileClock\nclock = CompileClock()\n"
    known = "first = clock.seconds\nkernel(2)\nassert clock.seconds == first, 'compiled twice'\nprint(first)"
    root = str(Path(clocks.__file__).parents[2])
    for code in (clock + kernel + known, f"import numba\n{clock}{kernel}{known}"):
        done = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True)
        assert float(done.stdout) > 0.0


@pytest.mark.parametrize(("module", "ours"), [(clocks.OURS, True), ("harness", False), ("numba.core.registry", False)])
def test_whose_kernel_is_compiled_is_told_by_its_dispatcher(module: str, ours: bool) -> None:
    """As it begins, and with its seconds as it ends; not of those that are compiled for another one."""
    heard: list[Any] = []
    clock = clocks.CompileClock(lambda whose, seconds: heard.append((whose, seconds)))
    if clock in sys.meta_path:
        sys.meta_path.remove(clock)
    steps = {"on_start": lambda self, event: None, "on_end": lambda self, event: None, "duration": 0.0}
    events = SimpleNamespace(TimingListener=type("Listener", (), steps))
    events.register = lambda name, listener: heard.append((name, listener))
    clock._listen(events)
    ((name, listener),) = heard
    assert name == "numba:compile"
    event = SimpleNamespace(data={"dispatcher": type("Dispatcher", (), {"__module__": module})()})
    for duration in (4.0, 4.5):
        listener.on_start(event)
        listener.on_start(event)
        listener.on_end(event)
        listener.duration = duration
        listener.on_end(event)
    assert heard[1:] == [(ours, None), (ours, 4.0), (ours, None), (ours, 0.5)]


def test_of_others_kernels_nothing_is_said(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Nor does that silence the sentence on ours, which is said once."""
    monkeypatch.setattr(clocks, "_said", [])
    for ours, lines in ((False, 0), (True, 1), (True, 0)):
        clocks.say_compiling(ours)
        assert capsys.readouterr().err.count("compiling the exact search once") == lines


@pytest.mark.parametrize(
    ("library", "lines"), [("harness.core.compiling", 1), pytest.param("numba", 0, marks=pytest.mark.slow)]
)
def test_who_waits_for_our_kernels_is_told_once(
    library: str, lines: int, problem: Problem, module: Any, tmp_path: Path, monkeypatch: Any, capfd: Any
) -> None:
    """Whatever worker compiles; nobody is told of another library's kernels, nor of those that are in the cache."""
    monkeypatch.setattr(clocks, "_said", [])
    name = f"told_{lines}"
    (tmp_path / f"{name}_kernel.py").write_text(KERNEL.format(cache=True).replace("from numba", f"from {library}"))
    method = module(name, COMPILING.format(name=name)).Compiling()
    for _ in range(2):
        assert all(outcome.explanation.answers[0].row is not None for outcome in asked(method, problem))
    assert capfd.readouterr().err.count("compiling the exact search once") == lines
    monkeypatch.setattr(clocks, "_said", [])
    asked(method, problem)
    assert capfd.readouterr().err == ""


BLOCK = """
import numpy as np
from dataclasses import dataclass
from methods.nearest import Nearest


@dataclass(frozen=True)
class Blocks(Nearest):
    def fit(self, problem):
        if len(problem.train) > 100:
            np.ones(40_000_000)  # 305 MiB
        return super().fit(problem)
"""
TOUCHED = """
import numpy as np
from harness.execution.clocks import forget_peak, peak_mib
before = peak_mib()
room = np.empty(500_000_000)  # 3.7 GiB of addresses
several = np.ones(40_000_000)
del several
most = peak_mib()
forget_peak()
print(most - before, peak_mib() - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a peak cannot be forgotten")
def test_memory_is_what_is_touched() -> None:
    done = subprocess.run([sys.executable, "-c", TOUCHED], capture_output=True, text=True, check=True)
    most, afterwards = map(float, done.stdout.split())
    assert most == pytest.approx(305, abs=15)
    assert afterwards == pytest.approx(0, abs=15)


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a peak cannot be forgotten")
def test_the_most_memory_is_that_since_the_fit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, problem: Problem
) -> None:
    """What an earlier fit of the same process took is not the next one's."""
    (tmp_path / "blocks.py").write_text(BLOCK)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    method, factuals = importlib.import_module("blocks").Blocks(), problem.train.iloc[:2]
    fewer = replace(problem, train=problem.train.iloc[:100], labels=problem.labels[:100])
    posed = dict(zip(factuals.index, (problem, fewer), strict=True))
    first, second = Pool().explain(method, posed.__getitem__, factuals, 1, lambda _: (0,), LIMITS)
    assert first.peak_mib is not None
    assert second.peak_mib is not None
    assert first.peak_mib > second.peak_mib + 250
