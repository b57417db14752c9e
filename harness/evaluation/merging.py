"""Archives of one study brought together, where equal names are equal questions about equal models."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from harness.core.errors import HarnessError
from harness.core.explanation import Status
from harness.evaluation.pace import calibrated, machine_of, machines_of
from harness.evaluation.study import SCORES, SHOWN, as_text, identity, named, posed, settings
from harness.store.archive import ANSWERS, SWEEPS, Archive, answers_of, pack, unpacked_anew
from harness.store.run import StoredRun, model_of

LIMITS = ("time_limit", "group_time_limit", "memory_limit", "threads", "n_counterfactuals")  # settings
LATER = {"scored", "logged", "retrained", "objective", "setup", "also_on"}  # of what is noted of a run, after it began


@dataclass(frozen=True)
class Piece:
    """A run of an archive."""

    archive: Archive
    run: str
    meta: Mapping[str, Any]

    def __str__(self) -> str:
        return f"{self.run} of {self.archive.file}"

    @cached_property
    def stored(self) -> StoredRun:
        return StoredRun(answers_of(self.archive.file) / ANSWERS / self.run)

    @cached_property
    def name(self) -> str:
        """Dataset and model, with the settings of what is asked, constraints included."""
        asked = {key: as_text(value) for key, value in posed(self.meta).items()}
        return json.dumps([self.meta["dataset"], self.meta["model"], asked], sort_keys=True)

    @cached_property
    def people(self) -> tuple[Any, ...]:
        """People, targets, data, and what distances between them are relative to."""
        features = [
            [each.get(key) for key in ("name", "scale", "categories")] for each in self.meta["space"]["features"]
        ]
        return self.meta.get("data_sha256"), features, self.archive.content(self.run, "factuals.jsonl")

    @cached_property
    def question(self) -> str:
        """Features and equations."""
        equations = [{**entry, "model": None} for entry in self.meta.get("equations") or ()]
        return json.dumps([self.meta["space"], equations])

    @cached_property
    def model(self) -> list[Any]:
        return model_of(self.stored)

    @cached_property
    def models(self) -> list[Any]:
        """With those of learnt equations."""
        return model_of(self.stored, equations=True)

    @cached_property
    def began(self) -> str:
        """What was noted of it when it began."""
        return json.dumps({key: self.meta[key] for key in self.meta.keys() - LATER}, sort_keys=True)

    @cached_property
    def rows(self) -> frozenset[bytes]:
        return frozenset(self.archive.content(self.run, "rows.jsonl").splitlines())

    @cached_property
    def answers(self) -> dict[tuple[Any, int], dict[str, Any]]:
        """By factual and position, as readers have them: the last of each."""
        return {(row["factual"], row["ce"]): row for row in self.stored.rows()}

    @property
    def finished(self) -> bool:
        return {"done", SCORES} <= self._files.keys()

    @property
    def size(self) -> tuple[int, int]:
        """How many answers it has, and how many scores of each."""
        return len(self.rows), self.archive.content(self.run, SCORES).partition(b"\n")[0].count(b",")

    def extends(self, other: Piece) -> bool:
        """Whether it is the same run, which went on: only what failed is asked again, and of what is done nothing."""
        kept = all(row["status"] == Status.FAILED or self.answers.get(k) == row for k, row in other.answers.items())
        more = other.finished and self.answers.keys() != other.answers.keys()
        known = all(other.meta.get(name) in (None, self.meta.get(name)) for name in ("objective", "setup"))
        return other.rows <= self.rows and kept and known and not more and self.began == other.began

    @property
    def _files(self) -> Mapping[str, str]:
        return self.archive.manifest["runs"][self.run]


def merge(files: Sequence[Path], into: Path, replace: bool = False) -> list[str]:
    """Write one archive of the runs of several; of a run that several have, one that is finished, or went on longest.

    The earlier of the files has precedence: of finished runs and those that went on equally long, of notes that are not
    equal, and of runs that differ in nothing but the code that answered. Returns sentences about what it holds.

    Parameters
    ----------
    replace
        Whether another archive of that name may lose runs.

    Raises
    ------
    HarnessError
        Where the question or the estimator of a task, or the answers of a run, are not the same in all, and where an
        archive of that name, not one of the files, would lose runs.
    """
    archives = [Archive(file) for file in files]
    folders = [unpacked_anew(archive) for archive in archives]  # what is in the files, whatever became of copies
    pieces = pieces_of(archives)
    if differing := list(differences(pieces)):
        more = f"; and {len(differing) - SHOWN} more" if len(differing) > SHOWN else ""
        raise HarnessError(f"the archives cannot be merged: {'; '.join(differing[:SHOWN])}{more}.")
    first: dict[str, Piece] = {}  # that is finished, of those equal but for the code
    for piece in filter(lambda piece: piece.finished, pieces):
        first.setdefault(identity(piece.meta), piece)
    longest: dict[str, Piece] = {}
    left_out = []
    for piece in pieces:
        known = first.get(identity(piece.meta), piece)
        if piece.archive is not known.archive and piece.run not in known.archive.manifest["runs"]:
            left_out.append(f"{piece} is left out, as {known.archive.file} has its answers by other code")
        elif (held := longest.get(piece.run)) is None or (not held.finished and piece.finished):
            longest[piece.run] = piece
        elif piece.size > held.size and held.finished:
            kept_one = f"{held.archive.file}, which is kept; name it first to have them"
            left_out.append(f"{piece} has more lines or scores than {kept_one}")
        elif piece.size > held.size:
            longest[piece.run] = piece
    runs = {run: piece.stored.path for run, piece in longest.items()}
    kept = [piece.meta for piece in longest.values()]
    if not replace and into.resolve() not in {file.resolve() for file in files}:
        spare(into, kept)
    pack(archives[0].manifest["study"], runs, _notes(folders), into)
    said = f"{into}: {len(longest)} runs of {len(archives)} archives"
    origins = pooled((piece.meta, str(piece.archive.file)) for piece in longest.values())
    return [said, *left_out, *origins, *machines(kept), *limits(kept)]


def spare(file: Path, metas: Iterable[Mapping[str, Any]]) -> None:
    """Raise ``HarnessError`` where an archive of that name has runs that none of some is but for its code, or may."""
    if not file.exists():
        return
    try:
        before = Archive(file).metas()
    except HarnessError as fault:
        raise HarnessError(f"{fault} Or give another name, or --replace.") from fault
    new = set(map(identity, metas))
    if lost := [name for name, meta in before.items() if identity(meta) not in new]:
        more = f", and {len(lost) - 1} more" if len(lost) > 1 else ""
        raise HarnessError(
            f"{file} has runs that would be lost: {lost[0]}{more}; give another name, merge, or give --replace."
        )


def pooled(runs: Iterable[tuple[Mapping[str, Any], str]]) -> list[str]:
    """A sentence where seeds of one method, which are averaged, are of several origins; each run is with its own."""
    found: dict[str, dict[str, list[Mapping[str, Any]]]] = {}
    for meta, origin in runs:
        same = identity({**meta, "seed": None})
        found.setdefault(same, {}).setdefault(origin, []).append(meta)
    several = [origins for origins in found.values() if len(origins) > 1]
    if not several:
        return []
    meta = next(iter(several[0].values()))[0]
    told = (f"{', '.join(str(one['seed']) for one in metas)} of {origin}" for origin, metas in several[0].items())
    more = f"; so are those of {len(several) - 1} more methods and tasks" if len(several) > 1 else ""
    return [
        f"seeds of {meta['method']} on {meta['dataset']}/{meta['model']} are averaged, and are of several origins: "
        f"{'; '.join(told)}{more}"
    ]


def _notes(folders: Iterable[Path]) -> list[Path]:
    """Of the records of several studies those that are kept: of one name the first, but for a sweep that went on; and
    of two machines one calibration, whichever way round."""
    kept: dict[str, Path] = {}
    for folder in folders:
        known = calibrated(kept.values())
        for path in sorted((folder / SWEEPS).iterdir()):
            if (held := kept.get(path.name)) is None:
                better = not calibrated([path]) & known
            else:
                better = path.suffix == ".jsonl" and path.read_bytes().startswith(held.read_bytes())
            if better:
                kept[path.name] = path
    return list(kept.values())


def pieces_of(archives: Iterable[Archive]) -> list[Piece]:
    """Every run of some archives."""
    return [Piece(archive, run, meta) for archive in archives for run, meta in archive.metas().items()]


def machines(metas: Iterable[Mapping[str, Any]]) -> list[str]:
    """A sentence where runs are of several machines, whose seconds are not comparable."""
    runs = list(metas)
    count = len({machine for meta in runs for machine in machines_of(meta)})
    listed = "; ".join(f"{machine} ({n} runs)" for machine, n in Counter(map(machine_of, runs)).most_common())
    return [f"seconds are of {count} machines, and compare only as calibrated: {listed}"] if count > 1 else []


def limits(metas: Iterable[Mapping[str, Any]]) -> list[str]:
    """A sentence for each limit that is not the same in all runs of a task."""
    found: dict[str, dict[str, Counter[str]]] = {name: {} for name in LIMITS}
    for meta in metas:
        plain = settings(meta)
        for name in filter(plain.__contains__, LIMITS):
            found[name].setdefault(f"{meta['dataset']}/{meta['model']}", Counter())[str(plain[name])] += 1
    sentences = []
    for name, tasks in found.items():
        if several := {task: counts for task, counts in tasks.items() if len(counts) > 1}:
            task, counts = next(iter(several.items()))
            more = f", and in {len(several) - 1} more tasks" if len(several) > 1 else ""
            listed = ", ".join(f"{value} ({count} runs)" for value, count in counts.most_common())
            sentences.append(f"{name} is not the same in all runs of {task}: {listed}{more}; tables name it")
    return sentences


def differences(pieces: Sequence[Piece]) -> Iterable[str]:
    """Sentences about pieces that are compared, or have equal names, and are not alike."""
    tasks: dict[str, Piece] = {}
    names: dict[str, Piece] = {}
    runs: dict[str, Piece] = {}
    for piece in sorted(pieces, key=lambda piece: -len(piece.rows)):
        runs.setdefault(piece.run, piece)
    for (task, _, _), piece in zip(named([piece.meta for piece in pieces]), pieces, strict=True):
        first, alike = tasks.setdefault(task, piece), names.setdefault(piece.name, piece)
        if first.people != piece.people:
            yield f"{piece} has another question than {first}"
        elif alike.question != piece.question:
            yield f"{piece} has another question than {alike}"
        elif first.model != piece.model:
            yield f"{piece} has another estimator than {first}"
        elif alike.models != piece.models:
            yield f"{piece} has another estimator than {alike}"
        if not (runs[piece.run] is piece or runs[piece.run].extends(piece)):
            yield f"{piece} has other answers than {runs[piece.run]}"
