"""Work that depends on one object alone, such as the problem that many factuals share, done once."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from functools import wraps
from typing import TypeVar

T = TypeVar("T")
Subject = TypeVar("Subject")


def once(build: Callable[[Subject], T]) -> Callable[[Subject], T]:
    """Keep what ``build(subject)`` returns for as long as the subject lives; it must not hold the subject itself.

    Problems hold frames and so have no hash: subjects are known by ``id``, and an entry goes before its id is free.
    """
    kept: dict[int, T] = {}

    @wraps(build)
    def first(subject: Subject) -> T:
        key = id(subject)
        if key not in kept:
            kept[key] = build(subject)
            weakref.finalize(subject, kept.pop, key, None)
        return kept[key]

    return first
