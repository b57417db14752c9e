"""``python -m harness warm``: every kernel is compiled now, so that no first run of a method waits for it."""

from __future__ import annotations

import os
import signal
import time
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from importlib import import_module

from harness.core.processes import die_with_parent
from harness.execution.clocks import CompileClock

MODULE = "methods.warming"  # its questions reach all kernels; imported only here, with everything that methods need


def compile_all() -> None:
    """Fit each method that has kernels; where numba's cache holds them all, that takes seconds and changes nothing.

    Questions that share kernels are asked one after the other, so that none is compiled twice; others at once.
    """
    began, compiled = time.monotonic(), 0.0
    questions = import_module(MODULE).QUESTIONS
    print("compiling the searches of all methods: minutes on a fresh machine, seconds where they are compiled")
    chains: dict[str, list[int]] = {}
    for place, question in enumerate(questions):
        chains.setdefault(question.kernels, []).append(place)
    with ProcessPoolExecutor(min(os.cpu_count() or 1, len(chains)), initializer=_begin) as pool:
        asked = {pool.submit(_compile, MODULE, first): [first, *rest] for first, *rest in chains.values()}
        for number in range(1, len(questions) + 1):
            done = next(iter(wait(asked, return_when=FIRST_COMPLETED).done))
            place, *rest = asked.pop(done)
            if rest:
                asked[pool.submit(_compile, MODULE, rest[0])] = rest
            compiled += (spent := done.result())
            told = f"compiled in {spent:.0f} s" if spent else "compiled already"
            print(f"[{number}/{len(questions)}] {questions[place].title}: {told}", flush=True)
    print(f"done: {compiled:.0f} s of compiling, {time.monotonic() - began:.0f} s in all")


def _begin() -> None:
    """Have a process end with this one, and without a word where it is interrupted."""
    die_with_parent()
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def _compile(module: str, number: int) -> float:
    """Seconds of compiling for a question of a module."""
    clock, question = CompileClock(), import_module(module).QUESTIONS[number]
    problem = question.problem
    question.method.refuses(problem)
    question.method.fit(problem)
    return clock.seconds
