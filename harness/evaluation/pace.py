"""Seconds of several machines made comparable: a factor between two, from the same answers found on both."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pandas as pd

from harness.core.errors import HarnessError, short
from harness.core.explanation import Reason
from harness.core.method import RESERVE
from harness.core.wording import some
from harness.evaluation.scoring import group_table, limit_of
from harness.store.archive import SWEEPS
from harness.store.run import StoredRun

NAMED = 3  # tasks that are listed before "and 2 more"
METHODS = 3  # behind a factor
FEWEST = 5  # questions of each of them
WIDEST = 1.5  # the greatest ratio by the least: methods that differ more make no factor
WHOLE = 0.8  # of a processor: a run that had less was not alone, or waited
TIMES = ["seconds", "cpu_seconds", "model_seconds"]  # columns of scores that a factor changes; first, with a limit
PREFIX = "calibration-"


def machines_of(meta: Mapping[str, Any]) -> list[str]:
    """The machine of a run, in words: its processor, and how many cores it has; then those that it went on on."""
    known = meta.get("environment") or {}
    cores = f", {known['cores']} cores" if "cores" in known else ""
    return [f"{known.get('cpu') or 'a processor that was not noted'}{cores}", *meta.get("also_on", ())]


def machine_of(meta: Mapping[str, Any]) -> str:
    """The machines of a run in one phrase."""
    return " and ".join(machines_of(meta))


@dataclass(frozen=True)
class Calibration:
    """How long one machine takes by how long another does.

    Parameters
    ----------
    source, target
        The machines, as ``machine_of`` has them.
    ratios
        By method, the median over questions of its processor seconds on ``target`` by those on ``source``.
    questions
        By method, how many questions these are.
    """

    source: str
    target: str
    ratios: Mapping[str, float]
    questions: Mapping[str, int]

    @property
    def doubt(self) -> str:
        """Why there is no factor; empty where there is one."""
        if few := [name for name, count in self.questions.items() if count < FEWEST]:
            n = self.questions[few[0]]
            return f"{few[0]} has {n} questions that both machines answer alike in measurable time, {FEWEST} are needed"
        if len(self.ratios) != METHODS:
            return f"it is of {len(self.ratios)} methods, and {METHODS} are needed"
        low, high = min(self.ratios.values()), max(self.ratios.values())
        uneven = (
            f"the methods' ratios differ too much ({self.spread}): the greatest is {high / low:.2f} times the least"
        )
        return f"{uneven}, and {WIDEST:g} is allowed" if high > WIDEST * low else ""

    @property
    def factor(self) -> float:
        """What seconds on ``source`` are to be multiplied by, to be as on ``target``; NaN where ``doubt`` says why."""
        return math.nan if self.doubt else median(self.ratios.values())

    @property
    def spread(self) -> str:
        return ", ".join(f"{name} {ratio:.3g}" for name, ratio in sorted(self.ratios.items()))

    @property
    def file(self) -> str:
        """The name of its file among the records of a study's sweeps; that of a later one of both machines is equal."""
        return f"{PREFIX}{sha256(f'{self.source}|{self.target}'.encode()).hexdigest()[:8]}.json"

    @property
    def text(self) -> str:
        """What its file holds."""
        return json.dumps(asdict(self), indent=1, sort_keys=True) + "\n"


def calibrations(study: Path) -> list[Calibration]:
    """Those that are kept with a study.

    Raises
    ------
    HarnessError
        For a file that is none.
    """
    return [_read(path) for path in sorted((study / SWEEPS).glob(f"{PREFIX}*.json"))]


def calibrated(notes: Iterable[Path]) -> set[frozenset[str]]:
    """The pairs of machines that some records of sweeps are calibrations of."""
    found = (_read(path) for path in notes if path.match(f"{PREFIX}*.json"))
    return {frozenset((each.source, each.target)) for each in found}


def _read(path: Path) -> Calibration:
    try:
        found = json.loads(path.read_text())
        ratios = {str(name): float(ratio) for name, ratio in found["ratios"].items()}
        counts = {str(name): int(count) for name, count in found["questions"].items()}
        if not all(0 < ratio < math.inf for ratio in ratios.values()):
            raise ValueError("a ratio is not above 0")
        made = Calibration(str(found["source"]), str(found["target"]), ratios, counts)
        if made.file != path.name:
            raise ValueError(f"its machines are those of {made.file}")
        return made
    except (ValueError, TypeError, LookupError, AttributeError) as fault:
        raise HarnessError(f"{path} is no calibration ({short(fault)}); delete it, and calibrate again.") from fault


def disturbed(runs: Sequence[tuple[str, Mapping[str, Any]]]) -> list[str]:
    """Sentences about runs that were timed beside others, and about those that had less than ``WHOLE`` of a processor.

    Parameters
    ----------
    runs
        Method and ``scoring.outcome`` of each.
    """
    said = []
    if count := sum(outcome["timed_beside"] for _, outcome in runs):
        which = f"{count} of {len(runs)} runs"
        said.append(f"Seconds of {which} were taken while other factuals or runs went on: they are no fair times.")
    known = [(method, outcome["share"]) for method, outcome in runs if not math.isnan(outcome["share"])]
    if few := [(method, share) for method, share in known if share < WHOLE]:
        counts = [f"{method} {count}" for method, count in Counter(method for method, _ in few).most_common()]
        least = min(share for _, share in few)
        said.append(
            f"{len(few)} of {len(known)} runs had less than {WHOLE:.0%} of a processor while they were asked, the "
            f"least {least:.0%} ({some(counts, NAMED)}): something else took it, or they waited. Their seconds are too "
            "long, and limits came early."
        )
    return said


