"""Questions of an archive asked again on this machine, of three methods, so that seconds of both can be compared."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from statistics import median
from typing import Any

from harness.cli.build import ask_again
from harness.cli.environment import machine
from harness.core.errors import HarnessError
from harness.core.explanation import Explanation, Reason
from harness.core.method import prepare
from harness.core.problem import Problem
from harness.core.target import Target
from harness.evaluation.pace import Calibration, machine_of, machines_of
from harness.evaluation.study import latest
from harness.execution.experiment import entropy
from harness.execution.pool import Limits, Pool
from harness.store.archive import ANSWERS, SWEEPS, Archive, pack, unpacked_anew
from harness.store.rows import plain_row
from harness.store.run import StoredRun

LEAST = 1e-3  # processor seconds: of less, a ratio is mostly noise


def calibrate(file: Path, methods: Sequence[str], tasks: Sequence[str] = ()) -> list[Calibration]:
    """Ask three methods of an archive again, and write the factors of this machine into it, beside the answers.

    Parameters
    ----------
    methods
        Their names; only questions that both machines answer alike, and not by a limit, make a factor.
    tasks
        Which to ask, as ``compas/lr``; all where empty.

    Raises
    ------
    HarnessError
        Where the archive has no runs of the three by another machine, where its data are others than here, and where
        the methods do not agree on a factor. Nothing is written then.
    """
    study = unpacked_anew(Archive(file))
    target = machine_of({"environment": machine()})
    found = []
    for source, runs in _by_machine(study, methods, tasks).items():
        if source != target and set(runs) == set(methods):
            ratios = {name: [ratio for run in runs[name] for ratio in _ratios(run)] for name in methods}
            medians = {name: median(own) for name, own in ratios.items() if own}
            found.append(Calibration(source, target, medians, {name: len(own) for name, own in ratios.items()}))
    if not found:
        raise HarnessError(
            f"{file} has no runs of all of {', '.join(methods)} by another machine than this one ({target}); name "
            "three others with --methods, or other tasks with --tasks."
        )
    for each in found:
        if each.doubt:
            raise HarnessError(f"{file} is not calibrated: {each.doubt}; name other methods with --methods.")
    archive = Archive(file)  # others may have written to it meanwhile
    study = unpacked_anew(archive)
    with tempfile.TemporaryDirectory() as temporary:
        notes = {path.name: path for path in (study / SWEEPS).iterdir()}
        for each in found:
            notes[each.file] = Path(temporary) / each.file
            notes[each.file].write_text(each.text)
        runs_of = {name: study / ANSWERS / name for name in archive.manifest["runs"]}
        pack(archive.manifest["study"], runs_of, notes.values(), file)
    return found


def _by_machine(study: Path, methods: Sequence[str], tasks: Sequence[str]) -> dict[str, dict[str, list[StoredRun]]]:
    """The finished runs of some methods on some tasks, by machine and method."""
    found: dict[str, dict[str, list[StoredRun]]] = {}
    for run in latest(study):
        meta = run.meta
        asked = not tasks or f"{meta['dataset']}/{meta['model']}" in tasks
        machine, *others = machines_of(meta)
        if meta["method"] in methods and asked and not meta["config"].get("group") and not others:
            found.setdefault(machine, {}).setdefault(meta["method"], []).append(run)
    return found


def _ratios(run: StoredRun) -> Iterator[float]:
    """Of each question that is answered here as it is stored, processor seconds here by those that are stored."""
    stored: dict[Any, list[Mapping[str, Any]]] = {}
    for row in run.rows():
        stored.setdefault(row["factual"], []).append(row)
    stored = {factual: rows for factual, rows in stored.items() if _measured(rows, rows[0]["cpu_seconds"])}
    if not stored:
        return
    meta, (frame, targets) = run.meta, run.factuals()
    plain, posed, method = ask_again(run)

    @cache
    def problem(target: Target) -> Problem:
        return replace(posed, target=target)

    prepare(method)
    limits = Limits(plain["time_limit"], plain["fit_time_limit"], plain["memory_limit"], plain["threads"])
    asked, count, seed = frame.loc[list(stored)], meta["n_counterfactuals"], entropy(meta["seed"])
    for outcome in Pool().explain(method, lambda factual: problem(targets[factual]), asked, count, seed, limits):
        rows, own = stored[outcome.factual], outcome.cpu_seconds
        if own is not None and own >= LEAST and _same(outcome.explanation, rows):
            yield own / rows[0]["cpu_seconds"]


def _measured(rows: Sequence[Mapping[str, Any]], spent: float | None) -> bool:
    """Whether the method came to its own end, with an answer or without, alone and in a measurable time."""
    ended = all(not row["late"] and row["reason"] in {Reason.FINISHED, Reason.PROOF} for row in rows)
    ended &= all(row.get("jobs", 1) * row.get("beside", 1) == 1 for row in rows)
    return ended and spent is not None and spent >= LEAST


def _same(explanation: Explanation, rows: Sequence[Mapping[str, Any]]) -> bool:
    found = [(str(a.status), str(a.reason), None if a.row is None else plain_row(a.row)) for a in explanation.answers]
    return found == [(row["status"], row["reason"], row["row"]) for row in rows]
