"""What a solver could not confirm while a question was answered: the trace tells it, whichever method asked."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TypeVar

from harness.core.explanation import Explanation, GroupExplanation

Found = TypeVar("Found", Explanation, GroupExplanation)
_met: list[str] = []  # of the question that is being answered


def doubt(what: str) -> None:
    """Note a proof that a solver claimed and could not confirm."""
    _met.append(what)


@contextmanager
def doubts() -> Iterator[list[str]]:
    """Within, what is noted belongs to one question."""
    _met.clear()
    yield _met


def told(found: Found, met: list[str]) -> Found:
    """An explanation whose trace names the doubts that were met, each once."""
    return replace(found, trace=(*found.trace, *({"proof": "unconfirmed", "of": each} for each in dict.fromkeys(met))))
