"""``python -m harness warm``: every kernel is compiled now, so that no first run of a method waits for it."""

from __future__ import annotations

import time
from importlib import import_module

from harness.execution.clocks import CompileClock

MODULE = "methods.warming"  # its questions reach all kernels; imported only here, with everything that methods need


def compile_all() -> None:
    """Fit each method that has kernels; where numba's cache holds them all, that takes seconds and changes nothing."""
    clock, began = CompileClock(), time.monotonic()
    questions = import_module(MODULE).QUESTIONS
    print("compiling the searches of all methods: minutes on a fresh machine, seconds where they are compiled")
    for number, question in enumerate(questions, start=1):
        before = clock.seconds
        problem = question.problem
        question.method.refuses(problem)
        question.method.fit(problem)
        spent = clock.seconds - before
        done = f"compiled in {spent:.0f} s" if spent else "compiled already"
        print(f"[{number}/{len(questions)}] {question.title}: {done}", flush=True)
    print(f"done: {clock.seconds:.0f} s of compiling, {time.monotonic() - began:.0f} s in all")
