"""What a solver could not confirm while a question was answered: trace and details tell it, whichever method asked."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, TypeVar

from harness.core.explanation import Answer, Explanation, GroupExplanation, Status

UNCONFIRMED = "unconfirmed: no second run of the solver came to the first one's proof in time"
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


def with_doubts(found: Found, met: list[str]) -> Found:
    """An explanation whose trace names the doubts that were met, each once, and the details of what is not proven."""
    if not met:
        return found
    lines: list[dict[str, Any]] = [{"proof": "unconfirmed", "of": each} for each in dict.fromkeys(met)]
    doubted = replace(found, trace=(*found.trace, *lines))
    if isinstance(doubted, GroupExplanation):
        return doubted
    first, *others = doubted.answers
    return replace(doubted, answers=(_open(first), *(_open(each) if each.status.found else each for each in others)))


def _open(answer: Answer) -> Answer:
    """An answer whose detail says that a proof was not confirmed, unless it has one that was, or asks for none."""
    if answer.status not in {Status.FOUND, Status.GAVE_UP}:
        return answer
    return replace(answer, detail=f"{answer.detail}; {UNCONFIRMED}" if answer.detail else UNCONFIRMED)
