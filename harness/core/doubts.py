"""What a solver could not confirm while a question was answered: trace and details tell it, whichever method asked.

A proof needs two runs of a solver that come to it. A run that is cut short proves nothing but its bound, which is that
run's alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, TypeVar

from harness.core.explanation import Answer, Explanation, GroupExplanation, Status

UNCONFIRMED = "unconfirmed: no second run of the solver came to the first one's proof in time"
ONE_RUN = "a bound of a solver's run that was cut short, which no second run came to"
UNCONFIRMED_BOUND = "the bound is unconfirmed: a single run of the solver came to it, which was cut short"
Found = TypeVar("Found", Explanation, GroupExplanation)
OPEN = {Status.FOUND, Status.GAVE_UP}
_met: list[str] = []  # of the question that is being answered


def doubt(what: str) -> None:
    """Note a proof that a solver claimed and could not confirm, or ``ONE_RUN``."""
    _met.append(what)


@contextmanager
def doubts() -> Iterator[list[str]]:
    """Within, what is noted belongs to one question."""
    _met.clear()
    yield _met


def with_doubts(found: Found, met: list[str]) -> Found:
    """An explanation whose trace names the doubts that were met, each once, and the details of what is not proven.

    ``ONE_RUN`` is one where a bound is given for what is not proven.
    """
    given = [found] if isinstance(found, GroupExplanation) else found.answers
    met = [each for each in dict.fromkeys(met) if each != ONE_RUN or any(map(_bounded, given))]
    if not met:
        return found
    lines: list[dict[str, Any]] = [{"proof": "unconfirmed", "of": each} for each in met]
    doubted = replace(found, trace=(*found.trace, *lines))
    if isinstance(doubted, GroupExplanation):
        return doubted
    first, *others = doubted.answers
    opened = (_open(first, met), *(_open(each, met) if each.status.found else each for each in others))
    return replace(doubted, answers=opened)


def _bounded(given: Answer | GroupExplanation) -> bool:
    """Whether there is a bound, and it is no part of a proof."""
    return given.status in OPEN and given.bound is not None


def _open(answer: Answer, met: list[str]) -> Answer:
    """An answer whose detail says what was not confirmed, unless it has a proof that was, or asks for none."""
    if answer.status not in OPEN:
        return answer
    parts = [answer.detail] if answer.detail else []
    if any(each != ONE_RUN for each in met):
        parts.append(UNCONFIRMED)
    if ONE_RUN in met and _bounded(answer):
        parts.append(UNCONFIRMED_BOUND)
    return replace(answer, detail="; ".join(parts))
