"""Cases drawn by a seed, each tried in a process of its own; whatever raises, dies or hangs is told with its number."""

from __future__ import annotations

import os
import random
import resource
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from typing import Any

import pytest

NASTY = (
    "", " ", "NA", "None", "null", "nan", "inf", "-inf", "1e400", "1e-400", "1e31", "9223372036854775808", "10" * 30,
    "007", "1,5", "1.234,56", "1_000", "0x1F", "True", "FALSE", "yes", "2024-01-31", "31.12.2024", "=1+1", "@x", "a\nb",
    '"', "'", "a;b", "a,b", "\t", "|", "é", "Größe", "日本", "\u202e", "\u2028", "\ufeff", "\x00", "\x1b[31m", "a=b",
    "$5", "5 %", "7 kg", "€ 1.200,50", "-£3", "12.03.2020", "2020-01-31T10:00", "1.200",
    "missing", "-0.0", "0.0", "5e-324", "1.7976931348623157e308", "99999999999999", "100000000000001", "١٢", "½", "+",
)  # fmt: skip
SIGNS = "ab1 ,:;=.-_[]{}()<>&*!|%@#?~$+/\\'\"\n\t\0é"
SEED = int(os.environ.get("FUZZ_SEED", "0"))
SECONDS = float(os.environ.get("FUZZ_SECONDS", "inf"))  # after which no further case of a test is drawn
LONGEST = 120  # seconds of a case
MEMORY = 6 * 2**30  # bytes of a case
MANY = [pytest.param(10_000, marks=pytest.mark.slow)]


def mutated(draw: random.Random, text: str) -> str:
    """A text with up to three places changed: cut, doubled, replaced or filled."""
    for _ in range(draw.choice((1, 1, 2, 3))):
        start = draw.randint(0, len(text))
        end = min(len(text), start + draw.choice((0, 1, 1, 3, 8)))
        new = draw.choice(("", text[start:end] * 2, draw.choice(SIGNS), draw.choice(NASTY)))
        text = text[:start] + new + text[end:]
    return text


def junk(draw: random.Random, depth: int = 2) -> Any:
    """A value of any type that a YAML has."""
    kind = draw.randrange(8 if depth else 6)
    if kind < 6:
        numbers = (draw.randint(-3, 3), draw.uniform(-2, 2), float("nan"), 10**20)
        return draw.choice((None, True, False, *numbers, draw.choice(NASTY), draw.choice(NASTY), "${seed}", "???"))
    values = [junk(draw, depth - 1) for _ in range(draw.randint(0, 3))]
    return values if kind == 6 else {draw.choice(("a", "name", "x.y", *NASTY)): value for value in values}


def fuzz(case: Callable[[random.Random], Any], attempt: Callable[[Any], None], number: int) -> int:
    """Try so many cases, or as many as there is time for; how many those were.

    Raises
    ------
    AssertionError
        With the first ten that went wrong.
    """
    began, faults, tried = time.monotonic(), list[str](), 0
    while tried < number and time.monotonic() - began < SECONDS and len(faults) < 10:
        drawn = case(random.Random(f"{SEED}/{tried}"))
        if why := apart(attempt, drawn):
            faults.append(f"seed {SEED}, case {tried}: {str(drawn)[:1000]}\n{why}")
        tried += 1
    assert not faults, "\n\n".join(faults)
    return tried


def apart(attempt: Callable[[Any], None], case: Any) -> str:
    """What went wrong with a case in a process forked from this one; empty where nothing did."""
    with tempfile.TemporaryFile("w+") as told:
        sys.stdout.flush()
        sys.stderr.flush()
        if not (child := os.fork()):
            _become(attempt, case, told)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        told.seek(0)
        text = told.read()
    if status == -signal.SIGALRM:
        return f"it took more than {LONGEST} s"
    return text or (f"it ended with {status}" if status else "")


def _become(attempt: Callable[[Any], None], case: Any, told: Any) -> None:
    """Be the process that tries a case."""
    code = 0
    try:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(LONGEST)
        resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, resource.getrlimit(resource.RLIMIT_DATA)[1]))
        attempt(case)
    except BaseException as fault:
        code = 1
        told.write(str(fault) if isinstance(fault, AssertionError) else traceback.format_exc()[-3000:])
        told.flush()
    os._exit(code)
