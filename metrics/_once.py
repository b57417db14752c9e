"""Work that depends on the problem alone, done once for all of its factuals."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from functools import wraps
from typing import TypeVar

from harness.core.problem import Problem

T = TypeVar("T")


def once_per_problem(build: Callable[[Problem], T]) -> Callable[[Problem], T]:
    """Keep what ``build(problem)`` returns for as long as the problem lives; it must not hold the problem itself.

    Problems hold frames and so have no hash: they are identified by ``id``, and an entry goes before its id is free.
    """
    kept: dict[int, T] = {}

    @wraps(build)
    def once(problem: Problem) -> T:
        key = id(problem)
        if key not in kept:
            kept[key] = build(problem)
            weakref.finalize(problem, kept.pop, key, None)
        return kept[key]

    return once