def scaled(scores: pd.DataFrame, pace: float, limit: float, stopped: Callable[[], Collection[str]]) -> pd.DataFrame:
    """Scores with their seconds as on the machine that they are compared on; as they are where no factor is known.

    What is the same on both stays: the limit, which a question without an accepted answer counts, and all that goes on
    until it (``stopped``: such questions, as texts). No seconds come to more than the limit by it.
    """
    if math.isnan(pace) or pace == 1.0:
        return scores
    ended = ~scores.index.astype(str).isin(list(stopped()))
    times = {name: (scores[name] * pace).where(ended, scores[name]) for name in TIMES[1:] if name in scores}
    return scores.assign(seconds=_brought(scores["seconds"], pace, limit, ended & (scores["coverage"] > 0)), **times)


def grouped(run: StoredRun, pace: float) -> pd.DataFrame:
    """What ``scoring.group_table`` has of a run, with its seconds so; what ended near its limit was ended by it."""
    table, limit = group_table(run), limit_of(run.meta)
    stopped = [line["group"] for line in run.groups() if line.get("reason") == Reason.TIME_LIMIT]
    ended = ~table.index.isin(stopped) & ~(table["seconds"] >= (1.0 - RESERVE) * limit)
    return table.assign(seconds=_brought(table["seconds"], pace, limit, ended & (not math.isnan(pace))))


def _brought(seconds: pd.Series, pace: float, limit: float, moved: pd.Series) -> pd.Series:
    """Seconds times the factor, where ``moved`` says so; none come to more than the limit by it."""
    return (seconds * pace).where(moved, seconds).clip(upper=np.maximum(seconds, limit))


def paces(
    runs: Sequence[tuple[str, str, Mapping[str, Any]]], known: Iterable[Calibration]
) -> tuple[tuple[float, ...], tuple[str, ...]]:
    """How the seconds of some runs are brought to one machine a task: that of most of its runs.

    The factor of each run, NaN where none is known, and sentences about those that are not 1.

    Parameters
    ----------
    runs
        Task, method and description of each.
    """
    by_pair = {(each.source, each.target): each for each in known}
    counts: dict[str, Counter[str]] = {}
    for task, _, meta in runs:
        counts.setdefault(task, Counter())[machine_of(meta)] += len(machines_of(meta)) == 1
    bases = {task: min(count, key=lambda name: (-count[name], name)) for task, count in counts.items()}
    factors, listed, split = [], dict[tuple[str, str], list[tuple[str, str]]](), dict[str, list[str]]()
    for task, method, meta in runs:
        pair, several = (machine_of(meta), bases[task]), len(machines_of(meta)) > 1
        factors.append(math.nan if several else _factor(*pair, by_pair)[0])
        if several:
            split.setdefault(pair[0], []).append(method)
        elif pair[0] != pair[1]:
            listed.setdefault(pair, []).append((task, method))
    notes = [_note(pair, _of_tasks(those, len(counts)), *_factor(*pair, by_pair)) for pair, those in listed.items()]
    notes += [
        f"Seconds of {', '.join(dict.fromkeys(methods))} were taken on {machines} by turns, and have no rank."
        for machines, methods in split.items()
    ]
    return tuple(factors), tuple(notes)


def _factor(own: str, base: str, known: Mapping[tuple[str, str], Calibration]) -> tuple[float, Calibration | None]:
    """From a machine's seconds to another's, and the calibration that says so, whichever way round it was made."""
    if own == base:
        return 1.0, None
    if (found := known.get((own, base))) is not None and not found.doubt:
        return found.factor, found
    back = known.get((base, own))
    return (1 / back.factor, back) if back is not None else (math.nan, found)


def _of_tasks(runs: Iterable[tuple[str, str]], known: int) -> str:
    """The methods of some runs, those of the same tasks together; with these, unless they are all that are known."""
    tasks_of: dict[str, dict[str, None]] = {}
    for task, method in runs:
        tasks_of.setdefault(method, {})[task] = None
    methods_of: dict[tuple[str, ...], list[str]] = {}
    for method, tasks in tasks_of.items():
        methods_of.setdefault(tuple(tasks), []).append(method)
    return "; ".join(
        ", ".join(methods) + (f" on {some(tasks, NAMED)}" if len(tasks) < known else "")
        for tasks, methods in methods_of.items()
    )


def _note(pair: tuple[str, str], which: str, factor: float, found: Calibration | None) -> str:
    own, base = pair
    begin = f"Seconds of {which} were taken on another machine ({own}) than others' ({base})"
    if not math.isnan(factor) and found is not None:
        turned = "" if found.source == own else ", each turned round"
        return f"{begin}: shown and ranked are these × {factor:.3g}, by calibration ({found.spread}{turned})."
    why = "are not calibrated" if found is None else f"are not calibrated, as {found.doubt}"
    return f"{begin}, {why}, and have no rank."
