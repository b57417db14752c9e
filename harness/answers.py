"""The store of raw answers: one folder a cell, rows appended one by one, nothing computed from them."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from harness import models, pipeline
from harness.causality import Equation, Formula
from harness.classifier import Affine, Chain, Classifier, Indicator, Lookup, Step, Whole
from harness.errors import HarnessError
from harness.explanation import Answer, GroupExplanation, Status
from harness.objective import Limit, Objective, Term
from harness.problem import Feature, Interval, Label, Probability, Space, Target

SCHEMA = 2  # of rows and group lines; 1 is read, too
ROW_1: dict[str, Any] = {"compile_seconds": 0.0, "beside": 1}  # what rows of version 1 lack, as it was then
_TAG, _ARRAY = "__type__", "__array__"
_read: dict[str, Any] = {}  # the estimator read last, by its file's checksum
_written: list[tuple[Any, bytes]] = []  # the estimator stored last
_TYPES = {
    kind.__name__: kind
    for kind in (
        Feature, Space, Label, Interval, Probability, Affine, Chain, Indicator, Lookup, Step, Formula, Objective, Term,
        Limit,
    )
}  # fmt: skip


def to_plain(value: Any, arrays: dict[str, np.ndarray] | None = None) -> Any:
    """Plain JSON data of the types that describe a question; ``from_plain`` is the inverse.

    Arrays become lists, or, where ``arrays`` is given, references to what is put there by its checksum.
    """
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {f.name: to_plain(getattr(value, f.name), arrays) for f in dataclasses.fields(value)}
        return {_TAG: type(value).__name__, **fields}
    if isinstance(value, Mapping):
        return {str(key): to_plain(item, arrays) for key, item in value.items()}
    if isinstance(value, np.ndarray) and arrays is not None:
        name = hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()[:16]
        arrays[name] = value
        return {_ARRAY: name}
    if isinstance(value, list | tuple | np.ndarray):
        return [to_plain(item, arrays) for item in value]
    if isinstance(value, np.generic):
        return value.item()
    return value


def from_plain(data: Any, arrays: Mapping[str, np.ndarray] | None = None) -> Any:
    """Rebuild what ``to_plain`` took apart; lists become tuples."""
    if isinstance(data, dict):
        if _ARRAY in data and arrays is not None:
            return arrays[data[_ARRAY]]
        items = {key: from_plain(item, arrays) for key, item in data.items() if key != _TAG}
        return _TYPES[data[_TAG]](**items) if _TAG in data else items
    if isinstance(data, list):
        return tuple(from_plain(item, arrays) for item in data)
    return data


class Cell:
    """The answers of one method on one dataset and model.

    ``cell.json`` (what was asked, of what, where), ``estimator.skops`` (or ``model.*``, a copy of the file that a model
    of somebody's came from), ``equation_0.skops`` and so on (regressors of learnt equations), ``arrays.npz`` (numbers
    that the objective needs), ``factuals.jsonl``, append-only ``rows.jsonl`` (and ``groups.jsonl``, where groups were
    explained) and ``done``, written last.

    Parameters
    ----------
    trust
        Whether a model file that runs code of whoever made it may be read.
    """

    def __init__(self, path: Path, trust: bool = False) -> None:
        self.path, self.trust = path, trust

    def __repr__(self) -> str:
        return f"Cell({str(self.path)!r})"

    @property
    def done(self) -> bool:
        return (self.path / "done").is_file()

    @property
    def asked(self) -> bool:
        """Whether every factual was asked about; unlike ``done``, also where some failed and will be tried again."""
        return self.done or (self.started and set(self.factuals()[0].index) <= {row["factual"] for row in self.rows()})

    @property
    def started(self) -> bool:
        return (self.path / "cell.json").is_file()

    def start(
        self,
        meta: Mapping[str, Any],
        space: Space,
        classifier: Classifier,
        target: Mapping[Any, Target],
        objective: Objective | None,
        factuals: pd.DataFrame,
        equations: Sequence[Equation] = (),
    ) -> None:
        """Write what the answers will be answers to. ``target`` by factual id."""
        self.path.mkdir(parents=True, exist_ok=True)
        file = self._put_model(classifier)
        lines = [
            {"id": to_plain(index), "row": plain_row(row), "target": to_plain(target[index])}
            for index, row in zip(factuals.index, factuals.to_dict("records"), strict=True)
        ]
        write_whole(self.path / "factuals.jsonl", "".join(json.dumps(line) + "\n" for line in lines))
        arrays: dict[str, np.ndarray] = {}
        question = {
            "space": to_plain(space),
            "model_file": file,
            "inputs": to_plain(classifier.inputs),
            "classes": to_plain(classifier.classes),
            "threshold": classifier.threshold,
            "objective": to_plain(None if objective is None else objective.stored(), arrays),
            "equations": [self._put_equation(number, equation) for number, equation in enumerate(equations)],
        }
        if arrays:
            np.savez_compressed(self.path / "arrays.npz", allow_pickle=False, **arrays)
        write_whole(self.path / "cell.json", json.dumps({"schema": SCHEMA, **to_plain(meta), **question}, indent=1))

    def _put_model(self, classifier: Classifier) -> dict[str, Any] | None:
        """Store the estimator, or the very file that a whole model came from; what ``cell.json`` says of that."""
        whole = classifier.whole
        if whole is None:
            _put_estimator(classifier.estimator, self.path / "estimator.skops")
            return None
        source, name = Path(whole.path), f"model{Path(whole.path).suffix.lower()}"
        if not source.is_file() or models.checksum(source) != whole.sha256:
            raise HarnessError(f"{source} has changed since it was read; run the same command again.")
        temporary = self.path / f"{name}.tmp"
        shutil.copyfile(source, temporary)
        os.replace(temporary, self.path / name)
        kept = {field: getattr(whole, field) for field in ("sha256", "trusted", "columns", "logical", "named")}
        return {"file": name, "labels": classifier.labels, "opaque": classifier.opaque, **kept}

    def _put_equation(self, number: int, equation: Equation) -> dict[str, Any]:
        """An equation as JSON data: a formula in full, a fitted regressor by the name of its file."""
        model = equation.model.estimator
        if not isinstance(model, Formula):
            models.save(model, self.path / f"equation_{number}.skops")
            model = f"equation_{number}.skops"
        kept = {name: getattr(equation, name) for name in ("feature", "shift", "unit", "text")}
        return to_plain({**kept, "inputs": equation.model.inputs, "model": model})

    def update(self, **changes: Any) -> None:
        """Change entries of ``cell.json``."""
        write_whole(self.path / "cell.json", json.dumps({**self.meta, **to_plain(changes)}, indent=1))

    def append(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Add the rows of one factual: one write and flush, so that a killed run leaves at most a torn last line."""
        _append(self.path / "rows.jsonl", rows)

    def append_group(self, line: Mapping[str, Any]) -> None:
        """Add what was said of a group, as ``group_line`` makes it; before the rows of its factuals."""
        _append(self.path / "groups.jsonl", [line])

    def groups(self) -> list[dict[str, Any]]:
        """What was said of each group; of one that was tried again, the last try only."""
        return list({line["group"]: line for line in _lines(self.path / "groups.jsonl")}.values())

    def finish(self) -> None:
        """Mark the cell as complete."""
        write_whole(self.path / "done", "")

    def reset(self) -> None:
        """Forget all answers: first that they are complete, last what was asked, so that a kill in between is safe."""
        made = ("done", "rows.jsonl", "groups.jsonl", "verdicts.jsonl")
        for name in (*made, "scores.csv", "counterfactuals.csv", "groups.csv", "groups.md", "cell.json"):
            (self.path / name).unlink(missing_ok=True)

    @property
    def meta(self) -> dict[str, Any]:
        """The content of ``cell.json``."""
        path = self.path / "cell.json"
        try:
            return _known(json.loads(path.read_text()), path)
        except FileNotFoundError:
            raise HarnessError(f"{self.path} is no cell of answers: it has no cell.json.") from None

    @property
    def label(self) -> str:
        """dataset/model/method."""
        meta = self.meta
        return f"{meta['dataset']}/{meta['model']}/{meta['method']}"

    @property
    def space(self) -> Space:
        return from_plain(self.meta["space"])

    @property
    def objective(self) -> Objective | None:
        path = self.path / "arrays.npz"
        return from_plain(self.meta["objective"], np.load(path) if path.is_file() else None)

    @property
    def classifier(self) -> Classifier:
        """The stored estimator, read back from disk, behind its inputs."""
        meta = self.meta
        known = {name: from_plain(meta[name]) for name in ("inputs", "classes", "threshold")}
        if meta.get("model_file") is None:
            return Classifier(_estimator(self.path / "estimator.skops"), **known)
        file = from_plain(meta["model_file"])
        path, labels, opaque = self.path / file.pop("file"), file.pop("labels"), file.pop("opaque")
        if path.parent != self.path or not path.is_file() or models.checksum(path) != file["sha256"]:
            raise HarnessError(f"{path} is not the file that the answers in {self.path} are of; run them again.")
        if file["trusted"] and not self.trust:
            raise HarnessError(
                f"{path} runs code of whoever made it when it is read, as it did when the answers were made; "
                f"add --trust if you trust its maker."
            )
        model, _ = models.read(path, self.trust)
        whole = Whole(model, path=str(path), **file)
        if opaque is None:
            estimator, known["inputs"], _, _ = pipeline.describe(model, self.space, whole.columns)
        else:
            estimator = whole
        return Classifier(estimator, **known, whole=whole, opaque=opaque, labels=labels)

    @property
    def equations(self) -> tuple[Equation, ...]:
        """The structural equations of the question, learnt ones read back from disk."""
        found = []
        for entry in from_plain(self.meta.get("equations", [])):
            model, inputs = entry.pop("model"), entry.pop("inputs")
            estimator = model if isinstance(model, Formula) else models.load(self.path / model)
            found.append(Equation(model=Classifier(estimator, inputs), **entry))
        return tuple(found)

    def factuals(self) -> tuple[pd.DataFrame, dict[Any, Target]]:
        """The factuals, indexed by id, and the target of each."""
        lines = list(_lines(self.path / "factuals.jsonl"))
        frame = self.space.frame(line["row"] for line in lines)
        frame.index = pd.Index([line["id"] for line in lines])
        return frame, {line["id"]: from_plain(line["target"]) for line in lines}

    def rows(self) -> list[dict[str, Any]]:
        """Every stored row that is whole; of a factual that was tried again, the last try only."""
        last: dict[tuple[Any, int], dict[str, Any]] = {}
        for row in _lines(self.path / "rows.jsonl"):
            last[row["factual"], row["ce"]] = {**ROW_1, **row} if row.get("schema") == 1 else row
        expected = self.meta["n_counterfactuals"]
        counts: dict[Any, int] = {}
        for factual, _ in last:
            counts[factual] = counts.get(factual, 0) + 1
        return [row for (factual, _), row in last.items() if counts[factual] == expected]

    def answered(self) -> set[Any]:
        """Ids of the factuals that need no (further) try: all but those that failed."""
        rows = self.rows()
        return {row["factual"] for row in rows} - {row["factual"] for row in rows if row["status"] == Status.FAILED}

    def put_verdicts(self, verdicts: Iterable[Mapping[str, Any]]) -> None:
        """Store what the checker said, replacing what it said before."""
        write_whole(self.path / "verdicts.jsonl", "".join(json.dumps(to_plain(line)) + "\n" for line in verdicts))

    def verdicts(self) -> list[dict[str, Any]]:
        """What the checker said, one line a row."""
        return list(_lines(self.path / "verdicts.jsonl"))


