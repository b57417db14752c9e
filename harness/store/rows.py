"""Stored rows: how one is made, appended, and read back."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.core.errors import HarnessError
from harness.core.explanation import Answer, GroupExplanation
from harness.core.gaps import missing
from harness.store.plain import to_plain

SCHEMA = 3  # of rows and group lines


def plain_row(row: Mapping[str, Any]) -> dict[str, Any]:
    """Decoded values as JSON numbers and strings, exact to the last bit; a gap is null."""
    return {name: None if missing(value) else to_plain(value) for name, value in row.items()}


def answer_row(factual: Any, number: int, answer: Answer, **timing: Any) -> dict[str, Any]:
    """The stored row of one answer. ``group`` and ``point`` are filled by group methods.

    ``timing``: ``seconds`` and processor seconds (``cpu_seconds``, None where they are not known) of the question,
    ``fit_seconds``, ``compile_seconds``, whether it was ``late``, how many factuals of its run were explained at once
    (``jobs``), how many runs went on (``beside``), and, where it is known, the worker's most memory (``peak_mib``).
    """
    return {
        "factual": factual,
        "ce": number,
        "group": None,
        "point": None,
        "row": None if answer.row is None else plain_row(answer.row),
        "status": str(answer.status),
        "reason": str(answer.reason),
        "objective": answer.objective,
        "bound": answer.bound,
        "region": answer.region,
        "detail": answer.detail,
        **timing,
    }


def group_line(
    group: Any, factuals: Sequence[Any], explanation: GroupExplanation | None, **ending: Any
) -> dict[str, Any]:
    """The stored line of one group: its factuals, points with the features that each changes, bounds, and who is left.

    ``ending`` holds at least status, reason, detail and timings.
    """
    found = explanation or GroupExplanation(())
    return {
        "group": group,
        "factuals": list(factuals),
        "points": [plain_row(point.row or {}) for point in found.points],
        "changed": found.changed,
        "bound": found.bound,
        "total_change": found.total_change,
        "total_change_bound": found.total_change_bound,
        "uncoverable": found.uncoverable,
        "undecided": found.undecided,
        "trace": found.trace,
        **ending,
    }


def append_lines(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """Add lines: one write and flush, so that a killed run leaves at most a torn last one."""
    lines = "".join(json.dumps({"schema": SCHEMA, **to_plain(row)}) + "\n" for row in rows)
    with path.open("ab") as file:
        if file.tell() and not _ends_line(path):
            file.write(b"\n")
        file.write(lines.encode())
        file.flush()


def read_lines(path: Path) -> Iterator[dict[str, Any]]:
    """The JSON lines of a file, of this version; one that a kill or a full disk cut short is dropped."""
    if not path.is_file():
        return
    with path.open() as file:
        for line in file:
            try:
                read = json.loads(line)
            except json.JSONDecodeError:
                continue
            yield checked_version(read, path)


def checked_version(read: dict[str, Any], path: Path) -> dict[str, Any]:
    """What was read, where its version is one that can be read."""
    version = read.get("schema", SCHEMA)
    if version != SCHEMA:
        raise HarnessError(
            f"{path} is in version {version} of the format of answers, and this ce-harness reads version {SCHEMA}; "
            "install the one that wrote it, or give another output_dir."
        )
    return read


def _ends_line(path: Path) -> bool:
    with path.open("rb") as file:
        file.seek(-1, os.SEEK_END)
        return file.read(1) == b"\n"
