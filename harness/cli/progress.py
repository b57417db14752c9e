"""How far a sweep is and how long the rest will take: one bar in a terminal, a line now and then in a log."""

from __future__ import annotations

import os
import time
from pathlib import Path

from tqdm import tqdm

from harness.cli.listing import duration
from harness.cli.process import BEGAN, CELLS, log
from harness.store.rows import read_lines

OFTEN = 30.0  # seconds, at least, between two lines
_last = -OFTEN  # when the last line was, of this process


class Progress:
    """A bar for the whole sweep, in a terminal alone, while one of its runs is asked.

    Parameters
    ----------
    record
        Where the sweep's runs are noted as they end, one JSON line each.
    title
        Of this run.
    factuals
        How many it has.
    earlier
        How many of them were answered before the sweep, which say nothing of its pace.
    """

    def __init__(self, record: Path, title: str, factuals: int, earlier: int = 0) -> None:
        self.before, self.factuals, self.done, self.earlier = _ended(record), factuals, 0, earlier
        runs = int(os.environ[CELLS]) or 1
        ended = min(self.before[0], runs)
        self.bar = tqdm(total=runs, initial=ended, desc=title, bar_format=self._form(), leave=False, disable=None)

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        self.bar.close()

    def update(self, factuals: int) -> None:
        """Count answered factuals."""
        self.done += factuals
        self.bar.bar_format = self._form()
        self.bar.update(factuals / self.factuals)

    def _form(self) -> str:
        left = seconds_left(*self.before, self.done / self.factuals, self.earlier / self.factuals)
        rest = "" if left is None else f", about {duration(left)} to go"
        return f"{{desc}}: {{percentage:3.0f}}%|{{bar}}| {self.done}/{self.factuals} factuals{rest}"


def say_what_is_left(record: Path) -> None:
    """Log how far a sweep is: after its first run, and now and then."""
    global _last
    runs, (ended, asked) = int(os.environ[CELLS]), _ended(record)
    left = seconds_left(ended, asked)
    if left is not None and ended < runs and time.monotonic() - _last >= OFTEN:
        _last = time.monotonic()
        spent = time.time() - float(os.environ[BEGAN])
        log.info("%d of %d runs in %s, about %s to go", ended, runs, duration(spent), duration(left))


def seconds_left(ended: int, asked: int, part: float = 0.0, earlier: float = 0.0) -> float | None:
    """How long the rest of a sweep will take at the pace so far.

    Runs that were skipped count for nothing. None where nothing was asked yet, or the number of runs is not known.

    Parameters
    ----------
    ended, asked
        Runs that have ended, and how many of those were asked, rather than skipped.
    part
        Of a run that is done besides them.
    earlier
        Of that run what was done before the sweep began.
    """
    runs = int(os.environ[CELLS])
    new = asked + max(part - earlier, 0.0)
    if not runs or not new:
        return None
    return (time.time() - float(os.environ[BEGAN])) / new * max(runs - ended - part, 0.0)


def _ended(record: Path) -> tuple[int, int]:
    """How many runs have ended, and how many of those were asked."""
    states = [line["state"] for line in read_lines(record)]
    return len(states), sum(state in {"done", "rescored"} for state in states)