def _put_estimator(estimator: Any, path: Path) -> None:
    """Store an estimator; where it was the last one, too, by the bytes of then."""
    if _written and _written[0][0] is estimator:
        write_whole(path, _written[0][1])
        return
    models.save(estimator, path)
    _written[:] = [(estimator, path.read_bytes())]


def _estimator(path: Path) -> Any:
    """The estimator in a file. The last one is kept: cells of one model hold files that are the same to the bit."""
    digest = models.checksum(path) if path.is_file() else ""
    if digest not in _read:
        found = models.load(path)
        _read.clear()
        _read[digest] = found
    return _read[digest]


def cells(folder: Path, trust: bool = False) -> list[Cell]:
    """Every cell under a results folder (or under its ``answers``), by name; ``trust`` as for ``Cell``.

    Raises
    ------
    HarnessError
        If there is none.
    """
    found = sorted(folder.glob("**/cell.json"))
    if not found:
        raise HarnessError(
            f"there are no stored answers under {folder}; give a results folder, such as results/compas."
        )
    return [Cell(path.parent, trust) for path in found]


def plain_row(row: Mapping[str, Any]) -> dict[str, Any]:
    """Decoded values as JSON numbers and strings, exact to the last bit."""
    return {name: to_plain(value) for name, value in row.items()}


