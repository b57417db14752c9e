"""What every process of a sweep needs: its log, its folder, its variables, and what it does where the disk is full."""

from __future__ import annotations

import contextlib
import io
import logging
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from harness.core.errors import FULL

log = logging.getLogger("harness")
results = logging.getLogger("harness-results")

PACKAGE = Path(__file__).parents[1]
LONGEST_WORD = 100  # bytes, of what becomes part of a folder's name
UNNAMED = "adhoc"  # the study of runs that name none
# How jobs in other processes know their sweep: see composition.
SWEEP, CELLS, BEGAN, VARIED = "CE_HARNESS_SWEEP", "CE_HARNESS_CELLS", "CE_HARNESS_BEGAN", "CE_HARNESS_VARIED"


@contextlib.contextmanager
def stopping_where_full() -> Iterator[None]:
    """Where nothing more can be stored, end in one sentence; every factual that is stored stays."""
    try:
        yield
    except OSError as fault:
        if fault.errno not in FULL:
            raise
        where = f" {fault.filename}" if fault.filename else ""
        log.error(
            "nothing more can be written%s (%s): what was answered is kept; make room, and the same command goes on.",
            where,
            fault.strerror,
        )
        raise SystemExit(1) from None


class _Results(logging.StreamHandler):
    """Standard output; where nobody reads it any more, as after ``head`` or without a terminal, it goes nowhere."""

    def handleError(self, record: logging.LogRecord) -> None:
        fault = sys.exception()
        if not isinstance(fault, OSError) or fault.errno in FULL:
            raise


def talk() -> None:
    """Plain sentences, in whatever process a job runs: results on standard output, all else on standard error."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # as standard error does
    for logger, handler in ((log, logging.StreamHandler(sys.stderr)), (results, _Results(sys.stdout))):
        handler.setFormatter(logging.Formatter("%(message)s"))
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(logging.INFO)
    logging.getLogger("hydra.utils").setLevel(logging.CRITICAL)  # what it cannot find is raised as well


def study_name(study: str | None, hydra_node: Any) -> str:
    """The name of a study: as it is set, else the choice of ``conf/experiment``, or ``UNNAMED``.

    One that reads as a number is taken as it was typed: 2024_01 is no 202401.
    """
    typed = [text.removeprefix("study=") for text in hydra_node.overrides.task if text.startswith("study=")]
    if study is not None and not isinstance(study, str) and typed:
        return str(typed[-1])
    return str(study or hydra_node.runtime.choices.get("experiment") or UNNAMED)


def settle_in(folder: str) -> None:
    """Work where the sweep was started, in whatever process, on whatever machine that shares its files."""
    if os.getcwd() != folder:
        os.chdir(folder)
    if folder not in sys.path:
        sys.path.append(folder)