def answer_row(factual: Any, number: int, answer: Answer, **timing: Any) -> dict[str, Any]:
    """The stored row of one answer. ``group`` and ``point`` are filled by group methods.

    ``timing``: ``seconds``, ``fit_seconds``, ``compile_seconds``, whether it was ``late``, how many factuals of its
    cell were explained at once (``jobs``), and how many cells (``beside``).
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
    group: Any, factuals: Sequence[Any], explanation: GroupExplanation | None, **said: Any
) -> dict[str, Any]:
    """The stored line of one group: its factuals, points with the features that each changes, bound, and who is left.

    ``said`` holds at least status, reason, detail and timings.
    """
    found = explanation or GroupExplanation(())
    return {
        "group": group,
        "factuals": list(factuals),
        "points": [plain_row(point.row or {}) for point in found.points],
        "changed": found.changed,
        "bound": found.bound,
        "uncoverable": found.uncoverable,
        "undecided": found.undecided,
        "trace": found.trace,
        **said,
    }


def _append(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """Add lines: one write and flush, so that a killed run leaves at most a torn last one."""
    lines = "".join(json.dumps({"schema": SCHEMA, **to_plain(row)}) + "\n" for row in rows)
    with path.open("ab") as file:
        if file.tell() and not _ends_line(path):
            file.write(b"\n")
        file.write(lines.encode())
        file.flush()


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    """JSON lines that are whole; a line torn by a kill or a full disk is dropped."""
    if not path.is_file():
        return
    with path.open() as file:
        for line in file:
            try:
                read = json.loads(line)
            except json.JSONDecodeError:
                continue
            yield _known(read, path)


def _known(read: dict[str, Any], path: Path) -> dict[str, Any]:
    """What was read, where its version is one that can be read."""
    version = read.get("schema", SCHEMA)
    if version not in range(1, SCHEMA + 1):
        raise HarnessError(
            f"{path} is in version {version} of the format of answers, and this ce-harness reads versions 1 to "
            f"{SCHEMA}; install a newer one, or give another output_dir."
        )
    return read


def _ends_line(path: Path) -> bool:
    with path.open("rb") as file:
        file.seek(-1, os.SEEK_END)
        return file.read(1) == b"\n"


def write_whole(path: Path, content: str | bytes) -> None:
    """Replace a file in one step: whoever reads it, now or after a crash, finds it as it was or as it is to be."""
    temporary = path.with_name(path.name + ".tmp")
    temporary.write_bytes(content.encode() if isinstance(content, str) else content)
    os.replace(temporary, path)
